// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which indices a value of a region depends on.
#ifndef ATTN_DIALECT_ATTN_IR_DEPENDENCE_H
#define ATTN_DIALECT_ATTN_IR_DEPENDENCE_H

#include "mlir/IR/Value.h"

#include "llvm/ADT/DenseMap.h"

namespace attn {

/// The indices that `value` depends on: arguments of its region, through operands and nested
/// regions; results of attn.per count as the indices of their level.
struct DependenceSet {
  bool s = false, b = false, h = false, q = false, k = false;

  void add(const DependenceSet &other) {
    s |= other.s, b |= other.b, h |= other.h, q |= other.q, k |= other.k;
  }
};
DependenceSet getDependence(mlir::Value value);

/// The same for many values, each looked at once. While it lives, an operation that is erased has
/// to be forgotten: a later one may get its address.
class DependenceAnalysis {
public:
  DependenceSet get(mlir::Value value);
  void forget(mlir::Operation *op);

private:
  llvm::DenseMap<mlir::Value, DependenceSet> known;
};

} // namespace attn

#endif // ATTN_DIALECT_ATTN_IR_DEPENDENCE_H
