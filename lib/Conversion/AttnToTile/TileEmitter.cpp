// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TileEmitter.h"

using namespace mlir;
using namespace attn;

Value TileEmitter::i32(int64_t value) {
  return arith::ConstantOp::create(builder, loc,
                                   builder.getI32IntegerAttr(static_cast<int32_t>(value)));
}
Value TileEmitter::i64(int64_t value) {
  return arith::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(value));
}
Value TileEmitter::div(Value a, Value b) { return arith::DivUIOp::create(builder, loc, a, b); }
Value TileEmitter::rem(Value a, Value b) { return arith::RemUIOp::create(builder, loc, a, b); }
Value TileEmitter::either(Value a, Value b) { return arith::OrIOp::create(builder, loc, a, b); }
Value TileEmitter::select(Value condition, Value a, Value b) {
  return arith::SelectOp::create(builder, loc, condition, a, b);
}
Value TileEmitter::toIndex(Value value) {
  return arith::IndexCastOp::create(builder, loc, builder.getIndexType(), value);
}
Value TileEmitter::toI64(Value value) {
  if (value.getType().isIndex())
    return arith::IndexCastOp::create(builder, loc, builder.getI64Type(), value);
  return arith::ExtSIOp::create(builder, loc, builder.getI64Type(), value);
}
Value TileEmitter::toI32(Value value) {
  if (value.getType().isIndex())
    return arith::IndexCastOp::create(builder, loc, builder.getI32Type(), value);
  return arith::TruncIOp::create(builder, loc, builder.getI32Type(), value);
}

Value TileEmitter::address(Value base, Value byteOffset) {
  return LLVM::GEPOp::create(builder, loc, base.getType(), builder.getI8Type(), base,
                             ArrayRef<LLVM::GEPArg>{byteOffset});
}

Value TileEmitter::load(Type type, Value address, unsigned alignment) {
  return LLVM::LoadOp::create(builder, loc, type, address, alignment, /*isVolatile=*/false,
                              /*isNonTemporal=*/false, /*isInvariant=*/true);
}

SmallVector<Value> TileEmitter::loadI32s(Value base, unsigned count) {
  auto type = VectorType::get(4, builder.getI32Type());
  SmallVector<Value> values;
  Value vector;
  for (unsigned i = 0; i < count; ++i) {
    if (i % 4 == 0)
      vector = load(type, address(base, i64(4 * i)), 16);
    values.push_back(LLVM::ExtractElementOp::create(builder, loc, vector, i32(i % 4)));
  }
  return values;
}

Value TileEmitter::word(Value args, int64_t number) {
  return load(builder.getI64Type(), address(args, i64(8 * number)), 8);
}

Value TileEmitter::pointerWord(Value args, int64_t number) {
  auto global = LLVM::LLVMPointerType::get(builder.getContext(), /*addressSpace=*/1);
  return LLVM::IntToPtrOp::create(builder, loc, global, word(args, number));
}
