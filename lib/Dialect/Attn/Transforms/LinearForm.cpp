// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "LinearForm.h"

#include "attn/Core/IndexSpaces.h"
#include "attn/Dialect/Attn/IR/AttnOps.h"

#include "mlir/IR/Matchers.h"

#include <limits>

using namespace mlir;
using namespace attn;
using core::kPositionLimit;

// With these limits no sum of a form's parts leaves 64 bits: 16 terms of at most 2^20 * 2^32, the
// positions, and the constant.
static constexpr int64_t kMaxFactor = int64_t(1) << 20;
static constexpr int64_t kMaxConstant = int64_t(1) << 60;
static constexpr size_t kMaxTerms = 16;
/// Beyond this a bound is past every position, whatever bounded values are added to it.
static constexpr int64_t kFar = int64_t(1) << 40;

//===----------------------------------------------------------------------===//
// LinearForm
//===----------------------------------------------------------------------===//

LinearForm LinearForm::ofConstant(int64_t value) {
  LinearForm form;
  form.constant = value;
  return form;
}

LinearForm LinearForm::ofTerm(Value value) {
  LinearForm form;
  form.terms.push_back({value, 1});
  return form;
}

void LinearForm::add(const LinearForm &other, int64_t factor) {
  q += factor * other.q;
  k += factor * other.k;
  constant += factor * other.constant;
  for (auto [value, f] : other.terms) {
    auto *it = llvm::find_if(terms, [&, v = value](auto &term) { return term.first == v; });
    if (it == terms.end())
      terms.push_back({value, factor * f});
    else
      it->second += factor * f;
  }
  llvm::erase_if(terms, [](auto &term) { return term.second == 0; });
}

int64_t LinearForm::factorOf(Value value) const {
  for (auto [term, factor] : terms)
    if (term == value)
      return factor;
  return 0;
}

bool LinearForm::operator==(const LinearForm &other) const {
  return q == other.q && k == other.k && constant == other.constant &&
         terms.size() == other.terms.size() &&
         llvm::all_of(terms, [&](auto &term) { return other.factorOf(term.first) == term.second; });
}

/// Small enough for the sums above to be exact.
static bool isSmall(const LinearForm &form) {
  auto small = [](int64_t factor) { return factor >= -kMaxFactor && factor <= kMaxFactor; };
  return small(form.q) && small(form.k) && form.constant >= -kMaxConstant &&
         form.constant <= kMaxConstant && form.terms.size() <= kMaxTerms &&
         llvm::all_of(form.terms, [&](auto &term) { return small(term.second); });
}

//===----------------------------------------------------------------------===//
// Analysis
//===----------------------------------------------------------------------===//

void LinearFormAnalysis::declare(Value value, Value same, Extent extent) {
  declared.insert({value, {same, extent}});
}

std::optional<Extent> LinearFormAnalysis::getExtent(Value value) const {
  if (auto it = declared.find(value); it != declared.end())
    return it->second.second;
  if (auto role = getIndexRole(value); role == IndexRole::B || role == IndexRole::H)
    return Extent{0, std::numeric_limits<int32_t>::max()};
  // Bounds of a range outside a scan: (0, -1) for an index outside the list.
  if (value.getDefiningOp<RangeOp>())
    return Extent{-1, kPositionLimit - 1};
  auto type = dyn_cast<IntegerType>(value.getType());
  if (!type || type.getWidth() > 32)
    return std::nullopt;
  int64_t half = int64_t(1) << (type.getWidth() - 1);
  return Extent{-half, half - 1};
}

bool LinearFormAnalysis::isWide(Value value) const { return !getExtent(value); }

std::optional<Extent> LinearFormAnalysis::getExtent(const LinearForm &form) const {
  if (!isSmall(form))
    return std::nullopt;
  Extent extent{form.constant, form.constant};
  auto addScaled = [&](Extent part, int64_t factor) {
    extent.lo += factor * (factor < 0 ? part.hi : part.lo);
    extent.hi += factor * (factor < 0 ? part.lo : part.hi);
  };
  Extent position{1 - kPositionLimit, kPositionLimit - 1};
  addScaled(position, form.q);
  addScaled(position, form.k);
  for (auto [value, factor] : form.terms) {
    auto part = getExtent(value);
    if (!part)
      return std::nullopt;
    addScaled(*part, factor);
  }
  return extent;
}

bool LinearFormAnalysis::fits(const LinearForm &form, Type type) const {
  auto extent = getExtent(form);
  if (!extent)
    return false;
  auto integer = dyn_cast<IntegerType>(type);
  if (!integer || integer.getWidth() >= 64)
    return true;
  int64_t half = int64_t(1) << (integer.getWidth() - 1);
  return extent->lo >= -half && extent->hi < half;
}

std::optional<LinearForm> LinearFormAnalysis::get(Value value) {
  if (auto it = cache.find(value); it != cache.end())
    return it->second;
  if (auto it = failed.find(value); it != failed.end()) {
    reason = it->second;
    return std::nullopt;
  }
  // Bounds the recursion over operands; no predicate that people write comes near it.
  constexpr unsigned kMaxDepth = 512;
  if (depth == kMaxDepth) {
    reason = "its arithmetic is nested too deep";
    return std::nullopt;
  }
  ++depth;
  auto form = compute(value);
  --depth;
  if (form)
    cache[value] = *form;
  else
    failed[value] = reason;
  return form;
}

std::optional<LinearForm> LinearFormAnalysis::compute(Value value) {
  if (auto it = declared.find(value); it != declared.end())
    return LinearForm::ofTerm(it->second.first);
  auto role = getIndexRole(value);
  LinearForm form;
  if (role == IndexRole::Q) {
    form.q = 1;
    return form;
  }
  if (role == IndexRole::K) {
    form.k = 1;
    return form;
  }
  if (!value.getType().isIntOrIndex() || value.getType().isInteger(1)) {
    reason = "it compares no integers";
    return std::nullopt;
  }
  Operation *op = value.getDefiningOp();
  APInt constant;
  if (op && matchPattern(value, m_ConstantInt(&constant))) {
    form = LinearForm::ofConstant(constant.getSExtValue());
    if (isSmall(form))
      return form;
  }
  if (op)
    if (auto known = computeOp(op))
      return known;
  if (!getDependence(value).k)
    return LinearForm::ofTerm(value);
  if (!op)
    reason = "it depends on k through a loop";
  else if (!isa<arith::AddIOp, arith::SubIOp, arith::IndexCastOp, arith::ExtSIOp, arith::TruncIOp>(
               op))
    reason = ("'" + op->getName().getStringRef() + "' depends on k").str();
  else if (llvm::all_of(op->getOperands(), [&](Value v) { return get(v).has_value(); }))
    reason = "its arithmetic may wrap";
  return std::nullopt;
}

std::optional<LinearForm> LinearFormAnalysis::computeSum(Operation *op) {
  auto a = get(op->getOperand(0));
  if (!a)
    return std::nullopt;
  auto b = get(op->getOperand(1));
  if (!b)
    return std::nullopt;
  if (isa<arith::AddIOp, arith::SubIOp>(op)) {
    a->add(*b, isa<arith::AddIOp>(op) ? 1 : -1);
    return a;
  }
  auto isConstant = [](const LinearForm &f) { return !f.q && !f.k && f.terms.empty(); };
  const LinearForm &factor = isConstant(*b) ? *b : *a;
  const LinearForm &form = isConstant(*b) ? *a : *b;
  if (!isConstant(factor) || std::abs(factor.constant) > kMaxFactor ||
      std::abs(form.constant) > kMaxFactor)
    return std::nullopt;
  LinearForm product;
  product.add(form, factor.constant);
  return product;
}

std::optional<LinearForm> LinearFormAnalysis::computeOp(Operation *op) {
  std::optional<LinearForm> form;
  if (isa<arith::AddIOp, arith::SubIOp, arith::MulIOp>(op)) {
    form = computeSum(op);
  } else if (isa<arith::IndexCastOp, arith::ExtSIOp, arith::TruncIOp>(op)) {
    if (op->getOperand(0).getType().isInteger(1))
      return std::nullopt;
    form = get(op->getOperand(0));
    // A cast that keeps every bit of a 64-bit value.
    bool keeps = form && op->getResult(0).getType().isIntOrIndex() &&
                 (op->getResult(0).getType().isIndex() || op->getResult(0).getType().isInteger(64));
    if (keeps && form->terms.size() == 1 && !form->q && !form->k && !form->constant)
      return form;
  } else if (isa<arith::ExtUIOp, arith::IndexCastUIOp>(op)) {
    if (op->getOperand(0).getType().isInteger(1))
      return std::nullopt;
    form = get(op->getOperand(0));
    auto extent = form ? getExtent(*form) : std::nullopt;
    if (!extent || extent->lo < 0)
      return std::nullopt;
  }
  if (!form || !fits(*form, op->getResult(0).getType()))
    return std::nullopt;
  return form;
}

//===----------------------------------------------------------------------===//
// Comparisons
//===----------------------------------------------------------------------===//

std::optional<KeyComparison> attn::solveForKey(arith::CmpIOp op, LinearFormAnalysis &analysis,
                                               std::string &reason) {
  using P = arith::CmpIPredicate;
  P predicate = op.getPredicate();
  if (predicate == P::ult || predicate == P::ule || predicate == P::ugt || predicate == P::uge) {
    reason = "it is unsigned";
    return std::nullopt;
  }
  auto difference = analysis.get(op.getLhs());
  auto right = difference ? analysis.get(op.getRhs()) : std::nullopt;
  if (!right) {
    reason = analysis.getReason().str();
    return std::nullopt;
  }
  difference->add(*right, -1);
  if (difference->k != 1 && difference->k != -1) {
    reason = difference->k ? "k is multiplied" : "k cancels out";
    return std::nullopt;
  }
  // k + rest P 0 is k P -rest; -k + rest P 0 is rest P k.
  KeyComparison result;
  bool mirrored = difference->k < 0;
  int64_t sign = mirrored ? 1 : -1;
  difference->k = 0;
  result.bound.add(*difference, sign);
  if (mirrored)
    predicate = predicate == P::slt   ? P::sgt
                : predicate == P::sle ? P::sge
                : predicate == P::sgt ? P::slt
                : predicate == P::sge ? P::sle
                                      : predicate;
  switch (predicate) {
  case P::sle:
    result.bound.constant += 1;
    [[fallthrough]];
  case P::slt:
    result.kind = KeyComparison::Below;
    break;
  case P::sgt:
    result.bound.constant += 1;
    [[fallthrough]];
  case P::sge:
    result.kind = KeyComparison::AtLeast;
    break;
  default:
    result.kind = predicate == P::eq ? KeyComparison::Equal : KeyComparison::NotEqual;
    break;
  }
  if (!canEmit(result.bound, analysis)) {
    reason = "its arithmetic may wrap";
    return std::nullopt;
  }
  return result;
}

/// The term that may be any 64-bit value, if there is exactly one of factor +-1.
static std::optional<size_t> findWideTerm(const LinearForm &form,
                                          const LinearFormAnalysis &analysis, bool &tooMany) {
  std::optional<size_t> wide;
  for (auto [i, term] : llvm::enumerate(form.terms)) {
    if (!analysis.isWide(term.first))
      continue;
    tooMany |= wide.has_value() || (term.second != 1 && term.second != -1);
    wide = i;
  }
  return wide;
}

bool attn::canEmit(const LinearForm &form, const LinearFormAnalysis &analysis) {
  bool tooMany = false;
  LinearForm rest = form;
  if (auto wide = findWideTerm(form, analysis, tooMany))
    rest.terms.erase(rest.terms.begin() + *wide);
  // One more than the form itself: an equality needs both ends.
  auto extent = tooMany ? std::nullopt : analysis.getExtent(rest);
  return extent && extent->lo > -kFar / 2 && extent->hi < kFar / 2;
}

Value attn::emitForm(OpBuilder &builder, Location loc, const LinearForm &form, Value q,
                     const LinearFormAnalysis &analysis) {
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  Value sum;
  auto addTerm = [&](Value value, int64_t factor) {
    if (factor == -1) {
      sum = arith::SubIOp::create(builder, loc, sum ? sum : constant(0), value);
      return;
    }
    if (factor != 1)
      value = arith::MulIOp::create(builder, loc, value, constant(factor));
    sum = sum ? arith::AddIOp::create(builder, loc, sum, value).getResult() : value;
  };
  if (form.q)
    addTerm(q, form.q);
  bool alone = !form.q && form.terms.size() == 1 && form.terms[0].second == 1 && !form.constant;
  for (auto [value, factor] : form.terms) {
    Value index = value;
    if (!value.getType().isIndex())
      index = arith::IndexCastOp::create(builder, loc, builder.getIndexType(), value);
    // Far beyond every position the exact value does not matter, and sums cannot wrap.
    if (!alone && analysis.isWide(value)) {
      index = arith::MaxSIOp::create(builder, loc, index, constant(-kFar));
      index = arith::MinSIOp::create(builder, loc, index, constant(kFar));
    }
    addTerm(index, factor);
  }
  if (!sum)
    return constant(form.constant);
  if (form.constant)
    sum = arith::AddIOp::create(builder, loc, sum, constant(form.constant));
  return sum;
}
