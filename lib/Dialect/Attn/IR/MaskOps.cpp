// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Constraints, folders and canonicalization of mask and score operations.

#include "attn/Dialect/Attn/IR/AttnOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace attn;

//===----------------------------------------------------------------------===//
// Constraints
//===----------------------------------------------------------------------===//

static LogicalResult verifyIndices(Operation *op, ArrayRef<std::pair<Value, IndexRole>> operands) {
  for (auto [value, role] : operands)
    if (failed(verifyIndexOperand(op, value, role)))
      return failure();
  return success();
}

/// attn-C7: a side given as a value and as a literal, or not at all where it is required.
static LogicalResult verifyOneOf(Operation *op, Value value, Attribute literal, bool required,
                                 StringRef name) {
  if (value && literal)
    return op->emitOpError() << name << " is given both as a value and as a literal (attn-C7)";
  if (required && !value && !literal)
    return op->emitOpError() << name << " is missing (attn-C7)";
  return success();
}

/// attn-C3: radii are never negative.
static LogicalResult verifyRadius(Operation *op, Value value, IntegerAttr literal, StringRef name) {
  if (failed(verifyOneOf(op, value, literal, /*required=*/false, name)))
    return failure();
  APInt constant;
  std::optional<int64_t> radius;
  if (literal)
    radius = literal.getInt();
  else if (value && matchPattern(value, m_ConstantInt(&constant)))
    radius = constant.getSExtValue();
  if (radius && *radius < 0)
    return op->emitOpError() << name << " is a radius and expected to be >= 0, got " << *radius
                             << " (attn-C3)";
  return success();
}

LogicalResult CausalOp::verify() {
  return verifyIndices(*this, {{getQ(), IndexRole::Q}, {getK(), IndexRole::K}});
}

LogicalResult WindowOp::verify() {
  if (failed(verifyIndices(*this, {{getQ(), IndexRole::Q}, {getK(), IndexRole::K}})))
    return failure();
  if (!getLeft() && !getLeftLiteralAttr() && !getRight() && !getRightLiteralAttr())
    return emitOpError("expects left(...), right(...) or both (attn-C2)");
  if (failed(verifyRadius(*this, getLeft(), getLeftLiteralAttr(), "left")))
    return failure();
  return verifyRadius(*this, getRight(), getRightLiteralAttr(), "right");
}

LogicalResult SlidingOp::verify() {
  if (failed(verifyIndices(*this, {{getQ(), IndexRole::Q}, {getK(), IndexRole::K}})) ||
      failed(verifyOneOf(*this, getCount(), getCountLiteralAttr(), /*required=*/true, "count")))
    return failure();
  APInt constant;
  std::optional<int64_t> count;
  if (getCountLiteralAttr())
    count = getCountLiteralAttr().getInt();
  else if (matchPattern(getCount(), m_ConstantInt(&constant)))
    count = constant.getSExtValue();
  if (count && *count < 1)
    return emitOpError() << "count includes self and is expected to be >= 1, got " << *count
                         << " (attn-C4)";
  return success();
}

LogicalResult MmPrefixOp::verify() {
  if (failed(verifyIndices(
          *this, {{getB(), IndexRole::B}, {getQ(), IndexRole::Q}, {getK(), IndexRole::K}})))
    return failure();
  return verifyRadius(*this, getClamp(), getClampLiteralAttr(), "clamp");
}

LogicalResult PrefixOp::verify() {
  if (failed(verifyIndices(*this, {{getK(), IndexRole::K}})))
    return failure();
  return verifyOneOf(*this, getN(), getNLiteralAttr(), /*required=*/true, "n");
}

LogicalResult DocumentOp::verify() {
  return verifyIndices(*this,
                       {{getB(), IndexRole::B}, {getQ(), IndexRole::Q}, {getK(), IndexRole::K}});
}

LogicalResult GlobalOp::verify() {
  if (failed(verifyIndices(*this, {{getQ(), IndexRole::Q}, {getK(), IndexRole::K}})))
    return failure();
  return verifyOneOf(*this, getN(), getNLiteralAttr(), /*required=*/true, "n");
}

LogicalResult InRowsOp::verify() {
  // attn-C5 is checked for the whole region at once.
  return verifyIndices(*this, {{getK(), IndexRole::K}});
}

LogicalResult SoftCapOp::verify() {
  if (failed(verifyOneOf(*this, getCap(), getCapLiteralAttr(), /*required=*/true, "cap")))
    return failure();
  if (FloatAttr literal = getCapLiteralAttr()) {
    double cap = literal.getValueAsDouble();
    if (!std::isfinite(cap) || cap <= 0)
      return emitOpError() << "cap is expected to be finite and > 0, got "
                           << literal.getValueAsDouble() << " (attn-C6)";
  }
  return success();
}

LogicalResult AlibiOp::verify() {
  return verifyIndices(*this, {{getQ(), IndexRole::Q}, {getK(), IndexRole::K}});
}

//===----------------------------------------------------------------------===//
// Folders
//===----------------------------------------------------------------------===//

/// `x` is `attn.not` of `y` or the reverse.
static bool areComplements(Value x, Value y) {
  auto notX = x.getDefiningOp<NotOp>();
  auto notY = y.getDefiningOp<NotOp>();
  return (notX && notX.getInput() == y) || (notY && notY.getInput() == x);
}

/// Folds and (`absorbing` = false) and or (`absorbing` = true).
static OpFoldResult foldBool(Value lhs, Value rhs, Attribute lhsConstant, Attribute rhsConstant,
                             bool absorbing) {
  if (lhs == rhs)
    return lhs;
  MLIRContext *context = lhs.getContext();
  if (areComplements(lhs, rhs))
    return BoolAttr::get(context, absorbing);
  for (auto [constant, other] : {std::pair(lhsConstant, rhs), std::pair(rhsConstant, lhs)})
    if (auto known = dyn_cast_or_null<IntegerAttr>(constant)) {
      if (known.getValue().isOne() == absorbing)
        return BoolAttr::get(context, absorbing);
      return other;
    }
  return {};
}

OpFoldResult AndOp::fold(FoldAdaptor adaptor) {
  return foldBool(getLhs(), getRhs(), adaptor.getLhs(), adaptor.getRhs(), false);
}

OpFoldResult OrOp::fold(FoldAdaptor adaptor) {
  return foldBool(getLhs(), getRhs(), adaptor.getLhs(), adaptor.getRhs(), true);
}

OpFoldResult NotOp::fold(FoldAdaptor adaptor) {
  if (auto inner = getInput().getDefiningOp<NotOp>())
    return inner.getInput();
  if (auto constant = dyn_cast_or_null<IntegerAttr>(adaptor.getInput()))
    return BoolAttr::get(getContext(), !constant.getValue().isOne());
  return {};
}

//===----------------------------------------------------------------------===//
// Canonicalization
//===----------------------------------------------------------------------===//

/// The literal a side has, also when it is a constant value.
static IntegerAttr constantOf(Value value, IntegerAttr literal, OpBuilder &builder) {
  APInt constant;
  if (value && matchPattern(value, m_ConstantInt(&constant)))
    return builder.getI32IntegerAttr(static_cast<int32_t>(constant.getSExtValue()));
  return literal;
}

namespace {
/// Constant operands become literals.
struct WindowConstants : OpRewritePattern<WindowOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(WindowOp op, PatternRewriter &rewriter) const override {
    IntegerAttr left = constantOf(op.getLeft(), op.getLeftLiteralAttr(), rewriter);
    IntegerAttr right = constantOf(op.getRight(), op.getRightLiteralAttr(), rewriter);
    if (left == op.getLeftLiteralAttr() && right == op.getRightLiteralAttr())
      return rewriter.notifyMatchFailure(op, "no constant operand");
    rewriter.replaceOpWithNewOp<WindowOp>(op, op.getType(), op.getQ(), op.getK(),
                                          left ? Value() : op.getLeft(),
                                          right ? Value() : op.getRight(), left, right);
    return success();
  }
};

/// A literal count is a radius.
struct SlidingToWindow : OpRewritePattern<SlidingOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(SlidingOp op, PatternRewriter &rewriter) const override {
    IntegerAttr count = constantOf(op.getCount(), op.getCountLiteralAttr(), rewriter);
    if (!count)
      return rewriter.notifyMatchFailure(op, "count is not constant");
    IntegerAttr left = rewriter.getI32IntegerAttr(static_cast<int32_t>(count.getInt() - 1));
    rewriter.replaceOpWithNewOp<WindowOp>(op, op.getType(), op.getQ(), op.getK(), Value(), Value(),
                                          left, IntegerAttr());
    return success();
  }
};
} // namespace

void WindowOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<WindowConstants>(context);
}

void SlidingOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<SlidingToWindow>(context);
}

//===----------------------------------------------------------------------===//
// Row lookups
//===----------------------------------------------------------------------===//

/// k within the row of `rows`.
static Value emitInRow(OpBuilder &builder, Location loc, Value rows, Value q, Value k) {
  auto row = RowRangeOp::create(builder, loc, rows, q);
  return InRowsOp::create(builder, loc, k, row.getLo(), row.getHi());
}

BlockArgument MmPrefixOp::getSourceTable() { return cast<BlockArgument>(getRanges()); }

Value MmPrefixOp::emitRowLookup(OpBuilder &builder, Value rows) {
  Value keep = emitInRow(builder, getLoc(), rows, getQ(), getK());
  if (!getClamp() && !getClampLiteralAttr())
    return keep;
  Value window = WindowOp::create(builder, getLoc(), builder.getI1Type(), getQ(), getK(),
                                  getClamp(), Value(), getClampLiteralAttr(), IntegerAttr());
  return AndOp::create(builder, getLoc(), keep, window);
}

BlockArgument DocumentOp::getSourceTable() { return cast<BlockArgument>(getDocuments()); }

Value DocumentOp::emitRowLookup(OpBuilder &builder, Value rows) {
  return emitInRow(builder, getLoc(), rows, getQ(), getK());
}
