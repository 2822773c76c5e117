// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "RowSums.h"

using namespace attn;
using namespace attn::core;
using namespace attn::rt;

/// Rows in which max(lo, q + loMove) <= min(hi, q + hiMove) + slack.
static Interval rowsWhere(int64_t lo, int64_t loMove, int64_t hi, int64_t hiMove, int64_t slack) {
  if (lo > hi + slack || loMove > hiMove + slack)
    return Interval::none();
  return {lo - hiMove - slack, hi + slack - loMove + 1};
}

/// Rows in which `a` does not lie wholly above `b` with a gap between.
static Interval rowsReaching(const RowTerm &a, const RowTerm &b) {
  return rowsWhere(a.lo, a.loMove, b.hi, b.hiMove, 0);
}

static Interval rowsTouching(const RowTerm &a, const RowTerm &b) {
  return intersect(rowsReaching(a, b), rowsReaching(b, a));
}

void RowSums::reserve(int64_t mostRows) {
  for (KeyRuns *runs : {&some, &every, &met, &spare})
    runs->reserve(mostRows * RowTerms::kMostTerms);
}

void RowSums::start(Interval of) {
  keys = of;
  some.clear();
  every.clear();
  open = Interval::none();
  common = of;
  isSplit = false;
  hasRows = false;
}

/// Adds a run that is not empty.
inline void RowSums::addSome(Interval run) {
  if (run.lo <= open.hi && open.lo <= run.hi) {
    open = {std::min(run.lo, open.lo), std::max(run.hi, open.hi)};
    return;
  }
  if (open.lo < open.hi)
    some.push_back(open);
  open = run;
}

inline void RowSums::meetEvery(Interval run) {
  if (!isSplit) {
    common = {std::max(common.lo, run.lo), std::min(common.hi, run.hi)};
    return;
  }
  size_t kept = 0;
  for (size_t i = 0; i < every.size(); ++i) {
    const Interval both{std::max(every[i].lo, run.lo), std::min(every[i].hi, run.hi)};
    every[kept] = both;
    kept += both.lo < both.hi;
  }
  every.resize(kept);
}

/// `runs`: sorted and disjoint.
void RowSums::meetEvery(const KeyRuns &runs) {
  if (runs.size() == 1)
    return meetEvery(runs.front());
  if (!isSplit) {
    isSplit = true;
    every.push_back(common);
  }
  spare.clear();
  size_t i = 0, j = 0;
  while (i < every.size() && j < runs.size()) {
    const Interval both{std::max(every[i].lo, runs[j].lo), std::min(every[i].hi, runs[j].hi)};
    if (both.lo < both.hi)
      spare.push_back(both);
    every[i].hi < runs[j].hi ? ++i : ++j;
  }
  every.swap(spare);
}

/// The row after `q` from which on the terms touch, or no longer do.
static int64_t sameUntil(const RowTerm &a, const RowTerm &b, int64_t q) {
  const Interval touching = rowsTouching(a, b);
  if (touching.contains(q))
    return touching.hi;
  return touching.lo > q ? touching.lo : kPositionLimit;
}

/// Takes from `every` what some row of `rows` does not keep: cuts the rows where the terms change
/// how they lie to each other.
void RowSums::meetPieces(Interval rows, const Live *live, int count) {
  for (int64_t q = rows.lo; q < rows.hi;) {
    const RowTerm *active[RowTerms::kMostTerms]; // by their begins
    int numActive = 0;
    int64_t end = rows.hi;
    for (int i = 0; i < count; ++i) {
      const Interval &with = live[i].rows;
      if (!with.contains(q)) {
        end = with.lo > q ? std::min(end, with.lo) : end;
        continue;
      }
      end = std::min(end, with.hi);
      int place = numActive++;
      for (; place > 0 && active[place - 1]->begin(q) > live[i].term->begin(q); --place)
        active[place] = active[place - 1];
      active[place] = live[i].term;
    }
    for (int i = 0; i < numActive; ++i)
      for (int j = i + 1; j < numActive; ++j)
        end = std::min(end, sameUntil(*active[i], *active[j], q));
    met.clear();
    for (int i = 0; i < numActive;) {
      int64_t reach = active[i]->end(q);
      Interval run{active[i]->begin(end - 1), reach};
      for (++i; i < numActive && active[i]->begin(q) <= reach; ++i) {
        reach = std::max(reach, active[i]->end(q));
        run = {std::min(run.lo, active[i]->begin(end - 1)), reach};
      }
      if (!run.empty())
        met.push_back(run);
    }
    meetEvery(met);
    q = end;
  }
}

/// The usual piece: in each row its terms make one interval. False if that is not so, or if it
/// takes more to find out. A term has keys, and two terms touch, in consecutive rows, so that the
/// first and the last row tell for all.
inline bool RowSums::addJoined(const RowPiece &piece) {
  const int64_t first = piece.rows.lo, last = piece.rows.hi - 1;
  Interval inFirst, inLast;
  int joined = 0;
  for (const RowTerm *term = piece.terms; term != piece.terms + piece.count; ++term) {
    if (term->lo >= term->hi)
      continue;
    if (term->qLo > first || term->qHi <= last) {
      if (term->qLo > last || term->qHi <= first)
        continue;
      return false;
    }
    const Interval a{term->begin(first), term->end(first)};
    const Interval b{term->begin(last), term->end(last)};
    if (a.lo >= a.hi || b.lo >= b.hi) {
      if (first == last || term->loMove >= term->hiMove)
        continue;
      return false;
    }
    if (joined++ == 0) {
      inFirst = a;
      inLast = b;
      continue;
    }
    // What a third term touches may change from the one to the other in between.
    if (joined > 2 || a.lo > inFirst.hi || inFirst.lo > a.hi || b.lo > inLast.hi ||
        inLast.lo > b.hi)
      return false;
    inFirst = {std::min(inFirst.lo, a.lo), std::max(inFirst.hi, a.hi)};
    inLast = {std::min(inLast.lo, b.lo), std::max(inLast.hi, b.hi)};
  }
  if (joined)
    addSome({inFirst.lo, inLast.hi});
  meetEvery({inLast.lo, inFirst.hi});
  return true;
}

void RowSums::add(const RowPiece &piece) {
  const Interval rows = piece.rows;
  hasRows = true;
  if (addJoined(piece))
    return;
  Live live[RowTerms::kMostTerms];
  int count = 0;
  for (int i = 0; i < piece.count; ++i) {
    const RowTerm &term = piece.terms[i];
    // Rows in which the begin lies below the end.
    Interval with = rowsWhere(term.lo, term.loMove, term.hi, term.hiMove, -1);
    with = {std::max({with.lo, rows.lo, term.qLo}), std::min({with.hi, rows.hi, term.qHi})};
    if (with.empty())
      continue;
    addSome({term.begin(with.lo), term.end(with.hi - 1)});
    live[count++] = {&term, with};
  }
  meetPieces(rows, live, count);
}

/// Sorts and joins the runs of `some`.
void RowSums::joinRuns() {
  std::sort(some.begin(), some.end(),
            [](const Interval &a, const Interval &b) { return a.lo < b.lo; });
  size_t last = 0;
  for (size_t i = 1; i < some.size(); ++i) {
    if (some[i].lo <= some[last].hi)
      some[last].hi = std::max(some[last].hi, some[i].hi);
    else
      some[++last] = some[i];
  }
  some.resize(last + 1);
}

void RowSums::finish() {
  if (!hasRows)
    return;
  if (open.lo < open.hi)
    some.push_back(open);
  if (some.size() > 1)
    joinRuns();
  size_t kept = 0;
  for (size_t i = 0; i < some.size(); ++i) {
    const Interval live{std::max(some[i].lo, keys.lo), std::min(some[i].hi, keys.hi)};
    some[kept] = live;
    kept += live.lo < live.hi;
  }
  some.resize(kept);
  if (!isSplit && common.lo < common.hi)
    every.push_back(common);
}
