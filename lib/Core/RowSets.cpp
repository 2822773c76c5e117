// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Exact as long as the mask is a boolean combination of named masks and of comparisons of integers
// that are linear in k (or a linear form over a constant) with integers that do not depend on k.
// Anything else gives a Bool of which nothing is known, and the combination carries the bounds that
// remain.
#include "RowSets.h"

#include "attn/Core/IntMath.h"

#include <algorithm>

namespace attn::core {

BoundedSet BoundedSet::operator&(const BoundedSet &other) const {
  if (isExact && other.isExact)
    return upperSet & other.upperSet;
  return {lower() & other.lower(), upperSet & other.upperSet};
}

BoundedSet BoundedSet::operator|(const BoundedSet &other) const {
  if (isExact && other.isExact)
    return upperSet | other.upperSet;
  return {lower() | other.lower(), upperSet | other.upperSet};
}

BoundedSet BoundedSet::operator~() const {
  if (isExact)
    return ~upperSet;
  return {~upperSet, ~lowerSet};
}

BoundedSet BoundedSet::operator^(const BoundedSet &other) const {
  return (*this & ~other) | (other & ~*this);
}

/// A Bool as a set of keys.
static BoundedSet asKeys(const RowValue &v) {
  if (v.kind == RowValue::Keys)
    return v.keys;
  if (v.isKnown())
    return v.known.i ? IntervalSet::all() : IntervalSet::none();
  return BoundedSet::unknown();
}

static RowValue unknownOf(ScalarType type) {
  return type == ScalarType::Bool ? RowValue::ofKeys(BoundedSet::unknown()) : RowValue();
}

//===----------------------------------------------------------------------===//
// Linear forms
//===----------------------------------------------------------------------===//

constexpr int64_t kMaxForm = int64_t(1) << 61;

/// factor * k + offset if it stays inside `type` for every k, else unknown.
static RowValue makeLinear(ScalarType type, int64_t factor, int64_t offset) {
  if (factor == 0)
    return RowValue::ofKnown(Scalar::ofInt(wrapTo(type, offset)));
  if (std::abs(factor) > kMaxFactor || std::abs(offset) > kMaxOffset)
    return {};
  int64_t reach = std::abs(factor) * kPositionLimit;
  if (offset - reach < minOf(type) || offset + reach > maxOf(type))
    return {};
  RowValue r;
  r.kind = RowValue::Linear;
  r.factor = factor;
  r.offset = offset;
  return r;
}

/// Known integers and undivided linear forms as factor and offset.
static bool asLinear(const RowValue &v, int64_t &factor, int64_t &offset) {
  if (v.isKnown()) {
    factor = 0;
    offset = v.known.i;
    return std::abs(std::max(offset, -kMaxForm)) <= kMaxOffset;
  }
  factor = v.factor;
  offset = v.offset;
  return v.kind == RowValue::Linear && v.divisor == 1;
}

/// Keys with factor * k + offset <= n.
static IntervalSet linearAtMost(int64_t factor, int64_t offset, int64_t n) {
  n = std::min(std::max(n, -kMaxForm), kMaxForm);
  if (factor > 0)
    return Interval{-kPositionLimit, clampPosition(floorDiv(n - offset, factor) + 1)};
  return Interval{clampPosition(-floorDiv(n - offset, -factor)), kPositionLimit};
}

/// Keys for which a linear form is at most `n`.
static IntervalSet atMost(const RowValue &form, int64_t n) {
  int64_t d = form.divisor;
  if (d == 1)
    return linearAtMost(form.factor, form.offset, n);
  // x / d <= n in terms of x, which lies in (-kMaxForm, kMaxForm).
  int64_t limit = kMaxForm / d + 1;
  if (n >= limit)
    return IntervalSet::all();
  if (n < -limit)
    return IntervalSet::none();
  bool towardsZero = !form.floors && n < 0;
  return linearAtMost(form.factor, form.offset, towardsZero ? n * d : n * d + (d - 1));
}

/// Keys for which a linear form is below `n`.
static IntervalSet below(const RowValue &form, int64_t n) {
  return n == INT64_MIN ? IntervalSet::none() : atMost(form, n - 1);
}

/// Keys for which `form` (a linear form) compares as `op` with `n`.
static BoundedSet compareWith(Op op, const RowValue &form, int64_t n) {
  IntervalSet nonNegative = ~below(form, 0);
  switch (op) {
  case Op::CmpSle:
    return atMost(form, n);
  case Op::CmpSlt:
    return below(form, n);
  case Op::CmpSgt:
    return ~atMost(form, n);
  case Op::CmpSge:
    return ~below(form, n);
  case Op::CmpEq:
    return atMost(form, n) & ~below(form, n);
  case Op::CmpNe:
    return ~atMost(form, n) | below(form, n);
  // Unsigned: negative numbers lie above all others, in the same order.
  case Op::CmpUlt:
    return n >= 0 ? nonNegative & below(form, n) : nonNegative | below(form, n);
  case Op::CmpUle:
    return n >= 0 ? nonNegative & atMost(form, n) : nonNegative | atMost(form, n);
  case Op::CmpUgt:
    return ~(n >= 0 ? nonNegative & atMost(form, n) : nonNegative | atMost(form, n));
  default: // CmpUge
    return ~(n >= 0 ? nonNegative & below(form, n) : nonNegative | below(form, n));
  }
}

/// The comparison with its operands exchanged.
static Op mirrored(Op op) {
  switch (op) {
  case Op::CmpSlt:
    return Op::CmpSgt;
  case Op::CmpSle:
    return Op::CmpSge;
  case Op::CmpSgt:
    return Op::CmpSlt;
  case Op::CmpSge:
    return Op::CmpSle;
  case Op::CmpUlt:
    return Op::CmpUgt;
  case Op::CmpUle:
    return Op::CmpUge;
  case Op::CmpUgt:
    return Op::CmpUlt;
  case Op::CmpUge:
    return Op::CmpUle;
  default:
    return op;
  }
}

static bool isUnsignedCompare(Op op) {
  return op == Op::CmpUlt || op == Op::CmpUle || op == Op::CmpUgt || op == Op::CmpUge;
}

static BoundedSet compareIntegers(Op op, const RowValue &a, const RowValue &b) {
  if (a.kind == RowValue::Linear && b.isKnown())
    return compareWith(op, a, b.known.i);
  if (a.isKnown() && b.kind == RowValue::Linear)
    return compareWith(mirrored(op), b, a.known.i);
  int64_t fa, oa, fb, ob;
  if (isUnsignedCompare(op) || !asLinear(a, fa, oa) || !asLinear(b, fb, ob))
    return BoundedSet::unknown();
  RowValue difference = makeLinear(ScalarType::I64, fa - fb, oa - ob);
  if (difference.isKnown())
    return evalCompare(op, ScalarType::I64, difference.known.i, 0) ? IntervalSet::all()
                                                                   : IntervalSet::none();
  return difference.kind == RowValue::Linear ? compareWith(op, difference, 0)
                                             : BoundedSet::unknown();
}

//===----------------------------------------------------------------------===//
// The emitter
//===----------------------------------------------------------------------===//

RowValue RowSets::emitLeaf(const Node &node) {
  switch (node.op) {
  case Op::Const:
    return RowValue::ofKnown(constantOf(FloatMode::Single, node));
  case Op::IndexB:
    return RowValue::ofKnown(Scalar::ofInt(at.b));
  case Op::IndexH:
    return RowValue::ofKnown(Scalar::ofInt(at.h));
  case Op::IndexQ:
    return RowValue::ofKnown(Scalar::ofInt(at.q));
  case Op::IndexK:
    return makeLinear(ScalarType::I64, 1, 0);
  case Op::Param:
    return RowValue::ofKnown(tables.param(node.ref));
  default: // Score
    return {};
  }
}

RowValue RowSets::emitTable(const MaskProgram &program, const Node &node,
                            const std::vector<RowValue> &operands) {
  auto known = [](int64_t v) { return RowValue::ofKnown(Scalar::ofInt(v)); };
  switch (node.op) {
  case Op::NumRanges:
    return known(tables.ranges(node.ref, at.b).count);
  case Op::RowLo:
    return known(tables.queryRange(node.ref, at.b, at.q).lo);
  case Op::RowHi:
    return known(tables.queryRange(node.ref, at.b, at.q).hi);
  case Op::RangeStart:
  case Op::RangeEnd: {
    if (!operands[0].isKnown())
      return {};
    int64_t number = operands[0].known.i;
    return known(node.op == Op::RangeStart ? tables.rangeStart(node.ref, at.b, number)
                                           : tables.rangeEnd(node.ref, at.b, number));
  }
  default:
    break;
  }
  int64_t indices[kMaxTableRank];
  const std::vector<TableDim> &dims = program.tables[node.ref].dims;
  for (size_t i = 0; i < dims.size(); ++i) {
    std::optional<int64_t> implicit = tables.implicitIndex(dims[i], at);
    if (!implicit && !operands[i].isKnown())
      return {};
    indices[i] = implicit ? *implicit : operands[i].known.i;
  }
  return RowValue::ofKnown(tables.element(node.ref, indices));
}

BoundedSet RowSets::emitMask(const Node &node, const std::vector<RowValue> &operands) {
  // Keys not older than the radius in `v` / not newer / below a count.
  auto radius = [](const RowValue &v) {
    return std::min(std::max(v.known.i, -kMaxForm), kMaxForm);
  };
  auto notOlder = [&](const RowValue &v) -> BoundedSet {
    if (!v.isKnown())
      return BoundedSet::unknown();
    return IntervalSet(Interval{clampPosition(at.q - radius(v)), kPositionLimit});
  };
  auto notNewer = [&](const RowValue &v) -> BoundedSet {
    if (!v.isKnown())
      return BoundedSet::unknown();
    return IntervalSet(Interval{-kPositionLimit, clampPosition(at.q + radius(v) + 1)});
  };
  auto under = [&](const RowValue &v) -> BoundedSet {
    if (!v.isKnown())
      return BoundedSet::unknown();
    return IntervalSet(Interval{-kPositionLimit, clampPosition(v.known.i)});
  };
  switch (node.op) {
  case Op::Causal:
    return IntervalSet(Interval{-kPositionLimit, clampPosition(at.q + 1)});
  case Op::Window: {
    BoundedSet keys = IntervalSet::all();
    if (node.imm & 1)
      keys = keys & notOlder(operands[0]);
    if (node.imm & 2)
      keys = keys & notNewer(operands[node.imm == 3 ? 1 : 0]);
    return keys;
  }
  case Op::MmPrefix: {
    std::vector<Interval> runs;
    for (const Range &range : tables.ranges(node.ref, at.b))
      if (range.start <= at.q && at.q <= range.end)
        runs.push_back(Interval::fromInclusive(range.start, range.end));
    BoundedSet keys = IntervalSet::unionOf(std::move(runs));
    return operands.empty() ? keys : keys & notOlder(operands[0]);
  }
  case Op::Prefix:
    return under(operands[0]);
  case Op::Document:
    return tables.documentKeys(node.ref, at.b, at.q);
  case Op::Global:
    if (operands[0].isKnown() && at.q < operands[0].known.i)
      return IntervalSet::all();
    return under(operands[0]);
  default: // InRows: k < hi and not k < lo
    return under(operands[1]) & ~under(operands[0]);
  }
}

static RowValue emitBool(const Node &node, const std::vector<RowValue> &operands) {
  BoundedSet a = asKeys(operands[0]);
  switch (node.op) {
  case Op::Not:
    return RowValue::ofKeys(~a);
  case Op::And:
  case Op::MinU:
    return RowValue::ofKeys(a & asKeys(operands[1]));
  case Op::Or:
  case Op::MaxU:
    return RowValue::ofKeys(a | asKeys(operands[1]));
  case Op::Xor:
  case Op::CmpNe:
    return RowValue::ofKeys(a ^ asKeys(operands[1]));
  case Op::CmpEq:
    return RowValue::ofKeys(~(a ^ asKeys(operands[1])));
  case Op::Select: {
    BoundedSet b = asKeys(operands[1]), c = asKeys(operands[2]);
    // Where both branches agree the condition does not matter.
    BoundedSet either = (a & b) | (~a & c);
    return RowValue::ofKeys(
        {either.lower() | (b.lower() & c.lower()), either.upper() & (b.upper() | c.upper())});
  }
  default:
    return RowValue::ofKeys(BoundedSet::unknown());
  }
}

static RowValue emitInteger(const Node &node, const std::vector<RowValue> &operands) {
  const RowValue &a = operands[0];
  if (familyOf(node.op) == OpFamily::IntCast) {
    // A value that fits both types is kept by sext and trunc; zext changes negative ones.
    if (node.op == Op::ZExt || a.kind != RowValue::Linear)
      return {};
    RowValue fits = makeLinear(node.type, a.factor, a.offset);
    return fits.kind == RowValue::Linear ? a : RowValue();
  }
  int64_t fa, oa, fb, ob;
  if (operands.size() != 2 || !asLinear(a, fa, oa) || !asLinear(operands[1], fb, ob))
    return {};
  switch (node.op) {
  case Op::Add:
    return makeLinear(node.type, fa + fb, oa + ob);
  case Op::Sub:
    return makeLinear(node.type, fa - fb, oa - ob);
  case Op::Mul: {
    int64_t by = fa == 0 ? oa : ob;
    if ((fa != 0 && fb != 0) || std::abs(by) > kMaxFactor || std::abs(oa) > kPositionLimit ||
        std::abs(ob) > kPositionLimit)
      return {};
    return makeLinear(node.type, (fa + fb) * by, oa * ob);
  }
  case Op::DivS:
  case Op::FloorDivS:
  case Op::ShrS: {
    int64_t d = node.op != Op::ShrS ? ob : ob >= 0 && ob <= 30 ? int64_t(1) << ob : 0;
    if (fb != 0 || d < 1 || d > kPositionLimit)
      return {};
    RowValue r = a;
    r.divisor = d;
    r.floors = node.op != Op::DivS;
    return r;
  }
  default:
    return {};
  }
}

RowValue RowSets::emit(const MaskProgram &program, NodeId id,
                       const std::vector<RowValue> &operands) {
  const Node &node = program.nodes[id];
  OpFamily family = familyOf(node.op);
  if (node.op == Op::ForResult) {
    for (const auto &[loop, results] : loopResults)
      if (loop == node.ref)
        return results[static_cast<size_t>(node.imm)];
    return unknownOf(node.type);
  }
  if (family == OpFamily::Leaf)
    return emitLeaf(node);
  if (family == OpFamily::Table)
    return emitTable(program, node, operands);
  if (family == OpFamily::Mask)
    return RowValue::ofKeys(emitMask(node, operands));
  if (isPure(node.op) && std::all_of(operands.begin(), operands.end(),
                                     [](const RowValue &v) { return v.isKnown(); })) {
    auto scalar = [&](size_t i) { return i < operands.size() ? operands[i].known : Scalar(); };
    ScalarType argType = program.nodes[node.operands[0]].type;
    return RowValue::ofKnown(
        evalPure(FloatMode::Single, node.op, node.type, argType, scalar(0), scalar(1), scalar(2)));
  }
  if (node.op == Op::Select && operands[0].isKnown())
    return operands[operands[0].known.i ? 1 : 2];
  if (node.type == ScalarType::F32)
    return {};
  if (node.type != ScalarType::Bool)
    return emitInteger(node, operands);
  ScalarType argType = program.nodes[node.operands[0]].type;
  if (argType == ScalarType::Bool)
    return emitBool(node, operands);
  if (family == OpFamily::IntCompare)
    return RowValue::ofKeys(compareIntegers(node.op, operands[0], operands[1]));
  return RowValue::ofKeys(BoundedSet::unknown());
}

template <class Body>
RowValue RowSets::emitFor(const MaskProgram &program, NodeId id,
                          const std::vector<RowValue> &boundsAndInits, Body body) {
  std::vector<RowValue> carried(boundsAndInits.begin() + 3, boundsAndInits.end());
  bool known = true;
  for (size_t i = 0; i < 3; ++i)
    known = known && boundsAndInits[i].isKnown();
  int64_t i = boundsAndInits[0].known.i, ub = boundsAndInits[1].known.i;
  int64_t step = boundsAndInits[2].known.i;
  const bool isFree = isRangeScan(program, program.nodes[id], i, depth++);
  while (known && step >= 1 && i < ub) {
    known = isFree || iterationsLeft-- > 0;
    if (!known)
      break;
    carried = body(RowValue::ofKnown(Scalar::ofInt(i)), std::move(carried));
    if (static_cast<uint64_t>(ub) - static_cast<uint64_t>(i) <= static_cast<uint64_t>(step))
      break;
    i += step;
  }
  --depth;
  if (!known) {
    size_t count = static_cast<size_t>(program.nodes[id].imm);
    carried.clear();
    for (size_t c = 0; c < count; ++c)
      carried.push_back(unknownOf(program.nodes[program.nodes[id].operands[3 + c]].type));
  }
  loopResults.erase(std::remove_if(loopResults.begin(), loopResults.end(),
                                   [id](const auto &entry) { return entry.first == id; }),
                    loopResults.end());
  loopResults.emplace_back(id, carried);
  return carried[0];
}

BoundedSet RowSets::keysOf(const MaskProgram &program, const EmissionOrder &order) {
  return asKeys(emitProgram(program, order, *this));
}

} // namespace attn::core
