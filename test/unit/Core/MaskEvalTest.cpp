// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The named masks, loops, tables and scores on small cases worked out by hand, and the analyses
// where their exact outcome is promised.
#include "ProgramBuilder.h"

#include "attn/Core/MaskEval.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace attn::core;
using namespace attn::test;

namespace {

using Type = ScalarType;

std::string row(MaskEvaluator &evaluator, int64_t b, int64_t q, int64_t keys, int64_t h = 0) {
  std::string text;
  for (int64_t k = 0; k < keys; ++k)
    text += evaluator.keep(RequestIndex(b), HeadIndex(h), QueryPos(q), KeyPos(k)) ? 'x' : '.';
  return text;
}

IntervalSet keysOf(MaskEvaluator &evaluator, int64_t b, int64_t q) {
  std::optional<IntervalSet> keys = evaluator.rowKeys(RequestIndex(b), HeadIndex(0), QueryPos(q));
  EXPECT_TRUE(keys);
  return keys.value_or(IntervalSet());
}

TEST(MaskEval, NoMaskKeepsEverything) {
  ProgramBuilder build;
  Batch batch;
  addRequest(batch.shape, 2, 3);
  MaskEvaluator evaluator(build.program, batch);
  EXPECT_EQ(row(evaluator, 0, 1, 3), "xxx");
  EXPECT_EQ(keysOf(evaluator, 0, 1), IntervalSet::all());
  EXPECT_EQ(evaluator.classify(RequestIndex(0), HeadIndex(0), {0, 2}, {0, 3}), TileClass::Full);
  EXPECT_EQ(evaluator.score(1.5, RequestIndex(0), HeadIndex(0), QueryPos(0), KeyPos(0)), 1.5);
}

TEST(MaskEval, CausalWindowOrRanges) {
  // ranges [1,5] and [4,9] overlap: q=2 sees 1..5, q=4 sees 1..9, q=7 sees 4..9.
  ProgramBuilder build;
  int32_t mm = build.table("mm", TableKind::Ranges);
  NodeId left = build.node(Op::Param, Type::I32, {}, build.param("left", Type::I32));
  NodeId window = build.andOf(build.mask(Op::Causal), build.window(left));
  build.program.mask = build.orOf(window, build.mask(Op::MmPrefix, {}, mm));
  ASSERT_FALSE(verify(build.program));
  Batch batch;
  batch.params = {{1, 0}};
  addRequest(batch.shape, 12, 12);
  batch.tables = {rangesTable(batch.shape, {{{1, 5}, {4, 9}}})};
  MaskEvaluator evaluator(build.program, batch);
  EXPECT_EQ(row(evaluator, 0, 0, 12), "x...........");
  EXPECT_EQ(row(evaluator, 0, 2, 12), ".xxxxx......");
  EXPECT_EQ(row(evaluator, 0, 4, 12), ".xxxxxxxxx..");
  EXPECT_EQ(row(evaluator, 0, 7, 12), "....xxxxxx..");
  EXPECT_EQ(row(evaluator, 0, 10, 12), ".........xx.");
  EXPECT_EQ(row(evaluator, 0, 11, 12), "..........xx");
  EXPECT_EQ(keysOf(evaluator, 0, 4), IntervalSet(Interval{1, 10}));
  EXPECT_EQ(keysOf(evaluator, 0, 11), IntervalSet(Interval{10, 12}));
}

TEST(MaskEval, ClampCutsThePastSideOnly) {
  ProgramBuilder build;
  int32_t mm = build.table("mm", TableKind::Ranges);
  build.program.mask = build.mask(Op::MmPrefix, {build.i32(2)}, mm);
  Batch batch;
  addRequest(batch.shape, 8, 8);
  batch.tables = {rangesTable(batch.shape, {{{0, 6}}})};
  MaskEvaluator evaluator(build.program, batch);
  EXPECT_EQ(row(evaluator, 0, 4, 8), "..xxxxx.");
  EXPECT_EQ(row(evaluator, 0, 7, 8), "........");
}

TEST(MaskEval, HugeAndNegativeRadiiAreExact) {
  for (int64_t radius : {INT64_MAX, kPositionLimit, int64_t(0), int64_t(-1), INT64_MIN}) {
    ProgramBuilder build;
    NodeId r = build.i64(radius);
    build.program.mask = build.mask(Op::Window, {r, r}, -1, 3);
    Batch batch;
    addRequest(batch.shape, 3, 3);
    MaskEvaluator evaluator(build.program, batch);
    for (int64_t q : {-5, 0, 2})
      for (int64_t k : {int64_t(-6), int64_t(0), int64_t(2), kPositionLimit - 1}) {
        bool expected = q - k <= radius && k - q <= radius;
        EXPECT_EQ(evaluator.keep(RequestIndex(0), HeadIndex(0), QueryPos(q), KeyPos(k)), expected);
        EXPECT_EQ(keysOf(evaluator, 0, q).contains(k), expected) << radius << " " << q << " " << k;
      }
  }
}

TEST(MaskEval, DocumentsOfSeveralRequests) {
  ProgramBuilder build;
  int32_t docs = build.table("docs", TableKind::Documents);
  build.program.mask = build.mask(Op::Document, {}, docs);
  Batch batch;
  addRequest(batch.shape, 2, 4);
  addRequest(batch.shape, 3, 3);
  batch.tables = {documentsTable({{7, 7, 8, 8}, {8, 9, 9}})};
  MaskEvaluator evaluator(build.program, batch);
  EXPECT_EQ(row(evaluator, 0, 2, 5), "..xx.");
  EXPECT_EQ(row(evaluator, 1, 0, 4), "x...");
  EXPECT_EQ(row(evaluator, 1, 2, 4), ".xx.");
  EXPECT_EQ(row(evaluator, 1, 3, 4), "...."); // past the table: no document
  EXPECT_EQ(row(evaluator, 1, -1, 4), "....");
  EXPECT_TRUE(keysOf(evaluator, 1, 3).empty());
}

TEST(MaskEval, TokenIsNotQ) {
  // per-token table: with a second request and context, token and q differ.
  ProgramBuilder build;
  int32_t limit = build.plain("limit", {TableDim::Token}, Type::I32);
  NodeId n = build.node(Op::TableLoad, Type::I32, {build.q()}, limit);
  build.program.mask = build.mask(Op::Prefix, {n});
  ASSERT_FALSE(verify(build.program));
  Batch batch;
  addRequest(batch.shape, 2, 2);
  addRequest(batch.shape, 2, 6);
  batch.tables = {plainTable<int32_t>({4}, {1, 2, 3, 4})};
  MaskEvaluator evaluator(build.program, batch);
  EXPECT_EQ(row(evaluator, 0, 0, 6), "x.....");
  EXPECT_EQ(row(evaluator, 1, 4, 6), "xxx...");
  EXPECT_EQ(row(evaluator, 1, 5, 6), "xxxx..");
  EXPECT_EQ(row(evaluator, 0, 1, 6), "xx....");
}

TEST(MaskEval, HandWrittenScanIsAnIntervalSet) {
  ProgramBuilder build;
  int32_t mm = build.table("mm", TableKind::Ranges);
  build.program.mask = build.scanRanges(mm);
  ASSERT_FALSE(verify(build.program)) << *verify(build.program);
  Batch batch;
  addRequest(batch.shape, 12, 12);
  batch.tables = {rangesTable(batch.shape, {{{1, 5}, {4, 9}}})};
  MaskEvaluator evaluator(build.program, batch);
  EXPECT_EQ(row(evaluator, 0, 4, 12), ".xxxxxxxxx..");
  EXPECT_EQ(row(evaluator, 0, 0, 12), "............");
  EXPECT_EQ(keysOf(evaluator, 0, 4), IntervalSet(Interval{1, 10}));
}

TEST(MaskEval, LoopCarriesSeveralValuesAtOnce) {
  // (a, b) = (b, a + i) over i in [0, 5): a yield must not see this iteration's other yield.
  ProgramBuilder build;
  NodeId lb = build.i64(0), ub = build.i64(5), step = build.i64(1), one = build.i64(1);
  NodeId iv = build.node(Op::LoopIndex, Type::I64);
  NodeId a = build.node(Op::LoopCarried, Type::I64, {}, -1, 0);
  NodeId b = build.node(Op::LoopCarried, Type::I64, {}, -1, 1);
  NodeId sum = build.node(Op::Add, Type::I64, {a, iv});
  NodeId loop = build.node(Op::For, Type::I64, {lb, ub, step, lb, one, b, sum}, -1, 2);
  for (NodeId leaf : {iv, a, b})
    build.program.nodes[leaf].ref = loop;
  NodeId second = build.node(Op::ForResult, Type::I64, {}, loop, 1);
  NodeId product = build.node(Op::Mul, Type::I64, {loop, build.i64(1000)});
  NodeId all = build.node(Op::Add, Type::I64, {product, second});
  build.program.mask = build.mask(Op::CmpEq, {all, build.k()});
  ASSERT_FALSE(verify(build.program)) << *verify(build.program);
  int64_t x = 0, y = 1;
  for (int64_t i = 0; i < 5; ++i) {
    int64_t next = x + i;
    x = y;
    y = next;
  }
  Batch batch;
  addRequest(batch.shape, 1, 1);
  MaskEvaluator evaluator(build.program, batch);
  EXPECT_EQ(keysOf(evaluator, 0, 0), IntervalSet(Interval{x * 1000 + y, x * 1000 + y + 1}));
  EXPECT_TRUE(evaluator.keep(RequestIndex(0), HeadIndex(0), QueryPos(0), KeyPos(x * 1000 + y)));
}

TEST(MaskEval, LoopsMaySwapTheirValues) {
  for (int64_t turns = 0; turns < 4; ++turns) {
    ProgramBuilder build;
    NodeId lb = build.i64(0), ub = build.i64(turns), step = build.i64(1);
    NodeId three = build.i64(3), seven = build.i64(7);
    NodeId a = build.node(Op::LoopCarried, Type::I64, {}, -1, 0);
    NodeId b = build.node(Op::LoopCarried, Type::I64, {}, -1, 1);
    NodeId loop = build.node(Op::For, Type::I64, {lb, ub, step, three, seven, b, a}, -1, 2);
    build.program.nodes[a].ref = build.program.nodes[b].ref = loop;
    NodeId second = build.node(Op::ForResult, Type::I64, {}, loop, 1);
    NodeId difference = build.node(Op::Sub, Type::I64, {second, loop});
    build.program.mask = build.mask(Op::CmpEq, {difference, build.k()});
    ASSERT_FALSE(verify(build.program)) << *verify(build.program);
    Batch batch;
    addRequest(batch.shape, 1, 1);
    MaskEvaluator evaluator(build.program, batch);
    int64_t expected = turns % 2 == 0 ? 4 : -4;
    EXPECT_EQ(keysOf(evaluator, 0, 0), IntervalSet(Interval{expected, expected + 1}));
    EXPECT_TRUE(evaluator.keep(RequestIndex(0), HeadIndex(0), QueryPos(0), KeyPos(expected)));
  }
}

TEST(MaskEval, LoopBoundsAtTheEndOfInt64) {
  ProgramBuilder build;
  NodeId lb = build.i64(INT64_MAX - 3), ub = build.i64(INT64_MAX), step = build.i64(2);
  NodeId iv = build.node(Op::LoopIndex, Type::I64), zero = build.i64(0), one = build.i64(1);
  NodeId count = build.node(Op::LoopCarried, Type::I64);
  NodeId more = build.node(Op::Add, Type::I64, {count, one});
  NodeId loop = build.node(Op::For, Type::I64, {lb, ub, step, zero, more}, -1, 1);
  build.program.nodes[iv].ref = build.program.nodes[count].ref = loop;
  build.program.mask = build.mask(Op::CmpEq, {loop, build.k()});
  Batch batch;
  addRequest(batch.shape, 1, 1);
  MaskEvaluator evaluator(build.program, batch);
  EXPECT_EQ(row(evaluator, 0, 0, 4), "..x.");
  EXPECT_EQ(keysOf(evaluator, 0, 0), IntervalSet(Interval{2, 3}));
}

TEST(MaskEval, ChunkedAttentionIsExact) {
  // q / 4 == k / 4 and causal: rows are intervals although the mask divides.
  ProgramBuilder build;
  NodeId four = build.i64(4);
  NodeId same = build.mask(Op::CmpEq, {build.node(Op::FloorDivS, Type::I64, {build.k(), four}),
                                       build.node(Op::FloorDivS, Type::I64, {build.q(), four})});
  build.program.mask = build.andOf(same, build.mask(Op::Causal));
  Batch batch;
  addRequest(batch.shape, 12, 12);
  MaskEvaluator evaluator(build.program, batch);
  EXPECT_EQ(row(evaluator, 0, 6, 12), "....xxx.....");
  EXPECT_EQ(keysOf(evaluator, 0, 6), IntervalSet(Interval{4, 7}));
  EXPECT_EQ(evaluator.classify(RequestIndex(0), HeadIndex(0), {4, 8}, {0, 4}), TileClass::Skip);
  EXPECT_EQ(evaluator.classify(RequestIndex(0), HeadIndex(0), {7, 8}, {4, 8}), TileClass::Full);
}

TEST(MaskEval, ClassesByAbstractEvaluationWhereRowsAreNotIntervals) {
  // k % 2 == 0 is no interval set; combined with causal, whole tiles are still told apart.
  ProgramBuilder build;
  NodeId even = build.mask(
      Op::CmpEq, {build.node(Op::RemS, Type::I64, {build.k(), build.i64(2)}), build.i64(0)});
  build.program.mask = build.andOf(even, build.mask(Op::Causal));
  Batch batch;
  addRequest(batch.shape, 64, 64);
  MaskEvaluator evaluator(build.program, batch);
  RequestIndex b(0);
  HeadIndex h(0);
  EXPECT_FALSE(evaluator.rowKeys(b, h, QueryPos(9)));
  EXPECT_EQ(evaluator.rowKeysBound(b, h, QueryPos(9)), IntervalSet(Interval{-kPositionLimit, 10}));
  EXPECT_EQ(evaluator.classify(b, h, {0, 16}, {16, 32}), TileClass::Skip);
  EXPECT_EQ(evaluator.classify(b, h, {16, 32}, {0, 16}), TileClass::Partial);
  EXPECT_EQ(evaluator.classify(b, h, {16, 32}, {4, 5}), TileClass::Full);
  EXPECT_EQ(evaluator.classify(b, h, {16, 32}, {5, 6}), TileClass::Skip);
}

TEST(MaskEval, ClassesOfPredicatesOverTables) {
  // keep = flag[k] > 0: tiles are bounded by the addressed part of the table.
  ProgramBuilder build;
  int32_t flags = build.plain("flags", {TableDim::K}, Type::I8);
  NodeId flag = build.node(Op::TableLoad, Type::I8, {build.k()}, flags);
  build.program.mask = build.mask(Op::CmpSgt, {flag, build.program.constant(Type::I8, 0)});
  Batch batch;
  addRequest(batch.shape, 4, 8);
  batch.tables = {plainTable<int8_t>({8}, {1, 1, 2, 0, 0, -1, 3, 3})};
  MaskEvaluator evaluator(build.program, batch);
  RequestIndex b(0);
  HeadIndex h(0);
  EXPECT_EQ(evaluator.classify(b, h, {0, 4}, {0, 3}), TileClass::Full);
  EXPECT_EQ(evaluator.classify(b, h, {0, 4}, {3, 6}), TileClass::Skip);
  EXPECT_EQ(evaluator.classify(b, h, {0, 4}, {5, 8}), TileClass::Partial);
  EXPECT_EQ(evaluator.classify(b, h, {0, 4}, {8, 12}), TileClass::Skip); // outside loads 0
  EXPECT_EQ(evaluator.classify(b, h, {0, 0}, {0, 3}), TileClass::Skip);
  EXPECT_EQ(evaluator.classify(b, h, {0, 4}, {3, 3}), TileClass::Skip);
}

TEST(MaskEval, HeadsHaveTheirOwnRows) {
  ProgramBuilder build;
  int32_t sizes = build.plain("sizes", {TableDim::H}, Type::I32);
  int32_t groups = build.plain("groups", {TableDim::HKv}, Type::I32);
  NodeId w = build.window(build.node(Op::TableLoad, Type::I32, {build.q()}, sizes));
  NodeId n = build.mask(Op::Prefix, {build.node(Op::TableLoad, Type::I32, {build.q()}, groups)});
  build.program.mask = build.andOf(w, n);
  Batch batch;
  batch.numHeads = 4;
  batch.numKvHeads = 2;
  addRequest(batch.shape, 6, 6);
  batch.tables = {plainTable<int32_t>({4}, {0, 1, 2, 3}), plainTable<int32_t>({2}, {6, 5})};
  MaskEvaluator evaluator(build.program, batch);
  EXPECT_EQ(row(evaluator, 0, 5, 6, 0), ".....x");
  EXPECT_EQ(row(evaluator, 0, 5, 6, 1), "....xx");
  EXPECT_EQ(row(evaluator, 0, 5, 6, 2), "...xx.");
  EXPECT_EQ(row(evaluator, 0, 5, 6, 3), "..xxx.");
  EXPECT_EQ(row(evaluator, 0, 5, 6, 0), ".....x");
  for (int64_t h = 0; h < 4; ++h)
    EXPECT_EQ(evaluator.classify(RequestIndex(0), HeadIndex(h), {5, 6}, {4, 5}),
              h == 0 ? TileClass::Skip : TileClass::Full);
}

TEST(MaskEval, QueryRangesByDefinition) {
  ProgramBuilder build;
  int32_t mm = build.table("mm", TableKind::Ranges);
  int32_t docs = build.table("docs", TableKind::Documents);
  int32_t rows = build.table("rows", TableKind::QueryRanges, mm);
  int32_t extents = build.table("extents", TableKind::QueryRanges, docs);
  Batch batch;
  addRequest(batch.shape, 10, 10);
  batch.tables.resize(4);
  batch.tables[0] = rangesTable(batch.shape, {{{1, 5}, {4, 9}, {7, 7}, {20, 30}}});
  batch.tables[1] = documentsTable({{3, 3, 3, 5, 5, 5, 5, 5, 6, 6}});
  auto range = [&](int32_t table, int64_t q) {
    return queryRangeByDefinition(build.program, batch, table, RequestIndex(0), QueryPos(q));
  };
  EXPECT_EQ(range(rows, 0), Interval::none());
  EXPECT_EQ(range(rows, 2), (Interval{1, 6}));
  EXPECT_EQ(range(rows, 4), (Interval{1, 10}));
  EXPECT_EQ(range(rows, 7), (Interval{4, 10}));
  EXPECT_EQ(range(extents, 0), (Interval{0, 3}));
  EXPECT_EQ(range(extents, 7), (Interval{3, 8}));
  EXPECT_EQ(range(extents, 10), Interval::none());
  EXPECT_EQ(range(extents, -1), Interval::none());
}

TEST(MaskEval, Scores) {
  ProgramBuilder build;
  NodeId s = build.node(Op::Score, Type::F32);
  NodeId capped = build.node(Op::SoftCap, Type::F32, {s, build.f32(20)});
  int32_t slopes = build.plain("slopes", {TableDim::H}, Type::F32);
  NodeId slope = build.node(Op::TableLoad, Type::F32, {build.q()}, slopes);
  build.program.score = build.node(Op::Alibi, Type::F32, {capped, slope});
  ASSERT_FALSE(verify(build.program));
  Batch batch;
  batch.numHeads = batch.numKvHeads = 2;
  addRequest(batch.shape, 8, 8);
  batch.tables = {plainTable<float>({2}, {0.5f, 0.25f})};
  MaskEvaluator evaluator(build.program, batch);
  for (int64_t h : {0, 1})
    for (int64_t k : {1, 6})
      EXPECT_EQ(evaluator.score(7, RequestIndex(0), HeadIndex(h), QueryPos(4), KeyPos(k)),
                20 * std::tanh(7.0 / 20) - (h == 0 ? 0.5 : 0.25) * std::fabs(4.0 - double(k)));
}

TEST(MaskEval, BatchesWithOwnTablesCanBeCopied) {
  ProgramBuilder build;
  int32_t limit = build.plain("limit", {TableDim::B}, Type::I32);
  build.program.mask =
      build.mask(Op::Prefix, {build.node(Op::TableLoad, Type::I32, {build.q()}, limit)});
  auto make = [&] {
    Batch batch;
    addRequest(batch.shape, 1, 4);
    batch.tables = {plainTable<int32_t>({1}, {2})};
    return batch;
  };
  auto original = std::make_unique<Batch>(make());
  Batch copy = *original, assigned;
  assigned = *original;
  EXPECT_NE(copy.tables[0].data, original->tables[0].data);
  original.reset();
  for (const Batch &batch : {copy, assigned}) {
    MaskEvaluator evaluator(build.program, batch);
    EXPECT_EQ(row(evaluator, 0, 3, 4), "xx..");
  }
}

} // namespace
