// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernel structure and records; the producer is in HopperProducer.cpp, the row groups are in
// HopperConsumer.cpp, HopperBlock.cpp and HopperScore.cpp.

#include "HopperSchedule.h"

#include "attn/Conversion/AttnToTile/AttnToTile.h"

using namespace mlir;
using namespace attn;
using Predicate = arith::CmpIPredicate;

/// The most intervals a row that are tested as bits; more cost as much as the predicate.
static constexpr size_t kMaxRuns = 4;

/// Adds the intervals of a union of attn.in_rows with bounds from outside the mask region, or
/// constants; false for anything else.
static bool collectRuns(Value keep, Region &mask, SmallVectorImpl<InRowsOp> &runs) {
  Operation *op = keep.getDefiningOp();
  if (!op)
    return false;
  if (auto either = dyn_cast<OrOp>(op))
    return collectRuns(either.getLhs(), mask, runs) && collectRuns(either.getRhs(), mask, runs);
  auto rows = dyn_cast<InRowsOp>(op);
  if (!rows)
    return false;
  for (Value bound : {rows.getLo(), rows.getHi()}) {
    Operation *definition = bound.getDefiningOp();
    bool inside = mask.isAncestor(bound.getParentRegion());
    if (inside && !(definition && definition->hasTrait<OpTrait::ConstantLike>()))
      return false;
  }
  runs.push_back(rows);
  return runs.size() <= kMaxRuns;
}

MaskForm MaskForm::get(KernelOp kernel) {
  MaskForm form;
  MaskOp mask = kernel.getMask();
  if (!mask) {
    form.isRuns = true;
    return form;
  }
  Value keep = mask.getBody().front().getTerminator()->getOperand(0);
  form.isRuns = collectRuns(keep, mask.getBody(), form.runs);
  if (!form.isRuns)
    form.runs.clear();
  return form;
}

MaskShape MaskForm::getShape() const {
  if (!isRuns)
    return MaskShape::Any;
  if (runs.empty())
    return MaskShape::Prefixes;
  InRowsOp first = runs.front();
  Operation *lo = first.getLo().getDefiningOp();
  bool isOpen = runs.size() == 1 && lo && lo->hasTrait<OpTrait::ConstantLike>();
  return isOpen ? MaskShape::Prefixes : MaskShape::Any;
}

/// True if the per-element code of a kernel holds a loop.
static bool hasElementLoop(KernelOp kernel, bool withMask) {
  bool found = false;
  auto look = [&](Operation *region) { region->walk([&](scf::ForOp) { found = true; }); };
  if (withMask && kernel.getMask())
    look(kernel.getMask());
  if (kernel.getScore())
    look(kernel.getScore());
  for (auto per : kernel.getBody().getOps<PerOp>())
    if (per.getLevel() == Level::Column)
      look(per);
  return found;
}

/// True if what is computed once a row holds a loop.
static bool hasRowLoop(KernelOp kernel) {
  bool found = false;
  for (auto per : kernel.getBody().getOps<PerOp>())
    if (per.getLevel() == Level::Row)
      per.walk([&](scf::ForOp) { found = true; });
  return found;
}

HopperSchedule::HopperSchedule(KernelOp kernel, MaskForm form, const TileShapeInfo &shape,
                               bool countTiles)
    : kernel(kernel), shape(shape), countTiles(countTiles), form(std::move(form)),
      scoreForm(ScoreForm::get(kernel)) {
  overlap = !hasElementLoop(kernel, !this->form.isRuns);
  // Without limits only the end of a sequence leaves half of a block alone.
  hasHalves = shape.takesHalves && !this->form.runs.empty();
  rowsBesideProduct = overlap && !hasRowLoop(kernel);
}

tile::KernelOp HopperSchedule::emit(OpBuilder &builder) {
  Location loc = getLoc();
  MLIRContext *ctx = builder.getContext();
  int64_t words = core::kNumCudaArgs + static_cast<int64_t>(kernel.getNumParams()) +
                  core::kNativeTableWords * kernel.getNumTables();
  auto op = tile::KernelOp::create(builder, loc, getTileKernelName(kernel.getSymName()), words);
  op->setAttr(kKeyTileAttr, builder.getI64IntegerAttr(shape.keyTile));
  if (!form.isRuns)
    op->setAttr(kTestsVisibleAttr, builder.getUnitAttr());
  if (countTiles)
    op->setAttr(kCountsTilesAttr, builder.getUnitAttr());

  OpBuilder::InsertionGuard guard(builder);
  Type map = tile::TensorMapType::get(ctx), pointer = LLVM::LLVMPointerType::get(ctx);
  Block *body = builder.createBlock(&op.getBody(), {}, {map, map, map, map, pointer},
                                    SmallVector<Location>(5, loc));
  mapQ = body->getArgument(0), mapK = body->getArgument(1), mapV = body->getArgument(2);
  mapO = body->getArgument(3), args = body->getArgument(4);

  Type element = kernel.getQType();
  auto ring = [&](int64_t stages, int64_t rows, int64_t arrivals) -> Value {
    auto type = tile::RingType::get(ctx, stages, rows, shape.dim, element);
    return tile::RingOp::create(builder, loc, type, arrivals);
  };
  constexpr int64_t kGroupWarps = 4;
  ringQ = ring(shape.queryTiles * shape.groups, core::kGroupRows, kGroupWarps);
  ringK = ring(shape.stages, shape.keyTile, kGroupWarps * shape.groups);
  ringV = ring(shape.stages, shape.keyTile, kGroupWarps * shape.groups);
  constexpr int64_t kLoaders = 1;
  queue = tile::QueueOp::create(builder, loc, tile::QueueType::get(ctx, 2, kQueueRows),
                                kLoaders + kGroupWarps * shape.groups);

  auto producer = tile::ProducerOp::create(builder, loc, shape.producerRegisters);
  auto loader = tile::LoaderOp::create(builder, loc);
  auto consumers = tile::ConsumersOp::create(builder, loc, shape.groups, shape.consumerRegisters);
  builder.createBlock(&producer.getBody());
  emitProducer(builder);
  builder.createBlock(&loader.getBody());
  emitLoader(builder);
  Block *groups = builder.createBlock(&consumers.getBody(), {}, {builder.getI32Type()}, {loc});
  emitConsumers(builder, groups->getArgument(0));
  return op;
}

//===----------------------------------------------------------------------===//
// Records
//===----------------------------------------------------------------------===//

/// Volatile, or it would be moved behind the branch on the list's size, beside which it is read.
std::pair<Value, Value> HopperSchedule::emitWorkItem(OpBuilder &builder, Value item) {
  Location loc = getLoc();
  TileEmitter e(builder, loc);
  Value offset = e.mul(e.toI64(item), e.i64(sizeof(core::WorkItem)));
  Value at = e.address(e.pointerWord(args, core::kCudaWork), offset);
  Value pair = LLVM::LoadOp::create(builder, loc, VectorType::get(2, builder.getI32Type()), at,
                                    /*alignment=*/8, /*isVolatile=*/true);
  Value number = LLVM::ExtractElementOp::create(builder, loc, pair, e.i32(0));
  return {number, LLVM::ExtractElementOp::create(builder, loc, pair, e.i32(1))};
}

Value HopperSchedule::headerAddress(TileEmitter &e, Value tileNumber) {
  Value offset = e.mul(e.toI64(tileNumber), e.i64(sizeof(core::TileHeader)));
  return e.address(e.pointerWord(args, core::kCudaTiles), offset);
}

Value HopperSchedule::loadField(TileEmitter &e, Value record, size_t offset) {
  Value at = e.address(record, e.i64(static_cast<int64_t>(offset)));
  return e.load(e.builder.getI32Type(), at, 4);
}

Value HopperSchedule::entryAddress(TileEmitter &e, Value number) {
  Value offset = e.mul(e.toI64(number), e.i64(sizeof(core::TileEntry)));
  return e.address(e.pointerWord(args, core::kCudaEntries), offset);
}

EntryScalars HopperSchedule::emitEntry(OpBuilder &builder, Value number) {
  TileEmitter e(builder, getLoc());
  SmallVector<Value> fields = e.loadI32s(entryAddress(e, number), 4);
  return {fields[0], fields[1], fields[2], fields[3]};
}
