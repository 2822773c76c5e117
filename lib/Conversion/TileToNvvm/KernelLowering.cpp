// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The frame of a kernel: shared memory, barriers, roles.

#include "KernelLowering.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace attn::tile;

SharedLayout SharedLayout::get(KernelOp kernel) {
  SharedLayout layout;
  int64_t at = 0;
  auto ops = kernel.getBody().getOps<RingOp>();
  for (RingOp op : ops) {
    RingType type = op.getResult().getType();
    layout.rings.push_back({at, 0, 0, -1});
    // Rows are a multiple of 8, so that every stage is one of 1024 bytes.
    at += type.getStages() * type.getStageBytes();
  }
  kernel.walk([&](StoreBoxOp op) {
    int64_t bytes = kFragmentRows * static_cast<int64_t>(op.getColumns()) * 2;
    layout.stagingBytes = std::max(layout.stagingBytes, bytes);
  });
  if (layout.stagingBytes != 0) {
    layout.staging = at;
    at += static_cast<int64_t>(kernel.getConsumers().getGroups()) * layout.stagingBytes;
  }
  for (auto [op, ring] : llvm::zip(ops, layout.rings)) {
    int64_t barriers = 8 * op.getResult().getType().getStages();
    ring.full = at;
    ring.empty = at + barriers;
    at += 2 * barriers;
  }
  auto queues = kernel.getBody().getOps<QueueOp>();
  for (QueueOp op : queues) {
    int64_t barriers = 8 * op.getResult().getType().getStages();
    layout.queues.push_back({at, at + barriers, 0});
    at += 2 * barriers;
  }
  for (auto [op, queue] : llvm::zip(queues, layout.queues)) {
    QueueType type = op.getResult().getType();
    queue.rows = at = llvm::alignTo(at, 16);
    at += type.getStages() * type.getStageBytes();
  }
  for (auto [op, ring] : llvm::zip(ops, layout.rings)) {
    if (llvm::none_of(op.getResult().getUsers(), llvm::IsaPred<HideUnseenOp>))
      continue;
    RingType type = op.getResult().getType();
    ring.scratch = at;
    int64_t words = (type.getRows() / 4 + 31) / 32;
    at += type.getStages() * kernel.getConsumers().getGroups() * 4 * 4 * words * 4;
  }
  layout.bytes = at;
  return layout;
}

KernelLowering::KernelLowering(KernelOp kernel, LLVM::LLVMFuncOp function,
                               LLVM::AddressOfOp sharedMemory)
    : kernel(kernel), function(function),
      layout(SharedLayout::get(kernel)), barriers{static_cast<int64_t>(
                                             kernel.getConsumers().getGroups())},
      e(sharedMemory) {
  this->sharedMemory =
      e.emit<LLVM::PtrToIntOp>(e.getBuilder().getI32Type(), sharedMemory.getResult());
  for (auto [source, argument] :
       llvm::zip(kernel.getBody().getArguments(), function.getArguments()))
    bind(source, {argument});
}

LogicalResult KernelLowering::run() {
  emitEntry();
  Block *producer = e.newBlock(), *consumers = e.newBlock();
  done = e.newBlock();
  // Four warps make a warpgroup, the first has the producer and the loaders.
  e.branchIf(e.cmp(IntPredicate::ult, warpInCta, e.i32(4)), producer, consumers);
  e.enter(producer);
  if (failed(emitProducer()))
    return failure();
  e.enter(consumers);
  if (failed(emitConsumers()))
    return failure();
  e.enter(done);
  LLVM::ReturnOp::create(e.getBuilder(), e.getLoc(), ValueRange());
  return success();
}

void KernelLowering::initBarriers(int64_t at, int64_t stages, int64_t arrivals) {
  for (int64_t stage = 0; stage < stages; ++stage)
    e.assembly("mbarrier.init.shared::cta.b64 [$0], $1;", "r,r",
               {e.add(sharedMemory, e.i32(at + 8 * stage)), e.i32(arrivals)}, {});
}

/// Thread 0 fetches the tensor maps, which the first copies would wait for, and initialises the
/// barriers; then all threads meet.
void KernelLowering::emitEntry() {
  Type i32 = e.getBuilder().getI32Type();
  threadInCta = e.emit<NVVM::ThreadIdXOp>(i32);
  lane = e.bitAnd(threadInCta, e.i32(31));
  warpInCta = e.shuffleFrom(e.lshr(threadInCta, e.i32(5)), e.i32(0));
  Block *init = e.newBlock(), *ready = e.newBlock();
  e.branchIf(e.cmp(IntPredicate::eq, threadInCta, e.i32(0)), init, ready);
  e.enter(init);
  for (BlockArgument argument : kernel.getBody().getArguments())
    if (isa<TensorMapType>(argument.getType()))
      e.assembly("prefetch.tensormap [$0];", "l", {lookupOne(argument)}, {});
  auto initSlots = [&](auto op, const auto &at) {
    int64_t stages = op.getResult().getType().getStages();
    initBarriers(at.full, stages, 1);
    initBarriers(at.empty, stages, op.getArrivals());
  };
  for (auto [op, ring] : llvm::zip(kernel.getBody().getOps<RingOp>(), layout.rings))
    initSlots(op, ring);
  for (auto [op, queue] : llvm::zip(kernel.getBody().getOps<QueueOp>(), layout.queues))
    initSlots(op, queue);
  // PTX ISA, membar/fence: makes the initialised barriers visible to the async proxy.
  e.assembly("fence.mbarrier_init.release.cluster;", "", {}, {});
  e.branch(ready);
  e.enter(ready);
  NVVM::BarrierOp::create(e.getBuilder(), e.getLoc());
}

/// Addresses and descriptors of the rings in the current role, ahead of its loops.
void KernelLowering::bindRings() {
  // PTX ISA, wgmma matrix descriptor: bits 0-13 address / 16, 16-29 leading and 32-45 stride byte
  // offset / 16, 62-63 = 1: 128-byte swizzle. Stride: 1024 bytes between groups of 8 rows. Leading:
  // not used by K-major operands in that swizzle; for MN-major ones the distance of the groups of
  // 64 columns.
  constexpr int64_t common = (int64_t(1) << 62) | (int64_t(1024 / 16) << 32);
  for (auto [op, at] : llvm::zip(kernel.getBody().getOps<RingOp>(), layout.rings)) {
    Ring ring{op.getResult().getType(), at, {}, {}, {}};
    ring.data = e.add(sharedMemory, e.i32(at.data));
    Value start = e.zext64(e.lshr(e.bitAnd(ring.data, e.i32(0x3FFFF)), e.i32(4)));
    int64_t columnGroup = ring.type.getRows() * 128 / 16;
    ring.kMajor = e.bitOr(start, e.i64(common | (int64_t(1) << 16)));
    ring.mnMajor = e.bitOr(start, e.i64(common | (columnGroup << 16)));
    rings[op.getResult()] = ring;
  }
  for (auto [op, at] : llvm::zip(kernel.getBody().getOps<QueueOp>(), layout.queues))
    queues[op.getResult()] = {op.getResult().getType(), at};
}

LogicalResult KernelLowering::emitProducer() {
  ProducerOp op = kernel.getProducer();
  e.setLoc(op.getLoc());
  // PTX ISA, setmaxnreg: by all warps of a warpgroup.
  e.assembly("setmaxnreg.dec.sync.aligned.u32 " + std::to_string(op.getRegisters()) + ";", "", {},
             {});
  SmallVector<Block *> bodies = {&op.getBody().front()};
  for (LoaderOp loader : kernel.getLoaders())
    bodies.push_back(&loader.getBody().front());
  for (auto [warp, body] : llvm::enumerate(bodies)) {
    Block *work = e.newBlock(), *others = warp + 1 < bodies.size() ? e.newBlock() : done;
    e.branchIf(e.cmp(IntPredicate::eq, warpInCta, e.i32(static_cast<int64_t>(warp))), work, others);
    e.enter(work);
    e.setLoc(body->getParentOp()->getLoc());
    bindRings();
    if (failed(emitBlock(*body)))
      return failure();
    e.branch(done);
    if (others != done)
      e.enter(others);
  }
  return success();
}

LogicalResult KernelLowering::emitConsumers() {
  ConsumersOp op = kernel.getConsumers();
  e.setLoc(op.getLoc());
  e.assembly("setmaxnreg.inc.sync.aligned.u32 " + std::to_string(op.getRegisters()) + ";", "", {},
             {});
  group = e.sub(e.lshr(warpInCta, e.i32(2)), e.i32(1));
  thread = e.bitAnd(threadInCta, e.i32(127));
  Value warp = e.bitAnd(warpInCta, e.i32(3));
  Value quad = e.lshr(lane, e.i32(2));
  firstRow = e.add(e.shl(warp, e.i32(4)), quad);
  firstColumn = e.shl(e.bitAnd(lane, e.i32(3)), e.i32(1));
  bindRings();
  bind(op.getBody().getArgument(0), {group});
  WalkResult turns = op.walk([](AwaitTurnOp) { return WalkResult::interrupt(); });
  if (turns.wasInterrupted()) {
    // The first turn is group 0's: as if the last group had just had its own.
    Block *last = e.newBlock(), *start = e.newBlock();
    Value lastGroup = e.i32(op.getGroups() - 1);
    e.branchIf(e.cmp(IntPredicate::eq, group, lastGroup), last, start);
    e.enter(last);
    e.barrierArrive(turnAfter(lastGroup), e.i32(256));
    e.branch(start);
    e.enter(start);
    ownTurn = e.add(group, e.i32(barriers.ofTurn(0)));
    nextTurn = turnAfter(group);
  }
  if (failed(emitBlock(op.getBody().front())))
    return failure();
  if (layout.staging >= 0)
    emitWaitStored();
  e.branch(done);
  return success();
}
