// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A table and a quadratic in fixed point: the leading bits of the fraction choose a piece, the rest
// is the place x in it. The design is that of S. Oberman and M. Siu, "A High-Performance
// Area-Efficient Multifunction Interpolator" (2005); the squarer and what happens to signs are as
// envytools describes them for G80 (nvhw/sfu.c), and still are so.
//
// Measured on an H200 for all 2^23 fractions: ex2 of 8 exponents and both signs, lg2 of 3, rcp of
// one, rsqrt and sqrt of an even and an odd one, tanh of all between 2^-8 and 8. No result differs.
#include "Mufu.h"

#include "MufuTables.h"

#include <cstdint>
#include <cstring>

using namespace attn::sim;
using mufu::Piece;

namespace {

constexpr uint32_t kInfinity = 0x7F800000, kNan = 0x7FFFFFFF, kOne = 0x3F800000;
constexpr uint32_t kSign = 0x80000000, kHidden = 1u << 23;

float fromBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

struct Parts {
  explicit Parts(float x) { std::memcpy(&bits, &x, 4); }
  uint32_t bits;
  uint32_t sign() const { return bits & kSign; }
  int exponent() const { return bits >> 23 & 255; } ///< biased
  uint32_t fraction() const { return bits & (kHidden - 1); }
  bool isNan() const { return (bits & ~kSign) > kInfinity; }
  bool isZero() const { return exponent() == 0; } ///< as .ftz sees it
};

/// x^2 / 2^19 of 17 bits. The squarer cuts every partial product off at 2^18.
int64_t square(uint32_t x) {
  uint32_t sum = 0;
  for (int i = 0; i < 17; ++i)
    sum += (x >> (18 - i)) & (0u - (x >> i & 1));
  return sum >> 1;
}

int64_t evaluate(const Piece &piece, uint32_t x) {
  return piece.a + int64_t(piece.b) * x + piece.c * square(x);
}

/// A significand of 24 bits; no subnormal results.
float pack(uint32_t sign, int exponent, int64_t significand) {
  const int64_t bits = int64_t(exponent) * kHidden + significand - kHidden;
  if (bits < kHidden)
    return fromBits(sign);
  return fromBits(sign | (bits < kInfinity ? static_cast<uint32_t>(bits) : kInfinity));
}

/// value / 2^unit cut off to 24 bits.
float cut(uint32_t sign, int64_t value, int unit) {
  if (value == 0)
    return fromBits(sign);
  int top = 0;
  while (value >> top > 1)
    ++top;
  const int64_t significand = top > 23 ? value >> (top - 23) : value << (23 - top);
  return pack(sign, 127 + top - unit, significand);
}

} // namespace

float mufu::ex2(float x) {
  const Parts in(x);
  if (in.isNan())
    return fromBits(kNan);
  if (in.exponent() >= 127 + 7)
    return fromBits(in.sign() ? 0 : kInfinity);
  // 23 bits behind the point. Below 0 the complement, which is one unit less than -x, for whatever
  // is no integer.
  const int right = 127 - in.exponent();
  const auto magnitude = static_cast<int32_t>(in.isZero() ? 0 : in.fraction() | kHidden);
  int32_t fixed = right > 31 ? 0 : right > 0 ? magnitude >> right : magnitude << -right;
  if (in.sign())
    fixed = fixed & (kHidden - 1) ? ~fixed : -fixed;
  const uint32_t fraction = fixed & (kHidden - 1);
  const int64_t significand = evaluate(kEx2[fraction >> 17], fraction & 0x1FFFF) >> 15;
  return pack(0, 127 + (fixed >> 23), significand);
}

float mufu::lg2(float x) {
  const Parts in(x);
  if (in.isNan() || (in.sign() && !in.isZero()))
    return fromBits(kNan);
  if (in.isZero())
    return fromBits(kSign | kInfinity);
  if (in.bits == kInfinity)
    return x;
  if (in.bits == kOne)
    return 0;
  const uint32_t fraction = in.fraction();
  const int64_t log = evaluate(kLg2[fraction >> 17], fraction & 0x1FFFF) >> 2;
  const int64_t value = log + int64_t(in.exponent() - 127) * (int64_t(1) << 36);
  return value < 0 ? cut(kSign, ~value, 36) : cut(0, value, 36);
}

float mufu::rcp(float x) {
  const Parts in(x);
  if (in.isNan())
    return fromBits(kNan);
  if (in.isZero())
    return fromBits(in.sign() | kInfinity);
  if (in.exponent() == 255)
    return fromBits(in.sign());
  // Pieces half as long as those of the others.
  const uint32_t place = in.fraction() & 0xFFFF;
  const Piece &piece = kRcp[in.fraction() >> 16];
  const int64_t significand =
      (piece.a + int64_t(piece.b) * place + piece.c * square(2 * place)) >> 15;
  return pack(in.sign(), 253 - in.exponent(), significand);
}

float mufu::rsqrt(float x) {
  const Parts in(x);
  if (in.isZero() && !in.isNan())
    return fromBits(in.sign() | kInfinity);
  if (in.isNan() || in.sign())
    return fromBits(kNan);
  if (in.bits == kInfinity)
    return 0;
  const int exponent = in.exponent() - 127, odd = exponent & 1;
  const uint32_t fraction = in.fraction();
  const int64_t significand =
      fraction == 0 && !odd
          ? 2 * int64_t(kHidden)
          : evaluate(kRsqrt[odd * 64 + (fraction >> 17)], fraction & 0x1FFFF) >> 16;
  return pack(0, 126 - (exponent - odd) / 2, significand);
}

float mufu::sqrt(float x) {
  const Parts in(x);
  if (in.isZero())
    return fromBits(in.sign());
  if (in.isNan() || in.sign())
    return fromBits(kNan);
  if (in.bits == kInfinity)
    return x;
  const int exponent = in.exponent() - 127, odd = exponent & 1;
  const uint32_t fraction = in.fraction();
  const int64_t value = evaluate(kSqrt[odd * 64 + (fraction >> 17)], fraction & 0x1FFFF);
  return pack(0, 127 + (exponent - odd) / 2, value >> 17);
}

float mufu::tanh(float x) {
  /// Of the exponents from -8 on: the first piece, and the logarithm of how many.
  struct Binade {
    uint8_t first, bits;
  };
  static constexpr Binade binades[] = {{0, 0},  {1, 0},  {2, 0},  {3, 1},  {5, 1}, {7, 2},
                                       {11, 2}, {15, 2}, {19, 3}, {27, 4}, {43, 3}};
  const Parts in(x);
  if (in.isNan())
    return fromBits(kNan);
  if (in.exponent() < 127 - 8)
    return x;
  if (in.exponent() >= 127 + 3)
    return fromBits(in.sign() | kOne);
  const Binade &binade = binades[in.exponent() - (127 - 8)];
  const uint32_t piece = binade.first + (in.fraction() >> (23 - binade.bits));
  return cut(in.sign(), evaluate(kTanh[piece], in.fraction() >> (6 - binade.bits) & 0x1FFFF), 41);
}
