// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Work lists of random masks, pair by pair: those that are followed without looking at single rows,
// and those that are not.
#include "attn/Core/MaskEval.h"
#include "attn/Runtime/WorkList.h"

#include "../Core/RandomProgram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

using namespace attn;
using namespace attn::core;

namespace {

/// Memory for one list.
struct Memory {
  explicit Memory(const rt::WorkListSizes &sizes)
      : work(sizes.work), tiles(sizes.tiles), entries(sizes.entries),
        visible(sizes.bitmaps * kVisibleWords) {}
  rt::WorkListMemory spans() { return {work, tiles, entries, visible}; }

  std::vector<WorkItem> work;
  std::vector<TileHeader> tiles;
  std::vector<TileEntry> entries;
  std::vector<uint32_t> visible;
};

rt::WorkListLimits limitsOf(const Batch &batch) {
  rt::WorkListLimits limits;
  limits.requests = batch.shape.numReqs();
  limits.tokens = batch.shape.numTokens();
  limits.heads = batch.numHeads;
  for (const TableData &table : batch.tables)
    limits.ranges = std::max(limits.ranges, static_cast<int64_t>(table.ranges.size()));
  for (int64_t keys : batch.shape.seqLen)
    limits.keys = std::max(limits.keys, keys);
  return limits;
}

/// Pairs of a block by class, and whether a bitmap is as it should be.
class Judge {
public:
  Judge(const MaskProgram &program, const Batch &batch, const CudaLaunch &launch,
        const rt::WorkListView &list, bool exact)
      : eval(program, batch), launch(launch), list(list), exact(exact) {}

  void judge(const TileHeader &tile, int64_t head) {
    const int64_t size = launch.keyTile;
    for (int64_t block = 0; block * size < tile.keyEnd; ++block) {
      const TileEntry *found = nullptr;
      for (int32_t i = tile.entryBegin; i < tile.entryBegin + tile.entryCount; ++i)
        if (const TileEntry &entry = list.entries[i];
            entry.keyBegin <= block * size && block * size < entry.keyBegin + entry.blocks * size)
          found = &entry;
      std::vector<bool> seen(size, false);
      for (int64_t g = 0; g < launch.groups; ++g)
        judgeGroup(tile, head, block, g, found ? found->classes >> (kGroupClassBits * g) & 3 : 0,
                   seen);
      if (testing::Test::HasFatalFailure())
        return;
      if (!found)
        continue;
      const bool hidden = std::find(seen.begin(), seen.end(), false) != seen.end();
      ASSERT_EQ(found->visible >= 0, hidden && !launch.testsVisible);
      for (int64_t r = 0; r < size && found->visible >= 0; ++r)
        ASSERT_EQ(list.visible[found->visible * kVisibleWords + r / 32] >> (r % 32) & 1, seen[r]);
    }
  }

private:
  void judgeGroup(const TileHeader &tile, int64_t head, int64_t block, int64_t group, uint32_t cls,
                  std::vector<bool> &seen) {
    int64_t kept = 0, pairs = 0;
    for (int64_t i = group * kGroupRows; i < std::min<int64_t>((group + 1) * kGroupRows, tile.rows);
         ++i)
      for (int64_t r = 0; r < launch.keyTile; ++r, ++pairs) {
        const int64_t k = block * launch.keyTile + r;
        const bool keep = tile.keyBegin <= k && k < tile.keyEnd &&
                          eval.keep(RequestIndex(tile.request), HeadIndex(head),
                                    QueryPos(tile.queryBegin + i), KeyPos(k));
        kept += keep;
        seen[r] = seen[r] || keep;
      }
    const uint32_t expected = kept == 0 ? kGroupSkip : kept == pairs ? kGroupFull : kGroupPartial;
    ASSERT_TRUE(cls == expected || (!exact && cls == kGroupPartial))
        << "request " << tile.request << " q " << tile.queryBegin << " group " << group << " head "
        << head << " block " << block << ": class " << cls << ", expected " << expected;
  }

  MaskEvaluator eval;
  const CudaLaunch &launch;
  const rt::WorkListView &list;
  const bool exact;
};

CudaLaunch randomLaunch(std::mt19937 &random) {
  CudaLaunch launch;
  launch.groups = 1 + random() % 2;
  launch.keyTile = 1 + random() % 5;
  launch.testsVisible = random() % 4 == 0;
  return launch;
}

} // namespace

TEST(FollowedMasks, RandomMasksPairByPair) {
  std::mt19937 random(5);
  int followed[3] = {}, total[3] = {};
  for (test::Wildness wildness :
       {test::Wildness::Named, test::Wildness::Comparisons, test::Wildness::Anything})
    for (int round = 0; round < 700; ++round) {
      const MaskProgram program = test::randomProgram(random, wildness);
      const Batch batch = test::randomBatch(random, program);
      const CudaLaunch launch = randomLaunch(random);
      rt::WorkListBuilder builder(program, launch, TilePlan::Intervals);
      Memory memory(builder.mostSizes(limitsOf(batch)));
      Result<rt::WorkListView> list = builder.build(batch, {nullptr, 64}, memory.spans());
      ASSERT_TRUE(list.ok()) << list.message();
      ++total[static_cast<int>(wildness)];
      followed[static_cast<int>(wildness)] += builder.isFollowed();
      Judge judge(program, batch, launch, *list,
                  builder.isFollowed() || wildness == test::Wildness::Named);
      const bool perHead = dependence(program, program.mask).h;
      for (int64_t t = 0; t < list->tiles.size; ++t) {
        judge.judge(list->tiles[t], perHead ? t % batch.numHeads : 0);
        ASSERT_FALSE(HasFatalFailure())
            << "round " << round << ": " << toFormula(program, program.mask);
      }
    }
  std::printf("followed: %d of %d named masks, %d of %d with comparisons, %d of %d others\n",
              followed[0], total[0], followed[1], total[1], followed[2], total[2]);
  EXPECT_GT(followed[0], total[0] / 3);
  EXPECT_GT(followed[1], total[1] / 10);
}

// One builder over many batches gives what new ones give, and memory of the size it asks for is
// enough while less is refused.
TEST(FollowedMasks, ListsInMemoryOfTheCaller) {
  std::mt19937 random(6);
  int refused = 0;
  for (int round = 0; round < 60; ++round) {
    const MaskProgram program = test::randomProgram(random, test::Wildness::Named);
    const CudaLaunch launch = randomLaunch(random);
    rt::WorkListBuilder builder(program, launch, TilePlan::Intervals);
    for (int step = 0; step < 10; ++step) {
      const Batch batch = test::randomBatch(random, program);
      const int64_t bytes = int64_t(1) << random() % 30;
      Result<rt::WorkList> expected =
          rt::buildWorkList(program, batch, launch, TilePlan::Intervals, {nullptr, bytes});
      ASSERT_TRUE(expected.ok()) << expected.message();
      Memory memory(builder.mostSizes(limitsOf(batch)));
      Result<rt::WorkListView> list = builder.build(batch, {nullptr, bytes}, memory.spans());
      ASSERT_TRUE(list.ok()) << list.message();
      auto same = [](const auto &view, const auto &values) {
        return view.size == static_cast<int64_t>(values.size()) &&
               (values.empty() ||
                std::memcmp(view.data, values.data(), values.size() * sizeof(values[0])) == 0);
      };
      EXPECT_TRUE(same(list->work, expected->work));
      EXPECT_TRUE(same(list->tiles, expected->tiles));
      EXPECT_TRUE(same(list->entries, expected->entries));
      EXPECT_TRUE(same(list->visible, expected->visible));
      EXPECT_EQ(list->counts.visited, expected->counts.visited);
      if (expected->entries.empty())
        continue;
      rt::WorkListMemory small = memory.spans();
      small.entries.size = list->entries.size - 1;
      const Result<rt::WorkListView> failed = builder.build(batch, {nullptr, bytes}, small);
      ASSERT_FALSE(failed.ok());
      EXPECT_EQ(failed.message(),
                "work list: memory for " + std::to_string(expected->entries.size() - 1) +
                    " entries, expected " + std::to_string(expected->entries.size()));
      ++refused;
    }
  }
  EXPECT_GT(refused, 100);
}

// Limits that no memory has end in sizes that say so, not in an overflow.
TEST(FollowedMasks, SizesOfTheLargestLimits) {
  std::mt19937 random(7);
  const rt::WorkListLimits limits = {int64_t(1) << 30, (int64_t(1) << 31) - 1, int64_t(1) << 30,
                                     int64_t(1) << 30, int64_t(1) << 20};
  bool huge = false;
  for (int round = 0; round < 200; ++round) {
    const MaskProgram program =
        test::randomProgram(random, round % 2 ? test::Wildness::Anything : test::Wildness::Named);
    const rt::WorkListBuilder builder(program, randomLaunch(random), TilePlan::Intervals);
    const rt::WorkListSizes sizes = builder.mostSizes(limits);
    EXPECT_GE(sizes.tiles, limits.tokens / 128);
    EXPECT_GE(sizes.work, sizes.tiles);
    EXPECT_GE(sizes.entries, 0);
    EXPECT_GE(sizes.bitmaps, 0);
    huge |= sizes.entries >= int64_t(1) << 60;
  }
  EXPECT_TRUE(huge);
}
