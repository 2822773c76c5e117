// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Prints what the parser read, for shipped_ptx.py to compare with the text: a line an instruction,
// "LINE @!%p1 mnemonic operand, operand". usage: attn-ptx-dump FILE
#include "attn/Sim/Ptx.h"

#include <cstdio>
#include <fstream>
#include <iterator>

using namespace attn::sim;
using Kind = PtxOperand::Kind;

static std::string print(const PtxKernel &kernel, const PtxOperand &operand);

static std::string join(const PtxKernel &kernel, const std::vector<PtxOperand> &operands,
                        size_t from, const char *separator) {
  std::string result;
  for (size_t i = from; i < operands.size(); ++i)
    result.append(i > from ? separator : "").append(print(kernel, operands[i]));
  return result;
}

static std::string printMemory(const PtxKernel &kernel, const PtxOperand &operand) {
  std::string base = operand.number >= 0 ? kernel.registers[operand.number].name : operand.text;
  std::string offset = std::to_string(operand.value);
  if (base.empty())
    return offset;
  return operand.value ? base + "+" + offset : base;
}

static std::string printFloat(const PtxOperand &operand) {
  char bits[32];
  std::snprintf(bits, sizeof(bits), "0%c%0*llX", operand.number == 32 ? 'f' : 'd',
                operand.number / 4, static_cast<unsigned long long>(operand.value));
  return bits;
}

static std::string print(const PtxKernel &kernel, const PtxOperand &operand) {
  switch (operand.kind) {
  case Kind::Register:
    return (operand.negated ? "!" : "") + kernel.registers[operand.number].name;
  case Kind::Special:
  case Kind::Symbol:
    return operand.text;
  case Kind::Integer:
    return std::to_string(operand.value);
  case Kind::Float:
    return printFloat(operand);
  case Kind::Label:
    // The text names it otherwise: the line that it leads to.
    return "L" + std::to_string(operand.value < static_cast<int64_t>(kernel.instructions.size())
                                    ? kernel.instructions[operand.value].line
                                    : 0);
  case Kind::Memory:
    return "[" + printMemory(kernel, operand) + "]";
  case Kind::Vector:
    return "{" + join(kernel, operand.elements, 0, ",") + "}";
  case Kind::TensorAt:
    return "[" + printMemory(kernel, operand.elements[0]) + ",{" +
           join(kernel, operand.elements, 1, ",") + "}]";
  case Kind::Pair:
    return join(kernel, operand.elements, 0, "|");
  case Kind::Sink:
    return "_";
  }
  return "?";
}

int main(int argc, char **argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: attn-ptx-dump FILE\n");
    return 2;
  }
  std::ifstream file(argv[1], std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  attn::core::Result<PtxModule> module = parsePtx(text);
  if (!module.ok()) {
    std::fprintf(stderr, "%s: %s\n", argv[1], module.message().c_str());
    return 1;
  }
  for (const PtxKernel &kernel : module->kernels) {
    std::printf("kernel %s params %zu threads %d\n", kernel.name.c_str(), kernel.params.size(),
                kernel.maxThreads[0]);
    for (const PtxInstruction &instruction : kernel.instructions) {
      std::string guard;
      if (instruction.guard >= 0)
        guard = std::string(instruction.guardNegated ? "@!" : "@") +
                kernel.registers[instruction.guard].name + " ";
      std::string operands = join(kernel, instruction.operands, 0, ",");
      std::printf("%d %s%s %s\n", instruction.line, guard.c_str(), instruction.mnemonic().c_str(),
                  operands.c_str());
    }
  }
  return 0;
}
