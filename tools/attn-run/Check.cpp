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

static double normOf(const double *row, int64_t dim) {
  double sum = 0;
  for (int64_t d = 0; d < dim; ++d)
    sum += row[d] * row[d];
  return std::sqrt(sum);
}

/// The error of a row relative to its norm, or to `floor` where that is larger.
static double rowError(const float *got, const double *expected, int64_t dim, double floor) {
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
  const double size = std::max(std::sqrt(norm), floor);
  return size > 0 ? std::sqrt(difference) / size : kInfinity;
}

static double lseError(double got, double expected) {
  if (sameSpecial(got, expected))
    return 0;
  if (!std::isfinite(got) || !std::isfinite(expected))
    return kInfinity;
  return std::abs(got - expected) / std::max(1.0, std::abs(expected));
}

static double normOfElements(const void *data, core::DType type, int64_t offset, int64_t dim) {
  double sum = 0;
  for (int64_t i = 0; i < dim; ++i) {
    const double x = core::loadElement(data, type, offset + i);
    sum += x * x;
  }
  return std::sqrt(sum);
}

/// For each key and head the values |v|, then |k| |v|.
static std::vector<float> termValues(const core::Problem &dense) {
  const core::KernelSpec &spec = *dense.spec;
  const int64_t rows = dense.kv.kvStart[dense.batch->shape.numReqs()] * spec.numKvHeads;
  std::vector<float> values(rows * 2 * spec.dimV);
  for (int64_t row = 0; row < rows; ++row) {
    const double key = normOfElements(dense.k.data, dense.k.dtype, row * spec.dimQk, spec.dimQk);
    float *out = &values[row * 2 * spec.dimV];
    for (int64_t i = 0; i < spec.dimV; ++i) {
      out[i] = std::abs(core::loadElement(dense.v.data, dense.v.dtype, row * spec.dimV + i));
      out[spec.dimV + i] = static_cast<float>(key * out[i]);
    }
  }
  return values;
}

std::vector<double> run::rowFloors(const core::Problem &dense, const reference::Output &expected) {
  const std::vector<float> values = termValues(dense);
  core::KernelSpec spec = *dense.spec;
  const int64_t dim = spec.dimV, tokens = dense.batch->shape.numTokens();
  spec.dimV = 2 * dim;
  core::Problem problem = dense;
  problem.spec = &spec;
  problem.v.data = values.data();
  problem.v.dtype = core::DType::F32;
  problem.v.headStride = spec.dimV;
  problem.v.slotStride = spec.numKvHeads * spec.dimV;
  const reference::Output terms = reference::run(problem);

  std::vector<double> floors;
  for (int64_t token = 0; token < tokens; ++token)
    for (int64_t head = 0; head < spec.numHeads; ++head) {
      const double query =
          normOfElements(dense.q.data, dense.q.dtype, dense.q.offset(token, head), spec.dimQk);
      const double perValue = kTermRoundings + std::abs(expected.lse[head * tokens + token]);
      const double perKey = std::abs(dense.scale()) * query;
      const double *row = &terms.o[(token * spec.numHeads + head) * spec.dimV];
      double sum = 0;
      for (int64_t i = 0; i < dim; ++i) {
        const double size = perValue * row[i] + perKey * row[dim + i];
        sum += size * size;
      }
      const double floor = 0x1p-24 * std::sqrt(sum) / kCpuTolerance.row;
      // Rows without a key have none, nor have rows with a term that is no finite number.
      floors.push_back(std::isfinite(floor) ? floor : 0);
    }
  return floors;
}

CheckResult run::compare(const CpuOutput &got, const reference::Output &expected,
                         const std::vector<double> &floors, int64_t tokens, int64_t heads,
                         int64_t dim) {
  CheckResult result;
  for (int64_t token = 0; token < tokens; ++token) {
    for (int64_t head = 0; head < heads; ++head, ++result.rows) {
      const int64_t row = (token * heads + head) * dim;
      const double floor = floors.empty() ? 0 : floors[result.rows];
      result.cancelling += floor > normOf(&expected.o[row], dim);
      const double o = rowError(&got.o[row], &expected.o[row], dim, floor);
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
