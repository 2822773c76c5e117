// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "MathFunctions.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace attn::tile;

static constexpr double kLog2e = 1.4426950408889634;
static constexpr double kLn2 = 0.6931471805599453;
static constexpr double kInf = std::numeric_limits<double>::infinity();

// PTX ISA, ex2.approx and lg2.approx: relative error 2^-22.5 at most; lg2 within 2^-22 absolute
// between 1/2 and 2. ".ftz" treats subnormal inputs and results as 0.
Value attn::tile::emitEx2(Emitter &e, Value x) {
  return e.intrinsic("llvm.nvvm.ex2.approx.ftz.f32", x);
}
Value attn::tile::emitLg2(Emitter &e, Value x) {
  return e.intrinsic("llvm.nvvm.lg2.approx.ftz.f", x);
}
/// PTX ISA, rcp.approx: 1 ulp.
Value attn::tile::emitRcp(Emitter &e, Value x) {
  return e.intrinsic("llvm.nvvm.rcp.approx.ftz.f", x);
}

static Value exp2(Emitter &e, Value x) { return e.intrinsic("llvm.nvvm.ex2.approx.f32", x); }
static Value log2(Emitter &e, Value x) { return e.intrinsic("llvm.nvvm.lg2.approx.f", x); }

/// Horner, the coefficient of the highest power first.
static Value polynomial(Emitter &e, Value x, ArrayRef<double> coefficients) {
  Value sum = e.f32(coefficients.front());
  for (double c : coefficients.drop_front())
    sum = e.fma(sum, x, e.f32(c));
  return sum;
}

/// Is |x| < limit. False for NaN.
static Value isBelow(Emitter &e, Value x, double limit) {
  return e.fcmp(FloatPredicate::olt, e.fabs(x), e.f32(limit));
}

/// e^x = 2^t (1 + r ln 2), t = x log2(e) rounded, r what the rounding lost.
static Value emitExp(Emitter &e, Value x) {
  double high = static_cast<float>(kLog2e);
  Value t = e.fmul(x, e.f32(high));
  Value rest = e.fma(x, e.f32(kLog2e - high), e.fma(x, e.f32(high), e.fneg(t)));
  Value power = exp2(e, t);
  Value exact = e.fma(power, e.fmul(rest, e.f32(kLn2)), power);
  // Elsewhere the power may be infinite, or x.
  return e.select(isBelow(e, x, 87), exact, power);
}

static Value emitExpm1(Emitter &e, Value x) {
  // The series up to x^8 / 8!.
  Value series = polynomial(
      e, x, {1.0 / 40320, 1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5, 1.0});
  Value far = e.fsub(emitExp(e, x), e.f32(1));
  Value near = e.fmul(x, series);
  return e.select(isBelow(e, x, 0.4), near, far);
}

static Value emitLog(Emitter &e, Value x) { return e.fmul(log2(e, x), e.f32(kLn2)); }

/// Near 0 by log(1 + x) = 2 artanh(x / (2 + x)).
static Value emitLog1p(Emitter &e, Value x) {
  Value s = e.fdiv(x, e.fadd(x, e.f32(2)));
  Value z = e.fmul(s, s);
  Value series = polynomial(e, z, {2.0 / 11, 2.0 / 9, 2.0 / 7, 2.0 / 5, 2.0 / 3, 2.0});
  Value far = emitLog(e, e.fadd(x, e.f32(1)));
  Value near = e.fmul(s, series);
  return e.select(isBelow(e, x, 0.4), near, far);
}

/// 1 - 2 / (1 + e^2x).
/// 1 - 2 / (e^2x + 1); near 0, where that cancels, the Taylor series up to x^9: its next term is
/// 0.0089 x^10 relative, below 2^-24 for |x| < 0.3.
static Value emitTanh(Emitter &e, Value x) {
  Value power = emitEx2(e, e.fmul(x, e.f32(2 * kLog2e)));
  Value far = e.fma(e.f32(-2), emitRcp(e, e.fadd(power, e.f32(1))), e.f32(1));
  Value square = e.fmul(x, x);
  Value series = e.fma(square, e.f32(62.0 / 2835), e.f32(-17.0 / 315));
  for (double coefficient : {2.0 / 15, -1.0 / 3})
    series = e.fma(square, series, e.f32(coefficient));
  Value near = e.fma(e.fmul(square, series), x, x);
  Value isNear = e.fcmp(FloatPredicate::olt, e.fabs(x), e.f32(0.3));
  return e.select(isNear, near, far);
}

/// PTX ISA, tanh.approx: 2^-11 relative. Near 0 the polynomial x + a x^3 + b x^5 whose largest
/// relative error for |x| < 0.3 is the least, 2^-19.3 over all floats.
static Value emitApproxTanh(Emitter &e, Value x) {
  Value far = e.assembly("tanh.approx.f32 $0, $1;", "=f,f", {x}, {x.getType()}, /*pure=*/true)[0];
  Value square = e.fmul(x, x);
  Value factor = e.fma(square, e.f32(0.1268315), e.f32(-0.3331544));
  Value near = e.fma(e.fmul(x, square), factor, x);
  return e.select(isBelow(e, x, 0.3), near, far);
}

/// Distance to the nearest multiple of pi / 2, found in f64, then a series.
static Value emitSinCos(Emitter &e, Value x, bool isCos) {
  OpBuilder &b = e.getBuilder();
  Type f64 = b.getF64Type();
  // Beyond 2^52 floats are further apart than the reduction resolves: as 0. NaN for infinities.
  Value inRange = isBelow(e, x, 4503599627370496.0);
  Value wide = e.emit<LLVM::FPExtOp>(f64, e.select(inRange, x, e.fsub(x, x)));
  Value turns = e.emit<LLVM::RintOp>(e.fmul(wide, e.f64(0.6366197723675814)));
  Value rest = e.fma(turns, e.f64(-1.5707963267948966), wide);
  rest = e.fma(turns, e.f64(-6.123233995736766e-17), rest);
  Value r = e.emit<LLVM::FPTruncOp>(b.getF32Type(), rest);
  Value finite = e.select(inRange, turns, e.f64(0));
  Value number = e.emit<LLVM::FPToSIOp>(b.getI64Type(), finite);
  if (isCos)
    number = e.add(number, e.i64(1));
  Value z = e.fmul(r, r);
  Value series = polynomial(e, z, {1.0 / 362880, -1.0 / 5040, 1.0 / 120, -1.0 / 6});
  Value sine = e.fma(e.fmul(r, z), series, r);
  Value cosine = e.fma(
      z, polynomial(e, z, {-1.0 / 3628800, 1.0 / 40320, -1.0 / 720, 1.0 / 24, -0.5}), e.f32(1));
  auto bit = [&](int64_t mask) {
    return e.cmp(IntPredicate::ne, e.bitAnd(number, e.i64(mask)), e.i64(0));
  };
  Value value = e.select(bit(1), cosine, sine);
  Value negated = e.fneg(value);
  return e.select(bit(2), negated, value);
}

/// Near 0 the series, elsewhere Abramowitz and Stegun 7.1.26, off by 1.5e-7 at most.
static Value emitErf(Emitter &e, Value x) {
  Value z = e.fmul(x, x);
  double scale = 1.1283791670955126; // 2 / sqrt(pi)
  Value series =
      polynomial(e, z, {-scale / 1320, scale / 216, -scale / 42, scale / 10, -scale / 3, scale});
  Value magnitude = e.fabs(x);
  Value t = emitRcp(e, e.fma(magnitude, e.f32(0.3275911), e.f32(1)));
  Value sum =
      polynomial(e, t, {1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592, 0.0});
  Value decay = emitEx2(e, e.fmul(z, e.f32(-kLog2e)));
  Value far = e.fma(e.fneg(sum), decay, e.f32(1));
  far = e.emit<LLVM::CopySignOp>(far, x);
  Value near = e.fmul(x, series);
  return e.select(isBelow(e, x, 0.5), near, far);
}

/// log2 |x| in f64 for x other than 0, infinities and NaN: the exponent and 2 artanh.
static Value emitWideLog2(Emitter &e, Value magnitude) {
  OpBuilder &b = e.getBuilder();
  Type f64 = b.getF64Type(), i64 = b.getI64Type();
  Value bits = e.bitcast(i64, e.emit<LLVM::FPExtOp>(f64, magnitude));
  // The mantissa comes to lie between sqrt(1/2) and sqrt(2).
  Value exponent = e.emit<LLVM::AShrOp>(e.sub(bits, e.i64(0x3FE6A09E667F3BCD)), e.i64(52));
  Value m = e.bitcast(f64, e.sub(bits, e.shl(exponent, e.i64(52))));
  Value above = e.fadd(m, e.f64(1));
  Value s = e.fdiv(e.fsub(m, e.f64(1)), above);
  Value z = e.fmul(s, s);
  Value sum = e.f64(1.0 / 15);
  for (int64_t k = 13; k >= 1; k -= 2)
    sum = e.fma(sum, z, e.f64(1.0 / k));
  Value whole = e.emit<LLVM::SIToFPOp>(f64, exponent);
  return e.fma(e.fmul(s, sum), e.f64(2 * kLog2e), whole);
}

/// 2^t for t from -200 to 200.
static Value emitWideExp2(Emitter &e, Value t) {
  OpBuilder &b = e.getBuilder();
  Type i32 = b.getI32Type(), f32 = b.getF32Type();
  Value whole = e.emit<LLVM::RintOp>(t);
  Value power = exp2(e, e.emit<LLVM::FPTruncOp>(f32, e.fsub(t, whole)));
  Value n = e.emit<LLVM::FPToSIOp>(i32, whole);
  Value half = e.emit<LLVM::AShrOp>(n, e.i32(1));
  auto scale = [&](Value x, Value exponent) {
    return e.fmul(x, e.bitcast(f32, e.shl(e.add(exponent, e.i32(127)), e.i32(23))));
  };
  Value rest = e.sub(n, half);
  return scale(scale(power, half), rest);
}

static Value emitPow(Emitter &e, Value x, Value y) {
  OpBuilder &b = e.getBuilder();
  Value magnitude = e.fabs(x), zero = e.f32(0), one = e.f32(1);
  auto isEqual = [&](Value a, Value c) { return e.fcmp(FloatPredicate::oeq, a, c); };
  Value isZero = isEqual(magnitude, zero), isInfinite = isEqual(magnitude, e.f32(kInf));
  Value log = emitWideLog2(e, magnitude);
  log = e.select(isZero, e.f64(-kInf), e.select(isInfinite, e.f64(kInf), log));
  Value t = e.fmul(e.emit<LLVM::FPExtOp>(b.getF64Type(), y), log);
  // 1 to an infinite power.
  t = e.select(isEqual(magnitude, one), e.f64(0), t);
  t = e.emit<LLVM::MinNumOp>(e.maxnum(t, e.f64(-200)), e.f64(200));
  Value value = emitWideExp2(e, t);

  Value half = e.fmul(y, e.f32(0.5));
  Value isInteger = isEqual(e.emit<LLVM::FTruncOp>(y), y);
  Value isEven = isEqual(e.emit<LLVM::FTruncOp>(half), half);
  Value isOdd = e.bitAnd(isInteger, e.bitXor(isEven, e.i1(true)));
  Value isNegative = e.cmp(IntPredicate::slt, e.bitcast(b.getI32Type(), x), e.i32(0));
  Value negated = e.fneg(value);
  value = e.select(e.bitAnd(isNegative, isOdd), negated, value);
  Value isFraction = e.bitXor(e.bitOr(isInteger, isInfinite), e.i1(true));
  Value outside = e.bitAnd(e.fcmp(FloatPredicate::olt, x, zero), isFraction);
  Value isNaN = e.bitOr(outside, e.fcmp(FloatPredicate::uno, x, y));
  value = e.select(isNaN, e.f32(std::numeric_limits<double>::quiet_NaN()), value);
  Value isOne = isEqual(x, one);
  return e.select(e.bitOr(isEqual(y, zero), isOne), one, value);
}

Value attn::tile::emitMath(Emitter &e, Operation &op, ValueRange operands) {
  if (op.getNumResults() != 1 || !op.getResult(0).getType().isF32())
    return {};
  for (Value operand : operands)
    if (!operand.getType().isF32())
      return {};
  Value x = operands[0];
  return llvm::TypeSwitch<Operation *, Value>(&op)
      .Case<math::AbsFOp>([&](auto) { return e.fabs(x); })
      .Case<math::FmaOp>([&](auto) { return e.fma(x, operands[1], operands[2]); })
      .Case<math::FloorOp>([&](auto) { return e.emit<LLVM::FFloorOp>(x); })
      .Case<math::CeilOp>([&](auto) { return e.emit<LLVM::FCeilOp>(x); })
      .Case<math::Exp2Op>([&](auto) { return exp2(e, x); })
      .Case<math::ExpOp>([&](auto) { return emitExp(e, x); })
      .Case<math::ExpM1Op>([&](auto) { return emitExpm1(e, x); })
      .Case<math::Log2Op>([&](auto) { return log2(e, x); })
      .Case<math::LogOp>([&](auto) { return emitLog(e, x); })
      .Case<math::Log1pOp>([&](auto) { return emitLog1p(e, x); })
      .Case<math::TanhOp>([&](auto op) {
        bool isApprox = bitEnumContainsAll(op.getFastmath(), arith::FastMathFlags::afn);
        return isApprox ? emitApproxTanh(e, x) : emitTanh(e, x);
      })
      .Case<math::SqrtOp>([&](auto) { return e.emit<LLVM::SqrtOp>(x); })
      .Case<math::RsqrtOp>([&](auto) { return e.intrinsic("llvm.nvvm.rsqrt.approx.f", x); })
      .Case<math::SinOp>([&](auto) { return emitSinCos(e, x, /*isCos=*/false); })
      .Case<math::CosOp>([&](auto) { return emitSinCos(e, x, /*isCos=*/true); })
      .Case<math::ErfOp>([&](auto) { return emitErf(e, x); })
      .Case<math::PowFOp>([&](auto) { return emitPow(e, x, operands[1]); })
      .Default([](Operation *) { return Value(); });
}
