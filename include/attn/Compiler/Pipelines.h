// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pipelines of the compiler; the only place that knows the order of passes.
#ifndef ATTN_COMPILER_PIPELINES_H
#define ATTN_COMPILER_PIPELINES_H

namespace mlir {
class OpPassManager;
} // namespace mlir

namespace attn::compiler {

/// attn-mask-passes: raise, simplify, scan to table, fuse, hoist, bounds.
void buildMaskPipeline(mlir::OpPassManager &pm);
/// attn-to-native: kernels to the LLVM dialect for the CPU.
void buildNativePipeline(mlir::OpPassManager &pm);
/// Registers both by name.
void registerPipelines();

} // namespace attn::compiler

#endif // ATTN_COMPILER_PIPELINES_H
