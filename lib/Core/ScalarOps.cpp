// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ScalarOps.h"

#include <cfloat>
#include <cmath>
#include <limits>

namespace attn::core {

// Each operation on floats is rounded by itself: no wider registers here, and the build keeps the
// compiler from contracting two of them into one.
static_assert(FLT_EVAL_METHOD == 0, "operations on float are expected to be rounded to float");

/// The value as an unsigned number of the type's width.
static uint64_t unsignedOf(ScalarType type, int64_t v) {
  uint64_t mask = type == ScalarType::I64 ? ~uint64_t(0) : (uint64_t(1) << bitWidth(type)) - 1;
  return static_cast<uint64_t>(v) & mask;
}

/// The value as a signed number: a set Bool is -1.
static int64_t signedOf(ScalarType type, int64_t v) { return type == ScalarType::Bool ? -v : v; }

static int64_t evalDivide(Op op, int64_t a, int64_t b) {
  if (b == 0)
    return 0;
  if (b == -1) // Also keeps the smallest value over -1 defined: it wraps.
    return op == Op::RemS ? 0 : static_cast<int64_t>(0 - static_cast<uint64_t>(a));
  int64_t quotient = a / b, rest = a % b;
  switch (op) {
  case Op::RemS:
    return rest;
  case Op::FloorDivS:
    return quotient - (rest != 0 && (rest < 0) != (b < 0));
  case Op::CeilDivS:
    return quotient + (rest != 0 && (rest < 0) == (b < 0));
  default:
    return quotient;
  }
}

static int64_t evalShift(Op op, ScalarType type, int64_t a, int64_t b) {
  unsigned width = bitWidth(type);
  uint64_t amount = unsignedOf(type, b);
  if (op == Op::ShrS) {
    int64_t v = signedOf(type, a);
    return amount >= width ? (v < 0 ? -1 : 0) : v >> amount;
  }
  if (amount >= width)
    return 0;
  uint64_t v = unsignedOf(type, a);
  return static_cast<int64_t>(op == Op::Shl ? v << amount : v >> amount);
}

int64_t evalIntBinary(Op op, ScalarType type, int64_t a, int64_t b) {
  uint64_t x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
  int64_t result = 0;
  switch (op) {
  case Op::Add:
    result = static_cast<int64_t>(x + y);
    break;
  case Op::Sub:
    result = static_cast<int64_t>(x - y);
    break;
  case Op::Mul:
    result = static_cast<int64_t>(x * y);
    break;
  case Op::And:
    return a & b;
  case Op::Or:
    return a | b;
  case Op::Xor:
    return a ^ b;
  case Op::DivU:
  case Op::RemU: {
    uint64_t n = unsignedOf(type, a), d = unsignedOf(type, b);
    result = d == 0 ? 0 : static_cast<int64_t>(op == Op::DivU ? n / d : n % d);
    break;
  }
  case Op::MinS:
    return signedOf(type, a) < signedOf(type, b) ? a : b;
  case Op::MaxS:
    return signedOf(type, a) < signedOf(type, b) ? b : a;
  case Op::MinU:
    return unsignedOf(type, a) < unsignedOf(type, b) ? a : b;
  case Op::MaxU:
    return unsignedOf(type, a) < unsignedOf(type, b) ? b : a;
  case Op::Shl:
  case Op::ShrS:
  case Op::ShrU:
    result = evalShift(op, type, a, b);
    break;
  default: // DivS, RemS, FloorDivS, CeilDivS
    result = evalDivide(op, signedOf(type, a), signedOf(type, b));
    break;
  }
  return wrapTo(type, result);
}

bool evalCompare(Op op, ScalarType type, int64_t a, int64_t b) {
  switch (op) {
  case Op::CmpEq:
    return a == b;
  case Op::CmpNe:
    return a != b;
  case Op::CmpSlt:
    return signedOf(type, a) < signedOf(type, b);
  case Op::CmpSle:
    return signedOf(type, a) <= signedOf(type, b);
  case Op::CmpSgt:
    return signedOf(type, a) > signedOf(type, b);
  case Op::CmpSge:
    return signedOf(type, a) >= signedOf(type, b);
  case Op::CmpUlt:
    return unsignedOf(type, a) < unsignedOf(type, b);
  case Op::CmpUle:
    return unsignedOf(type, a) <= unsignedOf(type, b);
  case Op::CmpUgt:
    return unsignedOf(type, a) > unsignedOf(type, b);
  default: // CmpUge
    return unsignedOf(type, a) >= unsignedOf(type, b);
  }
}

int64_t evalCast(Op op, ScalarType from, ScalarType to, int64_t a) {
  if (op == Op::SExt)
    return signedOf(from, a);
  return wrapTo(to, op == Op::ZExt ? static_cast<int64_t>(unsignedOf(from, a)) : a);
}

/// The smaller (or larger) of two numbers where -0 < +0 and a NaN wins.
template <class F>
static F pickOrNaN(F a, F b, bool smaller) {
  if (std::isnan(a) || std::isnan(b))
    return std::numeric_limits<F>::quiet_NaN();
  if (a == b)
    return std::signbit(a) == smaller ? a : b;
  return (a < b) == smaller ? a : b;
}

/// `F` picks the library's functions: those of float for masks, which native code calls too.
template <class F>
static F evalMath(Op op, F a, F b) {
  switch (op) {
  case Op::Exp:
    return std::exp(a);
  case Op::Exp2:
    return std::exp2(a);
  case Op::ExpM1:
    return std::expm1(a);
  case Op::Log:
    return std::log(a);
  case Op::Log2:
    return std::log2(a);
  case Op::Log1p:
    return std::log1p(a);
  case Op::Tanh:
    return std::tanh(a);
  case Op::Sqrt:
    return std::sqrt(a);
  case Op::Rsqrt:
    return 1 / std::sqrt(a);
  case Op::Pow:
    return std::pow(a, b);
  case Op::Sin:
    return std::sin(a);
  case Op::Cos:
    return std::cos(a);
  case Op::Erf:
    return std::erf(a);
  case Op::Floor:
    return std::floor(a);
  default: // Ceil
    return std::ceil(a);
  }
}

template <class F>
static F evalFloat(Op op, F a, F b, F c) {
  switch (op) {
  case Op::FAdd:
    return a + b;
  case Op::FSub:
    return a - b;
  case Op::FMul:
    return a * b;
  case Op::FDiv:
    return a / b;
  case Op::FNeg:
    return -a;
  case Op::FAbs:
    return std::fabs(a);
  case Op::FMin:
    return pickOrNaN(a, b, true);
  case Op::FMax:
    return pickOrNaN(a, b, false);
  case Op::FMinNum:
    return std::isnan(a) ? b : std::isnan(b) ? a : pickOrNaN(a, b, true);
  case Op::FMaxNum:
    return std::isnan(a) ? b : std::isnan(b) ? a : pickOrNaN(a, b, false);
  case Op::Fma:
    return std::fma(a, b, c);
  default:
    return evalMath(op, a, b);
  }
}

bool evalFloatCompare(Op op, double a, double b) {
  bool unordered = std::isnan(a) || std::isnan(b);
  switch (op) {
  case Op::FCmpOeq:
    return a == b;
  case Op::FCmpOne:
    return !unordered && a != b;
  case Op::FCmpOlt:
    return a < b;
  case Op::FCmpOle:
    return a <= b;
  case Op::FCmpOgt:
    return a > b;
  case Op::FCmpOge:
    return a >= b;
  case Op::FCmpOrd:
    return !unordered;
  case Op::FCmpUeq:
    return unordered || a == b;
  case Op::FCmpUne:
    return a != b;
  case Op::FCmpUlt:
    return unordered || a < b;
  case Op::FCmpUle:
    return unordered || a <= b;
  case Op::FCmpUgt:
    return unordered || a > b;
  case Op::FCmpUge:
    return unordered || a >= b;
  default: // FCmpUno
    return unordered;
  }
}

int64_t evalToInt(ScalarType type, double a) {
  if (std::isnan(a))
    return 0;
  // 2^(width - 1) is exact in a double; the largest I64 is not.
  double limit = std::ldexp(1.0, static_cast<int>(bitWidth(type)) - 1);
  if (a >= limit)
    return maxOf(type);
  if (a < -limit)
    return minOf(type);
  return static_cast<int64_t>(a);
}

template <class F>
static F evalSoftCap(F s, F cap) {
  return cap * std::tanh(s / cap);
}

template <class F>
static F evalIntToFloat(Op op, ScalarType from, int64_t a) {
  return op == Op::SIToFP ? static_cast<F>(signedOf(from, a)) : static_cast<F>(unsignedOf(from, a));
}

double evalAlibi(FloatMode mode, double s, double slope, int64_t distance) {
  if (mode == FloatMode::Double)
    return s - slope * static_cast<double>(distance);
  float bias = static_cast<float>(slope) * static_cast<float>(distance);
  return static_cast<float>(s) - bias;
}

bool isPure(Op op) {
  switch (familyOf(op)) {
  case OpFamily::Leaf:
  case OpFamily::Table:
  case OpFamily::Mask:
  case OpFamily::Loop:
    return false;
  case OpFamily::Score:
    return op == Op::SoftCap;
  default:
    return true;
  }
}

/// The families whose result is a float, in `F`. Operands hold values of `F` already.
template <class F>
static F evalToFloat(Op op, ScalarType argType, const Scalar &a, const Scalar &b, const Scalar &c) {
  switch (familyOf(op)) {
  case OpFamily::IntToFloat:
    return evalIntToFloat<F>(op, argType, a.i);
  case OpFamily::Score:
    return evalSoftCap(static_cast<F>(a.f), static_cast<F>(b.f));
  default:
    return evalFloat(op, static_cast<F>(a.f), static_cast<F>(b.f), static_cast<F>(c.f));
  }
}

Scalar evalPure(FloatMode mode, Op op, ScalarType type, ScalarType argType, const Scalar &a,
                const Scalar &b, const Scalar &c) {
  switch (familyOf(op)) {
  case OpFamily::IntBinary:
    return Scalar::ofInt(evalIntBinary(op, type, a.i, b.i));
  case OpFamily::IntUnary:
    return Scalar::ofInt(wrapTo(type, ~a.i));
  case OpFamily::IntCompare:
    return Scalar::ofInt(evalCompare(op, argType, a.i, b.i));
  case OpFamily::IntCast:
    return Scalar::ofInt(evalCast(op, argType, type, a.i));
  case OpFamily::Select:
    return a.i ? b : c;
  case OpFamily::FloatCompare:
    return Scalar::ofInt(evalFloatCompare(op, a.f, b.f));
  case OpFamily::FloatToInt:
    return Scalar::ofInt(evalToInt(type, a.f));
  default:
    return Scalar::ofFloat(mode == FloatMode::Single ? evalToFloat<float>(op, argType, a, b, c)
                                                     : evalToFloat<double>(op, argType, a, b, c));
  }
}

} // namespace attn::core
