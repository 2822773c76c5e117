// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Order of operations by first use. In each block, from inner to outer: the roots are its
// terminator and what has effects; an operation stands behind those whose results it uses, these in
// the order of its operands and then of the uses in its regions. Linear in the size of a kernel for
// each level that regions nest.

#include "CanonicalOrder.h"

#include "attn/Dialect/Attn/IR/AttnOps.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;
using namespace attn;

namespace {

/// Orders the operations of one block.
class BlockOrder {
public:
  explicit BlockOrder(Block &block) : block(block) {}

  void run() {
    for (Operation *root : findRoots())
      place(root);
    for (Operation *op : order)
      op->moveBefore(&block, block.end());
    // Users of a dead operation are dead and stand behind it.
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (!placed.contains(&op))
        op.erase();
  }

private:
  /// The region operations of a kernel by kind, as they may be written in any order.
  static unsigned rank(Operation *op) {
    return isa<MaskOp>(op) ? 0 : isa<ScoreOp>(op) ? 1 : isa<BoundsOp>(op) ? 2 : 3;
  }

  SmallVector<Operation *> findRoots() {
    SmallVector<Operation *> roots;
    for (Operation &op : block)
      if (isa<MaskOp, ScoreOp, BoundsOp>(op) || op.hasTrait<OpTrait::IsTerminator>() ||
          !isMemoryEffectFree(&op))
        roots.push_back(&op);
    llvm::stable_sort(roots, [](Operation *a, Operation *b) { return rank(a) < rank(b); });
    return roots;
  }

  /// Operations of this block that `op` and its regions use, by first use.
  SmallVector<Operation *> findNeeded(Operation *op) {
    SmallVector<Operation *> needed;
    // Operations before their regions, as they are printed.
    op->walk<WalkOrder::PreOrder>([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (Operation *definition = operand.getDefiningOp();
            definition && definition->getBlock() == &block)
          needed.push_back(definition);
    });
    return needed;
  }

  /// Appends `root` behind what it needs. Without recursion: chains may be long.
  void place(Operation *root) {
    struct Visit {
      Operation *op;
      SmallVector<Operation *> needed;
      size_t next = 0;
    };
    if (!placed.insert(root).second)
      return;
    SmallVector<Visit> stack;
    stack.push_back({root, findNeeded(root)});
    while (!stack.empty()) {
      Visit &top = stack.back();
      if (top.next == top.needed.size()) {
        order.push_back(top.op);
        stack.pop_back();
        continue;
      }
      Operation *op = top.needed[top.next++];
      if (placed.insert(op).second)
        stack.push_back({op, findNeeded(op)});
    }
  }

  Block &block;
  SmallVector<Operation *> order;
  DenseSet<Operation *> placed;
};

} // namespace

void compiler::putInCanonicalOrder(ModuleOp module) {
  for (KernelOp kernel : module.getOps<KernelOp>())
    // Inner blocks first: their order decides that of the uses in them.
    kernel->walk([](Block *block) {
      if (block->getParent()->hasOneBlock())
        BlockOrder(*block).run();
    });
}
