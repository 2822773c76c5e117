// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Scalars.h"

#include "MathFunctions.h"

#include "attn/Dialect/Tile/IR/TileOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace attn::tile;

Type attn::tile::getScalarType(Type type) {
  if (type.isIndex())
    return IntegerType::get(type.getContext(), 64);
  return LLVM::isCompatibleType(type) ? type : Type();
}

/// Between integers of any two widths.
static Value emitIntCast(Emitter &e, Value x, Type type, bool isSigned) {
  unsigned from = x.getType().getIntOrFloatBitWidth(), to = type.getIntOrFloatBitWidth();
  if (from == to)
    return x;
  if (from > to)
    return e.emit<LLVM::TruncOp>(type, x);
  return isSigned ? e.emit<LLVM::SExtOp>(type, x) : e.emit<LLVM::ZExtOp>(type, x);
}

static IntPredicate toLlvm(arith::CmpIPredicate predicate) {
  switch (predicate) {
  case arith::CmpIPredicate::eq:
    return IntPredicate::eq;
  case arith::CmpIPredicate::ne:
    return IntPredicate::ne;
  case arith::CmpIPredicate::slt:
    return IntPredicate::slt;
  case arith::CmpIPredicate::sle:
    return IntPredicate::sle;
  case arith::CmpIPredicate::sgt:
    return IntPredicate::sgt;
  case arith::CmpIPredicate::sge:
    return IntPredicate::sge;
  case arith::CmpIPredicate::ult:
    return IntPredicate::ult;
  case arith::CmpIPredicate::ule:
    return IntPredicate::ule;
  case arith::CmpIPredicate::ugt:
    return IntPredicate::ugt;
  case arith::CmpIPredicate::uge:
    return IntPredicate::uge;
  }
  llvm_unreachable("covered switch");
}

static FloatPredicate toLlvm(arith::CmpFPredicate predicate) {
  switch (predicate) {
  case arith::CmpFPredicate::AlwaysFalse:
    return FloatPredicate::_false;
  case arith::CmpFPredicate::OEQ:
    return FloatPredicate::oeq;
  case arith::CmpFPredicate::OGT:
    return FloatPredicate::ogt;
  case arith::CmpFPredicate::OGE:
    return FloatPredicate::oge;
  case arith::CmpFPredicate::OLT:
    return FloatPredicate::olt;
  case arith::CmpFPredicate::OLE:
    return FloatPredicate::ole;
  case arith::CmpFPredicate::ONE:
    return FloatPredicate::one;
  case arith::CmpFPredicate::ORD:
    return FloatPredicate::ord;
  case arith::CmpFPredicate::UEQ:
    return FloatPredicate::ueq;
  case arith::CmpFPredicate::UGT:
    return FloatPredicate::ugt;
  case arith::CmpFPredicate::UGE:
    return FloatPredicate::uge;
  case arith::CmpFPredicate::ULT:
    return FloatPredicate::ult;
  case arith::CmpFPredicate::ULE:
    return FloatPredicate::ule;
  case arith::CmpFPredicate::UNE:
    return FloatPredicate::une;
  case arith::CmpFPredicate::UNO:
    return FloatPredicate::uno;
  case arith::CmpFPredicate::AlwaysTrue:
    return FloatPredicate::_true;
  }
  llvm_unreachable("covered switch");
}

/// Two operands, one result of the same type. Null if it is something else.
static Value emitBinary(Emitter &e, Operation &op, ValueRange v) {
  return llvm::TypeSwitch<Operation *, Value>(&op)
      .Case<arith::AddIOp>([&](auto) { return e.add(v[0], v[1]); })
      .Case<arith::SubIOp>([&](auto) { return e.sub(v[0], v[1]); })
      .Case<arith::MulIOp>([&](auto) { return e.mul(v[0], v[1]); })
      .Case<arith::DivSIOp>([&](auto) { return e.emit<LLVM::SDivOp>(v[0], v[1]); })
      .Case<arith::DivUIOp>([&](auto) { return e.emit<LLVM::UDivOp>(v[0], v[1]); })
      .Case<arith::RemSIOp>([&](auto) { return e.emit<LLVM::SRemOp>(v[0], v[1]); })
      .Case<arith::RemUIOp>([&](auto) { return e.emit<LLVM::URemOp>(v[0], v[1]); })
      .Case<arith::MinSIOp>([&](auto) { return e.smin(v[0], v[1]); })
      .Case<arith::MaxSIOp>([&](auto) { return e.smax(v[0], v[1]); })
      .Case<arith::MinUIOp>([&](auto) { return e.emit<LLVM::UMinOp>(v[0], v[1]); })
      .Case<arith::MaxUIOp>([&](auto) { return e.emit<LLVM::UMaxOp>(v[0], v[1]); })
      .Case<arith::AndIOp>([&](auto) { return e.bitAnd(v[0], v[1]); })
      .Case<arith::OrIOp>([&](auto) { return e.bitOr(v[0], v[1]); })
      .Case<arith::XOrIOp>([&](auto) { return e.bitXor(v[0], v[1]); })
      .Case<arith::ShLIOp>([&](auto) { return e.shl(v[0], v[1]); })
      .Case<arith::ShRUIOp>([&](auto) { return e.lshr(v[0], v[1]); })
      .Case<arith::ShRSIOp>([&](auto) { return e.emit<LLVM::AShrOp>(v[0], v[1]); })
      .Case<arith::AddFOp>([&](auto) { return e.fadd(v[0], v[1]); })
      .Case<arith::SubFOp>([&](auto) { return e.fsub(v[0], v[1]); })
      .Case<arith::MulFOp>([&](auto) { return e.fmul(v[0], v[1]); })
      .Case<arith::DivFOp>([&](auto) { return e.fdiv(v[0], v[1]); })
      .Case<arith::MinimumFOp>([&](auto) { return e.emit<LLVM::MinimumOp>(v[0], v[1]); })
      .Case<arith::MaximumFOp>([&](auto) { return e.emit<LLVM::MaximumOp>(v[0], v[1]); })
      .Case<arith::MinNumFOp>([&](auto) { return e.emit<LLVM::MinNumOp>(v[0], v[1]); })
      .Case<arith::MaxNumFOp>([&](auto) { return e.maxnum(v[0], v[1]); })
      .Default([](Operation *) { return Value(); });
}

/// Everything else of arith, and the functions of tile.
static Value emitOther(Emitter &e, Operation &op, ValueRange v, Type type) {
  return llvm::TypeSwitch<Operation *, Value>(&op)
      .Case<arith::CmpIOp>([&](auto cmp) { return e.cmp(toLlvm(cmp.getPredicate()), v[0], v[1]); })
      .Case<arith::CmpFOp>([&](auto cmp) { return e.fcmp(toLlvm(cmp.getPredicate()), v[0], v[1]); })
      .Case<arith::SelectOp>([&](auto) { return e.select(v[0], v[1], v[2]); })
      .Case<arith::NegFOp>([&](auto) { return e.fneg(v[0]); })
      .Case<arith::ExtSIOp, arith::IndexCastOp>(
          [&](auto) { return emitIntCast(e, v[0], type, /*isSigned=*/true); })
      .Case<arith::ExtUIOp, arith::IndexCastUIOp, arith::TruncIOp>(
          [&](auto) { return emitIntCast(e, v[0], type, /*isSigned=*/false); })
      .Case<arith::SIToFPOp>([&](auto) { return e.emit<LLVM::SIToFPOp>(type, v[0]); })
      .Case<arith::UIToFPOp>([&](auto) { return e.emit<LLVM::UIToFPOp>(type, v[0]); })
      .Case<arith::FPToSIOp>([&](auto) { return e.emit<LLVM::FPToSIOp>(type, v[0]); })
      .Case<arith::ExtFOp>([&](auto) { return e.emit<LLVM::FPExtOp>(type, v[0]); })
      .Case<arith::TruncFOp>([&](auto) { return e.emit<LLVM::FPTruncOp>(type, v[0]); })
      .Case<arith::BitcastOp>([&](auto) { return e.bitcast(type, v[0]); })
      .Case<Ex2Op>([&](auto) { return emitEx2(e, v[0]); })
      .Case<Lg2Op>([&](auto) { return emitLg2(e, v[0]); })
      .Case<RcpOp>([&](auto) { return emitRcp(e, v[0]); })
      .Default([](Operation *) { return Value(); });
}

FailureOr<SmallVector<Value>> attn::tile::emitScalar(Emitter &e, Operation &op,
                                                     ValueRange operands) {
  e.setLoc(op.getLoc());
  auto refuse = [&]() { return op.emitError("has no lowering to the GPU"); };
  if (op.getNumRegions() != 0 || op.getNumSuccessors() != 0)
    return refuse();
  SmallVector<Type> types;
  for (Type type : op.getResultTypes()) {
    types.push_back(getScalarType(type));
    if (!types.back())
      return refuse();
  }
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    if (!isa<IntegerAttr, FloatAttr>(constant.getValue()))
      return refuse();
    if (constant.getType().isIndex())
      return SmallVector<Value>{e.i64(cast<IntegerAttr>(constant.getValue()).getInt())};
    return SmallVector<Value>{e.constant(constant.getValue())};
  }
  if (isa<LLVM::LLVMDialect, NVVM::NVVMDialect>(op.getDialect())) {
    Operation *clone = op.clone();
    clone->setOperands(operands);
    e.getBuilder().insert(clone);
    return SmallVector<Value>(clone->getResults());
  }
  Value value;
  if (op.getNumResults() == 1) {
    value = emitBinary(e, op, operands);
    if (!value)
      value = emitOther(e, op, operands, types[0]);
    if (!value && isa_and_nonnull<math::MathDialect>(op.getDialect()))
      value = emitMath(e, op, operands);
  }
  if (!value)
    return refuse();
  return SmallVector<Value>{value};
}
