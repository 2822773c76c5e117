// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Interval sets. Invariant: runs are inside the universe, sorted, not empty and do not touch.
#include "attn/Core/Interval.h"

#include <algorithm>

namespace attn::core {

/// `run` cut to the universe.
static Interval cut(const Interval &run) { return intersect(run, Interval::all()); }

IntervalSet::IntervalSet(Interval run) {
  Interval inside = cut(run);
  if (!inside.empty())
    sortedRuns.push_back(inside);
}

/// Appends `run`, which does not start before the last one, joining the two where they meet.
static void appendJoined(IntervalSet::Runs &runs, const Interval &run) {
  if (run.empty())
    return;
  if (!runs.empty() && run.lo <= runs.back().hi)
    runs.back().hi = std::max(runs.back().hi, run.hi);
  else
    runs.push_back(run);
}

IntervalSet IntervalSet::unionOf(std::vector<Interval> runs) {
  for (Interval &run : runs)
    run = cut(run);
  std::sort(runs.begin(), runs.end(),
            [](const Interval &a, const Interval &b) { return a.lo < b.lo; });
  IntervalSet result;
  for (const Interval &run : runs)
    appendJoined(result.sortedRuns, run);
  return result;
}

/// The first run that ends after `x`.
static const Interval *firstEndingAfter(const IntervalSet::Runs &runs, int64_t x) {
  return std::partition_point(runs.begin(), runs.end(),
                              [x](const Interval &run) { return run.hi <= x; });
}

bool IntervalSet::contains(int64_t x) const {
  const Interval *run = firstEndingAfter(sortedRuns, x);
  return run != sortedRuns.end() && run->lo <= x;
}

int64_t IntervalSet::size() const {
  int64_t total = 0;
  for (const Interval &run : sortedRuns)
    total += run.size();
  return total;
}

Interval IntervalSet::hull() const {
  if (sortedRuns.empty())
    return Interval::none();
  return {sortedRuns.front().lo, sortedRuns.back().hi};
}

bool IntervalSet::intersects(const Interval &box) const {
  if (box.empty())
    return false;
  const Interval *run = firstEndingAfter(sortedRuns, box.lo);
  return run != sortedRuns.end() && run->lo < box.hi;
}

bool IntervalSet::containsAll(const Interval &box) const {
  if (box.empty())
    return true;
  const Interval *run = firstEndingAfter(sortedRuns, box.lo);
  return run != sortedRuns.end() && run->lo <= box.lo && box.hi <= run->hi;
}

IntervalSet IntervalSet::operator&(const IntervalSet &other) const {
  IntervalSet result;
  const Interval *a = sortedRuns.begin(), *b = other.sortedRuns.begin();
  while (a != sortedRuns.end() && b != other.sortedRuns.end()) {
    Interval both = intersect(*a, *b);
    // Runs of either operand do not touch, so neither do their intersections.
    if (!both.empty())
      result.sortedRuns.push_back(both);
    if (a->hi < b->hi)
      ++a;
    else
      ++b;
  }
  return result;
}

IntervalSet IntervalSet::operator|(const IntervalSet &other) const {
  IntervalSet result;
  const Interval *a = sortedRuns.begin(), *b = other.sortedRuns.begin();
  while (a != sortedRuns.end() || b != other.sortedRuns.end()) {
    bool takeA = b == other.sortedRuns.end() || (a != sortedRuns.end() && a->lo <= b->lo);
    appendJoined(result.sortedRuns, takeA ? *a++ : *b++);
  }
  return result;
}

IntervalSet IntervalSet::operator~() const {
  IntervalSet result;
  int64_t from = -kPositionLimit;
  for (const Interval &run : sortedRuns) {
    if (from < run.lo)
      result.sortedRuns.push_back({from, run.lo});
    from = run.hi;
  }
  if (from < kPositionLimit)
    result.sortedRuns.push_back({from, kPositionLimit});
  return result;
}

} // namespace attn::core
