// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which loops' bodies a node lies in: those whose induction variable or carried values it depends
// on.
#ifndef ATTN_LIB_CORE_LOOPNEST_H
#define ATTN_LIB_CORE_LOOPNEST_H

#include "attn/Core/MaskProgram.h"

#include <algorithm>

namespace attn::core {

/// Filled node by node, in order. The loops of a node are sorted; in a verified program the first
/// is the innermost one, because the For of an inner loop comes before that of the loop around it.
class LoopNest {
public:
  explicit LoopNest(const MaskProgram &program) : program(program) {}

  /// Adds node `id`, which must be the next one; its operands must come before it.
  void add(NodeId id) {
    const Node &node = program.nodes[id];
    std::vector<NodeId> loops;
    if (node.op == Op::LoopIndex || node.op == Op::LoopCarried)
      loops.push_back(node.ref);
    if (node.op == Op::ForResult)
      loops = inside[node.ref];
    size_t carried = node.op == Op::For ? static_cast<size_t>(node.imm) : 0;
    for (size_t i = 0; i < node.operands.size(); ++i) {
      // Yields may depend on the loop's own leaves; bounds and initial values stay outside.
      bool isYield = node.op == Op::For && i >= 3 + carried;
      for (NodeId loop : inside[node.operands[i]])
        if (!(isYield && loop == id) && std::find(loops.begin(), loops.end(), loop) == loops.end())
          loops.push_back(loop);
    }
    std::sort(loops.begin(), loops.end());
    inside.push_back(std::move(loops));
  }

  const std::vector<NodeId> &loopsOf(NodeId id) const { return inside[id]; }

private:
  const MaskProgram &program;
  std::vector<std::vector<NodeId>> inside;
};

} // namespace attn::core

#endif // ATTN_LIB_CORE_LOOPNEST_H
