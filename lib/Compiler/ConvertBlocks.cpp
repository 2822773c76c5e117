// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Functions of blocks to the LLVM dialect in one conversion. One pass for each dialect walks all of
// a module as often as there are dialects: measured, a third of the time that small kernels take.

#include "ConvertBlocks.h"

#include "mlir/Analysis/DataLayoutAnalysis.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MathToLibm/MathToLibm.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Transforms/DialectConversion.h"

using namespace mlir;

namespace {

struct ConvertBlocks : PassWrapper<ConvertBlocks, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ConvertBlocks)

  StringRef getArgument() const override { return "attn-convert-blocks-to-llvm"; }
  StringRef getDescription() const override {
    return "functions of arith, math and cf operations to the LLVM dialect";
  }

  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<LLVM::LLVMDialect, func::FuncDialect>();
  }

  void runOnOperation() override {
    MLIRContext *context = &getContext();
    LLVMTypeConverter converter(context, &getAnalysis<DataLayoutAnalysis>());
    RewritePatternSet patterns(context);
    // A function of libm where there is one, else what LLVM has.
    populateMathToLibmConversionPatterns(patterns, /*benefit=*/2);
    populateMathToLLVMConversionPatterns(converter, patterns);
    arith::populateArithToLLVMConversionPatterns(converter, patterns);
    cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
    populateFuncToLLVMConversionPatterns(converter, patterns);
    LLVMConversionTarget target(*context);
    target.addLegalOp<ModuleOp>();
    if (failed(applyFullConversion(getOperation(), target, std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace

std::unique_ptr<Pass> attn::compiler::createConvertBlocksPass() {
  return std::make_unique<ConvertBlocks>();
}
