// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels to GPU schedules in the tile dialect.
#ifndef ATTN_CONVERSION_ATTNTOTILE_ATTNTOTILE_H
#define ATTN_CONVERSION_ATTNTOTILE_ATTNTOTILE_H

#include "attn/Conversion/Passes.h"

#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace attn {

class KernelOp;

/// Discardable attributes of the tile.kernel: keys of a block (i64); the kernel finds hidden keys
/// by itself, and counts tiles (unit). They go into core::CudaLaunch.
constexpr const char *kKeyTileAttr = "tile.key_tile";
constexpr const char *kTestsVisibleAttr = "tile.tests_visible";
constexpr const char *kCountsTilesAttr = "tile.counts_tiles";

/// Symbol of the tile.kernel made of attn.kernel @name.
std::string getTileKernelName(llvm::StringRef name);

/// Shapes (toString of TileShapeInfo) that a kernel of `target` may have after the mask passes, the
/// table's first. Empty, with an error at the kernel, if the target has none for it.
std::vector<std::string> getTileShapes(KernelOp kernel, llvm::StringRef target);

} // namespace attn

#endif // ATTN_CONVERSION_ATTNTOTILE_ATTNTOTILE_H
