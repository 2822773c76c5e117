// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// PTX ISA "Integer Arithmetic Instructions".
#include "Lanes.h"

using namespace attn::sim;

namespace {

template <class T>
using Unsigned = std::make_unsigned_t<T>;

/// Twice as wide; of 64 bits, the compiler's 128-bit integer.
template <class T>
struct Widen;
template <>
struct Widen<uint16_t> {
  using Type = uint32_t;
};
template <>
struct Widen<int16_t> {
  using Type = int32_t;
};
template <>
struct Widen<uint32_t> {
  using Type = uint64_t;
};
template <>
struct Widen<int32_t> {
  using Type = int64_t;
};
template <>
struct Widen<uint64_t> {
  __extension__ using Type = unsigned __int128;
};
template <>
struct Widen<int64_t> {
  __extension__ using Type = __int128;
};
template <class T>
using Wide = typename Widen<T>::Type;

// Arithmetic is modulo 2^n; unsigned types make that defined. 16-bit types must not be promoted to
// int before they are multiplied.
template <class T>
using Modular = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

template <class T>
struct Add {
  static T apply(T a, T b) { return static_cast<T>(Modular<T>(a) + Modular<T>(b)); }
};
template <class T>
struct AddSaturated {
  static T apply(T a, T b) {
    T sum;
    return __builtin_add_overflow(a, b, &sum)
               ? (a < 0 ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max())
               : sum;
  }
};
template <class T>
struct Sub {
  static T apply(T a, T b) { return static_cast<T>(Modular<T>(a) - Modular<T>(b)); }
};
template <class T>
struct SubSaturated {
  static T apply(T a, T b) {
    T difference;
    return __builtin_sub_overflow(a, b, &difference)
               ? (a < 0 ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max())
               : difference;
  }
};
template <class T>
struct MulLow {
  static T apply(T a, T b) { return static_cast<T>(Modular<T>(a) * Modular<T>(b)); }
};
template <class T>
struct MulHigh {
  static T apply(T a, T b) { return static_cast<T>((Wide<T>(a) * Wide<T>(b)) >> (8 * sizeof(T))); }
};
template <class T>
struct MulWide {
  static Wide<T> apply(T a, T b) { return Wide<T>(a) * Wide<T>(b); }
};
template <class T>
struct MadLow {
  static T apply(T a, T b, T c) {
    return static_cast<T>(Modular<T>(a) * Modular<T>(b) + Modular<T>(c));
  }
};
template <class T>
struct MadHigh {
  static T apply(T a, T b, T c) { return Add<T>::apply(MulHigh<T>::apply(a, b), c); }
};
template <class T>
struct MadWide {
  static Wide<T> apply(T a, T b, Wide<T> c) {
    return static_cast<Wide<T>>(Unsigned<Wide<T>>(MulWide<T>::apply(a, b)) + Unsigned<Wide<T>>(c));
  }
};
// The ISA leaves division by zero open; this is what the hardware gives.
template <class T>
struct Div {
  static T apply(T a, T b) {
    if (b == 0)
      return static_cast<T>(-1);
    if (std::is_signed_v<T> && b == static_cast<T>(-1))
      return Sub<T>::apply(0, a);
    return a / b;
  }
};
template <class T>
struct Rem {
  static T apply(T a, T b) {
    if (b == 0)
      return a;
    if (std::is_signed_v<T> && b == static_cast<T>(-1))
      return 0;
    return a % b;
  }
};
template <class T>
struct Min {
  static T apply(T a, T b) { return a < b ? a : b; }
};
template <class T>
struct Max {
  static T apply(T a, T b) { return a < b ? b : a; }
};
template <class T>
struct Abs {
  static T apply(T a) { return a < 0 ? Sub<T>::apply(0, a) : a; }
};
template <class T>
struct Neg {
  static T apply(T a) { return Sub<T>::apply(0, a); }
};
template <class T>
struct Sad {
  static T apply(T a, T b, T c) {
    return Add<T>::apply(c, a < b ? Sub<T>::apply(b, a) : Sub<T>::apply(a, b));
  }
};

template <class T>
void addAll(AluTable &table, const std::string &type) {
  addBinary<T, T, T, Add<T>>(table, "add." + type);
  addBinary<T, T, T, Sub<T>>(table, "sub." + type);
  addBinary<T, T, T, MulLow<T>>(table, "mul.lo." + type);
  addBinary<T, T, T, MulHigh<T>>(table, "mul.hi." + type);
  addTernary<T, T, T, T, MadLow<T>>(table, "mad.lo." + type);
  addTernary<T, T, T, T, MadHigh<T>>(table, "mad.hi." + type);
  if constexpr (sizeof(T) < 8) {
    addBinary<Wide<T>, T, T, MulWide<T>>(table, "mul.wide." + type);
    addTernary<Wide<T>, T, T, Wide<T>, MadWide<T>>(table, "mad.wide." + type);
  }
  addBinary<T, T, T, Div<T>>(table, "div." + type);
  addBinary<T, T, T, Rem<T>>(table, "rem." + type);
  addBinary<T, T, T, Min<T>>(table, "min." + type);
  addBinary<T, T, T, Max<T>>(table, "max." + type);
  addTernary<T, T, T, T, Sad<T>>(table, "sad." + type);
  if constexpr (std::is_signed_v<T>) {
    addUnary<T, T, Abs<T>>(table, "abs." + type);
    addUnary<T, T, Neg<T>>(table, "neg." + type);
  }
}

} // namespace

void attn::sim::addIntegerInstructions(AluTable &table) {
  addAll<uint16_t>(table, "u16");
  addAll<int16_t>(table, "s16");
  addAll<uint32_t>(table, "u32");
  addAll<int32_t>(table, "s32");
  addAll<uint64_t>(table, "u64");
  addAll<int64_t>(table, "s64");
  addBinary<int32_t, int32_t, int32_t, AddSaturated<int32_t>>(table, "add.sat.s32");
  addBinary<int32_t, int32_t, int32_t, SubSaturated<int32_t>>(table, "sub.sat.s32");
}
