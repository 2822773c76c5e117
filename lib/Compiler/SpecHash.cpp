// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "SpecHash.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/raw_ostream.h"

#include <cstring>

using namespace attn;

namespace {

/// Prints nodes in the order of a walk from the results.
class Canonical {
public:
  Canonical(const core::MaskProgram &program, llvm::raw_ostream &os) : program(program), os(os) {}

  /// Prints the definition of `node` unless it has one, and returns its number.
  unsigned print(core::NodeId node) {
    if (auto it = numbers.find(node); it != numbers.end())
      return it->second;
    const core::Node &n = program.nodes[node];
    // The leaves of a loop name it; it gets its number before its body is walked.
    unsigned number = numbers.size();
    numbers[node] = number;
    bool namesNode =
        n.op == core::Op::LoopIndex || n.op == core::Op::LoopCarried || n.op == core::Op::ForResult;
    std::vector<unsigned> operands;
    if (namesNode)
      operands.push_back(print(n.ref));
    for (core::NodeId operand : n.operands)
      operands.push_back(print(operand));
    os << number << '=' << llvm::StringRef(core::toString(n.op)) << ':'
       << llvm::StringRef(core::toString(n.type));
    for (unsigned operand : operands)
      os << ' ' << operand;
    uint64_t bits;
    std::memcpy(&bits, &n.fimm, sizeof bits);
    os << " r" << (namesNode ? -1 : n.ref) << " i" << n.imm << " f" << bits << '\n';
    return number;
  }

private:
  const core::MaskProgram &program;
  llvm::raw_ostream &os;
  llvm::DenseMap<core::NodeId, unsigned> numbers;
};

} // namespace

std::string compiler::hashSpec(const core::KernelSpec &spec) {
  std::string text;
  llvm::raw_string_ostream os(text);
  uint64_t scale;
  std::memcpy(&scale, &spec.scale, sizeof scale);
  os << "attn 1 " << spec.numHeads << ' ' << spec.numKvHeads << ' ' << spec.dimQk << ' '
     << spec.dimV << ' ' << llvm::StringRef(core::toString(spec.qType)) << ' '
     << llvm::StringRef(core::toString(spec.kvType)) << ' ' << (spec.scaleParam < 0 ? scale : 0)
     << ' ' << spec.scaleParam << '\n';
  for (const core::ParamDecl &param : spec.program.params)
    os << "p " << llvm::StringRef(core::toString(param.type)) << '\n';
  for (const core::TableDecl &table : spec.program.tables) {
    os << "t " << llvm::StringRef(core::toString(table.kind));
    if (table.kind == core::TableKind::Plain) {
      os << ' ' << llvm::StringRef(core::toString(table.element));
      for (core::TableDim dim : table.dims)
        os << ' ' << llvm::StringRef(core::toString(dim));
    }
    os << ' ' << table.source << '\n';
  }
  Canonical canonical(spec.program, os);
  os << "mask " << (spec.program.mask < 0 ? -1 : int64_t(canonical.print(spec.program.mask)))
     << '\n';
  os << "score " << (spec.program.score < 0 ? -1 : int64_t(canonical.print(spec.program.score)))
     << '\n';
  llvm::SHA256 hash;
  hash.update(text);
  return llvm::toHex(hash.final(), /*LowerCase=*/true);
}
