// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Emitter.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace attn::tile;

Emitter::Emitter(Operation *first)
    : builder(first->getContext()), constants(first), loc(first->getLoc()) {
  builder.setInsertionPointAfter(first);
}

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

Value Emitter::constant(TypedAttr attribute) {
  Value &value = known[attribute];
  if (!value)
    value = LLVM::ConstantOp::create(constants, loc, attribute.getType(), attribute);
  return value;
}

Value Emitter::intOf(Type type, int64_t value) {
  return constant(IntegerAttr::get(
      type, APInt(type.getIntOrFloatBitWidth(), value, /*isSigned=*/true, /*implicitTrunc=*/true)));
}

Value Emitter::i1(bool value) {
  return constant(builder.getIntegerAttr(builder.getI1Type(), value));
}
Value Emitter::i32(int64_t value) { return intOf(builder.getI32Type(), value); }
Value Emitter::i64(int64_t value) { return intOf(builder.getI64Type(), value); }
Value Emitter::f32(double value) {
  return constant(builder.getFloatAttr(builder.getF32Type(), value));
}
Value Emitter::f64(double value) {
  return constant(builder.getFloatAttr(builder.getF64Type(), value));
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

Value Emitter::add(Value a, Value b) { return emit<LLVM::AddOp>(a, b); }
Value Emitter::sub(Value a, Value b) { return emit<LLVM::SubOp>(a, b); }
Value Emitter::mul(Value a, Value b) { return emit<LLVM::MulOp>(a, b); }
Value Emitter::bitAnd(Value a, Value b) { return emit<LLVM::AndOp>(a, b); }
Value Emitter::bitOr(Value a, Value b) { return emit<LLVM::OrOp>(a, b); }
Value Emitter::bitXor(Value a, Value b) { return emit<LLVM::XOrOp>(a, b); }
Value Emitter::shl(Value a, Value b) { return emit<LLVM::ShlOp>(a, b); }
Value Emitter::lshr(Value a, Value b) { return emit<LLVM::LShrOp>(a, b); }
Value Emitter::smin(Value a, Value b) { return emit<LLVM::SMinOp>(a, b); }
Value Emitter::smax(Value a, Value b) { return emit<LLVM::SMaxOp>(a, b); }
Value Emitter::cmp(IntPredicate predicate, Value a, Value b) {
  return emit<LLVM::ICmpOp>(predicate, a, b);
}
Value Emitter::select(Value condition, Value a, Value b) {
  return emit<LLVM::SelectOp>(condition, a, b);
}
Value Emitter::zext64(Value a) { return emit<LLVM::ZExtOp>(builder.getI64Type(), a); }
Value Emitter::sext64(Value a) { return emit<LLVM::SExtOp>(builder.getI64Type(), a); }
Value Emitter::zext32(Value a) { return emit<LLVM::ZExtOp>(builder.getI32Type(), a); }
Value Emitter::fadd(Value a, Value b) { return emit<LLVM::FAddOp>(a, b); }
Value Emitter::fsub(Value a, Value b) { return emit<LLVM::FSubOp>(a, b); }
Value Emitter::fmul(Value a, Value b) { return emit<LLVM::FMulOp>(a, b); }
Value Emitter::fdiv(Value a, Value b) { return emit<LLVM::FDivOp>(a, b); }
Value Emitter::fneg(Value a) { return emit<LLVM::FNegOp>(a); }
Value Emitter::fabs(Value a) { return emit<LLVM::FAbsOp>(a); }
Value Emitter::fma(Value a, Value b, Value c) { return emit<LLVM::FMAOp>(a, b, c); }
Value Emitter::maxnum(Value a, Value b) { return emit<LLVM::MaxNumOp>(a, b); }
Value Emitter::fcmp(FloatPredicate predicate, Value a, Value b) {
  return emit<LLVM::FCmpOp>(predicate, a, b);
}
Value Emitter::bitcast(Type type, Value a) { return emit<LLVM::BitcastOp>(type, a); }

Value Emitter::intrinsic(StringRef name, Value a) {
  return LLVM::CallIntrinsicOp::create(builder, loc, a.getType(), builder.getStringAttr(name),
                                       ValueRange{a})
      .getResult(0);
}

SmallVector<Value> Emitter::assembly(StringRef text, StringRef constraints, ValueRange operands,
                                     TypeRange results, bool pure) {
  std::string all = constraints.str();
  if (!pure)
    all += all.empty() ? "~{memory}" : ",~{memory}";
  Type type;
  if (results.size() == 1)
    type = results.front();
  else if (!results.empty())
    type = LLVM::LLVMStructType::getLiteral(getContext(), llvm::to_vector(results));
  auto op = LLVM::InlineAsmOp::create(
      builder, loc, type ? TypeRange(type) : TypeRange(), operands, text, all,
      /*has_side_effects=*/!pure, /*is_align_stack=*/false, LLVM::tailcallkind::TailCallKind::None,
      LLVM::AsmDialectAttr::get(getContext(), LLVM::AsmDialect::AD_ATT), ArrayAttr());
  if (results.size() <= 1)
    return SmallVector<Value>(op->getResults());
  SmallVector<Value> values;
  for (size_t i = 0; i < results.size(); ++i)
    values.push_back(emit<LLVM::ExtractValueOp>(op->getResult(0), static_cast<int64_t>(i)));
  return values;
}

//===----------------------------------------------------------------------===//
// Warps and barriers
//===----------------------------------------------------------------------===//

Value Emitter::shuffle(Value a, Value lane, bool isXor) {
  return emit<NVVM::ShflOp>(a.getType(), i32(-1), a, lane, i32(31),
                            isXor ? NVVM::ShflKind::bfly : NVVM::ShflKind::idx, UnitAttr());
}

Value Emitter::shuffleXor(Value a, int64_t mask) { return shuffle(a, i32(mask), true); }
Value Emitter::shuffleFrom(Value a, Value lane) { return shuffle(a, lane, false); }

void Emitter::barrier(Value id, Value threads) {
  NVVM::BarrierOp::create(builder, loc, Type(), id, threads, NVVM::BarrierReductionAttr(), Value());
}

void Emitter::barrierArrive(Value id, Value threads) {
  assembly("bar.arrive $0, $1;", "r,r", {id, threads}, {});
}

Value Emitter::toGlobal(Value pointer) {
  auto global = LLVM::LLVMPointerType::get(getContext(), /*addressSpace=*/1);
  if (pointer.getType() == global)
    return pointer;
  return emit<LLVM::AddrSpaceCastOp>(global, pointer);
}

void Emitter::waitParity(const SharedAddress &barrier, Value parity) {
  // Labels inside braces are local to the statement. PTX ISA, mbarrier.try_wait: may give up after
  // a while, hence the loop.
  assembly("{\n.reg .pred P;\nWAIT:\nmbarrier.try_wait.parity.shared::cta.b64 P, " +
               barrier.text(0) + ", $1;\n@P bra DONE;\nbra WAIT;\nDONE:\n}",
           "r,r", {barrier.base, parity}, {});
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

Block *Emitter::newBlock(TypeRange arguments) {
  Region *region = builder.getInsertionBlock()->getParent();
  auto *block = new Block();
  region->push_back(block);
  block->addArguments(arguments, SmallVector<Location>(arguments.size(), loc));
  return block;
}

void Emitter::enter(Block *block) {
  if (block->getNextNode())
    block->moveBefore(block->getParent(), block->getParent()->end());
  builder.setInsertionPointToEnd(block);
}

void Emitter::branch(Block *block, ValueRange operands) {
  LLVM::BrOp::create(builder, loc, operands, block);
}

void Emitter::branchIf(Value condition, Block *yes, Block *no) {
  LLVM::CondBrOp::create(builder, loc, condition, yes, no);
}

Value attn::tile::emitTree(ArrayRef<Value> values, function_ref<Value(Value, Value)> combine) {
  SmallVector<Value> chains(values.take_front(4));
  for (auto [i, value] : llvm::enumerate(values.drop_front(chains.size())))
    chains[i % 4] = combine(chains[i % 4], value);
  while (chains.size() > 1) {
    SmallVector<Value> next;
    for (size_t i = 0; i + 1 < chains.size(); i += 2)
      next.push_back(combine(chains[i], chains[i + 1]));
    if (chains.size() % 2 != 0)
      next.push_back(chains.back());
    chains = std::move(next);
  }
  return chains.front();
}
