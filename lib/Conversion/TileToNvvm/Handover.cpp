// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Work from the producer to the loaders and row groups, and the turns of row groups.

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

SharedAddress KernelLowering::rowsOf(const Queue &queue, Value stage) {
  return {e.add(sharedMemory, e.mul(stage, e.i32(queue.type.getStageBytes()))), queue.at.rows};
}

/// Lane l copies row l of the source, lane 0 writes the values. The lanes meet before lane 0
/// arrives for all of them.
void KernelLowering::emitPush(PushOp op) {
  const Queue &queue = queues.find(op.getQueue())->second;
  Slot slot = slotOf(queue.type.getStages(), lookupOne(op.getUse()));
  Values values = lookup(op.getValues());
  int64_t valueBytes = static_cast<int64_t>(values.size()) * 4;
  int64_t room = queue.type.getRows() - valueBytes / 16;
  Value copies =
      e.zext32(e.cmp(IntPredicate::slt, lane, e.smin(lookupOne(op.getCount()), e.i32(room))));
  Value toRow = e.shl(lane, e.i32(4));
  OpBuilder &b = e.getBuilder();
  Value base = e.toGlobal(lookupOne(op.getSource()));
  Value source = LLVM::GEPOp::create(b, e.getLoc(), base.getType(), b.getI8Type(), base,
                                     ArrayRef<LLVM::GEPArg>{e.zext64(toRow)});
  Type i32 = b.getI32Type();
  Values copied = e.assembly("{\n.reg .pred P;\nsetp.ne.b32 P, $5, 0;\nmov.b32 $0, 0;\n"
                             "mov.b32 $1, 0;\nmov.b32 $2, 0;\nmov.b32 $3, 0;\n"
                             "@P ld.global.nc.v4.b32 {$0, $1, $2, $3}, [$4];\n}",
                             "=&r,=&r,=&r,=&r,l,r", {source, copies}, {i32, i32, i32, i32});
  emitMeetWarp();
  Value before = e.bitXor(slot.parity, e.i32(1));
  e.waitParity(barrierOf(queue.at.empty, slot.stage), before);
  SharedAddress rows = rowsOf(queue, slot.stage);
  for (size_t i = 0; i < values.size(); i += 4) {
    SharedAddress row{rows.base, rows.offset + static_cast<int64_t>(i) * 4};
    e.assembly("{\n.reg .pred P;\nsetp.eq.u32 P, $5, 0;\n@P st.shared.v4.b32 " + row.text(0) +
                   ", {$1, $2, $3, $4};\n}",
               "r,r,r,r,r,r",
               {row.base, values[i], values[i + 1], values[i + 2], values[i + 3], lane}, {});
  }
  SharedAddress row{e.add(rows.base, toRow), rows.offset + valueBytes};
  e.assembly("{\n.reg .pred P;\nsetp.ne.b32 P, $5, 0;\n@P st.shared.v4.b32 " + row.text(0) +
                 ", {$1, $2, $3, $4};\n}",
             "r,r,r,r,r,r", {row.base, copied[0], copied[1], copied[2], copied[3], copies}, {});
  emitMeetWarp();
  arriveByFirstLane(barrierOf(queue.at.full, slot.stage));
}

void KernelLowering::emitFront(FrontOp op) {
  const Queue &queue = queues.find(op.getQueue())->second;
  Slot slot = slotOf(queue.type.getStages(), lookupOne(op.getUse()));
  e.waitParity(barrierOf(queue.at.full, slot.stage), slot.parity);
}

void KernelLowering::emitRead(ReadOp op) {
  const Queue &queue = queues.find(op.getQueue())->second;
  Slot slot = slotOf(queue.type.getStages(), lookupOne(op.getUse()));
  SharedAddress rows = rowsOf(queue, slot.stage);
  SharedAddress row{e.add(rows.base, e.shl(lookupOne(op.getRow()), e.i32(4))), rows.offset};
  Type i32 = e.getBuilder().getI32Type();
  bindAll(op.getResults(), e.assembly("ld.shared.v4.b32 {$0, $1, $2, $3}, " + row.text(4) + ";",
                                      "=r,=r,=r,=r,r", {row.base}, {i32, i32, i32, i32}));
}

/// Every lane has read, so they meet before lane 0 arrives for all of them.
void KernelLowering::emitPop(PopOp op) {
  emitMeetWarp();
  const Queue &queue = queues.find(op.getQueue())->second;
  Slot slot = slotOf(queue.type.getStages(), lookupOne(op.getUse()));
  arriveByFirstLane(barrierOf(queue.at.empty, slot.stage));
}

void KernelLowering::emitFromLane(FromLaneOp op) {
  Value value = lookupOne(op.getValue()), from = lookupOne(op.getLane());
  bind(op.getResult(), {e.shuffleFrom(value, from)});
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
  bind(op, {e.shuffleFrom(number, e.i32(0))});
}

//===----------------------------------------------------------------------===//
// Turns
//===----------------------------------------------------------------------===//

/// A group waits on the barrier of its turn, where the group before it arrives.
void KernelLowering::emitAwaitTurn() { e.barrier(ownTurn, e.i32(256)); }
void KernelLowering::emitPassTurn() { e.barrierArrive(nextTurn, e.i32(256)); }

Value KernelLowering::turnAfter(Value groupNumber) {
  int64_t groups = kernel.getConsumers().getGroups();
  Value isLast = e.cmp(IntPredicate::eq, groupNumber, e.i32(groups - 1));
  Value next = e.select(isLast, e.i32(0), e.add(groupNumber, e.i32(1)));
  return e.add(next, e.i32(barriers.ofTurn(0)));
}
