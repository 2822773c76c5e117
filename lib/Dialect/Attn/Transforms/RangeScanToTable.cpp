// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Range scans and document tests become lookups of one row per query.
//
// Correctness. For a fixed q, mm_prefix keeps the union of the live ranges that hold q. They all
// contain q, so the union is the interval [min start, max end]: the row that the runtime builds
// ("hull"), overlapping ranges included. Documents are contiguous by contract, so q's document is
// an interval as well. A clamp is the window left(L) on top.
//
// Complexity: linear in the number of operations. Refusals: none; operations without such a form
// are left alone.

#include "attn/Dialect/Attn/IR/AttnOps.h"
#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "attn/Dialect/Attn/Transforms/Remarks.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"

namespace attn {
#define GEN_PASS_DEF_RANGESCANTOTABLEPASS
#include "attn/Transforms/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

namespace {

class RangeScanToTable : public attn::impl::RangeScanToTablePassBase<RangeScanToTable> {
public:
  void runOnOperation() override {
    KernelOp kernel = getOperation();
    SmallVector<Operation *> tests;
    kernel.walk([&](Operation *op) {
      if (isa<MmPrefixOp, DocumentOp>(op))
        tests.push_back(op);
    });
    for (Operation *op : tests)
      rewrite(kernel, op);
    if (tests.empty())
      markAllAnalysesPreserved();
  }

private:
  void rewrite(KernelOp kernel, Operation *op) {
    auto table = cast<BlockArgument>(op->getOperand(0));
    unsigned source = table.getArgNumber() - static_cast<unsigned>(kernel.getNumParams());
    BlockArgument rows = kernel.findQueryRanges(source);
    if (!rows)
      rows = kernel.addQueryRanges(source);
    StringRef rowsName = kernel.getArgName(rows.getArgNumber());

    OpBuilder builder(op);
    Location loc = op->getLoc();
    Value q = getIndexArgument(op, IndexRole::Q), k = getIndexArgument(op, IndexRole::K);
    auto row = RowRangeOp::create(builder, loc, rows, q);
    Value keep = InRowsOp::create(builder, loc, k, row.getLo(), row.getHi());
    if (auto mm = dyn_cast<MmPrefixOp>(op))
      if (mm.getClamp() || mm.getClampLiteralAttr()) {
        Value window =
            WindowOp::create(builder, loc, builder.getI1Type(), q, k, mm.getClamp(), Value(),
                             mm.getClampLiteralAttr(), IntegerAttr());
        keep = AndOp::create(builder, loc, keep, window);
      }
    remarkPassed(loc, "RangeScanToTable",
                 op->getName().getStringRef() + " reads one row of '" + rowsName +
                     "', built from '" + kernel.getArgName(table.getArgNumber()) + "'");
    op->getResult(0).replaceAllUsesWith(keep);
    op->erase();
  }
};

} // namespace
