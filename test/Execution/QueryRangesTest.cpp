// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The per-query tables: hull semantics by naive code, the scan where ranges are disjoint, nothing
// of a poisoned buffer in reported rows, and the fused mask that reads them.
#include "FieldSupport.h"

#include "attn/Runtime/Builders.h"

#include "gtest/gtest.h"

#include <random>

using namespace attn;
using namespace attn::core;
using truth::Int;

namespace {

constexpr Range kPoison = {-777, 123456789};

bool same(const Range &a, const Range &b) { return a.start == b.start && a.end == b.end; }

BatchShape shapeOf(const std::vector<truth::Request> &requests) {
  BatchShape shape;
  shape.queryStartLoc.push_back(0);
  for (const truth::Request &r : requests) {
    shape.queryStartLoc.push_back(shape.queryStartLoc.back() + r.queryLen);
    shape.seqLen.push_back(r.seqLen);
    shape.contextLen.push_back(r.contextLen);
    shape.keyBegin.push_back(0);
    shape.keyEnd.push_back(r.seqLen);
  }
  return shape;
}

TableData rangesOf(const std::vector<truth::Request> &requests) {
  TableData table;
  table.rangeOffsets.push_back(0);
  for (const truth::Request &r : requests) {
    for (const truth::Range &range : r.ranges)
      if (truth::live(r, range))
        table.ranges.push_back(
            {static_cast<int32_t>(range.start), static_cast<int32_t>(range.end)});
    table.rangeOffsets.push_back(static_cast<int64_t>(table.ranges.size()));
  }
  return table;
}

/// The first start and the last end of the ranges that hold q.
Range naiveHull(const truth::Request &r, Int q) {
  Range row = {-1, -1};
  for (const truth::Range &range : r.ranges) {
    if (!truth::live(r, range) || q < range.start || q > range.end)
      continue;
    if (row.start == -1 || range.start < row.start)
      row.start = static_cast<int32_t>(range.start);
    if (range.end > row.end)
      row.end = static_cast<int32_t>(range.end);
  }
  return row;
}

/// The first range that holds q: what a scan that stops at its first hit finds.
Range firstMatch(const truth::Request &r, Int q) {
  for (const truth::Range &range : r.ranges)
    if (truth::live(r, range) && range.start <= q && q <= range.end)
      return {static_cast<int32_t>(range.start), static_cast<int32_t>(range.end)};
  return {-1, -1};
}

std::vector<truth::Request> randomBatch(std::mt19937 &rng, bool disjoint) {
  std::vector<truth::Request> requests;
  for (unsigned n = rng() % 5; n > 0; --n) {
    truth::Request r = truth::request(rng() % 40, rng() % 60);
    if (rng() % 3 == 0)
      r.contextLen = Int(rng() % 30) - 5;
    Int next = rng() % 4;
    for (unsigned i = rng() % 6; i > 0; --i) {
      Int start = disjoint ? next : rng() % 60;
      Int end = start + Int(rng() % 12) - (disjoint ? 0 : 1);
      next = end + 1 + Int(rng() % 5);
      r.ranges.push_back({start, end});
    }
    std::shuffle(r.ranges.begin(), r.ranges.end(), rng);
    requests.push_back(r);
  }
  return requests;
}

} // namespace

TEST(QueryRanges, EqualsTheHullOnRandomBatches) {
  std::mt19937 rng(5);
  int64_t rowsChecked = 0;
  int64_t emptyBatches = 0;
  for (int round = 0; round < 4000; ++round) {
    const bool disjoint = round % 2;
    const std::vector<truth::Request> requests = randomBatch(rng, disjoint);
    const BatchShape shape = shapeOf(requests);
    const int64_t tokens = shape.numTokens();
    std::vector<Range> rows(tokens + 4, kPoison);
    const int64_t covered = rt::buildQueryRanges(shape, rangesOf(requests), rows.data());
    int64_t expectedCovered = 0;
    for (const truth::Request &r : requests)
      for (Int i = 0; i < r.queryLen; ++i)
        expectedCovered += naiveHull(r, r.contextLen + i).start != -1;
    ASSERT_EQ(covered, expectedCovered) << "round " << round;
    for (int64_t i = tokens; i < tokens + 4; ++i)
      ASSERT_TRUE(same(rows[i], kPoison)) << "wrote past the last row, round " << round;
    if (covered == 0) {
      ++emptyBatches;
      for (const Range &row : rows)
        ASSERT_TRUE(same(row, kPoison)) << "touched the buffer without a covered row";
      continue;
    }
    int64_t token = 0;
    for (const truth::Request &r : requests)
      for (Int i = 0; i < r.queryLen; ++i, ++token, ++rowsChecked) {
        const Range want = naiveHull(r, r.contextLen + i);
        ASSERT_TRUE(same(rows[token], want))
            << "round " << round << " token " << token << ": expected (" << want.start << ", "
            << want.end << "), got (" << rows[token].start << ", " << rows[token].end << ")";
        if (disjoint) {
          ASSERT_TRUE(same(rows[token], firstMatch(r, r.contextLen + i)))
              << "disjoint ranges: not what the scan finds";
        }
      }
  }
  std::printf("%lld rows compared, %lld batches without a covered row\n",
              static_cast<long long>(rowsChecked), static_cast<long long>(emptyBatches));
  EXPECT_GT(rowsChecked, 50000);
  EXPECT_GT(emptyBatches, 100);
}

TEST(QueryRanges, OverlappingRangesGiveTheirUnion) {
  truth::Request r = truth::request(10, 10);
  r.ranges = {{1, 5}, {4, 9}};
  std::vector<Range> rows(10, kPoison);
  EXPECT_EQ(rt::buildQueryRanges(shapeOf({r}), rangesOf({r}), rows.data()), 9);
  EXPECT_TRUE(same(rows[0], {-1, -1}));
  EXPECT_TRUE(same(rows[2], {1, 5}));
  EXPECT_TRUE(same(rows[4], {1, 9}));
  EXPECT_TRUE(same(rows[7], {4, 9}));
  // Touching ranges are not merged.
  r.ranges = {{0, 3}, {4, 8}};
  EXPECT_EQ(rt::buildQueryRanges(shapeOf({r}), rangesOf({r}), rows.data()), 9);
  EXPECT_TRUE(same(rows[3], {0, 3}));
  EXPECT_TRUE(same(rows[4], {4, 8}));
}

TEST(QueryRanges, DocumentRowsAreTheExtentOfTheDocument) {
  std::mt19937 rng(6);
  int64_t rowsChecked = 0;
  for (int round = 0; round < 1000; ++round) {
    std::vector<truth::Request> requests;
    TableData table;
    table.documentOffsets.push_back(0);
    for (unsigned n = 1 + rng() % 3; n > 0; --n) {
      truth::Request r = truth::request(rng() % 30, rng() % 40);
      if (rng() % 3 == 0)
        r.contextLen = Int(rng() % 20) - 5;
      int id = static_cast<int>(rng() % 9);
      for (Int k = 0; k < r.seqLen; ++k) {
        id += rng() % 5 == 0;
        r.documents.push_back(id);
      }
      table.documents.insert(table.documents.end(), r.documents.begin(), r.documents.end());
      table.documentOffsets.push_back(static_cast<int64_t>(table.documents.size()));
      requests.push_back(r);
    }
    const BatchShape shape = shapeOf(requests);
    std::vector<Range> rows(shape.numTokens() + 4, kPoison);
    const int64_t covered = rt::buildDocumentRows(shape, table, rows.data());
    for (size_t i = shape.numTokens(); i < rows.size(); ++i)
      ASSERT_TRUE(same(rows[i], kPoison)) << "wrote past the last row, round " << round;
    int64_t expectedCovered = 0;
    int64_t token = 0;
    for (const truth::Request &r : requests)
      for (Int q = r.contextLen; q < r.contextLen + r.queryLen; ++q, ++token) {
        Range want = {-1, -1};
        for (Int k = 0; k < r.seqLen; ++k)
          if (truth::document(r, q, k)) {
            want.start = static_cast<int32_t>(want.start == -1 ? k : want.start);
            want.end = static_cast<int32_t>(k);
          }
        expectedCovered += want.start != -1;
        if (covered > 0) {
          ASSERT_TRUE(same(rows[token], want)) << "round " << round << " token " << token;
        }
        ++rowsChecked;
      }
    ASSERT_EQ(covered, expectedCovered);
  }
  EXPECT_GT(rowsChecked, 10000);
}

/// A text row with q > W beside a row in a range keeps its window: the marker (-1, -1) must not
/// take part in min and max as if it were a position.
TEST(QueryRanges, TextRowBesideARangeKeepsItsWindow) {
  for (bool clamp : {false, true}) {
    truth::Request r = truth::request(12, 12);
    r.ranges = {{5, 8}};
    field::Rows rows(1);
    for (Int q = 0; q < 12; ++q) {
      Int lo = q < 2 ? 0 : q - 2;
      if (q >= 5 && q <= 8)
        rows[0].push_back({{clamp ? lo : std::min<Int>(lo, 5), 8}});
      else
        rows[0].push_back({{lo, q}});
    }
    field::expectRows(
        field::kernel("heads(2) kv_heads(1) dim(16) q(f32) kv(f32) params(%left: i32) "
                      "tables(%mm: !attn.ranges)",
                      std::string("    %c = attn.causal %q, %k\n"
                                  "    %w = attn.window %q, %k left(%left)\n"
                                  "    %cw = attn.and %c, %w\n"
                                  "    %r = attn.mm_prefix %mm, %b, %q, %k") +
                          (clamp ? " clamp(%left)" : "") + "\n    %m = attn.or %cw, %r\n"),
        {{r, truth::request(3, 9)}, {{"left", 2}}, {}}, {rows[0], {{{4, 6}}, {{5, 7}}, {{6, 8}}}});
  }
}
