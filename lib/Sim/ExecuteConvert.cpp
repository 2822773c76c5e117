// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// PTX ISA "Data Movement and Conversion Instructions": cvt.
#include "Lanes.h"

#include <cmath>
#include <limits>

using namespace attn::sim;

namespace {

template <class T>
const char *name() {
  constexpr PtxType type = ptxType<T>();
  switch (type) {
  case PtxType::U8:
    return "u8";
  case PtxType::S8:
    return "s8";
  case PtxType::U16:
    return "u16";
  case PtxType::S16:
    return "s16";
  case PtxType::U32:
    return "u32";
  case PtxType::S32:
    return "s32";
  case PtxType::U64:
    return "u64";
  case PtxType::S64:
    return "s64";
  case PtxType::F16:
    return "f16";
  case PtxType::BF16:
    return "bf16";
  case PtxType::F32:
    return "f32";
  default:
    return "f64";
  }
}

/// Narrow integers fill a 32-bit register with copies of the sign, or zeros.
template <class T>
using Filled = std::conditional_t<(std::is_integral_v<T> && sizeof(T) < 4),
                                  std::conditional_t<std::is_signed_v<T>, int32_t, uint32_t>, T>;

template <class D, class S, bool saturate>
struct IntToInt {
  static Filled<D> apply(S s) {
    if constexpr (saturate) {
      __extension__ using Wide = __int128;
      const Wide low = std::numeric_limits<D>::min(), high = std::numeric_limits<D>::max();
      return static_cast<D>(Wide(s) < low ? low : Wide(s) > high ? high : Wide(s));
    }
    return static_cast<D>(s);
  }
};

/// Of a wider register the low bits.
template <class D, class S>
struct LowToInt {
  static Filled<D> apply(uint64_t s) { return static_cast<D>(static_cast<S>(s)); }
};

template <class T>
struct To;
template <>
struct To<float> {
  template <class S>
  static float from(S s) {
    return static_cast<float>(s);
  }
};
template <>
struct To<double> {
  template <class S>
  static double from(S s) {
    return static_cast<double>(s);
  }
};
// A float that keeps whether anything was cut off, so that rounding it again is right.
template <class S>
static float sticky(S s) {
  const float near = static_cast<float>(s);
  __extension__ using Wide = __int128;
  const Wide there = static_cast<Wide>(near);
  if (there == Wide(s))
    return near;
  uint32_t bits;
  std::memcpy(&bits, &near, 4);
  if ((there > Wide(s)) == (Wide(s) > 0))
    --bits;
  bits |= 1;
  float result;
  std::memcpy(&result, &bits, 4);
  return result;
}
template <>
struct To<F16> {
  template <class S>
  static F16 from(S s) {
    return toF16(sticky(s));
  }
};
template <>
struct To<BF16> {
  template <class S>
  static BF16 from(S s) {
    return toBF16(sticky(s));
  }
};
template <class D, class S>
struct IntToFloat {
  static D apply(S s) { return To<D>::from(s); }
};

enum Rounding { Nearest, Zero, Down, Up };

template <class S>
double widen(S s) {
  if constexpr (std::is_class_v<S>)
    return toFloat(s);
  else
    return s;
}
inline double toIntegral(double x, Rounding rounding) {
  switch (rounding) {
  case Nearest:
    return std::nearbyint(x);
  case Zero:
    return std::trunc(x);
  case Down:
    return std::floor(x);
  case Up:
    return std::ceil(x);
  }
  return x;
}
/// Out of range: the nearest there is. NaN: 0, or the sign bit alone if 64 bits are involved.
template <class D, class S, Rounding rounding>
struct FloatToInt {
  static Filled<D> apply(S s) {
    const double x = toIntegral(widen(s), rounding);
    if (x != x)
      return sizeof(D) == 8 || sizeof(S) == 8 ? static_cast<D>(uint64_t(1) << (8 * sizeof(D) - 1))
                                              : D(0);
    const double high = std::ldexp(1.0, 8 * sizeof(D) - std::is_signed_v<D>);
    if (x >= high)
      return std::numeric_limits<D>::max();
    if (x < (std::is_signed_v<D> ? -high : 0))
      return std::numeric_limits<D>::min();
    return static_cast<D>(x);
  }
};

struct Widened {
  template <class S>
  static double apply(S s) {
    return widen(s);
  }
};

/// Cuts off instead of rounding.
inline BF16 truncated(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  return x != x ? BF16{0x7FFF} : BF16{static_cast<uint16_t>(bits >> 16)};
}
inline F16 truncatedF16(float x) {
  F16 near = toF16(x);
  if (x == x && std::fabs(toFloat(near)) > std::fabs(x))
    --near.bits;
  return near;
}
template <class T>
inline T relu(T x, float from) {
  return from < 0 ? T{0} : x;
}

template <class D, bool zero, bool clampLow>
struct FloatToHalf {
  static D apply(float x) {
    D result;
    if constexpr (std::is_same_v<D, BF16>)
      result = zero ? truncated(x) : toBF16(x);
    else
      result = zero ? truncatedF16(x) : toF16(x);
    return clampLow ? relu(result, x) : result;
  }
};
/// The first operand goes to the high half.
template <class D, bool zero, bool clampLow>
struct FloatsToHalves {
  static Two<D> apply(float high, float low) {
    using One = FloatToHalf<D, zero, clampLow>;
    return {One::apply(low), One::apply(high)};
  }
};
template <class D, class S>
struct FloatToFloat {
  static D apply(S s) { return static_cast<D>(widen(s)); }
};
template <bool saturate, bool ftz>
struct F32ToF32 {
  static float apply(float x) {
    if (ftz && std::fabs(x) < std::numeric_limits<float>::min())
      x = std::copysign(0.0f, x);
    return saturate ? (x > 0 ? std::min(x, 1.0f) : 0.0f) : x;
  }
};
template <class T, Rounding rounding>
struct Integral {
  static T apply(T x) { return static_cast<T>(toIntegral(x, rounding)); }
};

template <class D, class S>
void addInts(AluTable &table) {
  const std::string tail = std::string(".") + name<D>() + "." + name<S>();
  addUnary<Filled<D>, S, IntToInt<D, S, false>>(table, "cvt" + tail);
  addUnary<Filled<D>, S, IntToInt<D, S, true>>(table, "cvt.sat" + tail);
  if constexpr (sizeof(S) < 8)
    addUnary<Filled<D>, uint64_t, LowToInt<D, S>>(table, "cvt" + tail + kFromWide);
}
template <class D, class S>
void addFromInt(AluTable &table) {
  addUnary<D, S, IntToFloat<D, S>>(table, std::string("cvt.rn.") + name<D>() + "." + name<S>());
}
template <class D, class S>
void addToInt(AluTable &table) {
  const std::string tail = std::string(".") + name<D>() + "." + name<S>();
  // Subnormal numbers give 0 whether they are flushed first or not, but for floor and ceiling.
  for (const char *ftz : {"", ".ftz"}) {
    addUnary<Filled<D>, S, FloatToInt<D, S, Nearest>>(table, "cvt.rni" + (ftz + tail));
    addUnary<Filled<D>, S, FloatToInt<D, S, Zero>>(table, "cvt.rzi" + (ftz + tail));
  }
  addUnary<Filled<D>, S, FloatToInt<D, S, Down>>(table, "cvt.rmi" + tail);
  addUnary<Filled<D>, S, FloatToInt<D, S, Up>>(table, "cvt.rpi" + tail);
}
template <class S>
void addIntSource(AluTable &table) {
  addInts<uint8_t, S>(table);
  addInts<int8_t, S>(table);
  addInts<uint16_t, S>(table);
  addInts<int16_t, S>(table);
  addInts<uint32_t, S>(table);
  addInts<int32_t, S>(table);
  addInts<uint64_t, S>(table);
  addInts<int64_t, S>(table);
  addFromInt<float, S>(table);
  addFromInt<double, S>(table);
  addFromInt<F16, S>(table);
  addFromInt<BF16, S>(table);
}
template <class S>
void addFloatSource(AluTable &table) {
  addToInt<uint16_t, S>(table);
  addToInt<int16_t, S>(table);
  addToInt<uint32_t, S>(table);
  addToInt<int32_t, S>(table);
  addToInt<uint64_t, S>(table);
  addToInt<int64_t, S>(table);
}
template <class D, bool zero, bool clampLow>
void addHalves(AluTable &table, const std::string &modifiers) {
  addUnary<D, float, FloatToHalf<D, zero, clampLow>>(table,
                                                     "cvt." + modifiers + name<D>() + ".f32");
  addBinary<Two<D>, float, float, FloatsToHalves<D, zero, clampLow>>(
      table, "cvt." + modifiers + name<D>() + "x2.f32");
}
template <class D>
void addHalf(AluTable &table) {
  addHalves<D, false, false>(table, "rn.");
  addHalves<D, true, false>(table, "rz.");
  addHalves<D, false, true>(table, "rn.relu.");
  addHalves<D, true, true>(table, "rz.relu.");
  addUnary<float, D, FloatToFloat<float, D>>(table, std::string("cvt.f32.") + name<D>());
  addUnary<float, D, FloatToFloat<float, D>>(table, std::string("cvt.ftz.f32.") + name<D>());
  addUnary<double, D, FloatToFloat<double, D>>(table, std::string("cvt.f64.") + name<D>());
}

} // namespace

void attn::sim::addConversions(AluTable &table) {
  addIntSource<uint8_t>(table);
  addIntSource<int8_t>(table);
  addIntSource<uint16_t>(table);
  addIntSource<int16_t>(table);
  addIntSource<uint32_t>(table);
  addIntSource<int32_t>(table);
  addIntSource<uint64_t>(table);
  addIntSource<int64_t>(table);
  addFloatSource<float>(table);
  addFloatSource<double>(table);
  addFloatSource<F16>(table);
  addFloatSource<BF16>(table);
  addHalf<F16>(table);
  addHalf<BF16>(table);
  addUnary<double, float, FloatToFloat<double, float>>(table, "cvt.f64.f32");
  addUnary<float, double, FloatToFloat<float, double>>(table, "cvt.rn.f32.f64");
  addUnary<float, float, F32ToF32<false, true>>(table, "cvt.ftz.f32.f32");
  addUnary<float, float, F32ToF32<true, false>>(table, "cvt.sat.f32.f32");
  addUnary<float, float, F32ToF32<true, true>>(table, "cvt.ftz.sat.f32.f32");
  for (const char *ftz : {"", ".ftz"}) {
    const std::string tail = std::string(ftz) + ".f32.f32";
    addUnary<float, float, Integral<float, Nearest>>(table, "cvt.rni" + tail);
    addUnary<float, float, Integral<float, Zero>>(table, "cvt.rzi" + tail);
  }
  addUnary<float, float, Integral<float, Down>>(table, "cvt.rmi.f32.f32");
  addUnary<float, float, Integral<float, Up>>(table, "cvt.rpi.f32.f32");
  addUnary<double, double, Integral<double, Nearest>>(table, "cvt.rni.f64.f64");
  addUnary<double, double, Integral<double, Zero>>(table, "cvt.rzi.f64.f64");
  addUnary<double, double, Integral<double, Down>>(table, "cvt.rmi.f64.f64");
  addUnary<double, double, Integral<double, Up>>(table, "cvt.rpi.f64.f64");
}
