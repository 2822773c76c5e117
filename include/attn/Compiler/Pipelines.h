// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pipelines of the compiler; the only place that knows the order of passes.
#ifndef ATTN_COMPILER_PIPELINES_H
#define ATTN_COMPILER_PIPELINES_H

#include "attn/Compiler/Compiler.h"

#include "llvm/ADT/StringRef.h"

namespace mlir {
class OpPassManager;
} // namespace mlir

namespace attn {
struct TvCheckPassOptions;
} // namespace attn

namespace attn::compiler {

/// attn-mask-passes: raise, simplify, scan to table, fuse, hoist, bounds. With `proofs` each is
/// checked by attn-tv-check.
void buildMaskPipeline(mlir::OpPassManager &pm, const TvCheckPassOptions *proofs = nullptr);
/// attn-to-native: kernels to the LLVM dialect for the CPU.
void buildNativePipeline(mlir::OpPassManager &pm);
/// Kernels to the tile dialect for a GPU target, by the options for GPU code; `shape` empty or one
/// of attn::getTileShapes(). From there on it is attn::buildTileToNvvmPipeline.
void buildTilePipeline(mlir::OpPassManager &pm, llvm::StringRef target,
                       const CompileOptions &options, llvm::StringRef shape = "");
/// Registers both by name.
void registerPipelines();

} // namespace attn::compiler

#endif // ATTN_COMPILER_PIPELINES_H
