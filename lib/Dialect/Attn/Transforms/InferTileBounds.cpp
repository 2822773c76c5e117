// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Adds attn.bounds: the keys a row visits.
//
// One exact run gives exact bounds. Otherwise the bound mode of the analysis counts what it does
// not know as everything, so the hull holds every kept key.
//
// Complexity as attn-fuse-intervals. Refusals, with a remark: a mask of which nothing is known.

#include "attn/Dialect/Attn/IR/AttnOps.h"
#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "attn/Dialect/Attn/Transforms/Remarks.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"

namespace attn {
#define GEN_PASS_DEF_INFERTILEBOUNDSPASS
#include "attn/Transforms/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

namespace {

class InferTileBounds : public attn::impl::InferTileBoundsPassBase<InferTileBounds> {
public:
  void runOnOperation() override {
    KernelOp kernel = getOperation();
    MaskOp mask = kernel.getMask();
    if (!mask || kernel.getBounds())
      return markAllAnalysesPreserved();
    Value keep = mask.getBody().front().getTerminator()->getOperand(0);
    RowSet rows = RowSetAnalysis().get(keep);
    bool exact = rows.isKnown() && rows.getRuns().size() <= 1;
    SymbolicRun run = exact ? rows.hull() : RowSetAnalysis(/*bound=*/true).get(keep).hull();
    if (run.isAll() && !exact) {
      remarkMissed(mask.getLoc(), "InferTileBounds", "no bound of the visited keys is known");
      return markAllAnalysesPreserved();
    }
    addBounds(mask, run, exact);
    remarkPassed(mask.getLoc(), "InferTileBounds",
                 exact ? "rows visit exactly the kept keys"
                       : "rows visit the hull of the kept keys");
  }

private:
  void addBounds(MaskOp mask, const SymbolicRun &run, bool exact) {
    OpBuilder builder(mask.getContext());
    builder.setInsertionPointAfter(mask);
    Location loc = mask.getLoc();
    auto bounds = BoundsOp::create(builder, loc, exact ? builder.getUnitAttr() : UnitAttr());
    Block &block = bounds.getBody().emplaceBlock();
    Block &source = mask.getBody().front();
    IRMapping mapping;
    for (BlockArgument argument : source.getArguments())
      if (getIndexRole(argument) != IndexRole::K)
        mapping.map(argument, block.addArgument(argument.getType(), argument.getLoc()));
    builder.setInsertionPointToEnd(&block);
    Value q = mapping.lookup(getIndexArgument(source.getTerminator(), IndexRole::Q));
    BoundMaterializer materializer(builder, loc, q, mapping, /*cloneSlices=*/true);
    Value lo = materializer.emit(run.lo), hi = materializer.emit(run.hi);
    YieldOp::create(builder, loc, ValueRange{lo, hi});
  }
};

} // namespace
