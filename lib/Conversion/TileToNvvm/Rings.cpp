// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Slots of rings: barriers and TMA copies.

#include "KernelLowering.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn::tile;

const KernelLowering::Ring &KernelLowering::ringOf(Value ring) { return rings.find(ring)->second; }

/// Stage and phase of a use: its number over the stages, remainder and quotient mod 2.
KernelLowering::Slot KernelLowering::slotOf(int64_t stages, Value use) {
  if (stages == 1)
    return {e.i32(0), e.bitAnd(use, e.i32(1))};
  if (llvm::isPowerOf2_64(stages)) {
    Value round = e.lshr(use, e.i32(llvm::Log2_64(stages)));
    return {e.bitAnd(use, e.i32(stages - 1)), e.bitAnd(round, e.i32(1))};
  }
  Value round = e.emit<LLVM::UDivOp>(use, e.i32(stages));
  return {e.sub(use, e.mul(round, e.i32(stages))), e.bitAnd(round, e.i32(1))};
}

SharedAddress KernelLowering::barrierOf(int64_t offset, Value stage) {
  return {e.add(sharedMemory, e.shl(stage, e.i32(3))), offset};
}

Value KernelLowering::stageAddress(const Ring &ring, Value stage) {
  return e.add(ring.data, e.mul(stage, e.i32(ring.type.getStageBytes())));
}

Value KernelLowering::descriptorOf(const Ring &ring, Value use, bool kMajor) {
  Value stage = slotOf(ring.type.getStages(), use).stage;
  Value offset = e.mul(stage, e.i32(ring.type.getStageBytes() / 16));
  return e.add(kMajor ? ring.kMajor : ring.mnMajor, e.zext64(offset));
}

/// Whether `value` is made behind `op`, in a block or in one that was made later.
static bool isBehind(Value value, Operation *op) {
  Block *block = value.getParentBlock();
  if (block != op->getBlock())
    return block->computeBlockNumber() > op->getBlock()->computeBlockNumber();
  Operation *definition = value.getDefiningOp();
  return definition && op->isBeforeInBlock(definition);
}

/// One a use, made where its number is: ahead of the turn, or of the loop. The statement keeps it
/// there; LLVM would move it down to the product, in front of which others wait for their turn.
Value KernelLowering::descriptorAhead(const Ring &ring, Value use, bool kMajor) {
  Value base = kMajor ? ring.kMajor : ring.mnMajor;
  Value &descriptor = descriptors[{base, use}];
  if (descriptor)
    return descriptor;
  OpBuilder &b = e.getBuilder();
  OpBuilder::InsertionGuard guard(b);
  // Constants, the group's number and the thread's are older than the ring's own values.
  b.setInsertionPointAfterValue(isBehind(use, base.getDefiningOp()) ? use : base);
  descriptor =
      e.assembly("mov.b64 $0, $1;", "=l,l", {descriptorOf(ring, use, kMajor)}, {b.getI64Type()})[0];
  return descriptor;
}

/// Empty barriers: round r of a stage may start once phase r - 1 is over; the first at once, since
/// a fresh barrier counts as past a phase of parity 1 (PTX ISA, mbarrier.test_wait). The lanes meet
/// first: a lane that issues copies must not get two phases ahead of one that still waits, for
/// which the parity would then be the old one again.
void KernelLowering::emitAcquire(AcquireOp op) {
  emitMeetWarp();
  const Ring &ring = ringOf(op.getRing());
  Slot slot = slotOf(ring.type.getStages(), lookupOne(op.getUse()));
  Value before = e.bitXor(slot.parity, e.i32(1));
  e.waitParity(barrierOf(ring.at.empty, slot.stage), before);
}

/// The lane is read in place: the producer has few registers.
void KernelLowering::emitExpect(ExpectOp op) {
  const Ring &ring = ringOf(op.getRing());
  Slot slot = slotOf(ring.type.getStages(), lookupOne(op.getUse()));
  SharedAddress full = barrierOf(ring.at.full, slot.stage);
  e.assembly("{\n.reg .pred P;\n.reg .b32 l;\nmov.u32 l, %laneid;\nsetp.eq.u32 P, l, 0;\n"
             "@P mbarrier.arrive.expect_tx.shared::cta.b64 _, " +
                 full.text(0) + ", $1;\n}",
             "r,r", {full.base, e.i32(ring.type.getStageBytes())}, {});
}

void KernelLowering::emitCopy(CopyOp op) {
  const Ring &ring = ringOf(op.getRing());
  Slot slot = slotOf(ring.type.getStages(), lookupOne(op.getUse()));
  Value columnGroup = lookupOne(op.getColumnGroup());
  Value inStage = e.mul(columnGroup, e.i32(ring.type.getRows() * 128));
  Value target = e.add(stageAddress(ring, slot.stage), inStage);
  target = e.add(target, e.shl(lookupOne(op.getAt()), e.i32(7)));
  SharedAddress full = barrierOf(ring.at.full, slot.stage);
  // PTX ISA, cp.async.bulk.tensor: .shared::cta as target since 8.6; bytes outside the tensor are
  // written as zeros and count.
  e.assembly("cp.async.bulk.tensor.5d.shared::cta.global.mbarrier::complete_tx::bytes "
             "[$0], [$1, {$3, $4, $5, $6, $7}], " +
                 full.text(2) + ";",
             "r,l,r,r,r,r,r,r",
             {target, lookupOne(op.getMap()), full.base, e.i32(0), lookupOne(op.getRow()),
              columnGroup, lookupOne(op.getHead()), lookupOne(op.getPage())},
             {});
}

void KernelLowering::emitWait(WaitOp op) {
  const Ring &ring = ringOf(op.getRing());
  Slot slot = slotOf(ring.type.getStages(), lookupOne(op.getUse()));
  e.waitParity(barrierOf(ring.at.full, slot.stage), slot.parity);
}

/// PTX ISA, async proxy: between what is read or written without it and copies.
void KernelLowering::emitFence() { e.assembly("fence.proxy.async.shared::cta;", "", {}, {}); }

void KernelLowering::emitRelease(ReleaseOp op) {
  const Ring &ring = ringOf(op.getRing());
  Slot slot = slotOf(ring.type.getStages(), lookupOne(op.getUse()));
  arriveByFirstLane(barrierOf(ring.at.empty, slot.stage));
}
