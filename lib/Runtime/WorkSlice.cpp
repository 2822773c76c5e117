// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Runtime/WorkList.h"

#include <algorithm>
#include <string>

using namespace attn;
using namespace attn::core;
using namespace attn::rt;

Status rt::checkCuts(const BatchShape &shape, Span<const int64_t> cuts) {
  for (int64_t i = 0; i < cuts.size; ++i)
    if (const int64_t least = i ? cuts[i - 1] : 0; cuts[i] < least || cuts[i] > shape.numTokens())
      return Error{"cut " + std::to_string(i) + " is at token " + std::to_string(cuts[i]) +
                   ", expected " + std::to_string(least) + " to " +
                   std::to_string(shape.numTokens())};
  return {};
}

Result<WorkSlice> rt::sliceOf(const WorkListView &list, TokenRange tokens) {
  if (tokens.begin >= tokens.end)
    return WorkSlice{};
  WorkSlice slice;
  const auto find = [&](int64_t token, int64_t &place) {
    const WorkPart *part =
        std::partition_point(list.parts.begin(), list.parts.end(),
                             [&](const WorkPart &part) { return part.tokenEnd < token; });
    if (part == list.parts.end() || part->tokenEnd != token)
      return false;
    place = part->workEnd;
    return true;
  };
  for (auto [token, place] :
       {std::pair(tokens.begin, &slice.begin), std::pair(tokens.end, &slice.end)}) {
    if (token == 0 || find(token, *place))
      continue;
    std::string cuts;
    for (const WorkPart &part : list.parts)
      if (&part + 1 != list.parts.end())
        cuts += (cuts.empty() ? "" : ", ") + std::to_string(part.tokenEnd);
    return Error{"tokens [" + std::to_string(tokens.begin) + ", " + std::to_string(tokens.end) +
                 "): the batch is not cut at " + std::to_string(token) +
                 " (it is at: " + (cuts.empty() ? "none" : cuts) + ")"};
  }
  return slice;
}
