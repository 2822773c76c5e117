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

/// Divides by one number again and again, with a product and a shift.
///
/// `factor` is 2^shift / divisor, rounded up, and 2^(shift - 31) the least power of two that is no
/// less than the divisor. What n * factor / 2^shift has too much is then below 1 / divisor for
/// n < 2^31, and the factor fits 32 bits.
struct Reciprocal {
  uint32_t factor;
  int32_t shift;

  /// `divisor`: 1 to 2^31.
  static constexpr Reciprocal of(int64_t divisor) {
    int32_t shift = 31;
    while (int64_t(1) << (shift - 31) < divisor)
      ++shift;
    const uint64_t size = static_cast<uint64_t>(divisor);
    return {static_cast<uint32_t>(((uint64_t(1) << shift) + size - 1) / size), shift};
  }
  /// n / divisor, for n in [0, 2^31).
  constexpr int64_t divide(int64_t n) const {
    return static_cast<int64_t>(static_cast<uint64_t>(n) * factor >> shift);
  }
};

} // namespace attn::core

#endif // ATTN_CORE_INTMATH_H
