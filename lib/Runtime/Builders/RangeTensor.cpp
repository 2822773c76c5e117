// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ranges as a dense tensor, one row of equal length a request, for kernels that scan them.
#include "attn/Runtime/Builders.h"

#include "RowRuns.h"

#include <string>

using namespace attn;
using namespace attn::core;
using namespace attn::rt;

Result<int64_t> rt::buildRangeTensor(const BatchShape &shape, const TableData &ranges,
                                     int64_t perRequest, Span<Range> tensor) {
  const int64_t numReqs = shape.numReqs();
  const int64_t most = mostRanges(ranges);
  if (most > perRequest)
    return Error{"range tensor: a request has " + std::to_string(most) + " ranges, memory for " +
                 std::to_string(perRequest)};
  if (most == 0)
    return 0;
  if (tensor.size < numReqs * perRequest)
    return Error{"range tensor: " + std::to_string(numReqs) + " requests of " +
                 std::to_string(perRequest) + " ranges, memory for " + std::to_string(tensor.size) +
                 " ranges"};
  int64_t count = 0;
  for (int64_t b = 0; b < numReqs; ++b) {
    const Span<const Range> from = rangesOf(ranges, b);
    Range *row = tensor.data + b * perRequest;
    std::copy(from.begin(), from.end(), row);
    std::fill(row + from.size, row + perRequest, Range{-1, -1});
    count += from.size;
  }
  return count;
}
