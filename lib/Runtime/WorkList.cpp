// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Work lists: one sweep over the classes of a tile's row groups (Builders/TileClasses.h) makes its
// entries; the tiles are then sorted by their work.
#include "attn/Runtime/WorkList.h"

#include "Builders/CostOrder.h"
#include "Builders/TileClasses.h"
#include "RecordLimits.h"

#include "attn/Core/IntMath.h"

#include <algorithm>
#include <limits>
#include <string>
#include <tuple>

using namespace attn;
using namespace attn::core;
using namespace attn::rt;

namespace {

constexpr const char *kName = "work list";

/// Memory of the caller's that is filled from the front. Counts on past its end.
template <class T>
class Filler {
public:
  explicit Filler(Span<T> memory) : memory(memory) {}

  void add(const T &value) {
    if (T *place = next())
      *place = value;
  }
  /// Where the next value goes, or null past the end of the memory. A record of many fields is
  /// written there: read as a whole just after its fields were stored, it would wait for them.
  T *next() { return count++ < memory.size ? memory.data + count - 1 : nullptr; }
  /// Where the next `number` values go, or null where they do not all fit.
  T *next(int64_t number) {
    count += number;
    return count <= memory.size ? memory.data + count - number : nullptr;
  }
  bool isFull() const { return count > memory.size; }
  Span<const T> filled() const { return {memory.data, count}; }

  Span<T> memory;
  int64_t count = 0;
};

/// Reads the runs of one group in ascending order.
class RunCursor {
public:
  RunCursor() = default;
  explicit RunCursor(const std::vector<ClassRun> &runs)
      : next(runs.data()), end(runs.data() + runs.size()) {}

  /// Class of `block`, and of those after it up to `limit`, which moves down to where it changes.
  GroupClass at(int64_t block, int64_t &limit) {
    while (next != end && next->blocks.hi <= block)
      ++next;
    if (next == end)
      return kGroupSkip;
    const bool inside = next->blocks.lo <= block;
    limit = std::min(limit, inside ? next->blocks.hi : next->blocks.lo);
    return inside ? next->cls : kGroupSkip;
  }

private:
  const ClassRun *next = nullptr, *end = nullptr;
};

constexpr uint32_t kLowBits = 0x55555555; ///< of the classes of all groups

/// What became of a tile, for one head.
struct TileSums {
  int64_t cost = 0;
  uint32_t halves = 0; ///< TileHeader::halves
  TileCounters counts{};
};

/// Query tiles of a batch at most: a cut may end one.
int64_t mostQueryTiles(const BatchShape &shape, int64_t queryTile, Span<const int64_t> cuts) {
  int64_t tiles = cuts.size;
  for (int64_t b = 0; b < shape.numReqs(); ++b)
    if (shape.isBound(b))
      tiles += ceilDiv(shape.queryLen(RequestIndex(b)), std::min(queryTile, kMostBoundRows));
    else if (const int64_t queries = shape.queryLen(RequestIndex(b)); queries <= queryTile)
      tiles += queries > 0;
    else
      tiles += ceilDiv(queries, queryTile);
  return tiles;
}

/// `queryTiles`: mostQueryTiles().
Status checkBatch(const Batch &batch, const WorkListKeys &keys, int64_t queryTiles,
                  Span<const int64_t> cuts) {
  const BatchShape &shape = batch.shape;
  if (Status status = checkCuts(shape, cuts); !status)
    return Error{std::string(kName) + ": " + status.message()};
  if (Status status = checkFits(kName, "number of requests", shape.numReqs()); !status)
    return status;
  if (Status status = checkFits(kName, "number of tokens", shape.numTokens()); !status)
    return status;
  for (int64_t b = 0; keys.kvStart && b < shape.numReqs(); ++b)
    if (const int64_t end = keys.kvStart[b] + shape.longest(b);
        end > std::numeric_limits<int32_t>::max())
      return checkFits(kName, "row of the last key of request " + std::to_string(b), end);
  return checkFits(kName, "number of work items", queryTiles * batch.numHeads);
}

} // namespace

struct WorkListBuilder::Impl {
  Impl(const MaskProgram &program, const CudaLaunch &launch, TilePlan plan)
      : launch(launch), size(launch.keyTile), classes(program, this->launch, plan),
        cursors(launch.groups) {}

  Status buildTiles(const Batch &batch, const WorkListKeys &keys, Span<const int64_t> cuts);
  void addTiles(const Batch &batch, RequestIndex b, Interval queries, int32_t kvRow);
  void addBoundTiles(const Batch &batch, RequestIndex b, Interval rows, int32_t kvRow);
  bool addSingleRow(const Batch &batch, RequestIndex b, int32_t kvRow);
  void addTile(const QueryTile &tile, int64_t token, int64_t entryBegin, int32_t kvRow,
               const TileSums &sums, uint64_t heads);
  TileSums buildEntries(const QueryTile &tile);
  TileSums buildBoundEntries(const QueryTile &tile);
  TileSums emitRuns(const QueryTile &tile);
  void addSingleRun(Interval run, TileSums &sums);
  void sweepGroups(const QueryTile &tile, TileSums &sums);
  int64_t onlyGroup() const;
  void emit(const QueryTile &tile, Interval blocks, uint32_t groupClasses, TileSums &sums);
  void addEntry(Interval blocks, uint32_t groupClasses, int32_t visible);
  void order(const Batch &batch, const WorkListKeys &keys);
  bool isUneven(Interval partTiles) const;
  void orderPart(const Batch &batch, Interval partTiles, int64_t headsAtATime, int64_t lastHeads);
  Status checkSizes() const;

  const CudaLaunch launch;
  const int64_t size;
  TileClasses classes;
  std::vector<RunCursor> cursors;
  std::vector<Unit> units, spare;
  std::vector<uint32_t> costs; ///< of each tile, for one head
  std::vector<WorkPart> parts;
  /// Of each part: past its tiles, and keys of its requests.
  struct PartSums {
    int64_t tileEnd = 0, keys = 0;
  };
  std::vector<PartSums> partSums;
  // Of the list being built.
  Filler<WorkItem> work{{}};
  Filler<TileHeader> tiles{{}};
  Filler<TileEntry> entries{{}};
  Filler<uint32_t> visible{{}};
  TileCounters counts{};
  WorkListSizes sizes;
  int64_t firstEntry = 0; ///< of the tile being built
  bool isBound = false;   ///< its bitmaps are written by the kernel
  TileEntry last{};       ///< its entry added last
};

/// Entries are gathered in ascending order; a run grows while classes stay equal.
void WorkListBuilder::Impl::addEntry(Interval blocks, uint32_t groupClasses, int32_t bitmap) {
  if (bitmap < 0 && entries.count > firstEntry && last.visible < 0 &&
      last.classes == groupClasses &&
      last.keyBegin + last.blocks * size == classes.firstKey(blocks.lo)) {
    last.blocks += static_cast<int32_t>(blocks.size());
    if (!entries.isFull())
      entries.memory.data[entries.count - 1].blocks = last.blocks;
    return;
  }
  const auto keyBegin = static_cast<int32_t>(classes.firstKey(blocks.lo));
  const auto count = static_cast<int32_t>(blocks.size());
  last = {keyBegin, count, groupClasses, bitmap};
  if (TileEntry *entry = entries.next()) {
    entry->keyBegin = keyBegin;
    entry->blocks = count;
    entry->classes = groupClasses;
    entry->visible = bitmap;
  }
}

/// Blocks with one class a group.
void WorkListBuilder::Impl::emit(const QueryTile &tile, Interval blocks, uint32_t groupClasses,
                                 TileSums &sums) {
  const uint32_t full = (groupClasses >> 1) & kLowBits;
  const uint32_t partial = groupClasses & kLowBits;
  sums.counts.loaded += blocks.size();
  sums.cost += blocks.size() * (partial ? kPartialCost : kFullCost);
  if (launch.testsVisible || full)
    return addEntry(blocks, groupClasses, -1);
  for (int64_t block = blocks.lo; block < blocks.hi; ++block) {
    KeyBitmap bits = {};
    if (!isBound && classes.seesAll(tile, block, bits)) {
      addEntry({block, block + 1}, groupClasses, -1);
      continue;
    }
    // A number past 32 bits is refused before the list is used.
    const int64_t number = visible.count / kVisibleWords;
    if (uint32_t *words = visible.next(kVisibleWords))
      std::copy(bits.begin(), bits.end(), words);
    addEntry({block, block + 1}, groupClasses, static_cast<int32_t>(number));
  }
}

/// The only group that has runs, or -1.
int64_t WorkListBuilder::Impl::onlyGroup() const {
  int64_t only = -1;
  for (int64_t g = 0; g < launch.groups; ++g) {
    if (classes.runs(g).empty())
      continue;
    if (only >= 0)
      return -1;
    only = g;
  }
  return only;
}

TileSums WorkListBuilder::Impl::buildEntries(const QueryTile &tile) {
  TileSums sums;
  firstEntry = entries.count;
  if (tile.keys.empty())
    return sums;
  classes.classify(tile);
  return emitRuns(tile);
}

TileSums WorkListBuilder::Impl::buildBoundEntries(const QueryTile &tile) {
  firstEntry = entries.count;
  classes.classifyBound(tile);
  isBound = true;
  const TileSums sums = emitRuns(tile);
  isBound = false;
  return sums;
}

/// The entries of a tile whose groups have their classes.
TileSums WorkListBuilder::Impl::emitRuns(const QueryTile &tile) {
  TileSums sums;
  sums.halves = classes.halves();
  for (int64_t g = 0; g < launch.groups; ++g)
    for (const ClassRun &run : classes.runs(g)) {
      sums.counts.visited += run.blocks.size();
      sums.counts.full += run.cls == kGroupFull ? run.blocks.size() : 0;
    }
  if (const int64_t only = onlyGroup(); only >= 0) {
    for (const ClassRun &run : classes.runs(only))
      emit(tile, run.blocks, static_cast<uint32_t>(run.cls) << (kGroupClassBits * only), sums);
  } else {
    sweepGroups(tile, sums);
  }
  if (!entries.isFull())
    std::reverse(entries.memory.data + firstEntry, entries.memory.data + entries.count);
  return sums;
}

/// The entries of one row that keeps the keys of `run`: blocks that are full, and one below and
/// above of which it keeps a part.
void WorkListBuilder::Impl::addSingleRun(Interval run, TileSums &sums) {
  if (run.lo >= run.hi)
    return;
  const auto block = static_cast<uint32_t>(size);
  const auto lo = static_cast<uint32_t>(run.lo), hi = static_cast<uint32_t>(run.hi);
  const uint32_t lowest = lo / block, highest = hi / block; // `highest` has only keys below hi
  const int64_t before = lo - lowest * block, rest = hi - highest * block;
  const int64_t fullBegin = lowest + (before != 0), numFull = highest - fullBegin;
  const bool isOne = lowest == highest;
  sums.halves = rest > 0 && 2 * rest <= size;
  const int64_t numParts = isOne ? 1 : (before != 0) + (rest != 0);
  const int64_t numRuns = !isOne && numFull > 0;
  sums.cost = numParts * kPartialCost + numRuns * numFull * kFullCost;
  sums.counts.full = numRuns * numFull;
  sums.counts.visited = numParts + sums.counts.full;
  sums.counts.loaded = sums.counts.visited;
  // A number past 32 bits is refused before the list is used.
  auto bitmap = static_cast<int32_t>(visible.count / kVisibleWords);
  uint32_t *words = visible.next(numParts * kVisibleWords);
  TileEntry *entry = entries.next(numParts + numRuns);
  if (visible.isFull() || entries.isFull())
    return;
  auto addPart = [&](uint32_t number, int64_t begin, int64_t end) {
    classes.writeKeyBits(begin, end, words);
    words += kVisibleWords;
    entry->keyBegin = static_cast<int32_t>(number * block);
    entry->blocks = 1;
    entry->classes = kGroupPartial;
    entry->visible = bitmap++;
    ++entry;
  };
  if (isOne)
    return addPart(lowest, before, rest);
  if (rest)
    addPart(highest, 0, rest);
  if (numRuns) {
    entry->keyBegin = static_cast<int32_t>(fullBegin * size);
    entry->blocks = static_cast<int32_t>(numFull);
    entry->classes = kGroupFull;
    entry->visible = -1;
    ++entry;
  }
  if (before)
    addPart(lowest, before, size);
}

/// Emits the blocks of a tile whose groups have runs side by side.
void WorkListBuilder::Impl::sweepGroups(const QueryTile &tile, TileSums &sums) {
  for (size_t g = 0; g < cursors.size(); ++g)
    cursors[g] = RunCursor(classes.runs(static_cast<int64_t>(g)));
  for (int64_t block = -1; block < kPositionLimit;) {
    int64_t end = kPositionLimit;
    uint32_t groupClasses = 0;
    for (size_t g = 0; g < cursors.size(); ++g)
      groupClasses |= cursors[g].at(block, end) << (kGroupClassBits * g);
    if (groupClasses)
      emit(tile, {block, end}, groupClasses, sums);
    block = end;
  }
}

Status WorkListBuilder::Impl::checkSizes() const {
  if (Status status = checkFits(kName, "number of tiles", tiles.count); !status)
    return status;
  if (Status status = checkFits(kName, "number of entries", entries.count); !status)
    return status;
  return checkFits(kName, "number of bitmaps", visible.count / kVisibleWords);
}

/// The header and the sums of a tile whose entries are those from `entryBegin` on.
inline void WorkListBuilder::Impl::addTile(const QueryTile &tile, int64_t token, int64_t entryBegin,
                                           int32_t kvRow, const TileSums &sums, uint64_t heads) {
  costs[tiles.count] = static_cast<uint32_t>(sums.cost);
  if (TileHeader *header = tiles.next()) {
    header->request = static_cast<int32_t>(tile.b.value);
    header->queryBegin = static_cast<int32_t>(tile.queries.lo);
    header->tokenBegin = static_cast<int32_t>(token);
    header->rows = static_cast<int32_t>(tile.queries.size());
    header->entryBegin = static_cast<int32_t>(entryBegin);
    header->entryCount = static_cast<int32_t>(entries.count - entryBegin);
    header->kvRow = kvRow;
    header->keyBegin = static_cast<int32_t>(tile.keys.lo);
    header->keyEnd = static_cast<int32_t>(tile.keys.hi);
    header->isBound = 0;
    header->halves = sums.halves;
    header->reserved = 0;
  }
  counts.loaded += heads * sums.counts.loaded;
  counts.visited += heads * sums.counts.visited;
  counts.full += heads * sums.counts.full;
}

/// The tile of a request of one token, as decode steps have them. False if it takes more than
/// one run of keys.
bool WorkListBuilder::Impl::addSingleRow(const Batch &batch, RequestIndex b, int32_t kvRow) {
  const BatchShape &shape = batch.shape;
  const int64_t q = shape.contextLen[b.value];
  const QueryTile tile{
      b, HeadIndex(0), {q, q + 1}, {shape.keyBegin[b.value], shape.keyEnd[b.value]}};
  const std::optional<Interval> run = classes.singleRun(b, q, tile.keys);
  if (!run)
    return false;
  const int64_t entryBegin = entries.count;
  TileSums sums;
  addSingleRun(*run, sums);
  addTile(tile, shape.queryStartLoc[b.value], entryBegin, kvRow, sums,
          static_cast<uint64_t>(batch.numHeads));
  return true;
}

/// The tiles of a request's queries, no further than a cut.
void WorkListBuilder::Impl::addTiles(const Batch &batch, RequestIndex b, Interval queries,
                                     int32_t kvRow) {
  const BatchShape &shape = batch.shape;
  const int64_t tileHeads = classes.isPerHead() ? batch.numHeads : 1;
  const uint64_t headsOfTile = batch.numHeads / tileHeads;
  const int64_t firstToken = shape.queryStartLoc[b.value] - shape.contextLen[b.value];
  for (int64_t q = queries.lo; q < queries.hi; q += launch.queryTile())
    for (int64_t h = 0; h < tileHeads; ++h) {
      const QueryTile tile{b,
                           HeadIndex(h),
                           {q, std::min(q + launch.queryTile(), queries.hi)},
                           {shape.keyBegin[b.value], shape.keyEnd[b.value]}};
      const int64_t entryBegin = entries.count;
      const TileSums sums = buildEntries(tile);
      addTile(tile, firstToken + q, entryBegin, kvRow, sums, headsOfTile);
    }
}

/// The same for rows, by their numbers in the request, whose positions the device alone knows.
void WorkListBuilder::Impl::addBoundTiles(const Batch &batch, RequestIndex b, Interval rows,
                                          int32_t kvRow) {
  const BatchShape &shape = batch.shape;
  const int64_t tileHeads = classes.isPerHead() ? batch.numHeads : 1;
  const uint64_t headsOfTile = batch.numHeads / tileHeads;
  const int64_t tileRows = std::min(launch.queryTile(), kMostBoundRows);
  for (int64_t row = rows.lo; row < rows.hi; row += tileRows)
    for (int64_t h = 0; h < tileHeads; ++h) {
      const QueryTile tile{b,
                           HeadIndex(h),
                           {row, std::min(row + tileRows, rows.hi)},
                           {shape.keyBegin[b.value], shape.mostSeqLen[b.value]}};
      const int64_t entryBegin = entries.count;
      const TileSums sums = buildBoundEntries(tile);
      addTile(tile, shape.queryStartLoc[b.value] + row, entryBegin, kvRow, sums, headsOfTile);
      if (tiles.isFull())
        continue;
      TileHeader &header = tiles.memory.data[tiles.count - 1];
      header.queryBegin = static_cast<int32_t>(row - shape.queryLen(b));
      header.isBound = 1;
    }
}

Status WorkListBuilder::Impl::buildTiles(const Batch &batch, const WorkListKeys &keys,
                                         Span<const int64_t> cuts) {
  const BatchShape &shape = batch.shape;
  // A box of a paged cache must not cross a page.
  classes.bind(batch, /*anchored=*/!keys.kvStart);
  const bool hasSingleRows = !launch.testsVisible && classes.followsRows();
  PartSums part;
  auto cut = [&](int64_t token) {
    part.tileEnd = tiles.count;
    parts.push_back({token, 0});
    partSums.push_back(part);
    part = {};
  };
  int64_t next = 0; // cut
  for (int64_t b = 0; b < shape.numReqs(); ++b) {
    const int64_t tokenEnd = shape.queryStartLoc[b + 1];
    int64_t token = shape.queryStartLoc[b];
    if (token == tokenEnd)
      continue;
    const auto kvRow = keys.kvStart ? static_cast<int32_t>(keys.kvStart[b]) : 0;
    for (; next < cuts.size && cuts[next] == token; ++next)
      cut(token);
    const bool hasBound = shape.isBound(b);
    if (hasSingleRows && !hasBound && token + 1 == tokenEnd &&
        addSingleRow(batch, RequestIndex(b), kvRow)) {
      part.keys += shape.keyEnd[b] - shape.keyBegin[b];
      continue;
    }
    if (!hasBound)
      classes.start(RequestIndex(b));
    const int64_t firstToken = shape.queryStartLoc[b];
    while (token < tokenEnd) {
      for (; next < cuts.size && cuts[next] == token; ++next)
        cut(token);
      const int64_t end = next < cuts.size ? std::min(cuts[next], tokenEnd) : tokenEnd;
      const Interval rows{token - firstToken, end - firstToken};
      const int64_t first = shape.contextLen[b];
      part.keys += (hasBound ? shape.longest(b) : shape.keyEnd[b]) - shape.keyBegin[b];
      if (hasBound)
        addBoundTiles(batch, RequestIndex(b), rows, kvRow);
      else
        addTiles(batch, RequestIndex(b), {first + rows.lo, first + rows.hi}, kvRow);
      token = end;
    }
    if (entries.count > std::numeric_limits<int32_t>::max())
      return checkSizes();
  }
  for (; next < cuts.size; ++next)
    cut(cuts[next]);
  cut(shape.numTokens());
  return checkSizes();
}

/// Fills `work`, part by part.
void WorkListBuilder::Impl::order(const Batch &batch, const WorkListKeys &keys) {
  int64_t tileBegin = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const Interval tiles{tileBegin, partSums[i].tileEnd};
    auto headsWithin = [&](int64_t bytes) {
      const int64_t keysWithin = bytes / std::max<int64_t>(keys.bytes, 1);
      return std::max<int64_t>(keysWithin / std::max<int64_t>(partSums[i].keys, 1), 1);
    };
    const int64_t headsAtATime = headsWithin(kL2Budget);
    orderPart(batch, tiles, headsAtATime,
              isUneven(tiles) ? headsWithin(kLastL2Budget) : headsAtATime);
    tileBegin = partSums[i].tileEnd;
    parts[i].workEnd = work.count;
  }
}

/// True if some tile costs much more than others: with few heads at a time SMs would have nothing
/// to do beside the last of them.
bool WorkListBuilder::Impl::isUneven(Interval partTiles) const {
  uint64_t sum = 0, most = 0;
  for (int64_t t = partTiles.lo; t < partTiles.hi; ++t) {
    sum += costs[t];
    most = std::max<uint64_t>(most, costs[t]);
  }
  // Above 1.5 times the mean; causal masks have 2 times, windows little more than 1.
  return 2 * most * static_cast<uint64_t>(partTiles.size()) > 3 * sum;
}

/// Where all heads share a tile's records its cost is that of each, and one order serves every set
/// of key/value heads.
void WorkListBuilder::Impl::orderPart(const Batch &batch, Interval partTiles, int64_t headsAtATime,
                                      int64_t lastHeads) {
  const int64_t tileHeads = classes.isPerHead() ? batch.numHeads : 1;
  const Interval queryTiles{partTiles.lo / tileHeads, partTiles.hi / tileHeads};
  const int64_t group = batch.numHeads / batch.numKvHeads;
  const bool shared = tileHeads == 1;
  int64_t numUnits = 0;
  auto addUnit = [&](uint32_t cost, int64_t tile, int64_t kvHead) {
    units[numUnits++] = {cost, static_cast<int32_t>(tile), static_cast<int32_t>(kvHead)};
  };
  if (shared) {
    for (int64_t t = queryTiles.lo; t < queryTiles.hi; ++t)
      addUnit(costs[t], t, 0);
    sortByCost(units.data(), spare.data(), numUnits);
  }
  int64_t last = 0;
  for (int64_t first = 0; first < batch.numKvHeads; first = last) {
    const bool isEnd = batch.numKvHeads - first <= std::max(headsAtATime, lastHeads);
    last = isEnd ? batch.numKvHeads : first + headsAtATime;
    if (shared) {
      if (work.count + numUnits * (last - first) * group > work.memory.size) {
        work.count += numUnits * (last - first) * group;
        continue;
      }
      const WorkItem *end =
          fillItems(Span<const Unit>(units.data(), numUnits), static_cast<int32_t>(first * group),
                    static_cast<int32_t>((last - first) * group), work.memory.data + work.count);
      work.count = end - work.memory.data;
      continue;
    }
    numUnits = 0;
    for (int64_t t = queryTiles.lo; t < queryTiles.hi; ++t)
      for (int64_t kv = first; kv < last; ++kv)
        addUnit(*std::max_element(&costs[t * tileHeads + kv * group],
                                  &costs[t * tileHeads + kv * group] + group),
                t, kv);
    sortByCost(units.data(), spare.data(), numUnits);
    for (int64_t i = 0; i < numUnits; ++i)
      for (int64_t h = units[i].kvHead * group; h < (units[i].kvHead + 1) * group; ++h)
        work.add(
            {static_cast<int32_t>(units[i].queryTile * tileHeads + h), static_cast<int32_t>(h)});
  }
}

WorkListBuilder::WorkListBuilder(const MaskProgram &program, const CudaLaunch &launch,
                                 TilePlan plan)
    : impl(std::make_unique<Impl>(program, launch, plan)) {}
WorkListBuilder::WorkListBuilder(WorkListBuilder &&) noexcept = default;
WorkListBuilder &WorkListBuilder::operator=(WorkListBuilder &&) noexcept = default;
WorkListBuilder::~WorkListBuilder() = default;

bool WorkListBuilder::isFollowed() const { return impl->classes.isFollowed(); }
const WorkListSizes &WorkListBuilder::sizes() const { return impl->sizes; }

/// A product of sizes, or where it is larger a number that no memory has.
static int64_t timesAtMost(int64_t a, int64_t b) {
  constexpr int64_t kMost = int64_t(1) << 60;
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? kMost : std::min(product, kMost);
}

WorkListSizes WorkListBuilder::mostSizes(const WorkListLimits &limits) const {
  const int64_t queryTile = impl->launch.queryTile();
  const int64_t tileHeads = impl->classes.isPerHead() ? limits.heads : 1;
  // Every request may begin a tile, and so may every cut and every queryTile tokens.
  const int64_t leastRows = limits.slack ? std::min(queryTile, kMostBoundRows) : queryTile;
  const int64_t queryTiles =
      std::min(limits.tokens, limits.requests + limits.cuts + limits.tokens / leastRows);
  WorkListSizes sizes;
  sizes.tiles = timesAtMost(queryTiles, tileHeads);
  sizes.work = timesAtMost(queryTiles, limits.heads);
  const int64_t blocks = ceilDiv(limits.keys, impl->size) + 1;
  if (!isFollowed()) {
    sizes.entries = timesAtMost(sizes.tiles, blocks);
    sizes.bitmaps = impl->launch.testsVisible ? 0 : sizes.entries;
    return sizes;
  }
  // Pieces of rows: a group ends one, and so do both ends of a range or the end of a document.
  const int64_t tokenPieces = impl->classes.readsDocuments() ? limits.tokens : 2 * limits.ranges;
  const int64_t pieces = timesAtMost(queryTiles * impl->launch.groups + tokenPieces, tileHeads);
  const int64_t terms = impl->classes.mostTerms();
  // Each piece adds a run that some row keeps for every term; it is cut where a term begins or ends
  // or where two of them meet or part, and each part of it may cut a run that every row keeps for
  // every term but one. Classes change at both ends of a run; both may leave a block in part.
  const int64_t cuts = 2 * terms + terms * (terms - 1) + 1;
  const int64_t runs = terms + 1 + cuts * (terms - 1);
  sizes.bitmaps = impl->launch.testsVisible ? 0 : timesAtMost(pieces, 2 * terms);
  sizes.entries = timesAtMost(pieces, 2 * runs) + sizes.bitmaps;
  // A row whose length moves: what a term keeps for one length and not for another lies within so
  // many keys of its ends, every block of which has a bitmap; or it is all keys of a term that is
  // there for some positions only.
  if (limits.slack > 0) {
    int64_t moving = ceilDiv(limits.slack + kMostBoundRows, impl->size) + 2;
    if (impl->classes.hasRowLimits())
      moving = std::max(moving, blocks);
    const int64_t more = timesAtMost(sizes.tiles, timesAtMost(2 * terms, moving));
    sizes.entries += more;
    sizes.bitmaps += impl->launch.testsVisible ? 0 : more;
  }
  return sizes;
}

void WorkListBuilder::reserve(const WorkListLimits &limits) {
  const WorkListSizes most = mostSizes(limits);
  const int64_t numUnits = impl->classes.isPerHead() ? most.work : most.tiles;
  for (std::vector<Unit> *units : {&impl->units, &impl->spare})
    if (static_cast<int64_t>(units->size()) < numUnits)
      units->resize(numUnits);
  if (static_cast<int64_t>(impl->costs.size()) < most.tiles)
    impl->costs.resize(most.tiles);
  impl->parts.reserve(limits.cuts + 1);
  impl->partSums.reserve(limits.cuts + 1);
  impl->classes.reserve(limits.ranges);
}

Result<WorkListView> WorkListBuilder::build(const Batch &batch, const WorkListKeys &keys,
                                            const WorkListMemory &memory,
                                            Span<const int64_t> cuts) {
  impl->sizes = WorkListSizes();
  const int64_t queryTiles = mostQueryTiles(batch.shape, impl->launch.queryTile(), cuts);
  if (Status status = checkBatch(batch, keys, queryTiles, cuts); !status)
    return Error{status.message()};
  const int64_t numTiles = queryTiles * (impl->classes.isPerHead() ? batch.numHeads : 1);
  if (static_cast<int64_t>(impl->costs.size()) < numTiles) {
    impl->costs.resize(numTiles);
    impl->units.resize(queryTiles * batch.numHeads);
    impl->spare.resize(queryTiles * batch.numHeads);
  }
  impl->work = Filler<WorkItem>(memory.work);
  impl->tiles = Filler<TileHeader>(memory.tiles);
  impl->entries = Filler<TileEntry>(memory.entries);
  impl->visible = Filler<uint32_t>(memory.visible);
  impl->counts = {};
  impl->parts.clear();
  impl->partSums.clear();
  if (Status status = impl->buildTiles(batch, keys, cuts); !status)
    return Error{status.message()};
  impl->order(batch, keys);
  const int64_t bitmaps = impl->visible.count / kVisibleWords;
  impl->sizes = {impl->work.count, impl->tiles.count, impl->entries.count, bitmaps};
  for (auto [what, size, room] :
       {std::tuple("work items", impl->work.count, memory.work.size),
        std::tuple("tiles", impl->tiles.count, memory.tiles.size),
        std::tuple("entries", impl->entries.count, memory.entries.size),
        std::tuple("bitmaps", bitmaps, memory.visible.size / kVisibleWords)})
    if (Status status = checkRoom(kName, what, size, room); !status)
      return Error{status.message()};
  WorkListView view;
  view.work = impl->work.filled();
  view.tiles = impl->tiles.filled();
  view.entries = impl->entries.filled();
  view.visible = impl->visible.filled();
  view.parts = impl->parts;
  view.counts = impl->counts;
  return view;
}

Result<WorkList> rt::buildWorkList(const MaskProgram &program, const Batch &batch,
                                   const CudaLaunch &launch, TilePlan plan,
                                   const WorkListKeys &keys, Span<const int64_t> cuts) {
  const int64_t queryTiles = mostQueryTiles(batch.shape, launch.queryTile(), cuts);
  if (Status status = checkBatch(batch, keys, queryTiles, cuts); !status)
    return Error{status.message()};
  WorkListBuilder builder(program, launch, plan);
  WorkListSizes sizes{queryTiles * batch.numHeads, queryTiles, 16 * queryTiles, 8 * queryTiles};
  // Twice at most: the first list says what it takes.
  for (bool again = false;; again = true) {
    WorkList list;
    list.work.resize(sizes.work);
    list.tiles.resize(sizes.tiles);
    list.entries.resize(sizes.entries);
    list.visible.resize(sizes.bitmaps * kVisibleWords);
    const Result<WorkListView> view =
        builder.build(batch, keys, {list.work, list.tiles, list.entries, list.visible}, cuts);
    if (view) {
      list.work.resize(view->work.size);
      list.tiles.resize(view->tiles.size);
      list.entries.resize(view->entries.size);
      list.visible.resize(view->visible.size);
      list.parts.assign(view->parts.begin(), view->parts.end());
      list.counts = view->counts;
      return list;
    }
    sizes = builder.sizes();
    if (again || sizes.tiles == 0)
      return Error{view.message()};
  }
}
