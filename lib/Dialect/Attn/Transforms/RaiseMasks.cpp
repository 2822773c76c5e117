// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Hand-written predicates become named mask operations.
//
// Comparisons. Both sides are brought to a linear form in q, k and k-free values (LinearForm.h),
// exactly or not at all, and solved for k: k < bound or k >= bound. The bound decides the
// operation: q + 1 is causal, q plus a constant a window, an i32 that is the same for a request a
// prefix, anything else one half of attn.in_rows. A radius that is a parameter stays arithmetic: as
// the operand of attn.window it would be refused below 0, which the comparison is not.
//
// Scans over ranges: RangeScan.h. Logic on i1 is raised as it stands.
//
// Complexity: linear in operations, times the size of a comparison's arithmetic; scans 2^12 each.
// Refusals, with a remark: comparisons of k that have no such form, loops that are no such scan.
// Left alone without one: what does not depend on k, and what stands in a loop.

#include "LinearForm.h"
#include "RangeScan.h"
#include "attn/Core/IndexSpaces.h"
#include "attn/Dialect/Attn/IR/AttnOps.h"
#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "attn/Dialect/Attn/Transforms/Remarks.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"

namespace attn {
#define GEN_PASS_DEF_RAISEMASKSPASS
#include "attn/Transforms/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;
using core::kPositionLimit;

static std::optional<bool> getBool(Value value) {
  APInt constant;
  if (!matchPattern(value, m_ConstantInt(&constant)))
    return std::nullopt;
  return constant.isOne();
}

namespace {

class RaiseMasks : public attn::impl::RaiseMasksPassBase<RaiseMasks> {
public:
  void runOnOperation() override {
    MaskOp mask = getOperation().getMask();
    if (!mask)
      return markAllAnalysesPreserved();
    Block &block = mask.getBody().front();
    changed = false;
    for (auto loop : llvm::make_early_inc_range(block.getOps<scf::ForOp>()))
      raiseScan(loop);
    forms = LinearFormAnalysis();
    for (Operation &op : llvm::make_early_inc_range(block.without_terminator()))
      raise(&op);
    if (!changed)
      return markAllAnalysesPreserved();
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (isOpTriviallyDead(&op))
        op.erase();
  }

private:
  void raiseScan(scf::ForOp loop);
  void raise(Operation *op);
  Value raiseLogic(Operation *op, OpBuilder &builder);
  Value raiseSelect(arith::SelectOp op, OpBuilder &builder);
  Value raiseComparison(arith::CmpIOp op, OpBuilder &builder);
  Value emitComparison(const KeyComparison &comparison, OpBuilder &builder, Location loc);
  Value emitHalf(const LinearForm &bound, bool below, OpBuilder &builder, Location loc);
  void replace(Operation *op, Value value);

  /// i1 values as named operations, constants aside.
  static Value negate(OpBuilder &builder, Location loc, Value value) {
    return NotOp::create(builder, loc, value);
  }

  bool changed = false;
  LinearFormAnalysis forms;
};

} // namespace

void RaiseMasks::replace(Operation *op, Value value) {
  Operation *by = value.getDefiningOp();
  remarkPassed(op->getLoc(), "RaiseMasks",
               "'" + op->getName().getStringRef() + "' is " +
                   (by ? "'" + by->getName().getStringRef().str() + "'" : "one of its operands"));
  op->getResult(0).replaceAllUsesWith(value);
  forms.forget(op);
  op->erase();
  changed = true;
}

//===----------------------------------------------------------------------===//
// Scans
//===----------------------------------------------------------------------===//

/// Moves what computes `value` in front of `loop`; nothing of it changes in the loop.
static void moveOut(Value value, scf::ForOp loop) {
  Operation *op = value.getDefiningOp();
  if (!op || !loop->isProperAncestor(op))
    return;
  for (Value operand : op->getOperands())
    moveOut(operand, loop);
  op->moveBefore(loop);
}

void RaiseMasks::raiseScan(scf::ForOp loop) {
  std::string reason;
  auto scan = matchRangeScan(loop, reason);
  Location loc = loop.getLoc();
  if (!scan) {
    remarkMissed(loc, "RaiseMasks", "loop is no scan over ranges: " + reason);
    return;
  }
  OpBuilder builder(loop);
  Value keep =
      MmPrefixOp::create(builder, loc, builder.getI1Type(), scan->ranges,
                         getIndexArgument(loop, IndexRole::B), getIndexArgument(loop, IndexRole::Q),
                         getIndexArgument(loop, IndexRole::K), Value(), IntegerAttr());
  for (auto [condition, holds] : scan->conditions) {
    moveOut(condition, loop);
    keep = AndOp::create(builder, loc, keep, holds ? condition : negate(builder, loc, condition));
  }
  remarkPassed(loc, "RaiseMasks", "scan over ranges is 'attn.mm_prefix'");
  loop.getResult(0).replaceAllUsesWith(keep);
  loop.erase();
  changed = true;
}

//===----------------------------------------------------------------------===//
// Logic
//===----------------------------------------------------------------------===//

void RaiseMasks::raise(Operation *op) {
  if (op->getNumResults() != 1 || !op->getResult(0).getType().isInteger(1))
    return;
  OpBuilder builder(op);
  auto cmp = dyn_cast<arith::CmpIOp>(op);
  Value raised = cmp && !cmp.getLhs().getType().isInteger(1) ? raiseComparison(cmp, builder)
                                                             : raiseLogic(op, builder);
  if (raised)
    replace(op, raised);
}

Value RaiseMasks::raiseLogic(Operation *op, OpBuilder &builder) {
  Location loc = op->getLoc();
  if (isa<arith::AndIOp>(op))
    return AndOp::create(builder, loc, op->getOperand(0), op->getOperand(1));
  if (isa<arith::OrIOp>(op))
    return OrOp::create(builder, loc, op->getOperand(0), op->getOperand(1));
  if (auto select = dyn_cast<arith::SelectOp>(op))
    return raiseSelect(select, builder);
  auto cmp = dyn_cast<arith::CmpIOp>(op);
  bool isEqual = cmp && cmp.getPredicate() == arith::CmpIPredicate::eq;
  if (!isa<arith::XOrIOp>(op) && !isEqual &&
      !(cmp && cmp.getPredicate() == arith::CmpIPredicate::ne))
    return {};
  // x xor true, x == false: "not x"; with the other constant: x.
  for (unsigned i : {0u, 1u})
    if (auto constant = getBool(op->getOperand(i))) {
      Value other = op->getOperand(1 - i);
      return *constant != isEqual ? negate(builder, loc, other) : other;
    }
  remarkMissed(loc, "RaiseMasks", "'" + op->getName().getStringRef() + "' of two masks is kept");
  return {};
}

/// A choice between masks with a constant arm.
Value RaiseMasks::raiseSelect(arith::SelectOp op, OpBuilder &builder) {
  Location loc = op.getLoc();
  Value condition = op.getCondition();
  auto ifTrue = getBool(op.getTrueValue()), ifFalse = getBool(op.getFalseValue());
  if (ifTrue && ifFalse && *ifTrue == *ifFalse)
    return op.getTrueValue();
  if (ifTrue && ifFalse)
    return *ifTrue ? condition : negate(builder, loc, condition);
  if (ifTrue) {
    if (*ifTrue)
      return OrOp::create(builder, loc, condition, op.getFalseValue());
    return AndOp::create(builder, loc, negate(builder, loc, condition), op.getFalseValue());
  }
  if (ifFalse) {
    if (!*ifFalse)
      return AndOp::create(builder, loc, condition, op.getTrueValue());
    return OrOp::create(builder, loc, negate(builder, loc, condition), op.getTrueValue());
  }
  remarkMissed(loc, "RaiseMasks", "'arith.select' of two masks is kept");
  return {};
}

//===----------------------------------------------------------------------===//
// Comparisons
//===----------------------------------------------------------------------===//

Value RaiseMasks::raiseComparison(arith::CmpIOp op, OpBuilder &builder) {
  if (!forms.getDependence(op.getResult()).k)
    return {};
  std::string reason;
  auto comparison = solveForKey(op, forms, reason);
  if (!comparison) {
    remarkMissed(op.getLoc(), "RaiseMasks", "comparison is kept: " + reason);
    return {};
  }
  return emitComparison(*comparison, builder, op.getLoc());
}

Value RaiseMasks::emitComparison(const KeyComparison &comparison, OpBuilder &builder,
                                 Location loc) {
  if (comparison.kind == KeyComparison::Below || comparison.kind == KeyComparison::AtLeast)
    return emitHalf(comparison.bound, comparison.kind == KeyComparison::Below, builder, loc);
  Value q = getIndexArgument(builder.getInsertionPoint()->getParentOp(), IndexRole::Q);
  Value k = getIndexArgument(builder.getInsertionPoint()->getParentOp(), IndexRole::K);
  LinearForm next = comparison.bound;
  next.constant += 1;
  Value lo = emitForm(builder, loc, comparison.bound, q, forms);
  Value hi = emitForm(builder, loc, next, q, forms);
  Value keep = InRowsOp::create(builder, loc, k, lo, hi);
  return comparison.kind == KeyComparison::Equal ? keep : negate(builder, loc, keep);
}

/// k < bound if `below`, else k >= bound.
Value RaiseMasks::emitHalf(const LinearForm &bound, bool below, OpBuilder &builder, Location loc) {
  Operation *region = builder.getInsertionPoint()->getParentOp();
  Value q = getIndexArgument(region, IndexRole::Q), k = getIndexArgument(region, IndexRole::K);
  Type i1 = builder.getI1Type();
  if (auto extent = forms.getExtent(bound)) {
    std::optional<bool> always;
    if (extent->lo >= kPositionLimit)
      always = below;
    if (extent->hi <= 1 - kPositionLimit)
      always = !below;
    if (always)
      return arith::ConstantOp::create(builder, loc, builder.getBoolAttr(*always));
  }
  // The tests above leave constants that fit i32.
  auto literal = [&](int64_t value) {
    return builder.getI32IntegerAttr(static_cast<int32_t>(value));
  };
  bool isConstant = bound.terms.empty() && bound.q == 0;
  bool isOffset = bound.terms.empty() && bound.q == 1;
  if (below && isOffset && bound.constant == 1)
    return CausalOp::create(builder, loc, q, k);
  if (below && isOffset && bound.constant > 1)
    return WindowOp::create(builder, loc, i1, q, k, Value(), Value(), IntegerAttr(),
                            literal(bound.constant - 1));
  if (!below && isOffset && bound.constant <= 0)
    return WindowOp::create(builder, loc, i1, q, k, Value(), Value(), literal(-bound.constant),
                            IntegerAttr());
  if (below && isConstant)
    return PrefixOp::create(builder, loc, i1, k, Value(), literal(bound.constant));
  if (below && bound.q == 0 && bound.constant == 0 && bound.terms.size() == 1 &&
      bound.terms[0].second == 1) {
    Value n = bound.terms[0].first;
    if (n.getType().isInteger(32) && !forms.getDependence(n).q)
      return PrefixOp::create(builder, loc, i1, k, n, IntegerAttr());
  }
  Value edge = emitForm(builder, loc, bound, q, forms);
  Value open =
      arith::ConstantIndexOp::create(builder, loc, below ? -kPositionLimit : kPositionLimit);
  return InRowsOp::create(builder, loc, k, below ? open : edge, below ? edge : open);
}
