// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// attn-step-test ARTIFACT [--driver FILE | --sim] [--steps N] [--small] [--parts]: random steps of
// a kernel on a GPU, each once as a launch and once as the replay of a graph that was captured at
// the first step. Both must write the same bits, and no step may wait, take memory or load code.
// With --parts there is no graph: a launch of everything is compared with one of a plan for graphs,
// whose grid and list are those of the largest step, and with launches of parts; --sim does that in
// the simulator.
#include "../../../tools/attn-run/SimDriver.h"

#include "attn/Core/Tensor.h"
#include "attn/Runtime/BatchBinding.h"
#include "attn/Runtime/Cuda.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <random>
#include <string>
#include <vector>

using namespace attn;
using namespace attn::core;

namespace {

constexpr int kSkipped = 77; ///< exit code: no GPU here

struct Options {
  std::string artifact, driver = "libcuda.so.1";
  int64_t steps = 10000;
  bool small = false;
  bool parts = false;
  bool sim = false;
};

struct Limits {
  int64_t requests = 16, tokens = 2048, ranges = 64, pageSize = 16, width = 256, cuts = 3;
};

[[noreturn]] void fail(const std::string &what) {
  std::fprintf(stderr, "attn-step-test: error: %s\n", what.c_str());
  std::exit(1);
}
void require(const Status &status) {
  if (!status)
    fail(status.message());
}
template <class T>
T take(Result<T> result) {
  if (!result)
    fail(result.message());
  return std::move(*result);
}

/// Functions of the driver that engines call and the library does not.
class Graphs {
public:
  explicit Graphs(const std::string &driver) : library(dlopen(driver.c_str(), RTLD_NOW)) {}
  template <class... Args>
  void call(const char *symbol, Args... args) const {
    auto *function = reinterpret_cast<int (*)(Args...)>(dlsym(library, symbol));
    if (!function)
      fail(std::string("the driver has no function ") + symbol);
    if (int code = function(args...))
      fail(std::string(symbol) + ": CUDA error " + std::to_string(code));
  }

private:
  void *library;
};

/// Random batches of one kernel.
class Batches {
public:
  Batches(const KernelSpec &spec, const Limits &limits) : limits(limits) {
    input.allowPartialRanges = true;
    input.pageSize = limits.pageSize;
    for (const ParamDecl &decl : spec.program.params) {
      rt::ParamInput param;
      param.name = decl.name;
      param.isInteger = decl.type != ScalarType::F32;
      param.i = 40;
      param.f = 0.1;
      input.params.push_back(param);
    }
    for (const TableDecl &decl : spec.program.tables) {
      rt::TableInput table;
      table.name = decl.name;
      if (decl.kind == TableKind::Ranges) {
        table.ranges.emplace();
      } else if (decl.kind == TableKind::Plain && decl.dims == std::vector{TableDim::H} &&
                 decl.element == ScalarType::F32) {
        table.dense.emplace();
        table.dense->element = decl.element;
        table.dense->extents = {spec.numHeads};
        slopes.assign(static_cast<size_t>(spec.numHeads), 0.01f);
        table.dense->data = slopes.data();
      } else {
        fail("kernel '" + spec.name + "': table '" + decl.name +
             "' is not one that this test fills");
      }
      input.tables.push_back(std::move(table));
    }
  }

  const rt::BatchInput &next() {
    input.requests.clear();
    int64_t left = limits.tokens;
    for (int64_t n = in(0, limits.requests); n > 0; --n) {
      rt::RequestInput request;
      request.queryLen = std::min(left, in(0, 2) ? in(0, 4) : in(0, limits.tokens / 3));
      request.seqLen =
          request.queryLen +
          in(0, std::max<int64_t>(limits.width * limits.pageSize - request.queryLen, 0));
      left -= request.queryLen;
      input.requests.push_back(request);
    }
    for (rt::TableInput &table : input.tables)
      if (table.ranges)
        drawRanges(*table.ranges);
    return input;
  }
  std::vector<int64_t> drawCuts(int64_t tokens) {
    std::vector<int64_t> cuts;
    for (int64_t n = in(0, limits.cuts); n > 0; --n)
      cuts.push_back(in(0, tokens));
    std::sort(cuts.begin(), cuts.end());
    return cuts;
  }

private:
  void drawRanges(rt::RangesInput &ranges) {
    ranges.ranges.clear();
    ranges.offsets.assign(1, 0);
    int64_t left = in(0, limits.ranges);
    for (const rt::RequestInput &request : input.requests) {
      for (int64_t n = in(0, left); n > 0; --n, --left) {
        const int64_t start = in(0, request.seqLen);
        ranges.ranges.push_back({start, start + in(0, 300)});
      }
      ranges.offsets.push_back(static_cast<int64_t>(ranges.ranges.size()));
    }
  }
  int64_t in(int64_t lo, int64_t hi) {
    return std::uniform_int_distribution<int64_t>(lo, hi)(random);
  }

  const Limits limits;
  std::mt19937 random{5};
  std::vector<float> slopes;
  rt::BatchInput input;
};

/// Tensors of the largest step; every output twice.
class Tensors {
public:
  Tensors(std::shared_ptr<const rt::CudaDevice> device, const KernelSpec &spec,
          const Limits &limits, rt::CudaStream stream)
      : device(device), spec(spec), tokens(limits.tokens) {
    const int64_t pages = limits.requests * limits.width;
    const int64_t page = limits.pageSize * spec.numKvHeads * spec.dimQk;
    std::vector<int32_t> table(static_cast<size_t>(pages));
    for (size_t i = 0; i < table.size(); ++i)
      table[i] = static_cast<int32_t>((i * 7919) % table.size());
    operands.q = {upload(randomBits(rowElements() * tokens), stream), rowElements(), spec.dimQk};
    operands.k = {upload(randomBits(page * pages), stream), page, spec.numKvHeads * spec.dimQk,
                  spec.dimQk};
    operands.v = operands.k;
    operands.v.data = upload(randomBits(page * pages), stream);
    operands.pageTable = upload(table, stream);
    operands.pageTableStride = limits.width;
    operands.pageSize = limits.pageSize;
    operands.numPages = pages;
    operands.counters = upload(std::vector<uint64_t>(3, 0), stream);
    operands.lseHeadStride = tokens;
    for (int i = 0; i < 2; ++i) {
      o[i] = upload(std::vector<uint16_t>(static_cast<size_t>(rowElements() * tokens), 0), stream);
      lse[i] = upload(std::vector<float>(static_cast<size_t>(spec.numHeads * tokens), 0), stream);
    }
  }

  rt::CudaOperands output(int i) const {
    rt::CudaOperands result = operands;
    result.o = {o[i], rowElements(), spec.dimV};
    result.lse = lse[i];
    return result;
  }
  /// Fills both outputs with a byte of the step's.
  void poison(uint8_t byte, rt::CudaStream stream) const {
    for (int i = 0; i < 2; ++i) {
      require(device->fill(o[i], byte, static_cast<size_t>(rowElements() * tokens * 2), stream));
      require(device->fill(lse[i], byte, static_cast<size_t>(spec.numHeads * tokens * 4), stream));
    }
  }
  /// Whether both outputs, poison included, are the same bits.
  bool isSame(rt::CudaStream stream) const {
    std::vector<uint8_t> values[2], sums[2];
    for (int i = 0; i < 2; ++i) {
      values[i].resize(static_cast<size_t>(rowElements() * tokens * 2));
      sums[i].resize(static_cast<size_t>(spec.numHeads * tokens * 4));
      require(device->copyOut(values[i].data(), o[i], values[i].size(), stream));
      require(device->copyOut(sums[i].data(), lse[i], sums[i].size(), stream));
    }
    require(device->synchronize(stream));
    return values[0] == values[1] && sums[0] == sums[1];
  }

private:
  int64_t rowElements() const { return spec.numHeads * spec.dimQk; }
  std::vector<uint16_t> randomBits(int64_t count) {
    std::vector<uint16_t> values(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i)
      storeElement(values.data(), spec.qType, i,
                   static_cast<float>(static_cast<int>(random() % 2001) - 1000) / 500);
    return values;
  }
  template <class T>
  rt::CudaPointer upload(const std::vector<T> &values, rt::CudaStream stream) {
    memory.push_back(take(rt::CudaMemory::create(device, values.size() * sizeof(T))));
    require(
        device->copyIn(memory.back().address(), values.data(), values.size() * sizeof(T), stream));
    require(device->synchronize(stream));
    return memory.back().address();
  }

  std::shared_ptr<const rt::CudaDevice> device;
  const KernelSpec &spec;
  const int64_t tokens;
  std::minstd_rand random{3};
  rt::CudaOperands operands;
  rt::CudaPointer o[2] = {}, lse[2] = {};
  std::vector<rt::CudaMemory> memory;
};

Options parse(int argc, char **argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--small")
      options.small = true;
    else if (argument == "--parts")
      options.parts = true;
    else if (argument == "--sim")
      options.sim = options.parts = true;
    else if (argument == "--driver" && i + 1 < argc)
      options.driver = argv[++i];
    else if (argument == "--steps" && i + 1 < argc)
      options.steps = std::atoll(argv[++i]);
    else if (options.artifact.empty() && argument[0] != '-')
      options.artifact = argument;
    else
      options.steps = 0;
  }
  if (options.artifact.empty() || options.steps < 1) {
    std::fputs("usage: attn-step-test ARTIFACT [--driver FILE | --sim] [--steps N] [--small] "
               "[--parts]\n",
               stderr);
    std::exit(2);
  }
  return options;
}

rt::CudaPlan makePlan(const rt::CudaKernel &kernel, const Limits &limits, bool forGraphs) {
  rt::CudaPlanOptions options;
  options.limits.requests = limits.requests;
  options.limits.tokens = limits.tokens;
  options.limits.ranges = limits.ranges;
  options.limits.keys = limits.width * limits.pageSize;
  options.limits.cuts = limits.cuts;
  options.forGraphs = forGraphs;
  options.isStrict = true;
  return take(rt::CudaPlan::create(kernel, options));
}

Limits limitsOf(const Options &options) {
  Limits limits;
  if (options.small)
    limits = {4, 96, 8, 16, 8, 3};
  return limits;
}

/// A launch of everything against one of a plan for graphs, and against launches of parts, the last
/// part first.
void runParts(const Options &options, std::shared_ptr<const rt::CudaDevice> device) {
  const Limits limits = limitsOf(options);
  const Artifact artifact = take(readArtifact(options.artifact));
  const rt::CudaKernel kernel = take(rt::CudaKernel::load(device, artifact, artifact.kernels[0]));
  const Tensors tensors(device, kernel.spec(), limits, nullptr);
  rt::CudaPlan plan = makePlan(kernel, limits, false), captured = makePlan(kernel, limits, true);
  Batches batches(kernel.spec(), limits);
  int64_t parts = 0;
  for (int64_t step = 0; step < options.steps; ++step) {
    const rt::BoundBatch bound = take(rt::bindBatch(kernel.spec(), batches.next()));
    const std::vector<int64_t> cuts = batches.drawCuts(bound.batch.shape.numTokens());
    tensors.poison(static_cast<uint8_t>(step), nullptr);
    require(plan.build(bound.batch, nullptr, nullptr, cuts));
    require(kernel.launch(plan, tensors.output(0), nullptr));
    require(captured.build(bound.batch, nullptr, nullptr));
    require(kernel.launch(captured, tensors.output(1), nullptr));
    if (!tensors.isSame(nullptr))
      fail("step " + std::to_string(step) + ": a launch and that of a plan for graphs differ");
    tensors.poison(static_cast<uint8_t>(step), nullptr);
    require(kernel.launch(plan, tensors.output(0), nullptr));
    rt::CudaOperands operands = tensors.output(1);
    int64_t end = bound.batch.shape.numTokens();
    for (size_t i = cuts.size() + 1; i-- > 0; ++parts) {
      operands.tokens = {i ? cuts[i - 1] : 0, end};
      require(kernel.launch(plan, operands, nullptr));
      end = operands.tokens->begin;
    }
    if (!tensors.isSame(nullptr))
      fail("step " + std::to_string(step) + ": a launch and its parts differ");
  }
  std::printf("%s: %lld steps, equal to their %lld parts\n", kernel.spec().name.c_str(),
              static_cast<long long>(options.steps), static_cast<long long>(parts));
}

void run(const Options &options, std::shared_ptr<const rt::CudaDevice> device) {
  const Limits limits = limitsOf(options);
  const Artifact artifact = take(readArtifact(options.artifact));
  const rt::CudaKernel kernel = take(rt::CudaKernel::load(device, artifact, artifact.kernels[0]));
  const Graphs graphs(options.driver);
  const rt::CudaOwnStream own = take(rt::CudaOwnStream::create(device));
  const rt::CudaStream stream = own.get();
  const Tensors tensors(device, kernel.spec(), limits, stream);
  rt::CudaPlan eager = makePlan(kernel, limits, false), replayed = makePlan(kernel, limits, true);
  rt::BatchBinder binder(kernel.spec());
  rt::BoundBatch bound;
  Batches batches(kernel.spec(), limits);
  rt::CudaEvent done[2] = {take(rt::CudaEvent::create(device)),
                           take(rt::CudaEvent::create(device))};
  void *graph = nullptr, *exec = nullptr;
  std::chrono::duration<double, std::micro> host{};
  int64_t compared = 0;
  for (int64_t step = 0; step < options.steps; ++step) {
    require(binder.bind(batches.next(), bound));
    // An engine knows the results of a step before it makes the next but one.
    if (step >= 2)
      require(done[step % 2].synchronize());
    const bool isCompared = step < 100 || step % 20 == 0;
    if (isCompared)
      tensors.poison(static_cast<uint8_t>(step), stream);
    const auto start = std::chrono::steady_clock::now();
    require(eager.build(bound.batch, nullptr, stream));
    host += std::chrono::steady_clock::now() - start;
    require(kernel.launch(eager, tensors.output(0), stream));
    require(replayed.build(bound.batch, nullptr, stream));
    if (!exec) {
      graphs.call("cuStreamBeginCapture_v2", stream, 0);
      require(kernel.launch(replayed, tensors.output(1), stream));
      graphs.call("cuStreamEndCapture", stream, &graph);
      graphs.call("cuGraphInstantiateWithFlags", &exec, graph, 0ULL);
    }
    graphs.call("cuGraphLaunch", exec, stream);
    require(done[step % 2].record(stream));
    if (isCompared && !tensors.isSame(stream))
      fail("step " + std::to_string(step) + ": a launch and its replay differ");
    compared += isCompared;
  }
  require(device->synchronize(stream));
  graphs.call("cuGraphExecDestroy", exec);
  graphs.call("cuGraphDestroy", graph);
  const rt::CudaStepCounts &counts = eager.counts();
  std::printf(
      "%s: %lld steps, %lld compared with their replays, all equal; %llu waits, %.2f copies "
      "and %.1f KiB a step, %.1f us on the host\n",
      kernel.spec().name.c_str(), static_cast<long long>(options.steps),
      static_cast<long long>(compared),
      static_cast<unsigned long long>(counts.waits + replayed.counts().waits),
      static_cast<double>(counts.copies) / static_cast<double>(counts.steps),
      static_cast<double>(counts.copiedBytes) / static_cast<double>(counts.steps) / 1024,
      host.count() / static_cast<double>(options.steps));
}

} // namespace

int main(int argc, char **argv) {
  const Options options = parse(argc, argv);
  Result<std::shared_ptr<const rt::CudaDriver>> driver =
      options.sim ? rt::CudaDriver::create(simdriver::find, "simulator")
                  : rt::CudaDriver::load(options.driver);
  if (!driver) {
    std::fprintf(stderr, "attn-step-test: skipped: %s\n", driver.message().c_str());
    return kSkipped;
  }
  auto device = take(rt::CudaDevice::open(*driver));
  if (options.parts) {
    runParts(options, device);
    return 0;
  }
  // Captures and graph launches are made in the device's context.
  const Graphs graphs(options.driver);
  graphs.call("cuCtxPushCurrent_v2", device->context());
  run(options, device);
  void *popped = nullptr;
  graphs.call("cuCtxPopCurrent_v2", &popped);
  return 0;
}
