// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Command line of attn-run.
#ifndef ATTN_TOOLS_ATTNRUN_OPTIONS_H
#define ATTN_TOOLS_ATTNRUN_OPTIONS_H

#include "attn/Core/Status.h"
#include "attn/Sim/Sim.h"

#include <cstdint>
#include <string>

namespace attn::run {

enum class Device { Reference, Cpu, Sim, Cuda };
/// "reference", "cpu", "sim", "cuda".
const char *toString(Device device);

struct Options {
  bool help = false;
  bool version = false;
  std::string artifact;
  std::string batch;
  std::string kernel; ///< empty: the artifact's only one
  std::string inputs; ///< empty: random
  std::string output; ///< empty: none
  Device device = Device::Cpu;
  bool check = false;
  bool bench = false;
  bool tune = false;
  uint64_t seed = 1;
  bool seedGiven = false;
  unsigned threads = 0; ///< 0: as many as the machine runs at once
  sim::Policy policy;   ///< of the simulator
  std::string policyText = "earliest";
  bool policyGiven = false;
  uint64_t simSteps = 0; ///< warp instructions of a launch; 0: the simulator's own limit
};

/// Reads the command line; an error names the option.
core::Result<Options> parseOptions(int argc, char **argv);

/// Text of --help.
std::string helpText();

} // namespace attn::run

#endif // ATTN_TOOLS_ATTNRUN_OPTIONS_H
