// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tile records: the key blocks a tile of consecutive queries visits, with their classes.
//
// For masks whose rows are interval sets the classes are exact: a block is visited if it meets the
// union of the tile's rows and full if it lies inside their intersection. An empty row leaves the
// union alone and empties the intersection. For any other mask, blocks that meet the union of the
// rows' bounds are classified by abstract evaluation over the box, large boxes first.
#include "attn/Core/IntMath.h"
#include "attn/Core/MaskEval.h"
#include "attn/Runtime/Builders.h"

#include <algorithm>

using namespace attn;
using namespace attn::core;

namespace {

/// Key blocks of a launch: block i holds the keys [anchor + i * size, anchor + (i + 1) * size) that
/// lie in `keys`.
struct BlockGrid {
  Interval keys;
  int64_t anchor;
  int64_t size;

  /// Numbers of the blocks that hold keys.
  Interval all() const {
    if (keys.empty())
      return {0, 0};
    return {floorDiv(keys.lo - anchor, size), ceilDiv(keys.hi - anchor, size)};
  }
  /// Keys of the blocks [blocks.lo, blocks.hi).
  Interval keysOf(Interval blocks) const {
    return {std::max(keys.lo, anchor + blocks.lo * size),
            std::min(keys.hi, anchor + blocks.hi * size)};
  }
  /// Blocks that meet `run`, a non-empty part of `keys`.
  Interval meeting(Interval run) const {
    return {floorDiv(run.lo - anchor, size), ceilDiv(run.hi - anchor, size)};
  }
  /// Blocks whose keys all lie in `run`, a non-empty part of `keys`.
  Interval inside(Interval run) const {
    int64_t lo = run.lo == keys.lo ? all().lo : ceilDiv(run.lo - anchor, size);
    int64_t hi = run.hi == keys.hi ? all().hi : floorDiv(run.hi - anchor, size);
    return {lo, std::max(lo, hi)};
  }
};

/// Collects blocks in ascending order as segments.
class SegmentList {
public:
  explicit SegmentList(const BlockGrid &grid) : grid(grid) {}

  void append(Interval blocks, uint32_t cls) {
    if (blocks.empty())
      return;
    Interval keys = grid.keysOf(blocks);
    if (!segments.empty() && segments.back().end == keys.lo && segments.back().cls == cls)
      segments.back().end = keys.hi;
    else
      segments.push_back({keys.lo, keys.hi, cls});
  }
  std::vector<Segment> take() { return std::move(segments); }

private:
  const BlockGrid &grid;
  std::vector<Segment> segments;
};

/// One tile of queries of one request, for one head.
struct Tile {
  RequestIndex b;
  HeadIndex h;
  Interval queries;
};

/// Blocks that meet a run of `set`, as ascending disjoint ranges of block numbers.
std::vector<Interval> blocksMeeting(const IntervalSet &set, const BlockGrid &grid) {
  std::vector<Interval> blocks;
  for (const Interval &run : set.runs()) {
    Interval next = grid.meeting(run);
    if (!blocks.empty() && next.lo <= blocks.back().hi)
      blocks.back().hi = next.hi;
    else
      blocks.push_back(next);
  }
  return blocks;
}

/// Exact segments, or nothing if some row is not an interval set.
std::optional<std::vector<Segment>> exactSegments(MaskEvaluator &eval, const Tile &tile,
                                                  const BlockGrid &grid) {
  const IntervalSet keys(grid.keys);
  std::vector<Interval> runs;
  IntervalSet inEvery = keys;
  for (int64_t q = tile.queries.lo; q < tile.queries.hi; ++q) {
    std::optional<IntervalSet> row = eval.rowKeys(tile.b, tile.h, QueryPos(q));
    if (!row)
      return std::nullopt;
    IntervalSet live = *row & keys;
    runs.insert(runs.end(), live.runs().begin(), live.runs().end());
    inEvery = inEvery & live;
  }
  std::vector<Interval> full;
  for (const Interval &run : inEvery.runs())
    if (Interval blocks = grid.inside(run); !blocks.empty())
      full.push_back(blocks);

  SegmentList segments(grid);
  size_t next = 0;
  for (Interval visited : blocksMeeting(IntervalSet::unionOf(std::move(runs)), grid)) {
    // Every full block is visited, and ranges of full blocks never straddle a visited range.
    for (; next < full.size() && full[next].hi <= visited.hi; ++next) {
      segments.append({visited.lo, full[next].lo}, kSegmentPartial);
      segments.append(full[next], kSegmentFull);
      visited.lo = full[next].hi;
    }
    segments.append(visited, kSegmentPartial);
  }
  return segments.take();
}

/// Classifies `blocks` as one box and halves it where that decides nothing.
void classifyBlocks(MaskEvaluator &eval, const Tile &tile, const BlockGrid &grid, Interval blocks,
                    SegmentList &segments) {
  switch (eval.classify(tile.b, tile.h, tile.queries, grid.keysOf(blocks))) {
  case TileClass::Skip:
    return;
  case TileClass::Full:
    return segments.append(blocks, kSegmentFull);
  case TileClass::Partial:
    break;
  }
  if (blocks.size() == 1)
    return segments.append(blocks, kSegmentPartial);
  int64_t middle = blocks.lo + blocks.size() / 2;
  classifyBlocks(eval, tile, grid, {blocks.lo, middle}, segments);
  classifyBlocks(eval, tile, grid, {middle, blocks.hi}, segments);
}

std::vector<Segment> soundSegments(MaskEvaluator &eval, const Tile &tile, const BlockGrid &grid) {
  const IntervalSet keys(grid.keys);
  IntervalSet bounds;
  for (int64_t q = tile.queries.lo; q < tile.queries.hi; ++q)
    bounds = bounds | (eval.rowKeysBound(tile.b, tile.h, QueryPos(q)) & keys);
  SegmentList segments(grid);
  for (Interval blocks : blocksMeeting(bounds, grid))
    classifyBlocks(eval, tile, grid, blocks, segments);
  return segments.take();
}

} // namespace

std::vector<TileRecord> rt::buildTileRecords(const MaskProgram &program, const Batch &batch,
                                             TileShape shape, int64_t keyAnchor) {
  MaskEvaluator eval(program, batch);
  const bool perHead = program.mask >= 0 && dependence(program, program.mask).h;
  const int64_t headCount = perHead ? 1 : batch.numHeads;
  std::vector<TileRecord> records;
  for (int64_t b = 0; b < batch.shape.numReqs(); ++b) {
    const BlockGrid grid{{batch.shape.keyBegin[b], batch.shape.keyEnd[b]}, keyAnchor, shape.keys};
    const int64_t begin = batch.shape.contextLen[b];
    const int64_t end = begin + batch.shape.queryLen(RequestIndex(b));
    for (int64_t q = begin; q < end; q += shape.queries) {
      for (int64_t h = 0; h < batch.numHeads; h += headCount) {
        const Tile tile{RequestIndex(b), HeadIndex(h), {q, std::min(q + shape.queries, end)}};
        TileRecord record;
        record.request = tile.b;
        record.queryBegin = QueryPos(q);
        record.queryCount = tile.queries.size();
        record.headBegin = tile.h;
        record.headCount = headCount;
        if (!grid.keys.empty()) {
          std::optional<std::vector<Segment>> exact = exactSegments(eval, tile, grid);
          record.segments = exact ? std::move(*exact) : soundSegments(eval, tile, grid);
        }
        records.push_back(std::move(record));
      }
    }
  }
  return records;
}

rt::TileCounts rt::countTiles(const std::vector<TileRecord> &records, const Batch &batch,
                              TileShape shape, int64_t keyAnchor) {
  TileCounts counts;
  for (const TileRecord &record : records) {
    const int64_t b = record.request.value;
    const BlockGrid grid{{batch.shape.keyBegin[b], batch.shape.keyEnd[b]}, keyAnchor, shape.keys};
    counts.rectangle += grid.all().size();
    for (const Segment &segment : record.segments) {
      const int64_t blocks = grid.meeting({segment.begin, segment.end}).size();
      counts.visited += blocks;
      if (segment.cls == kSegmentFull)
        counts.full += blocks;
    }
  }
  return counts;
}
