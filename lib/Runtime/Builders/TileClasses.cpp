// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "TileClasses.h"

#include "attn/Core/IntMath.h"

#include <limits>

using namespace attn;
using namespace attn::core;
using namespace attn::rt;

/// Runs in ascending order; adjacent ones of a class are joined.
static inline void append(std::vector<ClassRun> &runs, Interval blocks, GroupClass cls) {
  if (blocks.empty())
    return;
  if (!runs.empty() && runs.back().blocks.hi == blocks.lo && runs.back().cls == cls)
    runs.back().blocks.hi = blocks.hi;
  else
    runs.emplace_back(blocks.lo, blocks.hi, cls);
}

TileClasses::TileClasses(const MaskProgram &program, const CudaLaunch &launch, TilePlan plan)
    : program(program), numGroups(launch.groups), size(launch.keyTile),
      perKey(Reciprocal::of(size)), plan(plan),
      perHead(program.mask >= 0 && dependence(program, program.mask).h), terms(program),
      sums(launch.groups), groups(launch.groups), rowSome(launch.groups), rowEvery(launch.groups),
      keptOf(launch.groups), inAllOf(launch.groups) {
  firstKeys.resize(size + 1);
  for (int64_t n = 1; n <= size; ++n) {
    firstKeys[n] = firstKeys[n - 1];
    firstKeys[n][(n - 1) / 32] |= uint32_t(1) << ((n - 1) % 32);
  }
}

bool TileClasses::readsDocuments() const {
  return std::any_of(program.tables.begin(), program.tables.end(),
                     [](const TableDecl &decl) { return decl.kind == TableKind::Documents; });
}

void TileClasses::reserve(int64_t mostRanges) {
  terms.reserve(mostRanges);
  for (RowSums &group : sums)
    group.reserve(kGroupRows);
  for (std::vector<KeyRuns> *of : {&rowSome, &rowEvery})
    for (KeyRuns &runs : *of)
      runs.reserve(kGroupRows * RowTerms::kMostTerms);
  for (std::vector<ClassRun> &runs : groups)
    runs.reserve(3 * kGroupRows * RowTerms::kMostTerms);
}

void TileClasses::bind(const Batch &of, bool anchored) {
  batch = &of;
  isAnchored = anchored;
  eval.reset();
  followsBatch = isFollowed() && terms.bind(of);
}

void TileClasses::start(RequestIndex b) {
  followsRequest = followsBatch && terms.start(b, HeadIndex(0));
}

MaskEvaluator &TileClasses::evaluator() {
  if (!eval)
    eval.emplace(program, *batch);
  return *eval;
}

void TileClasses::classify(const QueryTile &tile) {
  if (followsRequest && perHead) {
    if (tile.h.value == 0)
      terms.mark();
    followsRequest = terms.rewind(tile.h);
  }
  if (followsRequest) {
    source = Source::Terms;
    return classifyFollowed(tile);
  }
  source = Source::Rows;
  if (plan == TilePlan::Intervals && classifyRows(tile))
    return;
  source = Source::Boxes;
  classifySoundly(tile);
}

/// What all groups compute with blocks from `candidate` on, and the blocks loaded for it.
std::pair<int64_t, int64_t> TileClasses::costOf(int64_t candidate) {
  anchor = candidate;
  int64_t cost = 0;
  Interval loaded{std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()};
  for (int64_t g = 0; g < numGroups; ++g) {
    for (const Interval &run : *keptOf[g]) {
      const Interval visited = blocksOf(run);
      cost += kPartialCost * visited.size();
      loaded = {std::min(loaded.lo, visited.lo), std::max(loaded.hi, visited.hi)};
    }
    for (const Interval &run : *inAllOf[g]) {
      const Interval full{blockAfter(run.lo), blockOf(run.hi)};
      cost -= (kPartialCost - kFullCost) * full.size();
    }
  }
  return {cost, loaded.size()};
}

/// What the groups compute changes only where a limit of one meets the edge of a block, so those
/// few places are all that is tried. 0 where nothing is gained.
void TileClasses::chooseAnchor() {
  for (int64_t g = 0; g < numGroups; ++g)
    if (keptOf[g]->size() > 1 || inAllOf[g]->size() > 1)
      return;
  std::pair<int64_t, int64_t> least = costOf(0);
  int64_t best = 0;
  for (int64_t g = 0; g < numGroups; ++g)
    for (const KeyRuns *runs : {keptOf[g], inAllOf[g]})
      for (const Interval &run : *runs)
        for (int64_t limit : {run.lo, run.hi})
          if (const auto cost = costOf(limit % size); cost < least) {
            least = cost;
            best = limit % size;
          }
  anchor = best;
}

void TileClasses::makeRuns() {
  anchor = 0;
  if (!isAnchored)
    chooseAnchor();
  for (int64_t g = 0; g < numGroups; ++g)
    makeRuns(g, *keptOf[g], *inAllOf[g]);
}

/// Runs of a group from the keys that some row, and those that every row, keeps.
void TileClasses::makeRuns(int64_t group, const KeyRuns &some, const KeyRuns &every) {
  std::vector<ClassRun> &runs = groups[group];
  runs.clear();
  if (some.size() == 1 && every.size() <= 1) { // the usual case
    const Interval visited{blockOf(some[0].lo), blockAfter(some[0].hi)};
    Interval full{visited.hi, visited.hi};
    if (!every.empty())
      full = {blockAfter(every[0].lo), blockOf(every[0].hi)};
    if (full.lo >= full.hi)
      full = {visited.hi, visited.hi};
    if (visited.lo < full.lo)
      runs.emplace_back(visited.lo, full.lo, kGroupPartial);
    if (full.lo < full.hi)
      runs.emplace_back(full.lo, full.hi, kGroupFull);
    if (full.hi < visited.hi)
      runs.emplace_back(full.hi, visited.hi, kGroupPartial);
    return;
  }
  size_t next = 0;
  for (size_t i = 0; i < some.size();) {
    Interval visited{blockOf(some[i].lo), blockAfter(some[i].hi)};
    for (++i; i < some.size() && blockOf(some[i].lo) <= visited.hi; ++i)
      visited.hi = blockAfter(some[i].hi);
    // Every full block is visited, and runs of full blocks never straddle a visited run.
    for (; next < every.size(); ++next) {
      const Interval full{blockAfter(every[next].lo), blockOf(every[next].hi)};
      if (full.empty())
        continue;
      if (full.hi > visited.hi)
        break;
      append(runs, {visited.lo, full.lo}, kGroupPartial);
      append(runs, full, kGroupFull);
      visited.lo = full.hi;
    }
    append(runs, visited, kGroupPartial);
  }
}

void TileClasses::classifyFollowed(const QueryTile &tile) {
  for (int64_t g = 0; g < numGroups; ++g) {
    const Interval rows = groupRows(tile, g);
    RowSums &group = sums[g];
    group.start(tile.keys);
    while (terms.row() < rows.hi)
      group.add(terms.next(rows.hi));
    group.finish();
    keptOf[g] = &group.inSome();
    inAllOf[g] = &group.inEvery();
  }
  makeRuns();
}

void TileClasses::classifyBound(const QueryTile &tile) {
  source = Source::Terms;
  for (int64_t g = 0; g < numGroups; ++g) {
    classifyBoundGroup(tile, g);
    keptOf[g] = &rowSome[g];
    inAllOf[g] = &rowEvery[g];
  }
  makeRuns();
}

/// The rows of a group, of every length together, lie at consecutive positions.
void TileClasses::classifyBoundGroup(const QueryTile &tile, int64_t group) {
  KeyRuns &some = rowSome[group], &every = rowEvery[group];
  some.clear();
  every.clear();
  const BatchShape &shape = batch->shape;
  const int64_t b = tile.b.value, queryLen = shape.queryLen(tile.b);
  const Interval rows = groupRows(tile, group);
  if (rows.empty() || tile.keys.empty())
    return;
  const Interval positions{shape.leastSeqLen[b] - queryLen + rows.lo,
                           shape.mostSeqLen[b] - queryLen + rows.hi};
  if (!followsBatch || !terms.start(tile.b, tile.h, positions.lo)) {
    some.push_back(tile.keys);
    return;
  }
  RowSums &sum = sums[group];
  sum.start(tile.keys);
  while (terms.row() < positions.hi)
    sum.add(terms.next(positions.hi));
  sum.finish();
  some.assign(sum.inSome().begin(), sum.inSome().end());
  // The shortest length has keys below it only.
  for (const Interval &run : sum.inEvery())
    if (run.lo < shape.leastSeqLen[b])
      every.push_back({run.lo, std::min(run.hi, shape.leastSeqLen[b])});
}

/// Classes from the rows' sets; false if some row is not an interval set.
bool TileClasses::classifyRows(const QueryTile &tile) {
  const IntervalSet keys(tile.keys);
  for (int64_t g = 0; g < numGroups; ++g) {
    const Interval rows = groupRows(tile, g);
    std::vector<Interval> inSome;
    IntervalSet inEvery = rows.empty() ? IntervalSet() : keys;
    for (int64_t q = rows.lo; q < rows.hi; ++q) {
      const std::optional<IntervalSet> row = evaluator().rowKeys(tile.b, tile.h, QueryPos(q));
      if (!row)
        return false;
      const IntervalSet live = *row & keys;
      inSome.insert(inSome.end(), live.runs().begin(), live.runs().end());
      inEvery = inEvery & live;
    }
    const IntervalSet some = IntervalSet::unionOf(std::move(inSome));
    rowSome[g].assign(some.runs().begin(), some.runs().end());
    rowEvery[g].assign(inEvery.runs().begin(), inEvery.runs().end());
    keptOf[g] = &rowSome[g];
    inAllOf[g] = &rowEvery[g];
  }
  makeRuns();
  return true;
}

/// Classifies `blocks`, all of whose keys belong to the launch, as one box, and halves it where
/// that decides nothing.
void TileClasses::classifyBoxes(const QueryTile &tile, Interval queries, Interval blocks,
                                std::vector<ClassRun> &runs) {
  if (blocks.empty())
    return;
  switch (evaluator().classify(tile.b, tile.h, queries, {blocks.lo * size, blocks.hi * size})) {
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

void TileClasses::classifySoundly(const QueryTile &tile) {
  anchor = 0;
  const IntervalSet keys(tile.keys);
  // Blocks that the launch has all keys of; the others are never full.
  const Interval whole = {ceilDiv(tile.keys.lo, size), floorDiv(tile.keys.hi, size)};
  for (int64_t g = 0; g < numGroups; ++g) {
    groups[g].clear();
    const Interval rows = groupRows(tile, g);
    IntervalSet bounds;
    for (int64_t q = rows.lo; q < rows.hi; ++q)
      bounds = bounds | (evaluator().rowKeysBound(tile.b, tile.h, QueryPos(q)) & keys);
    auto classifyEdge = [&](int64_t block) {
      const Interval part = intersect({block * size, (block + 1) * size}, tile.keys);
      if (evaluator().classify(tile.b, tile.h, rows, part) != TileClass::Skip)
        append(groups[g], {block, block + 1}, kGroupPartial);
    };
    int64_t next = std::numeric_limits<int64_t>::min();
    for (const Interval &run : bounds.runs()) {
      Interval blocks{floorDiv(run.lo, size), ceilDiv(run.hi, size)};
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

uint32_t TileClasses::halves() const {
  if (source == Source::Boxes)
    return 0;
  int64_t end = std::numeric_limits<int64_t>::min(); // past the highest block
  for (const std::vector<ClassRun> &runs : groups)
    if (!runs.empty())
      end = std::max(end, runs.back().blocks.hi);
  uint32_t bits = 0;
  for (int64_t g = 0; g < numGroups; ++g) {
    const std::vector<ClassRun> &runs = groups[g];
    if (!runs.empty() && runs.back().blocks.hi == end &&
        2 * (keptOf[g]->back().hi - firstKey(end - 1)) <= size)
      bits |= uint32_t(1) << g;
  }
  return bits;
}

/// Whether the bitmap has all keys of a block.
bool TileClasses::hasAll(const KeyBitmap &bits) const {
  uint32_t missing = 0;
  for (size_t word = 0; word < bits.size(); ++word)
    missing |= bits[word] ^ firstKeys[size][word];
  return missing == 0;
}

bool TileClasses::seesAll(const QueryTile &tile, int64_t block, KeyBitmap &bits) {
  const int64_t first = firstKey(block);
  const Interval live{std::max(first, tile.keys.lo), std::min(first + size, tile.keys.hi)};
  bits = {};
  auto add = [&](int64_t begin, int64_t end) {
    KeyBitmap more;
    writeKeyBits(begin - first, end - first, more.data());
    for (size_t word = 0; word < bits.size(); ++word)
      bits[word] |= more[word];
  };
  if (source == Source::Boxes) {
    for (int64_t k = live.lo; k < live.hi; ++k)
      for (int64_t q = tile.queries.lo; q < tile.queries.hi; ++q)
        if (evaluator().keep(tile.b, tile.h, QueryPos(q), KeyPos(k))) {
          add(k, k + 1);
          break;
        }
    return hasAll(bits);
  }
  for (int64_t g = 0; g < numGroups; ++g) {
    const KeyRuns &runs = *keptOf[g];
    auto run = runs.begin();
    if (runs.size() > 1)
      run = std::partition_point(run, runs.end(), [&](const Interval &r) { return r.hi <= first; });
    for (; run != runs.end() && run->lo < live.hi; ++run) {
      if (run->lo <= first && first + size <= run->hi)
        return true;
      if (run->hi > first)
        add(std::max(run->lo, live.lo), std::min(run->hi, live.hi));
    }
  }
  return hasAll(bits);
}
