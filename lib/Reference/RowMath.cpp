// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Written for the compiler's vectoriser: independent partial sums, no branches.
#include "RowMath.h"

namespace attn::reference {

[[gnu::always_inline]] static inline double dotLoop(const double *a, const float *b, int64_t n) {
  constexpr int64_t kLanes = 16;
  double partial[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int64_t j = 0; j < kLanes; ++j)
      partial[j] += a[i + j] * static_cast<double>(b[i + j]);
  double sum = 0;
  for (; i < n; ++i)
    sum += a[i] * static_cast<double>(b[i]);
  for (double part : partial)
    sum += part;
  return sum;
}

[[gnu::always_inline]] static inline void accumulateLoop(double *sum, double weight,
                                                         const float *row, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    sum[i] += weight * static_cast<double>(row[i]);
}

static double dotBaseline(const double *a, const float *b, int64_t n) { return dotLoop(a, b, n); }

static void accumulateBaseline(double *sum, double weight, const float *row, int64_t n) {
  accumulateLoop(sum, weight, row, n);
}

#if defined(__x86_64__) && defined(__GNUC__)
[[gnu::target("avx2,fma")]] static double dotAvx2(const double *a, const float *b, int64_t n) {
  return dotLoop(a, b, n);
}

[[gnu::target("avx2,fma")]] static void accumulateAvx2(double *sum, double weight, const float *row,
                                                       int64_t n) {
  accumulateLoop(sum, weight, row, n);
}

RowMath rowMath() {
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return {dotAvx2, accumulateAvx2};
  return {dotBaseline, accumulateBaseline};
}
#else
RowMath rowMath() { return {dotBaseline, accumulateBaseline}; }
#endif

} // namespace attn::reference
