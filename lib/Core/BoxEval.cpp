// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Leaves, tables and named masks over a box. Sound: a Bool that comes out as [1, 1] is true for
// every pair of the box, one that comes out as [0, 0] for none.
#include "BoxEval.h"

#include <algorithm>

namespace attn::core {

/// Most table elements, rows or ranges that one load looks at; beyond, anything is possible.
constexpr int64_t kMaxScan = 512;

static bool allPoints(const MaskProgram &program, const Node &node,
                      const std::vector<BoxValue> &operands) {
  for (size_t i = 0; i < operands.size(); ++i) {
    bool isFloat = program.nodes[node.operands[i]].type == ScalarType::F32;
    if (isFloat ? !operands[i].floatKnown : !operands[i].isPoint())
      return false;
  }
  return true;
}

static BoxValue fromScalar(ScalarType type, const Scalar &v) {
  return type == ScalarType::F32 ? BoxValue::number(v.f) : BoxValue::point(v.i);
}

/// The hull of two values; floats are kept if they are the same number.
static BoxValue joined(ScalarType type, const BoxValue &a, const BoxValue &b) {
  if (type != ScalarType::F32)
    return BoxValue::range(std::min(a.lo, b.lo), std::max(a.hi, b.hi));
  return a.floatKnown && b.floatKnown && a.f == b.f && a.f != 0 ? a : BoxValue::anyOf(type);
}

BoxValue BoxEval::emitLeaf(const Node &node) {
  switch (node.op) {
  case Op::Const:
    return fromScalar(node.type, constantOf(FloatMode::Single, node));
  case Op::IndexB:
    return BoxValue::point(box.b);
  case Op::IndexH:
    return BoxValue::point(box.h);
  case Op::IndexQ:
    return BoxValue::range(box.q.lo, box.q.hi - 1);
  case Op::IndexK:
    return BoxValue::range(box.k.lo, box.k.hi - 1);
  case Op::Param:
    return fromScalar(node.type, tables.param(node.ref));
  default: // Score
    return BoxValue::anyOf(ScalarType::F32);
  }
}

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

BoxValue BoxEval::emitRow(const Node &node) {
  if (box.q.size() > kMaxScan)
    return BoxValue::range(-kPositionLimit, kPositionLimit);
  BoxValue result;
  for (int64_t q = box.q.lo; q < box.q.hi; ++q) {
    Interval row = tables.queryRange(node.ref, box.b, q);
    BoxValue v = BoxValue::point(node.op == Op::RowLo ? row.lo : row.hi);
    result = q == box.q.lo ? v : joined(ScalarType::I64, result, v);
  }
  return result;
}

BoxValue BoxEval::loadRange(const MaskProgram &program, const Node &node,
                            const std::vector<BoxValue> &operands) {
  const std::vector<TableDim> &dims = program.tables[node.ref].dims;
  BoxValue bounds[kMaxTableRank];
  int64_t count = 1;
  for (size_t i = 0; i < dims.size(); ++i) {
    BoxValue &range = bounds[i];
    if (std::optional<int64_t> first = tables.implicitIndex(dims[i], {box.b, box.h, box.q.lo}))
      range = BoxValue::range(*first, *tables.implicitIndex(dims[i], {box.b, box.h, box.q.hi - 1}));
    else
      range = operands[i];
    // Differences are taken unsigned: an index may be any int64.
    uint64_t more = static_cast<uint64_t>(range.hi) - static_cast<uint64_t>(range.lo);
    if (more >= static_cast<uint64_t>(kMaxScan))
      return BoxValue::anyOf(node.type);
    count *= static_cast<int64_t>(more) + 1;
    if (count > kMaxScan)
      return BoxValue::anyOf(node.type);
  }
  BoxValue result;
  int64_t indices[kMaxTableRank];
  for (int64_t n = 0; n < count; ++n) {
    int64_t rest = n;
    for (size_t i = 0; i < dims.size(); ++i) {
      int64_t extent = bounds[i].hi - bounds[i].lo + 1;
      indices[i] = bounds[i].lo + rest % extent;
      rest /= extent;
    }
    BoxValue v = fromScalar(node.type, tables.element(node.ref, indices));
    result = n == 0 ? v : joined(node.type, result, v);
  }
  return result;
}

BoxValue BoxEval::emitTable(const MaskProgram &program, const Node &node,
                            const std::vector<BoxValue> &operands) {
  if (node.op == Op::NumRanges)
    return BoxValue::point(tables.ranges(node.ref, box.b).count);
  if (node.op == Op::RowLo || node.op == Op::RowHi)
    return emitRow(node);
  if (node.op == Op::TableLoad)
    return loadRange(program, node, operands);
  // Numbers outside the list all read the same, so it is enough to look one past either end.
  int64_t count = tables.ranges(node.ref, box.b).count;
  int64_t lo = std::min(std::max<int64_t>(operands[0].lo, -1), count);
  int64_t hi = std::min(std::max<int64_t>(operands[0].hi, -1), count);
  if (hi - lo >= kMaxScan)
    return BoxValue::anyOf(ScalarType::I64);
  BoxValue result;
  for (int64_t n = lo; n <= hi; ++n) {
    BoxValue v = BoxValue::point(node.op == Op::RangeStart ? tables.rangeStart(node.ref, box.b, n)
                                                           : tables.rangeEnd(node.ref, box.b, n));
    result = n == lo ? v : joined(ScalarType::I64, result, v);
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Named masks
//===----------------------------------------------------------------------===//

BoxValue BoxEval::emitMmPrefix(const Node &node, const std::vector<BoxValue> &operands) {
  int64_t q0 = box.q.lo, q1 = box.q.hi - 1, k0 = box.k.lo, k1 = box.k.hi - 1;
  bool clamped = !operands.empty();
  int64_t clampLo = clamped ? operands[0].lo : INT64_MAX;
  int64_t clampHi = clamped ? operands[0].hi : INT64_MAX;
  bool some = false, all = false;
  for (const Range &range : tables.ranges(node.ref, box.b)) {
    int64_t firstQ = std::max<int64_t>(q0, range.start), lastQ = std::min<int64_t>(q1, range.end);
    int64_t firstK = std::max<int64_t>(k0, range.start), lastK = std::min<int64_t>(k1, range.end);
    if (firstQ > lastQ || firstK > lastK || firstQ - lastK > clampHi)
      continue;
    some = true;
    all = all || (firstQ == q0 && lastQ == q1 && firstK == k0 && lastK == k1 && q1 - k0 <= clampLo);
  }
  return BoxValue::truth(some, !all);
}

BoxValue BoxEval::emitDocument(const Node &node) {
  if (box.q.size() > kMaxScan)
    return BoxValue::range(0, 1);
  bool some = false, all = true;
  int64_t q = box.q.lo;
  while (q < box.q.hi) {
    const IntervalSet &keys = tables.documentKeys(node.ref, box.b, q);
    some = some || keys.intersects(box.k);
    all = all && keys.containsAll(box.k);
    // Queries of one document see the same keys.
    ++q;
    while (q < box.q.hi && keys.contains(q))
      ++q;
  }
  return BoxValue::truth(some, !all);
}

BoxValue BoxEval::emitMask(const Node &node, const std::vector<BoxValue> &operands) {
  BoxValue q = BoxValue::range(box.q.lo, box.q.hi - 1), k = BoxValue::range(box.k.lo, box.k.hi - 1);
  auto atMost = [](int64_t lo, int64_t hi, const BoxValue &limit) {
    return BoxValue::truth(lo <= limit.hi, hi > limit.lo);
  };
  auto both = [](const BoxValue &a, const BoxValue &b) {
    return BoxValue::range(a.lo & b.lo, a.hi & b.hi);
  };
  auto below = [](const BoxValue &a, const BoxValue &b) {
    return BoxValue::truth(a.lo < b.hi, a.hi >= b.lo);
  };
  switch (node.op) {
  case Op::Causal:
    return atMost(k.lo, k.hi, q);
  case Op::Window: {
    BoxValue result = BoxValue::point(1);
    if (node.imm & 1)
      result = atMost(q.lo - k.hi, q.hi - k.lo, operands[0]);
    if (node.imm & 2)
      result = both(result, atMost(k.lo - q.hi, k.hi - q.lo, operands[node.imm == 3 ? 1 : 0]));
    return result;
  }
  case Op::MmPrefix:
    return emitMmPrefix(node, operands);
  case Op::Prefix:
    return below(k, operands[0]);
  case Op::Document:
    return emitDocument(node);
  case Op::Global: {
    BoxValue inKeys = below(k, operands[0]), inQueries = below(q, operands[0]);
    return BoxValue::range(inKeys.lo | inQueries.lo, inKeys.hi | inQueries.hi);
  }
  default: { // InRows: lo <= k < hi
    BoxValue tooLow = below(k, operands[0]);
    return both(BoxValue::range(1 - tooLow.hi, 1 - tooLow.lo), below(k, operands[1]));
  }
  }
}

//===----------------------------------------------------------------------===//
// The emitter
//===----------------------------------------------------------------------===//

BoxValue BoxEval::emit(const MaskProgram &program, NodeId id,
                       const std::vector<BoxValue> &operands) {
  const Node &node = program.nodes[id];
  OpFamily family = familyOf(node.op);
  if (node.op == Op::ForResult) {
    for (const auto &[loop, results] : loopResults)
      if (loop == node.ref)
        return results[static_cast<size_t>(node.imm)];
    return BoxValue::anyOf(node.type);
  }
  if (family == OpFamily::Leaf)
    return emitLeaf(node);
  if (family == OpFamily::Table)
    return emitTable(program, node, operands);
  if (family == OpFamily::Mask)
    return emitMask(node, operands);
  if (node.op == Op::Select && !operands[0].isPoint())
    return joined(node.type, operands[1], operands[2]);
  if (node.op == Op::Select)
    return operands[operands[0].lo ? 1 : 2];
  ScalarType argType = program.nodes[node.operands[0]].type;
  if (isPure(node.op) && allPoints(program, node, operands)) {
    auto scalar = [&](size_t i) {
      if (i >= operands.size())
        return Scalar();
      bool isFloat = program.nodes[node.operands[i]].type == ScalarType::F32;
      return isFloat ? Scalar::ofFloat(operands[i].f) : Scalar::ofInt(operands[i].lo);
    };
    return fromScalar(node.type, evalPure(FloatMode::Single, node.op, node.type, argType, scalar(0),
                                          scalar(1), scalar(2)));
  }
  return rangeOf(node.op, node.type, argType, operands[0],
                 operands.size() > 1 ? operands[1] : BoxValue());
}

template <class Body>
BoxValue BoxEval::emitFor(const MaskProgram &program, NodeId id,
                          const std::vector<BoxValue> &boundsAndInits, Body body) {
  std::vector<BoxValue> carried(boundsAndInits.begin() + 3, boundsAndInits.end());
  bool known = true;
  for (size_t i = 0; i < 3; ++i)
    known = known && boundsAndInits[i].isPoint();
  int64_t i = boundsAndInits[0].lo, ub = boundsAndInits[1].lo, step = boundsAndInits[2].lo;
  while (known && step >= 1 && i < ub) {
    known = iterationsLeft-- > 0;
    if (!known)
      break;
    carried = body(BoxValue::point(i), std::move(carried));
    if (static_cast<uint64_t>(ub) - static_cast<uint64_t>(i) <= static_cast<uint64_t>(step))
      break;
    i += step;
  }
  if (!known)
    for (size_t c = 0; c < carried.size(); ++c)
      carried[c] = BoxValue::anyOf(program.nodes[program.nodes[id].operands[3 + c]].type);
  loopResults.erase(std::remove_if(loopResults.begin(), loopResults.end(),
                                   [id](const auto &entry) { return entry.first == id; }),
                    loopResults.end());
  loopResults.emplace_back(id, carried);
  return carried[0];
}

BoxValue BoxEval::evaluate(const MaskProgram &program, const EmissionOrder &order) {
  return emitProgram(program, order, *this);
}

} // namespace attn::core
