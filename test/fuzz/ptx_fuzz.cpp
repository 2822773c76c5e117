// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Any bytes are PTX or are refused with a message; what is accepted holds what Ptx.h promises, and
// its kernels run to their end, to a report or are refused.
//
// Here it is linked with mutate.cpp, which needs no special compiler. For libFuzzer:
//   clang++ -std=c++17 -g -O1 -fsanitize=fuzzer,address,undefined -Iinclude -o ptx-libfuzzer
//     test/fuzz/ptx_fuzz.cpp lib/Sim/*.cpp
//   ./ptx-libfuzzer -max_total_time=600 -max_len=20000 CORPUS test/fuzz/seeds
#include "attn/Sim/Sim.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

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

alignas(128) static uint8_t memory[2][1 << 14];

/// Bytes for a parameter of the given size: an address, a tensor map, or small numbers.
static std::vector<uint8_t> argument(size_t size, size_t number) {
  std::vector<uint8_t> bytes(size, 1);
  const uint8_t *address = memory[number % 2];
  if (size == 8)
    std::memcpy(bytes.data(), &address, 8);
  if (size != 128)
    return bytes;
  TensorMap map;
  map.rank = 2;
  map.elementBytes = 2;
  map.data = address;
  map.dims = {64, 60, 1, 1, 1};
  map.strides = {0, 128, 0, 0, 0};
  map.box = {64, 8, 1, 1, 1};
  map.swizzleBytes = 128;
  const auto encoded = encode(map);
  require(encoded.ok(), "a tensor map");
  return {encoded->begin(), encoded->end()};
}

/// Launches a kernel with the policy that `seed` says.
static void checkRun(const PtxModule &module, const PtxKernel &kernel, uint64_t seed) {
  static constexpr int64_t kMostBytes = 4096;
  Launch launch;
  launch.module = &module;
  launch.kernel = kernel.name;
  launch.block = {seed % 3 ? 128u : 65u, 1, 1};
  launch.grid = {2, 1, 1};
  for (int i = 0; i < 3; ++i) {
    if (kernel.requiredThreads[0] > 0)
      launch.block[i] = static_cast<uint32_t>(kernel.requiredThreads[i]);
    if (kernel.requiredCluster[0] > 0)
      launch.grid[i] = static_cast<uint32_t>(kernel.requiredCluster[i]);
  }
  launch.dynamicShared = 1 << 15;
  for (const PtxVariable &param : kernel.params) {
    if (param.bytes() < 0 || param.bytes() > kMostBytes)
      return;
    launch.params.push_back(argument(static_cast<size_t>(param.bytes()), launch.params.size()));
  }
  launch.buffers = {{"first", memory[0], sizeof(memory[0]), true},
                    {"second", memory[1], sizeof(memory[1]), seed % 5 != 0}};
  launch.policy = {static_cast<Policy::Kind>(seed % 3), seed};
  launch.maxSteps = 4000;
  const attn::core::Result<Outcome> outcome = run(launch);
  if (!outcome.ok()) {
    require(outcome.message().substr(0, 8) == "launch: ", "an error of a launch");
    return;
  }
  require(outcome->finished || !outcome->reports.empty(), "a launch that stops says why");
  for (const Report &report : outcome->reports)
    require(report.text.substr(0, 5) == "line ", "a report has a line");
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
  uint64_t seed = size;
  for (size_t i = 0; i < size; ++i)
    seed = seed * 31 + data[i];
  for (const PtxKernel &kernel : module->kernels) {
    checkKernel(kernel, lines);
    checkRun(*module, kernel, seed);
  }
  require(cost(*module) <= 2 * size, "memory grows with the text");
  return 0;
}
