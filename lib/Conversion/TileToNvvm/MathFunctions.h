// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Functions of the math dialect on f32, from instructions of the GPU: there is no library to call.
// Special values come out as in C (NaN, infinities, domains), the sign of zero where it is said.
//
//   function          error (ulp: of the result; abs: absolute; rel: relative)
//   exp2              2 ulp: ex2.approx, subnormal results included
//   exp               2^-22 rel for |x| < 87, 2^-17 rel beyond: the rounding of x log2(e) is made
//   up for expm1             2^-21 rel log2, log         2^-22 abs for 1/2 < x < 2, 2^-21 rel
//   elsewhere: lg2.approx log1p             2^-21 rel for |x| < 0.4, elsewhere as log(1 + x) tanh
//   3e-7 abs sqrt              correctly rounded; rsqrt 2^-22 rel sin, cos          3e-7 abs for
//   |x| < 1e5, 2^-8 abs |x| / 1e9 beyond erf               3e-7 abs powf              2^-20 rel for
//   results in the normal range; |y| >= 2^24 counts as even floor, ceil, absf, fma    exact, or
//   rounded once
#ifndef ATTN_LIB_CONVERSION_TILETONVVM_MATHFUNCTIONS_H
#define ATTN_LIB_CONVERSION_TILETONVVM_MATHFUNCTIONS_H

#include "Emitter.h"

namespace attn::tile {

/// The value of math operation `op` on `operands`, or null if it is not one of those above or not
/// on f32.
mlir::Value emitMath(Emitter &e, mlir::Operation &op, mlir::ValueRange operands);

mlir::Value emitEx2(Emitter &e, mlir::Value x); ///< ex2.approx.ftz
mlir::Value emitLg2(Emitter &e, mlir::Value x); ///< lg2.approx.ftz

} // namespace attn::tile

#endif // ATTN_LIB_CONVERSION_TILETONVVM_MATHFUNCTIONS_H
