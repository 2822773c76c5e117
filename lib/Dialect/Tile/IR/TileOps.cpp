// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operations on fragments: constraints tile-C14 ... tile-C23.

#include "attn/Dialect/Tile/IR/TileOps.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace attn::tile;

static bool isAcc(FragmentType type) { return type.getLayout() == FragmentLayout::Acc; }

/// Rows of that element, the same in all lanes of a quad.
static bool isWhole(RowsType type, Type element) {
  return !type.getPartial() && type.getElement() == element;
}

LogicalResult WaitMmaOp::verify() {
  int64_t later = getLater();
  if (later < 0 || later > 7)
    return emitOpError("the number of later products is expected to be 0 to 7, got ")
           << later << " (tile-C14)";
  return success();
}

LogicalResult FillOp::verify() {
  Type type = getResult().getType();
  auto fragment = dyn_cast<FragmentType>(type);
  if (fragment && !isAcc(fragment))
    return emitOpError("the result is expected to be an acc fragment or rows, got ")
           << type << " (tile-C15)";
  Type element = fragment ? fragment.getElement() : cast<RowsType>(type).getElement();
  if (getValue().getType() != element)
    return emitOpError("the value is expected to have the type of an element, ")
           << element << ", got " << getValue().getType() << " (tile-C15)";
  return success();
}

//===----------------------------------------------------------------------===//
// Maps
//===----------------------------------------------------------------------===//

/// Scalar that stands for an element of `type` in a map.
static Type getScalarType(Type type) {
  return TypeSwitch<Type, Type>(type)
      .Case([](FragmentType t) { return t.getElement(); })
      .Case([](RowsType t) { return t.getElement(); })
      .Case([](BitsType t) { return IntegerType::get(t.getContext(), 1); });
}

/// Columns of a fragment or bits; nothing for rows.
static std::optional<int64_t> getColumns(Type type) {
  return TypeSwitch<Type, std::optional<int64_t>>(type)
      .Case([](FragmentType t) { return t.getCols(); })
      .Case([](BitsType t) { return t.getCols(); })
      .Default([](Type) { return std::nullopt; });
}

/// tile-C17 for a map whose region has `indices` arguments of type i32 after the inputs.
static LogicalResult verifyMapRegion(Operation *op, unsigned indices) {
  SmallVector<Type> expected, yields;
  for (Type type : op->getOperandTypes())
    expected.push_back(getScalarType(type));
  expected.append(indices, IntegerType::get(op->getContext(), 32));
  for (Type type : op->getResultTypes())
    yields.push_back(getScalarType(type));
  Block &body = op->getRegion(0).front();
  auto check = [&](TypeRange got, ArrayRef<Type> want, StringRef what) -> LogicalResult {
    if (llvm::equal(got, want))
      return success();
    InFlightDiagnostic diag = op->emitOpError("the region is expected to ") << what << " (";
    llvm::interleaveComma(want, diag);
    diag << "), got (";
    llvm::interleaveComma(got, diag);
    return diag << ") (tile-C17)";
  };
  if (failed(check(body.getArgumentTypes(), expected, "take")))
    return failure();
  return check(body.getTerminator()->getOperandTypes(), yields, "yield");
}

LogicalResult MapOp::verify() {
  if (getNumResults() == 0)
    return emitOpError("expected at least one result (tile-C16)");
  std::optional<int64_t> columns;
  for (Type type : llvm::concat<Type>(getOperandTypes(), getResultTypes())) {
    if (auto fragment = dyn_cast<FragmentType>(type); fragment && !isAcc(fragment))
      return emitOpError("expected acc fragments, got ") << type << " (tile-C16)";
    std::optional<int64_t> n = getColumns(type);
    if (n && columns && *n != *columns)
      return emitOpError("expected inputs and results of the same columns, got ")
             << *columns << " and " << *n << " (tile-C16)";
    if (n)
      columns = n;
  }
  return success();
}

LogicalResult MapOp::verifyRegions() { return verifyMapRegion(*this, 2); }

LogicalResult MapRowsOp::verifyRegions() { return verifyMapRegion(*this, 1); }

//===----------------------------------------------------------------------===//
// Rows, bits, conversions
//===----------------------------------------------------------------------===//

static LogicalResult verifyReduction(Operation *op, FragmentType fragment, RowsType rows,
                                     bool partial) {
  auto expected = RowsType::get(op->getContext(), Float32Type::get(op->getContext()), partial);
  if (!isAcc(fragment))
    return op->emitOpError("expected an acc fragment, got ") << fragment << " (tile-C18)";
  if (rows != expected)
    return op->emitOpError("the result is expected to be ")
           << expected << ", got " << rows << " (tile-C18)";
  return success();
}

LogicalResult RowMaxOp::verify() {
  return verifyReduction(*this, getFragment().getType(), getResult().getType(), false);
}

LogicalResult RowSumOp::verify() {
  return verifyReduction(*this, getFragment().getType(), getResult().getType(), true);
}

LogicalResult RowFinishOp::verify() {
  if (!getRows().getType().getPartial())
    return emitOpError("expected partial rows, got ") << getRows().getType() << " (tile-C18)";
  if (!isWhole(getResult().getType(), getRows().getType().getElement()))
    return emitOpError("the result is expected to be whole rows of ")
           << getRows().getType().getElement() << ", got " << getResult().getType()
           << " (tile-C18)";
  return success();
}

LogicalResult WarpAnyOp::verify() {
  if (!isWhole(getRows().getType(), IntegerType::get(getContext(), 1)))
    return emitOpError("expected whole rows of i1, got ") << getRows().getType() << " (tile-C25)";
  return success();
}

LogicalResult ToOperandOp::verify() {
  FragmentType from = getFragment().getType(), to = getResult().getType();
  if (!isAcc(from) || isAcc(to) || from.getCols() > to.getCols())
    return emitOpError("expected an acc fragment and an operand of as many columns or more, got ")
           << from << " and " << to << " (tile-C19)";
  return success();
}

LogicalResult RangeBitsOp::verify() {
  if (!isWhole(getLo().getType(), IntegerType::get(getContext(), 32)))
    return emitOpError("the bounds are expected to be !tile.rows<i32>, got ")
           << getLo().getType() << " (tile-C20)";
  return success();
}

LogicalResult SelectOp::verify() {
  FragmentType fragment = getFragment().getType();
  if (!isAcc(fragment) || fragment.getCols() != getBits().getType().getCols())
    return emitOpError("expected an acc fragment of the columns of the bits, ")
           << getBits().getType().getCols() << ", got " << fragment << " (tile-C21)";
  return success();
}

LogicalResult StoreOp::verify() {
  FragmentType fragment = getFragment().getType();
  // The lanes of a quad hold 8 columns of 4 groups of 8 and trade them for 16 bytes each.
  if (!isAcc(fragment) || fragment.getCols() % 32 != 0)
    return emitOpError("expected an acc fragment whose columns are a multiple of 32, got ")
           << fragment << " (tile-C22)";
  if (!getElement().isF16() && !getElement().isBF16())
    return emitOpError("expected to store f16 or bf16, got ") << getElement() << " (tile-C22)";
  return success();
}

LogicalResult StoreRowsOp::verify() {
  RowsType type = getValues().getType();
  if (type.getPartial() || !(type.getElement().isF32() || type.getElement().isInteger(32)))
    return emitOpError("expected whole rows of f32 or i32, got ") << type << " (tile-C23)";
  return success();
}

//===----------------------------------------------------------------------===//
// Generated definitions
//===----------------------------------------------------------------------===//

#define GET_OP_CLASSES
#include "tile/IR/TileOps.cpp.inc"
