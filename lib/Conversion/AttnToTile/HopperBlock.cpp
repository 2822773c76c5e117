// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a row group does with one block, and the row values it needs for that. How its scores are
// made of the product is in HopperScore.cpp.
//
// Empty rows need no finite stand-in for -inf: where a row's maximum is still -inf, 0 is subtracted
// in its place, so that exp2(-inf) = 0 and no inf - inf arises; its sum stays 0.

#include "HopperSchedule.h"
#include "Maps.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace attn;
using Predicate = arith::CmpIPredicate;

Type HopperSchedule::fragment(int64_t cols) {
  MLIRContext *ctx = kernel.getContext();
  return tile::FragmentType::get(ctx, core::kGroupRows, cols, Float32Type::get(ctx),
                                 tile::FragmentLayout::Acc);
}

Type HopperSchedule::rowsOf(Type element, bool partial) {
  return tile::RowsType::get(kernel.getContext(), element, partial);
}

void HopperSchedule::emitContext(OpBuilder &builder, Value request, Value head) {
  TileEmitter e(builder, getLoc());
  context = std::make_unique<GpuContext>(kernel, builder, getLoc(), args);
  regions = std::make_unique<RegionEmitter>(*context);
  context->b = e.toIndex(request);
  context->h = e.toIndex(head);
  context->kvHead = e.toIndex(e.div(head, e.i32(kernel.getHeads() / kernel.getKvHeads())));
  regions->emitKernelValues(builder, kernel);
  regions->emitPer(builder, kernel, Level::Request);
  regions->emitPer(builder, kernel, Level::Head);
}

SmallVector<std::pair<Value, Value>> HopperSchedule::emitLimits(OpBuilder &builder, Value begin,
                                                                Value end) {
  TileEmitter e(builder, getLoc());
  if (form.isRuns && form.runs.empty())
    return {{begin, end}};
  Value low = e.toIndex(begin), high = e.toIndex(end);
  SmallVector<std::pair<Value, Value>> all;
  for (InRowsOp run : form.runs) {
    auto limit = [&](Value bound) {
      if (run->getParentRegion() == bound.getParentRegion())
        regions->emitOp(builder, *bound.getDefiningOp());
      return e.toI32(e.min(e.max(context->lookup(bound), low), high));
    };
    Value lo = limit(run.getLo());
    all.emplace_back(lo, limit(run.getHi()));
  }
  return all;
}

/// q, token, results of attn.per row and the limits of the mask's runs: once a tile, or once a
/// stretch beside its first product. Rows past the tile's last stand for its last, so that no table
/// is read outside.
void HopperSchedule::emitRowValues(OpBuilder &builder) {
  Location loc = getLoc();
  TileEmitter e(builder, loc);
  rowSources.clear();
  limits.clear();
  Value first = e.mul(part, e.i32(core::kGroupRows));
  Value last = e.sub(tile.rows, e.i32(1));
  SmallVector<Type> types(2, rowsOf(builder.getIndexType()));
  for (auto per : kernel.getBody().getOps<PerOp>())
    if (per.getLevel() == Level::Row)
      for (Value result : per.getResults()) {
        rowSources.push_back(result);
        types.push_back(rowsOf(result.getType()));
      }
  size_t numRuns = form.isRuns ? std::max<size_t>(form.runs.size(), 1) : 0;
  types.append(2 * numRuns, rowsOf(builder.getI32Type()));
  SmallVector<Value> values =
      mapRows(builder, loc, types, {}, [&](OpBuilder &b, ValueRange arguments) {
        TileEmitter in(b, loc);
        Value row = in.min(in.add(first, arguments[0]), last);
        context->q = in.toIndex(in.add(tile.queryBegin, row));
        context->token = in.toIndex(in.add(tile.tokenBegin, row));
        regions->emitPer(b, kernel, Level::Row);
        SmallVector<Value> results = {context->q, context->token};
        for (Value source : rowSources)
          results.push_back(context->lookup(source));
        for (auto [lo, hi] : emitLimits(b, tile.keyBegin, tile.keyEnd))
          results.append({lo, hi});
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

Value HopperSchedule::emitKeep(OpBuilder &builder, Value key, int64_t keys) {
  Location loc = getLoc();
  Type bits = tile::BitsType::get(kernel.getContext(), core::kGroupRows, keys);
  if (!form.isRuns)
    return mapElements(builder, loc, bits, rowValues, [&](OpBuilder &b, ValueRange arguments) {
      TileEmitter in(b, loc);
      bindRow(arguments.take_front(rowValues.size()));
      Value k = in.add(key, arguments.back());
      context->k = in.toIndex(k);
      regions->emitPer(b, kernel, Level::Column);
      regions->emitRegion(b, kernel.getMask().getBody());
      Value keep = regions->yielded(kernel.getMask().getBody(), 0);
      Value belowEnd = in.cmp(Predicate::slt, k, tile.keyEnd);
      Value live = in.both(in.cmp(Predicate::sge, k, tile.keyBegin), belowEnd);
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

/// In arms of their own the optimiser leaves the bits where they are made, beside a product; it
/// would move them behind it, to where they are looked at.
Value HopperSchedule::emitEarlyKeep(OpBuilder &builder, Value key, Value isPartial) {
  Location loc = getLoc();
  auto bits = scf::IfOp::create(
      builder, loc, isPartial,
      [&](OpBuilder &b, Location) {
        scf::YieldOp::create(b, loc, emitKeep(b, key, shape.keyTile));
      },
      [&](OpBuilder &b, Location) {
        Type type = tile::BitsType::get(kernel.getContext(), core::kGroupRows, shape.keyTile);
        Value zero = TileEmitter(b, loc).i32(0);
        Value none = tile::FillOp::create(b, loc, rowsOf(b.getI32Type()), zero);
        scf::YieldOp::create(b, loc,
                             tile::RangeBitsOp::create(b, loc, type, none, none).getResult());
      });
  return bits.getResult(0);
}

Value HopperSchedule::emitMasked(OpBuilder &builder, Value bits, Value scores) {
  Value none = TileEmitter(builder, getLoc()).f32(-kInfinity);
  return tile::SelectOp::create(builder, getLoc(), bits, scores, none);
}

/// The words of a partial block's bitmap that the thread brings to tile.hide: read ahead of the
/// block's products, beside which they come. All ones where no row is hidden. Threads past the
/// block's keys bring words that nobody looks at (and that nobody wrote where the length is on the
/// device).
SmallVector<Value> HopperSchedule::emitVisible(OpBuilder &builder, const EntryScalars &entry) {
  if (!form.isRuns)
    return {};
  Location loc = getLoc();
  TileEmitter e(builder, loc);
  int64_t count = llvm::divideCeil(shape.keyTile, tile::kGroupThreads);
  auto words = scf::IfOp::create(
      builder, loc, e.cmp(Predicate::sge, entry.visible, e.i32(0)),
      [&](OpBuilder &b, Location) {
        TileEmitter in(b, loc);
        Value thread = tile::ThreadIdOp::create(b, loc, b.getI32Type());
        Value word = arith::ShRUIOp::create(b, loc, thread, in.i32(5));
        Value first = in.add(in.mul(entry.visible, in.i32(core::kVisibleWords)), word);
        SmallVector<Value> results;
        for (int64_t i = 0; i < count; ++i) {
          Value number = in.toI64(in.add(first, in.i32(i * tile::kGroupThreads / 32)));
          Value at = in.address(visibleTable, in.mul(number, in.i64(4)));
          // Written in this kernel where the length is on the device.
          results.push_back(LLVM::LoadOp::create(b, loc, b.getI32Type(), at, /*alignment=*/4));
        }
        scf::YieldOp::create(b, loc, results);
      },
      [&](OpBuilder &b, Location) {
        scf::YieldOp::create(b, loc, SmallVector<Value>(count, TileEmitter(b, loc).i32(-1)));
      });
  return llvm::to_vector_of<Value>(words.getResults());
}

/// Rows of V's slot that no row of the query tile keeps are zeroed before they meet weights of 0:
/// they may hold NaN or infinity.
void HopperSchedule::emitHide(OpBuilder &builder, const EntryScalars &entry, Value use, Value bits,
                              ValueRange visible) {
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
    if (form.isRuns)
      tile::HideOp::create(b, loc, ringV, use, visible);
    else
      tile::HideUnseenOp::create(b, loc, ringV, use, bits, sharing);
    scf::YieldOp::create(b, loc);
  });
}

Value HopperSchedule::toLog2(OpBuilder &builder, Value value) {
  if (scoreForm.unit == 1)
    return value;
  Value unit = TileEmitter(builder, getLoc()).f32(scoreForm.unit);
  return arith::MulFOp::create(builder, getLoc(), value, unit);
}

/// Online softmax (Milakov and Gimelshein, 2018) in log2 units.
HopperSchedule::Softmax HopperSchedule::emitSoftmax(OpBuilder &builder, Value scores,
                                                    const State &state) {
  if (scoreForm.shift)
    return emitShiftedSoftmax(builder, scores, state.sum);
  Location loc = getLoc();
  Type f32 = builder.getF32Type();
  Type rows = rowsOf(f32);
  Value blockMax = tile::RowMaxOp::create(builder, loc, rows, scores);
  SmallVector<Value> perRow = mapRows(
      builder, loc, {rows, rows, rows}, {state.max, blockMax},
      [&](OpBuilder &b, ValueRange arguments) {
        TileEmitter in(b, loc);
        Value before = arguments[0];
        Value now = arith::MaxNumFOp::create(b, loc, before, arguments[1]);
        if (shape.rescaleSlack > 0) {
          // A NaN is not larger.
          Value rise = toLog2(b, arith::SubFOp::create(b, loc, now, before));
          Value isMore = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT, rise,
                                               in.f32(static_cast<double>(shape.rescaleSlack)));
          now = in.select(isMore, now, before);
        }
        Value isEmpty =
            arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, now, in.f32(-kInfinity));
        Value shift = in.select(isEmpty, in.f32(0), now), offset = shift;
        if (scoreForm.inExponent)
          offset = arith::NegFOp::create(b, loc, toLog2(b, shift));
        Value fall = toLog2(b, arith::SubFOp::create(b, loc, before, shift));
        Value factor = tile::Ex2Op::create(b, loc, fall);
        return SmallVector<Value>{now, offset, factor};
      });
  Value weights = mapElements(
      builder, loc, scores.getType(), {scores, perRow[1]}, [&](OpBuilder &b, ValueRange arguments) {
        Value power;
        if (scoreForm.inExponent) {
          Value unit = TileEmitter(b, loc).f32(scoreForm.unit);
          power = math::FmaOp::create(b, loc, arguments[0], unit, arguments[1]);
        } else {
          // Exactly 0 at the maximum, however large the scores.
          power = toLog2(b, arith::SubFOp::create(b, loc, arguments[0], arguments[1]));
        }
        return SmallVector<Value>{tile::Ex2Op::create(b, loc, power)};
      })[0];
  Type partial = rowsOf(f32, /*partial=*/true);
  Value blockSum = tile::RowSumOp::create(builder, loc, partial, weights);
  Value sum = mapRows(builder, loc, partial, {state.sum, perRow[2], blockSum},
                      [&](OpBuilder &b, ValueRange arguments) {
                        return SmallVector<Value>{
                            math::FmaOp::create(b, loc, arguments[0], arguments[1], arguments[2])};
                      })[0];
  return {perRow[0], perRow[2], sum, weights};
}

/// The softmax of scores with a constant shift. A masked score is -inf, and its weight 0.
HopperSchedule::Softmax HopperSchedule::emitShiftedSoftmax(OpBuilder &builder, Value scores,
                                                           Value sum) {
  Location loc = getLoc();
  Value weights =
      mapElements(builder, loc, scores.getType(), scores, [&](OpBuilder &b, ValueRange arguments) {
        TileEmitter in(b, loc);
        Value unit = in.f32(scoreForm.unit), offset = in.f32(-*scoreForm.shift);
        Value power = math::FmaOp::create(b, loc, arguments[0], unit, offset);
        return SmallVector<Value>{tile::Ex2Op::create(b, loc, power)};
      })[0];
  Type partial = rowsOf(builder.getF32Type(), /*partial=*/true);
  Value blockSum = tile::RowSumOp::create(builder, loc, partial, weights);
  Value newSum =
      mapRows(builder, loc, partial, {sum, blockSum}, [&](OpBuilder &b, ValueRange arguments) {
        return SmallVector<Value>{arith::AddFOp::create(b, loc, arguments[0], arguments[1])};
      })[0];
  return {Value(), Value(), newSum, weights};
}

Value HopperSchedule::emitRescale(OpBuilder &builder, Value o, Value factor) {
  return mapElements(
      builder, getLoc(), o.getType(), {o, factor}, [&](OpBuilder &b, ValueRange arguments) {
        return SmallVector<Value>{arith::MulFOp::create(b, getLoc(), arguments[0], arguments[1])};
      })[0];
}

/// As emitRescale, left out where no row of the warp changes: most blocks raise no maximum. For the
/// same factors the result is the same bit for bit.
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

Value HopperSchedule::toWeights(OpBuilder &builder, Value weights) {
  auto type = tile::FragmentType::get(builder.getContext(), core::kGroupRows, shape.keyTile,
                                      kernel.getQType(), tile::FragmentLayout::Operand);
  return tile::ToOperandOp::create(builder, getLoc(), type, weights);
}

void HopperSchedule::count(TileEmitter &e, State &state, BlockKind kind) {
  if (!countTiles)
    return;
  state.visited = e.add(state.visited, e.i32(1));
  if (kind == BlockKind::Full)
    state.full = e.add(state.full, e.i32(1));
}

Type HopperSchedule::pendingOf(int64_t cols) {
  return tile::PendingType::get(kernel.getContext(), cast<tile::FragmentType>(fragment(cols)));
}

Value HopperSchedule::emitScoresProduct(OpBuilder &builder, Value use, int64_t keys) {
  Type type = pendingOf(keys);
  if (shape.queryInRegisters)
    return tile::MmaOperandOp::create(builder, getLoc(), type, qOperand, ringK, use);
  // Where the group has one slot any use of it names it.
  Value q = shape.queryTiles > 1 ? qUse : group;
  return tile::MmaSharedOp::create(builder, getLoc(), type, ringQ, q, ringK, use);
}

/// S of this block beside O of the block before; gives the state and the weights of this one.
std::pair<HopperSchedule::State, Value>
HopperSchedule::emitBlock(OpBuilder &builder, BlockKind kind, const EntryScalars &entry, Value key,
                          State state, Value weights) {
  Location loc = getLoc();
  TileEmitter e(builder, loc);
  Value before = e.sub(state.use, e.i32(1));
  SmallVector<Value> visible;
  if (kind == BlockKind::Partial)
    visible = emitVisible(builder, entry);
  tile::WaitOp::create(builder, loc, ringK, state.use);
  if (shape.takesTurns)
    tile::AwaitTurnOp::create(builder, loc);
  Value s = emitScoresProduct(builder, state.use, shape.keyTile);
  tile::WaitOp::create(builder, loc, ringV, before);
  Value product = tile::MmaRegisterOp::create(builder, loc, pendingOf(shape.dim), weights, ringV,
                                              before, state.o);
  if (shape.takesTurns)
    tile::PassTurnOp::create(builder, loc);
  Value scores = tile::WaitMmaOp::create(builder, loc, overlap ? 1 : 0, s);
  Value o;
  if (!overlap)
    o = tile::WaitMmaOp::create(builder, loc, 0, product);
  tile::ReleaseOp::create(builder, loc, ringK, state.use);
  scores = emitScore(builder, scores, key);
  Value bits;
  if (kind == BlockKind::Partial) {
    bits = emitKeep(builder, key, shape.keyTile);
    scores = emitMasked(builder, bits, scores);
  }
  Softmax softmax = emitSoftmax(builder, scores, state);
  if (overlap)
    o = tile::WaitMmaOp::create(builder, loc, 0, product);
  tile::ReleaseOp::create(builder, loc, ringV, before);
  Value next = toWeights(builder, softmax.weights);
  State after = state;
  after.o = o;
  if (softmax.factor)
    after.o = shape.rescaleSlack == TileShapeInfo::kAlways
                  ? emitRescale(builder, o, softmax.factor)
                  : emitLazyRescale(builder, o, softmax.factor);
  after.max = softmax.max;
  after.sum = softmax.sum;
  if (kind == BlockKind::Partial)
    emitHide(builder, entry, state.use, bits, visible);
  after.use = e.add(state.use, e.i32(1));
  count(e, after, kind);
  return {after, next};
}
