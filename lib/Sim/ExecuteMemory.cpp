// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// PTX ISA "Data Movement": ld, st, mov of vectors, cvta, ldmatrix, stmatrix.
#include "Memory.h"

using namespace attn::sim;

uint8_t *MemoryAccess::at(int lane, uint32_t bytes, uint32_t align, bool write) {
  uint64_t address = warp.effective(in.at, lane);
  Space space = in.space;
  if (space == Space::Generic) {
    const uint64_t window = address & kWindowMask;
    space = window == kSharedWindow  ? Space::Cluster
            : window == kLocalWindow ? Space::Local
            : window == kParamWindow ? Space::Param
                                     : Space::Global;
    if (space != Space::Global)
      address &= ~kWindowMask;
  }
  switch (space) {
  case Space::Shared:
  case Space::Cluster: {
    const Place place =
        cta.sharedAt(warp, in, space, address, bytes, align, write ? "writes" : "reads");
    if (!place)
      return nullptr;
    addresses[lane] = place.offset;
    owners[lane] = place.cta;
    shared |= 1u << lane;
    remote |= uint32_t(place.cta != &cta) << lane;
    return place.bytes;
  }
  case Space::Local:
  case Space::Param: {
    const bool local = space == Space::Local;
    const uint64_t size = local ? cta.program.localBytes : cta.program.paramBytes;
    if (address + bytes > size || address + bytes < address || (!local && write)) {
      cta.report(Report::Kind::OutOfBounds, warp.index, in.line, 0, address,
                 std::string(write ? "writes" : "reads") + (local ? " local+" : " param+") +
                     hexText(address) + " of " + std::to_string(size) + " bytes");
      return nullptr;
    }
    if (address % align)
      misaligned(address, align, local ? "local+" : "param+");
    (write   ? cta.counters.localStoreBytes
     : local ? cta.counters.localLoadBytes
             : cta.counters.paramLoadBytes) += bytes;
    return local ? &cta.local[(size_t(warp.index) * 32 + lane) * size + address]
                 : &cta.grid.params[address];
  }
  default:
    if (address % align) {
      misaligned(address, align, "");
      return nullptr;
    }
    (write ? cta.counters.globalStoreBytes : cta.counters.globalLoadBytes) += bytes;
    return cta.globalAt(warp.index, in.line, address, bytes, write, write ? "writes" : "reads");
  }
}

void MemoryAccess::misaligned(uint64_t address, uint32_t align, const char *base) {
  cta.report(Report::Kind::Misaligned, warp.index, in.line, 0, address,
             std::string("accesses ") + base + hexText(address) + ", expected a multiple of " +
                 std::to_string(align));
}

void MemoryAccess::watchReads(uint32_t bytes) {
  if (!shared)
    return;
  const Access access = self();
  eachOwner([&](Cta &owner, uint32_t lanes) {
    owner.shadow.begin(access, warp.clock, warp.proxy);
    uint32_t last = ~0u;
    for (int lane = 0; lane < 32; ++lane)
      if (lanes >> lane & 1 && addresses[lane] != last)
        owner.shadow.read(cta, last = addresses[lane], bytes);
  });
  cta.counters.sharedLoadBytes += uint64_t(bytes) * __builtin_popcount(shared & ~remote);
  cta.counters.clusterLoadBytes += uint64_t(bytes) * __builtin_popcount(remote);
  countConflicts(bytes);
}

void MemoryAccess::countWrites(uint32_t bytes) {
  cta.counters.sharedStoreBytes += uint64_t(bytes) * __builtin_popcount(shared & ~remote);
  cta.counters.clusterStoreBytes += uint64_t(bytes) * __builtin_popcount(remote);
  countConflicts(bytes);
}

Access MemoryAccess::self() const {
  Access access = cta.access(warp, in);
  access.strong = in.flags & kStrong;
  return access;
}

/// Accesses of more than 4 bytes are served half a warp or less at a time.
void MemoryAccess::countConflicts(uint32_t bytes) {
  const int group = bytes <= 4 ? 32 : bytes <= 8 ? 16 : 8;
  for (int first = 0; first < 32; first += group) {
    uint32_t words[32][4];
    int depth[32] = {};
    int worst = 1;
    for (int lane = first; lane < first + group; ++lane) {
      if (!((shared & ~remote) >> lane & 1))
        continue;
      for (uint32_t byte = 0; byte < bytes; byte += 4) {
        const uint32_t word = (addresses[lane] + byte) / 4, bank = word % 32;
        bool seen = false;
        for (int i = 0; i < std::min(depth[bank], 4); ++i)
          seen |= words[bank][i] == word;
        if (seen)
          continue;
        if (depth[bank] < 4)
          words[bank][depth[bank]] = word;
        worst = std::max(worst, ++depth[bank]);
      }
    }
    cta.counters.bankConflicts += worst - 1;
  }
}

void MemoryAccess::synchronise(bool reads, bool writes) {
  if (!(in.flags & kStrong) || !shared)
    return;
  bool released = false;
  for (int lane = 0; lane < 32; ++lane) {
    if (!(shared >> lane & 1))
      continue;
    auto &[clock, proxy] = owners[lane]->strongClocks[addresses[lane]];
    if (reads && (in.flags & kAcquire)) {
      warp.clock.join(clock);
      warp.proxy.join(proxy);
    } else if (reads) {
      warp.pendingAcquire.join(clock);
    }
    if (writes && (in.flags & kRelease)) {
      clock.join(warp.clock);
      proxy.join(warp.proxy);
      released = true;
    } else if (writes) {
      clock.join(warp.fenceRelease);
    }
  }
  if (released)
    warp.tick();
}

static uint64_t readElement(const uint8_t *from, const Instr &in) {
  uint64_t value = 0;
  std::memcpy(&value, from, in.width);
  if (in.isSigned && in.width < 8) {
    const int shift = 64 - 8 * in.width;
    value = static_cast<uint64_t>(static_cast<int64_t>(value << shift) >> shift);
  }
  return value;
}

static void setRegister(Warp &warp, int32_t offset, bool wide, int lane, uint64_t value) {
  if (offset == kNoOperand)
    return;
  if (wide)
    warp.longs(offset)[lane] = value;
  else
    warp.words(offset)[lane] = static_cast<uint32_t>(value);
}

bool attn::sim::executeLoad(Cta &cta, Warp &warp, const Instr &in, uint32_t mask) {
  MemoryAccess access(cta, warp, in);
  const uint32_t bytes = in.width * in.listCount;
  const uint8_t *from[32] = {};
  for (int lane = 0; lane < 32; ++lane)
    if (mask >> lane & 1)
      from[lane] = access.at(lane, bytes, bytes, false);
  access.synchronise(true, false);
  access.watchReads(bytes);
  cta.beginLoad(warp, in, access, bytes);
  const int32_t *list = &cta.program.lists[in.listBegin];
  for (uint32_t e = 0; e < in.listCount; ++e)
    for (int lane = 0; lane < 32; ++lane)
      if (mask >> lane & 1)
        setRegister(warp, list[e], in.wide, lane,
                    from[lane] ? readElement(from[lane] + e * in.width, in) : ~uint64_t(0));
  return true;
}

bool attn::sim::executeStore(Cta &cta, Warp &warp, const Instr &in, uint32_t mask) {
  MemoryAccess access(cta, warp, in);
  const uint32_t bytes = in.width * in.listCount;
  uint8_t *to[32] = {};
  for (int lane = 0; lane < 32; ++lane)
    if (mask >> lane & 1)
      to[lane] = access.at(lane, bytes, bytes, true);
  access.synchronise(false, true);
  ++cta.cluster.progress;
  const int32_t *list = &cta.program.lists[in.listBegin];
  uint8_t data[32][64];
  for (int lane = 0; lane < 32; ++lane)
    for (uint32_t e = 0; e < in.listCount && to[lane]; ++e) {
      const uint64_t value = warp.value(list[e], in.wide, lane);
      std::memcpy(data[lane] + e * in.width, &value, in.width);
    }
  if (access.shared) {
    access.countWrites(bytes);
    const Access self = access.self();
    access.eachOwner([&](Cta &owner, uint32_t lanes) {
      owner.shadow.begin(self, warp.clock, warp.proxy);
      for (int lane = 0; lane < 32; ++lane) {
        if (!(lanes >> lane & 1))
          continue;
        if (std::memcmp(to[lane], data[lane], bytes) == 0)
          owner.shadow.writeSame(cta, access.addresses[lane], bytes);
        else
          owner.shadow.write(cta, access.addresses[lane], bytes);
      }
    });
  }
  for (int lane = 0; lane < 32; ++lane)
    if (to[lane])
      std::memcpy(to[lane], data[lane], bytes);
  return true;
}

bool attn::sim::executeLoadMatrix(Cta &cta, Warp &warp, const Instr &in, uint32_t) {
  MemoryAccess access(cta, warp, in);
  const uint8_t *rows[32] = {};
  for (uint32_t lane = 0; lane < 8 * in.listCount; ++lane)
    rows[lane] = access.at(lane, 16, 16, false);
  access.watchReads(16);
  cta.beginLoad(warp, in, access, 16);
  for (uint32_t e = 0; e < in.listCount; ++e) {
    const int32_t to = cta.program.lists[in.listBegin + e];
    for (int lane = 0; lane < 32 && to != kNoOperand; ++lane)
      for (int half = 0; half < 2; ++half) {
        const int a = lane / 4, b = lane % 4 * 2 + half;
        const int row = in.kind ? b : a, column = in.kind ? a : b;
        uint16_t value = 0xFFFF;
        if (rows[8 * e + row])
          std::memcpy(&value, rows[8 * e + row] + 2 * column, 2);
        std::memcpy(reinterpret_cast<uint8_t *>(&warp.words(to)[lane]) + 2 * half, &value, 2);
      }
  }
  return true;
}

bool attn::sim::executeStoreMatrix(Cta &cta, Warp &warp, const Instr &in, uint32_t) {
  MemoryAccess access(cta, warp, in);
  uint8_t *rows[32] = {};
  for (uint32_t lane = 0; lane < 8 * in.listCount; ++lane)
    rows[lane] = access.at(lane, 16, 16, true);
  access.countWrites(16);
  ++cta.cluster.progress;
  const Access self = access.self();
  access.eachOwner([&](Cta &owner, uint32_t lanes) {
    owner.shadow.begin(self, warp.clock, warp.proxy);
    for (int lane = 0; lane < 32; ++lane)
      if (lanes >> lane & 1)
        owner.shadow.write(cta, access.addresses[lane], 16);
  });
  for (uint32_t e = 0; e < in.listCount; ++e) {
    const uint32_t *from = warp.words(cta.program.lists[in.listBegin + e]);
    for (int lane = 0; lane < 32; ++lane)
      for (int half = 0; half < 2; ++half) {
        const int a = lane / 4, b = lane % 4 * 2 + half;
        const int row = in.kind ? b : a, column = in.kind ? a : b;
        const uint16_t value = static_cast<uint16_t>(from[lane] >> (16 * half));
        if (rows[8 * e + row])
          std::memcpy(rows[8 * e + row] + 2 * column, &value, 2);
      }
  }
  return true;
}

bool attn::sim::executePack(Cta &cta, Warp &warp, const Instr &in, uint32_t mask) {
  const int32_t *list = &cta.program.lists[in.listBegin];
  for (int lane = 0; lane < 32; ++lane) {
    if (!(mask >> lane & 1))
      continue;
    uint64_t value = 0;
    for (uint32_t e = 0; e < in.listCount; ++e)
      std::memcpy(reinterpret_cast<uint8_t *>(&value) + e * in.width, &warp.words(list[e])[lane],
                  in.width);
    setRegister(warp, in.dst, in.wide, lane, value);
  }
  return true;
}

bool attn::sim::executeUnpack(Cta &cta, Warp &warp, const Instr &in, uint32_t mask) {
  const int32_t *list = &cta.program.lists[in.listBegin];
  for (int lane = 0; lane < 32; ++lane) {
    if (!(mask >> lane & 1))
      continue;
    const uint64_t value = warp.value(in.src[0], in.wide, lane);
    for (uint32_t e = 0; e < in.listCount; ++e) {
      uint32_t part = 0;
      std::memcpy(&part, reinterpret_cast<const uint8_t *>(&value) + e * in.width, in.width);
      setRegister(warp, list[e], false, lane, part);
    }
  }
  return true;
}

bool attn::sim::executeToGeneric(Cta &, Warp &warp, const Instr &in, uint32_t mask) {
  for (int lane = 0; lane < 32; ++lane)
    if (mask >> lane & 1)
      warp.longs(in.dst)[lane] = warp.longs(in.src[0])[lane] | static_cast<uint64_t>(in.imm);
  return true;
}

bool attn::sim::executeFromGeneric(Cta &, Warp &warp, const Instr &in, uint32_t mask) {
  const uint64_t keep = in.imm ? ~kWindowMask : ~uint64_t(0);
  for (int lane = 0; lane < 32; ++lane)
    if (mask >> lane & 1)
      warp.longs(in.dst)[lane] = warp.longs(in.src[0])[lane] & keep;
  return true;
}

// PTX ISA "mapa": the same place in another CTA of the cluster.
bool attn::sim::executeMapAddress(Cta &cta, Warp &warp, const Instr &in, uint32_t mask) {
  for (int lane = 0; lane < 32; ++lane) {
    if (!(mask >> lane & 1))
      continue;
    const uint32_t rank = warp.words(in.src[1])[lane];
    if (rank >= cta.cluster.ctas.size()) {
      cta.fail(Report::Kind::OutOfBounds, warp.index, in.line,
               "maps an address to CTA " + std::to_string(rank) + " of a cluster of " +
                   std::to_string(cta.cluster.ctas.size()));
      return true;
    }
    const uint64_t address = warp.value(in.src[0], in.wide, lane);
    setRegister(warp, in.dst, in.wide, lane,
                (address & ~uint64_t(kRankMask)) | uint64_t(rank) << kRankShift);
  }
  return true;
}

// PTX ISA "getctarank"
bool attn::sim::executeRankOf(Cta &, Warp &warp, const Instr &in, uint32_t mask) {
  for (int lane = 0; lane < 32; ++lane)
    if (mask >> lane & 1)
      warp.words(in.dst)[lane] =
          static_cast<uint32_t>((warp.value(in.src[0], in.wide, lane) & kRankMask) >> kRankShift);
  return true;
}

bool attn::sim::executeNothing(Cta &, Warp &, const Instr &, uint32_t) { return true; }
