// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "attn/Dialect/Attn/IR/RowSet.h"

#include "attn/Core/IndexSpaces.h"
#include "attn/Dialect/Attn/IR/AttnOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace attn;
using core::kPositionLimit;

//===----------------------------------------------------------------------===//
// Bound
//===----------------------------------------------------------------------===//

namespace attn {
struct BoundNode {
  enum class Kind { Constant, Query, Value, Sum, Difference, Min, Max, Select, SelectQueryLess };
  using Child = std::shared_ptr<const BoundNode>;

  Kind kind;
  int64_t constant = 0;
  mlir::Value value; ///< Value, or the condition of Select
  Child a, b, c;
  bool le = false, ge = false; ///< provably <= q, >= q
  std::optional<int64_t> lowerBound;
};
} // namespace attn

using Kind = BoundNode::Kind;

static bool equalNodes(const BoundNode *x, const BoundNode *y) {
  if (x == y)
    return true;
  if (!x || !y || x->kind != y->kind || x->constant != y->constant || x->value != y->value)
    return false;
  return equalNodes(x->a.get(), y->a.get()) && equalNodes(x->b.get(), y->b.get()) &&
         equalNodes(x->c.get(), y->c.get());
}

Bound Bound::constant(int64_t value) {
  return distance(std::clamp(value, -kPositionLimit, kPositionLimit));
}

Bound Bound::distance(int64_t value) {
  BoundNode n;
  n.kind = Kind::Constant;
  n.constant = std::clamp(value, -2 * kPositionLimit, 2 * kPositionLimit);
  n.le = n.constant <= -kPositionLimit;
  n.ge = n.constant >= kPositionLimit;
  n.lowerBound = n.constant;
  return Bound(std::make_shared<BoundNode>(std::move(n)));
}

Bound Bound::negInf() { return constant(-kPositionLimit); }
Bound Bound::posInf() { return constant(kPositionLimit); }

Bound Bound::query() {
  BoundNode n;
  n.kind = Kind::Query;
  n.le = n.ge = true;
  return Bound(std::make_shared<BoundNode>(std::move(n)));
}

Bound Bound::value(mlir::Value value, std::optional<int64_t> lowerBound) {
  BoundNode n;
  n.kind = Kind::Value;
  n.value = value;
  n.lowerBound = lowerBound;
  return Bound(std::make_shared<BoundNode>(std::move(n)));
}

static bool isConstantAtMost(const BoundNode &n, int64_t limit) {
  return n.kind == Kind::Constant && n.constant <= limit;
}
static bool isAtLeast(const BoundNode &n, int64_t limit) {
  return n.lowerBound && *n.lowerBound >= limit;
}

Bound Bound::sum(Bound a, Bound b) {
  if (a.node->kind == Kind::Constant && b.node->kind == Kind::Constant && !a.isPosInf() &&
      !a.isNegInf())
    return distance(a.node->constant + b.node->constant);
  BoundNode n;
  n.kind = Kind::Sum;
  n.le = a.node->le && isConstantAtMost(*b.node, 0);
  n.ge = a.node->ge && isAtLeast(*b.node, 0);
  if (a.node->lowerBound && b.node->lowerBound)
    n.lowerBound = *a.node->lowerBound + *b.node->lowerBound;
  n.a = a.node;
  n.b = b.node;
  if (isConstantAtMost(*n.b, 0) && n.b->constant == 0)
    return a;
  return Bound(std::make_shared<BoundNode>(std::move(n)));
}

Bound Bound::difference(Bound a, Bound b) {
  BoundNode n;
  n.kind = Kind::Difference;
  n.le = a.node->le && isAtLeast(*b.node, 0);
  n.ge = a.node->ge && isConstantAtMost(*b.node, 0);
  n.a = a.node;
  n.b = b.node;
  if (isConstantAtMost(*n.b, 0) && n.b->constant == 0)
    return a;
  return Bound(std::make_shared<BoundNode>(std::move(n)));
}

Bound Bound::min(Bound a, Bound b) {
  if (a.isNegInf() || b.isPosInf() || a.equals(b))
    return a;
  if (b.isNegInf() || a.isPosInf())
    return b;
  BoundNode n;
  n.kind = Kind::Min;
  n.le = a.node->le || b.node->le;
  n.ge = a.node->ge && b.node->ge;
  n.a = a.node;
  n.b = b.node;
  return Bound(std::make_shared<BoundNode>(std::move(n)));
}

Bound Bound::max(Bound a, Bound b) {
  if (a.isPosInf() || b.isNegInf() || a.equals(b))
    return a;
  if (b.isPosInf() || a.isNegInf())
    return b;
  BoundNode n;
  n.kind = Kind::Max;
  n.le = a.node->le && b.node->le;
  n.ge = a.node->ge || b.node->ge;
  n.a = a.node;
  n.b = b.node;
  return Bound(std::make_shared<BoundNode>(std::move(n)));
}

Bound Bound::select(mlir::Value condition, Bound a, Bound b) {
  BoundNode n;
  n.kind = Kind::Select;
  n.value = condition;
  n.le = a.node->le && b.node->le;
  n.ge = a.node->ge && b.node->ge;
  n.a = a.node;
  n.b = b.node;
  return Bound(std::make_shared<BoundNode>(std::move(n)));
}

Bound Bound::selectQueryLess(Bound limit, Bound a, Bound b) {
  BoundNode n;
  n.kind = Kind::SelectQueryLess;
  n.le = a.node->le && b.node->le;
  n.ge = a.node->ge && b.node->ge;
  n.a = a.node;
  n.b = b.node;
  n.c = limit.node;
  return Bound(std::make_shared<BoundNode>(std::move(n)));
}

bool Bound::isNegInf() const {
  return node->kind == Kind::Constant && node->constant == -kPositionLimit;
}
bool Bound::isPosInf() const {
  return node->kind == Kind::Constant && node->constant == kPositionLimit;
}
bool Bound::leQuery() const { return node->le; }
bool Bound::geQuery() const { return node->ge; }
bool Bound::equals(const Bound &other) const { return equalNodes(node.get(), other.node.get()); }

//===----------------------------------------------------------------------===//
// Emission
//===----------------------------------------------------------------------===//

Value BoundMaterializer::constant(int64_t value) {
  Value &known = constants[value];
  if (!known)
    known = arith::ConstantIndexOp::create(builder, loc, value);
  return known;
}

Value BoundMaterializer::toIndex(Value value) {
  if (value.getType().isIndex())
    return value;
  return arith::IndexCastOp::create(builder, loc, builder.getIndexType(), value);
}

/// Clones the definition of `source` and what it needs, as long as these are inside a region op of
/// the kernel.
static Value cloneSlice(OpBuilder &builder, Value source, IRMapping &mapping) {
  if (Value known = mapping.lookupOrNull(source))
    return known;
  Operation *op = source.getDefiningOp();
  if (!op || isa<KernelOp>(op->getParentOp()))
    return source;
  auto cloneOperand = [&](Value operand) {
    if (Value value = cloneSlice(builder, operand, mapping); value != operand)
      mapping.map(operand, value);
  };
  for (Value operand : op->getOperands())
    cloneOperand(operand);
  op->walk([&](Operation *nested) {
    for (Value operand : nested->getOperands())
      if (nested != op && !op->isAncestor(operand.getParentBlock()->getParentOp()))
        cloneOperand(operand);
  });
  builder.clone(*op, mapping);
  return mapping.lookup(source);
}

Value BoundMaterializer::emitValue(Value source) {
  if (Value known = mapping.lookupOrNull(source))
    return known;
  return cloneSlices ? cloneSlice(builder, source, mapping) : source;
}

Value BoundMaterializer::emit(const Bound &bound) { return emitNode(*bound.node); }

Value BoundMaterializer::emitNode(const BoundNode &node) {
  if (Value known = cache.lookup(&node))
    return known;
  // Values are 64-bit here; i32 operands cannot overflow a sum with a position, so only the result
  // is moved back into the range of positions, on the side that can leave it.
  auto sumLike = [&](Value v, Value limitLow, Value limitHigh) {
    if (limitLow)
      v = arith::MaxSIOp::create(builder, loc, v, limitLow);
    if (limitHigh)
      v = arith::MinSIOp::create(builder, loc, v, limitHigh);
    return v;
  };
  Value v;
  switch (node.kind) {
  case Kind::Constant:
    v = constant(node.constant);
    break;
  case Kind::Query:
    v = q;
    break;
  case Kind::Value:
    v = toIndex(emitValue(node.value));
    break;
  case Kind::Sum: {
    // q + 1 stays in range: positions lie below 2^30.
    bool small = node.b->kind == Kind::Constant && std::abs(node.b->constant) <= 1;
    bool up = node.b->lowerBound && *node.b->lowerBound >= 0;
    Value a = emitNode(*node.a), b = emitNode(*node.b);
    Value highest = small ? Value() : constant(kPositionLimit);
    Value lowest = small || up ? Value() : constant(-kPositionLimit);
    v = sumLike(arith::AddIOp::create(builder, loc, a, b), lowest, highest);
    break;
  }
  case Kind::Difference: {
    bool down = node.b->lowerBound && *node.b->lowerBound >= 0;
    Value a = emitNode(*node.a), b = emitNode(*node.b);
    Value highest = down ? Value() : constant(kPositionLimit);
    Value lowest = constant(-kPositionLimit);
    v = sumLike(arith::SubIOp::create(builder, loc, a, b), lowest, highest);
    break;
  }
  case Kind::Min:
  case Kind::Max: {
    Value a = emitNode(*node.a), b = emitNode(*node.b);
    v = node.kind == Kind::Min ? arith::MinSIOp::create(builder, loc, a, b).getResult()
                               : arith::MaxSIOp::create(builder, loc, a, b).getResult();
    break;
  }
  case Kind::Select:
  case Kind::SelectQueryLess: {
    Value condition;
    if (node.kind == Kind::Select)
      condition = emitValue(node.value);
    else
      condition =
          arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, q, emitNode(*node.c));
    Value a = emitNode(*node.a), b = emitNode(*node.b);
    v = arith::SelectOp::create(builder, loc, condition, a, b);
    break;
  }
  }
  cache[&node] = v;
  return v;
}

Bound attn::getBoundOf(Value value) {
  if (getIndexRole(value) == IndexRole::Q)
    return Bound::query();
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return Bound::constant(constant.getSExtValue());
  // q + c and q - c with |c| within the range of positions do not wrap in 64 bits.
  Operation *op = value.getDefiningOp();
  if (op && value.getType().isIndex() && isa<arith::AddIOp, arith::SubIOp>(op) &&
      getIndexRole(op->getOperand(0)) == IndexRole::Q &&
      matchPattern(op->getOperand(1), m_ConstantInt(&constant)) &&
      constant.getSExtValue() < kPositionLimit && constant.getSExtValue() > -kPositionLimit) {
    int64_t c = constant.getSExtValue();
    return Bound::sum(Bound::query(), Bound::constant(isa<arith::AddIOp>(op) ? c : -c));
  }
  return Bound::value(value);
}

//===----------------------------------------------------------------------===//
// RowSet
//===----------------------------------------------------------------------===//

/// Past this many runs the analysis gives up; the code generators take two.
static constexpr size_t kMaxRuns = 8;

RowSet RowSet::unknown(Value cause) {
  RowSet set;
  set.known = false;
  set.cause = cause;
  return set;
}

RowSet RowSet::none() { return RowSet(); }
RowSet RowSet::all() { return of(Bound::negInf(), Bound::posInf()); }

RowSet RowSet::of(Bound lo, Bound hi, bool atQuery) {
  RowSet set;
  if (!lo.isPosInf() && !hi.isNegInf())
    set.runs.push_back({lo, hi, atQuery || (lo.leQuery() && hi.geQuery())});
  return set;
}

RowSet RowSet::where(Value condition) {
  APInt constant;
  if (matchPattern(condition, m_ConstantInt(&constant)))
    return constant.isZero() ? none() : all();
  return of(Bound::select(condition, Bound::negInf(), Bound::posInf()),
            Bound::select(condition, Bound::posInf(), Bound::negInf()), /*atQuery=*/true);
}

RowSet RowSet::operator&(const RowSet &other) const {
  if (!known)
    return *this;
  if (!other.known)
    return other;
  RowSet result;
  for (const SymbolicRun &a : runs)
    for (const SymbolicRun &b : other.runs) {
      Bound lo = Bound::max(a.lo, b.lo), hi = Bound::min(a.hi, b.hi);
      if (!lo.isPosInf() && !hi.isNegInf())
        result.runs.push_back({lo, hi, a.atQuery && b.atQuery});
    }
  result.mergeRuns();
  return result;
}

RowSet RowSet::operator|(const RowSet &other) const {
  if (!known)
    return *this;
  if (!other.known)
    return other;
  RowSet result = *this;
  result.runs.append(other.runs.begin(), other.runs.end());
  result.mergeRuns();
  return result;
}

RowSet RowSet::operator~() const {
  if (!known)
    return *this;
  RowSet result = all();
  for (const SymbolicRun &run : runs) {
    // An empty run with lo > hi gives two overlapping runs that cover everything: still exact.
    RowSet outside = none();
    if (!run.lo.isNegInf())
      outside.runs.push_back({Bound::negInf(), run.lo, run.lo.geQuery()});
    if (!run.hi.isPosInf())
      outside.runs.push_back({run.hi, Bound::posInf(), run.hi.leQuery()});
    result = result & outside;
  }
  return result;
}

/// The one run that equals the union of `a` and `b` for every row, if the facts show it.
static std::optional<SymbolicRun> unite(const SymbolicRun &a, const SymbolicRun &b) {
  if (a.atQuery && b.atQuery)
    return SymbolicRun{Bound::min(a.lo, b.lo), Bound::max(a.hi, b.hi), true};
  if (a.lo.isNegInf() && b.lo.isNegInf())
    return SymbolicRun{a.lo, Bound::max(a.hi, b.hi), a.hi.geQuery() || b.hi.geQuery()};
  if (a.hi.isPosInf() && b.hi.isPosInf())
    return SymbolicRun{Bound::min(a.lo, b.lo), a.hi, a.lo.leQuery() || b.lo.leQuery()};
  if (a.lo.equals(b.lo) && a.hi.equals(b.hi))
    return a;
  if (a.lo.isNegInf() && b.hi.isPosInf() && a.hi.equals(b.lo))
    return SymbolicRun{a.lo, b.hi, true};
  return std::nullopt;
}

void RowSet::mergeRuns() {
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = 0; i < runs.size() && !changed; ++i)
      for (size_t j = 0; j < runs.size() && !changed; ++j)
        if (i != j)
          if (auto run = unite(runs[i], runs[j])) {
            runs[i] = *run;
            runs.erase(runs.begin() + j);
            changed = true;
          }
  }
  if (runs.size() > kMaxRuns)
    *this = unknown(Value());
}

SymbolicRun RowSet::hull() const {
  if (!known)
    return {Bound::negInf(), Bound::posInf(), true};
  if (runs.empty())
    return {Bound::posInf(), Bound::negInf(), true};
  SymbolicRun run = runs.front();
  for (const SymbolicRun &other : llvm::drop_begin(runs)) {
    run.lo = Bound::min(run.lo, other.lo);
    run.hi = Bound::max(run.hi, other.hi);
    run.atQuery = false;
  }
  return run;
}

//===----------------------------------------------------------------------===//
// Analysis
//===----------------------------------------------------------------------===//

RowSet RowSetAnalysis::get(Value keep) {
  if (auto it = cache.find(keep); it != cache.end())
    return it->second;
  RowSet set = compute(keep);
  if (bound && !set.isKnown())
    set = RowSet::all();
  cache.insert({keep, set});
  return set;
}

RowSet RowSetAnalysis::getExact(Value keep) {
  if (!bound)
    return get(keep);
  if (!exact)
    exact = std::make_unique<RowSetAnalysis>(/*bound=*/false);
  return exact->get(keep);
}

RowSet RowSetAnalysis::compute(Value keep) {
  if (!getDependence(keep).k)
    return RowSet::where(keep);
  if (auto op = keep.getDefiningOp<MaskOpInterface>())
    return op.getRowSet(*this);
  return RowSet::unknown(keep);
}

//===----------------------------------------------------------------------===//
// Row sets of the operations
//===----------------------------------------------------------------------===//

/// A radius or count: literals are checked by the verifier, parameters by the runtime (attn-C3,
/// attn-C4); a value from a table may be anything.
static Bound radius(Value value, IntegerAttr literal, int64_t minimum) {
  if (literal)
    return Bound::distance(literal.getInt());
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return Bound::distance(constant.getSExtValue());
  bool isParam = isa<BlockArgument>(value) && isa<KernelOp>(value.getParentRegion()->getParentOp());
  return Bound::value(value, isParam ? std::optional<int64_t>(minimum) : std::nullopt);
}

/// True if one of these operands depends on k: then the row is no interval.
static bool dependOnKey(RowSetAnalysis &analysis, std::initializer_list<Value> operands) {
  return llvm::any_of(operands, [&](Value v) { return v && analysis.getDependence(v).k; });
}

static Bound operandBound(Value value, IntegerAttr literal) {
  return literal ? Bound::constant(literal.getInt()) : getBoundOf(value);
}

static Bound afterQuery() { return Bound::sum(Bound::query(), Bound::constant(1)); }

RowSet CausalOp::getRowSet(RowSetAnalysis &) { return RowSet::of(Bound::negInf(), afterQuery()); }

RowSet WindowOp::getRowSet(RowSetAnalysis &analysis) {
  if (dependOnKey(analysis, {getLeft(), getRight()}))
    return RowSet::unknown(getResult());
  Bound lo = Bound::negInf(), hi = Bound::posInf();
  if (getLeft() || getLeftLiteralAttr())
    lo = Bound::difference(Bound::query(), radius(getLeft(), getLeftLiteralAttr(), 0));
  if (getRight() || getRightLiteralAttr())
    hi = Bound::sum(Bound::query(),
                    Bound::sum(radius(getRight(), getRightLiteralAttr(), 0), Bound::constant(1)));
  return RowSet::of(lo, hi);
}

RowSet SlidingOp::getRowSet(RowSetAnalysis &analysis) {
  if (dependOnKey(analysis, {getCount()}))
    return RowSet::unknown(getResult());
  Bound older = Bound::sum(radius(getCount(), getCountLiteralAttr(), 1), Bound::constant(-1));
  return RowSet::of(Bound::difference(Bound::query(), older), Bound::posInf());
}

// Ranges and documents become intervals once they are rows of a table.
RowSet MmPrefixOp::getRowSet(RowSetAnalysis &) { return RowSet::unknown(getResult()); }
RowSet DocumentOp::getRowSet(RowSetAnalysis &) { return RowSet::unknown(getResult()); }

RowSet PrefixOp::getRowSet(RowSetAnalysis &analysis) {
  if (dependOnKey(analysis, {getN()}))
    return RowSet::unknown(getResult());
  return RowSet::of(Bound::negInf(), operandBound(getN(), getNLiteralAttr()));
}

RowSet GlobalOp::getRowSet(RowSetAnalysis &analysis) {
  if (dependOnKey(analysis, {getN()}))
    return RowSet::unknown(getResult());
  Bound n = operandBound(getN(), getNLiteralAttr());
  return RowSet::of(Bound::negInf(), Bound::selectQueryLess(n, Bound::posInf(), n));
}

RowSet InRowsOp::getRowSet(RowSetAnalysis &) {
  auto row = getLo().getDefiningOp<RowRangeOp>();
  bool isRow = row && row.getLo() == getLo() && row.getHi() == getHi();
  return RowSet::of(getBoundOf(getLo()), getBoundOf(getHi()), isRow);
}

RowSet AndOp::getRowSet(RowSetAnalysis &analysis) {
  return analysis.get(getLhs()) & analysis.get(getRhs());
}

RowSet OrOp::getRowSet(RowSetAnalysis &analysis) {
  return analysis.get(getLhs()) | analysis.get(getRhs());
}

RowSet NotOp::getRowSet(RowSetAnalysis &analysis) { return ~analysis.getExact(getInput()); }
