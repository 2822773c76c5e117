// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The warps of a CTA: what they start with, which lanes run, and what is left at the end.
#include "Handlers.h"
#include "Machine.h"

#include <cstring>

using namespace attn::sim;

uint32_t Cta::special(const SpecialRegister &which, uint32_t thread) const {
  const Launch &launch = grid.launch;
  const auto &block = launch.block, &extent = grid.cluster;
  const uint32_t tid[3] = {thread % block[0], thread / block[0] % block[1],
                           thread / block[0] / block[1]};
  const uint8_t axis = which.axis;
  const uint32_t bit = 1u << (thread % 32);
  switch (which.id) {
  case Special::Tid:
    return tid[axis];
  case Special::Ntid:
    return block[axis];
  case Special::Ctaid:
    return id[axis];
  case Special::Nctaid:
    return launch.grid[axis];
  case Special::Clusterid:
    return cluster.id[axis];
  case Special::Nclusterid:
    return launch.grid[axis] / extent[axis];
  case Special::ClusterCtaid:
    return id[axis] % extent[axis];
  case Special::ClusterNctaid:
    return extent[axis];
  case Special::ClusterRank:
    return rank;
  case Special::ClusterSize:
    return extent[0] * extent[1] * extent[2];
  case Special::LaneId:
    return thread % 32;
  case Special::WarpId:
    return thread / 32;
  case Special::NumWarps:
    return numWarps;
  case Special::DynamicShared:
    return launch.dynamicShared;
  case Special::TotalShared:
    return sharedBytes + kSharedBase;
  case Special::MaskEq:
    return bit;
  case Special::MaskLt:
    return bit - 1;
  case Special::MaskLe:
    return bit | (bit - 1);
  case Special::MaskGt:
    return ~(bit | (bit - 1));
  case Special::MaskGe:
    return ~(bit - 1);
  case Special::ExplicitCluster: // a predicate, see the constructor
  case Special::Unsupported:
    break;
  }
  return 0;
}

/// Addresses in shared memory carry the rank of their CTA.
static std::vector<uint8_t> constantsOf(const Program &program, uint32_t rank) {
  std::vector<uint8_t> constants = program.constants;
  for (const auto &[at, wide] : program.sharedConstants)
    for (uint32_t lane = 0; lane < 32; ++lane) {
      uint8_t *low = &constants[at + lane * (wide ? 8 : 4)];
      uint32_t word;
      std::memcpy(&word, low, 4);
      word += rank << kRankShift;
      std::memcpy(low, &word, 4);
    }
  return constants;
}

Cta::Cta(Cluster &cluster, uint32_t rank)
    : cluster(cluster), grid(cluster.grid), program(grid.program), rank(rank),
      sharedBytes(grid.program.staticShared + grid.launch.dynamicShared),
      shadow(sharedBytes, grid.program.granuleShift) {
  const Launch &launch = grid.launch;
  uint32_t rest = rank;
  for (int i = 0; i < 3; ++i) {
    id[i] = cluster.id[i] * grid.cluster[i] + rest % grid.cluster[i];
    rest /= grid.cluster[i];
  }
  index = static_cast<int32_t>(id[0] + launch.grid[0] * (id[1] + launch.grid[1] * id[2]));
  const uint32_t threads = launch.block[0] * launch.block[1] * launch.block[2];
  numWarps = static_cast<int>((threads + 31) / 32);
  warps.resize(numWarps);
  issuedProducts.resize(numWarps / 4 + 1);
  if (rank > 0)
    constants = constantsOf(program, rank);
  // Registers that nobody wrote and memory that nobody wrote are not numbers.
  const size_t bytes = (program.registerBytes + 63) / 64 * 64;
  registerFile.assign(bytes * numWarps + 64, 0xFF);
  uint8_t *base =
      registerFile.data() + (64 - reinterpret_cast<uintptr_t>(registerFile.data()) % 64);
  shared.resize(sharedBytes + 16);
  for (size_t i = 0; i < shared.size(); ++i)
    shared[i] = i % 2 ? 0x7F : 0xFF;
  local.assign(size_t(numWarps) * 32 * program.localBytes, 0xFF);
  registerPool = kMaxRegisters / program.minCtasPerSm;
  const uint32_t share = program.maxRegisters
                             ? (program.maxRegisters + 7) / 8 * 8
                             : static_cast<uint32_t>(registerPool) / (numWarps * 32) / 8 * 8;
  for (int w = 0; w < numWarps; ++w) {
    Warp &warp = warps[w];
    warp.cta = this;
    warp.index = w;
    warp.agent = cluster.agents + w;
    const uint32_t lanes = std::min(threads - 32 * w, 32u);
    warp.lanes = warp.live = lanes == 32 ? ~0u : (1u << lanes) - 1;
    warp.registers = base + bytes * w;
    warp.constants = rank > 0 ? constants.data() : program.constants.data();
    warp.clock.raise(warp.agent, 1);
    warp.registerCount = std::min(share, 256u);
    registerPool -= 32 * warp.registerCount;
    warp.flight.resize(program.numRegisters);
    warp.flightLine.resize(program.numRegisters);
    warp.flightUse.resize(program.numRegisters);
    warp.touched.resize(program.numRegisters);
    warp.touchedLine.resize(program.numRegisters);
    warp.loadTags.resize(program.numLoadRegisters);
    for (const SpecialRegister &which : program.specials) {
      if (which.id == Special::ExplicitCluster)
        *warp.words(which.offset) = grid.explicitCluster ? ~0u : 0;
      else
        for (uint32_t lane = 0; lane < 32; ++lane)
          warp.words(which.offset)[lane] = special(which, 32 * w + lane);
    }
  }
  cluster.agents += 4 * numWarps;
}

Access Cta::access(const Warp &warp, const Instr &in) const {
  Access access;
  access.agent = warp.agent;
  access.time = warp.clock.get(warp.agent);
  access.line = in.line;
  access.warp = static_cast<uint8_t>(warp.index);
  access.rank = static_cast<uint8_t>(rank);
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

bool Cta::gather(Warp &warp, const Instr &in, uint32_t wanted, uint32_t here) {
  const uint32_t missing = wanted & warp.live & ~here;
  if (missing == 0) {
    warp.gathered &= ~here;
    return true;
  }
  uint32_t atPc = 0;
  for (int lane = 0; lane < 32; ++lane)
    atPc |= uint32_t(warp.converged || warp.pcs[lane] == warp.pc) << lane;
  // Lanes that are here and not to do this come no more; nor do those that wait elsewhere for
  // these.
  const uint32_t arrived = missing & warp.gathered & atPc;
  const uint32_t stuck = missing & ~arrived & (warp.gathered | (atPc & ~warp.parked));
  if (stuck == 0) {
    if (arrived == missing) {
      warp.parked &= ~missing;
      warp.gathered &= ~missing;
    } else {
      warp.parked |= here;
      warp.gathered |= here;
    }
    return false;
  }
  if (const uint32_t elsewhere = stuck & warp.gathered & ~atPc) {
    const int32_t line = program.code[warp.pcs[__builtin_ctz(elsewhere)]].line;
    report(Report::Kind::DivergentBarrier, warp.index, line, in.line, 0,
           "is reached by the lanes " + hexText(elsewhere) +
               ", but it needs lanes that are at line " + std::to_string(in.line));
  }
  report(Report::Kind::DivergentBarrier, warp.index, in.line, 0, 0,
         "needs the lanes " + hexText(wanted & warp.lanes) + ", but only " + hexText(here) +
             " are there");
  warp.parked &= ~warp.gathered;
  warp.gathered = 0;
  cluster.stopped |= in.aligned;
  return true;
}

void Cta::runWarp(Warp &warp, uint64_t limit) {
  uint64_t steps = 0;
  while (steps < limit && warp.runnable() && !cluster.stopped) {
    const uint32_t mask = pick(warp);
    const Instr &in = program.code[warp.pc];
    ++steps;
    uint32_t active = mask;
    if (in.guard != kNoOperand) {
      const uint32_t guard = *warp.words(in.guard);
      active &= in.guardNegated ? ~guard : guard;
    }
    uint64_t &executed = classes[static_cast<int>(in.cls)];
    if (in.flow == Flow::Branch) {
      ++executed;
      jump(warp, in, mask, active);
      continue;
    }
    if (in.flow == Flow::Exit) {
      ++executed;
      if (active != mask)
        jump(warp, in, mask, 0);
      exitLanes(warp, active);
      continue;
    }
    if (active) {
      const bool together = !in.aligned || active == warp.live || gather(warp, in, ~0u, active);
      if (cluster.stopped)
        break;
      if (together && in.touchCount && in.run != executeWgmma)
        touch(warp, in);
      if (together && in.loadTouches && warp.loadsUnderWay)
        useLoads(warp, in);
      if (!together || !in.run(*this, warp, in, active)) {
        if (active != mask)
          stay(warp, mask, active);
        continue;
      }
    }
    ++executed; // once, however often it had to wait
    if (warp.converged)
      ++warp.pc;
    else
      jump(warp, in, mask, 0);
  }
  const uint64_t before = grid.steps.fetch_add(steps);
  if (!cluster.stopped && before + steps > grid.launch.maxSteps && !grid.stop.exchange(true))
    fail(Report::Kind::StepLimit, warp.index, program.code[warp.pc].line,
         "is still running after " + std::to_string(grid.launch.maxSteps) +
             " instructions of the launch:" + cluster.positions());
}

std::string Cta::waitText(const Warp &warp) const {
  const std::string where = "warp " + std::to_string(warp.index) +
                            (alone() ? "" : " of CTA " + std::to_string(index)) + " at line " +
                            std::to_string(program.code[warp.pc].line);
  if (warp.runnable())
    return where;
  switch (warp.wait) {
  case Warp::Wait::Named: {
    const NamedBarrier &barrier = named[warp.waitNamed];
    return where + " waits for the named barrier " + std::to_string(warp.waitNamed) + " (" +
           std::to_string(barrier.arrived) + " of " + std::to_string(barrier.expected) +
           " threads are there)";
  }
  case Warp::Wait::Products:
    return where + " waits for a product that not all warps of its warpgroup have issued";
  case Warp::Wait::Registers:
    return where + " waits for registers (" + std::to_string(registerPool) + " are free)";
  case Warp::Wait::None:
    break;
  }
  if (warp.parkedFor == Warp::Parked::Cluster)
    return where + " waits for the barrier of the cluster (" + std::to_string(cluster.missing()) +
           " threads are not there)";
  auto found = barrierAt.find(warp.waitAddress);
  if (found == barrierAt.end())
    return where;
  const Mbarrier &barrier = barriers[found->second];
  return where + " waits for the mbarrier " + sharedText(barrier.offset) + " (phase " +
         std::to_string(barrier.phase) + " lacks " + std::to_string(barrier.pending) +
         " arrivals and " + std::to_string(barrier.tx) + " bytes)";
}

void Cta::finish() {
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
  for (const auto &[key, use] : remoteUses) {
    const bool byPhase = key.second >= 0 && all.get(barriers[key.second].agent) > use.phase;
    if (!byPhase && all.get(key.first) < use.time)
      use.warp->cta->report(Report::Kind::UnfinishedAtExit, use.warp->index, use.line, 0, 0,
                            "uses shared memory of CTA " + std::to_string(index) +
                                " of its cluster, which may have ended: no barrier orders the two");
  }
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
