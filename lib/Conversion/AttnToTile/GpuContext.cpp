// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "GpuContext.h"

using namespace mlir;
using namespace attn;
using Predicate = arith::CmpIPredicate;

/// Words of a NativeTable.
static constexpr int64_t kDataWord = offsetof(core::NativeTable, data) / 8;
static constexpr int64_t kOffsetsWord = offsetof(core::NativeTable, offsets) / 8;
static constexpr int64_t kExtentsWord = offsetof(core::NativeTable, extents) / 8;
static constexpr int64_t kStridesWord = offsetof(core::NativeTable, strides) / 8;

/// The low bits of a parameter's word as its type.
static Value narrowParam(TileEmitter &e, Value word, Type type) {
  if (type.isInteger(64))
    return word;
  Value low = e.toI32(word);
  return type.isF32() ? arith::BitcastOp::create(e.builder, e.loc, type, low).getResult() : low;
}

GpuContext::GpuContext(KernelOp kernel, OpBuilder &builder, Location loc, Value args)
    : numParams(static_cast<unsigned>(kernel.getNumParams())) {
  TileEmitter e(builder, loc);
  for (unsigned i = 0; i < numParams; ++i) {
    BlockArgument param = kernel.getBody().getArgument(i);
    mapping.map(param, narrowParam(e, e.word(args, core::kNumCudaArgs + i), param.getType()));
  }
  for (unsigned i = 0, n = kernel.getNumTables(); i < n; ++i) {
    int64_t base = core::kNumCudaArgs + numParams + core::kNativeTableWords * i;
    Table table;
    table.data = e.pointerWord(args, base + kDataWord);
    table.offsets = e.pointerWord(args, base + kOffsetsWord);
    int64_t rank = 1;
    if (auto type = dyn_cast<TableType>(kernel.getTable(i).getType()))
      rank = static_cast<int64_t>(type.getDims().size());
    for (int64_t d = 0; d < rank; ++d) {
      table.extents[d] = e.word(args, base + kExtentsWord + d);
      table.strides[d] = e.word(args, base + kStridesWord + d);
    }
    tables.push_back(table);
  }
}

const GpuContext::Table &GpuContext::get(Value table) const {
  return tables[cast<BlockArgument>(table).getArgNumber() - numParams];
}

/// `index` (i64) if it lies in [0, extent), else 0.
static Value clampIndex(TileEmitter &e, Value inside, Value index) {
  return e.select(inside, index, e.i64(0));
}

Value GpuContext::loadTable(OpBuilder &builder, Location loc, Value table, ValueRange indices,
                            Type element) {
  TileEmitter e(builder, loc);
  const Table &fields = get(table);
  auto type = cast<TableType>(table.getType());
  Value inside, offset = e.i64(0);
  for (auto [d, dim] : llvm::enumerate(type.getDims())) {
    Value index = e.toI64(getTableIndex(dim, indices[d]));
    Value in = e.cmp(Predicate::ult, index, fields.extents[d]);
    inside = inside ? e.both(inside, in) : in;
    offset = e.add(offset, e.mul(index, fields.strides[d]));
  }
  unsigned bytes = std::max(1u, element.getIntOrFloatBitWidth() / 8);
  Value at = e.mul(clampIndex(e, inside, offset), e.i64(bytes));
  Value value = e.load(element, e.address(fields.data, at), bytes);
  Value zero = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(element));
  return e.select(inside, value, zero);
}

std::pair<Value, Value> GpuContext::requestSpan(TileEmitter &e, const Table &table) const {
  Value at = e.mul(e.toI64(b), e.i64(8));
  Value first = e.load(e.builder.getI64Type(), e.address(table.offsets, at), 8);
  Value last = e.load(e.builder.getI64Type(), e.address(table.offsets, e.add(at, e.i64(8))), 8);
  return {first, e.sub(last, first)};
}

Value GpuContext::numRanges(OpBuilder &builder, Location loc, Value table) {
  TileEmitter e(builder, loc);
  return e.toIndex(requestSpan(e, get(table)).second);
}

/// The pair of i32 at `entry` (i64), or `otherwise` if not `inside`; index type.
static std::pair<Value, Value> loadPair(TileEmitter &e, Value data, Value inside, Value entry,
                                        std::pair<int64_t, int64_t> otherwise) {
  auto type = VectorType::get(2, e.builder.getI32Type());
  Value at = e.mul(clampIndex(e, inside, entry), e.i64(8));
  Value pair = e.load(type, e.address(data, at), 8);
  auto part = [&](int64_t i, int64_t outside) {
    Value value = LLVM::ExtractElementOp::create(e.builder, e.loc, pair, e.i32(i));
    return e.toIndex(e.select(inside, value, e.i32(outside)));
  };
  Value start = part(0, otherwise.first);
  return {start, part(1, otherwise.second)};
}

std::pair<Value, Value> GpuContext::rangeBounds(OpBuilder &builder, Location loc, Value table,
                                                Value index) {
  TileEmitter e(builder, loc);
  const Table &fields = get(table);
  auto [first, count] = requestSpan(e, fields);
  Value number = e.toI64(index);
  Value inside = e.cmp(Predicate::ult, number, count);
  return loadPair(e, fields.data, inside, e.add(first, number), {0, -1});
}

std::pair<Value, Value> GpuContext::rowRange(OpBuilder &builder, Location loc, Value table) {
  TileEmitter e(builder, loc);
  const Table &fields = get(table);
  // No rows covered: the host builds no table and its extent is 0.
  Value row = e.toI64(token);
  Value inside = e.cmp(Predicate::ult, row, fields.extents[0]);
  return loadPair(e, fields.data, inside, row, {-1, -1});
}

std::pair<Value, Value> GpuContext::documentId(OpBuilder &builder, Location loc, Value table,
                                               Value position) {
  TileEmitter e(builder, loc);
  const Table &fields = get(table);
  auto [first, count] = requestSpan(e, fields);
  Value number = e.toI64(position);
  Value has = e.cmp(Predicate::ult, number, count);
  Value at = e.mul(clampIndex(e, has, e.add(first, number)), e.i64(4));
  Value id = e.load(builder.getI32Type(), e.address(fields.data, at), 4);
  return {has, id};
}
