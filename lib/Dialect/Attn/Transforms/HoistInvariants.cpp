// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Moves pure operations of mask and score regions to the outermost level that their dependence set
// allows.
//
// For each level from the outermost (kernel, request, head, row, column) one attn.per takes the
// operations of a region at that level, in order; a value that inner levels still use becomes a
// result. Constants stay where they are used: they cost nothing and would only become results. So
// do mask operations that depend on no query: two comparisons, whose form the tile bounds need.
// Operations that depend on q and k, or on the score, stay; so do mask operations that depend on k,
// since the bounds of tiles are read off them.
//
// Correctness: regions are pure and tables constant during a launch, so a value is the same
// wherever its indices are known. Complexity: linear in operations.

#include "attn/Dialect/Attn/IR/AttnOps.h"
#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "attn/Dialect/Attn/Transforms/Remarks.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"

#include "llvm/ADT/SetVector.h"

namespace attn {
#define GEN_PASS_DEF_HOISTINVARIANTSPASS
#include "attn/Transforms/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

namespace {

class HoistInvariants : public attn::impl::HoistInvariantsPassBase<HoistInvariants> {
public:
  void runOnOperation() override {
    KernelOp kernel = getOperation();
    bool changed = false;
    if (MaskOp mask = kernel.getMask())
      changed |= hoist(mask);
    if (ScoreOp score = kernel.getScore())
      changed |= hoist(score);
    if (!changed)
      markAllAnalysesPreserved();
  }

private:
  using OpList = SmallVector<Operation *>;

  bool hoist(Operation *region) {
    Block &block = region->getRegion(0).front();
    OpList kernelOps;
    OpList levelOps[4];
    llvm::SmallPtrSet<Operation *, 16> staying;
    DependenceAnalysis analysis;
    for (Operation &op : block.without_terminator()) {
      if (op.hasTrait<OpTrait::ConstantLike>())
        continue;
      DependenceSet dependence = analysis.get(op.getResult(0));
      if ((dependence.k && isa<MaskOpInterface>(op)) || usesAny(&op, staying)) {
        staying.insert(&op);
        continue;
      }
      LevelOrKernel level = getLevel(dependence);
      if (level.kernel)
        kernelOps.push_back(&op);
      else if (level.level && !(level.level == Level::Column && isa<MaskOpInterface>(op)))
        levelOps[static_cast<unsigned>(*level.level)].push_back(&op);
    }
    if (!kernelOps.empty())
      moveToKernel(region, kernelOps);
    bool changed = !kernelOps.empty();
    for (Level level : {Level::Request, Level::Head, Level::Row, Level::Column}) {
      OpList &ops = levelOps[static_cast<unsigned>(level)];
      if (ops.empty())
        continue;
      moveToLevel(region, level, ops);
      changed = true;
    }
    // Constants of which only the clones are used.
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (changed && op.hasTrait<OpTrait::ConstantLike>() && op.use_empty())
        op.erase();
    return changed;
  }

  /// True if `op`, or what is nested in it, uses a result of `ops`.
  static bool usesAny(Operation *op, const llvm::SmallPtrSetImpl<Operation *> &ops) {
    WalkResult walk = op->walk([&](Operation *nested) {
      for (Value operand : nested->getOperands())
        if (Operation *source = operand.getDefiningOp(); source && ops.contains(source))
          return WalkResult::interrupt();
      return WalkResult::advance();
    });
    return walk.wasInterrupted();
  }

  static void report(Operation *region, size_t count, StringRef level) {
    remarkPassed(region->getLoc(), "HoistInvariants",
                 Twine(count) + (count == 1 ? " operation" : " operations") + " of '" +
                     region->getName().getStringRef() + "' computed once per " + level);
  }

  /// Clones the constants that `ops` use from inside the region in front of their new place.
  static void cloneConstants(ArrayRef<Operation *> ops, OpBuilder &builder) {
    llvm::DenseMap<Value, Value> clones;
    for (Operation *op : ops)
      op->walk([&](Operation *nested) {
        for (OpOperand &operand : nested->getOpOperands()) {
          Operation *constant = operand.get().getDefiningOp();
          if (!constant || !constant->hasTrait<OpTrait::ConstantLike>() ||
              op->isAncestor(constant) || isa<KernelOp>(constant->getParentOp()))
            continue;
          Value &clone = clones[operand.get()];
          if (!clone)
            clone = builder.clone(*constant)->getResult(0);
          operand.set(clone);
        }
      });
  }

  static void moveToKernel(Operation *region, ArrayRef<Operation *> ops) {
    OpBuilder builder(region);
    cloneConstants(ops, builder);
    for (Operation *op : ops)
      op->moveBefore(region);
    report(region, ops.size(), "kernel");
  }

  static void moveToLevel(Operation *region, Level level, ArrayRef<Operation *> ops) {
    OpBuilder builder(region);
    Location loc = ops.front()->getLoc();
    llvm::SmallPtrSet<Operation *, 16> moved(ops.begin(), ops.end());
    SmallVector<Value> results;
    SmallVector<Type> types;
    for (Operation *op : ops)
      for (Value result : op->getResults())
        if (llvm::any_of(result.getUsers(),
                         [&](Operation *user) { return !isInside(user, moved); })) {
          results.push_back(result);
          types.push_back(result.getType());
        }
    auto per = PerOp::create(builder, loc, types, level);
    Block &block = per.getBody().emplaceBlock();
    OpBuilder inner = OpBuilder::atBlockEnd(&block);
    SmallVector<std::pair<Value, Value>> arguments;
    for (IndexRole role : getLevelRoles(level)) {
      Value argument = getIndexArgument(region->getRegion(0).front().getTerminator(), role);
      arguments.push_back({argument, block.addArgument(argument.getType(), loc)});
    }
    cloneConstants(ops, inner);
    for (Operation *op : ops)
      op->moveBefore(&block, block.end());
    for (auto [outer, argument] : arguments)
      outer.replaceUsesWithIf(argument,
                              [&](OpOperand &use) { return per->isAncestor(use.getOwner()); });
    YieldOp::create(inner, loc, results);
    for (auto [value, result] : llvm::zip(results, per.getResults()))
      value.replaceUsesWithIf(result,
                              [&](OpOperand &use) { return !per->isAncestor(use.getOwner()); });
    report(region, ops.size(), stringifyLevel(level));
  }

  /// True if `op` is one of `ops` or inside one.
  static bool isInside(Operation *op, const llvm::SmallPtrSetImpl<Operation *> &ops) {
    for (; op && !isa<KernelOp>(op); op = op->getParentOp())
      if (ops.contains(op))
        return true;
    return false;
  }
};

} // namespace
