// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tiles of requests whose length the host knows only bounds of (core::TileHeader::isBound): the
// producer reads it, places the rows and writes the bitmaps of the blocks that the host could not
// decide. The row groups take what follows from the queue like that of any other tile.

#include "HopperSchedule.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace attn;
using Predicate = arith::CmpIPredicate;

/// The length of a request, which is `most` at most whatever the device says: nothing is read past
/// the keys and pages that there may be.
Value HopperSchedule::emitSeqLen(OpBuilder &builder, Value request, Value most) {
  TileEmitter e(builder, getLoc());
  Value toRequest = e.mul(e.toI64(request), e.i64(4));
  Value at = e.address(e.pointerWord(args, core::kCudaSeqLens), toRequest);
  return e.min(e.load(builder.getI32Type(), at, 4), most);
}

/// The same pointer, which the optimiser does not know for the same.
static Value emitOpaque(OpBuilder &b, Location loc, Value pointer) {
  return LLVM::InlineAsmOp::create(b, loc, pointer.getType(), pointer, "mov.b64 $0, $1;", "=l,l",
                                   /*has_side_effects=*/false, /*is_align_stack=*/false,
                                   LLVM::TailCallKind::None, LLVM::AsmDialectAttr(), ArrayAttr())
      .getResult(0);
}

/// What the bitmaps take is read again for them and not kept: the producer has no registers for all
/// of a record beside them.
void HopperSchedule::emitRowsAndKeys(OpBuilder &builder, Value header, Value isBound,
                                     TileScalars &tile) {
  Location loc = getLoc();
  TileEmitter e(builder, loc);
  auto placed = scf::IfOp::create(
      builder, loc, e.cmp(Predicate::ne, isBound, e.i32(0)),
      [&](OpBuilder &b, Location) {
        TileEmitter in(b, loc);
        Value again = emitOpaque(b, loc, header);
        TileScalars scalars;
        scalars.head = tile.head;
        scalars.request = loadField(in, again, offsetof(core::TileHeader, request));
        scalars.keyEnd = emitSeqLen(b, scalars.request, tile.keyEnd);
        scalars.queryBegin = in.add(scalars.keyEnd, tile.queryBegin);
        if (form.isRuns) {
          scalars.tokenBegin = loadField(in, again, offsetof(core::TileHeader, tokenBegin));
          scalars.rows = loadField(in, again, offsetof(core::TileHeader, rows));
          scalars.keyBegin = loadField(in, again, offsetof(core::TileHeader, keyBegin));
          scalars.entryBegin = loadField(in, again, offsetof(core::TileHeader, entryBegin));
          scalars.entries = loadField(in, again, offsetof(core::TileHeader, entryCount));
          emitBitmaps(b, scalars);
        }
        scf::YieldOp::create(b, loc, ValueRange{scalars.queryBegin, scalars.keyEnd});
      },
      [&](OpBuilder &b, Location) {
        scf::YieldOp::create(b, loc, ValueRange{tile.queryBegin, tile.keyEnd});
      });
  tile.queryBegin = placed.getResult(0), tile.keyEnd = placed.getResult(1);
}

/// Every lane has the limits of a row: such a tile has no more. Of an entry's bitmap a lane then
/// writes one word, once: other CTAs may read the same words for other heads at that time, and must
/// not see part of the rows.
void HopperSchedule::emitBitmaps(OpBuilder &builder, const TileScalars &scalars) {
  Location loc = getLoc();
  TileEmitter e(builder, loc);
  emitContext(builder, scalars.request, scalars.head);
  Value lane = tile::ThreadIdOp::create(builder, loc, builder.getI32Type());
  Value row = e.min(lane, e.sub(scalars.rows, e.i32(1)));
  context->q = e.toIndex(e.add(scalars.queryBegin, row));
  context->token = e.toIndex(e.add(scalars.tokenBegin, row));
  regions->emitPer(builder, kernel, Level::Row);
  limits = emitLimits(builder, scalars.keyBegin, scalars.keyEnd);
  Value end = e.add(scalars.entryBegin, scalars.entries);
  scf::ForOp::create(builder, loc, scalars.entryBegin, end, e.i32(1), ValueRange{},
                     [&](OpBuilder &b, Location, Value number, ValueRange) {
                       EntryScalars entry = emitEntry(b, number);
                       TileEmitter in(b, loc);
                       Value has = in.cmp(Predicate::sge, entry.visible, in.i32(0));
                       scf::IfOp::create(b, loc, has, [&](OpBuilder &write, Location) {
                         emitBitmap(write, entry);
                         scf::YieldOp::create(write, loc);
                       });
                       scf::YieldOp::create(b, loc);
                     });
  limits.clear();
}

/// The bits below `limit` of a word whose bit 0 is key `first`.
static Value emitBitsBelow(TileEmitter &e, Value limit, Value first) {
  Value count = e.min(e.max(e.sub(limit, first), e.i32(0)), e.i32(32));
  Value bit = arith::ShLIOp::create(e.builder, e.loc, e.i64(1), e.toI64(count));
  return e.toI32(e.sub(bit, e.i64(1)));
}

/// Word after word, of which the lanes' rows each have a part.
void HopperSchedule::emitBitmap(OpBuilder &builder, const EntryScalars &entry) {
  Location loc = getLoc();
  TileEmitter e(builder, loc);
  constexpr int64_t kWordBits = 32;
  Value lane = tile::ThreadIdOp::create(builder, loc, builder.getI32Type());
  Value none = e.i32(0), all = e.i32(-1);
  Value count = e.i32(static_cast<int64_t>(llvm::divideCeil(shape.keyTile, kWordBits)));
  auto emitWord = [&](OpBuilder &b, Location, Value number, ValueRange carried) {
    TileEmitter in(b, loc);
    Value first = in.add(entry.keyBegin, in.mul(number, in.i32(kWordBits)));
    Value bits = none;
    for (auto [lo, hi] : limits) {
      Value from = arith::XOrIOp::create(b, loc, emitBitsBelow(in, lo, first), all);
      Value below = emitBitsBelow(in, hi, first);
      bits = in.either(bits, in.both(below, from));
    }
    Value word = NVVM::ReduxOp::create(b, loc, b.getI32Type(), bits, NVVM::ReduxKind::OR, all);
    Value isOwn = in.cmp(Predicate::eq, number, lane);
    scf::YieldOp::create(b, loc, in.select(isOwn, word, carried[0]));
  };
  auto words = scf::ForOp::create(builder, loc, none, count, e.i32(1), none, emitWord);
  scf::IfOp::create(builder, loc, e.cmp(Predicate::slt, lane, count), [&](OpBuilder &b, Location) {
    TileEmitter in(b, loc);
    Value bitmap = in.mul(in.toI64(entry.visible), in.i64(4 * core::kVisibleWords));
    Value inBitmap = in.toI64(in.mul(lane, in.i32(4)));
    Value table = in.pointerWord(args, core::kCudaVisible);
    Value at = in.address(table, in.add(bitmap, inBitmap));
    LLVM::StoreOp::create(b, loc, words.getResult(0), at, /*alignment=*/4);
    scf::YieldOp::create(b, loc);
  });
}
