// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A mask program as text for people: an emitter whose values are strings.
#include "attn/Core/MaskProgramEmit.h"

#include "OpInfo.h"

#include <charconv>

namespace attn::core {

namespace {

/// How tightly the outermost operator of a text binds.
enum Binding { Loose, Compare, Sum, Product, Atom };

struct Text {
  std::string text;
  Binding binding = Atom;
  Op op = Op::Const; ///< outermost operator of a Loose text
};

/// Longer texts are cut: a shared node is spelled at each use, which can double at every step.
constexpr size_t kMaxText = 4096;

std::string shorten(std::string s) { return s.size() > kMaxText ? "..." : s; }

class FormulaPrinter {
public:
  using Value = Text;

  Text emit(const MaskProgram &program, NodeId id, const std::vector<Text> &operands) {
    Text result = print(program, program.nodes[id], operands);
    if (result.text.size() > kMaxText)
      return {"...", Atom, Op::Const};
    return result;
  }

  template <class Body>
  Text emitFor(const MaskProgram &program, NodeId id, const std::vector<Text> &boundsAndInits,
               Body body) {
    size_t carried = static_cast<size_t>(program.nodes[id].imm);
    std::string suffix = depth == 0 ? "" : std::to_string(depth);
    ++depth;
    std::vector<Text> names;
    std::string inits;
    for (size_t i = 0; i < carried; ++i) {
      std::string name = "acc" + suffix;
      if (carried > 1)
        name += "." + std::to_string(i);
      inits += ", " + name + " = " + boundsAndInits[3 + i].text;
      names.push_back({std::move(name), Atom, Op::Const});
    }
    std::vector<Text> yields = body({"i" + suffix, Atom, Op::Const}, std::move(names));
    --depth;
    std::string text =
        "for(i" + suffix + " in " + boundsAndInits[0].text + " .. " + boundsAndInits[1].text;
    if (boundsAndInits[2].text != "1")
      text += " step " + boundsAndInits[2].text;
    text += inits + ": ";
    for (size_t i = 0; i < carried; ++i)
      text += (i > 0 ? ", " : "") + yields[i].text;
    return {shorten(text + ")"), Atom, Op::Const};
  }

private:
  static Text atom(std::string text) { return {std::move(text), Atom, Op::Const}; }

  /// `operand` inside an operator that binds as `outer`, in parentheses where needed.
  static std::string inside(const Text &operand, Binding outer) {
    return operand.binding > outer ? operand.text : "(" + operand.text + ")";
  }

  static std::string constant(const Node &node) {
    if (node.type == ScalarType::Bool)
      return node.imm ? "true" : "false";
    if (node.type != ScalarType::F32)
      return std::to_string(node.imm);
    char buffer[40];
    auto [end, code] = std::to_chars(buffer, buffer + sizeof(buffer), node.fimm);
    return std::string(buffer, code == std::errc() ? end - buffer : 0);
  }

  /// a + b, a - b, ...; the right operand of an operator that does not associate needs more.
  static Text infix(std::string_view sign, Binding binding, const std::vector<Text> &operands) {
    std::string text = operands[0].binding >= binding && binding != Compare
                           ? operands[0].text
                           : inside(operands[0], binding);
    return {text + " " + std::string(sign) + " " + inside(operands[1], binding), binding,
            Op::Const};
  }

  /// and, or, xor: chains of one operator need no parentheses.
  static Text logical(const Node &node, const std::vector<Text> &operands) {
    std::string text;
    for (const Text &operand : operands) {
      bool chain = operand.binding == Loose && operand.op == node.op;
      if (!text.empty())
        text += " " + std::string(toString(node.op)) + " ";
      text += chain ? operand.text : inside(operand, Loose);
    }
    return {text, Loose, node.op};
  }

  static Text call(std::string name, std::vector<std::string> arguments) {
    std::string text = std::move(name) + "(";
    for (size_t i = 0; i < arguments.size(); ++i)
      text += (i > 0 ? ", " : "") + arguments[i];
    return atom(text + ")");
  }

  static Text callAll(std::string_view name, const std::vector<Text> &operands) {
    std::vector<std::string> arguments;
    for (const Text &operand : operands)
      arguments.push_back(operand.text);
    return call(std::string(name), std::move(arguments));
  }

  static Text printTable(const MaskProgram &program, const Node &node,
                         const std::vector<Text> &operands) {
    const TableDecl &table = program.tables[node.ref];
    if (node.op != Op::TableLoad) {
      std::vector<std::string> arguments = {table.name};
      for (const Text &operand : operands)
        arguments.push_back(operand.text);
      return call(std::string(toString(node.op)), std::move(arguments));
    }
    std::string text = table.name + "[";
    for (size_t i = 0; i < operands.size(); ++i) {
      TableDim dim = table.dims[i];
      text +=
          (i > 0 ? ", " : "") + (isImplicit(dim) ? std::string(toString(dim)) : operands[i].text);
    }
    return atom(text + "]");
  }

  static Text printMask(const MaskProgram &program, const Node &node,
                        const std::vector<Text> &operands) {
    std::string name(toString(node.op));
    switch (node.op) {
    case Op::Causal:
      return atom(name);
    case Op::Window: {
      std::vector<std::string> sides;
      if (node.imm & 1)
        sides.push_back("left = " + operands[0].text);
      if (node.imm & 2)
        sides.push_back("right = " + operands[node.imm == 3 ? 1 : 0].text);
      return call(name, sides);
    }
    case Op::MmPrefix:
      if (operands.empty())
        return call(name, {program.tables[node.ref].name});
      return call(name, {program.tables[node.ref].name, "clamp = " + operands[0].text});
    case Op::Document:
      return call(name, {program.tables[node.ref].name});
    default:
      return callAll(name, operands);
    }
  }

  static std::string_view compareSign(Op op) {
    switch (op) {
    case Op::CmpEq:
    case Op::FCmpOeq:
      return "==";
    case Op::CmpNe:
    case Op::FCmpUne:
      return "!=";
    case Op::CmpSlt:
    case Op::FCmpOlt:
      return "<";
    case Op::CmpSle:
    case Op::FCmpOle:
      return "<=";
    case Op::CmpSgt:
    case Op::FCmpOgt:
      return ">";
    case Op::CmpSge:
    case Op::FCmpOge:
      return ">=";
    default:
      return "";
    }
  }

  static Text printArithmetic(const Node &node, const std::vector<Text> &operands) {
    switch (node.op) {
    case Op::Add:
    case Op::FAdd:
      return infix("+", Sum, operands);
    case Op::Sub:
    case Op::FSub:
      return infix("-", Sum, operands);
    case Op::Mul:
    case Op::FMul:
      return infix("*", Product, operands);
    case Op::FDiv:
      return infix("/", Product, operands);
    case Op::And:
    case Op::Or:
    case Op::Xor:
      return logical(node, operands);
    case Op::Not:
      return {"not " + inside(operands[0], Product), Compare, Op::Const};
    case Op::SExt:
    case Op::Trunc:
    case Op::SIToFP:
    case Op::FPToSI:
      return callAll(toString(node.type), operands);
    case Op::ZExt:
      return callAll("zext_" + std::string(toString(node.type)), operands);
    default:
      return callAll(toString(node.op), operands);
    }
  }

  Text print(const MaskProgram &program, const Node &node, const std::vector<Text> &operands) {
    switch (node.op) {
    case Op::Const:
      return atom(constant(node));
    case Op::IndexB:
      return atom("b");
    case Op::IndexH:
      return atom("h");
    case Op::IndexQ:
      return atom("q");
    case Op::IndexK:
      return atom("k");
    case Op::Score:
      return atom("s");
    case Op::Param:
      return atom(program.params[node.ref].name);
    case Op::ForResult:
      return call("result", {std::to_string(node.imm), operands[0].text});
    case Op::Alibi:
    case Op::SoftCap:
      return callAll(toString(node.op), operands);
    default:
      break;
    }
    OpFamily family = familyOf(node.op);
    if (family == OpFamily::Table)
      return printTable(program, node, operands);
    if (family == OpFamily::Mask)
      return printMask(program, node, operands);
    if (!compareSign(node.op).empty())
      return infix(compareSign(node.op), Compare, operands);
    return printArithmetic(node, operands);
  }

  size_t depth = 0;
};

} // namespace

std::string toFormula(const MaskProgram &program, NodeId root) {
  if (root < 0)
    return "true";
  FormulaPrinter printer;
  return emitProgram(program, root, printer).text;
}

} // namespace attn::core
