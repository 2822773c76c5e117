// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Types and operations of the tile dialect.
#ifndef ATTN_DIALECT_TILE_IR_TILEOPS_H
#define ATTN_DIALECT_TILE_IR_TILEOPS_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/LLVMIR/LLVMTypes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "tile/IR/TileDialect.h.inc"

#include "tile/IR/TileEnums.h.inc"

#define GET_TYPEDEF_CLASSES
#include "tile/IR/TileTypes.h.inc"

namespace attn::tile {

/// Rows of a fragment: one warpgroup's part of a product.
constexpr int64_t kFragmentRows = 64;
/// Rows of a fragment that a warp has.
constexpr int64_t kWarpRows = kFragmentRows / 4;
/// Threads of a row group: a warpgroup.
constexpr int64_t kGroupThreads = 128;
/// Columns of a product at most (PTX ISA, wgmma shapes m64nNk16).
constexpr int64_t kMaxColumns = 256;
/// Row groups that can have a named barrier for each set of them, beside one each: 16 barriers a
/// CTA, one of them of all threads.
constexpr int64_t kMaxSharingGroups = 3;

enum class Role {
  Any,
  Producer,
  Loading, ///< producer and loaders
  Taking,  ///< loaders and row groups
  Consumers
};

namespace detail {
/// tile-C7: `op` stands in that role.
llvm::LogicalResult verifyRole(mlir::Operation *op, Role role);
} // namespace detail

template <typename ConcreteOp>
struct InRole : public mlir::OpTrait::TraitBase<ConcreteOp, InRole> {
  static llvm::LogicalResult verifyTrait(mlir::Operation *op) {
    return detail::verifyRole(op, Role::Any);
  }
};
template <typename ConcreteOp>
struct InProducer : public mlir::OpTrait::TraitBase<ConcreteOp, InProducer> {
  static llvm::LogicalResult verifyTrait(mlir::Operation *op) {
    return detail::verifyRole(op, Role::Producer);
  }
};
template <typename ConcreteOp>
struct Loading : public mlir::OpTrait::TraitBase<ConcreteOp, Loading> {
  static llvm::LogicalResult verifyTrait(mlir::Operation *op) {
    return detail::verifyRole(op, Role::Loading);
  }
};
template <typename ConcreteOp>
struct Taking : public mlir::OpTrait::TraitBase<ConcreteOp, Taking> {
  static llvm::LogicalResult verifyTrait(mlir::Operation *op) {
    return detail::verifyRole(op, Role::Taking);
  }
};
template <typename ConcreteOp>
struct InConsumers : public mlir::OpTrait::TraitBase<ConcreteOp, InConsumers> {
  static llvm::LogicalResult verifyTrait(mlir::Operation *op) {
    return detail::verifyRole(op, Role::Consumers);
  }
};

} // namespace attn::tile

#define GET_OP_CLASSES
#include "tile/IR/TileOps.h.inc"

#endif // ATTN_DIALECT_TILE_IR_TILEOPS_H
