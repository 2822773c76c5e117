// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Per-query document rows: the inclusive extent of the document of q.
#include "attn/Runtime/Builders.h"

#include "RowRuns.h"

using namespace attn;
using namespace attn::core;
using namespace attn::rt;

int64_t rt::buildDocumentRows(const BatchShape &shape, const TableData &documents, Range *rows) {
  int64_t covered = 0;
  for (int64_t b = 0; b < shape.numReqs(); ++b) {
    // The scheduled queries of the request that lie in its table.
    const int64_t begin = shape.contextLen[b];
    const Interval queries{begin, begin + shape.queryLen(RequestIndex(b))};
    covered += intersect(queries, Interval{0, documentsOf(documents, b).size}).size();
  }
  if (covered == 0)
    return 0;
  const int64_t tokens = shape.numTokens();
  for (int64_t b = 0; b < shape.numReqs(); ++b) {
    DocumentRuns runs(documentsOf(documents, b));
    int64_t token = shape.queryStartLoc[b];
    const int64_t end = shape.contextLen[b] + shape.queryLen(RequestIndex(b));
    for (int64_t q = shape.contextLen[b]; q < end;) {
      const RowRun run = runs.at(q, end);
      fillRows(rows + token, run.end - q, tokens - token, run.row);
      token += run.end - q;
      q = run.end;
    }
  }
  return covered;
}
