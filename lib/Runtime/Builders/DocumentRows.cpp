// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Per-query document rows: the inclusive extent of the document of q. Ids are contiguous, so the
// extent is found by walking outwards from the scheduled queries, once for each document.
#include "attn/Runtime/Builders.h"

#include <algorithm>

using namespace attn;
using namespace attn::core;

int64_t rt::buildDocumentRows(const BatchShape &shape, const TableData &documents, Range *rows) {
  // The scheduled queries of request b that lie in its table.
  auto coveredOf = [&](int64_t b) {
    Interval queries{shape.contextLen[b], shape.contextLen[b] + shape.queryLen(RequestIndex(b))};
    int64_t length = documents.documentOffsets[b + 1] - documents.documentOffsets[b];
    return intersect(queries, Interval{0, length});
  };
  int64_t covered = 0;
  for (int64_t b = 0; b < shape.numReqs(); ++b)
    covered += coveredOf(b).size();
  if (covered == 0)
    return 0;

  for (int64_t b = 0; b < shape.numReqs(); ++b) {
    std::fill(rows + shape.queryStartLoc[b], rows + shape.queryStartLoc[b + 1], Range{-1, -1});
    const Interval queries = coveredOf(b);
    if (queries.empty())
      continue;
    const int32_t *ids = documents.documents.data() + documents.documentOffsets[b];
    const int64_t length = documents.documentOffsets[b + 1] - documents.documentOffsets[b];
    Range *row = rows + shape.tokenOf(RequestIndex(b), QueryPos(queries.lo)).value;
    int64_t start = queries.lo;
    while (start > 0 && ids[start - 1] == ids[start])
      --start;
    for (int64_t q = queries.lo; q < queries.hi;) {
      int64_t end = q + 1;
      while (end < length && ids[end] == ids[q])
        ++end;
      const int64_t runEnd = std::min(end, queries.hi);
      std::fill(row, row + (runEnd - q),
                Range{static_cast<int32_t>(start), static_cast<int32_t>(end - 1)});
      row += runEnd - q;
      q = runEnd;
      start = end;
    }
  }
  return covered;
}
