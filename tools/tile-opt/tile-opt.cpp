// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Passes over GPU kernels, textual IR in and out. Knows nothing of the attn dialect: what it reads
// cannot depend on it.

#include "attn/Config.h"
#include "attn/Conversion/TileToNvvm/TileToNvvm.h"
#include "attn/Support/LlvmTool.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

namespace cl = llvm::cl;
using namespace attn;

static cl::opt<std::string> input(cl::Positional, cl::desc("<input file>"), cl::init("-"));
static cl::opt<std::string> output("o", cl::value_desc("filename"), cl::desc("Output filename"),
                                   cl::init("-"));

int main(int argc, char **argv) {
  tool::installFatalErrorHandler("tile-opt");
  cl::AddExtraVersionPrinter(
      [](llvm::raw_ostream &os) { os << "tile-opt " << ATTN_VERSION << "\n"; });
  mlir::DialectRegistry registry;
  registry.insert<tile::TileDialect, mlir::arith::ArithDialect, mlir::math::MathDialect,
                  mlir::scf::SCFDialect, mlir::LLVM::LLVMDialect, mlir::NVVM::NVVMDialect>();
  mlir::registerPass([] { return createConvertTileToNvvmPass(); });
  mlir::registerCanonicalizerPass();
  mlir::registerCSEPass();
  std::string header = mlir::registerCLIOptions(
      std::string("tile-opt: passes over GPU kernels (dialect tile)\n\n") + tool::kExitStatusHelp,
      registry);
  if (!tool::parseCommandLine(argc, argv, header))
    return tool::kBadInput;
  if (std::string empty = tool::emptyOption({&output}); !empty.empty()) {
    llvm::errs() << "tile-opt: error: " << empty << ": expected a value, got ''\n";
    return tool::kBadInput;
  }
  bool done = mlir::succeeded(mlir::MlirOptMain(argc, argv, input, output, registry));
  return done ? tool::kDone : tool::kBadInput;
}
