// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_LIB_COMPILER_RECIPES_H
#define ATTN_LIB_COMPILER_RECIPES_H

#include "attn/Compiler/Compiler.h"
#include "attn/Dialect/Attn/IR/AttnOps.h"

#include "llvm/Support/LogicalResult.h"

namespace attn::compiler {

/// Adds the recipes of a kernel's code for a GPU, whose tables are known; an error at the kernel
/// where it does not have what one is built from.
llvm::LogicalResult addRecipes(KernelOp kernel, llvm::ArrayRef<RecipeRequest> requests,
                               core::KernelBinary &binary);

} // namespace attn::compiler

#endif // ATTN_LIB_COMPILER_RECIPES_H
