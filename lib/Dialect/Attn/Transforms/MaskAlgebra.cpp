// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "MaskAlgebra.h"

#include "attn/Dialect/Attn/IR/AttnOps.h"

#include "mlir/IR/OperationSupport.h"

using namespace mlir;
using namespace attn;
using Id = MaskAlgebra::Id;
using Kind = MaskAlgebra::Kind;

//===----------------------------------------------------------------------===//
// Leaves
//===----------------------------------------------------------------------===//

bool MaskSide::isNonNegative() const {
  if (literal)
    return *literal >= 0;
  auto argument = dyn_cast_or_null<BlockArgument>(value);
  return argument && isa<KernelOp>(argument.getOwner()->getParentOp());
}

/// Provably x <= y.
static bool isAtMost(const MaskSide &x, const MaskSide &y) {
  if (x.literal && y.literal)
    return *x.literal <= *y.literal;
  if (x.value && x.value == y.value)
    return true;
  return x.literal == 0 && y.isNonNegative();
}

static bool equalLeaves(const MaskLeaf &x, const MaskLeaf &y) {
  if (x.kind != y.kind || x.value != y.value || x.ranges != y.ranges || !(x.left == y.left) ||
      !(x.right == y.right))
    return false;
  if (x.kind != MaskLeaf::Named || x.op == y.op)
    return true;
  return OperationEquivalence::isEquivalentTo(x.op, y.op, OperationEquivalence::IgnoreLocations);
}

/// Equal for equal leaves.
static llvm::hash_code hashLeaf(const MaskLeaf &leaf) {
  auto side = [](const MaskSide &s) {
    return llvm::hash_combine(s.literal.has_value(), s.literal.value_or(0), s.value);
  };
  llvm::hash_code op(0);
  if (leaf.kind == MaskLeaf::Named)
    op = OperationEquivalence::computeHash(leaf.op, OperationEquivalence::directHashValue,
                                           OperationEquivalence::ignoreHashValue,
                                           OperationEquivalence::IgnoreLocations);
  return llvm::hash_combine(static_cast<unsigned>(leaf.kind), leaf.value, leaf.ranges,
                            side(leaf.left), side(leaf.right), op);
}

/// Every key that `x` keeps is kept by `y`.
static bool leafImplies(const MaskLeaf &x, const MaskLeaf &y) {
  auto covers = [](const MaskSide &inner, const MaskSide &outer) {
    return !outer.isPresent() || (inner.isPresent() && isAtMost(inner, outer));
  };
  if (x.kind == MaskLeaf::Band && y.kind == MaskLeaf::Band)
    return covers(x.left, y.left) && covers(x.right, y.right);
  if (x.kind == MaskLeaf::MmPrefix && y.kind == MaskLeaf::MmPrefix)
    return x.ranges == y.ranges && covers(x.left, y.left);
  if (x.kind == MaskLeaf::MmPrefix && y.isLeftOnly())
    return covers(x.left, y.left);
  bool isPrefix = x.kind == MaskLeaf::Prefix || x.kind == MaskLeaf::Global;
  if (isPrefix && (y.kind == x.kind || y.kind == MaskLeaf::Global))
    return x.left.literal && y.left.literal ? *x.left.literal <= *y.left.literal : x.left == y.left;
  return false;
}

/// Every key is kept by `x` or by `y`: a band to the right and one to the left meet at q.
static bool leavesCoverAll(const MaskLeaf &x, const MaskLeaf &y) {
  return (x.isLeftOnly() && y.isRightOnly() && x.left.isNonNegative() && y.right.isNonNegative()) ||
         (x.isRightOnly() && y.isLeftOnly() && x.right.isNonNegative() && y.left.isNonNegative());
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

MaskAlgebra::MaskAlgebra() {
  nodes.push_back({Kind::False, {}, {}});
  nodes.push_back({Kind::True, {}, {}});
}

Id MaskAlgebra::intern(Node node) {
  std::vector<Id> key = {static_cast<Id>(node.kind)};
  key.insert(key.end(), node.operands.begin(), node.operands.end());
  auto [it, inserted] = interned.insert({key, static_cast<Id>(nodes.size())});
  if (inserted)
    nodes.push_back(std::move(node));
  return it->second;
}

Id MaskAlgebra::leaf(const MaskLeaf &leaf) {
  SmallVector<Id, 1> &bucket = leaves[static_cast<size_t>(hashLeaf(leaf)) >> 1];
  for (Id id : bucket)
    if (equalLeaves(nodes[id].leaf, leaf))
      return id;
  bucket.push_back(static_cast<Id>(nodes.size()));
  nodes.push_back({Kind::Leaf, {}, leaf});
  return bucket.back();
}

Id MaskAlgebra::negate(Id operand) {
  const Node &node = nodes[operand];
  if (node.kind == Kind::False || node.kind == Kind::True)
    return constant(node.kind == Kind::False);
  if (node.kind == Kind::Not)
    return node.operands[0];
  return intern({Kind::Not, {operand}, {}});
}

Id MaskAlgebra::combine(Kind kind, ArrayRef<Id> given) {
  bool isAnd = kind == Kind::And;
  // Operands are taken one by one; each meets the ones kept so far until nothing merges. Beyond
  // kMaxMet kept ones, only equal operands are found.
  constexpr size_t kMaxMet = 64;
  SmallVector<Id> operands(llvm::reverse(given));
  SmallVector<Id> kept;
  DenseSet<Id> isKept;
  while (!operands.empty()) {
    Id next = operands.pop_back_val();
    if (next == constant(isAnd) || isKept.contains(next))
      continue;
    if (next == constant(!isAnd))
      return next;
    bool merged = false;
    for (size_t i = 0, n = std::min(kept.size(), kMaxMet); i < n && !merged; ++i)
      if (auto both = mergePair(kind, kept[i], next)) {
        isKept.erase(kept[i]);
        kept.erase(kept.begin() + i);
        operands.push_back(*both);
        merged = true;
      }
    if (!merged) {
      kept.push_back(next);
      isKept.insert(next);
    }
  }
  if (kept.empty())
    return constant(isAnd);
  if (kept.size() == 1)
    return kept.front();
  llvm::sort(kept);
  return intern({kind, SmallVector<Id, 4>(kept.begin(), kept.end()), {}});
}

std::optional<Id> MaskAlgebra::mergePair(Kind kind, Id x, Id y) {
  bool isAnd = kind == Kind::And;
  if (nodes[x].kind == Kind::Leaf && nodes[y].kind == Kind::Leaf)
    return mergeLeafPair(kind, x, y);
  if (implies(x, y))
    return isAnd ? x : y;
  if (implies(y, x))
    return isAnd ? y : x;
  // "x and not y" with x inside y keeps nothing, "not x or y" everything.
  Id notX = negate(x), notY = negate(y);
  if (isAnd ? implies(x, notY) || implies(y, notX) : implies(notX, y) || implies(notY, x))
    return constant(!isAnd);
  return std::nullopt;
}

/// The same for two leaves, which chains have many of.
std::optional<Id> MaskAlgebra::mergeLeafPair(Kind kind, Id x, Id y) {
  bool isAnd = kind == Kind::And;
  const MaskLeaf &a = nodes[x].leaf, &b = nodes[y].leaf;
  if (x == y || leafImplies(a, b))
    return isAnd ? x : y;
  if (leafImplies(b, a))
    return isAnd ? y : x;
  if (!isAnd)
    return leavesCoverAll(a, b) ? std::optional(constant(true)) : std::nullopt;
  MaskLeaf first = a, second = b;
  if (auto merged = intersectLeaves(first, second))
    return merged;
  return intersectLeaves(second, first);
}

/// One leaf that keeps what both keep.
std::optional<Id> MaskAlgebra::intersectLeaves(const MaskLeaf &x, const MaskLeaf &y) {
  // The smaller of two sides, if it is one of them for sure.
  auto least = [](const MaskSide &a, const MaskSide &b) -> std::optional<MaskSide> {
    if (!a.isPresent() || !b.isPresent())
      return a.isPresent() ? a : b;
    if (isAtMost(a, b))
      return a;
    if (isAtMost(b, a))
      return b;
    return std::nullopt;
  };
  if (x.kind == MaskLeaf::Band && y.kind == MaskLeaf::Band) {
    // Causal stays an operation of its own: "causal and window" is what people write and read.
    if (x.isCausal() || y.isCausal())
      return std::nullopt;
    auto left = least(x.left, y.left), right = least(x.right, y.right);
    if (!left || !right)
      return std::nullopt;
    MaskLeaf merged;
    merged.kind = MaskLeaf::Band;
    merged.left = *left;
    merged.right = *right;
    return leaf(merged);
  }
  if (x.kind == MaskLeaf::MmPrefix && y.isLeftOnly()) {
    auto clamp = least(x.left, y.left);
    if (!clamp)
      return std::nullopt;
    MaskLeaf clamped = x;
    clamped.left = *clamp;
    return leaf(clamped);
  }
  return std::nullopt;
}

bool MaskAlgebra::implies(Id x, Id y) {
  if (x == y || x == constant(false) || y == constant(true))
    return true;
  if (x == constant(true) || y == constant(false))
    return false;
  if (auto it = implications.find({x, y}); it != implications.end())
    return it->second;
  // Nested deeper than anyone writes, "not known" is the answer; so the work is bounded.
  constexpr unsigned kMaxDepth = 12;
  if (implyDepth == kMaxDepth)
    return false;
  ++implyDepth;
  bool result = computeImplies(x, y);
  --implyDepth;
  implications[{x, y}] = result;
  return result;
}

bool MaskAlgebra::computeImplies(Id x, Id y) {
  const Node &a = nodes[x], &b = nodes[y];
  auto fromX = [&](Id operand) { return implies(x, operand); };
  auto toY = [&](Id operand) { return implies(operand, y); };
  if (b.kind == Kind::And)
    return llvm::all_of(b.operands, fromX);
  if (a.kind == Kind::Or)
    return llvm::all_of(a.operands, toY);
  if (a.kind == Kind::And && llvm::any_of(a.operands, toY))
    return true;
  if (b.kind == Kind::Or)
    return llvm::any_of(b.operands, fromX);
  if (a.kind == Kind::Not && b.kind == Kind::Not)
    return implies(b.operands[0], a.operands[0]);
  if (a.kind == Kind::Leaf && b.kind == Kind::Leaf)
    return leafImplies(a.leaf, b.leaf);
  if (a.kind == Kind::Not && b.kind == Kind::Leaf) {
    const Node &inner = nodes[a.operands[0]];
    // not (u or v) implies y if one of "not u", "not v" does; the same for a leaf.
    if (inner.kind == Kind::Leaf)
      return leavesCoverAll(inner.leaf, b.leaf);
  }
  return false;
}

//===----------------------------------------------------------------------===//
// Counting and rewriting
//===----------------------------------------------------------------------===//

void MaskAlgebra::collect(Id id, SmallVectorImpl<Id> &order, DenseMap<Id, bool> &seen) const {
  if (!seen.insert({id, true}).second)
    return;
  for (Id operand : nodes[id].operands)
    collect(operand, order, seen);
  order.push_back(id);
}

size_t MaskAlgebra::countOps(ArrayRef<Id> roots) const {
  SmallVector<Id> order;
  DenseMap<Id, bool> seen;
  for (Id root : roots)
    collect(root, order, seen);
  size_t count = 0;
  for (Id id : order) {
    const Node &node = nodes[id];
    if (node.kind == Kind::And || node.kind == Kind::Or)
      count += node.operands.size() - 1;
    else if (node.kind != Kind::Leaf || node.leaf.kind != MaskLeaf::Opaque)
      ++count;
  }
  return count;
}

Id MaskAlgebra::substituteIn(Id id, Id from, Id to, DenseMap<Id, Id> &memo) {
  if (id == from)
    return to;
  if (auto it = memo.find(id); it != memo.end())
    return it->second;
  Kind kind = nodes[id].kind;
  SmallVector<Id> operands(nodes[id].operands.begin(), nodes[id].operands.end());
  bool changed = false;
  for (Id &operand : operands) {
    Id replaced = substituteIn(operand, from, to, memo);
    changed |= replaced != operand;
    operand = replaced;
  }
  Id result = id;
  if (changed)
    result = kind == Kind::Not ? negate(operands[0]) : combine(kind, operands);
  memo[id] = result;
  return result;
}

Id MaskAlgebra::substitute(Id root, Id from, Id to) {
  DenseMap<Id, Id> memo;
  return substituteIn(root, from, to, memo);
}

Id MaskAlgebra::restructure(Id root, ArrayRef<Id> pinned, bool &refused) {
  struct Rule {
    std::optional<Id> (MaskAlgebra::*rewrite)(Id);
    bool hasToSave;
  };
  // The first four make a node simpler, so they may cost nothing and save nothing; the others only
  // move operations about.
  static constexpr Rule rules[] = {
      {&MaskAlgebra::flatten, false},     {&MaskAlgebra::narrowBands, false},
      {&MaskAlgebra::clampRanges, false}, {&MaskAlgebra::dropComplements, false},
      {&MaskAlgebra::deMorgan, true},     {&MaskAlgebra::factor, true},
  };
  auto count = [&](Id id) {
    SmallVector<Id> roots(pinned);
    roots.push_back(id);
    return countOps(roots);
  };
  size_t best = count(root);
  for (bool changed = true; changed;) {
    changed = false;
    refused = false;
    SmallVector<Id> order;
    DenseMap<Id, bool> seen;
    collect(root, order, seen);
    for (Id id : order) {
      for (const Rule &rule : rules) {
        auto to = (this->*rule.rewrite)(id);
        if (!to || *to == id)
          continue;
        Id candidate = substitute(root, id, *to);
        size_t ops = count(candidate);
        if (candidate != root && (ops < best || (ops == best && !rule.hasToSave))) {
          root = candidate;
          best = ops;
          changed = true;
          break;
        }
        refused |= rule.hasToSave && ops > best;
      }
      if (changed)
        break;
    }
  }
  return root;
}

/// An `and` inside an `and`, an `or` inside an `or`.
std::optional<Id> MaskAlgebra::flatten(Id id) {
  Kind kind = nodes[id].kind;
  if (kind != Kind::And && kind != Kind::Or)
    return std::nullopt;
  SmallVector<Id> operands;
  for (Id operand : nodes[id].operands)
    if (nodes[operand].kind == kind)
      llvm::append_range(operands, nodes[operand].operands);
    else
      operands.push_back(operand);
  if (operands.size() == nodes[id].operands.size())
    return std::nullopt;
  return combine(kind, operands);
}

/// A band's right side is no restriction beside causal.
std::optional<Id> MaskAlgebra::narrowBands(Id id) {
  if (nodes[id].kind != Kind::And)
    return std::nullopt;
  SmallVector<Id> operands(nodes[id].operands.begin(), nodes[id].operands.end());
  if (llvm::none_of(operands, [&](Id x) { return nodes[x].leaf.isCausal(); }))
    return std::nullopt;
  bool changed = false;
  for (Id &operand : operands) {
    MaskLeaf band = nodes[operand].leaf;
    if (band.kind != MaskLeaf::Band || !band.left.isPresent() || !band.right.isPresent() ||
        !band.right.isNonNegative())
      continue;
    band.right = {};
    operand = leaf(band);
    changed = true;
  }
  return changed ? std::optional(combine(Kind::And, operands)) : std::nullopt;
}

/// The left side of a two-sided band is the clamp of mm_prefix beside it.
std::optional<Id> MaskAlgebra::clampRanges(Id id) {
  if (nodes[id].kind != Kind::And)
    return std::nullopt;
  SmallVector<Id> operands(nodes[id].operands.begin(), nodes[id].operands.end());
  for (Id &ranges : operands)
    for (Id &band : operands) {
      MaskLeaf a = nodes[ranges].leaf, b = nodes[band].leaf;
      if (a.kind != MaskLeaf::MmPrefix || b.kind != MaskLeaf::Band || !b.left.isPresent() ||
          !b.right.isPresent())
        continue;
      MaskLeaf left = b;
      left.right = {};
      auto clamped = intersectLeaves(a, left);
      if (!clamped)
        continue;
      b.left = {};
      ranges = *clamped;
      band = leaf(b);
      return combine(Kind::And, operands);
    }
  return std::nullopt;
}

/// x and (not x or y) is x and y; x or (not x and y) is x or y.
std::optional<Id> MaskAlgebra::dropComplements(Id id) {
  Kind kind = nodes[id].kind;
  if (kind != Kind::And && kind != Kind::Or)
    return std::nullopt;
  Kind dual = kind == Kind::And ? Kind::Or : Kind::And;
  SmallVector<Id> operands(nodes[id].operands.begin(), nodes[id].operands.end());
  for (Id &inner : operands) {
    if (nodes[inner].kind != dual)
      continue;
    SmallVector<Id> parts(nodes[inner].operands.begin(), nodes[inner].operands.end());
    size_t before = parts.size();
    for (Id x : operands)
      if (x != inner) {
        Id notX = negate(x);
        llvm::erase_if(parts, [&](Id part) {
          return kind == Kind::And ? implies(part, notX) : implies(notX, part);
        });
      }
    if (parts.size() == before)
      continue;
    inner = combine(dual, parts);
    return combine(kind, operands);
  }
  return std::nullopt;
}

/// Moves negations from the operands in front, or the reverse, whatever needs fewer.
std::optional<Id> MaskAlgebra::deMorgan(Id id) {
  bool isNegated = nodes[id].kind == Kind::Not;
  Id inner = isNegated ? nodes[id].operands[0] : id;
  Kind kind = nodes[inner].kind;
  if (kind != Kind::And && kind != Kind::Or)
    return std::nullopt;
  SmallVector<Id> operands(nodes[inner].operands.begin(), nodes[inner].operands.end());
  size_t negated = llvm::count_if(operands, [&](Id x) { return nodes[x].kind == Kind::Not; });
  size_t before = negated + isNegated, after = operands.size() - negated + !isNegated;
  if (after >= before)
    return std::nullopt;
  for (Id &operand : operands)
    operand = negate(operand);
  Id opposite = combine(kind == Kind::And ? Kind::Or : Kind::And, operands);
  return isNegated ? opposite : negate(opposite);
}

/// (a and b) or (a and c) is a and (b or c), and the dual.
std::optional<Id> MaskAlgebra::factor(Id id) {
  Kind kind = nodes[id].kind;
  if (kind != Kind::And && kind != Kind::Or)
    return std::nullopt;
  Kind dual = kind == Kind::And ? Kind::Or : Kind::And;
  std::map<Id, size_t> uses;
  for (Id operand : nodes[id].operands)
    if (nodes[operand].kind == dual)
      for (Id part : nodes[operand].operands)
        ++uses[part];
  auto common = std::max_element(uses.begin(), uses.end(),
                                 [](auto &a, auto &b) { return a.second < b.second; });
  if (common == uses.end() || common->second < 2)
    return std::nullopt;
  SmallVector<Id> rest, factored;
  SmallVector<Id> operands(nodes[id].operands.begin(), nodes[id].operands.end());
  for (Id operand : operands) {
    if (nodes[operand].kind != dual ||
        !llvm::is_contained(nodes[operand].operands, common->first)) {
      rest.push_back(operand);
      continue;
    }
    SmallVector<Id> parts(nodes[operand].operands.begin(), nodes[operand].operands.end());
    llvm::erase(parts, common->first);
    factored.push_back(combine(dual, parts));
  }
  rest.push_back(combine(dual, {common->first, combine(kind, factored)}));
  return combine(kind, rest);
}
