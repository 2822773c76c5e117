// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Running a CTA: which warp is next, when copies and products take effect, and what is left when
// nothing moves any more.
#include "Handlers.h"
#include "Machine.h"

using namespace attn::sim;

using PolicyKind = Policy::Kind;

static uint32_t specialValue(const Cta &cta, const Launch &launch, const std::string &name,
                             uint32_t thread) {
  const auto &block = launch.block;
  const uint32_t lane = thread % 32, warp = thread / 32;
  const uint32_t tid[3] = {thread % block[0], thread / block[0] % block[1],
                           thread / block[0] / block[1]};
  const size_t axis = name.back() - 'x';
  if (name.rfind("%tid.", 0) == 0)
    return tid[axis];
  if (name.rfind("%ntid.", 0) == 0)
    return block[axis];
  if (name.rfind("%ctaid.", 0) == 0)
    return cta.id[axis];
  if (name.rfind("%nctaid.", 0) == 0)
    return launch.grid[axis];
  if (name == "%laneid")
    return lane;
  if (name == "%warpid")
    return warp;
  if (name == "%nwarpid")
    return cta.numWarps;
  if (name == "%dynamic_smem_size")
    return launch.dynamicShared;
  if (name == "%total_smem_size")
    return cta.sharedBytes + kSharedBase;
  if (name == "%cluster_nctarank")
    return 1;
  const uint32_t bit = 1u << lane;
  if (name == "%lanemask_eq")
    return bit;
  if (name == "%lanemask_lt")
    return bit - 1;
  if (name == "%lanemask_le")
    return bit | (bit - 1);
  if (name == "%lanemask_gt")
    return ~(bit | (bit - 1));
  if (name == "%lanemask_ge")
    return ~(bit - 1);
  return 0; // %cluster_ctarank
}

static uint64_t seedOf(const Launch &launch, int32_t index) {
  Random mixed(launch.policy.seed * 0x2545F4914F6CDD1D + static_cast<uint64_t>(index));
  return mixed.next();
}

Cta::Cta(Grid &grid, int32_t index)
    : grid(grid), program(grid.program), index(index),
      sharedBytes(grid.program.staticShared + grid.launch.dynamicShared),
      shadow(sharedBytes, grid.program.granuleShift), random(seedOf(grid.launch, index)) {
  const Launch &launch = grid.launch;
  id = {index % launch.grid[0], index / launch.grid[0] % launch.grid[1],
        index / launch.grid[0] / launch.grid[1]};
  const uint32_t threads = launch.block[0] * launch.block[1] * launch.block[2];
  numWarps = static_cast<int>((threads + 31) / 32);
  warps.resize(numWarps);
  issuedProducts.resize(numWarps / 4 + 1);
  // Registers that nobody wrote and memory that nobody wrote are not numbers.
  const size_t bytes = (program.registerBytes + 63) / 64 * 64;
  registerFile.assign(bytes * numWarps + 64, 0xFF);
  uint8_t *base =
      registerFile.data() + (64 - reinterpret_cast<uintptr_t>(registerFile.data()) % 64);
  shared.resize(sharedBytes + 16);
  for (size_t i = 0; i < shared.size(); ++i)
    shared[i] = i % 2 ? 0x7F : 0xFF;
  local.assign(size_t(numWarps) * 32 * program.localBytes, 0xFF);
  const uint32_t share = 65536 / (numWarps * 32) / 8 * 8;
  for (int w = 0; w < numWarps; ++w) {
    Warp &warp = warps[w];
    warp.index = w;
    const uint32_t lanes = std::min(threads - 32 * w, 32u);
    warp.lanes = warp.live = lanes == 32 ? ~0u : (1u << lanes) - 1;
    warp.registers = base + bytes * w;
    warp.constants = program.constants.data();
    warp.clock.raise(w, 1);
    warp.registerCount = std::min(share, 256u);
    registerPool -= 32 * warp.registerCount;
    warp.flight.resize(program.numRegisters);
    warp.flightLine.resize(program.numRegisters);
    warp.flightUse.resize(program.numRegisters);
    warp.touched.resize(program.numRegisters);
    warp.touchedLine.resize(program.numRegisters);
    for (const SpecialRegister &special : program.specials)
      for (uint32_t lane = 0; lane < 32; ++lane)
        warp.words(special.offset)[lane] = specialValue(*this, launch, special.name, 32 * w + lane);
  }
}

Access Cta::access(const Warp &warp, const Instr &in) const {
  Access access;
  access.agent = warp.index;
  access.time = warp.clock.get(warp.index);
  access.line = in.line;
  access.warp = static_cast<uint8_t>(warp.index);
  return access;
}

/// Chooses the lanes that run: those at the instruction of the lowest rank.
uint32_t Cta::pick(Warp &warp) {
  const uint32_t candidates = warp.live & ~warp.parked;
  if (warp.converged)
    return candidates;
  int32_t lowest = -1;
  for (int lane = 0; lane < 32; ++lane)
    if (candidates >> lane & 1 &&
        (lowest < 0 || program.ranks[warp.pcs[lane]] < program.ranks[lowest]))
      lowest = warp.pcs[lane];
  uint32_t mask = 0, there = 0;
  for (int lane = 0; lane < 32; ++lane) {
    const bool here = warp.pcs[lane] == lowest;
    mask |= uint32_t(here && candidates >> lane & 1) << lane;
    there |= uint32_t(here && warp.live >> lane & 1) << lane;
  }
  warp.pc = lowest;
  warp.converged = there == warp.live && mask == there;
  return mask;
}

void Cta::jump(Warp &warp, const Instr &in, uint32_t mask, uint32_t taken) {
  if (warp.converged && (taken == mask || taken == 0)) {
    warp.pc = taken ? in.target : warp.pc + 1;
    return;
  }
  const int32_t next = warp.pc + 1;
  for (int lane = 0; lane < 32; ++lane)
    if (mask >> lane & 1)
      warp.pcs[lane] = taken >> lane & 1 ? in.target : next;
  warp.converged = false;
}

/// Of the lanes at an instruction, those of `waiting` remain.
void Cta::stay(Warp &warp, uint32_t mask, uint32_t waiting) {
  for (int lane = 0; lane < 32; ++lane)
    if (mask >> lane & 1)
      warp.pcs[lane] = waiting >> lane & 1 ? warp.pc : warp.pc + 1;
  warp.converged = false;
}

/// Registers of products that a plain instruction uses.
void Cta::touch(Warp &warp, const Instr &in) {
  const uint64_t now = warp.now++;
  for (uint32_t i = 0; i < in.touchCount; ++i) {
    const int32_t reg = program.touches[in.touchBegin + i];
    if (warp.flight[reg] > warp.productsRetired)
      report(Report::Kind::RegisterInFlight, warp.index, in.line, warp.flightLine[reg], 0,
             "uses a register of the product of line " + std::to_string(warp.flightLine[reg]) +
                 " before a wgmma.wait_group that covers it");
    warp.touched[reg] = now;
    warp.touchedLine[reg] = in.line;
  }
}

void Cta::runWarp(Warp &warp, uint64_t limit) {
  uint64_t steps = 0;
  while (steps < limit && warp.runnable() && !stopped) {
    const uint32_t mask = pick(warp);
    const Instr &in = program.code[warp.pc];
    ++steps;
    uint32_t active = mask;
    if (in.guard != kNoOperand) {
      const uint32_t guard = *warp.words(in.guard);
      active &= in.guardNegated ? ~guard : guard;
    }
    ++classes[static_cast<int>(in.cls)];
    if (in.flow == Flow::Branch) {
      jump(warp, in, mask, active);
      continue;
    }
    if (in.flow == Flow::Exit) {
      if (active != mask)
        jump(warp, in, mask, 0);
      exitLanes(warp, active, in.line);
      continue;
    }
    if (active) {
      if (in.aligned && active != warp.live) {
        fail(Report::Kind::DivergentBarrier, warp.index, in.line,
             "is reached by the lanes " + hexText(active) + " of " + hexText(warp.live));
        break;
      }
      if (in.touchCount && in.run != executeWgmma)
        touch(warp, in);
      if (!in.run(*this, warp, in, active)) {
        if (active != mask)
          stay(warp, mask, active);
        continue;
      }
    }
    if (warp.converged)
      ++warp.pc;
    else
      jump(warp, in, mask, 0);
  }
  counters.instructions += steps;
  const uint64_t before = grid.steps.fetch_add(steps);
  if (!stopped && before + steps > grid.launch.maxSteps)
    fail(Report::Kind::StepLimit, warp.index, program.code[warp.pc].line,
         "is still running after " + std::to_string(grid.launch.maxSteps) + " instructions");
}

/// Lets a copy take effect because nobody can run; false: there is none.
bool Cta::forceOne() {
  if (copies.empty())
    return false;
  if (grid.launch.policy.kind == PolicyKind::Random) {
    const size_t i = random.below(copies.size());
    advance(i, 1 + static_cast<uint32_t>(random.below(copies[i].steps)));
    return true;
  }
  for (size_t i = 0; i < copies.size(); ++i)
    for (const Warp &warp : warps)
      if (warp.parked && copies[i].barrier >= 0 &&
          barriers[copies[i].barrier].offset == warp.waitAddress) {
        advance(i, ~0u);
        return true;
      }
  advance(0, ~0u);
  return true;
}

void Cta::forceRandom() {
  for (uint64_t actions = random.below(4); actions > 0 && !stopped; --actions) {
    if (!copies.empty() && random.below(2)) {
      const size_t i = random.below(copies.size());
      advance(i, 1 + static_cast<uint32_t>(random.below(copies[i].steps)));
    }
    Warp &warp = warps[random.below(warps.size())];
    if (productReady(warp))
      runProduct(warp);
  }
}

/// Warps that test a barrier without waiting may go on to something else.
bool Cta::wakePolls() {
  bool any = false;
  for (Warp &warp : warps)
    if (warp.parked && warp.polling) {
      warp.parked = 0;
      any = true;
    }
  return any;
}

void Cta::run() {
  const PolicyKind kind = grid.launch.policy.kind;
  size_t turn = 0;
  uint64_t idlePolls = 0, lastProgress = 0;
  while (!stopped && !grid.stop) {
    std::vector<Warp *> &ready = runnable;
    ready.clear();
    bool anyLive = false;
    for (Warp &warp : warps) {
      anyLive |= warp.live != 0;
      if (warp.runnable())
        ready.push_back(&warp);
    }
    if (!anyLive) {
      finish();
      return;
    }
    if (ready.empty()) {
      if (forceOne())
        continue;
      idlePolls = lastProgress == progress ? idlePolls + 1 : 0;
      lastProgress = progress;
      if (idlePolls > 1000 || !wakePolls())
        deadlock();
      continue;
    }
    if (kind == PolicyKind::Earliest) {
      for (Warp *warp : ready)
        runWarp(*warp, 1);
    } else if (kind == PolicyKind::Latest) {
      // A warp that never waits must not keep the others from running for ever.
      runWarp(*ready[turn++ % ready.size()], 1 << 16);
    } else {
      runWarp(*ready[random.below(ready.size())], 1 + random.below(64));
      if (random.below(4) == 0)
        forceRandom();
    }
  }
}

std::string Cta::waitText(const Warp &warp) const {
  const std::string where = "warp " + std::to_string(warp.index) + " at line " +
                            std::to_string(program.code[warp.pc].line);
  switch (warp.wait) {
  case Warp::Wait::Named: {
    const NamedBarrier &barrier = named[warp.waitPhase];
    return where + " waits for the named barrier " + std::to_string(warp.waitPhase) + " (" +
           std::to_string(barrier.arrived) + " of " + std::to_string(barrier.expected) +
           " threads are there)";
  }
  case Warp::Wait::Products:
    return where + " waits for a product that not all warps of its warpgroup have issued";
  case Warp::Wait::Registers:
    return where + " waits for registers (" + std::to_string(registerPool) + " are free)";
  case Warp::Wait::Mbarrier:
  case Warp::Wait::None:
    break;
  }
  auto found = barrierAt.find(warp.waitAddress);
  if (found == barrierAt.end())
    return where;
  const Mbarrier &barrier = barriers[found->second];
  return where + " waits for the mbarrier " + sharedText(barrier.offset) + " (phase " +
         std::to_string(barrier.phase) + " lacks " + std::to_string(barrier.pending) +
         " arrivals and " + std::to_string(barrier.tx) + " bytes)";
}

void Cta::deadlock() {
  std::string text = "nothing can run:";
  int first = -1;
  for (const Warp &warp : warps) {
    if (!warp.live)
      continue;
    text += (first < 0 ? " " : "; ") + waitText(warp);
    first = first < 0 ? warp.index : first;
  }
  fail(Report::Kind::Deadlock, first, program.code[warps[first].pc].line, text);
}

/// Everything has returned: is all that was started known to be complete?
void Cta::finish() {
  while (!copies.empty() && !stopped)
    advance(copies.size() - 1, ~0u);
  finished = !stopped;
  Clock all;
  for (const Warp &warp : warps)
    all.join(warp.clock);
  auto unfinished = [&](int warp, int32_t line, const char *what) {
    report(Report::Kind::UnfinishedAtExit, warp, line, 0, 0,
           std::string("issues ") + what + " that nobody waits for before the CTA ends");
  };
  for (const Mbarrier &barrier : barriers)
    if (all.get(barrier.agent) < barrier.lastCopyTime)
      unfinished(0, barrier.lastCopyLine, "a copy");
  for (const Warp &warp : warps) {
    if (all.get(productAgent(warp.index)) < warp.productsIssued)
      unfinished(warp.index, warp.lastProductLine, "a product");
    if (all.get(bulkAgent(warp.index)) < warp.bulkIssued)
      unfinished(warp.index, warp.lastCopyLine, "a bulk store");
    if (all.get(cpAgent(warp.index)) < warp.cpIssued)
      unfinished(warp.index, warp.lastCopyLine, "a cp.async");
    const Warp &leader = warps[warp.index / 4 * 4];
    if (warp.registerCount != leader.registerCount)
      report(Report::Kind::Registers, warp.index, 0, 0, 0,
             "ends with " + std::to_string(warp.registerCount) +
                 " registers a thread, another warp of its warpgroup with " +
                 std::to_string(leader.registerCount));
  }
}
