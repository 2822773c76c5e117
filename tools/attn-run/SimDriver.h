// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A CUDA driver whose device is the simulator: device memory is the host's, modules are PTX, a
// launch runs before it returns.
#ifndef ATTN_TOOLS_ATTNRUN_SIMDRIVER_H
#define ATTN_TOOLS_ATTNRUN_SIMDRIVER_H

#include "attn/Sim/Sim.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace attn::simdriver {

/// How launches run and what came of them. One for the process, as a driver is.
struct State {
  sim::Policy policy; ///< of the first launch; random ones differ from launch to launch
  unsigned threads = 1;
  uint64_t maxSteps = 0;   ///< 0: the simulator's own limit
  std::string replacement; ///< PTX to take instead of what a module holds; empty: none
  /// Called after every launch that ran.
  std::function<void(const sim::Outcome &)> launched;
  uint64_t launches = 0;
  std::string error; ///< of the last call that failed
};
State &state();

/// A function of the driver by its name in the driver API, or null.
void *find(const char *name);

} // namespace attn::simdriver

#endif // ATTN_TOOLS_ATTNRUN_SIMDRIVER_H
