// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The two meanings of each operation at one (b, h, q, k): nodes of the mask program, and
// element-wise IR. They are written apart on purpose: each judges the other.

#include "attn/Core/IndexSpaces.h"
#include "attn/Dialect/Attn/IR/AttnOps.h"
#include "attn/Dialect/Attn/IR/ElementContext.h"
#include "attn/Dialect/Attn/IR/ProgramBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace attn;
using NodeOp = core::Op;
using core::ScalarType;
using Predicate = arith::CmpIPredicate;

//===----------------------------------------------------------------------===//
// Mask program
//===----------------------------------------------------------------------===//

LogicalResult CausalOp::toProgram(ProgramBuilder &builder) {
  builder.bind(getResult(), builder.add(NodeOp::Causal, ScalarType::Bool));
  return success();
}

LogicalResult WindowOp::toProgram(ProgramBuilder &builder) {
  SmallVector<core::NodeId> operands;
  int64_t sides = 0;
  if (auto left = builder.bound(getLeft(), getLeftLiteralAttr())) {
    operands.push_back(*left);
    sides |= 1;
  }
  if (auto right = builder.bound(getRight(), getRightLiteralAttr())) {
    operands.push_back(*right);
    sides |= 2;
  }
  builder.bind(getResult(), builder.add(NodeOp::Window, ScalarType::Bool, operands, -1, sides));
  return success();
}

LogicalResult SlidingOp::toProgram(ProgramBuilder &builder) {
  // left = count - 1, in 64 bits.
  core::NodeId count = *builder.bound(getCount(), getCountLiteralAttr());
  core::NodeId wide = builder.add(NodeOp::SExt, ScalarType::I64, {count});
  core::NodeId one = builder.add(NodeOp::Const, ScalarType::I64, {}, -1, 1);
  core::NodeId left = builder.add(NodeOp::Sub, ScalarType::I64, {wide, one});
  builder.bind(getResult(), builder.add(NodeOp::Window, ScalarType::Bool, {left}, -1, 1));
  return success();
}

LogicalResult MmPrefixOp::toProgram(ProgramBuilder &builder) {
  SmallVector<core::NodeId> operands;
  if (auto clamp = builder.bound(getClamp(), getClampLiteralAttr()))
    operands.push_back(*clamp);
  builder.bind(getResult(), builder.add(NodeOp::MmPrefix, ScalarType::Bool, operands,
                                        builder.tableNumber(getRanges())));
  return success();
}

LogicalResult PrefixOp::toProgram(ProgramBuilder &builder) {
  core::NodeId n = *builder.bound(getN(), getNLiteralAttr());
  builder.bind(getResult(), builder.add(NodeOp::Prefix, ScalarType::Bool, {n}));
  return success();
}

LogicalResult DocumentOp::toProgram(ProgramBuilder &builder) {
  builder.bind(getResult(), builder.add(NodeOp::Document, ScalarType::Bool, {},
                                        builder.tableNumber(getDocuments())));
  return success();
}

LogicalResult GlobalOp::toProgram(ProgramBuilder &builder) {
  core::NodeId n = *builder.bound(getN(), getNLiteralAttr());
  builder.bind(getResult(), builder.add(NodeOp::Global, ScalarType::Bool, {n}));
  return success();
}

LogicalResult InRowsOp::toProgram(ProgramBuilder &builder) {
  builder.bind(getResult(), builder.add(NodeOp::InRows, ScalarType::Bool,
                                        {builder.lookup(getLo()), builder.lookup(getHi())}));
  return success();
}

LogicalResult AndOp::toProgram(ProgramBuilder &builder) {
  builder.bind(getResult(), builder.add(NodeOp::And, ScalarType::Bool,
                                        {builder.lookup(getLhs()), builder.lookup(getRhs())}));
  return success();
}

LogicalResult OrOp::toProgram(ProgramBuilder &builder) {
  builder.bind(getResult(), builder.add(NodeOp::Or, ScalarType::Bool,
                                        {builder.lookup(getLhs()), builder.lookup(getRhs())}));
  return success();
}

LogicalResult NotOp::toProgram(ProgramBuilder &builder) {
  builder.bind(getResult(),
               builder.add(NodeOp::Not, ScalarType::Bool, {builder.lookup(getInput())}));
  return success();
}

LogicalResult SoftCapOp::toProgram(ProgramBuilder &builder) {
  core::NodeId cap;
  if (FloatAttr literal = getCapLiteralAttr()) {
    core::Node node;
    node.op = NodeOp::Const;
    node.type = ScalarType::F32;
    node.fimm = literal.getValueAsDouble();
    cap = builder.add(node);
  } else {
    cap = builder.lookup(getCap());
  }
  builder.bind(getResult(),
               builder.add(NodeOp::SoftCap, ScalarType::F32, {builder.lookup(getS()), cap}));
  return success();
}

LogicalResult AlibiOp::toProgram(ProgramBuilder &builder) {
  builder.bind(getResult(), builder.add(NodeOp::Alibi, ScalarType::F32,
                                        {builder.lookup(getS()), builder.lookup(getSlope())}));
  return success();
}

LogicalResult LoadOp::toProgram(ProgramBuilder &builder) {
  SmallVector<core::NodeId> operands;
  for (Value index : getIndices())
    operands.push_back(builder.lookup(index));
  builder.bind(getResult(), builder.add(NodeOp::TableLoad, *getScalarType(getResult().getType()),
                                        operands, builder.tableNumber(getTable())));
  return success();
}

LogicalResult NumRangesOp::toProgram(ProgramBuilder &builder) {
  builder.bind(getResult(), builder.add(NodeOp::NumRanges, ScalarType::I64, {},
                                        builder.tableNumber(getRanges())));
  return success();
}

LogicalResult RangeOp::toProgram(ProgramBuilder &builder) {
  core::NodeId index = builder.lookup(getIndex());
  int32_t table = builder.tableNumber(getRanges());
  builder.bind(getStart(), builder.add(NodeOp::RangeStart, ScalarType::I64, {index}, table));
  builder.bind(getEnd(), builder.add(NodeOp::RangeEnd, ScalarType::I64, {index}, table));
  return success();
}

LogicalResult RowRangeOp::toProgram(ProgramBuilder &builder) {
  int32_t table = builder.tableNumber(getRows());
  builder.bind(getLo(), builder.add(NodeOp::RowLo, ScalarType::I64, {}, table));
  builder.bind(getHi(), builder.add(NodeOp::RowHi, ScalarType::I64, {}, table));
  return success();
}

//===----------------------------------------------------------------------===//
// Context
//===----------------------------------------------------------------------===//

Value ElementContext::getTableIndex(core::TableDim dim, Value operand) const {
  switch (dim) {
  case core::TableDim::B:
    return b;
  case core::TableDim::Token:
    return token;
  case core::TableDim::H:
    return h;
  case core::TableDim::HKv:
    return kvHead;
  case core::TableDim::K:
  case core::TableDim::Slot:
  case core::TableDim::Bucket:
    break;
  }
  return lookup(operand);
}

//===----------------------------------------------------------------------===//
// Element-wise IR
//===----------------------------------------------------------------------===//

namespace {
/// Shorthand for emitting index arithmetic.
class Emitter {
public:
  Emitter(OpBuilder &builder, Location loc, ElementContext &context)
      : builder(builder), loc(loc), context(context) {}

  Value constant(int64_t value) { return arith::ConstantIndexOp::create(builder, loc, value); }
  Value bit(bool value) {
    return arith::ConstantOp::create(builder, loc, builder.getBoolAttr(value));
  }
  Value add(Value a, Value b) { return arith::AddIOp::create(builder, loc, a, b); }
  Value sub(Value a, Value b) { return arith::SubIOp::create(builder, loc, a, b); }
  Value both(Value a, Value b) { return arith::AndIOp::create(builder, loc, a, b); }
  Value either(Value a, Value b) { return arith::OrIOp::create(builder, loc, a, b); }
  Value cmp(Predicate p, Value a, Value b) { return arith::CmpIOp::create(builder, loc, p, a, b); }
  Value select(Value c, Value a, Value b) { return arith::SelectOp::create(builder, loc, c, a, b); }

  /// An i32 operand that is a value or a literal, as index.
  Value bound(Value value, IntegerAttr literal) {
    if (literal)
      return constant(literal.getInt());
    return arith::IndexCastOp::create(builder, loc, builder.getIndexType(), context.lookup(value));
  }

  OpBuilder &builder;
  Location loc;
  ElementContext &context;
};
} // namespace

SmallVector<Value> CausalOp::lowerElement(OpBuilder &builder, ElementContext &context) {
  Emitter e(builder, getLoc(), context);
  return {e.cmp(Predicate::sle, context.lookup(getK()), context.lookup(getQ()))};
}

SmallVector<Value> WindowOp::lowerElement(OpBuilder &builder, ElementContext &context) {
  Emitter e(builder, getLoc(), context);
  Value q = context.lookup(getQ()), k = context.lookup(getK());
  Value keep;
  if (getLeft() || getLeftLiteralAttr()) {
    Value left = e.bound(getLeft(), getLeftLiteralAttr());
    keep = e.cmp(Predicate::sle, e.sub(q, k), left);
  }
  if (getRight() || getRightLiteralAttr()) {
    Value right = e.bound(getRight(), getRightLiteralAttr());
    Value inside = e.cmp(Predicate::sle, e.sub(k, q), right);
    keep = keep ? e.both(keep, inside) : inside;
  }
  return {keep};
}

SmallVector<Value> SlidingOp::lowerElement(OpBuilder &builder, ElementContext &context) {
  Emitter e(builder, getLoc(), context);
  Value count = e.bound(getCount(), getCountLiteralAttr());
  Value distance = e.sub(context.lookup(getQ()), context.lookup(getK()));
  return {e.cmp(Predicate::slt, distance, count)};
}

SmallVector<Value> MmPrefixOp::lowerElement(OpBuilder &builder, ElementContext &context) {
  Emitter e(builder, getLoc(), context);
  Value q = context.lookup(getQ()), k = context.lookup(getK());
  Value initial = e.bit(false), step = e.constant(1);
  Value count = context.numRanges(builder, getLoc(), getRanges());
  auto loop = scf::ForOp::create(
      builder, getLoc(), e.constant(0), count, step, ValueRange{initial},
      [&](OpBuilder &b, Location loc, Value index, ValueRange carried) {
        Emitter in(b, loc, context);
        auto [start, end] = context.rangeBounds(b, loc, getRanges(), index);
        auto holds = [&, start = start, end = end](Value position) {
          Value notPast = in.cmp(Predicate::sle, position, end);
          return in.both(in.cmp(Predicate::sle, start, position), notPast);
        };
        Value holdsQ = holds(q), holdsK = holds(k);
        scf::YieldOp::create(b, loc, in.either(carried[0], in.both(holdsQ, holdsK)));
      });
  Value keep = loop.getResult(0);
  if (getClamp() || getClampLiteralAttr()) {
    Value clamp = e.bound(getClamp(), getClampLiteralAttr());
    keep = e.both(keep, e.cmp(Predicate::sle, e.sub(q, k), clamp));
  }
  return {keep};
}

SmallVector<Value> PrefixOp::lowerElement(OpBuilder &builder, ElementContext &context) {
  Emitter e(builder, getLoc(), context);
  return {e.cmp(Predicate::slt, context.lookup(getK()), e.bound(getN(), getNLiteralAttr()))};
}

SmallVector<Value> DocumentOp::lowerElement(OpBuilder &builder, ElementContext &context) {
  Emitter e(builder, getLoc(), context);
  auto [hasQ, docQ] = context.documentId(builder, getLoc(), getDocuments(), context.lookup(getQ()));
  auto [hasK, docK] = context.documentId(builder, getLoc(), getDocuments(), context.lookup(getK()));
  Value isSame = e.cmp(Predicate::eq, docQ, docK);
  return {e.both(e.both(hasQ, hasK), isSame)};
}

SmallVector<Value> GlobalOp::lowerElement(OpBuilder &builder, ElementContext &context) {
  Emitter e(builder, getLoc(), context);
  Value n = e.bound(getN(), getNLiteralAttr());
  Value isQuery = e.cmp(Predicate::slt, context.lookup(getQ()), n);
  return {e.either(e.cmp(Predicate::slt, context.lookup(getK()), n), isQuery)};
}

SmallVector<Value> InRowsOp::lowerElement(OpBuilder &builder, ElementContext &context) {
  Emitter e(builder, getLoc(), context);
  Value k = context.lookup(getK());
  Value belowEnd = e.cmp(Predicate::slt, k, context.lookup(getHi()));
  return {e.both(e.cmp(Predicate::sle, context.lookup(getLo()), k), belowEnd)};
}

SmallVector<Value> AndOp::lowerElement(OpBuilder &builder, ElementContext &context) {
  Emitter e(builder, getLoc(), context);
  return {e.both(context.lookup(getLhs()), context.lookup(getRhs()))};
}

SmallVector<Value> OrOp::lowerElement(OpBuilder &builder, ElementContext &context) {
  Emitter e(builder, getLoc(), context);
  return {e.either(context.lookup(getLhs()), context.lookup(getRhs()))};
}

SmallVector<Value> NotOp::lowerElement(OpBuilder &builder, ElementContext &context) {
  Emitter e(builder, getLoc(), context);
  return {arith::XOrIOp::create(builder, getLoc(), context.lookup(getInput()), e.bit(true))};
}

SmallVector<Value> SoftCapOp::lowerElement(OpBuilder &builder, ElementContext &context) {
  Location loc = getLoc();
  Value cap;
  if (FloatAttr literal = getCapLiteralAttr())
    cap = arith::ConstantOp::create(builder, loc, literal);
  else
    cap = context.lookup(getCap());
  Value ratio = arith::DivFOp::create(builder, loc, context.lookup(getS()), cap);
  Value tanh = math::TanhOp::create(builder, loc, ratio);
  return {arith::MulFOp::create(builder, loc, cap, tanh)};
}

SmallVector<Value> AlibiOp::lowerElement(OpBuilder &builder, ElementContext &context) {
  Location loc = getLoc();
  Emitter e(builder, loc, context);
  Value q = context.lookup(getQ()), k = context.lookup(getK());
  Value ahead = e.sub(k, q);
  Value distance = arith::MaxSIOp::create(builder, loc, e.sub(q, k), ahead);
  Value wide = arith::IndexCastOp::create(builder, loc, builder.getI64Type(), distance);
  Value asFloat = arith::SIToFPOp::create(builder, loc, builder.getF32Type(), wide);
  Value bias = arith::MulFOp::create(builder, loc, context.lookup(getSlope()), asFloat);
  return {arith::SubFOp::create(builder, loc, context.lookup(getS()), bias)};
}

SmallVector<Value> LoadOp::lowerElement(OpBuilder &builder, ElementContext &context) {
  return {context.loadTable(builder, getLoc(), getTable(), getIndices(), getResult().getType())};
}

SmallVector<Value> NumRangesOp::lowerElement(OpBuilder &builder, ElementContext &context) {
  return {context.numRanges(builder, getLoc(), getRanges())};
}

SmallVector<Value> RangeOp::lowerElement(OpBuilder &builder, ElementContext &context) {
  auto [start, end] =
      context.rangeBounds(builder, getLoc(), getRanges(), context.lookup(getIndex()));
  return {start, end};
}

SmallVector<Value> RowRangeOp::lowerElement(OpBuilder &builder, ElementContext &context) {
  Emitter e(builder, getLoc(), context);
  auto [start, end] = context.rowRange(builder, getLoc(), getRows());
  // (-1, -1) becomes the canonical empty interval before any min or max can see it.
  Value outside = e.cmp(Predicate::slt, start, e.constant(0));
  Value lo = e.select(outside, e.constant(core::kPositionLimit), start);
  Value behind = e.add(end, e.constant(1));
  Value hi = e.select(outside, e.constant(-core::kPositionLimit), behind);
  return {lo, hi};
}
