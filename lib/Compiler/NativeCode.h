// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_LIB_COMPILER_NATIVECODE_H
#define ATTN_LIB_COMPILER_NATIVECODE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <vector>

namespace mlir {
class ModuleOp;
} // namespace mlir

namespace attn::compiler {

/// Name of the machine that native code is made for, as KernelBinary::format.
llvm::StringRef getNativeFormat();

/// Adds read-only bytes that the object offers by name to an LLVM-dialect module.
void addConstant(mlir::ModuleOp module, llvm::StringRef symbol, llvm::StringRef bytes);

/// Machine code of an LLVM-dialect module as a relocatable object for any x86-64.
llvm::Expected<std::vector<uint8_t>> emitNativeObject(mlir::ModuleOp module, unsigned optLevel);

/// LLVM IR of the module after optimisation, as text.
llvm::Expected<std::string> emitLlvmText(mlir::ModuleOp module, unsigned optLevel);

} // namespace attn::compiler

#endif // ATTN_LIB_COMPILER_NATIVECODE_H
