// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The keys of a row as interval sets: an emitter that computes, for fixed (b, h, q), what each node
// is as a function of k.
#ifndef ATTN_LIB_CORE_ROWSETS_H
#define ATTN_LIB_CORE_ROWSETS_H

#include "attn/Core/MaskProgramEmit.h"

#include "TableAccess.h"

namespace attn::core {

/// A set of keys known from both sides: every key of `lower` is in it, no key outside `upper` is.
class BoundedSet {
public:
  /// The empty set.
  BoundedSet() = default;
  /// A set of which nothing is known.
  static BoundedSet unknown() { return {IntervalSet::none(), IntervalSet::all()}; }
  /*implicit*/ BoundedSet(IntervalSet exact) : upperSet(std::move(exact)) {}
  BoundedSet(IntervalSet lower, IntervalSet upper)
      : isExact(lower == upper), lowerSet(std::move(lower)), upperSet(std::move(upper)) {}

  bool exact() const { return isExact; }
  const IntervalSet &lower() const { return isExact ? upperSet : lowerSet; }
  const IntervalSet &upper() const { return upperSet; }

  BoundedSet operator&(const BoundedSet &other) const;
  BoundedSet operator|(const BoundedSet &other) const;
  BoundedSet operator^(const BoundedSet &other) const;
  BoundedSet operator~() const;

private:
  bool isExact = true;
  IntervalSet lowerSet; ///< unused when exact
  IntervalSet upperSet;
};

// With |factor| <= 2^20 and |offset| <= 2^60 no value of a linear form leaves (-2^61, 2^61).
constexpr int64_t kMaxFactor = int64_t(1) << 20;
constexpr int64_t kMaxOffset = int64_t(1) << 60;

/// Most loop iterations that are followed for one row, scans over the live ranges aside.
constexpr int64_t kMaxIterations = int64_t(1) << 16;

/// True for a loop inside no other (`depth` 0) that runs at most once for each live range: the data
/// bounds it.
inline bool isRangeScan(const MaskProgram &program, const Node &loop, int64_t lb, int depth) {
  return depth == 0 && lb >= 0 && program.nodes[loop.operands[1]].op == Op::NumRanges;
}

/// What a node is, as a function of k in [-kPositionLimit, kPositionLimit).
struct RowValue {
  enum Kind : uint8_t {
    Unknown, ///< an integer or float that this analysis does not follow
    Known,   ///< the same for every k
    Linear,  ///< an integer that is (factor * k + offset) / divisor, without overflow
    Keys,    ///< a Bool that is true for the keys of a set
  };
  Kind kind = Unknown;
  Scalar known;
  int64_t factor = 0; ///< not 0
  int64_t offset = 0;
  int64_t divisor = 1; ///< >= 1
  bool floors = true;  ///< rounding of the division: down, or towards zero
  BoundedSet keys;

  static RowValue ofKnown(Scalar v) {
    RowValue r;
    r.kind = Known;
    r.known = v;
    return r;
  }
  static RowValue ofKeys(BoundedSet set) {
    RowValue r;
    r.kind = Keys;
    r.keys = std::move(set);
    return r;
  }
  bool isKnown() const { return kind == Known; }
};

/// The emitter. One use gives the keys of one row.
class RowSets {
public:
  using Value = RowValue;

  RowSets(TableAccess &tables, const RowPoint &at) : tables(tables), at(at) {}

  /// Keys that the Bool root keeps.
  BoundedSet keysOf(const MaskProgram &program, const EmissionOrder &order);

  Value emit(const MaskProgram &program, NodeId id, const std::vector<Value> &operands);
  template <class Body>
  Value emitFor(const MaskProgram &program, NodeId id, const std::vector<Value> &boundsAndInits,
                Body body);

private:
  Value emitLeaf(const Node &node);
  Value emitTable(const MaskProgram &program, const Node &node, const std::vector<Value> &operands);
  BoundedSet emitMask(const Node &node, const std::vector<Value> &operands);

  TableAccess &tables;
  RowPoint at;
  int64_t iterationsLeft = kMaxIterations;
  int depth = 0; ///< loops around the current place
  std::vector<std::pair<NodeId, std::vector<Value>>> loopResults;
};

} // namespace attn::core

#endif // ATTN_LIB_CORE_ROWSETS_H
