// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The emitting visitor of a mask program: a forward walk that hands each node, with the values of
// its operands, to an emitter. Nodes of a loop body are emitted inside the body, all others
// outside.
//
// An Emitter has
//   using Value = ...;   // default constructible, copyable
//   Value emit(const MaskProgram &, NodeId, const std::vector<Value> &operands);
//   template <class Body>
//   Value emitFor(const MaskProgram &, NodeId, const std::vector<Value> &boundsAndInits, Body
//   body);
// where boundsAndInits is lb, ub, step, inits..., and
//   body(Value iv, std::vector<Value> carried) -> std::vector<Value>
// emits one iteration and returns the yields (call it once to emit a loop, or several times to
// unroll it). emitFor returns the value of carried value 0; emit is called for a ForResult with the
// For's value as its only operand.
#ifndef ATTN_CORE_MASKPROGRAMEMIT_H
#define ATTN_CORE_MASKPROGRAMEMIT_H

#include "attn/Core/MaskProgram.h"

#include <utility>
#include <vector>

namespace attn::core {

/// The nodes that a root needs, each in the innermost body it belongs to; ascending in each list.
struct EmissionOrder {
  NodeId root = -1;
  std::vector<NodeId> outside;             ///< nodes in no loop
  std::vector<std::vector<NodeId>> bodies; ///< [node id]: the body of that For
};

/// `program` must verify; `root` is one of its nodes outside of loops.
EmissionOrder emissionOrder(const MaskProgram &program, NodeId root);

/// Emits `order.root` and returns its value.
template <class Emitter>
typename Emitter::Value emitProgram(const MaskProgram &program, const EmissionOrder &order,
                                    Emitter &emitter) {
  using Value = typename Emitter::Value;
  struct Walk {
    const MaskProgram &program;
    const EmissionOrder &order;
    Emitter &emitter;
    std::vector<Value> values;
    std::vector<Value> operands = {}; ///< of the node that is being emitted

    void takeOperands(const Node &node, size_t count) {
      operands.clear();
      for (size_t i = 0; i < count; ++i)
        operands.push_back(values[node.operands[i]]);
    }

    void emitNode(NodeId id) {
      const Node &node = program.nodes[id];
      if (node.op == Op::For) {
        size_t carried = static_cast<size_t>(node.imm);
        auto body = [this, id, &node, carried](Value iv, std::vector<Value> carriedValues) {
          return emitBody(id, node, carried, std::move(iv), std::move(carriedValues));
        };
        takeOperands(node, 3 + carried);
        // The body takes operands of its own.
        const std::vector<Value> boundsAndInits = std::exchange(operands, {});
        values[id] = emitter.emitFor(program, id, boundsAndInits, body);
      } else if (node.op == Op::ForResult) {
        operands.assign(1, values[node.ref]);
        values[id] = emitter.emit(program, id, operands);
      } else {
        takeOperands(node, node.operands.size());
        values[id] = emitter.emit(program, id, operands);
      }
    }

    std::vector<Value> emitBody(NodeId loop, const Node &node, size_t carried, Value iv,
                                std::vector<Value> carriedValues) {
      for (NodeId id : order.bodies[loop]) {
        const Node &inner = program.nodes[id];
        if (inner.op == Op::LoopIndex && inner.ref == loop)
          values[id] = iv;
        else if (inner.op == Op::LoopCarried && inner.ref == loop)
          values[id] = carriedValues[static_cast<size_t>(inner.imm)];
        else
          emitNode(id);
      }
      std::vector<Value> yields;
      yields.reserve(carried);
      for (size_t i = 0; i < carried; ++i)
        yields.push_back(values[node.operands[3 + carried + i]]);
      return yields;
    }
  };
  Walk walk{program, order, emitter, std::vector<Value>(program.nodes.size())};
  for (NodeId id : order.outside)
    walk.emitNode(id);
  return walk.values[order.root];
}

template <class Emitter>
typename Emitter::Value emitProgram(const MaskProgram &program, NodeId root, Emitter &emitter) {
  return emitProgram(program, emissionOrder(program, root), emitter);
}

} // namespace attn::core

#endif // ATTN_CORE_MASKPROGRAMEMIT_H
