// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "RowRuns.h"

using namespace attn;
using namespace attn::core;
using namespace attn::rt;

static bool startsBefore(const Range &a, const Range &b) { return a.start < b.start; }

bool rt::isOrdered(Span<const Range> ranges) {
  return std::is_sorted(ranges.begin(), ranges.end(), startsBefore);
}

void rt::copyOrdered(Span<const Range> ranges, Range *sorted) {
  std::copy(ranges.begin(), ranges.end(), sorted);
  std::sort(sorted, sorted + ranges.size, startsBefore);
}

/// The last position from `q` on, in steps of 1 or -1, that is of q's document.
static int64_t lastEqual(Span<const int32_t> ids, int64_t q, int64_t step) {
  const int64_t limit = step > 0 ? ids.size - 1 - q : q; // steps that stay inside
  int64_t equal = 0, reach = 1;
  while (reach <= limit && ids[q + step * reach] == ids[q]) {
    equal = reach;
    reach *= 2;
  }
  // ids[q + step * equal] is of the document; the first that is not lies in (equal, other].
  int64_t other = std::min(reach, limit + 1);
  while (other - equal > 1) {
    const int64_t middle = equal + (other - equal) / 2;
    if (ids[q + step * middle] == ids[q])
      equal = middle;
    else
      other = middle;
  }
  return q + step * equal;
}

RowRun DocumentRuns::at(int64_t q, int64_t qEnd) {
  if (q < 0)
    return {{-1, -1}, std::min<int64_t>(qEnd, 0)};
  if (q >= ids.size)
    return {{-1, -1}, qEnd};
  if (!last.contains(q))
    last = {q == last.hi ? q : lastEqual(ids, q, -1), lastEqual(ids, q, 1) + 1};
  return {{static_cast<int32_t>(last.lo), static_cast<int32_t>(last.hi - 1)},
          std::min(qEnd, last.hi)};
}

Span<const Range> rt::rangesOf(const TableData &table, int64_t request) {
  const int64_t first = table.rangeOffsets[request];
  return {table.ranges.data() + first, table.rangeOffsets[request + 1] - first};
}

Span<const int32_t> rt::documentsOf(const TableData &table, int64_t request) {
  const int64_t first = table.documentOffsets[request];
  return {table.documents.data() + first, table.documentOffsets[request + 1] - first};
}
