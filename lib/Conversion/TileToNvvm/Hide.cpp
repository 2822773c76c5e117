// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows of a slot that nobody keeps, zeroed before a product reads them.

#include "KernelLowering.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace attn::tile;

Value KernelLowering::emitLoadSharedIf(Value condition, Value address) {
  return e.assembly("{\n.reg .pred P;\nsetp.ne.b32 P, $1, 0;\nmov.b32 $0, 0;\n"
                    "@P ld.shared.b32 $0, [$2];\n}",
                    "=&r,r,r", {condition, address}, {e.getBuilder().getI32Type()})[0];
}

void KernelLowering::emitMeetGroup() {
  e.barrier(e.add(group, e.i32(barriers.ofGroup(0))), e.i32(128));
}

/// A barrier for each set of more than one group, with its number and its threads as constants.
void KernelLowering::emitMeetSharing(Value sharing, int64_t groups) {
  Block *after = e.newBlock();
  int64_t number = barriers.ofSets();
  for (int64_t set = 0; set < int64_t(1) << groups; ++set) {
    int64_t members = llvm::popcount(static_cast<uint64_t>(set));
    if (members < 2)
      continue;
    Block *meet = e.newBlock(), *next = e.newBlock();
    e.branchIf(e.cmp(IntPredicate::eq, sharing, e.i32(set)), meet, next);
    e.enter(meet);
    e.barrier(e.i32(number++), e.i32(128 * members));
    e.branch(after);
    e.enter(next);
  }
  emitMeetGroup();
  e.branch(after);
  e.enter(after);
}

void KernelLowering::emitZeroRows(const Ring &ring, Value stage,
                                  function_ref<Value(Value, int64_t)> isSeen,
                                  function_ref<void()> meet) {
  Value base = stageAddress(ring, stage);
  for (int64_t pass = 0; pass * kGroupThreads < ring.type.getRows(); ++pass) {
    Value row = e.add(thread, e.i32(pass * kGroupThreads));
    Block *after = e.newBlock();
    if ((pass + 1) * kGroupThreads > ring.type.getRows()) {
      Block *inside = e.newBlock();
      e.branchIf(e.cmp(IntPredicate::slt, row, e.i32(ring.type.getRows())), inside, after);
      e.enter(inside);
    }
    Block *zero = e.newBlock();
    e.branchIf(isSeen(row, pass), after, zero);
    e.enter(zero);
    // A row of a column group takes all banks once, and eight lanes store at a time: row r starts
    // at 16-byte piece r mod 8, so that no two of them meet in a bank. The swizzle moves pieces in
    // a row only.
    Value first = e.shl(e.bitAnd(row, e.i32(7)), e.i32(4));
    Value target = e.bitOr(e.add(base, e.shl(row, e.i32(7))), first);
    std::string text = "{\n.reg .b32 a;\n";
    for (int64_t piece = 0; piece < 8; ++piece) {
      text += "xor.b32 a, $0, " + std::to_string(piece * 16) + ";\n";
      for (int64_t columns = 0; columns < ring.type.getColumnGroups(); ++columns)
        text += "st.shared.v4.b32 [a+" + std::to_string(columns * ring.type.getRows() * 128) +
                "], {$1, $1, $1, $1};\n";
    }
    e.assembly(text + "}", "r,r", {target, e.i32(0)}, {});
    e.branch(after);
    e.enter(after);
  }
  // PTX ISA, async proxy: wgmma reads shared memory through it, the stores above do not write so.
  emitFence();
  meet();
}

void KernelLowering::emitHide(HideOp op) {
  const Ring &ring = ringOf(op.getRing());
  Slot slot = slotOf(ring.type.getStages(), lookupOne(op.getUse()));
  Values words = lookup(op.getWords());
  emitZeroRows(
      ring, slot.stage,
      [&](Value row, int64_t pass) {
        Value bit = e.bitAnd(e.lshr(words[pass], e.bitAnd(row, e.i32(31))), e.i32(1));
        return e.cmp(IntPredicate::ne, bit, e.i32(0));
      },
      [&] { emitMeetGroup(); });
}

/// Every warp leaves the union of its rows' bits, four lanes' words, in scratch memory; after the
/// barrier of the groups that share, a thread reads the words that hold its row's bit. They meet
/// again when the rows are zero, so that nobody writes words for a later use while another reads.
void KernelLowering::emitHideUnseen(HideUnseenOp op) {
  const Ring &ring = ringOf(op.getRing());
  Slot slot = slotOf(ring.type.getStages(), lookupOne(op.getUse()));
  Value sharing = lookupOne(op.getSharing());
  const Values &bits = lookup(op.getBits());
  int64_t words = bits.size() / 2, groups = kernel.getConsumers().getGroups();
  constexpr int64_t warps = 4, lanes = 4;
  int64_t warpBytes = lanes * words * 4, groupBytes = warps * warpBytes;
  Value toStage = e.mul(slot.stage, e.i32(groups * groupBytes));
  Value stageScratch = e.add(e.add(sharedMemory, e.i32(ring.at.scratch)), toStage);

  Value warp = e.bitAnd(warpInCta, e.i32(3));
  Value toLane = e.mul(lane, e.i32(words * 4));
  Value inGroup = e.add(e.mul(warp, e.i32(warpBytes)), toLane);
  Value own = e.add(e.add(stageScratch, e.mul(group, e.i32(groupBytes))), inGroup);
  for (int64_t i = 0; i < words; ++i) {
    Value word = e.bitOr(bits[i], bits[words + i]);
    for (int64_t distance : {4, 8, 16})
      word = e.bitOr(word, e.shuffleXor(word, distance));
    e.assembly("{\n.reg .pred P;\nsetp.lt.u32 P, $2, 4;\n@P st.shared.b32 [$0+" +
                   std::to_string(4 * i) + "], $1;\n}",
               "r,r,r", {own, word, lane}, {});
  }
  emitMeetSharing(sharing, groups);

  auto isSeen = [&](Value row, int64_t) {
    // Row r of the slot is column r of the bits: its lane of the quad, its element, as
    // !tile.bits says.
    Value laneOfQuad = e.lshr(e.bitAnd(row, e.i32(7)), e.i32(1));
    Value isOdd = e.bitAnd(row, e.i32(1));
    Value element = e.bitOr(e.shl(e.lshr(row, e.i32(3)), e.i32(1)), isOdd);
    Value inLane = e.lshr(element, e.i32(5));
    Value number = e.add(e.mul(laneOfQuad, e.i32(words)), inLane);
    Value place = e.add(stageScratch, e.shl(number, e.i32(2)));
    Value seen = e.i32(0);
    for (int64_t g = 0; g < groups; ++g) {
      // Groups that do not share left nothing here and may be writing for another use.
      Value shares = e.bitAnd(sharing, e.i32(1 << g));
      for (int64_t w = 0; w < warps; ++w)
        seen = e.bitOr(
            seen, emitLoadSharedIf(shares, e.add(place, e.i32(g * groupBytes + w * warpBytes))));
    }
    Value bit = e.bitAnd(e.lshr(seen, e.bitAnd(element, e.i32(31))), e.i32(1));
    return e.cmp(IntPredicate::ne, bit, e.i32(0));
  };
  emitZeroRows(ring, slot.stage, isSeen, [&] { emitMeetSharing(sharing, groups); });
}
