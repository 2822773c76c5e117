// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which nodes a root needs, and in which loop body each is computed.
#include "attn/Core/MaskProgramEmit.h"

#include "LoopNest.h"

namespace attn::core {

EmissionOrder emissionOrder(const MaskProgram &program, NodeId root) {
  EmissionOrder order;
  order.root = root;
  order.bodies.resize(program.nodes.size());
  size_t count = static_cast<size_t>(root) + 1;

  // Users come after operands, so one backward walk finds what is needed.
  std::vector<bool> needed(count, false);
  needed[root] = true;
  for (NodeId id = root; id >= 0; --id) {
    const Node &node = program.nodes[id];
    if (!needed[id])
      continue;
    for (NodeId operand : node.operands)
      needed[operand] = true;
    if (node.op == Op::ForResult)
      needed[node.ref] = true;
  }

  LoopNest nest(program);
  for (NodeId id = 0; id <= root; ++id) {
    nest.add(id);
    if (!needed[id])
      continue;
    const std::vector<NodeId> &loops = nest.loopsOf(id);
    if (loops.empty())
      order.outside.push_back(id);
    else
      order.bodies[loops.front()].push_back(id);
  }
  return order;
}

} // namespace attn::core
