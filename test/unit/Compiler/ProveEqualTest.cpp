// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// proveEqual(): what its results hold, its errors, and that calls do not meet. z3 has to be there.
// What the tools make of it: test/Verify/prove_equal.py.

#include "attn/Compiler/Compiler.h"

#include "llvm/ADT/StringExtras.h"

#include <gtest/gtest.h>

#include <thread>
#include <tuple>

using namespace attn;
using compiler::MaskComparison;
using compiler::ProveEqualOptions;
using proofs::Outcome;

namespace {

std::string maskKernel(const std::string &name, const std::string &clauses,
                       const std::string &mask) {
  return "attn.kernel @" + name + " heads(2) " + clauses + " {\n  attn.mask (%b, %h, %q, %k) {\n" +
         mask + "attn.yield %m : i1\n  }\n}\n";
}

const std::string kMaskClauses = "dim(8) q(f32) kv(f32)";

std::string causalKernel(const std::string &name, const std::string &clauses = kMaskClauses) {
  return maskKernel(name, clauses, "%m = attn.causal %q, %k\n");
}

/// k - 1 `predicate` q - 1: for "sle" the causal mask, which takes a solver to see.
std::string shiftedKernel(const std::string &name, const std::string &predicate) {
  return maskKernel(name, kMaskClauses,
                    "%one = arith.constant 1 : index\n%last = arith.subi %q, %one : index\n"
                    "%next = arith.subi %k, %one : index\n%m = arith.cmpi " +
                        predicate + ", %next, %last : index\n");
}

/// Comparisons, or none after a failure of the test.
std::vector<MaskComparison> comparisonsOf(llvm::Expected<std::vector<MaskComparison>> got) {
  if (got)
    return std::move(*got);
  ADD_FAILURE() << llvm::toString(got.takeError());
  return {};
}

std::string proveErrorOf(llvm::Expected<std::vector<MaskComparison>> got) {
  return got ? "" : llvm::toString(got.takeError());
}

} // namespace

TEST(ProveEqual, KernelsOfOneSpec) {
  const std::string spec =
      causalKernel("a") + shiftedKernel("b", "sle") + shiftedKernel("c", "slt");
  auto got = comparisonsOf(compiler::proveEqual(spec, "s.mlir", {"c", "b", "a"}));
  ASSERT_EQ(got.size(), 2u);
  for (const MaskComparison &comparison : got)
    EXPECT_EQ(comparison.verdict.outcome, Outcome::Refuted) << comparison.verdict.reason;
  got = comparisonsOf(compiler::proveEqual(spec, "s.mlir", {"a", "b", "c"}));
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(got[0].verdict.outcome, Outcome::Proved) << got[0].verdict.reason;
  EXPECT_EQ(got[0].first.symbol, "a");
  EXPECT_EQ(got[0].first.place, "s.mlir:1:1");
  EXPECT_EQ(got[0].second.symbol, "b");
  EXPECT_EQ(got[0].second.place, "s.mlir:7:1");
  EXPECT_TRUE(got[0].notCompared.empty());
  EXPECT_EQ(compiler::toString(got[0]), "proved: @a and @b are the same mask for every batch");
  ASSERT_EQ(got[1].verdict.outcome, Outcome::Refuted);
  ASSERT_TRUE(got[1].verdict.counterexample);
  EXPECT_TRUE(got[1].verdict.counterexample->before);
  EXPECT_FALSE(got[1].verdict.counterexample->after);
  EXPECT_EQ(got[1].verdict.counterexample->q, got[1].verdict.counterexample->k);
}

TEST(ProveEqual, KernelsOfTwoSpecsDoNotMeet) {
  const std::string first = causalKernel("a") + shiftedKernel("b", "slt");
  const std::string second = shiftedKernel("b", "slt") + shiftedKernel("a", "slt");
  auto got = comparisonsOf(compiler::proveEqual({first, "x.mlir"}, {second, "y.mlir"}));
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(got[0].verdict.outcome, Outcome::Refuted) << got[0].verdict.reason;
  EXPECT_EQ(got[0].first.place, "x.mlir:1:1");
  EXPECT_EQ(got[0].second.place, "y.mlir:10:1");
  EXPECT_EQ(compiler::toString(got[0]).find(
                "y.mlir:10:1: error: @a of x.mlir and @a of y.mlir are different masks: at b = "),
            0u)
      << compiler::toString(got[0]);
  EXPECT_EQ(got[1].verdict.outcome, Outcome::Proved) << got[1].verdict.reason;
  // One kernel in each: whatever their names.
  got = comparisonsOf(
      compiler::proveEqual({causalKernel("mine"), "x.mlir"}, {causalKernel("theirs"), "y.mlir"}));
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(compiler::toString(got[0]), "proved: @mine of x.mlir and @theirs of y.mlir are the "
                                        "same mask for every batch");
}

TEST(ProveEqual, WhatIsNotComparedIsNamed) {
  const std::string scale = "dim(8) q(f32) kv(f32) scale(%s) params(%s: f32, %t: f32)";
  const std::string other = "dim(8) q(f32) kv(f32) scale(%t) params(%s: f32, %t: f32)";
  for (auto [x, y, named] : std::vector<std::tuple<std::string, std::string, std::string>>{
           {kMaskClauses, "dim(8) dim_v(4) q(f32) kv(f32)", "dim_v"},
           {kMaskClauses, "dim(8) q(f16) kv(f32)", "q"},
           {kMaskClauses, "dim(8) q(f32) kv(bf16)", "kv"},
           {kMaskClauses, "dim(8) q(f32) kv(f32) scale(2.0)", "scale"},
           {kMaskClauses, "dim(16) q(f32) kv(f32)", "dim, dim_v, scale"},
           {scale, other, "scale"},
           {scale, scale, ""}}) {
    auto got = comparisonsOf(
        compiler::proveEqual({causalKernel("k", x), "x"}, {causalKernel("k", y), "y"}));
    ASSERT_EQ(got.size(), 1u);
    EXPECT_EQ(got[0].verdict.outcome, Outcome::Proved);
    EXPECT_EQ(llvm::join(got[0].notCompared, ", "), named);
  }
}

TEST(ProveEqual, ErrorsNameWhatIsMissing) {
  const std::string two = causalKernel("a") + causalKernel("b");
  EXPECT_EQ(proveErrorOf(compiler::proveEqual(two, "s.mlir", {"a"})),
            "s.mlir:1:1: error: expected two kernels or more to compare, got 1");
  EXPECT_EQ(proveErrorOf(compiler::proveEqual(two, "s.mlir", {"a", "c"})),
            "s.mlir:1:1: error: the spec holds no attn.kernel @c, expected one of @a, @b");
  EXPECT_EQ(
      proveErrorOf(compiler::proveEqual({causalKernel("c") + two, "x"}, {causalKernel("b"), "y"})),
      "x:1:1: error: y holds no attn.kernel @c to compare with, it has @b\n"
      "x:7:1: error: y holds no attn.kernel @a to compare with, it has @b");
  EXPECT_EQ(proveErrorOf(compiler::proveEqual({two, "x"}, {"", "y"})),
            "y:1:1: error: the spec holds no attn.kernel");
  EXPECT_EQ(proveErrorOf(compiler::proveEqual({"", "x"}, {two, "y"})),
            "x:1:1: error: the spec holds no attn.kernel");
  ProveEqualOptions options;
  options.solverTimeout = 0;
  EXPECT_NE(proveErrorOf(compiler::proveEqual(two, "s.mlir", {"a", "b"}, options)), "");
}

TEST(ProveEqual, NoSolverIsNoProof) {
  ProveEqualOptions options;
  options.solver = "no-such-solver";
  auto got = comparisonsOf(compiler::proveEqual(causalKernel("a") + shiftedKernel("b", "sle"),
                                                "s.mlir", {"a", "b"}, options));
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].verdict.outcome, Outcome::NotChecked);
  EXPECT_EQ(compiler::toString(got[0]), "s.mlir:7:1: error: not checked: @a and @b are the same "
                                        "mask for every batch: no solver 'no-such-solver'");
}

TEST(ProveEqual, CallsOnSeveralThreadsDoNotMeet) {
  std::vector<Outcome> outcomes(4, Outcome::NotChecked);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < outcomes.size(); ++i)
    threads.emplace_back([&outcomes, i] {
      const std::string first = causalKernel("k"),
                        second = shiftedKernel("k", i % 2 ? "sle" : "slt");
      auto got = compiler::proveEqual({first, "x"}, {second, "y"});
      if (!got)
        llvm::consumeError(got.takeError());
      else if (got->size() == 1)
        outcomes[i] = got->front().verdict.outcome;
    });
  for (std::thread &thread : threads)
    thread.join();
  for (size_t i = 0; i < outcomes.size(); ++i)
    EXPECT_EQ(outcomes[i], i % 2 ? Outcome::Proved : Outcome::Refuted) << i;
}
