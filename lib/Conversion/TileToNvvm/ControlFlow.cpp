// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operations one after the other, and scf as blocks.

#include "KernelLowering.h"

#include "Scalars.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace attn::tile;

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

FailureOr<SmallVector<Type>> KernelLowering::flatten(Operation *op, TypeRange types) {
  SmallVector<Type> flat;
  Type f32 = Float32Type::get(op->getContext()), i32 = IntegerType::get(op->getContext(), 32);
  for (Type type : types) {
    if (auto pending = dyn_cast<PendingType>(type))
      type = pending.getFragment();
    if (auto fragment = dyn_cast<FragmentType>(type)) {
      bool isAcc = fragment.getLayout() == FragmentLayout::Acc;
      flat.append(fragment.getCols() / (isAcc ? 2 : 4), isAcc ? f32 : i32);
    } else if (auto bits = dyn_cast<BitsType>(type)) {
      flat.append(2 * ((bits.getCols() / 4 + 31) / 32), i32);
    } else {
      auto rows = dyn_cast<RowsType>(type);
      Type scalar = attn::tile::getScalarType(rows ? rows.getElement() : type);
      if (!scalar)
        return op->emitError("carries a value of type ") << type << ", which has no registers";
      flat.append(rows ? 2 : 1, scalar);
    }
  }
  return flat;
}

const Values &KernelLowering::lookup(Value value) {
  auto it = known.find(value);
  assert(it != known.end() && "values are lowered before their uses");
  return it->second;
}

Value KernelLowering::lookupOne(Value value) { return lookup(value).front(); }

Values KernelLowering::lookup(ValueRange values) {
  Values flat;
  for (Value value : values)
    llvm::append_range(flat, lookup(value));
  return flat;
}

void KernelLowering::bind(Value value, Values values) { known[value] = std::move(values); }

void KernelLowering::bindAll(ValueRange values, ValueRange flat) {
  size_t at = 0;
  for (Value value : values) {
    // Already checked by whoever made the blocks.
    size_t count = flatten(value.getParentBlock()->getParentOp(), value.getType())->size();
    bind(value, Values(flat.slice(at, count)));
    at += count;
  }
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

LogicalResult KernelLowering::emitBlock(Block &block) {
  for (Operation &op : block) {
    if (op.hasTrait<OpTrait::IsTerminator>())
      break;
    if (failed(emitOp(op)))
      return failure();
  }
  return success();
}

LogicalResult KernelLowering::emitOp(Operation &op) {
  e.setLoc(op.getLoc());
  auto done = [](auto &&emit) {
    emit();
    return success();
  };
  return llvm::TypeSwitch<Operation *, LogicalResult>(&op)
      .Case<MapOp>([&](auto o) { return emitMap(o); })
      .Case<MapRowsOp>([&](auto o) { return emitMapRows(o); })
      .Case<scf::ForOp>([&](auto o) { return emitFor(o); })
      .Case<scf::IfOp>([&](auto o) { return emitIf(o); })
      .Case<scf::WhileOp>([&](auto o) { return emitWhile(o); })
      .Case<AcquireOp>([&](auto o) { return done([&] { emitAcquire(o); }); })
      .Case<ExpectOp>([&](auto o) { return done([&] { emitExpect(o); }); })
      .Case<CopyOp>([&](auto o) { return done([&] { emitCopy(o); }); })
      .Case<WaitOp>([&](auto o) { return done([&] { emitWait(o); }); })
      .Case<ReleaseOp>([&](auto o) { return done([&] { emitRelease(o); }); })
      .Case<HideOp>([&](auto o) { return done([&] { emitHide(o); }); })
      .Case<HideUnseenOp>([&](auto o) { return done([&] { emitHideUnseen(o); }); })
      .Case<PushOp>([&](auto o) { return done([&] { emitPush(o); }); })
      .Case<FrontOp>([&](auto o) { return done([&] { emitFront(o); }); })
      .Case<ReadOp>([&](auto o) { return done([&] { emitRead(o); }); })
      .Case<PopOp>([&](auto o) { return done([&] { emitPop(o); }); })
      .Case<FromLaneOp>([&](auto o) { return done([&] { emitFromLane(o); }); })
      .Case<ClaimOp>([&](auto o) { return done([&] { emitClaim(o); }); })
      .Case<AwaitTurnOp>([&](auto) { return done([&] { emitAwaitTurn(); }); })
      .Case<PassTurnOp>([&](auto) { return done([&] { emitPassTurn(); }); })
      .Case<LoadOperandOp>([&](auto o) { return done([&] { emitLoadOperand(o); }); })
      .Case<MmaOperandOp>([&](auto o) { return done([&] { emitMmaOperand(o); }); })
      .Case<MmaSharedOp>([&](auto o) { return done([&] { emitMmaShared(o); }); })
      .Case<MmaRegisterOp>([&](auto o) { return done([&] { emitMmaRegister(o); }); })
      .Case<WaitMmaOp>([&](auto o) { return done([&] { emitWaitMma(o); }); })
      .Case<FillOp>([&](auto o) { return done([&] { emitFill(o); }); })
      .Case<RowMaxOp>([&](auto o) { return done([&] { emitRowMax(o); }); })
      .Case<RowSumOp>([&](auto o) { return done([&] { emitRowSum(o); }); })
      .Case<RowFinishOp>([&](auto o) { return done([&] { emitRowFinish(o); }); })
      .Case<WarpAnyOp>([&](auto o) { return done([&] { emitWarpAny(o); }); })
      .Case<ToOperandOp>([&](auto o) { return done([&] { emitToOperand(o); }); })
      .Case<RangeBitsOp>([&](auto o) { return done([&] { emitRangeBits(o); }); })
      .Case<BitsOrOp>([&](auto o) { return done([&] { emitBitsOr(o); }); })
      .Case<SelectOp>([&](auto o) { return done([&] { emitSelect(o); }); })
      .Case<StoreOp>([&](auto o) { return done([&] { emitStore(o); }); })
      .Case<StoreBoxOp>([&](auto o) { return done([&] { emitStoreBox(o); }); })
      .Case<StoreRowsOp>([&](auto o) { return done([&] { emitStoreRows(o); }); })
      .Case<ThreadIdOp>([&](auto o) { return done([&] { bind(o, {emitThreadId()}); }); })
      .Case<GridSizeOp>(
          [&](auto o) { return done([&] { bind(o, {e.emit<NVVM::GridDimXOp>(o.getType())}); }); })
      .Case<BlockIdOp>(
          [&](auto o) { return done([&] { bind(o, {e.emit<NVVM::BlockIdXOp>(o.getType())}); }); })
      .Default([&](Operation *o) -> LogicalResult {
        Values operands;
        for (Value operand : o->getOperands()) {
          auto values = known.find(operand);
          if (values == known.end() || values->second.size() != 1)
            return o->emitError("takes a value of type ")
                   << operand.getType() << ", which is no scalar";
          operands.push_back(values->second.front());
        }
        auto results = emitScalar(e, *o, operands);
        if (failed(results))
          return failure();
        for (auto [result, value] : llvm::zip(o->getResults(), *results))
          bind(result, {value});
        return success();
      });
}

//===----------------------------------------------------------------------===//
// scf
//===----------------------------------------------------------------------===//

LogicalResult KernelLowering::emitFor(scf::ForOp op) {
  auto types = flatten(op, op.getInitArgs().getTypes());
  if (failed(types))
    return failure();
  Value upper = lookupOne(op.getUpperBound()), step = lookupOne(op.getStep());
  Values first = {lookupOne(op.getLowerBound())};
  llvm::append_range(first, lookup(op.getInitArgs()));
  types->insert(types->begin(), first.front().getType());
  Block *header = e.newBlock(*types), *body = e.newBlock(), *after = e.newBlock();
  e.branch(header, first);
  e.enter(header);
  Value counter = header->getArgument(0);
  ValueRange carried = header->getArguments().drop_front();
  auto below = op.getUnsignedCmp() ? IntPredicate::ult : IntPredicate::slt;
  e.branchIf(e.cmp(below, counter, upper), body, after);
  e.enter(body);
  bind(op.getInductionVar(), {counter});
  bindAll(op.getRegionIterArgs(), carried);
  if (failed(emitBlock(*op.getBody())))
    return failure();
  e.setLoc(op.getLoc());
  Values next = {e.add(counter, step)};
  llvm::append_range(next, lookup(op.getBody()->getTerminator()->getOperands()));
  e.branch(header, next);
  e.enter(after);
  bindAll(op.getResults(), carried);
  return success();
}

LogicalResult KernelLowering::emitIf(scf::IfOp op) {
  auto types = flatten(op, op.getResultTypes());
  if (failed(types))
    return failure();
  Value condition = lookupOne(op.getCondition());
  bool hasElse = !op.getElseRegion().empty();
  Block *yes = e.newBlock(), *no = hasElse ? e.newBlock() : nullptr, *after = e.newBlock(*types);
  e.branchIf(condition, yes, hasElse ? no : after);
  auto arm = [&](Block *block, Region &region) -> LogicalResult {
    e.enter(block);
    if (failed(emitBlock(region.front())))
      return failure();
    e.setLoc(op.getLoc());
    Values results;
    if (!types->empty())
      results = lookup(region.front().getTerminator()->getOperands());
    e.branch(after, results);
    return success();
  };
  if (failed(arm(yes, op.getThenRegion())) || (hasElse && failed(arm(no, op.getElseRegion()))))
    return failure();
  e.enter(after);
  bindAll(op.getResults(), after->getArguments());
  return success();
}

LogicalResult KernelLowering::emitWhile(scf::WhileOp op) {
  auto types = flatten(op, op.getInits().getTypes());
  if (failed(types) || failed(flatten(op, op.getResultTypes())))
    return failure();
  Block *header = e.newBlock(*types), *body = e.newBlock(), *after = e.newBlock();
  e.branch(header, lookup(op.getInits()));
  e.enter(header);
  bindAll(op.getBeforeArguments(), header->getArguments());
  if (failed(emitBlock(*op.getBeforeBody())))
    return failure();
  e.setLoc(op.getLoc());
  scf::ConditionOp condition = op.getConditionOp();
  // Both successors have this one predecessor: what the condition passes on needs no arguments.
  Values passed = lookup(condition.getArgs());
  e.branchIf(lookupOne(condition.getCondition()), body, after);
  e.enter(body);
  bindAll(op.getAfterArguments(), passed);
  if (failed(emitBlock(*op.getAfterBody())))
    return failure();
  e.setLoc(op.getLoc());
  e.branch(header, lookup(op.getYieldOp()->getOperands()));
  e.enter(after);
  bindAll(op.getResults(), passed);
  return success();
}
