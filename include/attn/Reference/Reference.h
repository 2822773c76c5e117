// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The judge: attention forward in float64 over the mask program, by definition, in O(q * k).
#ifndef ATTN_REFERENCE_REFERENCE_H
#define ATTN_REFERENCE_REFERENCE_H

#include "attn/Core/Problem.h"

#include <cstdint>
#include <vector>

namespace attn::reference {

struct Output {
  std::vector<double> o;   ///< [tokens, heads, dim_v]
  std::vector<double> lse; ///< [heads, tokens], natural log; -inf for an empty row
};

/// Computes O and LSE. For each row: s = scale * q.k for kept keys in [keyBegin, keyEnd), through
/// the score region; -inf drops the key, NaN propagates; softmax; O = P.V. An empty row gives
/// O = 0 and LSE = -inf. K and V of keys that a row does not keep are never read for that row, nor
/// V of keys that the score region drops. A +inf score gives what the formula gives in floating
/// point: LSE = +inf and O = NaN.
Output run(const core::Problem &problem);

/// The mask as bytes: keep[(h * tokens + token) * stride + k] for k in [keyBegin, keyEnd).
std::vector<uint8_t> denseMask(const core::KernelSpec &spec, const core::Batch &batch,
                               int64_t stride);

} // namespace attn::reference

#endif // ATTN_REFERENCE_REFERENCE_H
