// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// PTX ISA "Half Precision Floating Point Instructions": f16 and bf16, alone and in pairs. Sums and
// products of two are exact in double; one rounding to odd on the way down keeps the last one
// right.
#include "Lanes.h"

#include <cmath>

using namespace attn::sim;

F16 attn::sim::toF16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  const uint16_t sign = bits >> 16 & 0x8000;
  const uint32_t magnitude = bits & 0x7FFFFFFF;
  if (magnitude > 0x7F800000)
    return {0x7FFF};
  if (magnitude >= 0x47800000) // 65536
    return {static_cast<uint16_t>(sign | 0x7C00)};
  if (magnitude < 0x38800000) { // below 2^-14: steps of 2^-24
    const float scaled = std::ldexp(std::fabs(value), 24);
    return {static_cast<uint16_t>(sign | static_cast<uint16_t>(std::nearbyint(scaled)))};
  }
  const uint32_t rounded = magnitude + 0xFFF + (magnitude >> 13 & 1) - 0x38000000;
  return {static_cast<uint16_t>(sign | rounded >> 13)};
}

namespace {

/// To float so that rounding the result again is as good as rounding once.
float toOdd(double value) {
  float near = static_cast<float>(value);
  if (static_cast<double>(near) == value || value != value)
    return near;
  uint32_t bits;
  std::memcpy(&bits, &near, 4);
  if (std::fabs(static_cast<double>(near)) > std::fabs(value))
    --bits; // towards zero
  bits |= 1;
  std::memcpy(&near, &bits, 4);
  return near;
}
template <class T>
T round(double value);
template <>
F16 round<F16>(double value) {
  return toF16(toOdd(value));
}
template <>
BF16 round<BF16>(double value) {
  return toBF16(toOdd(value));
}

struct Add {
  static double apply(double a, double b) { return a + b; }
};
struct Sub {
  static double apply(double a, double b) { return a - b; }
};
struct Mul {
  static double apply(double a, double b) { return a * b; }
};
template <bool keepNan>
struct Max {
  static double apply(double a, double b) {
    if (a != a || b != b)
      return keepNan || a != a ? (keepNan ? std::nan("") : b) : a;
    if (a == b)
      return std::signbit(a) ? b : a;
    return a > b ? a : b;
  }
};
template <bool keepNan>
struct Min {
  static double apply(double a, double b) { return -Max<keepNan>::apply(-a, -b); }
};
struct Fma {
  static double apply(double a, double b, double c) { return std::fma(a, b, c); }
};
struct FmaRelu {
  static double apply(double a, double b, double c) {
    const double r = std::fma(a, b, c);
    return r > 0 || r != r ? r : 0;
  }
};

template <class T, class F>
struct One2 {
  static T apply(T a, T b) { return round<T>(F::apply(toFloat(a), toFloat(b))); }
};
template <class T, class F>
struct One3 {
  static T apply(T a, T b, T c) { return round<T>(F::apply(toFloat(a), toFloat(b), toFloat(c))); }
};
template <class T, class F>
struct Both2 {
  static Two<T> apply(Two<T> a, Two<T> b) {
    return {One2<T, F>::apply(a.low, b.low), One2<T, F>::apply(a.high, b.high)};
  }
};
template <class T, class F>
struct Both3 {
  static Two<T> apply(Two<T> a, Two<T> b, Two<T> c) {
    return {One3<T, F>::apply(a.low, b.low, c.low), One3<T, F>::apply(a.high, b.high, c.high)};
  }
};
template <class T, uint16_t keep, uint16_t flip>
struct Sign {
  static T apply(T a) { return {static_cast<uint16_t>((a.bits & keep) ^ flip)}; }
};
template <class T, uint16_t keep, uint16_t flip>
struct Signs {
  static Two<T> apply(Two<T> a) {
    return {Sign<T, keep, flip>::apply(a.low), Sign<T, keep, flip>::apply(a.high)};
  }
};

template <class T, class F>
void add2(AluTable &table, const std::string &name, const std::string &type) {
  addBinary<T, T, T, One2<T, F>>(table, name + "." + type, Class::Fp);
  addBinary<Two<T>, Two<T>, Two<T>, Both2<T, F>>(table, name + "." + type + "x2", Class::Fp);
}
template <class T, class F>
void add3(AluTable &table, const std::string &name, const std::string &type) {
  addTernary<T, T, T, T, One3<T, F>>(table, name + "." + type, Class::Fp);
  addTernary<Two<T>, Two<T>, Two<T>, Two<T>, Both3<T, F>>(table, name + "." + type + "x2",
                                                          Class::Fp);
}
template <class T>
void addAll(AluTable &table, const std::string &type) {
  for (const char *rounding : {"", ".rn"}) {
    add2<T, Add>(table, std::string("add") + rounding, type);
    add2<T, Sub>(table, std::string("sub") + rounding, type);
    add2<T, Mul>(table, std::string("mul") + rounding, type);
  }
  add2<T, Max<false>>(table, "max", type);
  add2<T, Min<false>>(table, "min", type);
  add2<T, Max<true>>(table, "max.NaN", type);
  add2<T, Min<true>>(table, "min.NaN", type);
  add3<T, Fma>(table, "fma.rn", type);
  add3<T, FmaRelu>(table, "fma.rn.relu", type);
  addUnary<T, T, Sign<T, 0x7FFF, 0>>(table, "abs." + type, Class::Fp);
  addUnary<T, T, Sign<T, 0xFFFF, 0x8000>>(table, "neg." + type, Class::Fp);
  addUnary<Two<T>, Two<T>, Signs<T, 0x7FFF, 0>>(table, "abs." + type + "x2", Class::Fp);
  addUnary<Two<T>, Two<T>, Signs<T, 0xFFFF, 0x8000>>(table, "neg." + type + "x2", Class::Fp);
}

} // namespace

void attn::sim::addHalfInstructions(AluTable &table) {
  addAll<F16>(table, "f16");
  addAll<BF16>(table, "bf16");
}
