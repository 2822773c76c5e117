// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loads of shared memory under way. A warp runs on behind ldmatrix and ld.shared, and what it does
// next, an arrival for one, may be seen before they have read. Other accesses of the generic proxy
// queue behind them; a copy does not. That a load has read is known where an instruction needs its
// registers, or behind a proxy fence. A mov proves nothing: ptxas renames instead. What a load
// reads that nobody uses may be anything.
#include "Memory.h"

using namespace attn::sim;

static bool underWay(const Warp &warp, const LoadTag &tag) {
  return tag.serial && warp.loads[tag.load].serial == tag.serial;
}

static void drop(Warp &warp, SharedLoad &load) {
  load.serial = 0;
  --warp.loadsUnderWay;
}

/// What registers hold that are written. A load that none holds any more may have read anything.
static void setTag(Warp &warp, LoadTag &tag, const LoadTag &to) {
  if (to.serial)
    ++warp.loads[to.load].registers;
  if (underWay(warp, tag) && --warp.loads[tag.load].registers == 0)
    drop(warp, warp.loads[tag.load]);
  tag = to;
}

void Cta::beginLoad(Warp &warp, const Instr &in, const MemoryAccess &access, uint32_t bytes) {
  if (!access.shared || !in.loadWrites)
    return;
  size_t slot = 0;
  while (slot < warp.loads.size() && warp.loads[slot].serial)
    ++slot;
  if (slot == warp.loads.size())
    warp.loads.emplace_back();
  SharedLoad &load = warp.loads[slot];
  ++warp.loadsUnderWay;
  load.serial = ++warp.lastLoad;
  load.registers = 0;
  load.time = warp.clock.get(warp.agent);
  load.fenced = 0;
  load.line = in.line;
  load.bytes = bytes;
  load.lanes = access.shared;
  load.copier = nullptr;
  for (int lane = 0; lane < 32; ++lane)
    if (access.shared >> lane & 1) {
      load.addresses[lane] = access.addresses[lane];
      load.owners[lane] = access.owners[lane];
    }
  for (uint32_t i = 0; i < in.loadWrites; ++i)
    setTag(warp, warp.loadTags[program.loadTouches[in.loadBegin + i]],
           {static_cast<uint32_t>(slot), load.serial});
}

void Cta::useLoads(Warp &warp, const Instr &in) {
  const int32_t *touches = &program.loadTouches[in.loadBegin];
  LoadTag moved;
  for (uint32_t i = in.loadWrites; i < in.loadTouches; ++i) {
    const LoadTag tag = warp.loadTags[touches[i]];
    if (!underWay(warp, tag) || (moved.serial && tag.load == moved.load))
      continue;
    // Registers of several loads that are packed: that is an instruction, for all but the last.
    if (!in.move || moved.serial)
      useLoad(warp, warp.loads[in.move ? moved.load : tag.load]);
    moved = in.move ? tag : LoadTag();
  }
  for (uint32_t i = 0; i < in.loadWrites; ++i)
    setTag(warp, warp.loadTags[touches[i]], moved);
}

void Cta::useLoad(Warp &warp, SharedLoad &load) {
  Access self;
  self.agent = warp.agent;
  self.time = load.fenced ? load.fenced : warp.clock.get(warp.agent);
  self.line = load.line;
  self.warp = static_cast<uint8_t>(warp.index);
  self.rank = static_cast<uint8_t>(rank);
  self.what = Access::What::Loaded;
  if (load.copier)
    load.copier->report(Report::Kind::LoadInFlight, load.copy.warp, load.copy.line, load.line,
                        load.copied, lateLoadText(*load.copier, load.copy, self, load.copied));
  // Within one time, what is ordered after the load is ordered after the use.
  if (self.time != load.time)
    for (int lane = 0; lane < 32; ++lane)
      if (load.lanes >> lane & 1) {
        Shadow &memory = load.owners[lane]->shadow;
        memory.begin(self, warp.clock, warp.proxy);
        memory.loaded(*this, load.addresses[lane], load.bytes);
      }
  drop(warp, load);
}

void Cta::fenceLoads(Warp &warp) {
  if (warp.loadsUnderWay)
    for (SharedLoad &load : warp.loads)
      if (load.serial && !load.fenced)
        load.fenced = warp.clock.get(warp.agent);
}

/// The first byte from `offset` on, of `bytes`, that a load reads of the memory of `owner`; or
/// none.
static uint32_t firstRead(const SharedLoad &load, const Cta *owner, uint32_t offset,
                          uint32_t bytes) {
  for (uint32_t lanes = load.lanes; lanes; lanes &= lanes - 1) {
    const int lane = __builtin_ctz(lanes);
    const uint32_t at = load.addresses[lane];
    if (load.owners[lane] == owner && at < offset + bytes && offset < at + load.bytes)
      return std::max(at, offset);
  }
  return ~0u;
}

void Cta::checkLoads(const Warp &by, const Access &copy, uint32_t offset, uint32_t bytes) {
  for (const std::unique_ptr<Cta> &cta : cluster.ctas)
    for (Warp &warp : cta->warps) {
      if (!warp.loadsUnderWay)
        continue;
      const uint32_t known = by.clock.get(warp.agent);
      for (SharedLoad &load : warp.loads) {
        // Where nothing orders the two at all, the shadow says so.
        if (!load.serial || load.copier || known < load.time ||
            (load.fenced && known >= load.fenced))
          continue;
        load.copied = firstRead(load, this, offset, bytes);
        if (load.copied != ~0u)
          load.copier = by.cta, load.copy = copy;
      }
    }
}
