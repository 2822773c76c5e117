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
    SmallVector<RowLookupOpInterface> tests;
    kernel.walk([&](RowLookupOpInterface op) { tests.push_back(op); });
    for (RowLookupOpInterface op : tests)
      rewrite(kernel, op);
    if (tests.empty())
      markAllAnalysesPreserved();
  }

private:
  void rewrite(KernelOp kernel, RowLookupOpInterface op) {
    BlockArgument table = op.getSourceTable();
    unsigned source = table.getArgNumber() - static_cast<unsigned>(kernel.getNumParams());
    BlockArgument rows = kernel.findQueryRanges(source);
    if (!rows)
      rows = kernel.addQueryRanges(source);
    OpBuilder builder(op);
    Value keep = op.emitRowLookup(builder, rows);
    remarkPassed(op.getLoc(), "RangeScanToTable",
                 op->getName().getStringRef() + " reads one row of '" +
                     kernel.getArgName(rows.getArgNumber()) + "', built from '" +
                     kernel.getArgName(table.getArgNumber()) + "'");
    op->getResult(0).replaceAllUsesWith(keep);
    op->erase();
  }
};

} // namespace
