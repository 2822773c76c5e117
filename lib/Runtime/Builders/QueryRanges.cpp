// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Per-query range rows: for each scheduled token the hull of the live ranges that hold its q.
#include "attn/Runtime/Builders.h"

#include "RowRuns.h"

using namespace attn;
using namespace attn::core;
using namespace attn::rt;

namespace {

Interval queriesOf(const BatchShape &shape, int64_t b) {
  return {shape.contextLen[b], shape.contextLen[b] + shape.queryLen(RequestIndex(b))};
}

/// Whether some range of some request holds a scheduled query.
bool coversAny(const BatchShape &shape, const TableData &ranges) {
  if (ranges.ranges.empty())
    return false;
  for (int64_t b = 0; b < shape.numReqs(); ++b) {
    const Interval queries = queriesOf(shape, b);
    if (queries.empty())
      continue;
    for (const Range &range : rangesOf(ranges, b))
      if (!intersect(queries, Interval::fromInclusive(range.start, range.end)).empty())
        return true;
  }
  return false;
}

} // namespace

int64_t rt::mostRanges(const TableData &ranges) {
  int64_t most = 0;
  for (size_t b = 0; b + 1 < ranges.rangeOffsets.size(); ++b)
    most = std::max(most, ranges.rangeOffsets[b + 1] - ranges.rangeOffsets[b]);
  return most;
}

int64_t rt::buildQueryRanges(const BatchShape &shape, const TableData &ranges, Range *rows,
                             Span<Range> scratch) {
  if (!coversAny(shape, ranges))
    return 0;
  int64_t covered = 0;
  const int64_t tokens = shape.numTokens();
  for (int64_t b = 0; b < shape.numReqs(); ++b) {
    Span<const Range> sorted = rangesOf(ranges, b);
    if (!isOrdered(sorted)) {
      copyOrdered(sorted, scratch.data);
      sorted.data = scratch.data;
    }
    RangeRuns runs(sorted);
    const Interval queries = queriesOf(shape, b);
    int64_t token = shape.queryStartLoc[b];
    for (int64_t q = queries.lo; q < queries.hi;) {
      const RowRun run = runs.at(q, queries.hi);
      const int64_t count = run.end - q;
      fillRows(rows + token, count, tokens - token, run.row);
      covered += run.row.start < 0 ? 0 : count;
      token += count;
      q = run.end;
    }
  }
  return covered;
}

int64_t rt::buildQueryRanges(const BatchShape &shape, const TableData &ranges, Range *rows) {
  std::vector<Range> scratch(mostRanges(ranges));
  return buildQueryRanges(shape, ranges, rows, scratch);
}
