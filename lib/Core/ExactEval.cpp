// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ExactEval.h"

#include "attn/Core/MaskProgramEmit.h"

#include <algorithm>
#include <cstdlib>

namespace attn::core {

static void addOnce(std::vector<int32_t> &list, int32_t value) {
  if (std::find(list.begin(), list.end(), value) == list.end())
    list.push_back(value);
}

ExactEval::ExactEval(const MaskProgram &program, NodeId root, FloatMode floats, const Batch &batch,
                     TableAccess &tables)
    : program(program), floats(floats), tables(tables), levels(NumLevels),
      rangesOfRow(batch.tables.size()), documentOfRow(batch.tables.size()) {
  if (root < 0)
    return;
  EmissionOrder order = emissionOrder(program, root);
  assignSlots(root);
  rootSlot = slotOf[root];

  // Bodies first: an inner For comes before the one around it, so its number is known when the
  // outer body is made.
  std::vector<int32_t> loopNumber(program.nodes.size(), -1);
  auto instructions = [&](const std::vector<NodeId> &ids, auto place) {
    for (NodeId id : ids) {
      Op op = program.nodes[id].op;
      if (op == Op::Const || op == Op::LoopIndex || op == Op::LoopCarried || op == Op::ForResult)
        continue; // Constants are in their slots already, the others are slots of their loop.
      Inst inst = makeInst(id);
      if (op == Op::For)
        inst.ref = loopNumber[id];
      place(id, inst);
    }
  };
  for (NodeId id = 0; id <= root; ++id) {
    if (program.nodes[id].op != Op::For)
      continue;
    loopNumber[id] = static_cast<int32_t>(loops.size());
    loops.push_back(makeLoop(id));
    std::vector<Inst> body;
    instructions(order.bodies[id], [&](NodeId, const Inst &inst) { body.push_back(inst); });
    loops.back().body = std::move(body);
  }

  std::vector<Dependence> depends(program.nodes.size());
  for (NodeId id = 0; id <= root; ++id) {
    const Node &node = program.nodes[id];
    Dependence d = ownDependence(program, node);
    auto join = [&d](const Dependence &o) {
      d = {d.b || o.b, d.h || o.h, d.q || o.q, d.k || o.k, d.s || o.s};
    };
    for (NodeId operand : node.operands)
      join(depends[operand]);
    if (node.op == Op::ForResult)
      join(depends[node.ref]);
    depends[id] = d;
  }
  instructions(order.outside, [&](NodeId id, const Inst &inst) {
    const Dependence &d = depends[id];
    Level level = d.k || d.s ? Element : d.q ? PerRow : d.h ? PerHead : d.b ? PerRequest : PerBatch;
    levels[level].push_back(inst);
  });
}

void ExactEval::assignSlots(NodeId root) {
  size_t count = program.nodes.size();
  slotOf.resize(count);
  loopSlot.assign(count, -1);
  int32_t next = 0;
  for (NodeId id = 0; id <= root; ++id)
    if (program.nodes[id].op == Op::For) {
      loopSlot[id] = next;
      next += 1 + static_cast<int32_t>(program.nodes[id].imm);
    }
  for (NodeId id = 0; id <= root; ++id) {
    const Node &node = program.nodes[id];
    switch (node.op) {
    case Op::For:
      slotOf[id] = loopSlot[id] + 1;
      break;
    case Op::LoopIndex:
      slotOf[id] = loopSlot[node.ref];
      break;
    case Op::LoopCarried:
    case Op::ForResult:
      slotOf[id] = loopSlot[node.ref] + 1 + static_cast<int32_t>(node.imm);
      break;
    default:
      slotOf[id] = next++;
      break;
    }
  }
  slots.resize(static_cast<size_t>(next));
  for (NodeId id = 0; id <= root; ++id) {
    const Node &node = program.nodes[id];
    if (node.op == Op::Const)
      slots[slotOf[id]] = constantOf(floats, node);
  }
}

ExactEval::Inst ExactEval::makeInst(NodeId id) {
  const Node &node = program.nodes[id];
  Inst inst;
  inst.op = node.op;
  inst.family = familyOf(node.op);
  inst.type = node.type;
  inst.dst = slotOf[id];
  inst.ref = node.ref;
  inst.imm = node.imm;
  if (node.op == Op::MmPrefix)
    addOnce(rangeTables, node.ref);
  if (node.op == Op::Document)
    addOnce(documentTables, node.ref);
  if (node.op == Op::For)
    return inst;
  inst.numArgs = static_cast<uint8_t>(node.operands.size());
  for (size_t i = 0; i < node.operands.size(); ++i)
    inst.args[i] = slotOf[node.operands[i]];
  if (!node.operands.empty())
    inst.argType = program.nodes[node.operands[0]].type;
  return inst;
}

ExactEval::Loop ExactEval::makeLoop(NodeId id) {
  const Node &node = program.nodes[id];
  size_t carried = static_cast<size_t>(node.imm);
  Loop loop;
  for (size_t i = 0; i < 3; ++i)
    loop.bounds[i] = slotOf[node.operands[i]];
  for (size_t i = 0; i < carried; ++i) {
    loop.inits.push_back(slotOf[node.operands[3 + i]]);
    loop.yields.push_back(slotOf[node.operands[3 + carried + i]]);
  }
  loop.index = loopSlot[id];
  loop.carried = loopSlot[id] + 1;
  loop.next.resize(carried);
  return loop;
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

void ExactEval::moveTo(const RowPoint &at) {
  bool newRequest = !started || at.b != row.b;
  bool newHead = newRequest || at.h != row.h;
  row = at;
  if (!started)
    runAll(levels[PerBatch]);
  started = true;
  enterRow();
  if (newRequest)
    runAll(levels[PerRequest]);
  if (newHead)
    runAll(levels[PerHead]);
  runAll(levels[PerRow]);
}

void ExactEval::enterRow() {
  for (int32_t table : rangeTables) {
    std::vector<Range> &live = rangesOfRow[table];
    live.clear();
    for (const Range &range : tables.ranges(table, row.b))
      if (range.start <= row.q && row.q <= range.end)
        live.push_back(range);
  }
  for (int32_t table : documentTables)
    documentOfRow[table] = tables.document(table, row.b, row.q);
}

bool ExactEval::runMmPrefix(const Inst &inst) const {
  if (inst.numArgs == 1 && row.q - key > slots[inst.args[0]].i)
    return false;
  for (const Range &range : rangesOfRow[inst.ref])
    if (range.start <= key && key <= range.end)
      return true;
  return false;
}

bool ExactEval::runDocument(const Inst &inst) const {
  const std::optional<int32_t> &own = documentOfRow[inst.ref];
  return own && own == tables.document(inst.ref, row.b, key);
}

Scalar ExactEval::runLeaf(const Inst &inst) const {
  switch (inst.op) {
  case Op::IndexB:
    return Scalar::ofInt(row.b);
  case Op::IndexH:
    return Scalar::ofInt(row.h);
  case Op::IndexQ:
    return Scalar::ofInt(row.q);
  case Op::IndexK:
    return Scalar::ofInt(key);
  case Op::Score:
    return Scalar::ofFloat(score);
  default: // Param
    return tables.param(inst.ref);
  }
}

Scalar ExactEval::runTable(const Inst &inst) {
  switch (inst.op) {
  case Op::NumRanges:
    return Scalar::ofInt(tables.ranges(inst.ref, row.b).count);
  case Op::RangeStart:
    return Scalar::ofInt(tables.rangeStart(inst.ref, row.b, slots[inst.args[0]].i));
  case Op::RangeEnd:
    return Scalar::ofInt(tables.rangeEnd(inst.ref, row.b, slots[inst.args[0]].i));
  case Op::RowLo:
    return Scalar::ofInt(tables.queryRange(inst.ref, row.b, row.q).lo);
  case Op::RowHi:
    return Scalar::ofInt(tables.queryRange(inst.ref, row.b, row.q).hi);
  default:
    break;
  }
  int64_t indices[kMaxTableRank];
  const std::vector<TableDim> &dims = program.tables[inst.ref].dims;
  for (size_t i = 0; i < dims.size(); ++i) {
    std::optional<int64_t> implicit = tables.implicitIndex(dims[i], row);
    indices[i] = implicit ? *implicit : slots[inst.args[i]].i;
  }
  return tables.element(inst.ref, indices);
}

Scalar ExactEval::runLoop(Loop &loop) {
  int64_t i = slots[loop.bounds[0]].i, ub = slots[loop.bounds[1]].i;
  int64_t step = slots[loop.bounds[2]].i;
  size_t count = loop.inits.size();
  for (size_t c = 0; c < count; ++c)
    loop.next[c] = slots[loop.inits[c]];
  std::copy(loop.next.begin(), loop.next.end(), slots.begin() + loop.carried);
  while (step >= 1 && i < ub) {
    slots[loop.index].i = i;
    runAll(loop.body);
    for (size_t c = 0; c < count; ++c)
      loop.next[c] = slots[loop.yields[c]];
    std::copy(loop.next.begin(), loop.next.end(), slots.begin() + loop.carried);
    // ub - i is positive and may exceed int64; unsigned arithmetic holds it.
    if (static_cast<uint64_t>(ub) - static_cast<uint64_t>(i) <= static_cast<uint64_t>(step))
      break;
    i += step;
  }
  return slots[loop.carried];
}

Scalar ExactEval::runNamed(const Inst &inst) {
  auto arg = [&](int i) { return slots[inst.args[i]].i; };
  switch (inst.op) {
  case Op::Causal:
    return Scalar::ofInt(key <= row.q);
  case Op::Window: {
    bool keep = true;
    if (inst.imm & 1)
      keep = row.q - key <= arg(0);
    if (inst.imm & 2)
      keep = keep && key - row.q <= arg(inst.imm == 3 ? 1 : 0);
    return Scalar::ofInt(keep);
  }
  case Op::MmPrefix:
    return Scalar::ofInt(runMmPrefix(inst));
  case Op::Prefix:
    return Scalar::ofInt(key < arg(0));
  case Op::Document:
    return Scalar::ofInt(runDocument(inst));
  case Op::Global:
    return Scalar::ofInt(key < arg(0) || row.q < arg(0));
  default: // InRows
    return Scalar::ofInt(arg(0) <= key && key < arg(1));
  }
}

/// The operations that masks are mostly made of, without the general path's dispatch.
bool ExactEval::runCommon(const Inst &inst, Scalar &result) const {
  int64_t a = slots[inst.args[0]].i, b = slots[inst.args[1]].i;
  switch (inst.op) {
  case Op::And:
    result.i = a & b;
    return true;
  case Op::Or:
    result.i = a | b;
    return true;
  case Op::Add:
    result.i = wrapTo(inst.type, static_cast<int64_t>(uint64_t(a) + uint64_t(b)));
    return true;
  case Op::Sub:
    result.i = wrapTo(inst.type, static_cast<int64_t>(uint64_t(a) - uint64_t(b)));
    return true;
  case Op::CmpEq:
    result.i = a == b;
    return true;
  case Op::CmpNe:
    result.i = a != b;
    return true;
  default:
    break;
  }
  if (inst.argType == ScalarType::Bool) // Signed comparisons see a set Bool as -1.
    return false;
  switch (inst.op) {
  case Op::CmpSlt:
    result.i = a < b;
    return true;
  case Op::CmpSle:
    result.i = a <= b;
    return true;
  case Op::CmpSgt:
    result.i = a > b;
    return true;
  case Op::CmpSge:
    result.i = a >= b;
    return true;
  default:
    return false;
  }
}

Scalar ExactEval::run(const Inst &inst) {
  Scalar result;
  switch (inst.family) {
  case OpFamily::IntBinary:
  case OpFamily::IntCompare:
    if (runCommon(inst, result))
      return result;
    break;
  case OpFamily::Leaf:
    return runLeaf(inst);
  case OpFamily::Table:
    return runTable(inst);
  case OpFamily::Mask:
    return runNamed(inst);
  case OpFamily::Loop:
    return runLoop(loops[inst.ref]);
  default:
    break;
  }
  const Scalar &a = slots[inst.args[0]], &b = slots[inst.args[1]], &c = slots[inst.args[2]];
  if (inst.op == Op::Alibi)
    return Scalar::ofFloat(evalAlibi(floats, a.f, b.f, std::abs(row.q - key)));
  return evalPure(floats, inst.op, inst.type, inst.argType, a, b, c);
}

} // namespace attn::core
