// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The GPU path on a fake driver: what is refused, what is asked of the driver, and results of an
// emulated kernel against the reference.
#include "attn/Runtime/Cuda.h"

#include "../../Device/Fake/FakeArtifact.h"
#include "FakeDriver.h"
#include "TestKernel.h"

#include "attn/Reference/Reference.h"
#include "attn/Runtime/BatchBinding.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

using namespace attn;
using namespace attn::core;
using namespace testing_rt;

namespace {

/// tinySpec in a shape that GPU kernels have.
KernelSpec gpuSpec() {
  KernelSpec spec = tinySpec();
  spec.dimQk = spec.dimV = 64;
  spec.qType = spec.kvType = DType::BF16;
  return spec;
}

/// gpuSpec with code that the fake driver loads: a cubin and PTX.
Artifact gpuArtifact(bool countsTiles = true) {
  Artifact artifact;
  artifact.compilerVersion = "test";
  artifact.kernels.emplace_back();
  Kernel &kernel = artifact.kernels[0];
  kernel.spec = gpuSpec();
  KernelBinary binary;
  binary.target = "sm_90a";
  binary.entry = "k";
  binary.tilePlan = TilePlan::Intervals;
  binary.tables = kernel.spec.program.tables;
  TableDecl rows;
  rows.name = "rows";
  rows.kind = TableKind::QueryRanges;
  for (size_t i = 0; i < binary.tables.size(); ++i)
    if (binary.tables[i].kind == TableKind::Ranges)
      rows.source = static_cast<int32_t>(i);
  binary.tables.push_back(rows);
  binary.cuda.emplace();
  binary.cuda->groups = 2;
  binary.cuda->keyTile = 64;
  binary.cuda->threads = 384;
  binary.cuda->sharedBytes = 200000;
  binary.cuda->countsTiles = countsTiles;
  const std::vector<uint8_t> image = fake::imageOf(kernel, binary);
  for (const char *format : {"cubin", "ptx"}) {
    binary.format = format;
    binary.blob = static_cast<int32_t>(artifact.blobs.size());
    artifact.blobs.push_back(image);
    kernel.binaries.push_back(binary);
  }
  return artifact;
}

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
  artifact.blobs[0] = bytesOf("built for another chip");
  EXPECT_EQ(loadMessage(artifact), "loaded ptx");
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
  EXPECT_EQ(loadMessage(artifact), "kernel 'tiny': its parameters and tables take 497 words of "
                                   "kernel arguments, expected at most 464");
  artifact = gpuArtifact();
  for (KernelBinary &binary : artifact.kernels[0].binaries)
    binary.target = "sm_100a";
  EXPECT_EQ(loadMessage(artifact), "kernel 'tiny': no code for target 'sm_90a' (the artifact has: "
                                   "sm_100a, sm_100a)");
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

/// A batch with tensors on the device and on the host.
class Workload {
public:
  /// `pageSize` 0: contiguous. `headMajor`: slots inside heads.
  Workload(std::shared_ptr<const rt::CudaDevice> device, const Artifact &artifact, int64_t pageSize,
           bool headMajor, uint64_t seed)
      : device(device), spec(artifact.kernels[0].spec), random(seed) {
    Result<rt::BoundBatch> result = rt::bindBatch(spec, input());
    EXPECT_TRUE(result.ok()) << result.message();
    bound = std::move(*result);
    tokens = bound.batch.shape.numTokens();
    problem.spec = &spec;
    problem.batch = &bound.batch;
    fill(q, tokens * spec.numHeads * 64);
    problem.q = {q.data(), spec.qType, spec.numHeads * 64, 64};
    layOut(pageSize, headMajor);
    o.assign(tokens * spec.numHeads * 64, 0xFFFF);
    lse.assign(spec.numHeads * (tokens + 3), std::numeric_limits<float>::quiet_NaN());
    operands.q = {upload(q), spec.numHeads * 64, 64};
    operands.k = {upload(k), problem.k.pageStride, problem.k.slotStride, problem.k.headStride};
    operands.v = {upload(v), problem.v.pageStride, problem.v.slotStride, problem.v.headStride};
    operands.o = {upload(o), spec.numHeads * 64, 64};
    operands.lse = upload(lse);
    operands.lseHeadStride = tokens + 3;
    operands.kvRows = pageSize ? 0 : bound.kvStart.back();
    if (pageSize) {
      operands.pageTable = upload(pages);
      operands.pageTableStride = problem.kv.requestStride;
      operands.pageSize = pageSize;
      operands.numPages = numPages;
    }
    operands.counters = upload(std::vector<uint64_t>(3, 0));
  }

  const int64_t *kvStart() const { return operands.pageTable ? nullptr : bound.kvStart.data(); }

  /// Results against the reference; empty text when right.
  std::string compare() {
    EXPECT_TRUE(device->copyOut(o.data(), operands.o.data, o.size() * 2, nullptr).ok());
    EXPECT_TRUE(device->copyOut(lse.data(), operands.lse, lse.size() * 4, nullptr).ok());
    const reference::Output want = reference::run(problem);
    for (int64_t t = 0; t < tokens; ++t)
      for (int64_t h = 0; h < spec.numHeads; ++h) {
        const int64_t row = (t * spec.numHeads + h) * 64;
        double distance = 0, norm = 0;
        for (int64_t d = 0; d < 64; ++d) {
          const double got = loadElement(o.data(), spec.qType, row + d);
          distance += (got - want.o[row + d]) * (got - want.o[row + d]);
          norm += want.o[row + d] * want.o[row + d];
        }
        const std::string place = "token " + std::to_string(t) + " head " + std::to_string(h);
        if (!(std::sqrt(distance) <= 8e-3 * std::sqrt(norm)))
          return place + ": error " + std::to_string(std::sqrt(distance / norm));
        const double got = lse[h * (tokens + 3) + t], wanted = want.lse[h * tokens + t];
        if (got != wanted && !(std::abs(got - wanted) <= 1e-3))
          return place + ": lse " + std::to_string(got) + ", expected " + std::to_string(wanted);
      }
    for (int64_t h = 0; h < spec.numHeads; ++h)
      for (int64_t t = tokens; t < tokens + 3; ++t)
        if (!std::isnan(lse[h * (tokens + 3) + t]))
          return "lse written past its tokens";
    return "";
  }

  TileCounters counters() {
    TileCounters result{};
    EXPECT_TRUE(device->copyOut(&result, operands.counters, sizeof(result), nullptr).ok());
    return result;
  }

  std::shared_ptr<const rt::CudaDevice> device;
  const KernelSpec &spec;
  rt::BoundBatch bound;
  rt::CudaOperands operands;

private:
  rt::BatchInput input() {
    rt::BatchInput in;
    in.allowPartialRanges = true;
    in.mmRanges.emplace();
    in.mmRanges->offsets = {0};
    for (int64_t b = random.in(1, 4); b > 0; --b) {
      rt::RequestInput request;
      request.queryLen = random.in(0, 3) ? random.in(1, 150) : 0;
      request.seqLen = random.in(0, 4) ? request.queryLen + random.in(0, 90) : random.in(0, 20);
      in.requests.push_back(request);
      if (request.seqLen > 5)
        in.mmRanges->ranges.push_back({random.in(0, 3), random.in(4, request.seqLen - 1)});
      in.mmRanges->offsets.push_back(static_cast<int64_t>(in.mmRanges->ranges.size()));
    }
    for (const ParamDecl &decl : spec.program.params) {
      rt::ParamInput param;
      param.name = decl.name;
      param.isInteger = decl.type != ScalarType::F32;
      param.i = random.in(0, 60);
      param.f = 0.125;
      in.params.push_back(param);
    }
    rt::TableInput slopes;
    slopes.name = "slopes";
    slopes.dense.emplace();
    slopes.dense->element = ScalarType::F32;
    slopes.dense->extents = {spec.numHeads};
    // Every other element: the device gets them without the gaps.
    slopes.dense->strides = {2};
    for (int64_t h = 0; h < spec.numHeads; ++h)
      for (float value : {0.01f * static_cast<float>(h), 1e30f}) {
        const unsigned char *bytes = reinterpret_cast<const unsigned char *>(&value);
        slopes.dense->owned.insert(slopes.dense->owned.end(), bytes, bytes + 4);
      }
    in.tables.push_back(std::move(slopes));
    return in;
  }

  void fill(std::vector<uint16_t> &tensor, int64_t elements) {
    tensor.resize(elements);
    for (int64_t i = 0; i < elements; ++i)
      storeElement(tensor.data(), DType::BF16, i, random.real());
  }

  /// Slots that hold no key are NaN, table entries past the live pages junk.
  void layOut(int64_t pageSize, bool headMajor) {
    int64_t slots = std::max<int64_t>(bound.kvStart.back(), 1);
    if (pageSize) {
      slots = pageSize;
      int64_t width = 2;
      for (int64_t length : bound.batch.shape.seqLen)
        width = std::max(width, rt::livePages(length, pageSize) + 2);
      for (int64_t length : bound.batch.shape.seqLen)
        for (int64_t i = 0; i < width; ++i)
          pages.push_back(i < rt::livePages(length, pageSize) ? static_cast<int32_t>(numPages++)
                          : i % 2                             ? -7
                                                              : 1 << 30);
      numPages = std::max<int64_t>(numPages, 1);
      problem.kv.pageTable = pages.data();
      problem.kv.requestStride = width;
      problem.kv.pageSize = pageSize;
    } else {
      numPages = 1;
      problem.kv.kvStart = bound.kvStart.data();
    }
    const int64_t page = slots * spec.numKvHeads * 64;
    for (auto *part : {&k, &v}) {
      part->assign(numPages * page, 0xFFFF);
      KvView &view = part == &k ? problem.k : problem.v;
      view = {part->data(), spec.kvType, page, headMajor ? 64 : spec.numKvHeads * 64,
              headMajor ? slots * 64 : 64};
      for (int64_t b = 0; b < bound.batch.shape.numReqs(); ++b)
        for (int64_t key = 0; key < bound.batch.shape.seqLen[b]; ++key)
          for (int64_t h = 0; h < spec.numKvHeads; ++h)
            for (int64_t d = 0; d < 64; ++d)
              storeElement(part->data(), DType::BF16, view.offset(problem.kv, b, key, h) + d,
                           random.real());
    }
  }

  template <class T>
  rt::CudaPointer upload(const std::vector<T> &values) {
    Result<rt::CudaMemory> created = rt::CudaMemory::create(device, values.size() * sizeof(T));
    EXPECT_TRUE(created.ok());
    EXPECT_TRUE(
        device->copyIn(created->address(), values.data(), values.size() * sizeof(T), nullptr).ok());
    memory.push_back(std::move(*created));
    return memory.back().address();
  }

  Random random;
  int64_t tokens = 0, numPages = 0;
  std::vector<uint16_t> q, k, v, o;
  std::vector<float> lse;
  std::vector<int32_t> pages;
  Problem problem;
  std::vector<rt::CudaMemory> memory;
};

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
  // The buffer is not written while its last copy may be under way.
  EXPECT_EQ(state.calls.at("cuEventSynchronize"), 5);
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
            "page table: 0 slots a page, expected 1 to 2147483647");
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

} // namespace
