// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random programs on random batches: keep() against a naive evaluator, the interval and box
// analyses against keep().
#include "NaiveEval.h"
#include "RandomProgram.h"

#include "attn/Core/MaskEval.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

using namespace attn::core;
using namespace attn::test;

namespace {

struct Counts {
  long programs = 0, pairs = 0, rows = 0, exactRows = 0, boundedRows = 0;
  long boxes = 0, exactBoxes = 0, skip = 0, full = 0, partial = 0;
};

/// Interesting keys of a row: all small ones, the ends of the universe and of every run.
std::vector<int64_t> probes(const IntervalSet &keys) {
  std::vector<int64_t> result;
  for (int64_t k = -3; k <= 14; ++k)
    result.push_back(k);
  for (const Interval &run : keys.runs())
    for (int64_t k : {run.lo - 1, run.lo, run.hi - 1, run.hi})
      result.push_back(k);
  for (int64_t k : {int64_t(0), kPositionLimit / 2, -kPositionLimit / 2, kPositionLimit - 1})
    result.push_back(k);
  result.erase(
      std::remove_if(result.begin(), result.end(),
                     [](int64_t k) { return k <= -kPositionLimit || k >= kPositionLimit; }),
      result.end());
  return result;
}

class Checker {
public:
  Checker(std::mt19937 &random, const MaskProgram &program, const Batch &batch, Counts &counts)
      : random(random), program(program), batch(batch), counts(counts), evaluator(program, batch) {}

  void run(bool mustBeExact) {
    for (int64_t b = 0; b < batch.shape.numReqs(); ++b)
      for (int64_t h = 0; h < batch.numHeads; h += 1 + int64_t(random() % 3)) {
        int64_t first = batch.shape.contextLen[b] - 1;
        int64_t last = first + batch.shape.queryLen(RequestIndex(b)) + 2;
        exact.clear();
        for (int64_t q = first; q < last; ++q)
          checkRow(b, h, q, mustBeExact);
        for (int i = 0; i < 12; ++i)
          checkBox(b, h, first, last);
        if (testing::Test::HasFatalFailure())
          return;
      }
  }

private:
  void checkRow(int64_t b, int64_t h, int64_t q, bool mustBeExact) {
    RequestIndex rb(b);
    HeadIndex rh(h);
    QueryPos rq(q);
    std::optional<IntervalSet> keys = evaluator.rowKeys(rb, rh, rq);
    IntervalSet bound = evaluator.rowKeysBound(rb, rh, rq);
    exact.push_back(keys.has_value());
    ++counts.rows;
    counts.exactRows += keys.has_value();
    counts.boundedRows += bound != IntervalSet::all();
    ASSERT_TRUE(keys || !mustBeExact) << toFormula(program, program.mask);
    for (int64_t k : probes(bound)) {
      bool kept = evaluator.keep(rb, rh, rq, KeyPos(k));
      ++counts.pairs;
      ASSERT_EQ(kept, NaiveEval(program, batch, b, h, q, k).integer(program.mask) != 0)
          << toFormula(program, program.mask) << " b=" << b << " h=" << h << " q=" << q
          << " k=" << k;
      if (keys) {
        ASSERT_EQ(keys->contains(k), kept) << toFormula(program, program.mask) << " b=" << b
                                           << " h=" << h << " q=" << q << " k=" << k;
      }
      ASSERT_TRUE(!kept || bound.contains(k)) << toFormula(program, program.mask);
    }
  }

  void checkBox(int64_t b, int64_t h, int64_t firstQ, int64_t lastQ) {
    auto between = [&](int64_t lo, int64_t hi) {
      return lo + static_cast<int64_t>(random() % static_cast<unsigned>(hi - lo + 1));
    };
    Interval q{between(firstQ, lastQ - 1), lastQ}, k{between(-2, 8), 0};
    q.hi = between(q.lo + 1, lastQ);
    k.hi = k.lo + between(1, 6);
    bool some = false, all = true, known = true;
    for (int64_t i = q.lo; i < q.hi; ++i) {
      known = known && exact[static_cast<size_t>(i - firstQ)];
      for (int64_t j = k.lo; j < k.hi; ++j) {
        bool kept = evaluator.keep(RequestIndex(b), HeadIndex(h), QueryPos(i), KeyPos(j));
        some |= kept;
        all &= kept;
      }
    }
    TileClass truth = !some ? TileClass::Skip : all ? TileClass::Full : TileClass::Partial;
    TileClass got = evaluator.classify(RequestIndex(b), HeadIndex(h), q, k);
    ++counts.boxes;
    counts.exactBoxes += got == truth;
    (got == TileClass::Skip   ? counts.skip
     : got == TileClass::Full ? counts.full
                              : counts.partial)++;
    ASSERT_TRUE(got == truth || (got == TileClass::Partial && !known))
        << toFormula(program, program.mask) << " b=" << b << " h=" << h << " q=[" << q.lo << ","
        << q.hi << ") k=[" << k.lo << "," << k.hi << ") got " << int(got) << " is " << int(truth);
  }

  std::mt19937 &random;
  const MaskProgram &program;
  const Batch &batch;
  Counts &counts;
  MaskEvaluator evaluator;
  std::vector<bool> exact; ///< of the rows checked last
};

Counts check(Wildness wildness, int programs, unsigned seed) {
  std::mt19937 random(seed);
  Counts counts;
  for (int i = 0; i < programs && !testing::Test::HasFatalFailure(); ++i) {
    MaskProgram program = randomProgram(random, wildness);
    std::optional<std::string> fault = verify(program);
    EXPECT_FALSE(fault) << *fault;
    if (fault)
      break;
    ++counts.programs;
    for (int j = 0; j < 2; ++j) {
      Batch batch = randomBatch(random, program);
      Checker(random, program, batch, counts).run(wildness == Wildness::Named);
    }
  }
  std::printf("programs %ld, pairs %ld, rows %ld (exact %ld, bounded %ld)\n"
              "boxes %ld (skip %ld, full %ld, partial %ld; class exact %ld)\n",
              counts.programs, counts.pairs, counts.rows, counts.exactRows, counts.boundedRows,
              counts.boxes, counts.skip, counts.full, counts.partial, counts.exactBoxes);
  return counts;
}

/// keep = op(a, b) < n, where a and b are q and k moved by constants and cut to `type`. All boxes
/// are small, so that a wrong bound of the operation shows.
void checkOperation(std::mt19937 &random, Op op, ScalarType type, Counts &counts) {
  auto between = [&](int64_t lo, int64_t hi) {
    return lo + static_cast<int64_t>(random() % static_cast<unsigned>(hi - lo + 1));
  };
  int64_t ends[] = {0, 0, 0, 8, 127, -128, 64};
  Interval q{between(-6, 6), 0}, k{between(-6, 6), 0};
  q.hi = q.lo + between(1, 4);
  k.hi = k.lo + between(1, 4);
  ProgramBuilder build;
  auto operand = [&](NodeId index) {
    NodeId moved = build.node(Op::Add, ScalarType::I64, {index, build.i64(ends[random() % 7])});
    return type == ScalarType::I64 ? moved : build.node(Op::Trunc, type, {moved});
  };
  NodeId a = operand(build.q()), b = random() % 3 ? operand(build.k()) : operand(build.i64(k.lo));
  if (random() % 2)
    std::swap(a, b);
  bool compares = op >= Op::CmpEq && op <= Op::CmpUge;
  NodeId result = build.node(op, compares ? ScalarType::Bool : type, {a, b});
  Batch batch;
  addRequest(batch.shape, 1, 1);
  std::vector<int64_t> values;
  for (int64_t i = q.lo; i < q.hi; ++i)
    for (int64_t j = k.lo; j < k.hi; ++j)
      values.push_back(NaiveEval(build.program, batch, 0, 0, i, j).integer(result));
  std::vector<int64_t> limits = values;
  limits.push_back(values[0] + 1);
  for (int64_t limit : limits) {
    bool some = false, all = true;
    for (int64_t value : values) {
      bool kept = compares ? value == limit : value < limit;
      some |= kept;
      all &= kept;
    }
    ProgramBuilder with = build;
    if (compares && limit != 0 && limit != 1)
      continue;
    NodeId n = with.program.constant(compares ? ScalarType::Bool : ScalarType::I64, limit);
    NodeId wide = compares || type == ScalarType::I64
                      ? result
                      : with.node(Op::SExt, ScalarType::I64, {result});
    with.program.mask = with.mask(compares ? Op::CmpEq : Op::CmpSlt, {wide, n});
    ASSERT_FALSE(verify(with.program));
    TileClass got =
        MaskEvaluator(with.program, batch).classify(RequestIndex(0), HeadIndex(0), q, k);
    TileClass truth = !some ? TileClass::Skip : all ? TileClass::Full : TileClass::Partial;
    ++counts.boxes;
    counts.exactBoxes += got == truth;
    ASSERT_TRUE(got == truth || got == TileClass::Partial)
        << toFormula(with.program, with.program.mask) << " q=[" << q.lo << "," << q.hi << ") k=["
        << k.lo << "," << k.hi << ") got " << int(got) << " is " << int(truth);
  }
}

TEST(MaskRandom, EveryOperationIsBoundedSoundly) {
  std::mt19937 random(4);
  Counts counts;
  for (int i = static_cast<int>(Op::Add); i <= static_cast<int>(Op::CmpUge); ++i)
    for (ScalarType type : {ScalarType::I8, ScalarType::I64})
      for (int round = 0; round < 400 && !HasFatalFailure(); ++round)
        if (static_cast<Op>(i) != Op::Not)
          checkOperation(random, static_cast<Op>(i), type, counts);
  std::printf("boxes %ld (class exact %ld)\n", counts.boxes, counts.exactBoxes);
  EXPECT_GT(counts.exactBoxes, counts.boxes / 2);
}

TEST(MaskRandom, NamedMasksAreAlwaysExact) {
  Counts counts = check(Wildness::Named, 800, 1);
  EXPECT_EQ(counts.exactRows, counts.rows);
  EXPECT_EQ(counts.exactBoxes, counts.boxes);
  EXPECT_GT(counts.skip, 1000);
  EXPECT_GT(counts.full, 1000);
  EXPECT_GT(counts.partial, 1000);
}

TEST(MaskRandom, ComparisonsAndScans) {
  Counts counts = check(Wildness::Comparisons, 800, 2);
  EXPECT_GT(counts.exactRows, counts.rows * 9 / 10);
}

TEST(MaskRandom, AnyProgramIsBoundedSoundly) {
  Counts counts = check(Wildness::Anything, 1500, 3);
  EXPECT_GT(counts.exactRows, counts.rows / 4);
  EXPECT_LT(counts.exactRows, counts.rows);
  EXPECT_GT(counts.exactBoxes, counts.boxes / 2);
  EXPECT_LT(counts.exactBoxes, counts.boxes);
}

} // namespace
