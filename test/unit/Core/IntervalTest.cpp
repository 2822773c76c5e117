// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Interval sets against bit sets: every set over a small universe, every pair of them.
#include "attn/Core/Interval.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <random>

using namespace attn::core;

namespace {

constexpr int kUniverse = 7;

/// The set whose members are the bits of `bits`, written as single positions in a scrambled order.
IntervalSet setOf(unsigned bits) {
  std::vector<Interval> runs;
  for (int i = kUniverse - 1; i >= 0; --i)
    if (bits >> i & 1)
      runs.push_back({i, i + 1});
  std::rotate(runs.begin(), runs.begin() + static_cast<long>(runs.size() / 2), runs.end());
  return IntervalSet::unionOf(runs);
}

unsigned bitsOf(const IntervalSet &set) {
  unsigned bits = 0;
  for (int i = 0; i < kUniverse; ++i)
    bits |= unsigned(set.contains(i)) << i;
  return bits;
}

void expectNormal(const IntervalSet &set) {
  const IntervalSet::Runs &runs = set.runs();
  for (size_t i = 0; i < runs.size(); ++i) {
    EXPECT_LT(runs[i].lo, runs[i].hi);
    EXPECT_GE(runs[i].lo, -kPositionLimit);
    EXPECT_LE(runs[i].hi, kPositionLimit);
    if (i > 0) {
      EXPECT_LT(runs[i - 1].hi, runs[i].lo);
    }
  }
}

TEST(Interval, EveryPairOfSetsAgainstBits) {
  constexpr unsigned count = 1u << kUniverse, mask = count - 1;
  long pairs = 0;
  for (unsigned a = 0; a < count; ++a) {
    IntervalSet x = setOf(a);
    expectNormal(x);
    ASSERT_EQ(bitsOf(x), a);
    ASSERT_EQ(bitsOf(~x), ~a & mask);
    ASSERT_EQ(~~x, x);
    ASSERT_EQ(x.size(), __builtin_popcount(a));
    for (unsigned b = 0; b < count; ++b) {
      IntervalSet y = setOf(b);
      ASSERT_EQ(bitsOf(x & y), a & b);
      ASSERT_EQ(bitsOf(x | y), a | b);
      ASSERT_EQ(bitsOf(x & ~y), a & ~b & mask);
      ASSERT_EQ((x | y) == y, (a | b) == b);
      expectNormal(x & y);
      expectNormal(x | y);
      expectNormal(~x | y);
      ++pairs;
    }
  }
  std::printf("pairs of sets: %ld\n", pairs);
}

TEST(Interval, EverySetAgainstEveryBox) {
  for (unsigned a = 0; a < 1u << kUniverse; ++a) {
    IntervalSet set = setOf(a);
    for (int lo = -1; lo <= kUniverse; ++lo)
      for (int hi = -1; hi <= kUniverse; ++hi) {
        bool some = false, all = true;
        for (int i = lo; i < hi; ++i) {
          bool in = i >= 0 && i < kUniverse && (a >> i & 1);
          some |= in;
          all &= in;
        }
        ASSERT_EQ(set.intersects({lo, hi}), some) << a << " " << lo << " " << hi;
        ASSERT_EQ(set.containsAll({lo, hi}), all) << a << " " << lo << " " << hi;
      }
    Interval h = set.hull();
    if (a == 0) {
      ASSERT_EQ(h, Interval::none());
    } else {
      ASSERT_EQ(h.lo, __builtin_ctz(a));
      ASSERT_EQ(h.hi, 32 - __builtin_clz(a));
    }
  }
}

TEST(Interval, UnionOfAnyIntervals) {
  std::mt19937 random(7);
  for (int round = 0; round < 20000; ++round) {
    std::vector<Interval> runs;
    unsigned bits = 0;
    for (unsigned n = random() % 5; n > 0; --n) {
      int lo = static_cast<int>(random() % (kUniverse + 1));
      int hi = static_cast<int>(random() % (kUniverse + 1));
      runs.push_back({lo, hi});
      for (int i = lo; i < hi; ++i)
        bits |= 1u << i;
    }
    IntervalSet set = IntervalSet::unionOf(runs);
    ASSERT_EQ(bitsOf(set), bits);
    expectNormal(set);
  }
}

TEST(Interval, HullAndIntersection) {
  for (int a = -1; a <= 4; ++a)
    for (int b = -1; b <= 4; ++b)
      for (int c = -1; c <= 4; ++c)
        for (int d = -1; d <= 4; ++d) {
          Interval x{a, b}, y{c, d};
          Interval i = intersect(x, y), h = hull(x, y);
          int lo = 99, hi = -99;
          for (int p = -2; p <= 5; ++p) {
            ASSERT_EQ(i.contains(p), x.contains(p) && y.contains(p));
            if (x.contains(p) || y.contains(p)) {
              lo = std::min(lo, p);
              hi = std::max(hi, p + 1);
            }
          }
          if (lo == 99) {
            ASSERT_EQ(h, Interval::none());
          } else {
            ASSERT_EQ(h, (Interval{lo, hi}));
          }
          if (i.empty()) {
            ASSERT_EQ(i, Interval::none());
          }
        }
}

TEST(Interval, FromInclusive) {
  EXPECT_EQ(Interval::fromInclusive(-1, -1), Interval::none());
  EXPECT_EQ(Interval::fromInclusive(3, 2), Interval::none());
  EXPECT_EQ(Interval::fromInclusive(-1, 0), (Interval{-1, 1}));
  EXPECT_EQ(Interval::fromInclusive(4, 4), (Interval{4, 5}));
  EXPECT_EQ(Interval::fromInclusive(0, INT64_MAX), (Interval{0, kPositionLimit}));
  EXPECT_EQ(Interval::fromInclusive(0, kPositionLimit - 1), (Interval{0, kPositionLimit}));
  EXPECT_EQ(Interval::fromInclusive(INT64_MIN, 0), (Interval{-kPositionLimit, 1}));
  // An empty row is the identity of a hull: the window survives.
  EXPECT_EQ(hull({5, 9}, Interval::fromInclusive(-1, -1)), (Interval{5, 9}));
}

TEST(Interval, BoundsSaturate) {
  EXPECT_EQ(saturatingAdd(5, INT64_MAX), kPositionLimit);
  EXPECT_EQ(saturatingAdd(-5, INT64_MIN), -kPositionLimit);
  EXPECT_EQ(saturatingAdd(INT64_MAX, INT64_MIN), 0);
  EXPECT_EQ(saturatingAdd(7, -9), -2);
  EXPECT_EQ(IntervalSet(Interval{INT64_MIN, INT64_MAX}), IntervalSet::all());
  EXPECT_EQ(~IntervalSet::none(), IntervalSet::all());
  EXPECT_EQ(~IntervalSet::all(), IntervalSet::none());
  EXPECT_TRUE(IntervalSet(Interval{kPositionLimit, INT64_MAX}).empty());
}

} // namespace
