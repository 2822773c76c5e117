// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An opt tool outside the project's tree: the attn dialect and passes from an installed package.
#include "attn/Compiler/Compiler.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  attn::compiler::registerAll(registry);
  attn::compiler::registerAllPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "mask optimizer\n", registry));
}
