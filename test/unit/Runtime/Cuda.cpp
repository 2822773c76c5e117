// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The GPU path on a fake driver: what is refused, what is asked of the driver, and results of an
// emulated kernel against the reference.
#include "attn/Runtime/Cuda.h"

#include "attn/Runtime/Capability.h"

#include "CudaWorkload.h"
#include "FakeDriver.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

using namespace attn;
using namespace attn::core;
using namespace testing_rt;

namespace {

std::vector<uint8_t> bytesOf(const std::string &text) {
  std::vector<uint8_t> bytes(text.begin(), text.end());
  bytes.push_back(0);
  return bytes;
}

class Cuda : public FakeDriverTest {
protected:
  std::string loadMessage(const Artifact &artifact) {
    Result<rt::CudaKernel> kernel = rt::CudaKernel::load(device, artifact, artifact.kernels[0]);
    return kernel ? "loaded " + kernel->binary().format : kernel.message();
  }
};

//===----------------------------------------------------------------------===//
// Driver and device
//===----------------------------------------------------------------------===//

TEST(CudaDriver, MachinesWithoutOneSaySo) {
  Result<std::shared_ptr<const rt::CudaDriver>> none =
      rt::CudaDriver::load("libattn-no-such-driver.so.1");
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.message().rfind("no CUDA driver: libattn-no-such-driver.so.1: ", 0), 0u)
      << none.message();
  // A library that is no driver.
  Result<std::shared_ptr<const rt::CudaDriver>> other = rt::CudaDriver::load("libc.so.6");
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.message(),
            "the CUDA driver 'libc.so.6' has no function cuInit, expected a driver "
            "of CUDA 12.0 or newer");
  fakeState() = fake::State();
  fakeState().initResult = 100;
  Result<std::shared_ptr<const rt::CudaDriver>> empty = rt::CudaDriver::load(kFake);
  ASSERT_FALSE(empty.ok());
  EXPECT_EQ(empty.message(), "no usable GPU: cuInit: CUDA_ERROR_NO_DEVICE (no CUDA-capable device "
                             "is detected)");
  fakeState() = fake::State();
  fakeState().initResult = 999;
  EXPECT_EQ(rt::CudaDriver::load(kFake).message(), "no usable GPU: cuInit: CUDA error 999");
  fakeState() = fake::State();
  fakeState().devices = 2;
  Result<std::shared_ptr<const rt::CudaDriver>> driver = rt::CudaDriver::load(kFake);
  ASSERT_TRUE(driver.ok()) << driver.message();
  EXPECT_EQ(rt::CudaDevice::open(*driver, 2).message(), "no GPU 2, the driver has 2");
  EXPECT_EQ(rt::CudaDevice::open(*driver, -1).message(), "no GPU -1, the driver has 2");
}

TEST_F(Cuda, DeviceSaysWhatItIs) {
  EXPECT_EQ(device->name(), "Fake GPU");
  EXPECT_EQ(device->computeMajor(), 9);
  EXPECT_EQ(device->computeMinor(), 0);
  EXPECT_EQ(device->sharedBytes(), 232448);
  EXPECT_EQ(device->multiprocessors(), 132);
}

TEST_F(Cuda, ErrorsCarryTheDriversText) {
  fakeState().failNext["cuMemAlloc_v2"] = 2;
  EXPECT_EQ(rt::CudaMemory::create(device, 4096).message(),
            "4096 bytes of device memory: cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (out of memory)");
  fakeState().failNext["cuStreamSynchronize"] = 700;
  EXPECT_EQ(device->synchronize(nullptr).message(),
            "cuStreamSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was "
            "encountered)");
  fakeState().failNext["cuCtxPushCurrent_v2"] = 201;
  EXPECT_EQ(device->synchronize(nullptr).message(),
            "cuCtxPushCurrent: CUDA_ERROR_INVALID_CONTEXT (invalid device context)");
}

//===----------------------------------------------------------------------===//
// Loading
//===----------------------------------------------------------------------===//

TEST_F(Cuda, TheCubinIsTakenElseThePtx) {
  Artifact artifact = gpuArtifact();
  EXPECT_EQ(loadMessage(artifact), "loaded cubin");
  // A cubin has nothing for the driver's compiler, which is not asked for.
  EXPECT_EQ(fakeState().moduleOptions, 0u);
  artifact.blobs[0] = bytesOf("built for another chip");
  EXPECT_EQ(loadMessage(artifact), "loaded ptx");
  EXPECT_EQ(fakeState().moduleOptions, 2u);
  artifact.blobs[1] = bytesOf("attn-broken ptxas error: line 3\nunknown op\n");
  EXPECT_EQ(loadMessage(artifact),
            "kernel 'tiny': cubin: cuModuleLoadDataEx: CUDA_ERROR_INVALID_IMAGE (device kernel "
            "image is invalid); ptx: cuModuleLoadDataEx: CUDA_ERROR_INVALID_PTX (a PTX JIT "
            "compilation failed): ptxas error: line 3; unknown op");
  artifact = gpuArtifact();
  artifact.kernels[0].binaries[0].entry = "missing";
  EXPECT_EQ(loadMessage(artifact), "loaded ptx");
  artifact.kernels[0].binaries[1].entry = "missing";
  EXPECT_NE(loadMessage(artifact).find("entry 'missing': cuModuleGetFunction: "
                                       "CUDA_ERROR_NOT_FOUND"),
            std::string::npos);
}

TEST_F(Cuda, KernelsThatNoGpuTakesAreRefused) {
  Artifact artifact = gpuArtifact();
  KernelSpec &spec = artifact.kernels[0].spec;
  spec.dimV = 128;
  EXPECT_EQ(loadMessage(artifact),
            "kernel 'tiny': target 'sm_90a' takes dim_v equal to dim, got 128 and 64");
  spec.dimQk = spec.dimV = 96;
  EXPECT_EQ(
      loadMessage(artifact),
      "kernel 'tiny': target 'sm_90a' has no kernel for dim 96, expected one of 64, 128, 256");
  spec.dimQk = spec.dimV = 64;
  spec.qType = DType::F32;
  EXPECT_EQ(
      loadMessage(artifact),
      "kernel 'tiny': target 'sm_90a' takes q of type f16 or bf16, got 'f32'; target 'sm_90a' "
      "takes q and kv of one type, got 'f32' and 'bf16'");
  spec.qType = DType::F16;
  EXPECT_EQ(loadMessage(artifact),
            "kernel 'tiny': target 'sm_90a' takes q and kv of one type, got 'f16' and 'bf16'");
  spec.qType = DType::BF16;
  fakeState().computeMajor = 10;
  Result<std::shared_ptr<const rt::CudaDriver>> driver = rt::CudaDriver::load(kFake);
  ASSERT_TRUE(driver.ok());
  Result<std::shared_ptr<const rt::CudaDevice>> newer = rt::CudaDevice::open(*driver);
  ASSERT_TRUE(newer.ok());
  EXPECT_EQ(rt::CudaKernel::load(*newer, artifact, artifact.kernels[0]).message(),
            "kernel 'tiny': code for target 'sm_90a' needs a GPU of compute capability 9.0, 'Fake "
            "GPU' has 10.0");
  artifact.kernels[0].binaries[0].cuda->sharedBytes = 232448;
  EXPECT_EQ(loadMessage(artifact), "kernel 'tiny': needs 233472 bytes of shared memory, the GPU "
                                   "'Fake GPU' has 232448");
  fakeState().maxThreads = 256;
  EXPECT_EQ(loadMessage(artifact),
            "kernel 'tiny': its code runs with at most 256 threads, expected 384");
  fakeState().maxThreads = 1024;
  artifact = gpuArtifact();
  artifact.blobs[1].pop_back();
  artifact.blobs[0] = bytesOf("built for another chip");
  artifact.blobs[1].back() = 'x';
  EXPECT_EQ(loadMessage(artifact),
            "kernel 'tiny': its ptx code is not text that ends in a zero byte");
  artifact = gpuArtifact();
  for (int i = 0; i < 45; ++i)
    artifact.kernels[0].binaries[0].tables.push_back(artifact.kernels[0].binaries[0].tables.back());
  EXPECT_EQ(loadMessage(artifact), "kernel 'tiny': its parameters and tables take " +
                                       std::to_string(kNumCudaArgs + 482) +
                                       " words of kernel arguments, expected at most 448");
  artifact = gpuArtifact();
  for (KernelBinary &binary : artifact.kernels[0].binaries)
    binary.target = "sm_100a";
  EXPECT_EQ(loadMessage(artifact), "kernel 'tiny': no code for target 'sm_90a' (the artifact has: "
                                   "sm_100a, sm_100a)");
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

TEST_F(Cuda, ResultsInEveryLayout) {
  const Artifact artifact = gpuArtifact();
  Result<rt::CudaKernel> kernel = rt::CudaKernel::load(device, artifact, artifact.kernels[0]);
  ASSERT_TRUE(kernel.ok()) << kernel.message();
  EXPECT_EQ(kernel->registers(), 168);
  EXPECT_EQ(kernel->localBytes(), 0);
  rt::CudaPlan plan(*kernel);
  uint64_t seed = 0;
  for (int64_t pageSize : {0, 1, 3, 16, 48, 64, 256})
    for (bool headMajor : {false, true})
      for (int round = 0; round < 3; ++round) {
        SCOPED_TRACE("page size " + std::to_string(pageSize) + " seed " + std::to_string(++seed));
        Workload run(device, artifact, pageSize, headMajor, seed);
        Status status = plan.build(run.bound.batch, run.kvStart(), nullptr);
        ASSERT_TRUE(status.ok()) << status.message();
        status = kernel->launch(plan, run.operands, nullptr);
        ASSERT_TRUE(status.ok()) << status.message() << fakeState().fault;
        ASSERT_EQ(run.compare(), "");
        const TileCounters counts = run.counters();
        EXPECT_EQ(counts.loaded, plan.workList().counts.loaded);
        EXPECT_EQ(counts.visited, plan.workList().counts.visited);
        EXPECT_EQ(counts.full, plan.workList().counts.full);
      }
  const fake::State &state = fakeState();
  EXPECT_EQ(state.calls.at("cuModuleLoadDataEx"), 1);
  ASSERT_FALSE(state.launches.empty());
  EXPECT_EQ(state.launches.back().block[0], 384u);
  EXPECT_EQ(state.launches.back().sharedBytes, 200000u);
}

/// Launches of the parts write what one launch of everything does, each its own rows only, and
/// nothing is copied for them.
TEST_F(Cuda, PartsOfAStep) {
  const Artifact artifact = gpuArtifact();
  Result<rt::CudaKernel> kernel = rt::CudaKernel::load(device, artifact, artifact.kernels[0]);
  ASSERT_TRUE(kernel.ok()) << kernel.message();
  rt::CudaPlan plan(*kernel);
  Random random(8);
  int parts = 0;
  for (int64_t pageSize : {0, 16, 48})
    for (uint64_t seed = 1; seed <= 12; ++seed) {
      SCOPED_TRACE("page size " + std::to_string(pageSize) + " seed " + std::to_string(seed));
      Workload run(device, artifact, pageSize, false, seed);
      const int64_t tokens = run.bound.batch.shape.numTokens();
      std::vector<int64_t> cuts;
      for (int64_t n = random.in(1, 3); n > 0; --n)
        cuts.push_back(random.in(0, tokens));
      std::sort(cuts.begin(), cuts.end());
      ASSERT_TRUE(plan.build(run.bound.batch, run.kvStart(), nullptr, cuts).ok());
      ASSERT_TRUE(kernel->launch(plan, run.operands, nullptr).ok());
      ASSERT_EQ(run.compare(), "");
      const auto whole = run.results();
      const TileCounters counts = run.counters();
      run.upload();
      const fake::State &state = fakeState();
      auto copies = [&] {
        auto it = state.calls.find("cuMemcpyHtoDAsync_v2");
        return it == state.calls.end() ? 0 : it->second;
      };
      const int before = copies();
      cuts.push_back(tokens);
      std::vector<rt::TokenRange> ranges;
      int64_t begin = 0;
      for (int64_t cut : cuts) {
        ranges.push_back({begin, cut});
        begin = cut;
      }
      std::shuffle(ranges.begin(), ranges.end(), std::minstd_rand(seed));
      std::vector<bool> done(tokens, false);
      for (const rt::TokenRange &range : ranges) {
        rt::CudaOperands operands = run.operands;
        operands.tokens = range;
        Status status = kernel->launch(plan, operands, nullptr);
        ASSERT_TRUE(status.ok()) << status.message();
        std::fill(done.begin() + range.begin, done.begin() + range.end, true);
        ASSERT_EQ(run.results(), run.only(whole, done));
        ++parts;
      }
      EXPECT_EQ(copies(), before);
      EXPECT_EQ(run.counters().loaded, counts.loaded);
      EXPECT_EQ(run.counters().visited, counts.visited);
      EXPECT_EQ(run.counters().full, counts.full);
      if (cuts.front() > 1) {
        rt::CudaOperands operands = run.operands;
        operands.tokens = {cuts.front() - 1, tokens};
        EXPECT_NE(kernel->launch(plan, operands, nullptr)
                      .message()
                      .find("the batch is not cut at " + std::to_string(cuts.front() - 1)),
                  std::string::npos);
      }
    }
  EXPECT_GT(parts, 70);
}

TEST_F(Cuda, PlansKeepTheirBuffers) {
  const Artifact artifact = gpuArtifact();
  Result<rt::CudaKernel> kernel = rt::CudaKernel::load(device, artifact, artifact.kernels[0]);
  ASSERT_TRUE(kernel.ok()) << kernel.message();
  Workload run(device, artifact, 0, false, 5);
  rt::CudaPlan plan(*kernel);
  const fake::State &state = fakeState();
  ASSERT_TRUE(plan.build(run.bound.batch, run.kvStart(), nullptr).ok());
  const int allocations = state.calls.at("cuMemAlloc_v2");
  for (int i = 0; i < 5; ++i)
    ASSERT_TRUE(plan.build(run.bound.batch, run.kvStart(), nullptr).ok());
  EXPECT_EQ(state.calls.at("cuMemAlloc_v2"), allocations);
  EXPECT_EQ(state.calls.at("cuMemHostAlloc"), 1);
  // Of the two buffers the one is written whose copy is long over: nothing is waited for.
  EXPECT_EQ(state.calls.at("cuEventQuery"), 4);
  EXPECT_EQ(state.calls.count("cuEventSynchronize"), 0u);
  EXPECT_EQ(plan.counts().waits, 0u);
}

TEST_F(Cuda, NothingScheduledLaunchesNothing) {
  const Artifact artifact = gpuArtifact();
  Result<rt::CudaKernel> kernel = rt::CudaKernel::load(device, artifact, artifact.kernels[0]);
  ASSERT_TRUE(kernel.ok()) << kernel.message();
  Workload run(device, artifact, 0, false, 5);
  rt::CudaPlan plan(*kernel);
  EXPECT_EQ(kernel->launch(plan, run.operands, nullptr).message(),
            "the plan was not built for kernel 'tiny'");
  Batch batch = run.bound.batch;
  for (int64_t &start : batch.shape.queryStartLoc)
    start = 0;
  ASSERT_TRUE(plan.build(batch, run.kvStart(), nullptr).ok());
  EXPECT_TRUE(kernel->launch(plan, run.operands, nullptr).ok());
  EXPECT_TRUE(fakeState().launches.empty());
}

TEST_F(Cuda, PlansBelongToTheirDevice) {
  fakeState().devices = 2;
  std::shared_ptr<const rt::CudaDevice> second = open(1), again = open(0);
  const Artifact artifact = gpuArtifact();
  auto load = [&](const std::shared_ptr<const rt::CudaDevice> &where) {
    return rt::CudaKernel::load(where, artifact, artifact.kernels[0]);
  };
  Result<rt::CudaKernel> here = load(device), there = load(second), same = load(again);
  ASSERT_TRUE(here && there && same);
  Workload run(device, artifact, 0, false, 5);
  rt::CudaPlan plan(*here);
  ASSERT_TRUE(plan.build(run.bound.batch, run.kvStart(), nullptr).ok());
  EXPECT_EQ(there->launch(plan, run.operands, nullptr).message(),
            "the plan was built on another GPU than kernel 'tiny' was loaded on");
  EXPECT_TRUE(fakeState().launches.empty());
  EXPECT_TRUE(same->launch(plan, run.operands, nullptr).ok());
}

TEST_F(Cuda, OperandsThatCannotBeTakenAreRefused) {
  const Artifact artifact = gpuArtifact();
  Result<rt::CudaKernel> kernel = rt::CudaKernel::load(device, artifact, artifact.kernels[0]);
  ASSERT_TRUE(kernel.ok()) << kernel.message();
  Workload flat(device, artifact, 0, false, 8), paged(device, artifact, 16, false, 8);
  rt::CudaPlan flatPlan(*kernel), pagedPlan(*kernel);
  ASSERT_TRUE(flatPlan.build(flat.bound.batch, flat.kvStart(), nullptr).ok());
  ASSERT_TRUE(pagedPlan.build(paged.bound.batch, nullptr, nullptr).ok());
  ASSERT_GT(paged.bound.batch.shape.numReqs(), 1);
  auto message = [&](bool isPaged, auto change) {
    rt::CudaOperands operands = isPaged ? paged.operands : flat.operands;
    change(operands);
    Status status = kernel->launch(isPaged ? pagedPlan : flatPlan, operands, nullptr);
    return status ? std::string("launched") : status.message();
  };
  using Operands = rt::CudaOperands;
  EXPECT_EQ(message(false, [](Operands &) {}), "launched");
  EXPECT_EQ(message(true, [](Operands &) {}), "launched");
  EXPECT_EQ(message(false, [](Operands &o) { o.q.tokenStride = 260; }),
            "q: token stride of 260 elements, expected a positive multiple of 8 below 2^39");
  EXPECT_EQ(message(false, [](Operands &o) { o.q.headStride = -64; }),
            "q: head stride of -64 elements, expected a positive multiple of 8 below 2^39");
  EXPECT_EQ(message(false, [](Operands &o) { o.k.slotStride = int64_t(1) << 39; }),
            "k: slot stride of 549755813888 elements, expected a positive multiple of 8 below "
            "2^39");
  EXPECT_EQ(message(true, [](Operands &o) { o.v.pageStride = 4; }),
            "v: page stride of 4 elements, expected a positive multiple of 8 below 2^39");
  EXPECT_EQ(message(false, [](Operands &o) { o.v.headStride = 65; }),
            "v: head stride of 65 elements, expected a positive multiple of 8 below 2^39");
  EXPECT_EQ(message(false, [](Operands &o) { o.k.data = 0x1008; }),
            "k: address 0x1008, expected a multiple of 16 bytes");
  EXPECT_EQ(message(false, [](Operands &o) { o.q.data = 0; }),
            "q: address 0x0, expected a multiple of 16 bytes that is not null");
  EXPECT_EQ(message(false, [](Operands &o) { o.o.data = 0x2001; }),
            "o: address 0x2001, expected a multiple of 16 bytes");
  EXPECT_EQ(message(false, [](Operands &o) { o.o.tokenStride = 12; }),
            "o: token stride of 12 elements, expected a positive multiple of 8 below 2^39");
  EXPECT_EQ(message(false, [](Operands &o) { o.lse = 2; }),
            "lse: address 0x2, expected a multiple of 4 bytes");
  EXPECT_EQ(message(false, [](Operands &o) { o.lseHeadStride = 0; }),
            "lse: head stride of 0 elements, expected at least 1");
  EXPECT_EQ(message(false, [](Operands &o) { o.counters = 0; }),
            "kernel 'tiny' counts its tiles, expected an address for them");
  const int64_t rows = flat.operands.kvRows;
  EXPECT_EQ(message(false, [&](Operands &o) { o.kvRows = rows - 1; }),
            "k and v: " + std::to_string(rows - 1) + " rows, expected at least " +
                std::to_string(rows));
  EXPECT_EQ(message(false, [&](Operands &o) { o.pageTable = paged.operands.pageTable; }),
            "the plan was built for contiguous keys, expected no page table");
  EXPECT_EQ(message(true, [](Operands &o) { o.pageTable = 0; }),
            "the plan was built for paged keys, expected a page table");
  EXPECT_EQ(message(true, [](Operands &o) { o.pageSize = 0; }),
            "page table: 0 slots a page, expected 1 to 1073741823");
  EXPECT_EQ(message(true, [](Operands &o) { o.numPages = 0; }),
            "k: 0 pages, expected 1 to 2147483647");
  EXPECT_NE(message(true, [](Operands &o) { o.pageTableStride = 1; }).find("entries a request"),
            std::string::npos);
  fakeState().failNext["cuTensorMapEncodeTiled"] = 1;
  EXPECT_EQ(message(false, [](Operands &) {}),
            "q: cuTensorMapEncodeTiled: CUDA_ERROR_INVALID_VALUE (invalid argument)");
  fakeState().failNext["cuLaunchKernel"] = 1;
  EXPECT_EQ(message(false, [](Operands &) {}),
            "cuLaunchKernel: CUDA_ERROR_INVALID_VALUE (invalid argument)");
}

// A launch takes the page sizes that the batch and the capability query take.
TEST_F(Cuda, PageSizesAreThoseOfBatches) {
  const Artifact artifact = gpuArtifact();
  Result<rt::CudaKernel> kernel = rt::CudaKernel::load(device, artifact, artifact.kernels[0]);
  ASSERT_TRUE(kernel.ok()) << kernel.message();
  Workload run(device, artifact, 16, false, 8);
  rt::CudaPlan plan(*kernel);
  ASSERT_TRUE(plan.build(run.bound.batch, nullptr, nullptr).ok());
  rt::Configuration configuration = rt::configurationOf(kernel->spec(), rt::kCudaTarget);
  for (int64_t pageSize :
       {int64_t(-16), int64_t(1), kPositionLimit - 1, kPositionLimit, 2 * kPositionLimit - 1}) {
    run.operands.pageSize = configuration.pageSize = pageSize;
    run.operands.numPages = pageSize == 1 ? 1024 : 4;
    run.operands.pageTableStride = 1024;
    const Status status = kernel->checkOperands(plan, run.operands);
    EXPECT_EQ(status.ok(), rt::isSupported(configuration)) << pageSize << status.message();
    rt::BatchInput input;
    input.pageSize = pageSize;
    const Result<rt::BoundBatch> bound = rt::bindBatch(kernel->spec(), input);
    EXPECT_EQ(!bound && bound.message().find("page_size") == 0, !rt::isSupported(configuration))
        << pageSize << bound.message();
  }
}

} // namespace
