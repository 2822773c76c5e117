// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The memory of steps: its size, who owns it, what goes into it, what is refused, and that no copy
// reads what the next step writes.
#include "attn/Runtime/CudaStage.h"

#include "CudaWorkload.h"
#include "FakeDriver.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

using namespace attn;
using namespace attn::core;
using namespace testing_rt;

namespace {

rt::CudaPlanOptions roomOptions() {
  rt::CudaPlanOptions options;
  options.limits.requests = Room::kRequests;
  options.limits.tokens = Room::kTokens;
  options.limits.ranges = 8;
  return options;
}

class CudaStage : public FakeDriverTest {
protected:
  void SetUp() override {
    FakeDriverTest::SetUp();
    artifact = gpuArtifact();
    Result<rt::CudaKernel> loaded = rt::CudaKernel::load(device, artifact, artifact.kernels[0]);
    ASSERT_TRUE(loaded.ok()) << loaded.message();
    kernel = std::make_unique<rt::CudaKernel>(std::move(*loaded));
  }
  void TearDown() override {
    kernel = nullptr;
    FakeDriverTest::TearDown();
  }

  rt::CudaPlan makePlan(const rt::CudaPlanOptions &options) {
    Result<rt::CudaPlan> plan = rt::CudaPlan::create(*kernel, options);
    EXPECT_TRUE(plan.ok()) << plan.message();
    return std::move(*plan);
  }
  Status build(rt::CudaPlan &plan, const Workload &run) {
    return plan.build(run.bound.batch, run.kvStart(), nullptr);
  }

  Artifact artifact;
  std::unique_ptr<rt::CudaKernel> kernel;
};

TEST_F(CudaStage, MemoryIsTakenOnceAsQueried) {
  rt::CudaPlanOptions options = roomOptions();
  const Result<rt::CudaStageSizes> sizes =
      rt::CudaPlan::querySizes(kernel->spec(), kernel->binary(), options);
  ASSERT_TRUE(sizes.ok());
  {
    rt::CudaPlan plan = makePlan(options);
    const fake::State &state = fakeState();
    ASSERT_EQ(state.memory.size(), 1u);
    ASSERT_EQ(state.pinned.size(), 1u);
    EXPECT_EQ(state.memory.begin()->second, sizes->deviceBytes);
    EXPECT_EQ(state.pinned.begin()->second, sizes->hostBytes);
    for (uint64_t seed = 0; seed < 20; ++seed) {
      Workload run(device, artifact, seed % 2 ? 16 : 0, false, seed);
      const int slow = fake::slowCalls(state);
      ASSERT_TRUE(build(plan, run).ok());
      ASSERT_TRUE(kernel->launch(plan, run.operands, nullptr).ok());
      EXPECT_EQ(fake::slowCalls(state), slow);
      ASSERT_EQ(run.compare(), "");
    }
    EXPECT_EQ(plan.counts().steps, 20u);
    EXPECT_EQ(plan.counts().waits, 0u);
  }
  // The size follows the tokens, not the lengths of requests.
  options.limits.keys = 1 << 20;
  EXPECT_EQ(rt::CudaPlan::querySizes(kernel->spec(), kernel->binary(), options)->deviceBytes,
            sizes->deviceBytes);
  // One buffer on the device where launches are captured.
  options.forGraphs = true;
  EXPECT_EQ(rt::CudaPlan::querySizes(kernel->spec(), kernel->binary(), options)->deviceBytes,
            sizes->deviceBytes / 2);
}

TEST_F(CudaStage, MemoryOfTheCallers) {
  rt::CudaPlanOptions options = roomOptions();
  const rt::CudaStageSizes sizes =
      *rt::CudaPlan::querySizes(kernel->spec(), kernel->binary(), options);
  auto pinned = rt::CudaPinned::create(device, sizes.hostBytes);
  auto memory = rt::CudaMemory::create(device, sizes.deviceBytes);
  ASSERT_TRUE(pinned.ok() && memory.ok());
  options.workspace = {pinned->data(), sizes.hostBytes, memory->address(), sizes.deviceBytes};
  auto message = [&](auto change) {
    rt::CudaPlanOptions changed = options;
    change(changed.workspace);
    return rt::CudaPlan::create(*kernel, changed).message();
  };
  using Memory = rt::CudaWorkspace;
  EXPECT_EQ(message([](Memory &m) { --m.hostBytes; }),
            "workspace: " + std::to_string(sizes.hostBytes - 1) + " bytes on the host, expected " +
                std::to_string(sizes.hostBytes));
  EXPECT_EQ(message([](Memory &m) { m.deviceBytes = 7; }),
            "workspace: 7 bytes on the device, expected " + std::to_string(sizes.deviceBytes));
  EXPECT_EQ(message([](Memory &m) { m.device += 64; }),
            "workspace: memory that is not aligned to 256 bytes");
  EXPECT_EQ(message([](Memory &m) { m.device = 0; }), "workspace: no memory on the device");
  EXPECT_EQ(message([](Memory &m) { m.host = nullptr; }), "workspace: no memory on the host");

  rt::CudaPlan plan = makePlan(options);
  EXPECT_EQ(fakeState().memory.size(), 1u);
  Workload run(device, artifact, 0, false, 3);
  ASSERT_TRUE(build(plan, run).ok());
  ASSERT_TRUE(kernel->launch(plan, run.operands, nullptr).ok());
  EXPECT_EQ(run.compare(), "");
  // Everything the kernel reads of the plan lies there.
  for (int64_t word :
       {kCudaWork, kCudaTiles, kCudaEntries, kCudaVisible, kCudaClaims, kCudaListSize}) {
    const auto address = static_cast<uint64_t>(fakeState().launches.back().words[word]);
    EXPECT_GE(address, memory->address());
    EXPECT_LT(address, memory->address() + sizes.deviceBytes);
  }
}

TEST_F(CudaStage, OversizedStepsNameBothNumbers) {
  Workload run(device, artifact, 0, false, 4);
  const BatchShape &shape = run.bound.batch.shape;
  ASSERT_GT(shape.numReqs(), 1);
  ASSERT_FALSE(run.bound.batch.tables[0].ranges.empty());
  auto message = [&](auto change) {
    rt::CudaPlanOptions options = roomOptions();
    change(options.limits);
    rt::CudaPlan plan = makePlan(options);
    Status status = build(plan, run);
    EXPECT_EQ(plan.fault(), status ? rt::CudaStepFault::None : rt::CudaStepFault::TooLarge);
    if (!status) {
      EXPECT_EQ(kernel->launch(plan, run.operands, nullptr).message(),
                "the plan was not built for kernel 'tiny'");
    }
    return status ? std::string("built") : status.message();
  };
  using Limits = rt::StepLimits;
  const std::string requests = std::to_string(shape.numReqs());
  const std::string tokens = std::to_string(shape.numTokens());
  const std::string ranges = std::to_string(run.bound.batch.tables[0].ranges.size());
  EXPECT_EQ(message([](Limits &) {}), "built");
  EXPECT_EQ(message([&](Limits &l) { l.requests = shape.numReqs(); }), "built");
  EXPECT_EQ(message([&](Limits &l) { l.tokens = shape.numTokens(); }), "built");
  EXPECT_EQ(message([](Limits &l) { l.requests = 1; }),
            "the step has " + requests + " requests, the plan was made for 1");
  EXPECT_EQ(message([](Limits &l) { l.tokens = 5; }),
            "the step has " + tokens + " tokens, the plan was made for 5");
  EXPECT_EQ(message([](Limits &l) { l.ranges = 0; }),
            "the step has " + ranges + " ranges in a table, the plan was made for 0");
  rt::CudaPlan uncut = makePlan(roomOptions());
  EXPECT_EQ(
      uncut.build(run.bound.batch, run.kvStart(), nullptr, std::vector<int64_t>{1, 2}).message(),
      "the step has 2 cuts, the plan was made for 0");
  EXPECT_EQ(uncut.fault(), rt::CudaStepFault::TooLarge);
  rt::CudaPlanOptions options = roomOptions();
  options.limits.tokens = -1;
  EXPECT_EQ(rt::CudaPlan::create(*kernel, options).message(),
            "step limits: -1 tokens, expected 0 to 2147483647");
}

TEST_F(CudaStage, FieldsSayWhereTheyLive) {
  rt::CudaPlan plan = makePlan(roomOptions());
  std::map<std::string, std::pair<rt::FieldHome, size_t>> fields;
  for (const rt::CudaField &field : plan.fields())
    fields[field.name] = {field.home, field.bytes};
  EXPECT_EQ(fields.at("table 'mm'"), std::pair(rt::FieldHome::Host, size_t(0)));
  EXPECT_EQ(fields.at("table 'slopes'"), std::pair(rt::FieldHome::Constant, size_t(16)));
  EXPECT_EQ(fields.at("table 'rows'"), std::pair(rt::FieldHome::Step, size_t(8 * Room::kTokens)));
  EXPECT_EQ(fields.at("work").first, rt::FieldHome::Step);
  EXPECT_EQ(rt::toString(rt::FieldHome::Host), "host");
  EXPECT_EQ(rt::toString(rt::FieldHome::Step), "step");
  EXPECT_EQ(rt::toString(rt::FieldHome::Constant), "constant");
}

TEST_F(CudaStage, HostFieldsAreNotCopied) {
  rt::CudaPlanOptions options = roomOptions();
  options.limits.ranges = 100000;
  rt::CudaPlan plan = makePlan(options);
  Workload run(device, artifact, 0, false, 4);
  ASSERT_TRUE(build(plan, run).ok());
  const uint64_t first = plan.counts().copiedBytes;
  ASSERT_TRUE(build(plan, run).ok());
  const uint64_t plain = plan.counts().copiedBytes - first;
  // As many ranges again as the whole step has bytes, past every query: rows stay as they are.
  TableData &mm = run.bound.batch.tables[0];
  const int32_t last = static_cast<int32_t>(run.bound.batch.shape.seqLen.back()) + 100;
  for (int i = 0; i < 50000; ++i)
    mm.ranges.push_back({last, last + 1});
  mm.rangeOffsets.back() = static_cast<int64_t>(mm.ranges.size());
  ASSERT_TRUE(build(plan, run).ok());
  EXPECT_EQ(plan.counts().copiedBytes - first - plain, plain);
}

TEST_F(CudaStage, ConstantsGoUpWhenTheyChange) {
  Room room(device);
  rt::CudaPlan plan = makePlan(roomOptions());
  uint64_t changes = 0;
  const float slopes[] = {0.01f, 0.01f, 0.5f, 0.5f, 0.01f, 0.25f, 0.25f, 0.25f};
  for (size_t i = 0; i < std::size(slopes); ++i) {
    SCOPED_TRACE(i);
    room.slope = slopes[i];
    changes += i == 0 || slopes[i] != slopes[i - 1];
    Workload run(device, artifact, 0, false, 40 + i, &room);
    ASSERT_TRUE(build(plan, run).ok());
    ASSERT_TRUE(kernel->launch(plan, run.operands, nullptr).ok());
    EXPECT_EQ(run.compare(), "");
    EXPECT_EQ(plan.counts().constantCopies, changes);
  }
}

/// Steps whose work is done late: whoever writes a buffer too early changes an earlier step.
TEST_F(CudaStage, CopiesNeverMeetTheNextStep) {
  std::vector<std::unique_ptr<Room>> rooms;
  std::vector<std::unique_ptr<Workload>> runs;
  for (uint64_t seed = 0; seed < 6; ++seed) {
    rooms.push_back(std::make_unique<Room>(device));
    rooms.back()->slope = 0.02f * static_cast<float>(seed / 2);
    runs.push_back(std::make_unique<Workload>(device, artifact, seed % 3 ? 16 : 0, false, seed,
                                              rooms.back().get()));
  }
  for (size_t lazy : {1, 2, 3, 5, 8, 100}) {
    SCOPED_TRACE(lazy);
    rt::CudaPlan plan = makePlan(roomOptions());
    for (const auto &run : runs)
      run->upload();
    fakeState().lazyWork = lazy;
    for (const auto &run : runs) {
      ASSERT_TRUE(build(plan, *run).ok());
      ASSERT_TRUE(kernel->launch(plan, run->operands, nullptr).ok());
    }
    ASSERT_TRUE(device->synchronize(nullptr).ok());
    fakeState().lazyWork = 0;
    for (size_t i = 0; i < runs.size(); ++i)
      EXPECT_EQ(runs[i]->compare(), "") << "step " << i;
    // Only where the stream is more than a step behind.
    if (lazy <= 3) {
      EXPECT_EQ(plan.counts().waits, 0u);
    }
    if (lazy == 100) {
      EXPECT_GT(plan.counts().waits, 0u);
    }
  }
}

TEST_F(CudaStage, StrictPlansFailInsteadOfWaiting) {
  static int64_t allocations;
  allocations = 0;
  rt::CudaPlanOptions options = roomOptions();
  options.isStrict = true;
  options.heapAllocations = [] { return allocations; };
  rt::CudaPlan plan = makePlan(options);
  Workload run(device, artifact, 0, false, 5);
  fakeState().lazyWork = 100;
  ASSERT_TRUE(build(plan, run).ok());
  ASSERT_TRUE(build(plan, run).ok());
  EXPECT_EQ(build(plan, run).message(),
            "strict: the copy of the step before the last is not over, so this step would wait for "
            "it");
  fakeState().lazyWork = 0;
  ASSERT_TRUE(device->synchronize(nullptr).ok());
  EXPECT_TRUE(build(plan, run).ok());
  options.heapAllocations = [] { return allocations++; };
  rt::CudaPlan counting = makePlan(options);
  EXPECT_EQ(build(counting, run).message(), "strict: the step made 1 heap allocations");
  EXPECT_EQ(counting.fault(), rt::CudaStepFault::Failed);
}

TEST_F(CudaStage, FailuresLeaveNoCopyUnderWay) {
  rt::CudaPlan plan = makePlan(roomOptions());
  Workload run(device, artifact, 0, false, 6);
  fakeState().lazyWork = 100;
  for (const char *symbol : {"cuMemcpyHtoDAsync_v2", "cuEventRecord", "cuStreamIsCapturing"}) {
    SCOPED_TRACE(symbol);
    const auto &calls = fakeState().calls;
    const auto before =
        calls.find("cuStreamSynchronize") == calls.end() ? 0 : calls.at("cuStreamSynchronize");
    fakeState().failNext[symbol] = 1;
    Status status = build(plan, run);
    ASSERT_FALSE(status.ok());
    EXPECT_NE(status.message().find("CUDA_ERROR_INVALID_VALUE"), std::string::npos);
    EXPECT_EQ(kernel->launch(plan, run.operands, nullptr).message(),
              "the plan was not built for kernel 'tiny'");
    // What was enqueued before the failure has left the buffer.
    if (std::string(symbol) != "cuStreamIsCapturing") {
      EXPECT_EQ(calls.at("cuStreamSynchronize"), before + 1);
    }
  }
  fakeState().lazyWork = 0;
  ASSERT_TRUE(build(plan, run).ok());
  ASSERT_TRUE(kernel->launch(plan, run.operands, nullptr).ok());
  EXPECT_EQ(run.compare(), "");
  // No memory: no plan.
  fakeState().failNext["cuMemAlloc_v2"] = 2;
  EXPECT_FALSE(rt::CudaPlan::create(*kernel, roomOptions()).ok());
  fakeState().failNext["cuEventCreate"] = 2;
  EXPECT_FALSE(rt::CudaPlan::create(*kernel, roomOptions()).ok());
}

/// A graph's plan has one copy of the constants on the device.
TEST_F(CudaStage, ConstantsAfterACopyThatFailed) {
  Room room(device);
  rt::CudaPlanOptions options = roomOptions();
  options.forGraphs = true;
  rt::CudaPlan plan = makePlan(options);
  const float slopes[] = {0.01f, 0.5f, 0.01f};
  for (size_t i = 0; i < std::size(slopes); ++i) {
    SCOPED_TRACE(i);
    room.slope = slopes[i];
    Workload run(device, artifact, 0, false, 50, &room);
    if (i == 1) {
      fakeState().failNext["cuEventRecord"] = 1;
      EXPECT_FALSE(build(plan, run).ok());
      continue;
    }
    ASSERT_TRUE(build(plan, run).ok());
    ASSERT_TRUE(kernel->launch(plan, run.operands, nullptr).ok());
    EXPECT_EQ(run.compare(), "");
  }
}

/// A growing plan that once wanted more memory than there is.
TEST_F(CudaStage, GrowingPlansForgetStepsThatDidNotFit) {
  Workload run(device, artifact, 0, false, 7);
  const auto taken = [&](rt::CudaPlan &plan) {
    const size_t before = fakeState().memory.size();
    EXPECT_TRUE(build(plan, run).ok());
    EXPECT_EQ(fakeState().memory.size(), before + 1);
    uint64_t bytes = 0;
    for (const auto &[address, size] : fakeState().memory)
      bytes += size;
    return bytes;
  };
  uint64_t expected = 0;
  {
    rt::CudaPlan plan(*kernel);
    expected = taken(plan);
  }
  rt::CudaPlan plan(*kernel);
  Batch large = run.bound.batch;
  TableData &mm = large.tables[0];
  ASSERT_FALSE(mm.rangeOffsets.empty());
  mm.ranges.resize(100000, {1, 2});
  mm.rangeOffsets.back() = static_cast<int64_t>(mm.ranges.size());
  fakeState().failNext["cuMemAlloc_v2"] = 2;
  EXPECT_FALSE(plan.build(large, run.kvStart(), nullptr).ok());
  EXPECT_EQ(taken(plan), expected);
}

} // namespace
