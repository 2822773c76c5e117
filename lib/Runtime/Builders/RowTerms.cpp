// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "RowTerms.h"

#include <cstdlib>
#include <limits>

using namespace attn;
using namespace attn::core;
using namespace attn::rt;

// No sum of a handful of factors leaves (-kFar, kFar), which stands for "no bound".
constexpr int64_t kMostFactor = int64_t(1) << 20;
constexpr int64_t kMostValue = int64_t(1) << 36;
constexpr size_t kMostFactors = 4;
constexpr int64_t kFar = int64_t(1) << 60;

RowTerms::RowTerms(const MaskProgram &program) : program(program) {
  std::optional<Terms> found = program.mask < 0 ? Terms{Term()} : termsOf(program.mask, false);
  if (!found)
    return;
  terms = std::move(*found);
  known = checkTerms();
  values.resize(scalars.size());
  for (const Scalar &scalar : scalars)
    changes |= scalar.kind != Scalar::Param;
  size_t sums = 0;
  for (const Term &term : terms)
    sums += term.size();
  rowBounds.reserve(sums);
}

/// Both ends of a term may move with q only by a whole number of rows, 0 or 1, and a bound from a
/// table's row stands still.
bool RowTerms::checkTerms() const {
  if (terms.size() > kMostTerms)
    return false;
  for (const Term &term : terms)
    for (const Sum &sum : term) {
      if (sum.factors.size() > kMostFactors || std::abs(sum.imm) > kMostValue)
        return false;
      const bool isBound = std::abs(sum.k) == 1 && (sum.q == 0 || sum.q == -sum.k);
      const bool hasRow = sum.row != 0;
      if (hasRow ? !(isBound && sum.q == 0 && sum.row == -sum.k)
                 : !(isBound || (sum.k == 0 && std::abs(sum.q) <= 1)))
        return false;
    }
  return true;
}

bool RowTerms::hasRowLimits() const {
  for (const Term &term : terms)
    for (const Sum &sum : term)
      if (sum.k == 0 && sum.q != 0)
        return true;
  return false;
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

RowTerms::Sum RowTerms::scalarSum(Scalar scalar) {
  Sum sum;
  sum.factors.push_back({1, static_cast<int32_t>(scalars.size())});
  scalars.push_back(scalar);
  return sum;
}

RowTerms::Sum RowTerms::boundSum(int32_t table, int side) {
  if (program.tables[table].kind == TableKind::QueryRanges) {
    rowTables.push_back(table);
    table = program.tables[table].source;
  }
  size_t i = 0;
  while (i < sources.size() && sources[i].table != table)
    ++i;
  if (i == sources.size()) {
    sources.emplace_back();
    sources.back().table = table;
    sources.back().isDocuments = program.tables[table].kind == TableKind::Documents;
  }
  Sum sum;
  sum.row = 1;
  sum.bound = static_cast<int32_t>(2 * i) + side;
  return sum;
}

template <class Sum>
static std::optional<Sum> added(Sum a, const Sum &b, int64_t factor) {
  if (a.row != 0 && b.row != 0)
    return std::nullopt;
  a.k += factor * b.k;
  a.q += factor * b.q;
  a.imm += factor * b.imm;
  if (b.row != 0) {
    a.row = factor * b.row;
    a.bound = b.bound;
  }
  for (auto term : b.factors) {
    term.factor *= factor;
    if (std::abs(term.factor) > kMostFactor)
      return std::nullopt;
    a.factors.push_back(term);
  }
  if (a.factors.size() > kMostFactors || std::abs(a.imm) > kMostValue ||
      std::abs(a.k) > kMostFactor || std::abs(a.q) > kMostFactor)
    return std::nullopt;
  return a;
}

/// A plain table whose element is the same for every row of a request and head.
std::optional<RowTerms::Sum> RowTerms::loadOf(const Node &node) {
  const TableDecl &table = program.tables[node.ref];
  if (table.element == ScalarType::F32)
    return std::nullopt;
  for (TableDim dim : table.dims)
    if (dim != TableDim::B && dim != TableDim::H && dim != TableDim::HKv)
      return std::nullopt;
  return scalarSum({Scalar::Load, node.ref});
}

std::optional<RowTerms::Sum> RowTerms::sumOf(NodeId id) {
  const Node &node = program.nodes[id];
  Sum sum;
  if (--effort < 0)
    return std::nullopt;
  switch (node.op) {
  case Op::Const:
    sum.imm = node.imm;
    if (node.type == ScalarType::F32 || node.imm > kMostValue || node.imm < -kMostValue)
      return std::nullopt;
    return sum;
  case Op::IndexQ:
    sum.q = 1;
    return sum;
  case Op::IndexK:
    sum.k = 1;
    return sum;
  case Op::IndexB:
    return scalarSum({Scalar::Request, -1});
  case Op::IndexH:
    return scalarSum({Scalar::Head, -1});
  case Op::Param:
    if (node.type == ScalarType::F32)
      return std::nullopt;
    return scalarSum({Scalar::Param, node.ref});
  case Op::TableLoad:
    return loadOf(node);
  case Op::RowLo:
  case Op::RowHi:
    return boundSum(node.ref, node.op == Op::RowHi);
  case Op::SExt:
    return program.nodes[node.operands[0]].type == ScalarType::Bool ? std::nullopt
                                                                    : sumOf(node.operands[0]);
  case Op::Add:
  case Op::Sub:
  case Op::Mul:
    break;
  default:
    return std::nullopt;
  }
  // Narrower sums may wrap.
  if (node.type != ScalarType::I64)
    return std::nullopt;
  std::optional<Sum> a = sumOf(node.operands[0]);
  std::optional<Sum> b = a ? sumOf(node.operands[1]) : std::nullopt;
  if (!b)
    return std::nullopt;
  if (node.op != Op::Mul)
    return added(std::move(*a), *b, node.op == Op::Add ? 1 : -1);
  if (!a->isScalar() || !a->factors.empty())
    std::swap(a, b);
  if (!a->isScalar() || !a->factors.empty() || std::abs(a->imm) > kMostFactor ||
      std::abs(b->imm) > kPositionLimit)
    return std::nullopt;
  return added(Sum(), *b, a->imm);
}

//===----------------------------------------------------------------------===//
// Terms
//===----------------------------------------------------------------------===//

std::optional<RowTerms::Terms> RowTerms::conjunction(const std::optional<Terms> &a,
                                                     const std::optional<Terms> &b) {
  if (!a || !b || a->size() * b->size() > kMostTerms)
    return std::nullopt;
  Terms all;
  for (const Term &first : *a)
    for (const Term &second : *b) {
      all.push_back(first);
      all.back().insert(all.back().end(), second.begin(), second.end());
    }
  return all;
}

std::optional<RowTerms::Terms> RowTerms::disjunction(std::optional<Terms> a,
                                                     const std::optional<Terms> &b) {
  if (!a || !b || a->size() + b->size() > kMostTerms)
    return std::nullopt;
  a->insert(a->end(), b->begin(), b->end());
  return a;
}

/// The conjunction of conditions sum >= 0, or its negation.
template <class Sum>
static std::optional<std::vector<std::vector<Sum>>>
allOf(const std::vector<std::optional<Sum>> &sums, bool negated) {
  std::vector<std::vector<Sum>> terms;
  std::vector<Sum> term;
  for (const std::optional<Sum> &sum : sums) {
    if (!sum)
      return std::nullopt;
    if (!negated) {
      term.push_back(*sum);
      continue;
    }
    Sum one;
    one.imm = -1;
    std::optional<Sum> opposite = added(one, *sum, -1); // not (sum >= 0): -sum - 1 >= 0
    if (!opposite)
      return std::nullopt;
    terms.push_back({*opposite});
  }
  if (!negated)
    terms.push_back(std::move(term));
  return terms;
}

std::optional<RowTerms::Terms> RowTerms::namedTerms(const Node &node, bool negated) {
  using Maybe = std::optional<Sum>;
  // Signs of k and q, and a constant.
  auto form = [](int64_t k, int64_t q, int64_t imm) {
    Sum sum;
    sum.k = k;
    sum.q = q;
    sum.imm = imm;
    return sum;
  };
  auto plus = [&](Sum sum, size_t operand) -> Maybe {
    Maybe value = sumOf(node.operands[operand]);
    return value && value->isScalar() ? added(std::move(sum), *value, 1) : std::nullopt;
  };
  auto inRow = [&](int32_t table) -> std::vector<Maybe> {
    return {added(form(1, 0, 0), boundSum(table, 0), -1),
            added(form(-1, 0, -1), boundSum(table, 1), 1)};
  };
  std::vector<Maybe> sums;
  switch (node.op) {
  case Op::Causal:
    sums = {form(-1, 1, 0)};
    break;
  case Op::Window:
    if (node.imm & 1)
      sums.push_back(plus(form(1, -1, 0), 0));
    if (node.imm & 2)
      sums.push_back(plus(form(-1, 1, 0), node.imm == 3 ? 1 : 0));
    break;
  case Op::MmPrefix:
    sums = inRow(node.ref);
    if (!node.operands.empty())
      sums.push_back(plus(form(1, -1, 0), 0));
    break;
  case Op::Document:
    sums = inRow(node.ref);
    break;
  case Op::Prefix:
    sums = {plus(form(-1, 0, -1), 0)};
    break;
  case Op::Global: // k < n or q < n: neither is not in the complement
    if (negated)
      return conjunction(allOf<Sum>({plus(form(-1, 0, -1), 0)}, true),
                         allOf<Sum>({plus(form(0, -1, -1), 0)}, true));
    return disjunction(allOf<Sum>({plus(form(-1, 0, -1), 0)}, false),
                       allOf<Sum>({plus(form(0, -1, -1), 0)}, false));
  case Op::InRows: {
    const Maybe lo = sumOf(node.operands[0]), hi = sumOf(node.operands[1]);
    if (!lo || !hi)
      return std::nullopt;
    sums = {added(form(1, 0, 0), *lo, -1), added(form(-1, 0, -1), *hi, 1)};
    break;
  }
  default:
    return std::nullopt;
  }
  return allOf(sums, negated);
}

std::optional<RowTerms::Terms> RowTerms::compareTerms(const Node &node, bool negated) {
  if (program.nodes[node.operands[0]].type == ScalarType::F32)
    return std::nullopt;
  const std::optional<Sum> a = sumOf(node.operands[0]), b = sumOf(node.operands[1]);
  if (!a || !b)
    return std::nullopt;
  const std::optional<Sum> difference = added(*a, *b, -1), opposite = added(*b, *a, -1);
  auto less = [](std::optional<Sum> sum) {
    if (sum)
      sum->imm -= 1;
    return sum;
  };
  switch (node.op) {
  case Op::CmpSge:
    return allOf<Sum>({difference}, negated);
  case Op::CmpSgt:
    return allOf<Sum>({less(difference)}, negated);
  case Op::CmpSle:
    return allOf<Sum>({opposite}, negated);
  case Op::CmpSlt:
    return allOf<Sum>({less(opposite)}, negated);
  case Op::CmpEq:
    return allOf<Sum>({difference, opposite}, negated);
  case Op::CmpNe:
    return allOf<Sum>({difference, opposite}, !negated);
  default:
    return std::nullopt;
  }
}

std::optional<RowTerms::Terms> RowTerms::boolTerms(const Node &node, bool negated) {
  auto operand = [&](size_t i, bool complement) { return termsOf(node.operands[i], complement); };
  switch (node.op) {
  case Op::Not:
    return operand(0, !negated);
  case Op::And:
    return negated ? disjunction(operand(0, true), operand(1, true))
                   : conjunction(operand(0, false), operand(1, false));
  case Op::Or:
    return negated ? conjunction(operand(0, true), operand(1, true))
                   : disjunction(operand(0, false), operand(1, false));
  case Op::Xor:
  case Op::CmpNe:
  case Op::CmpEq: {
    const bool same = negated != (node.op == Op::CmpEq);
    return disjunction(conjunction(operand(0, false), operand(1, !same)),
                       conjunction(operand(0, true), operand(1, same)));
  }
  case Op::Select:
    return disjunction(conjunction(operand(0, false), operand(1, negated)),
                       conjunction(operand(0, true), operand(2, negated)));
  default:
    return std::nullopt;
  }
}

std::optional<RowTerms::Terms> RowTerms::termsOf(NodeId id, bool negated) {
  const Node &node = program.nodes[id];
  if (--effort < 0)
    return std::nullopt;
  if (node.op == Op::Const)
    return (node.imm != 0) != negated ? Terms{Term()} : Terms();
  if (std::optional<Terms> named = namedTerms(node, negated))
    return named;
  if (node.operands.empty())
    return std::nullopt;
  const NodeId last = node.operands.back();
  if (program.nodes[last].type == ScalarType::Bool)
    return boolTerms(node, negated);
  return node.operands.size() == 2 ? compareTerms(node, negated) : std::nullopt;
}

//===----------------------------------------------------------------------===//
// Batches
//===----------------------------------------------------------------------===//

void RowTerms::reserve(int64_t mostRanges) {
  for (Source &source : sources)
    source.sorted.reserve(mostRanges);
}

template <class T>
static int64_t elementAt(const void *data, int64_t index) {
  return static_cast<const T *>(data)[index];
}

/// Outside its extent a table holds 0.
static int64_t load(const TableDecl &decl, const TableData &table, const Batch &batch,
                    RequestIndex b, HeadIndex h) {
  int64_t index = 0;
  for (size_t dim = 0; dim < decl.dims.size(); ++dim) {
    int64_t i = b.value;
    if (decl.dims[dim] == TableDim::H)
      i = h.value;
    else if (decl.dims[dim] == TableDim::HKv)
      i = h.value / (batch.numHeads / batch.numKvHeads);
    if (i >= table.extents[dim])
      return 0;
    index += i * table.strides[dim];
  }
  switch (decl.element) {
  case ScalarType::I8:
    return elementAt<int8_t>(table.data, index);
  case ScalarType::I32:
    return elementAt<int32_t>(table.data, index);
  default:
    return elementAt<int64_t>(table.data, index);
  }
}

bool RowTerms::readScalar(size_t i, RequestIndex b, HeadIndex h) {
  const Scalar &scalar = scalars[i];
  int64_t value = 0;
  switch (scalar.kind) {
  case Scalar::Param:
    value = batch->params[scalar.ref].i;
    break;
  case Scalar::Load:
    value = load(program.tables[scalar.ref], batch->tables[scalar.ref], *batch, b, h);
    break;
  case Scalar::Request:
    value = b.value;
    break;
  case Scalar::Head:
    value = h.value;
    break;
  }
  values[i] = value;
  return value >= -kMostValue && value <= kMostValue;
}

/// Narrows term `term` by sum >= 0.
void RowTerms::resolveSum(const Sum &sum, int term) {
  int64_t rest = sum.imm;
  for (const Factor &factor : sum.factors)
    rest += factor.factor * values[factor.scalar];
  RowTerm &to = base[term];
  if (sum.row != 0) {
    const bool isLower = sum.k > 0;
    Source &source = sources[sum.bound / 2];
    int64_t *to = isLower ? &current[term].lo : &current[term].hi;
    const bool isFirst = std::none_of(rowBounds.begin(), rowBounds.end(),
                                      [&](const RowBound &other) { return other.to == to; });
    const int64_t *from = isLower ? &base[term].lo : &base[term].hi;
    rowBounds.push_back({sum.bound % 2 ? &source.row.hi : &source.row.lo, isFirst ? from : to, to,
                         isLower ? -rest : rest + 1, isLower});
  } else if (sum.k > 0) { // k >= -rest or k >= q - rest
    int64_t &lower = sum.q == 0 ? to.lo : to.loMove;
    lower = std::max(lower, -rest);
  } else if (sum.k < 0) { // k < rest + 1 or k < q + rest + 1
    int64_t &upper = sum.q == 0 ? to.hi : to.hiMove;
    upper = std::min(upper, rest + 1);
  } else if (sum.q > 0) {
    to.qLo = std::max(to.qLo, -rest);
  } else if (sum.q < 0) {
    to.qHi = std::min(to.qHi, rest + 1);
  } else if (rest < 0) {
    to.qHi = -kFar;
  }
}

void RowTerms::resolve() {
  rowBounds.clear();
  isApplied = false;
  count = 0;
  for (const Term &term : terms) {
    base[count] = {-kFar, -kFar, kFar, kFar, -kFar, kFar};
    const size_t bounds = rowBounds.size();
    for (const Sum &sum : term)
      resolveSum(sum, count);
    if (base[count].qLo < base[count].qHi)
      ++count;
    else
      rowBounds.resize(bounds); // no row has this term
  }
  std::copy(base.begin(), base.begin() + count, current.begin());
}

bool RowTerms::bind(const Batch &of) {
  batch = &of;
  request = -1;
  // Rows that were given need not be those of the source.
  for (int32_t table : rowTables)
    if (!of.tables[table].rows.empty())
      return false;
  for (size_t i = 0; i < scalars.size(); ++i)
    if (scalars[i].kind == Scalar::Param && !readScalar(i, {}, {}))
      return false;
  if (!changes)
    resolve();
  return true;
}

/// What depends on the request and the head.
bool RowTerms::readScalars(RequestIndex b, HeadIndex h) {
  if (!changes)
    return true;
  for (size_t i = 0; i < scalars.size(); ++i)
    if (scalars[i].kind != Scalar::Param && !readScalar(i, b, h))
      return false;
  resolve();
  return true;
}

bool RowTerms::start(RequestIndex b, HeadIndex h) {
  return start(b, h, batch->shape.contextLen[b.value]);
}

bool RowTerms::start(RequestIndex b, HeadIndex h, int64_t q) {
  request = b.value;
  at = q;
  rowsUntil = -kFar;
  for (Source &source : sources) {
    source.place.run = {{-1, -1}, -kFar};
    if (source.isDocuments) {
      source.place.documents = DocumentRuns(documentsOf(batch->tables[source.table], request));
      continue;
    }
    Span<const Range> ranges = rangesOf(batch->tables[source.table], request);
    if (!isOrdered(ranges)) {
      source.sorted.resize(ranges.size);
      copyOrdered(ranges, source.sorted.data());
      ranges.data = source.sorted.data();
    }
    source.place.ranges = RangeRuns(ranges);
  }
  return readScalars(b, h);
}

void RowTerms::mark() {
  markedAt = at;
  for (Source &source : sources)
    source.marked = source.place;
}

bool RowTerms::rewind(HeadIndex h) {
  at = markedAt;
  rowsUntil = -kFar;
  for (Source &source : sources)
    source.place = source.marked;
  return readScalars(RequestIndex(request), h);
}

/// The hull of the ranges that hold q.
static Interval hullOf(Span<const Range> ranges, int64_t q) {
  int32_t start = std::numeric_limits<int32_t>::max(), end = -1;
  for (const Range &range : ranges)
    if (range.start <= q && q <= range.end) {
      start = std::min(start, range.start);
      end = std::max(end, range.end);
    }
  return end < 0 ? Interval::none() : Interval::fromInclusive(start, end);
}

std::optional<Interval> RowTerms::runOf(RequestIndex b, int64_t q) {
  request = b.value;
  rowsUntil = -kFar;
  for (Source &source : sources) {
    const TableData &table = batch->tables[source.table];
    Interval row;
    if (source.isDocuments) {
      const Range of = DocumentRuns(documentsOf(table, request)).at(q, q + 1).row;
      row = Interval::fromInclusive(of.start, of.end);
    } else {
      row = hullOf(rangesOf(table, request), q);
    }
    isApplied &= row == source.row;
    source.row = row;
  }
  if (changes && !readScalars(b, HeadIndex(0)))
    return std::nullopt;
  if (!isApplied)
    applyBounds();
  Interval run;
  for (const RowTerm *term = current.data(); term != current.data() + count; ++term) {
    const Interval keys{term->begin(q), term->end(q)};
    if (keys.lo >= keys.hi || q < term->qLo || q >= term->qHi)
      continue;
    if (run.lo < run.hi && (keys.lo > run.hi || run.lo > keys.hi))
      return std::nullopt;
    run = {std::min(run.lo, keys.lo), std::max(run.hi, keys.hi)};
  }
  return run;
}

/// The terms of the rows from `at` on, up to the next change of a table's row.
void RowTerms::applyRows() {
  rowsUntil = kFar;
  for (Source &source : sources) {
    Source::Place &place = source.place;
    if (place.run.end <= at)
      place.run = source.isDocuments ? place.documents.at(at, kFar) : place.ranges.at(at, kFar);
    source.row = Interval::fromInclusive(place.run.row.start, place.run.row.end);
    rowsUntil = std::min(rowsUntil, place.run.end);
  }
  applyBounds();
}

inline void RowTerms::applyBounds() {
  for (const RowBound &bound : rowBounds) {
    const int64_t value = *bound.value + bound.offset;
    *bound.to = bound.isLower ? std::max(*bound.from, value) : std::min(*bound.from, value);
  }
  isApplied = true;
}
