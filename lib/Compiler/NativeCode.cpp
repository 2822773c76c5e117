// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From the LLVM dialect to a relocatable x86-64 object, in process.

#include "NativeCode.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Target/TargetOptions.h"

#include <mutex>

using namespace attn;

llvm::StringRef compiler::getNativeFormat() { return "elf-x86-64"; }

static llvm::Expected<std::unique_ptr<llvm::TargetMachine>> createMachine(unsigned optLevel) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
  });
  llvm::Triple triple("x86_64-unknown-linux-gnu");
  std::string error;
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return llvm::createStringError("this LLVM has no x86-64 code generator: " + error);
  auto level = llvm::CodeGenOpt::getLevel(static_cast<int>(optLevel));
  // The baseline processor: an artifact runs on any x86-64.
  std::unique_ptr<llvm::TargetMachine> machine(target->createTargetMachine(
      triple, "x86-64", "", llvm::TargetOptions(), llvm::Reloc::PIC_, llvm::CodeModel::Small,
      level.value_or(llvm::CodeGenOptLevel::Aggressive)));
  if (!machine)
    return llvm::createStringError("this LLVM cannot make code for x86-64");
  return machine;
}

static void optimize(llvm::Module &module, llvm::TargetMachine &machine, unsigned optLevel) {
  if (optLevel == 0)
    return;
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
  llvm::OptimizationLevel level = optLevel == 1   ? llvm::OptimizationLevel::O1
                                  : optLevel == 2 ? llvm::OptimizationLevel::O2
                                                  : llvm::OptimizationLevel::O3;
  builder.buildPerModuleDefaultPipeline(level).run(module, modules);
}

/// Translates and optimises; the context outlives the module.
static llvm::Expected<std::unique_ptr<llvm::Module>> translate(mlir::ModuleOp module,
                                                               llvm::LLVMContext &context,
                                                               llvm::TargetMachine &machine,
                                                               unsigned optLevel) {
  std::unique_ptr<llvm::Module> ir = mlir::translateModuleToLLVMIR(module, context, "attn");
  if (!ir)
    return llvm::createStringError("translation to LLVM IR failed");
  ir->setDataLayout(machine.createDataLayout());
  ir->setTargetTriple(machine.getTargetTriple());
  for (llvm::Function &function : *ir)
    function.setDoesNotThrow();
  optimize(*ir, machine, optLevel);
  return ir;
}

void compiler::addConstant(mlir::ModuleOp module, llvm::StringRef symbol, llvm::StringRef bytes) {
  auto builder = mlir::OpBuilder::atBlockEnd(module.getBody());
  auto type = mlir::LLVM::LLVMArrayType::get(builder.getI8Type(), bytes.size());
  mlir::LLVM::GlobalOp::create(builder, module.getLoc(), type, /*isConstant=*/true,
                               mlir::LLVM::Linkage::External, symbol, builder.getStringAttr(bytes),
                               /*alignment=*/1);
}

llvm::Expected<std::vector<uint8_t>> compiler::emitNativeObject(mlir::ModuleOp module,
                                                                unsigned optLevel) {
  auto machine = createMachine(optLevel);
  if (!machine)
    return machine.takeError();
  llvm::LLVMContext context;
  auto ir = translate(module, context, **machine, optLevel);
  if (!ir)
    return ir.takeError();
  llvm::SmallVector<char, 0> buffer;
  llvm::raw_svector_ostream stream(buffer);
  llvm::legacy::PassManager passes;
  if ((*machine)->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::ObjectFile))
    return llvm::createStringError("this LLVM cannot write x86-64 objects");
  passes.run(**ir);
  return std::vector<uint8_t>(buffer.begin(), buffer.end());
}

llvm::Expected<std::string> compiler::emitLlvmText(mlir::ModuleOp module, unsigned optLevel) {
  auto machine = createMachine(optLevel);
  if (!machine)
    return machine.takeError();
  llvm::LLVMContext context;
  auto ir = translate(module, context, **machine, optLevel);
  if (!ir)
    return ir.takeError();
  std::string text;
  llvm::raw_string_ostream stream(text);
  (*ir)->print(stream, nullptr);
  return text;
}
