// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels to GPU schedules in the tile dialect.
#ifndef ATTN_CONVERSION_ATTNTOTILE_ATTNTOTILE_H
#define ATTN_CONVERSION_ATTNTOTILE_ATTNTOTILE_H

#include "attn/Conversion/Passes.h"

#include "llvm/ADT/StringRef.h"

#include <string>

namespace attn {

/// Discardable attributes of the tile.kernel: keys of a block (i64); the kernel finds hidden keys
/// by itself, and counts tiles (unit). They go into core::CudaLaunch.
constexpr const char *kKeyTileAttr = "tile.key_tile";
constexpr const char *kTestsVisibleAttr = "tile.tests_visible";
constexpr const char *kCountsTilesAttr = "tile.counts_tiles";

/// Symbol of the tile.kernel made of attn.kernel @name.
std::string getTileKernelName(llvm::StringRef name);

} // namespace attn

#endif // ATTN_CONVERSION_ATTNTOTILE_ATTNTOTILE_H
