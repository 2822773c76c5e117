// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Exact evaluation of one root of a mask program.
//
// The nodes are turned once into instructions on numbered slots, sorted by what they depend on, so
// that a call with the same row as the last one runs only those that depend on the key. This
// changes when a node is evaluated, never what it means.
#ifndef ATTN_LIB_CORE_EXACTEVAL_H
#define ATTN_LIB_CORE_EXACTEVAL_H

#include "TableAccess.h"

namespace attn::core {

class ExactEval {
public:
  /// `root` may be -1; then evaluate() must not be called.
  ExactEval(const MaskProgram &program, NodeId root, FloatMode floats, const Batch &batch,
            TableAccess &tables);

  /// Value of the root at (b, h, q, k); `s` is what Score nodes read.
  Scalar evaluate(double s, const RowPoint &at, int64_t k) {
    if (!started || at.q != row.q || at.h != row.h || at.b != row.b)
      moveTo(at);
    key = k;
    score = s;
    runAll(levels[Element]);
    return slots[rootSlot];
  }

private:
  /// How often an instruction has to run.
  enum Level { PerBatch, PerRequest, PerHead, PerRow, Element, NumLevels };

  struct Inst {
    Op op = Op::Const;
    OpFamily family = OpFamily::Leaf;
    ScalarType type = ScalarType::Bool;
    ScalarType argType = ScalarType::Bool; ///< of operand 0
    uint8_t numArgs = 0;
    int32_t dst = 0;
    int32_t args[kMaxTableRank] = {0, 0, 0, 0};
    int32_t ref = -1;
    int64_t imm = 0;
  };

  struct Loop {
    int32_t bounds[3]; ///< slots of lb, ub, step
    std::vector<int32_t> inits, yields;
    int32_t index = 0;   ///< slot of the induction variable
    int32_t carried = 0; ///< slot of carried value 0; the others follow
    std::vector<Inst> body;
    std::vector<Scalar> next; ///< yields of the iteration, before they become carried values
  };

  void assignSlots(NodeId root);
  Inst makeInst(NodeId id);
  Loop makeLoop(NodeId id);

  void moveTo(const RowPoint &at);
  void enterRow();
  void runAll(const std::vector<Inst> &insts) {
    for (const Inst &inst : insts)
      slots[inst.dst] = run(inst);
  }
  Scalar run(const Inst &inst);
  Scalar runLeaf(const Inst &inst) const;
  Scalar runTable(const Inst &inst);
  Scalar runNamed(const Inst &inst);
  bool runCommon(const Inst &inst, Scalar &result) const;
  bool runMmPrefix(const Inst &inst) const;
  bool runDocument(const Inst &inst) const;
  Scalar runLoop(Loop &loop);

  const MaskProgram &program;
  FloatMode floats;
  TableAccess &tables;

  std::vector<Scalar> slots;
  std::vector<int32_t> slotOf;   ///< [node id]
  std::vector<int32_t> loopSlot; ///< [node id of a For]: its induction variable; carried follow
  std::vector<std::vector<Inst>> levels;
  std::vector<Loop> loops;
  int32_t rootSlot = 0;

  // Of the current row, by table: the live ranges that hold q; q's document.
  std::vector<int32_t> rangeTables, documentTables;
  std::vector<std::vector<Range>> rangesOfRow;
  std::vector<std::optional<int32_t>> documentOfRow;

  bool started = false;
  RowPoint row;
  int64_t key = 0;
  double score = 0;
};

} // namespace attn::core

#endif // ATTN_LIB_CORE_EXACTEVAL_H
