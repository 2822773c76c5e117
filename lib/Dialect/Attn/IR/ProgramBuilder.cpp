// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "attn/Dialect/Attn/IR/ProgramBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace attn;
using NodeOp = core::Op;
using core::ScalarType;

std::optional<ScalarType> attn::getScalarType(Type type) {
  if (type.isIndex())
    return ScalarType::I64;
  if (type.isF32())
    return ScalarType::F32;
  if (auto integer = dyn_cast<IntegerType>(type)) {
    if (!integer.isSignless())
      return std::nullopt;
    switch (integer.getWidth()) {
    case 1:
      return ScalarType::Bool;
    case 8:
      return ScalarType::I8;
    case 16:
      return ScalarType::I16;
    case 32:
      return ScalarType::I32;
    case 64:
      return ScalarType::I64;
    default:
      return std::nullopt;
    }
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Scalar operations of other dialects
//===----------------------------------------------------------------------===//

static NodeOp getCmpIOp(arith::CmpIPredicate predicate) {
  using P = arith::CmpIPredicate;
  switch (predicate) {
  case P::eq:
    return NodeOp::CmpEq;
  case P::ne:
    return NodeOp::CmpNe;
  case P::slt:
    return NodeOp::CmpSlt;
  case P::sle:
    return NodeOp::CmpSle;
  case P::sgt:
    return NodeOp::CmpSgt;
  case P::sge:
    return NodeOp::CmpSge;
  case P::ult:
    return NodeOp::CmpUlt;
  case P::ule:
    return NodeOp::CmpUle;
  case P::ugt:
    return NodeOp::CmpUgt;
  case P::uge:
    return NodeOp::CmpUge;
  }
  llvm_unreachable("covered switch");
}

/// The comparison, or nothing for the constant predicates.
static std::optional<NodeOp> getCmpFOp(arith::CmpFPredicate predicate) {
  using P = arith::CmpFPredicate;
  switch (predicate) {
  case P::OEQ:
    return NodeOp::FCmpOeq;
  case P::ONE:
    return NodeOp::FCmpOne;
  case P::OLT:
    return NodeOp::FCmpOlt;
  case P::OLE:
    return NodeOp::FCmpOle;
  case P::OGT:
    return NodeOp::FCmpOgt;
  case P::OGE:
    return NodeOp::FCmpOge;
  case P::ORD:
    return NodeOp::FCmpOrd;
  case P::UEQ:
    return NodeOp::FCmpUeq;
  case P::UNE:
    return NodeOp::FCmpUne;
  case P::ULT:
    return NodeOp::FCmpUlt;
  case P::ULE:
    return NodeOp::FCmpUle;
  case P::UGT:
    return NodeOp::FCmpUgt;
  case P::UGE:
    return NodeOp::FCmpUge;
  case P::UNO:
    return NodeOp::FCmpUno;
  case P::AlwaysFalse:
  case P::AlwaysTrue:
    return std::nullopt;
  }
  llvm_unreachable("covered switch");
}

/// Operations whose operands and one result map one to one.
static std::optional<NodeOp> getSimpleOp(Operation *op) {
  if (auto cmp = dyn_cast<arith::CmpIOp>(op))
    return getCmpIOp(cmp.getPredicate());
  if (auto cmp = dyn_cast<arith::CmpFOp>(op))
    return getCmpFOp(cmp.getPredicate());
  return llvm::StringSwitch<std::optional<NodeOp>>(op->getName().getStringRef())
      .Case("arith.addi", NodeOp::Add)
      .Case("arith.subi", NodeOp::Sub)
      .Case("arith.muli", NodeOp::Mul)
      .Case("arith.divsi", NodeOp::DivS)
      .Case("arith.remsi", NodeOp::RemS)
      .Case("arith.divui", NodeOp::DivU)
      .Case("arith.remui", NodeOp::RemU)
      .Case("arith.floordivsi", NodeOp::FloorDivS)
      .Case("arith.ceildivsi", NodeOp::CeilDivS)
      .Case("arith.minsi", NodeOp::MinS)
      .Case("arith.maxsi", NodeOp::MaxS)
      .Case("arith.minui", NodeOp::MinU)
      .Case("arith.maxui", NodeOp::MaxU)
      .Case("arith.andi", NodeOp::And)
      .Case("arith.ori", NodeOp::Or)
      .Case("arith.xori", NodeOp::Xor)
      .Case("arith.shli", NodeOp::Shl)
      .Case("arith.shrsi", NodeOp::ShrS)
      .Case("arith.shrui", NodeOp::ShrU)
      .Case("arith.extsi", NodeOp::SExt)
      .Case("arith.extui", NodeOp::ZExt)
      .Case("arith.trunci", NodeOp::Trunc)
      .Case("arith.select", NodeOp::Select)
      .Case("arith.addf", NodeOp::FAdd)
      .Case("arith.subf", NodeOp::FSub)
      .Case("arith.mulf", NodeOp::FMul)
      .Case("arith.divf", NodeOp::FDiv)
      .Case("arith.negf", NodeOp::FNeg)
      .Case("arith.minimumf", NodeOp::FMin)
      .Case("arith.maximumf", NodeOp::FMax)
      .Case("arith.minnumf", NodeOp::FMinNum)
      .Case("arith.maxnumf", NodeOp::FMaxNum)
      .Case("arith.sitofp", NodeOp::SIToFP)
      .Case("arith.uitofp", NodeOp::UIToFP)
      .Case("arith.fptosi", NodeOp::FPToSI)
      .Case("math.absf", NodeOp::FAbs)
      .Case("math.fma", NodeOp::Fma)
      .Case("math.exp", NodeOp::Exp)
      .Case("math.exp2", NodeOp::Exp2)
      .Case("math.expm1", NodeOp::ExpM1)
      .Case("math.log", NodeOp::Log)
      .Case("math.log2", NodeOp::Log2)
      .Case("math.log1p", NodeOp::Log1p)
      .Case("math.tanh", NodeOp::Tanh)
      .Case("math.sqrt", NodeOp::Sqrt)
      .Case("math.rsqrt", NodeOp::Rsqrt)
      .Case("math.powf", NodeOp::Pow)
      .Case("math.sin", NodeOp::Sin)
      .Case("math.cos", NodeOp::Cos)
      .Case("math.erf", NodeOp::Erf)
      .Case("math.floor", NodeOp::Floor)
      .Case("math.ceil", NodeOp::Ceil)
      .Default(std::nullopt);
}

/// The integer width change of an index cast, or nothing if it only renames the type.
static std::optional<NodeOp> getCastOp(Operation *op) {
  unsigned from = core::bitWidth(*getScalarType(op->getOperand(0).getType()));
  unsigned to = core::bitWidth(*getScalarType(op->getResult(0).getType()));
  if (to == from)
    return std::nullopt;
  if (to < from)
    return NodeOp::Trunc;
  return isa<arith::IndexCastUIOp>(op) ? NodeOp::ZExt : NodeOp::SExt;
}

bool attn::isElementOp(Operation *op) {
  for (Type type : op->getResultTypes())
    if (!getScalarType(type))
      return false;
  if (isa<ElementOpInterface>(op) || isa<scf::YieldOp>(op))
    return true;
  for (Type type : op->getOperandTypes())
    if (!getScalarType(type))
      return false;
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    // A loop without results computes nothing; an unsigned one counts differently.
    if (!loop.getInductionVar().getType().isIndex() || loop.getNumResults() == 0 ||
        loop.getUnsignedCmp())
      return false;
    return true;
  }
  if (isa<arith::ConstantOp, arith::IndexCastOp, arith::IndexCastUIOp>(op))
    return true;
  if (isa<arith::ExtSIOp, arith::ExtUIOp, arith::TruncIOp>(op) ||
      op->getName().getDialectNamespace() == "arith" ||
      op->getName().getDialectNamespace() == "math")
    return getSimpleOp(op).has_value();
  return false;
}

//===----------------------------------------------------------------------===//
// Declarations
//===----------------------------------------------------------------------===//

/// Smallest legal value of a parameter by its uses as radius or count.
static std::optional<int64_t> getMinimum(BlockArgument param) {
  std::optional<int64_t> minimum;
  auto raise = [&](int64_t value) { minimum = std::max(minimum.value_or(value), value); };
  for (Operation *user : param.getUsers()) {
    if (auto window = dyn_cast<WindowOp>(user)) {
      raise(0);
    } else if (auto sliding = dyn_cast<SlidingOp>(user)) {
      raise(1);
    } else if (auto mm = dyn_cast<MmPrefixOp>(user)) {
      raise(0);
    }
  }
  return minimum;
}

std::vector<core::ParamDecl> attn::getParamDecls(KernelOp kernel) {
  std::vector<core::ParamDecl> decls;
  for (unsigned i = 0; i < kernel.getNumParams(); ++i) {
    BlockArgument argument = kernel.getBody().getArgument(i);
    core::ParamDecl decl;
    decl.name = kernel.getArgName(i).str();
    decl.type = *getScalarType(argument.getType());
    decl.minValue = getMinimum(argument);
    decls.push_back(std::move(decl));
  }
  return decls;
}

std::vector<core::TableDecl> attn::getTableDecls(KernelOp kernel) {
  std::vector<core::TableDecl> decls;
  for (unsigned i = 0, n = kernel.getNumTables(); i < n; ++i) {
    Type type = kernel.getTable(i).getType();
    core::TableDecl decl;
    decl.name = kernel.getArgName(static_cast<unsigned>(kernel.getNumParams()) + i).str();
    decl.source = static_cast<int32_t>(kernel.getTableSources()[i]);
    if (auto table = dyn_cast<TableType>(type)) {
      decl.kind = core::TableKind::Plain;
      decl.dims.assign(table.getDims().begin(), table.getDims().end());
      decl.element = *getScalarType(table.getElement());
    } else if (isa<RangesType>(type)) {
      decl.kind = core::TableKind::Ranges;
    } else if (isa<DocumentsType>(type)) {
      decl.kind = core::TableKind::Documents;
    } else {
      decl.kind = core::TableKind::QueryRanges;
    }
    decls.push_back(std::move(decl));
  }
  return decls;
}

//===----------------------------------------------------------------------===//
// Builder
//===----------------------------------------------------------------------===//

ProgramBuilder::ProgramBuilder(KernelOp kernel) : kernel(kernel) {
  program.params = getParamDecls(kernel);
  program.tables = getTableDecls(kernel);
  for (unsigned i = 0; i < kernel.getNumParams(); ++i)
    bind(kernel.getBody().getArgument(i), add(NodeOp::Param, program.params[i].type, {}, i));
}

core::NodeId ProgramBuilder::lookup(Value value) {
  auto it = nodes.find(value);
  assert(it != nodes.end() && "operands are visited before their users");
  return it->second;
}

core::NodeId ProgramBuilder::add(NodeOp op, ScalarType type, ArrayRef<core::NodeId> operands,
                                 int32_t ref, int64_t imm) {
  core::Node node;
  node.op = op;
  node.type = type;
  node.operands.assign(operands.begin(), operands.end());
  node.ref = ref;
  node.imm = imm;
  return program.add(std::move(node));
}

std::optional<core::NodeId> ProgramBuilder::bound(Value value, IntegerAttr literal) {
  if (literal)
    return add(NodeOp::Const, ScalarType::I32, {}, -1, literal.getInt());
  if (value)
    return lookup(value);
  return std::nullopt;
}

int32_t ProgramBuilder::tableNumber(Value table) {
  return static_cast<int32_t>(cast<BlockArgument>(table).getArgNumber() - kernel.getNumParams());
}

LogicalResult ProgramBuilder::addFor(Operation &op) {
  auto loop = cast<scf::ForOp>(op);
  // Leaves of the loop name the For node, which comes after its body: they are patched at the end.
  std::vector<core::NodeId> leaves;
  core::NodeId iv = add(NodeOp::LoopIndex, ScalarType::I64);
  leaves.push_back(iv);
  bind(loop.getInductionVar(), iv);
  for (auto [i, argument] : llvm::enumerate(loop.getRegionIterArgs())) {
    core::NodeId leaf = add(NodeOp::LoopCarried, *getScalarType(argument.getType()), {}, -1, i);
    leaves.push_back(leaf);
    bind(argument, leaf);
  }
  for (Operation &nested : loop.getBody()->without_terminator())
    if (failed(addOp(nested)))
      return failure();
  SmallVector<core::NodeId> operands = {lookup(loop.getLowerBound()), lookup(loop.getUpperBound()),
                                        lookup(loop.getStep())};
  for (Value init : loop.getInitArgs())
    operands.push_back(lookup(init));
  for (Value value : loop.getBody()->getTerminator()->getOperands())
    operands.push_back(lookup(value));
  core::NodeId result = add(NodeOp::For, *getScalarType(loop.getResult(0).getType()), operands, -1,
                            loop.getNumResults());
  for (core::NodeId leaf : leaves)
    program.nodes[leaf].ref = result;
  bind(loop.getResult(0), result);
  for (unsigned i = 1; i < loop.getNumResults(); ++i)
    bind(loop.getResult(i),
         add(NodeOp::ForResult, *getScalarType(loop.getResult(i).getType()), {}, result, i));
  return success();
}

LogicalResult ProgramBuilder::addOp(Operation &op) {
  if (auto element = dyn_cast<ElementOpInterface>(op))
    return element.toProgram(*this);
  if (isa<scf::ForOp>(op))
    return addFor(op);
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    core::Node node;
    node.op = NodeOp::Const;
    node.type = *getScalarType(constant.getType());
    if (auto integer = dyn_cast<IntegerAttr>(constant.getValue()))
      node.imm = node.type == ScalarType::Bool ? integer.getValue().getZExtValue()
                                               : integer.getValue().getSExtValue();
    else
      node.fimm = cast<FloatAttr>(constant.getValue()).getValueAsDouble();
    bind(constant.getResult(), add(std::move(node)));
    return success();
  }
  SmallVector<core::NodeId> operands;
  for (Value operand : op.getOperands())
    operands.push_back(lookup(operand));
  std::optional<NodeOp> simple;
  if (isa<arith::IndexCastOp, arith::IndexCastUIOp>(op)) {
    simple = getCastOp(&op);
    if (!simple) {
      bind(op.getResult(0), operands[0]);
      return success();
    }
  } else {
    simple = getSimpleOp(&op);
  }
  if (!simple)
    return op.emitOpError("has no counterpart in a mask program");
  bind(op.getResult(0), add(*simple, *getScalarType(op.getResult(0).getType()), operands));
  return success();
}

LogicalResult ProgramBuilder::addBlock(Block &block) {
  for (BlockArgument argument : block.getArguments()) {
    auto role = getIndexRole(argument);
    NodeOp op = NodeOp::IndexB;
    switch (*role) {
    case IndexRole::S:
      op = NodeOp::Score;
      break;
    case IndexRole::B:
      op = NodeOp::IndexB;
      break;
    case IndexRole::H:
      op = NodeOp::IndexH;
      break;
    case IndexRole::Q:
      op = NodeOp::IndexQ;
      break;
    case IndexRole::K:
      op = NodeOp::IndexK;
      break;
    }
    bind(argument, add(op, role == IndexRole::S ? ScalarType::F32 : ScalarType::I64));
  }
  for (Operation &op : block.without_terminator())
    if (failed(addOp(op)))
      return failure();
  return success();
}

FailureOr<core::MaskProgram> ProgramBuilder::build() {
  for (Operation &op : kernel.getBody().front()) {
    if (isa<BoundsOp>(op))
      continue;
    if (!isa<MaskOp, ScoreOp, PerOp>(op)) {
      if (failed(addOp(op)))
        return failure();
      continue;
    }
    Block &block = op.getRegion(0).front();
    if (failed(addBlock(block)))
      return failure();
    Operation *yield = block.getTerminator();
    if (isa<MaskOp>(op))
      program.mask = lookup(yield->getOperand(0));
    else if (isa<ScoreOp>(op))
      program.score = lookup(yield->getOperand(0));
    else
      for (auto [result, value] : llvm::zip(op.getResults(), yield->getOperands()))
        bind(result, lookup(value));
  }
  return program;
}
