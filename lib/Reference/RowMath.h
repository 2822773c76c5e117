// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The two inner loops of the reference, in float64.
#ifndef ATTN_LIB_REFERENCE_ROWMATH_H
#define ATTN_LIB_REFERENCE_ROWMATH_H

#include <cstdint>

namespace attn::reference {

struct RowMath {
  /// Sum of a[i] * b[i].
  double (*dot)(const double *a, const float *b, int64_t n);
  /// sum[i] += weight * row[i].
  void (*accumulate)(double *sum, double weight, const float *row, int64_t n);
};

/// The fastest version that this machine runs. Versions differ by rounding only.
RowMath rowMath();

} // namespace attn::reference

#endif // ATTN_LIB_REFERENCE_ROWMATH_H
