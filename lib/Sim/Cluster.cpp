// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Running the CTAs of a cluster together: which warp is next, when copies and products take effect,
// and what is left when nothing moves any more. PTX ISA "barrier.cluster".
#include "Handlers.h"
#include "Machine.h"

#include <algorithm>

using namespace attn::sim;

using PolicyKind = Policy::Kind;

static uint64_t seedOf(const Launch &launch, int64_t number) {
  Random mixed(launch.policy.seed * 0x2545F4914F6CDD1D + static_cast<uint64_t>(number));
  return mixed.next();
}

Cluster::Cluster(Grid &grid, int64_t number) : grid(grid), random(seedOf(grid.launch, number)) {
  uint64_t rest = static_cast<uint64_t>(number);
  uint32_t size = 1;
  for (int i = 0; i < 3; ++i) {
    const uint32_t extent = grid.launch.grid[i] / grid.cluster[i];
    id[i] = static_cast<uint32_t>(rest % extent);
    rest /= extent;
    size *= grid.cluster[i];
  }
  for (uint32_t rank = 0; rank < size; ++rank)
    ctas.push_back(std::make_unique<Cta>(*this, rank));
  for (const std::unique_ptr<Cta> &cta : ctas)
    for (Warp &warp : cta->warps)
      warps.push_back(&warp);
}

bool Cluster::forceOne() {
  std::vector<Cta *> busy;
  for (const std::unique_ptr<Cta> &cta : ctas)
    if (!cta->copies.empty())
      busy.push_back(cta.get());
  if (busy.empty())
    return false;
  if (grid.launch.policy.kind == PolicyKind::Random) {
    Cta &cta = *busy[random.below(busy.size())];
    const size_t i = random.below(cta.copies.size());
    cta.advance(i, 1 + static_cast<uint32_t>(random.below(cta.copies[i].steps)));
    return true;
  }
  for (Cta *cta : busy)
    for (size_t i = 0; i < cta->copies.size(); ++i) {
      const Copy &copy = cta->copies[i];
      if (copy.barrier < 0)
        continue;
      for (const Warp &warp : copy.to->warps)
        if (warp.parked && copy.to->barriers[copy.barrier].offset == warp.waitAddress) {
          cta->advance(i, ~0u);
          return true;
        }
    }
  busy[0]->advance(0, ~0u);
  return true;
}

void Cluster::forceRandom() {
  for (uint64_t actions = random.below(4); actions > 0 && !stopped; --actions) {
    Cta &cta = *ctas[random.below(ctas.size())];
    if (!cta.copies.empty() && random.below(2)) {
      const size_t i = random.below(cta.copies.size());
      cta.advance(i, 1 + static_cast<uint32_t>(random.below(cta.copies[i].steps)));
    }
    Warp &warp = cta.warps[random.below(cta.warps.size())];
    if (cta.productReady(warp))
      cta.runProduct(warp);
  }
}

/// What the warps that ask for an mbarrier will do next depends on this alone.
uint64_t Cluster::pollState() const {
  uint64_t state = progress;
  auto add = [&](uint64_t value) { state = (state ^ value) * 0x9E3779B97F4A7C15 ^ state >> 29; };
  for (const Warp *warp : warps) {
    if (!(warp->parked & ~warp->gathered))
      continue;
    add(warp->converged ? static_cast<uint64_t>(warp->pc) : ~uint64_t(0));
    for (int lane = 0; lane < 32 && !warp->converged; ++lane)
      add(static_cast<uint64_t>(warp->pcs[lane]));
    const uint32_t words = grid.program.registerBytes / 4;
    for (uint32_t i = 0; i < words; ++i)
      add(reinterpret_cast<const uint32_t *>(warp->registers)[i]);
  }
  return state;
}

/// Asking is not waiting: a warp that is told no may go on to something else. False: that leads
/// nowhere, since the last time round has changed nothing, or too many have.
bool Cluster::wakePolls() {
  static constexpr uint64_t kMostPolls = 1 << 14;
  const uint64_t state = pollState();
  if (++polls > kMostPolls || (polls > 1 && state == lastPollState))
    return false;
  lastPollState = state;
  bool any = false;
  for (Warp *warp : warps)
    if (warp->parked & ~warp->gathered &&
        (warp->parkedFor == Warp::Parked::Mbarrier || !warp->converged)) {
      warp->unpark();
      warp->failedKey = 0;
      any = true;
    }
  return any;
}

void Cluster::run() {
  const PolicyKind kind = grid.launch.policy.kind;
  size_t turn = 0;
  uint64_t lastProgress = 0;
  while (!stopped && !grid.stop) {
    std::vector<Warp *> &ready = runnable;
    ready.clear();
    bool anyLive = false;
    for (Warp *warp : warps) {
      anyLive |= warp->live != 0;
      if (warp->runnable())
        ready.push_back(warp);
    }
    if (!anyLive) {
      finish();
      return;
    }
    if (ready.empty()) {
      if (forceOne())
        continue;
      if (lastProgress != progress)
        polls = 0;
      lastProgress = progress;
      if (!wakePolls())
        deadlock();
      continue;
    }
    if (kind == PolicyKind::Earliest) {
      for (Warp *warp : ready)
        warp->cta->runWarp(*warp, 1);
    } else if (kind == PolicyKind::Latest) {
      // A warp that never waits must not keep the others from running for ever.
      Warp &warp = *ready[turn++ % ready.size()];
      warp.cta->runWarp(warp, 1 << 16);
    } else {
      Warp &warp = *ready[random.below(ready.size())];
      warp.cta->runWarp(warp, 1 + random.below(64));
      if (random.below(4) == 0)
        forceRandom();
    }
  }
}

std::string Cluster::positions() const {
  std::string text;
  for (const Warp *warp : warps)
    if (warp->live)
      text += (text.empty() ? " " : "; ") + warp->cta->waitText(*warp);
  return text;
}

void Cluster::deadlock() {
  const Warp *first =
      *std::find_if(warps.begin(), warps.end(), [](Warp *warp) { return warp->live; });
  first->cta->fail(Report::Kind::Deadlock, first->index, grid.program.code[first->pc].line,
                   "nothing can run:" + positions());
}

void Cluster::finish() {
  for (const std::unique_ptr<Cta> &cta : ctas)
    while (!cta->copies.empty() && !stopped)
      cta->advance(cta->copies.size() - 1, ~0u);
  finished = !stopped;
  for (const std::unique_ptr<Cta> &cta : ctas)
    cta->finish();
}

int64_t Cluster::missing() const {
  int64_t lanes = 0;
  for (const Warp *warp : warps) {
    const bool arrived = warp->clusterArrived && warp->clusterPhase == phase;
    lanes += __builtin_popcount(warp->live & ~(arrived ? warp->clusterArrived : 0u));
  }
  return lanes;
}

void Cluster::checkBarrier() {
  bool any = false;
  for (const Warp *warp : warps)
    any |= warp->clusterArrived && warp->clusterPhase == phase;
  if (!any || missing() > 0)
    return;
  ++phase;
  ++progress;
  completed = arriving;
  completedProxy = arrivingProxy;
  for (Warp *warp : warps)
    if (warp->parked && (warp->parkedFor == Warp::Parked::Cluster || !warp->converged))
      warp->unpark();
}

/// A thread arrives once, then waits.
bool attn::sim::executeClusterArrive(Cta &cta, Warp &warp, const Instr &in, uint32_t mask) {
  Cluster &cluster = cta.cluster;
  if (warp.clusterArrived & mask || (warp.clusterArrived && warp.clusterPhase != cluster.phase)) {
    cta.report(Report::Kind::BarrierMisuse, warp.index, in.line, warp.clusterLine, 0,
               "arrives at the barrier of the cluster, where it has arrived at line " +
                   std::to_string(warp.clusterLine) + ": no barrier.cluster.wait is between");
    cluster.stopped = true;
    return true;
  }
  warp.clusterArrived |= mask;
  warp.clusterPhase = cluster.phase;
  warp.clusterLine = in.line;
  const bool relaxed = in.flags & kRelaxed;
  cluster.arriving.join(relaxed ? warp.fenceRelease : warp.clock);
  if (!relaxed)
    cluster.arrivingProxy.join(warp.proxy);
  warp.tick();
  cluster.checkBarrier();
  return true;
}

bool attn::sim::executeClusterWait(Cta &cta, Warp &warp, const Instr &in, uint32_t mask) {
  Cluster &cluster = cta.cluster;
  if (mask & ~warp.clusterArrived) {
    cta.fail(Report::Kind::BarrierMisuse, warp.index, in.line,
             "waits for the barrier of the cluster without a barrier.cluster.arrive before");
    return true;
  }
  if (warp.clusterPhase == cluster.phase) {
    warp.parked |= mask;
    warp.parkedFor = Warp::Parked::Cluster;
    return false;
  }
  warp.clusterArrived &= ~mask;
  warp.clock.join(cluster.completed);
  warp.proxy.join(cluster.completedProxy);
  return true;
}

void Cta::noteRemote(const Warp &by, int32_t line, int barrier) {
  RemoteUse &use = remoteUses[{by.agent, barrier}];
  use.time = by.clock.get(by.agent);
  use.warp = &by;
  use.line = line;
  use.phase = barrier >= 0 ? barriers[barrier].phase : 0;
}
