// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "attn/Conversion/Regions/RegionEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace attn;
using Predicate = arith::CmpIPredicate;

void RegionEmitter::emitBlock(OpBuilder &builder, Block &block) {
  for (Operation &op : block.without_terminator())
    emitOp(builder, op);
}

void RegionEmitter::emitKernelValues(OpBuilder &builder, KernelOp kernel) {
  for (Operation &op : kernel.getBody().front())
    if (!isa<MaskOp, ScoreOp, BoundsOp, PerOp>(op))
      emitOp(builder, op);
}

void RegionEmitter::emitPer(OpBuilder &builder, KernelOp kernel, Level level) {
  for (auto per : kernel.getBody().getOps<PerOp>()) {
    if (per.getLevel() != level)
      continue;
    emitRegion(builder, per.getBody());
    for (auto [i, result] : llvm::enumerate(per.getResults()))
      context.getMapping().map(result, yielded(per.getBody(), i));
  }
}

void RegionEmitter::emitRegion(OpBuilder &builder, Region &region, Value score) {
  bindArguments(region, score);
  emitBlock(builder, region.front());
}

void RegionEmitter::bindArguments(Region &region, Value score) {
  for (BlockArgument argument : region.getArguments()) {
    Value value;
    switch (*getIndexRole(argument)) {
    case IndexRole::S:
      value = score;
      break;
    case IndexRole::B:
      value = context.b;
      break;
    case IndexRole::H:
      value = context.h;
      break;
    case IndexRole::Q:
      value = context.q;
      break;
    case IndexRole::K:
      value = context.k;
      break;
    }
    context.getMapping().map(argument, value);
  }
}

Value RegionEmitter::yielded(Region &region, unsigned i) const {
  return context.lookup(region.front().getTerminator()->getOperand(i));
}

Value RegionEmitter::emitScale(OpBuilder &builder, KernelOp kernel) const {
  if (auto param = kernel.getScaleParam())
    return context.lookup(kernel.getBody().getArgument(*param));
  auto literal = builder.getFloatAttr(builder.getF32Type(), kernel.getLiteralScale());
  return arith::ConstantOp::create(builder, kernel.getLoc(), literal);
}

void RegionEmitter::emitOp(OpBuilder &builder, Operation &op) {
  if (auto element = dyn_cast<ElementOpInterface>(op)) {
    SmallVector<Value> values = element.lowerElement(builder, context);
    for (auto [result, value] : llvm::zip(op.getResults(), values))
      context.getMapping().map(result, value);
    return;
  }
  if (isa<scf::ForOp>(op))
    return emitLoop(builder, op);
  if (Value value = emitGuarded(builder, op)) {
    context.getMapping().map(op.getResult(0), value);
    return;
  }
  Operation *clone = builder.clone(op, context.getMapping());
  if (auto flags = dyn_cast<arith::ArithIntegerOverflowFlagsInterface>(clone))
    clone->setAttr(flags.getIntegerOverflowAttrName(),
                   arith::IntegerOverflowFlagsAttr::get(builder.getContext(),
                                                        arith::IntegerOverflowFlags::none));
  if (auto math = dyn_cast<arith::ArithFastMathInterface>(clone))
    clone->setAttr(math.getFastMathAttrName(),
                   arith::FastMathFlagsAttr::get(builder.getContext(), arith::FastMathFlags::none));
}

void RegionEmitter::emitLoop(OpBuilder &builder, Operation &op) {
  auto loop = cast<scf::ForOp>(op);
  Location loc = op.getLoc();
  IRMapping &mapping = context.getMapping();
  auto index = [&](int64_t v) -> Value { return arith::ConstantIndexOp::create(builder, loc, v); };
  Value lb = mapping.lookup(loop.getLowerBound()), ub = mapping.lookup(loop.getUpperBound());
  Value step = mapping.lookup(loop.getStep());
  Value zero = index(0), one = index(1);
  bool unitStep = matchPattern(step, m_One());
  // Other steps run over the number of trips, so that neither a step below 1 nor one that passes
  // the end of the integers can loop for ever.
  Value first = lb, last = ub;
  if (!unitStep) {
    Value positive = arith::CmpIOp::create(builder, loc, Predicate::sge, step, one);
    Value ascending = arith::CmpIOp::create(builder, loc, Predicate::slt, lb, ub);
    Value runs = arith::AndIOp::create(builder, loc, positive, ascending);
    Value safeStep = arith::SelectOp::create(builder, loc, positive, step, one);
    Value span = arith::SubIOp::create(builder, loc, ub, lb);
    Value before = arith::SubIOp::create(builder, loc, span, one);
    Value trips = arith::AddIOp::create(
        builder, loc, arith::DivUIOp::create(builder, loc, before, safeStep), one);
    first = zero;
    last = arith::SelectOp::create(builder, loc, runs, trips, zero);
  }
  SmallVector<Value> inits;
  for (Value init : loop.getInitArgs())
    inits.push_back(mapping.lookup(init));
  auto lowered = scf::ForOp::create(
      builder, loc, first, last, one, inits,
      [&](OpBuilder &b, Location l, Value iv, ValueRange carried) {
        Value position = iv;
        if (!unitStep)
          position = arith::AddIOp::create(b, l, lb, arith::MulIOp::create(b, l, iv, step));
        mapping.map(loop.getInductionVar(), position);
        for (auto [source, value] : llvm::zip(loop.getRegionIterArgs(), carried))
          mapping.map(source, value);
        emitBlock(b, *loop.getBody());
        SmallVector<Value> results;
        for (Value value : loop.getBody()->getTerminator()->getOperands())
          results.push_back(mapping.lookup(value));
        scf::YieldOp::create(b, l, results);
      });
  for (auto [result, value] : llvm::zip(op.getResults(), lowered.getResults()))
    mapping.map(result, value);
}

/// Quotients and remainders: 0 for a zero divisor, wrapped for the smallest integer over -1.
static Value emitDivision(OpBuilder &b, Operation &op, Value x, Value y) {
  Location loc = op.getLoc();
  Type type = x.getType();
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
  Value one = arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, 1));
  Value minusOne = arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, -1));
  bool isUnsigned = isa<arith::DivUIOp, arith::RemUIOp>(op);
  Value isZero = arith::CmpIOp::create(b, loc, Predicate::eq, y, zero);
  Value safe = arith::SelectOp::create(b, loc, isZero, one, y);
  Value negates;
  if (!isUnsigned) {
    negates = arith::CmpIOp::create(b, loc, Predicate::eq, y, minusOne);
    safe = arith::SelectOp::create(b, loc, negates, one, safe);
  }
  Value result =
      llvm::TypeSwitch<Operation *, Value>(&op)
          .Case<arith::DivUIOp>([&](auto) { return arith::DivUIOp::create(b, loc, x, safe); })
          .Case<arith::RemUIOp>([&](auto) { return arith::RemUIOp::create(b, loc, x, safe); })
          .Case<arith::RemSIOp>([&](auto) { return arith::RemSIOp::create(b, loc, x, safe); })
          .Default([&](Operation *) { return arith::DivSIOp::create(b, loc, x, safe); });
  if (isa<arith::FloorDivSIOp, arith::CeilDivSIOp>(op)) {
    // Truncated quotient, corrected by one where a remainder was cut on the wrong side.
    Value rest = arith::RemSIOp::create(b, loc, x, safe);
    Value inexact = arith::CmpIOp::create(b, loc, Predicate::ne, rest, zero);
    Value restNegative = arith::CmpIOp::create(b, loc, Predicate::slt, rest, zero);
    Value divisorNegative = arith::CmpIOp::create(b, loc, Predicate::slt, safe, zero);
    bool floor = isa<arith::FloorDivSIOp>(op);
    Value wrongSide = arith::CmpIOp::create(b, loc, floor ? Predicate::ne : Predicate::eq,
                                            restNegative, divisorNegative);
    Value correct = arith::AndIOp::create(b, loc, inexact, wrongSide);
    Value moved = floor ? arith::SubIOp::create(b, loc, result, one).getResult()
                        : arith::AddIOp::create(b, loc, result, one).getResult();
    result = arith::SelectOp::create(b, loc, correct, moved, result);
  }
  if (!isUnsigned) {
    Value negated =
        isa<arith::RemSIOp>(op) ? zero : arith::SubIOp::create(b, loc, zero, x).getResult();
    result = arith::SelectOp::create(b, loc, negates, negated, result);
  }
  return arith::SelectOp::create(b, loc, isZero, zero, result);
}

/// Shifts by the width or more: 0, or the sign.
static Value emitShift(OpBuilder &b, Operation &op, Value x, Value y) {
  Location loc = op.getLoc();
  Type type = x.getType();
  unsigned width = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
  Value limit = arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, width - 1));
  Value small = arith::CmpIOp::create(b, loc, Predicate::ule, y, limit);
  Value amount = arith::SelectOp::create(b, loc, small, y, limit);
  if (isa<arith::ShRSIOp>(op))
    return arith::ShRSIOp::create(b, loc, x, amount);
  Value shifted = isa<arith::ShLIOp>(op) ? arith::ShLIOp::create(b, loc, x, amount).getResult()
                                         : arith::ShRUIOp::create(b, loc, x, amount).getResult();
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
  return arith::SelectOp::create(b, loc, small, shifted, zero);
}

/// Minimum and maximum that count NaN as absent. Unlike arith's, they order -0 before +0.
static Value emitNumber(OpBuilder &b, Operation &op, Value x, Value y) {
  Location loc = op.getLoc();
  Value ordered = isa<arith::MinNumFOp>(op) ? arith::MinimumFOp::create(b, loc, x, y).getResult()
                                            : arith::MaximumFOp::create(b, loc, x, y).getResult();
  Value xAbsent = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, x, x);
  Value yAbsent = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, y, y);
  Value withoutY = arith::SelectOp::create(b, loc, yAbsent, x, ordered);
  return arith::SelectOp::create(b, loc, xAbsent, y, withoutY);
}

Value RegionEmitter::emitGuarded(OpBuilder &builder, Operation &op) {
  auto operand = [&](unsigned i) { return context.lookup(op.getOperand(i)); };
  if (isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp, arith::FloorDivSIOp,
          arith::CeilDivSIOp>(op))
    return emitDivision(builder, op, operand(0), operand(1));
  if (isa<arith::ShLIOp, arith::ShRSIOp, arith::ShRUIOp>(op))
    return emitShift(builder, op, operand(0), operand(1));
  // An instruction, not a call of libm.
  if (isa<math::AbsFOp>(op))
    return LLVM::FAbsOp::create(builder, op.getLoc(), operand(0));
  if (isa<math::RsqrtOp>(op)) {
    // libm has no reciprocal square root.
    Location loc = op.getLoc();
    Value one = arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(1));
    return arith::DivFOp::create(builder, loc, one, math::SqrtOp::create(builder, loc, operand(0)));
  }
  if (isa<arith::MinNumFOp, arith::MaxNumFOp>(op))
    return emitNumber(builder, op, operand(0), operand(1));
  if (isa<arith::FPToSIOp>(op)) {
    // Saturates; NaN gives 0.
    Type type = op.getResult(0).getType();
    return LLVM::CallIntrinsicOp::create(builder, op.getLoc(), type,
                                         builder.getStringAttr("llvm.fptosi.sat"),
                                         ValueRange{operand(0)})
        .getResult(0);
  }
  return {};
}
