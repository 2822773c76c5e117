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

void KernelLowering::emitMmaShared(MmaSharedOp op) {
  const Ring &a = ringOf(op.getA()), &b = ringOf(op.getB());
  int64_t columns = b.type.getRows(), count = columns / 2;
  std::string accumulator = registerList(0, count);
  std::string text = "{\n.reg .pred p, q;\n.reg .b64 a, b;\n"
                     "setp.ne.b32 p, 1, 0;\nsetp.ne.b32 q, 0, 0;\nwgmma.fence.sync.aligned;\n";
  for (int64_t step = 0; step < a.type.getCols() / 16; ++step) {
    // 16 columns are 32 bytes; four steps to the next column group. In units of 16 bytes.
    auto offset = [&](const Ring &ring) {
      return std::to_string(step / 4 * ring.type.getRows() * 128 / 16 + step % 4 * 2);
    };
    text += "add.s64 a, $" + std::to_string(count) + ", " + offset(a) + ";\n";
    text += "add.s64 b, $" + std::to_string(count + 1) + ", " + offset(b) + ";\n";
    // The first step does not read the accumulator. Neither factor is negated or transposed.
    text += instruction(columns, b.type.getElement()) + accumulator + ", a, b, " +
            (step == 0 ? "q" : "p") + ", 1, 1, 0, 0;\n";
  }
  text += "wgmma.commit_group.sync.aligned;\n}";
  Value descriptorA = descriptorOf(a, slotOf(a, lookupOne(op.getAUse())).stage, /*kMajor=*/true);
  Value descriptorB = descriptorOf(b, slotOf(b, lookupOne(op.getBUse())).stage, /*kMajor=*/true);
  bind(op.getResult(), e.assembly(text, repeat("=f", count) + ",l,l", {descriptorA, descriptorB},
                                  floats(op.getContext(), count)));
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
  operands.push_back(descriptorOf(b, slotOf(b, lookupOne(op.getBUse())).stage, /*kMajor=*/false));
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
