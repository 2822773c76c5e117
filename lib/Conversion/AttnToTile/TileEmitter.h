// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Scalar arithmetic and memory at the builder's place, and the argument block of a GPU kernel.
#ifndef ATTN_LIB_CONVERSION_ATTNTOTILE_TILEEMITTER_H
#define ATTN_LIB_CONVERSION_ATTNTOTILE_TILEEMITTER_H

#include "attn/Core/CudaAbi.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"

namespace attn {

class TileEmitter {
public:
  TileEmitter(mlir::OpBuilder &builder, mlir::Location loc) : builder(builder), loc(loc) {}

  mlir::Value i32(int64_t value);
  mlir::Value i64(int64_t value);
  mlir::Value index(int64_t value);
  mlir::Value f32(double value);
  mlir::Value add(mlir::Value a, mlir::Value b);
  mlir::Value sub(mlir::Value a, mlir::Value b);
  mlir::Value mul(mlir::Value a, mlir::Value b);
  /// Non-negative integers.
  mlir::Value div(mlir::Value a, mlir::Value b);
  mlir::Value rem(mlir::Value a, mlir::Value b);
  mlir::Value min(mlir::Value a, mlir::Value b);
  mlir::Value max(mlir::Value a, mlir::Value b);
  mlir::Value both(mlir::Value a, mlir::Value b);
  mlir::Value either(mlir::Value a, mlir::Value b);
  mlir::Value cmp(mlir::arith::CmpIPredicate predicate, mlir::Value a, mlir::Value b);
  mlir::Value select(mlir::Value condition, mlir::Value a, mlir::Value b);
  mlir::Value toIndex(mlir::Value value); ///< from a signed i32 or i64
  mlir::Value toI64(mlir::Value value);   ///< from a signed i32 or index
  mlir::Value toI32(mlir::Value value);   ///< low bits of an i64 or index

  /// `base` + `byteOffset` (i64).
  mlir::Value address(mlir::Value base, mlir::Value byteOffset);
  /// Global memory that does not change during the kernel.
  mlir::Value load(mlir::Type type, mlir::Value address, unsigned alignment);
  /// `count` consecutive i32, as vector loads of four; `address` is 16-byte aligned.
  llvm::SmallVector<mlir::Value> loadI32s(mlir::Value address, unsigned count);

  /// Word `number` of the argument block: an integer (i64), or a pointer to global memory.
  mlir::Value word(mlir::Value args, int64_t number);
  mlir::Value pointerWord(mlir::Value args, int64_t number);

  mlir::OpBuilder &builder;
  mlir::Location loc;
};

} // namespace attn

#endif // ATTN_LIB_CONVERSION_ATTNTOTILE_TILEEMITTER_H
