// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every pass at every level, textual IR in and out.

#include "attn/Compiler/Compiler.h"
#include "attn/Config.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"

int main(int argc, char **argv) {
  llvm::cl::AddExtraVersionPrinter(
      [](llvm::raw_ostream &os) { os << "attn-opt " << ATTN_VERSION << "\n"; });
  mlir::DialectRegistry registry;
  attn::compiler::registerAll(registry);
  attn::compiler::registerAllPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(
      argc, argv, "attn-opt: passes over attention kernels (dialect attn)\n", registry));
}
