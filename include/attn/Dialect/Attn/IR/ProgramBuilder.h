// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From the regions of a kernel, at any stage of the mask passes, to a mask program.
#ifndef ATTN_DIALECT_ATTN_IR_PROGRAMBUILDER_H
#define ATTN_DIALECT_ATTN_IR_PROGRAMBUILDER_H

#include "attn/Core/MaskProgram.h"
#include "attn/Dialect/Attn/IR/AttnOps.h"

#include "llvm/ADT/DenseMap.h"

namespace attn {

class ProgramBuilder {
public:
  explicit ProgramBuilder(KernelOp kernel);

  /// Node of a value; fails the build if it has none.
  core::NodeId lookup(mlir::Value value);
  void bind(mlir::Value value, core::NodeId node) { nodes[value] = node; }
  /// Appends a node with these operands.
  core::NodeId add(core::Op op, core::ScalarType type, llvm::ArrayRef<core::NodeId> operands = {},
                   int32_t ref = -1, int64_t imm = 0);
  core::NodeId add(core::Node node) { return program.add(std::move(node)); }
  /// Node of an operand that is a value or an i32 literal; none if neither is there.
  std::optional<core::NodeId> bound(mlir::Value value, mlir::IntegerAttr literal);
  /// Number of a table argument.
  int32_t tableNumber(mlir::Value table);

  /// Declarations and both regions of the kernel.
  llvm::FailureOr<core::MaskProgram> build();

private:
  llvm::LogicalResult addBlock(mlir::Block &block);
  llvm::LogicalResult addOp(mlir::Operation &op);
  llvm::LogicalResult addFor(mlir::Operation &op);

  KernelOp kernel;
  core::MaskProgram program;
  llvm::DenseMap<mlir::Value, core::NodeId> nodes;
};

/// Declarations of a kernel's parameters and tables, in order. A parameter that is used as a radius
/// gets the minimum 0, as a count 1.
std::vector<core::ParamDecl> getParamDecls(KernelOp kernel);
std::vector<core::TableDecl> getTableDecls(KernelOp kernel);

/// True if `op` may stand in a mask, score, per or bounds region: it has a counterpart in the mask
/// program and scalar types.
bool isElementOp(mlir::Operation *op);

/// The scalar type of an MLIR type, if a region may use it.
std::optional<core::ScalarType> getScalarType(mlir::Type type);

} // namespace attn

#endif // ATTN_DIALECT_ATTN_IR_PROGRAMBUILDER_H
