// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The rows of a QueryRanges table of one request, as runs of equal rows in ascending order.
//
// Ranges: walking q upwards over ranges sorted by start, the hull needs no heap:
//  - a range whose end lies before q never holds a later q, so the first range in sorted order that
//    is not dead has, once started, the smallest start of all ranges that hold q;
//  - among the started ranges the one with the largest end holds q if any does, so the running
//    maximum of the ends is the end of the hull.
// Both change only where a range starts or the first live one ends.
//
// Documents: ids are contiguous, so whether a key belongs to q's document changes once on each side
// of q, and the extent is found by steps that double and a bisection.
#ifndef ATTN_LIB_RUNTIME_BUILDERS_ROWRUNS_H
#define ATTN_LIB_RUNTIME_BUILDERS_ROWRUNS_H

#include "attn/Core/Batch.h"
#include "attn/Runtime/Span.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace attn::rt {

/// Rows of the queries up to `end`: inclusive, (-1, -1) where there is none.
struct RowRun {
  core::Range row;
  int64_t end;
};

/// True if `ranges` is ordered by start.
bool isOrdered(Span<const core::Range> ranges);
/// Copies `ranges` to `sorted`, which is as long, ordered by start.
void copyOrdered(Span<const core::Range> ranges, core::Range *sorted);

class RangeRuns {
public:
  RangeRuns() = default;
  /// `sorted`: the live ranges of one request, ordered by start; kept while runs are read.
  explicit RangeRuns(Span<const core::Range> sorted) : sorted(sorted) {}

  /// The run that starts at `q`, up to `qEnd` at most. `q` is never below the last one.
  RowRun at(int64_t q, int64_t qEnd) {
    for (; started < sorted.size && sorted[started].start <= q; ++started)
      maxEnd = std::max(maxEnd, sorted[started].end);
    while (first < started && sorted[first].end < q)
      ++first;
    if (started < sorted.size)
      qEnd = std::min<int64_t>(qEnd, sorted[started].start);
    if (first == started)
      return {{-1, -1}, qEnd};
    return {{sorted[first].start, maxEnd}, std::min<int64_t>(qEnd, int64_t(sorted[first].end) + 1)};
  }

private:
  Span<const core::Range> sorted;
  int64_t first = 0;   ///< first range that is not dead
  int64_t started = 0; ///< ranges with start <= q
  int32_t maxEnd = -1;
};

class DocumentRuns {
public:
  DocumentRuns() = default;
  /// `ids`: document of each key of one request.
  explicit DocumentRuns(Span<const int32_t> ids) : ids(ids) {}

  /// The run that starts at `q`, up to `qEnd` at most.
  RowRun at(int64_t q, int64_t qEnd);

private:
  Span<const int32_t> ids;
  core::Interval last; ///< extent of the document found last
};

/// The sources of a batch's request.
Span<const core::Range> rangesOf(const core::TableData &table, int64_t request);
Span<const int32_t> documentsOf(const core::TableData &table, int64_t request);

/// Fills rows [0, count) with `value`. Up to `room` rows may be written, count among them: those
/// past `count` are garbage that a later fill replaces.
inline void fillRows(core::Range *rows, int64_t count, int64_t room, core::Range value) {
  // Sixteen rows, then eight at a time: ranges of a few rows end without a turn of the loop, whose
  // end would be mispredicted.
  constexpr int64_t kFirst = 16, kWide = 8;
  if (count + kFirst > room) {
    std::fill(rows, rows + count, value);
    return;
  }
  // Two rows in a register; from an array of rows they would wait for the stores that made it.
  using Pair __attribute__((vector_size(2 * sizeof(value)))) = int32_t;
  const Pair pair = {value.start, value.end, value.start, value.end};
  const auto fill = [&](int64_t begin, int64_t number) {
    for (int64_t i = begin; i < begin + number; i += 2)
      std::memcpy(rows + i, &pair, sizeof(pair));
  };
  fill(0, kFirst);
  for (int64_t i = kFirst; i < count; i += kWide)
    fill(i, kWide);
}

} // namespace attn::rt

#endif // ATTN_LIB_RUNTIME_BUILDERS_ROWRUNS_H
