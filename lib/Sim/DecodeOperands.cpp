// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Decode.h"

#include <cstring>

using namespace attn::sim;

using Kind = PtxOperand::Kind;

int32_t Decoder::constant(uint64_t value, bool isWide, bool isShared) {
  auto [found, isNew] = constantAt.emplace(std::make_tuple(value, isWide, isShared), 0);
  if (!isNew)
    return found->second;
  const size_t at = program.constants.size();
  program.constants.resize(at + (isWide ? 256 : 128));
  for (size_t lane = 0; lane < 32; ++lane)
    std::memcpy(&program.constants[at + lane * (isWide ? 8 : 4)], &value, isWide ? 8 : 4);
  if (isShared)
    program.sharedConstants.emplace_back(static_cast<uint32_t>(at), isWide);
  return found->second = ~static_cast<int32_t>(at);
}

/// A register that the machine fills in when the CTA starts.
int32_t Decoder::special(const std::string &name) {
  const size_t dot = name.find('.');
  const SpecialName *known = findSpecial(name.substr(0, dot));
  if (!known || known->id == Special::Unsupported) {
    fail("special register '" + name + "'");
    return kNoOperand;
  }
  auto [found, isNew] = specialAt.emplace(name, 0);
  if (isNew) {
    program.registerBytes = (program.registerBytes + 3) / 4 * 4;
    found->second = static_cast<int32_t>(program.registerBytes);
    program.registerBytes += 128;
    program.specials.push_back(
        {found->second, known->id, static_cast<uint8_t>(known->axes ? name.back() - 'x' : 0)});
  }
  return found->second;
}

const Symbol *Decoder::symbol(const std::string &name) {
  auto found = symbols.find(name);
  if (found != symbols.end())
    return &found->second;
  fail("unknown name '" + name + "'");
  return nullptr;
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
    if (needsWide || operand.text == "%is_explicit_cluster")
      fail("special register '" + operand.text + "' is no operand of " +
           std::to_string(8 * byteSize(type)) + " bits");
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
    const Symbol *of = symbol(operand.text);
    if (!of)
      return kNoOperand;
    if (byteSize(type) < 4 || (of->space == Space::Global && !needsWide))
      fail("address in a narrow register");
    return constant(of->address, needsWide, of->space == Space::Shared);
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
  if (operand.kind == Kind::Special && operand.text == "%is_explicit_cluster")
    return special(operand.text);
  if (operand.kind != Kind::Register || kernel.registers[operand.number].type != PtxType::Pred) {
    fail("expected a predicate");
    return kNoOperand;
  }
  return registerOffset[operand.number];
}

bool Decoder::address(const PtxOperand &operand, Address &to, bool mustBeWide, int64_t bytes) {
  if (operand.kind != Kind::Memory) {
    fail("expected an address in brackets");
    return false;
  }
  to.offset = operand.value;
  if (operand.number >= 0) {
    to.base = registerOffset[operand.number];
    to.wide = isWide(operand.number);
    if (byteSize(kernel.registers[operand.number].type) < 4)
      fail("register " + kernel.registers[operand.number].name + " has the wrong size");
    else if (mustBeWide && !to.wide)
      fail("address of 32 bits, expected 64");
    return problem.empty();
  }
  Symbol of;
  if (!operand.text.empty()) {
    const Symbol *found = symbol(operand.text);
    if (!found)
      return false;
    of = *found;
    if (of.bytes && (operand.value < 0 || operand.value > of.bytes - bytes)) {
      problemKind = problem.empty() ? Report::Kind::OutOfBounds : problemKind;
      fail(std::to_string(bytes) + " bytes from byte " + std::to_string(operand.value) + " of '" +
           operand.text + "', which has " + std::to_string(of.bytes));
    }
  }
  to.wide = true;
  to.base = constant(of.address, true, of.space == Space::Shared);
  return problem.empty();
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
