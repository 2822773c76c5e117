// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a row group does.
//
// Empty rows need no finite stand-in for -inf: where a row's maximum is still -inf, 0 is subtracted
// in its place, so that exp2(-inf) = 0 and no inf - inf arises; its sum stays 0.

#include "HopperSchedule.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace attn;
using Predicate = arith::CmpIPredicate;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();
static constexpr double kLn2 = 0.6931471805599453;

//===----------------------------------------------------------------------===//
// Types, maps, state
//===----------------------------------------------------------------------===//

Type HopperSchedule::fragment(int64_t cols) {
  MLIRContext *ctx = kernel.getContext();
  return tile::FragmentType::get(ctx, core::kGroupRows, cols, Float32Type::get(ctx),
                                 tile::FragmentLayout::Acc);
}

Type HopperSchedule::rowsOf(Type element, bool partial) {
  return tile::RowsType::get(kernel.getContext(), element, partial);
}

SmallVector<Value> HopperSchedule::State::pack() const {
  SmallVector<Value> values = {use, max, sum, o};
  if (visited)
    values.append({visited, full});
  return values;
}

HopperSchedule::State HopperSchedule::State::unpack(ValueRange values) {
  State state{values[0], values[1], values[2], values[3], {}, {}};
  if (values.size() > 4)
    state.visited = values[4], state.full = values[5];
  return state;
}

/// Number of values of a State; what a loop carries besides follows.
static size_t stateSize(bool countTiles) { return countTiles ? 6 : 4; }

static Type scalarOf(Type type) {
  if (auto fragment = dyn_cast<tile::FragmentType>(type))
    return fragment.getElement();
  if (auto rows = dyn_cast<tile::RowsType>(type))
    return rows.getElement();
  return IntegerType::get(type.getContext(), 1);
}

using MapBody = llvm::function_ref<SmallVector<Value>(OpBuilder &, ValueRange)>;

/// A map over elements or rows; `body` gets the region's arguments and gives the results.
template <class Map>
static SmallVector<Value> emitMap(OpBuilder &builder, Location loc, TypeRange results,
                                  ValueRange inputs, unsigned positions, MapBody body) {
  auto map = Map::create(builder, loc, results, inputs);
  SmallVector<Type> types;
  for (Value input : inputs)
    types.push_back(scalarOf(input.getType()));
  types.append(positions, builder.getI32Type());
  OpBuilder::InsertionGuard guard(builder);
  Block *block =
      builder.createBlock(&map.getBody(), {}, types, SmallVector<Location>(types.size(), loc));
  tile::YieldOp::create(builder, loc, body(builder, block->getArguments()));
  return SmallVector<Value>(map.getResults());
}

static SmallVector<Value> mapElements(OpBuilder &builder, Location loc, TypeRange results,
                                      ValueRange inputs, MapBody body) {
  return emitMap<tile::MapOp>(builder, loc, results, inputs, /*positions=*/2, body);
}

static SmallVector<Value> mapRows(OpBuilder &builder, Location loc, TypeRange results,
                                  ValueRange inputs, MapBody body) {
  return emitMap<tile::MapRowsOp>(builder, loc, results, inputs, /*positions=*/1, body);
}

//===----------------------------------------------------------------------===//
// Regions of the source
//===----------------------------------------------------------------------===//

void HopperSchedule::emitRegion(OpBuilder &builder, Region &region, Value score) {
  for (BlockArgument argument : region.getArguments()) {
    Value value;
    switch (*getIndexRole(argument)) {
    case IndexRole::S:
      value = score;
      break;
    case IndexRole::B:
      value = context->b;
      break;
    case IndexRole::H:
      value = context->h;
      break;
    case IndexRole::Q:
      value = context->q;
      break;
    case IndexRole::K:
      value = context->k;
      break;
    }
    context->getMapping().map(argument, value);
  }
  regions->emitBlock(builder, region.front());
}

static Value yielded(const GpuContext &context, Region &region, unsigned i) {
  return context.lookup(region.front().getTerminator()->getOperand(i));
}

void HopperSchedule::emitPer(OpBuilder &builder, Level level) {
  for (auto per : kernel.getBody().getOps<PerOp>()) {
    if (per.getLevel() != level)
      continue;
    emitRegion(builder, per.getBody());
    for (auto [i, result] : llvm::enumerate(per.getResults()))
      context->getMapping().map(result, yielded(*context, per.getBody(), i));
  }
}

/// q, token, results of attn.per row and the limits of the mask's runs, once a tile. Rows past the
/// tile's last stand for its last, so that no table is read outside.
void HopperSchedule::emitRowValues(OpBuilder &builder) {
  Location loc = getLoc();
  TileEmitter e(builder, loc);
  Value first = e.mul(group, e.i32(core::kGroupRows));
  Value last = e.sub(tile.rows, e.i32(1));
  SmallVector<Type> types(2, rowsOf(builder.getIndexType()));
  for (auto per : kernel.getBody().getOps<PerOp>())
    if (per.getLevel() == Level::Row)
      for (Value result : per.getResults()) {
        rowSources.push_back(result);
        types.push_back(rowsOf(result.getType()));
      }
  bool everything = form.isRuns && form.runs.empty();
  size_t numRuns = everything ? 1 : form.runs.size();
  types.append(2 * numRuns, rowsOf(builder.getI32Type()));
  SmallVector<Value> values =
      mapRows(builder, loc, types, {}, [&](OpBuilder &b, ValueRange arguments) {
        TileEmitter in(b, loc);
        Value row = in.min(in.add(first, arguments[0]), last);
        context->q = in.toIndex(in.add(tile.queryBegin, row));
        context->token = in.toIndex(in.add(tile.tokenBegin, row));
        emitPer(b, Level::Row);
        SmallVector<Value> results = {context->q, context->token};
        for (Value source : rowSources)
          results.push_back(context->lookup(source));
        if (everything)
          results.append({tile.keyBegin, tile.keyEnd});
        Value begin = in.toIndex(tile.keyBegin), end = in.toIndex(tile.keyEnd);
        for (InRowsOp run : form.runs)
          for (Value bound : {run.getLo(), run.getHi()}) {
            if (run->getParentRegion() == bound.getParentRegion())
              regions->emitOp(b, *bound.getDefiningOp());
            Value clipped = in.min(in.max(context->lookup(bound), begin), end);
            results.push_back(in.toI32(clipped));
          }
        return results;
      });
  size_t numValues = 2 + rowSources.size();
  rowValues.assign(values.begin(), values.begin() + numValues);
  for (size_t i = 0; i < numRuns; ++i)
    limits.emplace_back(values[numValues + 2 * i], values[numValues + 2 * i + 1]);
}

void HopperSchedule::bindRow(ValueRange arguments) {
  context->q = arguments[0];
  context->token = arguments[1];
  for (auto [source, value] : llvm::zip(rowSources, arguments.drop_front(2)))
    context->getMapping().map(source, value);
}

//===----------------------------------------------------------------------===//
// One block
//===----------------------------------------------------------------------===//

/// Scale and score region; nothing where the scale goes into the exponent.
Value HopperSchedule::emitScore(OpBuilder &builder, Value scores, Value key) {
  if (folded)
    return scores;
  Location loc = getLoc();
  ScoreOp region = kernel.getScore();
  SmallVector<Value> inputs = {scores};
  if (region)
    inputs.append(rowValues);
  return mapElements(builder, loc, scores.getType(), inputs,
                     [&](OpBuilder &b, ValueRange arguments) {
                       Value score = arith::MulFOp::create(b, loc, arguments[0], scale);
                       if (!region)
                         return SmallVector<Value>{score};
                       TileEmitter in(b, loc);
                       bindRow(arguments.slice(1, rowValues.size()));
                       context->k = in.toIndex(in.add(key, arguments.back()));
                       emitPer(b, Level::Column);
                       emitRegion(b, region.getBody(), score);
                       return SmallVector<Value>{yielded(*context, region.getBody(), 0)};
                     })[0];
}

Value HopperSchedule::emitKeep(OpBuilder &builder, Value key) {
  Location loc = getLoc();
  Type bits = tile::BitsType::get(kernel.getContext(), core::kGroupRows, shape.keyTile);
  if (!form.isRuns)
    return mapElements(builder, loc, bits, rowValues, [&](OpBuilder &b, ValueRange arguments) {
      TileEmitter in(b, loc);
      bindRow(arguments.take_front(rowValues.size()));
      Value k = in.add(key, arguments.back());
      context->k = in.toIndex(k);
      emitPer(b, Level::Column);
      emitRegion(b, kernel.getMask().getBody());
      Value keep = yielded(*context, kernel.getMask().getBody(), 0);
      Value live =
          in.both(in.cmp(Predicate::sge, k, tile.keyBegin), in.cmp(Predicate::slt, k, tile.keyEnd));
      return SmallVector<Value>{in.both(keep, live)};
    })[0];
  Value keep;
  for (auto [lo, hi] : limits) {
    auto relative = [&](Value limit) {
      return mapRows(builder, loc, limit.getType(), limit, [&](OpBuilder &b, ValueRange arguments) {
        return SmallVector<Value>{TileEmitter(b, loc).sub(arguments[0], key)};
      })[0];
    };
    Value low = relative(lo), high = relative(hi);
    Value run = tile::RangeBitsOp::create(builder, loc, bits, low, high);
    keep = keep ? tile::BitsOrOp::create(builder, loc, keep, run).getResult() : run;
  }
  return keep;
}

Value HopperSchedule::emitMasked(OpBuilder &builder, Value bits, Value scores) {
  Value none = TileEmitter(builder, getLoc()).f32(-kInfinity);
  return tile::SelectOp::create(builder, getLoc(), bits, scores, none);
}

/// A slot that no row of the query tile keeps is zeroed before it meets a weight of 0: it may hold
/// NaN or infinity.
void HopperSchedule::emitHide(OpBuilder &builder, const EntryScalars &entry, Value use,
                              Value bits) {
  Location loc = getLoc();
  TileEmitter e(builder, loc);
  Value needed, sharing;
  if (form.isRuns) {
    needed = e.cmp(Predicate::sge, entry.visible, e.i32(0));
  } else {
    // A group for which the block is full sees every key of it.
    uint32_t fullBits = 0;
    sharing = e.i32(0);
    for (int64_t g = 0; g < shape.groups; ++g) {
      fullBits |= core::kGroupFull << (core::kGroupClassBits * g);
      Value cls =
          arith::ShRUIOp::create(builder, loc, entry.classes, e.i32(core::kGroupClassBits * g));
      Value partial = e.both(cls, e.i32(core::kGroupPartial));
      Value bit = arith::ShLIOp::create(builder, loc, partial, e.i32(g));
      sharing = e.either(sharing, bit);
    }
    needed = e.cmp(Predicate::eq, e.both(entry.classes, e.i32(fullBits)), e.i32(0));
  }
  scf::IfOp::create(builder, loc, needed, [&](OpBuilder &b, Location) {
    tile::WaitOp::create(b, loc, ringV, use);
    if (form.isRuns) {
      TileEmitter in(b, loc);
      Value at = in.mul(in.toI64(entry.visible), in.i64(4 * core::kVisibleWords));
      tile::HideOp::create(b, loc, ringV, use, in.address(visibleTable, at));
    } else {
      tile::HideUnseenOp::create(b, loc, ringV, use, bits, sharing);
    }
    scf::YieldOp::create(b, loc);
  });
}

/// Online softmax (Milakov and Gimelshein, 2018) in log2 units.
HopperSchedule::Softmax HopperSchedule::emitSoftmax(OpBuilder &builder, Value scores, Value max,
                                                    Value sum) {
  Location loc = getLoc();
  Type f32 = builder.getF32Type();
  Type rows = rowsOf(f32);
  Value blockMax = tile::RowMaxOp::create(builder, loc, rows, scores);
  SmallVector<Value> perRow = mapRows(
      builder, loc, {rows, rows, rows}, {max, blockMax}, [&](OpBuilder &b, ValueRange arguments) {
        TileEmitter in(b, loc);
        Value before = arguments[0];
        Value now = arith::MaxNumFOp::create(b, loc, before, arguments[1]);
        Value isEmpty =
            arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, now, in.f32(-kInfinity));
        Value shift = in.select(isEmpty, in.f32(0), now);
        Value unit = in.f32(exponentScale);
        Value offset = arith::NegFOp::create(b, loc, arith::MulFOp::create(b, loc, shift, unit));
        Value fall =
            arith::MulFOp::create(b, loc, arith::SubFOp::create(b, loc, before, shift), unit);
        Value factor = tile::Ex2Op::create(b, loc, fall);
        return SmallVector<Value>{now, folded ? offset : shift, factor};
      });
  Value weights = mapElements(
      builder, loc, scores.getType(), {scores, perRow[1]}, [&](OpBuilder &b, ValueRange arguments) {
        Value unit = TileEmitter(b, loc).f32(exponentScale);
        Value power;
        if (folded) {
          power = math::FmaOp::create(b, loc, arguments[0], unit, arguments[1]);
        } else {
          // Exactly 0 at the maximum, however large the scores.
          Value below = arith::SubFOp::create(b, loc, arguments[0], arguments[1]);
          power = arith::MulFOp::create(b, loc, below, unit);
        }
        return SmallVector<Value>{tile::Ex2Op::create(b, loc, power)};
      })[0];
  Type partial = rowsOf(f32, /*partial=*/true);
  Value blockSum = tile::RowSumOp::create(builder, loc, partial, weights);
  Value newSum = mapRows(
      builder, loc, partial, {sum, perRow[2], blockSum}, [&](OpBuilder &b, ValueRange arguments) {
        return SmallVector<Value>{
            math::FmaOp::create(b, loc, arguments[0], arguments[1], arguments[2])};
      })[0];
  return {perRow[0], newSum, perRow[2], weights};
}

Value HopperSchedule::emitRescale(OpBuilder &builder, Value o, Value factor) {
  return mapElements(
      builder, getLoc(), o.getType(), {o, factor}, [&](OpBuilder &b, ValueRange arguments) {
        return SmallVector<Value>{arith::MulFOp::create(b, getLoc(), arguments[0], arguments[1])};
      })[0];
}

/// As emitRescale, left out where no row of the warp changes: most blocks raise no maximum. The
/// result is the same bit for bit.
Value HopperSchedule::emitLazyRescale(OpBuilder &builder, Value o, Value factor) {
  Location loc = getLoc();
  Value changed = mapRows(
      builder, loc, rowsOf(builder.getI1Type()), factor, [&](OpBuilder &b, ValueRange arguments) {
        Value one = TileEmitter(b, loc).f32(1);
        return SmallVector<Value>{
            arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNE, arguments[0], one)};
      })[0];
  Value any = tile::WarpAnyOp::create(builder, loc, builder.getI1Type(), changed);
  auto rescaled = scf::IfOp::create(
      builder, loc, any,
      [&](OpBuilder &b, Location) { scf::YieldOp::create(b, loc, emitRescale(b, o, factor)); },
      [&](OpBuilder &b, Location) { scf::YieldOp::create(b, loc, o); });
  return rescaled.getResult(0);
}

static Value toWeights(OpBuilder &builder, Location loc, Value weights, Type element) {
  auto source = cast<tile::FragmentType>(weights.getType());
  auto type = tile::FragmentType::get(builder.getContext(), source.getRows(), source.getCols(),
                                      element, tile::FragmentLayout::Operand);
  return tile::ToOperandOp::create(builder, loc, type, weights);
}

void HopperSchedule::count(TileEmitter &e, State &state, BlockKind kind) {
  if (!countTiles)
    return;
  state.visited = e.add(state.visited, e.i32(1));
  if (kind == BlockKind::Full)
    state.full = e.add(state.full, e.i32(1));
}

/// S of this block beside O of the block before; gives the state and the weights of this one.
std::pair<HopperSchedule::State, Value>
HopperSchedule::emitBlock(OpBuilder &builder, BlockKind kind, const EntryScalars &entry, Value key,
                          State state, Value weights) {
  Location loc = getLoc();
  TileEmitter e(builder, loc);
  auto pendingOf = [&](int64_t cols) {
    return tile::PendingType::get(builder.getContext(), cast<tile::FragmentType>(fragment(cols)));
  };
  Value before = e.sub(state.use, e.i32(1));
  tile::WaitOp::create(builder, loc, ringK, state.use);
  Value s = tile::MmaSharedOp::create(builder, loc, pendingOf(shape.keyTile), ringQ, group, ringK,
                                      state.use);
  tile::WaitOp::create(builder, loc, ringV, before);
  Value product = tile::MmaRegisterOp::create(builder, loc, pendingOf(shape.dim), weights, ringV,
                                              before, state.o);
  Value scores = tile::WaitMmaOp::create(builder, loc, overlap ? 1 : 0, s);
  Value o;
  if (!overlap)
    o = tile::WaitMmaOp::create(builder, loc, 0, product);
  tile::ReleaseOp::create(builder, loc, ringK, state.use);
  scores = emitScore(builder, scores, key);
  Value bits;
  if (kind == BlockKind::Partial) {
    bits = emitKeep(builder, key);
    scores = emitMasked(builder, bits, scores);
  }
  Softmax softmax = emitSoftmax(builder, scores, state.max, state.sum);
  if (overlap)
    o = tile::WaitMmaOp::create(builder, loc, 0, product);
  tile::ReleaseOp::create(builder, loc, ringV, before);
  Value next = toWeights(builder, loc, softmax.weights, kernel.getQType());
  State after = state;
  after.o = shape.lazyRescale ? emitLazyRescale(builder, o, softmax.factor)
                              : emitRescale(builder, o, softmax.factor);
  after.max = softmax.max;
  after.sum = softmax.sum;
  if (kind == BlockKind::Partial)
    emitHide(builder, entry, state.use, bits);
  after.use = e.add(state.use, e.i32(1));
  count(e, after, kind);
  return {after, next};
}

//===----------------------------------------------------------------------===//
// Entries
//===----------------------------------------------------------------------===//

Value HopperSchedule::groupClass(TileEmitter &e, Value classes) {
  Value shift = e.mul(group, e.i32(core::kGroupClassBits));
  Value shifted = arith::ShRUIOp::create(e.builder, e.loc, classes, shift);
  return e.both(shifted, e.i32((1 << core::kGroupClassBits) - 1));
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
  auto loop = scf::ForOp::create(
      builder, loc, first, entry.blocks, e.i32(1), inits,
      [&](OpBuilder &b, Location, Value number, ValueRange carried) {
        TileEmitter in(b, loc);
        Value key = blockKey(in, entry, number, shape.keyTile);
        auto [next, nextWeights] =
            emitBlock(b, kind, entry, key, State::unpack(carried.drop_back()), carried.back());
        SmallVector<Value> results = next.pack();
        results.push_back(nextWeights);
        scf::YieldOp::create(b, loc, results);
      });
  return {State::unpack(loop.getResults().drop_back()), loop.getResults().back()};
}

/// The scores of a stretch's first block, masked if it is partial.
Value HopperSchedule::emitFirstScores(OpBuilder &builder, const EntryScalars &entry,
                                      const State &state) {
  Location loc = getLoc();
  TileEmitter e(builder, loc);
  Type scoresType = fragment(shape.keyTile);
  auto pendingType =
      tile::PendingType::get(builder.getContext(), cast<tile::FragmentType>(scoresType));
  tile::WaitOp::create(builder, loc, ringK, state.use);
  Value pending =
      tile::MmaSharedOp::create(builder, loc, pendingType, ringQ, group, ringK, state.use);
  Value scores = tile::WaitMmaOp::create(builder, loc, 0, pending);
  tile::ReleaseOp::create(builder, loc, ringK, state.use);
  Value key = blockKey(e, entry, e.i32(0), shape.keyTile);
  scores = emitScore(builder, scores, key);
  Value isPartial = e.cmp(Predicate::eq, groupClass(e, entry.classes), e.i32(core::kGroupPartial));
  auto masked = scf::IfOp::create(
      builder, loc, isPartial,
      [&](OpBuilder &b, Location) {
        Value bits = emitKeep(b, key);
        emitHide(b, entry, state.use, bits);
        scf::YieldOp::create(b, loc, emitMasked(b, bits, scores));
      },
      [&](OpBuilder &b, Location) { scf::YieldOp::create(b, loc, scores); });
  return masked.getResult(0);
}

std::pair<Value, HopperSchedule::State> HopperSchedule::emitStretch(OpBuilder &builder,
                                                                    Value entryNumber,
                                                                    const EntryScalars &entry,
                                                                    State state) {
  Location loc = getLoc();
  TileEmitter e(builder, loc);
  Softmax first =
      emitSoftmax(builder, emitFirstScores(builder, entry, state), state.max, state.sum);
  Value weights = toWeights(builder, loc, first.weights, kernel.getQType());
  state.o = emitRescale(builder, state.o, first.factor);
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
        State before = State::unpack(carried.slice(kHead, stateSize(countTiles)));
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
        Value last = in.sub(tile.entryCount, in.i32(1));
        EntryScalars following = emitEntry(b, tile, in.min(number, last));
        Value isSkip =
            in.cmp(Predicate::eq, groupClass(in, following.classes), in.i32(core::kGroupSkip));
        Value more =
            in.both(in.cmp(Predicate::sle, number, last),
                    arith::XOrIOp::create(b, loc, isSkip,
                                          arith::ConstantOp::create(b, loc, b.getBoolAttr(true))));
        SmallVector<Value> results = {
            number,   following.keyBegin, following.blocks, following.classes, following.visible,
            in.i32(0)};
        results.append(done.getResults().begin(), done.getResults().end());
        scf::ConditionOp::create(b, loc, more, results);
      },
      [&](OpBuilder &b, Location, ValueRange carried) { scf::YieldOp::create(b, loc, carried); });
  State end = State::unpack(loop.getResults().slice(kHead, stateSize(countTiles)));
  Value before = e.sub(end.use, e.i32(1));
  tile::WaitOp::create(builder, loc, ringV, before);
  auto pendingType =
      tile::PendingType::get(builder.getContext(), cast<tile::FragmentType>(fragment(shape.dim)));
  Value product = tile::MmaRegisterOp::create(builder, loc, pendingType, loop.getResults().back(),
                                              ringV, before, end.o);
  end.o = tile::WaitMmaOp::create(builder, loc, 0, product);
  tile::ReleaseOp::create(builder, loc, ringV, before);
  return {loop.getResult(0), end};
}

//===----------------------------------------------------------------------===//
// The row group
//===----------------------------------------------------------------------===//

void HopperSchedule::emitConsumers(OpBuilder &builder, Value groupNumber) {
  Location loc = getLoc();
  TileEmitter e(builder, loc);
  group = groupNumber;
  tile = emitHeader(builder);
  visibleTable = e.pointerWord(args, core::kCudaVisible);
  Value left = e.sub(tile.rows, e.mul(group, e.i32(core::kGroupRows)));
  groupRows = e.min(e.max(left, e.i32(0)), e.i32(core::kGroupRows));

  context = std::make_unique<GpuContext>(kernel, builder, loc, args);
  regions = std::make_unique<RegionEmitter>(*context);
  context->b = e.toIndex(tile.request);
  context->h = e.toIndex(tile.head);
  context->kvHead = e.toIndex(e.div(tile.head, e.i32(kernel.getHeads() / kernel.getKvHeads())));
  for (Operation &op : kernel.getBody().front())
    if (!isa<MaskOp, ScoreOp, BoundsOp, PerOp>(op))
      regions->emitOp(builder, op);
  emitPer(builder, Level::Request);
  emitPer(builder, Level::Head);
  if (auto param = kernel.getScaleParam())
    scale = context->lookup(kernel.getBody().getArgument(*param));
  else if (kernel.getScale())
    scale = e.f32(kernel.getScale()->convertToDouble());
  else
    scale = e.f32(1.0 / std::sqrt(static_cast<double>(kernel.getDim())));
  emitRowValues(builder);

  // Q comes with the first block; also a group that needs none waits, so that no copy is under way
  // when the CTA ends.
  scf::IfOp::create(builder, loc, e.cmp(Predicate::ne, tile.entryCount, e.i32(0)),
                    [&](OpBuilder &b, Location) {
                      tile::WaitOp::create(b, loc, ringQ, group);
                      scf::YieldOp::create(b, loc);
                    });
  State state;
  Type f32 = builder.getF32Type();
  state.use = e.i32(0);
  state.max = tile::FillOp::create(builder, loc, rowsOf(f32), e.f32(-kInfinity));
  state.sum = tile::FillOp::create(builder, loc, rowsOf(f32, true), e.f32(0));
  state.o = tile::FillOp::create(builder, loc, fragment(shape.dim), e.f32(0));
  if (countTiles)
    state.visited = e.i32(0), state.full = e.i32(0);

  SmallVector<Value> inits = {e.i32(0)};
  inits.append(state.pack());
  SmallVector<Type> types = llvm::to_vector(ValueRange(inits).getTypes());
  auto loop = scf::WhileOp::create(
      builder, loc, types, inits,
      [&](OpBuilder &b, Location, ValueRange carried) {
        Value more = TileEmitter(b, loc).cmp(Predicate::slt, carried[0], tile.entryCount);
        scf::ConditionOp::create(b, loc, more, carried);
      },
      [&](OpBuilder &b, Location, ValueRange carried) {
        TileEmitter in(b, loc);
        EntryScalars entry = emitEntry(b, tile, carried[0]);
        State before = State::unpack(carried.drop_front());
        Value isSkip =
            in.cmp(Predicate::eq, groupClass(in, entry.classes), in.i32(core::kGroupSkip));
        auto yield = [&](OpBuilder &arm, Value number, const State &after) {
          SmallVector<Value> results = {number};
          results.append(after.pack());
          scf::YieldOp::create(arm, loc, results);
        };
        auto done = scf::IfOp::create(
            b, loc, isSkip,
            [&](OpBuilder &arm, Location) {
              State after = emitSkip(arm, entry, before);
              TileEmitter skip(arm, loc);
              yield(arm, skip.add(carried[0], skip.i32(1)), after);
            },
            [&](OpBuilder &arm, Location) {
              auto [number, after] = emitStretch(arm, carried[0], entry, before);
              yield(arm, number, after);
            });
        scf::YieldOp::create(b, loc, done.getResults());
      });
  State end = State::unpack(loop.getResults().drop_front());
  emitEpilogue(builder, end);
  if (countTiles)
    emitCounters(builder, end);
}

void HopperSchedule::emitEpilogue(OpBuilder &builder, const State &state) {
  Location loc = getLoc();
  TileEmitter e(builder, loc);
  Type rows = rowsOf(builder.getF32Type());
  Value sum = tile::RowFinishOp::create(builder, loc, rows, state.sum);
  // An empty row has sum 0: O stays exactly 0 and LSE is -inf. NaN is not equal to 0.
  SmallVector<Value> final = mapRows(
      builder, loc, {rows, rows}, {state.max, sum}, [&](OpBuilder &b, ValueRange arguments) {
        TileEmitter in(b, loc);
        Value max = arguments[0], total = arguments[1];
        Value isEmpty = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, total, in.f32(0));
        Value inverse = arith::DivFOp::create(b, loc, in.f32(1), total);
        Value log = math::FmaOp::create(b, loc, max, in.f32(exponentScale),
                                        tile::Lg2Op::create(b, loc, total));
        Value lse = arith::MulFOp::create(b, loc, log, in.f32(kLn2));
        // A score of +inf makes the sum NaN; the log-sum-exp is +inf all the same.
        Value isInfinite =
            arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, max, in.f32(kInfinity));
        lse = in.select(isInfinite, in.f32(kInfinity), lse);
        return SmallVector<Value>{in.select(isEmpty, in.f32(0), inverse),
                                  in.select(isEmpty, in.f32(-kInfinity), lse)};
      });
  Value o = emitRescale(builder, state.o, final[0]);
  Value token = e.toI64(e.add(tile.tokenBegin, e.mul(group, e.i32(core::kGroupRows))));
  Value head = e.toI64(tile.head);
  Value tokenStride = e.word(args, core::kCudaOTokenStride);
  Value at = e.add(e.mul(token, tokenStride), e.mul(head, e.word(args, core::kCudaOHeadStride)));
  Value base = e.address(e.pointerWord(args, core::kCudaO), e.mul(at, e.i64(2)));
  tile::StoreOp::create(builder, loc, o, base, tokenStride, groupRows,
                        TypeAttr::get(kernel.getQType()));
  Value lseAt = e.add(e.mul(head, e.word(args, core::kCudaLseHeadStride)), token);
  Value lseBase = e.address(e.pointerWord(args, core::kCudaLse), e.mul(lseAt, e.i64(4)));
  tile::StoreRowsOp::create(builder, loc, final[1], lseBase, groupRows);
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
