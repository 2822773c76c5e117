// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Work from the producer to the row groups, and the turns of row groups.

#include "KernelLowering.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace attn::tile;

void KernelLowering::arriveByFirstLane(const SharedAddress &barrier) {
  e.assembly("{\n.reg .pred P;\nsetp.eq.u32 P, $1, 0;\n@P mbarrier.arrive.shared::cta.b64 _, " +
                 barrier.text(0) + ";\n}",
             "r,r", {barrier.base, lane}, {});
}

/// In the producer every time anew, so that nothing made of it takes a register between.
Value KernelLowering::emitThreadId() {
  if (group)
    return thread;
  return e.assembly("mov.u32 $0, %laneid;", "=r", {}, {e.getBuilder().getI32Type()})[0];
}

void KernelLowering::emitMeetWarp() {
  // Not as text: LLVM must not give every side of a branch a copy of its own.
  NVVM::SyncWarpOp::create(e.getBuilder(), e.getLoc(), e.i32(-1));
}

void KernelLowering::emitPush(PushOp op) {
  emitMeetWarp();
  const Queue &queue = queues.find(op.getQueue())->second;
  Slot slot = slotOf(queue.type.getStages(), lookupOne(op.getUse()));
  Value before = e.bitXor(slot.parity, e.i32(1));
  e.waitParity(barrierOf(queue.at.empty, slot.stage), before);
  SharedAddress value{e.add(sharedMemory, e.shl(slot.stage, e.i32(2))), queue.at.values};
  SharedAddress full = barrierOf(queue.at.full, slot.stage);
  e.assembly("{\n.reg .pred P;\nsetp.eq.u32 P, $3, 0;\n@P st.shared.b32 " + value.text(0) +
                 ", $1;\n@P mbarrier.arrive.shared::cta.b64 _, " + full.text(2) + ";\n}",
             "r,r,r,r", {value.base, lookupOne(op.getValue()), full.base, lane}, {});
}

/// Lane 0 reads, so that its arrival says that the warp is done.
void KernelLowering::emitPop(PopOp op) {
  const Queue &queue = queues.find(op.getQueue())->second;
  Slot slot = slotOf(queue.type.getStages(), lookupOne(op.getUse()));
  e.waitParity(barrierOf(queue.at.full, slot.stage), slot.parity);
  Value isFirst = e.zext32(e.cmp(IntPredicate::eq, lane, e.i32(0)));
  Value place = e.add(sharedMemory, e.i32(queue.at.values));
  Value value = emitLoadSharedIf(isFirst, e.add(place, e.shl(slot.stage, e.i32(2))));
  arriveByFirstLane(barrierOf(queue.at.empty, slot.stage));
  bind(op, {e.shuffleFirst(value)});
}

void KernelLowering::emitClaim(ClaimOp op) {
  Type i32 = e.getBuilder().getI32Type();
  Value last = e.sub(lookupOne(op.getTotal()), e.i32(1));
  // Whoever claims the last number has seen every other claim: atomic operations on one address
  // have one order.
  Value number =
      e.assembly("{\n.reg .pred P, Q;\nsetp.eq.u32 P, $2, 0;\nmov.b32 $0, 0;\n"
                 "@P atom.relaxed.gpu.global.add.u32 $0, [$1], 1;\n"
                 "setp.eq.and.u32 Q, $0, $3, P;\n"
                 "@Q st.relaxed.gpu.global.u32 [$1], 0;\n}",
                 "=&r,l,r,r", {e.toGlobal(lookupOne(op.getCounter())), lane, last}, {i32})[0];
  bind(op, {e.shuffleFirst(number)});
}

//===----------------------------------------------------------------------===//
// Turns
//===----------------------------------------------------------------------===//

/// A group waits on the barrier of its turn, where the group before it arrives.
void KernelLowering::emitAwaitTurn() {
  e.barrier(e.add(group, e.i32(barriers.ofTurn(0))), e.i32(256));
}

void KernelLowering::emitPassTurn(Value from) {
  int64_t groups = kernel.getConsumers().getGroups();
  Value isLast = e.cmp(IntPredicate::eq, from, e.i32(groups - 1));
  Value next = e.select(isLast, e.i32(0), e.add(from, e.i32(1)));
  e.barrierArrive(e.add(next, e.i32(barriers.ofTurn(0))), e.i32(256));
}
