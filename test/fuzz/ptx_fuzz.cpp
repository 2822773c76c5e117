// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Any bytes are PTX or are refused with a message; what is accepted holds what Ptx.h promises.
//
// Here it is linked with mutate.cpp, which needs no special compiler. For libFuzzer:
//   clang++ -std=c++17 -g -O1 -fsanitize=fuzzer,address,undefined -Iinclude -o ptx-libfuzzer
//     test/fuzz/ptx_fuzz.cpp lib/Sim/Ptx*.cpp
//   ./ptx-libfuzzer -max_total_time=600 -max_len=20000 CORPUS test/fuzz/seeds
#include "attn/Sim/Ptx.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

using namespace attn::sim;
using Kind = PtxOperand::Kind;

static void require(bool holds, const char *what) {
  if (holds)
    return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

static void checkOperand(const PtxKernel &kernel, const PtxOperand &operand, int level) {
  auto registers = static_cast<int32_t>(kernel.registers.size());
  switch (operand.kind) {
  case Kind::Register:
    require(operand.number >= 0 && operand.number < registers, "register number");
    require(!operand.negated || kernel.registers[operand.number].type == PtxType::Pred,
            "negated predicate");
    break;
  case Kind::Memory:
    require(operand.number < registers, "base register");
    break;
  case Kind::Label:
    require(operand.value >= 0 && operand.value <= static_cast<int64_t>(kernel.instructions.size()),
            "label");
    break;
  case Kind::Float:
    require(operand.number == 32 || operand.number == 64, "width of a float");
    break;
  case Kind::Special:
  case Kind::Symbol:
    require(!operand.text.empty(), "name");
    break;
  case Kind::Vector:
    require(!operand.elements.empty() && level == 0, "vector");
    break;
  case Kind::TensorAt:
    require(operand.elements.size() >= 2 && level == 0 && operand.elements[0].kind == Kind::Memory,
            "coordinates");
    break;
  case Kind::Pair:
    require(operand.elements.size() == 2 && level == 0, "pair");
    break;
  case Kind::Integer:
  case Kind::Sink:
    break;
  }
  for (const PtxOperand &element : operand.elements)
    checkOperand(kernel, element, level + 1);
}

static void checkKernel(const PtxKernel &kernel, int32_t lines) {
  require(!kernel.name.empty(), "name of a kernel");
  int32_t line = kernel.line;
  for (const PtxInstruction &instruction : kernel.instructions) {
    require(instruction.line >= line && instruction.line <= lines, "line");
    line = instruction.line;
    require(!instruction.opcode.empty(), "opcode");
    require(instruction.guard < static_cast<int32_t>(kernel.registers.size()), "guard");
    for (const PtxOperand &operand : instruction.operands)
      checkOperand(kernel, operand, 0);
  }
}

static size_t operandCost(const std::vector<PtxOperand> &operands) {
  size_t cost = operands.capacity();
  for (const PtxOperand &operand : operands)
    cost += operandCost(operand.elements);
  return cost;
}

/// Objects that the module consists of.
static size_t cost(const PtxModule &module) {
  size_t result = module.kernels.size() + module.shared.size() + module.globals.size();
  for (const PtxKernel &kernel : module.kernels) {
    result += kernel.params.size() + kernel.registers.size() + kernel.shared.size() +
              kernel.locals.size();
    for (const PtxInstruction &instruction : kernel.instructions)
      result += 1 + instruction.modifiers.size() + operandCost(instruction.operands);
  }
  return result;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view text(reinterpret_cast<const char *>(data), size);
  attn::core::Result<PtxModule> module = parsePtx(text);
  if (!module.ok()) {
    require(module.message().substr(0, 5) == "line ", "an error has a line");
    require(module.message().size() < 400, "an error is short");
    return 0;
  }
  auto lines = static_cast<int32_t>(std::count(text.begin(), text.end(), '\n') + 1);
  for (const PtxKernel &kernel : module->kernels)
    checkKernel(kernel, lines);
  require(cost(*module) <= 2 * size, "memory grows with the text");
  return 0;
}
