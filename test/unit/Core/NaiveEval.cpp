// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "NaiveEval.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace attn::test {

using namespace attn::core;

namespace {

using Big = __int128;

Big power(unsigned n) { return Big(1) << n; }

/// `v` modulo 2^width, as a signed number; Bool as 0 or 1.
int64_t wrapped(ScalarType type, Big v) {
  Big span = power(bitWidth(type));
  Big r = ((v % span) + span) % span;
  if (type != ScalarType::Bool && r >= span / 2)
    r -= span;
  return static_cast<int64_t>(r);
}

Big signedValue(ScalarType type, int64_t v) { return type == ScalarType::Bool ? -Big(v) : v; }
Big unsignedValue(ScalarType type, int64_t v) {
  return v < 0 ? Big(v) + power(bitWidth(type)) : Big(v);
}

Big floorDiv(Big a, Big d) {
  Big n = a / d;
  return n * d != a && (a < 0) != (d < 0) ? n - 1 : n;
}

Big arithmetic(Op op, ScalarType type, int64_t a, int64_t c) {
  Big sa = signedValue(type, a), sc = signedValue(type, c);
  Big ua = unsignedValue(type, a), uc = unsignedValue(type, c);
  unsigned width = bitWidth(type);
  switch (op) {
  case Op::Add:
    return sa + sc;
  case Op::Sub:
    return sa - sc;
  case Op::Mul:
    return sa * sc;
  case Op::DivS:
    return sc == 0 ? 0 : sa / sc;
  case Op::RemS:
    return sc == 0 ? 0 : sa % sc;
  case Op::DivU:
    return uc == 0 ? 0 : ua / uc;
  case Op::RemU:
    return uc == 0 ? 0 : ua % uc;
  case Op::FloorDivS:
    return sc == 0 ? 0 : floorDiv(sa, sc);
  case Op::CeilDivS:
    return sc == 0 ? 0 : -floorDiv(-sa, sc);
  case Op::MinS:
    return std::min(sa, sc);
  case Op::MaxS:
    return std::max(sa, sc);
  case Op::MinU:
    return std::min(ua, uc);
  case Op::MaxU:
    return std::max(ua, uc);
  case Op::And:
    return ua & uc;
  case Op::Or:
    return ua | uc;
  case Op::Xor:
    return ua ^ uc;
  case Op::Shl:
    return uc >= width ? 0 : Big(static_cast<unsigned __int128>(ua) << static_cast<unsigned>(uc));
  case Op::ShrU:
    return uc >= width ? 0 : ua >> static_cast<unsigned>(uc);
  default: // ShrS
    return uc >= width ? (sa < 0 ? -1 : 0) : sa >> static_cast<unsigned>(uc);
  }
}

bool compare(Op op, ScalarType type, int64_t a, int64_t c) {
  Big sa = signedValue(type, a), sc = signedValue(type, c);
  Big ua = unsignedValue(type, a), uc = unsignedValue(type, c);
  switch (op) {
  case Op::CmpEq:
    return sa == sc;
  case Op::CmpNe:
    return sa != sc;
  case Op::CmpSlt:
    return sa < sc;
  case Op::CmpSle:
    return sa <= sc;
  case Op::CmpSgt:
    return sa > sc;
  case Op::CmpSge:
    return sa >= sc;
  case Op::CmpUlt:
    return ua < uc;
  case Op::CmpUle:
    return ua <= uc;
  case Op::CmpUgt:
    return ua > uc;
  default:
    return ua >= uc;
  }
}

} // namespace

int64_t naiveInteger(Op op, ScalarType type, int64_t a, int64_t c) {
  if (op >= Op::CmpEq && op <= Op::CmpUge)
    return compare(op, type, a, c);
  return wrapped(type, arithmetic(op, type, a, c));
}

int64_t NaiveEval::integer(NodeId id) { return value(id).i; }
double NaiveEval::number(NodeId id) { return value(id).f; }

std::vector<Range> NaiveEval::rangesOf(int32_t table) const {
  const TableData &data = batch.tables[table];
  return {data.ranges.begin() + data.rangeOffsets[b],
          data.ranges.begin() + data.rangeOffsets[b + 1]};
}

/// Inclusive row of a QueryRanges table, (-1, -1) outside.
Range NaiveEval::row(const Node &node) {
  const TableData &data = batch.tables[node.ref];
  if (!data.rows.empty()) {
    int64_t token = batch.shape.queryStartLoc[b] + q - batch.shape.contextLen[b];
    return token >= 0 && token < static_cast<int64_t>(data.rows.size()) ? data.rows[token]
                                                                        : Range{-1, -1};
  }
  int32_t source = program.tables[node.ref].source;
  Range result{-1, -1};
  auto add = [&](int32_t s, int32_t e) {
    result =
        result.end == -1 ? Range{s, e} : Range{std::min(s, result.start), std::max(e, result.end)};
  };
  if (program.tables[source].kind == TableKind::Ranges) {
    for (const Range &range : rangesOf(source))
      if (range.start <= q && q <= range.end)
        add(range.start, range.end);
    return result;
  }
  const TableData &documents = batch.tables[source];
  int64_t first = documents.documentOffsets[b], count = documents.documentOffsets[b + 1] - first;
  for (int32_t p = 0; q >= 0 && q < count && p < count; ++p)
    if (documents.documents[first + p] == documents.documents[first + q])
      add(p, p);
  return result;
}

NaiveEval::Value NaiveEval::load(const Node &node) {
  const TableDecl &decl = program.tables[node.ref];
  const TableData &data = batch.tables[node.ref];
  int64_t offset = 0;
  for (size_t i = 0; i < decl.dims.size(); ++i) {
    int64_t index = 0;
    switch (decl.dims[i]) {
    case TableDim::B:
      index = b;
      break;
    case TableDim::Token:
      index = batch.shape.queryStartLoc[b] + q - batch.shape.contextLen[b];
      break;
    case TableDim::H:
      index = h;
      break;
    case TableDim::HKv:
      index = h / (batch.numHeads / batch.numKvHeads);
      break;
    default:
      index = integer(node.operands[i]);
      break;
    }
    if (index < 0 || index >= data.extents[i])
      return {};
    offset += index * data.strides[i];
  }
  const char *bytes = static_cast<const char *>(data.data);
  Value v;
  if (decl.element == ScalarType::F32) {
    float f;
    std::memcpy(&f, bytes + 4 * offset, 4);
    v.f = f;
  } else if (decl.element == ScalarType::I8) {
    v.i = static_cast<signed char>(bytes[offset]);
  } else if (decl.element == ScalarType::I32) {
    int32_t x;
    std::memcpy(&x, bytes + 4 * offset, 4);
    v.i = x;
  } else {
    std::memcpy(&v.i, bytes + 8 * offset, 8);
  }
  return v;
}

bool NaiveEval::named(const Node &node) {
  auto operand = [&](size_t i) { return Big(integer(node.operands[i])); };
  switch (node.op) {
  case Op::Causal:
    return k <= q;
  case Op::Window:
    if (node.imm == 1)
      return q - k <= operand(0);
    if (node.imm == 2)
      return k - q <= operand(0);
    return q - k <= operand(0) && k - q <= operand(1);
  case Op::MmPrefix:
    for (const Range &range : rangesOf(node.ref))
      if (range.start <= q && q <= range.end && range.start <= k && k <= range.end)
        return node.operands.empty() || q - k <= operand(0);
    return false;
  case Op::Prefix:
    return k < operand(0);
  case Op::Document: {
    const TableData &data = batch.tables[node.ref];
    int64_t first = data.documentOffsets[b], count = data.documentOffsets[b + 1] - first;
    return q >= 0 && q < count && k >= 0 && k < count &&
           data.documents[first + q] == data.documents[first + k];
  }
  case Op::Global:
    return k < operand(0) || q < operand(0);
  default: // InRows
    return operand(0) <= k && k < operand(1);
  }
}

NaiveEval::Value NaiveEval::loopResult(NodeId loop, size_t carried) {
  const Node &node = program.nodes[loop];
  size_t count = static_cast<size_t>(node.imm);
  Iteration state;
  for (size_t i = 0; i < count; ++i)
    state.carried.push_back(value(node.operands[3 + i]));
  Big lb = integer(node.operands[0]), ub = integer(node.operands[1]);
  Big step = integer(node.operands[2]);
  for (Big i = lb; step >= 1 && i < ub; i += step) {
    state.index = static_cast<int64_t>(i);
    loops[loop] = state;
    for (size_t c = 0; c < count; ++c)
      state.carried[c] = value(node.operands[3 + count + c]);
  }
  loops.erase(loop);
  return state.carried[carried];
}

NaiveEval::Value NaiveEval::value(NodeId id) {
  const Node &node = program.nodes[id];
  auto typeOf = [&](size_t i) { return program.nodes[node.operands[i]].type; };
  auto arg = [&](size_t i) { return integer(node.operands[i]); };
  auto single = [&](NodeId operand) { return static_cast<float>(number(operand)); };
  auto ofInt = [](int64_t v) { return Value{v, 0}; };
  auto ofFloat = [](double v) { return Value{0, v}; };
  if (node.op >= Op::Add && node.op <= Op::ShrU && node.op != Op::Not)
    return ofInt(naiveInteger(node.op, node.type, arg(0), arg(1)));
  if (node.op >= Op::CmpEq && node.op <= Op::CmpUge)
    return ofInt(naiveInteger(node.op, typeOf(0), arg(0), arg(1)));
  if (node.op >= Op::Causal && node.op <= Op::InRows)
    return ofInt(named(node));
  switch (node.op) {
  case Op::Const:
    return {node.imm, static_cast<float>(node.fimm)};
  case Op::IndexB:
    return ofInt(b);
  case Op::IndexH:
    return ofInt(h);
  case Op::IndexQ:
    return ofInt(q);
  case Op::IndexK:
    return ofInt(k);
  case Op::Param:
    return {batch.params[node.ref].i, static_cast<float>(batch.params[node.ref].f)};
  case Op::LoopIndex:
    return ofInt(loops.at(node.ref).index);
  case Op::LoopCarried:
    return loops.at(node.ref).carried[static_cast<size_t>(node.imm)];
  case Op::For:
    return loopResult(id, 0);
  case Op::ForResult:
    return loopResult(node.ref, static_cast<size_t>(node.imm));
  case Op::TableLoad:
    return load(node);
  case Op::NumRanges:
    return ofInt(static_cast<int64_t>(rangesOf(node.ref).size()));
  case Op::RangeStart:
  case Op::RangeEnd: {
    std::vector<Range> ranges = rangesOf(node.ref);
    int64_t n = arg(0);
    bool inside = n >= 0 && n < static_cast<int64_t>(ranges.size());
    return ofInt(node.op == Op::RangeStart ? (inside ? ranges[n].start : 0)
                                           : (inside ? ranges[n].end : -1));
  }
  case Op::RowLo:
    return ofInt(row(node).end == -1 ? kPositionLimit : row(node).start);
  case Op::RowHi:
    return ofInt(row(node).end == -1 ? -kPositionLimit : int64_t(row(node).end) + 1);
  case Op::Not:
    return ofInt(wrapped(node.type, ~Big(arg(0))));
  case Op::SExt:
    return ofInt(static_cast<int64_t>(signedValue(typeOf(0), arg(0))));
  case Op::ZExt:
    return ofInt(wrapped(node.type, unsignedValue(typeOf(0), arg(0))));
  case Op::Trunc:
    return ofInt(wrapped(node.type, arg(0)));
  case Op::Select:
    return value(node.operands[arg(0) ? 1 : 2]);
  case Op::SIToFP:
    return ofFloat(static_cast<float>(signedValue(typeOf(0), arg(0))));
  case Op::FAdd:
    return ofFloat(single(node.operands[0]) + single(node.operands[1]));
  case Op::FMul:
    return ofFloat(single(node.operands[0]) * single(node.operands[1]));
  case Op::FCmpOlt:
    return ofInt(number(node.operands[0]) < number(node.operands[1]));
  default:
    throw "operation not known to the naive evaluator";
  }
}

} // namespace attn::test
