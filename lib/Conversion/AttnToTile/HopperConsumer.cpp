// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a row group does: entries, stretches, the end. One block is in HopperBlock.cpp.

#include "HopperSchedule.h"
#include "Maps.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace attn;
using Predicate = arith::CmpIPredicate;

static constexpr double kLn2 = 0.6931471805599453;

//===----------------------------------------------------------------------===//
// State
//===----------------------------------------------------------------------===//

SmallVector<Value> HopperSchedule::State::pack() const {
  SmallVector<Value> values = {use, qReleased};
  if (max)
    values.push_back(max);
  values.append({sum, o});
  if (visited)
    values.append({visited, full});
  return values;
}

size_t HopperSchedule::stateSize() const {
  constexpr size_t kAlways = 4;
  return kAlways + (scoreForm.shift ? 0 : 1) + (countTiles ? 2 : 0);
}

HopperSchedule::State HopperSchedule::unpackState(ValueRange values) const {
  size_t next = 0;
  State state;
  state.use = values[next++], state.qReleased = values[next++];
  if (!scoreForm.shift)
    state.max = values[next++];
  state.sum = values[next++], state.o = values[next++];
  if (countTiles)
    state.visited = values[next++], state.full = values[next++];
  return state;
}

//===----------------------------------------------------------------------===//
// Entries
//===----------------------------------------------------------------------===//

Value HopperSchedule::groupClass(TileEmitter &e, Value classes) {
  Value shift = e.mul(part, e.i32(core::kGroupClassBits));
  Value shifted = arith::ShRUIOp::create(e.builder, e.loc, classes, shift);
  return e.both(shifted, e.i32((1 << core::kGroupClassBits) - 1));
}

/// The group that has the same rows in every tile would always be the one with the halves; they go
/// round.
Value HopperSchedule::emitPart(OpBuilder &builder, Value groupNumber, Value tileNumber) {
  TileEmitter e(builder, getLoc());
  if (!hasHalves)
    return groupNumber;
  if (shape.groups == 2)
    return arith::XOrIOp::create(builder, getLoc(), groupNumber, e.both(tileNumber, e.i32(1)));
  return e.rem(e.add(groupNumber, tileNumber), e.i32(shape.groups));
}

/// Blocks that no row of the group needs: waited for, so that the hand-back counts for their phase.
HopperSchedule::State HopperSchedule::emitSkip(OpBuilder &builder, const EntryScalars &entry,
                                               State state) {
  Location loc = getLoc();
  TileEmitter e(builder, loc);
  auto loop =
      scf::ForOp::create(builder, loc, e.i32(0), entry.blocks, e.i32(1), ValueRange{state.use},
                         [&](OpBuilder &b, Location, Value, ValueRange carried) {
                           TileEmitter in(b, loc);
                           if (shape.takesTurns) {
                             tile::AwaitTurnOp::create(b, loc);
                             tile::PassTurnOp::create(b, loc);
                           }
                           for (Value ring : {ringK, ringV}) {
                             tile::WaitOp::create(b, loc, ring, carried[0]);
                             tile::ReleaseOp::create(b, loc, ring, carried[0]);
                           }
                           scf::YieldOp::create(b, loc, in.add(carried[0], in.i32(1)));
                         });
  state.use = loop.getResult(0);
  return state;
}

/// The lowest key of block `number` of an entry, counted from the highest.
static Value blockKey(TileEmitter &e, const EntryScalars &entry, Value number, int64_t keyTile) {
  Value fromLow = e.sub(e.sub(entry.blocks, e.i32(1)), number);
  return e.add(entry.keyBegin, e.mul(fromLow, e.i32(keyTile)));
}

/// The blocks of an entry from `first` on.
std::pair<HopperSchedule::State, Value>
HopperSchedule::emitBlocks(OpBuilder &builder, BlockKind kind, const EntryScalars &entry,
                           Value first, State state, Value weights) {
  Location loc = getLoc();
  TileEmitter e(builder, loc);
  SmallVector<Value> inits = state.pack();
  inits.push_back(weights);
  auto loop = scf::ForOp::create(builder, loc, first, entry.blocks, e.i32(1), inits,
                                 [&](OpBuilder &b, Location, Value number, ValueRange carried) {
                                   TileEmitter in(b, loc);
                                   Value key = blockKey(in, entry, number, shape.keyTile);
                                   auto [next, nextWeights] =
                                       emitBlock(b, kind, entry, key,
                                                 unpackState(carried.drop_back()), carried.back());
                                   SmallVector<Value> results = next.pack();
                                   results.push_back(nextWeights);
                                   scf::YieldOp::create(b, loc, results);
                                 });
  return {unpackState(loop.getResults().drop_back()), loop.getResults().back()};
}

/// The softmax of a stretch's first block, masked if it is partial, or of the lower half of one
/// that is. Its weights are an operand.
HopperSchedule::Softmax HopperSchedule::emitFirstBlock(OpBuilder &builder,
                                                       const EntryScalars &entry,
                                                       const State &state, Value isPartial,
                                                       bool isHalf) {
  Location loc = getLoc();
  TileEmitter e(builder, loc);
  const int64_t keys = isHalf ? shape.keyTile / 2 : shape.keyTile;
  Value pending = emitScoresProduct(builder, state.use, keys);
  if (shape.takesTurns)
    tile::PassTurnOp::create(builder, loc);
  if (rowsBesideProduct)
    emitRowValues(builder);
  Value key = blockKey(e, entry, e.i32(0), shape.keyTile);
  Value early;
  if (form.isRuns)
    early = isHalf ? emitKeep(builder, key, keys) : emitEarlyKeep(builder, key, isPartial);
  Value scores = tile::WaitMmaOp::create(builder, loc, 0, pending);
  tile::ReleaseOp::create(builder, loc, ringK, state.use);
  scores = emitScore(builder, scores, key);
  if (isHalf) {
    scores = emitMasked(builder, early, scores);
  } else {
    auto masked = scf::IfOp::create(
        builder, loc, isPartial,
        [&](OpBuilder &b, Location) {
          Value bits = early ? early : emitKeep(b, key, keys);
          if (!form.isRuns)
            emitHide(b, entry, state.use, bits, {});
          scf::YieldOp::create(b, loc, emitMasked(b, bits, scores));
        },
        [&](OpBuilder &b, Location) { scf::YieldOp::create(b, loc, scores); });
    scores = masked.getResult(0);
  }
  if (shape.queryInRegisters) {
    // The first product has used the registers, so Q was read.
    Value isFirst = e.cmp(Predicate::eq, state.qReleased, e.bit(false));
    scf::IfOp::create(builder, loc, isFirst, [&](OpBuilder &b, Location) {
      tile::ReleaseOp::create(b, loc, ringQ, qUse);
      scf::YieldOp::create(b, loc);
    });
  }
  Softmax softmax = emitSoftmax(builder, scores, state);
  softmax.weights = toWeights(builder, softmax.weights);
  return softmax;
}

/// The same where the tile's header says which groups need the lower half of the block alone. Each
/// arm has its product and the wait for it: ptxas gives up the overlap of all products in a kernel
/// in which one is under way where two paths meet.
HopperSchedule::Softmax HopperSchedule::emitHalfOrWhole(OpBuilder &builder, Value isHalf,
                                                        const EntryScalars &entry,
                                                        const State &state, Value isPartial) {
  Location loc = getLoc();
  const size_t numScores = scoreForm.shift ? 2 : 4;
  auto arm = [&](bool half) {
    return [&, half](OpBuilder &b, Location) {
      Softmax softmax = emitFirstBlock(b, entry, state, isPartial, half);
      SmallVector<Value> values = {softmax.sum, softmax.weights};
      if (softmax.max)
        values.append({softmax.max, softmax.factor});
      if (rowsBesideProduct) {
        llvm::append_range(values, rowValues);
        for (auto [lo, hi] : limits)
          values.append({lo, hi});
      }
      scf::YieldOp::create(b, loc, values);
    };
  };
  auto done = scf::IfOp::create(builder, loc, isHalf, arm(true), arm(false));
  ValueRange results = done.getResults();
  Softmax first;
  first.sum = results[0], first.weights = results[1];
  if (!scoreForm.shift)
    first.max = results[2], first.factor = results[3];
  if (rowsBesideProduct) {
    ValueRange ofRows = results.drop_front(numScores);
    llvm::copy(ofRows.take_front(rowValues.size()), rowValues.begin());
    ofRows = ofRows.drop_front(rowValues.size());
    for (auto [i, limit] : llvm::enumerate(limits))
      limit = {ofRows[2 * i], ofRows[2 * i + 1]};
  }
  return first;
}

std::tuple<Value, HopperSchedule::State, HopperSchedule::Finish>
HopperSchedule::emitStretch(OpBuilder &builder, Value entryNumber, const EntryScalars &entry,
                            State state) {
  Location loc = getLoc();
  TileEmitter e(builder, loc);
  Value isPartial = e.cmp(Predicate::eq, groupClass(e, entry.classes), e.i32(core::kGroupPartial));
  SmallVector<Value> visible = emitVisible(builder, entry);
  Value isHalf;
  if (hasHalves) {
    // Of the first entry: a group that is skipped in it has no bit.
    Value ofGroup = arith::ShRUIOp::create(builder, loc, tile.halves, part);
    Value isOwn = e.cmp(Predicate::ne, e.both(ofGroup, e.i32(1)), e.i32(0));
    isHalf = e.both(isOwn, e.cmp(Predicate::eq, entryNumber, e.i32(0)));
  }
  tile::WaitOp::create(builder, loc, ringK, state.use);
  if (shape.takesTurns)
    tile::AwaitTurnOp::create(builder, loc);
  Softmax first = isHalf ? emitHalfOrWhole(builder, isHalf, entry, state, isPartial)
                         : emitFirstBlock(builder, entry, state, isPartial, /*isHalf=*/false);
  if (shape.queryInRegisters)
    state.qReleased = e.bit(true);
  Value weights = first.weights;
  if (form.isRuns) {
    // Behind the softmax, when V is there.
    scf::IfOp::create(builder, loc, isPartial, [&](OpBuilder &b, Location) {
      emitHide(b, entry, state.use, Value(), visible);
      scf::YieldOp::create(b, loc);
    });
  }
  if (first.factor) {
    // Before the first entry O is 0.
    Value isFirst = e.cmp(Predicate::eq, entryNumber, e.i32(0));
    auto rescaled = scf::IfOp::create(
        builder, loc, isFirst,
        [&](OpBuilder &b, Location) { scf::YieldOp::create(b, loc, state.o); },
        [&](OpBuilder &b, Location) {
          scf::YieldOp::create(b, loc, emitRescale(b, state.o, first.factor));
        });
    state.o = rescaled.getResult(0);
  }
  state.max = first.max, state.sum = first.sum;
  state.use = e.add(state.use, e.i32(1));
  if (countTiles) {
    Value isFull = e.cmp(Predicate::eq, groupClass(e, entry.classes), e.i32(core::kGroupFull));
    state.visited = e.add(state.visited, e.i32(1));
    state.full = e.add(state.full, e.select(isFull, e.i32(1), e.i32(0)));
  }

  // Carried: entry number, its fields, the first block to do, the state, the weights.
  SmallVector<Value> inits = {entryNumber,   entry.keyBegin, entry.blocks,
                              entry.classes, entry.visible,  e.i32(1)};
  constexpr size_t kHead = 6;
  inits.append(state.pack());
  inits.push_back(weights);
  SmallVector<Type> types = llvm::to_vector(ValueRange(inits).getTypes());
  auto loop = scf::WhileOp::create(
      builder, loc, types, inits,
      [&](OpBuilder &b, Location, ValueRange carried) {
        TileEmitter in(b, loc);
        EntryScalars now{carried[1], carried[2], carried[3], carried[4]};
        State before = unpackState(carried.slice(kHead, stateSize()));
        auto blocks = [&](BlockKind kind) {
          return [&, kind](OpBuilder &arm, Location) {
            auto [after, next] =
                emitBlocks(arm, kind, now, carried[kHead - 1], before, carried.back());
            SmallVector<Value> results = after.pack();
            results.push_back(next);
            scf::YieldOp::create(arm, loc, results);
          };
        };
        Value isFull = in.cmp(Predicate::eq, groupClass(in, now.classes), in.i32(core::kGroupFull));
        auto done =
            scf::IfOp::create(b, loc, isFull, blocks(BlockKind::Full), blocks(BlockKind::Partial));
        Value number = in.add(carried[0], in.i32(1));
        // Nothing is read behind the last entry: the last product would wait for it.
        Value isLast = in.cmp(Predicate::sge, number, tile.entries);
        auto following = scf::IfOp::create(
            b, loc, isLast,
            [&](OpBuilder &none, Location) {
              TileEmitter n(none, loc);
              Value zero = n.i32(0);
              scf::YieldOp::create(none, loc, ValueRange{zero, zero, zero, zero, n.bit(false)});
            },
            [&](OpBuilder &read, Location) {
              TileEmitter r(read, loc);
              EntryScalars entry = emitTakeEntry(read, number);
              Value isNeeded =
                  r.cmp(Predicate::ne, groupClass(r, entry.classes), r.i32(core::kGroupSkip));
              scf::YieldOp::create(
                  read, loc,
                  ValueRange{entry.keyBegin, entry.blocks, entry.classes, entry.visible, isNeeded});
            });
        SmallVector<Value> results = {number};
        llvm::append_range(results, following.getResults().take_front(4));
        results.push_back(in.i32(0));
        results.append(done.getResults().begin(), done.getResults().end());
        Value more = following.getResult(4);
        scf::ConditionOp::create(b, loc, more, results);
      },
      [&](OpBuilder &b, Location, ValueRange carried) { scf::YieldOp::create(b, loc, carried); });
  State end = unpackState(loop.getResults().slice(kHead, stateSize()));
  Value before = e.sub(end.use, e.i32(1));
  if (!shape.queryInRegisters) {
    // The last product with Q is done: another tile's may come while this one is finished.
    Value isLast = e.cmp(Predicate::sge, loop.getResult(0), tile.entries);
    scf::IfOp::create(builder, loc, isLast, [&](OpBuilder &b, Location) {
      tile::ReleaseOp::create(b, loc, ringQ, qUse);
      scf::YieldOp::create(b, loc);
    });
    end.qReleased = isLast;
  }
  tile::WaitOp::create(builder, loc, ringV, before);
  Value product = tile::MmaRegisterOp::create(builder, loc, pendingOf(shape.dim),
                                              loop.getResults().back(), ringV, before, end.o);
  // While it runs, behind a wait that is over: ptxas orders what lies between two branches, and put
  // the sums of rows between the product's first step and its second.
  tile::WaitOp::create(builder, loc, ringV, before);
  Finish finish = emitFinish(builder, end);
  end.o = tile::WaitMmaOp::create(builder, loc, 0, product);
  tile::ReleaseOp::create(builder, loc, ringV, before);
  return {loop.getResult(0), end, finish};
}

//===----------------------------------------------------------------------===//
// The row group
//===----------------------------------------------------------------------===//

std::pair<HopperSchedule::State, HopperSchedule::Finish>
HopperSchedule::emitEntries(OpBuilder &builder, State state) {
  Location loc = getLoc();
  TileEmitter e(builder, loc);
  tile::WaitOp::create(builder, loc, ringQ, qUse);
  if (shape.queryInRegisters) {
    auto type = tile::FragmentType::get(builder.getContext(), core::kGroupRows, shape.dim,
                                        kernel.getQType(), tile::FragmentLayout::Operand);
    qOperand = tile::LoadOperandOp::create(builder, loc, type, ringQ, qUse);
  }

  // Rows without keys: O is 0 and the log-sum-exp -inf. Carried: entry number, these, the state.
  Type rows = rowsOf(builder.getF32Type());
  constexpr size_t kHead = 3;
  SmallVector<Value> inits = {e.i32(0), tile::FillOp::create(builder, loc, rows, e.f32(0)),
                              tile::FillOp::create(builder, loc, rows, e.f32(-kInfinity))};
  inits.append(state.pack());
  SmallVector<Type> types = llvm::to_vector(ValueRange(inits).getTypes());
  auto loop = scf::WhileOp::create(
      builder, loc, types, inits,
      [&](OpBuilder &b, Location, ValueRange carried) {
        Value more = TileEmitter(b, loc).cmp(Predicate::slt, carried[0], tile.entries);
        scf::ConditionOp::create(b, loc, more, carried);
      },
      [&](OpBuilder &b, Location, ValueRange carried) {
        TileEmitter in(b, loc);
        EntryScalars entry = emitTakeEntry(b, carried[0]);
        State before = unpackState(carried.drop_front(kHead));
        Value isSkip =
            in.cmp(Predicate::eq, groupClass(in, entry.classes), in.i32(core::kGroupSkip));
        auto yield = [&](OpBuilder &arm, Value number, const Finish &finish, const State &after) {
          SmallVector<Value> results = {number, finish.inverse, finish.lse};
          results.append(after.pack());
          scf::YieldOp::create(arm, loc, results);
        };
        auto done = scf::IfOp::create(
            b, loc, isSkip,
            [&](OpBuilder &arm, Location) {
              State after = emitSkip(arm, entry, before);
              TileEmitter skip(arm, loc);
              yield(arm, skip.add(carried[0], skip.i32(1)), {carried[1], carried[2]}, after);
            },
            [&](OpBuilder &arm, Location) {
              auto [number, after, finish] = emitStretch(arm, carried[0], entry, before);
              yield(arm, number, finish, after);
            });
        scf::YieldOp::create(b, loc, done.getResults());
      });
  State end = unpackState(loop.getResults().drop_front(kHead));
  Value isLate = e.cmp(Predicate::eq, end.qReleased, e.bit(false));
  scf::IfOp::create(builder, loc, isLate, [&](OpBuilder &b, Location) {
    tile::ReleaseOp::create(b, loc, ringQ, qUse);
    scf::YieldOp::create(b, loc);
  });
  return {end, {loop.getResult(1), loop.getResult(2)}};
}

TileScalars HopperSchedule::emitTakeTile(OpBuilder &builder, Value number) {
  Location loc = getLoc();
  TileEmitter e(builder, loc);
  tile::FrontOp::create(builder, loc, queue, number);
  SmallVector<Value> words;
  for (int64_t row = 0; row < kQueueTileRows; ++row)
    llvm::append_range(words,
                       tile::ReadOp::create(builder, loc, e.i32(row), queue, number).getResults());
  return TileScalars::unpack(words);
}

/// Carried: number of the tile, of the next block in the rings; then the scalars of the tile.
void HopperSchedule::emitTiles(OpBuilder &builder,
                               function_ref<Value(OpBuilder &, Value)> emitTile) {
  Location loc = getLoc();
  TileEmitter e(builder, loc);
  SmallVector<Value> inits(2, e.i32(0));
  SmallVector<Type> types(2 + TileScalars::kCount, builder.getI32Type());
  scf::WhileOp::create(
      builder, loc, types, inits,
      [&](OpBuilder &b, Location, ValueRange carried) {
        TileScalars next = emitTakeTile(b, carried[0]);
        SmallVector<Value> passed(carried);
        llvm::append_range(passed, next.pack());
        TileEmitter in(b, loc);
        Value more = in.cmp(Predicate::ne, next.rows, in.i32(0));
        scf::ConditionOp::create(b, loc, more, passed);
      },
      [&](OpBuilder &b, Location, ValueRange carried) {
        TileEmitter in(b, loc);
        tiles = carried[0];
        tile = TileScalars::unpack(carried.drop_front(2));
        Value use = emitTile(b, carried[1]);
        scf::YieldOp::create(b, loc, ValueRange{in.add(tiles, in.i32(1)), use});
      });
}

EntryScalars HopperSchedule::emitTakeEntry(OpBuilder &builder, Value number) {
  Location loc = getLoc();
  TileEmitter e(builder, loc);
  auto fields = scf::IfOp::create(
      builder, loc, e.cmp(Predicate::slt, number, e.i32(kQueueEntries)),
      [&](OpBuilder &b, Location) {
        Value row = TileEmitter(b, loc).add(number, TileEmitter(b, loc).i32(kQueueTileRows));
        scf::YieldOp::create(b, loc, tile::ReadOp::create(b, loc, row, queue, tiles).getResults());
      },
      [&](OpBuilder &b, Location) {
        EntryScalars entry = emitEntry(b, TileEmitter(b, loc).add(tile.entryBegin, number));
        scf::YieldOp::create(
            b, loc, ValueRange{entry.keyBegin, entry.blocks, entry.classes, entry.visible});
      });
  return {fields.getResult(0), fields.getResult(1), fields.getResult(2), fields.getResult(3)};
}

Value HopperSchedule::emitConsumerTile(OpBuilder &builder, Value use) {
  Location loc = getLoc();
  TileEmitter e(builder, loc);
  visibleTable = e.pointerWord(args, core::kCudaVisible);
  part = emitPart(builder, group, tiles);
  Value left = e.sub(tile.rows, e.mul(part, e.i32(core::kGroupRows)));
  groupRows = e.min(e.max(left, e.i32(0)), e.i32(core::kGroupRows));

  emitContext(builder, tile.request, tile.head);
  scale = regions->emitScale(builder, kernel);
  if (!rowsBesideProduct)
    emitRowValues(builder);

  State state;
  Type f32 = builder.getF32Type();
  state.use = use;
  state.qReleased = e.bit(false);
  if (!scoreForm.shift)
    state.max = tile::FillOp::create(builder, loc, rowsOf(f32), e.f32(-kInfinity));
  state.sum = tile::FillOp::create(builder, loc, rowsOf(f32, true), e.f32(0));
  state.o = tile::FillOp::create(builder, loc, fragment(shape.dim), e.f32(0));
  if (countTiles)
    state.visited = e.i32(0), state.full = e.i32(0);

  qUse = e.add(e.mul(tiles, e.i32(shape.groups)), group);
  auto [end, finish] = emitEntries(builder, state);
  tile::PopOp::create(builder, loc, queue, tiles);
  emitEpilogue(builder, end.o, finish);
  if (countTiles)
    emitCounters(builder, end);
  return end.use;
}

void HopperSchedule::emitConsumers(OpBuilder &builder, Value groupNumber) {
  group = groupNumber;
  emitTiles(builder, [&](OpBuilder &b, Value use) { return emitConsumerTile(b, use); });
}

HopperSchedule::Finish HopperSchedule::emitFinish(OpBuilder &builder, const State &state) {
  Location loc = getLoc();
  Type rows = rowsOf(builder.getF32Type());
  SmallVector<Value> inputs = {tile::RowFinishOp::create(builder, loc, rows, state.sum)};
  if (state.max)
    inputs.push_back(state.max);
  // An empty row has sum 0: O stays exactly 0 and LSE is -inf. NaN is not equal to 0.
  SmallVector<Value> final =
      mapRows(builder, loc, {rows, rows}, inputs, [&](OpBuilder &b, ValueRange arguments) {
        TileEmitter in(b, loc);
        Value total = arguments[0], max = state.max ? arguments[1] : Value();
        Value isEmpty = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, total, in.f32(0));
        // Relative to a maximum the sum is at least about 1 and of the order of the number of keys;
        // the reciprocal is 0 above 2^126, which takes scores of some 2^31. With a constant shift
        // it may be anything from 2^-110 to 2^68 (HopperScore.cpp), and is divided by.
        Value inverse = max ? Value(tile::RcpOp::create(b, loc, total))
                            : Value(arith::DivFOp::create(b, loc, in.f32(1), total));
        Value log = tile::Lg2Op::create(b, loc, total);
        if (max)
          log = math::FmaOp::create(b, loc, max, in.f32(scoreForm.unit), log);
        else
          log = arith::AddFOp::create(b, loc, log, in.f32(*scoreForm.shift));
        Value lse = arith::MulFOp::create(b, loc, log, in.f32(kLn2));
        if (max) {
          // A score of +inf makes the sum NaN; the log-sum-exp is +inf all the same.
          Value isInfinite =
              arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, max, in.f32(kInfinity));
          lse = in.select(isInfinite, in.f32(kInfinity), lse);
        }
        return SmallVector<Value>{in.select(isEmpty, in.f32(0), inverse),
                                  in.select(isEmpty, in.f32(-kInfinity), lse)};
      });
  return {final[0], final[1]};
}

void HopperSchedule::emitEpilogue(OpBuilder &builder, Value sums, const Finish &finish) {
  Location loc = getLoc();
  TileEmitter e(builder, loc);
  Value o = emitRescale(builder, sums, finish.inverse);
  Value firstToken = e.add(tile.tokenBegin, e.mul(part, e.i32(core::kGroupRows)));
  Value token = e.toI64(firstToken);
  Value head = e.toI64(tile.head);
  auto store = [&](OpBuilder &b, Location) {
    TileEmitter in(b, loc);
    Value tokenStride = in.word(args, core::kCudaOTokenStride);
    Value toHead = in.mul(head, in.word(args, core::kCudaOHeadStride));
    Value at = in.mul(in.add(in.mul(token, tokenStride), toHead), in.i64(2));
    Value base = in.address(in.pointerWord(args, core::kCudaO), at);
    tile::StoreOp::create(b, loc, o, base, tokenStride, groupRows,
                          TypeAttr::get(kernel.getQType()));
  };
  static_assert(core::kWarpRows == tile::kWarpRows, "rows of the map's boxes");
  // A box would also write the rows behind the tile's, which are another request's.
  Value isWhole = e.cmp(Predicate::eq, groupRows, e.i32(core::kGroupRows));
  scf::IfOp::create(
      builder, loc, isWhole,
      [&](OpBuilder &b, Location) {
        tile::StoreBoxOp::create(b, loc, o, mapO, firstToken, tile.head, shape.storeColumns,
                                 kernel.getQType());
        scf::YieldOp::create(b, loc);
      },
      [&](OpBuilder &b, Location) {
        store(b, loc);
        scf::YieldOp::create(b, loc);
      });
  Value lseRow = e.add(e.mul(head, e.word(args, core::kCudaLseHeadStride)), token);
  Value lseAt = e.mul(lseRow, e.i64(4));
  Value lseBase = e.address(e.pointerWord(args, core::kCudaLse), lseAt);
  tile::StoreRowsOp::create(builder, loc, finish.lse, lseBase, groupRows);
}

void HopperSchedule::emitCounters(OpBuilder &builder, const State &state) {
  Location loc = getLoc();
  TileEmitter e(builder, loc);
  Value thread = tile::ThreadIdOp::create(builder, loc, builder.getI32Type());
  scf::IfOp::create(builder, loc, e.cmp(Predicate::eq, thread, e.i32(0)),
                    [&](OpBuilder &b, Location) {
                      TileEmitter in(b, loc);
                      Value base = in.pointerWord(args, core::kCudaCounters);
                      auto add = [&](size_t offset, Value value) {
                        Value at = in.address(base, in.i64(static_cast<int64_t>(offset)));
                        LLVM::AtomicRMWOp::create(b, loc, LLVM::AtomicBinOp::add, at,
                                                  in.toI64(value), LLVM::AtomicOrdering::monotonic);
                      };
                      add(offsetof(core::TileCounters, visited), state.visited);
                      add(offsetof(core::TileCounters, full), state.full);
                      scf::YieldOp::create(b, loc);
                    });
}
