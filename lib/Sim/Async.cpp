// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies that run beside the warps: cp.async.bulk, cp.async and their groups. Hazards are looked
// for when a copy is issued; bytes move when the policy says. A multicast is one copy for each CTA.
#include "Handlers.h"
#include "Machine.h"

#include <cstring>

using namespace attn::sim;

void Cta::issue(Copy &&copy) {
  copies.push_back(std::move(copy));
  if (grid.launch.policy.kind == Policy::Kind::Earliest)
    advance(copies.size() - 1, ~0u);
}

static void moveSmall(Cta &cta, const Copy &copy) {
  for (const LaneCopy &lane : copy.lanes) {
    uint8_t *to = &cta.shared[lane.offset];
    std::memset(to, 0, lane.bytes);
    if (lane.fromBytes == 0)
      continue;
    if (const uint8_t *from =
            cta.globalAt(copy.warp, copy.line, lane.from, lane.fromBytes, false, "copies"))
      std::memcpy(to, from, lane.fromBytes);
    cta.counters.globalLoadBytes += lane.fromBytes;
  }
}

static void moveBulk(Cta &cta, const Copy &copy) {
  uint8_t *shared = &copy.to->shared[copy.offset];
  if (copy.kind == Copy::Kind::BulkShared) {
    std::memmove(shared, &cta.shared[copy.global], copy.bytes);
    return;
  }
  const bool load = copy.load();
  uint8_t *global = cta.globalAt(copy.warp, copy.line, copy.global, copy.bytes, !load, "copies");
  if (copy.counts)
    (load ? cta.counters.tmaLoadBytes : cta.counters.tmaStoreBytes) += copy.bytes;
  if (global)
    std::memcpy(load ? shared : global, load ? global : shared, copy.bytes);
}

void Cta::advance(size_t i, uint32_t steps) {
  Copy &copy = copies[i];
  const uint32_t before = copy.done;
  switch (copy.kind) {
  case Copy::Kind::TensorLoad:
  case Copy::Kind::TensorStore:
    moveRows(copy, std::min(steps, copy.steps - copy.done));
    break;
  case Copy::Kind::BulkLoad:
  case Copy::Kind::BulkStore:
  case Copy::Kind::BulkShared:
    moveBulk(*this, copy);
    copy.done = copy.steps;
    break;
  case Copy::Kind::CpAsync:
    moveSmall(*this, copy);
    copy.done = copy.steps;
    break;
  case Copy::Kind::CpArrive:
    copy.done = copy.steps;
    break;
  }
  const int64_t moved = int64_t(copy.bytes) * (copy.done - before) / copy.steps;
  if (copy.done < copy.steps) {
    if (copy.load())
      copy.to->completeTx(copy.barrier, warps[copy.warp], copy.line, moved);
    return;
  }
  const Copy finished = std::move(copy);
  copies.erase(copies.begin() + static_cast<ptrdiff_t>(i));
  const Warp &warp = warps[finished.warp];
  if (finished.load()) {
    --finished.to->barriers[finished.barrier].copies;
    finished.to->completeTx(finished.barrier, warp, finished.line, moved);
  } else if (finished.kind == Copy::Kind::CpArrive) {
    // It arrives when the copies before it are complete.
    force(finished.warp, Copy::Kind::CpAsync, Copy::Kind::CpAsync, finished.number);
    for (Clock &clock : barriers[finished.barrier].arriving)
      clock.raise(cpAgent(finished.warp), finished.number);
    arriveNow(finished.barrier, warp, finished.line, finished.bytes);
  }
}

void Cta::force(int warp, Copy::Kind a, Copy::Kind b, uint32_t number) {
  for (size_t i = 0; i < copies.size();) {
    const Copy &copy = copies[i];
    if (copy.warp == warp && (copy.kind == a || copy.kind == b) && copy.number <= number)
      advance(i, ~0u);
    else
      ++i;
  }
}

// PTX ISA "cp.async.bulk". kind: 0 to global memory, 1 from it, 2 from shared memory to the
// cluster.
bool attn::sim::executeBulkCopy(Cta &cta, Warp &warp, const Instr &in, uint32_t mask) {
  for (int lane = 0; lane < 32; ++lane) {
    if (!(mask >> lane & 1))
      continue;
    Copy copy;
    copy.bytes = warp.words(in.src[2])[lane];
    copy.global = warp.effective(in.global, lane);
    if (copy.bytes % 16 || copy.global % 16) {
      cta.report(Report::Kind::Misaligned, warp.index, in.line, 0, copy.global,
                 "copies " + std::to_string(copy.bytes) + " bytes at " + hexText(copy.global) +
                     ", expected multiples of 16");
      continue;
    }
    if (copy.bytes == 0)
      continue;
    const Place place = cta.sharedAt(warp, in, in.space, warp.effective(in.at, lane), copy.bytes,
                                     16, in.kind ? "copies to" : "copies from");
    if (!place)
      continue;
    if (in.kind == 2) {
      const Place from =
          cta.sharedAt(warp, in, Space::Shared, copy.global, copy.bytes, 16, "copies from");
      if (!from)
        continue;
      copy.global = from.offset;
    }
    copy.to = place.cta;
    copy.offset = place.offset;
    copy.warp = warp.index;
    copy.line = in.line;
    cta.start(std::move(copy), warp, in, lane);
  }
  return true;
}

/// Enters a bulk or tensor copy into barrier or group and shadow, and issues it.
void Cta::start(Copy &&copy, Warp &warp, const Instr &in, int lane) {
  if (!in.kind)
    return startStore(std::move(copy), warp, in, lane);
  const bool multicast = in.src[3] != kNoOperand;
  const Place signal = sharedAt(warp, in, in.space, warp.effective(in.signal, lane), 8, 8,
                                "completes a copy on an mbarrier at");
  if (!signal)
    return;
  copy.kind = copy.map.rank > 0 ? Copy::Kind::TensorLoad
              : in.kind == 2    ? Copy::Kind::BulkShared
                                : Copy::Kind::BulkLoad;
  ++counters.tmaLoads;
  if (!multicast) {
    if (signal.cta != copy.to)
      return fail(Report::Kind::BarrierMisuse, warp.index, in.line,
                  "copies to CTA " + std::to_string(copy.to->index) + " and completes on CTA " +
                      std::to_string(signal.cta->index) + ", expected the same");
    Cta &to = *copy.to;
    return startLoad(std::move(copy), warp, in, to, signal.offset);
  }
  const uint32_t targets = warp.words(in.src[3])[lane] & 0xFFFF;
  if (targets == 0 || targets >> cluster.ctas.size())
    return fail(Report::Kind::OutOfBounds, warp.index, in.line,
                "copies to the CTAs " + hexText(targets) + " of a cluster of " +
                    std::to_string(cluster.ctas.size()));
  for (uint32_t rank = 0; rank < cluster.ctas.size() && !cluster.stopped; ++rank)
    if (targets >> rank & 1) {
      startLoad(copy, warp, in, *cluster.ctas[rank], signal.offset);
      copy.counts = false;
    }
}

void Cta::startLoad(Copy copy, Warp &warp, const Instr &in, Cta &to, uint32_t barrierOffset) {
  copy.to = &to;
  copy.barrier = to.mbarrierAt(warp, in, barrierOffset, true);
  if (copy.barrier < 0)
    return;
  Mbarrier &barrier = to.barriers[copy.barrier];
  ++barrier.copies;
  barrier.lastCopyLine = in.line;
  barrier.lastCopyTime = barrier.phase + 1;
  Access self = access(warp, in);
  self.what = Access::What::Copy;
  self.agent = barrier.agent;
  self.time = barrier.phase + 1;
  if (copy.kind == Copy::Kind::BulkShared) {
    shadow.begin(self, warp.clock, warp.proxy);
    shadow.read(*this, static_cast<uint32_t>(copy.global), copy.bytes);
    // This CTA must not end before it is read.
    remoteUses[{self.agent, -1}] = {self.time, &warp, in.line, 0};
  }
  to.checkLoads(warp, self, copy.offset, copy.bytes);
  to.shadow.begin(self, warp.clock, warp.proxy);
  to.shadow.write(*this, copy.offset, copy.bytes);
  issue(std::move(copy));
}

void Cta::startStore(Copy &&copy, Warp &warp, const Instr &in, int lane) {
  copy.kind = copy.map.rank > 0 ? Copy::Kind::TensorStore : Copy::Kind::BulkStore;
  copy.number = ++warp.bulkIssued;
  warp.lastCopyLine = in.line;
  warp.bulkOpen.push_back({copy.number, lane, 0});
  Access self = access(warp, in);
  self.what = Access::What::BulkStore;
  self.agent = bulkAgent(warp.index);
  self.time = copy.number;
  shadow.begin(self, warp.clock, warp.proxy);
  shadow.read(*this, copy.offset, copy.bytes);
  ++counters.tmaStores;
  issue(std::move(copy));
}

// Bulk groups belong to a thread: another lane's wait does not count.
bool attn::sim::executeBulkCommit(Cta &, Warp &warp, const Instr &, uint32_t mask) {
  for (int lane = 0; lane < 32; ++lane)
    if (mask >> lane & 1)
      ++warp.bulkCommitted[lane];
  for (BulkOp &op : warp.bulkOpen)
    if (mask >> op.lane & 1 && op.group == 0)
      op.group = warp.bulkCommitted[op.lane];
  return true;
}

bool attn::sim::executeBulkWait(Cta &cta, Warp &warp, const Instr &in, uint32_t mask) {
  std::vector<BulkOp> open;
  for (const BulkOp &op : warp.bulkOpen) {
    if (!(mask >> op.lane & 1) || op.group == 0 ||
        op.group + in.imm > warp.bulkCommitted[op.lane]) {
      open.push_back(op);
      continue;
    }
    for (size_t i = 0; i < cta.copies.size(); ++i)
      if (cta.copies[i].warp == warp.index && cta.copies[i].number == op.number &&
          (cta.copies[i].kind == Copy::Kind::TensorStore ||
           cta.copies[i].kind == Copy::Kind::BulkStore)) {
        cta.advance(i, ~0u);
        break;
      }
  }
  warp.bulkOpen = std::move(open);
  warp.clock.raise(cta.bulkAgent(warp.index),
                   warp.bulkOpen.empty() ? warp.bulkIssued : warp.bulkOpen.front().number - 1);
  return true;
}

// PTX ISA "cp.async": writes of the generic proxy. Groups are kept a warp, not a lane.
bool attn::sim::executeSmallCopy(Cta &cta, Warp &warp, const Instr &in, uint32_t mask) {
  Copy copy;
  copy.kind = Copy::Kind::CpAsync;
  copy.to = &cta;
  copy.warp = warp.index;
  copy.number = ++warp.cpIssued;
  warp.lastCopyLine = in.line;
  copy.line = in.line;
  Access self = cta.access(warp, in);
  self.what = Access::What::CpAsync;
  self.agent = cta.cpAgent(warp.index);
  self.time = copy.number;
  cta.shadow.begin(self, warp.clock, warp.proxy);
  for (int lane = 0; lane < 32; ++lane) {
    if (!(mask >> lane & 1))
      continue;
    LaneCopy one;
    one.from = warp.effective(in.global, lane);
    one.bytes = in.width;
    one.fromBytes = in.src[2] == kNoOperand
                        ? in.width
                        : std::min<uint32_t>(warp.words(in.src[2])[lane], in.width);
    const Place place = cta.sharedAt(warp, in, Space::Shared, warp.effective(in.at, lane), in.width,
                                     in.width, "copies to");
    if (!place)
      continue;
    if (one.from % in.width) {
      cta.report(Report::Kind::Misaligned, warp.index, in.line, 0, one.from,
                 "copies from " + hexText(one.from) + ", expected a multiple of " +
                     std::to_string(in.width));
      continue;
    }
    one.offset = place.offset;
    cta.shadow.write(cta, one.offset, in.width);
    cta.counters.sharedStoreBytes += in.width;
    copy.lanes.push_back(one);
  }
  cta.issue(std::move(copy));
  return true;
}

bool attn::sim::executeSmallCommit(Cta &, Warp &warp, const Instr &, uint32_t) {
  warp.cpGroups.push_back(warp.cpIssued);
  return true;
}

bool attn::sim::executeSmallWait(Cta &cta, Warp &warp, const Instr &in, uint32_t) {
  uint32_t number = 0;
  if (in.imm < 0) {
    number = warp.cpIssued;
    warp.cpGroups.clear();
  }
  while (in.imm >= 0 && warp.cpGroups.size() > static_cast<size_t>(in.imm)) {
    number = warp.cpGroups.front();
    warp.cpGroups.pop_front();
  }
  cta.force(warp.index, Copy::Kind::CpAsync, Copy::Kind::CpAsync, number);
  warp.clock.raise(cta.cpAgent(warp.index), number);
  return true;
}

// PTX ISA "cp.async.mbarrier.arrive": without .noinc, the arrival is one that was not expected.
bool attn::sim::executeSmallArrive(Cta &cta, Warp &warp, const Instr &in, uint32_t mask) {
  for (int lane = 0; lane < 32; ++lane) {
    if (!(mask >> lane & 1))
      continue;
    const Place place =
        cta.sharedAt(warp, in, in.space, warp.effective(in.at, lane), 8, 8, "uses an mbarrier at");
    if (!place)
      continue;
    if (place.cta != &cta) {
      cta.fail(Report::Kind::BarrierMisuse, warp.index, in.line,
               "names an mbarrier of another CTA, expected one of its own");
      continue;
    }
    Copy copy;
    copy.kind = Copy::Kind::CpArrive;
    copy.to = &cta;
    copy.warp = warp.index;
    copy.number = warp.cpIssued;
    copy.line = in.line;
    copy.bytes = 1;
    copy.barrier = cta.mbarrierAt(warp, in, place.offset, false);
    if (copy.barrier < 0)
      continue;
    if (!in.kind)
      ++cta.barriers[copy.barrier].pending;
    cta.issue(std::move(copy));
  }
  return true;
}
