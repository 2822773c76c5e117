// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_TEST_NORMALFLOATS_H
#define ATTN_TEST_NORMALFLOATS_H

#include <cmath>
#include <random>

/// Standard normal numbers, those of libstdc++'s std::normal_distribution<float>, which takes two
/// logarithms of long doubles for each.
class NormalFloats {
public:
  float operator()(std::mt19937 &random) {
    if (hasNext) {
      hasNext = false;
      return next;
    }
    float x, y, square;
    do {
      x = 2 * unit(random) - 1;
      y = 2 * unit(random) - 1;
      square = x * x + y * y;
    } while (square > 1 || square == 0);
    const float factor = std::sqrt(-2 * std::log(square) / square);
    next = x * factor;
    hasNext = true;
    return y * factor;
  }

private:
  /// From [0, 1).
  static float unit(std::mt19937 &random) {
    const float u = static_cast<float>(random()) / 4294967296.0f;
    return u < 1 ? u : std::nextafter(1.0f, 0.0f);
  }

  bool hasNext = false;
  float next = 0;
};

#endif // ATTN_TEST_NORMALFLOATS_H
