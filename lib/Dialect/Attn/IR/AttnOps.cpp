// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Region ops of a kernel and table accesses: syntax and constraints.

#include "attn/Dialect/Attn/IR/AttnOps.h"
#include "attn/Dialect/Attn/IR/ProgramBuilder.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace attn;

//===----------------------------------------------------------------------===//
// Regions
//===----------------------------------------------------------------------===//

static StringRef getRoleName(IndexRole role) {
  switch (role) {
  case IndexRole::S:
    return "s";
  case IndexRole::B:
    return "b";
  case IndexRole::H:
    return "h";
  case IndexRole::Q:
    return "q";
  case IndexRole::K:
    return "k";
  }
  llvm_unreachable("covered switch");
}

static Type getRoleType(IndexRole role, MLIRContext *context) {
  return role == IndexRole::S ? Type(Float32Type::get(context)) : Type(IndexType::get(context));
}

static constexpr IndexRole maskRoles[] = {IndexRole::B, IndexRole::H, IndexRole::Q, IndexRole::K};
static constexpr IndexRole scoreRoles[] = {IndexRole::S, IndexRole::B, IndexRole::H, IndexRole::Q,
                                           IndexRole::K};
static constexpr IndexRole boundsRoles[] = {IndexRole::B, IndexRole::H, IndexRole::Q};

/// "(%b, %h, %q, %k)"
static std::string describe(ArrayRef<IndexRole> roles) {
  std::string text = "(";
  for (auto [i, role] : llvm::enumerate(roles))
    text += (i ? ", %" : "%") + getRoleName(role).str();
  return text + ")";
}

/// Parses `(%b, %h, ...)` with the types of `roles`, then the region.
static ParseResult parseRoleRegion(OpAsmParser &parser, OperationState &result,
                                   ArrayRef<IndexRole> roles, bool resultTypes) {
  SmallVector<OpAsmParser::Argument> arguments;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseArgumentList(arguments, AsmParser::Delimiter::Paren))
    return failure();
  if (arguments.size() != roles.size())
    return parser.emitError(loc, "expected the arguments ")
           << describe(roles) << ", got " << arguments.size();
  for (auto [argument, role] : llvm::zip(arguments, roles))
    argument.type = getRoleType(role, parser.getContext());
  if (resultTypes) {
    SmallVector<Type> types;
    auto parseType = [&]() { return parser.parseType(types.emplace_back()); };
    if (parser.parseArrow() ||
        parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, parseType))
      return failure();
    result.addTypes(types);
  }
  return parser.parseRegion(*result.addRegion(), arguments);
}

static void printRoleRegion(OpAsmPrinter &p, Region &region) {
  p << " (";
  llvm::interleaveComma(region.getArguments(), p, [&](BlockArgument a) { p.printOperand(a); });
  p << ") ";
}

static void nameArguments(Region &region, ArrayRef<IndexRole> roles, OpAsmSetValueNameFn setName) {
  for (auto [argument, role] : llvm::zip(region.getArguments(), roles))
    setName(argument, getRoleName(role));
}

/// attn-C23: `nested` uses results of attn.per only where all indices of their level are known.
static LogicalResult verifyPerUse(Operation *nested, ArrayRef<IndexRole> roles) {
  for (Value operand : nested->getOperands()) {
    auto per = operand.getDefiningOp<PerOp>();
    if (!per)
      continue;
    for (IndexRole role : getLevelRoles(per.getLevel()))
      if (!llvm::is_contained(roles, role)) {
        InFlightDiagnostic diag = nested->emitOpError()
                                  << "uses a value of level " << stringifyLevel(per.getLevel())
                                  << " where %" << getRoleName(role) << " is not known (attn-C23)";
        diag.attachNote(per.getLoc()) << "the value is computed here";
        return diag;
      }
  }
  return success();
}

static LogicalResult verifyPerUses(Region &region, ArrayRef<IndexRole> roles) {
  WalkResult walk = region.walk([&](Operation *nested) {
    return failed(verifyPerUse(nested, roles)) ? WalkResult::interrupt() : WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}

LogicalResult attn::verifyKernelLevel(Operation *op) {
  WalkResult walk = op->walk([&](Operation *nested) {
    return failed(verifyPerUse(nested, {})) ? WalkResult::interrupt() : WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}

/// attn-C5, for every attn.in_rows of the region.
static LogicalResult verifyRowBounds(Region &region) {
  DependenceAnalysis dependence;
  WalkResult walk = region.walk([&](InRowsOp op) {
    for (auto [value, name] : {std::pair(op.getLo(), "lo"), std::pair(op.getHi(), "hi")})
      if (dependence.get(value).k) {
        op.emitOpError() << name << " is expected not to depend on %k (attn-C5)";
        return WalkResult::interrupt();
      }
    return WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}

/// Arguments as `roles` say, yield of `types`, and only element operations inside.
static LogicalResult verifyRegion(Operation *op, ArrayRef<IndexRole> roles, TypeRange types,
                                  StringRef id) {
  Block &block = op->getRegion(0).front();
  bool same = block.getNumArguments() == roles.size();
  for (size_t i = 0; same && i < roles.size(); ++i)
    same = block.getArgument(i).getType() == getRoleType(roles[i], op->getContext());
  if (!same)
    return op->emitOpError() << "expects the arguments " << describe(roles) << " (attn-C25)";
  auto yield = block.empty() ? YieldOp() : dyn_cast<YieldOp>(block.back());
  if (!yield)
    return op->emitOpError() << "expects attn.yield at the end of its region (attn-C26)";
  if (TypeRange(yield.getOperandTypes()) != types) {
    InFlightDiagnostic diag = yield.emitOpError() << "yields ";
    if (yield.getNumOperands() == 0)
      diag << "nothing";
    llvm::interleaveComma(yield.getOperandTypes(), diag);
    diag << ", expected ";
    llvm::interleaveComma(types, diag);
    diag << " (" << id << ")";
    return diag;
  }
  // Outer operations first: the loop is refused, not what stands in it.
  WalkResult walk = op->getRegion(0).walk<WalkOrder::PreOrder>([&](Operation *nested) {
    if (nested == yield.getOperation() || isElementOp(nested))
      return WalkResult::advance();
    nested->emitOpError("is not allowed in a region of a kernel, expected mask, score and table "
                        "operations, scalar arith and math, and scf.for (attn-C24)");
    return WalkResult::interrupt();
  });
  if (walk.wasInterrupted() || failed(verifyRowBounds(op->getRegion(0))))
    return failure();
  return verifyPerUses(op->getRegion(0), roles);
}

ParseResult MaskOp::parse(OpAsmParser &parser, OperationState &result) {
  return parseRoleRegion(parser, result, maskRoles, false);
}
void MaskOp::print(OpAsmPrinter &p) {
  printRoleRegion(p, getBody());
  p.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}
void MaskOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  nameArguments(region, maskRoles, setName);
}
LogicalResult MaskOp::verifyRegions() {
  return verifyRegion(*this, maskRoles, IntegerType::get(getContext(), 1), "attn-C20");
}

ParseResult ScoreOp::parse(OpAsmParser &parser, OperationState &result) {
  return parseRoleRegion(parser, result, scoreRoles, false);
}
void ScoreOp::print(OpAsmPrinter &p) {
  printRoleRegion(p, getBody());
  p.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}
void ScoreOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  nameArguments(region, scoreRoles, setName);
}
LogicalResult ScoreOp::verifyRegions() {
  return verifyRegion(*this, scoreRoles, Float32Type::get(getContext()), "attn-C21");
}

ParseResult BoundsOp::parse(OpAsmParser &parser, OperationState &result) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef kind;
  if (parser.parseKeyword(&kind))
    return failure();
  if (kind != "exact" && kind != "hull")
    return parser.emitError(loc, "expected 'exact' or 'hull', got '") << kind << "'";
  if (kind == "exact")
    result.addAttribute(getExactAttrName(result.name), parser.getBuilder().getUnitAttr());
  return parseRoleRegion(parser, result, boundsRoles, false);
}
void BoundsOp::print(OpAsmPrinter &p) {
  p << (getExact() ? " exact" : " hull");
  printRoleRegion(p, getBody());
  p.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}
void BoundsOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  nameArguments(region, boundsRoles, setName);
}
LogicalResult BoundsOp::verifyRegions() {
  Type index = IndexType::get(getContext());
  return verifyRegion(*this, boundsRoles, {index, index}, "attn-C22");
}

ParseResult PerOp::parse(OpAsmParser &parser, OperationState &result) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef keyword;
  if (parser.parseKeyword(&keyword))
    return failure();
  std::optional<Level> level = symbolizeLevel(keyword);
  if (!level)
    return parser.emitError(loc, "expected a level request, head, row or column, got '")
           << keyword << "'";
  result.addAttribute(getLevelAttrName(result.name),
                      parser.getBuilder().getI32IntegerAttr(static_cast<int32_t>(*level)));
  return parseRoleRegion(parser, result, getLevelRoles(*level), true);
}
void PerOp::print(OpAsmPrinter &p) {
  p << ' ' << stringifyLevel(getLevel());
  printRoleRegion(p, getBody());
  p << "-> (";
  llvm::interleaveComma(getResultTypes(), p);
  p << ") ";
  p.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}
void PerOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  nameArguments(region, getLevelRoles(getLevel()), setName);
}
LogicalResult PerOp::verifyRegions() {
  for (Type type : getResultTypes())
    if (!getScalarType(type))
      return emitOpError() << "computes scalars, got a value of type " << type << " (attn-C27)";
  return verifyRegion(*this, getLevelRoles(getLevel()), getResultTypes(), "attn-C27");
}

//===----------------------------------------------------------------------===//
// Table accesses
//===----------------------------------------------------------------------===//

/// attn-C1: `value` is the argument of `role` of the region around `op`.
LogicalResult attn::verifyIndexOperand(Operation *op, Value value, IndexRole role) {
  if (getIndexRole(value) == role)
    return success();
  InFlightDiagnostic diag = op->emitOpError()
                            << "operand " << getRoleName(role)
                            << " is expected to be the region's argument %" << getRoleName(role);
  if (auto got = getIndexRole(value))
    diag << ", got %" << getRoleName(*got);
  else
    diag << ", got another value";
  diag << " (attn-C1)";
  return diag;
}

static ParseResult parseTableAndElement(OpAsmParser &parser, Type &table, Type &element) {
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseType(table))
    return failure();
  auto type = dyn_cast<TableType>(table);
  if (!type)
    return parser.emitError(loc, "expected a !attn.table type, got ") << table;
  element = type.getElement();
  return success();
}

static void printTableAndElement(OpAsmPrinter &p, Operation *, Type table, Type) { p << table; }

LogicalResult LoadOp::verify() {
  TableType type = cast<TableType>(getTable().getType());
  if (getIndices().size() != type.getDims().size())
    return emitOpError() << "expects " << type.getDims().size() << " indices for " << type
                         << ", got " << getIndices().size() << " (attn-C30)";
  if (getResult().getType() != type.getElement())
    return emitOpError() << "expects the result type " << type.getElement() << ", got "
                         << getResult().getType() << " (attn-C34)";
  for (auto [i, dim] : llvm::enumerate(type.getDims())) {
    std::optional<IndexRole> role;
    if (dim == core::TableDim::B)
      role = IndexRole::B;
    else if (dim == core::TableDim::H || dim == core::TableDim::HKv)
      role = IndexRole::H;
    else if (dim == core::TableDim::Token)
      role = IndexRole::Q;
    if (role && getIndexRole(getIndices()[i]) != role)
      return emitOpError() << "index " << i << " of dim " << StringRef(core::toString(dim))
                           << " is expected to be the region's argument %" << getRoleName(*role)
                           << " (attn-C31)";
  }
  return success();
}

LogicalResult NumRangesOp::verify() { return verifyIndexOperand(*this, getB(), IndexRole::B); }
LogicalResult RangeOp::verify() { return verifyIndexOperand(*this, getB(), IndexRole::B); }
LogicalResult RowRangeOp::verify() { return verifyIndexOperand(*this, getQ(), IndexRole::Q); }

//===----------------------------------------------------------------------===//
// Operands that are a value or a literal
//===----------------------------------------------------------------------===//

static ParseResult parseBound(OpAsmParser &parser,
                              std::optional<OpAsmParser::UnresolvedOperand> &value,
                              IntegerAttr &literal) {
  OpAsmParser::UnresolvedOperand operand;
  OptionalParseResult isOperand = parser.parseOptionalOperand(operand);
  if (isOperand.has_value()) {
    value = operand;
    return *isOperand;
  }
  SMLoc loc = parser.getCurrentLocation();
  APInt number;
  OptionalParseResult isInteger = parser.parseOptionalInteger(number);
  if (!isInteger.has_value())
    return parser.emitError(loc, "expected an i32 value or an integer literal");
  if (failed(*isInteger))
    return failure();
  if (number.getSignificantBits() > 32)
    return parser.emitError(loc, "integer literal does not fit i32");
  literal = parser.getBuilder().getI32IntegerAttr(static_cast<int32_t>(number.getSExtValue()));
  return success();
}

static void printBound(OpAsmPrinter &p, Operation *, Value value, IntegerAttr literal) {
  if (value)
    p << value;
  else if (literal)
    p << literal.getInt();
}

static ParseResult parseFloatBound(OpAsmParser &parser,
                                   std::optional<OpAsmParser::UnresolvedOperand> &value,
                                   FloatAttr &literal) {
  OpAsmParser::UnresolvedOperand operand;
  OptionalParseResult isOperand = parser.parseOptionalOperand(operand);
  if (isOperand.has_value()) {
    value = operand;
    return *isOperand;
  }
  return parser.parseAttribute(literal, parser.getBuilder().getF32Type());
}

static void printFloatBound(OpAsmPrinter &p, Operation *, Value value, FloatAttr literal) {
  if (value)
    p << value;
  else if (literal)
    p.printAttributeWithoutType(literal);
}

#define GET_OP_CLASSES
#include "attn/IR/AttnOps.cpp.inc"
