// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The dialect and its types, constraints tile-C1 ... tile-C4, tile-C26.

#include "attn/Dialect/Tile/IR/TileOps.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FoldInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace attn::tile;

//===----------------------------------------------------------------------===//
// Pieces of type syntax
//===----------------------------------------------------------------------===//

static ParseResult parseTwoDims(AsmParser &parser, int64_t &rows, int64_t &cols, bool trailingX) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<int64_t> dims;
  if (parser.parseDimensionList(dims, /*allowDynamic=*/false, trailingX))
    return failure();
  if (dims.size() != 2)
    return parser.emitError(loc, "expected rows x columns, got ") << dims.size() << " dimensions";
  rows = dims[0];
  cols = dims[1];
  return success();
}

static ParseResult parseShape(AsmParser &parser, int64_t &rows, int64_t &cols, Type &element) {
  return failure(parseTwoDims(parser, rows, cols, /*trailingX=*/true) || parser.parseType(element));
}

static void printShape(AsmPrinter &printer, int64_t rows, int64_t cols, Type element) {
  printer << rows << "x" << cols << "x" << element;
}

static ParseResult parseBitsShape(AsmParser &parser, int64_t &rows, int64_t &cols) {
  return parseTwoDims(parser, rows, cols, /*trailingX=*/false);
}

static void printBitsShape(AsmPrinter &printer, int64_t rows, int64_t cols) {
  printer << rows << "x" << cols;
}

static ParseResult parseWholeFragment(AsmParser &parser, FragmentType &fragment) {
  return parser.parseType(fragment);
}

static void printWholeFragment(AsmPrinter &printer, FragmentType fragment) { printer << fragment; }

Type RowsType::parse(AsmParser &parser) {
  Type element;
  bool partial = false;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseType(element))
    return {};
  if (succeeded(parser.parseOptionalComma())) {
    if (parser.parseKeyword("partial"))
      return {};
    partial = true;
  }
  if (parser.parseGreater())
    return {};
  return parser.getChecked<RowsType>(loc, parser.getContext(), element, partial);
}

void RowsType::print(AsmPrinter &printer) const {
  printer << "<" << getElement() << (getPartial() ? ", partial>" : ">");
}

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

LogicalResult FragmentType::verify(function_ref<InFlightDiagnostic()> emitError, int64_t rows,
                                   int64_t cols, Type element, FragmentLayout layout) {
  bool operand = layout == FragmentLayout::Operand;
  int64_t step = operand ? 16 : 8;
  if (rows != kFragmentRows)
    return emitError() << "a fragment has " << kFragmentRows << " rows, got " << rows
                       << " (tile-C1)";
  if (cols < step || cols > kMaxColumns || cols % step != 0)
    return emitError() << "columns of an " << stringifyFragmentLayout(layout)
                       << " fragment are a multiple of " << step << " up to " << kMaxColumns
                       << ", got " << cols << " (tile-C1)";
  if (operand ? !element.isF16() && !element.isBF16() : !element.isF32())
    return emitError() << "elements of an " << stringifyFragmentLayout(layout) << " fragment are "
                       << (operand ? "f16 or bf16" : "f32") << ", got " << element << " (tile-C1)";
  return success();
}

LogicalResult RowsType::verify(function_ref<InFlightDiagnostic()> emitError, Type element,
                               bool partial) {
  bool known = element.isF32() || element.isIndex();
  for (unsigned width : {1, 8, 16, 32, 64})
    known |= element.isSignlessInteger(width);
  if (!known)
    return emitError() << "values of rows are f32, index, i1, i8, i16, i32 or i64, got " << element
                       << " (tile-C2)";
  if (partial && !element.isF32())
    return emitError() << "values of partial rows are f32, got " << element << " (tile-C2)";
  return success();
}

LogicalResult BitsType::verify(function_ref<InFlightDiagnostic()> emitError, int64_t rows,
                               int64_t cols) {
  if (rows != kFragmentRows)
    return emitError() << "bits have " << kFragmentRows << " rows, got " << rows << " (tile-C3)";
  if (cols < 8 || cols > kMaxColumns || cols % 8 != 0)
    return emitError() << "columns of bits are a multiple of 8 up to " << kMaxColumns << ", got "
                       << cols << " (tile-C3)";
  return success();
}

LogicalResult RingType::verify(function_ref<InFlightDiagnostic()> emitError, int64_t stages,
                               int64_t rows, int64_t cols, Type element) {
  if (stages < 1 || stages > 32)
    return emitError() << "a ring has 1 to 32 stages, got " << stages << " (tile-C4)";
  if (rows < 8 || rows > kMaxColumns || rows % 8 != 0)
    return emitError() << "rows of a ring are a multiple of 8 up to " << kMaxColumns << ", got "
                       << rows << " (tile-C4)";
  if (cols < 64 || cols > 512 || cols % 64 != 0)
    return emitError() << "columns of a ring are a multiple of 64 up to 512, got " << cols
                       << " (tile-C4)";
  if (!element.isF16() && !element.isBF16())
    return emitError() << "elements of a ring are f16 or bf16, got " << element << " (tile-C4)";
  return success();
}

LogicalResult QueueType::verify(function_ref<InFlightDiagnostic()> emitError, int64_t stages,
                                int64_t rows) {
  if (stages < 1 || stages > 32)
    return emitError() << "a queue has 1 to 32 stages, got " << stages << " (tile-C26)";
  if (rows < 1 || rows > 64)
    return emitError() << "a stage of a queue has 1 to 64 rows, got " << rows << " (tile-C26)";
  return success();
}

//===----------------------------------------------------------------------===//
// Registration
//===----------------------------------------------------------------------===//

#include "tile/IR/TileDialect.cpp.inc"
#include "tile/IR/TileEnums.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "tile/IR/TileTypes.cpp.inc"

namespace {
/// Constants of a role stay in it: a kernel's body takes none (tile-C6).
struct TileFoldInterface : public DialectFoldInterface {
  using DialectFoldInterface::DialectFoldInterface;

  bool shouldMaterializeInto(Region *region) const final {
    return isa<ProducerOp, LoaderOp, ConsumersOp>(region->getParentOp());
  }
};
} // namespace

void TileDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "tile/IR/TileOps.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "tile/IR/TileTypes.cpp.inc"
      >();
  addInterfaces<TileFoldInterface>();
}
