// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Per-query range rows: for each scheduled token the hull of the live ranges that hold its q.
//
// Walking q upwards over ranges sorted by start, the hull needs no heap:
//  - a range whose end lies before q never holds a later q, so the first range in sorted order that
//    is not dead has, once started, the smallest start of all ranges that hold q;
//  - among the started ranges the one with the largest end holds q if any does, so the running
//    maximum of the ends is the end of the hull.
// Both change only where a range starts or the first live one ends, so rows are filled in runs.
#include "attn/Runtime/Builders.h"

#include <algorithm>

using namespace attn;
using namespace attn::core;

namespace {

bool startsBefore(const Range &a, const Range &b) { return a.start < b.start; }

/// Fills the rows of the queries [q, qEnd) of one request; `sorted` is ordered by start.
int64_t fillRequest(const std::vector<Range> &sorted, int64_t q, int64_t qEnd, Range *row) {
  int64_t covered = 0;
  int64_t maxEnd = -1;
  size_t first = 0;   // first range that is not dead
  size_t started = 0; // ranges with start <= q
  while (q < qEnd) {
    for (; started < sorted.size() && sorted[started].start <= q; ++started)
      maxEnd = std::max<int64_t>(maxEnd, sorted[started].end);
    while (first < started && sorted[first].end < q)
      ++first;
    const int64_t nextStart = started < sorted.size() ? sorted[started].start : qEnd;
    Range value{-1, -1};
    int64_t runEnd = nextStart;
    if (first < started) {
      value = {sorted[first].start, static_cast<int32_t>(maxEnd)};
      runEnd = std::min<int64_t>(runEnd, int64_t(sorted[first].end) + 1);
    }
    runEnd = std::min(runEnd, qEnd);
    std::fill(row, row + (runEnd - q), value);
    if (first < started)
      covered += runEnd - q;
    row += runEnd - q;
    q = runEnd;
  }
  return covered;
}

} // namespace

int64_t rt::buildQueryRanges(const BatchShape &shape, const TableData &ranges, Range *rows) {
  auto rangesOf = [&](int64_t b) {
    return std::make_pair(ranges.ranges.begin() + ranges.rangeOffsets[b],
                          ranges.ranges.begin() + ranges.rangeOffsets[b + 1]);
  };
  auto queriesOf = [&](int64_t b) {
    return Interval{shape.contextLen[b], shape.contextLen[b] + shape.queryLen(RequestIndex(b))};
  };
  auto anyCovered = [&] {
    for (int64_t b = 0; b < shape.numReqs(); ++b) {
      auto [begin, end] = rangesOf(b);
      Interval queries = queriesOf(b);
      if (std::any_of(begin, end, [&](const Range &r) {
            return !intersect(queries, Interval::fromInclusive(r.start, r.end)).empty();
          }))
        return true;
    }
    return false;
  };
  if (!anyCovered())
    return 0;

  int64_t covered = 0;
  std::vector<Range> sorted;
  for (int64_t b = 0; b < shape.numReqs(); ++b) {
    auto [begin, end] = rangesOf(b);
    Interval queries = queriesOf(b);
    sorted.assign(begin, end);
    if (!std::is_sorted(sorted.begin(), sorted.end(), startsBefore))
      std::sort(sorted.begin(), sorted.end(), startsBefore);
    covered += fillRequest(sorted, queries.lo, queries.hi, rows + shape.queryStartLoc[b]);
  }
  return covered;
}
