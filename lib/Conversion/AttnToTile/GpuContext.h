// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The tables of a GPU kernel. Reads have no branches, so that they may stand beside products under
// way: the index is clamped, the value outside the table replaced. The runtime passes an address
// that can be read for every table.
#ifndef ATTN_LIB_CONVERSION_ATTNTOTILE_GPUCONTEXT_H
#define ATTN_LIB_CONVERSION_ATTNTOTILE_GPUCONTEXT_H

#include "TileEmitter.h"

#include "attn/Dialect/Attn/IR/AttnOps.h"
#include "attn/Dialect/Attn/IR/ElementContext.h"

namespace attn {

class GpuContext : public ElementContext {
public:
  /// Loads parameters and table descriptors at the builder's place. `args`: the argument block.
  GpuContext(KernelOp kernel, mlir::OpBuilder &builder, mlir::Location loc, mlir::Value args);

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
  struct Table {
    mlir::Value data, offsets;
    mlir::Value extents[core::kMaxTableRank], strides[core::kMaxTableRank]; ///< i64
  };
  const Table &get(mlir::Value table) const;
  /// First entry and number of entries of the current request (i64).
  std::pair<mlir::Value, mlir::Value> requestSpan(TileEmitter &e, const Table &table) const;

  unsigned numParams;
  llvm::SmallVector<Table> tables;
};

} // namespace attn

#endif // ATTN_LIB_CONVERSION_ATTNTOTILE_GPUCONTEXT_H
