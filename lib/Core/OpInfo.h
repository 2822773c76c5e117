// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is the same for all operations of one family: operand count and how types relate.
#ifndef ATTN_LIB_CORE_OPINFO_H
#define ATTN_LIB_CORE_OPINFO_H

#include "attn/Core/MaskProgram.h"

namespace attn::core {

enum class OpFamily : uint8_t {
  Leaf,
  Table,
  IntBinary, ///< two integers of the node's type
  IntUnary,
  IntCompare, ///< two integers of one type, Bool
  IntCast,
  Select,
  FloatUnary,
  FloatBinary,
  FloatTernary,
  FloatCompare, ///< two F32, Bool
  IntToFloat,
  FloatToInt,
  Mask,  ///< named, Bool
  Score, ///< named, F32
  Loop,
};

OpFamily familyOf(Op op);

/// Number of operations.
constexpr int kNumOps = static_cast<int>(Op::ForResult) + 1;

/// Any integer, Bool included.
inline bool isInteger(ScalarType type) { return type != ScalarType::F32; }
/// An integer that is not Bool.
inline bool isNumberType(ScalarType type) {
  return type != ScalarType::F32 && type != ScalarType::Bool;
}

/// True if a dimension is addressed by the current request, head or row, so that its operand of a
/// TableLoad is ignored.
inline bool isImplicit(TableDim dim) {
  return dim == TableDim::B || dim == TableDim::H || dim == TableDim::HKv || dim == TableDim::Token;
}

/// What a node reads by itself, operands aside.
Dependence ownDependence(const MaskProgram &program, const Node &node);

} // namespace attn::core

#endif // ATTN_LIB_CORE_OPINFO_H
