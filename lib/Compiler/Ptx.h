// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_LIB_COMPILER_PTX_H
#define ATTN_LIB_COMPILER_PTX_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>

namespace mlir {
class ModuleOp;
} // namespace mlir

namespace attn::compiler {

/// What PTX is made from, and for.
struct PtxInput {
  llvm::StringRef chip;     ///< "sm_90a"
  llvm::StringRef features; ///< of LLVM's NVPTX code generator: "+ptx86"
  /// Symbols of the kernels in the module; kernel i becomes the entry gpuEntryName(i).
  llvm::ArrayRef<std::string> kernels;
};

/// Name of the entry of the i-th kernel. Only its place decides it, so that the name of a spec's
/// kernel does not reach the PTX.
std::string gpuEntryName(size_t index);

/// PTX of a module in the LLVM dialect (with NVVM operations that translate to LLVM IR). The text
/// depends on nothing but the operations, in their order, and their attributes: no name of the
/// module, of a kernel, a global, a block or a value enters.
llvm::Expected<std::string> emitPtx(mlir::ModuleOp module, const PtxInput &input);

/// LLVM IR of the module after the passes that run before PTX is made, as text.
llvm::Expected<std::string> emitPtxLlvmText(mlir::ModuleOp module, const PtxInput &input);

} // namespace attn::compiler

#endif // ATTN_LIB_COMPILER_PTX_H
