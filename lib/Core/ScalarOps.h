// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The operations that read nothing but their operands, on one value each. Integers are held
// sign-extended to 64 bits, Bool as 0 or 1; every result is wrapped to the width of its type.
#ifndef ATTN_LIB_CORE_SCALAROPS_H
#define ATTN_LIB_CORE_SCALAROPS_H

#include "attn/Core/MaskProgram.h"

#include "OpInfo.h"

namespace attn::core {

/// One value; which member is used depends on the type. 0 is 0 in both.
union Scalar {
  int64_t i = 0;
  double f;

  static Scalar ofInt(int64_t v) {
    Scalar s;
    s.i = v;
    return s;
  }
  static Scalar ofFloat(double v) {
    Scalar s;
    s.f = v;
    return s;
  }
};
static_assert(sizeof(Scalar) == 8, "slots are copied often");

/// What an operation on floats is rounded to.
enum class FloatMode : uint8_t {
  Single, ///< masks: f32, as on every target; held in a double, which is exact
  Double, ///< scores: float64, the reference
};

inline Scalar constantOf(FloatMode mode, const Node &node) {
  if (node.type != ScalarType::F32)
    return Scalar::ofInt(node.imm);
  return Scalar::ofFloat(mode == FloatMode::Single ? static_cast<float>(node.fimm) : node.fimm);
}

/// `v` cut to the width of `type` and sign-extended; 0 or 1 for Bool.
inline int64_t wrapTo(ScalarType type, int64_t v) {
  switch (type) {
  case ScalarType::Bool:
    return v & 1;
  case ScalarType::I8:
    return static_cast<int8_t>(v);
  case ScalarType::I16:
    return static_cast<int16_t>(v);
  case ScalarType::I32:
    return static_cast<int32_t>(v);
  default:
    return v;
  }
}

/// The smallest and largest value of an integer type, as held here.
inline int64_t minOf(ScalarType type) {
  return type == ScalarType::Bool ? 0 : static_cast<int64_t>(~uint64_t(0) << (bitWidth(type) - 1));
}
inline int64_t maxOf(ScalarType type) { return type == ScalarType::Bool ? 1 : ~minOf(type); }

/// IntBinary on canonical values of `type`.
int64_t evalIntBinary(Op op, ScalarType type, int64_t a, int64_t b);
/// IntCompare on canonical values of the operands' `type`.
bool evalCompare(Op op, ScalarType type, int64_t a, int64_t b);
/// IntCast from `from` to `to`.
int64_t evalCast(Op op, ScalarType from, ScalarType to, int64_t a);
bool evalFloatCompare(Op op, double a, double b);
/// FPToSI: towards zero, saturated to the width of `type`; NaN gives 0.
int64_t evalToInt(ScalarType type, double a);
/// Alibi; `distance` is |q - k|.
double evalAlibi(FloatMode mode, double s, double slope, int64_t distance);

/// True for operations that evalPure() computes.
bool isPure(Op op);
/// Any pure operation. `type` is the node's type, `argType` that of operand 0.
Scalar evalPure(FloatMode mode, Op op, ScalarType type, ScalarType argType, const Scalar &a,
                const Scalar &b, const Scalar &c);

} // namespace attn::core

#endif // ATTN_LIB_CORE_SCALAROPS_H
