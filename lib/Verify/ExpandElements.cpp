// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The element-wise lowering of mask operations, within the attn dialect: the same interface as the
// code generators', with reads of tables emitted as the operations of the dialect again. None of
// those reads a document's id; plain tables do, of which the check is told what they stand for.
#include "attn/Verify/Passes.h"

#include "attn/Dialect/Attn/IR/ElementContext.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

namespace attn {
#define GEN_PASS_DEF_TVEXPANDELEMENTSPASS
#include "verify/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

namespace {

class AttnContext : public ElementContext {
public:
  AttnContext(KernelOp kernel, Value b, Value q) : kernel(kernel), b(b), q(q) {}

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
    auto load = [&](IntegerType type) {
      return LoadOp::create(builder, loc, type, getView(table, type), ValueRange{b, position});
    };
    IntegerType flag = builder.getI8Type();
    Value zero = arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(flag, 0));
    Value inside = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, load(flag), zero);
    return {inside, load(builder.getI32Type())};
  }

private:
  /// The plain table of `element` that shows a documents table; it is added at its first use.
  Value getView(Value documents, IntegerType element) {
    Value &view = views[{documents, element}];
    if (view)
      return view;
    Builder builder(kernel.getContext());
    SmallVector<StringRef> names;
    for (auto name : kernel.getArgNames().getAsValueRange<StringAttr>())
      names.push_back(name);
    StringRef source = names[cast<BlockArgument>(documents).getArgNumber()];
    std::string name = source.str() + (element.getWidth() == 8 ? "_has" : "_id");
    while (llvm::is_contained(names, StringRef(name)))
      name += '_';
    names.push_back(name);
    SmallVector<int64_t> sources(kernel.getTableSources());
    sources.push_back(-1);
    const core::TableDim dims[] = {core::TableDim::B, core::TableDim::K};
    view = kernel.getBody().addArgument(TableType::get(kernel.getContext(), dims, element),
                                        documents.getLoc());
    kernel.setArgNamesAttr(builder.getStrArrayAttr(names));
    kernel.setTableSourcesAttr(builder.getDenseI64ArrayAttr(sources));
    NamedAttrList known(kernel->getAttrOfType<DictionaryAttr>(proofs::kDocumentViews));
    known.set(name, builder.getStringAttr(source));
    kernel->setAttr(proofs::kDocumentViews, known.getDictionary(kernel.getContext()));
    return view;
  }

  KernelOp kernel;
  Value b, q;
  llvm::DenseMap<std::pair<Value, Type>, Value> views;
};

class TvExpandElements : public attn::impl::TvExpandElementsPassBase<TvExpandElements> {
public:
  void runOnOperation() override {
    KernelOp kernel = getOperation();
    MaskOp mask = kernel.getMask();
    if (!mask)
      return;
    Operation *yield = mask.getBody().front().getTerminator();
    AttnContext context(kernel, getIndexArgument(yield, IndexRole::B),
                        getIndexArgument(yield, IndexRole::Q));
    SmallVector<Operation *> operations;
    mask.walk([&](ElementOpInterface op) { operations.push_back(op); });
    for (Operation *op : operations) {
      for (Value operand : op->getOperands())
        context.getMapping().map(operand, operand);
      OpBuilder builder(op);
      SmallVector<Value> results = cast<ElementOpInterface>(op).lowerElement(builder, context);
      op->replaceAllUsesWith(results);
      op->erase();
    }
  }
};

} // namespace
