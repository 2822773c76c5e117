// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lane-wise functions over the register file, in loops that the compiler vectorises.
#ifndef ATTN_SIM_LANES_H
#define ATTN_SIM_LANES_H

#include "Machine.h"

#include <cstring>
#include <type_traits>

namespace attn::sim {

/// 16-bit floats as types of their own.
struct F16 {
  uint16_t bits;
};
struct BF16 {
  uint16_t bits;
};
/// Two 16-bit floats in a 32-bit register, the low half first.
template <class T>
struct Two {
  T low, high;
};

inline float toFloat(F16 value) {
  // The fraction of a subnormal number counts 2^-24, which the float product makes of it.
  const uint32_t magnitude = value.bits & 0x7FFF;
  const uint32_t normal = (magnitude << 13) + (magnitude < 0x7C00 ? 112u << 23 : 224u << 23);
  float small = static_cast<float>(static_cast<int>(magnitude)) * 0x1p-24f;
  uint32_t bits;
  std::memcpy(&bits, &small, 4);
  bits = (magnitude < 0x400 ? bits : normal) | uint32_t(value.bits & 0x8000) << 16;
  float result;
  std::memcpy(&result, &bits, 4);
  return result;
}
inline float toFloat(BF16 value) {
  uint32_t bits = uint32_t(value.bits) << 16;
  float result;
  std::memcpy(&result, &bits, 4);
  return result;
}
F16 toF16(float value); ///< to nearest, ties to even
inline BF16 toBF16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  if ((bits & 0x7FFFFFFF) > 0x7F800000)
    return {0x7FFF};
  return {static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16)};
}

template <class T>
using SlotOf = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

template <class T>
inline T fromSlot(SlotOf<T> slot) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(slot);
  } else {
    T value;
    std::memcpy(&value, &slot, sizeof(T));
    return value;
  }
}
template <class T>
inline SlotOf<T> toSlot(T value) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<std::make_unsigned_t<T>>(value);
  } else {
    SlotOf<T> slot = 0;
    std::memcpy(&slot, &value, sizeof(T));
    return slot;
  }
}

template <class T>
inline SlotOf<T> *slots(Warp &warp, int32_t offset) {
  return reinterpret_cast<SlotOf<T> *>(warp.operand(offset));
}

/// dst[lane] = f(lane) for the lanes of `mask`.
template <class T, class F>
inline void setLanes(Warp &warp, int32_t dst, uint32_t mask, F f) {
  SlotOf<T> *to = slots<T>(warp, dst);
  if (mask == ~0u) {
// No lane's operands are another lane's result.
#if defined(__clang__)
#pragma clang loop vectorize(assume_safety)
#else
#pragma GCC ivdep
#endif
    for (int lane = 0; lane < 32; ++lane)
      to[lane] = toSlot<T>(f(lane));
    return;
  }
  for (int lane = 0; lane < 32; ++lane)
    if (mask >> lane & 1)
      to[lane] = toSlot<T>(f(lane));
}

template <class D, class A, class F>
bool unary(Cta &, Warp &warp, const Instr &in, uint32_t mask) {
  const SlotOf<A> *a = slots<A>(warp, in.src[0]);
  setLanes<D>(warp, in.dst, mask, [&](int lane) { return F::apply(fromSlot<A>(a[lane])); });
  return true;
}
template <class D, class A, class B, class F>
bool binary(Cta &, Warp &warp, const Instr &in, uint32_t mask) {
  const SlotOf<A> *a = slots<A>(warp, in.src[0]);
  const SlotOf<B> *b = slots<B>(warp, in.src[1]);
  setLanes<D>(warp, in.dst, mask,
              [&](int lane) { return F::apply(fromSlot<A>(a[lane]), fromSlot<B>(b[lane])); });
  return true;
}
template <class D, class A, class B, class C, class F>
bool ternary(Cta &, Warp &warp, const Instr &in, uint32_t mask) {
  const SlotOf<A> *a = slots<A>(warp, in.src[0]);
  const SlotOf<B> *b = slots<B>(warp, in.src[1]);
  const SlotOf<C> *c = slots<C>(warp, in.src[2]);
  setLanes<D>(warp, in.dst, mask, [&](int lane) {
    return F::apply(fromSlot<A>(a[lane]), fromSlot<B>(b[lane]), fromSlot<C>(c[lane]));
  });
  return true;
}

template <class T>
constexpr PtxType ptxType() {
  if constexpr (std::is_same_v<T, uint8_t>)
    return PtxType::U8;
  else if constexpr (std::is_same_v<T, int8_t>)
    return PtxType::S8;
  else if constexpr (std::is_same_v<T, uint16_t>)
    return PtxType::U16;
  else if constexpr (std::is_same_v<T, int16_t>)
    return PtxType::S16;
  else if constexpr (std::is_same_v<T, uint32_t>)
    return PtxType::U32;
  else if constexpr (std::is_same_v<T, int32_t>)
    return PtxType::S32;
  else if constexpr (std::is_same_v<T, uint64_t>)
    return PtxType::U64;
  else if constexpr (std::is_same_v<T, int64_t>)
    return PtxType::S64;
  else if constexpr (std::is_same_v<T, F16>)
    return PtxType::F16;
  else if constexpr (std::is_same_v<T, BF16>)
    return PtxType::BF16;
  else if constexpr (std::is_same_v<T, float>)
    return PtxType::F32;
  else if constexpr (std::is_same_v<T, double>)
    return PtxType::F64;
  else
    return PtxType::B32;
}

template <class D, class A, class F>
void addUnary(AluTable &table, const std::string &name, Class cls = Class::Alu) {
  table[name] = {unary<D, A, F>, cls, ptxType<D>(), {ptxType<A>()}};
}
template <class D, class A, class B, class F>
void addBinary(AluTable &table, const std::string &name, Class cls = Class::Alu) {
  table[name] = {binary<D, A, B, F>, cls, ptxType<D>(), {ptxType<A>(), ptxType<B>()}};
}
template <class D, class A, class B, class C, class F>
void addTernary(AluTable &table, const std::string &name, Class cls = Class::Alu) {
  table[name] = {
      ternary<D, A, B, C, F>, cls, ptxType<D>(), {ptxType<A>(), ptxType<B>(), ptxType<C>()}};
}

} // namespace attn::sim

#endif // ATTN_SIM_LANES_H
