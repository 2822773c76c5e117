// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A mask whose rows are at most two intervals becomes attn.in_rows of row-invariant bounds.
//
// The analysis (RowSet.h) decides first, on symbolic bounds and without touching IR; its facts, not
// patterns of operations, make hulls exact. Two runs is the limit of the code generators, not of
// the analysis.
//
// Complexity: linear in operations times the (at most 8 x 8) pairs of runs. Refusals, with a
// remark: a part that is no interval in k, more than two runs.

#include "attn/Dialect/Attn/IR/AttnOps.h"
#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "attn/Dialect/Attn/Transforms/Remarks.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"

namespace attn {
#define GEN_PASS_DEF_FUSEINTERVALSPASS
#include "attn/Transforms/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

/// Runs per row that the code generators' fast path takes.
static constexpr size_t kMaxFusedRuns = 2;

/// True if `keep` has the fused form already.
static bool isFused(Value keep) {
  if (keep.getDefiningOp<InRowsOp>())
    return true;
  auto both = keep.getDefiningOp<OrOp>();
  return both && both.getLhs().getDefiningOp<InRowsOp>() && both.getRhs().getDefiningOp<InRowsOp>();
}

/// Erases operations of `block` that nothing uses any more, last first.
static void eraseDeadOps(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op))
      op.erase();
}

namespace {

class FuseIntervals : public attn::impl::FuseIntervalsPassBase<FuseIntervals> {
public:
  void runOnOperation() override {
    MaskOp mask = getOperation().getMask();
    if (!mask)
      return markAllAnalysesPreserved();
    auto yield = cast<YieldOp>(mask.getBody().front().getTerminator());
    Value keep = yield.getOperand(0);
    if (isFused(keep))
      return markAllAnalysesPreserved();

    RowSet rows = RowSetAnalysis().get(keep);
    size_t runs = rows.getRuns().size();
    if (!rows.isKnown()) {
      Operation *cause = rows.getCause() ? rows.getCause().getDefiningOp() : nullptr;
      if (cause)
        remarkMissed(cause->getLoc(), "FuseIntervals",
                     "mask is not fused: '" + cause->getName().getStringRef() +
                         "' is no interval in k");
      else
        remarkMissed(mask.getLoc(), "FuseIntervals",
                     "mask is not fused: its rows need too many intervals");
      return markAllAnalysesPreserved();
    }
    if (runs > kMaxFusedRuns) {
      remarkMissed(mask.getLoc(), "FuseIntervals",
                   "mask is not fused: its rows are " + Twine(runs) + " intervals, the limit is " +
                       Twine(kMaxFusedRuns));
      return markAllAnalysesPreserved();
    }
    rewrite(mask, yield, rows);
    remarkPassed(mask.getLoc(), "FuseIntervals",
                 "mask is " + Twine(runs) + (runs == 1 ? " interval" : " intervals") + " a row");
  }

private:
  void rewrite(MaskOp mask, YieldOp yield, const RowSet &rows) {
    OpBuilder builder(yield);
    Location loc = yield.getLoc();
    Value q = getIndexArgument(yield, IndexRole::Q), k = getIndexArgument(yield, IndexRole::K);
    IRMapping mapping;
    BoundMaterializer bounds(builder, loc, q, mapping, /*cloneSlices=*/false);
    Value keep;
    for (const SymbolicRun &run : rows.getRuns()) {
      Value lo = bounds.emit(run.lo), hi = bounds.emit(run.hi);
      Value in = InRowsOp::create(builder, loc, k, lo, hi);
      keep = keep ? OrOp::create(builder, loc, keep, in).getResult() : in;
    }
    if (!keep)
      keep = arith::ConstantOp::create(builder, loc, builder.getBoolAttr(false));
    yield.setOperand(0, keep);
    eraseDeadOps(mask.getBody().front());
  }
};

} // namespace
