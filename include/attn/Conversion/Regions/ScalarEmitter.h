// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Short names for scalar arithmetic at the builder's place; conversions add what they need.
#ifndef ATTN_CONVERSION_REGIONS_SCALAREMITTER_H
#define ATTN_CONVERSION_REGIONS_SCALAREMITTER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"

namespace attn {

class ScalarEmitter {
public:
  using Value = mlir::Value;

  ScalarEmitter(mlir::OpBuilder &builder, mlir::Location loc) : builder(builder), loc(loc) {}

  /// Of type index.
  Value constant(int64_t value) {
    return mlir::arith::ConstantIndexOp::create(builder, loc, value);
  }
  Value bit(bool value) {
    return mlir::arith::ConstantOp::create(builder, loc, builder.getBoolAttr(value));
  }
  Value f32(double value) {
    auto attribute = builder.getFloatAttr(builder.getF32Type(), value);
    return mlir::arith::ConstantOp::create(builder, loc, attribute);
  }
  // Integers of one type; min, max signed.
  Value add(Value a, Value b) { return mlir::arith::AddIOp::create(builder, loc, a, b); }
  Value sub(Value a, Value b) { return mlir::arith::SubIOp::create(builder, loc, a, b); }
  Value mul(Value a, Value b) { return mlir::arith::MulIOp::create(builder, loc, a, b); }
  Value min(Value a, Value b) { return mlir::arith::MinSIOp::create(builder, loc, a, b); }
  Value max(Value a, Value b) { return mlir::arith::MaxSIOp::create(builder, loc, a, b); }
  Value both(Value a, Value b) { return mlir::arith::AndIOp::create(builder, loc, a, b); }
  Value cmp(mlir::arith::CmpIPredicate predicate, Value a, Value b) {
    return mlir::arith::CmpIOp::create(builder, loc, predicate, a, b);
  }
  /// 0 <= index < extent, as one unsigned comparison.
  Value inside(Value index, Value extent) {
    return cmp(mlir::arith::CmpIPredicate::ult, index, extent);
  }

  mlir::OpBuilder &builder;
  mlir::Location loc;
};

} // namespace attn

#endif // ATTN_CONVERSION_REGIONS_SCALAREMITTER_H
