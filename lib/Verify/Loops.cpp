// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loops of a mask program. A loop is one of
//   - a few iterations, known how many: unrolled;
//   - step 1, one carried Bool that is or-ed or and-ed with a term that does not read it: a
//     quantifier;
//   - in a query with limited lists, any other: unrolled up to a limit, which becomes a
//     condition of the query unless it is above what the loop can reach;
//   - a function, of which nothing is known, of what it reads.
// Loops in loops multiply, so what is written out has a limit for all of them together, and none is
// once the query is large.
#include "Encoder.h"

#include "llvm/Support/SaveAndRestore.h"

#include <algorithm>
#include <functional>

using namespace attn;
using namespace attn::proofs;
using core::Node;
using core::NodeId;
using core::Op;
using core::ScalarType;

/// Iterations of a loop that is written out; in the search for an example, too, if only constants
/// bound it.
static constexpr Wide kMaxIterations = 16, kMaxExampleIterations = 64;
/// How often a body is written out because of all loops around it.
static constexpr Wide kMaxTogether = 1024;

/// Whether a body may be written out `times` times for each time that its loop is.
bool Encoder::mayRun(Wide times) const {
  return times * around <= kMaxTogether && !terms.isLarge();
}

std::vector<Coded> Encoder::runBody(NodeId loop, const Coded &index,
                                    const std::vector<Coded> &carried) {
  for (NodeId id : order.bodies[loop]) {
    const Node &inner = program.nodes[id];
    if (inner.op == Op::LoopIndex && inner.ref == loop)
      values[id] = index;
    else if (inner.op == Op::LoopCarried && inner.ref == loop)
      values[id] = carried[static_cast<size_t>(inner.imm)];
    else if (inner.op == Op::For)
      encodeLoop(id);
    else
      values[id] = encodeNode(id);
  }
  const Node &node = program.nodes[loop];
  std::vector<Coded> yields;
  for (size_t i = 0; i < carried.size(); ++i)
    yields.push_back(operand(node, 3 + carried.size() + i));
  return yields;
}

bool Encoder::unroll(NodeId id) {
  const Node &node = program.nodes[id];
  Coded lower = operand(node, 0), upper = operand(node, 1);
  auto step = terms.asInteger(operand(node, 2).term);
  if (!step)
    return false;
  std::vector<Coded> carried;
  for (size_t i = 0; i < static_cast<size_t>(node.imm); ++i)
    carried.push_back(operand(node, 3 + i));
  Wide iterations = 0;
  if (*step >= 1 && upper.hi > lower.lo)
    iterations = (upper.hi - lower.lo + *step - 1) / *step;
  if (iterations > kMaxIterations) {
    if (!world.getOptions().maxRanges)
      return false;
    bool isConstant = terms.asInteger(lower.term) && terms.asInteger(upper.term);
    if (!isConstant || iterations > kMaxExampleIterations) {
      iterations = *world.getOptions().maxRanges;
      if (!mayRun(iterations))
        return false;
      terms.require(terms.le(terms.sub(upper.term, lower.term), terms.integer(iterations * *step)));
    }
  }
  if (!mayRun(iterations))
    return false;
  llvm::SaveAndRestore<Wide> inside(around, around * std::max<Wide>(iterations, 1));
  for (Wide i = 0; i < iterations; ++i) {
    Wide offset = i * *step;
    Coded index{terms.add(lower.term, terms.integer(offset)), lower.lo + offset,
                std::min(lower.hi + offset, maxOf(ScalarType::I64))};
    Term runs = terms.lt(index.term, upper.term);
    std::vector<Coded> next = runBody(id, index, carried);
    for (size_t c = 0; c < carried.size(); ++c)
      carried[c] = select(runs, next[c], carried[c]);
    // One body may have been too much.
    if (terms.isLarge())
      return false;
  }
  results[id] = std::move(carried);
  return true;
}

bool Encoder::quantify(NodeId id) {
  const Node &node = program.nodes[id];
  Coded lower = operand(node, 0), upper = operand(node, 1), init = operand(node, 3);
  if (node.imm != 1 || node.type != ScalarType::Bool ||
      terms.asInteger(operand(node, 2).term) != Wide(1))
    return false;
  // Both tries below encode the body twice.
  if (!mayRun(4))
    return false;
  llvm::SaveAndRestore<Wide> inside(around, 4 * around);
  // If a set bit stays set, the loop is an or: with a clear bit the body yields what is or-ed. The
  // same with the bit turned round for an and.
  for (bool isOr : {true, false}) {
    bool matches = false;
    auto body = [&](Term variable) {
      Coded index{variable, lower.lo, std::max(lower.lo, upper.hi - 1)};
      Term kept = runBody(id, index, {boolean(terms.boolean(isOr))})[0].term;
      matches = terms.asBoolean(kept) == isOr;
      Term term = runBody(id, index, {boolean(terms.boolean(!isOr))})[0].term;
      Term runs = terms.land(terms.le(lower.term, variable), terms.lt(variable, upper.term));
      return isOr ? terms.land(runs, term) : terms.implies(runs, term);
    };
    Term any = isOr ? terms.exists(body) : terms.forall(body);
    if (!matches)
      continue;
    Term result = isOr ? terms.lor(init.term, any) : terms.land(init.term, any);
    results[id] = {boolean(result)};
    return true;
  }
  return false;
}

/// A loop that is not interpreted, for people.
std::string Encoder::nameLoop(const Node &node) const {
  std::string name = "scf.for";
  auto lower = terms.asInteger(operand(node, 0).term),
       upper = terms.asInteger(operand(node, 1).term),
       step = terms.asInteger(operand(node, 2).term);
  if (lower && upper && step && *step >= 1 && *lower < *upper)
    name += " of " + proofs::toString((*upper - *lower + *step - 1) / *step) + " iterations";
  if (around > 1)
    name += " inside another";
  return terms.isLarge() ? name + kTooLarge : name;
}

/// A node of a loop's body as text, apart from its operands.
std::string Encoder::describe(const Node &node) const {
  std::string text = std::string(core::toString(node.op)) + ":" +
                     std::string(core::toString(node.type)) + ":" + std::to_string(node.imm);
  for (NodeId operand : node.operands)
    text += "." + std::string(core::toString(typeOf(operand)));
  if (node.op == Op::Const && node.type == ScalarType::F32)
    return text + ":" + proofs::toString(encodeConstant(node).lo);
  if (node.op == Op::Param)
    return text + ":" + program.params[node.ref].name;
  bool readsTable = (node.op >= Op::TableLoad && node.op <= Op::RowHi) || node.op == Op::MmPrefix ||
                    node.op == Op::Document;
  if (!readsTable)
    return text;
  const core::TableDecl &table = program.tables[node.ref];
  return text + ":" +
         (table.source >= 0 ? "rows of " + program.tables[table.source].name : table.name);
}

/// The body as text, with the nodes outside of it numbered in the order of their first use.
std::string Encoder::serialize(NodeId loop, std::vector<NodeId> &outside) const {
  std::map<NodeId, std::string> inside;
  std::string text;
  auto nameOf = [&](NodeId id) {
    auto found = inside.find(id);
    if (found != inside.end())
      return found->second;
    auto place = std::find(outside.begin(), outside.end(), id);
    if (place == outside.end())
      place = outside.insert(outside.end(), id);
    return "o" + std::to_string(place - outside.begin());
  };
  std::map<NodeId, std::string> loops;
  std::function<void(NodeId)> addLoop = [&](NodeId id) {
    loops[id] = "l" + std::to_string(loops.size());
    text += loops[id] + "(";
    for (NodeId inner : order.bodies[id]) {
      const Node &node = program.nodes[inner];
      if (node.op == Op::For) {
        addLoop(inner);
        inside[inner] = loops[inner];
        continue;
      }
      text += describe(node);
      if (node.op == Op::LoopIndex || node.op == Op::LoopCarried)
        text += ":" + loops[node.ref];
      if (node.op == Op::ForResult)
        text += ":" + nameOf(node.ref);
      for (NodeId operand : node.operands)
        text += "," + nameOf(operand);
      inside[inner] = "i" + std::to_string(inside.size());
      text += ";";
    }
    for (NodeId operand : program.nodes[id].operands)
      text += nameOf(operand) + ",";
    text += ")";
  };
  addLoop(loop);
  return text;
}

void Encoder::encodeLoop(NodeId id) {
  const Node &node = program.nodes[id];
  if (!unroll(id) && (world.getOptions().maxRanges || !quantify(id))) {
    std::vector<NodeId> outside;
    std::string key = serialize(id, outside);
    // Indices and tables of the launch are fixed in a query; all else that the loop reads is here.
    std::vector<Coded> operands;
    for (NodeId read : outside)
      operands.push_back(values[read]);
    std::vector<Coded> carried;
    for (size_t i = 0; i < static_cast<size_t>(node.imm); ++i)
      carried.push_back(unknowns.apply(key + "#" + std::to_string(i), nameLoop(node),
                                       typeOf(node.operands[3 + i]), operands));
    results[id] = std::move(carried);
  }
  values[id] = results[id][0];
}
