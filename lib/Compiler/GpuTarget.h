// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_LIB_COMPILER_GPUTARGET_H
#define ATTN_LIB_COMPILER_GPUTARGET_H

#include "attn/Compiler/Compiler.h"
#include "attn/Conversion/AttnToTile/TargetInfo.h"

#include "llvm/Support/LogicalResult.h"

namespace attn::compiler {

/// Compiles the kernels of a module after the mask passes, which are lost. `binaries` says of each
/// kernel what does not depend on its code; kernel i of the artifact gets a "cubin" binary if there
/// is a ptxas, then a "ptx" one. `shape` is that of buildTilePipeline.
llvm::LogicalResult compileGpu(mlir::ModuleOp module, const TargetInfo &target,
                               llvm::ArrayRef<core::KernelBinary> binaries,
                               const CompileOptions &options, core::Artifact &artifact,
                               llvm::StringRef shape = "");

/// The same up to `stage`, any but Attn; as text, or the bytes of a cubin.
llvm::FailureOr<std::string> emitGpuStage(mlir::ModuleOp module, const TargetInfo &target,
                                          Stage stage, const CompileOptions &options);

} // namespace attn::compiler

#endif // ATTN_LIB_COMPILER_GPUTARGET_H
