// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Integer division with a rounding of its own; C++ rounds toward zero.
#ifndef ATTN_CORE_INTMATH_H
#define ATTN_CORE_INTMATH_H

#include <cstdint>

namespace attn::core {

/// a / b rounded down; b is not 0, and not -1 where a is the smallest number.
constexpr int64_t floorDiv(int64_t a, int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}
/// a / b rounded up; the same.
constexpr int64_t ceilDiv(int64_t a, int64_t b) {
  return a / b + (a % b != 0 && (a < 0) == (b < 0));
}
/// `a` rounded up to a multiple of `b`, b > 0.
constexpr int64_t roundUp(int64_t a, int64_t b) { return ceilDiv(a, b) * b; }

} // namespace attn::core

#endif // ATTN_CORE_INTMATH_H
