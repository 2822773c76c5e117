// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// PTX ISA "Comparison and Selection Instructions": setp.
#include "Lanes.h"

#include <cmath>
#include <limits>

using namespace attn::sim;

namespace {

// Of floats: ordered comparisons are false if an operand is a NaN, unordered ones true.
struct Eq {
  template <class T>
  static bool apply(T a, T b) {
    return a == b;
  }
};
struct Ne {
  template <class T>
  static bool apply(T a, T b) {
    return a < b || a > b;
  }
};
struct Lt {
  template <class T>
  static bool apply(T a, T b) {
    return a < b;
  }
};
struct Le {
  template <class T>
  static bool apply(T a, T b) {
    return a <= b;
  }
};
struct Gt {
  template <class T>
  static bool apply(T a, T b) {
    return a > b;
  }
};
struct Ge {
  template <class T>
  static bool apply(T a, T b) {
    return a >= b;
  }
};
struct Num {
  template <class T>
  static bool apply(T a, T b) {
    return a == a && b == b;
  }
};
template <class F>
struct Negated {
  template <class T>
  static bool apply(T a, T b) {
    return !F::apply(a, b);
  }
};

template <class T>
auto comparable(T value) {
  if constexpr (std::is_class_v<T>)
    return toFloat(value);
  else
    return value;
}
template <bool ftz, class T>
T flush(T x) {
  if constexpr (ftz)
    return std::fabs(x) < std::numeric_limits<T>::min() ? T(0) : x;
  return x;
}

/// kind: 0, or the operator that combines with a third predicate: and, or, xor. The second result
/// takes the opposite comparison.
template <class T, class F, bool ftz>
bool compare(Cta &, Warp &warp, const Instr &in, uint32_t mask) {
  const SlotOf<T> *a = slots<T>(warp, in.src[0]), *b = slots<T>(warp, in.src[1]);
  uint32_t holds = 0;
  for (int lane = 0; lane < 32; ++lane)
    holds |= uint32_t(F::apply(flush<ftz>(comparable(fromSlot<T>(a[lane]))),
                               flush<ftz>(comparable(fromSlot<T>(b[lane])))))
             << lane;
  uint32_t opposite = ~holds;
  if (in.kind) {
    const uint32_t with = *warp.words(in.src[2]) ^ (in.negated ? ~0u : 0u);
    auto combine = [&](uint32_t x) {
      return in.kind == 1 ? x & with : in.kind == 2 ? x | with : x ^ with;
    };
    holds = combine(holds), opposite = combine(opposite);
  }
  auto set = [&](int32_t offset, uint32_t value) {
    if (offset == kNoOperand)
      return;
    uint32_t &to = *warp.words(offset);
    to = (to & ~mask) | (value & mask);
  };
  set(in.dst, holds);
  set(in.dst2, opposite);
  return true;
}

template <class T, class F, bool ftz = false>
void add(AluTable &table, const std::string &name, const std::string &type) {
  table["setp." + name + (ftz ? ".ftz." : ".") + type] = {
      compare<T, F, ftz>, Class::Alu, PtxType::Pred, {ptxType<T>(), ptxType<T>()}};
}

template <class T>
void addIntegers(AluTable &table, const std::string &type) {
  add<T, Eq>(table, "eq", type);
  add<T, Ne>(table, "ne", type);
  add<T, Lt>(table, "lt", type);
  add<T, Le>(table, "le", type);
  add<T, Gt>(table, "gt", type);
  add<T, Ge>(table, "ge", type);
  if constexpr (std::is_unsigned_v<T>) {
    add<T, Lt>(table, "lo", type);
    add<T, Le>(table, "ls", type);
    add<T, Gt>(table, "hi", type);
    add<T, Ge>(table, "hs", type);
  }
}
template <class T>
void addBits(AluTable &table, const std::string &type) {
  add<T, Eq>(table, "eq", type);
  add<T, Ne>(table, "ne", type);
}
template <class T, bool ftz>
void addFloats(AluTable &table, const std::string &type) {
  add<T, Eq, ftz>(table, "eq", type);
  add<T, Ne, ftz>(table, "ne", type);
  add<T, Lt, ftz>(table, "lt", type);
  add<T, Le, ftz>(table, "le", type);
  add<T, Gt, ftz>(table, "gt", type);
  add<T, Ge, ftz>(table, "ge", type);
  add<T, Negated<Ne>, ftz>(table, "equ", type);
  add<T, Negated<Eq>, ftz>(table, "neu", type);
  add<T, Negated<Ge>, ftz>(table, "ltu", type);
  add<T, Negated<Gt>, ftz>(table, "leu", type);
  add<T, Negated<Le>, ftz>(table, "gtu", type);
  add<T, Negated<Lt>, ftz>(table, "geu", type);
  add<T, Num, ftz>(table, "num", type);
  add<T, Negated<Num>, ftz>(table, "nan", type);
}

} // namespace

void attn::sim::addCompareInstructions(AluTable &table) {
  addIntegers<uint16_t>(table, "u16");
  addIntegers<int16_t>(table, "s16");
  addIntegers<uint32_t>(table, "u32");
  addIntegers<int32_t>(table, "s32");
  addIntegers<uint64_t>(table, "u64");
  addIntegers<int64_t>(table, "s64");
  addBits<uint16_t>(table, "b16");
  addBits<uint32_t>(table, "b32");
  addBits<uint64_t>(table, "b64");
  addFloats<float, false>(table, "f32");
  addFloats<float, true>(table, "f32");
  addFloats<double, false>(table, "f64");
  addFloats<F16, false>(table, "f16");
  addFloats<BF16, false>(table, "bf16");
}
