// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Device.h"

#include <algorithm>
#include <chrono>
#include <limits>

using namespace attn;
using namespace attn::core;
using namespace attn::run;

double Timing::median() const {
  std::vector<double> sorted = runs;
  std::sort(sorted.begin(), sorted.end());
  const size_t half = sorted.size() / 2;
  return sorted.size() % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

double Timing::min() const { return *std::min_element(runs.begin(), runs.end()); }

/// Calls `work` once, or for a benchmark until the figures are steady: once to warm up, then at
/// least 5 times and for half a second, at most 100 times.
template <class Work>
static void timed(Work work, bool bench, Timing &timing) {
  using Clock = std::chrono::steady_clock;
  constexpr size_t kLeastRuns = 5, kMostRuns = 100;
  constexpr double kLeastMs = 500;
  auto once = [&] {
    const Clock::time_point start = Clock::now();
    work();
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  };
  if (!bench) {
    timing.runs = {once()};
    return;
  }
  work();
  for (double total = 0;
       timing.runs.size() < kLeastRuns || (total < kLeastMs && timing.runs.size() < kMostRuns);) {
    timing.runs.push_back(once());
    total += timing.runs.back();
  }
}

CpuOutput run::runCpu(const rt::NativeRunner &runner, const Problem &problem, unsigned threads,
                      bool bench, Timing &timing) {
  const KernelSpec &spec = *problem.spec;
  const Batch &batch = *problem.batch;
  const int64_t tokens = batch.shape.numTokens();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CpuOutput result;
  result.o.assign(tokens * spec.numHeads * spec.dimV, nan);
  result.lse.assign(spec.numHeads * tokens, nan);
  rt::NativeOutput output;
  output.o = result.o.data();
  output.oTokenStride = spec.numHeads * spec.dimV;
  output.oHeadStride = spec.dimV;
  output.lse = result.lse.data();
  output.lseHeadStride = tokens;
  const rt::NativeTables tables(spec, runner.binary(), batch);
  const rt::SubRange all = rt::SubRange::all(batch.shape);
  timed([&] { runner.run(problem, tables, output, all, threads); }, bench, timing);
  return result;
}

reference::Output run::runReference(const Problem &problem, bool bench, Timing &timing) {
  reference::Output output;
  timed([&] { output = reference::run(problem); }, bench, timing);
  return output;
}
