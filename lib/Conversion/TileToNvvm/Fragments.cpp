// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Work on the registers of fragments. Register 4 j + 2 r + c of an acc fragment is row r of the
// thread's two, column 8 j + 2 (lane mod 4) + c.

#include "KernelLowering.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace attn::tile;

/// The registers of row `r` of a thread, in the order of columns.
static Values rowRegisters(const Values &registers, int64_t r) {
  Values row;
  for (size_t i = 2 * r; i < registers.size(); i += 4)
    row.append({registers[i], registers[i + 1]});
  return row;
}

Value KernelLowering::isClear(Value word, int64_t bit) {
  // Bits tested one by one against a constant: ptxas takes them to predicates together.
  return e.cmp(IntPredicate::eq, e.bitAnd(word, e.i32(int64_t(1) << bit)), e.i32(0));
}

void KernelLowering::emitFill(FillOp op) {
  Value value = lookupOne(op.getValue());
  auto types = flatten(op, op.getResult().getType());
  bind(op.getResult(), Values(types->size(), value));
}

void KernelLowering::emitRowMax(RowMaxOp op) {
  const Values &registers = lookup(op.getFragment());
  auto larger = [&](Value a, Value b) { return e.maxnum(a, b); };
  Values rows;
  for (int64_t r = 0; r < 2; ++r) {
    Value value = emitTree(rowRegisters(registers, r), larger);
    // A row lies in the four lanes of a quad.
    for (int64_t distance : {1, 2})
      value = larger(value, e.shuffleXor(value, distance));
    rows.push_back(value);
  }
  bind(op.getResult(), rows);
}

void KernelLowering::emitRowSum(RowSumOp op) {
  const Values &registers = lookup(op.getFragment());
  auto sum = [&](Value a, Value b) { return e.fadd(a, b); };
  Value first = emitTree(rowRegisters(registers, 0), sum);
  Value second = emitTree(rowRegisters(registers, 1), sum);
  bind(op.getResult(), {first, second});
}

void KernelLowering::emitRowFinish(RowFinishOp op) {
  Values rows = lookup(op.getRows());
  for (Value &value : rows)
    for (int64_t distance : {1, 2})
      value = e.fadd(value, e.shuffleXor(value, distance));
  bind(op.getResult(), rows);
}

void KernelLowering::emitWarpAny(WarpAnyOp op) {
  const Values &rows = lookup(op.getRows());
  OpBuilder &b = e.getBuilder();
  Value any = NVVM::VoteSyncOp::create(b, e.getLoc(), b.getI1Type(), e.i32(-1),
                                       e.bitOr(rows[0], rows[1]), NVVM::VoteSyncKind::any);
  bind(op.getResult(), {any});
}

Values KernelLowering::packPairs(const Values &registers, Type element) {
  // PTX ISA, cvt: the first source goes to the upper half.
  StringRef text =
      element.isBF16() ? "cvt.rn.bf16x2.f32 $0, $1, $2;" : "cvt.rn.f16x2.f32 $0, $1, $2;";
  Type i32 = e.getBuilder().getI32Type();
  Values packed;
  for (size_t i = 0; i < registers.size(); i += 2)
    packed.push_back(e.assembly(text, "=r,f,f", {registers[i + 1], registers[i]}, {i32},
                                /*pure=*/true)[0]);
  return packed;
}

/// The accumulator's pairs are the A registers of the next product, in order (PTX ISA, wgmma
/// register fragments).
void KernelLowering::emitToOperand(ToOperandOp op) {
  FragmentType type = op.getResult().getType();
  Values packed = packPairs(lookup(op.getFragment()), type.getElement());
  packed.resize(type.getCols() / 4, e.i32(0));
  bind(op.getResult(), packed);
}

/// A limit becomes the number of the thread's elements below it; two shifts make the bits. PTX
/// shifts give 0 for 32 and more.
void KernelLowering::emitRangeBits(RangeBitsOp op) {
  int64_t columns = op.getResult().getType().getCols(), elements = columns / 4;
  Type i32 = e.getBuilder().getI32Type();
  auto elementsBelow = [&](Value limit) {
    // Cut off first, so that nothing overflows.
    Value inside = e.smin(e.smax(limit, e.i32(0)), e.i32(columns));
    Value c = e.smax(e.sub(inside, firstColumn), e.i32(0));
    Value pairs = e.bitAnd(e.lshr(c, e.i32(2)), e.i32(-2));
    return e.add(pairs, e.smin(e.bitAnd(c, e.i32(7)), e.i32(2)));
  };
  auto shift = [&](StringRef text, Value amount) {
    return e.assembly(text, "=r,r,r", {e.i32(-1), e.smax(amount, e.i32(0))}, {i32},
                      /*pure=*/true)[0];
  };
  Values words;
  for (auto [lo, hi] : llvm::zip(lookup(op.getLo()), lookup(op.getHi()))) {
    Value first = elementsBelow(lo), last = elementsBelow(hi);
    for (int64_t at = 0; at < elements; at += 32) {
      Value below = shift("shr.u32 $0, $1, $2;", e.sub(e.i32(at + 32), last));
      Value above = shift("shl.b32 $0, $1, $2;", e.sub(first, e.i32(at)));
      words.push_back(e.bitAnd(below, above));
    }
  }
  bind(op.getResult(), words);
}

void KernelLowering::emitBitsOr(BitsOrOp op) {
  Values words;
  for (auto [a, b] : llvm::zip(lookup(op.getLhs()), lookup(op.getRhs())))
    words.push_back(e.bitOr(a, b));
  bind(op.getResult(), words);
}

void KernelLowering::emitSelect(SelectOp op) {
  Values registers = lookup(op.getFragment());
  const Values &words = lookup(op.getBits());
  Value otherwise = lookupOne(op.getOtherwise());
  // A row after the other: ptxas takes up to seven neighbouring bits of a word to predicates at
  // once.
  for (size_t row = 0; row < 2; ++row)
    for (size_t element = 0; element < registers.size() / 2; ++element) {
      size_t i = element / 2 * 4 + row * 2 + element % 2;
      Value word = words[row * words.size() / 2 + element / 32];
      registers[i] = e.select(isClear(word, element % 32), otherwise, registers[i]);
    }
  bind(op.getResult(), registers);
}
