// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Element-wise code of mask, score and per regions, for any target.
#ifndef ATTN_CONVERSION_REGIONS_REGIONEMITTER_H
#define ATTN_CONVERSION_REGIONS_REGIONEMITTER_H

#include "attn/Dialect/Attn/IR/AttnOps.h"
#include "attn/Dialect/Attn/IR/ElementContext.h"

#include "mlir/IR/Builders.h"

namespace attn {

/// Emits the operations of a region at the builder's place. Poison and undefined behaviour of the
/// source's scalar operations become the defined results of SPEC.md section 1 (division by zero,
/// overlong shifts, out-of-range conversions); overflow and fast-math flags are dropped.
class RegionEmitter {
public:
  explicit RegionEmitter(ElementContext &context) : context(context) {}

  /// The operations that stand in the kernel's body itself.
  void emitKernelValues(mlir::OpBuilder &builder, KernelOp kernel);
  /// The attn.per regions of `level`, at the context's current indices.
  void emitPer(mlir::OpBuilder &builder, KernelOp kernel, Level level);
  /// A region at the context's current indices; `score` is a score region's argument.
  void emitRegion(mlir::OpBuilder &builder, mlir::Region &region, mlir::Value score = {});
  /// Maps a region's arguments to the context's current indices, as emitRegion() does first.
  void bindArguments(mlir::Region &region, mlir::Value score = {});
  /// Value `i` that the region emitted last with emitRegion() yields.
  mlir::Value yielded(mlir::Region &region, unsigned i) const;
  /// The factor of q.k (f32): a parameter or a literal.
  mlir::Value emitScale(mlir::OpBuilder &builder, KernelOp kernel) const;
  void emitOp(mlir::OpBuilder &builder, mlir::Operation &op);

private:
  /// Every operation but the terminator; results are found in the context.
  void emitBlock(mlir::OpBuilder &builder, mlir::Block &block);
  mlir::Value emitGuarded(mlir::OpBuilder &builder, mlir::Operation &op);
  void emitLoop(mlir::OpBuilder &builder, mlir::Operation &op);

  ElementContext &context;
};

} // namespace attn

#endif // ATTN_CONVERSION_REGIONS_REGIONEMITTER_H
