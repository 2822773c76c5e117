// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The reading visitors of a mask program: exact evaluation, abstract evaluation over a box of
// (q, k), and the interval set of a row.
#ifndef ATTN_CORE_MASKEVAL_H
#define ATTN_CORE_MASKEVAL_H

#include "attn/Core/Batch.h"
#include "attn/Core/Interval.h"
#include "attn/Core/MaskProgram.h"

#include <memory>
#include <optional>

namespace attn::core {

/// Class of a tile of (q, k) pairs. `Skip`: no pair kept; `Full`: every pair kept.
enum class TileClass : uint8_t { Skip, Partial, Full };

/// Evaluates one program on one batch. The program must verify and the batch must bind all of its
/// parameters and tables; both must outlive the evaluator and not change meanwhile, as it keeps
/// what does not depend on the key from one call to the next. Not thread-safe; make one per thread.
///
/// Loops run while iv < ub; a step below 1 runs no iteration.
class MaskEvaluator {
public:
  MaskEvaluator(const MaskProgram &program, const Batch &batch);
  MaskEvaluator(MaskEvaluator &&) noexcept;
  ~MaskEvaluator();

  /// keep(b, h, q, k). Does not test k against the launch's key range.
  bool keep(RequestIndex b, HeadIndex h, QueryPos q, KeyPos k);

  /// The score region on an already scaled score.
  double score(double s, RequestIndex b, HeadIndex h, QueryPos q, KeyPos k);

  /// Keys kept for a row, as an interval set over all positions (not clipped to the launch's keys);
  /// nothing if the mask is not made of intervals in k that this analysis knows. Exact when given.
  std::optional<IntervalSet> rowKeys(RequestIndex b, HeadIndex h, QueryPos q);

  /// A superset of the keys kept for a row, for any mask (everything if nothing is known).
  IntervalSet rowKeysBound(RequestIndex b, HeadIndex h, QueryPos q);

  /// Class of the box [q0, q1) x [k0, k1): sound (Skip and Full are never wrong), and exact where
  /// every row of the box is an interval set that rowKeys() knows. Abstract evaluation otherwise;
  /// never visits every pair. Empty boxes are Skip. Consecutive calls with the same rows are cheap.
  TileClass classify(RequestIndex b, HeadIndex h, Interval q, Interval k);

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

/// True if MaskEvaluator::rowKeys() gives a set for every row of every batch, so that tile classes
/// are exact whatever the data. Where it is false, they may still be exact for some batches.
bool hasExactRows(const MaskProgram &program);

/// Half-open interval of the QueryRanges row of (b, q) derived from its source table by definition:
/// the hull of the live ranges that hold q, or the extent of q's document.
Interval queryRangeByDefinition(const MaskProgram &program, const Batch &batch, int32_t table,
                                RequestIndex b, QueryPos q);

} // namespace attn::core

#endif // ATTN_CORE_MASKEVAL_H
