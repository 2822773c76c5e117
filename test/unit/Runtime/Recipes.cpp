// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every recipe of a step, 500 random steps in a row in memory that is used again, against builders
// written from the definitions in O(queries * keys).
#include "attn/Core/MaskEval.h"
#include "attn/Runtime/Builders.h"
#include "attn/Runtime/SplitPlan.h"

#include "TestKernel.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace attn;
using namespace attn::core;
using namespace testing_rt;

namespace {

constexpr int64_t kMostRequests = 6, kMostTokens = 400, kMostRanges = 64, kMostKeys = 300;
constexpr int64_t kPageSize = 8;

bool same(const Range &a, const Range &b) { return a.start == b.start && a.end == b.end; }

/// Parameter 0: window radius; tables 0: ranges, 1: documents.
MaskProgram maskOf(int number) {
  MaskProgram p;
  p.params = {{"left", ScalarType::I32, 0}};
  TableDecl mm, documents;
  mm.name = "mm";
  mm.kind = TableKind::Ranges;
  documents.name = "doc";
  documents.kind = TableKind::Documents;
  p.tables = {mm, documents};
  const NodeId left = param(p, 0);
  const NodeId window = add(p, Op::And, {add(p, Op::Causal), add(p, Op::Window, {left}, -1, 1)});
  switch (number) {
  case 0:
    p.mask = add(p, Op::Or, {window, add(p, Op::MmPrefix, {left}, 0)});
    break;
  case 1:
    p.mask = add(p, Op::And, {add(p, Op::Causal), add(p, Op::Document, {}, 1)});
    break;
  default:
    p.mask =
        add(p, Op::Or,
            {window, add(p, Op::And, {add(p, Op::Document, {}, 1), add(p, Op::MmPrefix, {}, 0)})});
    break;
  }
  return p;
}

Batch randomBatch(Random &random) {
  Batch batch;
  batch.numKvHeads = random.in(1, 2);
  batch.numHeads = batch.numKvHeads * random.in(1, 2);
  batch.params = {{random.in(0, 100), 0}};
  batch.tables.resize(2);
  TableData &mm = batch.tables[0], &documents = batch.tables[1];
  BatchShape &shape = batch.shape;
  mm.rangeOffsets = documents.documentOffsets = shape.queryStartLoc = {0};
  const int64_t requests = random.in(0, kMostRequests);
  for (int64_t b = 0; b < requests; ++b) {
    const int64_t room = std::min<int64_t>(kMostTokens - shape.numTokens(), 150);
    const int64_t queryLen =
        random.in(0, 2) ? random.in(0, room) : random.in(0, std::min<int64_t>(1, room));
    const int64_t seqLen = random.in(0, kMostKeys);
    shape.queryStartLoc.push_back(shape.queryStartLoc.back() + queryLen);
    shape.seqLen.push_back(seqLen);
    shape.contextLen.push_back(seqLen - queryLen);
    shape.keyBegin.push_back(random.in(0, 3) ? 0 : random.in(0, seqLen));
    shape.keyEnd.push_back(random.in(shape.keyBegin.back(), seqLen));
    for (int64_t n = random.in(0, 1) ? random.in(0, kMostRanges) : 0; n > 0 && seqLen > 0; --n) {
      const auto start = static_cast<int32_t>(random.in(0, seqLen - 1));
      mm.ranges.push_back({start, start + static_cast<int32_t>(random.in(1, 40))});
    }
    mm.rangeOffsets.push_back(static_cast<int64_t>(mm.ranges.size()));
    int32_t id = 0;
    for (int64_t k = 0; k < seqLen; ++k)
      documents.documents.push_back(id += random.in(0, 20) == 0);
    documents.documentOffsets.push_back(static_cast<int64_t>(documents.documents.size()));
  }
  return batch;
}

/// Memory of a step.
struct Memory {
  std::vector<Range> rows{kMostTokens}, scratch{kMostRanges}, tensor{kMostRequests * kMostRanges};
  std::vector<rt::PageRun> runs{kMostRequests * (kMostKeys / kPageSize + 1)};
  std::vector<int64_t> offsets = std::vector<int64_t>(kMostRequests + 1);
  std::vector<WorkItem> work;
  std::vector<TileHeader> tiles;
  std::vector<TileEntry> entries;
  std::vector<uint32_t> visible;
};

void checkRows(const Batch &batch, Memory &memory) {
  const BatchShape &shape = batch.shape;
  const TableData &mm = batch.tables[0], &documents = batch.tables[1];
  for (const bool isDocuments : {false, true}) {
    int64_t expected = 0;
    std::vector<Range> rows(shape.numTokens(), {-1, -1});
    for (int64_t b = 0; b < shape.numReqs(); ++b)
      for (int64_t t = shape.queryStartLoc[b]; t < shape.queryStartLoc[b + 1]; ++t) {
        const int64_t q = shape.contextLen[b] + t - shape.queryStartLoc[b];
        Range &row = rows[t];
        auto cover = [&](int32_t start, int32_t end) {
          row = row.start < 0 ? Range{start, end}
                              : Range{std::min(row.start, start), std::max(row.end, end)};
        };
        const int32_t *ids = documents.documents.data() + documents.documentOffsets[b];
        for (int32_t k = 0; isDocuments && q >= 0 && k < shape.seqLen[b]; ++k)
          if (ids[k] == ids[q])
            cover(k, k);
        for (int64_t r = mm.rangeOffsets[b]; !isDocuments && r < mm.rangeOffsets[b + 1]; ++r)
          if (mm.ranges[r].start <= q && q <= mm.ranges[r].end)
            cover(mm.ranges[r].start, mm.ranges[r].end);
        expected += row.start >= 0;
      }
    const int64_t covered =
        isDocuments ? rt::buildDocumentRows(shape, documents, memory.rows.data())
                    : rt::buildQueryRanges(shape, mm, memory.rows.data(), memory.scratch);
    ASSERT_EQ(covered, expected);
    if (covered) {
      ASSERT_TRUE(std::equal(rows.begin(), rows.end(), memory.rows.begin(), same));
    }
  }
}

void checkTensor(const Batch &batch, Memory &memory) {
  const TableData &mm = batch.tables[0];
  const Result<int64_t> count = rt::buildRangeTensor(batch.shape, mm, kMostRanges, memory.tensor);
  ASSERT_TRUE(count.ok()) << count.message();
  ASSERT_EQ(*count, static_cast<int64_t>(mm.ranges.size()));
  // A scan over the tensor keeps what a scan over the list keeps.
  for (int64_t b = 0; *count && b < batch.shape.numReqs(); ++b)
    for (int64_t q = 0; q < kMostKeys; q += 7)
      for (int64_t k = 0; k < kMostKeys; k += 5) {
        auto keeps = [&](const Range &r) {
          return r.start <= q && q <= r.end && r.start <= k && k <= r.end;
        };
        const Range *row = memory.tensor.data() + b * kMostRanges;
        ASSERT_EQ(std::any_of(row, row + kMostRanges, keeps),
                  std::any_of(mm.ranges.begin() + mm.rangeOffsets[b],
                              mm.ranges.begin() + mm.rangeOffsets[b + 1], keeps));
      }
}

void checkPageRuns(Random &random, const Batch &batch, Memory &memory) {
  const BatchShape &shape = batch.shape;
  const int64_t stride = kMostKeys / kPageSize + 1;
  std::vector<int32_t> table(shape.numReqs() * stride);
  for (int32_t &entry : table) {
    const int32_t previous = &entry == table.data() ? 0 : (&entry)[-1];
    entry = random.in(0, 2) && previous >= 0 && previous < INT32_MAX
                ? previous + 1
                : static_cast<int32_t>(random.in(-2, 1) ? random.in(0, 90) : INT32_MAX);
  }
  for (int64_t b = 0; b < shape.numReqs(); ++b) // junk past the live pages
    for (int64_t i = (shape.keyEnd[b] + kPageSize - 1) / kPageSize; i < stride; ++i)
      table[b * stride + i] = -7;
  const Result<int64_t> count =
      rt::buildPageRuns(shape, {table.data(), stride, kPageSize}, memory.runs, memory.offsets);
  ASSERT_TRUE(count.ok()) << count.message();
  ASSERT_EQ(memory.offsets[0], 0);
  ASSERT_EQ(memory.offsets[shape.numReqs()], *count);
  for (int64_t b = 0; b < shape.numReqs(); ++b) {
    int64_t page = shape.keyBegin[b] / kPageSize;
    for (int64_t r = memory.offsets[b]; r < memory.offsets[b + 1]; ++r) {
      const rt::PageRun &run = memory.runs[r];
      ASSERT_EQ(run.page, page);
      ASSERT_GE(run.count, 1);
      if (r > memory.offsets[b]) {
        ASSERT_NE(int64_t(run.cachePage),
                  int64_t(memory.runs[r - 1].cachePage) + memory.runs[r - 1].count)
            << "runs are as long as they can be";
      }
      for (int64_t i = 0; i < run.count; ++i, ++page)
        ASSERT_EQ(table[b * stride + page], int64_t(run.cachePage) + i);
    }
    const bool hasKeys = shape.keyBegin[b] < shape.keyEnd[b];
    ASSERT_EQ(page, hasKeys ? (shape.keyEnd[b] + kPageSize - 1) / kPageSize
                            : shape.keyBegin[b] / kPageSize);
  }
}

/// Kept pairs of a list, by the classes and the mask, against the mask alone; then its splits.
void checkList(const MaskProgram &program, const Batch &batch, const CudaLaunch &launch,
               const rt::WorkListView &list, Random &random) {
  MaskEvaluator eval(program, batch);
  for (const TileHeader &tile : list.tiles)
    for (int64_t row = 0; row < tile.rows; ++row)
      for (int64_t k = tile.keyBegin; k < tile.keyEnd; ++k) {
        const bool keep = eval.keep(RequestIndex(tile.request), HeadIndex(0),
                                    QueryPos(tile.queryBegin + row), KeyPos(k));
        uint32_t cls = kGroupSkip;
        for (int32_t i = tile.entryBegin; i < tile.entryBegin + tile.entryCount; ++i) {
          const TileEntry &entry = list.entries[i];
          if (entry.keyBegin <= k && k < entry.keyBegin + entry.blocks * launch.keyTile)
            cls = entry.classes >> (row / kGroupRows * kGroupClassBits) & 3;
        }
        ASSERT_TRUE(cls == kGroupPartial || keep == (cls == kGroupFull));
      }
  const rt::Splits splits = random.in(0, 1)
                                ? rt::Splits{rt::Splits::Kind::Count, random.in(1, 5)}
                                : rt::Splits{rt::Splits::Kind::Anchored, random.in(1, 5)};
  const Result<rt::SplitPlan> plan = rt::buildSplitPlan(list, splits, launch.keyTile);
  ASSERT_TRUE(plan.ok()) << plan.message();
  int64_t inPlan = 0, inList = 0;
  for (const TileEntry &entry : plan->entries)
    inPlan += entry.blocks;
  for (const TileEntry &entry : list.entries)
    inList += entry.blocks;
  ASSERT_EQ(inPlan, inList);
}

} // namespace

TEST(Recipes, FiveHundredSteps) {
  Random random(21);
  CudaLaunch launch;
  launch.groups = 2;
  launch.keyTile = 16;
  std::vector<MaskProgram> programs = {maskOf(0), maskOf(1), maskOf(2)};
  std::vector<rt::WorkListBuilder> builders;
  Memory memory;
  const rt::WorkListLimits limits{kMostRequests, kMostTokens, kMostRequests * kMostRanges,
                                  kMostKeys, 4};
  for (const MaskProgram &program : programs) {
    builders.emplace_back(program, launch, TilePlan::Intervals);
    ASSERT_TRUE(builders.back().isFollowed());
    builders.back().reserve(limits);
    const rt::WorkListSizes most = builders.back().mostSizes(limits);
    memory.work.resize(std::max<size_t>(memory.work.size(), most.work));
    memory.tiles.resize(std::max<size_t>(memory.tiles.size(), most.tiles));
    memory.entries.resize(std::max<size_t>(memory.entries.size(), most.entries));
    memory.visible.resize(std::max<size_t>(memory.visible.size(), most.bitmaps * kVisibleWords));
  }
  for (int step = 0; step < 500 && !HasFatalFailure(); ++step) {
    SCOPED_TRACE("step " + std::to_string(step));
    const Batch batch = randomBatch(random);
    checkRows(batch, memory);
    checkPageRuns(random, batch, memory);
    if (step % 5 == 0)
      checkTensor(batch, memory);
    const Result<rt::WorkListView> list = builders[step % 3].build(
        batch, {nullptr, 64}, {memory.work, memory.tiles, memory.entries, memory.visible});
    ASSERT_TRUE(list.ok()) << list.message();
    if (step % 5 == 1)
      checkList(programs[step % 3], batch, launch, *list, random);
  }
}

TEST(Recipes, Refusals) {
  BatchShape shape;
  shape.queryStartLoc = {0, 1, 2};
  shape.seqLen = shape.keyEnd = {20, 9};
  shape.contextLen = {19, 8};
  shape.keyBegin = {0, 0};
  TableData ranges;
  ranges.ranges = {{1, 2}, {3, 4}, {5, 6}};
  ranges.rangeOffsets = {0, 3, 3};
  std::vector<Range> tensor(6, {7, 7});
  EXPECT_EQ(rt::buildRangeTensor(shape, ranges, 2, tensor).message(),
            "range tensor: a request has 3 ranges, memory for 2");
  EXPECT_EQ(rt::buildRangeTensor(shape, ranges, 4, tensor).message(),
            "range tensor: 2 requests of 4 ranges, memory for 6 ranges");
  ASSERT_TRUE(rt::buildRangeTensor(shape, ranges, 3, tensor).ok());
  EXPECT_TRUE(same(tensor[2], {5, 6}) && same(tensor[3], {-1, -1}));
  // Nothing to scan: nothing is touched.
  ranges.ranges.clear();
  ranges.rangeOffsets = {0, 0, 0};
  std::fill(tensor.begin(), tensor.end(), Range{7, 7});
  EXPECT_EQ(*rt::buildRangeTensor(shape, ranges, 3, tensor), 0);
  EXPECT_TRUE(same(tensor[0], {7, 7}));

  const std::vector<int32_t> table = {4, 5, 6, 0, 1, 3};
  std::vector<rt::PageRun> runs(5);
  std::vector<int64_t> offsets(3);
  const rt::PageTable pages{table.data(), 3, 8};
  EXPECT_EQ(rt::buildPageRuns(shape, pages, {runs.data(), 4}, offsets).message(),
            "page runs: 5 pages, memory for 4 runs");
  EXPECT_EQ(rt::buildPageRuns(shape, pages, runs, {offsets.data(), 2}).message(),
            "page runs: 2 requests, memory for 1");
  EXPECT_EQ(rt::buildPageRuns(shape, {table.data(), 3, 0}, runs, offsets).message(),
            "page runs: page size is 0, expected at least 1");
  EXPECT_EQ(*rt::buildPageRuns(shape, pages, runs, offsets), 2);
  EXPECT_EQ(runs[0].count, 3);
  EXPECT_EQ(runs[1].cachePage, 0);
}
