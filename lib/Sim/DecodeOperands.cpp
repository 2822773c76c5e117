// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Decode.h"

#include <cstring>

using namespace attn::sim;

using Kind = PtxOperand::Kind;

int32_t Decoder::constant(uint64_t value, bool isWide) {
  auto [found, isNew] = constantAt.emplace(std::make_pair(value, isWide), 0);
  if (!isNew)
    return found->second;
  const size_t at = program.constants.size();
  program.constants.resize(at + (isWide ? 256 : 128));
  for (size_t lane = 0; lane < 32; ++lane)
    std::memcpy(&program.constants[at + lane * (isWide ? 8 : 4)], &value, isWide ? 8 : 4);
  return found->second = ~static_cast<int32_t>(at);
}

/// A register that the machine fills in when the CTA starts.
int32_t Decoder::special(const std::string &name) {
  static const std::set<std::string> names = {
      "%tid.x",           "%tid.y",           "%tid.z",
      "%ntid.x",          "%ntid.y",          "%ntid.z",
      "%ctaid.x",         "%ctaid.y",         "%ctaid.z",
      "%nctaid.x",        "%nctaid.y",        "%nctaid.z",
      "%laneid",          "%warpid",          "%nwarpid",
      "%lanemask_eq",     "%lanemask_le",     "%lanemask_lt",
      "%lanemask_ge",     "%lanemask_gt",     "%dynamic_smem_size",
      "%total_smem_size", "%cluster_ctarank", "%cluster_nctarank"};
  if (!names.count(name)) {
    fail("special register '" + name + "'");
    return kNoOperand;
  }
  auto [found, isNew] = specialAt.emplace(name, 0);
  if (isNew) {
    program.registerBytes = (program.registerBytes + 3) / 4 * 4;
    found->second = static_cast<int32_t>(program.registerBytes);
    program.registerBytes += 128;
    program.specials.push_back({found->second, name});
  }
  return found->second;
}

bool Decoder::symbol(const std::string &name, uint64_t &value, Space &space) {
  auto found = symbols.find(name);
  if (found == symbols.end()) {
    fail("unknown name '" + name + "'");
    return false;
  }
  value = found->second.first;
  space = found->second.second;
  return true;
}

int32_t Decoder::source(const PtxOperand &operand, PtxType type) {
  if (operand.negated) {
    fail("negated operand");
    return kNoOperand;
  }
  const bool needsWide = byteSize(type) == 8;
  switch (operand.kind) {
  case Kind::Register:
    if (kernel.registers[operand.number].type == PtxType::Pred ||
        isWide(operand.number) != needsWide)
      fail("register " + kernel.registers[operand.number].name + " has the wrong size");
    return registerOffset[operand.number];
  case Kind::Special:
    if (needsWide)
      fail("special register '" + operand.text + "' of 64 bits");
    return special(operand.text);
  case Kind::Integer:
    if (type == PtxType::F32 || type == PtxType::F64 || type == PtxType::F16 ||
        type == PtxType::BF16)
      fail("integer where a float is expected");
    return constant(needsWide ? static_cast<uint64_t>(operand.value)
                              : static_cast<uint32_t>(operand.value),
                    needsWide);
  case Kind::Float:
    if ((operand.number == 64) != needsWide)
      fail("float of " + std::to_string(operand.number) + " bits");
    return constant(static_cast<uint64_t>(operand.value), needsWide);
  case Kind::Symbol: {
    uint64_t value = 0;
    Space space;
    if (!symbol(operand.text, value, space))
      return kNoOperand;
    if (byteSize(type) < 4 || (space == Space::Global && !needsWide))
      fail("address in a narrow register");
    return constant(value, needsWide);
  }
  default:
    fail("operand of an unexpected form");
    return kNoOperand;
  }
}

int32_t Decoder::destination(const PtxOperand &operand, PtxType type) {
  if (operand.kind == Kind::Sink)
    return kNoOperand;
  if (operand.kind != Kind::Register || operand.negated) {
    fail("expected a register to write");
    return kNoOperand;
  }
  const bool isPredicate = kernel.registers[operand.number].type == PtxType::Pred;
  if (isPredicate != (type == PtxType::Pred) || isWide(operand.number) != (byteSize(type) == 8)) {
    fail("register " + kernel.registers[operand.number].name + " has the wrong size");
    return kNoOperand;
  }
  return registerOffset[operand.number];
}

int32_t Decoder::predicate(const PtxOperand &operand, bool &negated) {
  negated = operand.negated;
  if (operand.kind == Kind::Integer)
    return constant(operand.value ? ~uint32_t(0) : 0, false);
  if (operand.kind != Kind::Register || kernel.registers[operand.number].type != PtxType::Pred) {
    fail("expected a predicate");
    return kNoOperand;
  }
  return registerOffset[operand.number];
}

int32_t Decoder::addressValue(const PtxOperand &operand, bool &isWideAddress) {
  if (operand.kind == Kind::Symbol || (operand.kind == Kind::Memory && operand.number < 0)) {
    uint64_t value = 0;
    Space space;
    if (!operand.text.empty() && !symbol(operand.text, value, space))
      return kNoOperand;
    isWideAddress = true;
    return constant(value, true);
  }
  if (operand.kind == Kind::Integer) {
    isWideAddress = true;
    return constant(static_cast<uint64_t>(operand.value), true);
  }
  if (operand.kind != Kind::Register && operand.kind != Kind::Memory) {
    fail("expected an address");
    return kNoOperand;
  }
  isWideAddress = isWide(operand.number);
  return registerOffset[operand.number];
}

/// [base + imm] in src[0] and imm.
bool Decoder::address(const PtxOperand &operand, Instr &in) {
  if (operand.kind != Kind::Memory) {
    fail("expected an address in brackets");
    return false;
  }
  in.src[0] = addressValue(operand, in.wideAddress);
  in.imm = operand.value;
  return in.src[0] != kNoOperand;
}

int64_t Decoder::integer(const PtxOperand &operand, int64_t low, int64_t high) {
  if (operand.kind != Kind::Integer || operand.value < low || operand.value > high) {
    fail("expected a number from " + std::to_string(low) + " to " + std::to_string(high));
    return low;
  }
  return operand.value;
}

void Decoder::list(Instr &in, const List &from, PtxType type, bool isDestination) {
  if (in.listCount == 0)
    in.listBegin = static_cast<uint32_t>(program.lists.size());
  for (const PtxOperand &operand : from)
    program.lists.push_back(isDestination ? destination(operand, type) : source(operand, type));
  in.listCount += static_cast<uint32_t>(from.size());
}
