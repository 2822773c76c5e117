// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Scalar operations of arith, math and llvm, one at a time. index is i64.
#ifndef ATTN_LIB_CONVERSION_TILETONVVM_SCALARS_H
#define ATTN_LIB_CONVERSION_TILETONVVM_SCALARS_H

#include "Emitter.h"

namespace attn::tile {

/// The LLVM type that values of `type` have, or null.
mlir::Type getScalarType(mlir::Type type);

/// Emits `op` on the lowered `operands` and gives its lowered results. An error at `op` if it has
/// no lowering.
llvm::FailureOr<llvm::SmallVector<mlir::Value>> emitScalar(Emitter &e, mlir::Operation &op,
                                                           mlir::ValueRange operands);

} // namespace attn::tile

#endif // ATTN_LIB_CONVERSION_TILETONVVM_SCALARS_H
