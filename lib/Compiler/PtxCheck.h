// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_LIB_COMPILER_PTXCHECK_H
#define ATTN_LIB_COMPILER_PTXCHECK_H

#include "llvm/Support/Error.h"

namespace llvm {
class Module;
} // namespace llvm

namespace attn::compiler {

/// Whether the NVPTX code generator has code for everything in `module`. It ends the process where
/// it has none, so what it cannot do is refused here.
llvm::Error checkPtxSelectable(const llvm::Module &module);

} // namespace attn::compiler

#endif // ATTN_LIB_COMPILER_PTXCHECK_H
