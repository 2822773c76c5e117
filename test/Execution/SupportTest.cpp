// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the runtime says it supports against what happens: random configurations are compiled, and
// what compiles is launched, native code by the runtime and GPU code in the simulator, and compared
// with the float64 reference. What is not supported is refused by the compiler, or by the runtime
// where it is the launch that asks for it.

#include "../../tools/attn-run/SimDriver.h"
#include "../Device/Workload.h"
#include "Forward.h"
#include "RandomKernels.h"

#include "attn/Reference/Reference.h"

#include "llvm/Support/Error.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

using namespace exec;
using namespace attn;
using namespace attn::core;

namespace {

/// A configuration with what the compiler made of it.
struct Trial {
  RandomKernel kernel;
  unsigned seed = 0;                  ///< of its batch
  std::string error;                  ///< of the compiler
  std::unique_ptr<LoadedSpec> loaded; ///< null after an error; code of GPUs is not loaded yet
};

std::string text(const RandomKernel &kernel) {
  const rt::Configuration &c = kernel.configuration;
  return kernel.spec() + "target " + c.target + ", page size " + std::to_string(c.pageSize) +
         (c.isContextParallel ? ", context parallel" : "") + "\n";
}

std::string text(const Trial &trial) {
  std::string all = text(trial.kernel) + "seed " + std::to_string(trial.seed) + "\n";
  for (const std::string &reason : rt::reasonsAgainst(trial.kernel.configuration))
    all += "reason: " + reason + "\n";
  return all + (trial.error.empty() ? "" : "compiler: " + trial.error + "\n");
}

void compile(Trial &trial) {
  const std::string &target = trial.kernel.configuration.target;
  if (target == "cpu") {
    trial.loaded = compileAndLoad(trial.kernel.spec(), true, 0, trial.error);
    return;
  }
  compiler::CompileOptions options;
  options.targets = {target};
  llvm::Expected<Artifact> compiled = compiler::compile(trial.kernel.spec(), "test.mlir", options);
  if (!compiled) {
    trial.error = llvm::toString(compiled.takeError());
    return;
  }
  const std::vector<uint8_t> bytes = serialize(*compiled);
  Result<Artifact> parsed = parseArtifact(bytes.data(), bytes.size());
  if (!parsed) {
    trial.error = parsed.message();
    return;
  }
  trial.loaded = std::make_unique<LoadedSpec>();
  trial.loaded->artifact = std::move(*parsed);
}

//===----------------------------------------------------------------------===//
// Runs
//===----------------------------------------------------------------------===//

/// The GPU that the simulator is.
Result<std::shared_ptr<const rt::CudaDevice>> simulator() {
  Result<std::shared_ptr<const rt::CudaDriver>> driver =
      rt::CudaDriver::create(simdriver::find, "simulator");
  return driver ? rt::CudaDevice::open(*driver) : driver.takeError();
}

/// Native code over all keys and, for context parallelism, over two parts of them that are merged.
std::string runNatively(const Trial &trial, rt::BoundBatch bound, const KeepHeadFn &keep,
                        std::mt19937 &rng) {
  const rt::Configuration &c = trial.kernel.configuration;
  // The values that a short row is the mean of may cancel out.
  const double tolerance = c.dimV < 8 ? 1e-2 : 1e-4;
  Attention attention(trial.loaded->kernels[0], std::move(bound), keep,
                      {c.pageSize, rng() % 2 == 0, c.pageSize && rng() % 2});
  attention.fillRandom(rng());
  attention.poisonInvisible();
  const auto compare = [&](const Outputs &want, const Outputs &got) {
    return compareRows(want, got, attention.tokens(), c.numHeads, c.dimV, tolerance);
  };
  const Outputs want = attention.reference();
  std::string fault = compare(want, attention.native(1 + rng() % 2));
  if (!fault.empty() || !c.isContextParallel)
    return fault;
  BatchShape &shape = attention.shape();
  for (int64_t b = 0; b < shape.numReqs(); ++b)
    shape.keyEnd[b] = static_cast<int64_t>(rng() % (shape.seqLen[b] + 1));
  const Outputs first = attention.native();
  fault = compare(attention.reference(), first);
  shape.keyBegin = shape.keyEnd;
  shape.keyEnd = shape.seqLen;
  const Outputs second = attention.native();
  if (fault.empty())
    fault = compare(attention.reference(), second);
  if (fault.empty())
    fault = compare(want, merge(first, second, attention.tokens(), c.numHeads, c.dimV));
  return fault.empty() ? "" : "parts of the keys: " + fault;
}

std::string runInSimulator(const Trial &trial, const rt::CudaKernel &kernel, rt::BoundBatch bound,
                           const device::Keep &keep, std::mt19937 &rng) {
  const int64_t pageSize = trial.kernel.configuration.pageSize;
  const device::Layout layout{pageSize, rng() % 2 == 0, pageSize && rng() % 2};
  device::Workload work(kernel.spec(), std::move(bound), keep, false, layout, rng);
  rt::CudaPlan plan(kernel);
  const Status status = work.run(kernel, plan);
  return status ? work.judge().fault : status.message();
}

/// The reference's mask against the predicate of these tests.
std::string compareMask(const KernelSpec &spec, const Batch &batch, const device::Keep &keep) {
  const BatchShape &shape = batch.shape;
  const int64_t stride =
      std::max<int64_t>(1, *std::max_element(shape.seqLen.begin(), shape.seqLen.end()));
  const std::vector<uint8_t> mask = reference::denseMask(spec, batch, stride);
  for (int64_t b = 0; b < shape.numReqs(); ++b)
    for (int64_t i = 0; i < shape.queryLen(RequestIndex(b)); ++i)
      for (int64_t k = 0; k < shape.seqLen[b]; ++k)
        if (keep(b, 0, shape.contextLen[b] + i, k) !=
            (mask[(shape.queryStartLoc[b] + i) * stride + k] != 0))
          return "mask: request " + std::to_string(b) + " row " + std::to_string(i) + " key " +
                 std::to_string(k);
  return "";
}

/// Runs what is supported; empty text when it is right.
std::string run(const Trial &trial, const std::shared_ptr<const rt::CudaDevice> &device) {
  std::mt19937 rng(trial.seed);
  const Artifact &artifact = trial.loaded->artifact;
  const KernelSpec &spec = artifact.kernels[0].spec;
  const RandomBatch batch = randomBatch(trial.kernel, rng);
  Result<rt::BoundBatch> bound = rt::bindBatch(spec, batchInput(trial.kernel, spec, batch, rng));
  if (!bound)
    return bound.message();
  const auto keep = [&](int64_t b, int64_t, int64_t q, int64_t k) {
    return trial.kernel.keeps(batch.requests[b], batch.left, q, k);
  };
  if (std::string fault = compareMask(spec, bound->batch, keep); !fault.empty())
    return fault;
  if (trial.kernel.configuration.target == "cpu")
    return runNatively(trial, std::move(*bound), keep, rng);
  if (trial.kernel.configuration.isContextParallel)
    return "O is of 16 bits, so no launch on a GPU yields partial results in f32";
  Result<rt::CudaKernel> kernel = rt::CudaKernel::load(device, artifact, artifact.kernels[0]);
  if (!kernel)
    return kernel.message();
  return runInSimulator(trial, *kernel, std::move(*bound), keep, rng);
}

//===----------------------------------------------------------------------===//
// Refusals
//===----------------------------------------------------------------------===//

/// A launch on a GPU is given the page size again.
std::string refusePagesAtLaunch(const rt::CudaKernel &kernel, const rt::BoundBatch &bound,
                                int64_t pageSize) {
  rt::CudaPlan plan(kernel);
  if (Status status = plan.build(bound.batch, nullptr, nullptr); !status)
    return "no plan: " + status.message();
  const KernelSpec &spec = kernel.spec();
  constexpr rt::CudaPointer kAnywhere = 4096; // nothing is launched
  rt::CudaOperands operands;
  operands.q = operands.o = {kAnywhere, spec.numHeads * spec.dimQk, spec.dimQk};
  operands.k = operands.v = {kAnywhere, spec.dimQk, spec.dimQk, spec.dimQk};
  operands.lse = kAnywhere;
  operands.lseHeadStride = 1;
  operands.pageTable = kAnywhere;
  operands.pageTableStride = operands.numPages = 8;
  operands.pageSize = 16;
  if (Status status = kernel.checkOperands(plan, operands); !status)
    return "pages of 16 are refused: " + status.message();
  operands.pageSize = pageSize;
  return kernel.checkOperands(plan, operands) ? "the launch: no error" : "";
}

/// Pages of such a size are refused with the batch, and by a launch; empty text when they are.
std::string refusePages(const Trial &trial, const std::shared_ptr<const rt::CudaDevice> &device) {
  const Artifact &artifact = trial.loaded->artifact;
  const KernelSpec &spec = artifact.kernels[0].spec;
  const rt::Configuration &c = trial.kernel.configuration;
  std::mt19937 rng(trial.seed);
  RandomBatch batch{{truth::request(2, 5)}, 3};
  batch.requests[0].documents.assign(5, 0);
  rt::BatchInput input = batchInput(trial.kernel, spec, batch, rng);
  const Result<rt::BoundBatch> refused = rt::bindBatch(spec, input);
  if (refused || refused.message().find("page_size is ") != 0)
    return "the batch: " + (refused ? "no error" : refused.message());
  input.pageSize.reset();
  const Result<rt::BoundBatch> bound = rt::bindBatch(spec, input);
  if (!bound)
    return "the batch without pages: " + bound.message();
  if (c.target == "cpu")
    return "";
  const Result<rt::CudaKernel> kernel = rt::CudaKernel::load(device, artifact, artifact.kernels[0]);
  return kernel ? refusePagesAtLaunch(*kernel, *bound, c.pageSize) : kernel.message();
}

/// What compiles, but is not launched; empty text when it is refused.
std::string refuse(const Trial &trial, const std::shared_ptr<const rt::CudaDevice> &device) {
  const rt::Configuration &c = trial.kernel.configuration;
  if (c.pageSize < 0 || c.pageSize >= kPositionLimit)
    if (std::string fault = refusePages(trial, device); !fault.empty())
      return "pages of " + std::to_string(c.pageSize) + ": " + fault;
  // No launch has a way to ask for partial results; whoever wants them asks for kernels that do.
  return rt::KernelSelector::create({{&trial.loaded->artifact.kernels[0]}}, c.target, c)
             ? "the selector takes it"
             : "";
}

//===----------------------------------------------------------------------===//
// The test
//===----------------------------------------------------------------------===//

/// What a reason says, and what the compiler says where that is the only one; the first row that
/// fits is meant. A reason against a launch has no words of the compiler.
struct ReasonKind {
  const char *reason, *error;
};

constexpr ReasonKind kReasons[] = {
    {"is not available", "is not available"},
    {"takes q of type ", "q is expected to be f32, f16 or bf16"},
    {"takes kv of type ", "kv is expected to be f32, f16 or bf16"},
    {"takes q and kv of one type", "takes q and kv of one type"},
    {"expected to be a multiple of kv_heads", "heads is expected to be a multiple of kv_heads"},
    {"kv_heads expected to be 1 to", "kv_heads is expected to be"},
    {"heads expected to be 1 to", "heads is expected to be"},
    {"dim_v expected to be 1 to", "dim_v is expected to be"},
    {"dim expected to be 1 to", "dim is expected to be"},
    {"takes dim_v equal to dim", "takes dim_v equal to dim"},
    {"has no kernel for dim", "has no kernel for dim"},
    {"takes no sinks", "unknown clause 'sinks'"},
    {"words of kernel arguments", "words of kernel arguments"},
    {"page_size is ", nullptr},
    {"writes no partial results", nullptr},
};

const ReasonKind &kindOf(const std::string &reason) {
  for (const ReasonKind &kind : kReasons)
    if (reason.find(kind.reason) != std::string::npos)
      return kind;
  ADD_FAILURE() << "an unknown reason: " << reason;
  return kReasons[0];
}

std::vector<Trial> compiledTrials(int64_t count) {
  std::mt19937 rng(20);
  std::vector<Trial> trials(count);
  for (int64_t i = 0; i < count; ++i) {
    const char *const unknown[] = {"sm_100a", "sm_90", "sm_80", "CPU", "gpu", ""};
    const std::string target = i % 8 < 4 ? "cpu" : i % 8 < 7 ? "sm_90a" : unknown[rng() % 6];
    trials[i].kernel = randomKernel(target, rng);
    trials[i].seed = static_cast<unsigned>(i);
  }
  device::parallelFor(count, [&](int64_t i) { compile(trials[i]); });
  return trials;
}

/// What the compiler said against what is known of targets; a launch is not looked at.
void expectTheCompilerAgrees(const Trial &trial) {
  rt::Configuration kernelOnly = trial.kernel.configuration;
  kernelOnly.pageSize = 0;
  kernelOnly.isContextParallel = false;
  const std::vector<std::string> reasons = rt::reasonsAgainst(kernelOnly);
  EXPECT_EQ(reasons.empty(), trial.loaded != nullptr) << text(trial);
  EXPECT_EQ(trial.error.empty(), trial.loaded != nullptr) << text(trial);
  if (reasons.size() == 1) {
    EXPECT_NE(trial.error.find(kindOf(reasons[0]).error), std::string::npos) << text(trial);
  }
  if (!trial.loaded)
    return;
  // The same from the spec as the runtime knows it.
  const KernelSpec &spec = trial.loaded->artifact.kernels.at(0).spec;
  EXPECT_EQ(rt::reasonsAgainst(rt::configurationOf(spec, kernelOnly.target)), reasons)
      << text(trial);
}

TEST(Support, YesIffItCompilesAndRuns) {
  constexpr int64_t kTrials = 520;
  const auto device = simulator();
  ASSERT_TRUE(device) << device.message();
  simdriver::state().launched = [](const sim::Outcome &outcome) {
    for (const sim::Report &report : outcome.reports)
      ADD_FAILURE() << sim::toString(report.kind) << ": " << report.text;
  };
  struct Count {
    int64_t ran = 0, notCompiled = 0, notLaunched = 0;
  };
  std::map<std::string, Count> counts; // by target
  std::map<std::string, int64_t> reasons;
  std::set<std::string> different;
  int64_t contextParallel = 0;
  for (const Trial &trial : compiledTrials(kTrials)) {
    const rt::Configuration &c = trial.kernel.configuration;
    different.insert(text(trial.kernel));
    expectTheCompilerAgrees(trial);
    for (const std::string &reason : rt::reasonsAgainst(c))
      ++reasons[kindOf(reason).reason];
    Count &count = counts[trial.seed % 8 < 7 ? c.target : "others"];
    const bool isSupported = rt::isSupported(c);
    contextParallel += isSupported && c.isContextParallel;
    ++(isSupported ? count.ran : trial.loaded ? count.notLaunched : count.notCompiled);
    if (trial.loaded) {
      EXPECT_EQ(isSupported ? run(trial, *device) : refuse(trial, *device), "") << text(trial);
    }
  }
  for (const auto &[target, count] : counts)
    std::printf("%s: %lld ran, %lld not compiled, %lld not launched\n", target.c_str(),
                static_cast<long long>(count.ran), static_cast<long long>(count.notCompiled),
                static_cast<long long>(count.notLaunched));
  EXPECT_GE(different.size(), 500u);
  EXPECT_GE(counts["cpu"].ran, 100);
  EXPECT_GE(counts["sm_90a"].ran, 50);
  EXPECT_GE(counts["sm_90a"].notLaunched, 5);
  EXPECT_GE(contextParallel, 5);
  for (const ReasonKind &kind : kReasons)
    EXPECT_GE(reasons[kind.reason], 3) << kind.reason;
}

} // namespace
