// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Session.h"

#include "Check.h"
#include "CudaDevice.h"
#include "Inputs.h"
#include "Size.h"

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <limits>
#include <thread>

using namespace attn;
using namespace attn::core;
using namespace attn::run;

static unsigned hostThreads(const Options &options) {
  return options.threads ? options.threads : std::max(1u, std::thread::hardware_concurrency());
}

/// The kernel to run: by name, or the only one.
static Result<const Kernel *> selectKernel(const Artifact &artifact, const Options &options) {
  std::string names;
  for (const Kernel &kernel : artifact.kernels) {
    if (kernel.spec.name == options.kernel ||
        (options.kernel.empty() && artifact.kernels.size() == 1))
      return &kernel;
    names += (names.empty() ? "" : ", ") + kernel.spec.name;
  }
  if (options.kernel.empty())
    return Error{options.artifact + ": holds several kernels, choose one with --kernel (" + names +
                 ")"};
  return Error{options.artifact + ": no kernel '" + options.kernel + "' (it has: " + names + ")"};
}

/// A batch bound to a kernel, with the tensors of the run.
struct Workload {
  rt::BatchFile file;
  rt::BoundBatch bound;
  Tensors tensors;
  std::optional<PagedCache> cache;
  int64_t pageSize = 0;
};

/// Refuses options that this batch leaves without a meaning, and batches that pass the machine.
static Status checkWorkload(const Options &options, const Kernel &kernel,
                            const rt::BatchInput &input, const rt::BoundBatch &bound) {
  const bool scrambled = input.pageSize && !input.blockTable;
  if (options.seedGiven && !options.inputs.empty() && !scrambled)
    return Error{"--seed: nothing is random, the tensors come from --inputs" +
                 std::string(input.pageSize ? " and the page order from the batch" : "")};
  const Size size = sizeOf(options, kernel, input, bound);
  const double memory = physicalMemory();
  if (size.bytes > memory)
    return Error{options.batch + ": needs " + gibibytes(size.bytes) +
                 " of memory for its tensors, this machine has " + gibibytes(memory)};
  if (size.seconds > 60)
    std::fprintf(stderr,
                 "attn-run: %.0f (query, key) pairs in %" PRId64
                 " heads, expected to take more than a minute\n",
                 size.pairs, kernel.spec.numHeads);
  return {};
}

static Result<Workload> loadWorkload(const Options &options, const Kernel &kernel) {
  const KernelSpec &spec = kernel.spec;
  Result<std::vector<uint8_t>> text = readFile(options.batch);
  if (!text)
    return text.takeError();
  Result<rt::BatchFile> file = rt::readBatch(
      std::string_view(reinterpret_cast<const char *>(text->data()), text->size()), spec);
  if (!file)
    return Error{options.batch + ": " + file.message()};
  Workload work;
  work.file = std::move(*file);

  std::optional<rt::SafetensorsFile> inputs;
  if (!options.inputs.empty()) {
    Result<rt::SafetensorsFile> read = rt::SafetensorsFile::read(options.inputs);
    if (!read)
      return read.takeError();
    inputs = std::move(*read);
    if (Status status = takeTables(*inputs, spec, work.file.input); !status)
      return Error{options.inputs + ": " + status.message()};
  }
  Result<rt::BoundBatch> bound = rt::bindBatch(spec, work.file.input);
  if (!bound)
    return Error{options.batch + ": " + bound.message()};
  work.bound = std::move(*bound);
  const bool isGpu = options.device == Device::Cuda || options.device == Device::Sim;
  const std::string device = std::string("device '") + toString(options.device) + "'";
  if (Status status = isGpu ? Status() : rt::requireExactLengths(work.bound, device); !status)
    return Error{options.batch + ": " + status.message()};
  if (Status status = checkWorkload(options, kernel, work.file.input, work.bound); !status)
    return Error{status.message()};

  if (inputs) {
    Result<Tensors> tensors = readTensors(*inputs, spec, work.bound);
    if (!tensors)
      return Error{options.inputs + ": " + tensors.message()};
    work.tensors = std::move(*tensors);
  } else {
    work.tensors = randomTensors(spec, work.bound, options.seed);
  }
  if (!work.file.input.pageSize)
    return work;
  work.pageSize = *work.file.input.pageSize;
  const std::optional<rt::BlockTableInput> &given = work.file.input.blockTable;
  Result<PagedCache> cache = pageTensors(work.tensors, spec, work.bound, work.pageSize,
                                         given ? &*given : nullptr, options.seed);
  if (!cache)
    return Error{options.batch + ": " + cache.message()};
  work.cache = std::move(*cache);
  return work;
}

static void describe(const Options &options, const KernelSpec &spec, const Workload &work) {
  std::printf("kernel %s: heads %" PRId64 ", kv_heads %" PRId64 ", dim %" PRId64 ", dim_v %" PRId64
              ", q %s, kv %s\n",
              spec.name.c_str(), spec.numHeads, spec.numKvHeads, spec.dimQk, spec.dimV,
              std::string(toString(spec.qType)).c_str(),
              std::string(toString(spec.kvType)).c_str());
  std::printf("batch: %" PRId64 " requests, %" PRId64 " tokens, %" PRId64 " keys",
              work.bound.batch.shape.numReqs(), work.bound.batch.shape.numTokens(),
              work.bound.kvStart.back());
  if (work.cache)
    std::printf(" in pages of %" PRId64 ", %s", work.pageSize,
                work.file.input.blockTable ? "as the batch places them" : "in scrambled order");
  if (options.inputs.empty())
    std::printf("\ninputs: random normal, seed %" PRIu64 "\n", options.seed);
  else
    std::printf("\ninputs: %s\n", options.inputs.c_str());
}

static void printTiming(const Options &options, const Timing &timing) {
  const char *device = toString(options.device);
  if (options.bench)
    std::printf("%s: median %.3f ms, min %.3f ms of %zu runs\n", device, timing.median(),
                timing.min(), timing.runs.size());
  else
    std::printf("%s: %.3f ms\n", device, timing.min());
}

static void printCheck(const CheckResult &result, const Tolerance &tolerance) {
  std::printf("check: %" PRId64 " rows against the reference\n", result.rows);
  std::printf("  max relative row error %.3g (token %" PRId64 ", head %" PRId64
              "), tolerance %.0e\n",
              result.rowError, result.rowToken, result.rowHead, tolerance.row);
  std::printf("  max lse error %.3g (token %" PRId64 ", head %" PRId64 "), tolerance %.0e\n",
              result.lseError, result.lseToken, result.lseHead, tolerance.lse);
  if (result.cancelling)
    std::printf("  %" PRId64 " rows, whose terms cancel, measured against the size of the terms\n",
                result.cancelling);
  std::printf("  %s\n", result.within(tolerance) ? "ok" : "FAILED");
}

/// The check of results. The reference reads the dense tensors: a fault in the pages shows as an
/// error too.
static CheckResult check(const Options &options, const CpuOutput &output, const Problem &dense) {
  const KernelSpec &spec = *dense.spec;
  const int64_t tokens = dense.batch->shape.numTokens();
  const reference::Output expected = reference::run(dense);
  const CheckResult plain = compare(output, expected, {}, tokens, spec.numHeads, spec.dimV);
  if (options.device != Device::Cpu || plain.rowError <= kCpuTolerance.row)
    return plain;
  // Some row is off by its own measure. Only now the sizes of the terms are worth a second run.
  return compare(output, expected, rowFloors(dense, expected), tokens, spec.numHeads, spec.dimV);
}

/// The report must have arrived before a file is written.
static Status flushReport() {
  if (std::fflush(stdout) == 0 && !std::ferror(stdout))
    return {};
  return Error{std::string("cannot write standard output: ") + std::strerror(errno)};
}

template <class T>
static rt::FileTensor fileTensor(const char *name, rt::FileDType dtype, std::vector<int64_t> shape,
                                 const std::vector<T> &values) {
  rt::FileTensor tensor;
  tensor.name = name;
  tensor.dtype = dtype;
  tensor.shape = std::move(shape);
  tensor.data = reinterpret_cast<const uint8_t *>(values.data());
  tensor.size = values.size() * sizeof(T);
  return tensor;
}

template <class Output>
static Status writeOutput(const Options &options, const KernelSpec &spec, int64_t tokens,
                          rt::FileDType dtype, const Output &output) {
  if (Status status = flushReport(); !status)
    return status;
  if (options.output.empty())
    return {};
  return rt::writeSafetensors(options.output,
                              {fileTensor("o", dtype, {tokens, spec.numHeads, spec.dimV}, output.o),
                               fileTensor("lse", dtype, {spec.numHeads, tokens}, output.lse)});
}

/// The problem with the sizes of its tensors.
static CudaInputs cudaInputs(const Problem &problem, Workload &work) {
  CudaInputs inputs;
  inputs.problem = problem;
  inputs.qBytes = work.tensors.q.size();
  inputs.kBytes = work.cache ? work.cache->k.size() : work.tensors.k.size();
  inputs.vBytes = work.cache ? work.cache->v.size() : work.tensors.v.size();
  inputs.kvRows = work.cache ? 0 : work.bound.kvStart.back();
  inputs.numPages = work.cache ? work.cache->numPages : 0;
  return inputs;
}

static void printTiles(const char *who, const TileCounters &counts) {
  std::printf("  %s: %" PRIu64 " key blocks loaded, %" PRIu64 " visited by row groups, %" PRIu64
              " of them full\n",
              who, counts.loaded, counts.visited, counts.full);
}

/// Runs on the GPU and reports.
static Result<CpuOutput> runCuda(const Options &options, const CudaRunner &runner,
                                 const CudaInputs &inputs) {
  Timing timing;
  CudaReport report;
  Result<CpuOutput> output = runner.run(inputs, options.bench, timing, report);
  if (!output)
    return output;
  if (options.device == Device::Cuda) {
    std::printf("gpu: %s\n", runner.describe().c_str());
    printTiming(options, timing);
  }
  if (options.bench)
    std::printf("  %.1f TFLOP/s over kept pairs at the median\n",
                keptFlops(inputs.problem) / timing.median() * 1e-9);
  if (report.counted) {
    std::printf("tiles\n");
    printTiles("counted by the kernel", report.counts);
    printTiles("planned by the host", report.expected);
  }
  return output;
}

/// What the simulator saw: reports on standard error, counters on standard output.
static void printSim(const Options &options, const SimReport &sim) {
  for (const sim::Report &report : sim.reports)
    std::fprintf(stderr, "attn-run: %s: %s\n", sim::toString(report.kind), report.text.c_str());
  const sim::Counters &c = sim.counters;
  std::printf("sim: policy %s, %zu reports\n", options.policyText.c_str(), sim.reports.size());
  std::printf("  %" PRIu64 " warp instructions, %" PRIu64 " matrix products of %.4g FLOP, %" PRIu64
              " tensor copies of %" PRIu64 " bytes, %" PRIu64 " bank conflicts\n",
              c.instructions, c.wgmmas, c.mmaFlops, c.tmaLoads, c.tmaLoadBytes, c.bankConflicts);
}

/// Runs in the simulator; no output if it reported something.
static Result<std::optional<CpuOutput>> runSim(const Options &options, const CudaRunner &runner,
                                               const CudaInputs &inputs, const SimReport &sim) {
  Result<CpuOutput> output = runCuda(options, runner, inputs);
  if (!output && sim.reports.empty())
    return output.takeError();
  printSim(options, sim);
  return sim.reports.empty() ? std::optional<CpuOutput>(std::move(*output)) : std::nullopt;
}

namespace {

/// One kernel of --tune.
struct Candidate {
  const Kernel *kernel = nullptr;
  std::string code; ///< of the kernel, or why it does not run
  Timing timing;    ///< of all rounds; without runs if it does not run
};

} // namespace

/// Runs a candidate once more. False if its results are wrong.
static bool tuneOne(const Options &options, const Artifact &artifact, Workload &work,
                    const Problem &dense, Problem problem, Candidate &candidate, bool isFirst) {
  problem.spec = &candidate.kernel->spec;
  const Result<CudaRunner> runner = CudaRunner::create(artifact, *candidate.kernel);
  if (!runner) {
    candidate.code = runner.message();
    return true;
  }
  Timing timing;
  CudaReport report;
  const Result<CpuOutput> output =
      runner->run(cudaInputs(problem, work), /*bench=*/true, timing, report);
  if (!output) {
    candidate.code = output.message();
    return true;
  }
  candidate.code = runner->describe();
  candidate.timing.runs.insert(candidate.timing.runs.end(), timing.runs.begin(), timing.runs.end());
  if (!options.check || !isFirst)
    return true;
  const CheckResult result = check(options, *output, dense);
  if (result.within(cudaTolerance(problem.spec->qType)))
    return true;
  std::printf("%s\n", candidate.kernel->spec.name.c_str());
  printCheck(result, cudaTolerance(problem.spec->qType));
  return false;
}

/// From the fastest on.
static void printCandidates(const std::vector<Candidate> &all, const Problem &problem) {
  std::vector<const Candidate *> order;
  for (const Candidate &candidate : all)
    order.push_back(&candidate);
  auto medianOf = [](const Candidate &c) {
    return c.timing.runs.empty() ? std::numeric_limits<double>::infinity() : c.timing.median();
  };
  std::stable_sort(order.begin(), order.end(), [&](const Candidate *a, const Candidate *b) {
    return medianOf(*a) < medianOf(*b);
  });
  std::printf("%-32s %10s %10s %8s  %s\n", "kernel", "median ms", "min ms", "TFLOP/s", "code");
  for (const Candidate *c : order) {
    if (c->timing.runs.empty())
      std::printf("%-32s does not run: %s\n", c->kernel->spec.name.c_str(), c->code.c_str());
    else
      std::printf("%-32s %10.4f %10.4f %8.1f  %s\n", c->kernel->spec.name.c_str(),
                  c->timing.median(), c->timing.min(),
                  keptFlops(problem) / c->timing.median() * 1e-9, c->code.c_str());
  }
  const Candidate &first = all.front();
  if (!first.timing.runs.empty())
    std::printf("%s is the target's choice: %.3f of the time of the fastest\n",
                first.kernel->spec.name.c_str(), medianOf(first) / medianOf(*order.front()));
}

/// --tune. The clock of a GPU falls as it warms up: in every round another kernel is the first.
static Result<bool> tune(const Options &options, const Artifact &artifact) {
  constexpr size_t kRounds = 3;
  const Kernel &first = artifact.kernels.front();
  for (const Kernel &kernel : artifact.kernels)
    if (kernel.spec.specHash != first.spec.specHash)
      return Error{options.artifact + ": kernels '" + first.spec.name + "' and '" +
                   kernel.spec.name +
                   "' are not of one spec, expected an artifact of attn-compile --shapes=all"};
  Result<Workload> work = loadWorkload(options, first);
  if (!work)
    return work.takeError();
  describe(options, first.spec, *work);
  const Problem dense = denseProblem(work->tensors, first.spec, work->bound);
  const Problem problem = work->cache ? pagedProblem(work->tensors, *work->cache, first.spec,
                                                     work->bound, work->pageSize)
                                      : dense;
  std::vector<Candidate> all;
  for (const Kernel &kernel : artifact.kernels)
    all.push_back({&kernel, "", {}});
  bool areRight = true;
  for (size_t round = 0; round < kRounds; ++round)
    for (size_t i = 0; i < all.size(); ++i)
      areRight &= tuneOne(options, artifact, *work, dense, problem,
                          all[(i + round * all.size() / kRounds) % all.size()], round == 0);
  printCandidates(all, problem);
  if (std::all_of(all.begin(), all.end(), [](const Candidate &c) { return c.timing.runs.empty(); }))
    return Error{options.artifact + ": none of its kernels runs here"};
  if (Status status = flushReport(); !status)
    return Error{status.message()};
  return areRight;
}

Result<bool> run::runSession(const Options &options) {
  Result<Artifact> artifact = readArtifact(options.artifact);
  if (!artifact)
    return artifact.takeError();
  if (options.tune)
    return tune(options, *artifact);
  Result<const Kernel *> kernel = selectKernel(*artifact, options);
  if (!kernel)
    return kernel.takeError();
  const KernelSpec &spec = (*kernel)->spec;
  std::optional<rt::NativeRunner> runner;
  std::optional<CudaRunner> cuda;
  if (options.device == Device::Cuda) {
    Result<CudaRunner> created = CudaRunner::create(*artifact, **kernel);
    if (!created)
      return created.takeError();
    cuda = std::move(*created);
  }
  SimReport sim;
  if (options.device == Device::Sim) {
    Result<CudaRunner> created = CudaRunner::createSimulated(
        *artifact, **kernel, {options.policy, hostThreads(options), options.simSteps}, sim);
    if (!created)
      return created.takeError();
    cuda = std::move(*created);
  }
  if (options.device == Device::Cpu) {
    Result<rt::NativeRunner> created = rt::NativeRunner::create(*artifact, **kernel);
    if (!created)
      return Error{options.artifact + ": " + created.message()};
    runner = std::move(*created);
  }
  Result<Workload> work = loadWorkload(options, **kernel);
  if (!work)
    return work.takeError();
  describe(options, spec, *work);

  const int64_t tokens = work->bound.batch.shape.numTokens();
  const Problem dense = denseProblem(work->tensors, spec, work->bound);
  const Problem problem =
      work->cache ? pagedProblem(work->tensors, *work->cache, spec, work->bound, work->pageSize)
                  : dense;
  Timing timing;
  Status written;
  if (options.device == Device::Reference) {
    const reference::Output output = runReference(problem, options.bench, timing);
    printTiming(options, timing);
    written = writeOutput(options, spec, tokens, rt::FileDType::F64, output);
  } else {
    CpuOutput output;
    if (options.device == Device::Sim) {
      Result<std::optional<CpuOutput>> got =
          runSim(options, *cuda, cudaInputs(problem, *work), sim);
      if (!got)
        return got.takeError();
      if (!*got)
        return false;
      output = std::move(**got);
    } else if (cuda) {
      Result<CpuOutput> got = runCuda(options, *cuda, cudaInputs(problem, *work));
      if (!got)
        return got.takeError();
      output = std::move(*got);
    } else {
      output = runCpu(*runner, problem, hostThreads(options), options.bench, timing);
      printTiming(options, timing);
    }
    if (options.check) {
      const Tolerance tolerance = cuda ? cudaTolerance(spec.qType) : kCpuTolerance;
      const CheckResult result = check(options, output, dense);
      printCheck(result, tolerance);
      if (!result.within(tolerance))
        return false;
    }
    written = writeOutput(options, spec, tokens, rt::FileDType::F32, output);
  }
  if (!written)
    return Error{written.message()};
  return true;
}
