// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Functions of the math dialect on f32, from instructions of the GPU: there is no library to call.
// Special values come out as in C (NaN, infinities, domains), the sign of zero where it is said.
//
// The approximate instructions are taken at the errors of the PTX ISA (2^-22 and less); the rest of
// the formulas was compared with f64 on random arguments.
//
//   function     error (rel: relative, abs: absolute)
//   exp2         2^-22 rel, subnormal results included
//   exp          2^-21 rel for |x| < 87, 2^-17 rel beyond: the rounding of x log2(e) is made up for
//   expm1        2^-21 rel for |x| < 0.4, 2^-19 rel beyond
//   log2, log    2^-22 abs for 1/2 < x < 2, 2^-21 rel elsewhere
//   log1p        2^-22 rel for |x| < 0.4, elsewhere as log(1 + x)
//   tanh         2^-22 rel for |x| < 0.3, 4e-7 abs beyond; with afn 2^-19 and 2^-11 rel
//   sqrt         correctly rounded
//   rsqrt        2^-22 rel
//   sin, cos     2e-7 abs for |x| < 1e9, 2^-14 abs up to 2^52, beyond as of 0
//   erf          1e-7 rel for |x| < 0.5, 5e-7 abs beyond
//   powf         2^-21 rel
//   floor, ceil, absf, fma    exact, or rounded once
#ifndef ATTN_LIB_CONVERSION_TILETONVVM_MATHFUNCTIONS_H
#define ATTN_LIB_CONVERSION_TILETONVVM_MATHFUNCTIONS_H

#include "Emitter.h"

namespace attn::tile {

/// The value of math operation `op` on `operands`, or null if it is not one of those above or not
/// on f32.
mlir::Value emitMath(Emitter &e, mlir::Operation &op, mlir::ValueRange operands);

mlir::Value emitEx2(Emitter &e, mlir::Value x); ///< ex2.approx.ftz
mlir::Value emitLg2(Emitter &e, mlir::Value x); ///< lg2.approx.ftz
mlir::Value emitRcp(Emitter &e, mlir::Value x); ///< rcp.approx.ftz

} // namespace attn::tile

#endif // ATTN_LIB_CONVERSION_TILETONVVM_MATHFUNCTIONS_H
