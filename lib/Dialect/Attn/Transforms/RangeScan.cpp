// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A scan or-s, for each live range, "start <= q, q <= end, start <= k and k <= end". Kernels spell
// this in many ways, so the body is not matched by shape: what it yields is a boolean function of
// the accumulator and of elementary tests, and that function is compared with the wanted one on all
// assignments.
//
// Elementary tests are linear inequalities "form <= 0" over integers, brought to one of the two
// spellings of a test and its negation; so order, operand order, strictness and negation do not
// matter. A test that does not change in the loop is a variable of its own. Wanted is
//   accumulator or (the four tests and any number of unchanging ones),
// which equals "mm_prefix and the unchanging ones": "exists r: X(r) and P" is "(exists r: X(r)) and
// P". The list holds live ranges only, so start < end, start >= 0 and end >= 1 are always true.
//
// Complexity: 2^tests times the size of the body, at most kMaxTests.
#include "RangeScan.h"

#include "LinearForm.h"
#include "attn/Core/IndexSpaces.h"
#include "attn/Dialect/Attn/IR/AttnOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace attn;
using core::kPositionLimit;

static constexpr size_t kMaxTests = 12;

namespace {

/// What an elementary test says. The first four are the tests of a scan, as they are stored: the
/// ones on the range's end stand for their negation.
enum class Test { QFromStart, QPastEnd, KFromStart, KPastEnd, Accumulator, Unchanging, Other };

struct Variable {
  Test test;
  Value value;      ///< Unchanging: the i1 value
  LinearForm form;  ///< else: form <= 0
  std::string text; ///< Other: what is wrong with it
};

/// A boolean function of the variables, evaluated on all assignments at once: bit i is its value
/// where the variables have the bits of i.
class BooleanTable {
public:
  static constexpr size_t kBits = size_t(1) << kMaxTests;

  static BooleanTable constant(bool value) {
    BooleanTable table;
    table.bits.assign(kBits, value);
    return table;
  }
  static BooleanTable variable(size_t number) {
    BooleanTable table;
    table.bits.resize(kBits);
    for (size_t i = 0; i < kBits; ++i)
      table.bits[i] = (i >> number) & 1;
    return table;
  }
  template <class Fn>
  static BooleanTable combine(const BooleanTable &a, const BooleanTable &b, Fn fn) {
    BooleanTable table;
    table.bits.resize(kBits);
    for (size_t i = 0; i < kBits; ++i)
      table.bits[i] = fn(a.bits[i], b.bits[i]);
    return table;
  }
  BooleanTable operator~() const {
    return combine(*this, *this, [](bool a, bool) { return !a; });
  }
  BooleanTable operator&(const BooleanTable &other) const {
    return combine(*this, other, [](bool a, bool b) { return a && b; });
  }
  BooleanTable operator|(const BooleanTable &other) const {
    return combine(*this, other, [](bool a, bool b) { return a || b; });
  }
  BooleanTable operator^(const BooleanTable &other) const {
    return combine(*this, other, [](bool a, bool b) { return a != b; });
  }
  bool at(size_t assignment) const { return bits[assignment]; }

private:
  std::vector<char> bits;
};

class ScanMatcher {
public:
  ScanMatcher(scf::ForOp loop, std::string &reason) : loop(loop), reason(reason) {}

  std::optional<RangeScan> match() {
    if (!matchReads() || !matchHeader())
      return std::nullopt;
    variables.push_back({Test::Accumulator, {}, {}, {}});
    auto yielded = evaluate(loop.getBody()->getTerminator()->getOperand(0));
    if (!yielded)
      return std::nullopt;
    return matchFunction(*yielded);
  }

private:
  std::nullopt_t refuse(const Twine &why) {
    reason = why.str();
    return std::nullopt;
  }
  bool refuseBool(const Twine &why) {
    reason = why.str();
    return false;
  }

  bool matchReads();
  bool matchHeader();
  std::optional<BooleanTable> evaluate(Value value);
  std::optional<BooleanTable> evaluateValue(Value value);
  std::optional<BooleanTable> evaluateOp(Operation *op);
  std::optional<BooleanTable> compare(arith::CmpIOp op);
  /// form <= 0.
  std::optional<BooleanTable> atMostZero(LinearForm form);
  std::optional<BooleanTable> variable(Variable wanted);
  Variable classify(const LinearForm &form);
  std::optional<RangeScan> matchFunction(const BooleanTable &yielded);
  bool isUnchanging(Value value);

  scf::ForOp loop;
  std::string &reason;
  Value ranges, start, end;
  LinearFormAnalysis forms;
  SmallVector<Variable> variables;
  llvm::DenseMap<Value, BooleanTable> tables;
  llvm::DenseMap<Value, bool> unchanging;
};

} // namespace

/// Finds the range that the loop reads; all reads of ranges have to be of it.
bool ScanMatcher::matchReads() {
  bool readsTable = false;
  RangeOp other;
  loop.getBody()->walk([&](Operation *op) {
    if (auto load = dyn_cast<LoadOp>(op))
      readsTable |= llvm::any_of(load.getIndices(), [&](Value v) { return !isUnchanging(v); });
    auto range = dyn_cast<RangeOp>(op);
    if (!range)
      return;
    if (!ranges) {
      ranges = range.getRanges();
      start = range.getStart();
      end = range.getEnd();
    }
    if (range.getRanges() != ranges || range.getIndex() != loop.getInductionVar())
      other = range;
    forms.declare(range.getStart(), start, {0, kPositionLimit - 2});
    forms.declare(range.getEnd(), end, {1, kPositionLimit - 1});
  });
  if (!ranges)
    return refuseBool(readsTable ? "it reads a plain table; declare the ranges as !attn.ranges"
                                 : "it reads no range of a !attn.ranges table");
  if (other)
    return refuseBool("it reads ranges of another table or index");
  if (readsTable)
    return refuseBool("it reads a plain table besides the range");
  for (Operation *user : loop.getInductionVar().getUsers())
    if (!isa<RangeOp>(user))
      return refuseBool("its induction variable has other uses than attn.range");
  return true;
}

bool ScanMatcher::matchHeader() {
  APInt constant;
  if (!matchPattern(loop.getLowerBound(), m_ConstantInt(&constant)) || !constant.isZero())
    return refuseBool("it does not start at range 0");
  if (!matchPattern(loop.getStep(), m_ConstantInt(&constant)) || !constant.isOne())
    return refuseBool("its step is not 1");
  auto count = loop.getUpperBound().getDefiningOp<NumRangesOp>();
  if (!count || count.getRanges() != ranges)
    return refuseBool("it does not end at attn.num_ranges of its table");
  if (loop.getNumResults() != 1 || !loop.getResult(0).getType().isInteger(1))
    return refuseBool("it carries more than one i1 value");
  if (!matchPattern(loop.getInitArgs()[0], m_ConstantInt(&constant)) || !constant.isZero())
    return refuseBool("its accumulator does not start as false");
  return true;
}

bool ScanMatcher::isUnchanging(Value value) {
  if (!loop->isAncestor(value.getParentBlock()->getParentOp()))
    return true;
  Operation *op = value.getDefiningOp();
  if (!op || op->getNumRegions())
    return false;
  auto [it, inserted] = unchanging.try_emplace(value, true);
  if (!inserted)
    return it->second;
  bool result = llvm::all_of(op->getOperands(), [&](Value v) { return isUnchanging(v); });
  unchanging[value] = result;
  return result;
}

//===----------------------------------------------------------------------===//
// The yielded value as a boolean function
//===----------------------------------------------------------------------===//

std::optional<BooleanTable> ScanMatcher::variable(Variable wanted) {
  for (auto [i, known] : llvm::enumerate(variables))
    if (known.test == wanted.test && known.value == wanted.value &&
        (known.test != Test::Other || known.form == wanted.form))
      return BooleanTable::variable(i);
  if (variables.size() == kMaxTests)
    return refuse("its body has more than " + Twine(kMaxTests - 1) + " tests");
  variables.push_back(std::move(wanted));
  return BooleanTable::variable(variables.size() - 1);
}

std::optional<BooleanTable> ScanMatcher::evaluate(Value value) {
  if (auto it = tables.find(value); it != tables.end())
    return it->second;
  auto table = evaluateValue(value);
  if (table)
    tables.insert({value, *table});
  return table;
}

std::optional<BooleanTable> ScanMatcher::evaluateValue(Value value) {
  APInt constant;
  if (value == loop.getRegionIterArg(0))
    return BooleanTable::variable(0);
  if (matchPattern(value, m_ConstantInt(&constant)))
    return BooleanTable::constant(constant.isOne());
  if (isUnchanging(value)) {
    Operation *op = value.getDefiningOp();
    // Conjunctions of unchanging tests stay one condition; nothing else is gained by looking in.
    if (!op || !isa<arith::XOrIOp, NotOp>(op) || !loop->isAncestor(op))
      return variable({Test::Unchanging, value, {}, {}});
  }
  Operation *op = value.getDefiningOp();
  if (!op)
    return refuse("its accumulator is used in a nested loop");
  return evaluateOp(op);
}

std::optional<BooleanTable> ScanMatcher::evaluateOp(Operation *op) {
  if (auto cmp = dyn_cast<arith::CmpIOp>(op))
    if (!cmp.getLhs().getType().isInteger(1))
      return compare(cmp);
  if (!isa<arith::AndIOp, arith::OrIOp, arith::XOrIOp, arith::SelectOp, arith::CmpIOp, AndOp, OrOp,
           NotOp>(op))
    return refuse("its body holds '" + op->getName().getStringRef() + "'");
  SmallVector<BooleanTable, 3> operands;
  for (Value operand : op->getOperands()) {
    auto table = evaluate(operand);
    if (!table)
      return std::nullopt;
    operands.push_back(std::move(*table));
  }
  if (isa<arith::AndIOp, AndOp>(op))
    return operands[0] & operands[1];
  if (isa<arith::OrIOp, OrOp>(op))
    return operands[0] | operands[1];
  if (isa<arith::XOrIOp>(op))
    return operands[0] ^ operands[1];
  if (isa<NotOp>(op))
    return ~operands[0];
  if (isa<arith::SelectOp>(op))
    return (operands[0] & operands[1]) | (~operands[0] & operands[2]);
  switch (cast<arith::CmpIOp>(op).getPredicate()) {
  case arith::CmpIPredicate::eq:
    return ~(operands[0] ^ operands[1]);
  case arith::CmpIPredicate::ne:
    return operands[0] ^ operands[1];
  default:
    return refuse("its body orders i1 values");
  }
}

std::optional<BooleanTable> ScanMatcher::compare(arith::CmpIOp op) {
  using P = arith::CmpIPredicate;
  auto lhs = forms.get(op.getLhs());
  auto rhs = lhs ? forms.get(op.getRhs()) : std::nullopt;
  if (!rhs)
    return refuse("a comparison in its body does not fit: " + forms.getReason());
  LinearForm less = *lhs, greater = *rhs;
  less.add(*rhs, -1);
  greater.add(*lhs, -1);
  LinearForm strictlyLess = less, strictlyGreater = greater;
  strictlyLess.constant += 1;
  strictlyGreater.constant += 1;
  switch (op.getPredicate()) {
  case P::slt:
    return atMostZero(strictlyLess);
  case P::sle:
    return atMostZero(less);
  case P::sgt:
    return atMostZero(strictlyGreater);
  case P::sge:
    return atMostZero(greater);
  case P::eq:
  case P::ne: {
    auto a = atMostZero(less);
    auto b = a ? atMostZero(greater) : std::nullopt;
    if (!b)
      return std::nullopt;
    return op.getPredicate() == P::eq ? *a & *b : ~(*a & *b);
  }
  default:
    return refuse("a comparison in its body is unsigned");
  }
}

std::optional<BooleanTable> ScanMatcher::atMostZero(LinearForm form) {
  // Of a test and its negation, the one whose first factor is positive is stored.
  int64_t first = form.factorOf(start);
  for (int64_t factor : {form.factorOf(end), form.q, form.k})
    first = first ? first : factor;
  if (!first && !form.terms.empty())
    first = form.terms[0].second;
  bool negated = first < 0;
  if (negated) {
    LinearForm opposite = LinearForm::ofConstant(1);
    opposite.add(form, -1);
    form = opposite;
  }
  auto extent = forms.getExtent(form);
  std::optional<bool> known;
  if (extent && (extent->hi <= 0 || extent->lo > 0))
    known = extent->hi <= 0;
  // start < end holds for every live range.
  if (form.terms.size() == 2 && form.factorOf(start) == 1 && form.factorOf(end) == -1 && !form.q &&
      !form.k && form.constant <= 1)
    known = true;
  if (known)
    return BooleanTable::constant(*known != negated);
  auto table = variable(classify(form));
  if (!table)
    return std::nullopt;
  return negated ? ~*table : *table;
}

Variable ScanMatcher::classify(const LinearForm &form) {
  int64_t s = form.factorOf(start), e = form.factorOf(end);
  bool onlyRange = form.terms.size() == 1 && (s == 1 || e == 1);
  bool onQ = form.q == -1 && form.k == 0, onK = form.k == -1 && form.q == 0;
  if (onlyRange && (onQ || onK)) {
    // start - q <= 0 is "start <= q"; end - q + 1 <= 0 is "end < q".
    if (s == 1 && form.constant == 0)
      return {onQ ? Test::QFromStart : Test::KFromStart, {}, form, {}};
    if (e == 1 && form.constant == 1)
      return {onQ ? Test::QPastEnd : Test::KPastEnd, {}, form, {}};
    return {Test::Other,
            {},
            form,
            (Twine("its test of ") + (onQ ? "q" : "k") + " against the range's " +
             (s ? "start" : "end") + " is not the inclusive one")
                .str()};
  }
  return {Test::Other, {}, form, "it compares the range with something else than q or k"};
}

//===----------------------------------------------------------------------===//
// Comparison with the wanted function
//===----------------------------------------------------------------------===//

std::optional<RangeScan> ScanMatcher::matchFunction(const BooleanTable &yielded) {
  size_t assignments = size_t(1) << variables.size();
  // Variable 0, the lowest bit, is the accumulator.
  for (size_t i = 1; i < assignments; i += 2)
    if (!yielded.at(i))
      return refuse("its accumulator is not or-ed");
  size_t holds = 0, allOnes = ~size_t(0), anyOnes = 0;
  for (size_t i = 0; i < assignments; i += 2)
    if (yielded.at(i)) {
      ++holds;
      allOnes &= i;
      anyOnes |= i;
    }
  if (!holds)
    return refuse("its test never holds");
  size_t fixedCount = 0;
  for (size_t v = 1; v < variables.size(); ++v)
    fixedCount += ((allOnes >> v) & 1) || !((anyOnes >> v) & 1);
  if (holds << fixedCount != assignments / 2)
    return refuse("its test is no conjunction");

  RangeScan scan;
  scan.ranges = ranges;
  bool found[4] = {false, false, false, false};
  for (size_t v = 1; v < variables.size(); ++v) {
    bool isTrue = (allOnes >> v) & 1, isFalse = !((anyOnes >> v) & 1);
    if (!isTrue && !isFalse)
      continue;
    const Variable &variable = variables[v];
    switch (variable.test) {
    case Test::QFromStart:
    case Test::KFromStart:
      found[static_cast<int>(variable.test)] = isTrue;
      break;
    case Test::QPastEnd:
    case Test::KPastEnd:
      found[static_cast<int>(variable.test)] = isFalse;
      break;
    case Test::Unchanging:
      scan.conditions.push_back({variable.value, isTrue});
      break;
    case Test::Accumulator:
    case Test::Other:
      return refuse(variable.text);
    }
  }
  static constexpr StringLiteral names[] = {"start <= q", "q <= end", "start <= k", "k <= end"};
  for (auto [isFound, name] : llvm::zip(found, names))
    if (!isFound)
      return refuse("its test lacks '" + name + "'");
  return scan;
}

std::optional<RangeScan> attn::matchRangeScan(scf::ForOp loop, std::string &reason) {
  return ScanMatcher(loop, reason).match();
}
