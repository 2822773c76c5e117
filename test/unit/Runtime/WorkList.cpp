// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Work lists against predicates written here, pair by pair.
#include "attn/Runtime/WorkList.h"

#include "TestKernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <limits>
#include <set>

using namespace attn;
using namespace attn::core;
using namespace testing_rt;

namespace {

/// Parameters 0 (left) and 1 (n), table 0 (mm).
using Predicate = std::function<bool(const Batch &, int64_t b, int64_t h, int64_t q, int64_t k)>;

struct Mask {
  const char *name;
  bool intervals;
  std::function<NodeId(MaskProgram &)> build;
  Predicate keep;
};

NodeId window(MaskProgram &p) {
  return add(p, Op::And, {add(p, Op::Causal), add(p, Op::Window, {param(p, 0)}, -1, 1)});
}

bool inWindow(const Batch &batch, int64_t q, int64_t k) {
  return k <= q && q - k <= batch.params[0].i;
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
     [](const Batch &, int64_t, int64_t, int64_t, int64_t) { return true; }},
    {"nothing", true, [](MaskProgram &p) { return add(p, Op::Const); },
     [](const Batch &, int64_t, int64_t, int64_t, int64_t) { return false; }},
    {"causal", true, [](MaskProgram &p) { return add(p, Op::Causal); },
     [](const Batch &, int64_t, int64_t, int64_t q, int64_t k) { return k <= q; }},
    {"window or ranges", true,
     [](MaskProgram &p) {
       return add(p, Op::Or, {window(p), add(p, Op::MmPrefix, {}, 0)});
     },
     [](const Batch &batch, int64_t b, int64_t, int64_t q, int64_t k) {
       return inWindow(batch, q, k) || inRange(batch, b, q, k);
     }},
    {"window or prefix", true,
     [](MaskProgram &p) {
       return add(p, Op::Or, {window(p), add(p, Op::Prefix, {param(p, 1)})});
     },
     [](const Batch &batch, int64_t, int64_t, int64_t q, int64_t k) {
       return inWindow(batch, q, k) || k < batch.params[1].i;
     }},
    {"not window", true, [](MaskProgram &p) { return add(p, Op::Not, {window(p)}); },
     [](const Batch &batch, int64_t, int64_t, int64_t q, int64_t k) {
       return !inWindow(batch, q, k);
     }},
    {"every fifth key", false,
     [](MaskProgram &p) {
       NodeId five = p.constant(ScalarType::I64, 5);
       NodeId rest = add(p, Op::RemS, ScalarType::I64, {index(p, Op::IndexK), five});
       NodeId fifth = add(p, Op::CmpEq, {rest, p.constant(ScalarType::I64, 0)});
       return add(p, Op::And, {window(p), fifth});
     },
     [](const Batch &batch, int64_t, int64_t, int64_t q, int64_t k) {
       return inWindow(batch, q, k) && k % 5 == 0;
     }},
    {"by head", true,
     [](MaskProgram &p) {
       NodeId ten = p.constant(ScalarType::I64, 10);
       NodeId reach = add(p, Op::Mul, ScalarType::I64, {index(p, Op::IndexH), ten});
       NodeId q = index(p, Op::IndexQ), k = index(p, Op::IndexK);
       NodeId difference = add(p, Op::Sub, ScalarType::I64, {q, k});
       return add(p, Op::CmpSge, {difference, reach});
     },
     [](const Batch &, int64_t, int64_t h, int64_t q, int64_t k) { return q - k >= 10 * h; }},
};

MaskProgram programOf(const Mask &mask) {
  MaskProgram program;
  program.params = {{"left", ScalarType::I32, 0}, {"n", ScalarType::I32, 1}};
  TableDecl mm;
  mm.name = "mm";
  mm.kind = TableKind::Ranges;
  program.tables = {mm};
  program.mask = mask.build(program);
  return program;
}

struct Launch {
  Batch batch;
  std::vector<int64_t> kvStart;
  CudaLaunch launch;
  rt::WorkListKeys keys;
  std::vector<int64_t> cuts;
};

Launch randomSetup(Random &random) {
  Launch s;
  Batch &batch = s.batch;
  batch.numKvHeads = random.in(0, 3) ? random.in(1, 3) : random.in(4, 13);
  batch.numHeads = batch.numKvHeads * random.in(1, 3);
  BatchShape &shape = batch.shape;
  shape.queryStartLoc = {0};
  TableData mm;
  mm.rangeOffsets = {0};
  int64_t start = random.in(0, 50);
  for (int64_t b = random.in(1, 4); b > 0; --b) {
    const int64_t queryLen = random.in(0, 3) ? random.in(0, 260) : random.in(0, 1);
    const int64_t seqLen = random.in(0, 2) ? queryLen + random.in(0, 150) : random.in(0, 100);
    shape.queryStartLoc.push_back(shape.queryStartLoc.back() + queryLen);
    shape.seqLen.push_back(seqLen);
    shape.contextLen.push_back(seqLen - queryLen);
    const bool part = random.in(0, 3) == 0;
    shape.keyBegin.push_back(part ? random.in(0, seqLen) : 0);
    shape.keyEnd.push_back(part ? random.in(shape.keyBegin.back(), seqLen) : seqLen);
    s.kvStart.push_back(start);
    start += seqLen;
    for (int64_t n = random.in(0, 3); n > 0 && seqLen > 0; --n) {
      const int32_t first = static_cast<int32_t>(random.in(0, seqLen - 1));
      mm.ranges.push_back({first, first + static_cast<int32_t>(random.in(1, 120))});
    }
    mm.rangeOffsets.push_back(static_cast<int64_t>(mm.ranges.size()));
  }
  batch.tables.push_back(std::move(mm));
  batch.params = {{random.in(0, 90), 0}, {random.in(1, 70), 0}};
  s.launch.groups = random.in(1, 3);
  s.launch.keyTile = 16 * random.in(1, 4);
  s.launch.testsVisible = random.in(0, 1);
  s.keys.kvStart = random.in(0, 1) ? s.kvStart.data() : nullptr;
  s.keys.bytes = random.in(1, 4) << random.in(0, 20);
  if (random.in(0, 1))
    for (int64_t n = random.in(1, 4); n > 0; --n)
      s.cuts.push_back(random.in(0, 3) ? random.in(0, shape.numTokens())
                                       : shape.queryStartLoc[random.in(0, shape.numReqs())]);
  std::sort(s.cuts.begin(), s.cuts.end());
  return s;
}

/// What an entry says about one block.
struct BlockRecord {
  uint32_t classes = 0;
  int32_t visible = -1;
};

/// Where block 0 starts; block -1 may be there too.
int64_t anchorOf(const Launch &s, const rt::WorkList &list, const TileHeader &tile) {
  if (tile.entryCount == 0)
    return 0;
  const int64_t rest = list.entries.at(tile.entryBegin).keyBegin % s.launch.keyTile;
  return rest < 0 ? rest + s.launch.keyTile : rest;
}

/// Numbers of blocks are one more than theirs: 0 is block -1. Element i has number first + i.
std::vector<BlockRecord> blocksOf(const Launch &s, const rt::WorkList &list, const TileHeader &tile,
                                  int64_t first, int64_t count) {
  std::vector<BlockRecord> blocks(std::max<int64_t>(0, count - first));
  const int64_t anchor = anchorOf(s, list, tile);
  if (!s.keys.kvStart) {
    EXPECT_EQ(anchor, 0);
  }
  int64_t previous = std::numeric_limits<int64_t>::max();
  for (int32_t i = tile.entryBegin; i < tile.entryBegin + tile.entryCount; ++i) {
    const TileEntry &entry = list.entries.at(i);
    EXPECT_GE(entry.blocks, 1);
    EXPECT_EQ((entry.keyBegin - anchor) % s.launch.keyTile, 0);
    EXPECT_NE(entry.classes, 0u);
    EXPECT_EQ(entry.classes >> (kGroupClassBits * s.launch.groups), 0u);
    EXPECT_LE(entry.keyBegin + entry.blocks * s.launch.keyTile, previous);
    if (entry.visible >= 0) {
      EXPECT_EQ(entry.blocks, 1);
    }
    // Runs are as long as they can be.
    if (i > tile.entryBegin && entry.visible < 0) {
      const TileEntry &above = list.entries[i - 1];
      const bool adjacent = entry.keyBegin + entry.blocks * s.launch.keyTile == above.keyBegin;
      EXPECT_FALSE(adjacent && above.visible < 0 && above.classes == entry.classes);
    }
    previous = entry.keyBegin;
    for (int32_t j = 0; j < entry.blocks; ++j)
      blocks.at((entry.keyBegin - anchor) / s.launch.keyTile + 1 + j - first) = {entry.classes,
                                                                                 entry.visible};
  }
  return blocks;
}

struct Judge {
  const Mask &mask;
  const Launch &s;
  const rt::WorkList &list;
  TileCounters counts{};
  std::vector<int64_t> costs{}; ///< of each tile
  int64_t bitmaps = 0;
  TilePlan plan = TilePlan::Intervals; ///< of the list
  int64_t numHalves = 0;               ///< tiles with TileHeader::halves

  /// One block of one tile for one head, key by key.
  void block(const TileHeader &tile, int64_t head, int64_t number, const BlockRecord &got) {
    const int64_t size = s.launch.keyTile;
    const int64_t firstKey = anchorOf(s, list, tile) + (number - 1) * size;
    std::vector<int64_t> kept(s.launch.groups, 0), pairs(s.launch.groups, 0);
    std::vector<bool> seen(size, false);
    for (int64_t i = 0; i < tile.rows; ++i)
      for (int64_t r = 0; r < size; ++r) {
        const int64_t k = firstKey + r;
        const bool live = tile.keyBegin <= k && k < tile.keyEnd;
        const bool keep = live && mask.keep(s.batch, tile.request, head, tile.queryBegin + i, k);
        kept[i / kGroupRows] += keep;
        ++pairs[i / kGroupRows];
        seen[r] = seen[r] || keep;
      }
    bool anyPartial = false;
    for (int64_t g = 0; g < s.launch.groups; ++g) {
      const uint32_t cls = (got.classes >> (kGroupClassBits * g)) & 3;
      const std::string place = std::string(mask.name) + " request " +
                                std::to_string(tile.request) + " q " +
                                std::to_string(tile.queryBegin) + " block " +
                                std::to_string(number) + " group " + std::to_string(g);
      const uint32_t exact = kept[g] == 0          ? kGroupSkip
                             : kept[g] == pairs[g] ? kGroupFull
                                                   : kGroupPartial;
      if (mask.intervals) {
        ASSERT_EQ(cls, exact) << place;
      } else {
        ASSERT_TRUE(cls == exact || cls == kGroupPartial) << place;
      }
      anyPartial |= cls == kGroupPartial;
      counts.visited += cls != kGroupSkip;
      counts.full += cls == kGroupFull;
    }
    if (!got.classes)
      return;
    ++counts.loaded;
    costs.back() += anyPartial ? 6 : 5;
    const bool hidden = std::find(seen.begin(), seen.end(), false) != seen.end();
    ASSERT_EQ(got.visible >= 0, hidden && !s.launch.testsVisible) << mask.name;
    if (got.visible < 0)
      return;
    ++bitmaps;
    for (int64_t r = 0; r < kMaxKeyTile; ++r) {
      const uint32_t word = list.visible.at(got.visible * kVisibleWords + r / 32);
      ASSERT_EQ((word >> (r % 32)) & 1, r < size && seen[r]) << mask.name << " key " << r;
    }
  }

  /// Groups that need the lower half of the highest block alone: none is named that needs more,
  /// and all are where the mask's rows are intervals.
  void halves(const TileHeader &tile, int64_t head) {
    uint32_t exact = 0;
    if (tile.entryCount > 0) {
      const TileEntry &entry = list.entries.at(tile.entryBegin);
      const int64_t size = s.launch.keyTile;
      const int64_t firstKey = entry.keyBegin + (entry.blocks - 1) * size;
      for (int64_t g = 0; g < s.launch.groups; ++g)
        if (((entry.classes >> (kGroupClassBits * g)) & 3) != kGroupSkip)
          exact |= uint32_t(1) << g;
      for (int64_t i = 0; i < tile.rows; ++i)
        for (int64_t k = firstKey + size / 2; k < firstKey + size; ++k)
          if (tile.keyBegin <= k && k < tile.keyEnd &&
              mask.keep(s.batch, tile.request, head, tile.queryBegin + i, k))
            exact &= ~(uint32_t(1) << (i / kGroupRows));
    }
    if (mask.intervals && plan == TilePlan::Intervals) {
      ASSERT_EQ(tile.halves, exact) << mask.name << " q " << tile.queryBegin;
    } else {
      ASSERT_EQ(tile.halves & ~exact, 0u) << mask.name << " q " << tile.queryBegin;
    }
    numHalves += tile.halves != 0;
  }

  /// The entries of a tile. Whatever the list leaves out must hold no kept pair. No entry lies
  /// before the block of key `from`; with long requests such blocks are too many to go through.
  void tile(const TileHeader &tile, int64_t head, int64_t from = 0) {
    costs.push_back(0);
    const int64_t first = from / s.launch.keyTile;
    const int64_t count = (tile.keyEnd + s.launch.keyTile - 1) / s.launch.keyTile + 1;
    const std::vector<BlockRecord> blocks = blocksOf(s, list, tile, first, count);
    for (int64_t i = first; i < count && !testing::Test::HasFatalFailure(); ++i)
      block(tile, head, i, blocks[i - first]);
    halves(tile, head);
  }
};

/// Every token of a part and every head lie in exactly one of its work items, in the promised
/// order.
void judgePart(const Launch &s, const rt::WorkList &list, const std::vector<int64_t> &costs,
               rt::TokenRange tokens, rt::WorkSlice slice) {
  const Batch &batch = s.batch;
  std::set<std::pair<int64_t, int64_t>> rows;
  for (int64_t i = slice.begin; i < slice.end; ++i) {
    const WorkItem &item = list.work.at(i);
    const TileHeader &tile = list.tiles.at(item.tile);
    ASSERT_GE(tile.tokenBegin, tokens.begin);
    ASSERT_LE(tile.tokenBegin + tile.rows, tokens.end);
    for (int32_t row = 0; row < tile.rows; ++row)
      ASSERT_TRUE(rows.insert({tile.tokenBegin + row, item.head}).second);
  }
  ASSERT_EQ(static_cast<int64_t>(rows.size()), (tokens.end - tokens.begin) * batch.numHeads);
  const int64_t group = batch.numHeads / batch.numKvHeads;
  int64_t keys = 0;
  for (int64_t b = 0; b < batch.shape.numReqs(); ++b)
    if (std::max(tokens.begin, batch.shape.queryStartLoc[b]) <
        std::min(tokens.end, batch.shape.queryStartLoc[b + 1]))
      keys += batch.shape.keyEnd[b] - batch.shape.keyBegin[b];
  auto headsWithin = [&](int64_t bytes) {
    return std::max<int64_t>(1, bytes / s.keys.bytes / std::max<int64_t>(1, keys));
  };
  const int64_t together = headsWithin(rt::kL2Budget);
  int64_t sum = 0, most = 0;
  for (int64_t i = slice.begin; i < slice.end; ++i) {
    sum += costs[list.work[i].tile];
    most = std::max(most, costs[list.work[i].tile]);
  }
  const bool isUneven = 2 * most * (slice.end - slice.begin) > 3 * sum;
  const int64_t lastTogether = isUneven ? headsWithin(rt::kLastL2Budget) : together;
  // The first head of the last group.
  int64_t lastGroup = 0;
  while (batch.numKvHeads - lastGroup > lastTogether)
    lastGroup += together;
  int64_t previousSet = 0, previousCost = std::numeric_limits<int64_t>::max();
  ASSERT_EQ((slice.end - slice.begin) % group, 0);
  for (int64_t i = slice.begin; i < slice.end; i += group) {
    const int64_t kv = list.work[i].head / group;
    int64_t cost = 0;
    for (int64_t g = 0; g < group; ++g) {
      const WorkItem &item = list.work[i + g];
      ASSERT_EQ(item.head, kv * group + g);
      ASSERT_EQ(list.tiles[item.tile].tokenBegin, list.tiles[list.work[i].tile].tokenBegin);
      cost = std::max(cost, costs[item.tile]);
    }
    const int64_t set = std::min(kv, lastGroup) / together;
    ASSERT_GE(set, previousSet);
    if (set == previousSet) {
      ASSERT_LE(cost, previousCost);
    }
    previousSet = set;
    previousCost = cost;
  }
}

/// The parts between the cuts follow each other in the work, and each is in order.
void judgeOrder(const Launch &s, const rt::WorkList &list, const std::vector<int64_t> &costs) {
  ASSERT_EQ(list.parts.size(), s.cuts.size() + 1);
  rt::TokenRange tokens;
  rt::WorkSlice slice;
  for (size_t i = 0; i < list.parts.size(); ++i) {
    tokens.end = i < s.cuts.size() ? s.cuts[i] : s.batch.shape.numTokens();
    ASSERT_EQ(list.parts[i].tokenEnd, tokens.end);
    slice.end = list.parts[i].workEnd;
    judgePart(s, list, costs, tokens, slice);
    tokens.begin = tokens.end;
    slice.begin = slice.end;
  }
  ASSERT_EQ(slice.end, static_cast<int64_t>(list.work.size()));
}

TEST(WorkList, ClassesBitmapsCountsAndOrder) {
  Random random(11);
  int64_t blocks = 0, bitmaps = 0, halves = 0;
  for (const Mask &mask : kMasks) {
    const MaskProgram program = programOf(mask);
    ASSERT_EQ(verify(program).value_or(""), "");
    const bool perHead = program.mask >= 0 && dependence(program, program.mask).h;
    for (int round = 0; round < 60; ++round) {
      const Launch s = randomSetup(random);
      const TilePlan plan =
          mask.intervals && random.in(0, 2) ? TilePlan::Intervals : TilePlan::Abstract;
      Result<rt::WorkList> list =
          rt::buildWorkList(program, s.batch, s.launch, plan, s.keys, s.cuts);
      ASSERT_TRUE(list.ok()) << list.message();
      Judge judge{mask, s, *list};
      judge.plan = plan;
      const int64_t tileHeads = perHead ? s.batch.numHeads : 1;
      size_t next = 0;
      int32_t entries = 0;
      for (int64_t b = 0; b < s.batch.shape.numReqs(); ++b)
        for (int64_t i = 0, end = 0; i < s.batch.shape.queryLen(RequestIndex(b)); i = end) {
          const int64_t token = s.batch.shape.queryStartLoc[b] + i;
          end = std::min(i + s.launch.queryTile(), s.batch.shape.queryLen(RequestIndex(b)));
          if (auto cut = std::upper_bound(s.cuts.begin(), s.cuts.end(), token); cut != s.cuts.end())
            end = std::min(end, i + *cut - token);
          for (int64_t h = 0; h < tileHeads; ++h) {
            const TileHeader &tile = list->tiles.at(next++);
            ASSERT_EQ(tile.request, b);
            ASSERT_EQ(tile.queryBegin, s.batch.shape.contextLen[b] + i);
            ASSERT_EQ(tile.tokenBegin, token);
            ASSERT_EQ(tile.rows, end - i);
            ASSERT_EQ(tile.entryBegin, entries);
            ASSERT_EQ(tile.kvRow, s.keys.kvStart ? s.kvStart[b] : 0);
            ASSERT_EQ(tile.keyBegin, s.batch.shape.keyBegin[b]);
            ASSERT_EQ(tile.keyEnd, s.batch.shape.keyEnd[b]);
            entries += tile.entryCount;
            judge.tile(tile, h);
            if (HasFatalFailure())
              return;
          }
        }
      ASSERT_EQ(list->tiles.size(), next);
      ASSERT_EQ(static_cast<int32_t>(list->entries.size()), entries);
      ASSERT_EQ(static_cast<int64_t>(list->visible.size()), judge.bitmaps * kVisibleWords);
      const uint64_t heads = s.batch.numHeads / tileHeads;
      ASSERT_EQ(list->counts.loaded, heads * judge.counts.loaded);
      ASSERT_EQ(list->counts.visited, heads * judge.counts.visited);
      ASSERT_EQ(list->counts.full, heads * judge.counts.full);
      judgeOrder(s, *list, judge.costs);
      if (HasFatalFailure())
        return;
      blocks += static_cast<int64_t>(judge.counts.visited);
      bitmaps += judge.bitmaps;
      halves += judge.numHalves;
    }
  }
  std::printf("%ld blocks, %ld bitmaps, %ld tiles with halves\n", static_cast<long>(blocks),
              static_cast<long>(bitmaps), static_cast<long>(halves));
  EXPECT_GT(bitmaps, 1000);
  EXPECT_GT(halves, 500);
}

/// Chunks of queries and decode rows whose last key is at or a little below `end`.
Launch setupBelow(int64_t end, int64_t keyTile, Random &random) {
  Launch s;
  Batch &batch = s.batch;
  batch.numKvHeads = 1;
  batch.numHeads = random.in(1, 2);
  BatchShape &shape = batch.shape;
  shape.queryStartLoc = {0};
  TableData mm;
  mm.rangeOffsets = {0};
  for (int64_t queries : {random.in(120, 140), int64_t(1), random.in(2, 64)}) {
    const int64_t seqLen = end - random.in(0, std::min(end, 2 * keyTile));
    shape.queryStartLoc.push_back(shape.queryStartLoc.back() + queries);
    shape.seqLen.push_back(seqLen);
    shape.contextLen.push_back(seqLen - queries);
    const bool part = random.in(0, 2) == 0;
    shape.keyBegin.push_back(part ? std::max<int64_t>(0, seqLen - random.in(0, 900)) : 0);
    shape.keyEnd.push_back(part ? std::max(shape.keyBegin.back(), seqLen - random.in(0, 90))
                                : seqLen);
    s.kvStart.push_back(0);
    if (random.in(0, 1) && seqLen > 0) {
      const int64_t first = std::max<int64_t>(0, seqLen - random.in(1, 2000));
      mm.ranges.push_back({static_cast<int32_t>(first),
                           static_cast<int32_t>(std::min(seqLen - 1, first + random.in(1, 1900)))});
    }
    mm.rangeOffsets.push_back(static_cast<int64_t>(mm.ranges.size()));
  }
  batch.tables.push_back(std::move(mm));
  batch.params = {{random.in(950, 1050), 0}, {0, 0}};
  s.launch.groups = random.in(1, 3);
  s.launch.keyTile = keyTile;
  s.launch.testsVisible = random.in(0, 1);
  s.keys.kvStart = random.in(0, 1) ? s.kvStart.data() : nullptr;
  s.keys.bytes = 512;
  return s;
}

// Blocks are found by a multiplication instead of a division; it is exact for every size of a block
// that a manifest allows and every position.
TEST(WorkList, BlocksAtBothEndsOfThePositions) {
  Random random(12);
  const Mask &mask = kMasks[3];
  const MaskProgram program = programOf(mask);
  int64_t full = 0, bitmaps = 0;
  for (int64_t keyTile = 16; keyTile <= kMaxKeyTile; keyTile += 16)
    for (int64_t end : {int64_t(50), int64_t(2000), kPositionLimit})
      for (int round = 0; round < 10; ++round) {
        const Launch s = setupBelow(end, keyTile, random);
        Result<rt::WorkList> list =
            rt::buildWorkList(program, s.batch, s.launch, TilePlan::Intervals, s.keys);
        ASSERT_TRUE(list.ok()) << list.message();
        Judge judge{mask, s, *list};
        for (const TileHeader &tile : list->tiles) {
          judge.tile(tile, 0, std::max<int64_t>(0, tile.queryBegin - 2100));
          ASSERT_FALSE(HasFatalFailure()) << "blocks of " << keyTile << " below " << end;
        }
        const uint64_t heads = s.batch.numHeads;
        ASSERT_EQ(list->counts.loaded, heads * judge.counts.loaded);
        ASSERT_EQ(list->counts.visited, heads * judge.counts.visited);
        ASSERT_EQ(list->counts.full, heads * judge.counts.full);
        ASSERT_EQ(static_cast<int64_t>(list->visible.size()), judge.bitmaps * kVisibleWords);
        full += static_cast<int64_t>(judge.counts.full);
        bitmaps += judge.bitmaps;
      }
  EXPECT_GT(full, 1000);
  EXPECT_GT(bitmaps, 300);
}

} // namespace
