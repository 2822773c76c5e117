// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The dialect, its types and index roles.

#include "attn/Core/NativeAbi.h"
#include "attn/Dialect/Attn/IR/AttnOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace attn;

#include "attn/IR/AttnDialect.cpp.inc"
#include "attn/IR/AttnEnums.cpp.inc"
#include "attn/IR/AttnInterfaces.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "attn/IR/AttnTypes.cpp.inc"

void AttnDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "attn/IR/AttnOps.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "attn/IR/AttnTypes.cpp.inc"
      >();
}

Operation *AttnDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type,
                                            Location loc) {
  if (auto typed = dyn_cast<TypedAttr>(value))
    return arith::ConstantOp::create(builder, loc, typed);
  return nullptr;
}

//===----------------------------------------------------------------------===//
// !attn.table
//===----------------------------------------------------------------------===//

Type TableType::parse(AsmParser &parser) {
  SmallVector<core::TableDim> dims;
  Type element;
  auto parseDim = [&]() -> ParseResult {
    SMLoc loc = parser.getCurrentLocation();
    StringRef name;
    if (parser.parseKeyword(&name))
      return failure();
    auto dim = core::parseTableDim(std::string_view(name.data(), name.size()));
    if (!dim)
      return parser.emitError(loc, "unknown table dim '")
             << name << "', expected one of b, token, k, slot, h, h_kv, bucket";
    dims.push_back(*dim);
    return success();
  };
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseDim) ||
      parser.parseComma() || parser.parseType(element) || parser.parseGreater())
    return {};
  return parser.getChecked<TableType>(loc, parser.getContext(), dims, element);
}

void TableType::print(AsmPrinter &printer) const {
  printer << "<[";
  llvm::interleaveComma(getDims(), printer,
                        [&](core::TableDim dim) { printer << StringRef(core::toString(dim)); });
  printer << "], " << getElement() << ">";
}

LogicalResult TableType::verify(function_ref<InFlightDiagnostic()> emitError,
                                ArrayRef<core::TableDim> dims, Type element) {
  if (dims.empty() || static_cast<int64_t>(dims.size()) > core::kMaxTableRank)
    return emitError() << "a table has 1 to " << core::kMaxTableRank << " dims, got " << dims.size()
                       << " (attn-C32)";
  if (!element.isInteger(8) && !element.isInteger(32) && !element.isInteger(64) && !element.isF32())
    return emitError() << "table elements are i8, i32, i64 or f32, got " << element
                       << " (attn-C33)";
  return success();
}

//===----------------------------------------------------------------------===//
// Index roles
//===----------------------------------------------------------------------===//

ArrayRef<IndexRole> attn::getLevelRoles(Level level) {
  static constexpr IndexRole request[] = {IndexRole::B};
  static constexpr IndexRole head[] = {IndexRole::B, IndexRole::H};
  static constexpr IndexRole row[] = {IndexRole::B, IndexRole::H, IndexRole::Q};
  static constexpr IndexRole column[] = {IndexRole::B, IndexRole::H, IndexRole::K};
  switch (level) {
  case Level::Request:
    return request;
  case Level::Head:
    return head;
  case Level::Row:
    return row;
  case Level::Column:
    return column;
  }
  llvm_unreachable("covered switch");
}

/// Roles of the arguments of a region op, in order; none for other operations.
static ArrayRef<IndexRole> getRoles(Operation *op) {
  static constexpr IndexRole mask[] = {IndexRole::B, IndexRole::H, IndexRole::Q, IndexRole::K};
  static constexpr IndexRole score[] = {IndexRole::S, IndexRole::B, IndexRole::H, IndexRole::Q,
                                        IndexRole::K};
  static constexpr IndexRole bounds[] = {IndexRole::B, IndexRole::H, IndexRole::Q};
  if (isa_and_nonnull<MaskOp>(op))
    return mask;
  if (isa_and_nonnull<ScoreOp>(op))
    return score;
  if (isa_and_nonnull<BoundsOp>(op))
    return bounds;
  if (auto per = dyn_cast_or_null<PerOp>(op))
    return getLevelRoles(per.getLevel());
  return {};
}

std::optional<IndexRole> attn::getIndexRole(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument)
    return std::nullopt;
  ArrayRef<IndexRole> roles = getRoles(argument.getOwner()->getParentOp());
  if (argument.getArgNumber() >= roles.size())
    return std::nullopt;
  return roles[argument.getArgNumber()];
}

Value attn::getIndexArgument(Operation *op, IndexRole role) {
  for (; op && !isa<KernelOp>(op); op = op->getParentOp()) {
    ArrayRef<IndexRole> roles = getRoles(op);
    for (auto [i, r] : llvm::enumerate(roles))
      if (r == role)
        return op->getRegion(0).getArgument(i);
  }
  return {};
}

static void addRole(DependenceSet &set, IndexRole role) {
  switch (role) {
  case IndexRole::S:
    set.s = true;
    break;
  case IndexRole::B:
    set.b = true;
    break;
  case IndexRole::H:
    set.h = true;
    break;
  case IndexRole::Q:
    set.q = true;
    break;
  case IndexRole::K:
    set.k = true;
    break;
  }
}

/// What decides the dependence of `value`, unless it is an index itself.
static SmallVector<Value, 4> getSources(Value value, DependenceSet &own) {
  SmallVector<Value, 4> sources;
  if (auto role = getIndexRole(value)) {
    addRole(own, *role);
    return sources;
  }
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    // An argument of a loop inside a region: what the loop depends on. Kernel arguments: nothing.
    Operation *parent = argument.getOwner()->getParentOp();
    if (parent && !isa<KernelOp>(parent) && parent->getNumResults() > 0)
      sources.push_back(parent->getResult(0));
    return sources;
  }
  Operation *op = value.getDefiningOp();
  if (auto per = dyn_cast<PerOp>(op)) {
    for (IndexRole role : getLevelRoles(per.getLevel()))
      addRole(own, role);
    return sources;
  }
  if (op->getNumRegions() > 0 && value != op->getResult(0)) {
    sources.push_back(op->getResult(0));
    return sources;
  }
  llvm::append_range(sources, op->getOperands());
  if (op->getNumRegions() > 0)
    op->walk([&](Operation *nested) {
      if (nested != op)
        for (Value operand : nested->getOperands())
          if (!op->isAncestor(operand.getParentBlock()->getParentOp()))
            sources.push_back(operand);
    });
  return sources;
}

DependenceSet DependenceAnalysis::get(Value value) {
  struct Frame {
    Value value;
    DependenceSet set;
    SmallVector<Value, 4> sources;
    size_t next = 0;
  };
  // No recursion: chains may be as long as the spec. A value in work counts as known, so the loops
  // of a region that is not verified yet end.
  std::vector<Frame> stack;
  auto push = [&](Value v) {
    if (!known.try_emplace(v).second)
      return false;
    Frame frame;
    frame.value = v;
    frame.sources = getSources(v, frame.set);
    stack.push_back(std::move(frame));
    return true;
  };
  push(value);
  while (!stack.empty()) {
    Frame &top = stack.back();
    if (top.next < top.sources.size()) {
      Value source = top.sources[top.next];
      if (push(source))
        continue; // and looked at again when it is known
      top.set.add(known.lookup(source));
      ++top.next;
      continue;
    }
    known[top.value] = top.set;
    stack.pop_back();
  }
  return known.lookup(value);
}

void DependenceAnalysis::forget(Operation *op) {
  for (Value result : op->getResults())
    known.erase(result);
}

DependenceSet attn::getDependence(Value value) { return DependenceAnalysis().get(value); }

LevelOrKernel attn::getLevel(const DependenceSet &set) {
  if (set.s || (set.q && set.k))
    return {};
  if (set.q)
    return {false, Level::Row};
  if (set.k)
    return {false, Level::Column};
  if (set.h)
    return {false, Level::Head};
  if (set.b)
    return {false, Level::Request};
  return {true, std::nullopt};
}
