// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Scalar arithmetic and memory at the builder's place, and the argument block of a GPU kernel.
#ifndef ATTN_LIB_CONVERSION_ATTNTOTILE_TILEEMITTER_H
#define ATTN_LIB_CONVERSION_ATTNTOTILE_TILEEMITTER_H

#include "attn/Conversion/Regions/ScalarEmitter.h"
#include "attn/Core/CudaAbi.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace attn {

class TileEmitter : public ScalarEmitter {
public:
  using ScalarEmitter::ScalarEmitter;

  Value i32(int64_t value);
  Value i64(int64_t value);
  /// Non-negative integers.
  Value div(Value a, Value b);
  Value rem(Value a, Value b);
  Value either(Value a, Value b);
  Value select(Value condition, Value a, Value b);
  Value toIndex(Value value); ///< from a signed i32 or i64
  Value toI64(Value value);   ///< from a signed i32 or index
  Value toI32(Value value);   ///< low bits of an i64 or index

  /// `base` + `byteOffset` (i64).
  Value address(Value base, Value byteOffset);
  /// Global memory that does not change during the kernel.
  Value load(mlir::Type type, Value address, unsigned alignment);
  /// `count` consecutive i32, as vector loads of four; `address` is 16-byte aligned.
  llvm::SmallVector<Value> loadI32s(Value address, unsigned count);

  /// Word `number` of the argument block: an integer (i64), or a pointer to global memory.
  Value word(Value args, int64_t number);
  Value pointerWord(Value args, int64_t number);
};

} // namespace attn

#endif // ATTN_LIB_CONVERSION_ATTNTOTILE_TILEEMITTER_H
