// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// attn.kernel: syntax, constraints attn-C10 ... attn-C16, its tables.

#include "attn/Dialect/Attn/IR/AttnOps.h"
#include "attn/Dialect/Attn/IR/ProgramBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"

#include "llvm/ADT/StringSet.h"

#include <cmath>

using namespace mlir;
using namespace attn;

//===----------------------------------------------------------------------===//
// Syntax
//===----------------------------------------------------------------------===//

namespace {
/// What the clauses of a kernel say.
struct Clauses {
  std::optional<int64_t> heads, kvHeads, dim, dimV;
  Type qType, kvType;
  std::optional<double> scale;
  std::optional<OpAsmParser::UnresolvedOperand> scaleParam;
  SMLoc scaleLoc;
  SmallVector<OpAsmParser::Argument> params, tables;
  /// For each table, the name it is built from, or empty.
  SmallVector<OpAsmParser::UnresolvedOperand> sources;
  SmallVector<bool> hasSource;
};
} // namespace

static ParseResult parseCount(OpAsmParser &parser, std::optional<int64_t> &value) {
  int64_t v;
  if (parser.parseLParen() || parser.parseInteger(v) || parser.parseRParen())
    return failure();
  value = v;
  return success();
}

static ParseResult parseParenType(OpAsmParser &parser, Type &type) {
  return failure(parser.parseLParen() || parser.parseType(type) || parser.parseRParen());
}

static ParseResult parseScale(OpAsmParser &parser, Clauses &clauses) {
  if (parser.parseLParen())
    return failure();
  clauses.scaleLoc = parser.getCurrentLocation();
  OpAsmParser::UnresolvedOperand param;
  OptionalParseResult isParam = parser.parseOptionalOperand(param);
  if (isParam.has_value()) {
    if (failed(*isParam))
      return failure();
    clauses.scaleParam = param;
  } else {
    double value;
    if (parser.parseFloat(value))
      return failure();
    clauses.scale = value;
  }
  return parser.parseRParen();
}

static ParseResult parseTables(OpAsmParser &parser, Clauses &clauses) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, [&]() -> ParseResult {
    OpAsmParser::Argument table;
    OpAsmParser::UnresolvedOperand source;
    bool built = false;
    if (parser.parseArgument(table, /*allowType=*/true))
      return failure();
    if (succeeded(parser.parseOptionalKeyword("from"))) {
      built = true;
      if (parser.parseOperand(source))
        return failure();
    }
    clauses.tables.push_back(table);
    clauses.sources.push_back(source);
    clauses.hasSource.push_back(built);
    return success();
  });
}

static ParseResult parseClauses(OpAsmParser &parser, Clauses &clauses) {
  static constexpr StringLiteral names[] = {"heads", "kv_heads", "dim",    "dim_v", "q",
                                            "kv",    "scale",    "params", "tables"};
  size_t next = 0;
  while (true) {
    SMLoc loc = parser.getCurrentLocation();
    StringRef name;
    if (failed(parser.parseOptionalKeyword(&name)))
      return success();
    if (name == "attributes") {
      return parser.emitError(loc, "a kernel takes no attribute dictionary");
    }
    const auto *it = llvm::find(names, name);
    if (it == std::end(names))
      return parser.emitError(loc, "unknown clause '")
             << name
             << "', expected one of heads, kv_heads, dim, dim_v, q, kv, scale, params, tables";
    size_t number = it - std::begin(names);
    if (number < next)
      return parser.emitError(loc, "clause '")
             << name << "' is repeated or out of order, expected the order heads, kv_heads, dim, "
             << "dim_v, q, kv, scale, params, tables";
    next = number + 1;
    ParseResult result = success();
    if (name == "heads")
      result = parseCount(parser, clauses.heads);
    else if (name == "kv_heads")
      result = parseCount(parser, clauses.kvHeads);
    else if (name == "dim")
      result = parseCount(parser, clauses.dim);
    else if (name == "dim_v")
      result = parseCount(parser, clauses.dimV);
    else if (name == "q")
      result = parseParenType(parser, clauses.qType);
    else if (name == "kv")
      result = parseParenType(parser, clauses.kvType);
    else if (name == "scale")
      result = parseScale(parser, clauses);
    else if (name == "params")
      result = parser.parseArgumentList(clauses.params, AsmParser::Delimiter::Paren,
                                        /*allowType=*/true);
    else
      result = parseTables(parser, clauses);
    if (failed(result))
      return failure();
  }
}

/// Number of `operand` among `arguments` by SSA name, or -1.
static int64_t findArgument(const OpAsmParser::UnresolvedOperand &operand,
                            ArrayRef<OpAsmParser::Argument> arguments) {
  for (auto [i, argument] : llvm::enumerate(arguments))
    if (argument.ssaName.name == operand.name && argument.ssaName.number == operand.number)
      return static_cast<int64_t>(i);
  return -1;
}

ParseResult KernelOp::parse(OpAsmParser &parser, OperationState &result) {
  Builder &builder = parser.getBuilder();
  SMLoc loc = parser.getCurrentLocation();
  StringAttr name;
  Clauses clauses;
  if (parser.parseSymbolName(name, getSymNameAttrName(result.name), result.attributes) ||
      parseClauses(parser, clauses))
    return failure();
  auto require = [&](bool there, StringRef clause) -> ParseResult {
    if (!there)
      return parser.emitError(loc, "kernel lacks the clause '") << clause << "'";
    return success();
  };
  if (require(clauses.heads.has_value(), "heads") || require(clauses.dim.has_value(), "dim") ||
      require(!!clauses.qType, "q") || require(!!clauses.kvType, "kv"))
    return failure();

  auto addInt = [&](StringAttr attrName, int64_t value) {
    result.addAttribute(attrName, builder.getI64IntegerAttr(value));
  };
  addInt(getHeadsAttrName(result.name), *clauses.heads);
  addInt(getKvHeadsAttrName(result.name), clauses.kvHeads.value_or(*clauses.heads));
  addInt(getDimAttrName(result.name), *clauses.dim);
  addInt(getDimVAttrName(result.name), clauses.dimV.value_or(*clauses.dim));
  result.addAttribute(getQTypeAttrName(result.name), TypeAttr::get(clauses.qType));
  result.addAttribute(getKvTypeAttrName(result.name), TypeAttr::get(clauses.kvType));
  if (clauses.scale)
    result.addAttribute(getScaleAttrName(result.name), builder.getF64FloatAttr(*clauses.scale));
  if (clauses.scaleParam) {
    int64_t number = findArgument(*clauses.scaleParam, clauses.params);
    if (number < 0)
      return parser.emitError(clauses.scaleLoc, "scale names '")
             << clauses.scaleParam->name << "', which is no parameter of this kernel (attn-C13)";
    addInt(getScaleParamAttrName(result.name), number);
  }
  SmallVector<int64_t> sources;
  for (auto [i, built] : llvm::enumerate(clauses.hasSource)) {
    int64_t source = -1;
    if (built) {
      source = findArgument(clauses.sources[i], clauses.tables);
      if (source < 0 || source >= static_cast<int64_t>(i))
        return parser.emitError(clauses.sources[i].location, "'")
               << clauses.sources[i].name << "' is no table declared before this one (attn-C14)";
    }
    sources.push_back(source);
  }
  SmallVector<OpAsmParser::Argument> arguments(clauses.params);
  llvm::append_range(arguments, clauses.tables);
  SmallVector<StringRef> names;
  for (OpAsmParser::Argument &argument : arguments)
    names.push_back(argument.ssaName.name.drop_front());
  result.addAttribute(getArgNamesAttrName(result.name), builder.getStrArrayAttr(names));
  addInt(getNumParamsAttrName(result.name), clauses.params.size());
  result.addAttribute(getTableSourcesAttrName(result.name), builder.getDenseI64ArrayAttr(sources));

  Region *body = result.addRegion();
  if (parser.parseRegion(*body, arguments))
    return failure();
  if (body->empty()) {
    Block &block = body->emplaceBlock();
    for (OpAsmParser::Argument &argument : arguments)
      block.addArgument(argument.type, builder.getUnknownLoc());
  }
  return success();
}

void KernelOp::print(OpAsmPrinter &p) {
  p << ' ';
  p.printSymbolName(getSymName());
  p << " heads(" << getHeads() << ")";
  if (getKvHeads() != getHeads())
    p << " kv_heads(" << getKvHeads() << ")";
  p << " dim(" << getDim() << ")";
  if (getDimV() != getDim())
    p << " dim_v(" << getDimV() << ")";
  p << " q(" << getQType() << ") kv(" << getKvType() << ")";
  unsigned params = static_cast<unsigned>(getNumParams());
  Block &block = getBody().front();
  if (getScaleAttr())
    p << " scale(" << FloatAttr::get(Float64Type::get(getContext()), *getScale()).getValue() << ")";
  if (getScaleParam())
    p << " scale(" << block.getArgument(*getScaleParam()) << ")";
  if (params) {
    p << " params(";
    llvm::interleaveComma(block.getArguments().take_front(params), p,
                          [&](BlockArgument a) { p.printRegionArgument(a); });
    p << ")";
  }
  if (block.getNumArguments() > params) {
    p << " tables(";
    llvm::interleaveComma(block.getArguments().drop_front(params), p, [&](BlockArgument a) {
      p.printRegionArgument(a);
      int64_t source = getTableSources()[a.getArgNumber() - params];
      if (source >= 0)
        p << " from " << block.getArgument(params + source);
    });
    p << ")";
  }
  p << ' ';
  p.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

void KernelOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  for (BlockArgument argument : region.getArguments())
    if (argument.getArgNumber() < getArgNames().size())
      setName(argument, getArgName(argument.getArgNumber()));
}

//===----------------------------------------------------------------------===//
// Constraints
//===----------------------------------------------------------------------===//

static bool isKernelElementType(Type type) { return type.isF32() || type.isF16() || type.isBF16(); }

LogicalResult KernelOp::verify() {
  auto positive = [&](int64_t value, StringRef clause) -> LogicalResult {
    if (value > 0)
      return success();
    return emitOpError() << clause << " is expected to be positive, got " << value << " (attn-C10)";
  };
  if (failed(positive(getHeads(), "heads")) || failed(positive(getKvHeads(), "kv_heads")) ||
      failed(positive(getDim(), "dim")) || failed(positive(getDimV(), "dim_v")))
    return failure();
  if (getHeads() % getKvHeads() != 0)
    return emitOpError() << "heads is expected to be a multiple of kv_heads, got " << getHeads()
                         << " and " << getKvHeads() << " (attn-C11)";
  for (auto [type, clause] : {std::pair(getQType(), "q"), std::pair(getKvType(), "kv")})
    if (!isKernelElementType(type))
      return emitOpError() << clause << " is expected to be f32, f16 or bf16, got " << type
                           << " (attn-C17)";
  if (getScale() && getScaleParam())
    return emitOpError() << "scale is given both as a literal and as a parameter (attn-C13)";
  if (getScale() && !std::isfinite(static_cast<float>(getScale()->convertToDouble())))
    return emitOpError() << "scale is expected to be finite in f32 (attn-C13)";
  return success();
}

/// True for names that the printer writes as they are.
static bool isIdentifier(StringRef name) {
  return !name.empty() && (llvm::isAlpha(name.front()) || name.front() == '_') &&
         llvm::all_of(name,
                      [](char c) { return llvm::isAlnum(c) || StringRef("_.-$").contains(c); });
}

static LogicalResult verifyArguments(KernelOp kernel) {
  Block &block = kernel.getBody().front();
  unsigned params = static_cast<unsigned>(kernel.getNumParams());
  if (kernel.getNumParams() > block.getNumArguments() ||
      kernel.getArgNames().size() != block.getNumArguments() ||
      kernel.getTableSources().size() != block.getNumArguments() - params)
    return kernel.emitOpError() << "parameter and table declarations do not match the body's "
                                << block.getNumArguments() << " arguments (attn-C18)";
  llvm::StringSet<> names;
  for (BlockArgument argument : block.getArguments()) {
    unsigned i = argument.getArgNumber();
    Type type = argument.getType();
    StringRef name = kernel.getArgName(i);
    if (!isIdentifier(name))
      return kernel.emitOpError() << "parameter or table name '" << name
                                  << "' is expected to be letters, digits, '_', '.', '-' or '$', "
                                     "first a letter or '_' (attn-C15)";
    if (!names.insert(name).second)
      return kernel.emitOpError() << "two parameters or tables are named '" << name
                                  << "' (attn-C15)";
    if (i < params) {
      if (!type.isInteger(32) && !type.isInteger(64) && !type.isF32())
        return kernel.emitOpError()
               << "parameter '" << name << "' is expected to be i32, i64 or f32, got " << type
               << " (attn-C19)";
      continue;
    }
    if (!isa<RangesType, DocumentsType, QueryRangesType, TableType>(type))
      return kernel.emitOpError() << "table '" << name << "' is expected to have a table type, got "
                                  << type << " (attn-C19)";
    int64_t source = kernel.getTableSources()[i - params];
    bool built = isa<QueryRangesType>(type);
    if (!built && source >= 0)
      return kernel.emitOpError() << "table '" << name
                                  << "' is the user's and takes no 'from' (attn-C14)";
    if (built) {
      if (source < 0 || source >= static_cast<int64_t>(i - params) ||
          !isa<RangesType, DocumentsType>(block.getArgument(params + source).getType()))
        return kernel.emitOpError()
               << "table '" << name
               << "' is expected to name an earlier !attn.ranges or !attn.documents table after "
                  "'from' (attn-C14)";
    }
  }
  if (auto scale = kernel.getScaleParam())
    if (*scale >= params || !block.getArgument(*scale).getType().isF32())
      return kernel.emitOpError() << "scale is expected to name an f32 parameter (attn-C13)";
  return success();
}

LogicalResult KernelOp::verifyRegions() {
  if (failed(verifyArguments(*this)))
    return failure();
  auto once = [&](auto ops, StringRef what) -> LogicalResult {
    if (std::distance(ops.begin(), ops.end()) <= 1)
      return success();
    auto second = *std::next(ops.begin());
    InFlightDiagnostic diag = second.emitOpError()
                              << "a kernel has at most one " << what << " (attn-C12)";
    diag.attachNote((*ops.begin()).getLoc()) << "the first one is here";
    return diag;
  };
  Region &body = getBody();
  if (failed(once(body.getOps<MaskOp>(), "attn.mask")) ||
      failed(once(body.getOps<ScoreOp>(), "attn.score")) ||
      failed(once(body.getOps<BoundsOp>(), "attn.bounds")))
    return failure();
  for (Operation &op : body.front()) {
    if (isa<MaskOp, ScoreOp, BoundsOp, PerOp>(op))
      continue;
    WalkResult walk = op.walk<WalkOrder::PreOrder>([](Operation *nested) {
      if (isElementOp(nested))
        return WalkResult::advance();
      nested->emitOpError("is not allowed in the body of a kernel, expected attn.mask, "
                          "attn.score or scalar arithmetic on parameters (attn-C16)");
      return WalkResult::interrupt();
    });
    if (walk.wasInterrupted() || failed(verifyKernelLevel(&op)))
      return failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Accessors
//===----------------------------------------------------------------------===//

template <class OpTy>
static OpTy firstOf(KernelOp kernel) {
  auto ops = kernel.getBody().getOps<OpTy>();
  return ops.empty() ? OpTy() : *ops.begin();
}

double KernelOp::getLiteralScale() {
  if (auto scale = getScale())
    return scale->convertToDouble();
  return 1.0 / std::sqrt(static_cast<double>(getDim()));
}

MaskOp KernelOp::getMask() { return firstOf<MaskOp>(*this); }
ScoreOp KernelOp::getScore() { return firstOf<ScoreOp>(*this); }
BoundsOp KernelOp::getBounds() { return firstOf<BoundsOp>(*this); }

BlockArgument KernelOp::findQueryRanges(unsigned source) {
  for (auto [i, s] : llvm::enumerate(getTableSources()))
    if (s == static_cast<int64_t>(source))
      return getTable(i);
  return {};
}

BlockArgument KernelOp::addQueryRanges(unsigned source) {
  Builder builder(getContext());
  SmallVector<StringRef> names;
  for (auto name : getArgNames().getAsValueRange<StringAttr>())
    names.push_back(name);
  std::string name = (getArgName(static_cast<unsigned>(getNumParams()) + source) + "_rows").str();
  while (llvm::is_contained(names, StringRef(name)))
    name += '_';
  names.push_back(name);
  SmallVector<int64_t> sources(getTableSources());
  sources.push_back(source);
  BlockArgument argument =
      getBody().addArgument(QueryRangesType::get(getContext()), getTable(source).getLoc());
  setArgNamesAttr(builder.getStrArrayAttr(names));
  setTableSourcesAttr(builder.getDenseI64ArrayAttr(sources));
  return argument;
}
