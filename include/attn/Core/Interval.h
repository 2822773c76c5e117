// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Half-open intervals of positions and sets of them, closed under and / or / not.
//
// The universe is [-kPositionLimit, kPositionLimit): "unbounded below" is lo = -kPositionLimit and
// "unbounded above" is hi = kPositionLimit. All bounds saturate into it, so no operation overflows.
#ifndef ATTN_CORE_INTERVAL_H
#define ATTN_CORE_INTERVAL_H

#include "attn/Core/IndexSpaces.h"

#include <algorithm>
#include <vector>

namespace attn::core {

/// `v` moved into [-kPositionLimit, kPositionLimit].
constexpr int64_t clampPosition(int64_t v) {
  return v < -kPositionLimit ? -kPositionLimit : v > kPositionLimit ? kPositionLimit : v;
}

/// a + b without overflow, saturated into [-kPositionLimit, kPositionLimit]; any a, b.
constexpr int64_t saturatingAdd(int64_t a, int64_t b) {
  // Clamping b to +-2 limits first cannot change a saturated sum when |a| <= limit.
  const int64_t lim = 2 * kPositionLimit;
  int64_t x = a < -lim ? -lim : a > lim ? lim : a;
  int64_t y = b < -lim ? -lim : b > lim ? lim : b;
  return clampPosition(x + y);
}

/// Half-open interval [lo, hi) of positions. Empty iff lo >= hi. The canonical empty interval is
/// [kPositionLimit, -kPositionLimit): with it, hull is (min lo, max hi) and intersection is
/// (max lo, min hi), empty operands included.
struct Interval {
  int64_t lo = kPositionLimit;
  int64_t hi = -kPositionLimit;

  constexpr bool empty() const { return lo >= hi; }
  constexpr int64_t size() const { return empty() ? 0 : hi - lo; }
  constexpr bool contains(int64_t x) const { return lo <= x && x < hi; }

  static constexpr Interval none() { return {}; }
  static constexpr Interval all() { return {-kPositionLimit, kPositionLimit}; }

  /// The only conversion from this field's inclusive (start, end) rows, (-1, -1) outside every
  /// range, to a half-open interval: (-1, -1) becomes the canonical empty interval *before* any
  /// min or max is taken. An end at or past the limit saturates; hi + 1 is never taken there.
  static constexpr Interval fromInclusive(int64_t start, int64_t end) {
    if (start == -1 && end == -1)
      return none();
    if (start > end)
      return none();
    return {clampPosition(start), end >= kPositionLimit ? kPositionLimit : clampPosition(end + 1)};
  }

  friend constexpr bool operator==(const Interval &a, const Interval &b) {
    return a.lo == b.lo && a.hi == b.hi;
  }
  friend constexpr bool operator!=(const Interval &a, const Interval &b) { return !(a == b); }
};

/// Intersection; the canonical empty interval when there is none.
constexpr Interval intersect(const Interval &a, const Interval &b) {
  Interval r{a.lo > b.lo ? a.lo : b.lo, a.hi < b.hi ? a.hi : b.hi};
  return r.empty() ? Interval::none() : r;
}

/// Smallest interval that holds both; an empty operand is the identity.
constexpr Interval hull(const Interval &a, const Interval &b) {
  if (a.empty())
    return b.empty() ? Interval::none() : b;
  if (b.empty())
    return a;
  return {a.lo < b.lo ? a.lo : b.lo, a.hi > b.hi ? a.hi : b.hi};
}

/// A set of positions as sorted, disjoint, non-touching, non-empty runs. Value type; every
/// operation is linear in the number of runs.
class IntervalSet {
public:
  /// Ascending runs. Up to two, as nearly every row has, take no memory of the heap.
  class Runs {
  public:
    const Interval *begin() const { return more.empty() ? first : more.data(); }
    const Interval *end() const { return begin() + size(); }
    size_t size() const { return more.empty() ? numFirst : more.size(); }
    bool empty() const { return size() == 0; }
    const Interval &operator[](size_t i) const { return begin()[i]; }
    const Interval &front() const { return *begin(); }
    const Interval &back() const { return end()[-1]; }
    Interval &back() { return more.empty() ? first[numFirst - 1] : more.back(); }

    void push_back(const Interval &run) {
      if (more.empty() && numFirst < kFirst) {
        first[numFirst++] = run;
        return;
      }
      if (more.empty())
        more.assign(first, first + kFirst);
      more.push_back(run);
    }

  private:
    static constexpr size_t kFirst = 2;
    Interval first[kFirst];
    size_t numFirst = 0;
    std::vector<Interval> more; ///< all of them once there are more than kFirst
  };

  IntervalSet() = default;
  /*implicit*/ IntervalSet(Interval run);

  static IntervalSet none() { return {}; }
  static IntervalSet all() { return IntervalSet(Interval::all()); }
  /// Union of any intervals, in any order; O(n log n).
  static IntervalSet unionOf(std::vector<Interval> runs);

  const Runs &runs() const { return sortedRuns; }
  bool empty() const { return sortedRuns.empty(); }
  bool contains(int64_t x) const;
  /// Number of positions in the set.
  int64_t size() const;
  /// Smallest interval that holds the set.
  Interval hull() const;
  bool intersects(const Interval &box) const;
  bool containsAll(const Interval &box) const;

  IntervalSet operator&(const IntervalSet &other) const;
  IntervalSet operator|(const IntervalSet &other) const;
  /// Complement within [-kPositionLimit, kPositionLimit).
  IntervalSet operator~() const;

  friend bool operator==(const IntervalSet &a, const IntervalSet &b) {
    return std::equal(a.sortedRuns.begin(), a.sortedRuns.end(), b.sortedRuns.begin(),
                      b.sortedRuns.end());
  }
  friend bool operator!=(const IntervalSet &a, const IntervalSet &b) { return !(a == b); }

private:
  Runs sortedRuns;
};

} // namespace attn::core

#endif // ATTN_CORE_INTERVAL_H
