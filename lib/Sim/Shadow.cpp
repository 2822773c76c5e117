// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Shadow.h"

#include "Machine.h"

using namespace attn::sim;

using What = Access::What;

static const char *noun(const Access &access, bool write) {
  switch (access.what) {
  case What::Copy:
    return "the copy";
  case What::CpAsync:
    return "the cp.async";
  case What::Product:
    return "the product";
  case What::BulkStore:
    return "the bulk store";
  case What::Object:
    return "the mbarrier";
  case What::Loaded:
  case What::Plain:
    return write ? "the store" : "the load";
  }
  return "";
}

/// What would have ordered `access` before another, of the same CTA or not.
static const char *missing(const Access &access, bool sameCta) {
  switch (access.what) {
  case What::Copy:
    return "no wait for its mbarrier is between";
  case What::CpAsync:
    return "no cp.async wait and barrier is between";
  case What::Product:
    return "no wgmma.wait_group of that warp and barrier is between";
  case What::BulkStore:
    return "no cp.async.bulk.wait_group of that warp is between";
  case What::Object:
  case What::Loaded:
  case What::Plain:
    return sameCta ? "no barrier orders the two"
                   : "no barrier of cluster scope (.release.cluster and .acquire.cluster) orders "
                     "the two";
  }
  return "";
}

static std::string place(const Cta &cta, const Access &access, bool write) {
  const Cluster &cluster = cta.cluster;
  const bool other = access.rank != cta.rank;
  return std::string(noun(access, write)) + " of line " + std::to_string(access.line) + " (warp " +
         std::to_string(access.warp) +
         (other ? " of CTA " + std::to_string(cluster.ctas[access.rank]->index) : "") + ")";
}

/// "reads shared+0x400"; of asynchronous operations: who does.
static std::string deed(const Access &self, bool write, uint32_t offset) {
  const char *verb = write ? "writes " : "reads ";
  std::string text = self.asynchronous() ? std::string("issues ") + (noun(self, write) + 4) +
                                               (write ? " that writes " : " that reads ")
                                         : std::string(verb);
  if (self.what == What::Product)
    text = "issues a product that reads ";
  if (self.what == What::Copy)
    text = "issues a copy that writes ";
  if (self.what == What::CpAsync)
    text = "issues a cp.async that writes ";
  if (self.what == What::BulkStore)
    text = "issues a bulk store that reads ";
  if (self.what == What::Object)
    text = "initialises an mbarrier at ";
  return text + sharedText(offset);
}

void Shadow::begin(const Access &access, const Clock &past, const Clock &fencedPast) {
  if (sets.size() > (size_t(1) << 20))
    compact();
  self = access;
  clock = &past;
  proxy = &fencedPast;
  alone = 0;
  for (auto &mode : known)
    for (Verdict &verdict : mode)
      verdict.valid = false;
}

/// Renumbers the sets that cells still use.
void Shadow::compact() {
  std::vector<uint32_t> renumbered(sets.size());
  std::vector<std::vector<Access>> used(1);
  auto keep = [&](uint32_t &id) {
    if (id == 0)
      return;
    if (renumbered[id] == 0) {
      renumbered[id] = static_cast<uint32_t>(used.size());
      used.push_back(std::move(sets[id]));
    }
    id = renumbered[id];
  };
  for (Cell &cell : cells) {
    keep(cell.writers);
    keep(cell.readers);
  }
  sets = std::move(used);
}

bool Shadow::fenced(const Access &earlier) const {
  return !self.asyncProxy() || earlier.asyncProxy() || proxy->get(earlier.agent) >= earlier.time;
}

uint32_t Shadow::with(uint32_t id, bool keepOrdered) {
  const std::vector<Access> &old = sets[id];
  for (const Access &access : old)
    if (access == self)
      return id;
  std::vector<Access> result;
  for (const Access &access : old)
    if ((access.agent != self.agent || (keepOrdered && access.what != self.what)) &&
        (keepOrdered || !ordered(access)))
      result.push_back(access);
  result.push_back(self);
  sets.push_back(std::move(result));
  return static_cast<uint32_t>(sets.size() - 1);
}

void Shadow::checkWriters(Cta &cta, Mode mode, uint32_t set, uint32_t offset) {
  const bool writes = mode != Read;
  bool anyFine = false;
  const Access *unordered = nullptr, *unfenced = nullptr;
  for (const Access &writer : sets[set]) {
    if (writer.what == What::Object && self.what != What::Object) {
      cta.report(Report::Kind::BarrierMisuse, self.warp, self.line, writer.line, offset,
                 deed(self, writes, offset) + ", where the mbarrier initialised at line " +
                     std::to_string(writer.line) + " is");
      return;
    }
    if (writer.strong && self.strong)
      anyFine = true;
    else if (!ordered(writer))
      unordered = (mode == Same && !writer.asynchronous()) ? unordered : &writer;
    else if (!fenced(writer))
      unfenced = &writer;
    else
      anyFine = true;
  }
  if (mode == Read && anyFine)
    return;
  if (unordered && !(mode == Read && unfenced)) {
    const bool copy = unordered->what == What::Copy || unordered->what == What::CpAsync;
    cta.report(copy ? Report::Kind::ReadBeforeComplete : Report::Kind::DataRace, self.warp,
               self.line, unordered->line, offset,
               deed(self, writes, offset) + ", which " + place(cta, *unordered, true) +
                   (copy ? " may still be writing: " : " writes: ") +
                   missing(*unordered, unordered->rank == self.rank));
    return;
  }
  if (unfenced && mode != Same)
    cta.report(Report::Kind::MissingProxyFence, self.warp, self.line, unfenced->line, offset,
               deed(self, writes, offset) + ", which " + place(cta, *unfenced, true) +
                   " wrote: no fence.proxy.async is between");
}

void Shadow::checkReaders(Cta &cta, uint32_t set, uint32_t offset) {
  for (const Access &reader : sets[set]) {
    if (reader.what == What::Loaded || ordered(reader) || (reader.strong && self.strong))
      continue;
    const bool async = reader.asynchronous() || self.asynchronous();
    cta.report(async ? Report::Kind::OverwriteWhileRead : Report::Kind::DataRace, self.warp,
               self.line, reader.line, offset,
               deed(self, true, offset) + ", which " + place(cta, reader, false) +
                   " may still be reading: " + missing(reader, reader.rank == self.rank));
    return;
  }
}

std::string attn::sim::lateLoadText(const Cta &cta, const Access &copy, const Access &load,
                                    uint32_t offset) {
  return deed(copy, true, offset) + ", which " + place(cta, load, false) +
         " may still be reading: what orders the two comes before the first use of its registers, "
         "and that warp runs no fence.proxy.async before it";
}

void Shadow::checkLoaded(Cta &cta, uint32_t set, uint32_t offset) {
  for (const Access &reader : sets[set])
    if (reader.what == What::Loaded && !ordered(reader))
      return cta.report(Report::Kind::LoadInFlight, self.warp, self.line, reader.line, offset,
                        lateLoadText(cta, self, reader, offset));
}

Shadow::Cell Shadow::judge(Cta &cta, Mode mode, Cell before, uint32_t offset) {
  if (mode == Read) {
    if (before.writers == 0)
      cta.report(Report::Kind::Uninitialised, self.warp, self.line, 0, offset,
                 deed(self, false, offset) + ", which nobody wrote");
    else
      checkWriters(cta, mode, before.writers, offset);
    return {before.writers, with(before.readers, false)};
  }
  // A load keeps what it was when it was issued, for all but copies.
  if (mode == Late)
    return {before.writers, with(before.readers, true)};
  if (before.writers != 0)
    checkWriters(cta, mode, before.writers, offset);
  if (mode == Same && before.writers != 0)
    return {with(before.writers, true), before.readers};
  checkReaders(cta, before.readers, offset);
  if (self.what == What::Copy)
    checkLoaded(cta, before.readers, offset);
  if (alone == 0)
    alone = with(0, false);
  return {alone, 0};
}

template <Shadow::Mode mode>
void Shadow::walk(Cta &cta, uint32_t offset, uint32_t bytes) {
  const uint32_t end = (offset + bytes - 1) >> shift;
  Verdict *last = &known[mode][0];
  for (uint32_t i = offset >> shift; i <= end; ++i) {
    Cell &cell = cells[i];
    auto matches = [&](const Verdict &v) {
      return v.valid && v.before.writers == cell.writers && v.before.readers == cell.readers;
    };
    if (!matches(*last)) {
      Verdict *found = nullptr;
      for (Verdict &verdict : known[mode])
        if (matches(verdict))
          found = &verdict;
      if (!found) {
        found = &known[mode][next[mode]++ % kWays];
        *found = {cell, judge(cta, mode, cell, i << shift), true};
      }
      last = found;
    }
    cell = last->after;
  }
}

void Shadow::read(Cta &cta, uint32_t offset, uint32_t bytes) { walk<Read>(cta, offset, bytes); }
void Shadow::loaded(Cta &cta, uint32_t offset, uint32_t bytes) { walk<Late>(cta, offset, bytes); }
void Shadow::write(Cta &cta, uint32_t offset, uint32_t bytes) { walk<Write>(cta, offset, bytes); }
void Shadow::writeSame(Cta &cta, uint32_t offset, uint32_t bytes) {
  walk<Same>(cta, offset, bytes);
}
void Shadow::claim(uint32_t offset, uint32_t bytes) {
  const uint32_t set = with(0, false);
  for (uint32_t i = offset >> shift; i <= (offset + bytes - 1) >> shift; ++i)
    cells[i] = {set, 0};
}
