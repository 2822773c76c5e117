// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The argument block of a native kernel as SSA values, the current indices, and the table reads of
// the CPU.
#ifndef ATTN_LIB_CONVERSION_ATTNTOLOOPS_LOOPCONTEXT_H
#define ATTN_LIB_CONVERSION_ATTNTOLOOPS_LOOPCONTEXT_H

#include "attn/Conversion/Regions/ScalarEmitter.h"
#include "attn/Core/NativeAbi.h"
#include "attn/Dialect/Attn/IR/AttnOps.h"
#include "attn/Dialect/Attn/IR/ElementContext.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace attn {

/// Index and pointer arithmetic at the builder's place.
class LoopEmitter : public ScalarEmitter {
public:
  using ScalarEmitter::ScalarEmitter;

  /// `base` + `byteOffset` (index).
  mlir::Value address(mlir::Value base, mlir::Value byteOffset);
  mlir::Value load(mlir::Type type, mlir::Value base, mlir::Value byteOffset);
  /// An i64 in memory, as index.
  mlir::Value loadIndex(mlir::Value base, mlir::Value byteOffset);
  /// A signed i32 in memory, as index.
  mlir::Value loadI32(mlir::Value base, mlir::Value byteOffset);
  /// `condition` ? values of `then` : `otherwise`, computing `then` only where it holds.
  llvm::SmallVector<mlir::Value>
  guarded(mlir::Value condition, mlir::ValueRange otherwise,
          llvm::function_ref<llvm::SmallVector<mlir::Value>(LoopEmitter &)> then);
};

/// Symbol of 8 constant bytes of 0, which the module of the kernels has to have.
constexpr llvm::StringLiteral kZeros = "attn.zeros";

/// Reads of one kernel's tables.
class LoopContext : public ElementContext {
public:
  /// Loads the argument block at the builder's place.
  LoopContext(KernelOp kernel, mlir::OpBuilder &builder, mlir::Location loc, mlir::Value args);

  /// Member of the argument block, loaded at the entry.
  mlir::Value arg(core::NativeArg member) const { return members[member]; }

  mlir::Value loadTable(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value table,
                        mlir::ValueRange indices, mlir::Type element) override;
  mlir::Value numRanges(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value table) override;
  std::pair<mlir::Value, mlir::Value> rangeBounds(mlir::OpBuilder &builder, mlir::Location loc,
                                                  mlir::Value table, mlir::Value index) override;
  std::pair<mlir::Value, mlir::Value> rowRange(mlir::OpBuilder &builder, mlir::Location loc,
                                               mlir::Value table) override;
  std::pair<mlir::Value, mlir::Value> documentId(mlir::OpBuilder &builder, mlir::Location loc,
                                                 mlir::Value table, mlir::Value position) override;

private:
  /// Fields of one NativeTable.
  struct Table {
    mlir::Value data, offsets;
    mlir::Value extents[core::kMaxTableRank], strides[core::kMaxTableRank];
  };
  void loadTables(KernelOp kernel, LoopEmitter &e);
  const Table &get(mlir::Value table);
  /// Where to read from: `base` + `byteOffset` if `condition` holds, else 8 bytes of 0. No branch,
  /// so a region with thousands of reads stays one block.
  mlir::Value place(LoopEmitter &e, mlir::Value condition, mlir::Value base,
                    mlir::Value byteOffset);
  /// First entry and number of entries of the current request in an offset table.
  std::pair<mlir::Value, mlir::Value> requestSpan(LoopEmitter &e, const Table &table);

  KernelOp kernel;
  mlir::Value members[core::kNumNativeArgs];
  mlir::Value zeros; ///< address of kZeros
  llvm::SmallVector<Table> tables;
};

} // namespace attn

#endif // ATTN_LIB_CONVERSION_ATTNTOLOOPS_LOOPCONTEXT_H
