// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Simplifies the boolean algebra of a mask.
//
// The mask becomes an expression (MaskAlgebra.h), whose rules are exact for every row and key, and
// comes back as operations. A part that is unchanged keeps the operations it has. Parts with other
// uses stay alive whatever happens, so they count as kept; with this the number of operations never
// grows.
//
// Complexity: linear in the operands of a chain, each of which meets up to 64 others; the rules
// that are kept by count are quadratic in the mask and are not tried past kMaxRestructured nodes.
// Refusals, with a remark: such masks, and common operands whose use would add operations.

#include "MaskAlgebra.h"
#include "attn/Dialect/Attn/IR/AttnOps.h"
#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "attn/Dialect/Attn/Transforms/Remarks.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"

namespace attn {
#define GEN_PASS_DEF_SIMPLIFYMASKPASS
#include "attn/Transforms/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;
using Id = MaskAlgebra::Id;
using Kind = MaskAlgebra::Kind;

static constexpr size_t kMaxRestructured = 256;

static MaskSide sideOf(Value value, IntegerAttr literal) {
  MaskSide side;
  side.value = value;
  if (literal)
    side.literal = literal.getInt();
  return side;
}

/// What the algebra knows of an i1 value that is no and, or, not.
static MaskLeaf leafOf(Value value) {
  MaskLeaf leaf;
  Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<CausalOp>(op)) {
    leaf.kind = MaskLeaf::Band;
    leaf.right.literal = 0;
  } else if (auto window = dyn_cast_or_null<WindowOp>(op)) {
    leaf.kind = MaskLeaf::Band;
    leaf.left = sideOf(window.getLeft(), window.getLeftLiteralAttr());
    leaf.right = sideOf(window.getRight(), window.getRightLiteralAttr());
  } else if (auto sliding = dyn_cast_or_null<SlidingOp>(op);
             sliding && sliding.getCountLiteralAttr()) {
    leaf.kind = MaskLeaf::Band;
    leaf.left.literal = sliding.getCountLiteralAttr().getInt() - 1;
  } else if (auto mm = dyn_cast_or_null<MmPrefixOp>(op)) {
    leaf.kind = MaskLeaf::MmPrefix;
    leaf.ranges = mm.getRanges();
    leaf.left = sideOf(mm.getClamp(), mm.getClampLiteralAttr());
  } else if (auto prefix = dyn_cast_or_null<PrefixOp>(op)) {
    leaf.kind = MaskLeaf::Prefix;
    leaf.left = sideOf(prefix.getN(), prefix.getNLiteralAttr());
  } else if (auto global = dyn_cast_or_null<GlobalOp>(op)) {
    leaf.kind = MaskLeaf::Global;
    leaf.left = sideOf(global.getN(), global.getNLiteralAttr());
  } else if (isa_and_nonnull<MaskOpInterface>(op)) {
    leaf.kind = MaskLeaf::Named;
    leaf.op = op;
  } else {
    leaf.value = value;
  }
  return leaf;
}

namespace {

/// One mask, from operations to an expression and back.
class MaskSimplifier {
public:
  explicit MaskSimplifier(MaskOp mask) : mask(mask), block(mask.getBody().front()) {}

  /// Rewrites the mask; true if it changed.
  bool run();
  bool wasRefused() const { return refused; }
  bool wasTooLarge() const { return tooLarge; }

private:
  struct Built {
    Id id;
    bool exact; ///< the value's operations are what the node needs, and no more
  };

  bool isLogic(Operation *op) const {
    return op && op->getBlock() == &block && isa<AndOp, OrOp, NotOp>(op);
  }
  bool isConsumer(Operation *op) const { return isLogic(op) || op == block.getTerminator(); }
  Built build(Value value);
  Built buildValue(Value value);
  void collectChain(Operation *op, SmallVectorImpl<Value> &operands);
  Value emit(Id id, OpBuilder &builder);
  Value emitLeaf(const MaskLeaf &leaf, OpBuilder &builder);

  MaskOp mask;
  Block &block;
  MaskAlgebra algebra;
  llvm::DenseMap<Value, Id> built;
  llvm::DenseMap<Id, Value> values;
  SmallVector<Id> pinned;
  bool refused = false, tooLarge = false;
};

class SimplifyMask : public attn::impl::SimplifyMaskPassBase<SimplifyMask> {
public:
  void runOnOperation() override {
    MaskOp mask = getOperation().getMask();
    if (!mask)
      return markAllAnalysesPreserved();
    Block &block = mask.getBody().front();
    size_t before = countOps(block);
    eraseDeadOps(block);
    // What one round drops may have been the last other reader of a part.
    bool refused = false, tooLarge = false;
    for (bool again = true; again;) {
      size_t ops = countOps(block);
      MaskSimplifier simplifier(mask);
      again = simplifier.run();
      eraseDeadOps(block);
      again &= countOps(block) < ops;
      refused = simplifier.wasRefused();
      tooLarge = simplifier.wasTooLarge();
    }
    size_t after = countOps(block);
    if (tooLarge)
      remarkMissed(mask.getLoc(), "SimplifyMask",
                   "common operands are not looked for: the mask has more than " +
                       Twine(kMaxRestructured) + " parts");
    if (refused)
      remarkMissed(mask.getLoc(), "SimplifyMask",
                   "a common operand or negation is not taken out: its parts have other uses");
    if (after == before)
      return;
    remarkPassed(mask.getLoc(), "SimplifyMask",
                 "mask goes from " + Twine(before) + " to " + Twine(after) + " operations");
  }

private:
  static size_t countOps(Block &block) { return block.getOperations().size() - 1; }

  static void eraseDeadOps(Block &block) {
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (isOpTriviallyDead(&op))
        op.erase();
  }
};

} // namespace

/// Operands of a chain of one kind, through operations that only the chain uses.
void MaskSimplifier::collectChain(Operation *op, SmallVectorImpl<Value> &operands) {
  SmallVector<Value> stack = {op->getOperand(1), op->getOperand(0)};
  while (!stack.empty()) {
    Value value = stack.pop_back_val();
    Operation *inner = value.getDefiningOp();
    if (!isLogic(inner) || inner->getName() != op->getName() || !value.hasOneUse()) {
      operands.push_back(value);
      continue;
    }
    stack.push_back(inner->getOperand(1));
    stack.push_back(inner->getOperand(0));
  }
}

MaskSimplifier::Built MaskSimplifier::build(Value value) {
  if (auto it = built.find(value); it != built.end())
    return {it->second, values.lookup(it->second) == value};
  Built result = buildValue(value);
  if (result.exact && !values.lookup(result.id))
    values[result.id] = value;
  built[value] = result.id;
  return {result.id, values.lookup(result.id) == value};
}

MaskSimplifier::Built MaskSimplifier::buildValue(Value value) {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return {algebra.constant(constant.isOne()), true};
  Operation *op = value.getDefiningOp();
  bool isShared =
      llvm::any_of(value.getUsers(), [&](Operation *user) { return !isConsumer(user); });
  if (!isLogic(op) || isShared) {
    MaskLeaf leaf;
    if (isLogic(op))
      leaf.value = value;
    else
      leaf = leafOf(value);
    Id id = algebra.leaf(leaf);
    if (isShared)
      pinned.push_back(id);
    return {id, true};
  }
  if (isa<NotOp>(op)) {
    Built input = build(op->getOperand(0));
    Id id = algebra.negate(input.id);
    bool isPlain = algebra[id].kind == Kind::Not && algebra[id].operands[0] == input.id;
    return {id, input.exact && isPlain};
  }
  SmallVector<Value> operands;
  collectChain(op, operands);
  SmallVector<Id> ids;
  bool exact = true;
  for (Value operand : operands) {
    Built part = build(operand);
    exact &= part.exact;
    ids.push_back(part.id);
  }
  Kind kind = isa<AndOp>(op) ? Kind::And : Kind::Or;
  Id id = algebra.combine(kind, ids);
  llvm::sort(ids);
  exact &= algebra[id].kind == kind && llvm::equal(algebra[id].operands, ids);
  return {id, exact};
}

bool MaskSimplifier::run() {
  Operation *yield = block.getTerminator();
  Value keep = yield->getOperand(0);
  // Leaves in the order of the block, so that operands come out in that order.
  for (Operation &op : block.without_terminator())
    if (!isLogic(&op))
      for (Value result : op.getResults())
        if (llvm::any_of(result.getUsers(), [&](Operation *user) { return isLogic(user); }))
          build(result);
  Id root = build(keep).id;
  tooLarge = built.size() > kMaxRestructured;
  if (!tooLarge)
    root = algebra.restructure(root, pinned, refused);
  if (values.lookup(root) == keep)
    return false;
  OpBuilder builder(yield);
  yield->setOperand(0, emit(root, builder));
  return true;
}

Value MaskSimplifier::emit(Id id, OpBuilder &builder) {
  if (Value known = values.lookup(id))
    return known;
  Location loc = mask.getLoc();
  MaskAlgebra::Node node = algebra[id];
  Value value;
  switch (node.kind) {
  case Kind::False:
  case Kind::True:
    value = arith::ConstantOp::create(builder, loc, builder.getBoolAttr(node.kind == Kind::True));
    break;
  case Kind::Leaf:
    value = emitLeaf(node.leaf, builder);
    break;
  case Kind::Not:
    value = NotOp::create(builder, loc, emit(node.operands[0], builder));
    break;
  case Kind::And:
  case Kind::Or:
    for (Id operand : node.operands) {
      Value next = emit(operand, builder);
      if (!value)
        value = next;
      else if (node.kind == Kind::And)
        value = AndOp::create(builder, loc, value, next);
      else
        value = OrOp::create(builder, loc, value, next);
    }
    break;
  }
  values[id] = value;
  return value;
}

/// Bands and clamped ranges are the leaves that the algebra makes itself.
Value MaskSimplifier::emitLeaf(const MaskLeaf &leaf, OpBuilder &builder) {
  Operation *region = block.getTerminator();
  Value b = getIndexArgument(region, IndexRole::B), q = getIndexArgument(region, IndexRole::Q),
        k = getIndexArgument(region, IndexRole::K);
  Location loc = mask.getLoc();
  auto literal = [&](const MaskSide &side) {
    return side.literal ? builder.getI32IntegerAttr(static_cast<int32_t>(*side.literal))
                        : IntegerAttr();
  };
  Type i1 = builder.getI1Type();
  if (leaf.kind == MaskLeaf::MmPrefix)
    return MmPrefixOp::create(builder, loc, i1, leaf.ranges, b, q, k, leaf.left.value,
                              literal(leaf.left));
  if (leaf.isCausal())
    return CausalOp::create(builder, loc, q, k);
  return WindowOp::create(builder, loc, i1, q, k, leaf.left.value, leaf.right.value,
                          literal(leaf.left), literal(leaf.right));
}
