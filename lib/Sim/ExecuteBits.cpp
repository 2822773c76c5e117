// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// PTX ISA "Logic and Shift Instructions" and the bit instructions of "Integer Arithmetic".
#include "Lanes.h"

using namespace attn::sim;

namespace {

template <class T>
constexpr int bits() {
  return 8 * sizeof(T);
}

template <class T>
struct And {
  static T apply(T a, T b) { return a & b; }
};
template <class T>
struct Or {
  static T apply(T a, T b) { return a | b; }
};
template <class T>
struct Xor {
  static T apply(T a, T b) { return a ^ b; }
};
template <class T>
struct Not {
  static T apply(T a) { return static_cast<T>(~a); }
};
template <class T>
struct CNot {
  static T apply(T a) { return a == 0; }
};
// Amounts past the width are the width.
template <class T>
struct ShiftLeft {
  static T apply(T a, uint32_t n) {
    return n >= unsigned(bits<T>()) ? T(0) : static_cast<T>(a << n);
  }
};
template <class T>
struct ShiftRight {
  static T apply(T a, uint32_t n) {
    const unsigned most = bits<T>() - 1;
    if (n > most)
      return std::is_signed_v<T> ? static_cast<T>(a >> most) : T(0);
    return static_cast<T>(a >> n);
  }
};
template <class T>
struct Popc {
  static uint32_t apply(T a) { return __builtin_popcountll(a); }
};
template <class T>
struct Clz {
  static uint32_t apply(T a) { return a == 0 ? bits<T>() : __builtin_clzll(a) - (64 - bits<T>()); }
};
template <class T>
struct Brev {
  static T apply(T a) {
    T result = 0;
    for (int i = 0; i < bits<T>(); ++i)
      result |= static_cast<T>((a >> i) & 1) << (bits<T>() - 1 - i);
    return result;
  }
};
template <class T>
struct Bfind {
  static uint32_t apply(T a) {
    using U = std::make_unsigned_t<T>;
    const U value = static_cast<U>(a < 0 ? ~a : a);
    return value == 0 ? ~0u : 63 - __builtin_clzll(value);
  }
};
template <class T>
struct BfindShift {
  static uint32_t apply(T a) {
    const uint32_t at = Bfind<T>::apply(a);
    return at == ~0u ? at : bits<T>() - 1 - at;
  }
};
template <class T>
struct Bfe {
  static T apply(T a, uint32_t position, uint32_t length) {
    using U = std::make_unsigned_t<T>;
    const uint32_t pos = position & 255, len = length & 255, most = bits<T>() - 1;
    if (len == 0)
      return 0;
    const bool fill =
        std::is_signed_v<T> && (static_cast<U>(a) >> std::min(pos + len - 1, most) & 1);
    const uint32_t there = pos > most ? 0 : std::min(len, most - pos + 1);
    const U keep = there > most ? ~U(0) : (U(1) << there) - 1;
    const U field = there == 0 ? U(0) : (static_cast<U>(a) >> pos) & keep;
    return static_cast<T>(fill ? field | ~keep : field);
  }
};
template <class T>
struct Bfi {
  static T apply(T a, T b, uint32_t position, uint32_t length) {
    const uint32_t pos = position & 255, len = length & 255;
    T result = b;
    for (uint32_t i = 0; i < len && pos + i < uint32_t(bits<T>()); ++i) {
      const T bit = T(1) << (pos + i);
      result = (a >> i & 1) ? (result | bit) : (result & ~bit);
    }
    return result;
  }
};
struct Prmt {
  static uint32_t apply(uint32_t a, uint32_t b, uint32_t selector) {
    const uint64_t bytes = uint64_t(b) << 32 | a;
    uint32_t result = 0;
    for (int i = 0; i < 4; ++i) {
      const uint32_t s = selector >> (4 * i) & 15;
      uint32_t byte = bytes >> (8 * (s & 7)) & 255;
      if (s & 8)
        byte = byte & 128 ? 255 : 0;
      result |= byte << (8 * i);
    }
    return result;
  }
};
template <bool left, bool clamp>
struct Funnel {
  static uint32_t apply(uint32_t a, uint32_t b, uint32_t c) {
    const uint32_t n = clamp ? std::min(c, 32u) : c & 31;
    const uint64_t both = uint64_t(b) << 32 | a;
    return static_cast<uint32_t>(left ? (both << n) >> 32 : both >> n);
  }
};

template <class T>
bool bfi(Cta &, Warp &warp, const Instr &in, uint32_t mask) {
  const SlotOf<T> *a = slots<T>(warp, in.src[0]), *b = slots<T>(warp, in.src[1]);
  const uint32_t *position = warp.words(in.src[2]), *length = warp.words(in.src[3]);
  setLanes<T>(warp, in.dst, mask,
              [&](int i) { return Bfi<T>::apply(a[i], b[i], position[i], length[i]); });
  return true;
}
bool lop3(Cta &, Warp &warp, const Instr &in, uint32_t mask) {
  const uint32_t *a = warp.words(in.src[0]), *b = warp.words(in.src[1]), *c = warp.words(in.src[2]),
                 *table = warp.words(in.src[3]);
  setLanes<uint32_t>(warp, in.dst, mask, [&](int lane) {
    uint32_t result = 0;
    for (uint32_t term = 0; term < 8; ++term)
      if (table[lane] >> term & 1)
        result |= (term & 4 ? a[lane] : ~a[lane]) & (term & 2 ? b[lane] : ~b[lane]) &
                  (term & 1 ? c[lane] : ~c[lane]);
    return result;
  });
  return true;
}

// A predicate is one mask, not a slot a lane.
template <class F>
bool predicate2(Cta &, Warp &warp, const Instr &in, uint32_t mask) {
  uint32_t &to = *warp.words(in.dst);
  to = (to & ~mask) | (F::apply(*warp.words(in.src[0]), *warp.words(in.src[1])) & mask);
  return true;
}
template <class F>
bool predicate1(Cta &, Warp &warp, const Instr &in, uint32_t mask) {
  uint32_t &to = *warp.words(in.dst);
  to = (to & ~mask) | (F::apply(*warp.words(in.src[0])) & mask);
  return true;
}
struct Same {
  static uint32_t apply(uint32_t a) { return a; }
};

template <class T>
void addLogic(AluTable &table, const std::string &type) {
  addBinary<T, T, T, And<T>>(table, "and." + type);
  addBinary<T, T, T, Or<T>>(table, "or." + type);
  addBinary<T, T, T, Xor<T>>(table, "xor." + type);
  addUnary<T, T, Not<T>>(table, "not." + type);
  addUnary<T, T, CNot<T>>(table, "cnot." + type);
  addBinary<T, T, uint32_t, ShiftLeft<T>>(table, "shl." + type);
  addBinary<T, T, uint32_t, ShiftRight<T>>(table, "shr." + type);
}
template <class T>
void addCounts(AluTable &table, const std::string &type) {
  addUnary<uint32_t, T, Popc<T>>(table, "popc." + type);
  addUnary<uint32_t, T, Clz<T>>(table, "clz." + type);
  addUnary<T, T, Brev<T>>(table, "brev." + type);
  const PtxType t = ptxType<T>();
  table["bfi." + type] = {bfi<T>, Class::Alu, t, {t, t, PtxType::U32, PtxType::U32}};
}
template <class T>
void addFields(AluTable &table, const std::string &type) {
  addTernary<T, T, uint32_t, uint32_t, Bfe<T>>(table, "bfe." + type);
  addUnary<uint32_t, T, Bfind<T>>(table, "bfind." + type);
  addUnary<uint32_t, T, BfindShift<T>>(table, "bfind.shiftamt." + type);
}
template <class T>
void addShiftRight(AluTable &table, const std::string &type) {
  addBinary<T, T, uint32_t, ShiftRight<T>>(table, "shr." + type);
}

} // namespace

void attn::sim::addBitInstructions(AluTable &table) {
  addLogic<uint16_t>(table, "b16");
  addLogic<uint32_t>(table, "b32");
  addLogic<uint64_t>(table, "b64");
  addShiftRight<uint16_t>(table, "u16");
  addShiftRight<int16_t>(table, "s16");
  addShiftRight<uint32_t>(table, "u32");
  addShiftRight<int32_t>(table, "s32");
  addShiftRight<uint64_t>(table, "u64");
  addShiftRight<int64_t>(table, "s64");
  addCounts<uint32_t>(table, "b32");
  addCounts<uint64_t>(table, "b64");
  addFields<uint32_t>(table, "u32");
  addFields<int32_t>(table, "s32");
  addFields<uint64_t>(table, "u64");
  addFields<int64_t>(table, "s64");
  addTernary<uint32_t, uint32_t, uint32_t, uint32_t, Prmt>(table, "prmt.b32");
  addTernary<uint32_t, uint32_t, uint32_t, uint32_t, Funnel<true, false>>(table, "shf.l.wrap.b32");
  addTernary<uint32_t, uint32_t, uint32_t, uint32_t, Funnel<true, true>>(table, "shf.l.clamp.b32");
  addTernary<uint32_t, uint32_t, uint32_t, uint32_t, Funnel<false, false>>(table, "shf.r.wrap.b32");
  addTernary<uint32_t, uint32_t, uint32_t, uint32_t, Funnel<false, true>>(table, "shf.r.clamp.b32");
  table["lop3.b32"] = {
      lop3, Class::Alu, PtxType::B32, {PtxType::B32, PtxType::B32, PtxType::B32, PtxType::B32}};
  const PtxType p = PtxType::Pred;
  table["and.pred"] = {predicate2<And<uint32_t>>, Class::Alu, p, {p, p}};
  table["or.pred"] = {predicate2<Or<uint32_t>>, Class::Alu, p, {p, p}};
  table["xor.pred"] = {predicate2<Xor<uint32_t>>, Class::Alu, p, {p, p}};
  table["not.pred"] = {predicate1<Not<uint32_t>>, Class::Alu, p, {p}};
  table["mov.pred"] = {predicate1<Same>, Class::Alu, p, {p}};
}
