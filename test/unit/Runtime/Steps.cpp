// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ten thousand steps of random batches on the fake driver: what is allocated, waited for and loaded
// on the way. The test counts the heap allocations of this program itself.
#include "attn-c/Engine.h"

#include "CApiTest.h"
#include "CudaWorkload.h"
#include "FakeDriver.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

using namespace attn;
using namespace attn::core;
using namespace testing_rt;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ATTN_SANITIZED 1
#elif defined(__has_feature) // Clang
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define ATTN_SANITIZED 1
#endif
#endif

#ifdef ATTN_SANITIZED
static constexpr bool kCounts = false; // allocation belongs to the sanitizer
static int64_t numAllocations = 0;
#else
static constexpr bool kCounts = true;
static thread_local int64_t numAllocations = 0;

// For every library of the program, so visible to them.
#pragma GCC visibility push(default)
extern "C" {
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);
void *malloc(size_t bytes) {
  ++numAllocations;
  return __libc_malloc(bytes);
}
void *calloc(size_t count, size_t bytes) {
  ++numAllocations;
  return __libc_calloc(count, bytes);
}
void *realloc(void *memory, size_t bytes) {
  ++numAllocations;
  return __libc_realloc(memory, bytes);
}
}
#pragma GCC visibility pop
#endif

namespace {

/// Whether the first steps are over: they make what every later step uses, here and in the driver.
bool isWarm = false;
/// For strict plans.
int64_t heapAllocations() { return isWarm ? numAllocations : 0; }

constexpr int64_t kSteps = 10000;
/// Steps until every member of a batch was given once.
constexpr int64_t kWarm = 20;
constexpr int64_t kRequests = 16, kTokens = 2048, kRanges = 64, kPageSize = 16, kWidth = 512;

/// A random batch in an engine's arrays, all of which are made once.
class Step {
public:
  Step() {
    for (int64_t i = 0; i < kRequests * kWidth; ++i)
      pages.push_back(static_cast<int32_t>(i));
  }

  void draw(Random &random) {
    requests = random.in(0, kRequests);
    numRanges = 0;
    queryStartLoc[0] = 0;
    rangeOffsets[0] = 0;
    int64_t ranges = random.in(0, kRanges);
    for (int64_t b = 0; b < requests; ++b) {
      // Decodes, short extends and prompts; some requests schedule nothing.
      const int64_t room = kTokens - queryStartLoc[b];
      const int64_t wanted = random.in(0, 2) ? random.in(0, 4) : random.in(0, 700);
      const int64_t queryLen = std::min(wanted, room);
      const int64_t seqLen = queryLen + random.in(0, kWidth * kPageSize - queryLen);
      queryStartLoc[b + 1] = static_cast<int32_t>(queryStartLoc[b] + queryLen);
      seqLens[b] = static_cast<int32_t>(seqLen);
      for (int64_t n = b + 1 == requests ? ranges : random.in(0, ranges); n > 0; --n, --ranges) {
        const int64_t start = random.in(0, std::max<int64_t>(seqLen - 1, 0));
        bounds[2 * numRanges] = static_cast<int32_t>(start);
        bounds[2 * numRanges + 1] = static_cast<int32_t>(random.in(start, start + 300));
        ++numRanges;
      }
      rangeOffsets[b + 1] = numRanges;
    }
    paged = random.in(0, 1) != 0;
    left = random.in(0, 400);
    for (float &slope : slopes)
      slope = random.in(0, 99) ? slope : random.real();
  }

  /// In the C++ API's terms; the engine's memory is used again.
  void fill(rt::BatchInput &input) const {
    input.allowPartialRanges = true;
    input.requests.resize(requests);
    for (int64_t b = 0; b < requests; ++b) {
      input.requests[b].queryLen = queryStartLoc[b + 1] - queryStartLoc[b];
      input.requests[b].seqLen = seqLens[b];
    }
    if (!input.mmRanges)
      input.mmRanges.emplace();
    input.mmRanges->ranges.resize(numRanges);
    for (int64_t i = 0; i < numRanges; ++i)
      input.mmRanges->ranges[i] = {bounds[2 * i], bounds[2 * i + 1]};
    input.mmRanges->offsets.assign(rangeOffsets, rangeOffsets + requests + 1);
    input.params.resize(2);
    input.params[0].name = "left";
    input.params[0].i = left;
    input.params[1].name = "scale";
    input.params[1].isInteger = false;
    input.params[1].f = 0.125;
    input.tables.resize(1);
    input.tables[0].name = "slopes";
    if (!input.tables[0].dense)
      input.tables[0].dense.emplace();
    input.tables[0].dense->element = ScalarType::F32;
    input.tables[0].dense->extents = {4};
    input.tables[0].dense->data = slopes;
  }

  int64_t requests = 0, numRanges = 0, left = 0;
  bool paged = false;
  int32_t queryStartLoc[kRequests + 1], seqLens[kRequests];
  int32_t bounds[2 * kRanges];
  int64_t rangeOffsets[kRequests + 1];
  float slopes[4] = {};
  std::vector<int32_t> pages;
};

class Steps : public FakeDriverTest {
protected:
  void SetUp() override {
    FakeDriverTest::SetUp();
    artifact = gpuArtifact(/*countsTiles=*/false);
    for (size_t bytes : {kTokens * 512, kTokens * 512, int64_t(1) << 20}) {
      auto created = rt::CudaMemory::create(device, bytes);
      ASSERT_TRUE(created.ok());
      memory.push_back(std::move(*created));
    }
    fakeState().emulates = fakeState().records = false;
  }
  void TearDown() override {
    memory.clear();
    FakeDriverTest::TearDown();
  }
  /// Names every kind of recipe.
  void addRecipes() {
    Recipe images, runs, splits;
    images.name = "images";
    images.source = 0;
    images.perRequest = kRanges;
    runs.name = "runs";
    runs.kind = RecipeKind::PageRuns;
    runs.pageSize = kPageSize;
    splits.name = "splits";
    splits.kind = RecipeKind::SplitPlan;
    splits.policy = SplitPolicy::Measured;
    splits.pieces = 8;
    for (KernelBinary &binary : artifact.kernels[0].binaries)
      binary.recipes = {images, runs, splits};
  }
  /// After the steps: what they cost.
  void expectNothing(int64_t allocations, int slowCalls) {
    if (kCounts) {
      EXPECT_EQ(allocations, 0);
    }
    EXPECT_EQ(slowCalls, 0);
    EXPECT_EQ(fakeState().calls.at("cuModuleLoadDataEx"), 1);
  }
  void stepsInC(int64_t steps, const std::vector<const char *> &recipes);
  rt::CudaPlanOptions options() const {
    rt::CudaPlanOptions options;
    options.limits.requests = kRequests;
    options.limits.tokens = kTokens;
    options.limits.ranges = kRanges;
    options.isStrict = true;
    options.heapAllocations = heapAllocations;
    return options;
  }
  rt::CudaOperands operands(const Step &step, const rt::BoundBatch &bound) const {
    rt::CudaOperands o;
    o.q = {memory[0].address(), 256, 64};
    o.o = {memory[1].address(), 256, 64};
    o.k = o.v = {memory[2].address(), kPageSize * 128, 128, 64};
    o.lse = memory[2].address();
    o.lseHeadStride = kTokens;
    if (step.paged) {
      o.pageTable = memory[2].address();
      o.pageTableStride = kWidth;
      o.pageSize = kPageSize;
      o.numPages = kRequests * kWidth;
    } else {
      o.kvRows = bound.kvStart.back();
    }
    return o;
  }

  Artifact artifact;
  std::vector<rt::CudaMemory> memory;
};

TEST_F(Steps, NothingIsAllocatedOrWaitedFor) {
  Result<rt::CudaKernel> kernel = rt::CudaKernel::load(device, artifact, artifact.kernels[0]);
  ASSERT_TRUE(kernel.ok()) << kernel.message();
  Result<rt::CudaPlan> plan = rt::CudaPlan::create(*kernel, options());
  ASSERT_TRUE(plan.ok()) << plan.message();
  rt::BatchBinder binder(kernel->spec());
  rt::BatchInput input;
  rt::BoundBatch bound;
  binder.reserve(bound, kRequests, kRanges);
  Step step;
  Random random(7);
  int64_t allocations = 0, launched = 0;
  int slow = 0;
  for (int64_t i = 0; i < kSteps; ++i) {
    step.draw(random);
    step.fill(input);
    isWarm = i >= kWarm;
    const int64_t before = heapAllocations();
    const int slowBefore = fake::slowCalls(fakeState());
    Status status = binder.bind(input, bound);
    if (status)
      status = plan->build(bound.batch, step.paged ? nullptr : bound.kvStart.data(), nullptr);
    if (status)
      status = kernel->launch(*plan, operands(step, bound), nullptr);
    ASSERT_TRUE(status.ok()) << "step " << i << ": " << status.message();
    launched += plan->workList().work.size > 0;
    allocations += heapAllocations() - before;
    slow += fake::slowCalls(fakeState()) - slowBefore;
  }
  expectNothing(allocations, slow);
  EXPECT_EQ(plan->counts().steps, static_cast<uint64_t>(kSteps));
  EXPECT_EQ(plan->counts().waits, 0u);
  EXPECT_GT(launched, kSteps * 3 / 4);
  EXPECT_EQ(fakeState().calls.at("cuLaunchKernel"), launched);
}

void Steps::stepsInC(int64_t steps, const std::vector<const char *> &recipes) {
  ArtifactHandle loaded(artifact);
  attn_plan_options o = {};
  o.struct_size = sizeof(o);
  o.device = "cuda";
  o.max_reqs = kRequests;
  o.max_tokens = kTokens;
  o.max_ranges = kRanges;
  o.max_pages = recipes.empty() ? 0 : kRequests * kWidth;
  o.flags = ATTN_PLAN_FIXED | ATTN_PLAN_STRICT;
  o.heap_allocations = heapAllocations;
  o.cuda_driver = kFake;
  PlanHandle plan(loaded, o);
  Step step;
  Random random(7);
  int64_t allocations = 0;
  int slow = 0;
  for (int64_t i = 0; i < steps; ++i) {
    step.draw(random);
    step.paged |= !recipes.empty();
    attn_param params[2] = {{sizeof(attn_param), "left", 0, 0, step.left, 0},
                            {sizeof(attn_param), "scale", 1, 0, 0, 0.125}};
    attn_ranges ranges = {sizeof(ranges), nullptr, step.bounds, step.rangeOffsets};
    attn_dense_table table = {};
    table.struct_size = sizeof(table);
    table.table = "slopes";
    table.data = step.slopes;
    table.element = ATTN_SCALAR_F32;
    table.rank = 1;
    table.extents[0] = 4;
    attn_batch batch = {};
    batch.struct_size = sizeof(batch);
    batch.num_reqs = step.requests;
    batch.query_start_loc = step.queryStartLoc;
    batch.seq_lens = step.seqLens;
    batch.params = params;
    batch.num_params = 2;
    batch.ranges = &ranges;
    batch.num_ranges = step.numRanges ? 1 : 0;
    batch.tables = &table;
    batch.num_tables = 1;
    batch.flags = ATTN_BATCH_ALLOW_PARTIAL_RANGES;
    if (step.paged) {
      batch.page_size = kPageSize;
      batch.block_table = step.pages.data();
      batch.block_table_stride = batch.block_table_width = kWidth;
      batch.num_pages = kRequests * kWidth;
    }
    attn_run_args args = {};
    args.struct_size = sizeof(args);
    args.q = reinterpret_cast<void *>(memory[0].address());
    args.o = reinterpret_cast<void *>(memory[1].address());
    args.k = args.v = reinterpret_cast<void *>(memory[2].address());
    args.lse = reinterpret_cast<float *>(memory[2].address());
    args.q_token_stride = args.o_token_stride = 256;
    args.q_head_stride = args.o_head_stride = args.k_head_stride = args.v_head_stride = 64;
    args.k_slot_stride = args.v_slot_stride = 128;
    args.k_page_stride = args.v_page_stride = kPageSize * 128;
    args.lse_head_stride = kTokens;
    if (step.paged) {
      args.device_block_table = reinterpret_cast<int32_t *>(memory[2].address());
      args.device_block_table_stride = kWidth;
    }
    isWarm = i >= kWarm;
    const int64_t before = heapAllocations();
    const int slowBefore = fake::slowCalls(fakeState());
    ASSERT_EQ(attn_plan_prepare(plan.handle, &batch, nullptr, nullptr), ATTN_OK) << error();
    ASSERT_EQ(attn_plan_run(plan.handle, &args, nullptr), ATTN_OK) << error();
    for (const char *name : recipes) {
      attn_recipe recipe = {};
      recipe.struct_size = sizeof(recipe);
      ASSERT_EQ(attn_plan_recipe(plan.handle, name, &recipe), ATTN_OK) << error();
    }
    allocations += heapAllocations() - before;
    slow += fake::slowCalls(fakeState()) - slowBefore;
  }
  expectNothing(allocations, slow);
  attn_step_counts counts = {};
  counts.struct_size = sizeof(counts);
  ASSERT_EQ(attn_plan_step_counts(plan.handle, &counts), ATTN_OK) << error();
  EXPECT_EQ(counts.steps, static_cast<uint64_t>(steps));
  EXPECT_EQ(counts.waits, 0u);
}

TEST_F(Steps, NothingIsAllocatedInC) { stepsInC(kSteps, {}); }

TEST_F(Steps, NothingIsAllocatedForRecipesInC) {
  addRecipes();
  stepsInC(kSteps / 5, {"images", "runs", "splits"});
}

TEST_F(Steps, NothingIsAllocatedForReplays) {
  Result<rt::CudaKernel> kernel = rt::CudaKernel::load(device, artifact, artifact.kernels[0]);
  ASSERT_TRUE(kernel.ok()) << kernel.message();
  rt::CudaPlanOptions forGraphs = options();
  forGraphs.forGraphs = true;
  Result<rt::CudaPlan> plan = rt::CudaPlan::create(*kernel, forGraphs);
  ASSERT_TRUE(plan.ok()) << plan.message();
  rt::BatchBinder binder(kernel->spec());
  rt::BatchInput input;
  rt::BoundBatch bound;
  binder.reserve(bound, kRequests, kRanges);
  Step step;
  Random random(9);
  int64_t allocations = 0;
  int slow = 0;
  for (int64_t i = 0; i < kSteps / 5; ++i) {
    step.draw(random);
    step.left = 100;
    step.fill(input);
    isWarm = i >= kWarm;
    const int64_t before = heapAllocations();
    const int slowBefore = fake::slowCalls(fakeState());
    ASSERT_TRUE(binder.bind(input, bound).ok());
    Status status = plan->build(bound.batch, nullptr, nullptr);
    ASSERT_TRUE(status.ok()) << "step " << i << ": " << status.message();
    allocations += heapAllocations() - before;
    slow += fake::slowCalls(fakeState()) - slowBefore;
  }
  expectNothing(allocations, slow);
}

TEST_F(Steps, NothingIsAllocatedForRecipes) {
  addRecipes();
  Result<rt::CudaKernel> kernel = rt::CudaKernel::load(device, artifact, artifact.kernels[0]);
  ASSERT_TRUE(kernel.ok()) << kernel.message();
  rt::BatchBinder binder(kernel->spec());
  rt::BatchInput input;
  rt::BoundBatch bound;
  binder.reserve(bound, kRequests, kRanges);
  int64_t allocations = 0, split = 0, runs = 0, ranges = 0;
  int slow = 0;
  for (bool forGraphs : {false, true}) {
    rt::CudaPlanOptions withPages = options();
    withPages.limits.pages = kRequests * kWidth;
    withPages.forGraphs = forGraphs;
    Result<rt::CudaPlan> plan = rt::CudaPlan::create(*kernel, withPages);
    ASSERT_TRUE(plan.ok()) << plan.message();
    Step step;
    Random random(10);
    for (int64_t i = 0; i < kSteps / 5; ++i) {
      step.draw(random);
      step.fill(input);
      // The second plan meets binder and driver when they are warm.
      isWarm = forGraphs || i >= kWarm;
      const int64_t before = heapAllocations();
      const int slowBefore = fake::slowCalls(fakeState());
      Status status = binder.bind(input, bound);
      if (status)
        status =
            plan->build(bound.batch, nullptr, nullptr, {}, {step.pages.data(), kWidth, kPageSize});
      ASSERT_TRUE(status.ok()) << "step " << i << ": " << status.message();
      for (const char *name : {"images", "runs", "splits"}) {
        const Result<rt::CudaRecipe> recipe = plan->recipe(name);
        ASSERT_TRUE(recipe.ok());
        split += recipe->combines.host.size > 0;
        runs += recipe->runs.host.size;
        ranges += recipe->ranges.host.size;
      }
      allocations += heapAllocations() - before;
      slow += fake::slowCalls(fakeState()) - slowBefore;
    }
  }
  expectNothing(allocations, slow);
  EXPECT_GT(split, kSteps / 20);
  EXPECT_GT(runs, kSteps);
  EXPECT_GT(ranges, kSteps);
}

/// The count counts.
TEST(StepsHeap, AllocationsAreSeen) {
  if (!kCounts)
    GTEST_SKIP() << "allocation belongs to the sanitizer";
  isWarm = true;
  const int64_t before = heapAllocations();
  std::vector<int> values(100);
  EXPECT_GE(heapAllocations(), before + (values.empty() ? 0 : 1));
}

} // namespace
