// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_SIM_MEMORY_H
#define ATTN_SIM_MEMORY_H

#include "Handlers.h"
#include "Machine.h"

#include <cstring>

namespace attn::sim {

/// One load, store or atomic of a warp: where every lane goes.
struct MemoryAccess {
  MemoryAccess(Cta &cta, Warp &warp, const Instr &in) : cta(cta), warp(warp), in(in) {}

  /// Bytes of a lane's address, or null after a report.
  uint8_t *at(int lane, uint32_t bytes, uint32_t align, bool write);
  void watchReads(uint32_t bytes);
  /// Bytes that go to shared memory, and conflicts of banks; before a write.
  void countWrites(uint32_t bytes);
  /// f(owner, lanes) for every CTA whose shared memory is meant.
  template <class F>
  void eachOwner(F f) {
    if (shared & ~remote)
      f(cta, shared & ~remote);
    for (uint32_t rest = remote; rest;) {
      Cta &owner = *owners[__builtin_ctz(rest)];
      uint32_t lanes = 0;
      for (int lane = 0; lane < 32; ++lane)
        lanes |= uint32_t(rest >> lane & 1 && owners[lane] == &owner) << lane;
      owner.noteRemote(warp, in.line);
      f(owner, lanes);
      rest &= ~lanes;
    }
  }
  void countConflicts(uint32_t bytes);
  /// Acquires and releases of atomic and volatile accesses.
  void synchronise(bool reads, bool writes);
  Access self() const;

  Cta &cta;
  Warp &warp;
  const Instr &in;
  uint32_t shared = 0;      ///< lanes that go to shared memory
  uint32_t remote = 0;      ///< of those: to that of another CTA
  uint32_t addresses[32]{}; ///< theirs, from the start of shared memory
  Cta *owners[32];          ///< of the remote ones

private:
  void misaligned(uint64_t address, uint32_t align, const char *base);
};

} // namespace attn::sim

#endif // ATTN_SIM_MEMORY_H
