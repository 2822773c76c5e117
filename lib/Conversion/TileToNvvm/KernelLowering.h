// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One kernel to one function. Every value of the kernel stands for a list of LLVM values: a scalar
// for itself, a fragment for the registers a thread holds of it, rows for the two rows of a thread.
// Control flow becomes blocks whose arguments are those lists.
#ifndef ATTN_LIB_CONVERSION_TILETONVVM_KERNELLOWERING_H
#define ATTN_LIB_CONVERSION_TILETONVVM_KERNELLOWERING_H

#include "Emitter.h"

#include "attn/Dialect/Tile/IR/TileOps.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace attn::tile {

/// Where things lie in dynamic shared memory, in bytes from its start: the rings in order, each
/// 1024-byte aligned as the 128-byte swizzle repeats (PTX ISA, tensor swizzling modes), what
/// tile.store_box copies from, the same way, then the barriers, then the records of queues and the
/// scratch memory of tile.hide_unseen.
struct SharedLayout {
  struct Ring {
    int64_t data, full, empty;
    int64_t scratch; ///< -1: none
  };
  struct Queue {
    int64_t full, empty, rows;
  };
  llvm::SmallVector<Ring> rings;
  llvm::SmallVector<Queue> queues;
  int64_t staging = -1; ///< of tile.store_box, stagingBytes a row group; -1: none
  int64_t stagingBytes = 0;
  int64_t bytes = 0;

  static SharedLayout get(KernelOp kernel);
};

/// Named barriers (PTX ISA, bar: 0 to 15; 0 is the one of all threads): 1 to groups for one row
/// group each, after them one for the turn of each, then one for each set of more row groups.
struct NamedBarriers {
  int64_t groups;

  int64_t ofGroup(int64_t group) const { return 1 + group; }
  int64_t ofTurn(int64_t group) const { return 1 + groups + group; }
  int64_t ofSets() const { return 1 + 2 * groups; }
};

using Values = llvm::SmallVector<mlir::Value>;

class KernelLowering {
public:
  /// `function`: empty, with the entry block; `shared`: the symbol of the shared memory.
  KernelLowering(KernelOp kernel, mlir::LLVM::LLVMFuncOp function,
                 mlir::LLVM::AddressOfOp sharedMemory);

  llvm::LogicalResult run();

private:
  /// A ring in a role: its place and what is the same for all uses.
  struct Ring {
    RingType type;
    SharedLayout::Ring at;
    mlir::Value data;            ///< address in shared memory (i32)
    mlir::Value kMajor, mnMajor; ///< wgmma descriptors of stage 0 (i64)
  };
  struct Queue {
    QueueType type;
    SharedLayout::Queue at;
  };
  struct Slot {
    mlir::Value stage, parity; ///< i32
  };

  // Frame (KernelLowering.cpp).
  void emitEntry();
  llvm::LogicalResult emitProducer();
  llvm::LogicalResult emitConsumers();
  void bindRings();
  void initBarriers(int64_t at, int64_t stages, int64_t arrivals);

  // Control flow (ControlFlow.cpp).
  llvm::LogicalResult emitBlock(mlir::Block &block);
  llvm::LogicalResult emitOp(mlir::Operation &op);
  llvm::LogicalResult emitFor(mlir::scf::ForOp op);
  llvm::LogicalResult emitIf(mlir::scf::IfOp op);
  llvm::LogicalResult emitWhile(mlir::scf::WhileOp op);
  /// The LLVM types of a value of `types`, in order; an error at `op` if one has none.
  llvm::FailureOr<llvm::SmallVector<mlir::Type>> flatten(mlir::Operation *op,
                                                         mlir::TypeRange types);
  Values lookup(mlir::ValueRange values);
  const Values &lookup(mlir::Value value);
  mlir::Value lookupOne(mlir::Value value);
  void bind(mlir::Value value, Values values);
  /// Hands out `flat` to `values` in order.
  void bindAll(mlir::ValueRange values, mlir::ValueRange flat);

  // Rings and products (Rings.cpp, Products.cpp).
  const Ring &ringOf(mlir::Value ring);
  Slot slotOf(int64_t stages, mlir::Value use);
  /// Barrier number `stage` of those at `offset`.
  SharedAddress barrierOf(int64_t offset, mlir::Value stage);
  mlir::Value stageAddress(const Ring &ring, mlir::Value stage);
  /// The wgmma descriptor of a slot.
  mlir::Value descriptorOf(const Ring &ring, mlir::Value use, bool kMajor);
  mlir::Value descriptorAhead(const Ring &ring, mlir::Value use, bool kMajor);
  void emitAcquire(AcquireOp op);
  void emitExpect(ExpectOp op);
  void emitCopy(CopyOp op);
  void emitWait(WaitOp op);
  void emitRelease(ReleaseOp op);
  void emitFence();
  void emitLoadOperand(LoadOperandOp op);
  void emitMmaShared(MmaSharedOp op);
  void emitMmaOperand(MmaOperandOp op);
  void emitMmaRegister(MmaRegisterOp op);
  void emitWaitMma(WaitMmaOp op);

  // Work and turns (Handover.cpp).
  void emitPush(PushOp op);
  void emitFront(FrontOp op);
  void emitRead(ReadOp op);
  void emitPop(PopOp op);
  /// The rows of a stage.
  SharedAddress rowsOf(const Queue &queue, mlir::Value stage);
  void emitFromLane(FromLaneOp op);
  void emitClaim(ClaimOp op);
  void emitAwaitTurn();
  void emitPassTurn();
  /// The barrier of the turn after a group's.
  mlir::Value turnAfter(mlir::Value groupNumber);
  mlir::Value emitThreadId();
  void emitMeetWarp();
  void arriveByFirstLane(const SharedAddress &barrier);

  // Hidden rows (Hide.cpp).
  void emitHide(HideOp op);
  void emitHideUnseen(HideUnseenOp op);
  /// Zeroes the rows of a stage for which `isSeen` gives false; after `meet` products may read
  /// them. Thread t has rows t, t + 128, ...: `isSeen` takes a row and its number among the
  /// thread's.
  void emitZeroRows(const Ring &ring, mlir::Value stage,
                    llvm::function_ref<mlir::Value(mlir::Value, int64_t)> isSeen,
                    llvm::function_ref<void()> meet);
  /// Barriers of the row group, and of the row groups of `sharing`.
  void emitMeetGroup();
  void emitMeetSharing(mlir::Value sharing, int64_t groups);
  mlir::Value emitLoadSharedIf(mlir::Value condition, mlir::Value address);

  // Fragments (Fragments.cpp, Maps.cpp, Stores.cpp).
  void emitFill(FillOp op);
  llvm::LogicalResult emitMap(MapOp op);
  llvm::LogicalResult emitMapRows(MapRowsOp op);
  void emitRowMax(RowMaxOp op);
  void emitRowSum(RowSumOp op);
  void emitRowFinish(RowFinishOp op);
  void emitWarpAny(WarpAnyOp op);
  void emitToOperand(ToOperandOp op);
  void emitRangeBits(RangeBitsOp op);
  void emitBitsOr(BitsOrOp op);
  void emitSelect(SelectOp op);
  void emitStore(StoreOp op);
  void emitStoreBox(StoreBoxOp op);
  void emitStoreRows(StoreRowsOp op);
  /// Asynchronous stores no longer read shared memory: lane 0 of each warp waits for its own.
  void emitWaitStored();
  /// For four 8x8 matrices an instruction, in column groups of 64 rows at `base`: a lane's row and
  /// what swizzles it; the address of the 16 columns from 16 `step` on.
  std::pair<mlir::Value, mlir::Value> matrixPlace(mlir::Value base);
  mlir::Value matrixAddress(std::pair<mlir::Value, mlir::Value> place, int64_t step);
  Values packPairs(const Values &registers, mlir::Type element);
  Values packBits(llvm::ArrayRef<mlir::Value> bits);
  mlir::Value isClear(mlir::Value word, int64_t bit);

  KernelOp kernel;
  mlir::LLVM::LLVMFuncOp function;
  SharedLayout layout;
  NamedBarriers barriers;
  Emitter e;
  mlir::Block *done;
  mlir::Value sharedMemory; ///< address (i32)
  mlir::Value threadInCta;
  mlir::Value warpInCta; ///< the same in all lanes, also for the compiler
  mlir::Value lane;
  // In a row group.
  mlir::Value group;
  mlir::Value thread;            ///< 0 to 127
  mlir::Value firstRow;          ///< of the two rows of the thread; the other is 8 below
  mlir::Value firstColumn;       ///< 2 (lane mod 4)
  mlir::Value ownTurn, nextTurn; ///< barriers; null where no turns are taken
  llvm::DenseMap<mlir::Value, Ring> rings;
  /// Of descriptorAhead(), by the ring's base and the use.
  llvm::DenseMap<std::pair<mlir::Value, mlir::Value>, mlir::Value> descriptors;
  llvm::DenseMap<mlir::Value, Queue> queues;
  llvm::DenseMap<mlir::Value, Values> known;
};

} // namespace attn::tile

#endif // ATTN_LIB_CONVERSION_TILETONVVM_KERNELLOWERING_H
