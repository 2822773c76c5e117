// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Divisions against those of C++.
#include "attn/Core/IntMath.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

using namespace attn::core;

TEST(Reciprocal, DividesAsADivisionDoes) {
  std::mt19937_64 random(11);
  std::vector<int64_t> divisors(1024);
  for (size_t i = 0; i < divisors.size(); ++i)
    divisors[i] = static_cast<int64_t>(i) + 1;
  for (int bit = 10; bit < 32; ++bit)
    for (int64_t next = -1; next <= 1; ++next)
      divisors.push_back(std::min((int64_t(1) << bit) + next, int64_t(1) << 31));
  for (int i = 0; i < 1000; ++i)
    divisors.push_back(1 + static_cast<int64_t>(random() >> (33 + random() % 20)));
  const int64_t most = (int64_t(1) << 31) - 1;
  for (int64_t divisor : divisors) {
    const Reciprocal of = Reciprocal::of(divisor);
    ASSERT_GE(of.shift, 31);
    ASSERT_LE(of.shift, 62);
    // Around multiples of the divisor, where a product that is too large shows first.
    for (int64_t multiple : {int64_t(0), int64_t(1), most / divisor / 2, most / divisor})
      for (int64_t next = -1; next <= 1; ++next) {
        const int64_t n = std::clamp<int64_t>(multiple * divisor + next, 0, most);
        ASSERT_EQ(of.divide(n), n / divisor) << n << " / " << divisor;
      }
    for (int i = 0; i < 50; ++i) {
      const auto n = static_cast<int64_t>(random() >> (33 + random() % 31));
      ASSERT_EQ(of.divide(n), n / divisor) << n << " / " << divisor;
    }
    ASSERT_EQ(of.divide(most), most / divisor) << divisor;
  }
}
