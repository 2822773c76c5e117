// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "TermValue.h"

#include "gtest/gtest.h"

#include <algorithm>

using namespace attn;
using namespace attn::test;
using namespace mlir;
using Wide = proofs::Wide;

/// SMT-LIB: a = b * quotient + rest with 0 <= rest < |b|.
static Wide restOf(Wide a, Wide b) {
  Wide rest = a % b;
  return rest < 0 ? rest + (b < 0 ? -b : b) : rest;
}

Wide TermValue::quantify(Operation *op, bool exists) {
  Block &body = op->getRegion(0).front();
  auto outer = known;
  Wide result = !exists;
  for (int64_t i = low; i <= high && result != exists; ++i) {
    known = outer;
    known[body.getArgument(0).getAsOpaquePointer()] = i;
    result = of(body.getTerminator()->getOperand(0));
  }
  known = std::move(outer);
  return result;
}

Wide TermValue::compute(Operation *op) {
  if (isa<smt::ExistsOp, smt::ForallOp>(op))
    return quantify(op, isa<smt::ExistsOp>(op));
  if (auto constant = dyn_cast<smt::BoolConstantOp>(op))
    return constant.getValue();
  if (auto constant = dyn_cast<smt::IntConstantOp>(op)) {
    APInt value = constant.getValue().sext(128);
    return static_cast<Wide>(
        (static_cast<unsigned __int128>(value.extractBitsAsZExtValue(64, 64)) << 64) |
        value.extractBitsAsZExtValue(64, 0));
  }
  if (isa<smt::DeclareFunOp>(op))
    return functions.at(op->getResult(0).getAsOpaquePointer())({});
  if (auto apply = dyn_cast<smt::ApplyFuncOp>(op)) {
    std::vector<Wide> arguments;
    for (Value argument : apply.getArgs())
      arguments.push_back(of(argument));
    return functions.at(apply.getFunc().getAsOpaquePointer())(arguments);
  }
  Wide a = of(op->getOperand(0));
  if (isa<smt::NotOp>(op))
    return !a;
  if (isa<smt::IteOp>(op))
    return of(op->getOperand(a ? 1 : 2));
  EXPECT_EQ(op->getNumOperands(), 2u) << op->getName().getStringRef().str();
  Wide b = of(op->getOperand(1));
  if (isa<smt::AndOp>(op))
    return a && b;
  if (isa<smt::OrOp>(op))
    return a || b;
  if (isa<smt::EqOp>(op))
    return a == b;
  if (isa<smt::IntAddOp>(op))
    return a + b;
  if (isa<smt::IntSubOp>(op))
    return a - b;
  if (isa<smt::IntMulOp>(op))
    return a * b;
  // Nothing is known of a divisor 0: any number will do, and no proof may hang on it.
  if (isa<smt::IntDivOp>(op))
    return b ? (a - restOf(a, b)) / b : 77;
  if (isa<smt::IntModOp>(op))
    return b ? restOf(a, b) : 78;
  if (auto compare = dyn_cast<smt::IntCmpOp>(op))
    return compare.getPred() == smt::IntPredicate::le ? a <= b : a < b;
  ADD_FAILURE() << "no value of " << op->getName().getStringRef().str();
  return 0;
}

Wide TermValue::of(proofs::Term term) {
  auto found = known.find(term.getAsOpaquePointer());
  if (found != known.end())
    return found->second;
  Wide value = compute(term.getDefiningOp());
  known[term.getAsOpaquePointer()] = value;
  return value;
}

std::vector<proofs::Term> test::symbolsOf(proofs::Term any, StringRef prefix) {
  std::vector<std::pair<unsigned, proofs::Term>> found;
  for (auto symbol : any.getDefiningOp()->getBlock()->getOps<smt::DeclareFunOp>()) {
    StringRef name = *symbol.getNamePrefix();
    auto [stem, number] = name.rsplit('_');
    if (stem == prefix)
      found.push_back({static_cast<unsigned>(std::stoul(number.str())), symbol});
  }
  std::sort(found.begin(), found.end(),
            [](const auto &a, const auto &b) { return a.first < b.first; });
  std::vector<proofs::Term> symbols;
  for (const auto &[number, symbol] : found)
    symbols.push_back(symbol);
  return symbols;
}

std::vector<proofs::Term> test::assertionsOf(proofs::Term any) {
  std::vector<proofs::Term> conditions;
  for (auto assertion : any.getDefiningOp()->getBlock()->getOps<smt::AssertOp>())
    conditions.push_back(assertion.getInput());
  return conditions;
}
