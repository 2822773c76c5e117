// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What Hopper's tensor cores make of a sum of products, bit for bit.
#ifndef ATTN_SIM_TENSORCORE_H
#define ATTN_SIM_TENSORCORE_H

#include "Program.h"

namespace attn::sim {

/// Operands and sums of the 16 rows that a warp has of a product, as floats.
struct ProductTiles {
  static constexpr int kRows = 16, kMostColumns = 256, kMostDepth = 32;
  float a[kRows][kMostDepth];
  float b[kMostDepth][kMostColumns];
  float sum[kRows][kMostColumns];
};

/// Adds A B to the sums. A and B hold what the types of `shape` can.
void multiply(const WgmmaShape &shape, ProductTiles &tiles);

} // namespace attn::sim

#endif // ATTN_SIM_TENSORCORE_H
