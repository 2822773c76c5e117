// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the schedule builders know of a GPU target.
#ifndef ATTN_CONVERSION_ATTNTOTILE_TARGETINFO_H
#define ATTN_CONVERSION_ATTNTOTILE_TARGETINFO_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <string>

namespace attn {

/// What a kernel does to each score besides the softmax, in order of cost.
enum class ElementWork {
  Bits,     ///< nothing, or a bit mask in partial blocks
  Score,    ///< a score region
  Predicate ///< the mask's predicate in partial blocks, and perhaps a score region
};

/// Shape of a kernel for one head dimension.
struct TileShapeInfo {
  int64_t dim;               ///< of q, k and v
  ElementWork work;          ///< the most that the shape has registers for
  int64_t groups;            ///< consumer warpgroups of 64 query rows
  int64_t keyTile;           ///< keys of a block
  int64_t stages;            ///< of the K and of the V ring
  int64_t producerRegisters; ///< a thread, after setmaxnreg
  int64_t consumerRegisters;
  bool lazyRescale; ///< O is multiplied only where a maximum of the warp rose; the same bit for bit
};

struct TargetInfo {
  llvm::StringRef name;     ///< as in --target
  llvm::StringRef features; ///< of LLVM's NVPTX backend
  int64_t maxSharedBytes;   ///< dynamic shared memory of a CTA
  llvm::ArrayRef<TileShapeInfo> shapes;

  /// The first shape for a head dimension that takes `work`, or null if the target has no kernel
  /// for the dimension.
  const TileShapeInfo *findShape(int64_t dim, ElementWork work) const;
  /// Supported head dimensions: "64, 128, 256".
  std::string dims() const;
};

/// The target called `name`, or null.
const TargetInfo *findTarget(llvm::StringRef name);

} // namespace attn

#endif // ATTN_CONVERSION_ATTNTOTILE_TARGETINFO_H
