// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs of pages that follow one another in the cache as they do in the request.
#include "attn/Runtime/Builders.h"

#include "attn/Core/IntMath.h"

#include <string>

using namespace attn;
using namespace attn::core;
using namespace attn::rt;

namespace {

/// Pages that hold keys of the launch.
Interval pagesOf(const BatchShape &shape, int64_t b, int64_t pageSize) {
  const Interval keys{shape.keyBegin[b], shape.keyEnd[b]};
  return keys.empty() ? Interval{0, 0} : Interval{keys.lo / pageSize, ceilDiv(keys.hi, pageSize)};
}

/// Writes the runs of `pages`, which are not empty, and returns their number. No branch depends on
/// what the table holds: every page is written as if it began a run, and stays where it does.
int64_t appendRuns(const int32_t *table, Interval pages, PageRun *runs) {
  runs[0].page = static_cast<int32_t>(pages.lo);
  runs[0].cachePage = table[pages.lo];
  int64_t last = 0;
  for (int64_t i = pages.lo + 1; i < pages.hi; ++i) {
    runs[last + 1].page = static_cast<int32_t>(i);
    runs[last + 1].cachePage = table[i];
    // Page ids are not negative, so the next one fits 32 bits without a sign.
    last += static_cast<uint32_t>(table[i]) != static_cast<uint32_t>(table[i - 1]) + 1;
  }
  for (int64_t r = 0; r < last; ++r)
    runs[r].count = runs[r + 1].page - runs[r].page;
  runs[last].count = static_cast<int32_t>(pages.hi) - runs[last].page;
  return last + 1;
}

} // namespace

int64_t rt::mostPageRuns(const BatchShape &shape, int64_t pageSize) {
  int64_t pages = 0;
  for (int64_t b = 0; b < shape.numReqs(); ++b)
    pages += pagesOf(shape, b, pageSize).size();
  return pages;
}

Result<int64_t> rt::buildPageRuns(const BatchShape &shape, const PageTable &table,
                                  Span<PageRun> runs, Span<int64_t> offsets) {
  if (table.pageSize < 1)
    return Error{"page runs: page size is " + std::to_string(table.pageSize) +
                 ", expected at least 1"};
  if (offsets.size < shape.numReqs() + 1)
    return Error{"page runs: " + std::to_string(shape.numReqs()) + " requests, memory for " +
                 std::to_string(offsets.size - 1)};
  if (const int64_t most = mostPageRuns(shape, table.pageSize); most > runs.size)
    return Error{"page runs: " + std::to_string(most) + " pages, memory for " +
                 std::to_string(runs.size) + " runs"};
  int64_t count = 0;
  offsets[0] = 0;
  for (int64_t b = 0; b < shape.numReqs(); ++b) {
    const Interval pages = pagesOf(shape, b, table.pageSize);
    if (!pages.empty())
      count += appendRuns(table.entries + b * table.stride, pages, runs.data + count);
    offsets[b + 1] = count;
  }
  return count;
}
