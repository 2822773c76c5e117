// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Split policies against the rules written down again, split plans block by block.
#include "attn/Runtime/SplitPlan.h"

#include "TestKernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <queue>
#include <set>

using namespace attn;
using namespace attn::core;
using namespace testing_rt;

namespace {

constexpr int64_t kKeyTile = 16;

/// A list of tiles with random entries: descending runs, bitmaps for single blocks only.
rt::WorkList randomList(Random &random, int64_t mostTiles = 6, int64_t mostBlocks = 12) {
  rt::WorkList list;
  const int64_t heads = random.in(1, 4);
  for (int64_t t = random.in(0, mostTiles); t > 0; --t) {
    TileHeader tile = {};
    tile.rows = static_cast<int32_t>(random.in(1, 128));
    tile.entryBegin = static_cast<int32_t>(list.entries.size());
    int64_t block = random.in(0, 3 * mostBlocks);
    for (int64_t n = random.in(0, 4); n > 0; --n) {
      TileEntry entry = {};
      entry.blocks = static_cast<int32_t>(random.in(0, 1) ? 1 : random.in(1, mostBlocks));
      entry.visible = entry.blocks == 1 && random.in(0, 1) ? int32_t(random.in(0, 99)) : -1;
      entry.classes = static_cast<uint32_t>(random.in(1, 10));
      block -= entry.blocks + random.in(0, 3);
      entry.keyBegin = static_cast<int32_t>(block * kKeyTile);
      list.entries.push_back(entry);
    }
    tile.entryCount = static_cast<int32_t>(list.entries.size()) - tile.entryBegin;
    list.tiles.push_back(tile);
  }
  for (int64_t h = 0; h < heads; ++h)
    for (size_t t = 0; t < list.tiles.size(); ++t)
      list.work.push_back({static_cast<int32_t>(t), static_cast<int32_t>(h)});
  return list;
}

struct Block {
  int64_t key;
  uint32_t classes;
  int32_t visible;
  bool operator==(const Block &o) const {
    return key == o.key && classes == o.classes && visible == o.visible;
  }
};

/// Blocks in the order in which a kernel walks them.
std::vector<Block> walk(const std::vector<TileEntry> &entries, int64_t begin, int64_t count) {
  std::vector<Block> blocks;
  for (int64_t i = begin; i < begin + count; ++i)
    for (int64_t b = entries[i].blocks - 1; b >= 0; --b)
      blocks.push_back(
          {entries[i].keyBegin + b * kKeyTile, entries[i].classes, entries[i].visible});
  return blocks;
}

int64_t groupOf(int64_t key, int64_t blocks) {
  const int64_t size = blocks * kKeyTile;
  return (key >= 0 ? key : key - size + 1) / size;
}

/// Sizes of the pieces of a tile, by definition.
std::vector<int64_t> expectedPieces(const rt::Splits &splits, const std::vector<Block> &blocks) {
  const int64_t n = static_cast<int64_t>(blocks.size());
  if (n == 0)
    return {0};
  int64_t pieces = 1;
  switch (splits.kind) {
  case rt::Splits::Kind::Whole:
    break;
  case rt::Splits::Kind::Count:
    pieces = std::min(splits.value, n);
    break;
  case rt::Splits::Kind::Blocks:
    while (pieces * splits.value < n)
      ++pieces;
    break;
  case rt::Splits::Kind::Anchored: {
    std::vector<int64_t> sizes;
    for (int64_t i = 0; i < n; ++i) {
      if (i == 0 ||
          groupOf(blocks[i].key, splits.value) != groupOf(blocks[i - 1].key, splits.value))
        sizes.push_back(0);
      ++sizes.back();
    }
    return sizes;
  }
  }
  std::vector<int64_t> sizes(pieces, 0);
  for (int64_t i = 0; i < n; ++i) {
    // Block i belongs to the piece whose share [n p / pieces, n (p + 1) / pieces) holds it.
    int64_t p = 0;
    while (n * (p + 1) / pieces <= i)
      ++p;
    ++sizes[p];
  }
  return sizes;
}

void checkPlan(const rt::WorkList &list, const rt::Splits &splits, const rt::SplitPlan &plan) {
  ASSERT_EQ(plan.pieceBegin.size(), list.tiles.size() + 1);
  int64_t entries = 0;
  for (size_t t = 0; t < list.tiles.size(); ++t) {
    const std::vector<Block> whole =
        walk(list.entries, list.tiles[t].entryBegin, list.tiles[t].entryCount);
    const std::vector<int64_t> sizes = expectedPieces(splits, whole);
    const int64_t first = plan.pieceBegin[t];
    ASSERT_EQ(plan.pieceBegin[t + 1] - first, static_cast<int64_t>(sizes.size()));
    std::vector<Block> joined;
    for (size_t i = 0; i < sizes.size(); ++i) {
      const rt::SplitPiece &piece = plan.pieces[first + i];
      EXPECT_EQ(piece.tile, static_cast<int32_t>(t));
      EXPECT_EQ(piece.number, static_cast<int32_t>(i));
      EXPECT_EQ(piece.count, static_cast<int32_t>(sizes.size()));
      EXPECT_EQ(piece.blocks, sizes[i]);
      EXPECT_EQ(piece.entryBegin, entries);
      entries += piece.entryCount;
      const std::vector<Block> part = walk(plan.entries, piece.entryBegin, piece.entryCount);
      EXPECT_EQ(static_cast<int64_t>(part.size()), sizes[i]);
      joined.insert(joined.end(), part.begin(), part.end());
    }
    EXPECT_TRUE(joined == whole);
  }
  EXPECT_EQ(entries, static_cast<int64_t>(plan.entries.size()));
  // Work: every piece of a tile for every head once, partial rows disjoint and dense.
  size_t work = 0, combine = 0;
  int64_t row = 0;
  for (const WorkItem &item : list.work) {
    const int64_t count = plan.pieceBegin[item.tile + 1] - plan.pieceBegin[item.tile];
    if (count > 1) {
      ASSERT_LT(combine, plan.combines.size());
      const rt::SplitCombine &c = plan.combines[combine++];
      EXPECT_EQ(c.tile, item.tile);
      EXPECT_EQ(c.head, item.head);
      EXPECT_EQ(c.pieces, count);
      EXPECT_EQ(c.rows, list.tiles[item.tile].rows);
      EXPECT_EQ(c.partialRow, row);
    }
    for (int64_t i = 0; i < count; ++i) {
      ASSERT_LT(work, plan.work.size());
      const rt::SplitWork &w = plan.work[work++];
      EXPECT_EQ(w.piece, plan.pieceBegin[item.tile] + i);
      EXPECT_EQ(w.head, item.head);
      EXPECT_EQ(w.partialRow, count > 1 ? row : -1);
      row += count > 1 ? list.tiles[item.tile].rows : 0;
    }
  }
  EXPECT_EQ(work, plan.work.size());
  EXPECT_EQ(combine, plan.combines.size());
  EXPECT_EQ(row, plan.sizes.partialRows);
}

TEST(SplitPlan, PiecesByDefinition) {
  Random random(21);
  int64_t cut = 0;
  for (int round = 0; round < 2000; ++round) {
    const rt::WorkList list = randomList(random);
    const rt::Splits splits{static_cast<rt::Splits::Kind>(random.in(0, 3)), random.in(1, 9)};
    Result<rt::SplitPlan> plan = rt::buildSplitPlan(list, splits, kKeyTile);
    ASSERT_TRUE(plan) << plan.message();
    checkPlan(list, splits, *plan);
    if (HasFailure())
      return;
    cut += !plan->combines.empty();
  }
  EXPECT_GT(cut, 500);
}

TEST(SplitPlan, CallersMemory) {
  Random random(22);
  const rt::WorkList list = randomList(random, 6, 12);
  const rt::Splits splits{rt::Splits::Kind::Count, 3};
  Result<rt::SplitPlan> plan = rt::buildSplitPlan(list, splits, kKeyTile);
  ASSERT_TRUE(plan);
  Result<rt::SplitSizes> sizes = rt::splitSizes(list, splits, kKeyTile);
  ASSERT_TRUE(sizes);
  EXPECT_EQ(sizes->partialBytes(64), sizes->partialRows * 65 * 4);
  std::vector<rt::SplitPiece> pieces(sizes->pieces);
  std::vector<int32_t> pieceBegin(sizes->tiles + 1);
  std::vector<TileEntry> entries(sizes->entries);
  std::vector<rt::SplitWork> work(sizes->work);
  std::vector<rt::SplitCombine> combines(sizes->combines);
  rt::SplitMemory memory{pieces, pieceBegin, entries, work, combines};
  ASSERT_TRUE(rt::fillSplitPlan(list, splits, kKeyTile, memory));
  EXPECT_EQ(std::memcmp(pieces.data(), plan->pieces.data(), pieces.size() * sizeof(pieces[0])), 0);
  EXPECT_EQ(std::memcmp(work.data(), plan->work.data(), work.size() * sizeof(work[0])), 0);
  --memory.entries.size;
  EXPECT_EQ(rt::fillSplitPlan(list, splits, kKeyTile, memory).message(),
            "split plan: memory for " + std::to_string(sizes->entries - 1) + " entries, expected " +
                std::to_string(sizes->entries));
  EXPECT_EQ(rt::splitSizes(list, splits, 0).message(),
            "split plan: key tile is 0, expected at least 1");
}

TEST(SplitPlan, WhatDoesNotFitTheRecordsIsRefused) {
  rt::WorkList list;
  list.entries.push_back({0, 1 << 20, 1, -1});
  list.tiles.push_back({0, 0, 0, 1, 0, 1, 0, 0, 0, {}});
  list.work.resize(1 << 12);
  EXPECT_EQ(rt::splitSizes(list, {rt::Splits::Kind::Blocks, 1}, 1).message(),
            "split plan: number of work items 4294967296 passes 2147483647, the largest in its "
            "records");
}

//===----------------------------------------------------------------------===//
// sm100_relbias
//===----------------------------------------------------------------------===//

TEST(SplitPolicies, Sm100RelbiasByHand) {
  auto splits = [](int64_t requests, int64_t query, int64_t heads, int64_t kvHeads, int64_t keys,
                   const char *target = "sm_100a", bool local = false) {
    return rt::sm100RelbiasSplits({target, local, requests, query, heads, kvHeads, keys});
  };
  EXPECT_EQ(splits(1, 1, 64, 8, 65536, "sm_90a"), 1);
  EXPECT_EQ(splits(1, 1, 64, 8, 65536, "sm_100a", true), 1);
  EXPECT_EQ(splits(1, 1, 64, 8, 65536), 16);  // target 256 / 8 = 32, cap 16
  EXPECT_EQ(splits(1, 1, 64, 8, 1024), 8);    // 1024 / 128
  EXPECT_EQ(splits(1, 1, 64, 4, 65536), 32);  // 256 / 4 = 64, cap 32
  EXPECT_EQ(splits(1, 1, 64, 2, 8192), 32);   // 256 / 2 = 128, cap 32
  EXPECT_EQ(splits(1, 1, 64, 2, 8193), 64);   // cap 64
  EXPECT_EQ(splits(1, 1, 64, 2, 65537), 128); // cap 128
  EXPECT_EQ(splits(1, 1, 64, 1, 1 << 20), 128);
  EXPECT_EQ(splits(4, 1, 64, 8, 65536), 4);  // 128 / 32
  EXPECT_EQ(splits(1, 64, 64, 8, 65536), 4); // two tiles of 256 rows: 64 / 16
  EXPECT_EQ(splits(64, 1, 64, 8, 65536), 1);
  EXPECT_EQ(splits(1, 1, 64, 8, 0), 1);
  EXPECT_EQ(splits(0, 0, 64, 8, 0), 1);
}

TEST(SplitPolicies, Sm100RelbiasByDefinition) {
  Random random(23);
  std::set<int64_t> seen;
  for (int round = 0; round < 20000; ++round) {
    const int64_t hkv = int64_t(1) << random.in(0, 4), h = hkv * random.in(1, 16);
    const int64_t b = random.in(0, 3) ? random.in(1, 40) : 1;
    const int64_t maxQ = random.in(0, 1) ? 1 : random.in(1, 600);
    const int64_t kv = random.in(0, 1) ? random.in(1, 9000) : random.in(1, 200000);
    // As the policy is given, with real division.
    const double tiles = std::ceil(double(maxQ * h / hkv) / 256);
    const double base = double(b) * double(hkv) * tiles;
    double target = 64;
    if (tiles == 1)
      target = b == 1 ? 256 : 128;
    double cap = 128;
    if (tiles == 1 && b == 1) {
      if (hkv == 8)
        cap = 16;
      else if (hkv == 4 || kv <= 8192)
        cap = 32;
      else if (kv <= 65536)
        cap = 64;
    }
    const double expected =
        std::max(1.0, std::min({std::floor(target / base), cap, std::ceil(double(kv) / 128)}));
    const int64_t got = rt::sm100RelbiasSplits({"sm_100a", false, b, maxQ, h, hkv, kv});
    ASSERT_EQ(got, static_cast<int64_t>(expected));
    seen.insert(got);
  }
  EXPECT_GT(seen.size(), 15u);
}

//===----------------------------------------------------------------------===//
// measured
//===----------------------------------------------------------------------===//

rt::WorkList listOf(const std::vector<std::pair<int64_t, int64_t>> &rowsAndBlocks, int64_t heads) {
  rt::WorkList list;
  for (auto [rows, blocks] : rowsAndBlocks) {
    TileHeader tile = {};
    tile.rows = static_cast<int32_t>(rows);
    tile.entryBegin = static_cast<int32_t>(list.entries.size());
    tile.entryCount = blocks > 0;
    list.tiles.push_back(tile);
    if (blocks)
      list.entries.push_back({0, static_cast<int32_t>(blocks), 2, -1});
  }
  for (size_t t = 0; t < list.tiles.size(); ++t)
    for (int64_t h = 0; h < heads; ++h)
      list.work.push_back({static_cast<int32_t>(t), static_cast<int32_t>(h)});
  return list;
}

rt::MeasuredLaunch h200() { return {132, 1, 128, 128, 128, 2}; }

/// Time of a launch whose CTAs take the longest piece that is left, in blocks.
double simulate(const rt::WorkList &list, const rt::Splits &splits,
                const rt::MeasuredLaunch &launch) {
  Result<rt::SplitPlan> plan = rt::buildSplitPlan(list, splits, 1);
  EXPECT_TRUE(plan) << plan.message();
  std::vector<double> costs;
  for (const rt::SplitWork &work : plan->work) {
    const rt::SplitPiece &piece = plan->pieces[work.piece];
    const double bytes = double(list.tiles[piece.tile].rows) * double(launch.dimV + 1) * 8;
    const double block = double(launch.keyTile * (launch.dimQk + launch.dimV) * launch.kvElement);
    costs.push_back(piece.blocks + (work.partialRow >= 0 ? bytes / block : 0));
  }
  std::sort(costs.rbegin(), costs.rend());
  std::priority_queue<double, std::vector<double>, std::greater<double>> free;
  for (int64_t i = 0; i < launch.sms * launch.ctasPerSm; ++i)
    free.push(0);
  double end = 0;
  for (double cost : costs) {
    const double done = free.top() + cost;
    free.pop();
    free.push(done);
    end = std::max(end, done);
  }
  return end;
}

TEST(SplitPolicies, MeasuredByHand) {
  auto measured = [](const rt::WorkList &list) { return rt::measuredSplits(list, h200()); };
  auto isWhole = [](const rt::Splits &s) { return s.kind == rt::Splits::Kind::Whole; };
  EXPECT_TRUE(isWhole(measured({})));
  // A decode of one request of 32 heads and 512 blocks: 132 SMs take four pieces of each head.
  rt::Splits decode = measured(listOf({{1, 512}}, 32));
  EXPECT_EQ(decode.kind, rt::Splits::Kind::Blocks);
  EXPECT_EQ(decode.value, 128);
  // A full device, in one wave or many.
  EXPECT_TRUE(isWhole(measured(listOf({{128, 64}}, 132))));
  EXPECT_TRUE(isWhole(measured(listOf(std::vector<std::pair<int64_t, int64_t>>(64, {1, 64}), 32))));
  // Short: nothing is worth a second kernel.
  EXPECT_TRUE(isWhole(measured(listOf({{1, 4}}, 8))));
  // A window leaves 5 of 512 blocks: the visible run counts, not the sequence.
  EXPECT_EQ(measured(listOf({{1, 5}}, 8)).value, 1);
  // One long request among 255 short ones: it alone is cut.
  std::vector<std::pair<int64_t, int64_t>> tiles(255, {1, 2});
  tiles.push_back({1, 2048});
  const rt::WorkList uneven = listOf(tiles, 8);
  const rt::Splits splits = measured(uneven);
  ASSERT_EQ(splits.kind, rt::Splits::Kind::Blocks);
  EXPECT_GE(splits.value, 64);
  EXPECT_LE(splits.value, 256);
  Result<rt::SplitPlan> plan = rt::buildSplitPlan(uneven, splits, 128);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->combines.size(), 8u);
  // No SMs named: one.
  EXPECT_TRUE(isWhole(rt::measuredSplits(uneven, {})));
}

TEST(SplitPolicies, MeasuredFillsTheDevice) {
  Random random(24);
  double worst = 1, gain = 1;
  int64_t split = 0;
  for (int round = 0; round < 200; ++round) {
    std::vector<std::pair<int64_t, int64_t>> tiles;
    const bool isDecode = random.in(0, 1) == 1;
    for (int64_t n = random.in(1, 30); n > 0; --n)
      tiles.push_back({isDecode ? random.in(1, 4) : 128,
                       random.in(0, 3) ? random.in(0, 40) : random.in(0, 600)});
    const rt::WorkList list = listOf(tiles, random.in(1, 16));
    rt::MeasuredLaunch launch = h200();
    launch.ctasPerSm = random.in(1, 2);
    int64_t longest = 0;
    for (auto [rows, blocks] : tiles)
      longest = std::max(longest, blocks);
    const rt::Splits chosen = rt::measuredSplits(list, launch);
    const double time = simulate(list, chosen, launch), whole = simulate(list, {}, launch);
    double best = whole;
    for (int64_t s = 2; s <= std::min<int64_t>(longest, rt::kMostSplits); s += 1 + s / 12)
      best =
          std::min(best, simulate(list, {rt::Splits::Kind::Blocks, (longest + s - 1) / s}, launch));
    if (longest <= 4)
      continue;
    split += chosen.kind != rt::Splits::Kind::Whole;
    worst = std::max(worst, time / best);
    gain = std::max(gain, whole / time);
    EXPECT_LE(time, whole * 1.1);
  }
  std::printf("200 launches, %ld split; at worst %.2f of the best split's time, at best %.1f times "
              "as fast as whole\n",
              static_cast<long>(split), worst, gain);
  EXPECT_LT(worst, 1.6);
  EXPECT_GT(gain, 10);
  EXPECT_GT(split, 100);
}

} // namespace
