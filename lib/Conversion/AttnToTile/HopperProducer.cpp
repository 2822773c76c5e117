// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the producer and the loader load, and in which order.

#include "HopperSchedule.h"

using namespace mlir;
using namespace attn;
using Predicate = arith::CmpIPredicate;

/// Work items of the launch. Read every time anew, and not as what does not change: kept from tile
/// to tile it takes a register that the producer of three row groups does not have.
Value HopperSchedule::emitNumWork(OpBuilder &builder) {
  TileEmitter e(builder, getLoc());
  Value most = e.toI32(e.word(args, core::kCudaNumWork));
  Value size = LLVM::LoadOp::create(builder, getLoc(), builder.getI32Type(),
                                    e.pointerWord(args, core::kCudaListSize), /*alignment=*/4);
  return e.min(most, size);
}

/// How many pages lie in front of the one that has a key, and the key's slot there.
std::pair<Value, Value> HopperSchedule::emitPageOf(TileEmitter &e, Value key) {
  auto extend = [&](Value value) -> Value {
    return arith::ExtUIOp::create(e.builder, e.loc, e.builder.getI64Type(), value);
  };
  auto half = [&](int64_t offset) {
    Value at = e.address(args, e.i64(8 * core::kCudaPerPage + offset));
    return extend(e.load(e.builder.getI32Type(), at, 4));
  };
  // core::Reciprocal.
  Value shift = half(4), factor = half(0);
  Value product = e.mul(extend(key), factor);
  Value page = e.toI32(arith::ShRUIOp::create(e.builder, e.loc, product, shift));
  Value size = e.toI32(e.word(args, core::kCudaPageSize));
  return {page, e.sub(key, e.mul(page, size))};
}

/// Number of the page that has the piece of K or V that starts at key `first`. Pieces without live
/// keys lie past the cache, so that their page table entries are never read.
Value HopperSchedule::emitPageNumber(OpBuilder &builder, const LoadScalars &tile, Value first) {
  Location loc = getLoc();
  TileEmitter e(builder, loc);
  Value boxRows = e.toI32(e.word(args, core::kCudaBoxRows));
  Value isBefore = e.cmp(Predicate::sle, e.add(first, boxRows), tile.keyBegin);
  Value dead = e.either(e.cmp(Predicate::sge, first, tile.keyEnd), isBefore);
  auto live = scf::IfOp::create(
      builder, loc, dead,
      [&](OpBuilder &d, Location) {
        TileEmitter gone(d, loc);
        scf::YieldOp::create(d, loc, gone.toI32(gone.word(args, core::kCudaNumPages)));
      },
      [&](OpBuilder &l, Location) {
        TileEmitter page(l, loc);
        Value stride = page.word(args, core::kCudaPageTableStride);
        Value row = page.mul(page.toI64(tile.request), stride);
        Value entry = page.add(row, page.toI64(emitPageOf(page, first).first));
        Value pages = page.pointerWord(args, core::kCudaPageTable);
        Value at = page.address(pages, page.mul(entry, page.i64(4)));
        scf::YieldOp::create(l, loc, page.load(l.getI32Type(), at, 4));
      });
  return live.getResult(0);
}

/// One block of K or V, by lane 0. Contiguous keys are a box, which has the tile's rows; so is a
/// page that has them. Other pages are a box a piece and column group: the lanes find out where 32
/// pieces lie, before the slot is empty, as all wait for that. One lane issues their boxes, with
/// coordinates that are the same in all lanes: with those of each lane, a lane after the other,
/// causal 128 in pages of 16 took 1.625 ms instead of 1.538. Two of the four schedulers have the
/// loop over pieces beside the softmax, so that its instructions count.
void HopperSchedule::emitLoad(OpBuilder &builder, const LoadScalars &tile, Value ring, Value map,
                              Value use, Value key) {
  Location loc = getLoc();
  TileEmitter e(builder, loc);
  Value lane = tile::ThreadIdOp::create(builder, loc, builder.getI32Type());
  Value isFirst = e.cmp(Predicate::eq, lane, e.i32(0));
  Value boxRows = e.toI32(e.word(args, core::kCudaBoxRows)), size = e.i32(shape.keyTile);
  auto emitBegin = [&](OpBuilder &b) {
    tile::AcquireOp::create(b, loc, ring, use);
    tile::ExpectOp::create(b, loc, ring, use);
  };
  auto emitBoxes = [&](OpBuilder &b, Value page, Value slot, Value at, int64_t columnGroups) {
    scf::IfOp::create(b, loc, isFirst, [&](OpBuilder &first, Location) {
      TileEmitter in(first, loc);
      for (int64_t g = 0; g < columnGroups; ++g)
        tile::CopyOp::create(first, loc, map, slot, in.i32(g), tile.kvHead, page, ring, use, at);
      scf::YieldOp::create(first, loc);
    });
  };
  auto emitPieces = [&](OpBuilder &b, Location) {
    TileEmitter in(b, loc);
    Value ofLane = in.mul(lane, boxRows), step = in.mul(boxRows, in.i32(32));
    // The slot is the same in all lanes, and made ahead of the branches of emitPageNumber().
    Value slot = emitPageOf(in, key).second;
    Value pages = emitPageNumber(b, tile, in.add(key, ofLane));
    Value pageSize = in.toI32(in.word(args, core::kCudaPageSize));
    emitBegin(b);
    // Carried: the pages of the lanes, the slot of the first piece.
    auto emitRound = [&](OpBuilder &round, Location, Value begin, ValueRange carried) {
      TileEmitter r(round, loc);
      Value next = r.add(begin, step);
      // Carried: the lane that has the piece's page, the slot there.
      auto pieces = scf::ForOp::create(
          round, loc, begin, r.min(next, size), boxRows, ValueRange{r.i32(0), carried[1]},
          [&](OpBuilder &l, Location, Value at, ValueRange piece) {
            Value page = tile::FromLaneOp::create(l, loc, piece[0], carried[0]);
            emitBoxes(l, page, piece[1], at, shape.dim / 64);
            TileEmitter p(l, loc);
            Value after = p.add(piece[1], boxRows);
            Value isOver = p.cmp(Predicate::eq, after, pageSize);
            scf::YieldOp::create(
                l, loc, ValueRange{p.add(piece[0], p.i32(1)), p.select(isOver, p.i32(0), after)});
          });
      auto following = scf::IfOp::create(
          round, loc, r.cmp(Predicate::slt, next, size),
          [&](OpBuilder &more, Location) {
            TileEmitter m(more, loc);
            Value first = m.add(m.add(key, next), ofLane);
            scf::YieldOp::create(more, loc, emitPageNumber(more, tile, first));
          },
          [&](OpBuilder &last, Location) { scf::YieldOp::create(last, loc, carried[0]); });
      scf::YieldOp::create(round, loc, ValueRange{following.getResult(0), pieces.getResult(1)});
    };
    scf::ForOp::create(b, loc, in.i32(0), size, step, ValueRange{pages, slot}, emitRound);
    scf::YieldOp::create(b, loc);
  };
  auto emitWhole = [&](OpBuilder &b, Location) {
    TileEmitter in(b, loc);
    Value pages = in.word(args, core::kCudaPageTable), zero = in.i32(0);
    auto place = scf::IfOp::create(
        b, loc, in.cmp(Predicate::eq, pages, in.i64(0)),
        [&](OpBuilder &row, Location) {
          Value at = TileEmitter(row, loc).add(tile.kvRow, key);
          scf::YieldOp::create(row, loc, ValueRange{zero, at});
        },
        [&](OpBuilder &page, Location) {
          TileEmitter in(page, loc);
          scf::YieldOp::create(
              page, loc, ValueRange{emitPageNumber(page, tile, key), emitPageOf(in, key).second});
        });
    emitBegin(b);
    emitBoxes(b, place.getResult(0), place.getResult(1), zero, 1);
    scf::YieldOp::create(b, loc);
  };
  scf::IfOp::create(builder, loc, e.cmp(Predicate::eq, boxRows, size), emitWhole, emitPieces);
}

/// Q of a tile: each row group its own rows and barriers, so that it can take the next ones early.
void HopperSchedule::emitQueryLoad(OpBuilder &builder, const TileScalars &tile, Value tiles) {
  Location loc = getLoc();
  TileEmitter e(builder, loc);
  Value lane = tile::ThreadIdOp::create(builder, loc, builder.getI32Type());
  Value isFirst = e.cmp(Predicate::eq, lane, e.i32(0));
  for (int64_t g = 0; g < shape.groups; ++g) {
    Value use = e.add(e.mul(tiles, e.i32(shape.groups)), e.i32(g));
    tile::AcquireOp::create(builder, loc, ringQ, use);
    tile::ExpectOp::create(builder, loc, ringQ, use);
    scf::IfOp::create(builder, loc, isFirst, [&](OpBuilder &first, Location) {
      TileEmitter f(first, loc);
      Value ofPart = f.mul(emitPart(first, f.i32(g), tiles), f.i32(core::kGroupRows));
      Value row = f.add(tile.tokenBegin, ofPart), zero = f.i32(0);
      tile::CopyOp::create(first, loc, mapQ, row, zero, tile.head, zero, ringQ, use, zero);
      scf::YieldOp::create(first, loc);
    });
  }
}

LoadScalars HopperSchedule::emitLoadScalars(OpBuilder &builder, const TileScalars &tile) {
  TileEmitter e(builder, getLoc());
  Value kvHead = e.div(tile.head, e.i32(kernel.getHeads() / kernel.getKvHeads()));
  return {tile.request, kvHead, tile.kvRow, tile.keyBegin, tile.keyEnd};
}

/// Blocks go down; scf.for counts up.
Value HopperSchedule::emitLoads(OpBuilder &builder, const LoadScalars &tile,
                                const EntryScalars &entry, Value ring, Value map, Value use) {
  Location loc = getLoc();
  TileEmitter e(builder, loc);
  Value one = e.i32(1), size = e.i32(shape.keyTile), zero = e.i32(0);
  Value highest = e.add(entry.keyBegin, e.mul(e.sub(entry.blocks, one), size));
  Value end = e.sub(one, entry.keyBegin);
  auto blocks = scf::ForOp::create(builder, loc, e.sub(zero, highest), end, size, use,
                                   [&](OpBuilder &b, Location, Value down, ValueRange carried) {
                                     TileEmitter in(b, loc);
                                     Value key = in.sub(zero, down);
                                     emitLoad(b, tile, ring, map, carried[0], key);
                                     scf::YieldOp::create(b, loc, in.add(carried[0], one));
                                   });
  return blocks.getResult(0);
}

/// The tile's record, Q and K. The next work item is claimed when the last K is under way: a tile
/// claimed at the start would wait here while other CTAs have nothing to do.
HopperSchedule::Progress HopperSchedule::emitProducerTile(OpBuilder &builder, Progress progress,
                                                          Value number, Value head) {
  Location loc = getLoc();
  TileEmitter e(builder, loc);
  TileScalars scalars;
  scalars.head = head;
  Value header = headerAddress(e, number);
  auto field = [&](size_t offset) { return loadField(e, header, offset); };
  scalars.tokenBegin = field(offsetof(core::TileHeader, tokenBegin));
  scalars.queryBegin = field(offsetof(core::TileHeader, queryBegin));
  scalars.keyEnd = field(offsetof(core::TileHeader, keyEnd));
  Value isBound = field(offsetof(core::TileHeader, isBound));
  // Where Q goes into registers its slot is free behind a group's first product, and a second slot
  // is by then. A single one that products read is not before the last of them, and V of the next
  // tile would come late if who loads it had to wait for that.
  const bool isSlotFree = shape.queryInRegisters || shape.queryTiles > 1;
  if (isSlotFree)
    emitQueryLoad(builder, scalars, progress.tiles);
  emitRowsAndKeys(builder, header, isBound, scalars);
  scalars.request = field(offsetof(core::TileHeader, request));
  scalars.rows = field(offsetof(core::TileHeader, rows));
  scalars.entryBegin = field(offsetof(core::TileHeader, entryBegin));
  scalars.entries = field(offsetof(core::TileHeader, entryCount));
  scalars.keyBegin = field(offsetof(core::TileHeader, keyBegin));
  scalars.kvRow = field(offsetof(core::TileHeader, kvRow));
  scalars.halves = field(offsetof(core::TileHeader, halves));
  Value zero = e.i32(0), one = e.i32(1);
  SmallVector<Value> record = scalars.pack();
  record.resize(4 * kQueueTileRows, zero);
  Value entries = entryAddress(e, scalars.entryBegin);
  tile::PushOp::create(builder, loc, record, scalars.entries, entries, queue, progress.tiles);
  if (!isSlotFree)
    emitQueryLoad(builder, scalars, progress.tiles);

  LoadScalars place = emitLoadScalars(builder, scalars);
  Value end = e.add(scalars.entryBegin, scalars.entries);
  auto loads = scf::ForOp::create(builder, loc, scalars.entryBegin, end, one, progress.use,
                                  [&](OpBuilder &b, Location, Value number, ValueRange carried) {
                                    EntryScalars entry = emitEntry(b, number);
                                    Value next =
                                        emitLoads(b, place, entry, ringK, mapK, carried[0]);
                                    scf::YieldOp::create(b, loc, next);
                                  });
  Value use = loads.getResult(0);
  Value grid = tile::GridSizeOp::create(builder, loc, builder.getI32Type());
  Value total = emitNumWork(builder);
  Value claim = tile::ClaimOp::create(builder, loc, e.pointerWord(args, core::kCudaClaims), total);
  if (countTiles)
    emitLoadCounter(builder, e.sub(use, progress.use));
  return {e.add(claim, grid), e.add(progress.tiles, one), use};
}

/// V of the tiles that the producer hands over.
void HopperSchedule::emitLoader(OpBuilder &builder) {
  emitTiles(builder, [&](OpBuilder &b, Value use) {
    Location loc = getLoc();
    TileEmitter in(b, loc);
    LoadScalars place = emitLoadScalars(b, tile);
    auto loads = scf::ForOp::create(b, loc, in.i32(0), tile.entries, in.i32(1), use,
                                    [&](OpBuilder &l, Location, Value number, ValueRange uses) {
                                      EntryScalars entry = emitTakeEntry(l, number);
                                      scf::YieldOp::create(
                                          l, loc, emitLoads(l, place, entry, ringV, mapV, uses[0]));
                                    });
    tile::PopOp::create(b, loc, queue, tiles);
    return loads.getResult(0);
  });
}

void HopperSchedule::emitLoadCounter(OpBuilder &builder, Value blocks) {
  Location loc = getLoc();
  TileEmitter e(builder, loc);
  Value lane = tile::ThreadIdOp::create(builder, loc, builder.getI32Type());
  scf::IfOp::create(builder, loc, e.cmp(Predicate::eq, lane, e.i32(0)),
                    [&](OpBuilder &b, Location) {
                      TileEmitter in(b, loc);
                      Value at = in.address(in.pointerWord(args, core::kCudaCounters),
                                            in.i64(offsetof(core::TileCounters, loaded)));
                      LLVM::AtomicRMWOp::create(b, loc, LLVM::AtomicBinOp::add, at,
                                                in.toI64(blocks), LLVM::AtomicOrdering::monotonic);
                      scf::YieldOp::create(b, loc);
                    });
}

void HopperSchedule::emitProducer(OpBuilder &builder) {
  Location loc = getLoc();
  TileEmitter e(builder, loc);
  Value first = tile::BlockIdOp::create(builder, loc, builder.getI32Type()), zero = e.i32(0);
  SmallVector<Value> inits = Progress{first, zero, zero}.pack();
  SmallVector<Type> types(inits.size() + 2, builder.getI32Type());
  auto loop = scf::WhileOp::create(
      builder, loc, types, inits,
      [&](OpBuilder &b, Location, ValueRange carried) {
        TileEmitter in(b, loc);
        // Read beside the list's size. The number may lie past the list, as the last of every CTA
        // does, and past what the launch has room for, where nothing may be read.
        Value item = Progress::unpack(carried).item;
        Value last = in.sub(in.toI32(in.word(args, core::kCudaNumWork)), in.i32(1));
        auto [number, head] = emitWorkItem(b, in.min(item, last));
        Value total = emitNumWork(b);
        SmallVector<Value> passed(carried);
        passed.append({number, head});
        scf::ConditionOp::create(b, loc, in.cmp(Predicate::slt, item, total), passed);
      },
      [&](OpBuilder &b, Location, ValueRange carried) {
        ValueRange item = carried.take_back(2);
        Progress progress = Progress::unpack(carried);
        scf::YieldOp::create(b, loc, emitProducerTile(b, progress, item[0], item[1]).pack());
      });
  // A tile without rows says that there are no more.
  SmallVector<Value> record(4 * kQueueTileRows, zero);
  tile::PushOp::create(builder, loc, record, zero, entryAddress(e, zero), queue,
                       Progress::unpack(loop.getResults()).tiles);
}
