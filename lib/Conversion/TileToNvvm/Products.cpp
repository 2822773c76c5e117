// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products. One statement of inline PTX each, fence, steps and commit together, so that nothing can
// come between; the wait takes and gives the registers, so that no use can move above it (PTX ISA,
// wgmma.mma_async: registers under way must not be touched).

#include "KernelLowering.h"

using namespace mlir;
using namespace attn::tile;

/// "text,text,..." count times.
static std::string repeat(StringRef text, int64_t count) {
  std::string all;
  for (int64_t i = 0; i < count; ++i)
    all += (i == 0 ? "" : ",") + text.str();
  return all;
}

/// "{$first, ..., $(first + count - 1)}"
static std::string registerList(int64_t first, int64_t count) {
  std::string all = "{";
  for (int64_t i = 0; i < count; ++i)
    all += (i == 0 ? "$" : ", $") + std::to_string(first + i);
  return all + "}";
}

/// ",0,1,...": inputs tied to the outputs.
static std::string tied(int64_t count) {
  std::string all;
  for (int64_t i = 0; i < count; ++i)
    all += "," + std::to_string(i);
  return all;
}

static std::string instruction(int64_t columns, Type element) {
  StringRef type = element.isBF16() ? "bf16" : "f16";
  return ("wgmma.mma_async.sync.aligned.m64n" + Twine(columns) + "k16.f32." + type + "." + type +
          " ")
      .str();
}

static SmallVector<Type> floats(MLIRContext *context, int64_t count) {
  return SmallVector<Type>(count, Float32Type::get(context));
}

/// Offset of step `step` in a K-major slot of `rows` rows, in units of 16 bytes: 16 columns are 32
/// bytes; four steps to the next column group.
static std::string kMajorOffset(int64_t rows, int64_t step) {
  return std::to_string(step / 4 * rows * 128 / 16 + step % 4 * 2);
}

/// S = A B^T over steps of 16 columns, for B's first `columns` rows; `factor` gives the text that
/// prepares the first factor and its name, `second` is the operand of B's descriptor.
static std::string
transposedProduct(attn::tile::RingType b, int64_t columns, int64_t second, bool fromRegisters,
                  function_ref<std::pair<std::string, std::string>(int64_t)> factor) {
  std::string accumulator = registerList(0, columns / 2);
  std::string text = "{\n.reg .pred p, q;\n.reg .b64 a, b;\n"
                     "setp.ne.b32 p, 1, 0;\nsetp.ne.b32 q, 0, 0;\nwgmma.fence.sync.aligned;\n";
  for (int64_t step = 0; step < b.getCols() / 16; ++step) {
    auto [prepare, name] = factor(step);
    text += prepare + "add.s64 b, $" + std::to_string(second) + ", " +
            kMajorOffset(b.getRows(), step) + ";\n";
    // The first step does not read the accumulator. Neither factor is negated; which one is
    // transposed is said for those in shared memory.
    text += instruction(columns, b.getElement()) + accumulator + ", " + name + ", b, " +
            (step == 0 ? "q" : "p") + (fromRegisters ? ", 1, 1, 0;\n" : ", 1, 1, 0, 0;\n");
  }
  return text + "wgmma.commit_group.sync.aligned;\n}";
}

void KernelLowering::emitMmaShared(MmaSharedOp op) {
  const Ring &a = ringOf(op.getA()), &b = ringOf(op.getB());
  int64_t columns = op.getResult().getType().getFragment().getCols(), count = columns / 2;
  std::string text =
      transposedProduct(b.type, columns, count + 1, /*fromRegisters=*/false, [&](int64_t step) {
        return std::pair("add.s64 a, $" + std::to_string(count) + ", " +
                             kMajorOffset(a.type.getRows(), step) + ";\n",
                         std::string("a"));
      });
  Value descriptorA = descriptorAhead(a, lookupOne(op.getAUse()), /*kMajor=*/true);
  // Three groups have it in place: made ahead, dense 64 took 1 to 2 % longer.
  Value useB = lookupOne(op.getBUse());
  Value descriptorB = kernel.getConsumers().getGroups() > 2
                          ? descriptorOf(b, useB, /*kMajor=*/true)
                          : descriptorAhead(b, useB, /*kMajor=*/true);
  bind(op.getResult(), e.assembly(text, repeat("=f", count) + ",l,l", {descriptorA, descriptorB},
                                  floats(op.getContext(), count)));
}

void KernelLowering::emitMmaOperand(MmaOperandOp op) {
  const Ring &b = ringOf(op.getB());
  Values operands = lookup(op.getA());
  int64_t columns = op.getResult().getType().getFragment().getCols();
  int64_t count = columns / 2, inputs = operands.size();
  std::string text =
      transposedProduct(b.type, columns, count + inputs, /*fromRegisters=*/true, [&](int64_t step) {
        return std::pair(std::string(), registerList(count + 4 * step, 4));
      });
  operands.push_back(descriptorAhead(b, lookupOne(op.getBUse()), /*kMajor=*/true));
  std::string constraints = repeat("=f", count) + "," + repeat("r", inputs) + ",l";
  bind(op.getResult(), e.assembly(text, constraints, operands, floats(op.getContext(), count)));
}

/// Four 8x8 matrices an instruction (PTX ISA, ldmatrix): lane l gives the address of row l mod 16,
/// of the first or the last 8 of 16 columns. The 128-byte swizzle moves 16-byte piece p of row r to
/// p xor (r mod 8).
std::pair<Value, Value> KernelLowering::matrixPlace(Value base) {
  Value rowInWarp = e.bitAnd(lane, e.i32(15));
  Value row = e.add(e.shl(e.bitAnd(warpInCta, e.i32(3)), e.i32(4)), rowInWarp);
  Value line = e.add(base, e.shl(row, e.i32(7)));
  Value swizzle = e.bitAnd(lane, e.i32(7));
  return {line, e.bitXor(e.lshr(lane, e.i32(4)), swizzle)};
}

Value KernelLowering::matrixAddress(std::pair<Value, Value> place, int64_t step) {
  Value piece = e.shl(e.bitXor(place.second, e.i32(step % 4 * 2)), e.i32(4));
  return e.add(e.add(place.first, piece), e.i32(step / 4 * kFragmentRows * 128));
}

void KernelLowering::emitLoadOperand(LoadOperandOp op) {
  const Ring &ring = ringOf(op.getRing());
  Slot slot = slotOf(ring.type.getStages(), lookupOne(op.getUse()));
  auto place = matrixPlace(stageAddress(ring, slot.stage));
  Type i32 = e.getBuilder().getI32Type();
  Values registers;
  for (int64_t step = 0; step < ring.type.getCols() / 16; ++step) {
    Value at = matrixAddress(place, step);
    llvm::append_range(
        registers, e.assembly("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {$0, $1, $2, $3}, [$4];",
                              "=r,=r,=r,=r,r", {at}, SmallVector<Type>(4, i32)));
  }
  bind(op.getResult(), registers);
}

void KernelLowering::emitMmaRegister(MmaRegisterOp op) {
  const Ring &b = ringOf(op.getB());
  Values a = lookup(op.getA()), c = lookup(op.getC());
  int64_t count = c.size(), inputs = a.size();
  std::string accumulator = registerList(0, count);
  std::string text =
      "{\n.reg .pred p;\n.reg .b64 b;\nsetp.ne.b32 p, 1, 0;\nwgmma.fence.sync.aligned;\n";
  for (int64_t step = 0; step < b.type.getRows() / 16; ++step) {
    // 16 rows of 128 bytes, in units of 16 bytes.
    text += "add.s64 b, $" + std::to_string(count + inputs) + ", " +
            std::to_string(step * 16 * 128 / 16) + ";\n";
    // The last 1: the second factor is MN-major.
    text += instruction(b.type.getCols(), b.type.getElement()) + accumulator + ", " +
            registerList(count + 4 * step, 4) + ", b, p, 1, 1, 1;\n";
  }
  text += "wgmma.commit_group.sync.aligned;\n}";
  Values operands = a;
  operands.push_back(descriptorAhead(b, lookupOne(op.getBUse()), /*kMajor=*/false));
  llvm::append_range(operands, c);
  std::string constraints = repeat("=f", count) + "," + repeat("r", inputs) + ",l" + tied(count);
  bind(op.getResult(), e.assembly(text, constraints, operands, floats(op.getContext(), count)));
}

void KernelLowering::emitWaitMma(WaitMmaOp op) {
  const Values &pending = lookup(op.getPending());
  int64_t count = pending.size();
  std::string text = "wgmma.wait_group.sync.aligned " + std::to_string(op.getLater()) + ";";
  bind(op.getResult(), e.assembly(text, repeat("=f", count) + tied(count), pending,
                                  floats(op.getContext(), count)));
}
