// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tile records against predicates written here, counted pair by pair.
#include "attn/Runtime/Builders.h"

#include "TestKernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <functional>

using namespace attn;
using namespace attn::core;
using namespace testing_rt;

namespace {

struct Setting {
  int64_t left = 0, n = 0;
};
using Predicate =
    std::function<bool(const Batch &, const Setting &, int64_t b, int64_t h, int64_t q, int64_t k)>;

struct Mask {
  const char *name;
  bool exact;
  std::function<NodeId(MaskProgram &)> build;
  Predicate keep;
};

NodeId causalWindow(MaskProgram &p) {
  return add(p, Op::And, {add(p, Op::Causal), add(p, Op::Window, {param(p, 0)}, -1, 1)});
}

bool inRange(const Batch &batch, int64_t b, int64_t q, int64_t k) {
  const TableData &mm = batch.tables[0];
  for (int64_t r = mm.rangeOffsets[b]; r < mm.rangeOffsets[b + 1]; ++r) {
    const Range &range = mm.ranges[r];
    if (range.start <= q && q <= range.end && range.start <= k && k <= range.end)
      return true;
  }
  return false;
}

const Mask kMasks[] = {
    {"none", true, [](MaskProgram &) { return NodeId(-1); },
     [](const Batch &, const Setting &, int64_t, int64_t, int64_t, int64_t) { return true; }},
    {"window or ranges", true,
     [](MaskProgram &p) {
       return add(p, Op::Or, {causalWindow(p), add(p, Op::MmPrefix, {}, 0)});
     },
     [](const Batch &batch, const Setting &s, int64_t b, int64_t, int64_t q, int64_t k) {
       return (k <= q && q - k <= s.left) || inRange(batch, b, q, k);
     }},
    {"global or window", true,
     [](MaskProgram &p) {
       return add(p, Op::Or, {causalWindow(p), add(p, Op::Prefix, {param(p, 1)})});
     },
     [](const Batch &, const Setting &s, int64_t, int64_t, int64_t q, int64_t k) {
       return (k <= q && q - k <= s.left) || k < s.n;
     }},
    {"not window", true, [](MaskProgram &p) { return add(p, Op::Not, {causalWindow(p)}); },
     [](const Batch &, const Setting &s, int64_t, int64_t, int64_t q, int64_t k) {
       return !(k <= q && q - k <= s.left);
     }},
    {"every third key", false,
     [](MaskProgram &p) {
       NodeId k = index(p, Op::IndexK);
       NodeId rest = add(p, Op::RemS, ScalarType::I64, {k, p.constant(ScalarType::I64, 3)});
       NodeId third = add(p, Op::CmpEq, {rest, p.constant(ScalarType::I64, 0)});
       return add(p, Op::And, {causalWindow(p), third});
     },
     [](const Batch &, const Setting &s, int64_t, int64_t, int64_t q, int64_t k) {
       return k <= q && q - k <= s.left && k % 3 == 0;
     }},
    {"by head", false,
     [](MaskProgram &p) {
       NodeId h = index(p, Op::IndexH);
       NodeId q = index(p, Op::IndexQ);
       NodeId k = index(p, Op::IndexK);
       NodeId difference = add(p, Op::Sub, ScalarType::I64, {q, k});
       return add(p, Op::CmpSge, {difference, h});
     },
     [](const Batch &, const Setting &, int64_t, int64_t h, int64_t q, int64_t k) {
       return q - k >= h;
     }},
};

Batch randomBatch(Random &random, const Setting &setting) {
  Batch batch;
  batch.numHeads = 2;
  BatchShape &shape = batch.shape;
  shape.queryStartLoc = {0};
  TableData mm;
  mm.rangeOffsets = {0};
  for (int64_t b = random.in(1, 4); b > 0; --b) {
    const int64_t queryLen = random.in(0, 20), seqLen = random.in(0, 40);
    shape.queryStartLoc.push_back(shape.queryStartLoc.back() + queryLen);
    shape.seqLen.push_back(seqLen);
    shape.contextLen.push_back(seqLen - queryLen);
    const bool part = random.in(0, 3) == 0;
    shape.keyBegin.push_back(part ? random.in(0, seqLen) : 0);
    shape.keyEnd.push_back(part ? random.in(shape.keyBegin.back(), seqLen) : seqLen);
    for (int64_t n = random.in(0, 3); n > 0 && seqLen > 0; --n) {
      const int32_t start = static_cast<int32_t>(random.in(0, seqLen - 1));
      mm.ranges.push_back({start, start + static_cast<int32_t>(random.in(1, 12))});
    }
    mm.rangeOffsets.push_back(static_cast<int64_t>(mm.ranges.size()));
  }
  batch.tables.push_back(std::move(mm));
  batch.params = {{setting.left, 0}, {setting.n, 0}};
  return batch;
}

int64_t blockOf(int64_t k, int64_t anchor, int64_t size) {
  int64_t i = (k - anchor) / size;
  while (anchor + i * size > k)
    --i;
  return i;
}

/// Checks one record against the predicate; adds to the totals.
void judge(const Mask &mask, const Batch &batch, const Setting &setting, const TileRecord &record,
           rt::TileShape shape, int64_t anchor, rt::TileCounts &totals, int64_t &wasted) {
  const int64_t b = record.request.value;
  const int64_t keyBegin = batch.shape.keyBegin[b], keyEnd = batch.shape.keyEnd[b];
  int64_t previous = keyBegin;
  for (const Segment &segment : record.segments) {
    ASSERT_LT(segment.begin, segment.end);
    ASSERT_GE(segment.begin, previous);
    ASSERT_LE(segment.end, keyEnd);
    previous = segment.end;
  }
  for (int64_t begin = keyBegin; begin < keyEnd;) {
    int64_t end = begin + 1;
    while (end < keyEnd && blockOf(end, anchor, shape.keys) == blockOf(begin, anchor, shape.keys))
      ++end;
    ++totals.rectangle;
    int64_t kept = 0, pairs = 0;
    for (int64_t h = record.headBegin.value; h < record.headBegin.value + record.headCount; ++h)
      for (int64_t i = 0; i < record.queryCount; ++i)
        for (int64_t k = begin; k < end; ++k, ++pairs)
          kept += mask.keep(batch, setting, b, h, record.queryBegin.value + i, k);
    const Segment *found = nullptr;
    for (const Segment &segment : record.segments)
      if (segment.begin <= begin && end <= segment.end)
        found = &segment;
      else
        ASSERT_TRUE(end <= segment.begin || segment.end <= begin) << "a segment cuts a block";
    if (!found) {
      ASSERT_EQ(kept, 0) << mask.name << ": a skipped block holds a kept pair";
    } else if (found->cls == kSegmentFull) {
      ASSERT_EQ(kept, pairs) << mask.name << ": a full block holds a dropped pair";
      ++totals.full;
    }
    if (mask.exact) {
      ASSERT_EQ(found != nullptr, kept > 0) << mask.name;
      if (found) {
        ASSERT_EQ(found->cls == kSegmentFull, kept == pairs) << mask.name;
      }
    }
    totals.visited += found != nullptr;
    wasted += found && kept == 0;
    begin = end;
  }
}

TEST(TileRecords, SoundAndForIntervalsExact) {
  Random random(3);
  int64_t tiles = 0;
  for (const Mask &mask : kMasks) {
    int64_t wasted = 0, visited = 0;
    for (int round = 0; round < 150; ++round) {
      const Setting setting{random.in(0, 12), random.in(1, 6)};
      MaskProgram program;
      program.params = {{"left", ScalarType::I32, 0}, {"n", ScalarType::I32, 1}};
      TableDecl mm;
      mm.name = "mm";
      mm.kind = TableKind::Ranges;
      program.tables = {mm};
      program.mask = mask.build(program);
      ASSERT_EQ(verify(program).value_or(""), "");
      const Batch batch = randomBatch(random, setting);
      const rt::TileShape shape{random.in(1, 9), random.in(1, 9)};
      const int64_t anchor = random.in(-20, 20);
      const std::vector<TileRecord> records = rt::buildTileRecords(program, batch, shape, anchor);

      // Every token of every head lies in exactly one record.
      int64_t rows = 0;
      rt::TileCounts totals;
      for (const TileRecord &record : records) {
        ASSERT_LE(record.queryCount, shape.queries);
        rows += record.queryCount * record.headCount;
        judge(mask, batch, setting, record, shape, anchor, totals, wasted);
        if (HasFatalFailure())
          return;
      }
      ASSERT_EQ(rows, batch.shape.numTokens() * batch.numHeads);
      const rt::TileCounts counts = rt::countTiles(records, batch, shape, anchor);
      ASSERT_EQ(counts.visited, totals.visited);
      ASSERT_EQ(counts.full, totals.full);
      ASSERT_EQ(counts.rectangle, totals.rectangle);
      tiles += totals.rectangle;
      visited += totals.visited;
    }
    std::printf("%s: %ld tiles visited, %ld of them without a kept pair\n", mask.name,
                static_cast<long>(visited), static_cast<long>(wasted));
  }
  std::printf("%ld tiles judged\n", static_cast<long>(tiles));
}

TEST(TileRecords, HeadsThatAgreeShareARecord) {
  MaskProgram program;
  program.mask = add(program, Op::Causal);
  Batch batch;
  batch.numHeads = 5;
  batch.shape.queryStartLoc = {0, 10};
  batch.shape.seqLen = batch.shape.keyEnd = {10};
  batch.shape.contextLen = batch.shape.keyBegin = {0};
  const std::vector<TileRecord> records = rt::buildTileRecords(program, batch, {4, 4});
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records[2].headCount, 5);
  EXPECT_EQ(records[2].queryCount, 2);
  ASSERT_EQ(records[2].segments.size(), 2u);
  EXPECT_EQ(records[2].segments[0].end, 8);
  EXPECT_EQ(records[2].segments[0].cls, kSegmentFull);
  EXPECT_EQ(records[2].segments[1].cls, kSegmentPartial);
}

// The case of 48 images of 280 tokens in a prompt of 14570: tiles of 128 x 80, window radius 1023.
TEST(TileRecords, VideoPrompt) {
  constexpr int64_t kTokens = 14570;
  MaskProgram program;
  program.params = {{"left", ScalarType::I32, 0}};
  TableDecl mm;
  mm.name = "mm";
  mm.kind = TableKind::Ranges;
  program.tables = {mm};
  NodeId window = causalWindow(program);
  NodeId prefix = add(program, Op::MmPrefix, {param(program, 0)}, 0);
  program.mask = add(program, Op::Or, {window, prefix});
  Batch batch;
  batch.numHeads = 8;
  batch.shape.queryStartLoc = {0, kTokens};
  batch.shape.seqLen = batch.shape.keyEnd = {kTokens};
  batch.shape.contextLen = batch.shape.keyBegin = {0};
  batch.params = {{1023, 0}};
  TableData ranges;
  for (int32_t i = 0; i < 48; ++i)
    ranges.ranges.push_back({40 + 285 * i, 319 + 285 * i});
  ranges.rangeOffsets = {0, 48};
  batch.tables.push_back(ranges);
  const rt::TileShape shape{128, 80};
  const rt::TileCounts counts =
      rt::countTiles(rt::buildTileRecords(program, batch, shape), batch, shape);
  EXPECT_EQ(counts.visited, 1865);
  EXPECT_EQ(counts.rectangle, 20862);
}

} // namespace
