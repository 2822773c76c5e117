// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Recursive descent without recursion: nested scopes are a stack of limited depth, operands nest
// two levels. One token ahead. After an error every function returns false.
#ifndef ATTN_LIB_SIM_PTXPARSER_H
#define ATTN_LIB_SIM_PTXPARSER_H

#include "PtxLexer.h"
#include "PtxScopes.h"

#include <optional>

namespace attn::sim {

class PtxParser {
public:
  explicit PtxParser(std::string_view text) : lexer(text) { advance(); }
  core::Result<PtxModule> parse();

private:
  // Tokens and errors.
  void advance() { token = lexer.next(); }
  bool failAt(int32_t line, const std::string &message);
  /// Fails with "expected `what`, got" the token.
  bool expected(std::string_view what);
  bool expect(char punctuation, std::string_view what);
  bool accept(char punctuation);
  bool takeInteger(std::string_view what, int64_t min, int64_t max, int64_t &value);

  // Module scope (PtxParser.cpp).
  bool header();
  bool topLevel();
  bool linkage();
  bool skipSection();
  bool pragma();
  bool type(PtxType &type);
  bool alignment(int64_t &align);
  bool dimensions(bool mayBeUnknown, PtxVariable &variable);
  /// One declaration after its space; `scopes`: the kernel it stands in, or null.
  bool variables(std::string_view space, bool isExtern, PtxScopes *scopes,
                 std::vector<PtxVariable> &out);
  bool entry();
  bool parameter(PtxKernel &kernel, PtxScopes &scopes);
  bool entryDirective(PtxKernel &kernel);
  bool threadCounts(int32_t (&counts)[3]);

  // Kernel bodies (PtxStatements.cpp).
  bool body(PtxKernel &kernel, PtxScopes &scopes);
  bool statement(PtxKernel &kernel, PtxScopes &scopes);
  bool closeScope(PtxScopes &scopes);
  bool bodyDirective(PtxKernel &kernel, PtxScopes &scopes);
  bool registers(PtxScopes &scopes);
  bool registerRange(std::string_view prefix, PtxType type, PtxScopes &scopes);
  bool guard(PtxKernel &kernel, PtxScopes &scopes, PtxInstruction &instruction);
  bool instruction(PtxKernel &kernel, PtxScopes &scopes, PtxInstruction instruction);
  bool branch(PtxKernel &kernel, PtxScopes &scopes, PtxInstruction &instruction);
  /// An operand, or two joined by '|'.
  bool operand(PtxKernel &kernel, PtxScopes &scopes, PtxOperand &result);
  bool scalar(PtxKernel &kernel, PtxScopes &scopes, PtxOperand &result);
  bool number(PtxOperand &result);
  bool negatedPredicate(PtxKernel &kernel, PtxScopes &scopes, PtxOperand &result);
  bool namedOperand(PtxScopes &scopes, PtxOperand &result);
  bool special(const PtxToken &name, PtxOperand &result);
  bool vector(PtxKernel &kernel, PtxScopes &scopes, std::vector<PtxOperand> &elements);
  bool memory(PtxKernel &kernel, PtxScopes &scopes, PtxOperand &result);
  bool offset(PtxOperand &result);

  PtxLexer lexer;
  PtxToken token;
  PtxModule module;
  std::set<std::string, std::less<>> moduleVariables, kernelNames;
  std::string error;
};

/// Type of ".b32"; f16x2 and bf16x2 are 32 bits. Empty: no such type.
std::optional<PtxType> ptxTypeOf(std::string_view name);

} // namespace attn::sim

#endif // ATTN_LIB_SIM_PTXPARSER_H
