// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the schedule builders know of a GPU target.
#ifndef ATTN_CONVERSION_ATTNTOTILE_TARGETINFO_H
#define ATTN_CONVERSION_ATTNTOTILE_TARGETINFO_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <string>
#include <vector>

namespace attn {

/// What a kernel does to each score besides the softmax, in order of cost.
enum class ElementWork {
  Bits,     ///< nothing, or a bit mask in partial blocks
  Capped,   ///< a soft cap of the product that makes the running maximum needless
  Score,    ///< a score region
  Predicate ///< the mask's predicate in partial blocks, and perhaps a score region
};

/// The keys that rows keep, from the least to the most general.
enum class MaskShape {
  Prefixes, ///< all, or those below a limit of the row: row groups of a tile need nearly the same
            ///< blocks
  Any
};

/// The most of TileShapeInfo::rescaleSlack: weights of 2^8 leave f16 its range.
inline constexpr int64_t kMostRescaleSlack = 8;

/// Shape and schedule of a kernel for one head dimension.
struct TileShapeInfo {
  int64_t dim;               ///< of q, k and v
  ElementWork work;          ///< the most that the shape has registers for
  MaskShape masks;           ///< the most general that the schedule is for
  int64_t groups;            ///< consumer warpgroups of 64 query rows
  int64_t keyTile;           ///< keys of a block
  int64_t stages;            ///< of the K and of the V ring
  int64_t producerRegisters; ///< a thread, after setmaxnreg
  int64_t consumerRegisters;
  bool takesTurns;       ///< row groups issue their products one after the other
  bool queryInRegisters; ///< Q is read once a tile, and its slot free for the next one's
  /// O is multiplied for every block, or only where the maximum of a row of the warp rose: by more
  /// than 2^slack. 0 gives the same bits as Always; with more, weights up to 2^slack are summed and
  /// rounded, whose largest is then not exactly 1.
  enum : int64_t { kAlways = -1 };
  int64_t rescaleSlack;
  int64_t storeColumns; ///< of O that lie in shared memory at a time to be copied out
  int64_t queryTiles;   ///< whose Q lies in shared memory at a time: with two the next tile's is
                        ///< there when a tile is done
  bool takesHalves;     ///< of a tile's first block, where a row group needs no more
};

/// "2x128" (row groups, keys of a block), "2x128-turns".
std::string toString(const TileShapeInfo &shape);

struct TargetInfo {
  llvm::StringRef name;     ///< as in --target
  llvm::StringRef features; ///< of LLVM's NVPTX backend
  llvm::ArrayRef<TileShapeInfo> shapes;

  /// The first shape for a head dimension that takes `work` and `masks`, or null if the target has
  /// no kernel for the dimension.
  const TileShapeInfo *findShape(int64_t dim, ElementWork work, MaskShape masks) const;
  /// `base` and what else a kernel of its dimension and work may have: other row groups, keys of a
  /// block and turns, as far as registers and shared memory go. In the order of toString, `base`
  /// first. The table has the fastest that were measured; attn-run --tune measures again.
  std::vector<TileShapeInfo> candidates(const TileShapeInfo &base) const;
  /// Supported head dimensions: "64, 128, 256".
  std::string dims() const;
};

/// The target called `name`, or null.
const TargetInfo *findTarget(llvm::StringRef name);

} // namespace attn

#endif // ATTN_CONVERSION_ATTNTOTILE_TARGETINFO_H
