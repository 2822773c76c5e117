// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Types, interfaces and operations of the attn dialect.
#ifndef ATTN_DIALECT_ATTN_IR_ATTNOPS_H
#define ATTN_DIALECT_ATTN_IR_ATTNOPS_H

#include "attn/Dialect/Attn/IR/AttnDialect.h"
#include "attn/Dialect/Attn/IR/RowSet.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/RegionKindInterface.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <optional>

namespace attn {
class ElementContext;
class ProgramBuilder;
class MaskOp;
class ScoreOp;
class BoundsOp;
} // namespace attn

#include "attn/IR/AttnEnums.h.inc"

#include "attn/IR/AttnInterfaces.h.inc"

#define GET_TYPEDEF_CLASSES
#include "attn/IR/AttnTypes.h.inc"

#define GET_OP_CLASSES
#include "attn/IR/AttnOps.h.inc"

namespace attn {

/// What an argument of a mask, score, per or bounds region stands for.
enum class IndexRole { S, B, H, Q, K };

/// Role of `value` if it is an argument of such a region (of the region itself, not of a loop in
/// it).
std::optional<IndexRole> getIndexRole(mlir::Value value);

/// The argument of `role` of the region op around `op`, or null if that region has none.
mlir::Value getIndexArgument(mlir::Operation *op, IndexRole role);

/// Roles of a level's arguments, in order.
llvm::ArrayRef<IndexRole> getLevelRoles(Level level);

/// The narrowest level whose arguments cover `set`: nothing if it is kernel level or if no level
/// does (it depends on the score, or on both q and k).
struct LevelOrKernel {
  bool kernel = false;
  std::optional<Level> level;
};
LevelOrKernel getLevel(const DependenceSet &set);

/// attn-C1: `value` is the argument of `role` of the region around `op`; else an error at `op`.
llvm::LogicalResult verifyIndexOperand(mlir::Operation *op, mlir::Value value, IndexRole role);

/// attn-C23 for an operation of the kernel's body, where no index is known, and what is nested in
/// it.
llvm::LogicalResult verifyKernelLevel(mlir::Operation *op);

} // namespace attn

#endif // ATTN_DIALECT_ATTN_IR_ATTNOPS_H
