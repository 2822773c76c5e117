// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Launches captured once and replayed for other steps, on the fake driver.
#include "CudaWorkload.h"
#include "FakeDriver.h"

#include "attn/Core/IntMath.h"

#include <gtest/gtest.h>

#include <random>

using namespace attn;
using namespace attn::core;
using namespace testing_rt;

namespace {

/// The driver's functions that engines call and the library does not.
struct Graphs {
  template <class... Args>
  static int call(const char *symbol, Args... args) {
    void *library = dlopen(kFake, RTLD_NOW);
    return reinterpret_cast<int (*)(Args...)>(dlsym(library, symbol))(args...);
  }
};

/// A graph of what `enqueue(stream)` enqueues.
class Graph {
public:
  template <class Enqueue>
  explicit Graph(Enqueue enqueue) {
    int stream = 0;
    EXPECT_EQ(Graphs::call("cuStreamBeginCapture_v2", static_cast<void *>(&stream), 0), 0);
    enqueue(&stream);
    void *graph = nullptr;
    EXPECT_EQ(Graphs::call("cuStreamEndCapture", static_cast<void *>(&stream), &graph), 0);
    EXPECT_EQ(Graphs::call("cuGraphInstantiateWithFlags", &exec, graph, 0ULL), 0);
    EXPECT_EQ(Graphs::call("cuGraphDestroy", graph), 0);
  }
  Graph(const Graph &) = delete;
  ~Graph() { EXPECT_EQ(Graphs::call("cuGraphExecDestroy", exec), 0); }
  int replay() { return Graphs::call("cuGraphLaunch", exec, static_cast<void *>(nullptr)); }

private:
  void *exec = nullptr;
};

class CudaGraphs : public FakeDriverTest {
protected:
  void SetUp() override {
    FakeDriverTest::SetUp();
    artifact = gpuArtifact();
    Result<rt::CudaKernel> loaded = rt::CudaKernel::load(device, artifact, artifact.kernels[0]);
    ASSERT_TRUE(loaded.ok()) << loaded.message();
    kernel = std::make_unique<rt::CudaKernel>(std::move(*loaded));
    options.limits.requests = Room::kRequests;
    options.limits.tokens = Room::kTokens;
    options.limits.ranges = 8;
    options.forGraphs = true;
    room = std::make_unique<Room>(device);
  }
  void TearDown() override {
    room = nullptr;
    kernel = nullptr;
    FakeDriverTest::TearDown();
  }
  Status build(rt::CudaPlan &plan, const Workload &run) {
    return plan.build(run.bound.batch, run.kvStart(), nullptr);
  }

  Artifact artifact;
  std::unique_ptr<rt::CudaKernel> kernel;
  rt::CudaPlanOptions options;
  std::unique_ptr<Room> room;
};

TEST_F(CudaGraphs, ReplaysComputeTheStepBuiltLast) {
  for (int64_t pageSize : {int64_t(0), Room::kPageSize}) {
    Result<rt::CudaPlan> made = rt::CudaPlan::create(*kernel, options);
    ASSERT_TRUE(made.ok()) << made.message();
    rt::CudaPlan plan = std::move(*made);
    // Captured for whatever batch comes first, before any batch with ranges, say.
    Workload first(device, artifact, pageSize, false, 1, room.get());
    ASSERT_TRUE(build(plan, first).ok());
    Graph graph([&](void *stream) {
      EXPECT_TRUE(kernel->launch(plan, first.operands, stream).ok());
      // A step cannot be captured with it.
      EXPECT_EQ(plan.build(first.bound.batch, first.kvStart(), stream).message(),
                "the stream is being captured; a step is built before, and launched in a graph");
    });
    for (uint64_t seed = 2; seed < 40; ++seed) {
      SCOPED_TRACE(seed);
      Workload run(device, artifact, pageSize, false, seed, room.get());
      if (seed == 30) // nothing of it lies in a range
        for (TableData &table : run.bound.batch.tables) {
          table.ranges.clear();
          std::fill(table.rangeOffsets.begin(), table.rangeOffsets.end(), 0);
        }
      ASSERT_TRUE(build(plan, run).ok());
      const int launches = static_cast<int>(fakeState().launches.size());
      ASSERT_EQ(graph.replay(), 0) << fakeState().fault;
      EXPECT_EQ(static_cast<int>(fakeState().launches.size()), launches);
      ASSERT_EQ(run.compare(), "");
      // The same as a launch that is not captured.
      run.upload();
      ASSERT_TRUE(kernel->launch(plan, run.operands, nullptr).ok());
      ASSERT_EQ(run.compare(), "");
    }
  }
}

/// What a part has to do differs from step to step, so a graph of it would be wrong.
TEST_F(CudaGraphs, PartsAreNotCaptured) {
  options.limits.cuts = 1;
  Result<rt::CudaPlan> plan = rt::CudaPlan::create(*kernel, options);
  ASSERT_TRUE(plan.ok()) << plan.message();
  Workload run(device, artifact, 0, false, 3, room.get());
  const int64_t tokens = run.bound.batch.shape.numTokens();
  const std::vector<int64_t> cuts = {tokens / 2};
  ASSERT_TRUE(plan->build(run.bound.batch, run.kvStart(), nullptr, cuts).ok());
  rt::CudaOperands part = run.operands;
  part.tokens = {tokens / 2, tokens};
  Graph graph([&](void *stream) {
    EXPECT_EQ(kernel->launch(*plan, part, stream).message(),
              "a launch of some tokens is not captured: replays do the work of all tokens of a "
              "later step");
    EXPECT_TRUE(kernel->launch(*plan, run.operands, stream).ok());
  });
  ASSERT_EQ(graph.replay(), 0);
  EXPECT_EQ(run.compare(), "");
  run.upload();
  EXPECT_TRUE(kernel->launch(*plan, part, nullptr).ok());
  part.tokens = {0, tokens / 2};
  EXPECT_TRUE(kernel->launch(*plan, part, nullptr).ok());
  EXPECT_EQ(run.compare(), "");
}

/// What a host knows of a batch of which the device alone knows some lengths; those rows lie
/// outside of the ranges.
static Batch withBounds(const Batch &batch, std::mt19937 &rng) {
  Batch view = batch;
  BatchShape &shape = view.shape;
  shape.leastSeqLen = shape.mostSeqLen = shape.seqLen;
  for (int64_t b = 0; b < shape.numReqs(); ++b) {
    const int64_t queries = shape.queryLen(RequestIndex(b));
    if (queries == 0 || shape.seqLen[b] <= queries || rng() % 4 == 0)
      continue;
    // Inside of a page, so that the page table has what the longest takes.
    const int64_t most =
        std::min<int64_t>(shape.seqLen[b] + rng() % 9, roundUp(shape.seqLen[b], Room::kPageSize));
    const int64_t least = std::max<int64_t>(queries, shape.seqLen[b] - rng() % 40);
    bool reaches = false;
    const TableData &mm = view.tables[0];
    for (int64_t r = mm.rangeOffsets[b]; r < mm.rangeOffsets[b + 1]; ++r)
      reaches |= mm.ranges[r].start < most && mm.ranges[r].end >= least - queries;
    if (reaches)
      continue;
    shape.leastSeqLen[b] = least;
    shape.mostSeqLen[b] = shape.seqLen[b] = shape.keyEnd[b] = most;
    shape.contextLen[b] = most - queries;
  }
  return view;
}

TEST_F(CudaGraphs, ReplaysReadLengthsOnTheDevice) {
  options.limits.slack = 48;
  const rt::CudaMemory lengths = [&] {
    Result<rt::CudaMemory> memory = rt::CudaMemory::create(device, 64);
    EXPECT_TRUE(memory.ok());
    return std::move(*memory);
  }();
  int64_t bounded = 0;
  for (int64_t pageSize : {int64_t(0), Room::kPageSize}) {
    Result<rt::CudaPlan> made = rt::CudaPlan::create(*kernel, options);
    ASSERT_TRUE(made.ok()) << made.message();
    rt::CudaPlan plan = std::move(*made);
    Workload first(device, artifact, pageSize, false, 1, room.get());
    ASSERT_TRUE(build(plan, first).ok());
    rt::CudaOperands operands = first.operands;
    operands.seqLens = lengths.address();
    Graph graph([&](void *stream) { EXPECT_TRUE(kernel->launch(plan, operands, stream).ok()); });
    for (uint64_t seed = 2; seed < 60; ++seed) {
      SCOPED_TRACE(seed);
      Workload run(device, artifact, pageSize, false, seed, room.get());
      std::mt19937 rng(static_cast<unsigned>(seed));
      const Batch view = withBounds(run.bound.batch, rng);
      for (int64_t b = 0; b < view.shape.numReqs(); ++b)
        bounded += view.shape.isBound(b);
      const Status built = plan.build(view, run.kvStart(), nullptr);
      ASSERT_TRUE(built.ok()) << built.message();
      const std::vector<int32_t> exact(run.bound.batch.shape.seqLen.begin(),
                                       run.bound.batch.shape.seqLen.end());
      ASSERT_TRUE(device->copyIn(lengths.address(), exact.data(), exact.size() * 4, nullptr).ok());
      ASSERT_EQ(graph.replay(), 0) << fakeState().fault;
      ASSERT_EQ(run.compare(), "");
    }
  }
  EXPECT_GT(bounded, 40);
}

TEST_F(CudaGraphs, LengthsThatGraphsDoNotReadAreRefused) {
  options.limits.slack = 8;
  Result<rt::CudaPlan> made = rt::CudaPlan::create(*kernel, options);
  ASSERT_TRUE(made.ok()) << made.message();
  rt::CudaPlan &plan = *made;
  Workload run(device, artifact, 0, false, 3, room.get());
  Batch bound = run.bound.batch;
  bound.tables[0].ranges.clear();
  std::fill(bound.tables[0].rangeOffsets.begin(), bound.tables[0].rangeOffsets.end(), 0);
  bound.shape.leastSeqLen = bound.shape.mostSeqLen = bound.shape.seqLen;
  bound.shape.mostSeqLen[0] += 9;
  EXPECT_EQ(plan.build(bound, run.kvStart(), nullptr).message(),
            "the step has 9 keys between the lengths a request may have, the plan was made for 8");
  EXPECT_EQ(plan.fault(), rt::CudaStepFault::TooLarge);
  bound.shape.mostSeqLen[0] -= 1;
  ASSERT_TRUE(plan.build(bound, run.kvStart(), nullptr).ok());
  EXPECT_EQ(kernel->launch(plan, run.operands, nullptr).message(),
            "seq_lens: the step has requests whose length the device alone knows, expected the "
            "address of the lengths");
  rt::CudaOperands odd = run.operands;
  odd.seqLens = 0x1002;
  EXPECT_EQ(kernel->launch(plan, odd, nullptr).message(),
            "seq_lens: address 0x1002, expected a multiple of 4 bytes");
  ASSERT_TRUE(build(plan, run).ok());
  Graph graph([&](void *stream) { EXPECT_TRUE(kernel->launch(plan, run.operands, stream).ok()); });
  EXPECT_EQ(
      plan.build(bound, run.kvStart(), nullptr).message(),
      "seq_lens: the step has requests whose length the device alone knows, captured launches "
      "have no lengths on the device");
  EXPECT_EQ(plan.fault(), rt::CudaStepFault::Captured);
}

TEST_F(CudaGraphs, ReplaysThatAreLate) {
  Result<rt::CudaPlan> made = rt::CudaPlan::create(*kernel, options);
  ASSERT_TRUE(made.ok()) << made.message();
  Workload run(device, artifact, 0, false, 3, room.get());
  Workload other(device, artifact, 0, false, 4, room.get());
  ASSERT_TRUE(build(*made, other).ok());
  Graph graph([&](void *stream) { EXPECT_TRUE(kernel->launch(*made, run.operands, stream).ok()); });
  // Step, replay, step, replay ...: each replay is of the step before it, however late both are.
  run.upload();
  fakeState().lazyWork = 100;
  for (int i = 0; i < 6; ++i) {
    ASSERT_TRUE(build(*made, run).ok());
    ASSERT_EQ(graph.replay(), 0);
  }
  ASSERT_TRUE(device->synchronize(nullptr).ok());
  fakeState().lazyWork = 0;
  EXPECT_EQ(run.compare(), "");
}

TEST_F(CudaGraphs, StepsThatGraphsWouldNotSeeAreRefused) {
  Result<rt::CudaPlan> made = rt::CudaPlan::create(*kernel, options);
  ASSERT_TRUE(made.ok()) << made.message();
  rt::CudaPlan &plan = *made;
  Workload run(device, artifact, 0, false, 3, room.get());
  Workload paged(device, artifact, Room::kPageSize, false, 3, room.get());
  ASSERT_TRUE(build(plan, run).ok());
  // A launch that is not captured binds nothing.
  ASSERT_TRUE(kernel->launch(plan, run.operands, nullptr).ok());
  Batch changed = run.bound.batch;
  changed.params[0].i += 1;
  ASSERT_TRUE(plan.build(changed, run.kvStart(), nullptr).ok());
  ASSERT_TRUE(build(plan, run).ok());
  Graph graph([&](void *stream) { EXPECT_TRUE(kernel->launch(plan, run.operands, stream).ok()); });
  EXPECT_EQ(plan.build(changed, run.kvStart(), nullptr).message(),
            "param 'left': the step has 18, captured launches have 17");
  EXPECT_EQ(plan.fault(), rt::CudaStepFault::Captured);
  changed = run.bound.batch;
  changed.params[1].f = 0.5;
  EXPECT_EQ(plan.build(changed, run.kvStart(), nullptr).message(),
            "param 'scale': the step has 0.5, captured launches have 0.125");
  EXPECT_EQ(build(plan, paged).message(),
            "keys: the step has paged ones, captured launches have contiguous ones");
  std::vector<int64_t> far = run.bound.kvStart;
  far[0] = Room::kKeys;
  EXPECT_EQ(plan.build(run.bound.batch, far.data(), nullptr).message(),
            "k and v: the step needs " +
                std::to_string(Room::kKeys + run.bound.batch.shape.seqLen[0]) +
                " rows, captured launches have " + std::to_string(Room::kKeys));
  // What was refused left the step that graphs read.
  run.upload();
  EXPECT_EQ(graph.replay(), 0);
  EXPECT_EQ(run.compare(), "");
  plan.forgetGraphs();
  EXPECT_TRUE(build(plan, paged).ok());
  Graph second([&](void *stream) {
    rt::CudaOperands narrow = paged.operands;
    narrow.pageTableStride = rt::livePages(*std::max_element(paged.bound.batch.shape.seqLen.begin(),
                                                             paged.bound.batch.shape.seqLen.end()),
                                           Room::kPageSize);
    EXPECT_TRUE(kernel->launch(plan, narrow, stream).ok());
  });
  // What build() does not see.
  const int64_t numPages = paged.operands.numPages;
  EXPECT_TRUE(plan.checkPages(Room::kPageSize, numPages).ok());
  EXPECT_TRUE(plan.checkPages(Room::kPageSize, numPages - 1).ok());
  const std::string captured = "captured launches have " + std::to_string(numPages) + " of " +
                               std::to_string(Room::kPageSize);
  EXPECT_EQ(plan.checkPages(Room::kPageSize, numPages + 1).message(),
            "pages: the step has " + std::to_string(numPages + 1) + " of " +
                std::to_string(Room::kPageSize) + " slots, " + captured);
  EXPECT_EQ(plan.checkPages(Room::kPageSize / 2, numPages).message(),
            "pages: the step has " + std::to_string(numPages) + " of " +
                std::to_string(Room::kPageSize / 2) + " slots, " + captured);
  EXPECT_EQ(plan.fault(), rt::CudaStepFault::Captured);
  EXPECT_FALSE(kernel->launch(plan, paged.operands, nullptr).ok());
  EXPECT_TRUE(build(plan, paged).ok());
  Batch longer = paged.bound.batch;
  for (int64_t &length : longer.shape.seqLen)
    length = 1000;
  EXPECT_NE(plan.build(longer, nullptr, nullptr).message().find("page table: the step needs 63"),
            std::string::npos);
}

} // namespace
