// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A part of a batch, for launches and slices.
#ifndef ATTN_RUNTIME_SUBRANGE_H
#define ATTN_RUNTIME_SUBRANGE_H

#include "attn/Core/Batch.h"

#include <algorithm>
#include <cstdint>

namespace attn::rt {

/// Tokens [begin, end) of a batch: rows of Q, O and LSE.
struct TokenRange {
  int64_t begin = 0, end = 0;
};

/// Part of a batch: tokens [tokenBegin, tokenEnd) of requests [requestBegin, requestEnd). Tables
/// are addressed by base + row, so nothing is copied.
struct SubRange {
  int64_t requestBegin = 0, requestEnd = 0;
  int64_t tokenBegin = 0, tokenEnd = 0;

  static SubRange all(const core::BatchShape &shape) {
    return {0, shape.numReqs(), 0, shape.numTokens()};
  }
  /// The tokens that are both in the token range and in one of the requests.
  TokenRange tokens(const core::BatchShape &shape) const {
    return {std::max(tokenBegin, shape.queryStartLoc[requestBegin]),
            std::min(tokenEnd, shape.queryStartLoc[requestEnd])};
  }
};

} // namespace attn::rt

#endif // ATTN_RUNTIME_SUBRANGE_H
