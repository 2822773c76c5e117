// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Passes attn -> attn. Contracts: dialect/attn/Transforms/Passes.td.
#ifndef ATTN_DIALECT_ATTN_TRANSFORMS_PASSES_H
#define ATTN_DIALECT_ATTN_TRANSFORMS_PASSES_H

#include "attn/Dialect/Attn/IR/AttnOps.h"

#include "mlir/Pass/Pass.h"

namespace attn {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "attn/Transforms/Passes.h.inc"

} // namespace attn

#endif // ATTN_DIALECT_ATTN_TRANSFORMS_PASSES_H
