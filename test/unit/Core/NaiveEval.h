// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A second evaluator of mask programs, written from the comments of MaskProgram.h only: it walks
// the expression from the root at every call, remembers nothing, and computes integers in 128 bits.
#ifndef ATTN_TEST_UNIT_CORE_NAIVEEVAL_H
#define ATTN_TEST_UNIT_CORE_NAIVEEVAL_H

#include "attn/Core/Batch.h"

#include <map>

namespace attn::test {

/// A binary operation of integers of `type`, in 128 bits; Bool as 0 or 1.
int64_t naiveInteger(core::Op op, core::ScalarType type, int64_t a, int64_t c);

class NaiveEval {
public:
  NaiveEval(const core::MaskProgram &program, const core::Batch &batch, int64_t b, int64_t h,
            int64_t q, int64_t k)
      : program(program), batch(batch), b(b), h(h), q(q), k(k) {}

  /// Signed value of an integer node; 0 or 1 for Bool.
  int64_t integer(core::NodeId id);
  double number(core::NodeId id);

private:
  struct Value {
    int64_t i = 0;
    double f = 0;
  };
  Value value(core::NodeId id);
  Value loopResult(core::NodeId loop, size_t carried);
  bool named(const core::Node &node);
  Value load(const core::Node &node);
  core::Range row(const core::Node &node);
  std::vector<core::Range> rangesOf(int32_t table) const;

  const core::MaskProgram &program;
  const core::Batch &batch;
  int64_t b, h, q, k;
  struct Iteration {
    int64_t index = 0;
    std::vector<Value> carried;
  };
  std::map<core::NodeId, Iteration> loops; ///< those that are running
};

} // namespace attn::test

#endif // ATTN_TEST_UNIT_CORE_NAIVEEVAL_H
