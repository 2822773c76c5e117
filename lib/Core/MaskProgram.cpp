// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Names, construction and dependence of mask programs.
#include "attn/Core/MaskProgram.h"

#include "OpInfo.h"

namespace attn::core {

namespace {

struct OpEntry {
  Op op;
  std::string_view name;
  OpFamily family;
};

using F = OpFamily;

constexpr OpEntry kOps[] = {
    {Op::Const, "const", F::Leaf},
    {Op::IndexB, "index_b", F::Leaf},
    {Op::IndexH, "index_h", F::Leaf},
    {Op::IndexQ, "index_q", F::Leaf},
    {Op::IndexK, "index_k", F::Leaf},
    {Op::Score, "score", F::Leaf},
    {Op::Param, "param", F::Leaf},
    {Op::LoopIndex, "loop_index", F::Loop},
    {Op::LoopCarried, "loop_carried", F::Loop},
    {Op::TableLoad, "table_load", F::Table},
    {Op::NumRanges, "num_ranges", F::Table},
    {Op::RangeStart, "range_start", F::Table},
    {Op::RangeEnd, "range_end", F::Table},
    {Op::RowLo, "row_lo", F::Table},
    {Op::RowHi, "row_hi", F::Table},
    {Op::Add, "add", F::IntBinary},
    {Op::Sub, "sub", F::IntBinary},
    {Op::Mul, "mul", F::IntBinary},
    {Op::DivS, "div_s", F::IntBinary},
    {Op::RemS, "rem_s", F::IntBinary},
    {Op::DivU, "div_u", F::IntBinary},
    {Op::RemU, "rem_u", F::IntBinary},
    {Op::FloorDivS, "floor_div_s", F::IntBinary},
    {Op::CeilDivS, "ceil_div_s", F::IntBinary},
    {Op::MinS, "min_s", F::IntBinary},
    {Op::MaxS, "max_s", F::IntBinary},
    {Op::MinU, "min_u", F::IntBinary},
    {Op::MaxU, "max_u", F::IntBinary},
    {Op::And, "and", F::IntBinary},
    {Op::Or, "or", F::IntBinary},
    {Op::Xor, "xor", F::IntBinary},
    {Op::Not, "not", F::IntUnary},
    {Op::Shl, "shl", F::IntBinary},
    {Op::ShrS, "shr_s", F::IntBinary},
    {Op::ShrU, "shr_u", F::IntBinary},
    {Op::CmpEq, "cmp_eq", F::IntCompare},
    {Op::CmpNe, "cmp_ne", F::IntCompare},
    {Op::CmpSlt, "cmp_slt", F::IntCompare},
    {Op::CmpSle, "cmp_sle", F::IntCompare},
    {Op::CmpSgt, "cmp_sgt", F::IntCompare},
    {Op::CmpSge, "cmp_sge", F::IntCompare},
    {Op::CmpUlt, "cmp_ult", F::IntCompare},
    {Op::CmpUle, "cmp_ule", F::IntCompare},
    {Op::CmpUgt, "cmp_ugt", F::IntCompare},
    {Op::CmpUge, "cmp_uge", F::IntCompare},
    {Op::SExt, "sext", F::IntCast},
    {Op::ZExt, "zext", F::IntCast},
    {Op::Trunc, "trunc", F::IntCast},
    {Op::Select, "select", F::Select},
    {Op::FAdd, "fadd", F::FloatBinary},
    {Op::FSub, "fsub", F::FloatBinary},
    {Op::FMul, "fmul", F::FloatBinary},
    {Op::FDiv, "fdiv", F::FloatBinary},
    {Op::FNeg, "fneg", F::FloatUnary},
    {Op::FAbs, "fabs", F::FloatUnary},
    {Op::FMin, "fmin", F::FloatBinary},
    {Op::FMax, "fmax", F::FloatBinary},
    {Op::FMinNum, "fminnum", F::FloatBinary},
    {Op::FMaxNum, "fmaxnum", F::FloatBinary},
    {Op::Fma, "fma", F::FloatTernary},
    {Op::FCmpOeq, "fcmp_oeq", F::FloatCompare},
    {Op::FCmpOne, "fcmp_one", F::FloatCompare},
    {Op::FCmpOlt, "fcmp_olt", F::FloatCompare},
    {Op::FCmpOle, "fcmp_ole", F::FloatCompare},
    {Op::FCmpOgt, "fcmp_ogt", F::FloatCompare},
    {Op::FCmpOge, "fcmp_oge", F::FloatCompare},
    {Op::FCmpOrd, "fcmp_ord", F::FloatCompare},
    {Op::FCmpUeq, "fcmp_ueq", F::FloatCompare},
    {Op::FCmpUne, "fcmp_une", F::FloatCompare},
    {Op::FCmpUlt, "fcmp_ult", F::FloatCompare},
    {Op::FCmpUle, "fcmp_ule", F::FloatCompare},
    {Op::FCmpUgt, "fcmp_ugt", F::FloatCompare},
    {Op::FCmpUge, "fcmp_uge", F::FloatCompare},
    {Op::FCmpUno, "fcmp_uno", F::FloatCompare},
    {Op::SIToFP, "sitofp", F::IntToFloat},
    {Op::UIToFP, "uitofp", F::IntToFloat},
    {Op::FPToSI, "fptosi", F::FloatToInt},
    {Op::Exp, "exp", F::FloatUnary},
    {Op::Exp2, "exp2", F::FloatUnary},
    {Op::ExpM1, "expm1", F::FloatUnary},
    {Op::Log, "log", F::FloatUnary},
    {Op::Log2, "log2", F::FloatUnary},
    {Op::Log1p, "log1p", F::FloatUnary},
    {Op::Tanh, "tanh", F::FloatUnary},
    {Op::Sqrt, "sqrt", F::FloatUnary},
    {Op::Rsqrt, "rsqrt", F::FloatUnary},
    {Op::Pow, "pow", F::FloatBinary},
    {Op::Sin, "sin", F::FloatUnary},
    {Op::Cos, "cos", F::FloatUnary},
    {Op::Erf, "erf", F::FloatUnary},
    {Op::Floor, "floor", F::FloatUnary},
    {Op::Ceil, "ceil", F::FloatUnary},
    {Op::Causal, "causal", F::Mask},
    {Op::Window, "window", F::Mask},
    {Op::MmPrefix, "mm_prefix", F::Mask},
    {Op::Prefix, "prefix", F::Mask},
    {Op::Document, "document", F::Mask},
    {Op::Global, "global", F::Mask},
    {Op::InRows, "in_rows", F::Mask},
    {Op::SoftCap, "soft_cap", F::Score},
    {Op::Alibi, "alibi", F::Score},
    {Op::For, "for", F::Loop},
    {Op::ForResult, "for_result", F::Loop},
};

constexpr bool inOrder() {
  for (int i = 0; i < kNumOps; ++i)
    if (static_cast<int>(kOps[i].op) != i)
      return false;
  return true;
}
static_assert(sizeof(kOps) / sizeof(kOps[0]) == kNumOps && inOrder(), "one row for each Op");

constexpr std::string_view kScalarNames[] = {"i1", "i8", "i16", "i32", "i64", "f32"};
constexpr std::string_view kDimNames[] = {"b", "token", "k", "slot", "h", "h_kv", "bucket"};
constexpr std::string_view kKindNames[] = {"plain", "ranges", "documents", "query_ranges"};

template <class Enum, size_t N>
std::optional<Enum> lookUp(const std::string_view (&names)[N], std::string_view text) {
  for (size_t i = 0; i < N; ++i)
    if (names[i] == text)
      return static_cast<Enum>(i);
  return std::nullopt;
}

} // namespace

unsigned bitWidth(ScalarType type) {
  constexpr unsigned widths[] = {1, 8, 16, 32, 64, 32};
  return widths[static_cast<int>(type)];
}

std::string_view toString(ScalarType type) { return kScalarNames[static_cast<int>(type)]; }
std::optional<ScalarType> parseScalarType(std::string_view text) {
  return lookUp<ScalarType>(kScalarNames, text);
}

std::string_view toString(TableDim dim) { return kDimNames[static_cast<int>(dim)]; }
std::optional<TableDim> parseTableDim(std::string_view text) {
  return lookUp<TableDim>(kDimNames, text);
}

std::string_view toString(TableKind kind) { return kKindNames[static_cast<int>(kind)]; }
std::optional<TableKind> parseTableKind(std::string_view text) {
  return lookUp<TableKind>(kKindNames, text);
}

std::string_view toString(Op op) { return kOps[static_cast<int>(op)].name; }
std::optional<Op> parseOp(std::string_view text) {
  for (const OpEntry &entry : kOps)
    if (entry.name == text)
      return entry.op;
  return std::nullopt;
}

OpFamily familyOf(Op op) { return kOps[static_cast<int>(op)].family; }

NodeId MaskProgram::add(Node node) {
  nodes.push_back(std::move(node));
  return static_cast<NodeId>(nodes.size()) - 1;
}

NodeId MaskProgram::constant(ScalarType type, int64_t value) {
  Node node;
  node.op = Op::Const;
  node.type = type;
  if (type == ScalarType::F32)
    node.fimm = static_cast<double>(value);
  else
    node.imm = value;
  return add(std::move(node));
}

//===----------------------------------------------------------------------===//
// Dependence
//===----------------------------------------------------------------------===//

Dependence ownDependence(const MaskProgram &program, const Node &node) {
  Dependence d;
  switch (node.op) {
  case Op::IndexB:
  case Op::NumRanges:
  case Op::RangeStart:
  case Op::RangeEnd:
    d.b = true;
    break;
  case Op::IndexH:
    d.h = true;
    break;
  case Op::IndexQ:
    d.q = true;
    break;
  case Op::IndexK:
  case Op::Prefix:
  case Op::InRows:
    d.k = true;
    break;
  case Op::Score:
    d.s = true;
    break;
  case Op::RowLo:
  case Op::RowHi:
    d.b = d.q = true;
    break;
  case Op::Causal:
  case Op::Window:
  case Op::Global:
  case Op::Alibi:
    d.q = d.k = true;
    break;
  case Op::MmPrefix:
  case Op::Document:
    d.b = d.q = d.k = true;
    break;
  case Op::TableLoad:
    for (TableDim dim : program.tables[node.ref].dims) {
      d.b |= dim == TableDim::B || dim == TableDim::Token;
      d.q |= dim == TableDim::Token;
      d.h |= dim == TableDim::H || dim == TableDim::HKv;
    }
    break;
  default:
    break;
  }
  return d;
}

Dependence dependence(const MaskProgram &program, NodeId root) {
  Dependence result;
  if (root < 0)
    return result;
  std::vector<bool> seen(program.nodes.size(), false);
  std::vector<NodeId> work = {root};
  auto visit = [&](NodeId id) {
    if (!seen[id]) {
      seen[id] = true;
      work.push_back(id);
    }
  };
  seen[root] = true;
  while (!work.empty()) {
    const Node &node = program.nodes[work.back()];
    work.pop_back();
    Dependence own = ownDependence(program, node);
    result = {result.b || own.b, result.h || own.h, result.q || own.q, result.k || own.k,
              result.s || own.s};
    for (size_t i = 0; i < node.operands.size(); ++i)
      if (node.op != Op::TableLoad || !isImplicit(program.tables[node.ref].dims[i]))
        visit(node.operands[i]);
    // A loop's values change with everything its bounds and its body read.
    if (node.op == Op::LoopIndex || node.op == Op::LoopCarried || node.op == Op::ForResult)
      visit(node.ref);
  }
  return result;
}

} // namespace attn::core
