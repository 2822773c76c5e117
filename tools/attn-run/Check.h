// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Compares results with the reference, row by row.
#ifndef ATTN_TOOLS_ATTNRUN_CHECK_H
#define ATTN_TOOLS_ATTNRUN_CHECK_H

#include "Device.h"

namespace attn::run {

/// Largest errors allowed.
struct Tolerance {
  double row = 0; ///< |o - ref| / max(|ref|, floor), Euclidean norms of one (token, head) row
  double lse = 0; ///< |lse - ref| / max(1, |ref|)
};
constexpr Tolerance kCpuTolerance{1e-5, 1e-5};

/// Lower bounds of the sizes that rows are measured against, [tokens * heads].
///
/// o = sum p v is computed from rounded weights, products and sums. A weight is off by the relative
/// error of exp and by the absolute error of its score; f32 finds scale * q.k to within about eps
/// times scale |q| |k| (eps = 2^-24), and what the score region makes of it to within eps times its
/// size, of which |lse| tells. So o may be off by
///   e = eps sum p |v| (kTermRoundings + scale |q| |k| + |lse|)
/// however small o itself is, where terms of both signs cancel. The floor is |e| / tolerance: a row
/// below it is held to f32 accuracy of its terms. Measured, the errors stay below half of e.
/// `dense` is the problem on dense K/V, `expected` its result; runs the reference once more.
std::vector<double> rowFloors(const core::Problem &dense, const reference::Output &expected);
constexpr double kTermRoundings = 16;

/// The largest errors found and where. Infinite where one side is not finite and the other is not
/// the same, and where a row that must be zero is not.
struct CheckResult {
  int64_t rows = 0;
  int64_t cancelling = 0; ///< rows measured against the floor
  double rowError = 0;
  int64_t rowToken = 0, rowHead = 0;
  double lseError = 0;
  int64_t lseToken = 0, lseHead = 0;

  bool within(const Tolerance &tolerance) const {
    return rowError <= tolerance.row && lseError <= tolerance.lse;
  }
};

/// `floors` is empty or as rowFloors() gives it.
CheckResult compare(const CpuOutput &got, const reference::Output &expected,
                    const std::vector<double> &floors, int64_t tokens, int64_t heads, int64_t dim);

} // namespace attn::run

#endif // ATTN_TOOLS_ATTNRUN_CHECK_H
