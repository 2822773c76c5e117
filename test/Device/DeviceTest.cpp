// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Compiled kernels on a GPU against the float64 reference, the number of keys each row keeps, and
// for instrumented kernels the tiles they visit; the masks' truth is written by hand in Scene.cpp.
// Links no LLVM: it runs where only the artifacts of build_artifacts.py were brought.
#include "../../tools/attn-run/SimDriver.h"
#include "Scene.h"
#include "Workload.h"

#include "attn/Runtime/BatchIO.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <getopt.h>
#include <limits>
#include <memory>
#include <optional>

using namespace device;
using namespace attn;
using namespace attn::core;

namespace {

enum ExitCode { kPassed = 0, kFailed = 1, kBadUsage = 2, kSkipped = 77 };

const char kUsage[] = R"(usage: attn-device-test FOLDER [options]

Runs the artifacts (*.attn) of FOLDER, made by build_artifacts.py, on a GPU or in the simulator.

  --only TEXT      artifacts whose name contains TEXT
  --batches N      random batches, dealt out to the artifacts in turn (default 300)
  --rounds N       N random batches of every artifact
  --small          random batches of 1 to 3 query tiles, or 24 without keys; of more than 2
                   heads, one
  --many N         batches of one artifact over windows, ranges and requests (default 100)
  --seed N         seed of the first batch (default 1); batch i has seed N + i
  --batch FILE     run this batch file instead, on every artifact; may be given again
  --record FILE    write the results of every batch
  --agree FILE     compare the results with what --record wrote in a run of the same options on
                   another device
  --list           print the artifacts and stop
  --driver FILE    another CUDA driver than libcuda.so.1
  --sim POLICY     run in the simulator; asynchronous operations complete earliest, latest or
                   random:SEED
  --ptx FILE       the simulator runs this PTX instead of what the artifacts hold

exit status: 0 all right, 1 a failure, 2 usage, 77 no driver or no GPU
)";

struct Options {
  std::string folder, only, driver, record, agree, sim, ptx;
  int64_t batches = 300, rounds = 0, many = 100, seed = 1;
  std::vector<std::string> files;
  bool list = false, small = false;
};

/// An artifact with its kernel on the device and what was seen of it.
struct Loaded {
  std::string name;
  Artifact artifact;
  const Family *family = nullptr;
  std::optional<rt::CudaKernel> kernel;
  // Totals.
  int64_t batches = 0, rows = 0, counted = 0, tiles = 0, ctas = 0;
  int64_t bound = 0; ///< batches with lengths on the device
  double row = 0, lse = 0;

  const KernelSpec &spec() const { return artifact.kernels[0].spec; }
};

/// Where block 0 of a tile starts, from -keyTile + 1 to 0: whatever its list says.
int64_t anchorOf(const rt::WorkListView &list, int64_t tile, int64_t keyTile) {
  const TileHeader &header = list.tiles[tile];
  const int64_t rest = header.entryCount ? list.entries[header.entryBegin].keyBegin % keyTile : 0;
  return rest > 0 ? rest - keyTile : rest;
}

/// Tiles by definition, from the kept pairs of each (row group, key block).
TileCounters bruteForce(const Batch &batch, const CudaLaunch &launch, const rt::WorkListView &list,
                        const Keep &keep, bool perHead) {
  const BatchShape &s = batch.shape;
  const uint64_t sharing = perHead ? 1 : batch.numHeads;
  std::atomic<uint64_t> loaded{0}, visited{0}, full{0};
  auto visit = [&](int64_t b, int64_t h, int64_t tile, int64_t begin) {
    bool isLoaded = false;
    for (int64_t g = 0; g < launch.groups; ++g) {
      const int64_t first = tile + g * 64;
      const int64_t last = std::min(first + 64, s.queryLen(RequestIndex(b)));
      int64_t kept = 0;
      for (int64_t i = first; i < last; ++i)
        for (int64_t k = begin; k < begin + launch.keyTile; ++k)
          kept += k >= s.keyBegin[b] && k < s.keyEnd[b] && keep(b, h, s.contextLen[b] + i, k);
      isLoaded |= kept > 0;
      visited += kept > 0 ? sharing : 0;
      full += kept > 0 && kept == (last - first) * launch.keyTile ? sharing : 0;
    }
    loaded += isLoaded ? sharing : 0;
  };
  int64_t firstTile = 0;
  for (int64_t b = 0; b < s.numReqs(); ++b) {
    const int64_t heads = perHead ? batch.numHeads : 1;
    const int64_t tiles =
        (s.queryLen(RequestIndex(b)) + launch.queryTile() - 1) / launch.queryTile();
    parallelFor(heads * tiles, [&](int64_t i) {
      const int64_t number = firstTile + i % tiles * heads + i / tiles;
      for (int64_t k = anchorOf(list, number, launch.keyTile); k < s.keyEnd[b]; k += launch.keyTile)
        visit(b, i / tiles, i % tiles * launch.queryTile(), k);
    });
    firstTile += heads * tiles;
  }
  return {loaded, visited, full};
}

std::string text(const TileCounters &c) {
  return std::to_string(c.loaded) + " loaded, " + std::to_string(c.visited) + " visited, " +
         std::to_string(c.full) + " full";
}

bool same(const TileCounters &a, const TileCounters &b) {
  return a.loaded == b.loaded && a.visited == b.visited && a.full == b.full;
}

class Tester {
public:
  explicit Tester(const Options &options) : options(options) {}

  Status loadAll(const std::shared_ptr<const rt::CudaDevice> &device);
  void list() const;
  void runRandom();
  void runMany();
  Status runFiles();
  Status readRecords();
  Status writeRecords() const;
  bool report() const;

private:
  Scene nextScene(const Loaded &loaded, int number, std::mt19937 &rng) const;
  void check(Loaded &loaded, const Scene &scene, rt::BatchInput input, Layout layout,
             rt::CudaPlan &plan, std::mt19937 &rng, const std::string &what);
  std::string checkOnce(Loaded &loaded, Workload &work, const Keep &keep, rt::CudaPlan &plan,
                        const std::string &what);
  std::string record(const Loaded &loaded, const Workload &work, const std::string &what);
  std::string checkTiles(Loaded &loaded, const Workload &work, const Keep &keep,
                         const rt::CudaPlan &plan);

  const Options &options;
  std::vector<std::unique_ptr<Loaded>> artifacts;
  int64_t failures = 0;
  std::vector<RunRecord> records; ///< of this run, if they are wanted
  std::vector<RunRecord> others;  ///< to compare with
  Agreement agreement;
};

Status Tester::loadAll(const std::shared_ptr<const rt::CudaDevice> &device) {
  std::error_code error;
  std::vector<std::filesystem::path> paths;
  for (const auto &entry : std::filesystem::directory_iterator(options.folder, error))
    if (entry.path().extension() == ".attn" &&
        entry.path().stem().string().find(options.only) != std::string::npos)
      paths.push_back(entry.path());
  if (error)
    return Error{options.folder + ": " + error.message()};
  std::sort(paths.begin(), paths.end());
  if (paths.empty())
    return Error{options.folder + ": no artifact (*.attn) with '" + options.only + "' in its name"};
  for (const std::filesystem::path &path : paths) {
    auto loaded = std::make_unique<Loaded>();
    loaded->name = path.stem().string();
    Result<Artifact> artifact = readArtifact(path.string());
    if (!artifact)
      return artifact.takeError();
    loaded->artifact = std::move(*artifact);
    loaded->family = familyOf(loaded->spec().name);
    if (!loaded->family)
      return Error{path.string() + ": no truth for a mask called '" + loaded->spec().name + "'"};
    if (device) {
      Result<rt::CudaKernel> kernel =
          rt::CudaKernel::load(device, loaded->artifact, loaded->artifact.kernels[0]);
      if (!kernel)
        return Error{path.string() + ": " + kernel.message()};
      loaded->kernel = std::move(*kernel);
    }
    artifacts.push_back(std::move(loaded));
  }
  return {};
}

void Tester::list() const {
  for (const auto &loaded : artifacts)
    std::printf("%s\n", loaded->name.c_str());
}

/// Instrumented kernels: counted = planned, and = brute force where the classes are exact.
std::string Tester::checkTiles(Loaded &loaded, const Workload &work, const Keep &keep,
                               const rt::CudaPlan &plan) {
  const rt::CudaKernel &kernel = *loaded.kernel;
  if (!kernel.shape().countsTiles)
    return "";
  const TileCounters &got = work.counters();
  if (!same(got, plan.workList().counts))
    return "the kernel counts " + text(got) + ", its work list " + text(plan.workList().counts);
  // Where the device alone knows lengths the classes hold for all of them, and tiles are smaller.
  if (!work.batch().shape.mostSeqLen.empty())
    return "";
  const TileCounters want =
      bruteForce(work.batch(), kernel.shape(), plan.workList(), keep, loaded.family->perHead);
  const bool exact = kernel.binary().tilePlan == TilePlan::Intervals;
  if (exact ? !same(got, want) : got.visited < want.visited || got.full > want.full)
    return "the kernel counts " + text(got) + ", the predicate " + text(want);
  loaded.tiles += static_cast<int64_t>(got.visited);
  return "";
}

/// Keeps the results and compares them with the others; empty text when the others are of this run.
std::string Tester::record(const Loaded &loaded, const Workload &work, const std::string &what) {
  if (options.record.empty() && options.agree.empty())
    return "";
  records.push_back(work.record());
  RunRecord &mine = records.back();
  mine.what = loaded.name + ", " + what;
  mine.isCounted = loaded.kernel->shape().countsTiles;
  if (options.agree.empty())
    return "";
  if (records.size() > others.size())
    return "no record of this run in " + options.agree;
  std::string fault;
  agreement.add(mine, others[records.size() - 1], fault);
  return fault;
}

Status Tester::readRecords() {
  if (options.agree.empty())
    return {};
  Result<std::vector<RunRecord>> read = device::readRecords(options.agree);
  if (!read)
    return read.takeError();
  others = std::move(*read);
  return {};
}

Status Tester::writeRecords() const {
  return options.record.empty() ? Status() : device::writeRecords(options.record, records);
}

/// One run, judged; empty text when right.
std::string Tester::checkOnce(Loaded &loaded, Workload &work, const Keep &keep, rt::CudaPlan &plan,
                              const std::string &what) {
  if (Status status = work.run(*loaded.kernel, plan); !status)
    return status.message();
  if (std::string fault = record(loaded, work, what); !fault.empty())
    return fault;
  const Judgement judgement = work.judge();
  ++loaded.batches;
  loaded.ctas += static_cast<int64_t>(plan.workList().work.size);
  loaded.rows += judgement.rows;
  loaded.row = std::max(loaded.row, judgement.row);
  loaded.lse = std::max(loaded.lse, judgement.lse);
  if (!judgement.fault.empty())
    return judgement.fault;
  if (std::string fault = checkTiles(loaded, work, keep, plan); !fault.empty())
    return fault;
  if (!loaded.family->flat)
    return "";
  // K = 0: every kept key has weight 1, so exp(lse) counts them.
  work.clearKeys();
  if (Status status = work.run(*loaded.kernel, plan); !status)
    return "count probe: " + status.message();
  loaded.counted += judgement.rows;
  const std::string fault = work.judgeCounts();
  return fault.empty() ? "" : "count probe: " + fault;
}

void Tester::check(Loaded &loaded, const Scene &scene, rt::BatchInput input, Layout layout,
                   rt::CudaPlan &plan, std::mt19937 &rng, const std::string &what) {
  const Keep keep = [&](int64_t b, int64_t h, int64_t q, int64_t k) {
    return loaded.family->keep(scene, b, h, q, k);
  };
  std::string fault;
  Result<rt::BoundBatch> bound = rt::bindBatch(loaded.spec(), std::move(input));
  if (!bound) {
    fault = bound.message();
  } else {
    Workload work(loaded.spec(), std::move(*bound), keep, loaded.family->perHead, layout, rng);
    fault = checkOnce(loaded, work, keep, plan, what);
    if (fault.empty() && scene.manyRuns)
      for (const TileHeader &tile : plan.workList().tiles)
        if (tile.entryCount <= kManyRuns)
          fault = "a tile has " + std::to_string(tile.entryCount) +
                  " runs of key blocks, more than " + std::to_string(kManyRuns) +
                  " are what this batch is for";
  }
  if (fault.empty())
    return;
  ++failures;
  std::printf("FAILED %s, %s (%s; %s): %s\n", loaded.name.c_str(), what.c_str(), scene.what.c_str(),
              layout.text().c_str(), fault.c_str());
  std::fflush(stdout);
}

/// Makes the lengths of some requests ones that the device alone knows, where their rows may be
/// rows of a decode: the host is told a range. True if there are any.
bool boundLengths(rt::BatchInput &input, const KernelSpec &spec, Int left, std::mt19937 &rng) {
  for (const TableDecl &decl : spec.program.tables)
    if (decl.kind == TableKind::Documents)
      return false;
  const bool hasRanges =
      std::any_of(spec.program.tables.begin(), spec.program.tables.end(),
                  [](const TableDecl &decl) { return decl.kind == TableKind::Ranges; });
  // The length is the largest one, one or 8 keys less, or less by a window.
  const int64_t slacksBelow[] = {0, 1, 90, 300};
  const int64_t slacksAbove[] = {0, 1, 8, std::clamp<Int>(left, 1, 2048)};
  bool any = false;
  for (size_t b = 0; b < input.requests.size(); ++b) {
    rt::RequestInput request = input.requests[b];
    if (rng() % 3 == 0 || request.queryLen == 0 || request.queryLen > request.seqLen ||
        request.keyEnd.value_or(request.seqLen) != request.seqLen ||
        request.contextLen.value_or(request.seqLen - request.queryLen) !=
            request.seqLen - request.queryLen)
      continue;
    const int64_t below = slacksBelow[rng() % 4], above = slacksAbove[rng() % 4];
    const int64_t queries = request.queryLen, first = request.seqLen - queries;
    int64_t least = std::max(queries, request.seqLen - below), most = request.seqLen + above;
    bool reaches = false;
    for (int64_t r = input.mmRanges->offsets[b]; r < input.mmRanges->offsets[b + 1]; ++r) {
      const auto &[start, end] = input.mmRanges->ranges[r];
      if (!hasRanges || start >= end)
        continue;
      if (end < first)
        least = std::max(least, end + 1 + queries);
      else if (start >= request.seqLen)
        most = std::min(most, start);
      else
        reaches = true;
    }
    if (reaches)
      continue;
    request.isPrefilling = false;
    request.seqLenBound = most;
    request.seqLenLeast = least;
    input.requests[b] = request;
    any |= request.seqLenLeast != request.seqLenBound;
  }
  return any;
}

Scene Tester::nextScene(const Loaded &loaded, int number, std::mt19937 &rng) const {
  const Int heads = loaded.spec().numHeads;
  if (!options.small)
    return randomScene(number, heads, rng);
  const Int tiles = heads <= 2 ? 1 + static_cast<Int>(rng() % 3) : 1;
  const std::vector<core::TableDecl> &tables = loaded.spec().program.tables;
  const bool hasBranches = std::any_of(
      tables.begin(), tables.end(), [](const core::TableDecl &t) { return t.name == "k_branch"; });
  const bool manyRuns = hasBranches && rng() % 2;
  const int kind = static_cast<int>(rng() % (manyRuns ? 1 : 4));
  return smallScene(kind, heads, tiles, loaded.kernel->shape().queryTile(), manyRuns, rng);
}

void Tester::runRandom() {
  const int64_t pageSizes[] = {1, 3, 8, 16, 48, 128, 256};
  const int64_t count = static_cast<int64_t>(artifacts.size());
  const int64_t batches = options.rounds ? options.rounds * count : options.batches;
  for (int64_t i = 0; i < batches; ++i) {
    Loaded &loaded = *artifacts[i % count];
    std::mt19937 rng(static_cast<unsigned>(options.seed + i));
    Layout layout;
    layout.pageSize = rng() % 3 ? pageSizes[rng() % 7] : 0;
    layout.headMajor = rng() % 2;
    layout.interleaved = layout.pageSize && rng() % 2;
    // Not i alone: an artifact whose turn is every second batch must meet all kinds.
    const Scene scene = nextScene(loaded, static_cast<int>(i + i / count), rng);
    rt::CudaPlan plan(*loaded.kernel);
    rt::BatchInput input = batchInput(scene, loaded.spec());
    // Bounds make one run of many.
    const bool isBound =
        !scene.manyRuns && rng() % 2 && boundLengths(input, loaded.spec(), scene.left, rng);
    loaded.bound += isBound;
    check(loaded, scene, std::move(input), layout, plan, rng,
          "seed " + std::to_string(options.seed + i) + (isBound ? ", lengths on the device" : ""));
  }
}

/// One artifact, one module, one plan for all batches.
void Tester::runMany() {
  const auto found = std::find_if(artifacts.begin(), artifacts.end(), [](const auto &loaded) {
    return loaded->spec().name == "window_mm" && !loaded->kernel->shape().countsTiles;
  });
  if (found == artifacts.end() || options.many == 0)
    return;
  Loaded &loaded = **found;
  const Int windows[] = {0, 3, 512, 1023, std::numeric_limits<int32_t>::max()};
  rt::CudaPlan plan(*loaded.kernel);
  const int64_t before = failures;
  for (int64_t i = 0; i < options.many; ++i) {
    const int64_t seed = options.seed + 100000 + i;
    std::mt19937 rng(static_cast<unsigned>(seed));
    const Scene scene = manyRequests(windows[i % 5], loaded.spec().numHeads, rng);
    check(loaded, scene, batchInput(scene, loaded.spec()), {i % 2 ? 16 : 0, false, false}, plan,
          rng, "many, seed " + std::to_string(seed));
  }
  std::printf("%s: %lld batches of one module and one plan, %lld failures\n", loaded.name.c_str(),
              static_cast<long long>(options.many), static_cast<long long>(failures - before));
}

/// What the masks read of a batch file: lengths, ranges and `left`.
Scene sceneOf(const rt::BatchInput &input, const std::string &file) {
  Scene scene;
  scene.what = file;
  Int token = 0;
  for (size_t b = 0; b < input.requests.size(); ++b) {
    const rt::RequestInput &from = input.requests[b];
    truth::Request r = truth::request(from.queryLen, from.seqLen);
    r.contextLen = from.contextLen.value_or(r.contextLen);
    if (input.mmRanges)
      for (int64_t i = input.mmRanges->offsets[b]; i < input.mmRanges->offsets[b + 1]; ++i)
        r.ranges.push_back({input.mmRanges->ranges[i][0], input.mmRanges->ranges[i][1]});
    scene.requests.push_back(std::move(r));
    scene.firstToken.push_back(token);
    token += from.queryLen;
  }
  for (const rt::ParamInput &param : input.params)
    if (param.name == "left")
      scene.left = param.i;
  return scene;
}

Status Tester::runFiles() {
  for (const std::string &file : options.files)
    for (const auto &loaded : artifacts) {
      if (!loaded->spec().program.tables.empty() &&
          loaded->spec().program.tables[0].kind != TableKind::Ranges)
        return Error{loaded->name + ": batch files are for masks of ranges and windows"};
      Result<std::vector<uint8_t>> bytes = readFile(file);
      if (!bytes)
        return bytes.takeError();
      Result<rt::BatchFile> batch = rt::readBatch(
          {reinterpret_cast<const char *>(bytes->data()), bytes->size()}, loaded->spec());
      if (!batch)
        return Error{file + ": " + batch.message()};
      const Scene scene = sceneOf(batch->input, file);
      // The pages are this program's own.
      batch->input.blockTable.reset();
      std::mt19937 rng(static_cast<unsigned>(options.seed));
      rt::CudaPlan plan(*loaded->kernel);
      check(*loaded, scene, batch->input, {batch->input.pageSize.value_or(0), false, false}, plan,
            rng, "seed " + std::to_string(options.seed));
    }
  return {};
}

bool Tester::report() const {
  std::printf("%-44s %7s %9s %10s %10s %9s %9s\n", "artifact", "batches", "rows", "worst row",
              "worst lse", "counted", "tiles");
  int64_t batches = 0, rows = 0, ctas = 0, bound = 0;
  for (const auto &loaded : artifacts) {
    batches += loaded->batches;
    ctas += loaded->ctas;
    bound += loaded->bound;
    rows += loaded->rows;
    std::printf("%-44s %7lld %9lld %10.3g %10.3g %9lld %9lld\n", loaded->name.c_str(),
                static_cast<long long>(loaded->batches), static_cast<long long>(loaded->rows),
                loaded->row, loaded->lse, static_cast<long long>(loaded->counted),
                static_cast<long long>(loaded->tiles));
  }
  std::printf(
      "%zu kernels, %lld batches of %lld CTAs (%lld with lengths on the device), %lld rows, "
      "%lld failures: %s\n",
      artifacts.size(), static_cast<long long>(batches), static_cast<long long>(ctas),
      static_cast<long long>(bound), static_cast<long long>(rows), static_cast<long long>(failures),
      failures == 0 && rows > 0 ? "ok" : "FAILED");
  if (options.agree.empty())
    return failures == 0 && rows > 0;
  std::printf("%s\n", agreement.text().c_str());
  const bool isWhole = records.size() == others.size();
  if (!isWhole)
    std::printf("%zu runs, %s has %zu\n", records.size(), options.agree.c_str(), others.size());
  return failures == 0 && isWhole && agreement.holds();
}

//===----------------------------------------------------------------------===//
// Command line
//===----------------------------------------------------------------------===//

/// Launches use both cores of a small machine; reports go to standard error and fail the test.
Status prepareSimulator(const Options &options) {
  if (options.sim.empty())
    return {};
  simdriver::State &state = simdriver::state();
  Result<sim::Policy> policy = sim::parsePolicy(options.sim);
  if (!policy)
    return Error{"--sim: " + policy.message()};
  state.policy = *policy;
  state.threads = 2;
  state.launched = [](const sim::Outcome &outcome) {
    for (const sim::Report &report : outcome.reports)
      std::fprintf(stderr, "%s: %s\n", sim::toString(report.kind), report.text.c_str());
  };
  if (options.ptx.empty())
    return {};
  Result<std::vector<uint8_t>> bytes = readFile(options.ptx);
  if (!bytes)
    return bytes.takeError();
  if (bytes->empty())
    return Error{"--ptx: " + options.ptx + " is empty"};
  state.replacement.assign(bytes->begin(), bytes->end());
  return {};
}

int fail(const std::string &message) {
  std::fprintf(stderr, "attn-device-test: error: %s\n", message.c_str());
  return kBadUsage;
}

bool parseNumber(const char *from, int64_t &value) {
  const char *end = from + std::strlen(from);
  const auto [rest, error] = std::from_chars(from, end, value);
  return error == std::errc() && rest == end && value >= 0;
}

/// False after a message.
bool parseOptions(int argc, char **argv, Options &options) {
  const option longOptions[] = {
      {"only", required_argument, nullptr, 'o'},   {"batches", required_argument, nullptr, 'n'},
      {"many", required_argument, nullptr, 'm'},   {"seed", required_argument, nullptr, 's'},
      {"batch", required_argument, nullptr, 'b'},  {"list", no_argument, nullptr, 'l'},
      {"driver", required_argument, nullptr, 'd'}, {"small", no_argument, nullptr, 'c'},
      {"sim", required_argument, nullptr, 'p'},    {"ptx", required_argument, nullptr, 'x'},
      {"record", required_argument, nullptr, 'w'}, {"agree", required_argument, nullptr, 'a'},
      {"rounds", required_argument, nullptr, 'r'}, {nullptr, 0, nullptr, 0},
  };
  bool right = true;
  for (int id; right && (id = getopt_long(argc, argv, "", longOptions, nullptr)) != -1;) {
    switch (id) {
    case 'o':
      options.only = optarg;
      break;
    case 'n':
      right = parseNumber(optarg, options.batches);
      break;
    case 'm':
      right = parseNumber(optarg, options.many);
      break;
    case 's':
      right = parseNumber(optarg, options.seed);
      break;
    case 'b':
      options.files.push_back(optarg);
      break;
    case 'l':
      options.list = true;
      break;
    case 'p':
      options.sim = optarg;
      break;
    case 'x':
      options.ptx = optarg;
      break;
    case 'w':
      options.record = optarg;
      break;
    case 'a':
      options.agree = optarg;
      break;
    case 'r':
      right = parseNumber(optarg, options.rounds);
      break;
    case 'c':
      options.small = true;
      break;
    case 'd':
      options.driver = optarg;
      break;
    default:
      right = false;
    }
  }
  const bool fits = options.sim.empty() ? options.ptx.empty() : options.driver.empty();
  if (!right || optind + 1 != argc || !fits) {
    std::fputs(kUsage, stderr);
    return false;
  }
  options.folder = argv[optind];
  return true;
}

} // namespace

int main(int argc, char **argv) {
  Options options;
  if (!parseOptions(argc, argv, options))
    return kBadUsage;
  Tester tester(options);
  if (options.list) {
    if (Status status = tester.loadAll(nullptr); !status)
      return fail(status.message());
    tester.list();
    return kPassed;
  }
  if (Status status = prepareSimulator(options); !status)
    return fail(status.message());
  Result<std::shared_ptr<const rt::CudaDriver>> driver =
      options.sim.empty()
          ? rt::CudaDriver::load(options.driver.empty() ? "libcuda.so.1" : options.driver)
          : rt::CudaDriver::create(simdriver::find, "simulator");
  if (!driver) {
    std::printf("SKIPPED: %s\n", driver.message().c_str());
    return kSkipped;
  }
  Result<std::shared_ptr<const rt::CudaDevice>> device = rt::CudaDevice::open(*driver);
  if (!device) {
    std::printf("SKIPPED: %s\n", device.message().c_str());
    return kSkipped;
  }
  if (Status status = tester.loadAll(*device); !status)
    return fail(status.message());
  if (Status status = tester.readRecords(); !status)
    return fail(status.message());
  if (options.files.empty()) {
    tester.runRandom();
    tester.runMany();
  } else if (Status status = tester.runFiles(); !status) {
    return fail(status.message());
  }
  const bool passed = tester.report();
  if (Status status = tester.writeRecords(); !status)
    return fail(status.message());
  return passed ? kPassed : kFailed;
}
