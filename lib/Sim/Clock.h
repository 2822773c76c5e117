// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Vector clocks: which part of the work of every agent happens before now. Agents are warps and the
// asynchronous streams (products of a warp, copies of a barrier, ...); absent components are 0.
#ifndef ATTN_SIM_CLOCK_H
#define ATTN_SIM_CLOCK_H

#include <algorithm>
#include <cstdint>
#include <vector>

namespace attn::sim {

class Clock {
public:
  uint32_t get(uint32_t agent) const { return agent < times.size() ? times[agent] : 0; }
  void raise(uint32_t agent, uint32_t time) {
    if (agent >= times.size())
      times.resize(agent + 1);
    times[agent] = std::max(times[agent], time);
  }
  void join(const Clock &other) {
    if (times.size() < other.times.size())
      times.resize(other.times.size());
    for (size_t i = 0; i < other.times.size(); ++i)
      times[i] = std::max(times[i], other.times[i]);
  }

private:
  std::vector<uint32_t> times;
};

} // namespace attn::sim

#endif // ATTN_SIM_CLOCK_H
