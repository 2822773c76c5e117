// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Runtime/SplitPlan.h"

#include "RecordLimits.h"

#include "attn/Core/IntMath.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <tuple>
#include <utility>

using namespace attn;
using namespace attn::core;
using namespace attn::rt;

//===----------------------------------------------------------------------===//
// Policies
//===----------------------------------------------------------------------===//

int64_t rt::sm100RelbiasSplits(const RelbiasLaunch &launch) {
  if (launch.target.substr(0, 5) == "sm_90" || launch.isLocal)
    return 1;
  const int64_t queryTiles = ceilDiv(launch.longestQuery * launch.heads / launch.kvHeads, 256);
  const int64_t base = launch.requests * launch.kvHeads * queryTiles;
  if (base < 1)
    return 1;
  const bool isOneTile = queryTiles == 1 && launch.requests == 1;
  const int64_t target = isOneTile ? 256 : queryTiles == 1 ? 128 : 64;
  int64_t cap = kMostSplits;
  if (isOneTile) {
    if (launch.kvHeads == 8)
      cap = 16;
    else if (launch.kvHeads == 4 || launch.keys <= 8192)
      cap = 32;
    else if (launch.keys <= 65536)
      cap = 64;
  }
  return std::max<int64_t>(1, std::min({target / base, cap, ceilDiv(launch.keys, 128)}));
}

static int64_t blocksOf(const WorkListView &list, const TileHeader &tile) {
  int64_t blocks = 0;
  for (int64_t i = 0; i < tile.entryCount; ++i)
    blocks += list.entries[tile.entryBegin + i].blocks;
  return blocks;
}

namespace {

/// The time of a launch by the rule of measuredSplits(), in blocks. Tiles of about the same work
/// count as equal, so that a trial costs the same for any number of tiles.
class LaunchModel {
public:
  LaunchModel(const WorkListView &list, const MeasuredLaunch &launch)
      : slots(std::max<int64_t>(launch.sms * launch.ctasPerSm, 1)) {
    int64_t known[kKnown]; // blocks of the first tiles
    for (int64_t t = 0; t < list.tiles.size; ++t) {
      const int64_t blocks = blocksOf(list, list.tiles[t]);
      longestTile = std::max(longestTile, blocks);
      if (t < kKnown)
        known[t] = blocks;
    }
    int64_t blocksIn[kClasses] = {};
    int64_t rowsIn[kClasses] = {};
    int64_t tilesIn[kClasses] = {};
    int64_t last = 0, i = 0; // tiles side by side are often alike
    for (int64_t t = 0; t < list.tiles.size; ++t) {
      const TileHeader &tile = list.tiles[t];
      const int64_t blocks = t < kKnown ? known[t] : blocksOf(list, tile);
      if (blocks == 0)
        continue;
      if (blocks != last)
        i = (blocks * kClasses - 1) / longestTile;
      last = blocks;
      blocksIn[i] += blocks;
      rowsIn[i] += tile.rows;
      ++tilesIn[i];
      totalBlocks += blocks;
    }
    // Work items a tile.
    const double heads = list.tiles.size == 0 ? 0
                                              : static_cast<double>(list.work.size) /
                                                    static_cast<double>(list.tiles.size);
    const double block =
        static_cast<double>(launch.keyTile * (launch.dimQk + launch.dimV) * launch.kvElement);
    const double rowCost = block > 0 ? static_cast<double>(launch.dimV + 1) * 4 * 2 / block : 0;
    for (int i = 0; i < kClasses; ++i)
      if (const int64_t tiles = tilesIn[i])
        classes[numClasses++] = {ceilDiv(blocksIn[i], tiles), heads * static_cast<double>(tiles),
                                 rowCost * static_cast<double>(rowsIn[i]) /
                                     static_cast<double>(tiles)};
    least = static_cast<double>(totalBlocks) * heads / static_cast<double>(slots);
  }

  int64_t longest() const { return longestTile; }
  /// No split is faster than this.
  double leastTime() const { return least; }

  /// `limit`: blocks of a piece.
  double time(int64_t limit) const {
    double longest = 0;
    double work = 0;
    forEach(limit, [&](double cost, double pieces) {
      longest = std::max(longest, cost);
      work += cost * pieces;
    });
    if (longest == 0)
      return 0;
    // Pieces by cost, the costliest first; those of a class count as the cheapest of them.
    double counts[kClasses] = {};
    double cheapest[kClasses];
    std::fill(std::begin(cheapest), std::end(cheapest), longest);
    const double scale = kClasses / longest;
    forEach(limit, [&](double cost, double pieces) {
      const int i = std::min(static_cast<int>((longest - cost) * scale), kClasses - 1);
      counts[i] += pieces;
      cheapest[i] = std::min(cheapest[i], cost);
    });
    double end = work / static_cast<double>(slots);
    double pieces = 0;
    for (int i = 0; i < kClasses; ++i) {
      if (counts[i] == 0)
        continue;
      pieces += counts[i];
      const int64_t waves = ceilDiv(static_cast<int64_t>(pieces + 0.5), slots);
      end = std::max(end, static_cast<double>(waves) * cheapest[i]);
    }
    return end;
  }

private:
  /// Calls `visit` with a cost and the number of pieces that have it.
  template <class Visit>
  void forEach(int64_t limit, Visit visit) const {
    for (int c = 0; c < numClasses; ++c) {
      const Class &tiles = classes[c];
      if (tiles.blocks <= limit) {
        visit(static_cast<double>(tiles.blocks), tiles.items);
        continue;
      }
      const int64_t pieces = ceilDiv(tiles.blocks, limit);
      const int64_t larger = tiles.blocks % pieces;
      const double smallest = static_cast<double>(tiles.blocks / pieces) + tiles.partialCost;
      if (larger)
        visit(smallest + 1, tiles.items * static_cast<double>(larger));
      visit(smallest, tiles.items * static_cast<double>(pieces - larger));
    }
  }

  /// Tiles whose blocks are a like share of the longest's.
  struct Class {
    int64_t blocks;     ///< of a tile, on average
    double items;       ///< work items of these tiles
    double partialCost; ///< of a partial result, in blocks
  };
  static constexpr int kClasses = 64;
  static constexpr int64_t kKnown = 512;

  const int64_t slots;
  int64_t longestTile = 0;
  int64_t totalBlocks = 0;
  double least = 0;
  Class classes[kClasses];
  int numClasses = 0;
};

} // namespace

Splits rt::measuredSplits(const WorkListView &list, const MeasuredLaunch &launch) {
  constexpr int64_t kShortTile = 4;
  constexpr double kShare = 0.85;
  const LaunchModel model(list, launch);
  const int64_t longest = model.longest();
  // The usual case of a full device: nothing to gain, and no other split to look at.
  if (longest <= kShortTile || model.time(longest) * kShare <= model.leastTime())
    return {};
  const int64_t most = std::min(longest, kMostSplits);
  auto limitOf = [&](int64_t s) { return ceilDiv(longest, s); };
  auto next = [&](int64_t s) {
    const int64_t step = std::max<int64_t>(s / 4, 1);
    return s < most ? std::min(s + step, most) : most + 1;
  };
  double best = model.time(longest);
  for (int64_t s = 2; s <= most; s = next(s))
    best = std::min(best, model.time(limitOf(s)));
  int64_t s = 1;
  while (s < most && model.time(limitOf(s)) * kShare > best)
    s = next(s);
  return s == 1 ? Splits() : Splits{Splits::Kind::Blocks, limitOf(s)};
}

/// Pieces of `splits.value` blocks, or of so many more that no tile has more than `most` of them.
static Splits withAtMost(int64_t most, const Splits &splits, const WorkListView &list) {
  if (splits.kind != Splits::Kind::Blocks)
    return splits;
  int64_t longest = 0;
  for (const TileHeader &tile : list.tiles)
    longest = std::max(longest, blocksOf(list, tile));
  const int64_t value = std::max(splits.value, ceilDiv(longest, most));
  return value >= longest ? Splits() : Splits{Splits::Kind::Blocks, value};
}

Splits rt::splitsOf(const Recipe &recipe, const WorkListView &list, MeasuredLaunch measured,
                    RelbiasLaunch relbias) {
  int64_t count = recipe.pieces;
  switch (recipe.policy) {
  case SplitPolicy::Measured:
    measured.ctasPerSm = recipe.ctasPerSm;
    return withAtMost(recipe.pieces, measuredSplits(list, measured), list);
  case SplitPolicy::Sm100Relbias:
    relbias.isLocal = recipe.isLocal;
    count = std::min(count, sm100RelbiasSplits(relbias));
    break;
  case SplitPolicy::Count:
    break;
  }
  return count == 1 ? Splits() : Splits{Splits::Kind::Count, count};
}

//===----------------------------------------------------------------------===//
// The plan
//===----------------------------------------------------------------------===//

/// Pieces of a tile of `blocks` blocks that is cut evenly.
static int64_t evenPieces(const Splits &splits, int64_t blocks) {
  const int64_t value = std::max<int64_t>(splits.value, 1);
  switch (splits.kind) {
  case Splits::Kind::Count:
    return std::max<int64_t>(std::min(value, blocks), 1);
  case Splits::Kind::Blocks:
    return std::max<int64_t>(ceilDiv(blocks, value), 1);
  case Splits::Kind::Whole:
  case Splits::Kind::Anchored:
    break;
  }
  return 1;
}

namespace {

/// Says how many blocks the next piece takes at most, walking down the blocks of one tile.
class Cuts {
public:
  Cuts(const Splits &splits, int64_t blocks)
      : anchor(splits.kind == Splits::Kind::Anchored ? std::max<int64_t>(splits.value, 1) : 0),
        total(blocks), pieces(evenPieces(splits, blocks)) {}

  /// Blocks from `block` (counted from key 0) down that belong to its piece.
  int64_t room(int64_t block) const {
    if (anchor)
      return block - floorDiv(block, anchor) * anchor + 1;
    return total * (piece + 1) / pieces - done;
  }
  /// Whether `block` starts a new piece, after some block was taken.
  bool starts(int64_t block) const {
    return anchor ? floorDiv(block, anchor) != group : done == total * (piece + 1) / pieces;
  }
  void start() { ++piece; }
  void take(int64_t lowestBlock, int64_t blocks) {
    done += blocks;
    if (anchor)
      group = floorDiv(lowestBlock, anchor);
  }

private:
  const int64_t anchor; ///< 0: cut evenly
  const int64_t total;
  const int64_t pieces;
  int64_t piece = 0;
  int64_t done = 0;
  int64_t group = 0;
};

} // namespace

/// Calls take(entry) for the cut entries of a tile from the highest keys down, and close(blocks)
/// after those of each piece. A tile without keys is one piece without entries.
template <class Take, class Close>
static void cutTile(const WorkListView &list, const TileHeader &tile, const Splits &splits,
                    int64_t keyTile, Take take, Close close) {
  Cuts cuts(splits, blocksOf(list, tile));
  int64_t blocks = 0;
  for (int64_t i = 0; i < tile.entryCount; ++i) {
    const TileEntry &entry = list.entries[tile.entryBegin + i];
    const int64_t lowest = floorDiv(entry.keyBegin, keyTile);
    for (int64_t left = entry.blocks; left > 0;) {
      const int64_t highest = lowest + left - 1;
      if (blocks && cuts.starts(highest)) {
        close(blocks);
        blocks = 0;
        cuts.start();
      }
      const int64_t count = std::min(left, cuts.room(highest));
      left -= count;
      take(TileEntry{static_cast<int32_t>(entry.keyBegin + left * keyTile),
                     static_cast<int32_t>(count), entry.classes, entry.visible});
      cuts.take(lowest + left, count);
      blocks += count;
    }
  }
  close(blocks);
}

Result<SplitSizes> rt::splitSizes(const WorkListView &list, const Splits &splits, int64_t keyTile) {
  if (keyTile < 1)
    return Error{"split plan: key tile is " + std::to_string(keyTile) + ", expected at least 1"};
  SplitSizes sizes;
  sizes.tiles = static_cast<int64_t>(list.tiles.size);
  // Heads that share a tile.
  const int64_t heads = sizes.tiles ? static_cast<int64_t>(list.work.size) / sizes.tiles : 0;
  for (const TileHeader &tile : list.tiles) {
    int64_t pieces = 0;
    cutTile(
        list, tile, splits, keyTile, [&](const TileEntry &) { ++sizes.entries; },
        [&](int64_t) { ++pieces; });
    sizes.pieces += pieces;
    sizes.work += pieces * heads;
    if (pieces == 1)
      continue;
    sizes.combines += heads;
    sizes.partialRows += pieces * heads * tile.rows;
  }
  for (auto [what, value] :
       {std::pair("number of pieces", sizes.pieces), std::pair("number of entries", sizes.entries),
        std::pair("number of work items", sizes.work)})
    if (Status status = checkFits("split plan", what, value); !status)
      return Error{status.message()};
  return sizes;
}

Result<SplitSizes> rt::fillSplitPlan(const WorkListView &list, const Splits &splits,
                                     int64_t keyTile, const SplitMemory &memory) {
  Result<SplitSizes> sizes = splitSizes(list, splits, keyTile);
  if (!sizes)
    return sizes;
  for (auto [what, size, room] :
       {std::tuple("pieces", sizes->pieces, memory.pieces.size),
        std::tuple("tiles and one", sizes->tiles + 1, memory.pieceBegin.size),
        std::tuple("entries", sizes->entries, memory.entries.size),
        std::tuple("work items", sizes->work, memory.work.size),
        std::tuple("combines", sizes->combines, memory.combines.size)})
    if (Status status = checkRoom("split plan", what, size, room); !status)
      return Error{status.message()};

  int32_t piece = 0;
  int32_t entry = 0;
  for (int64_t t = 0; t < sizes->tiles; ++t) {
    const int32_t first = memory.pieceBegin[t] = piece;
    int32_t begin = entry;
    cutTile(
        list, list.tiles[t], splits, keyTile,
        [&](const TileEntry &cut) { memory.entries[entry++] = cut; },
        [&](int64_t blocks) {
          memory.pieces[piece] = {
              static_cast<int32_t>(t),     piece - first, 0, begin, entry - begin,
              static_cast<int32_t>(blocks)};
          begin = entry;
          ++piece;
        });
    for (int32_t i = first; i < piece; ++i)
      memory.pieces[i].count = piece - first;
  }
  memory.pieceBegin[sizes->tiles] = piece;

  int64_t work = 0;
  int64_t combine = 0;
  int64_t row = 0;
  for (const WorkItem &item : list.work) {
    const int32_t first = memory.pieceBegin[item.tile];
    const int32_t count = memory.pieceBegin[item.tile + 1] - first;
    const int32_t rows = list.tiles[item.tile].rows;
    if (count == 1) {
      memory.work[work++] = {first, item.head, -1};
      continue;
    }
    memory.combines[combine++] = {item.tile, item.head, count, rows, row};
    for (int32_t i = 0; i < count; ++i, row += rows)
      memory.work[work++] = {first + i, item.head, row};
  }
  return sizes;
}

Result<SplitPlan> rt::buildSplitPlan(const WorkListView &list, const Splits &splits,
                                     int64_t keyTile) {
  Result<SplitSizes> sizes = splitSizes(list, splits, keyTile);
  if (!sizes)
    return Error{sizes.message()};
  SplitPlan plan;
  plan.sizes = *sizes;
  plan.pieces.resize(sizes->pieces);
  plan.pieceBegin.resize(sizes->tiles + 1);
  plan.entries.resize(sizes->entries);
  plan.work.resize(sizes->work);
  plan.combines.resize(sizes->combines);
  Result<SplitSizes> filled =
      fillSplitPlan(list, splits, keyTile,
                    {plan.pieces, plan.pieceBegin, plan.entries, plan.work, plan.combines});
  if (!filled)
    return Error{filled.message()};
  return plan;
}
