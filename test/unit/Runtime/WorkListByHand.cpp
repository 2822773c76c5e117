// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Work lists written out by hand, their cuts, and what does not fit their records.
#include "attn/Runtime/WorkList.h"

#include "TestKernel.h"

#include <gtest/gtest.h>

#include <limits>

using namespace attn;
using namespace attn::core;
using namespace testing_rt;

namespace {

TEST(WorkList, SlicesBeginAndEndAtCuts) {
  rt::WorkList list;
  list.parts = {{4, 10}, {4, 10}, {9, 16}, {12, 22}};
  auto slice = [&](int64_t begin, int64_t end) -> std::pair<int64_t, int64_t> {
    const Result<rt::WorkSlice> result = rt::sliceOf(list, {begin, end});
    EXPECT_TRUE(result.ok()) << result.message();
    return {result->begin, result->end};
  };
  using Pair = std::pair<int64_t, int64_t>;
  EXPECT_EQ(slice(0, 12), Pair(0, 22));
  EXPECT_EQ(slice(0, 4), Pair(0, 10));
  EXPECT_EQ(slice(4, 9), Pair(10, 16));
  EXPECT_EQ(slice(4, 12), Pair(10, 22));
  EXPECT_EQ(slice(7, 7), Pair(0, 0));
  EXPECT_EQ(rt::sliceOf(list, {0, 5}).message(),
            "tokens [0, 5): the batch is not cut at 5 (it is at: 4, 4, 9)");
  EXPECT_EQ(rt::sliceOf(list, {3, 9}).message(),
            "tokens [3, 9): the batch is not cut at 3 (it is at: 4, 4, 9)");
  list.parts = {{12, 22}};
  EXPECT_EQ(rt::sliceOf(list, {4, 12}).message(),
            "tokens [4, 12): the batch is not cut at 4 (it is at: none)");
}

/// One request of `queries` queries behind as many keys.
Batch oneRequest(int64_t queries, int64_t keys, int64_t heads, int64_t kvHeads) {
  Batch batch;
  batch.numHeads = heads;
  batch.numKvHeads = kvHeads;
  batch.shape.queryStartLoc = {0, queries};
  batch.shape.seqLen = batch.shape.keyEnd = {keys};
  batch.shape.contextLen = {keys - queries};
  batch.shape.keyBegin = {0};
  return batch;
}

CudaLaunch launchOf(int64_t groups, int64_t keyTile) {
  CudaLaunch launch;
  launch.groups = groups;
  launch.keyTile = keyTile;
  return launch;
}

// Two row groups of a causal tile: the upper skips the block that only the lower sees.
TEST(WorkList, CausalByHand) {
  MaskProgram program;
  program.mask = add(program, Op::Causal);
  const Batch batch = oneRequest(200, 200, 2, 1);
  Result<rt::WorkList> list =
      rt::buildWorkList(program, batch, launchOf(2, 64), TilePlan::Intervals, {nullptr, 512});
  ASSERT_TRUE(list.ok()) << list.message();
  ASSERT_EQ(list->tiles.size(), 2u);
  ASSERT_EQ(list->entries.size(), 5u);
  // Of keys 192 to 255 the lower group of the second tile keeps 192 to 199.
  EXPECT_EQ(list->tiles[0].halves, 0u);
  EXPECT_EQ(list->tiles[1].halves, 1u << 1);
  // Rows 0 to 127: keys 64 to 127 for the lower group only, 0 to 63 partial and full.
  const TileEntry *e = list->entries.data();
  EXPECT_EQ(e[0].keyBegin, 64);
  EXPECT_EQ(e[0].classes, kGroupPartial << 2);
  EXPECT_EQ(e[0].visible, -1);
  EXPECT_EQ(e[1].keyBegin, 0);
  EXPECT_EQ(e[1].classes, kGroupFull << 2 | kGroupPartial);
  // Rows 128 to 199: eight of them in the lower group. Keys 200 to 255 do not exist.
  EXPECT_EQ(e[2].keyBegin, 192);
  EXPECT_EQ(e[2].classes, kGroupPartial << 2);
  EXPECT_EQ(e[2].visible, 0);
  EXPECT_EQ(list->visible[0], 0xFFu);
  EXPECT_EQ(e[3].keyBegin, 128);
  EXPECT_EQ(e[3].classes, kGroupFull << 2 | kGroupPartial);
  EXPECT_EQ(e[4].keyBegin, 0);
  EXPECT_EQ(e[4].blocks, 2);
  EXPECT_EQ(e[4].classes, kGroupFull << 2 | kGroupFull);
  // The second tile has more work; its heads come first, side by side.
  ASSERT_EQ(list->work.size(), 4u);
  EXPECT_EQ(list->work[0].tile, 1);
  EXPECT_EQ(list->work[1].tile, 1);
  EXPECT_EQ(list->work[1].head, 1);
  EXPECT_EQ(list->work[2].tile, 0);
  EXPECT_EQ(list->counts.loaded, 2u * 6);
  EXPECT_EQ(list->counts.visited, 2u * 10);
  EXPECT_EQ(list->counts.full, 2u * 6);
}

// A chunk of 16384 queries behind 1061 keys, a window of 1024: 64 rows need 1087 keys, which meet
// 18 blocks at multiples of 64 and 17 that start where a tile needs them. A paged cache cannot.
TEST(WorkList, BlocksStartWhereATileNeedsThem) {
  MaskProgram program;
  program.params = {{"left", ScalarType::I32, 0}};
  const NodeId window = add(program, Op::Window, {param(program, 0)}, -1, 1);
  program.mask = add(program, Op::And, {add(program, Op::Causal), window});
  Batch batch = oneRequest(16384, 16384 + 1061, 1, 1);
  batch.params = {{1023, 0}};
  const int64_t start[] = {0};
  auto visited = [&](rt::WorkListKeys keys) {
    Result<rt::WorkList> list =
        rt::buildWorkList(program, batch, launchOf(2, 64), TilePlan::Intervals, keys);
    EXPECT_TRUE(list.ok()) << list.message();
    return list->counts.visited;
  };
  EXPECT_EQ(visited({nullptr, 512}), 256u * 18);
  EXPECT_EQ(visited({start, 512}), 256u * 17);
}

/// Query heads of the work items, in order.
std::vector<int32_t> headsOf(const MaskProgram &program, const Batch &batch, int64_t keyBytes) {
  Result<rt::WorkList> list =
      rt::buildWorkList(program, batch, launchOf(2, 128), TilePlan::Intervals, {nullptr, keyBytes});
  std::vector<int32_t> heads;
  if (!list) {
    ADD_FAILURE() << list.message();
    return heads;
  }
  for (const WorkItem &item : list->work)
    heads.push_back(item.head);
  return heads;
}

TEST(WorkList, HeadsThatFitTheCacheRunTogether) {
  MaskProgram program;
  // 4096 keys of 1024 bytes are 4 MB a head: two heads at a time.
  EXPECT_EQ(headsOf(program, oneRequest(256, 4096, 12, 6), 1024),
            (std::vector<int32_t>{0, 1, 2, 3, 0, 1, 2,  3,  4, 5, 6,  7,
                                  4, 5, 6, 7, 8, 9, 10, 11, 8, 9, 10, 11}));
}

// Tiles of 1 to 4 blocks: at the end more heads run together, so that the heaviest tiles are not
// last. 512 keys of 16 KiB are 8 MiB a head.
TEST(WorkList, MoreHeadsAreLastWhereTilesDiffer) {
  MaskProgram causal;
  causal.mask = add(causal, Op::Causal);
  std::vector<int32_t> heads = {0, 0, 0, 0, 1, 1, 1, 1};
  for (int tile = 0; tile < 4; ++tile)
    heads.insert(heads.end(), {2, 3, 4, 5});
  EXPECT_EQ(headsOf(causal, oneRequest(512, 512, 6, 6), 16384), heads);
  // The last two tiles alone have 3 and 4 blocks.
  heads.clear();
  for (int32_t head = 0; head < 6; ++head)
    heads.insert(heads.end(), {head, head});
  EXPECT_EQ(headsOf(causal, oneRequest(256, 512, 6, 6), 16384), heads);
}

TEST(WorkList, CutsAreTokensInOrder) {
  MaskProgram program;
  const Batch batch = oneRequest(8, 10, 1, 1);
  auto messageOf = [&](std::vector<int64_t> cuts) {
    Result<rt::WorkList> list = rt::buildWorkList(program, batch, launchOf(1, 128),
                                                  TilePlan::Intervals, {nullptr, 1}, cuts);
    return list ? std::string("no error") : list.message();
  };
  EXPECT_EQ(messageOf({0, 3, 3, 8}), "no error");
  EXPECT_EQ(messageOf({-1}), "work list: cut 0 is at token -1, expected 0 to 8");
  EXPECT_EQ(messageOf({3, 9}), "work list: cut 1 is at token 9, expected 3 to 8");
  EXPECT_EQ(messageOf({3, 2}), "work list: cut 1 is at token 2, expected 3 to 8");
}

TEST(WorkList, WhatDoesNotFitTheRecordsIsRefused) {
  MaskProgram program;
  auto messageOf = [&](const Batch &batch, rt::WorkListKeys keys) {
    Result<rt::WorkList> list =
        rt::buildWorkList(program, batch, launchOf(1, 128), TilePlan::Intervals, keys);
    return list ? std::string("no error") : list.message();
  };
  Batch batch = oneRequest(1, 10, 1, 1);
  const int64_t far[] = {int64_t(INT32_MAX) - 10}, tooFar[] = {int64_t(INT32_MAX) - 9};
  EXPECT_EQ(messageOf(batch, {far, 1}), "no error");
  EXPECT_EQ(messageOf(batch, {tooFar, 1}),
            "work list: row of the last key of request 0 2147483648 passes 2147483647, the "
            "largest in its records");
  batch.shape.queryStartLoc[1] = int64_t(1) << 31;
  EXPECT_EQ(messageOf(batch, {}), "work list: number of tokens 2147483648 passes 2147483647, the "
                                  "largest in its records");
  batch = oneRequest(2048 * 64, 1, 1 << 20, 1 << 20);
  EXPECT_EQ(messageOf(batch, {}), "work list: number of work items 2147483648 passes 2147483647, "
                                  "the largest in its records");
}

} // namespace
