// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Dialects, interfaces and passes of the compiler, each because a pipeline or a spec needs it.

#include "ConvertBlocks.h"

#include "attn/Compiler/Compiler.h"
#include "attn/Compiler/Pipelines.h"
#include "attn/Conversion/AttnToLoops/AttnToLoops.h"
#include "attn/Dialect/Attn/IR/AttnOps.h"
#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "attn/Dialect/Tile/IR/TileOps.h"
#include "attn/Verify/Passes.h"

#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SMT/IR/SMTDialect.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

void attn::compiler::registerAll(DialectRegistry &registry) {
  registry.insert<AttnDialect>();
  // What a spec's regions are written in.
  registry.insert<arith::ArithDialect, math::MathDialect, scf::SCFDialect>();
  // What the native route lowers through.
  registry.insert<cf::ControlFlowDialect, func::FuncDialect, LLVM::LLVMDialect>();
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  // What GPU kernels become.
  registry.insert<tile::TileDialect, NVVM::NVVMDialect>();
  registerNVVMDialectTranslation(registry);
  // What proofs are written in.
  registry.insert<smt::SMTDialect>();
}

void attn::compiler::registerAllPasses() {
  registerAttnTransformsPasses();
  registerAttnConversionPasses();
  registerAttnVerifyPasses();
  registerPipelines();
  // What the native pipeline uses, and the clean-ups people run by hand.
  registerCanonicalizerPass();
  registerCSEPass();
  registerPass([] { return createSCFToControlFlowPass(); });
  registerPass([] { return createConvertBlocksPass(); });
}
