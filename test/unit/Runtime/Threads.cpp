// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What several threads may do at once: every result is that of one thread. Builds with
// ATTN_SANITIZE=thread see the rest.
#include "CApiTest.h"
#include "CudaWorkload.h"
#include "FakeDriver.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <memory>
#include <thread>

using namespace attn;
using namespace testing_rt;

namespace {

constexpr int kThreads = 4;

/// work(thread) on all threads, which start together.
template <class Work>
void together(Work work) {
  std::atomic<int> ready{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (++ready; ready < kThreads;)
        std::this_thread::yield();
      work(t);
    });
  for (std::thread &thread : threads)
    thread.join();
}

/// The tensors of the batch of CApiTest.h.
struct Inputs {
  std::vector<float> q, k, v;

  Inputs() {
    Random random(51);
    for (auto [to, count] :
         {std::pair(&q, 14 * 32), std::pair(&k, 21 * 16), std::pair(&v, 21 * 12)})
      for (int i = 0; i < count; ++i)
        to->push_back(random.real());
  }
};

/// O and LSE of a run.
struct Result {
  std::vector<float> o = std::vector<float>(14 * 24, NAN), lse = std::vector<float>(4 * 14, NAN);

  attn_status run(const attn_plan *plan, const Inputs &in) {
    const attn_run_args args = tinyRunArgs(in.q, in.k, in.v, o, lse, 14);
    return attn_plan_run(plan, &args, nullptr);
  }
  bool operator==(const Result &other) const { return o == other.o && lse == other.lse; }
};

attn_plan_options cpuOptions(int threads) {
  attn_plan_options options = {};
  options.struct_size = sizeof(options);
  options.device = "cpu";
  options.max_reqs = 8;
  options.max_tokens = 64;
  options.num_threads = threads;
  return options;
}

Result resultFor(const ArtifactHandle &artifact, int left, const Inputs &in, int threads) {
  Batch batch;
  batch.params[0].i = left;
  const PlanHandle plan(artifact, cpuOptions(threads));
  Result result;
  EXPECT_EQ(attn_plan_prepare(plan.handle, &batch.batch, nullptr, nullptr), ATTN_OK) << error();
  EXPECT_EQ(result.run(plan.handle, in), ATTN_OK) << error();
  return result;
}

TEST(Threads, PlansOfAnArtifactAreIndependent) {
  const ArtifactHandle artifact(tinyArtifact());
  const Inputs in;
  std::vector<Result> expected;
  for (int left = 0; left < kThreads; ++left)
    expected.push_back(resultFor(artifact, left, in, 1));
  EXPECT_FALSE(expected[0] == expected[1]);
  together([&](int t) {
    for (int round = 0; round < 50; ++round)
      EXPECT_TRUE(resultFor(artifact, t, in, 1 + round % 3) == expected[t]) << t;
  });
}

TEST(Threads, RunsOfAPlanMayOverlap) {
  const ArtifactHandle artifact(tinyArtifact());
  const Inputs in;
  const Result expected = resultFor(artifact, 2, in, 1);
  const Batch batch;
  for (int threads : {1, 2}) {
    const PlanHandle plan(artifact, cpuOptions(threads));
    ASSERT_EQ(attn_plan_prepare(plan.handle, &batch.batch, nullptr, nullptr), ATTN_OK) << error();
    together([&](int t) {
      for (int round = 0; round < 500; ++round) {
        Result result;
        EXPECT_EQ(result.run(plan.handle, in), ATTN_OK) << error();
        EXPECT_TRUE(result == expected) << t;
      }
    });
  }
}

using ThreadsCuda = FakeDriverTest;

// Each thread has batches and a plan of its own.
TEST_F(ThreadsCuda, ShareAKernel) {
  const core::Artifact artifact = gpuArtifact(false);
  core::Result<rt::CudaKernel> kernel = rt::CudaKernel::load(device, artifact, artifact.kernels[0]);
  ASSERT_TRUE(kernel.ok()) << kernel.message();
  together([&](int t) {
    rt::CudaPlan plan(*kernel);
    for (int round = 0; round < 3; ++round) {
      Workload work(device, artifact, round % 2 ? 16 : 0, false, 10 * t + round);
      core::Status status = plan.build(work.bound.batch, work.kvStart(), nullptr);
      if (status)
        status = kernel->launch(plan, work.operands, nullptr);
      EXPECT_TRUE(status.ok()) << status.message();
      EXPECT_EQ(work.compare(), "") << t;
    }
  });
}

// Every launch hands over the arguments of its own plan.
TEST_F(ThreadsCuda, LaunchSideBySide) {
  constexpr int kLaunches = 16000; // so many that two meet in the same line
  const core::Artifact artifact = gpuArtifact(false);
  core::Result<rt::CudaKernel> kernel = rt::CudaKernel::load(device, artifact, artifact.kernels[0]);
  ASSERT_TRUE(kernel.ok()) << kernel.message();
  std::vector<std::unique_ptr<Workload>> works;
  for (int t = 0; t < kThreads; ++t)
    works.push_back(std::make_unique<Workload>(device, artifact, 0, false, t));
  fakeState().emulates = false;
  together([&](int t) {
    rt::CudaPlan plan(*kernel);
    core::Status status = plan.build(works[t]->bound.batch, works[t]->kvStart(), nullptr);
    for (int i = 0; status && i < kLaunches; ++i)
      status = kernel->launch(plan, works[t]->operands, nullptr);
    EXPECT_TRUE(status.ok()) << status.message();
  });
  EXPECT_EQ(fakeState().launches.size(), static_cast<size_t>(kThreads * kLaunches));
  for (const auto &work : works) {
    int64_t mine = 0;
    for (const fake::Launch &launch : fakeState().launches)
      mine += launch.words[core::kCudaO] == static_cast<int64_t>(work->operands.o.data) &&
              launch.words[core::kCudaLse] == static_cast<int64_t>(work->operands.lse) &&
              launch.words[core::kCudaLseHeadStride] == work->operands.lseHeadStride;
    EXPECT_EQ(mine, kLaunches);
  }
}

TEST_F(ThreadsCuda, LoadAndDropKernels) {
  const core::Artifact artifact = gpuArtifact(false);
  together([&](int) {
    for (int round = 0; round < 5; ++round) {
      core::Result<rt::CudaKernel> kernel =
          rt::CudaKernel::load(device, artifact, artifact.kernels[0]);
      EXPECT_TRUE(kernel.ok()) << kernel.message();
    }
  });
}

} // namespace
