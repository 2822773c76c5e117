// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Builders of tile.map and tile.map_rows from code for one element or one row.
#ifndef ATTN_LIB_CONVERSION_ATTNTOTILE_MAPS_H
#define ATTN_LIB_CONVERSION_ATTNTOTILE_MAPS_H

#include "attn/Dialect/Tile/IR/TileOps.h"

#include "mlir/IR/Builders.h"

namespace attn {

/// Gets the arguments of a map's region and gives its results.
using MapBody =
    llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::OpBuilder &, mlir::ValueRange)>;

llvm::SmallVector<mlir::Value> mapElements(mlir::OpBuilder &builder, mlir::Location loc,
                                           mlir::TypeRange results, mlir::ValueRange inputs,
                                           MapBody body);
llvm::SmallVector<mlir::Value> mapRows(mlir::OpBuilder &builder, mlir::Location loc,
                                       mlir::TypeRange results, mlir::ValueRange inputs,
                                       MapBody body);

} // namespace attn

#endif // ATTN_LIB_CONVERSION_ATTNTOTILE_MAPS_H
