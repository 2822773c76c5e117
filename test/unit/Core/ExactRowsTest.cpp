// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// hasExactRows(): the promise that rowKeys() answers for every row of every batch.
#include "RandomProgram.h"

#include "attn/Core/MaskEval.h"

#include <gtest/gtest.h>

#include <cstdio>

using namespace attn::core;
using namespace attn::test;

namespace {

using Type = ScalarType;

/// Promise of the mask that `make` builds, over parameters left (i32), big (i64) and x (f32) and
/// tables mm, docs, rows, per_b [b] i32, per_k [b, k] i32.
template <class Make>
bool promised(Make make) {
  ProgramBuilder b;
  b.param("left", Type::I32);
  b.param("big", Type::I64);
  b.param("x", Type::F32);
  b.table("mm", TableKind::Ranges);
  b.table("docs", TableKind::Documents);
  b.table("rows", TableKind::QueryRanges, 0);
  b.plain("per_b", {TableDim::B}, Type::I32);
  b.plain("per_k", {TableDim::B, TableDim::K}, Type::I32);
  b.program.mask = make(b);
  EXPECT_FALSE(verify(b.program)) << *verify(b.program);
  return hasExactRows(b.program);
}

NodeId left(ProgramBuilder &b) { return b.node(Op::Param, Type::I32, {}, 0); }
NodeId big(ProgramBuilder &b) { return b.node(Op::Param, Type::I64, {}, 1); }
NodeId wide(ProgramBuilder &b, NodeId id) { return b.node(Op::SExt, Type::I64, {id}); }
NodeId perK(ProgramBuilder &b) { return b.node(Op::TableLoad, Type::I32, {b.i64(0), b.k()}, 4); }

TEST(ExactRows, NamedMasks) {
  EXPECT_TRUE(hasExactRows(MaskProgram()));
  EXPECT_TRUE(promised([](auto &b) { return b.mask(Op::Causal); }));
  EXPECT_TRUE(promised([](auto &b) { return b.mask(Op::MmPrefix, {}, 0); }));
  EXPECT_TRUE(promised([](auto &b) { return b.mask(Op::MmPrefix, {left(b)}, 0); }));
  EXPECT_TRUE(promised([](auto &b) { return b.mask(Op::Document, {}, 1); }));
  EXPECT_TRUE(promised([](auto &b) { return b.mask(Op::Global, {left(b)}); }));
  EXPECT_TRUE(promised([](auto &b) {
    NodeId rows = b.mask(
        Op::InRows, {b.node(Op::RowLo, Type::I64, {}, 2), b.node(Op::RowHi, Type::I64, {}, 2)});
    NodeId radius = b.node(Op::TableLoad, Type::I32, {b.i64(0)}, 3);
    return b.notOf(b.orOf(b.andOf(b.mask(Op::Causal), b.window(radius)), rows));
  }));
  // A radius that varies with the key.
  EXPECT_FALSE(promised([](auto &b) { return b.window(perK(b)); }));
  EXPECT_FALSE(promised([](auto &b) { return b.orOf(b.mask(Op::Causal), b.window(perK(b))); }));
}

TEST(ExactRows, Comparisons) {
  // q - k <= left, in 64 and in 32 bits.
  EXPECT_TRUE(promised([](auto &b) {
    NodeId d = b.node(Op::Sub, Type::I64, {b.q(), b.k()});
    return b.mask(Op::CmpSle, {d, wide(b, left(b))});
  }));
  EXPECT_TRUE(promised([](auto &b) {
    NodeId q = b.node(Op::Trunc, Type::I32, {b.q()}), k = b.node(Op::Trunc, Type::I32, {b.k()});
    return b.mask(Op::CmpSle, {b.node(Op::Sub, Type::I32, {q, k}), left(b)});
  }));
  // k + left wraps in 32 bits, k + big in 64.
  EXPECT_FALSE(promised([](auto &b) {
    NodeId k = b.node(Op::Trunc, Type::I32, {b.k()}), q = b.node(Op::Trunc, Type::I32, {b.q()});
    return b.mask(Op::CmpSge, {b.node(Op::Add, Type::I32, {k, left(b)}), q});
  }));
  EXPECT_TRUE(promised([](auto &b) {
    return b.mask(Op::CmpSge, {b.node(Op::Add, Type::I64, {b.k(), wide(b, left(b))}), b.q()});
  }));
  EXPECT_FALSE(promised([](auto &b) {
    return b.mask(Op::CmpSge, {b.node(Op::Add, Type::I64, {b.k(), big(b)}), b.q()});
  }));
  EXPECT_TRUE(promised([](auto &b) { return b.mask(Op::CmpSge, {b.k(), big(b)}); }));
  // Blocks of a constant size; a block size that may be 0.
  EXPECT_TRUE(promised([](auto &b) {
    NodeId k = b.node(Op::FloorDivS, Type::I64, {b.k(), b.i64(4)});
    return b.mask(Op::CmpEq, {k, b.node(Op::FloorDivS, Type::I64, {b.q(), b.i64(4)})});
  }));
  EXPECT_FALSE(promised([](auto &b) {
    NodeId k = b.node(Op::FloorDivS, Type::I64, {b.k(), big(b)});
    return b.mask(Op::CmpEq, {k, b.node(Op::FloorDivS, Type::I64, {b.q(), big(b)})});
  }));
  EXPECT_FALSE(promised([](auto &b) {
    return b.mask(Op::CmpEq, {b.node(Op::RemS, Type::I64, {b.k(), b.i64(2)}), b.i64(0)});
  }));
  EXPECT_FALSE(promised([](auto &b) { return b.mask(Op::CmpEq, {perK(b), left(b)}); }));
}

TEST(ExactRows, Floats) {
  auto converted = [](ProgramBuilder &b, NodeId id) { return b.node(Op::SIToFP, Type::F32, {id}); };
  NodeId (*x)(ProgramBuilder &) = [](ProgramBuilder &b) {
    return b.node(Op::Param, Type::F32, {}, 2);
  };
  EXPECT_TRUE(promised([&](auto &b) { return b.mask(Op::FCmpOlt, {converted(b, b.q()), x(b)}); }));
  EXPECT_FALSE(promised([&](auto &b) { return b.mask(Op::FCmpOlt, {converted(b, b.k()), x(b)}); }));
  // Any bound that floats of the row give.
  EXPECT_TRUE(promised([&](auto &b) {
    NodeId bound =
        b.node(Op::FPToSI, Type::I32, {b.node(Op::FMul, Type::F32, {converted(b, b.q()), x(b)})});
    return b.mask(Op::Prefix, {bound});
  }));
}

/// A loop over [lb, ub) that ors `k == i` in.
NodeId anyOf(ProgramBuilder &b, NodeId lb, NodeId ub, NodeId init) {
  NodeId step = b.i64(1);
  NodeId iv = b.node(Op::LoopIndex, Type::I64), acc = b.node(Op::LoopCarried, Type::Bool);
  NodeId any = b.orOf(acc, b.mask(Op::CmpEq, {b.k(), iv}));
  NodeId loop = b.node(Op::For, Type::Bool, {lb, ub, step, init, any}, -1, 1);
  b.program.nodes[iv].ref = b.program.nodes[acc].ref = loop;
  return loop;
}

TEST(ExactRows, Loops) {
  EXPECT_TRUE(promised([](auto &b) { return b.scanRanges(0); }));
  EXPECT_TRUE(promised([](auto &b) { return anyOf(b, b.i64(0), b.i64(65536), b.boolean(false)); }));
  EXPECT_FALSE(
      promised([](auto &b) { return anyOf(b, b.i64(0), b.i64(65537), b.boolean(false)); }));
  EXPECT_FALSE(promised([](auto &b) { return anyOf(b, b.i64(0), b.q(), b.boolean(false)); }));
  EXPECT_FALSE(promised([](auto &b) { return anyOf(b, b.i64(0), b.k(), b.boolean(false)); }));
  // Two loops share what is followed.
  EXPECT_FALSE(promised([](auto &b) {
    NodeId first = anyOf(b, b.i64(0), b.i64(40000), b.boolean(false));
    return anyOf(b, b.i64(0), b.i64(40000), first);
  }));
  // A scan from below 0 may take longer than the ranges last.
  EXPECT_FALSE(promised([](auto &b) {
    NodeId n = b.node(Op::NumRanges, Type::I64, {}, 0);
    return anyOf(b, b.i64(-1000000), n, b.boolean(false));
  }));
  // The carried value turns into the key's.
  EXPECT_FALSE(promised([](auto &b) {
    return anyOf(b, b.i64(0), b.i64(2), b.mask(Op::CmpEq, {perK(b), left(b)}));
  }));
}

TEST(ExactRows, ManyRangesAreFollowed) {
  ProgramBuilder b;
  b.table("mm", TableKind::Ranges);
  b.program.mask = b.scanRanges(0);
  ASSERT_TRUE(hasExactRows(b.program));
  Batch batch;
  const int32_t count = 70000;
  addRequest(batch.shape, 2, 4 * count);
  std::vector<Range> ranges;
  for (int32_t i = 0; i < count; ++i)
    ranges.push_back({4 * i, 4 * i + 3});
  batch.tables = {rangesTable(batch.shape, {ranges})};
  auto keys = MaskEvaluator(b.program, batch)
                  .rowKeys(RequestIndex(0), HeadIndex(0), QueryPos(4 * count - 1));
  ASSERT_TRUE(keys);
  EXPECT_EQ(*keys, IntervalSet(Interval{4 * count - 4, 4 * count}));
}

struct Counts {
  long programs = 0, promised = 0, alwaysExact = 0;
};

Counts check(Wildness wildness, int programs, unsigned seed) {
  std::mt19937 random(seed);
  Counts counts;
  for (int i = 0; i < programs && !testing::Test::HasFatalFailure(); ++i) {
    MaskProgram program = randomProgram(random, wildness);
    bool promise = hasExactRows(program), exact = true;
    for (int j = 0; j < 6; ++j) {
      Batch batch = randomBatch(random, program);
      MaskEvaluator eval(program, batch);
      for (int64_t b = 0; b < batch.shape.numReqs(); ++b)
        for (int64_t h = 0; h < batch.numHeads; ++h)
          for (int64_t q : {-3, -1, 0, 1, 2, 3, 5, 9, 100, int(kPositionLimit) - 1})
            exact = exact && eval.rowKeys(RequestIndex(b), HeadIndex(h), QueryPos(q)).has_value();
    }
    EXPECT_TRUE(exact || !promise) << toFormula(program, program.mask);
    ++counts.programs;
    counts.promised += promise;
    counts.alwaysExact += exact;
  }
  std::printf("programs %ld, promised %ld, exact on all batches %ld\n", counts.programs,
              counts.promised, counts.alwaysExact);
  return counts;
}

TEST(ExactRows, PromisesAreKept) {
  Counts named = check(Wildness::Named, 600, 1);
  EXPECT_EQ(named.promised, named.programs);
  Counts comparisons = check(Wildness::Comparisons, 1500, 2);
  EXPECT_GT(comparisons.promised, comparisons.alwaysExact / 2);
  EXPECT_LT(comparisons.promised, comparisons.programs);
  Counts anything = check(Wildness::Anything, 3000, 3);
  EXPECT_GT(anything.promised, anything.alwaysExact / 4);
}

} // namespace
