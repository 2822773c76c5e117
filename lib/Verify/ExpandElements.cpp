// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The element-wise lowering of mask operations, within the attn dialect: the same interface as the
// code generators', with reads of tables emitted as the operations of the dialect again.
#include "attn/Verify/Passes.h"

#include "attn/Dialect/Attn/IR/ElementContext.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace attn {
#define GEN_PASS_DEF_TVEXPANDELEMENTSPASS
#include "verify/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

namespace {

class AttnContext : public ElementContext {
public:
  explicit AttnContext(Value b, Value q) : b(b), q(q) {}

  Value loadTable(OpBuilder &builder, Location loc, Value table, ValueRange indices,
                  Type element) override {
    SmallVector<Value> mapped;
    for (Value index : indices)
      mapped.push_back(mapping.lookupOrDefault(index));
    return LoadOp::create(builder, loc, element, table, mapped);
  }
  Value numRanges(OpBuilder &builder, Location loc, Value table) override {
    return NumRangesOp::create(builder, loc, table, b);
  }
  std::pair<Value, Value> rangeBounds(OpBuilder &builder, Location loc, Value table,
                                      Value index) override {
    auto range = RangeOp::create(builder, loc, table, b, index);
    return {range.getStart(), range.getEnd()};
  }
  /// Inclusive, with (-1, -1) for the canonical empty interval.
  std::pair<Value, Value> rowRange(OpBuilder &builder, Location loc, Value table) override {
    auto row = RowRangeOp::create(builder, loc, table, q);
    auto constant = [&](int64_t value) {
      return arith::ConstantIndexOp::create(builder, loc, value);
    };
    Value empty =
        arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sge, row.getLo(), row.getHi());
    Value last = arith::SubIOp::create(builder, loc, row.getHi(), constant(1));
    return {arith::SelectOp::create(builder, loc, empty, constant(-1), row.getLo()),
            arith::SelectOp::create(builder, loc, empty, constant(-1), last)};
  }
  std::pair<Value, Value> documentId(OpBuilder &builder, Location loc, Value table,
                                     Value position) override {
    refused = true;
    return {arith::ConstantOp::create(builder, loc, builder.getBoolAttr(false)),
            arith::ConstantIntOp::create(builder, loc, 0, 32)};
  }

  bool refused = false;

private:
  Value b, q;
};

class TvExpandElements : public attn::impl::TvExpandElementsPassBase<TvExpandElements> {
public:
  void runOnOperation() override {
    KernelOp kernel = getOperation();
    MaskOp mask = kernel.getMask();
    if (!mask)
      return;
    Operation *yield = mask.getBody().front().getTerminator();
    AttnContext context(getIndexArgument(yield, IndexRole::B),
                        getIndexArgument(yield, IndexRole::Q));
    SmallVector<Operation *> operations;
    mask.walk([&](ElementOpInterface op) { operations.push_back(op); });
    for (Operation *op : operations) {
      for (Value operand : op->getOperands())
        context.getMapping().map(operand, operand);
      OpBuilder builder(op);
      SmallVector<Value> results = cast<ElementOpInterface>(op).lowerElement(builder, context);
      if (context.refused) {
        op->emitOpError("reads what no operation of a region reads");
        return signalPassFailure();
      }
      op->replaceAllUsesWith(results);
      op->erase();
    }
  }
};

} // namespace
