// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Named barriers, fences and setmaxnreg.
#include "Handlers.h"
#include "Machine.h"

using namespace attn::sim;

/// Completes barrier `id` if everybody is there.
void Cta::checkNamed(int id) {
  NamedBarrier &barrier = named[id];
  if (barrier.expected == 0 || barrier.arrived < barrier.expected)
    return;
  for (int index : barrier.waiters) {
    Warp &warp = warps[index];
    warp.clock.join(barrier.clock);
    warp.proxy.join(barrier.proxy);
    warp.wait = Warp::Wait::None;
    warp.resumed = true;
  }
  barrier = NamedBarrier();
  ++cluster.progress;
}

static int64_t liveThreads(const Cta &cta) {
  int64_t threads = 0;
  for (const Warp &warp : cta.warps)
    threads += warp.live ? 32 : 0;
  return threads;
}

void Cta::exitLanes(Warp &warp, uint32_t mask) {
  warp.live &= ~mask;
  // Those that wait for these lanes look again; at what takes the whole warp they wait in vain.
  for (int lane = 0; lane < 32; ++lane)
    if (warp.gathered >> lane & 1 && program.code[warp.pcs[lane]].aligned)
      return fail(Report::Kind::DivergentBarrier, warp.index, program.code[warp.pcs[lane]].line,
                  "needs the whole warp, but the lanes " + hexText(mask) + " have returned");
  warp.parked &= ~(mask | warp.gathered);
  warp.gathered = 0;
  warp.clusterArrived &= warp.live;
  ++cluster.progress;
  cluster.checkBarrier();
  if (warp.live)
    return;
  for (int id = 0; id < 16; ++id)
    if (named[id].everybody) {
      named[id].expected = std::max<int64_t>(liveThreads(*this), 32);
      checkNamed(id);
    }
}

/// The value that all lanes must agree on.
static bool uniform(Cta &cta, Warp &warp, const Instr &in, int32_t operand, const char *what,
                    uint32_t &value) {
  const uint32_t *values = warp.words(operand);
  value = values[__builtin_ctz(warp.live)];
  for (int lane = 0; lane < 32; ++lane)
    if (warp.live >> lane & 1 && values[lane] != value) {
      cta.fail(Report::Kind::DivergentBarrier, warp.index, in.line,
               std::string("lanes name different ") + what);
      return false;
    }
  return true;
}

// PTX ISA "bar, barrier": whole warps arrive, whatever lanes are live.
bool attn::sim::executeBarrier(Cta &cta, Warp &warp, const Instr &in, uint32_t) {
  if (warp.resumed) {
    warp.resumed = false;
    return true;
  }
  uint32_t id = 0, count = 0;
  if (!uniform(cta, warp, in, in.src[0], "barriers", id))
    return true;
  if (in.src[1] != kNoOperand && !uniform(cta, warp, in, in.src[1], "thread counts", count))
    return true;
  const std::string name = "named barrier " + std::to_string(id);
  if (id > 15 || count % 32 || (in.src[1] != kNoOperand && count == 0)) {
    cta.fail(Report::Kind::BarrierMisuse, warp.index, in.line,
             "uses " + name + " for " + std::to_string(count) +
                 " threads, expected one of 16 and a multiple of 32 threads");
    return true;
  }
  NamedBarrier &barrier = cta.named[id];
  const bool everybody = in.src[1] == kNoOperand;
  const int64_t expected = everybody ? liveThreads(cta) : count;
  if (barrier.expected != 0 && barrier.expected != expected) {
    cta.fail(Report::Kind::BarrierMisuse, warp.index, in.line,
             "uses " + name + " for " + std::to_string(expected) + " threads, which line " +
                 std::to_string(barrier.line) + " uses for " + std::to_string(barrier.expected));
    return true;
  }
  barrier.expected = expected;
  barrier.everybody = everybody;
  barrier.line = in.line;
  barrier.arrived += 32;
  barrier.clock.join(warp.clock);
  barrier.proxy.join(warp.proxy);
  warp.tick();
  if (in.kind) {
    barrier.waiters.push_back(warp.index);
    warp.wait = Warp::Wait::Named;
    warp.waitNamed = id;
  }
  cta.checkNamed(static_cast<int>(id));
  if (in.kind && !warp.resumed)
    return false;
  warp.resumed = false;
  return true;
}

// Fences order accesses only together with atomic or volatile accesses around them: "Release
// Patterns", "Acquire Patterns".
bool attn::sim::executeFence(Cta &, Warp &warp, const Instr &, uint32_t) {
  warp.clock.join(warp.pendingAcquire);
  warp.fenceRelease = warp.clock;
  warp.tick();
  return true;
}

static void fenceInits(Cta &cta, const Warp &warp) {
  for (Mbarrier &barrier : cta.barriers)
    if (barrier.live && barrier.initAgent == warp.agent)
      barrier.initFenced = true;
}

// "Proxy-preserved base causality order": a proxy fence anywhere on the path from the write to the
// asynchronous access will do, so it covers all that happens before it.
bool attn::sim::executeProxyFence(Cta &cta, Warp &warp, const Instr &, uint32_t) {
  cta.fenceLoads(warp);
  warp.proxy.join(warp.clock);
  fenceInits(cta, warp);
  warp.tick();
  return true;
}

bool attn::sim::executeInitFence(Cta &cta, Warp &warp, const Instr &, uint32_t) {
  fenceInits(cta, warp);
  return true;
}

void Cta::wakeRegisters() {
  for (Warp &warp : warps)
    if (warp.wait == Warp::Wait::Registers)
      warp.wait = Warp::Wait::None;
}

// PTX ISA "setmaxnreg": registers go to and come from the pool of the CTA.
bool attn::sim::executeSetMaxRegisters(Cta &cta, Warp &warp, const Instr &in, uint32_t) {
  const int64_t wanted = in.imm, have = warp.registerCount;
  if (in.kind ? wanted < have : wanted > have) {
    cta.report(Report::Kind::Registers, warp.index, in.line, 0, 0,
               std::string(in.kind ? "raises" : "lowers") + " its registers from " +
                   std::to_string(have) + " to " + std::to_string(wanted));
    return true;
  }
  const int64_t more = 32 * (wanted - have);
  if (more > cta.registerPool) {
    warp.wait = Warp::Wait::Registers;
    return false;
  }
  cta.registerPool -= more;
  warp.registerCount = static_cast<uint32_t>(wanted);
  if (more < 0)
    cta.wakeRegisters();
  return true;
}
