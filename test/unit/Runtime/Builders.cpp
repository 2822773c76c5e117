// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Per-query rows against definitions in O(q * k).
#include "attn/Runtime/Builders.h"

#include "TestKernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

using namespace attn;
using namespace attn::core;
using namespace testing_rt;

namespace {

/// Requests with context, more queries than keys, and empty ones among them.
BatchShape randomShape(Random &random) {
  BatchShape shape;
  shape.queryStartLoc = {0};
  for (int64_t b = random.in(0, 6); b > 0; --b) {
    const int64_t queryLen = random.in(0, 3) ? random.in(0, 12) : 0;
    const int64_t seqLen = random.in(0, 30);
    shape.queryStartLoc.push_back(shape.queryStartLoc.back() + queryLen);
    shape.seqLen.push_back(seqLen);
    shape.contextLen.push_back(random.in(0, 4) ? seqLen - queryLen : random.in(-5, 20));
    shape.keyBegin.push_back(0);
    shape.keyEnd.push_back(seqLen);
  }
  return shape;
}

TableData randomRanges(Random &random, const BatchShape &shape) {
  TableData data;
  data.rangeOffsets = {0};
  for (int64_t seqLen : shape.seqLen) {
    for (int64_t n = random.in(0, 6); n > 0 && seqLen > 0; --n) {
      const int32_t start = static_cast<int32_t>(random.in(0, seqLen - 1));
      data.ranges.push_back({start, start + static_cast<int32_t>(random.in(1, 15))});
    }
    data.rangeOffsets.push_back(static_cast<int64_t>(data.ranges.size()));
  }
  return data;
}

TEST(QueryRanges, EqualTheHullOfTheRangesThatHoldQ) {
  Random random(1);
  int64_t rowsSeen = 0, coveredSeen = 0, overlapping = 0;
  for (int round = 0; round < 3000; ++round) {
    const BatchShape shape = randomShape(random);
    const TableData data = randomRanges(random, shape);
    const Range untouched{-77, -77};
    std::vector<Range> rows(shape.numTokens() + 1, untouched);
    const int64_t covered = rt::buildQueryRanges(shape, data, rows.data());

    int64_t expectedCovered = 0;
    std::vector<Range> expected(shape.numTokens() + 1, untouched);
    for (int64_t b = 0; b < shape.numReqs(); ++b)
      for (int64_t t = shape.queryStartLoc[b]; t < shape.queryStartLoc[b + 1]; ++t) {
        const int64_t q = shape.contextLen[b] + t - shape.queryStartLoc[b];
        Range row{-1, -1};
        int holding = 0;
        for (int64_t r = data.rangeOffsets[b]; r < data.rangeOffsets[b + 1]; ++r) {
          const Range &range = data.ranges[r];
          if (q < range.start || q > range.end)
            continue;
          row.start = holding ? std::min(row.start, range.start) : range.start;
          row.end = holding ? std::max(row.end, range.end) : range.end;
          ++holding;
        }
        expected[t] = row;
        expectedCovered += holding > 0;
        overlapping += holding > 1;
      }
    if (expectedCovered == 0)
      std::fill(expected.begin(), expected.end(), untouched);
    ASSERT_EQ(covered, expectedCovered) << "round " << round;
    for (size_t t = 0; t < rows.size(); ++t) {
      ASSERT_EQ(rows[t].start, expected[t].start) << "round " << round << " token " << t;
      ASSERT_EQ(rows[t].end, expected[t].end) << "round " << round << " token " << t;
    }
    rowsSeen += shape.numTokens();
    coveredSeen += covered;
  }
  std::printf("query ranges: 3000 batches, %ld rows, %ld covered, %ld by several ranges\n",
              static_cast<long>(rowsSeen), static_cast<long>(coveredSeen),
              static_cast<long>(overlapping));
  EXPECT_GT(overlapping, 1000);
}

TEST(QueryRanges, OverlapExample) {
  BatchShape shape;
  shape.queryStartLoc = {0, 11};
  shape.seqLen = {11};
  shape.contextLen = {0};
  TableData data;
  data.ranges = {{4, 9}, {1, 5}};
  data.rangeOffsets = {0, 2};
  std::vector<Range> rows(11);
  EXPECT_EQ(rt::buildQueryRanges(shape, data, rows.data()), 9);
  EXPECT_EQ(rows[2].start, 1);
  EXPECT_EQ(rows[2].end, 5);
  EXPECT_EQ(rows[4].start, 1);
  EXPECT_EQ(rows[4].end, 9);
  EXPECT_EQ(rows[7].start, 4);
  EXPECT_EQ(rows[7].end, 9);
  EXPECT_EQ(rows[0].start, -1);
  EXPECT_EQ(rows[10].end, -1);
}

TEST(QueryRanges, LargestPositions) {
  BatchShape shape;
  shape.queryStartLoc = {0, 2};
  shape.seqLen = {kPositionLimit - 1};
  shape.contextLen = {kPositionLimit - 3};
  TableData data;
  data.ranges = {{0, kPositionLimit - 1}, {5, INT32_MAX}};
  data.rangeOffsets = {0, 2};
  std::vector<Range> rows(2);
  EXPECT_EQ(rt::buildQueryRanges(shape, data, rows.data()), 2);
  EXPECT_EQ(rows[1].start, 0);
  EXPECT_EQ(rows[1].end, INT32_MAX);
}

TEST(DocumentRows, EqualTheExtentOfTheDocumentOfQ) {
  Random random(2);
  for (int round = 0; round < 2000; ++round) {
    const BatchShape shape = randomShape(random);
    TableData data;
    data.documentOffsets = {0};
    for (int64_t seqLen : shape.seqLen) {
      int32_t id = static_cast<int32_t>(random.in(-3, 3));
      for (int64_t k = 0; k < seqLen; ++k) {
        if (random.in(0, 4) == 0)
          id += static_cast<int32_t>(random.in(1, 5));
        data.documents.push_back(id);
      }
      data.documentOffsets.push_back(static_cast<int64_t>(data.documents.size()));
    }
    const Range untouched{-77, -77};
    std::vector<Range> rows(shape.numTokens() + 1, untouched);
    const int64_t covered = rt::buildDocumentRows(shape, data, rows.data());
    std::vector<Range> expected(shape.numTokens() + 1, untouched);
    int64_t expectedCovered = 0;
    for (int64_t b = 0; b < shape.numReqs(); ++b)
      for (int64_t t = shape.queryStartLoc[b]; t < shape.queryStartLoc[b + 1]; ++t) {
        const int64_t q = shape.contextLen[b] + t - shape.queryStartLoc[b];
        Range row{-1, -1};
        for (int64_t k = 0; q >= 0 && q < shape.seqLen[b] && k < shape.seqLen[b]; ++k) {
          const int32_t *ids = &data.documents[data.documentOffsets[b]];
          if (ids[k] != ids[q])
            continue;
          row.start = row.start < 0 ? static_cast<int32_t>(k) : row.start;
          row.end = static_cast<int32_t>(k);
        }
        expected[t] = row;
        expectedCovered += row.start >= 0;
      }
    if (expectedCovered == 0)
      std::fill(expected.begin(), expected.end(), untouched);
    ASSERT_EQ(covered, expectedCovered) << "round " << round;
    for (size_t t = 0; t < rows.size(); ++t) {
      ASSERT_EQ(rows[t].start, expected[t].start) << "round " << round << " token " << t;
      ASSERT_EQ(rows[t].end, expected[t].end) << "round " << round << " token " << t;
    }
  }
}

TEST(BuildTables, FillsEveryBuiltTable) {
  BatchShape shape;
  shape.queryStartLoc = {0, 3};
  shape.seqLen = {3};
  shape.contextLen = {0};
  std::vector<TableDecl> decls(4);
  decls[0].kind = TableKind::Ranges;
  decls[1].kind = TableKind::Documents;
  decls[2].kind = decls[3].kind = TableKind::QueryRanges;
  decls[2].source = 0;
  decls[3].source = 1;
  std::vector<TableData> tables(2);
  tables[0].rangeOffsets = {0, 0}; // covers nothing: rows are still there for code to read
  tables[1].documents = {4, 4, 9};
  tables[1].documentOffsets = {0, 3};
  rt::buildTables(shape, decls, tables);
  ASSERT_EQ(tables.size(), 4u);
  ASSERT_EQ(tables[2].rows.size(), 3u);
  for (const Range &row : tables[2].rows)
    EXPECT_TRUE(row.start == -1 && row.end == -1);
  ASSERT_EQ(tables[3].rows.size(), 3u);
  EXPECT_EQ(tables[3].rows[1].start, 0);
  EXPECT_EQ(tables[3].rows[1].end, 1);
  EXPECT_EQ(tables[3].rows[2].start, 2);
}

TEST(AlibiSlopes, PowersOfTwoAndOthers) {
  std::vector<float> slopes = rt::alibiSlopes(8, 4, 4);
  ASSERT_EQ(slopes.size(), 4u);
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(slopes[i], std::ldexp(1.0f, -(5 + i)));
  // 6 heads: the 4 slopes of 4 heads, then the first and third of 8 heads.
  slopes = rt::alibiSlopes(6, 0, 6);
  const float expected[] = {0.25f, 0.0625f, 0.015625f, 0.00390625f, 0.5f, 0.125f};
  for (int i = 0; i < 6; ++i)
    EXPECT_FLOAT_EQ(slopes[i], expected[i]);
  EXPECT_FLOAT_EQ(rt::alibiSlopes(16, 0, 1)[0], std::exp2(-0.5f));
}

} // namespace
