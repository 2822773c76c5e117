// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_CONVERSION_PASSES_TD
#define ATTN_CONVERSION_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertAttnToLoopsPass : Pass<"convert-attn-to-loops", "::mlir::ModuleOp"> {
  let summary = "Lower kernels to loops on the CPU";
  let description = [{
    Each `attn.kernel @f` becomes two functions of the native calling convention (one pointer to the
    argument block of attn/Core/NativeAbi.h): `@attn.forward.f` computes O and LSE,
    `@attn.mask.f` writes the dense mask. Accepts kernels at any stage of the mask passes.

    Needs: a module of kernels. Promises: no `attn` operation is left; one pass over keys with a
    running maximum, f32 arithmetic; masked keys are never read.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect",
                           "::mlir::math::MathDialect", "::mlir::scf::SCFDialect"];
}

#endif // ATTN_CONVERSION_PASSES_TD
