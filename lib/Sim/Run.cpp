// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Launches: what is checked before anything runs, CTAs on threads of the host, reports.
#include "Machine.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <thread>

using namespace attn;
using namespace attn::sim;

using ReportKind = Report::Kind;

const char *attn::sim::toString(Report::Kind kind) {
  switch (kind) {
  case ReportKind::ReadBeforeComplete:
    return "read-before-complete";
  case ReportKind::OverwriteWhileRead:
    return "overwrite-while-read";
  case ReportKind::RegisterInFlight:
    return "register-in-flight";
  case ReportKind::MissingProxyFence:
    return "missing-proxy-fence";
  case ReportKind::MissingWgmmaFence:
    return "missing-wgmma-fence";
  case ReportKind::BarrierMisuse:
    return "barrier-misuse";
  case ReportKind::Uninitialised:
    return "uninitialised";
  case ReportKind::OutOfBounds:
    return "out-of-bounds";
  case ReportKind::DataRace:
    return "data-race";
  case ReportKind::DivergentBarrier:
    return "divergent-barrier";
  case ReportKind::Deadlock:
    return "deadlock";
  case ReportKind::Unsupported:
    return "unsupported";
  case ReportKind::Misaligned:
    return "misaligned";
  case ReportKind::Registers:
    return "registers";
  case ReportKind::StepLimit:
    return "step-limit";
  case ReportKind::UnfinishedAtExit:
    return "unfinished-at-exit";
  }
  return "";
}

std::string attn::sim::hexText(uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof(text), "0x%llx", static_cast<unsigned long long>(value));
  return text;
}
std::string attn::sim::sharedText(uint64_t offset) { return "shared+" + hexText(offset); }

void Cta::report(ReportKind kind, int warp, int32_t line, int32_t other, uint64_t address,
                 const std::string &text) {
  if (stopped || !reported.emplace(kind, line, other).second)
    return;
  Report entry;
  entry.kind = kind;
  entry.line = line;
  entry.otherLine = other;
  entry.cta = index;
  entry.warp = warp;
  entry.address = address;
  entry.text = "line " + std::to_string(line) + ": warp " + std::to_string(warp) + " of CTA " +
               std::to_string(index) + " " + text;
  if (kind == ReportKind::Deadlock)
    entry.text = "line " + std::to_string(line) + ": in CTA " + std::to_string(index) + " " + text;
  reports.push_back(std::move(entry));
  if (reports.size() >= grid.launch.maxReports)
    stopped = true;
}

void Cta::fail(ReportKind kind, int warp, int32_t line, const std::string &text) {
  report(kind, warp, line, 0, 0, text);
  stopped = true;
}

uint8_t *Cta::sharedAt(Warp &warp, const Instr &in, uint64_t address, uint32_t bytes,
                       uint32_t align, const char *verb) {
  const uint64_t offset = address - kSharedBase;
  if (address < kSharedBase || offset > sharedBytes || bytes > sharedBytes - offset) {
    report(ReportKind::OutOfBounds, warp.index, in.line, 0, offset,
           std::string(verb) + " shared address " + hexText(address) + ", which is " +
               (address < kSharedBase
                    ? "before shared memory"
                    : sharedText(offset) + " of " + std::to_string(sharedBytes) + " bytes"));
    return nullptr;
  }
  if (address % align) {
    report(ReportKind::Misaligned, warp.index, in.line, 0, offset,
           std::string(verb) + " " + sharedText(offset) + ", expected a multiple of " +
               std::to_string(align));
    return nullptr;
  }
  return &shared[offset];
}

uint8_t *Grid::find(uint64_t address, uint64_t bytes, bool write, size_t &hint) const {
  auto holds = [&](const GlobalBuffer &buffer) {
    const uint64_t begin = reinterpret_cast<uint64_t>(buffer.data);
    return address >= begin && bytes <= buffer.size && address - begin <= buffer.size - bytes &&
           (!write || buffer.writable);
  };
  if (hint < buffers.size() && holds(buffers[hint]))
    return reinterpret_cast<uint8_t *>(address);
  for (size_t i = 0; i < buffers.size(); ++i)
    if (holds(buffers[i])) {
      hint = i;
      return reinterpret_cast<uint8_t *>(address);
    }
  return nullptr;
}

/// The buffer at or before an address, for reports.
std::string Grid::describe(uint64_t address) const {
  std::string text = hexText(address);
  const GlobalBuffer *near = nullptr;
  for (const GlobalBuffer &buffer : buffers)
    if (reinterpret_cast<uint64_t>(buffer.data) <= address)
      near = &buffer;
  if (!near)
    return text;
  const uint64_t offset = address - reinterpret_cast<uint64_t>(near->data);
  return text + " (" + near->name + "+" + hexText(offset) + " of " + std::to_string(near->size) +
         " bytes" + (near->writable ? "" : ", which is read only") + ")";
}

uint8_t *Cta::globalAt(int warp, int32_t line, uint64_t address, uint32_t bytes, bool write,
                       const char *what) {
  if (uint8_t *found = grid.find(address, bytes, write, bufferHint))
    return found;
  report(ReportKind::OutOfBounds, warp, line, 0, address,
         std::string(what) + " " + std::to_string(bytes) + " bytes of global memory at " +
             grid.describe(address));
  return nullptr;
}

/// With the instructions by class.
Counters Cta::allCounters() const {
  Counters all = counters;
  auto of = [&](Class cls) { return classes[static_cast<int>(cls)]; };
  all.alu = of(Class::Alu);
  all.fp = of(Class::Fp);
  all.sfu = of(Class::Sfu);
  all.loads = of(Class::Load);
  all.stores = of(Class::Store);
  all.branches = of(Class::Branch);
  all.barriers = of(Class::Barrier);
  return all;
}

Counters attn::sim::sum(const Counters &a, const Counters &b) {
  Counters result = a;
  for (uint64_t Counters::*field :
       {&Counters::instructions, &Counters::alu, &Counters::fp, &Counters::sfu, &Counters::loads,
        &Counters::stores, &Counters::branches, &Counters::barriers, &Counters::globalLoadBytes,
        &Counters::globalStoreBytes, &Counters::sharedLoadBytes, &Counters::sharedStoreBytes,
        &Counters::tmaLoads, &Counters::tmaLoadBytes, &Counters::tmaStoreBytes, &Counters::wgmmas,
        &Counters::bankConflicts})
    result.*field += b.*field;
  result.mmaFlops += b.mmaFlops;
  return result;
}

static core::Status checkLaunch(const Launch &launch, const PtxKernel &kernel) {
  uint64_t threads = 1, ctas = 1;
  for (int i = 0; i < 3; ++i) {
    if (launch.block[i] < 1 || launch.block[i] > 1024 || launch.grid[i] < 1)
      return core::Error{"launch: extent of 0 or a block of more than 1024 threads"};
    threads *= launch.block[i];
    ctas *= launch.grid[i];
    if (ctas > INT32_MAX)
      return core::Error{"launch: more than 2^31 blocks"};
  }
  uint64_t most = 1;
  for (int32_t limit : kernel.maxThreads)
    most *= limit > 0 ? limit : 1;
  if (kernel.maxThreads[0] <= 0 || most > 1024)
    most = 1024;
  if (threads > most)
    return core::Error{"launch: a block of " + std::to_string(threads) +
                       " threads, expected at most " + std::to_string(most)};
  if (kernel.requiredThreads[0] > 0)
    for (int i = 0; i < 3; ++i)
      if (launch.block[i] != static_cast<uint32_t>(std::max(kernel.requiredThreads[i], 1)))
        return core::Error{"launch: the kernel requires another block size"};
  if (launch.params.size() != kernel.params.size())
    return core::Error{"launch: " + std::to_string(launch.params.size()) +
                       " parameters, expected " + std::to_string(kernel.params.size())};
  for (size_t i = 0; i < launch.params.size(); ++i)
    if (static_cast<int64_t>(launch.params[i].size()) != kernel.params[i].bytes())
      return core::Error{"launch: parameter " + std::to_string(i) + " has " +
                         std::to_string(launch.params[i].size()) + " bytes, expected " +
                         std::to_string(kernel.params[i].bytes())};
  return {};
}

/// Runs CTAs until there are no more.
static void work(Grid &grid, std::atomic<int64_t> &next, int64_t count,
                 std::vector<std::vector<Report>> &reports, Counters &counters,
                 std::atomic<int64_t> &finished) {
  for (int64_t i = next++; i < count && !grid.stop; i = next++) {
    Cta cta(grid, static_cast<int32_t>(i));
    cta.run();
    finished += cta.finished;
    if (grid.reportCount.fetch_add(cta.reports.size()) + cta.reports.size() >=
        grid.launch.maxReports)
      grid.stop = true;
    reports[i] = std::move(cta.reports);
    counters = sum(counters, cta.allCounters());
  }
}

core::Result<Outcome> attn::sim::run(const Launch &launch) {
  if (!launch.module)
    return core::Error{"launch: no module"};
  const PtxKernel *kernel = launch.module->find(launch.kernel);
  if (!kernel)
    return core::Error{"launch: no kernel '" + launch.kernel + "'"};
  if (core::Status status = checkLaunch(launch, *kernel); !status)
    return core::Error{status.message()};

  Outcome outcome;
  std::vector<uint32_t> offsets;
  std::vector<uint64_t> globals(
      std::min<uint32_t>(layoutGlobals(*launch.module, offsets), 1 << 28) / 8 + 2);
  uint8_t *globalBytes = reinterpret_cast<uint8_t *>(globals.data());
  globalBytes += -reinterpret_cast<uintptr_t>(globalBytes) % 16;
  const Program program = decode(*launch.module, *kernel, globalBytes, outcome.reports);
  if (!outcome.reports.empty()) {
    if (outcome.reports.size() > launch.maxReports)
      outcome.reports.resize(launch.maxReports);
    return outcome;
  }
  const uint64_t shared = uint64_t(program.staticShared) + launch.dynamicShared;
  if (shared > kMaxShared)
    return core::Error{"launch: " + std::to_string(shared) +
                       " bytes of shared memory, expected at most " + std::to_string(kMaxShared)};

  // What a thread may have on sm_90 is far below.
  if (program.registerBytes > (1 << 26) || program.localBytes > (1 << 19) ||
      program.globalBytes > (1 << 28))
    return core::Error{"launch: more registers, local or global variables than a GPU has"};

  Grid grid(launch, program);
  grid.buffers = launch.buffers;
  if (program.globalBytes)
    grid.buffers.push_back({"module variables", globalBytes, program.globalBytes, true});
  std::sort(grid.buffers.begin(), grid.buffers.end(),
            [](const GlobalBuffer &a, const GlobalBuffer &b) { return a.data < b.data; });
  grid.params.resize(program.paramBytes);
  for (size_t i = 0; i < launch.params.size(); ++i)
    std::copy(launch.params[i].begin(), launch.params[i].end(),
              grid.params.begin() + program.paramOffsets[i]);

  const int64_t count = int64_t(launch.grid[0]) * launch.grid[1] * launch.grid[2];
  std::atomic<int64_t> next{0}, finished{0};
  std::vector<std::vector<Report>> reports(count);
  const size_t numThreads = std::clamp<int64_t>(launch.threads, 1, count);
  std::vector<Counters> counters(numThreads);
  std::vector<std::thread> threads;
  for (size_t i = 1; i < numThreads; ++i)
    threads.emplace_back([&, i] { work(grid, next, count, reports, counters[i], finished); });
  work(grid, next, count, reports, counters[0], finished);
  for (std::thread &thread : threads)
    thread.join();

  std::set<std::tuple<ReportKind, int32_t, int32_t>> seen;
  for (std::vector<Report> &some : reports)
    for (Report &report : some)
      if (outcome.reports.size() < launch.maxReports &&
          seen.emplace(report.kind, report.line, report.otherLine).second)
        outcome.reports.push_back(std::move(report));
  for (const Counters &some : counters)
    outcome.counters = sum(outcome.counters, some);
  outcome.finished = finished == count;
  return outcome;
}
