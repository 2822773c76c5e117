// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// PTX ISA "Floating Point Instructions" of f32 and f64, rounding to nearest. The approximate ones
// are those of Hopper; sin and cos are those of the host's library, closer than the ISA demands.
#include "Lanes.h"
#include "Mufu.h"

#include <cmath>
#include <limits>

using namespace attn::sim;

namespace {

template <bool ftz, class T>
T flush(T x) {
  if constexpr (ftz)
    return std::fabs(x) < std::numeric_limits<T>::min() ? std::copysign(T(0), x) : x;
  return x;
}
template <bool saturate, class T>
T clamp(T x) {
  if constexpr (saturate)
    return x > 0 ? (x < 1 ? x : T(1)) : T(0); // NaN: 0
  return x;
}
template <class T>
T nan() {
  // The NaN that instructions make has all bits set but the sign.
  uint64_t bits = sizeof(T) == 4 ? 0x7FFFFFFF : 0x7FFFFFFFFFFFFFFF;
  T value;
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

template <class T, bool ftz, bool saturate>
struct Add {
  static T apply(T a, T b) { return clamp<saturate>(flush<ftz>(flush<ftz>(a) + flush<ftz>(b))); }
};
template <class T, bool ftz, bool saturate>
struct Sub {
  static T apply(T a, T b) { return clamp<saturate>(flush<ftz>(flush<ftz>(a) - flush<ftz>(b))); }
};
/// .ftz takes for subnormal what is so once rounded to 24 bits of any exponent (measured on an
/// H200), though with fewer bits it were the least normal number.
template <bool ftz, class T>
T product(T a, T b) {
  const T rounded = flush<ftz>(flush<ftz>(a) * flush<ftz>(b));
  if constexpr (ftz)
    if (std::fabs(rounded) == std::numeric_limits<T>::min() &&
        std::fabs(static_cast<T>(double(a) * b * 0x1p64)) < 0x1p-62f)
      return std::copysign(T(0), rounded);
  return rounded;
}
template <class T, bool ftz, bool saturate>
struct Mul {
  static T apply(T a, T b) { return clamp<saturate>(product<ftz>(a, b)); }
};
template <class T, bool ftz, bool saturate>
struct Fma {
  static T apply(T a, T b, T c) {
    return clamp<saturate>(flush<ftz>(std::fma(flush<ftz>(a), flush<ftz>(b), flush<ftz>(c))));
  }
};
template <class T, bool ftz>
struct Div {
  static T apply(T a, T b) { return flush<ftz>(flush<ftz>(a) / flush<ftz>(b)); }
};
/// +0 is more than -0; a NaN loses, or with `keepNan` wins.
template <class T, bool ftz, bool keepNan>
struct Max {
  static T apply(T a, T b) {
    a = flush<ftz>(a), b = flush<ftz>(b);
    if (a > b)
      return a;
    if (b > a)
      return b;
    if (a == b)
      return std::signbit(a) ? b : a;
    if (keepNan || (a != a && b != b))
      return nan<T>();
    return a != a ? b : a;
  }
};
template <class T, bool ftz, bool keepNan>
struct Min {
  static T apply(T a, T b) {
    const T result = Max<T, ftz, keepNan>::apply(-a, -b);
    return result != result ? result : -result;
  }
};
template <class T, bool ftz>
struct Abs {
  static T apply(T a) { return flush<ftz>(std::fabs(a)); }
};
template <class T, bool ftz>
struct Neg {
  static T apply(T a) { return flush<ftz>(-a); }
};
template <class T>
struct CopySign {
  static T apply(T a, T b) { return std::copysign(b, a); }
};
template <class T, bool ftz>
struct Rcp {
  static T apply(T a) { return flush<ftz>(T(1) / flush<ftz>(a)); }
};
template <class T, bool ftz>
struct Sqrt {
  static T apply(T a) { return flush<ftz>(std::sqrt(flush<ftz>(a))); }
};

// Of the forms that keep subnormal numbers ptxas makes one of the special function unit and
// products around it, as follows.

constexpr float kLeastNormal = std::numeric_limits<float>::min();

template <bool ftz>
struct ApproxRcp {
  static float apply(float a) {
    if (ftz)
      return mufu::rcp(a);
    const float scale = std::fabs(a) > 0x1p126f           ? 0.25f
                        : !(std::fabs(a) >= kLeastNormal) ? 0x1p24f
                                                          : 1.0f;
    return scale * mufu::rcp(a * scale);
  }
};
template <bool ftz>
struct ApproxSqrt {
  static float apply(float a) {
    return ftz || std::fabs(a) >= kLeastNormal ? mufu::sqrt(a) : mufu::sqrt(a * 0x1p24f) * 0x1p-12f;
  }
};
template <bool ftz>
struct ApproxRsqrt {
  static float apply(float a) {
    return ftz || std::fabs(a) >= kLeastNormal ? mufu::rsqrt(a)
                                               : mufu::rsqrt(a * 0x1p24f) * 0x1p12f;
  }
};
template <bool ftz>
struct ApproxEx2 {
  static float apply(float a) {
    if (ftz || a >= -126)
      return mufu::ex2(a);
    const float root = mufu::ex2(a * 0.5f);
    return root * root;
  }
};
template <bool ftz>
struct ApproxLg2 {
  static float apply(float a) {
    return ftz || std::fabs(a) >= kLeastNormal ? mufu::lg2(a) : mufu::lg2(a * 0x1p24f) - 24;
  }
};
struct ApproxTanh {
  static float apply(float a) { return mufu::tanh(a); }
};
/// div.full, and with `approx` div.approx, which is wrong beyond 2^126.
template <bool ftz, bool approx>
struct ApproxDiv {
  static float apply(float a, float b) {
    float scale = 1;
    if (!approx && std::fabs(b) > 0x1p126f)
      scale = 0.25f;
    else if (!ftz && !(std::fabs(b) >= kLeastNormal))
      scale = 0x1p24f;
    const float quotient = product<ftz>(product<ftz>(a, scale), mufu::rcp(b * scale));
    return quotient == quotient ? quotient : nan<float>();
  }
};
template <bool ftz>
struct Sin {
  static float apply(float a) { return flush<ftz>(std::sin(flush<ftz>(a))); }
};
template <bool ftz>
struct Cos {
  static float apply(float a) { return flush<ftz>(std::cos(flush<ftz>(a))); }
};

template <class T>
bool select(Cta &, Warp &warp, const Instr &in, uint32_t mask) {
  const T *a = reinterpret_cast<const T *>(warp.operand(in.src[0]));
  const T *b = reinterpret_cast<const T *>(warp.operand(in.src[1]));
  const uint32_t chosen = *warp.words(in.src[2]) ^ (in.negated ? ~0u : 0u);
  setLanes<T>(warp, in.dst, mask, [&](int lane) { return chosen >> lane & 1 ? a[lane] : b[lane]; });
  return true;
}
template <class T>
bool move(Cta &, Warp &warp, const Instr &in, uint32_t mask) {
  const T *a = reinterpret_cast<const T *>(warp.operand(in.src[0]));
  setLanes<T>(warp, in.dst, mask, [&](int lane) { return a[lane]; });
  return true;
}

template <class T, bool ftz, bool saturate>
void addArithmetic(AluTable &table, const std::string &suffix) {
  const Class fp = Class::Fp;
  for (const char *rounding : {"", ".rn"}) {
    addBinary<T, T, T, Add<T, ftz, saturate>>(table, "add" + (rounding + suffix), fp);
    addBinary<T, T, T, Sub<T, ftz, saturate>>(table, "sub" + (rounding + suffix), fp);
    addBinary<T, T, T, Mul<T, ftz, saturate>>(table, "mul" + (rounding + suffix), fp);
  }
  addTernary<T, T, T, T, Fma<T, ftz, saturate>>(table, "fma.rn" + suffix, fp);
  addTernary<T, T, T, T, Fma<T, ftz, saturate>>(table, "mad.rn" + suffix, fp);
}

template <class T, bool ftz>
void addRest(AluTable &table, const std::string &suffix) {
  const Class fp = Class::Fp;
  addBinary<T, T, T, Max<T, ftz, false>>(table, "max" + suffix, fp);
  addBinary<T, T, T, Min<T, ftz, false>>(table, "min" + suffix, fp);
  addUnary<T, T, Abs<T, ftz>>(table, "abs" + suffix, fp);
  addUnary<T, T, Neg<T, ftz>>(table, "neg" + suffix, fp);
  addBinary<T, T, T, Div<T, ftz>>(table, "div.rn" + suffix, Class::Sfu);
  addUnary<T, T, Rcp<T, ftz>>(table, "rcp.rn" + suffix, Class::Sfu);
  addUnary<T, T, Sqrt<T, ftz>>(table, "sqrt.rn" + suffix, Class::Sfu);
}

template <bool ftz>
void addApproximate(AluTable &table, const std::string &suffix) {
  const Class sfu = Class::Sfu;
  using F = float;
  addBinary<F, F, F, Max<F, ftz, true>>(table, (ftz ? "max.ftz.NaN.f32" : "max.NaN.f32"),
                                        Class::Fp);
  addBinary<F, F, F, Min<F, ftz, true>>(table, (ftz ? "min.ftz.NaN.f32" : "min.NaN.f32"),
                                        Class::Fp);
  addBinary<F, F, F, ApproxDiv<ftz, true>>(table, "div.approx" + suffix, sfu);
  addBinary<F, F, F, ApproxDiv<ftz, false>>(table, "div.full" + suffix, sfu);
  addUnary<F, F, ApproxRcp<ftz>>(table, "rcp.approx" + suffix, sfu);
  addUnary<F, F, ApproxSqrt<ftz>>(table, "sqrt.approx" + suffix, sfu);
  addUnary<F, F, ApproxRsqrt<ftz>>(table, "rsqrt.approx" + suffix, sfu);
  addUnary<F, F, ApproxEx2<ftz>>(table, "ex2.approx" + suffix, sfu);
  addUnary<F, F, ApproxLg2<ftz>>(table, "lg2.approx" + suffix, sfu);
  addUnary<F, F, Sin<ftz>>(table, "sin.approx" + suffix, sfu);
  addUnary<F, F, Cos<ftz>>(table, "cos.approx" + suffix, sfu);
}

} // namespace

void attn::sim::addFloatInstructions(AluTable &table) {
  addArithmetic<float, false, false>(table, ".f32");
  addArithmetic<float, true, false>(table, ".ftz.f32");
  addArithmetic<float, false, true>(table, ".sat.f32");
  addArithmetic<float, true, true>(table, ".ftz.sat.f32");
  addArithmetic<double, false, false>(table, ".f64");
  addRest<float, false>(table, ".f32");
  addRest<float, true>(table, ".ftz.f32");
  addRest<double, false>(table, ".f64");
  addApproximate<false>(table, ".f32");
  addApproximate<true>(table, ".ftz.f32");
  addUnary<float, float, ApproxTanh>(table, "tanh.approx.f32", Class::Sfu);
  addBinary<float, float, float, CopySign<float>>(table, "copysign.f32", Class::Fp);
  addBinary<double, double, double, CopySign<double>>(table, "copysign.f64", Class::Fp);
  const PtxType p = PtxType::Pred;
  for (const char *type : {"b16", "u16", "s16", "f16", "bf16"})
    table[std::string("selp.") + type] = {
        select<uint32_t>, Class::Alu, PtxType::B16, {PtxType::B16, PtxType::B16, p}};
  for (const char *type : {"b32", "u32", "s32", "f32"})
    table[std::string("selp.") + type] = {
        select<uint32_t>, Class::Alu, PtxType::B32, {PtxType::B32, PtxType::B32, p}};
  for (const char *type : {"b64", "u64", "s64", "f64"})
    table[std::string("selp.") + type] = {
        select<uint64_t>, Class::Alu, PtxType::B64, {PtxType::B64, PtxType::B64, p}};
  for (const char *type : {"b16", "u16", "s16", "f16", "bf16"})
    table[std::string("mov.") + type] = {move<uint32_t>, Class::Alu, PtxType::B16, {PtxType::B16}};
  for (const char *type : {"b32", "u32", "s32", "f32"})
    table[std::string("mov.") + type] = {move<uint32_t>, Class::Alu, PtxType::B32, {PtxType::B32}};
  for (const char *type : {"b64", "u64", "s64", "f64"})
    table[std::string("mov.") + type] = {move<uint64_t>, Class::Alu, PtxType::B64, {PtxType::B64}};
}
