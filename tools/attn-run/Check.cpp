// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Check.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace attn;
using namespace attn::run;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// True if both are the same infinity or both NaN.
static bool sameSpecial(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || (std::isinf(a) && a == b);
}

static double rowError(const float *got, const double *expected, int64_t dim) {
  double difference = 0, norm = 0;
  for (int64_t d = 0; d < dim; ++d) {
    if (sameSpecial(got[d], expected[d]))
      continue;
    if (!std::isfinite(got[d]) || !std::isfinite(expected[d]))
      return kInfinity;
    difference += (got[d] - expected[d]) * (got[d] - expected[d]);
    norm += expected[d] * expected[d];
  }
  if (difference == 0)
    return 0;
  return norm > 0 ? std::sqrt(difference / norm) : kInfinity;
}

static double lseError(double got, double expected) {
  if (sameSpecial(got, expected))
    return 0;
  if (!std::isfinite(got) || !std::isfinite(expected))
    return kInfinity;
  return std::abs(got - expected) / std::max(1.0, std::abs(expected));
}

CheckResult run::compare(const CpuOutput &got, const reference::Output &expected, int64_t tokens,
                         int64_t heads, int64_t dim) {
  CheckResult result;
  for (int64_t token = 0; token < tokens; ++token) {
    for (int64_t head = 0; head < heads; ++head, ++result.rows) {
      const int64_t row = (token * heads + head) * dim;
      const double o = rowError(&got.o[row], &expected.o[row], dim);
      if (o > result.rowError) {
        result.rowError = o;
        result.rowToken = token;
        result.rowHead = head;
      }
      const int64_t at = head * tokens + token;
      const double lse = lseError(got.lse[at], expected.lse[at]);
      if (lse > result.lseError) {
        result.lseError = lse;
        result.lseToken = token;
        result.lseHead = head;
      }
    }
  }
  return result;
}
