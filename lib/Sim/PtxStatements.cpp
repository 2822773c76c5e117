// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernel bodies: scopes, registers, labels, instructions and their operands.
#include "PtxParser.h"
#include "Special.h"

#include <algorithm>

namespace attn::sim {

bool PtxParser::body(PtxKernel &kernel, PtxScopes &scopes) {
  while (scopes.depth() > 0) {
    if (token.kind == PtxToken::Kind::End)
      return expected("'}' at the end of kernel " + quotePtx(kernel.name));
    if (!statement(kernel, scopes))
      return false;
  }
  return true;
}

bool PtxParser::closeScope(PtxScopes &scopes) {
  advance();
  const PtxLabelUse *missing = scopes.close();
  if (missing)
    return failAt(missing->line, "label " + quotePtx(missing->name) + " is not defined");
  return true;
}

bool PtxParser::statement(PtxKernel &kernel, PtxScopes &scopes) {
  if (accept(';'))
    return true;
  if (token.is('}'))
    return closeScope(scopes);
  if (token.is('{')) {
    if (scopes.depth() == PtxScopes::kMaxDepth)
      return failAt(token.line, "scopes are nested more than " +
                                    std::to_string(PtxScopes::kMaxDepth) + " deep");
    scopes.open();
    advance();
    return true;
  }
  if (token.kind == PtxToken::Kind::Dotted)
    return bodyDirective(kernel, scopes);
  PtxInstruction next;
  next.line = token.line;
  bool guarded = token.is('@');
  if (guarded && !guard(kernel, scopes, next))
    return false;
  if (token.kind != PtxToken::Kind::Name)
    return expected(guarded ? "an instruction" : "an instruction, a label or '}'");
  PtxToken name = token;
  advance();
  if (!guarded && token.is(':')) {
    advance();
    if (!scopes.defineLabel(name.text))
      return failAt(name.line, "label " + quotePtx(name.text) + " is defined twice");
    return true;
  }
  next.line = name.line;
  next.opcode = name.text;
  return instruction(kernel, scopes, std::move(next));
}

bool PtxParser::bodyDirective(PtxKernel &kernel, PtxScopes &scopes) {
  if (token.isDotted("loc")) {
    lexer.skipLine();
    advance();
    return true;
  }
  if (token.isDotted("pragma"))
    return pragma();
  if (token.isDotted("reg"))
    return registers(scopes);
  if (token.isDotted("shared") || token.isDotted("local")) {
    std::vector<PtxVariable> &out = token.text == "shared" ? kernel.shared : kernel.locals;
    std::string_view space = token.text;
    advance();
    return variables(space, false, &scopes, out);
  }
  return failAt(token.line, "directive " + quotePtx("." + std::string(token.text)) +
                                " in a kernel is not supported");
}

bool PtxParser::registerRange(std::string_view prefix, PtxType type, PtxScopes &scopes) {
  int32_t line = token.line;
  advance();
  int64_t count = 0;
  if (!takeInteger("a number of registers", 1, INT32_MAX, count) || !expect('>', "'>'"))
    return false;
  if (!scopes.declareRange(prefix, type, static_cast<int32_t>(count)))
    return failAt(line, "range " + quotePtx(prefix) + " is declared twice");
  return true;
}

bool PtxParser::registers(PtxScopes &scopes) {
  advance();
  if (token.isDotted("v2") || token.isDotted("v4"))
    return failAt(token.line,
                  "vector registers are not supported: " + quotePtx("." + std::string(token.text)));
  PtxType registerType = PtxType::B32;
  if (!type(registerType))
    return false;
  do {
    if (token.kind != PtxToken::Kind::Name || token.text == "_")
      return expected("the name of a register");
    PtxToken name = token;
    advance();
    if (token.is('<')) {
      if (!registerRange(name.text, registerType, scopes))
        return false;
    } else if (!scopes.declareRegister(name.text, registerType)) {
      return failAt(name.line, quotePtx(name.text) + " is declared twice");
    }
  } while (accept(','));
  return expect(';', "',' or ';'");
}

bool PtxParser::guard(PtxKernel &kernel, PtxScopes &scopes, PtxInstruction &instruction) {
  advance();
  PtxOperand predicate;
  instruction.guardNegated = token.is('!');
  if (token.kind != PtxToken::Kind::Name && !instruction.guardNegated)
    return expected("a predicate after '@'");
  int32_t line = token.line;
  std::string_view spelling = token.text;
  if (instruction.guardNegated ? !negatedPredicate(kernel, scopes, predicate)
                               : !namedOperand(scopes, predicate))
    return false;
  if (predicate.kind != PtxOperand::Kind::Register ||
      kernel.registers[predicate.number].type != PtxType::Pred)
    return failAt(line, "expected a predicate after '@', got " + quotePtx(spelling));
  instruction.guard = predicate.number;
  return true;
}

bool PtxParser::instruction(PtxKernel &kernel, PtxScopes &scopes, PtxInstruction instruction) {
  for (; token.kind == PtxToken::Kind::Dotted; advance())
    instruction.modifiers.emplace_back(token.text);
  // Their operands have a grammar of their own.
  if (instruction.opcode == "call" || instruction.opcode == "brx")
    return failAt(instruction.line,
                  "instruction " + quotePtx(instruction.mnemonic()) + " is not supported");
  if (instruction.opcode == "bra")
    return branch(kernel, scopes, instruction);
  if (!token.is(';')) {
    do {
      if (!operand(kernel, scopes, instruction.operands.emplace_back()))
        return false;
    } while (accept(','));
  }
  if (!expect(';', "',' or ';'"))
    return false;
  kernel.instructions.push_back(std::move(instruction));
  return true;
}

bool PtxParser::branch(PtxKernel &kernel, PtxScopes &scopes, PtxInstruction &instruction) {
  if (token.kind != PtxToken::Kind::Name)
    return expected("a label");
  scopes.useLabel({token.text, token.line, kernel.instructions.size(), 0});
  instruction.operands.emplace_back().kind = PtxOperand::Kind::Label;
  advance();
  kernel.instructions.push_back(std::move(instruction));
  return expect(';', "';'");
}

bool PtxParser::operand(PtxKernel &kernel, PtxScopes &scopes, PtxOperand &result) {
  if (token.is('[')) {
    advance();
    return memory(kernel, scopes, result);
  }
  if (token.is('{')) {
    advance();
    result.kind = PtxOperand::Kind::Vector;
    return vector(kernel, scopes, result.elements);
  }
  if (!scalar(kernel, scopes, result))
    return false;
  if (!token.is('|'))
    return true;
  PtxOperand first = std::move(result);
  result = PtxOperand();
  result.kind = PtxOperand::Kind::Pair;
  result.elements.push_back(std::move(first));
  advance();
  int32_t line = token.line;
  if (!scalar(kernel, scopes, result.elements.emplace_back()))
    return false;
  for (const PtxOperand &half : result.elements)
    if ((half.kind != PtxOperand::Kind::Register && half.kind != PtxOperand::Kind::Sink) ||
        half.negated)
      return failAt(line, "expected a register or '_' on both sides of '|'");
  return true;
}

bool PtxParser::number(PtxOperand &result) {
  bool minus = accept('-');
  if (token.kind == PtxToken::Kind::Integer) {
    result.kind = PtxOperand::Kind::Integer;
    if (minus && token.value > uint64_t(1) << 63)
      return failAt(token.line, "integer of more than 64 bits '-" + std::string(token.text) + "'");
    result.value = static_cast<int64_t>(minus ? -token.value : token.value);
  } else if (token.kind == PtxToken::Kind::Float) {
    result.kind = PtxOperand::Kind::Float;
    result.number = token.width;
    uint64_t sign = minus ? uint64_t(1) << (token.width - 1) : 0;
    result.value = static_cast<int64_t>(token.value ^ sign);
  } else {
    return expected(minus ? "a number after '-'" : "an operand");
  }
  advance();
  return true;
}

bool PtxParser::scalar(PtxKernel &kernel, PtxScopes &scopes, PtxOperand &result) {
  if (token.is('!'))
    return negatedPredicate(kernel, scopes, result);
  if (token.kind == PtxToken::Kind::Name)
    return namedOperand(scopes, result);
  return number(result);
}

bool PtxParser::negatedPredicate(PtxKernel &kernel, PtxScopes &scopes, PtxOperand &result) {
  advance();
  if (token.kind != PtxToken::Kind::Name)
    return expected("a predicate after '!'");
  int32_t line = token.line;
  std::string_view spelling = token.text;
  if (!namedOperand(scopes, result))
    return false;
  if (result.kind != PtxOperand::Kind::Register ||
      kernel.registers[result.number].type != PtxType::Pred)
    return failAt(line, "expected a predicate after '!', got " + quotePtx(spelling));
  result.negated = true;
  return true;
}

bool PtxParser::special(const PtxToken &name, PtxOperand &result) {
  const SpecialName *found = findSpecial(name.text);
  if (!found)
    return failAt(name.line, "unknown name " + quotePtx(name.text));
  result.kind = PtxOperand::Kind::Special;
  result.text = name.text;
  if (!found->axes)
    return true;
  if (!token.isDotted("x") && !token.isDotted("y") && !token.isDotted("z"))
    return expected("'.x', '.y' or '.z' after " + quotePtx(name.text));
  result.text.append(1, '.').append(token.text);
  advance();
  return true;
}

bool PtxParser::namedOperand(PtxScopes &scopes, PtxOperand &result) {
  PtxToken name = token;
  advance();
  if (name.text == "_") {
    result.kind = PtxOperand::Kind::Sink;
    return true;
  }
  if (name.text == "WARP_SZ") {
    result.kind = PtxOperand::Kind::Integer;
    result.value = 32;
    return true;
  }
  PtxName meaning = scopes.find(name.text);
  switch (meaning.kind) {
  case PtxName::Kind::Ambiguous:
    return failAt(name.line, quotePtx(name.text) + " is declared twice");
  case PtxName::Kind::Register:
    result.kind = PtxOperand::Kind::Register;
    result.number = meaning.number;
    return true;
  case PtxName::Kind::Variable:
    result.kind = PtxOperand::Kind::Symbol;
    result.text = std::move(meaning.text);
    return true;
  case PtxName::Kind::Unknown:
    break;
  }
  return special(name, result);
}

/// After '{'.
bool PtxParser::vector(PtxKernel &kernel, PtxScopes &scopes, std::vector<PtxOperand> &elements) {
  do {
    if (!scalar(kernel, scopes, elements.emplace_back()))
      return false;
  } while (accept(','));
  return expect('}', "',' or '}'");
}

/// What may follow a base: "+8", "-8", "+-8".
bool PtxParser::offset(PtxOperand &result) {
  bool minus = token.is('-');
  if (!minus && !token.is('+'))
    return true;
  advance();
  if (!minus && accept('-'))
    minus = true;
  if (token.kind != PtxToken::Kind::Integer)
    return expected("an offset");
  if (token.value > INT64_MAX)
    return failAt(token.line, "offset of more than 63 bits " + token.describe());
  result.value = minus ? -static_cast<int64_t>(token.value) : static_cast<int64_t>(token.value);
  advance();
  return true;
}

/// After '['.
bool PtxParser::memory(PtxKernel &kernel, PtxScopes &scopes, PtxOperand &result) {
  if (token.kind == PtxToken::Kind::Name) {
    PtxToken base = token;
    if (!namedOperand(scopes, result))
      return false;
    if (result.kind != PtxOperand::Kind::Register && result.kind != PtxOperand::Kind::Symbol)
      return failAt(base.line,
                    "expected a register or a variable as address, got " + base.describe());
    if (!offset(result))
      return false;
  } else if (token.kind == PtxToken::Kind::Integer || token.is('-')) {
    if (!number(result))
      return false;
    if (result.kind != PtxOperand::Kind::Integer)
      return failAt(token.line, "expected an integer as address");
  } else {
    return expected("an address");
  }
  result.kind = PtxOperand::Kind::Memory;
  if (accept(',')) {
    PtxOperand address = std::move(result);
    result = PtxOperand();
    result.kind = PtxOperand::Kind::TensorAt;
    result.elements.push_back(std::move(address));
    if (!expect('{', "'{' before the coordinates") || !vector(kernel, scopes, result.elements))
      return false;
  }
  return expect(']', "']'");
}

} // namespace attn::sim
