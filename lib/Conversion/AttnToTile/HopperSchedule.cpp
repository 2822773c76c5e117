// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernel structure, records and the producer; the row groups are in HopperConsumer.cpp.

#include "HopperSchedule.h"

#include "attn/Conversion/AttnToTile/AttnToTile.h"

#include <cmath>

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

HopperSchedule::HopperSchedule(KernelOp kernel, const TileShapeInfo &shape, bool countTiles)
    : kernel(kernel), shape(shape), countTiles(countTiles), form(MaskForm::get(kernel)) {
  double literal = 1.0 / std::sqrt(static_cast<double>(kernel.getDim()));
  if (kernel.getScale())
    literal = kernel.getScale()->convertToDouble();
  // A negative scale would turn the maximum into a minimum, a parameter may be one; beside a large
  // one the rounding of maximum * scale would be no small power of two.
  folded = !kernel.getScore() && !kernel.getScaleParam() && literal > 0 && literal <= 1;
  constexpr double kLog2e = 1.4426950408889634;
  exponentScale = folded ? literal * kLog2e : kLog2e;
  overlap = !hasElementLoop(kernel, !form.isRuns);
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
  Block *body = builder.createBlock(&op.getBody(), {}, {map, map, map, pointer},
                                    SmallVector<Location>(4, loc));
  mapQ = body->getArgument(0), mapK = body->getArgument(1), mapV = body->getArgument(2);
  args = body->getArgument(3);

  Type element = kernel.getQType();
  auto ring = [&](int64_t stages, int64_t rows, int64_t arrivals) -> Value {
    auto type = tile::RingType::get(ctx, stages, rows, shape.dim, element);
    return tile::RingOp::create(builder, loc, type, arrivals);
  };
  constexpr int64_t kGroupWarps = 4;
  ringQ = ring(shape.groups, core::kGroupRows, kGroupWarps);
  ringK = ring(shape.stages, shape.keyTile, kGroupWarps * shape.groups);
  ringV = ring(shape.stages, shape.keyTile, kGroupWarps * shape.groups);

  auto producer = tile::ProducerOp::create(builder, loc, shape.producerRegisters);
  auto consumers = tile::ConsumersOp::create(builder, loc, shape.groups, shape.consumerRegisters);
  builder.createBlock(&producer.getBody());
  emitProducer(builder);
  Block *groups = builder.createBlock(&consumers.getBody(), {}, {builder.getI32Type()}, {loc});
  emitConsumers(builder, groups->getArgument(0));
  return op;
}

//===----------------------------------------------------------------------===//
// Records
//===----------------------------------------------------------------------===//

TileScalars HopperSchedule::emitHeader(OpBuilder &builder) {
  TileEmitter e(builder, getLoc());
  Value block = e.toI64(tile::BlockIdOp::create(builder, getLoc(), builder.getI32Type()));
  Value item =
      e.address(e.pointerWord(args, core::kCudaWork), e.mul(block, e.i64(sizeof(core::WorkItem))));
  auto pair = VectorType::get(2, builder.getI32Type());
  Value loaded = e.load(pair, item, 8);
  Value number = LLVM::ExtractElementOp::create(builder, getLoc(), loaded, e.i32(0));
  TileScalars scalars;
  scalars.head = LLVM::ExtractElementOp::create(builder, getLoc(), loaded, e.i32(1));
  Value header = e.address(e.pointerWord(args, core::kCudaTiles),
                           e.mul(e.toI64(number), e.i64(sizeof(core::TileHeader))));
  SmallVector<Value> fields = e.loadI32s(header, 9);
  scalars.request = fields[0];
  scalars.queryBegin = fields[1];
  scalars.tokenBegin = fields[2];
  scalars.rows = fields[3];
  scalars.entryCount = fields[5];
  scalars.kvRow = fields[6];
  scalars.keyBegin = fields[7];
  scalars.keyEnd = fields[8];
  scalars.entries = e.address(e.pointerWord(args, core::kCudaEntries),
                              e.mul(e.toI64(fields[4]), e.i64(sizeof(core::TileEntry))));
  return scalars;
}

EntryScalars HopperSchedule::emitEntry(OpBuilder &builder, const TileScalars &tile, Value number) {
  TileEmitter e(builder, getLoc());
  Value at = e.mul(e.toI64(number), e.i64(sizeof(core::TileEntry)));
  SmallVector<Value> fields = e.loadI32s(e.address(tile.entries, at), 4);
  return {fields[0], fields[1], fields[2], fields[3]};
}

//===----------------------------------------------------------------------===//
// Producer
//===----------------------------------------------------------------------===//

/// One block of K or V: a box per page piece, shared by the lanes; one box by lane 0 where the box
/// has the tile's rows.
void HopperSchedule::emitLoad(OpBuilder &builder, const TileScalars &tile, Value ring, Value map,
                              Value use, Value key) {
  Location loc = getLoc();
  TileEmitter e(builder, loc);
  tile::AcquireOp::create(builder, loc, ring, use);
  tile::ExpectOp::create(builder, loc, ring, use);
  Value lane = tile::ThreadIdOp::create(builder, loc, builder.getI32Type());
  Value boxRows = e.toI32(e.word(args, core::kCudaBoxRows));
  Value pages = e.pointerWord(args, core::kCudaPageTable);
  Value noPages = LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::eq, pages,
                                       LLVM::ZeroOp::create(builder, loc, pages.getType()));
  int64_t groups = shape.dim / 64;
  Value kvHead = e.div(tile.head, e.i32(kernel.getHeads() / kernel.getKvHeads()));

  // Page and row of the piece that starts at key `first`; pieces without live keys lie past the
  // cache, so that their page table entries are never read.
  auto emitPiece = [&](OpBuilder &b, Value first, Value at, bool whole) {
    TileEmitter in(b, loc);
    auto place = scf::IfOp::create(
        b, loc, noPages,
        [&](OpBuilder &then, Location) {
          TileEmitter t(then, loc);
          scf::YieldOp::create(then, loc, ValueRange{t.i32(0), t.add(tile.kvRow, first)});
        },
        [&](OpBuilder &otherwise, Location) {
          TileEmitter o(otherwise, loc);
          Value dead = o.either(o.cmp(Predicate::sge, first, tile.keyEnd),
                                o.cmp(Predicate::sle, o.add(first, boxRows), tile.keyBegin));
          auto live = scf::IfOp::create(
              otherwise, loc, dead,
              [&](OpBuilder &d, Location) {
                TileEmitter gone(d, loc);
                Value past = gone.toI32(gone.word(args, core::kCudaNumPages));
                scf::YieldOp::create(d, loc, ValueRange{past, gone.i32(0)});
              },
              [&](OpBuilder &l, Location) {
                TileEmitter page(l, loc);
                Value size = page.toI32(page.word(args, core::kCudaPageSize));
                Value row =
                    page.mul(page.toI64(tile.request), page.word(args, core::kCudaPageTableStride));
                Value entry = page.add(row, page.toI64(page.div(first, size)));
                Value number =
                    page.load(l.getI32Type(), page.address(pages, page.mul(entry, page.i64(4))), 4);
                scf::YieldOp::create(l, loc, ValueRange{number, page.rem(first, size)});
              });
          scf::YieldOp::create(otherwise, loc, live.getResults());
        });
    for (int64_t g = 0; g < (whole ? 1 : groups); ++g)
      tile::CopyOp::create(b, loc, map, place.getResult(1), in.i32(g), kvHead, place.getResult(0),
                           ring, use, at);
  };

  Value whole = e.cmp(Predicate::eq, boxRows, e.i32(shape.keyTile));
  scf::IfOp::create(
      builder, loc, whole,
      [&](OpBuilder &b, Location) {
        TileEmitter in(b, loc);
        scf::IfOp::create(b, loc, in.cmp(Predicate::eq, lane, in.i32(0)),
                          [&](OpBuilder &first, Location) {
                            emitPiece(first, key, TileEmitter(first, loc).i32(0), true);
                            scf::YieldOp::create(first, loc);
                          });
        scf::YieldOp::create(b, loc);
      },
      [&](OpBuilder &b, Location) {
        TileEmitter in(b, loc);
        Value step = in.mul(boxRows, in.i32(32));
        scf::ForOp::create(b, loc, in.mul(lane, boxRows), in.i32(shape.keyTile), step, ValueRange{},
                           [&](OpBuilder &l, Location, Value at, ValueRange) {
                             emitPiece(l, TileEmitter(l, loc).add(key, at), at, false);
                             scf::YieldOp::create(l, loc);
                           });
        scf::YieldOp::create(b, loc);
      });
}

void HopperSchedule::emitProducer(OpBuilder &builder) {
  Location loc = getLoc();
  TileEmitter e(builder, loc);
  TileScalars tile = emitHeader(builder);
  auto loadQ = [&](OpBuilder &b) {
    TileEmitter in(b, loc);
    for (int64_t g = 0; g < shape.groups; ++g) {
      Value slot = in.i32(g);
      tile::ExpectOp::create(b, loc, ringQ, slot);
      Value lane = tile::ThreadIdOp::create(b, loc, b.getI32Type());
      scf::IfOp::create(
          b, loc, in.cmp(Predicate::eq, lane, in.i32(0)), [&](OpBuilder &first, Location) {
            TileEmitter f(first, loc);
            Value row = f.add(tile.tokenBegin, f.i32(core::kGroupRows * g));
            Value zero = f.i32(0);
            tile::CopyOp::create(first, loc, mapQ, row, zero, tile.head, zero, ringQ, slot, zero);
            scf::YieldOp::create(first, loc);
          });
    }
  };
  Value zero = e.i32(0), one = e.i32(1);
  auto entries =
      scf::ForOp::create(builder, loc, zero, tile.entryCount, one, ValueRange{zero, zero},
                         [&](OpBuilder &b, Location, Value number, ValueRange carried) {
                           EntryScalars entry = emitEntry(b, tile, number);
                           auto blocks = scf::ForOp::create(
                               b, loc, zero, entry.blocks, one, carried,
                               [&](OpBuilder &in, Location, Value j, ValueRange state) {
                                 TileEmitter i(in, loc);
                                 Value use = state[0], before = state[1];
                                 Value fromLow = i.sub(i.sub(entry.blocks, one), j);
                                 Value key =
                                     i.add(entry.keyBegin, i.mul(fromLow, i.i32(shape.keyTile)));
                                 emitLoad(in, tile, ringK, mapK, use, key);
                                 scf::IfOp::create(
                                     in, loc, i.cmp(Predicate::eq, use, zero),
                                     [&](OpBuilder &first, Location) {
                                       loadQ(first);
                                       scf::YieldOp::create(first, loc);
                                     },
                                     [&](OpBuilder &later, Location) {
                                       Value last = TileEmitter(later, loc).sub(use, one);
                                       emitLoad(later, tile, ringV, mapV, last, before);
                                       scf::YieldOp::create(later, loc);
                                     });
                                 scf::YieldOp::create(in, loc, ValueRange{i.add(use, one), key});
                               });
                           scf::YieldOp::create(b, loc, blocks.getResults());
                         });
  Value use = entries.getResult(0);
  scf::IfOp::create(builder, loc, e.cmp(Predicate::ne, use, zero), [&](OpBuilder &b, Location) {
    Value last = TileEmitter(b, loc).sub(use, one);
    emitLoad(b, tile, ringV, mapV, last, entries.getResult(1));
    scf::YieldOp::create(b, loc);
  });
  if (!countTiles)
    return;
  Value lane = tile::ThreadIdOp::create(builder, loc, builder.getI32Type());
  scf::IfOp::create(builder, loc, e.cmp(Predicate::eq, lane, zero), [&](OpBuilder &b, Location) {
    TileEmitter in(b, loc);
    Value at = in.address(in.pointerWord(args, core::kCudaCounters),
                          in.i64(offsetof(core::TileCounters, loaded)));
    LLVM::AtomicRMWOp::create(b, loc, LLVM::AtomicBinOp::add, at, in.toI64(use),
                              LLVM::AtomicOrdering::monotonic);
    scf::YieldOp::create(b, loc);
  });
}
