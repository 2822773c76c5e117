// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// tile.kernel, its rings and roles, what stands where: constraints tile-C5 ... tile-C13, tile-C24,
// tile-C27, tile-C28.

#include "attn/Dialect/Tile/IR/TileOps.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace attn::tile;

//===----------------------------------------------------------------------===//
// Kernel
//===----------------------------------------------------------------------===//

ProducerOp KernelOp::getProducer() {
  auto ops = getBody().front().getOps<ProducerOp>();
  return *ops.begin();
}

ConsumersOp KernelOp::getConsumers() {
  auto ops = getBody().front().getOps<ConsumersOp>();
  return *ops.begin();
}

int64_t KernelOp::getThreads() { return 128 * (getConsumers().getGroups() + 1); }

static LogicalResult verifyArguments(KernelOp kernel) {
  // 32764 bytes of parameters (PTX ISA, .param space), less the tensor maps.
  constexpr int64_t maps = 4, maxWords = (32764 - maps * 128) / 8;
  int64_t words = kernel.getWords();
  if (words < 1 || words > maxWords)
    return kernel.emitOpError("words is expected to be 1 to ")
           << maxWords << ", got " << words << " (tile-C5)";
  auto types = llvm::to_vector(kernel.getBody().getArgumentTypes());
  bool good = types.size() == maps + 1;
  for (auto [i, type] : llvm::enumerate(types)) {
    auto pointer = dyn_cast<LLVM::LLVMPointerType>(type);
    good &= i < maps ? isa<TensorMapType>(type) : pointer && pointer.getAddressSpace() == 0;
  }
  if (!good) {
    InFlightDiagnostic diag =
        kernel.emitOpError("expected arguments (!tile.tensor_map, !tile.tensor_map, "
                           "!tile.tensor_map, !tile.tensor_map, !llvm.ptr), got (");
    llvm::interleaveComma(types, diag);
    return diag << ") (tile-C5)";
  }
  return success();
}

LogicalResult KernelOp::verifyRegions() {
  if (failed(verifyArguments(*this)))
    return failure();
  Operation *previous = nullptr;
  constexpr unsigned kMostLoaders = 3; // beside the producer, in a warpgroup
  unsigned producers = 0, loaders = 0, consumers = 0;
  auto refuse = [](Operation *op) {
    return op->emitOpError("a kernel holds rings and queues, then one tile.producer, then up to "
                           "three tile.loader, then one tile.consumers (tile-C6)");
  };
  for (Operation &op : getBody().front()) {
    producers += isa<ProducerOp>(op);
    loaders += isa<LoaderOp>(op);
    consumers += isa<ConsumersOp>(op);
    bool inOrder = isa<RingOp, QueueOp>(op) ? producers == 0
                   : isa<ProducerOp>(op)    ? producers == 1
                   : isa<LoaderOp>(op)      ? producers == 1 && loaders <= kMostLoaders
                   : isa<ConsumersOp>(op)   ? consumers == 1 && producers == 1
                                            : false;
    if (!inOrder || consumers + (isa<ConsumersOp>(op) ? 0 : 1) > 1)
      return refuse(&op);
    previous = &op;
  }
  if (!isa_and_nonnull<ConsumersOp>(previous))
    return refuse(*this);

  // setmaxnreg.inc waits until the CTA has the registers: what it got at launch, a multiple of 8 a
  // thread out of 65536, is all there is (PTX ISA, setmaxnreg).
  int64_t groups = getConsumers().getGroups();
  int64_t perThread = 65536 / getThreads() / 8 * 8;
  int64_t available = perThread * (groups + 1);
  int64_t wanted = getProducer().getRegisters() + groups * getConsumers().getRegisters();
  if (wanted > available)
    return emitOpError("the roles want ")
           << wanted << " registers a thread of each warpgroup together, " << available
           << " are there (tile-C9)";
  return success();
}

/// Limit of mbarrier counts (PTX ISA, mbarrier).
static LogicalResult verifyArrivals(Operation *op, int64_t arrivals) {
  if (arrivals < 1 || arrivals > (1 << 20) - 1)
    return op->emitOpError("arrivals is expected to be 1 to 1048575, got ")
           << arrivals << " (tile-C8)";
  return success();
}

LogicalResult RingOp::verify() { return verifyArrivals(*this, getArrivals()); }
LogicalResult QueueOp::verify() { return verifyArrivals(*this, getArrivals()); }

//===----------------------------------------------------------------------===//
// Roles
//===----------------------------------------------------------------------===//

/// Range of setmaxnreg (PTX ISA).
static LogicalResult verifyRegisters(Operation *op, int64_t registers) {
  if (registers < 24 || registers > 256 || registers % 8 != 0)
    return op->emitOpError("registers is expected to be a multiple of 8 from 24 to 256, got ")
           << registers << " (tile-C9)";
  return success();
}

LogicalResult ProducerOp::verify() {
  if (getBody().getNumArguments() != 0)
    return emitOpError("takes no argument, got ") << getBody().getNumArguments() << " (tile-C10)";
  return verifyRegisters(*this, getRegisters());
}

LogicalResult LoaderOp::verify() {
  if (getBody().getNumArguments() != 0)
    return emitOpError("takes no argument, got ") << getBody().getNumArguments() << " (tile-C10)";
  return success();
}

LogicalResult ConsumersOp::verify() {
  // A CTA has 1024 threads.
  int64_t groups = getGroups();
  if (groups < 1 || groups > 7)
    return emitOpError("groups is expected to be 1 to 7, got ") << groups << " (tile-C10)";
  return verifyRegisters(*this, getRegisters());
}

LogicalResult ConsumersOp::verifyRegions() {
  if (getBody().getNumArguments() != 1 || !getBody().getArgument(0).getType().isInteger(32))
    return emitOpError("expected one argument of type i32 (tile-C10)");
  return success();
}

LogicalResult attn::tile::detail::verifyRole(Operation *op, Role role) {
  bool inMap = false;
  Operation *parent = op->getParentOp();
  for (; parent && !isa<ProducerOp, LoaderOp, ConsumersOp>(parent); parent = parent->getParentOp())
    inMap |= isa<MapOp, MapRowsOp>(parent);
  switch (role) {
  case Role::Any:
    if (!parent)
      return op->emitOpError(
          "must stand in a tile.producer, a tile.loader or a tile.consumers (tile-C7)");
    return success();
  case Role::Producer:
    if (!isa_and_nonnull<ProducerOp>(parent) || inMap)
      return op->emitOpError("must stand in a tile.producer (tile-C7)");
    return success();
  case Role::Loading:
    if (!isa_and_nonnull<ProducerOp, LoaderOp>(parent) || inMap)
      return op->emitOpError("must stand in a tile.producer or a tile.loader (tile-C7)");
    return success();
  case Role::Taking:
    if (!isa_and_nonnull<LoaderOp, ConsumersOp>(parent) || inMap)
      return op->emitOpError(
          "must stand in a tile.loader or a tile.consumers and not in a map (tile-C7)");
    return success();
  case Role::Consumers:
    if (!isa_and_nonnull<ConsumersOp>(parent) || inMap)
      return op->emitOpError("must stand in a tile.consumers and not in a map (tile-C7)");
    return success();
  }
  llvm_unreachable("covered switch");
}

//===----------------------------------------------------------------------===//
// Slots
//===----------------------------------------------------------------------===//

/// tile-C11: which ring it is must be known, not only at run time.
static LogicalResult verifyRing(Operation *op, Value ring) {
  if (!ring.getDefiningOp<RingOp>())
    return op->emitOpError("expected a ring that is the result of a tile.ring (tile-C11)");
  return success();
}

LogicalResult AcquireOp::verify() { return verifyRing(*this, getRing()); }
LogicalResult ExpectOp::verify() { return verifyRing(*this, getRing()); }
LogicalResult WaitOp::verify() { return verifyRing(*this, getRing()); }
LogicalResult ReleaseOp::verify() { return verifyRing(*this, getRing()); }

LogicalResult HideOp::verify() {
  if (failed(verifyRing(*this, getRing())))
    return failure();
  int64_t rows = cast<RingType>(getRing().getType()).getRows();
  int64_t expected = llvm::divideCeil(rows, kGroupThreads), words = getWords().size();
  if (words != expected)
    return emitOpError("takes a word for every 128 rows, ")
           << expected << " for " << rows << " rows, got " << words << " (tile-C31)";
  return success();
}

static LogicalResult verifyQueue(Operation *op, Value queue) {
  if (!queue.getDefiningOp<QueueOp>())
    return op->emitOpError("expected a queue that is the result of a tile.queue (tile-C11)");
  return success();
}

LogicalResult FrontOp::verify() { return verifyQueue(*this, getQueue()); }
LogicalResult ReadOp::verify() { return verifyQueue(*this, getQueue()); }
LogicalResult PopOp::verify() { return verifyQueue(*this, getQueue()); }

LogicalResult PushOp::verify() {
  if (failed(verifyQueue(*this, getQueue())))
    return failure();
  int64_t rows = getQueue().getType().getRows(), values = getValues().size();
  if (values % 4 != 0 || values > 4 * rows)
    return emitOpError("expected a multiple of four values, up to ")
           << 4 * rows << " for the rows of a stage, got " << values << " (tile-C29)";
  // A lane copies one row.
  if (rows - values / 4 > 32)
    return emitOpError("copies up to 32 rows, the stage has room for ")
           << rows - values / 4 << " (tile-C29)";
  return success();
}

static LogicalResult verifyMap(Operation *op, Value map) {
  auto argument = dyn_cast<BlockArgument>(map);
  if (!argument || !isa<KernelOp>(argument.getOwner()->getParentOp()))
    return op->emitOpError("expected a tensor map that is an argument of the kernel (tile-C11)");
  return success();
}

LogicalResult CopyOp::verify() {
  if (failed(verifyMap(*this, getMap())))
    return failure();
  return verifyRing(*this, getRing());
}

LogicalResult StoreBoxOp::verify() {
  FragmentType fragment = getFragment().getType();
  int64_t columns = getColumns();
  if (fragment.getLayout() != FragmentLayout::Acc || columns < 64 || columns % 64 != 0 ||
      fragment.getCols() % columns != 0)
    return emitOpError(
               "expected an acc fragment and a multiple of 64 columns that divides its own, "
               "got ")
           << fragment << " and " << columns << " (tile-C30)";
  if (!getElement().isF16() && !getElement().isBF16())
    return emitOpError("expected to store f16 or bf16, got ") << getElement() << " (tile-C30)";
  return verifyMap(*this, getMap());
}

LogicalResult HideUnseenOp::verify() {
  if (failed(verifyRing(*this, getRing())))
    return failure();
  if (getRing().getType().getRows() != getBits().getType().getCols())
    return emitOpError("expected a column of bits for each row of the ring, got ")
           << getBits().getType().getCols() << " and " << getRing().getType().getRows()
           << " (tile-C24)";
  int64_t groups = (*this)->getParentOfType<ConsumersOp>().getGroups();
  if (groups > kMaxSharingGroups)
    return emitOpError("up to ") << kMaxSharingGroups << " row groups can share a slot, got "
                                 << groups << " (tile-C24)";
  return success();
}

LogicalResult MmaSharedOp::verify() {
  if (failed(verifyRing(*this, getA())) || failed(verifyRing(*this, getB())))
    return failure();
  RingType a = getA().getType(), b = getB().getType();
  FragmentType result = getResult().getType().getFragment();
  if (a.getRows() != kFragmentRows)
    return emitOpError("the first slot is expected to have ")
           << kFragmentRows << " rows, got " << a.getRows() << " (tile-C12)";
  if (a.getCols() != b.getCols() || a.getElement() != b.getElement())
    return emitOpError("expected slots of the same columns and elements, got ")
           << a.getCols() << "x" << a.getElement() << " and " << b.getCols() << "x"
           << b.getElement() << " (tile-C12)";
  if (result.getLayout() != FragmentLayout::Acc || result.getCols() > b.getRows())
    return emitOpError("the result is expected to be an acc fragment with a column for each of the "
                       "second slot's first rows, of ")
           << b.getRows() << ", got " << result << " (tile-C12)";
  return success();
}

LogicalResult LoadOperandOp::verify() {
  if (failed(verifyRing(*this, getRing())))
    return failure();
  RingType ring = getRing().getType();
  FragmentType result = getResult().getType();
  if (ring.getRows() != kFragmentRows)
    return emitOpError("the slot is expected to have ")
           << kFragmentRows << " rows, got " << ring.getRows() << " (tile-C27)";
  if (result.getLayout() != FragmentLayout::Operand || result.getCols() != ring.getCols() ||
      result.getElement() != ring.getElement())
    return emitOpError("the result is expected to be an operand fragment of the slot's columns and "
                       "elements, ")
           << ring.getCols() << "x" << ring.getElement() << ", got " << result << " (tile-C27)";
  return success();
}

LogicalResult MmaOperandOp::verify() {
  if (failed(verifyRing(*this, getB())))
    return failure();
  FragmentType a = getA().getType(), result = getResult().getType().getFragment();
  RingType b = getB().getType();
  if (a.getLayout() != FragmentLayout::Operand || a.getCols() != b.getCols() ||
      a.getElement() != b.getElement())
    return emitOpError("the first factor is expected to be an operand fragment of the slot's "
                       "columns and elements, ")
           << b.getCols() << "x" << b.getElement() << ", got " << a << " (tile-C28)";
  if (result.getLayout() != FragmentLayout::Acc || result.getCols() > b.getRows())
    return emitOpError("the result is expected to be an acc fragment with a column for each of the "
                       "slot's first rows, of ")
           << b.getRows() << ", got " << result << " (tile-C28)";
  return success();
}

LogicalResult MmaRegisterOp::verify() {
  if (failed(verifyRing(*this, getB())))
    return failure();
  FragmentType a = getA().getType(), c = getC().getType();
  RingType b = getB().getType();
  if (a.getLayout() != FragmentLayout::Operand || a.getCols() != b.getRows() ||
      a.getElement() != b.getElement())
    return emitOpError("the first factor is expected to be an operand fragment with a column for "
                       "each row of the slot and its elements, ")
           << b.getRows() << "x" << b.getElement() << ", got " << a << " (tile-C13)";
  if (c.getLayout() != FragmentLayout::Acc || c.getCols() != b.getCols())
    return emitOpError("the accumulator is expected to be an acc fragment with the columns of the "
                       "slot, ")
           << b.getCols() << ", got " << c << " (tile-C13)";
  return success();
}
