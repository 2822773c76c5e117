// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "LoopContext.h"

using namespace mlir;
using namespace attn;
using Predicate = arith::CmpIPredicate;

//===----------------------------------------------------------------------===//
// LoopEmitter
//===----------------------------------------------------------------------===//

Value LoopEmitter::address(Value base, Value byteOffset) {
  Value offset = arith::IndexCastOp::create(builder, loc, builder.getI64Type(), byteOffset);
  return LLVM::GEPOp::create(builder, loc, LLVM::LLVMPointerType::get(builder.getContext()),
                             builder.getI8Type(), base, ArrayRef<LLVM::GEPArg>{offset});
}

Value LoopEmitter::load(Type type, Value base, Value byteOffset) {
  unsigned bytes = type.isIntOrFloat() ? std::max(1u, type.getIntOrFloatBitWidth() / 8) : 8;
  return LLVM::LoadOp::create(builder, loc, type, address(base, byteOffset), bytes);
}

Value LoopEmitter::loadIndex(Value base, Value byteOffset) {
  return arith::IndexCastOp::create(builder, loc, builder.getIndexType(),
                                    load(builder.getI64Type(), base, byteOffset));
}

Value LoopEmitter::loadI32(Value base, Value byteOffset) {
  return arith::IndexCastOp::create(builder, loc, builder.getIndexType(),
                                    load(builder.getI32Type(), base, byteOffset));
}

SmallVector<Value>
LoopEmitter::guarded(Value condition, ValueRange otherwise,
                     llvm::function_ref<SmallVector<Value>(LoopEmitter &)> then) {
  auto branch = scf::IfOp::create(
      builder, loc, condition,
      [&](OpBuilder &b, Location l) {
        LoopEmitter inner(b, l);
        scf::YieldOp::create(b, l, then(inner));
      },
      [&](OpBuilder &b, Location l) { scf::YieldOp::create(b, l, otherwise); });
  return SmallVector<Value>(branch.getResults());
}

//===----------------------------------------------------------------------===//
// LoopContext
//===----------------------------------------------------------------------===//

static bool isPointerMember(int64_t member) {
  switch (member) {
  case core::kArgQ:
  case core::kArgK:
  case core::kArgV:
  case core::kArgO:
  case core::kArgLse:
  case core::kArgQueryStartLoc:
  case core::kArgContextLen:
  case core::kArgKeyBegin:
  case core::kArgKeyEnd:
  case core::kArgKvStart:
  case core::kArgPageTable:
  case core::kArgParams:
  case core::kArgTables:
  case core::kArgKeep:
    return true;
  default:
    return false;
  }
}

LoopContext::LoopContext(KernelOp kernel, OpBuilder &builder, Location loc, Value args)
    : kernel(kernel) {
  LoopEmitter e(builder, loc);
  Type pointer = LLVM::LLVMPointerType::get(builder.getContext());
  for (int64_t i = 0; i < core::kNumNativeArgs; ++i) {
    Value offset = e.constant(8 * i);
    members[i] = isPointerMember(i) ? e.load(pointer, args, offset) : e.loadIndex(args, offset);
  }
  for (unsigned i = 0; i < kernel.getNumParams(); ++i) {
    BlockArgument param = kernel.getBody().getArgument(i);
    // Little-endian: the low bytes of the 8-byte slot hold narrower types.
    mapping.map(param, e.load(param.getType(), arg(core::kArgParams), e.constant(8 * i)));
  }
  zeros = LLVM::AddressOfOp::create(builder, loc, pointer, kZeros);
  loadTables(kernel, e);
}

void LoopContext::loadTables(KernelOp kernel, LoopEmitter &e) {
  Type pointer = LLVM::LLVMPointerType::get(kernel.getContext());
  Value base = arg(core::kArgTables);
  for (unsigned i = 0, n = kernel.getNumTables(); i < n; ++i) {
    int64_t at = static_cast<int64_t>(sizeof(core::NativeTable)) * i;
    Table table;
    table.data = e.load(pointer, base, e.constant(at));
    table.offsets = e.load(pointer, base, e.constant(at + offsetof(core::NativeTable, offsets)));
    if (auto type = dyn_cast<TableType>(kernel.getTable(i).getType()))
      for (size_t d = 0; d < type.getDims().size(); ++d) {
        int64_t extent = at + offsetof(core::NativeTable, extents) + 8 * d;
        int64_t stride = at + offsetof(core::NativeTable, strides) + 8 * d;
        table.extents[d] = e.loadIndex(base, e.constant(extent));
        table.strides[d] = e.loadIndex(base, e.constant(stride));
      }
    tables.push_back(table);
  }
}

const LoopContext::Table &LoopContext::get(Value table) {
  return tables[cast<BlockArgument>(table).getArgNumber() -
                static_cast<unsigned>(kernel.getNumParams())];
}

Value LoopContext::place(LoopEmitter &e, Value condition, Value base, Value byteOffset) {
  return LLVM::SelectOp::create(e.builder, e.loc, condition, e.address(base, byteOffset), zeros);
}

Value LoopContext::loadTable(OpBuilder &builder, Location loc, Value table, ValueRange indices,
                             Type element) {
  LoopEmitter e(builder, loc);
  const Table &fields = get(table);
  auto type = cast<TableType>(table.getType());
  Value inside = e.bit(true), offset = e.constant(0);
  for (auto [d, dim] : llvm::enumerate(type.getDims())) {
    Value index = getTableIndex(dim, indices[d]);
    inside = e.both(inside, e.inside(index, fields.extents[d]));
    offset = e.add(offset, e.mul(index, fields.strides[d]));
  }
  int64_t bytes = std::max(1u, element.getIntOrFloatBitWidth() / 8);
  Value from = place(e, inside, fields.data, e.mul(offset, e.constant(bytes)));
  return LLVM::LoadOp::create(builder, loc, element, from, bytes);
}

std::pair<Value, Value> LoopContext::requestSpan(LoopEmitter &e, const Table &table) {
  Value first = e.loadIndex(table.offsets, e.mul(b, e.constant(8)));
  Value last = e.loadIndex(table.offsets, e.mul(e.add(b, e.constant(1)), e.constant(8)));
  return {first, e.sub(last, first)};
}

Value LoopContext::numRanges(OpBuilder &builder, Location loc, Value table) {
  LoopEmitter e(builder, loc);
  return requestSpan(e, get(table)).second;
}

/// The pair of int32 at `from`.
static std::pair<Value, Value> loadPair(LoopEmitter &e, Value from) {
  return {e.loadI32(from, e.constant(0)), e.loadI32(from, e.constant(4))};
}

std::pair<Value, Value> LoopContext::rangeBounds(OpBuilder &builder, Location loc, Value table,
                                                 Value index) {
  LoopEmitter e(builder, loc);
  const Table &fields = get(table);
  auto [first, count] = requestSpan(e, fields);
  Value inside = e.inside(index, count);
  Value at = e.mul(e.add(first, index), e.constant(8));
  auto [start, end] = loadPair(e, place(e, inside, fields.data, at));
  return {start, arith::SelectOp::create(builder, loc, inside, end, e.constant(-1))};
}

std::pair<Value, Value> LoopContext::rowRange(OpBuilder &builder, Location loc, Value table) {
  LoopEmitter e(builder, loc);
  const Table &fields = get(table);
  // No rows covered: the host builds no table and passes null.
  Value null = LLVM::ZeroOp::create(builder, loc, LLVM::LLVMPointerType::get(builder.getContext()));
  Value built = LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::ne, fields.data, null);
  auto [start, end] = loadPair(e, place(e, built, fields.data, e.mul(token, e.constant(8))));
  Value outside = e.constant(-1);
  return {arith::SelectOp::create(builder, loc, built, start, outside),
          arith::SelectOp::create(builder, loc, built, end, outside)};
}

std::pair<Value, Value> LoopContext::documentId(OpBuilder &builder, Location loc, Value table,
                                                Value position) {
  LoopEmitter e(builder, loc);
  const Table &fields = get(table);
  auto [first, count] = requestSpan(e, fields);
  Value has = e.inside(position, count);
  Value at = e.mul(e.add(first, position), e.constant(4));
  Value from = place(e, has, fields.data, at);
  return {has, LLVM::LoadOp::create(builder, loc, builder.getI32Type(), from, 4)};
}
