// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// f16 and bf16: all 65536 patterns read by the formula of the format, and rounding of every gap.
#include "attn/Core/Tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

using namespace attn::core;

namespace {

struct Format {
  DType type;
  int exponentBits;
  int fractionBits;
};
constexpr Format kHalf{DType::F16, 5, 10}, kBFloat{DType::BF16, 8, 7};

/// The number a pattern stands for, in double.
double valueOf(const Format &format, uint16_t pattern) {
  int bias = (1 << (format.exponentBits - 1)) - 1;
  int exponent = (pattern >> format.fractionBits) & ((1 << format.exponentBits) - 1);
  int fraction = pattern & ((1 << format.fractionBits) - 1);
  double sign = pattern & 0x8000 ? -1 : 1;
  if (exponent == (1 << format.exponentBits) - 1)
    return fraction ? NAN : sign * INFINITY;
  if (exponent == 0)
    return sign * std::ldexp(fraction, 1 - bias - format.fractionBits);
  return sign *
         std::ldexp((1 << format.fractionBits) + fraction, exponent - bias - format.fractionBits);
}

float load(const Format &format, uint16_t pattern) { return loadElement(&pattern, format.type, 0); }

uint16_t store(const Format &format, float value) {
  uint16_t pattern = 0xAAAA;
  storeElement(&pattern, format.type, 0, value);
  return pattern;
}

class HalfFormats : public testing::TestWithParam<Format> {};

TEST_P(HalfFormats, EveryPatternLoadsExactlyAndStoresBack) {
  const Format &format = GetParam();
  for (int p = 0; p < 65536; ++p) {
    uint16_t pattern = static_cast<uint16_t>(p);
    double expected = valueOf(format, pattern);
    float got = load(format, pattern);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(got)) << p;
      ASSERT_TRUE(std::isnan(load(format, store(format, got)))) << p;
      ASSERT_EQ(std::signbit(got), (p & 0x8000) != 0);
      continue;
    }
    ASSERT_EQ(static_cast<double>(got), expected) << p;
    ASSERT_EQ(std::signbit(got), (p & 0x8000) != 0) << p;
    ASSERT_EQ(store(format, got), pattern);
  }
}

TEST_P(HalfFormats, EveryGapRoundsToNearestEven) {
  const Format &format = GetParam();
  uint16_t infinity =
      static_cast<uint16_t>(((1 << format.exponentBits) - 1) << format.fractionBits);
  for (uint16_t p = 0; p + 1 < infinity; ++p) {
    // Both ends and the middle are exact in f32, but for the middles below the smallest bf16.
    double below = valueOf(format, p), above = valueOf(format, static_cast<uint16_t>(p + 1));
    float middle = static_cast<float>((below + above) / 2);
    ASSERT_EQ(static_cast<double>(middle), (below + above) / 2);
    uint16_t even = p % 2 == 0 ? p : static_cast<uint16_t>(p + 1);
    ASSERT_EQ(store(format, middle), even) << p;
    ASSERT_EQ(store(format, -middle), even | 0x8000) << p;
    ASSERT_EQ(store(format, std::nextafterf(middle, 0)), p) << p;
    ASSERT_EQ(store(format, std::nextafterf(middle, INFINITY)), p + 1) << p;
  }
  // Past the largest finite number: half a step more is infinity, anything less is not.
  double largest = valueOf(format, static_cast<uint16_t>(infinity - 1));
  double step = largest - valueOf(format, static_cast<uint16_t>(infinity - 2));
  float limit = static_cast<float>(largest + step / 2);
  if (std::isfinite(limit)) {
    EXPECT_EQ(store(format, limit), infinity);
    EXPECT_EQ(store(format, std::nextafterf(limit, 0)), infinity - 1);
    EXPECT_EQ(store(format, -limit), infinity | 0x8000);
  }
  EXPECT_EQ(store(format, INFINITY), infinity);
  EXPECT_EQ(store(format, 3.4e38f), infinity);
}

TEST_P(HalfFormats, RandomFloatsGoToTheNearest) {
  const Format &format = GetParam();
  std::mt19937 random(3);
  for (int round = 0; round < 200000; ++round) {
    uint32_t bits = static_cast<uint32_t>(random());
    float f;
    std::memcpy(&f, &bits, sizeof(f));
    if (std::isnan(f)) {
      ASSERT_TRUE(std::isnan(load(format, store(format, f))));
      continue;
    }
    uint16_t p = store(format, f);
    double got = valueOf(format, p);
    if (std::isinf(got))
      continue;
    double error = std::fabs(got - static_cast<double>(f));
    for (int d : {-1, 1}) {
      uint16_t neighbour = static_cast<uint16_t>((p & 0x7FFF) + d) & 0x7FFF;
      double other = valueOf(format, static_cast<uint16_t>(neighbour | (p & 0x8000)));
      if (std::isfinite(other)) {
        ASSERT_LE(error, std::fabs(other - static_cast<double>(f))) << f;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tensor, HalfFormats, testing::Values(kHalf, kBFloat),
                         [](const auto &info) { return std::string(toString(info.param.type)); });

TEST(Tensor, Float32IsKeptBitForBit) {
  uint32_t nan = 0x7FA00001, out = 0;
  storeElement(&out, DType::F32, 0, loadElement(&nan, DType::F32, 0));
  EXPECT_EQ(out & 0x7FBFFFFF, nan & 0x7FBFFFFF);
  float f[3] = {1, -2.5f, 3};
  EXPECT_EQ(loadElement(f, DType::F32, 1), -2.5f);
  storeElement(f, DType::F32, 2, 7);
  EXPECT_EQ(f[2], 7);
}

TEST(Tensor, Names) {
  for (DType type : {DType::F32, DType::F16, DType::BF16})
    EXPECT_EQ(parseDType(toString(type)), type);
  EXPECT_FALSE(parseDType("f64"));
  EXPECT_EQ(byteSize(DType::F32), 4);
  EXPECT_EQ(byteSize(DType::F16), 2);
  EXPECT_EQ(byteSize(DType::BF16), 2);
}

TEST(Tensor, PagedAndContiguousOffsets) {
  int64_t start[] = {0, 10};
  int32_t pages[] = {7, -1, 3, 5};
  KvView view;
  view.pageStride = 1000;
  view.slotStride = 10;
  view.headStride = 2;
  KvLayout contiguous{start, nullptr, 0, 0}, paged{nullptr, pages, 2, 4};
  EXPECT_EQ(view.offset(contiguous, 1, 3, 2), 13 * 10 + 4);
  EXPECT_EQ(view.offset(paged, 1, 6, 1), 5 * 1000 + 2 * 10 + 2);
}

} // namespace
