// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Integer operations on ranges. A result that could wrap is any value of its type.
#include "BoxEval.h"

#include <algorithm>

namespace attn::core {

BoxValue BoxValue::anyOf(ScalarType type) {
  if (type == ScalarType::F32)
    return {};
  return range(minOf(type), maxOf(type));
}

namespace {

/// A range whose ends may have left int64.
struct Wide {
  int64_t lo = 0, hi = 0;
  bool overflow = false;
};

BoxValue fitted(ScalarType type, const Wide &w) {
  if (w.overflow || w.lo < minOf(type) || w.hi > maxOf(type))
    return BoxValue::anyOf(type);
  return BoxValue::range(w.lo, w.hi);
}

bool addOverflows(int64_t a, int64_t b, int64_t &sum) {
  sum = static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  return (a >= 0) == (b >= 0) && (sum >= 0) != (a >= 0);
}

bool subOverflows(int64_t a, int64_t b, int64_t &difference) {
  difference = static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
  return (a >= 0) != (b >= 0) && (difference >= 0) != (a >= 0);
}

bool mulOverflows(int64_t a, int64_t b, int64_t &product) {
  product = static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  if (a == 0 || b == 0)
    return false;
  if ((a == -1 && b == INT64_MIN) || (b == -1 && a == INT64_MIN))
    return true;
  return product / b != a;
}

BoxValue multiply(ScalarType type, const BoxValue &a, const BoxValue &b) {
  Wide w;
  bool first = true;
  for (int64_t x : {a.lo, a.hi})
    for (int64_t y : {b.lo, b.hi}) {
      int64_t product;
      w.overflow |= mulOverflows(x, y, product);
      w.lo = first ? product : std::min(w.lo, product);
      w.hi = first ? product : std::max(w.hi, product);
      first = false;
    }
  return fitted(type, w);
}

/// Quotients are monotone in either operand as long as the divisor keeps its sign, so the corners
/// bound them.
BoxValue divide(Op op, ScalarType type, const BoxValue &a, const BoxValue &b) {
  bool mayWrap = a.lo == minOf(type) && b.lo <= -1 && b.hi >= -1;
  if ((b.lo <= 0 && b.hi >= 0) || mayWrap)
    return BoxValue::anyOf(type);
  BoxValue result;
  bool first = true;
  for (int64_t x : {a.lo, a.hi})
    for (int64_t y : {b.lo, b.hi}) {
      int64_t quotient = evalIntBinary(op, type, x, y);
      result.lo = first ? quotient : std::min(result.lo, quotient);
      result.hi = first ? quotient : std::max(result.hi, quotient);
      first = false;
    }
  return result;
}

BoxValue remainder(ScalarType type, const BoxValue &a, const BoxValue &b) {
  if (!b.isPoint() || b.lo == 0 || b.lo == minOf(type))
    return BoxValue::anyOf(type);
  int64_t d = std::abs(b.lo);
  // With one quotient for the whole range the remainder grows with the value.
  if (a.lo / d == a.hi / d)
    return BoxValue::range(a.lo % d, a.hi % d);
  return BoxValue::range(a.lo < 0 ? std::max(a.lo, 1 - d) : 0,
                         a.hi > 0 ? std::min(a.hi, d - 1) : 0);
}

/// Smallest 2^n - 1 that is at least `v`; v >= 0.
int64_t bitsAbove(int64_t v) {
  uint64_t m = static_cast<uint64_t>(v);
  for (int shift = 1; shift < 64; shift *= 2)
    m |= m >> shift;
  return static_cast<int64_t>(m);
}

BoxValue bitwiseAnd(ScalarType type, const BoxValue &a, const BoxValue &b) {
  const BoxValue &mask = b.isPoint() ? b : a, &value = b.isPoint() ? a : b;
  if (mask.isPoint() && mask.lo >= 0 && bitsAbove(mask.lo) == mask.lo) {
    // The low bits of a value: within one period they grow with it.
    if ((value.lo & ~mask.lo) == (value.hi & ~mask.lo))
      return BoxValue::range(value.lo & mask.lo, value.hi & mask.lo);
    return BoxValue::range(0, mask.lo);
  }
  if (a.lo >= 0 && b.lo >= 0)
    return BoxValue::range(0, std::min(a.hi, b.hi));
  if (a.lo >= 0 || b.lo >= 0)
    return BoxValue::range(0, a.lo >= 0 ? a.hi : b.hi);
  return BoxValue::anyOf(type);
}

BoxValue shift(Op op, ScalarType type, const BoxValue &a, const BoxValue &b) {
  int64_t width = bitWidth(type);
  if (!b.isPoint() || b.lo < 0 || b.lo >= width || (op == Op::ShrU && a.lo < 0))
    return BoxValue::anyOf(type);
  if (op != Op::Shl)
    return BoxValue::range(a.lo >> b.lo, a.hi >> b.lo);
  if (b.lo >= 63)
    return BoxValue::anyOf(type);
  return multiply(type, a, BoxValue::point(int64_t(1) << b.lo));
}

/// Unsigned order equals signed order among values of one sign.
bool oneSign(const BoxValue &a, const BoxValue &b) {
  return (a.lo >= 0 && b.lo >= 0) || (a.hi < 0 && b.hi < 0);
}

BoxValue binary(Op op, ScalarType type, const BoxValue &a, const BoxValue &b) {
  Wide w;
  switch (op) {
  case Op::Add:
    w.overflow = addOverflows(a.lo, b.lo, w.lo);
    w.overflow |= addOverflows(a.hi, b.hi, w.hi);
    return fitted(type, w);
  case Op::Sub:
    w.overflow = subOverflows(a.lo, b.hi, w.lo);
    w.overflow |= subOverflows(a.hi, b.lo, w.hi);
    return fitted(type, w);
  case Op::Mul:
    return multiply(type, a, b);
  case Op::DivS:
  case Op::FloorDivS:
  case Op::CeilDivS:
    return divide(op, type, a, b);
  case Op::DivU:
    return a.lo >= 0 && b.lo >= 0 ? divide(Op::DivS, type, a, b) : BoxValue::anyOf(type);
  case Op::RemS:
    return remainder(type, a, b);
  case Op::RemU:
    return a.lo >= 0 && b.lo >= 0 ? remainder(type, a, b) : BoxValue::anyOf(type);
  case Op::MinU:
  case Op::MaxU:
    if (!oneSign(a, b))
      return BoxValue::anyOf(type);
    return binary(op == Op::MinU ? Op::MinS : Op::MaxS, type, a, b);
  case Op::MinS:
    return BoxValue::range(std::min(a.lo, b.lo), std::min(a.hi, b.hi));
  case Op::MaxS:
    return BoxValue::range(std::max(a.lo, b.lo), std::max(a.hi, b.hi));
  case Op::And:
    return bitwiseAnd(type, a, b);
  case Op::Or:
  case Op::Xor:
    if (a.lo < 0 || b.lo < 0)
      return BoxValue::anyOf(type);
    return BoxValue::range(op == Op::Or ? std::max(a.lo, b.lo) : 0,
                           bitsAbove(std::max(a.hi, b.hi)));
  default:
    return shift(op, type, a, b);
  }
}

BoxValue binaryBool(Op op, const BoxValue &a, const BoxValue &b) {
  switch (op) {
  case Op::And:
  case Op::MinU:
    return BoxValue::range(a.lo & b.lo, a.hi & b.hi);
  case Op::Or:
  case Op::MaxU:
    return BoxValue::range(a.lo | b.lo, a.hi | b.hi);
  default:
    return BoxValue::range(0, 1);
  }
}

BoxValue lessThan(const BoxValue &a, const BoxValue &b) {
  return BoxValue::truth(a.lo < b.hi, a.hi >= b.lo);
}

BoxValue negated(const BoxValue &a) { return BoxValue::range(1 - a.hi, 1 - a.lo); }

BoxValue compare(Op op, ScalarType type, const BoxValue &a, const BoxValue &b) {
  switch (op) {
  case Op::CmpEq:
    return BoxValue::truth(a.lo <= b.hi && b.lo <= a.hi, !(a.isPoint() && b.isPoint()));
  case Op::CmpNe:
    return negated(compare(Op::CmpEq, type, a, b));
  default:
    break;
  }
  if (type == ScalarType::Bool)
    return BoxValue::range(0, 1);
  switch (op) {
  case Op::CmpSlt:
    return lessThan(a, b);
  case Op::CmpSgt:
    return lessThan(b, a);
  case Op::CmpSle:
    return negated(lessThan(b, a));
  case Op::CmpSge:
    return negated(lessThan(a, b));
  default:
    break;
  }
  if (oneSign(a, b))
    return compare(op == Op::CmpUlt   ? Op::CmpSlt
                   : op == Op::CmpUle ? Op::CmpSle
                   : op == Op::CmpUgt ? Op::CmpSgt
                                      : Op::CmpSge,
                   type, a, b);
  bool wantsLess = op == Op::CmpUlt || op == Op::CmpUle;
  if (a.lo >= 0 && b.hi < 0)
    return BoxValue::point(wantsLess);
  if (a.hi < 0 && b.lo >= 0)
    return BoxValue::point(!wantsLess);
  return BoxValue::range(0, 1);
}

BoxValue cast(Op op, ScalarType type, ScalarType from, const BoxValue &a) {
  if (op == Op::SExt)
    return from == ScalarType::Bool ? BoxValue::range(-a.hi, -a.lo) : a;
  if (op == Op::Trunc)
    return a.lo >= minOf(type) && a.hi <= maxOf(type) ? a : BoxValue::anyOf(type);
  if (a.lo >= 0)
    return a;
  // `from` is narrower than 64 bits: negative values move up by 2^width.
  int64_t span = int64_t(1) << bitWidth(from);
  return a.hi < 0 ? BoxValue::range(a.lo + span, a.hi + span) : BoxValue::range(0, span - 1);
}

} // namespace

BoxValue rangeOf(Op op, ScalarType type, ScalarType argType, const BoxValue &a, const BoxValue &b) {
  switch (familyOf(op)) {
  case OpFamily::IntBinary:
    return type == ScalarType::Bool ? binaryBool(op, a, b) : binary(op, type, a, b);
  case OpFamily::IntUnary:
    return type == ScalarType::Bool ? negated(a) : BoxValue::range(~a.hi, ~a.lo);
  case OpFamily::IntCompare:
    return compare(op, argType, a, b);
  case OpFamily::IntCast:
    return cast(op, type, argType, a);
  default:
    return BoxValue::anyOf(type);
  }
}

} // namespace attn::core
