// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Abstract evaluation over a box of (q, k): an emitter that computes a range for each node.
#ifndef ATTN_LIB_CORE_BOXEVAL_H
#define ATTN_LIB_CORE_BOXEVAL_H

#include "attn/Core/MaskProgramEmit.h"

#include "TableAccess.h"

namespace attn::core {

/// Every value a node can take in the box lies in [lo, hi] (integers; a Bool is [0, 0], [1, 1] or
/// [0, 1]), or is `f` if `floatKnown`.
struct BoxValue {
  int64_t lo = 0;
  int64_t hi = 0;
  double f = 0;
  bool floatKnown = false;

  static BoxValue range(int64_t lo, int64_t hi) { return {lo, hi, 0, false}; }
  static BoxValue point(int64_t v) { return {v, v, 0, false}; }
  static BoxValue number(double v) { return {0, 0, v, true}; }
  /// Anything of a type.
  static BoxValue anyOf(ScalarType type);
  /// Three-valued Bool from "true somewhere" and "false somewhere" (either may be a guess upwards).
  static BoxValue truth(bool canBeTrue, bool canBeFalse) {
    return range(canBeFalse ? 0 : 1, canBeTrue ? 1 : 0);
  }
  bool isPoint() const { return lo == hi; }
};

/// A box of one request and head; both intervals are not empty.
struct Box {
  int64_t b = 0;
  int64_t h = 0;
  Interval q;
  Interval k;
};

class BoxEval {
public:
  using Value = BoxValue;

  BoxEval(TableAccess &tables, const Box &box) : tables(tables), box(box) {}

  Value emit(const MaskProgram &program, NodeId id, const std::vector<Value> &operands);
  template <class Body>
  Value emitFor(const MaskProgram &program, NodeId id, const std::vector<Value> &boundsAndInits,
                Body body);

  /// Range of the root over the box.
  Value evaluate(const MaskProgram &program, const EmissionOrder &order);

private:
  Value emitLeaf(const Node &node);
  Value emitTable(const MaskProgram &program, const Node &node, const std::vector<Value> &operands);
  Value loadRange(const MaskProgram &program, const Node &node, const std::vector<Value> &operands);
  Value emitMask(const Node &node, const std::vector<Value> &operands);
  Value emitMmPrefix(const Node &node, const std::vector<Value> &operands);
  Value emitDocument(const Node &node);
  Value emitRow(const Node &node);

  TableAccess &tables;
  Box box;
  int64_t iterationsLeft = 4096;
  std::vector<std::pair<NodeId, std::vector<Value>>> loopResults;
};

/// The operation on ranges: any IntBinary, IntUnary, IntCompare or IntCast whose operands are not
/// all points.
BoxValue rangeOf(Op op, ScalarType type, ScalarType argType, const BoxValue &a, const BoxValue &b);

} // namespace attn::core

#endif // ATTN_LIB_CORE_BOXEVAL_H
