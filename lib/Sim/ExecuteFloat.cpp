// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// PTX ISA "Floating Point Instructions" of f32 and f64, rounding to nearest. The approximate ones
// are those of the host's library, which are closer than the ISA demands.
#include "Lanes.h"

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
template <class T, bool ftz, bool saturate>
struct Mul {
  static T apply(T a, T b) { return clamp<saturate>(flush<ftz>(flush<ftz>(a) * flush<ftz>(b))); }
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
template <class T, bool ftz>
struct Rsqrt {
  static T apply(T a) { return flush<ftz>(T(1) / std::sqrt(flush<ftz>(a))); }
};
template <bool ftz>
struct Ex2 {
  static float apply(float a) { return flush<ftz>(std::exp2(flush<ftz>(a))); }
};
template <bool ftz>
struct Lg2 {
  static float apply(float a) { return flush<ftz>(std::log2(flush<ftz>(a))); }
};
template <bool ftz>
struct Sin {
  static float apply(float a) { return flush<ftz>(std::sin(flush<ftz>(a))); }
};
template <bool ftz>
struct Cos {
  static float apply(float a) { return flush<ftz>(std::cos(flush<ftz>(a))); }
};
struct Tanh {
  static float apply(float a) { return std::tanh(a); }
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
  addBinary<F, F, F, Div<F, ftz>>(table, "div.approx" + suffix, sfu);
  addBinary<F, F, F, Div<F, ftz>>(table, "div.full" + suffix, sfu);
  addUnary<F, F, Rcp<F, ftz>>(table, "rcp.approx" + suffix, sfu);
  addUnary<F, F, Sqrt<F, ftz>>(table, "sqrt.approx" + suffix, sfu);
  addUnary<F, F, Rsqrt<F, ftz>>(table, "rsqrt.approx" + suffix, sfu);
  addUnary<F, F, Ex2<ftz>>(table, "ex2.approx" + suffix, sfu);
  addUnary<F, F, Lg2<ftz>>(table, "lg2.approx" + suffix, sfu);
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
  addUnary<float, float, Tanh>(table, "tanh.approx.f32", Class::Sfu);
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
