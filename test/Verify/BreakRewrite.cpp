// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// attn-opt with one pass more: test-attn-break-rewrite makes a rewrite that looks right and is not.
// Each kind is a mistake that was made or nearly made; the proofs have to refute all of them.

#include "attn/Compiler/Compiler.h"
#include "attn/Core/IndexSpaces.h"
#include "attn/Dialect/Attn/IR/AttnOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace attn;
using Predicate = arith::CmpIPredicate;

namespace {

/// The mask region of a kernel, and shorthand for what the kinds emit at its end.
struct Region {
  explicit Region(KernelOp kernel)
      : kernel(kernel), block(kernel.getMask().getBody().front()),
        yield(cast<YieldOp>(block.getTerminator())), builder(yield), loc(yield.getLoc()),
        b(block.getArgument(0)), q(block.getArgument(2)), k(block.getArgument(3)) {}

  template <class Op>
  Op find() {
    for (Operation &op : block)
      if (auto found = dyn_cast<Op>(op))
        return found;
    return nullptr;
  }
  Value constant(int64_t value) { return arith::ConstantIndexOp::create(builder, loc, value); }
  Value i32(Value index) {
    return arith::IndexCastOp::create(builder, loc, builder.getI32Type(), index);
  }
  Value index(Value i32) {
    return arith::IndexCastOp::create(builder, loc, builder.getIndexType(), i32);
  }
  Value cmp(Predicate p, Value a, Value b) { return arith::CmpIOp::create(builder, loc, p, a, b); }
  Value add(Value a, Value b) { return arith::AddIOp::create(builder, loc, a, b); }
  Value sub(Value a, Value b) { return arith::SubIOp::create(builder, loc, a, b); }
  Value min(Value a, Value b) { return arith::MinSIOp::create(builder, loc, a, b); }
  Value max(Value a, Value b) { return arith::MaxSIOp::create(builder, loc, a, b); }
  Value select(Value c, Value a, Value b) { return arith::SelectOp::create(builder, loc, c, a, b); }
  Value both(Value a, Value b) { return AndOp::create(builder, loc, a, b); }
  Value inRows(Value lo, Value hi) { return InRowsOp::create(builder, loc, k, lo, hi); }
  void replaceMask(Value keep) { yield.setOperand(0, keep); }
  Value mask() { return yield.getOperand(0); }

  KernelOp kernel;
  Block &block;
  YieldOp yield;
  OpBuilder builder;
  Location loc;
  Value b, q, k;
};

using Kind = void (*)(Region &);

/// [min(q - left, lo), max(q + 1, hi)) with the row's (-1, -1) taken as it is.
void bareMarker(Region &r) {
  auto row = r.find<RowRangeOp>();
  Value left = r.index(r.find<WindowOp>().getLeft()), one = r.constant(1);
  Value empty = r.cmp(Predicate::sge, row.getLo(), row.getHi());
  Value lo = r.select(empty, r.constant(-1), row.getLo());
  Value hi = r.select(empty, r.constant(0), row.getHi());
  r.replaceMask(r.inRows(r.min(r.sub(r.q, left), lo), r.max(r.add(r.q, one), hi)));
}

/// The first range that holds q, where several may.
void firstMatch(Region &r) {
  Value ranges = r.find<MmPrefixOp>().getRanges();
  Value zero = r.constant(0), one = r.constant(1);
  auto count = NumRangesOp::create(r.builder, r.loc, ranges, r.b);
  auto loop = scf::ForOp::create(
      r.builder, r.loc, zero, count, one, ValueRange{zero, zero},
      [&](OpBuilder &builder, Location loc, Value i, ValueRange carried) {
        auto range = RangeOp::create(builder, loc, ranges, r.b, i);
        auto cmp = [&](Predicate p, Value x, Value y) -> Value {
          return arith::CmpIOp::create(builder, loc, p, x, y);
        };
        Value none = cmp(Predicate::sge, carried[0], carried[1]);
        Value from = cmp(Predicate::sle, range.getStart(), r.q);
        Value to = cmp(Predicate::sle, r.q, range.getEnd());
        Value holds = arith::AndIOp::create(builder, loc, from, to);
        Value take = arith::AndIOp::create(builder, loc, none, holds);
        Value end = arith::AddIOp::create(builder, loc, range.getEnd(), one);
        Value lo = arith::SelectOp::create(builder, loc, take, range.getStart(), carried[0]);
        Value hi = arith::SelectOp::create(builder, loc, take, end, carried[1]);
        scf::YieldOp::create(builder, loc, ValueRange{lo, hi});
      });
  r.replaceMask(r.inRows(loop.getResult(0), loop.getResult(1)));
}

/// Hull of a prefix and a window that need not touch.
void prefixHull(Region &r) {
  Value n = r.index(r.find<PrefixOp>().getN());
  r.replaceMask(r.inRows(r.constant(0), r.max(n, r.add(r.q, r.constant(1)))));
}

/// k <= hi as k < hi + 1, which wraps at the largest hi.
void endPlusOne(Region &r) {
  auto compare = r.find<arith::CmpIOp>();
  Value one = arith::ConstantIntOp::create(r.builder, r.loc, 1, 32);
  r.replaceMask(r.cmp(Predicate::slt, compare.getLhs(), r.add(compare.getRhs(), one)));
}

/// q + right in 32 bits.
void queryPlusRight(Region &r) {
  Value right = r.find<WindowOp>().getRight();
  r.replaceMask(r.cmp(Predicate::sle, r.i32(r.k), r.add(r.i32(r.q), right)));
}

/// The range has to hold k twice, and q never.
void keyForQuery(Region &r) {
  Value ranges = r.find<MmPrefixOp>().getRanges();
  Value zero = r.constant(0), one = r.constant(1);
  Value no = arith::ConstantOp::create(r.builder, r.loc, r.builder.getBoolAttr(false));
  auto count = NumRangesOp::create(r.builder, r.loc, ranges, r.b);
  auto loop = scf::ForOp::create(
      r.builder, r.loc, zero, count, one, ValueRange{no},
      [&](OpBuilder &builder, Location loc, Value i, ValueRange carried) {
        auto range = RangeOp::create(builder, loc, ranges, r.b, i);
        Value from = arith::CmpIOp::create(builder, loc, Predicate::sle, range.getStart(), r.k);
        Value to = arith::CmpIOp::create(builder, loc, Predicate::sle, r.k, range.getEnd());
        Value holds = arith::AndIOp::create(builder, loc, from, to);
        Value any = arith::OrIOp::create(builder, loc, carried[0], holds);
        scf::YieldOp::create(builder, loc, any);
      });
  r.replaceMask(loop.getResult(0));
}

/// The row of the packed tensor instead of the position.
void tokenForQuery(Region &r) {
  r.replaceMask(r.cmp(Predicate::sle, r.k, r.index(r.find<LoadOp>())));
}

/// The clamp cuts the future instead of the past.
void clampOnFuture(Region &r) {
  auto ranges = r.find<MmPrefixOp>();
  Value plain = MmPrefixOp::create(r.builder, r.loc, r.builder.getI1Type(), ranges.getRanges(), r.b,
                                   r.q, r.k, Value(), IntegerAttr());
  Value window = WindowOp::create(r.builder, r.loc, r.builder.getI1Type(), r.q, r.k, Value(),
                                  ranges.getClamp(), IntegerAttr(), IntegerAttr());
  r.replaceMask(r.both(plain, window));
}

void droppedConjunct(Region &r) { r.replaceMask(r.find<AndOp>().getLhs()); }

void swappedBound(Region &r) {
  auto rows = r.find<InRowsOp>();
  r.replaceMask(r.inRows(rows.getHi(), rows.getLo()));
}

/// Bounds that count a row without a range as one key, and call themselves exact.
void fullEmptyRows(Region &r) {
  auto row = r.find<RowRangeOp>();
  OpBuilder builder(r.kernel.getContext());
  builder.setInsertionPointAfter(r.kernel.getMask());
  auto bounds = BoundsOp::create(builder, r.loc, builder.getUnitAttr());
  Block &block = bounds.getBody().emplaceBlock();
  for (int i = 0; i < 3; ++i)
    block.addArgument(builder.getIndexType(), r.loc);
  builder.setInsertionPointToEnd(&block);
  Value q = block.getArgument(2);
  auto own = RowRangeOp::create(builder, r.loc, row.getRows(), q);
  Value one = arith::ConstantIndexOp::create(builder, r.loc, 1);
  Value next = arith::AddIOp::create(builder, r.loc, q, one);
  Value empty = arith::CmpIOp::create(builder, r.loc, Predicate::sge, own.getLo(), own.getHi());
  Value lo = arith::SelectOp::create(builder, r.loc, empty, q, own.getLo());
  Value hi = arith::SelectOp::create(builder, r.loc, empty, next, own.getHi());
  YieldOp::create(builder, r.loc, ValueRange{lo, hi});
}

/// Equal ids as an interval, though nobody promised that equal ids lie together.
void documentHole(Region &r) {
  Value table = r.find<LoadOp>().getTable();
  Type i32 = r.builder.getI32Type();
  Value one = r.constant(1);
  Value from = r.min(r.q, r.k), to = r.add(r.max(r.q, r.k), one);
  Value yes = arith::ConstantOp::create(r.builder, r.loc, r.builder.getBoolAttr(true));
  Value own = LoadOp::create(r.builder, r.loc, i32, table, ValueRange{r.b, r.q});
  auto loop =
      scf::ForOp::create(r.builder, r.loc, from, to, one, ValueRange{yes},
                         [&](OpBuilder &builder, Location loc, Value i, ValueRange carried) {
                           Value id = LoadOp::create(builder, loc, i32, table, ValueRange{r.b, i});
                           Value same = arith::CmpIOp::create(builder, loc, Predicate::eq, id, own);
                           Value all = arith::AndIOp::create(builder, loc, carried[0], same);
                           scf::YieldOp::create(builder, loc, all);
                         });
  r.replaceMask(loop.getResult(0));
}

/// A count read as a radius.
void countAsRadius(Region &r) {
  auto sliding = r.find<SlidingOp>();
  r.replaceMask(WindowOp::create(r.builder, r.loc, r.builder.getI1Type(), r.q, r.k,
                                 sliding.getCount(), Value(), IntegerAttr(), IntegerAttr()));
}

/// Lower end of an intersection taken from the wrong side.
void hullForIntersection(Region &r) {
  SmallVector<InRowsOp> rows(r.block.getOps<InRowsOp>());
  r.replaceMask(
      r.inRows(r.min(rows[0].getLo(), rows[1].getLo()), r.min(rows[0].getHi(), rows[1].getHi())));
}

const llvm::StringMap<Kind> &kinds() {
  static const llvm::StringMap<Kind> map = {
      {"bare-marker", bareMarker},           {"first-match", firstMatch},
      {"prefix-hull", prefixHull},           {"end-plus-one", endPlusOne},
      {"query-plus-right", queryPlusRight},  {"key-for-query", keyForQuery},
      {"token-for-query", tokenForQuery},    {"clamp-on-future", clampOnFuture},
      {"dropped-conjunct", droppedConjunct}, {"swapped-bound", swappedBound},
      {"full-empty-rows", fullEmptyRows},    {"document-hole", documentHole},
      {"count-as-radius", countAsRadius},    {"hull-for-intersection", hullForIntersection},
  };
  return map;
}

class BreakRewrite : public PassWrapper<BreakRewrite, OperationPass<KernelOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(BreakRewrite)

  BreakRewrite() = default;
  BreakRewrite(const BreakRewrite &other) : PassWrapper(other) {}

  StringRef getArgument() const override { return "test-attn-break-rewrite"; }
  StringRef getDescription() const override { return "Make one wrong rewrite"; }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<arith::ArithDialect, scf::SCFDialect>();
  }

  void runOnOperation() override {
    auto kind = kinds().find(what);
    if (kind == kinds().end()) {
      getOperation().emitError() << "there is no kind '" << what << "'";
      return signalPassFailure();
    }
    Region region(getOperation());
    kind->second(region);
  }

private:
  Option<std::string> what{*this, "kind", llvm::cl::desc("Which mistake")};
};

} // namespace

int main(int argc, char **argv) {
  DialectRegistry registry;
  compiler::registerAll(registry);
  compiler::registerAllPasses();
  PassRegistration<BreakRewrite>();
  return asMainReturnCode(MlirOptMain(argc, argv, "attn-opt with wrong rewrites\n", registry));
}
