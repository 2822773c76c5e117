// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One attention forward problem: spec, batch and tensors. What the reference and the native path
// both compute.
#ifndef ATTN_CORE_PROBLEM_H
#define ATTN_CORE_PROBLEM_H

#include "attn/Core/Batch.h"
#include "attn/Core/Manifest.h"
#include "attn/Core/Tensor.h"

namespace attn::core {

struct Problem {
  const KernelSpec *spec = nullptr;
  const Batch *batch = nullptr;
  RowsView q; ///< [tokens, heads, dim_qk], spec->qType
  KvView k;   ///< spec->kvType
  KvView v;
  KvLayout kv;

  /// Scale of q.k for this batch.
  double scale() const {
    return spec->scaleParam >= 0 ? batch->params[spec->scaleParam].f : spec->scale;
  }
};

} // namespace attn::core

#endif // ATTN_CORE_PROBLEM_H
