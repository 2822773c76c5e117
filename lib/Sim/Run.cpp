// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Launches: what is checked before anything runs, CTAs on threads of the host, reports.
#include "Machine.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <exception>
#include <new>
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
  case ReportKind::LoadInFlight:
    return "load-in-flight";
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
  if (cluster.stopped || !cluster.reported.emplace(kind, line, other).second)
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
  cluster.reports.push_back(std::move(entry));
  if (cluster.reports.size() >= grid.launch.maxReports)
    cluster.stopped = true;
}

void Cta::fail(ReportKind kind, int warp, int32_t line, const std::string &text) {
  report(kind, warp, line, 0, 0, text);
  cluster.stopped = true;
}

Place Cta::sharedAt(const Warp &warp, const Instr &in, Space space, uint64_t address,
                    uint32_t bytes, uint32_t align, const char *verb) {
  auto outside = [&](const std::string &where) {
    report(ReportKind::OutOfBounds, warp.index, in.line, 0, address,
           std::string(verb) + " shared address " + hexText(address) + ", which is " + where);
    return Place();
  };
  if (space == Space::Generic) {
    if ((address & kWindowMask) != kSharedWindow)
      return outside("a generic address of another space");
    address &= ~kWindowMask;
  }
  const uint64_t owner = address >> kRankShift, local = address & ~uint64_t(kRankMask);
  if (owner >= cluster.ctas.size() || local > UINT32_MAX)
    return outside("in no CTA of the cluster");
  if (space == Space::Shared && owner != rank)
    return outside("in another CTA, expected .shared::cluster");
  Cta &to = *cluster.ctas[owner];
  const uint64_t offset = local - kSharedBase;
  if (local < kSharedBase)
    return outside("before shared memory");
  if (offset > sharedBytes || bytes > sharedBytes - offset)
    return outside(sharedText(offset) + " of " + std::to_string(sharedBytes) + " bytes");
  if (address % align) {
    report(ReportKind::Misaligned, warp.index, in.line, 0, offset,
           std::string(verb) + " " + sharedText(offset) + ", expected a multiple of " +
               std::to_string(align));
    return Place();
  }
  return {&to, static_cast<uint32_t>(offset), &to.shared[offset]};
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
  for (uint64_t count : classes)
    all.instructions += count;
  auto of = [&](Class cls) { return classes[static_cast<int>(cls)]; };
  all.alu = of(Class::Alu);
  all.fp = of(Class::Fp);
  all.sfu = of(Class::Sfu);
  all.loads = of(Class::Load);
  all.stores = of(Class::Store);
  all.branches = of(Class::Branch);
  all.barriers = of(Class::Barrier);
  all.other = of(Class::Other);
  return all;
}

Counters attn::sim::sum(const Counters &a, const Counters &b) {
  Counters result = a;
  for (uint64_t Counters::*field : {&Counters::instructions,
                                    &Counters::alu,
                                    &Counters::fp,
                                    &Counters::sfu,
                                    &Counters::loads,
                                    &Counters::stores,
                                    &Counters::branches,
                                    &Counters::barriers,
                                    &Counters::other,
                                    &Counters::globalLoadBytes,
                                    &Counters::globalStoreBytes,
                                    &Counters::sharedLoadBytes,
                                    &Counters::sharedStoreBytes,
                                    &Counters::localLoadBytes,
                                    &Counters::localStoreBytes,
                                    &Counters::paramLoadBytes,
                                    &Counters::clusterLoadBytes,
                                    &Counters::clusterStoreBytes,
                                    &Counters::tmaLoads,
                                    &Counters::tmaStores,
                                    &Counters::tmaLoadBytes,
                                    &Counters::tmaStoreBytes,
                                    &Counters::wgmmas,
                                    &Counters::bankConflicts})
    result.*field += b.*field;
  result.mmaFlops += b.mmaFlops;
  return result;
}

core::Result<Policy> attn::sim::parsePolicy(std::string_view text) {
  static constexpr std::string_view kRandom = "random:";
  Policy policy;
  if (text == "earliest")
    return policy;
  policy.kind = Policy::Kind::Latest;
  if (text == "latest")
    return policy;
  policy.kind = Policy::Kind::Random;
  const bool isRandom = text.substr(0, kRandom.size()) == kRandom;
  const std::string_view seed = isRandom ? text.substr(kRandom.size()) : "";
  const auto [end, code] = std::from_chars(seed.data(), seed.data() + seed.size(), policy.seed);
  if (seed.empty() || code != std::errc() || end != seed.data() + seed.size())
    return core::Error{"policy '" + std::string(text) +
                       "', expected earliest, latest or random:SEED"};
  return policy;
}

static std::string extentsText(const std::array<uint32_t, 3> &e) {
  return std::to_string(e[0]) + "x" + std::to_string(e[1]) + "x" + std::to_string(e[2]);
}

static core::Status checkBlock(const Launch &launch, const PtxKernel &kernel) {
  uint64_t threads = 1, ctas = 1;
  for (int i = 0; i < 3; ++i) {
    if (launch.block[i] < 1 || launch.block[i] > 1024 || launch.grid[i] < 1)
      return core::Error{"launch: extent of 0 or a block of more than 1024 threads"};
    threads *= launch.block[i];
    ctas *= launch.grid[i];
    if (ctas > INT32_MAX)
      return core::Error{"launch: more than 2^31 blocks"};
  }
  uint64_t most = 1024;
  if (kernel.maxThreads[0] > 0) {
    most = 1;
    for (int32_t limit : kernel.maxThreads)
      most = std::min<uint64_t>(most * static_cast<uint32_t>(limit), 1024);
  }
  if (threads > most)
    return core::Error{"launch: a block of " + std::to_string(threads) +
                       " threads, expected at most " + std::to_string(most)};
  if (kernel.requiredThreads[0] > 0)
    for (int i = 0; i < 3; ++i)
      if (launch.block[i] != static_cast<uint32_t>(std::max(kernel.requiredThreads[i], 1)))
        return core::Error{"launch: the kernel requires another block size"};
  const uint64_t registers = (uint64_t(std::max(kernel.maxRegisters, 0)) + 7) / 8 * 8;
  const uint64_t lanes = (threads + 31) / 32 * 32;
  const uint64_t ctasPerSm = static_cast<uint64_t>(std::clamp(kernel.minCtasPerSm, 1, 32));
  if (registers > 256 || registers * lanes * ctasPerSm > kMaxRegisters)
    return core::Error{"launch: " + std::to_string(kernel.maxRegisters) +
                       " registers for each of " + std::to_string(threads) +
                       " threads, an SM has " + std::to_string(kMaxRegisters)};
  return {};
}

/// The cluster of a launch: what is asked for, what the kernel requires, or one CTA.
static core::Result<std::array<uint32_t, 3>> clusterOf(const Launch &launch,
                                                       const PtxKernel &kernel) {
  if (kernel.blocksAreClusters)
    return core::Error{"launch: .blocksareclusters is not supported"};
  const bool asked = launch.cluster[0] != 0;
  std::array<uint32_t, 3> cluster{1, 1, 1};
  for (int i = 0; i < 3; ++i)
    if (asked || kernel.requiredCluster[0] > 0)
      cluster[i] = asked ? launch.cluster[i] : static_cast<uint32_t>(kernel.requiredCluster[i]);
  uint64_t size = 1;
  for (uint32_t extent : cluster)
    if (extent < 1 || extent > kMaxCluster || (size *= extent) > kMaxCluster)
      return core::Error{"launch: a cluster of " + extentsText(cluster) +
                         " CTAs, expected at most " + std::to_string(kMaxCluster)};
  for (int i = 0; i < 3; ++i) {
    if (kernel.requiredCluster[0] > 0 &&
        cluster[i] != static_cast<uint32_t>(kernel.requiredCluster[i]))
      return core::Error{"launch: a cluster of " + extentsText(cluster) +
                         " CTAs, but the kernel requires another"};
    if (launch.grid[i] % cluster[i])
      return core::Error{"launch: a grid of " + extentsText(launch.grid) +
                         " CTAs is no multiple of clusters of " + extentsText(cluster)};
  }
  if (kernel.explicitCluster && !asked && kernel.requiredCluster[0] <= 0)
    return core::Error{"launch: the kernel has .explicitcluster, expected a cluster"};
  return cluster;
}

static core::Status checkParams(const Launch &launch, const PtxKernel &kernel) {
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

/// What a launch may need of the host, all CTAs that run at once together.
static core::Status checkMemory(const Launch &launch, const Program &program, uint64_t ctas,
                                uint64_t hostThreads) {
  static constexpr uint64_t kMost = uint64_t(1) << 28;
  const uint64_t shared = uint64_t(program.staticShared) + launch.dynamicShared;
  if (shared > kMaxShared)
    return core::Error{"launch: " + std::to_string(shared) +
                       " bytes of shared memory, expected at most " + std::to_string(kMaxShared)};
  const uint64_t threads = uint64_t(launch.block[0]) * launch.block[1] * launch.block[2];
  const uint64_t warps = (threads + 31) / 32;
  const uint64_t bytes = warps * (program.registerBytes + uint64_t(32) * program.localBytes);
  if (bytes * ctas * hostThreads > kMost)
    return core::Error{"launch: " + std::to_string(bytes) +
                       " bytes of registers and local variables for a CTA, of which " +
                       std::to_string(ctas * hostThreads) + " run at once: more than " +
                       std::to_string(kMost)};
  return {};
}

namespace {

/// What the threads of the host share of a launch.
struct Shared {
  std::atomic<int64_t> next{0}, finished{0};
  std::mutex mutex;
  std::map<int64_t, std::vector<Report>> reports; ///< by number of the cluster
  Counters counters;
  bool outOfMemory = false;
};

} // namespace

/// Runs clusters until there are no more.
static void work(Grid &grid, Shared &shared, int64_t count) {
  try {
    Counters counters;
    for (int64_t i = shared.next++; i < count && !grid.stop; i = shared.next++) {
      Cluster cluster(grid, i);
      cluster.run();
      shared.finished += cluster.finished;
      for (const std::unique_ptr<Cta> &cta : cluster.ctas)
        counters = sum(counters, cta->allCounters());
      if (cluster.reports.empty())
        continue;
      std::lock_guard<std::mutex> lock(shared.mutex);
      grid.reportCount += cluster.reports.size();
      if (grid.reportCount >= grid.launch.maxReports)
        grid.stop = true;
      shared.reports[i] = std::move(cluster.reports);
    }
    std::lock_guard<std::mutex> lock(shared.mutex);
    shared.counters = sum(shared.counters, counters);
  } catch (const std::bad_alloc &) {
    grid.stop = true;
    std::lock_guard<std::mutex> lock(shared.mutex);
    shared.outOfMemory = true;
  }
}

static void runThreads(Grid &grid, Shared &shared, int64_t count, size_t numThreads) {
  std::vector<std::thread> threads;
  threads.reserve(numThreads);
  try {
    for (size_t i = 1; i < numThreads; ++i)
      threads.emplace_back([&] { work(grid, shared, count); });
  } catch (const std::exception &) {
    // The host has no more threads: those that there are do the work.
  }
  work(grid, shared, count);
  for (std::thread &thread : threads)
    thread.join();
}

static core::Result<Outcome> launchKernel(const Launch &launch, const PtxKernel &kernel) {
  const core::Result<std::array<uint32_t, 3>> cluster = clusterOf(launch, kernel);
  if (!cluster)
    return core::Error{cluster.message()};
  Outcome outcome;
  std::vector<uint32_t> offsets;
  const uint32_t globalBytes = layoutGlobals(*launch.module, offsets);
  if (globalBytes > (1 << 28))
    return core::Error{"launch: " + std::to_string(globalBytes) + " bytes of global variables"};
  std::vector<uint64_t> globals(globalBytes / 8 + 3);
  uint8_t *globalData = reinterpret_cast<uint8_t *>(globals.data());
  globalData += -reinterpret_cast<uintptr_t>(globalData) % 16;
  const Program program = decode(*launch.module, kernel, globalData, outcome.reports);
  if (!outcome.reports.empty()) {
    if (outcome.reports.size() > launch.maxReports)
      outcome.reports.resize(launch.maxReports);
    return outcome;
  }
  const uint64_t ctas = uint64_t((*cluster)[0]) * (*cluster)[1] * (*cluster)[2];
  const int64_t count =
      static_cast<int64_t>(uint64_t(launch.grid[0]) * launch.grid[1] * launch.grid[2] / ctas);
  const size_t numThreads = std::clamp<int64_t>(launch.threads, 1, std::min<int64_t>(count, 256));
  if (core::Status status = checkMemory(launch, program, ctas, numThreads); !status)
    return core::Error{status.message()};

  Grid grid(launch, program);
  grid.cluster = *cluster;
  grid.explicitCluster = launch.cluster[0] != 0 || kernel.requiredCluster[0] > 0;
  grid.buffers = launch.buffers;
  if (program.globalBytes)
    grid.buffers.push_back({"module variables", globalData, program.globalBytes, true});
  std::sort(grid.buffers.begin(), grid.buffers.end(),
            [](const GlobalBuffer &a, const GlobalBuffer &b) { return a.data < b.data; });
  grid.params.resize(program.paramBytes);
  for (size_t i = 0; i < launch.params.size(); ++i)
    std::copy(launch.params[i].begin(), launch.params[i].end(),
              grid.params.begin() + program.paramOffsets[i]);

  Shared shared;
  runThreads(grid, shared, count, numThreads);
  if (shared.outOfMemory)
    return core::Error{"launch: not enough memory of the host"};
  std::set<std::tuple<ReportKind, int32_t, int32_t>> seen;
  for (auto &[number, some] : shared.reports)
    for (Report &report : some)
      if (outcome.reports.size() < launch.maxReports &&
          seen.emplace(report.kind, report.line, report.otherLine).second)
        outcome.reports.push_back(std::move(report));
  outcome.counters = shared.counters;
  outcome.finished = shared.finished == count;
  return outcome;
}

core::Result<Outcome> attn::sim::run(const Launch &launch) {
  if (!launch.module)
    return core::Error{"launch: no module"};
  if (launch.maxReports == 0)
    return core::Error{"launch: room for no report"};
  const PtxKernel *kernel = launch.module->find(launch.kernel);
  if (!kernel)
    return core::Error{"launch: no kernel '" + launch.kernel + "'"};
  for (const core::Status &status : {checkBlock(launch, *kernel), checkParams(launch, *kernel)})
    if (!status)
      return core::Error{status.message()};
  try {
    return launchKernel(launch, *kernel);
  } catch (const std::bad_alloc &) {
    return core::Error{"launch: not enough memory of the host"};
  }
}
