// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Work lists. Every row group of a query tile gets ascending runs of key blocks with a class, from
// the interval sets of its rows where those are known: a block is visited if it meets the union of
// the rows and full if it lies inside their intersection. Otherwise blocks that meet the union of
// the rows' bounds are classified by abstract evaluation over boxes, large boxes first. One sweep
// over the groups' runs then makes the entries. O(rows + blocks) for each tile besides the mask.
#include "attn/Runtime/WorkList.h"

#include "attn/Core/IntMath.h"
#include "attn/Core/MaskEval.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string>

using namespace attn;
using namespace attn::core;
using namespace attn::rt;

namespace {

/// Consecutive key blocks of one class.
struct ClassRun {
  Interval blocks;
  GroupClass cls;
};

/// Runs in ascending order; adjacent ones of a class are joined.
void append(std::vector<ClassRun> &runs, Interval blocks, GroupClass cls) {
  if (blocks.empty())
    return;
  if (!runs.empty() && runs.back().blocks.hi == blocks.lo && runs.back().cls == cls)
    runs.back().blocks.hi = blocks.hi;
  else
    runs.push_back({blocks, cls});
}

/// Reads the runs of one group in ascending order.
class RunCursor {
public:
  explicit RunCursor(const std::vector<ClassRun> &runs) : runs(runs) {}

  /// Class of `block`, and of those after it up to `end`, which moves down to where it changes.
  GroupClass at(int64_t block, int64_t &end) {
    while (next < runs.size() && runs[next].blocks.hi <= block)
      ++next;
    if (next == runs.size())
      return kGroupSkip;
    const Interval &blocks = runs[next].blocks;
    const bool inside = blocks.lo <= block;
    end = std::min(end, inside ? blocks.hi : blocks.lo);
    return inside ? runs[next].cls : kGroupSkip;
  }

private:
  const std::vector<ClassRun> &runs;
  size_t next = 0;
};

/// One query tile for one head.
struct QueryTile {
  RequestIndex b;
  HeadIndex h;
  Interval queries;
  Interval keys; ///< of the launch
};

using Bitmap = std::array<uint32_t, kVisibleWords>;

/// What became of a tile, for one head.
struct TileSums {
  int64_t cost = 0;
  TileCounters counts{};
};

/// A block whose mask is tested costs 1.2 times one whose mask is not. An estimate: the loop bodies
/// differ by about that many instructions.
constexpr int64_t kPartialCost = 6, kFullCost = 5;

class TileBuilder {
public:
  TileBuilder(const MaskProgram &program, const Batch &batch, const CudaLaunch &launch,
              TilePlan plan, WorkList &list)
      : eval(program, batch), launch(launch), size(launch.keyTile), plan(plan), list(list),
        groups(launch.groups) {}

  /// Appends the entries of a tile, without its header.
  TileSums build(const QueryTile &tile);

private:
  bool classifyExactly(const QueryTile &tile);
  void classifySoundly(const QueryTile &tile);
  void classifyBoxes(const QueryTile &tile, Interval queries, Interval blocks,
                     std::vector<ClassRun> &runs);
  void emit(const QueryTile &tile, Interval blocks, uint32_t classes);
  Bitmap visibleKeys(const QueryTile &tile, int64_t block);
  void addEntry(Interval blocks, uint32_t classes, int32_t visible);

  Interval groupRows(const QueryTile &tile, int64_t group) const {
    const int64_t lo = tile.queries.lo + group * kGroupRows;
    return {lo, std::min(lo + kGroupRows, tile.queries.hi)};
  }
  Interval blocksOf(Interval run) const { return {floorDiv(run.lo, size), ceilDiv(run.hi, size)}; }

  MaskEvaluator eval;
  const CudaLaunch &launch;
  const int64_t size;
  const TilePlan plan;
  WorkList &list;
  // Of the tile being built.
  std::vector<std::vector<ClassRun>> groups;
  std::optional<IntervalSet> kept; ///< keys that some row keeps, if the rows are known
  size_t firstEntry = 0;
  TileSums sums;
};

/// Classes from the rows' sets; false if some row is not an interval set.
bool TileBuilder::classifyExactly(const QueryTile &tile) {
  const IntervalSet keys(tile.keys);
  std::vector<Interval> keptRuns;
  for (int64_t g = 0; g < launch.groups; ++g) {
    groups[g].clear();
    const Interval rows = groupRows(tile, g);
    std::vector<Interval> inSome;
    IntervalSet inEvery = rows.empty() ? IntervalSet() : keys;
    for (int64_t q = rows.lo; q < rows.hi; ++q) {
      const std::optional<IntervalSet> row = eval.rowKeys(tile.b, tile.h, QueryPos(q));
      if (!row)
        return false;
      const IntervalSet live = *row & keys;
      inSome.insert(inSome.end(), live.runs().begin(), live.runs().end());
      inEvery = inEvery & live;
    }
    const IntervalSet some = IntervalSet::unionOf(std::move(inSome));
    keptRuns.insert(keptRuns.end(), some.runs().begin(), some.runs().end());
    std::vector<Interval> visited, full;
    for (const Interval &run : some.runs()) {
      const Interval blocks = blocksOf(run);
      if (!visited.empty() && blocks.lo <= visited.back().hi)
        visited.back().hi = blocks.hi;
      else
        visited.push_back(blocks);
    }
    for (const Interval &run : inEvery.runs())
      if (Interval blocks = {ceilDiv(run.lo, size), floorDiv(run.hi, size)}; !blocks.empty())
        full.push_back(blocks);
    size_t next = 0;
    for (Interval blocks : visited) {
      // Every full block is visited, and runs of full blocks never straddle a visited one.
      for (; next < full.size() && full[next].hi <= blocks.hi; ++next) {
        append(groups[g], {blocks.lo, full[next].lo}, kGroupPartial);
        append(groups[g], full[next], kGroupFull);
        blocks.lo = full[next].hi;
      }
      append(groups[g], blocks, kGroupPartial);
    }
  }
  kept = IntervalSet::unionOf(std::move(keptRuns));
  return true;
}

/// Classifies `blocks`, all of whose keys belong to the launch, as one box, and halves it where
/// that decides nothing.
void TileBuilder::classifyBoxes(const QueryTile &tile, Interval queries, Interval blocks,
                                std::vector<ClassRun> &runs) {
  if (blocks.empty())
    return;
  switch (eval.classify(tile.b, tile.h, queries, {blocks.lo * size, blocks.hi * size})) {
  case TileClass::Skip:
    return;
  case TileClass::Full:
    return append(runs, blocks, kGroupFull);
  case TileClass::Partial:
    break;
  }
  if (blocks.size() == 1)
    return append(runs, blocks, kGroupPartial);
  const int64_t middle = blocks.lo + blocks.size() / 2;
  classifyBoxes(tile, queries, {blocks.lo, middle}, runs);
  classifyBoxes(tile, queries, {middle, blocks.hi}, runs);
}

void TileBuilder::classifySoundly(const QueryTile &tile) {
  kept.reset();
  const IntervalSet keys(tile.keys);
  // Blocks that the launch has all keys of; the others are never full.
  const Interval whole = {ceilDiv(tile.keys.lo, size), floorDiv(tile.keys.hi, size)};
  for (int64_t g = 0; g < launch.groups; ++g) {
    groups[g].clear();
    const Interval rows = groupRows(tile, g);
    std::vector<Interval> bounds;
    for (int64_t q = rows.lo; q < rows.hi; ++q) {
      const IntervalSet bound = eval.rowKeysBound(tile.b, tile.h, QueryPos(q)) & keys;
      if (bound.runs() == bounds)
        continue; // the usual case: no row's bound is narrower than its neighbour's
      bounds.insert(bounds.end(), bound.runs().begin(), bound.runs().end());
      bounds = IntervalSet::unionOf(std::move(bounds)).runs();
    }
    auto classifyEdge = [&](int64_t block) {
      const Interval part = intersect({block * size, (block + 1) * size}, tile.keys);
      if (eval.classify(tile.b, tile.h, rows, part) != TileClass::Skip)
        append(groups[g], {block, block + 1}, kGroupPartial);
    };
    int64_t next = std::numeric_limits<int64_t>::min();
    for (const Interval &run : bounds) {
      Interval blocks = blocksOf(run);
      blocks.lo = std::max(blocks.lo, next); // two runs may meet one block
      next = std::max(next, blocks.hi);
      for (; blocks.lo < std::min(whole.lo, blocks.hi); ++blocks.lo)
        classifyEdge(blocks.lo);
      const int64_t edge = std::max(blocks.lo, std::min(blocks.hi, whole.hi));
      classifyBoxes(tile, rows, {blocks.lo, edge}, groups[g]);
      for (int64_t block = edge; block < blocks.hi; ++block)
        classifyEdge(block);
    }
  }
}

/// Bit r: some row of the tile keeps key r of the block.
Bitmap TileBuilder::visibleKeys(const QueryTile &tile, int64_t block) {
  Bitmap bits = {};
  const int64_t first = block * size;
  const Interval live = intersect({first, first + size}, tile.keys);
  auto set = [&](int64_t k) { bits[(k - first) / 32] |= uint32_t(1) << ((k - first) % 32); };
  if (kept) {
    const std::vector<Interval> &runs = kept->runs();
    auto run = std::upper_bound(runs.begin(), runs.end(), first,
                                [](int64_t k, const Interval &r) { return k < r.hi; });
    for (; run != runs.end() && run->lo < live.hi; ++run) {
      const Interval part = intersect(*run, live);
      for (int64_t k = part.lo; k < part.hi; ++k)
        set(k);
    }
    return bits;
  }
  for (int64_t k = live.lo; k < live.hi; ++k)
    for (int64_t q = tile.queries.lo; q < tile.queries.hi; ++q)
      if (eval.keep(tile.b, tile.h, QueryPos(q), KeyPos(k))) {
        set(k);
        break;
      }
  return bits;
}

/// Entries are gathered in ascending order; a run grows while classes stay equal.
void TileBuilder::addEntry(Interval blocks, uint32_t classes, int32_t visible) {
  if (visible < 0 && list.entries.size() > firstEntry) {
    TileEntry &last = list.entries.back();
    if (last.visible < 0 && last.classes == classes &&
        last.keyBegin + last.blocks * size == blocks.lo * size) {
      last.blocks += static_cast<int32_t>(blocks.size());
      return;
    }
  }
  list.entries.push_back({static_cast<int32_t>(blocks.lo * size),
                          static_cast<int32_t>(blocks.size()), classes, visible});
}

/// Blocks with one class a group.
void TileBuilder::emit(const QueryTile &tile, Interval blocks, uint32_t classes) {
  bool someFull = false;
  bool somePartial = false;
  for (int64_t g = 0; g < launch.groups; ++g) {
    const uint32_t cls = (classes >> (kGroupClassBits * g)) & ((1u << kGroupClassBits) - 1);
    someFull |= cls == kGroupFull;
    somePartial |= cls == kGroupPartial;
    sums.counts.visited += cls == kGroupSkip ? 0 : blocks.size();
    sums.counts.full += cls == kGroupFull ? blocks.size() : 0;
  }
  sums.counts.loaded += blocks.size();
  sums.cost += blocks.size() * (somePartial ? kPartialCost : kFullCost);
  if (launch.testsVisible || someFull)
    return addEntry(blocks, classes, -1);
  for (int64_t block = blocks.lo; block < blocks.hi; ++block) {
    const Bitmap bits = visibleKeys(tile, block);
    Bitmap all = {};
    for (int64_t r = 0; r < size; ++r)
      all[r / 32] |= uint32_t(1) << (r % 32);
    if (bits == all) {
      addEntry({block, block + 1}, classes, -1);
      continue;
    }
    const size_t number = list.visible.size() / kVisibleWords;
    list.visible.insert(list.visible.end(), bits.begin(), bits.end());
    // A number past 32 bits is refused before the list is used.
    addEntry({block, block + 1}, classes, static_cast<int32_t>(number));
  }
}

TileSums TileBuilder::build(const QueryTile &tile) {
  sums = TileSums();
  firstEntry = list.entries.size();
  if (tile.keys.empty())
    return sums;
  if (plan != TilePlan::Intervals || !classifyExactly(tile))
    classifySoundly(tile);
  std::vector<RunCursor> cursors(groups.begin(), groups.end());
  const Interval all = blocksOf(tile.keys);
  for (int64_t block = all.lo; block < all.hi;) {
    int64_t end = all.hi;
    uint32_t classes = 0;
    for (size_t g = 0; g < cursors.size(); ++g)
      classes |= cursors[g].at(block, end) << (kGroupClassBits * g);
    if (classes)
      emit(tile, {block, end}, classes);
    block = end;
  }
  std::reverse(list.entries.begin() + static_cast<int64_t>(firstEntry), list.entries.end());
  return sums;
}

/// Value of a 32-bit field of the records.
Status checkFits(const std::string &what, int64_t value) {
  constexpr int64_t kLargest = std::numeric_limits<int32_t>::max();
  if (value <= kLargest)
    return {};
  return Error{"work list: " + what + " " + std::to_string(value) + " passes " +
               std::to_string(kLargest) + ", the largest in its records"};
}

Status checkBatch(const Batch &batch, const WorkListKeys &keys) {
  const BatchShape &shape = batch.shape;
  if (Status status = checkFits("number of requests", shape.numReqs()); !status)
    return status;
  if (Status status = checkFits("number of tokens", shape.numTokens()); !status)
    return status;
  for (int64_t b = 0; keys.kvStart && b < shape.numReqs(); ++b)
    if (Status status = checkFits("row of the last key of request " + std::to_string(b),
                                  keys.kvStart[b] + shape.seqLen[b]);
        !status)
      return status;
  return {};
}

Status checkList(const WorkList &list) {
  if (Status status = checkFits("number of tiles", static_cast<int64_t>(list.tiles.size()));
      !status)
    return status;
  if (Status status = checkFits("number of entries", static_cast<int64_t>(list.entries.size()));
      !status)
    return status;
  return checkFits("number of bitmaps", static_cast<int64_t>(list.visible.size()) / kVisibleWords);
}

/// The query tiles of one key/value head.
struct Unit {
  int64_t cost;
  int64_t queryTile;
  int64_t kvHead;
};

/// Fills list.work. `costs`: of each tile; `tileHeads`: tiles a query tile has, 1 or one a head.
Status orderWork(const Batch &batch, const WorkListKeys &keys, const std::vector<int64_t> &costs,
                 int64_t tileHeads, WorkList &list) {
  const int64_t queryTiles = static_cast<int64_t>(costs.size()) / tileHeads;
  if (Status status = checkFits("number of work items", queryTiles * batch.numHeads); !status)
    return status;
  int64_t numKeys = 0;
  for (int64_t b = 0; b < batch.shape.numReqs(); ++b)
    numKeys += batch.shape.keyEnd[b] - batch.shape.keyBegin[b];
  const int64_t keysInBudget = kL2Budget / std::max<int64_t>(keys.bytes, 1);
  const int64_t headsAtATime = std::max<int64_t>(keysInBudget / std::max<int64_t>(numKeys, 1), 1);
  const int64_t group = batch.numHeads / batch.numKvHeads;
  auto tileOf = [&](int64_t queryTile, int64_t head) {
    return queryTile * tileHeads + (tileHeads > 1 ? head : 0);
  };
  list.work.reserve(queryTiles * batch.numHeads);
  for (int64_t first = 0; first < batch.numKvHeads; first += headsAtATime) {
    std::vector<Unit> units;
    for (int64_t t = 0; t < queryTiles; ++t)
      for (int64_t kv = first; kv < std::min(first + headsAtATime, batch.numKvHeads); ++kv) {
        int64_t cost = 0;
        for (int64_t h = kv * group; h < (kv + 1) * group; ++h)
          cost = std::max(cost, costs[tileOf(t, h)]);
        units.push_back({cost, t, kv});
      }
    std::stable_sort(units.begin(), units.end(),
                     [](const Unit &a, const Unit &b) { return a.cost > b.cost; });
    for (const Unit &unit : units)
      for (int64_t h = unit.kvHead * group; h < (unit.kvHead + 1) * group; ++h)
        list.work.push_back(
            {static_cast<int32_t>(tileOf(unit.queryTile, h)), static_cast<int32_t>(h)});
  }
  return {};
}

} // namespace

Result<WorkList> rt::buildWorkList(const MaskProgram &program, const Batch &batch,
                                   const CudaLaunch &launch, TilePlan plan,
                                   const WorkListKeys &keys) {
  if (Status status = checkBatch(batch, keys); !status)
    return Error{status.message()};
  WorkList list;
  TileBuilder builder(program, batch, launch, plan, list);
  const bool perHead = program.mask >= 0 && dependence(program, program.mask).h;
  const int64_t tileHeads = perHead ? batch.numHeads : 1;
  const BatchShape &shape = batch.shape;
  std::vector<int64_t> costs;
  for (int64_t b = 0; b < shape.numReqs(); ++b) {
    const int64_t begin = shape.contextLen[b];
    const int64_t end = begin + shape.queryLen(RequestIndex(b));
    for (int64_t q = begin; q < end; q += launch.queryTile())
      for (int64_t h = 0; h < tileHeads; ++h) {
        const QueryTile tile{RequestIndex(b),
                             HeadIndex(h),
                             {q, std::min(q + launch.queryTile(), end)},
                             {shape.keyBegin[b], shape.keyEnd[b]}};
        TileHeader header = {};
        header.request = static_cast<int32_t>(b);
        header.queryBegin = static_cast<int32_t>(q);
        header.tokenBegin = static_cast<int32_t>(shape.tokenOf(RequestIndex(b), QueryPos(q)).value);
        header.rows = static_cast<int32_t>(tile.queries.size());
        header.entryBegin = static_cast<int32_t>(list.entries.size());
        const TileSums sums = builder.build(tile);
        header.entryCount = static_cast<int32_t>(list.entries.size()) - header.entryBegin;
        header.kvRow = keys.kvStart ? static_cast<int32_t>(keys.kvStart[b]) : 0;
        header.keyBegin = static_cast<int32_t>(shape.keyBegin[b]);
        header.keyEnd = static_cast<int32_t>(shape.keyEnd[b]);
        list.tiles.push_back(header);
        costs.push_back(sums.cost);
        const uint64_t heads = batch.numHeads / tileHeads;
        list.counts.loaded += heads * sums.counts.loaded;
        list.counts.visited += heads * sums.counts.visited;
        list.counts.full += heads * sums.counts.full;
        if (Status status = checkList(list); !status)
          return Error{status.message()};
      }
  }
  if (Status status = orderWork(batch, keys, costs, tileHeads, list); !status)
    return Error{status.message()};
  return list;
}
