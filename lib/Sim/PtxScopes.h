// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Names of a kernel: registers, variables and labels of nested { } scopes. Ranges such as %r<2000>
// cost nothing until a register of theirs is used. Every operation takes a look-up by hash or a
// logarithmic one, times the depth of scopes, which is limited.
#ifndef ATTN_LIB_SIM_PTXSCOPES_H
#define ATTN_LIB_SIM_PTXSCOPES_H

#include "attn/Sim/Ptx.h"

#include <map>
#include <set>
#include <unordered_map>
#include <vector>

namespace attn::sim {

/// What a name means where it is used.
struct PtxName {
  enum class Kind : uint8_t { Unknown, Ambiguous, Register, Variable };
  Kind kind = Kind::Unknown;
  int32_t number = -1; ///< of a register
  std::string text;    ///< of a variable: its unique name
};

/// Use of a label before all labels are known.
struct PtxLabelUse {
  std::string_view name;
  int32_t line = 0;
  size_t instruction = 0, operand = 0;
};

/// Names are views into the module's text.
class PtxScopes {
public:
  static constexpr size_t kMaxDepth = 64;

  /// `moduleVariables`: names of module scope, which every kernel sees.
  PtxScopes(PtxKernel &kernel, const std::set<std::string, std::less<>> &moduleVariables)
      : kernel(kernel), moduleVariables(moduleVariables) {}

  size_t depth() const { return scopes.size(); }
  void open() { scopes.emplace_back().serial = opened++; }
  /// Leaves a scope. Labels that it uses and does not define are looked for in the one around it;
  /// without one around, the first such use is returned.
  const PtxLabelUse *close();

  /// The following return false if the scope has the name already.
  bool declareRegister(std::string_view name, PtxType type);
  /// `prefix`0 to `prefix`count-1.
  bool declareRange(std::string_view prefix, PtxType type, int32_t count);
  /// `unique`: name of the variable for the machine.
  bool declareVariable(std::string_view name, std::string &unique);
  /// Puts `name` before the next instruction.
  bool defineLabel(std::string_view name);

  void useLabel(const PtxLabelUse &use) { scopes.back().pending.push_back(use); }
  /// Innermost meaning of `name`; gives a register a number at its first use.
  PtxName find(std::string_view name);

private:
  struct Entry {
    bool isVariable = false;
    PtxType type = PtxType::B32;
    int32_t number = -1;
    std::string unique;
  };
  struct Range {
    PtxType type = PtxType::B32;
    int32_t count = 0;
  };
  struct Scope {
    int32_t serial = 0;
    std::unordered_map<std::string_view, Entry> names; ///< thousands
    std::map<std::string_view, Range> ranges;
    std::map<std::string_view, size_t> labels;
    std::vector<PtxLabelUse> pending;
    std::string suffix() const { return serial ? "$" + std::to_string(serial) : std::string(); }
  };
  PtxName findIn(Scope &scope, std::string_view name);
  int32_t addRegister(const Scope &scope, std::string_view name, PtxType type);

  PtxKernel &kernel;
  const std::set<std::string, std::less<>> &moduleVariables;
  std::set<std::string, std::less<>> variables;
  std::vector<Scope> scopes;
  int32_t opened = 0;
  PtxLabelUse undefined;
};

} // namespace attn::sim

#endif // ATTN_LIB_SIM_PTXSCOPES_H
