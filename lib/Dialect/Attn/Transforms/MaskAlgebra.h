// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Masks as expressions over leaves: hash-consed, and simplified while they are built.
//
// Two kinds of rules. Those that depend on one node only and never cost an operation are applied by
// the constructors, so no node violates them: constants, equal operands, double negation, and, by
// the implication between nodes, absorption, complements and bands that contain each other; bands
// under one `and` merge, and a band's left side becomes the clamp of mm_prefix. Those that can cost
// operations when a part has other uses are tried one by one by restructure() and kept by count.
#ifndef ATTN_LIB_DIALECT_ATTN_TRANSFORMS_MASKALGEBRA_H
#define ATTN_LIB_DIALECT_ATTN_TRANSFORMS_MASKALGEBRA_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"
#include "mlir/IR/Value.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

#include <map>
#include <optional>
#include <vector>

namespace attn {

/// One side of a band, a clamp or a count: a literal, an i32 value, or absent.
struct MaskSide {
  std::optional<int64_t> literal;
  mlir::Value value;

  bool isPresent() const { return literal || value; }
  /// A literal, or a parameter, of which the runtime checks it (attn-C3).
  bool isNonNegative() const;
  bool operator==(const MaskSide &other) const {
    return literal == other.literal && value == other.value;
  }
};

/// A part of the mask that the algebra does not look into, or only in the ways named here.
struct MaskLeaf {
  enum Kind {
    Opaque,   ///< any i1 value
    Named,    ///< a pure operation, equal if operands and attributes are
    Band,     ///< q - k <= left and k - q <= right
    MmPrefix, ///< mm_prefix with an optional clamp
    Prefix,   ///< k < left
    Global    ///< k < left or q < left
  } kind = Opaque;
  mlir::Value value;             ///< Opaque
  mlir::Operation *op = nullptr; ///< Named
  mlir::Value ranges;            ///< MmPrefix
  MaskSide left, right;          ///< `left` is the clamp of MmPrefix, n of Prefix and Global

  bool isLeftOnly() const { return kind == Band && left.isPresent() && !right.isPresent(); }
  bool isRightOnly() const { return kind == Band && !left.isPresent() && right.isPresent(); }
  bool isCausal() const { return isRightOnly() && right.literal == 0; }
};

class MaskAlgebra {
public:
  using Id = unsigned;
  enum class Kind { False, True, Leaf, Not, And, Or };
  struct Node {
    Kind kind;
    llvm::SmallVector<Id, 4> operands; ///< ascending
    MaskLeaf leaf;
  };

  MaskAlgebra();

  Id constant(bool value) const { return value ? 1 : 0; }
  Id leaf(const MaskLeaf &leaf);
  Id negate(Id operand);
  /// And or Or of any operands, in any order.
  Id combine(Kind kind, llvm::ArrayRef<Id> operands);

  const Node &operator[](Id id) const { return nodes[id]; }

  /// Operations that the nodes below `roots` are, each once.
  size_t countOps(llvm::ArrayRef<Id> roots) const;
  /// The same mask with no more operations, all of `pinned` staying alive anyway. `refused` is set
  /// if a common operand or De Morgan's rule was not used because its parts have other uses.
  Id restructure(Id root, llvm::ArrayRef<Id> pinned, bool &refused);

private:
  Id intern(Node node);
  /// Provably, whatever x keeps is kept by y.
  bool implies(Id x, Id y);
  bool computeImplies(Id x, Id y);
  /// One operand that equals `x kind y`, if there is one without a new node or as one new leaf.
  std::optional<Id> mergePair(Kind kind, Id x, Id y);
  std::optional<Id> mergeLeafPair(Kind kind, Id x, Id y);
  std::optional<Id> intersectLeaves(const MaskLeaf &x, const MaskLeaf &y);
  void collect(Id id, llvm::SmallVectorImpl<Id> &order, llvm::DenseMap<Id, bool> &seen) const;
  Id substitute(Id root, Id from, Id to);
  Id substituteIn(Id id, Id from, Id to, llvm::DenseMap<Id, Id> &memo);

  /// Rewrites of one node that may pay off; nothing if they do not apply.
  std::optional<Id> flatten(Id id);
  std::optional<Id> narrowBands(Id id);
  std::optional<Id> clampRanges(Id id);
  std::optional<Id> dropComplements(Id id);
  std::optional<Id> deMorgan(Id id);
  std::optional<Id> factor(Id id);

  std::vector<Node> nodes;
  std::map<std::vector<Id>, Id> interned;
  llvm::DenseMap<size_t, llvm::SmallVector<Id, 1>> leaves; ///< by hash
  llvm::DenseMap<std::pair<Id, Id>, bool> implications;
  unsigned implyDepth = 0; ///< of the recursion of implies()
};

} // namespace attn

#endif // ATTN_LIB_DIALECT_ATTN_TRANSFORMS_MASKALGEBRA_H
