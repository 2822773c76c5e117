// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// PTX ISA "mbarrier": a phase is complete when all arrivals are there and the bytes of its copies
// are what was announced. Waits return the order that arrivals brought.
#include "Handlers.h"
#include "Machine.h"

using namespace attn::sim;

static constexpr int64_t kMostTx = (1 << 20) - 1;

std::string Cta::nameOf(const Mbarrier &barrier, const Warp &by) const {
  return "mbarrier " + sharedText(barrier.offset) +
         (by.cta == this ? "" : " of CTA " + std::to_string(index));
}

/// Number of the barrier at `offset`, or -1 after a report.
int Cta::mbarrierAt(const Warp &by, const Instr &in, uint32_t offset, bool forCopy) {
  auto found = barrierAt.find(offset);
  if (found == barrierAt.end() || !barriers[found->second].live) {
    Mbarrier none;
    none.offset = offset;
    by.cta->fail(Report::Kind::BarrierMisuse, by.index, in.line,
                 "uses the " + nameOf(none, by) + ", which is not initialised");
    return -1;
  }
  const Mbarrier &barrier = barriers[found->second];
  if (by.clock.get(barrier.initAgent) < barrier.initTime)
    by.cta->report(Report::Kind::DataRace, by.index, in.line, barrier.initLine, offset,
                   "uses the " + nameOf(barrier, by) + ", initialised by warp " +
                       std::to_string(barrier.initWarp) + " at line " +
                       std::to_string(barrier.initLine) + ": no barrier orders the two");
  else if (forCopy && !barrier.initFenced && by.proxy.get(barrier.initAgent) < barrier.initTime)
    by.cta->report(Report::Kind::MissingProxyFence, by.index, in.line, barrier.initLine, offset,
                   "issues a copy that completes on the " + nameOf(barrier, by) +
                       ", initialised at line " + std::to_string(barrier.initLine) +
                       ": no fence.mbarrier_init or fence.proxy.async is between");
  return found->second;
}

void Cta::checkPhase(int index, const Warp &by, int32_t line) {
  Mbarrier &barrier = barriers[index];
  if (barrier.pending != 0 || barrier.tx > 0)
    return;
  const std::string phase =
      "phase " + std::to_string(barrier.phase) + " of the " + nameOf(barrier, by);
  if (barrier.tx < 0)
    return by.cta->fail(Report::Kind::BarrierMisuse, by.index, line,
                        "completes copies of " + std::to_string(-barrier.tx) + " bytes more than " +
                            phase + " expects");
  if (barrier.copies > 0)
    return by.cta->fail(Report::Kind::BarrierMisuse, by.index, line,
                        "completes " + phase + " while the copy of line " +
                            std::to_string(barrier.lastCopyLine) +
                            " is under way: fewer bytes are expected than copied");
  ++barrier.phase;
  barrier.pending = barrier.expected;
  for (int scope = 0; scope < (alone() ? 1 : 2); ++scope) {
    barrier.arriving[scope].raise(barrier.agent, barrier.phase);
    barrier.completed[scope] = barrier.arriving[scope];
    barrier.completedProxy[scope] = barrier.arrivingProxy[scope];
  }
  for (Warp &waiter : warps)
    if (waiter.parked && (waiter.waitAddress == barrier.offset || !waiter.converged))
      waiter.unpark();
}

/// "Parallel Synchronization ...: scope": an arrival of .cta scope tells other CTAs nothing.
void Cta::arrive(int index, const Warp &by, const Instr &in, int64_t count) {
  Mbarrier &barrier = barriers[index];
  const bool relaxed = in.flags & kRelaxed, remote = by.cta != this;
  const Clock &clock = relaxed ? by.fenceRelease : by.clock;
  if (!remote || in.flags & kClusterScope) {
    barrier.arriving[0].join(clock);
    if (!relaxed)
      barrier.arrivingProxy[0].join(by.proxy);
  }
  if (!remote && !alone()) {
    barrier.arriving[1].join(clock);
    if (!relaxed)
      barrier.arrivingProxy[1].join(by.proxy);
  }
  if (remote)
    noteRemote(by, in.line, index);
  arriveNow(index, by, in.line, count);
}

void Cta::arriveNow(int index, const Warp &by, int32_t line, int64_t count) {
  Mbarrier &barrier = barriers[index];
  if (count > barrier.pending || count < 0)
    return by.cta->fail(Report::Kind::BarrierMisuse, by.index, line,
                        "arrives " + std::to_string(count) + " times at the " +
                            nameOf(barrier, by) + ", whose phase " + std::to_string(barrier.phase) +
                            " expects " + std::to_string(barrier.pending) + " more");
  barrier.pending -= count;
  ++cluster.progress;
  checkPhase(index, by, line);
}

void Cta::expectTx(int index, const Warp &by, int32_t line, int64_t bytes) {
  Mbarrier &barrier = barriers[index];
  barrier.tx += bytes;
  ++cluster.progress;
  if (barrier.tx > kMostTx)
    by.cta->fail(Report::Kind::BarrierMisuse, by.index, line,
                 "expects " + std::to_string(barrier.tx) + " bytes at the " + nameOf(barrier, by) +
                     ", at most " + std::to_string(kMostTx) + " are possible");
}

void Cta::completeTx(int index, const Warp &by, int32_t line, int64_t bytes) {
  Mbarrier &barrier = barriers[index];
  barrier.tx -= bytes;
  ++cluster.progress;
  if (barrier.tx < -kMostTx)
    return by.cta->fail(Report::Kind::BarrierMisuse, by.index, line,
                        "completes " + std::to_string(-barrier.tx) + " bytes at the " +
                            nameOf(barrier, by) + " that nobody expects");
  checkPhase(index, by, line);
}

namespace {
/// An mbarrier of the cluster.
struct Named {
  Cta *owner = nullptr;
  int index = -1;
  explicit operator bool() const { return index >= 0; }
  Mbarrier &operator*() const { return owner->barriers[index]; }
};
} // namespace

static Named named(Cta &cta, const Warp &warp, const Instr &in, int lane) {
  Named result;
  const Place place =
      cta.sharedAt(warp, in, in.space, warp.effective(in.at, lane), 8, 8, "uses an mbarrier at");
  if (!place)
    return result;
  result.owner = place.cta;
  result.index = place.cta->mbarrierAt(warp, in, place.offset, false);
  return result;
}

/// What PTX allows on mbarriers of the own CTA only.
static void remoteObject(Cta &cta, const Warp &warp, const Instr &in) {
  cta.fail(Report::Kind::BarrierMisuse, warp.index, in.line,
           "names an mbarrier of another CTA, expected one of its own");
}

bool attn::sim::executeMbarrierInit(Cta &cta, Warp &warp, const Instr &in, uint32_t mask) {
  for (int lane = 0; lane < 32; ++lane) {
    if (!(mask >> lane & 1))
      continue;
    const Place place = cta.sharedAt(warp, in, in.space, warp.effective(in.at, lane), 8, 8,
                                     "initialises an mbarrier at");
    if (!place)
      continue;
    if (place.cta != &cta) {
      remoteObject(cta, warp, in);
      continue;
    }
    const uint32_t offset = place.offset;
    auto [found, isNew] = cta.barrierAt.emplace(offset, static_cast<int>(cta.barriers.size()));
    if (isNew) {
      cta.barriers.emplace_back();
      cta.barriers.back().agent = cta.cluster.agents++;
      cta.barriers.back().offset = offset;
    }
    Mbarrier &barrier = cta.barriers[found->second];
    const int64_t count = static_cast<int32_t>(warp.words(in.src[1])[lane]);
    if (barrier.live)
      cta.report(Report::Kind::BarrierMisuse, warp.index, in.line, barrier.initLine, offset,
                 "initialises the " + cta.nameOf(barrier, warp) + " again without mbarrier.inval");
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
    barrier.expected = barrier.pending = count;
    barrier.tx = 0;
    barrier.initAgent = warp.agent;
    barrier.initTime = warp.clock.get(warp.agent);
    barrier.initWarp = warp.index;
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
    const Named name = named(cta, warp, in, lane);
    if (!name)
      continue;
    if (name.owner != &cta) {
      remoteObject(cta, warp, in);
      continue;
    }
    Mbarrier &barrier = *name;
    if (barrier.copies)
      cta.report(Report::Kind::BarrierMisuse, warp.index, in.line, barrier.lastCopyLine,
                 barrier.offset,
                 "invalidates the " + cta.nameOf(barrier, warp) + " while copies are under way");
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
    const Named name = named(cta, warp, in, lane);
    if (!name)
      continue;
    const uint32_t operand = in.src[1] == kNoOperand ? 1 : warp.words(in.src[1])[lane];
    const bool expects = in.kind & 1;
    const int64_t count = expects ? 1 : static_cast<int32_t>(operand);
    if (in.dst != kNoOperand)
      warp.longs(in.dst)[lane] = (*name).phase;
    if (expects)
      name.owner->expectTx(name.index, warp, in.line, operand);
    if (in.kind & 2) {
      (*name).expected -= count;
      if (count < 0 || (*name).expected < 0) {
        cta.fail(Report::Kind::BarrierMisuse, warp.index, in.line,
                 "drops " + std::to_string(count) + " arrivals of the " +
                     name.owner->nameOf(*name, warp) + ", more than it expects");
        continue;
      }
    }
    name.owner->arrive(name.index, warp, in, count);
  }
  warp.tick();
  return true;
}

bool attn::sim::executeMbarrierTx(Cta &cta, Warp &warp, const Instr &in, uint32_t mask) {
  for (int lane = 0; lane < 32; ++lane) {
    if (!(mask >> lane & 1))
      continue;
    const Named name = named(cta, warp, in, lane);
    if (!name)
      continue;
    const uint32_t bytes = warp.words(in.src[1])[lane];
    if (name.owner != &cta)
      name.owner->noteRemote(warp, in.line, name.index);
    if (in.kind)
      name.owner->expectTx(name.index, warp, in.line, bytes);
    else
      name.owner->completeTx(name.index, warp, in.line, bytes);
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
                 "waits for phase " + std::to_string(meant) + " of the " +
                     cta.nameOf(barrier, warp) + " by its parity, but phase " +
                     std::to_string(now) + " runs: a phase was skipped");
  }
  return (now & 1) != parity;
}

/// Asks for the phase of one lane.
static bool ask(Cta &cta, Warp &warp, const Instr &in, int lane, uint64_t phase,
                const Mbarrier *&failed) {
  const Named name = named(cta, warp, in, lane);
  if (name && name.owner != &cta) {
    remoteObject(cta, warp, in);
    return true;
  }
  if (!name)
    return true;
  Mbarrier &barrier = *name;
  if (!isComplete(cta, warp, in, barrier, phase)) {
    failed = &barrier;
    return false;
  }
  barrier.seen[warp.index] = static_cast<int64_t>(barrier.phase) - 1;
  const int scope = cta.alone() || in.flags & kClusterScope ? 0 : 1;
  if (in.flags & kRelaxed) {
    warp.pendingAcquire.join(barrier.completed[scope]);
  } else {
    warp.clock.join(barrier.completed[scope]);
    warp.proxy.join(barrier.completedProxy[scope]);
  }
  return true;
}

bool attn::sim::executeMbarrierWait(Cta &cta, Warp &warp, const Instr &in, uint32_t mask) {
  uint32_t complete = 0;
  const Mbarrier *failed = nullptr;
  uint64_t lastAddress = ~uint64_t(0), lastPhase = 0;
  bool lastResult = false;
  for (int lane = 0; lane < 32; ++lane) {
    if (!(mask >> lane & 1))
      continue;
    const uint64_t address = warp.effective(in.at, lane);
    const uint64_t phase = warp.value(in.src[1], !(in.kind & 1), lane);
    if (address != lastAddress || phase != lastPhase) {
      lastAddress = address, lastPhase = phase;
      lastResult = ask(cta, warp, in, lane, phase, failed);
    }
    complete |= uint32_t(lastResult) << lane;
  }
  uint32_t &to = *warp.words(in.dst);
  to = (to & ~mask) | complete;
  if (complete == mask)
    return true;
  // The first failure is told to the program; if it asks again, it waits.
  const uint64_t key = uint64_t(in.line) << 40 ^ uint64_t(failed->phase) << 20 ^ failed->offset ^ 1;
  if (warp.failedKey != key || complete != 0) {
    warp.failedKey = key;
    return true;
  }
  warp.parked |= mask;
  warp.parkedFor = Warp::Parked::Mbarrier;
  warp.waitAddress = failed->offset;
  return false;
}
