// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From the LLVM dialect to PTX text, in process.

#include "Ptx.h"

#include "PtxCheck.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/DiagnosticHandler.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Target/TargetOptions.h"

#include <mutex>

using namespace attn;
using compiler::PtxInput;

std::string compiler::gpuEntryName(size_t index) {
  return index == 0 ? "attn_forward" : "attn_forward_" + std::to_string(index);
}

namespace {

/// Collects LLVM's errors; without it they end the process.
class ErrorCollector : public llvm::DiagnosticHandler {
public:
  explicit ErrorCollector(std::string &text) : text(text) {}

  bool handleDiagnostics(const llvm::DiagnosticInfo &info) override {
    if (info.getSeverity() != llvm::DS_Error)
      return true;
    if (!text.empty())
      text += '\n';
    llvm::raw_string_ostream stream(text);
    llvm::DiagnosticPrinterRawOStream printer(stream);
    info.print(printer);
    return true;
  }

private:
  std::string &text;
};

/// One translation: LLVM's context, what it complained about, and the module.
struct Translation {
  std::string errors;
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module;

  Translation() {
    context.setDiagnosticHandler(std::make_unique<ErrorCollector>(errors));
    // Names of values would only cost time.
    context.setDiscardValueNames(true);
  }
};

} // namespace

static llvm::Expected<std::unique_ptr<llvm::TargetMachine>> createMachine(const PtxInput &input) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
  llvm::Triple triple("nvptx64-nvidia-cuda");
  std::string error;
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return llvm::createStringError("this LLVM has no NVPTX code generator: " + error);
  // An unknown chip or feature only gets a line on standard error and is then replaced or ignored.
  std::unique_ptr<llvm::MCSubtargetInfo> known(target->createMCSubtargetInfo(triple, "", ""));
  if (!known || !known->isCPUStringValid(input.chip))
    return llvm::createStringError("this LLVM has no chip '" + input.chip + "'");
  llvm::StringRef feature = input.features;
  auto isFeature = [&](const llvm::SubtargetFeatureKV &row) { return feature == row.Key; };
  if (!feature.consume_front("+") || llvm::none_of(known->getAllProcessorFeatures(), isFeature))
    return llvm::createStringError("this LLVM has no feature '" + input.features + "'");
  std::unique_ptr<llvm::TargetMachine> machine(
      target->createTargetMachine(triple, input.chip, input.features, llvm::TargetOptions(),
                                  std::nullopt, std::nullopt, llvm::CodeGenOptLevel::Aggressive));
  if (!machine)
    return llvm::createStringError("this LLVM cannot make code for " + input.chip);
  return machine;
}

/// Gives kernels and globals names that only their place decides.
static llvm::Error rename(llvm::Module &module, llvm::ArrayRef<std::string> kernels) {
  llvm::SmallVector<llvm::Function *> functions;
  for (const std::string &name : kernels) {
    functions.push_back(module.getFunction(name));
    if (!functions.back() || functions.back()->isDeclaration())
      return llvm::createStringError("no kernel '" + name + "' came out of the lowering");
  }
  // All old names go first: one of them may be another's new one.
  for (llvm::Function &function : module)
    if (!function.isIntrinsic() && !function.isDeclaration())
      function.setName("");
  for (auto [i, function] : llvm::enumerate(functions))
    function->setName(compiler::gpuEntryName(i));
  for (llvm::GlobalVariable &global : module.globals())
    global.setName("");
  for (auto [i, global] : llvm::enumerate(module.globals()))
    global.setName("attn_data_" + llvm::Twine(i));
  return llvm::Error::success();
}

/// Cleans up what is local to a block or needs no change of the control flow; the schedule is fixed
/// before. The default pipelines peel and rotate the loop over keys, which costs registers: spills.
/// None of these passes moves or copies an operation of the matrix unit across another.
static void cleanUp(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graph;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graph);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graph, modules);
  llvm::ModulePassManager passes;
  llvm::cantFail(builder.parsePassPipeline(
      passes, "function(early-cse,instcombine<no-verify-fixpoint>,simplifycfg,gvn,dce)"));
  passes.run(module, modules);
}

static llvm::Error translate(mlir::ModuleOp module, const PtxInput &input,
                             llvm::TargetMachine &machine, Translation &result) {
  result.module = mlir::translateModuleToLLVMIR(module, result.context, "attn");
  if (!result.module)
    return llvm::createStringError("translation to LLVM IR failed");
  result.module->setDataLayout(machine.createDataLayout());
  result.module->setTargetTriple(machine.getTargetTriple());
  if (llvm::Error error = rename(*result.module, input.kernels))
    return error;
  cleanUp(*result.module, machine);
  return llvm::Error::success();
}

llvm::Expected<std::string> compiler::emitPtx(mlir::ModuleOp module, const PtxInput &input) {
  auto machine = createMachine(input);
  if (!machine)
    return machine.takeError();
  Translation translation;
  if (llvm::Error error = translate(module, input, **machine, translation))
    return error;
  if (llvm::Error error = checkPtxSelectable(*translation.module))
    return error;
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager passes;
  if ((*machine)->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::AssemblyFile))
    return llvm::createStringError("this LLVM cannot write PTX");
  passes.run(*translation.module);
  if (!translation.errors.empty())
    return llvm::createStringError(translation.errors);
  return text.str().str();
}

llvm::Expected<std::string> compiler::emitPtxLlvmText(mlir::ModuleOp module,
                                                      const PtxInput &input) {
  auto machine = createMachine(input);
  if (!machine)
    return machine.takeError();
  Translation translation;
  if (llvm::Error error = translate(module, input, **machine, translation))
    return error;
  std::string text;
  llvm::raw_string_ostream stream(text);
  translation.module->print(stream, nullptr);
  return text;
}
