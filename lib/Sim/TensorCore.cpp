// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A sum and all products of an instruction (16 of two bytes, 32 of one) are added in one step:
//
// - Products are exact. The exponent of one is the sum of its factors', which is one too small for
//   significands whose product is 2 or more. Subnormal factors have the exponent of the least
//   normal number; a product or sum that is 0 has none.
// - All are aligned to the largest exponent, cut off (toward 0) 25 bits below it, 13 if the factors
//   are bytes, and added exactly.
// - The total is cut off to 24 bits, 14 of bytes. Subnormal results stay, and no total is -0.
//
// The scheme is what F. Khattak and M. Mikaitis, "Accurate Models of NVIDIA Tensor Cores" (arXiv
// 2512.07004), found of an H100. Measured on an H200: 61 million sums, of like exponents and of
// all, with zeros, subnormal numbers, infinities and NaN; of f16, bf16, e4m3 and e5m2, each by
// itself. None differs. A in registers or in shared memory gives the same, and a chain of
// instructions what they give one after the other.
#include "TensorCore.h"

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace attn::sim;

using Type = WgmmaShape::Type;

namespace {

constexpr int kRows = ProductTiles::kRows, kMostColumns = ProductTiles::kMostColumns;
constexpr int kMostDepth = ProductTiles::kMostDepth;

/// In place of exponents: sums with one or two of them are below -4096 if they are of zeros, above
/// 128 with an infinity or a NaN.
constexpr int kZero = -8192, kNotFinite = 12288;

bool isTwoBytes(const WgmmaShape &shape) { return shape.a == Type::F16 || shape.a == Type::BF16; }

/// Exponent of the least normal number.
int leastExponent(Type type) { return type == Type::BF16 ? -126 : type == Type::E4M3 ? -6 : -14; }

[[gnu::always_inline]] inline int exponentOf(float value, int least) {
  int32_t bits;
  std::memcpy(&bits, &value, 4);
  const int magnitude = bits & 0x7FFFFFFF;
  const int exponent = std::max((magnitude >> 23) - 127, least);
  return magnitude == 0 ? kZero : magnitude >= 0x7F800000 ? kNotFinite : exponent;
}

/// Is every step of `multiplyOrdinary` in the range of its type? A product below that of f32 is far
/// below what is kept.
[[gnu::always_inline]] inline bool isOrdinary(int16_t largest) {
  return (largest < -4096) | ((largest >= -100) & (largest <= 100));
}

/// One sum, whatever the operands. `largest`: exponent.
float multiplyAny(const WgmmaShape &shape, const ProductTiles &tiles, int row, int column,
                  int largest) {
  const double sum = tiles.sum[row][column];
  double plain = sum;
  for (int k = 0; k < shape.k; ++k)
    plain += double(tiles.a[row][k]) * tiles.b[k][column];
  if (!std::isfinite(plain)) {
    const uint32_t bits = std::isnan(plain) ? 0x7FFFFFFF : plain > 0 ? 0x7F800000 : 0xFF800000;
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
  }
  const int kept = isTwoBytes(shape) ? 25 : 13, width = isTwoBytes(shape) ? 23 : 13;
  double total = std::trunc(std::ldexp(sum, kept - largest));
  for (int k = 0; k < shape.k; ++k)
    total += std::trunc(std::ldexp(double(tiles.a[row][k]) * tiles.b[k][column], kept - largest));
  if (total == 0)
    return 0;
  const int unit = std::max(std::ilogb(total) + largest - kept, -126) - width;
  const double value = std::ldexp(std::trunc(std::ldexp(total, largest - kept - unit)), unit);
  return static_cast<float>(std::fabs(value) < 0x1p128 ? value : std::copysign(INFINITY, value));
}

/// Columns that are ordinary, by steps that are exact but the two that cut off: conversions to
/// integers, and the last bits of a double. A total of products is below 2^31: each factor is less
/// than 2 - 2^-10 of its power of two, each product than 2^27 units.
template <int kept, int width>
[[gnu::always_inline]] inline void multiplyOrdinary(int depth, const float *a,
                                                    const float (*b)[kMostColumns], int first,
                                                    int last, const int16_t *largest, float *sum) {
  float scale[kMostColumns];
  int32_t products[kMostColumns];
  for (int n = first; n < last; ++n) {
    const int32_t bits = (127 + kept - std::max<int>(largest[n], -100)) << 23;
    std::memcpy(&scale[n], &bits, 4);
    products[n] = 0;
  }
  for (int k = 0; k < depth; k += 2) {
    const float a0 = a[k], a1 = a[k + 1];
    const float *b0 = b[k], *b1 = b[k + 1];
    for (int n = first; n < last; ++n)
      products[n] +=
          static_cast<int32_t>(a0 * b0[n] * scale[n]) + static_cast<int32_t>(a1 * b1[n] * scale[n]);
  }
  for (int n = first; n < last; ++n) {
    const double total = double(products[n]) + static_cast<int32_t>(sum[n] * scale[n]);
    const int64_t unitBits = int64_t(1023 - kept + std::max<int>(largest[n], -100)) << 52;
    double unit;
    std::memcpy(&unit, &unitBits, 8);
    double value = total * unit;
    int64_t bits;
    std::memcpy(&bits, &value, 8);
    bits &= ~((int64_t(1) << (52 - width)) - 1);
    std::memcpy(&value, &bits, 8);
    sum[n] = static_cast<float>(value);
  }
}

template <int kept, int width>
[[gnu::always_inline]] inline void multiplyRows(const WgmmaShape &shape, ProductTiles &tiles) {
  int16_t exponents[kMostDepth][kMostColumns];
  const int leastA = leastExponent(shape.a), leastB = leastExponent(shape.b);
  for (int k = 0; k < shape.k; ++k)
    for (int n = 0; n < shape.n; ++n)
      exponents[k][n] = static_cast<int16_t>(exponentOf(tiles.b[k][n], leastB));
  for (int row = 0; row < kRows; ++row) {
    float *sum = tiles.sum[row];
    int16_t largest[kMostColumns];
    for (int n = 0; n < shape.n; ++n)
      largest[n] = static_cast<int16_t>(exponentOf(sum[n], -126));
    for (int k = 0; k < shape.k; ++k) {
      const auto a = static_cast<int16_t>(exponentOf(tiles.a[row][k], leastA));
      for (int n = 0; n < shape.n; ++n)
        largest[n] = std::max(largest[n], static_cast<int16_t>(a + exponents[k][n]));
    }
    int16_t others = 0;
    for (int n = 0; n < shape.n; ++n)
      others |= isOrdinary(largest[n]) ? 0 : 1;
    if (!others) {
      multiplyOrdinary<kept, width>(shape.k, tiles.a[row], tiles.b, 0, shape.n, largest, sum);
      continue;
    }
    for (int n = 0, last; n < shape.n; n = last) {
      const bool ordinary = isOrdinary(largest[n]);
      for (last = n + 1; last < shape.n && isOrdinary(largest[last]) == ordinary;)
        ++last;
      if (ordinary)
        multiplyOrdinary<kept, width>(shape.k, tiles.a[row], tiles.b, n, last, largest, sum);
      else
        for (int i = n; i < last; ++i)
          sum[i] = multiplyAny(shape, tiles, row, i, largest[i]);
    }
  }
}

[[gnu::always_inline]] inline void multiplyAll(const WgmmaShape &shape, ProductTiles &tiles) {
  if (isTwoBytes(shape))
    multiplyRows<25, 23>(shape, tiles);
  else
    multiplyRows<13, 13>(shape, tiles);
}

// Wider vectors change no result.
void multiplyAnywhere(const WgmmaShape &shape, ProductTiles &tiles) { multiplyAll(shape, tiles); }
#if defined(__x86_64__) && defined(__GNUC__)
[[gnu::target("avx2")]] void multiplyAvx2(const WgmmaShape &shape, ProductTiles &tiles) {
  multiplyAll(shape, tiles);
}
#endif

} // namespace

void attn::sim::multiply(const WgmmaShape &shape, ProductTiles &tiles) {
#if defined(__x86_64__) && defined(__GNUC__)
  static const bool hasAvx2 = __builtin_cpu_supports("avx2");
  if (hasAvx2)
    return multiplyAvx2(shape, tiles);
#endif
  multiplyAnywhere(shape, tiles);
}
