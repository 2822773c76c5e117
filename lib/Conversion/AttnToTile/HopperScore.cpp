// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The scores of a block, from the product of Q and K to what the softmax takes.

#include "HopperSchedule.h"
#include "Maps.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>

using namespace mlir;
using namespace attn;

static constexpr double kLog2e = 1.4426950408889634;

//===----------------------------------------------------------------------===//
// The form
//===----------------------------------------------------------------------===//

/// The largest unit of scores in [-1, 1] that goes into the exponent: rounding maximum * unit
/// multiplies the weights of a block by 2^(2^-8) at most.
static constexpr double kMostUnit = 65536;

/// Scores in [-bound, bound] (log2 units) need no maximum where weights have the range of f32, as
/// those of bf16. Less bound / 2 they give weights of 2^(-3/2 bound) to 2^(1/2 bound), with the
/// same relative precision at every magnitude. 3/2 bound is at most this, so the cap 50.8:
/// - The least weight is 2^-110. Times a V of 2^-16 or more it is a normal number (2^-126); smaller
///   products are subnormal, which tensor cores keep: where all scores of a row are that low, a V
///   of 2^-31 still has 8 bits.
/// - The largest weight is 2^36.7, the sum over 2^31 keys below 2^68. O stays finite for V up to
///   2^90 / keys in magnitude, 2^59 whatever the keys.
/// A row's largest weight, exactly 1 beside a maximum, is rounded like the others: 2^-8 at most.
static constexpr double kMostBelow = 110;

/// Has a factor of the product f32's precision?
static bool isNormal(double factor) { return std::isnormal(static_cast<float>(factor)); }

/// The form of a region that ends in `cap`. `scale` is the literal scale, or 1. A cap that is too
/// large for the exponent, or a parameter, keeps natural units: it may be the largest number there
/// is, so that nothing is capped, and log2(e) times that is infinite.
static ScoreForm softCapForm(KernelOp kernel, SoftCapOp cap, double scale) {
  ScoreForm form;
  form.last = cap;
  FloatAttr literal = cap.getCapLiteralAttr();
  const double divisor = literal ? literal.getValueAsDouble() : 1;
  form.takesProduct = isNormal(scale / divisor);
  const double bound = divisor * kLog2e;
  form.inExponent = literal && bound <= kMostUnit;
  form.unit = form.inExponent ? bound : kLog2e;
  if (form.inExponent && kernel.getQType().isBF16() && 1.5 * bound <= kMostBelow)
    form.shift = bound / 2;
  return form;
}

ScoreForm ScoreForm::get(KernelOp kernel) {
  ScoreForm form;
  const double scale = kernel.getScaleParam() ? 1 : kernel.getLiteralScale();
  ScoreOp region = kernel.getScore();
  if (!region) {
    // A negative scale would turn the maximum into a minimum, a parameter may be one; beside a
    // large one the rounding of maximum * scale would be no small power of two.
    form.inExponent = !kernel.getScaleParam() && scale > 0 && scale <= 1;
    form.unit = form.inExponent ? scale * kLog2e : kLog2e;
    form.takesProduct = form.inExponent;
    return form;
  }
  form.unit = kLog2e;
  Value result = region.getBody().front().getTerminator()->getOperand(0);
  Operation *last = result.getDefiningOp();
  if (!last || last->getParentRegion() != &region.getBody() || !result.hasOneUse())
    return form;
  // A scale that is a parameter may be so large that its product with a factor is infinite.
  auto isOnlyUse = [&](Value s) {
    return !kernel.getScaleParam() && getIndexRole(s) == IndexRole::S && s.hasOneUse();
  };
  if (auto cap = dyn_cast<SoftCapOp>(last)) {
    form = softCapForm(kernel, cap, scale);
    form.takesProduct &= isOnlyUse(cap.getS());
  } else if (auto alibi = dyn_cast<AlibiOp>(last)) {
    // Of another score than the region's it would cost a multiplication to save one.
    if (isOnlyUse(alibi.getS()) && isNormal(scale * kLog2e))
      form.last = last, form.unit = 1, form.takesProduct = true;
  }
  return form;
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

/// cap * tanh(s / cap), or tanh(s / cap) where the cap is in the unit, with the hardware's tanh for
/// large ratios: the score is read by ex2 alone. The scale, if it is not done yet, and the cap are
/// one factor, the same for all elements.
Value HopperSchedule::emitSoftCap(OpBuilder &builder, SoftCapOp op) {
  Location loc = getLoc();
  TileEmitter e(builder, loc);
  bool isLast = op == scoreForm.last;
  bool scales = isLast && scoreForm.takesProduct;
  FloatAttr literal = op.getCapLiteralAttr();
  auto emitCap = [&]() -> Value {
    return literal ? e.f32(literal.getValueAsDouble()) : context->lookup(op.getCap());
  };
  const double dividend = scales ? kernel.getLiteralScale() : 1;
  Value factor;
  if (literal)
    factor = e.f32(dividend / literal.getValueAsDouble());
  else
    factor = arith::DivFOp::create(builder, loc, e.f32(dividend), emitCap());
  Value ratio = arith::MulFOp::create(builder, loc, context->lookup(op.getS()), factor);
  Value tanh = math::TanhOp::create(builder, loc, ratio, arith::FastMathFlags::afn);
  if (isLast && scoreForm.inExponent)
    return tanh;
  return arith::MulFOp::create(builder, loc, emitCap(), tanh);
}

/// s - slope * |q - k|. The distance of a block's first key is made a float once a row, and the
/// column once a column: an integer below 2^23 in the mantissa of 2^23. Their sum is exact below
/// 2^24 keys.
Value HopperSchedule::emitAlibi(OpBuilder &builder, AlibiOp op, Value key, Value column) {
  Location loc = getLoc();
  TileEmitter e(builder, loc);
  Type f32 = builder.getF32Type();
  constexpr int64_t kTwo23Bits = 0x4B000000;
  Value wide = arith::BitcastOp::create(builder, loc, f32, e.add(column, e.i32(kTwo23Bits)));
  Value columns = arith::SubFOp::create(builder, loc, wide, e.f32(8388608.0));
  Value start = arith::SIToFPOp::create(builder, loc, f32, e.sub(key, e.toI32(context->q)));
  Value distance = arith::AddFOp::create(builder, loc, start, columns);
  Value length = LLVM::FAbsOp::create(builder, loc, distance);
  Value slope = arith::NegFOp::create(builder, loc, context->lookup(op.getSlope()));
  Value s = context->lookup(op.getS());
  if (op == scoreForm.last) {
    s = arith::MulFOp::create(builder, loc, s, e.f32(kernel.getLiteralScale() * kLog2e));
    slope = arith::MulFOp::create(builder, loc, slope, e.f32(kLog2e));
  }
  return math::FmaOp::create(builder, loc, slope, length, s);
}

void HopperSchedule::emitScoreRegion(OpBuilder &builder, ScoreOp region, Value score, Value key,
                                     Value column) {
  regions->bindArguments(region.getBody(), score);
  for (Operation &op : region.getBody().front().without_terminator()) {
    if (auto cap = dyn_cast<SoftCapOp>(op))
      context->getMapping().map(cap.getResult(), emitSoftCap(builder, cap));
    else if (auto alibi = dyn_cast<AlibiOp>(op))
      context->getMapping().map(alibi.getResult(), emitAlibi(builder, alibi, key, column));
    else
      regions->emitOp(builder, op);
  }
}

/// Scale and score region, as far as the softmax does not do them.
Value HopperSchedule::emitScore(OpBuilder &builder, Value scores, Value key) {
  ScoreOp region = kernel.getScore();
  if (!region && scoreForm.takesProduct)
    return scores;
  Location loc = getLoc();
  SmallVector<Value> inputs = {scores};
  if (region)
    inputs.append(rowValues);
  return mapElements(builder, loc, scores.getType(), inputs,
                     [&](OpBuilder &b, ValueRange arguments) {
                       Value score = arguments[0];
                       if (!scoreForm.takesProduct)
                         score = arith::MulFOp::create(b, loc, score, scale);
                       if (!region)
                         return SmallVector<Value>{score};
                       TileEmitter in(b, loc);
                       bindRow(arguments.slice(1, rowValues.size()));
                       context->k = in.toIndex(in.add(key, arguments.back()));
                       regions->emitPer(b, kernel, Level::Column);
                       emitScoreRegion(b, region, score, key, arguments.back());
                       return SmallVector<Value>{regions->yielded(region.getBody(), 0)};
                     })[0];
}
