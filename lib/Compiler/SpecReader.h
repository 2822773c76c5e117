// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From the text of a spec to its kernels, with what goes wrong on the way as lines of text.
#ifndef ATTN_LIB_COMPILER_SPECREADER_H
#define ATTN_LIB_COMPILER_SPECREADER_H

#include "attn/Core/Manifest.h"
#include "attn/Dialect/Attn/IR/AttnOps.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/Error.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace attn::compiler {

/// "name:line:col" of the innermost file location, or "<unknown>".
std::string describePlace(mlir::Location loc);

/// Collects errors and their notes as lines; other diagnostics go to `others`, if that is there.
class DiagnosticCollector {
public:
  explicit DiagnosticCollector(mlir::MLIRContext *context,
                               const std::function<void(llvm::StringRef)> &others = nullptr);

  /// What was collected, or `fallback` if that is nothing.
  llvm::Error takeError(const llvm::Twine &fallback);

private:
  void add(mlir::Diagnostic &diagnostic, llvm::StringRef kind);

  std::function<void(llvm::StringRef)> others;
  std::string text;
  mlir::ScopedDiagnosticHandler handler;
};

/// A context of its own, so that compilations on several threads do not meet.
std::unique_ptr<mlir::MLIRContext> makeContext();

/// The module of a spec's text; null after an error. `name` is the buffer's in diagnostics.
mlir::OwningOpRef<mlir::ModuleOp> parseSpec(llvm::StringRef spec, llvm::StringRef name,
                                            mlir::MLIRContext *context);

/// What a kernel says, with its mask program.
mlir::FailureOr<core::KernelSpec> readKernel(KernelOp kernel);

/// Every kernel of the module, in order. A module without one, or with anything else, is an error.
mlir::FailureOr<std::vector<core::KernelSpec>> readModule(mlir::ModuleOp module);

/// The place of what a module says nowhere.
mlir::Location getModuleLoc(mlir::ModuleOp module);

} // namespace attn::compiler

#endif // ATTN_LIB_COMPILER_SPECREADER_H
