// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// PTX ISA "mbarrier": a phase is complete when all arrivals are there and the bytes of its copies
// are what was announced. Waits return the order that arrivals brought.
#include "Handlers.h"
#include "Machine.h"

using namespace attn::sim;

static constexpr int64_t kMostTx = (1 << 20) - 1;

static std::string nameOf(const Mbarrier &barrier) {
  return "mbarrier " + sharedText(barrier.offset);
}

/// Number of the barrier that `address` names, or -1 after a report.
int Cta::barrierOf(Warp &warp, const Instr &in, uint64_t address, bool forCopy) {
  if (!sharedAt(warp, in, address & ~kWindowMask, 8, 8, "uses an mbarrier at"))
    return -1;
  const uint32_t offset = static_cast<uint32_t>(address & ~kWindowMask) - kSharedBase;
  auto found = barrierAt.find(offset);
  if (found == barrierAt.end() || !barriers[found->second].live) {
    fail(Report::Kind::BarrierMisuse, warp.index, in.line,
         "uses the mbarrier " + sharedText(offset) + ", which is not initialised");
    return -1;
  }
  const Mbarrier &barrier = barriers[found->second];
  if (warp.clock.get(barrier.initAgent) < barrier.initTime)
    report(Report::Kind::DataRace, warp.index, in.line, barrier.initLine, offset,
           "uses the " + nameOf(barrier) + ", initialised by warp " +
               std::to_string(barrier.initAgent) + " at line " + std::to_string(barrier.initLine) +
               ": no barrier orders the two");
  else if (forCopy && !barrier.initFenced && warp.proxy.get(barrier.initAgent) < barrier.initTime)
    report(Report::Kind::MissingProxyFence, warp.index, in.line, barrier.initLine, offset,
           "issues a copy that completes on the " + nameOf(barrier) + ", initialised at line " +
               std::to_string(barrier.initLine) +
               ": no fence.mbarrier_init or fence.proxy.async is between");
  return found->second;
}

void Cta::checkPhase(int index, int warp, int32_t line) {
  Mbarrier &barrier = barriers[index];
  if (barrier.pending != 0 || barrier.tx > 0)
    return;
  const std::string phase = "phase " + std::to_string(barrier.phase) + " of the " + nameOf(barrier);
  if (barrier.tx < 0)
    return fail(Report::Kind::BarrierMisuse, warp, line,
                "completes copies of " + std::to_string(-barrier.tx) + " bytes more than " + phase +
                    " expects");
  if (barrier.copies > 0)
    return fail(Report::Kind::BarrierMisuse, warp, line,
                "completes " + phase + " while the copy of line " +
                    std::to_string(barrier.lastCopyLine) +
                    " is under way: fewer bytes are expected than copied");
  ++barrier.phase;
  ++progress;
  barrier.pending = barrier.expected;
  barrier.arriving.raise(barrier.agent, barrier.phase);
  barrier.completed = barrier.arriving;
  barrier.completedProxy = barrier.arrivingProxy;
  for (Warp &waiter : warps)
    if (waiter.parked && (waiter.waitAddress == barrier.offset || !waiter.converged))
      waiter.parked = 0;
}

void Cta::arrive(int index, Warp &warp, int32_t line, int64_t count, bool release) {
  Mbarrier &barrier = barriers[index];
  if (release) {
    barrier.arriving.join(warp.clock);
    barrier.arrivingProxy.join(warp.proxy);
  }
  if (count > barrier.pending)
    return fail(Report::Kind::BarrierMisuse, warp.index, line,
                "arrives " + std::to_string(count) + " times at the " + nameOf(barrier) +
                    ", whose phase " + std::to_string(barrier.phase) + " expects " +
                    std::to_string(barrier.pending) + " more");
  barrier.pending -= count;
  checkPhase(index, warp.index, line);
}

void Cta::expectTx(int index, Warp &warp, int32_t line, int64_t bytes) {
  Mbarrier &barrier = barriers[index];
  barrier.tx += bytes;
  if (barrier.tx > kMostTx)
    fail(Report::Kind::BarrierMisuse, warp.index, line,
         "expects " + std::to_string(barrier.tx) + " bytes at the " + nameOf(barrier) +
             ", the most is " + std::to_string(kMostTx));
}

void Cta::completeTx(int index, int warp, int32_t line, int64_t bytes) {
  Mbarrier &barrier = barriers[index];
  barrier.tx -= bytes;
  if (barrier.tx < -kMostTx)
    return fail(Report::Kind::BarrierMisuse, warp, line,
                "completes " + std::to_string(-barrier.tx) + " bytes at the " + nameOf(barrier) +
                    " that nobody expects");
  checkPhase(index, warp, line);
}

static uint64_t addressOf(const Warp &warp, const Instr &in, int lane) {
  const uint64_t address =
      warp.value(in.src[0], in.wideAddress, lane) + static_cast<uint64_t>(in.imm);
  return in.wideAddress ? address : static_cast<uint32_t>(address);
}

bool attn::sim::executeMbarrierInit(Cta &cta, Warp &warp, const Instr &in, uint32_t mask) {
  for (int lane = 0; lane < 32; ++lane) {
    if (!(mask >> lane & 1))
      continue;
    const uint64_t address = addressOf(warp, in, lane) & ~kWindowMask;
    if (!cta.sharedAt(warp, in, address, 8, 8, "initialises an mbarrier at"))
      continue;
    const uint32_t offset = static_cast<uint32_t>(address) - kSharedBase;
    auto [found, isNew] = cta.barrierAt.emplace(offset, static_cast<int>(cta.barriers.size()));
    if (isNew) {
      cta.barriers.emplace_back();
      cta.barriers.back().agent = cta.barrierAgent(found->second);
    }
    Mbarrier &barrier = cta.barriers[found->second];
    const int64_t count = static_cast<int32_t>(warp.words(in.src[1])[lane]);
    if (barrier.live)
      cta.report(Report::Kind::BarrierMisuse, warp.index, in.line, barrier.initLine, offset,
                 "initialises the " + nameOf(barrier) + " again without mbarrier.inval");
    if (count < 1 || count > kMostTx) {
      cta.fail(Report::Kind::BarrierMisuse, warp.index, in.line,
               "initialises an mbarrier for " + std::to_string(count) + " arrivals");
      continue;
    }
    Access access = cta.access(warp, in);
    access.what = Access::What::Object;
    cta.shadow.begin(access, warp.clock, warp.proxy);
    cta.shadow.write(cta, offset, 8);
    barrier.live = true;
    barrier.offset = offset;
    barrier.expected = barrier.pending = count;
    barrier.tx = 0;
    barrier.initAgent = warp.index;
    barrier.initTime = warp.clock.get(warp.index);
    barrier.initLine = in.line;
    barrier.initFenced = false;
    barrier.seen.assign(cta.numWarps, -2);
    // The first phase has an even number, as waits for parity 0 count.
    barrier.phase += barrier.phase & 1;
  }
  return true;
}

bool attn::sim::executeMbarrierInvalidate(Cta &cta, Warp &warp, const Instr &in, uint32_t mask) {
  for (int lane = 0; lane < 32; ++lane) {
    if (!(mask >> lane & 1))
      continue;
    const int index = cta.barrierOf(warp, in, addressOf(warp, in, lane), false);
    if (index < 0)
      continue;
    Mbarrier &barrier = cta.barriers[index];
    if (barrier.copies)
      cta.report(Report::Kind::BarrierMisuse, warp.index, in.line, barrier.lastCopyLine,
                 barrier.offset,
                 "invalidates the " + nameOf(barrier) + " while copies are under way");
    barrier.live = false;
    Access access = cta.access(warp, in);
    access.what = Access::What::Object;
    cta.shadow.begin(access, warp.clock, warp.proxy);
    cta.shadow.write(cta, barrier.offset, 8);
    // From here on it is memory like any other.
    access.what = Access::What::Plain;
    cta.shadow.begin(access, warp.clock, warp.proxy);
    cta.shadow.claim(barrier.offset, 8);
  }
  return true;
}

bool attn::sim::executeMbarrierArrive(Cta &cta, Warp &warp, const Instr &in, uint32_t mask) {
  for (int lane = 0; lane < 32; ++lane) {
    if (!(mask >> lane & 1))
      continue;
    const int index = cta.barrierOf(warp, in, addressOf(warp, in, lane), false);
    if (index < 0)
      continue;
    const uint32_t operand = in.src[1] == kNoOperand ? 1 : warp.words(in.src[1])[lane];
    const bool expects = in.kind & 1;
    if (in.dst != kNoOperand)
      warp.longs(in.dst)[lane] = cta.barriers[index].phase;
    if (expects)
      cta.expectTx(index, warp, in.line, operand);
    if (in.kind & 2)
      --cta.barriers[index].expected;
    cta.arrive(index, warp, in.line, expects ? 1 : operand, !(in.flags & kStrong));
  }
  warp.tick();
  return true;
}

bool attn::sim::executeMbarrierTx(Cta &cta, Warp &warp, const Instr &in, uint32_t mask) {
  for (int lane = 0; lane < 32; ++lane) {
    if (!(mask >> lane & 1))
      continue;
    const int index = cta.barrierOf(warp, in, addressOf(warp, in, lane), false);
    if (index < 0)
      continue;
    const uint32_t bytes = warp.words(in.src[1])[lane];
    if (in.kind)
      cta.expectTx(index, warp, in.line, bytes);
    else
      cta.completeTx(index, warp.index, in.line, bytes);
  }
  return true;
}

/// Whether the phase of the wait is complete. By parity: the one before the phase that runs, which
/// is why a barrier must not run two phases ahead of somebody who has yet to wait.
static bool isComplete(Cta &cta, Warp &warp, const Instr &in, Mbarrier &barrier, uint64_t phase) {
  if (!(in.kind & 1))
    return barrier.phase > phase;
  const int64_t now = barrier.phase, parity = phase & 1, seen = barrier.seen[warp.index];
  if (seen != -2 && !(parity == (seen & 1) && now == seen + 1)) {
    const int64_t meant = seen + 1 + (((seen + 1) & 1) != parity);
    if (now >= meant + 2)
      cta.report(Report::Kind::BarrierMisuse, warp.index, in.line, 0, barrier.offset,
                 "waits for phase " + std::to_string(meant) + " of the " + nameOf(barrier) +
                     " by its parity, but phase " + std::to_string(now) +
                     " runs: a phase was skipped");
  }
  return (now & 1) != parity;
}

bool attn::sim::executeMbarrierWait(Cta &cta, Warp &warp, const Instr &in, uint32_t mask) {
  uint32_t complete = 0;
  uint32_t failedOffset = 0, failedPhase = 0;
  uint64_t lastAddress = ~uint64_t(0), lastPhase = 0;
  bool lastResult = false;
  for (int lane = 0; lane < 32; ++lane) {
    if (!(mask >> lane & 1))
      continue;
    const uint64_t address = addressOf(warp, in, lane);
    const uint64_t phase = warp.value(in.src[1], !(in.kind & 1), lane);
    if (address != lastAddress || phase != lastPhase) {
      lastAddress = address, lastPhase = phase;
      const int index = cta.barrierOf(warp, in, address, false);
      lastResult = index < 0 || isComplete(cta, warp, in, cta.barriers[index], phase);
      if (index >= 0 && lastResult) {
        Mbarrier &barrier = cta.barriers[index];
        barrier.seen[warp.index] = static_cast<int64_t>(barrier.phase) - 1;
        if (!(in.flags & kStrong)) {
          warp.clock.join(barrier.completed);
          warp.proxy.join(barrier.completedProxy);
        }
      } else if (index >= 0) {
        failedOffset = cta.barriers[index].offset;
        failedPhase = cta.barriers[index].phase;
      }
    }
    complete |= uint32_t(lastResult) << lane;
  }
  uint32_t &to = *warp.words(in.dst);
  to = (to & ~mask) | complete;
  if (complete == mask)
    return true;
  // The first failure is told to the program; if it asks again, it waits.
  const uint64_t key = uint64_t(in.line) << 40 ^ uint64_t(failedPhase) << 20 ^ failedOffset ^ 1;
  if (warp.failedKey != key || complete != 0) {
    warp.failedKey = key;
    return true;
  }
  warp.parked |= mask;
  warp.waitAddress = failedOffset;
  warp.waitPhase = failedPhase;
  warp.polling = in.kind & 2;
  return false;
}
