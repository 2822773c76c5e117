// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Element-wise code of mask, score and per regions, for any target.
#ifndef ATTN_CONVERSION_REGIONS_REGIONEMITTER_H
#define ATTN_CONVERSION_REGIONS_REGIONEMITTER_H

#include "attn/Dialect/Attn/IR/ElementContext.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/Operation.h"

namespace attn {

/// Emits the operations of a region at the builder's place. Poison and undefined behaviour of the
/// source's scalar operations become the defined results of SPEC.md section 1 (division by zero,
/// overlong shifts, out-of-range conversions); overflow and fast-math flags are dropped.
class RegionEmitter {
public:
  explicit RegionEmitter(ElementContext &context) : context(context) {}

  /// Emits every operation of `block` but its terminator; results are found in the context.
  void emitBlock(mlir::OpBuilder &builder, mlir::Block &block);
  void emitOp(mlir::OpBuilder &builder, mlir::Operation &op);

private:
  mlir::Value emitGuarded(mlir::OpBuilder &builder, mlir::Operation &op);
  void emitLoop(mlir::OpBuilder &builder, mlir::Operation &op);

  ElementContext &context;
};

} // namespace attn

#endif // ATTN_CONVERSION_REGIONS_REGIONEMITTER_H
