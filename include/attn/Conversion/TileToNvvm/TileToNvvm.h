// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// tile.kernel to functions of the LLVM and NVVM dialects for Hopper (sm_90a, PTX ISA 8.6).
#ifndef ATTN_CONVERSION_TILETONVVM_TILETONVVM_H
#define ATTN_CONVERSION_TILETONVVM_TILETONVVM_H

#include "attn/Conversion/Passes.h"
#include "attn/Dialect/Tile/IR/TileOps.h"

namespace mlir {
class OpPassManager;
} // namespace mlir

namespace attn {

/// What a launch of a kernel must ask for.
struct KernelResources {
  int64_t sharedBytes; ///< dynamic shared memory of a CTA
  int64_t threads;     ///< of a CTA
};
KernelResources getKernelResources(tile::KernelOp kernel);

/// Shared memory that a CTA can have (CUDA C++ Programming Guide, compute capability 9.0: 227 KB).
constexpr int64_t kMaxSharedBytes = 232448;

/// Lowers the tile kernels of a module to what translates to LLVM IR: only operations of the LLVM
/// and NVVM dialects are left of them.
void buildTileToNvvmPipeline(mlir::OpPassManager &pm);

} // namespace attn

#endif // ATTN_CONVERSION_TILETONVVM_TILETONVVM_H
