// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Fragments and rows to global memory.

#include "KernelLowering.h"

using namespace mlir;
using namespace attn::tile;

/// Of a row of a column group in shared memory.
static constexpr int64_t kRowBytes = 128;

static Value byteOffset(Emitter &e, Value pointer, Value offset) {
  return LLVM::GEPOp::create(e.getBuilder(), e.getLoc(), pointer.getType(),
                             e.getBuilder().getI8Type(), pointer, ArrayRef<LLVM::GEPArg>{offset});
}

/// Lane l of a quad has columns 2 l, 2 l + 1 of four groups of 8; afterwards it has group l whole.
/// Two rounds of exchanges, with the lane 1 and the lane 2 further.
static void transposeQuad(Emitter &e, MutableArrayRef<Value> v, Value isOdd, Value isUpper) {
  struct Round {
    Value moves;
    int64_t distance;
    std::pair<size_t, size_t> pairs[2];
  };
  const Round rounds[] = {{isOdd, 1, {{0, 1}, {2, 3}}}, {isUpper, 2, {{0, 2}, {1, 3}}}};
  for (const Round &round : rounds)
    for (auto [i, k] : round.pairs) {
      Value other = e.shuffleXor(e.select(round.moves, v[i], v[k]), round.distance);
      Value low = e.select(round.moves, other, v[i]);
      v[k] = e.select(round.moves, v[k], other);
      v[i] = low;
    }
}

void KernelLowering::emitStore(StoreOp op) {
  Values packed = packPairs(lookup(op.getFragment()), op.getElement());
  Value base = e.toGlobal(lookupOne(op.getBase()));
  Value stride = e.shl(lookupOne(op.getStride()), e.i64(1)), rows = lookupOne(op.getRows());
  Value quadLane = e.bitAnd(lane, e.i32(3));
  auto bit = [&](int64_t mask) {
    return e.cmp(IntPredicate::ne, e.bitAnd(quadLane, e.i32(mask)), e.i32(0));
  };
  Value isOdd = bit(1), isUpper = bit(2);
  for (int64_t r = 0; r < 2; ++r) {
    Value row = e.add(firstRow, e.i32(8 * r));
    Value piece = e.zext64(e.shl(quadLane, e.i32(4)));
    Value place = e.add(e.mul(e.zext64(row), stride), piece);
    Value target = byteOffset(e, base, place);
    Value isLive = e.zext32(e.cmp(IntPredicate::slt, row, rows));
    for (size_t g = 0; 8 * g < packed.size(); ++g) {
      Values v;
      for (size_t i = 0; i < 4; ++i)
        v.push_back(packed[2 * (4 * g + i) + r]);
      transposeQuad(e, v, isOdd, isUpper);
      // 32 columns are 64 bytes.
      e.assembly("{\n.reg .pred P;\nsetp.ne.b32 P, $5, 0;\n@P st.global.v4.b32 [$0+" +
                     std::to_string(64 * g) + "], {$1, $2, $3, $4};\n}",
                 "l,r,r,r,r,r", {target, v[0], v[1], v[2], v[3], isLive}, {});
    }
  }
}

void KernelLowering::emitWaitStored() {
  // PTX ISA, cp.async.bulk.wait_group: of this thread's groups; .read: only until they are read.
  e.assembly("{\n.reg .pred P;\nsetp.eq.u32 P, $0, 0;\n@P cp.async.bulk.wait_group.read 0;\n}", "r",
             {lane}, {});
}

/// The accumulator's pairs are the registers of 8x8 matrices (PTX ISA, stmatrix), two rows of them
/// for 16 columns. Each warp has rows of its own, so warps need not meet: one lane copies them, and
/// waits until the copies before have read.
void KernelLowering::emitStoreBox(StoreBoxOp op) {
  Values packed = packPairs(lookup(op.getFragment()), op.getElement());
  Value map = lookupOne(op.getMap()), head = lookupOne(op.getHead());
  int64_t columns = op.getColumns();
  Value toGroup = e.mul(group, e.i32(layout.stagingBytes));
  Value base = e.add(e.add(sharedMemory, e.i32(layout.staging)), toGroup);
  auto place = matrixPlace(base);
  Value warpRow = e.mul(e.bitAnd(warpInCta, e.i32(3)), e.i32(kWarpRows));
  Value row = e.add(lookupOne(op.getRow()), warpRow);
  Value source = e.add(base, e.mul(warpRow, e.i32(kRowBytes)));
  for (int64_t first = 0; first < op.getFragment().getType().getCols(); first += columns) {
    emitWaitStored();
    emitMeetWarp();
    for (int64_t step = 0; step < columns / 16; ++step) {
      const Value *v = packed.begin() + (first / 16 + step) * 4;
      e.assembly("stmatrix.sync.aligned.m8n8.x4.shared.b16 [$0], {$1, $2, $3, $4};", "r,r,r,r,r",
                 {matrixAddress(place, step), v[0], v[1], v[2], v[3]}, {});
    }
    // PTX ISA, async proxy: the copies read what was stored without it.
    emitFence();
    emitMeetWarp();
    std::string text = "{\n.reg .pred P;\nsetp.eq.u32 P, $5, 0;\n";
    for (int64_t columnGroup = 0; columnGroup < columns / 64; ++columnGroup)
      text += "@P cp.async.bulk.tensor.5d.global.shared::cta.bulk_group [$0, {$2, $3, " +
              std::to_string(first / 64 + columnGroup) + ", $4, $2}], [$1+" +
              std::to_string(columnGroup * kFragmentRows * kRowBytes) + "];\n";
    text += "@P cp.async.bulk.commit_group;\n}";
    e.assembly(text, "l,r,r,r,r,r", {map, source, e.i32(0), row, head, lane}, {});
  }
}

void KernelLowering::emitStoreRows(StoreRowsOp op) {
  Value base = e.toGlobal(lookupOne(op.getBase())), rows = lookupOne(op.getRows());
  Value isFirst = e.cmp(IntPredicate::eq, e.bitAnd(lane, e.i32(3)), e.i32(0));
  for (auto [r, value] : llvm::enumerate(lookup(op.getValues()))) {
    Value row = e.add(firstRow, e.i32(8 * r));
    Value isLive = e.bitAnd(isFirst, e.cmp(IntPredicate::slt, row, rows));
    Value target = byteOffset(e, base, e.zext64(e.shl(row, e.i32(2))));
    e.assembly("{\n.reg .pred P;\nsetp.ne.b32 P, $2, 0;\n@P st.global.b32 [$0], $1;\n}",
               value.getType().isF32() ? "l,f,r" : "l,r,r", {target, value, e.zext32(isLive)}, {});
  }
}
