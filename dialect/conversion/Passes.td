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

def ConvertAttnToTilePass : Pass<"convert-attn-to-tile", "::mlir::ModuleOp"> {
  let summary = "Lower kernels to GPU schedules in the tile dialect";
  let description = [{
    Each `attn.kernel @f` becomes a `tile.kernel @attn.forward.f` for one GPU target. Masks that the
    mask passes fused into at most four intervals a row (a union of `attn.in_rows` whose bounds are
    row values) become bit masks; any other mask is evaluated per element in partial blocks.

    Needs: a module of kernels the target supports (16-bit q and kv of one type, dim_v = dim, a head
    dimension of the tile table), else an error at the kernel. Promises: no `attn` operation is left;
    mask code only in partial blocks.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect",
                           "::mlir::math::MathDialect", "::mlir::NVVM::NVVMDialect",
                           "::mlir::scf::SCFDialect", "::attn::tile::TileDialect"];
  let options = [
    Option<"target", "target", "std::string", "\"sm_90a\"", "GPU target">,
    Option<"countTiles", "count-tiles", "bool", "false", "count visited tiles into TileCounters">,
    Option<"shape", "shape", "std::string", "\"\"",
           "row groups and keys of a block, as 2x128 or 2x128-turns (default: the target's table)">,
    Option<"rescaleSlack", "rescale-slack", "int64_t", "-1",
           "multiply O only where the maximum of a row of the warp rose by more than 2^slack, 0 to 8 "
           "(default: the target's table)">
  ];
}

def ConvertTileToNvvmPass : Pass<"convert-tile-to-nvvm", "::mlir::ModuleOp"> {
  let summary = "Lower tile kernels to the LLVM and NVVM dialects";
  let description = [{
    Each `tile.kernel` becomes one `llvm.func` with the attributes of a kernel of Hopper (sm_90a): the
    fragments in registers, rings, barriers and scratch in dynamic shared memory, products as inline
    PTX. Its scalar operations (`arith`, `math`, `scf`, `llvm`) are lowered in the same walk.
    `tile.shared_bytes` and `tile.threads` of the function say what a launch must ask for.

    Needs: LLVM-dialect types wherever a value is carried by control flow. Promises: only operations
    of the LLVM and NVVM dialects are left of the kernels; f32 arithmetic stays as written, without
    contraction; what an operation has no lowering for is an error at that operation.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect"];
}

#endif // ATTN_CONVERSION_PASSES_TD
