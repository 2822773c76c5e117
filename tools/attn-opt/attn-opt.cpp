// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every pass at every level, textual IR in and out.

#include "attn/Compiler/Compiler.h"
#include "attn/Config.h"
#include "attn/Support/LlvmTool.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

namespace cl = llvm::cl;
using namespace attn;

static cl::opt<std::string> input(cl::Positional, cl::desc("<input file>"), cl::init("-"));
static cl::opt<std::string> output("o", cl::value_desc("filename"), cl::desc("Output filename"),
                                   cl::init("-"));

int main(int argc, char **argv) {
  tool::installFatalErrorHandler("attn-opt");
  cl::AddExtraVersionPrinter(
      [](llvm::raw_ostream &os) { os << "attn-opt " << ATTN_VERSION << "\n"; });
  mlir::DialectRegistry registry;
  compiler::registerAll(registry);
  compiler::registerAllPasses();
  std::string header = mlir::registerCLIOptions(
      std::string("attn-opt: passes over attention kernels (dialect attn)\n\n") +
          tool::kExitStatusHelp,
      registry);
  if (!tool::parseCommandLine(argc, argv, header))
    return tool::kBadInput;
  if (std::string empty = tool::emptyOption({&output}); !empty.empty()) {
    llvm::errs() << "attn-opt: error: " << empty << ": expected a value, got ''\n";
    return tool::kBadInput;
  }
  bool done = mlir::succeeded(mlir::MlirOptMain(argc, argv, input, output, registry));
  return done ? tool::kDone : tool::kBadInput;
}
