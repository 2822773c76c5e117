// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Integer values of a mask region as linear forms in q, k and k-free values, in exact integers.
//
// A form is given only where the arithmetic that the user wrote provably does not wrap at the width
// of its type: positions lie in (-2^30, 2^30), i32 values in their range. A part that might wrap,
// or is no sum, stands for itself if it does not depend on k; otherwise there is no form.
#ifndef ATTN_LIB_DIALECT_ATTN_TRANSFORMS_LINEARFORM_H
#define ATTN_LIB_DIALECT_ATTN_TRANSFORMS_LINEARFORM_H

#include "attn/Dialect/Attn/IR/Dependence.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

#include <optional>
#include <string>

namespace attn {

/// Smallest and largest value, both included.
struct Extent {
  int64_t lo, hi;
};

/// q * Q + k * K + sum of factor * value + constant.
struct LinearForm {
  int64_t q = 0, k = 0, constant = 0;
  llvm::SmallVector<std::pair<mlir::Value, int64_t>, 2> terms;

  static LinearForm ofConstant(int64_t value);
  static LinearForm ofTerm(mlir::Value value);

  void add(const LinearForm &other, int64_t factor);
  /// Factor of `value` among the terms.
  int64_t factorOf(mlir::Value value) const;
  bool operator==(const LinearForm &other) const;
};

class LinearFormAnalysis {
public:
  /// States that `value` is the same as `same` (itself, if it is the first of its kind) and lies in
  /// `extent`, whatever it depends on.
  void declare(mlir::Value value, mlir::Value same, Extent extent);

  /// The form of an integer or index value, or nothing; then getReason() says why.
  std::optional<LinearForm> get(mlir::Value value);
  /// Values of a form, or nothing if a term may be any 64-bit value or the form is huge.
  std::optional<Extent> getExtent(const LinearForm &form) const;
  llvm::StringRef getReason() const { return reason; }

  /// True if `value` may be any 64-bit integer.
  bool isWide(mlir::Value value) const;

  DependenceSet getDependence(mlir::Value value) { return dependence.get(value); }
  /// To be called before an i1 operation is erased; integers of forms have to stay.
  void forget(mlir::Operation *op) { dependence.forget(op); }

private:
  std::optional<LinearForm> compute(mlir::Value value);
  std::optional<LinearForm> computeSum(mlir::Operation *op);
  /// The form of an operation, if it neither wraps nor is anything but a sum.
  std::optional<LinearForm> computeOp(mlir::Operation *op);
  bool fits(const LinearForm &form, mlir::Type type) const;
  std::optional<Extent> getExtent(mlir::Value value) const;

  llvm::DenseMap<mlir::Value, LinearForm> cache;
  llvm::DenseMap<mlir::Value, std::string> failed; ///< and why
  llvm::DenseMap<mlir::Value, std::pair<mlir::Value, Extent>> declared;
  DependenceAnalysis dependence;
  std::string reason;
  unsigned depth = 0; ///< of the recursion of get()
};

/// A signed comparison that restricts k.
struct KeyComparison {
  enum Kind { Below, AtLeast, Equal, NotEqual } kind; ///< k < bound, k >= bound, ...
  LinearForm bound;                                   ///< k-free
};

/// `left predicate right` solved for k, or nothing; then `reason` says why.
std::optional<KeyComparison> solveForKey(mlir::arith::CmpIOp op, LinearFormAnalysis &analysis,
                                         std::string &reason);

/// Emits a k-free form that solveForKey gave as an index value; its arithmetic does not wrap.
/// `canEmit` is false for forms of which this cannot be proved.
bool canEmit(const LinearForm &form, const LinearFormAnalysis &analysis);
mlir::Value emitForm(mlir::OpBuilder &builder, mlir::Location loc, const LinearForm &form,
                     mlir::Value q, const LinearFormAnalysis &analysis);

} // namespace attn

#endif // ATTN_LIB_DIALECT_ATTN_TRANSFORMS_LINEARFORM_H
