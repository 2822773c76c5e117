// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Slopes of attention with linear biases. For n heads, n a power of two, head i has 2^(-8(i+1)/n).
// For other n the first heads take the slopes of the power of two m below n, the rest every second
// slope of 2m, starting with the first: those are the ones that lie between.
#include "attn/Runtime/Builders.h"

#include <cmath>

using namespace attn;

std::vector<float> rt::alibiSlopes(int64_t totalHeads, int64_t firstHead, int64_t count) {
  int64_t power = 1;
  while (power * 2 <= totalHeads)
    power *= 2;
  auto slope = [](int64_t i, int64_t n) {
    return static_cast<float>(
        std::exp2(-8.0 * static_cast<double>(i + 1) / static_cast<double>(n)));
  };
  std::vector<float> slopes;
  for (int64_t h = firstHead; h < firstHead + count; ++h)
    slopes.push_back(h < power ? slope(h, power) : slope(2 * (h - power), 2 * power));
  return slopes;
}
