// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Handlers that are not plain lane-wise functions; the decoder fills in what each reads of Instr.
#ifndef ATTN_SIM_HANDLERS_H
#define ATTN_SIM_HANDLERS_H

#include "Program.h"

namespace attn::sim {

// Instr::flags of loads, stores and atomics.
enum MemoryFlags : uint8_t { kStrong = 1, kAcquire = 2, kRelease = 4 };
// Of mbarriers and barrier.cluster.
enum BarrierFlags : uint8_t { kRelaxed = 1, kClusterScope = 2 };
enum class AtomicOp : uint8_t { Add, And, Or, Xor, Exch, Cas, Min, Max, Inc, Dec };
/// Type of the operands of an atomic, in Instr::flags >> 4.
enum class AtomicType : uint8_t { Unsigned, Signed, Float };

bool executeLoad(Cta &, Warp &, const Instr &, uint32_t mask);
bool executeStore(Cta &, Warp &, const Instr &, uint32_t mask);
bool executeAtomic(Cta &, Warp &, const Instr &, uint32_t mask);
bool executeLoadMatrix(Cta &, Warp &, const Instr &, uint32_t mask);
bool executeStoreMatrix(Cta &, Warp &, const Instr &, uint32_t mask);
bool executePack(Cta &, Warp &, const Instr &, uint32_t mask);
bool executeUnpack(Cta &, Warp &, const Instr &, uint32_t mask);
bool executeToGeneric(Cta &, Warp &, const Instr &, uint32_t mask);
bool executeFromGeneric(Cta &, Warp &, const Instr &, uint32_t mask);
bool executeNothing(Cta &, Warp &, const Instr &, uint32_t mask);
bool executeMapAddress(Cta &, Warp &, const Instr &, uint32_t mask);
bool executeRankOf(Cta &, Warp &, const Instr &, uint32_t mask);

bool executeBarrier(Cta &, Warp &, const Instr &, uint32_t mask);
bool executeClusterArrive(Cta &, Warp &, const Instr &, uint32_t mask);
bool executeClusterWait(Cta &, Warp &, const Instr &, uint32_t mask);
bool executeWarpSync(Cta &, Warp &, const Instr &, uint32_t mask);
bool executeShuffle(Cta &, Warp &, const Instr &, uint32_t mask);
bool executeVote(Cta &, Warp &, const Instr &, uint32_t mask);
bool executeMatch(Cta &, Warp &, const Instr &, uint32_t mask);
bool executeActiveMask(Cta &, Warp &, const Instr &, uint32_t mask);
bool executeElect(Cta &, Warp &, const Instr &, uint32_t mask);
bool executeRedux(Cta &, Warp &, const Instr &, uint32_t mask);
bool executeFence(Cta &, Warp &, const Instr &, uint32_t mask);
bool executeProxyFence(Cta &, Warp &, const Instr &, uint32_t mask);
bool executeInitFence(Cta &, Warp &, const Instr &, uint32_t mask);
bool executeSetMaxRegisters(Cta &, Warp &, const Instr &, uint32_t mask);

bool executeMbarrierInit(Cta &, Warp &, const Instr &, uint32_t mask);
bool executeMbarrierInvalidate(Cta &, Warp &, const Instr &, uint32_t mask);
bool executeMbarrierArrive(Cta &, Warp &, const Instr &, uint32_t mask);
bool executeMbarrierTx(Cta &, Warp &, const Instr &, uint32_t mask);
bool executeMbarrierWait(Cta &, Warp &, const Instr &, uint32_t mask);

bool executeTensorCopy(Cta &, Warp &, const Instr &, uint32_t mask);
bool executeBulkCopy(Cta &, Warp &, const Instr &, uint32_t mask);
bool executeBulkCommit(Cta &, Warp &, const Instr &, uint32_t mask);
bool executeBulkWait(Cta &, Warp &, const Instr &, uint32_t mask);
bool executeSmallCopy(Cta &, Warp &, const Instr &, uint32_t mask);
bool executeSmallCommit(Cta &, Warp &, const Instr &, uint32_t mask);
bool executeSmallWait(Cta &, Warp &, const Instr &, uint32_t mask);
bool executeSmallArrive(Cta &, Warp &, const Instr &, uint32_t mask);

bool executeWgmma(Cta &, Warp &, const Instr &, uint32_t mask);
bool executeWgmmaFence(Cta &, Warp &, const Instr &, uint32_t mask);
bool executeWgmmaCommit(Cta &, Warp &, const Instr &, uint32_t mask);
bool executeWgmmaWait(Cta &, Warp &, const Instr &, uint32_t mask);

} // namespace attn::sim

#endif // ATTN_SIM_HANDLERS_H
