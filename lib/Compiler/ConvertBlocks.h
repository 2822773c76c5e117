// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_COMPILER_CONVERTBLOCKS_H
#define ATTN_COMPILER_CONVERTBLOCKS_H

#include <memory>

namespace mlir {
class Pass;
} // namespace mlir

namespace attn::compiler {

/// attn-convert-blocks-to-llvm: functions of arith, math and cf operations to the LLVM dialect.
std::unique_ptr<mlir::Pass> createConvertBlocksPass();

} // namespace attn::compiler

#endif // ATTN_COMPILER_CONVERTBLOCKS_H
