// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Everything but loops. Each rule is the one of dialect/attn/SPEC.md: no operation is undefined, so
// there are no side conditions to prove.
#include "Encoder.h"

#include <algorithm>
#include <cstring>

using namespace attn;
using namespace attn::proofs;
using core::Node;
using core::NodeId;
using core::Op;
using core::ScalarType;

static constexpr Wide kMaxBits = (Wide(1) << 32) - 1; ///< of an F32

//===----------------------------------------------------------------------===//
// Unknown functions
//===----------------------------------------------------------------------===//

Coded Unknowns::apply(const std::string &key, const std::string &name, ScalarType type,
                      const std::vector<Coded> &operands) {
  names.insert(name);
  std::vector<Term> arguments;
  for (const Coded &operand : operands) {
    bool isNumber = mlir::isa<mlir::smt::IntType>(operand.term.getType());
    arguments.push_back(isNumber ? operand.term
                                 : terms.ite(operand.term, terms.integer(1), terms.integer(0)));
  }
  std::string full =
      key + "/" + std::string(core::toString(type)) + "/" + std::to_string(arguments.size());
  auto [entry, isNew] = functions.try_emplace(full);
  if (isNew)
    entry->second = terms.function("unknown", static_cast<unsigned>(arguments.size()));
  Term value = terms.apply(entry->second, arguments);
  if (type == ScalarType::Bool)
    return {terms.lt(terms.integer(0), value), 0, 1};
  bool isFloat = type == ScalarType::F32;
  Wide lo = isFloat ? 0 : minOf(type), hi = isFloat ? kMaxBits : maxOf(type);
  Term low = terms.integer(lo), high = terms.integer(hi);
  return {terms.ite(terms.lt(value, low), low, terms.ite(terms.lt(high, value), high, value)), lo,
          hi};
}

Coded Encoder::encodeUnknown(const Node &node, const std::string &why) {
  std::vector<Coded> operands;
  std::string key(core::toString(node.op));
  key += "/" + std::to_string(node.imm);
  for (size_t i = 0; i < node.operands.size(); ++i) {
    operands.push_back(operand(node, i));
    key += "," + std::string(core::toString(typeOf(node.operands[i])));
  }
  if (node.op == Op::Alibi) // It reads the indices too.
    operands.insert(operands.end(), {world.q, world.k});
  return unknowns.apply(key, std::string(core::toString(node.op)) + why, node.type, operands);
}

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

Coded Encoder::select(Term condition, const Coded &a, const Coded &b) const {
  return {terms.ite(condition, a.term, b.term), std::min(a.lo, b.lo), std::max(a.hi, b.hi)};
}

Coded Encoder::wrap(ScalarType type, const Coded &exact) const {
  Wide lo = minOf(type), hi = maxOf(type), span = hi - lo + 1;
  if (lo <= exact.lo && exact.hi <= hi)
    return exact;
  if (lo - span <= exact.lo && exact.hi <= hi + span) {
    // One sum or difference leaves the type by less than its span.
    Term x = exact.term, turn = terms.integer(span);
    Term low = terms.ite(terms.lt(x, terms.integer(lo)), terms.add(x, turn), x);
    return {terms.ite(terms.lt(terms.integer(hi), x), terms.sub(x, turn), low), lo, hi};
  }
  Term moved = terms.sub(exact.term, terms.integer(lo));
  return {terms.add(terms.mod(moved, terms.integer(span)), terms.integer(lo)), lo, hi};
}

Coded Encoder::asNumber(ScalarType type, const Coded &value) const {
  if (type != ScalarType::Bool)
    return value;
  return {terms.ite(value.term, terms.integer(1), terms.integer(0)), 0, 1};
}

Coded Encoder::asSigned(ScalarType type, const Coded &value) const {
  if (type != ScalarType::Bool)
    return value;
  return {terms.ite(value.term, terms.integer(-1), terms.integer(0)), -1, 0};
}

Coded Encoder::asUnsigned(ScalarType type, const Coded &value) const {
  if (type == ScalarType::Bool)
    return asNumber(type, value);
  if (value.lo >= 0)
    return value;
  Wide span = Wide(1) << core::bitWidth(type);
  Term moved = terms.add(value.term, terms.integer(span));
  return {terms.ite(terms.lt(value.term, terms.integer(0)), moved, value.term), 0, span - 1};
}

Coded Encoder::encodeProduct(ScalarType type, const Coded &a, const Coded &b) {
  // Exact products of 64-bit values fit 127 bits and their sign.
  Coded exact{terms.mul(a.term, b.term), 0, 0};
  Wide ends[4] = {a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi};
  exact.lo = *std::min_element(ends, ends + 4);
  exact.hi = *std::max_element(ends, ends + 4);
  return wrap(type, exact);
}

/// x & mask, linear: the sum of what each run of ones in `mask` takes from x.
Coded Encoder::maskBits(ScalarType type, const Coded &x, int64_t mask) const {
  int width = static_cast<int>(core::bitWidth(type));
  auto below = [&](int bits) { return terms.mod(x.term, terms.integer(Wide(1) << bits)); };
  Term sum = terms.integer(0);
  for (int i = 0; i < width;) {
    if (!(mask >> i & 1)) {
      ++i;
      continue;
    }
    int end = i;
    while (end < width && (mask >> end & 1))
      ++end;
    // A run up to the sign keeps it: x itself instead of its low bits.
    Term upper = end == width ? x.term : below(end);
    sum = terms.add(sum, i ? terms.sub(upper, below(i)) : upper);
    i = end;
  }
  if (mask >= 0)
    return {sum, 0, mask};
  return {sum, minOf(type), maxOf(type)};
}

/// And of two unknown numbers, bit by bit.
Coded Encoder::andOfBits(ScalarType type, const Coded &a, const Coded &b) const {
  int width = static_cast<int>(core::bitWidth(type));
  Term sum = terms.integer(0);
  for (int i = 0; i < width; ++i) {
    auto bit = [&](const Coded &x) {
      Term shifted = terms.div(x.term, terms.integer(Wide(1) << i));
      return terms.equal(terms.mod(shifted, terms.integer(2)), terms.integer(1));
    };
    Wide weight = i + 1 == width ? minOf(type) : Wide(1) << i;
    Term both = terms.land(bit(a), bit(b));
    sum = terms.add(sum, terms.ite(both, terms.integer(weight), terms.integer(0)));
  }
  return {sum, minOf(type), maxOf(type)};
}

/// And, or and xor of integers: all follow from and. With a constant they are linear; of two
/// unknown numbers a proof sees a function, and the search for an example all bits.
Coded Encoder::encodeBits(const Node &node, const Coded &a, const Coded &b) {
  if (a.term == b.term)
    return node.op == Op::Xor ? constant(0) : a;
  Coded both;
  if (auto known = terms.asInteger(b.term))
    both = maskBits(node.type, a, static_cast<int64_t>(*known));
  else if ((known = terms.asInteger(a.term)))
    both = maskBits(node.type, b, static_cast<int64_t>(*known));
  else if (world.getOptions().maxRanges)
    both = andOfBits(node.type, a, b);
  else
    return encodeUnknown(node);
  if (node.op == Op::And)
    return both;
  Term rest = node.op == Op::Or ? both.term : terms.add(both.term, both.term);
  return {terms.sub(terms.add(a.term, b.term), rest), minOf(node.type), maxOf(node.type)};
}

/// A shift by an unknown amount is a choice among all of them.
Coded Encoder::encodeShift(const Node &node, const Coded &a, const Coded &b) {
  if (auto amount = terms.asInteger(b.term))
    return shiftBy(node, a, *amount);
  Wide width = core::bitWidth(node.type);
  Coded result = shiftBy(node, a, width);
  for (Wide amount = 0; amount < width; ++amount)
    result = select(terms.equal(b.term, terms.integer(amount)), shiftBy(node, a, amount), result);
  return result;
}

Coded Encoder::shiftBy(const Node &node, const Coded &a, Wide amount) {
  Wide width = core::bitWidth(node.type);
  if (amount < 0 || amount >= width) {
    if (node.op != Op::ShrS)
      return constant(0);
    return select(terms.lt(a.term, terms.integer(0)), constant(-1), constant(0));
  }
  int bits = static_cast<int>(amount);
  Wide power = Wide(1) << bits;
  if (node.op == Op::Shl)
    return encodeProduct(node.type, a, constant(power));
  Coded x = node.op == Op::ShrS ? a : asUnsigned(node.type, a);
  return wrap(node.type, {terms.div(x.term, terms.integer(power)), x.lo >> bits, x.hi >> bits});
}

/// All of them over the division of SMT-LIB, whose remainder is never negative.
Coded Encoder::encodeDivision(const Node &node, Coded a, Coded b) {
  bool isUnsigned = node.op == Op::DivU || node.op == Op::RemU;
  if (isUnsigned) {
    a = asUnsigned(node.type, a);
    b = asUnsigned(node.type, b);
  }
  Term zero = terms.integer(0);
  auto negate = [&](Term x) { return terms.sub(zero, x); };
  Term aNegative = a.lo >= 0 ? terms.boolean(false) : terms.lt(a.term, zero);
  Term bNegative = b.lo >= 0 ? terms.boolean(false) : terms.lt(b.term, zero);
  // Rounded down, for any divisor but 0.
  auto floorOf = [&](Term x) {
    return terms.ite(bNegative, terms.div(negate(x), negate(b.term)), terms.div(x, b.term));
  };
  Term result;
  switch (node.op) {
  case Op::FloorDivS:
    result = floorOf(a.term);
    break;
  case Op::CeilDivS:
    result = negate(floorOf(negate(a.term)));
    break;
  case Op::RemS:
  case Op::RemU:
    result =
        terms.ite(aNegative, negate(terms.mod(negate(a.term), b.term)), terms.mod(a.term, b.term));
    break;
  default:
    result =
        terms.ite(aNegative, negate(terms.div(negate(a.term), b.term)), terms.div(a.term, b.term));
    break;
  }
  Wide bound = std::max({a.hi, -a.lo, Wide(1)});
  Coded exact{terms.ite(terms.equal(b.term, zero), zero, result), -bound, bound};
  return wrap(node.type, exact);
}

Coded Encoder::encodeMinMax(const Node &node, const Coded &a, const Coded &b) {
  bool isUnsigned = node.op == Op::MinU || node.op == Op::MaxU;
  bool isMin = node.op == Op::MinS || node.op == Op::MinU;
  Coded x = isUnsigned ? asUnsigned(node.type, a) : asSigned(node.type, a);
  Coded y = isUnsigned ? asUnsigned(node.type, b) : asSigned(node.type, b);
  Term less = isMin ? terms.le(x.term, y.term) : terms.le(y.term, x.term);
  Coded result{terms.ite(less, a.term, b.term), std::min(a.lo, b.lo), std::max(a.hi, b.hi)};
  if (!isUnsigned && node.type != ScalarType::Bool) {
    result.lo = isMin ? std::min(a.lo, b.lo) : std::max(a.lo, b.lo);
    result.hi = isMin ? std::min(a.hi, b.hi) : std::max(a.hi, b.hi);
  }
  return result;
}

/// Bool as an integer of one bit: a sum is xor, a product is and.
static std::optional<Term> encodeBool(Terms &terms, Op op, Term a, Term b) {
  switch (op) {
  case Op::And:
  case Op::Mul:
    return terms.land(a, b);
  case Op::Or:
    return terms.lor(a, b);
  case Op::Xor:
  case Op::Add:
  case Op::Sub:
    return terms.lnot(terms.equal(a, b));
  default:
    return std::nullopt;
  }
}

Coded Encoder::encodeInteger(const Node &node) {
  Coded a = operand(node, 0);
  if (node.op == Op::Not) {
    if (node.type == ScalarType::Bool)
      return boolean(terms.lnot(a.term));
    return {terms.sub(terms.integer(-1), a.term), -1 - a.hi, -1 - a.lo};
  }
  Coded b = operand(node, 1);
  if (node.type == ScalarType::Bool)
    if (auto term = encodeBool(terms, node.op, a.term, b.term))
      return boolean(*term);
  switch (node.op) {
  case Op::Add:
    return wrap(node.type, {terms.add(a.term, b.term), a.lo + b.lo, a.hi + b.hi});
  case Op::Sub:
    return wrap(node.type, {terms.sub(a.term, b.term), a.lo - b.hi, a.hi - b.lo});
  case Op::Mul:
    return encodeProduct(node.type, a, b);
  case Op::MinS:
  case Op::MaxS:
  case Op::MinU:
  case Op::MaxU:
    return encodeMinMax(node, a, b);
  case Op::And:
  case Op::Or:
  case Op::Xor:
    return encodeBits(node, a, b);
  default:
    break;
  }
  if (node.type == ScalarType::Bool)
    return encodeUnknown(node);
  if (node.op == Op::Shl || node.op == Op::ShrS || node.op == Op::ShrU)
    return encodeShift(node, a, b);
  return encodeDivision(node, a, b);
}

Term Encoder::encodeCompare(const Node &node) {
  ScalarType type = typeOf(node.operands[0]);
  Coded a = operand(node, 0), b = operand(node, 1);
  switch (node.op) {
  case Op::CmpEq:
    return terms.equal(a.term, b.term);
  case Op::CmpNe:
    return terms.lnot(terms.equal(a.term, b.term));
  case Op::CmpSlt:
    return terms.lt(asSigned(type, a).term, asSigned(type, b).term);
  case Op::CmpSle:
    return terms.le(asSigned(type, a).term, asSigned(type, b).term);
  case Op::CmpSgt:
    return terms.lt(asSigned(type, b).term, asSigned(type, a).term);
  case Op::CmpSge:
    return terms.le(asSigned(type, b).term, asSigned(type, a).term);
  case Op::CmpUlt:
    return terms.lt(asUnsigned(type, a).term, asUnsigned(type, b).term);
  case Op::CmpUle:
    return terms.le(asUnsigned(type, a).term, asUnsigned(type, b).term);
  case Op::CmpUgt:
    return terms.lt(asUnsigned(type, b).term, asUnsigned(type, a).term);
  default: // CmpUge
    return terms.le(asUnsigned(type, b).term, asUnsigned(type, a).term);
  }
}

Coded Encoder::encodeCast(const Node &node) {
  ScalarType from = typeOf(node.operands[0]);
  Coded a = operand(node, 0);
  if (node.op == Op::SExt)
    return asSigned(from, a);
  if (node.op == Op::ZExt)
    return wrap(node.type, asUnsigned(from, a));
  if (node.type == ScalarType::Bool)
    return boolean(terms.equal(terms.mod(a.term, terms.integer(2)), terms.integer(1)));
  return wrap(node.type, a);
}

//===----------------------------------------------------------------------===//
// Leaves, tables, named masks
//===----------------------------------------------------------------------===//

Coded Encoder::encodeConstant(const Node &node) const {
  if (node.type == ScalarType::Bool)
    return boolean(terms.boolean(node.imm != 0));
  if (node.type != ScalarType::F32)
    return constant(node.imm);
  auto single = static_cast<float>(node.fimm);
  uint32_t bits;
  std::memcpy(&bits, &single, sizeof(bits));
  return constant(bits);
}

Coded Encoder::encodeLeaf(const Node &node) {
  switch (node.op) {
  case Op::IndexB:
    return world.b;
  case Op::IndexH:
    return world.h;
  case Op::IndexQ:
    return world.q;
  case Op::IndexK:
    return world.k;
  case Op::Score:
    return world.score;
  case Op::Param:
    return world.param(program.params[node.ref]);
  default: // Const
    return encodeConstant(node);
  }
}

Coded Encoder::encodeTable(const Node &node) {
  const core::TableDecl &table = program.tables[node.ref];
  switch (node.op) {
  case Op::TableLoad: {
    std::vector<Coded> indices;
    for (size_t i = 0; i < node.operands.size(); ++i)
      indices.push_back(operand(node, i));
    return world.element(table, indices);
  }
  case Op::NumRanges:
    return world.numRanges(table);
  case Op::RowLo:
    return world.row(program.tables[table.source]).first;
  case Op::RowHi:
    return world.row(program.tables[table.source]).second;
  default:
    break;
  }
  Term index = operand(node, 0).term;
  Term inList =
      terms.land(terms.le(terms.integer(0), index), terms.lt(index, world.numRanges(table).term));
  auto [start, end] = world.rangeBounds(table, index);
  return node.op == Op::RangeStart ? select(inList, start, constant(0))
                                   : select(inList, end, constant(-1));
}

Coded Encoder::encodeNamed(const Node &node) {
  Term q = world.q.term, k = world.k.term;
  auto past = [&](const Coded &radius) { return terms.le(terms.sub(q, k), radius.term); };
  switch (node.op) {
  case Op::Causal:
    return boolean(terms.le(k, q));
  case Op::Window: {
    Term keep = terms.boolean(true);
    if (node.imm & 1)
      keep = past(operand(node, 0));
    if (node.imm & 2)
      keep = terms.land(keep, terms.le(terms.sub(k, q), operand(node, node.imm == 3 ? 1 : 0).term));
    return boolean(keep);
  }
  case Op::MmPrefix: {
    Term any = world.someRange(program.tables[node.ref], [&](const Coded &start, const Coded &end) {
      return terms.land(terms.between(start.term, q, end.term),
                        terms.between(start.term, k, end.term));
    });
    return boolean(node.operands.empty() ? any : terms.land(any, past(operand(node, 0))));
  }
  case Op::Prefix:
    return boolean(terms.lt(k, operand(node, 0).term));
  case Op::Document:
    return boolean(world.inDocument(program.tables[node.ref]));
  case Op::Global:
    return boolean(
        terms.lor(terms.lt(k, operand(node, 0).term), terms.lt(q, operand(node, 0).term)));
  default: // InRows
    return boolean(
        terms.land(terms.le(operand(node, 0).term, k), terms.lt(k, operand(node, 1).term)));
  }
}

Coded Encoder::encodeNode(NodeId id) {
  const Node &node = program.nodes[id];
  if (node.op == Op::Const || (node.op >= Op::IndexB && node.op <= Op::Param))
    return encodeLeaf(node);
  if (node.op >= Op::TableLoad && node.op <= Op::RowHi)
    return encodeTable(node);
  if (node.op >= Op::Add && node.op <= Op::ShrU) {
    // A shift or an `and` of unknown numbers is hundreds of terms.
    if (terms.isLarge())
      return encodeUnknown(node, kTooLarge);
    return encodeInteger(node);
  }
  if (node.op >= Op::CmpEq && node.op <= Op::CmpUge)
    return boolean(encodeCompare(node));
  if (node.op == Op::SExt || node.op == Op::ZExt || node.op == Op::Trunc)
    return encodeCast(node);
  if (node.op == Op::Select)
    return select(operand(node, 0).term, operand(node, 1), operand(node, 2));
  if (node.op >= Op::Causal && node.op <= Op::InRows)
    return encodeNamed(node);
  if (node.op == Op::ForResult)
    return results.at(node.ref)[static_cast<size_t>(node.imm)];
  return encodeUnknown(node);
}

Coded Encoder::encode(NodeId root) {
  order = core::emissionOrder(program, root);
  for (NodeId id : order.outside) {
    if (program.nodes[id].op == Op::For)
      encodeLoop(id);
    else
      values[id] = encodeNode(id);
  }
  return values[root];
}
