// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs a problem on a device, once or several times.
#ifndef ATTN_TOOLS_ATTNRUN_DEVICE_H
#define ATTN_TOOLS_ATTNRUN_DEVICE_H

#include "attn/Core/Problem.h"
#include "attn/Reference/Reference.h"
#include "attn/Runtime/Launch.h"

#include <vector>

namespace attn::run {

/// Wall times of the runs, in milliseconds.
struct Timing {
  std::vector<double> runs;
  double median() const;
  double min() const;
};

/// Results of the CPU path.
struct CpuOutput {
  std::vector<float> o;   ///< [tokens, heads, dim_v]
  std::vector<float> lse; ///< [heads, tokens]
};

/// Runs the native code; with `bench` several times. Rows start as NaN, so one that the kernel does
/// not write cannot pass for a result.
CpuOutput runCpu(const rt::NativeRunner &runner, const core::Problem &problem, unsigned threads,
                 bool bench, Timing &timing);

/// Runs the reference; with `bench` several times.
reference::Output runReference(const core::Problem &problem, bool bench, Timing &timing);

} // namespace attn::run

#endif // ATTN_TOOLS_ATTNRUN_DEVICE_H
