// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The keys that some row, and those that every row, of a group of consecutive rows keeps, gathered
// from the terms of its pieces.
//
// In a piece both ends of a term never move back, and by at most one key a row. So
//  - the rows that have keys of the term are consecutive, and together they keep one interval, from
//    the begin in the first of them to the end in the last;
//  - terms that touch in every row make one interval, of which every row keeps what lies between
//    the begin in the last row and the end in the first;
//  - of intervals that keep apart in every row, no key passes from one to another: a key that one
//    leaves behind lies in the gap for a row at least.
// A piece is cut where terms begin or cease to touch or to have keys.
#ifndef ATTN_LIB_RUNTIME_BUILDERS_ROWSUMS_H
#define ATTN_LIB_RUNTIME_BUILDERS_ROWSUMS_H

#include "RowTerms.h"

namespace attn::rt {

/// Sorted, disjoint runs that do not touch, in memory that is used again.
using KeyRuns = std::vector<core::Interval>;

class RowSums {
public:
  /// `mostRows`: of a group. Memory for most masks; others grow it once.
  void reserve(int64_t mostRows);
  /// Starts a group; `keys` are those of the launch.
  void start(core::Interval keys);
  void add(const RowPiece &piece);
  /// To be called after the last piece. A group without rows keeps nothing.
  void finish();

  const KeyRuns &inSome() const { return some; }
  const KeyRuns &inEvery() const { return every; }

private:
  /// A term in the rows where it has keys.
  struct Live {
    const RowTerm *term;
    core::Interval rows;
  };

  bool addJoined(const RowPiece &piece);
  void addSome(core::Interval run);
  void meetEvery(core::Interval run);
  void meetEvery(const KeyRuns &runs);
  void meetPieces(core::Interval rows, const Live *live, int count);
  void joinRuns();

  core::Interval keys;
  KeyRuns some;
  core::Interval open;   ///< the run of `some` that may still grow
  KeyRuns every;         ///< if it is several runs
  core::Interval common; ///< if it is one
  bool isSplit = false;
  bool hasRows = false;
  KeyRuns met, spare;
};

} // namespace attn::rt

#endif // ATTN_LIB_RUNTIME_BUILDERS_ROWSUMS_H
