// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Masks as test cases: a boolean expression over the mask operations that can be printed as a spec
// and decided by the hand-written predicates. Includes no header of the project.
#ifndef ATTN_TEST_EXECUTION_MASKCASES_H
#define ATTN_TEST_EXECUTION_MASKCASES_H

#include "Predicates.h"

#include <random>
#include <string>
#include <vector>

namespace masks {

using truth::Int;

/// A radius, count or length without effect.
constexpr Int kHuge = 2147483647;

/// The mask operations, split by their optional operands.
enum class Atom {
  Causal,
  WindowLeft,
  WindowRight,
  WindowBoth,
  Sliding,
  MmPrefix,
  MmPrefixClamp,
  Prefix,
  Document,
  Global,
  InRows,     ///< bounds are parameters
  QueryRange, ///< in_rows of a row of a query range table
};
constexpr int kNumAtoms = 12;

/// What a batch must bring for an atom.
struct Needs {
  bool ranges = false;
  bool documents = false;
  bool operator==(const Needs &other) const {
    return ranges == other.ranges && documents == other.documents;
  }
};
/// Lengths and bounds of ranges in the exhaustive part go up to this.
constexpr Int kMaxLen = 6;
/// Appends every request with these lengths: with each set of ranges and each cut into documents
/// that `needs` asks for. Without `degenerate`, ranges that are not live are left out.
void addRequests(Needs needs, bool degenerate, Int q, Int kv, std::vector<truth::Request> &to);
truth::Request randomRequest(Needs needs, Int maxQuery, Int maxSeq, std::mt19937 &rng);

Needs needs(Atom atom);
int numParams(Atom atom);
/// Every setting of an atom's parameters that small batches can tell apart, and huge ones.
const std::vector<std::vector<Int>> &settings(Atom atom);
/// A random setting for batches of up to `length` keys.
std::vector<Int> randomSetting(Atom atom, Int length, std::mt19937 &rng);
bool keep(Atom atom, const Int *params, const truth::Request &r, Int q, Int k);

/// A node of an expression. An atom's parameters follow each other from `firstParam`.
struct Node {
  enum Kind { Leaf, And, Or } kind = Leaf;
  bool negated = false;
  Atom atom = Atom::Causal;
  int firstParam = 0;
  int lhs = -1;
  int rhs = -1;
};

/// Nodes in order of definition; the last one is the mask.
struct Expr {
  std::vector<Node> nodes;
  std::vector<Atom> paramAtoms; ///< atom that each leaf's parameters belong to, in order of leaves
  int totalParams = 0;

  int leaf(Atom atom, bool negated);
  int combine(Node::Kind kind, int lhs, int rhs, bool negated);
  Needs needs() const;
};

bool keep(const Expr &expr, const Int *params, const truth::Request &r, Int q, Int k);
/// "(causal and not window_left(p0))", for messages.
std::string describe(const Expr &expr);

/// How a mask is written.
enum class Style {
  Named,  ///< mask operations
  ByHand, ///< arith on the indices, a loop over the ranges; named only where nothing else reads it
};
/// Shape of the kernel around a mask.
struct KernelText {
  std::string name;
  std::string clauses = "heads(1) kv_heads(1) dim(2) dim_v(8) q(f32) kv(f32)";
  Style style = Style::Named;
};
/// The kernel as a spec. With `literals` the parameters' values are written into the spec instead.
std::string specText(const Expr &expr, const KernelText &kernel,
                     const std::vector<Int> *literals = nullptr);

} // namespace masks

#endif // ATTN_TEST_EXECUTION_MASKCASES_H
