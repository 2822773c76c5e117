// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the element-wise emitters of operations need from a target: the current indices and reads of
// the kernel's tables. One instance per conversion.
#ifndef ATTN_DIALECT_ATTN_IR_ELEMENTCONTEXT_H
#define ATTN_DIALECT_ATTN_IR_ELEMENTCONTEXT_H

#include "attn/Core/MaskProgram.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

#include <utility>

namespace attn {

class ElementContext {
public:
  virtual ~ElementContext() = default;

  /// Lowered form of a value of the source region.
  mlir::Value lookup(mlir::Value source) const { return mapping.lookup(source); }
  mlir::IRMapping &getMapping() { return mapping; }

  /// The current indices (index type), as far as the conversion knows them at its place.
  mlir::Value b, h, kvHead, token, q, k;

  /// The lowered index of a table's dimension; `operand` is the source's index.
  mlir::Value getTableIndex(core::TableDim dim, mlir::Value operand) const;

  /// Element of a plain table, 0 outside its extent. `indices` are the source operands.
  virtual mlir::Value loadTable(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value table,
                                mlir::ValueRange indices, mlir::Type element) = 0;
  /// Number of live ranges of the current request (index).
  virtual mlir::Value numRanges(mlir::OpBuilder &builder, mlir::Location loc,
                                mlir::Value table) = 0;
  /// Inclusive bounds of range `index` (lowered, index type) of the current request; (0, -1)
  /// outside the list.
  virtual std::pair<mlir::Value, mlir::Value> rangeBounds(mlir::OpBuilder &builder,
                                                          mlir::Location loc, mlir::Value table,
                                                          mlir::Value index) = 0;
  /// Inclusive (start, end) of the current row (index type), (-1, -1) outside.
  virtual std::pair<mlir::Value, mlir::Value> rowRange(mlir::OpBuilder &builder, mlir::Location loc,
                                                       mlir::Value table) = 0;
  /// Whether the current request's document table holds position `position` (lowered, index), and
  /// the id there (i32).
  virtual std::pair<mlir::Value, mlir::Value> documentId(mlir::OpBuilder &builder,
                                                         mlir::Location loc, mlir::Value table,
                                                         mlir::Value position) = 0;

protected:
  mlir::IRMapping mapping;
};

} // namespace attn

#endif // ATTN_DIALECT_ATTN_IR_ELEMENTCONTEXT_H
