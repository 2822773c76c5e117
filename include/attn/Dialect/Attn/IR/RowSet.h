// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The kept keys of a row in symbolic form: a union of half-open intervals whose bounds are
// expressions of the row. Building one changes no IR; materialize() emits it.
//
// A fact makes hulls exact. Call a run *at q* if lo <= q <= hi, or if it is the canonical empty
// interval [2^30, -2^30). The union of two such runs is the run (min lo, max hi): both reach the
// point q (from below at least), and the canonical empty run is the identity. The intersection
// (max lo, min hi) of two such runs is again at q, since every non-empty bound pair encloses q and
// the canonical empty run absorbs. Causal, windows of either side, the strict k < q, and the row of
// a range or document table are all at q, so all their and / or combinations are one run.
#ifndef ATTN_DIALECT_ATTN_IR_ROWSET_H
#define ATTN_DIALECT_ATTN_IR_ROWSET_H

#include "attn/Dialect/Attn/IR/Dependence.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

#include <memory>
#include <optional>

namespace attn {

/// Emits bounds of one row; equal sub-expressions once.
class BoundMaterializer {
public:
  /// Values of the region go through `mapping`. With `cloneSlices`, a value defined inside a region
  /// of the kernel without a mapping is cloned together with the operations it needs.
  BoundMaterializer(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value q,
                    mlir::IRMapping &mapping, bool cloneSlices)
      : builder(builder), loc(loc), q(q), mapping(mapping), cloneSlices(cloneSlices) {}

  /// The bound as an index value.
  mlir::Value emit(const class Bound &bound);

private:
  mlir::Value emitNode(const struct BoundNode &node);
  mlir::Value emitValue(mlir::Value source);
  mlir::Value toIndex(mlir::Value value);
  mlir::Value constant(int64_t value);

  mlir::OpBuilder &builder;
  mlir::Location loc;
  mlir::Value q;
  mlir::IRMapping &mapping;
  bool cloneSlices;
  llvm::DenseMap<const struct BoundNode *, mlir::Value> cache;
  llvm::DenseMap<int64_t, mlir::Value> constants;
};

/// One bound: an immutable expression over q, constants and row values, in exact integers, with its
/// value saturated to [-2^30, 2^30].
class Bound {
public:
  static Bound negInf();
  static Bound posInf();
  static Bound constant(int64_t value);
  /// A number of keys, not a place among them, for sum and difference with a query: two positions
  /// may lie up to 2^31 apart, to where it saturates.
  static Bound distance(int64_t value);
  static Bound query();
  /// A value of the region (i32, or an index in range of positions) that does not depend on k,
  /// known to be >= `lowerBound` if given.
  static Bound value(mlir::Value value, std::optional<int64_t> lowerBound = std::nullopt);
  static Bound sum(Bound a, Bound b);
  static Bound difference(Bound a, Bound b);
  static Bound min(Bound a, Bound b);
  static Bound max(Bound a, Bound b);
  /// `condition` ? a : b, with an i1 value that does not depend on k.
  static Bound select(mlir::Value condition, Bound a, Bound b);
  /// q < `n` ? a : b.
  static Bound selectQueryLess(Bound n, Bound a, Bound b);

  bool isNegInf() const;
  bool isPosInf() const;
  /// Provably <= q, >= q for every row.
  bool leQuery() const;
  bool geQuery() const;
  /// Same expression.
  bool equals(const Bound &other) const;

private:
  friend class BoundMaterializer;
  explicit Bound(std::shared_ptr<const BoundNode> node) : node(std::move(node)) {}
  std::shared_ptr<const BoundNode> node;
};

/// One run [lo, hi) of keys.
struct SymbolicRun {
  Bound lo;
  Bound hi;
  bool atQuery = false; ///< lo <= q <= hi, or the canonical empty interval

  bool isAll() const { return lo.isNegInf() && hi.isPosInf(); }
};

/// A union of runs, or "not known". Runs may overlap and may be empty.
class RowSet {
public:
  /// `cause`: the value that is no set of intervals in k.
  static RowSet unknown(mlir::Value cause);
  static RowSet none();
  static RowSet all();
  static RowSet of(Bound lo, Bound hi, bool atQuery = false);
  /// Everything where `condition` (i1, k-free) holds, else nothing.
  static RowSet where(mlir::Value condition);

  bool isKnown() const { return known; }
  mlir::Value getCause() const { return cause; }
  llvm::ArrayRef<SymbolicRun> getRuns() const { return runs; }

  RowSet operator&(const RowSet &other) const;
  RowSet operator|(const RowSet &other) const;
  RowSet operator~() const;

  /// A run that holds every kept key; all for unknown sets.
  SymbolicRun hull() const;

private:
  void mergeRuns();

  bool known = true;
  mlir::Value cause;
  llvm::SmallVector<SymbolicRun, 2> runs;
};

/// Computes row sets of the i1 values of one mask region, each once.
class RowSetAnalysis {
public:
  /// `bound`: give supersets instead of exact sets; parts that are no intervals in k count as
  /// everything.
  explicit RowSetAnalysis(bool bound = false) : bound(bound) {}

  /// The keys for which `keep` holds: exact or unknown, or in bound mode a superset.
  RowSet get(mlir::Value keep);
  /// The exact set or unknown, in either mode.
  RowSet getExact(mlir::Value keep);
  DependenceSet getDependence(mlir::Value value) { return dependence.get(value); }

private:
  RowSet compute(mlir::Value keep);

  bool bound;
  llvm::DenseMap<mlir::Value, RowSet> cache;
  DependenceAnalysis dependence;
  std::unique_ptr<RowSetAnalysis> exact;
};

/// The bound that a k-free index or i32 value of a region is.
Bound getBoundOf(mlir::Value value);

} // namespace attn

#endif // ATTN_DIALECT_ATTN_IR_ROWSET_H
