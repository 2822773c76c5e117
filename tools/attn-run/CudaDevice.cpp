// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "CudaDevice.h"

#include "SimDriver.h"

#include "attn/Core/MaskEval.h"

#include <algorithm>

using namespace attn;
using namespace attn::core;
using namespace attn::run;

Tolerance run::cudaTolerance(DType type) {
  return type == DType::F16 ? Tolerance{2e-3, 1e-3} : Tolerance{8e-3, 1e-3};
}

double run::keptFlops(const Problem &problem) {
  const KernelSpec &spec = *problem.spec;
  const Batch &batch = *problem.batch;
  MaskEvaluator eval(spec.program, batch);
  const bool perHead = spec.program.mask >= 0 && dependence(spec.program, spec.program.mask).h;
  const int64_t heads = perHead ? spec.numHeads : 1;
  double pairs = 0;
  for (int64_t b = 0; b < batch.shape.numReqs(); ++b) {
    const Interval keys{batch.shape.keyBegin[b], batch.shape.keyEnd[b]};
    const int64_t begin = batch.shape.contextLen[b];
    const int64_t end = begin + batch.shape.queryLen(RequestIndex(b));
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t q = begin; q < end; ++q) {
        const RequestIndex request(b);
        const std::optional<IntervalSet> row = eval.rowKeys(request, HeadIndex(h), QueryPos(q));
        if (row) {
          pairs += static_cast<double>((*row & IntervalSet(keys)).size());
          continue;
        }
        for (int64_t k = keys.lo; k < keys.hi; ++k)
          pairs += eval.keep(request, HeadIndex(h), QueryPos(q), KeyPos(k));
      }
  }
  const double sharing = static_cast<double>(spec.numHeads) / static_cast<double>(heads);
  return 2 * static_cast<double>(spec.dimQk + spec.dimV) * pairs * sharing;
}

Result<CudaRunner> CudaRunner::create(std::shared_ptr<const rt::CudaDriver> driver,
                                      const std::string &device, const Artifact &artifact,
                                      const Kernel &kernel) {
  Result<std::shared_ptr<const rt::CudaDevice>> opened = rt::CudaDevice::open(std::move(driver));
  if (!opened)
    return Error{device + ": " + opened.message()};
  Result<rt::CudaKernel> loaded = rt::CudaKernel::load(*opened, artifact, kernel);
  if (!loaded)
    return Error{loaded.message()};
  return CudaRunner(std::move(*loaded), device);
}

Result<CudaRunner> CudaRunner::create(const Artifact &artifact, const Kernel &kernel) {
  const std::string device = "device 'cuda'";
  Result<std::shared_ptr<const rt::CudaDriver>> driver = rt::CudaDriver::load();
  if (!driver)
    return Error{device + ": " + driver.message()};
  return create(std::move(*driver), device, artifact, kernel);
}

Result<CudaRunner> CudaRunner::createSimulated(const Artifact &artifact, const Kernel &kernel,
                                               const SimOptions &options, SimReport &report) {
  simdriver::State &state = simdriver::state();
  state.policy = options.policy;
  state.threads = options.threads;
  state.maxSteps = options.maxSteps;
  state.launched = [&report](const sim::Outcome &outcome) {
    report.reports = outcome.reports;
    report.counters = outcome.counters;
  };
  const std::string device = "device 'sim'";
  Result<std::shared_ptr<const rt::CudaDriver>> driver =
      rt::CudaDriver::create(simdriver::find, "simulator");
  if (!driver)
    return Error{device + ": " + driver.message()};
  return create(std::move(*driver), device, artifact, kernel);
}

std::string CudaRunner::describe() const {
  return kernel.device()->name() + ", " + kernel.binary().format + ", " +
         std::to_string(kernel.registers()) + " registers, " + std::to_string(kernel.localBytes()) +
         " bytes of local memory";
}

namespace {

/// Device memory of one run, with the operands that point into it.
class DeviceRun {
public:
  explicit DeviceRun(const rt::CudaKernel &kernel) : kernel(kernel), plan(kernel) {}

  Status prepare(const CudaInputs &inputs);
  /// One launch on fresh counters.
  Status launch();
  Status time(Timing &timing, bool bench);
  Result<CpuOutput> results();
  Result<TileCounters> counters();
  const rt::WorkListView &workList() const { return plan.workList(); }

private:
  /// Memory on the device, with `bytes` bytes of `data` if it is not null.
  Result<rt::CudaPointer> place(const void *data, size_t bytes);
  Status placeInputs(const CudaInputs &inputs);

  const rt::CudaKernel &kernel;
  const rt::CudaDevice &device = *kernel.device();
  rt::CudaOwnStream stream;
  rt::CudaPlan plan;
  rt::CudaOperands operands;
  std::vector<rt::CudaMemory> memory;
  int64_t tokens = 0;
  size_t oElements = 0, lseElements = 0;
};

Result<rt::CudaPointer> DeviceRun::place(const void *data, size_t bytes) {
  Result<rt::CudaMemory> created = rt::CudaMemory::create(kernel.device(), bytes);
  if (!created)
    return created.takeError();
  const rt::CudaPointer address = created->address();
  memory.push_back(std::move(*created));
  Status status = data ? device.copyIn(address, data, bytes, stream.get())
                       : device.fill(address, 0xFF, bytes, stream.get());
  if (!status)
    return Error{status.message()};
  return address;
}

Status DeviceRun::placeInputs(const CudaInputs &inputs) {
  const Problem &problem = inputs.problem;
  struct Piece {
    rt::CudaPointer *address;
    const void *data;
    size_t bytes;
  };
  std::vector<Piece> pieces = {
      {&operands.q.data, problem.q.data, inputs.qBytes},
      {&operands.k.data, problem.k.data, inputs.kBytes},
      {&operands.v.data, problem.v.data, inputs.vBytes},
      {&operands.o.data, nullptr, oElements * byteSize(problem.spec->qType)},
      {&operands.lse, nullptr, lseElements * sizeof(float)},
  };
  if (problem.kv.pageTable)
    pieces.push_back(
        {&operands.pageTable, problem.kv.pageTable,
         static_cast<size_t>(problem.batch->shape.numReqs() * problem.kv.requestStride) *
             sizeof(int32_t)});
  const BatchShape &shape = problem.batch->shape;
  const std::vector<int32_t> seqLens(shape.seqLen.begin(), shape.seqLen.end());
  if (!shape.mostSeqLen.empty())
    pieces.push_back({&operands.seqLens, seqLens.data(), seqLens.size() * sizeof(int32_t)});
  if (kernel.shape().countsTiles)
    pieces.push_back({&operands.counters, nullptr, sizeof(TileCounters)});
  for (const Piece &piece : pieces) {
    Result<rt::CudaPointer> address = place(piece.data, piece.bytes);
    if (!address)
      return address.takeError();
    *piece.address = *address;
  }
  return {};
}

Status DeviceRun::prepare(const CudaInputs &inputs) {
  const Problem &problem = inputs.problem;
  const KernelSpec &spec = *problem.spec;
  tokens = problem.batch->shape.numTokens();
  oElements = tokens * spec.numHeads * spec.dimV;
  lseElements = spec.numHeads * tokens;
  Result<rt::CudaOwnStream> created = rt::CudaOwnStream::create(kernel.device());
  if (!created)
    return created.takeError();
  stream = std::move(*created);
  if (Status status = placeInputs(inputs); !status)
    return status;
  operands.q.tokenStride = problem.q.tokenStride;
  operands.q.headStride = problem.q.headStride;
  for (auto [cache, view] :
       {std::pair(&operands.k, &problem.k), std::pair(&operands.v, &problem.v)}) {
    cache->pageStride = view->pageStride;
    cache->slotStride = view->slotStride;
    cache->headStride = view->headStride;
  }
  operands.o.tokenStride = spec.numHeads * spec.dimV;
  operands.o.headStride = spec.dimV;
  operands.lseHeadStride = tokens;
  operands.kvRows = inputs.kvRows;
  operands.pageTableStride = problem.kv.requestStride;
  operands.pageSize = problem.kv.pageSize;
  operands.numPages = inputs.numPages;
  const int64_t *kvStart = problem.kv.pageTable ? nullptr : problem.kv.kvStart;
  const rt::PageTable pages = {problem.kv.pageTable, problem.kv.requestStride, problem.kv.pageSize};
  if (Status status = plan.build(*problem.batch, kvStart, stream.get(), {}, pages); !status)
    return status;
  return device.synchronize(stream.get());
}

Status DeviceRun::launch() {
  if (operands.counters)
    if (Status status = device.fill(operands.counters, 0, sizeof(TileCounters), stream.get());
        !status)
      return status;
  return kernel.launch(plan, operands, stream.get());
}

/// Times of single launches, taken by events. For a benchmark all are enqueued before the first is
/// waited for, so that the GPU never idles between them.
Status DeviceRun::time(Timing &timing, bool bench) {
  constexpr size_t kWarmups = 10, kRuns = 50;
  const size_t runs = bench ? kRuns : 1;
  for (size_t i = 0; bench && i < kWarmups; ++i)
    if (Status status = launch(); !status)
      return status;
  std::vector<rt::CudaEvent> events;
  for (size_t i = 0; i < 2 * runs; ++i) {
    Result<rt::CudaEvent> event = rt::CudaEvent::create(kernel.device());
    if (!event)
      return event.takeError();
    events.push_back(std::move(*event));
  }
  for (size_t i = 0; i < runs; ++i) {
    if (Status status = events[2 * i].record(stream.get()); !status)
      return status;
    Status status = bench ? kernel.launch(plan, operands, stream.get()) : launch();
    if (!status)
      return status;
    if (status = events[2 * i + 1].record(stream.get()); !status)
      return status;
  }
  if (Status status = device.synchronize(stream.get()); !status)
    return status;
  for (size_t i = 0; i < runs; ++i) {
    Result<double> ms = events[2 * i + 1].since(events[2 * i]);
    if (!ms)
      return ms.takeError();
    timing.runs.push_back(*ms);
  }
  return {};
}

Result<CpuOutput> DeviceRun::results() {
  const DType type = kernel.spec().qType;
  std::vector<uint16_t> o(oElements);
  CpuOutput output;
  output.lse.resize(lseElements);
  Status status = device.copyOut(o.data(), operands.o.data, oElements * 2, stream.get());
  if (status)
    status =
        device.copyOut(output.lse.data(), operands.lse, lseElements * sizeof(float), stream.get());
  if (status)
    status = device.synchronize(stream.get());
  if (!status)
    return Error{status.message()};
  output.o.resize(oElements);
  for (size_t i = 0; i < oElements; ++i)
    output.o[i] = loadElement(o.data(), type, static_cast<int64_t>(i));
  return output;
}

Result<TileCounters> DeviceRun::counters() {
  TileCounters counts{};
  Status status = device.copyOut(&counts, operands.counters, sizeof(counts), stream.get());
  if (status)
    status = device.synchronize(stream.get());
  if (!status)
    return Error{status.message()};
  return counts;
}

} // namespace

Result<CpuOutput> CudaRunner::run(const CudaInputs &inputs, bool bench, Timing &timing,
                                  CudaReport &report) const {
  auto fail = [this](const Status &status) { return Error{device + ": " + status.message()}; };
  DeviceRun run(kernel);
  if (Status status = run.prepare(inputs); !status)
    return fail(status);
  // The results and counters are those of the first launch; what follows is for the clock only.
  Timing first;
  if (Status status = run.time(first, false); !status)
    return fail(status);
  Result<CpuOutput> output = run.results();
  if (!output)
    return fail(Error{output.message()});
  if (kernel.shape().countsTiles) {
    Result<TileCounters> counts = run.counters();
    if (!counts)
      return fail(Error{counts.message()});
    report = {true, *counts, run.workList().counts};
  }
  timing = std::move(first);
  if (!bench)
    return output;
  timing = Timing();
  if (Status status = run.time(timing, true); !status)
    return fail(status);
  return output;
}
