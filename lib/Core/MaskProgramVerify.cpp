// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checks of a mask program. Everything that the visitors index or assume is established here, so
// that a program from a file can be walked without further tests.
#include "attn/Core/MaskProgram.h"
#include "attn/Core/NativeAbi.h"

#include "LoopNest.h"
#include "OpInfo.h"

#include <algorithm>

namespace attn::core {

namespace {

constexpr size_t kMaxLoopDepth = 16;

using Fault = std::optional<std::string>;

std::string str(std::string_view s) { return std::string(s); }

class Verifier {
public:
  explicit Verifier(const MaskProgram &program) : program(program) {}

  Fault run() {
    for (size_t i = 0; i < program.params.size(); ++i)
      if (Fault fault = checkParam(i))
        return fault;
    if (Fault fault = verifyTables(program.tables))
      return fault;
    constexpr size_t maxNodes = size_t(1) << 24;
    if (program.nodes.size() > maxNodes)
      return "more than " + std::to_string(maxNodes) + " nodes";
    for (size_t i = 0; i < program.nodes.size(); ++i)
      if (Fault fault = checkNode(static_cast<NodeId>(i)))
        return "node " + std::to_string(i) + " (" + str(toString(program.nodes[i].op)) +
               "): " + *fault;
    if (Fault fault = checkRoot(program.mask, ScalarType::Bool))
      return "mask: " + *fault;
    if (Fault fault = checkRoot(program.score, ScalarType::F32))
      return "score: " + *fault;
    return std::nullopt;
  }

private:
  Fault checkParam(size_t i) {
    const ParamDecl &param = program.params[i];
    std::string place = "parameter " + std::to_string(i) + ": ";
    if (param.name.empty())
      return place + "empty name";
    for (size_t j = 0; j < i; ++j)
      if (program.params[j].name == param.name)
        return place + "name '" + param.name + "' is taken";
    if (param.type != ScalarType::I32 && param.type != ScalarType::I64 &&
        param.type != ScalarType::F32)
      return place + "expected type i32, i64 or f32, got " + str(toString(param.type));
    if (param.minValue && param.type == ScalarType::F32)
      return place + "a smallest value needs an integer type";
    return std::nullopt;
  }

  Fault checkRoot(NodeId root, ScalarType type) {
    if (root == -1)
      return std::nullopt;
    if (root < 0 || root >= static_cast<NodeId>(program.nodes.size()))
      return "no node " + std::to_string(root);
    if (typeOf(root) != type)
      return "expected type " + str(toString(type)) + ", got " + str(toString(typeOf(root)));
    if (!nest.loopsOf(root).empty())
      return "node " + std::to_string(root) + " lies in the body of a loop";
    return std::nullopt;
  }

  ScalarType typeOf(NodeId id) const { return program.nodes[id].type; }

  Fault checkNode(NodeId id) {
    const Node &node = program.nodes[id];
    for (size_t i = 0; i < node.operands.size(); ++i)
      if (node.operands[i] < 0 || node.operands[i] >= id)
        return "operand " + std::to_string(i) + " is node " + std::to_string(node.operands[i]) +
               ", which does not come before its user";
    if (Fault fault = checkKind(id, node))
      return fault;
    return checkLoops(id);
  }

  /// Adds the node to the loop nest and checks how its loops lie.
  Fault checkLoops(NodeId id) {
    nest.add(id);
    const std::vector<NodeId> &loops = nest.loopsOf(id);
    if (loops.size() > kMaxLoopDepth)
      return "loops nest deeper than " + std::to_string(kMaxLoopDepth);
    if (!loops.empty() && loops.front() <= id)
      return "uses a value of the body of node " + std::to_string(loops.front()) +
             " outside of that loop";
    return std::nullopt;
  }

  Fault checkKind(NodeId id, const Node &node) {
    switch (familyOf(node.op)) {
    case OpFamily::Leaf:
      return checkLeaf(node);
    case OpFamily::Table:
      return checkTable(node);
    case OpFamily::IntBinary:
    case OpFamily::IntUnary:
      if (!isInteger(node.type))
        return wrongType("an integer type", node.type);
      return operandsAre(node, familyOf(node.op) == OpFamily::IntUnary ? 1 : 2, node.type);
    case OpFamily::IntCompare:
      return checkCompare(node);
    case OpFamily::IntCast:
      return checkCast(node);
    case OpFamily::Select:
      return checkSelect(node);
    case OpFamily::FloatUnary:
      return checkFloat(node, 1, ScalarType::F32);
    case OpFamily::FloatBinary:
      return checkFloat(node, 2, ScalarType::F32);
    case OpFamily::FloatTernary:
      return checkFloat(node, 3, ScalarType::F32);
    case OpFamily::FloatCompare:
      return checkFloat(node, 2, ScalarType::Bool);
    case OpFamily::IntToFloat:
    case OpFamily::FloatToInt:
      return checkConversion(node);
    case OpFamily::Mask:
      return checkMask(node);
    case OpFamily::Score:
      return checkFloat(node, 2, ScalarType::F32);
    case OpFamily::Loop:
      return checkLoop(id, node);
    }
    return "unknown operation";
  }

  static Fault wrongType(std::string_view wanted, ScalarType got) {
    return "expected " + str(wanted) + ", got " + str(toString(got));
  }
  static Fault resultIs(const Node &node, ScalarType type) {
    return node.type == type ? std::nullopt : wrongType("type " + str(toString(type)), node.type);
  }
  static Fault arity(const Node &node, size_t n) {
    if (node.operands.size() == n)
      return std::nullopt;
    return "expected " + std::to_string(n) + " operands, got " +
           std::to_string(node.operands.size());
  }
  Fault operandIs(const Node &node, size_t i, ScalarType type) const {
    ScalarType got = typeOf(node.operands[i]);
    if (got == type)
      return std::nullopt;
    return "operand " + std::to_string(i) + ": " + *wrongType("type " + str(toString(type)), got);
  }
  Fault operandsAre(const Node &node, size_t n, ScalarType type) const {
    if (Fault fault = arity(node, n))
      return fault;
    for (size_t i = 0; i < n; ++i)
      if (Fault fault = operandIs(node, i, type))
        return fault;
    return std::nullopt;
  }
  /// `n` operands of any integer type but Bool: radii and counts.
  Fault operandsAreCounts(const Node &node, size_t n) const {
    if (Fault fault = arity(node, n))
      return fault;
    for (size_t i = 0; i < n; ++i)
      if (!isNumberType(typeOf(node.operands[i])))
        return "operand " + std::to_string(i) + ": " +
               *wrongType("an integer type", typeOf(node.operands[i]));
    return std::nullopt;
  }
  Fault checkFloat(const Node &node, size_t n, ScalarType result) const {
    if (Fault fault = resultIs(node, result))
      return fault;
    return operandsAre(node, n, ScalarType::F32);
  }

  Fault checkLeaf(const Node &node) const {
    if (Fault fault = arity(node, 0))
      return fault;
    switch (node.op) {
    case Op::Const:
      return checkConst(node);
    case Op::Score:
      return resultIs(node, ScalarType::F32);
    case Op::Param:
      if (node.ref < 0 || node.ref >= static_cast<int32_t>(program.params.size()))
        return "no parameter " + std::to_string(node.ref);
      return resultIs(node, program.params[node.ref].type);
    default:
      return resultIs(node, ScalarType::I64);
    }
  }

  static Fault checkConst(const Node &node) {
    if (node.type == ScalarType::F32)
      return std::nullopt;
    int64_t min = node.type == ScalarType::Bool ? 0 : INT64_MIN;
    int64_t max = node.type == ScalarType::Bool ? 1 : INT64_MAX;
    if (isNumberType(node.type)) {
      unsigned width = bitWidth(node.type);
      max = static_cast<int64_t>((uint64_t(1) << (width - 1)) - 1);
      min = -max - 1;
    }
    if (node.imm < min || node.imm > max)
      return "value " + std::to_string(node.imm) + " does not fit " + str(toString(node.type));
    return std::nullopt;
  }

  Fault checkTableRef(const Node &node, TableKind kind) const {
    if (node.ref < 0 || node.ref >= static_cast<int32_t>(program.tables.size()))
      return "no table " + std::to_string(node.ref);
    const TableDecl &table = program.tables[node.ref];
    if (table.kind != kind)
      return "table '" + table.name + "': expected kind " + str(toString(kind)) + ", got " +
             str(toString(table.kind));
    return std::nullopt;
  }

  Fault checkTable(const Node &node) const {
    TableKind kind = node.op == Op::TableLoad                       ? TableKind::Plain
                     : node.op == Op::RowLo || node.op == Op::RowHi ? TableKind::QueryRanges
                                                                    : TableKind::Ranges;
    if (Fault fault = checkTableRef(node, kind))
      return fault;
    const TableDecl &table = program.tables[node.ref];
    ScalarType result = node.op == Op::TableLoad ? table.element : ScalarType::I64;
    if (Fault fault = resultIs(node, result))
      return fault;
    size_t n = node.op == Op::TableLoad                               ? table.dims.size()
               : node.op == Op::RangeStart || node.op == Op::RangeEnd ? 1
                                                                      : 0;
    return operandsAre(node, n, ScalarType::I64);
  }

  Fault checkCompare(const Node &node) const {
    if (Fault fault = resultIs(node, ScalarType::Bool))
      return fault;
    if (Fault fault = arity(node, 2))
      return fault;
    if (!isInteger(typeOf(node.operands[0])))
      return "operand 0: " + *wrongType("an integer type", typeOf(node.operands[0]));
    return operandIs(node, 1, typeOf(node.operands[0]));
  }

  Fault checkCast(const Node &node) const {
    if (Fault fault = arity(node, 1))
      return fault;
    ScalarType from = typeOf(node.operands[0]);
    if (!isInteger(from))
      return "operand 0: " + *wrongType("an integer type", from);
    bool narrows = node.op == Op::Trunc;
    if (!isInteger(node.type) ||
        (narrows ? bitWidth(node.type) >= bitWidth(from) : bitWidth(node.type) <= bitWidth(from)))
      return wrongType(std::string("an integer type ") + (narrows ? "narrower" : "wider") +
                           " than " + str(toString(from)),
                       node.type);
    return std::nullopt;
  }

  Fault checkSelect(const Node &node) const {
    if (Fault fault = arity(node, 3))
      return fault;
    if (Fault fault = operandIs(node, 0, ScalarType::Bool))
      return fault;
    if (Fault fault = operandIs(node, 1, node.type))
      return fault;
    return operandIs(node, 2, node.type);
  }

  Fault checkConversion(const Node &node) const {
    if (Fault fault = arity(node, 1))
      return fault;
    bool toFloat = node.op != Op::FPToSI;
    ScalarType from = typeOf(node.operands[0]);
    if (toFloat && !isInteger(from))
      return "operand 0: " + *wrongType("an integer type", from);
    if (!toFloat && from != ScalarType::F32)
      return operandIs(node, 0, ScalarType::F32);
    if (!toFloat && !isNumberType(node.type))
      return wrongType("an integer type", node.type);
    return toFloat ? resultIs(node, ScalarType::F32) : std::nullopt;
  }

  Fault checkMask(const Node &node) const {
    if (Fault fault = resultIs(node, ScalarType::Bool))
      return fault;
    switch (node.op) {
    case Op::Causal:
      return arity(node, 0);
    case Op::Window:
      if (node.imm < 1 || node.imm > 3)
        return "expected sides 1 (left), 2 (right) or 3 (both), got " + std::to_string(node.imm);
      return operandsAreCounts(node, node.imm == 3 ? 2 : 1);
    case Op::MmPrefix:
      if (Fault fault = checkTableRef(node, TableKind::Ranges))
        return fault;
      return operandsAreCounts(node, node.operands.empty() ? 0 : 1);
    case Op::Document:
      if (Fault fault = checkTableRef(node, TableKind::Documents))
        return fault;
      return arity(node, 0);
    case Op::InRows:
      return operandsAre(node, 2, ScalarType::I64);
    default:
      return operandsAreCounts(node, 1);
    }
  }

  /// A loop number used by a leaf or a result of the loop.
  Fault checkLoopRef(const Node &node) const {
    if (node.ref < 0 || node.ref >= static_cast<NodeId>(program.nodes.size()) ||
        program.nodes[node.ref].op != Op::For)
      return "node " + std::to_string(node.ref) + " is not a loop";
    return std::nullopt;
  }

  /// Carried value `node.imm` of loop `node.ref` has the node's type. The loop may come later.
  Fault checkCarried(const Node &node) const {
    const Node &loop = program.nodes[node.ref];
    size_t at = 3 + static_cast<size_t>(node.imm);
    if (node.imm < 0 || node.imm >= loop.imm || at >= loop.operands.size())
      return "loop " + std::to_string(node.ref) + " has no carried value " +
             std::to_string(node.imm);
    NodeId init = loop.operands[at];
    if (init < 0 || init >= node.ref)
      return "loop " + std::to_string(node.ref) + " has a bad initial value";
    return resultIs(node, typeOf(init));
  }

  Fault checkLoop(NodeId id, const Node &node) const {
    if (node.op != Op::For) {
      if (Fault fault = arity(node, 0))
        return fault;
      if (Fault fault = checkLoopRef(node))
        return fault;
      if ((node.ref > id) == (node.op == Op::ForResult))
        return "node " + std::to_string(node.ref) + " lies on the wrong side";
      return node.op == Op::LoopIndex ? resultIs(node, ScalarType::I64) : checkCarried(node);
    }
    if (node.imm < 1 || node.imm > static_cast<int64_t>(node.operands.size()))
      return "expected at least one carried value, got " + std::to_string(node.imm);
    size_t carried = static_cast<size_t>(node.imm);
    if (Fault fault = arity(node, 3 + 2 * carried))
      return fault;
    for (size_t i = 0; i < 3; ++i)
      if (Fault fault = operandIs(node, i, ScalarType::I64))
        return fault;
    for (size_t i = 0; i < carried; ++i)
      if (Fault fault = operandIs(node, 3 + carried + i, typeOf(node.operands[3 + i])))
        return fault;
    return resultIs(node, typeOf(node.operands[3]));
  }

  const MaskProgram &program;
  LoopNest nest{program};
};

} // namespace

std::optional<std::string> verifyTables(const std::vector<TableDecl> &tables) {
  for (size_t i = 0; i < tables.size(); ++i) {
    const TableDecl &table = tables[i];
    std::string place = "table " + std::to_string(i) + ": ";
    if (table.name.empty())
      return place + "empty name";
    for (size_t j = 0; j < i; ++j)
      if (tables[j].name == table.name)
        return place + "name '" + table.name + "' is taken";
    if (table.kind == TableKind::Plain) {
      if (table.dims.empty() || table.dims.size() > static_cast<size_t>(kMaxTableRank))
        return place + "expected 1 to " + std::to_string(kMaxTableRank) + " dims, got " +
               std::to_string(table.dims.size());
      if (table.element == ScalarType::Bool || table.element == ScalarType::I16)
        return place + "expected element type i8, i32, i64 or f32, got " +
               str(toString(table.element));
    } else if (!table.dims.empty()) {
      return place + "only plain tables have dims";
    }
    if (table.kind != TableKind::QueryRanges)
      continue;
    if (table.source < 0 || table.source >= static_cast<int32_t>(tables.size()))
      return place + "no source table " + std::to_string(table.source);
    TableKind source = tables[table.source].kind;
    if (source != TableKind::Ranges && source != TableKind::Documents)
      return place + "expected a source of kind ranges or documents, got " + str(toString(source));
  }
  return std::nullopt;
}

std::optional<std::string> verify(const MaskProgram &program) { return Verifier(program).run(); }

} // namespace attn::core
