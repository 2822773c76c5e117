// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every pass at every level, textual IR in and out.

#include "attn/Compiler/Compiler.h"
#include "attn/Config.h"
#include "attn/Support/LlvmTool.h"
#include "attn/Verify/Passes.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ToolOutputFile.h"

namespace cl = llvm::cl;
using namespace attn;

static cl::opt<std::string> input(cl::Positional, cl::desc("<input file>"), cl::init("-"));
static cl::opt<std::string> output("o", cl::value_desc("filename"), cl::desc("Output filename"),
                                   cl::init("-"));

static cl::opt<std::string> verifyRewrites(
    "attn-verify-rewrites", cl::ValueOptional, cl::value_desc("strict"),
    cl::desc("Prove with a solver that each pass over attn.kernel keeps masks; 'strict': what is "
             "not proved is an error"));
static cl::list<std::string>
    proveEqual("attn-prove-equal", cl::CommaSeparated, cl::value_desc("@a,@b"),
               cl::desc("Prove that these kernels have the same mask for every batch"));
static cl::opt<std::string>
    solver("solver", cl::value_desc("program"),
           cl::desc("Reads SMT-LIB on standard input (default: z3 of PATH, else attn-smt)"));
static cl::opt<unsigned> solverTimeout("solver-timeout", cl::value_desc("seconds"), cl::init(10),
                                       cl::desc("Limit of each run of the solver (default 10)"));
static cl::opt<std::string> dumpSmt("dump-smt", cl::value_desc("folder"),
                                    cl::desc("Keep each question as an SMT-LIB file"));

/// Options of the solver as passes take them: paths in quotes.
static std::string solverOptions() {
  std::string text = "timeout=" + std::to_string(solverTimeout);
  if (!solver.empty())
    text += " solver=\"" + solver + "\"";
  if (!dumpSmt.empty())
    text += " dump-smt=\"" + dumpSmt + "\"";
  return text;
}

/// The pipeline of the command line with what the options above add to it.
static llvm::LogicalResult addProofs(const mlir::MlirOptMainConfig &config, mlir::PassManager &pm) {
  if (!verifyRewrites.getNumOccurrences()) {
    if (failed(config.setupPassPipeline(pm)))
      return llvm::failure();
  } else {
    mlir::PassManager plain(pm.getContext(), pm.getOpAnchorName(), pm.getNesting());
    if (failed(config.setupPassPipeline(plain)))
      return llvm::failure();
    llvm::SmallVector<std::string> passes;
    for (mlir::Pass &pass : plain.getPasses()) {
      llvm::raw_string_ostream stream(passes.emplace_back());
      pass.printAsTextualPipeline(stream);
    }
    std::string options = solverOptions() + (verifyRewrites == "strict" ? " strict" : "");
    std::string text = attn::proofs::addChecks(llvm::join(passes, ","), options);
    if (failed(mlir::parsePassPipeline(text, pm)))
      return llvm::failure();
  }
  if (proveEqual.empty())
    return llvm::success();
  return mlir::parsePassPipeline("attn-tv-prove-equal{" + solverOptions() +
                                     " kernels=" + llvm::join(proveEqual, ",") + "}",
                                 pm);
}

static llvm::LogicalResult runMain(int argc, char **argv, mlir::DialectRegistry &registry) {
  auto config = mlir::MlirOptMainConfig::createFromCLOptions();
  bool hasProofs = verifyRewrites.getNumOccurrences() || !proveEqual.empty();
  if (!hasProofs)
    return mlir::MlirOptMain(argc, argv, input, output, registry);
  auto plain = config;
  config.setPassPipelineSetupFn([plain](mlir::PassManager &pm) { return addProofs(plain, pm); });
  std::string why;
  auto buffer = mlir::openInputFile(input, &why);
  auto file = buffer ? mlir::openOutputFile(output, &why) : nullptr;
  if (!file) {
    llvm::errs() << why << "\n";
    return llvm::failure();
  }
  if (failed(mlir::MlirOptMain(file->os(), std::move(buffer), registry, config)))
    return llvm::failure();
  file->keep();
  return llvm::success();
}

/// Why the options above make no sense, or nothing.
static std::string checkOptions() {
  if (verifyRewrites.getNumOccurrences() && !verifyRewrites.empty() && verifyRewrites != "strict")
    return "--attn-verify-rewrites: expected no value or strict, got '" + verifyRewrites + "'";
  for (const std::string &name : proveEqual) {
    llvm::StringRef symbol = name;
    if (!symbol.consume_front("@") || symbol.empty())
      return "--attn-prove-equal: expected @name,@name,..., got '" + llvm::join(proveEqual, ",") +
             "'";
    if (llvm::count(proveEqual, name) > 1)
      return "--attn-prove-equal: kernel " + name + " is to be compared with itself";
  }
  if (proveEqual.getNumOccurrences() && proveEqual.size() < 2)
    return "--attn-prove-equal: expected two kernels or more, got " +
           std::to_string(proveEqual.size());
  for (const cl::opt<std::string> *path : {&solver, &dumpSmt})
    if (llvm::StringRef(*path).contains('"'))
      return "--" + path->ArgStr.str() + ": a path with '\"' cannot be handed on";
  if (!solverTimeout)
    return "--solver-timeout: expected at least 1 second, got 0";
  for (const cl::Option *option :
       std::initializer_list<const cl::Option *>{&solver, &solverTimeout, &dumpSmt})
    if (option->getNumOccurrences() && !verifyRewrites.getNumOccurrences() && proveEqual.empty())
      return "--" + option->ArgStr.str() +
             " has no meaning without --attn-verify-rewrites or --attn-prove-equal";
  return "";
}

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
  std::string empty = tool::emptyOption({&output, &solver, &dumpSmt});
  std::string why = empty.empty() ? checkOptions() : empty + ": expected a value, got ''";
  if (!why.empty()) {
    llvm::errs() << "attn-opt: error: " << why << "\n";
    return tool::kBadInput;
  }
  return mlir::succeeded(runMain(argc, argv, registry)) ? tool::kDone : tool::kBadInput;
}
