// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Compares results with the reference, row by row.
#ifndef ATTN_TOOLS_ATTNRUN_CHECK_H
#define ATTN_TOOLS_ATTNRUN_CHECK_H

#include "Device.h"

namespace attn::run {

/// Largest errors allowed.
struct Tolerance {
  double row = 0; ///< |o - ref| / |ref|, Euclidean norms of one (token, head) row
  double lse = 0; ///< |lse - ref| / max(1, |ref|)
};
constexpr Tolerance kCpuTolerance{1e-5, 1e-5};

/// The largest errors found and where. Infinite where one side is not finite and the other is not
/// the same, and where a row that must be zero is not.
struct CheckResult {
  int64_t rows = 0;
  double rowError = 0;
  int64_t rowToken = 0, rowHead = 0;
  double lseError = 0;
  int64_t lseToken = 0, lseHead = 0;

  bool within(const Tolerance &tolerance) const {
    return rowError <= tolerance.row && lseError <= tolerance.lse;
  }
};

CheckResult compare(const CpuOutput &got, const reference::Output &expected, int64_t tokens,
                    int64_t heads, int64_t dim);

} // namespace attn::run

#endif // ATTN_TOOLS_ATTNRUN_CHECK_H
