// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Device cuda of the C API, on the fake driver.
#include "../../Device/Fake/FakeArtifact.h"
#include "CApiTest.h"
#include "FakeDriver.h"
#include "TestKernel.h"

#include "attn/Core/Tensor.h"
#include "attn/Runtime/Cuda.h"

#include <cmath>
#include <limits>

using namespace attn;
using namespace testing_rt;

namespace {

constexpr int64_t kDim = 64, kHeads = 4, kKvHeads = 2, kTokens = 14, kKeys = 21;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// tinySpec in a shape that GPU kernels have, with code for the GPU.
core::Artifact gpuArtifact(bool countsTiles = false) {
  core::Artifact artifact = tinyArtifact();
  core::KernelSpec &spec = artifact.kernels[0].spec;
  spec.dimQk = spec.dimV = kDim;
  spec.qType = spec.kvType = core::DType::BF16;
  return fake::withFakeCode(std::move(artifact), countsTiles);
}

attn_plan_options cudaOptions() {
  attn_plan_options options = {};
  options.struct_size = sizeof(options);
  options.device = "cuda";
  options.max_reqs = 8;
  options.max_tokens = 64;
  options.cuda_driver = kFake;
  return options;
}

using CApiCuda = FakeDriverTest;

/// Where the keys of the batch lie.
struct KeyLayout {
  int64_t slots = kKeys; ///< of both tensors
  std::vector<int64_t> slotOf;

  KeyLayout() {
    for (int64_t i = 0; i < kKeys; ++i)
      slotOf.push_back(i);
  }
};

/// Tensors of the batch in device memory, and attention by definition. Slots without keys are NaN.
class Tensors {
public:
  Tensors(std::shared_ptr<const rt::CudaDevice> device, const KeyLayout &layout = KeyLayout())
      : device(std::move(device)) {
    Random random(31);
    q = fill(random, kTokens * kHeads * kDim);
    k = fill(random, kKeys * kKvHeads * kDim);
    v = fill(random, kKeys * kKvHeads * kDim);
    args.struct_size = sizeof(args);
    args.q = upload(stored(q));
    args.q_token_stride = kHeads * kDim;
    args.q_head_stride = kDim;
    args.k = upload(stored(spread(k, layout)));
    args.v = upload(stored(spread(v, layout)));
    args.k_slot_stride = args.v_slot_stride = kKvHeads * kDim;
    args.k_head_stride = args.v_head_stride = kDim;
    args.o = upload(std::vector<uint16_t>(kTokens * kHeads * kDim, 0xFFFF));
    args.o_token_stride = kHeads * kDim;
    args.o_head_stride = kDim;
    args.lse = static_cast<float *>(
        upload(std::vector<float>(kHeads * kLseStride, std::numeric_limits<float>::quiet_NaN())));
    args.lse_head_stride = kLseStride;
  }

  template <class T>
  void *upload(const std::vector<T> &values) {
    const size_t bytes = values.size() * sizeof(T);
    core::Result<rt::CudaMemory> created = rt::CudaMemory::create(device, bytes);
    EXPECT_TRUE(created.ok());
    EXPECT_TRUE(device->copyIn(created->address(), values.data(), bytes, nullptr).ok());
    memory.push_back(std::move(*created));
    return reinterpret_cast<void *>(memory.back().address());
  }

  template <class T>
  std::vector<T> download(const void *from, size_t count) const {
    std::vector<T> values(count);
    const auto address = reinterpret_cast<rt::CudaPointer>(from);
    EXPECT_TRUE(device->copyOut(values.data(), address, count * sizeof(T), nullptr).ok());
    return values;
  }

  void check(const Batch &b) const {
    const auto o = download<uint16_t>(args.o, kTokens * kHeads * kDim);
    const auto lse = download<float>(args.lse, kHeads * kLseStride);
    for (int64_t token = 0; token < kTokens; ++token)
      for (int64_t h = 0; h < kHeads; ++h) {
        double total = 0;
        const std::vector<double> want = row(b, token, h, total);
        EXPECT_NEAR(lse[h * kLseStride + token], std::log(total), 1e-3);
        for (int64_t d = 0; d < kDim; ++d) {
          const double got =
              core::loadElement(o.data(), core::DType::BF16, (token * kHeads + h) * kDim + d);
          ASSERT_NEAR(got, want[d], 1e-2 * (1 + std::abs(want[d])))
              << "token " << token << " head " << h << " column " << d;
        }
      }
  }

  attn_run_args args = {};

private:
  static constexpr int64_t kLseStride = kTokens + 2;

  static std::vector<double> fill(Random &random, int64_t count) {
    std::vector<double> values;
    for (int64_t i = 0; i < count; ++i) {
      uint16_t bits = 0;
      core::storeElement(&bits, core::DType::BF16, 0, random.real() / 4);
      values.push_back(core::loadElement(&bits, core::DType::BF16, 0));
    }
    return values;
  }

  static std::vector<uint16_t> stored(const std::vector<double> &values) {
    std::vector<uint16_t> bits(values.size());
    for (size_t i = 0; i < values.size(); ++i)
      core::storeElement(bits.data(), core::DType::BF16, static_cast<int64_t>(i),
                         static_cast<float>(values[i]));
    return bits;
  }

  static std::vector<double> spread(const std::vector<double> &keys, const KeyLayout &layout) {
    constexpr int64_t width = kKvHeads * kDim;
    std::vector<double> slots(layout.slots * width, kNaN);
    for (int64_t i = 0; i < kKeys; ++i)
      std::copy_n(&keys[i * width], width, &slots[layout.slotOf[i] * width]);
    return slots;
  }

  /// One row of O by definition, and the sum whose logarithm is its lse.
  std::vector<double> row(const Batch &b, int64_t token, int64_t h, double &total) const {
    const int request = token >= 8;
    const int64_t position = request ? 7 + token - 8 : token;
    const int64_t first = request ? 8 : 0;
    std::vector<double> sum(kDim, 0);
    for (int64_t key = 0; key < b.seqLens[request]; ++key) {
      if (!keeps(b, request, position, key))
        continue;
      const int64_t at = ((first + key) * kKvHeads + h / 2) * kDim;
      double s = 0;
      for (int64_t d = 0; d < kDim; ++d)
        s += q[(token * kHeads + h) * kDim + d] * k[at + d];
      const double p = std::exp(s * b.params[1].f - b.slopes[h] * std::abs(double(position - key)));
      total += p;
      for (int64_t d = 0; d < kDim; ++d)
        sum[d] += p * v[at + d];
    }
    for (double &value : sum)
      value /= total;
    return sum;
  }

  std::shared_ptr<const rt::CudaDevice> device;
  std::vector<double> q, k, v;
  std::vector<rt::CudaMemory> memory;
};

//===----------------------------------------------------------------------===//
// Runs
//===----------------------------------------------------------------------===//

TEST_F(CApiCuda, RunsOnTheCallersStream) {
  ArtifactHandle artifact(gpuArtifact());
  PlanHandle plan(artifact, cudaOptions());
  Batch batch;
  Tensors tensors(device);
  int stream = 0;
  ASSERT_EQ(attn_plan_prepare(plan.handle, &batch.batch, nullptr, &stream), ATTN_OK) << error();
  const auto before = fakeState().calls;
  ASSERT_EQ(attn_plan_run(plan.handle, &tensors.args, &stream), ATTN_OK) << error();
  std::map<std::string, int> calls;
  for (const auto &[symbol, count] : fakeState().calls)
    if (auto it = before.find(symbol); it == before.end() || it->second != count)
      calls[symbol] = count - (it == before.end() ? 0 : it->second);
  // Nothing that a capture forbids.
  const std::map<std::string, int> expected = {{"cuCtxPopCurrent_v2", 1},
                                               {"cuCtxPushCurrent_v2", 1},
                                               {"cuLaunchKernel", 1},
                                               {"cuTensorMapEncodeTiled", 4}};
  EXPECT_EQ(calls, expected);
  EXPECT_EQ(fakeState().launches.back().stream, &stream);
  tensors.check(batch);
}

TEST_F(CApiCuda, KeysWhereTheBatchSaysTheyAre) {
  ArtifactHandle artifact(gpuArtifact());
  PlanHandle plan(artifact, cudaOptions());
  Batch batch;
  KeyLayout layout;
  layout.slots = 40;
  for (int64_t i = 0; i < kKeys; ++i)
    layout.slotOf[i] = i < 8 ? 32 + i : 5 + i - 8;
  const int64_t starts[2] = {32, 5};
  batch.batch.kv_start = starts;
  Tensors tensors(device, layout);
  ASSERT_EQ(attn_plan_prepare(plan.handle, &batch.batch, nullptr, nullptr), ATTN_OK) << error();
  ASSERT_EQ(attn_plan_run(plan.handle, &tensors.args, nullptr), ATTN_OK) << error();
  tensors.check(batch);
}

// The host is told a bound alone; the rows are those of the length on the device.
TEST_F(CApiCuda, LengthsOnTheDevice) {
  ArtifactHandle artifact(gpuArtifact());
  PlanHandle plan(artifact, cudaOptions());
  Batch batch;
  batch.offsets[2] = batch.offsets[1]; // request 1 lies outside of every range
  const int32_t bounds[2] = {8, 20}, least[2] = {0, 8};
  const uint8_t isBound[2] = {0, 1}, prefilling[2] = {1, 0};
  batch.batch.seq_lens = bounds;
  batch.batch.seq_len_least = least;
  batch.batch.seq_len_is_bound = isBound;
  batch.batch.is_prefilling = prefilling;
  ASSERT_EQ(attn_plan_prepare(plan.handle, &batch.batch, nullptr, nullptr), ATTN_OK) << error();
  Tensors tensors(device);
  tensors.args.kv_slots = kKeys;
  const std::vector<int32_t> lengths = {-1, batch.seqLens[1]}; // one that is known is not read
  tensors.args.device_seq_lens = static_cast<const int32_t *>(tensors.upload(lengths));
  ASSERT_EQ(attn_plan_run(plan.handle, &tensors.args, nullptr), ATTN_OK) << error();
  tensors.check(batch);
}

TEST_F(CApiCuda, Pages) {
  ArtifactHandle artifact(gpuArtifact());
  PlanHandle plan(artifact, cudaOptions());
  Batch batch;
  // Pages of 4 keys: request 0 in pages 6, 1; request 1 in pages 0, 5, 3, 2; junk after them.
  const int32_t junk = 1 << 30;
  const std::vector<int32_t> table = {6, 1, junk, -7, junk, 0, 5, 3, 2, junk};
  KeyLayout layout;
  layout.slots = 7 * 4;
  for (int64_t i = 0; i < kKeys; ++i) {
    const int64_t request = i >= 8, key = request ? i - 8 : i;
    layout.slotOf[i] = int64_t(table[request * 5 + key / 4]) * 4 + key % 4;
  }
  Tensors tensors(device, layout);
  batch.batch.page_size = 4;
  batch.batch.num_pages = 7;
  tensors.args.k_page_stride = tensors.args.v_page_stride = 4 * kKvHeads * kDim;
  tensors.args.device_block_table = static_cast<const int32_t *>(tensors.upload(table));
  tensors.args.device_block_table_stride = 5;
  ASSERT_EQ(attn_plan_prepare(plan.handle, &batch.batch, nullptr, nullptr), ATTN_OK) << error();
  ASSERT_EQ(attn_plan_run(plan.handle, &tensors.args, nullptr), ATTN_OK) << error();
  tensors.check(batch);

  tensors.args.device_block_table_stride = 3;
  EXPECT_EQ(attn_plan_run(plan.handle, &tensors.args, nullptr), ATTN_INVALID_ARGUMENT);
  EXPECT_EQ(error(), "attn_run_args: page table: 3 entries a request, expected at least 4 for 13 "
                     "keys");
  tensors.args.device_block_table = nullptr;
  EXPECT_EQ(attn_plan_run(plan.handle, &tensors.args, nullptr), ATTN_INVALID_ARGUMENT);
  EXPECT_EQ(error(), "attn_run_args.device_block_table is null");
  batch.batch.num_pages = 0;
  EXPECT_EQ(attn_plan_prepare(plan.handle, &batch.batch, nullptr, nullptr), ATTN_INVALID_ARGUMENT);
  EXPECT_EQ(error(), "attn_batch: num_pages is 0, expected the pages of the cache on device "
                     "'cuda'");
  // A block table of the host is checked.
  batch.batch.num_pages = 6;
  batch.batch.block_table = table.data();
  batch.batch.block_table_stride = batch.batch.block_table_width = 5;
  EXPECT_EQ(attn_plan_prepare(plan.handle, &batch.batch, nullptr, nullptr), ATTN_INVALID_BATCH);
}

TEST_F(CApiCuda, Parts) {
  ArtifactHandle artifact(gpuArtifact());
  PlanHandle plan(artifact, cudaOptions());
  Batch batch;
  Tensors tensors(device);
  const int64_t cuts[2] = {5, 8};
  batch.batch.cuts = cuts;
  batch.batch.num_cuts = 2;
  ASSERT_EQ(attn_plan_prepare(plan.handle, &batch.batch, nullptr, nullptr), ATTN_OK) << error();
  // A request by itself, and the other in two pieces.
  for (attn_subrange part : {attn_subrange{sizeof(attn_subrange), 1, 2, 0, 14},
                             attn_subrange{sizeof(attn_subrange), 0, 1, 0, 5},
                             attn_subrange{sizeof(attn_subrange), 0, 2, 5, 8}}) {
    tensors.args.part = &part;
    ASSERT_EQ(attn_plan_run(plan.handle, &tensors.args, nullptr), ATTN_OK) << error();
  }
  EXPECT_EQ(fakeState().launches.size(), 3u);
  tensors.check(batch);
  // A part without tokens.
  attn_subrange part = {sizeof(part), 0, 1, 9, 12};
  tensors.args.part = &part;
  ASSERT_EQ(attn_plan_run(plan.handle, &tensors.args, nullptr), ATTN_OK) << error();
  EXPECT_EQ(fakeState().launches.size(), 3u);

  auto refused = [&](attn_status status) {
    EXPECT_EQ(attn_plan_prepare(plan.handle, &batch.batch, nullptr, nullptr), status);
    return error();
  };
  const int64_t descending[2] = {8, 5}, far[2] = {8, 15};
  batch.batch.cuts = descending;
  EXPECT_EQ(refused(ATTN_INVALID_BATCH), "cut 1 is at token 5, expected 8 to 14");
  batch.batch.cuts = far;
  EXPECT_EQ(refused(ATTN_INVALID_BATCH), "cut 1 is at token 15, expected 8 to 14");
  batch.batch.cuts = nullptr;
  EXPECT_EQ(refused(ATTN_INVALID_ARGUMENT), "attn_batch: cuts is null");
  batch.batch.num_cuts = -1;
  EXPECT_EQ(refused(ATTN_INVALID_ARGUMENT), "attn_batch: num_cuts is -1");
}

TEST_F(CApiCuda, TileCounts) {
  ArtifactHandle artifact(gpuArtifact(true));
  PlanHandle plan(artifact, cudaOptions());
  Batch batch;
  Tensors tensors(device);
  attn_tile_counts counts = {};
  counts.struct_size = sizeof(counts);
  EXPECT_EQ(attn_plan_tile_counts(plan.handle, &counts), ATTN_NOT_PREPARED);
  ASSERT_EQ(attn_plan_prepare(plan.handle, &batch.batch, nullptr, nullptr), ATTN_OK) << error();
  ASSERT_EQ(attn_plan_tile_counts(plan.handle, &counts), ATTN_OK) << error();
  // Every request has one query tile, one row group with rows in it, and one key block.
  EXPECT_EQ(counts.loaded, 2u * kHeads);
  EXPECT_EQ(counts.visited, 2u * kHeads);
  EXPECT_EQ(counts.full, 0u);
  EXPECT_EQ(attn_plan_run(plan.handle, &tensors.args, nullptr), ATTN_INVALID_ARGUMENT);
  EXPECT_EQ(error(), "attn_run_args: kernel 'tiny' counts its tiles, expected an address for them");
  void *counters = tensors.upload(std::vector<uint64_t>(3, 100));
  tensors.args.counters = static_cast<uint64_t *>(counters);
  ASSERT_EQ(attn_plan_run(plan.handle, &tensors.args, nullptr), ATTN_OK) << error();
  const std::vector<uint64_t> expected = {100 + counts.loaded, 100 + counts.visited, 100};
  EXPECT_EQ(tensors.download<uint64_t>(counters, 3), expected);
  tensors.check(batch);
  counts.struct_size = 8;
  EXPECT_EQ(attn_plan_tile_counts(plan.handle, &counts), ATTN_INVALID_ARGUMENT);
}

TEST_F(CApiCuda, BatchesOfNothing) {
  ArtifactHandle artifact(gpuArtifact());
  PlanHandle plan(artifact, cudaOptions());
  Batch batch;
  batch.batch.num_reqs = 0;
  ASSERT_EQ(attn_plan_prepare(plan.handle, &batch.batch, nullptr, nullptr), ATTN_OK) << error();
  attn_run_args args = {};
  args.struct_size = sizeof(args);
  EXPECT_EQ(attn_plan_run(plan.handle, &args, nullptr), ATTN_OK) << error();
  EXPECT_TRUE(fakeState().launches.empty());
}

//===----------------------------------------------------------------------===//
// Refusals
//===----------------------------------------------------------------------===//

TEST_F(CApiCuda, MachinesThatCannotSaySo) {
  ArtifactHandle artifact(gpuArtifact());
  attn_plan *plan = nullptr;
  auto refused = [&](const ArtifactHandle &from, attn_status status, auto edit) {
    attn_plan_options options = cudaOptions();
    edit(options);
    EXPECT_EQ(attn_plan_create(from.handle, &options, &plan), status);
    EXPECT_EQ(plan, nullptr);
    return error();
  };
  EXPECT_EQ(refused(artifact, ATTN_UNSUPPORTED,
                    [](attn_plan_options &o) { o.cuda_driver = "libattn-no-driver.so"; })
                .rfind("device 'cuda': no CUDA driver: libattn-no-driver.so: ", 0),
            0u);
  EXPECT_EQ(refused(artifact, ATTN_UNSUPPORTED, [](attn_plan_options &o) { o.device_ordinal = 1; }),
            "device 'cuda': no GPU 1, the driver has 1");
  EXPECT_EQ(
      refused(artifact, ATTN_INVALID_ARGUMENT, [](attn_plan_options &o) { o.num_threads = 2; }),
      "attn_plan_options.num_threads is 2, expected 0 on device 'cuda'");
  fakeState().initResult = 100;
  EXPECT_EQ(refused(artifact, ATTN_UNSUPPORTED, [](attn_plan_options &) {}),
            "device 'cuda': no usable GPU: cuInit: CUDA_ERROR_NO_DEVICE (no CUDA-capable device is "
            "detected)");
  fakeState().initResult = 0;
  fakeState().computeMajor = 10;
  EXPECT_EQ(refused(artifact, ATTN_UNSUPPORTED, [](attn_plan_options &) {}),
            "device 'cuda': kernel 'tiny': code for target 'sm_90a' needs a GPU of compute "
            "capability 9.0, 'Fake GPU' has 10.0");
  ArtifactHandle cpuOnly(tinyArtifact());
  EXPECT_EQ(refused(cpuOnly, ATTN_UNSUPPORTED, [](attn_plan_options &) {}),
            "device 'cuda': kernel 'tiny': no code for target 'sm_90a' (the artifact has: cpu)");
}

TEST_F(CApiCuda, TheOrdinalIsTheGpu) {
  fakeState().devices = 2;
  ArtifactHandle artifact(gpuArtifact());
  attn_plan_options options = cudaOptions();
  options.device_ordinal = 1;
  PlanHandle plan(artifact, options);
  EXPECT_NE(plan.handle, nullptr);
}

TEST_F(CApiCuda, WorkspacesOfAPrepareAreNotTaken) {
  ArtifactHandle artifact(gpuArtifact());
  PlanHandle plan(artifact, cudaOptions());
  const attn_plan_options options = cudaOptions();
  attn_workspace_size size = {};
  size.struct_size = sizeof(size);
  EXPECT_EQ(attn_plan_query_workspace(artifact.handle, &options, &size), ATTN_OK) << error();
  Batch batch;
  attn_workspace workspace = {};
  workspace.struct_size = sizeof(workspace);
  EXPECT_EQ(attn_plan_prepare(plan.handle, &batch.batch, &workspace, nullptr), ATTN_UNSUPPORTED);
  EXPECT_EQ(error(), "attn_workspace: device 'cuda' takes its memory when the plan is made "
                     "(attn_plan_options.workspace), expected null");
}

TEST_F(CApiCuda, RefusedPrepares) {
  ArtifactHandle artifact(gpuArtifact());
  PlanHandle plan(artifact, cudaOptions());
  Batch batch;
  const uint8_t bounds[2] = {0, 1}, prefilling[2] = {1, 0};
  const int64_t numRanges = batch.batch.num_ranges;
  batch.batch.seq_len_is_bound = bounds;
  batch.batch.is_prefilling = prefilling;
  batch.batch.num_ranges = 0;
  // With lengths on the device a run says where they are.
  EXPECT_EQ(attn_plan_prepare(plan.handle, &batch.batch, nullptr, nullptr), ATTN_OK) << error();
  Tensors bound(device);
  EXPECT_EQ(attn_plan_run(plan.handle, &bound.args, nullptr), ATTN_INVALID_ARGUMENT);
  EXPECT_EQ(error(), "attn_run_args: seq_lens: the step has requests whose length the device alone "
                     "knows, expected the address of the lengths");
  batch.batch.seq_len_is_bound = nullptr;
  batch.batch.is_prefilling = nullptr;
  batch.batch.num_ranges = numRanges;
  ASSERT_EQ(attn_plan_prepare(plan.handle, &batch.batch, nullptr, nullptr), ATTN_OK) << error();
  fakeState().failNext["cuMemcpyHtoDAsync_v2"] = 700;
  EXPECT_EQ(attn_plan_prepare(plan.handle, &batch.batch, nullptr, nullptr), ATTN_FAILED);
  EXPECT_EQ(error(), "cuMemcpyHtoDAsync: CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was "
                     "encountered)");
  Tensors tensors(device);
  EXPECT_EQ(attn_plan_run(plan.handle, &tensors.args, nullptr), ATTN_NOT_PREPARED);
}

TEST_F(CApiCuda, RefusedRuns) {
  ArtifactHandle artifact(gpuArtifact());
  PlanHandle plan(artifact, cudaOptions());
  Batch batch;
  Tensors tensors(device);
  ASSERT_EQ(attn_plan_prepare(plan.handle, &batch.batch, nullptr, nullptr), ATTN_OK) << error();
  auto refused = [&](attn_status status, const std::string &message, auto edit) {
    attn_run_args args = tensors.args;
    edit(args);
    EXPECT_EQ(attn_plan_run(plan.handle, &args, nullptr), status);
    EXPECT_EQ(error(), message);
  };
  attn_subrange part = {sizeof(part), 0, 2, 3, 10}, outside = {sizeof(outside), 0, 3, 0, 14};
  const int64_t starts[2] = {0, 8};
  const int32_t table[2] = {0, 1};
  refused(ATTN_INVALID_ARGUMENT,
          "attn_run_args: tokens [3, 10): the batch is not cut at 3 (it is at: none)",
          [&](attn_run_args &a) { a.part = &part; });
  refused(ATTN_INVALID_ARGUMENT, "attn_subrange: requests [0, 3) expected to lie in [0, 2)",
          [&](attn_run_args &a) { a.part = &outside; });
  refused(ATTN_UNSUPPORTED,
          "attn_run_args.kv_start: device 'cuda' takes attn_batch.kv_start instead, expected null",
          [&](attn_run_args &a) { a.kv_start = starts; });
  refused(ATTN_INVALID_ARGUMENT,
          "attn_run_args.device_block_table: expected null, the batch has no pages",
          [&](attn_run_args &a) { a.device_block_table = table; });
  refused(ATTN_INVALID_ARGUMENT, "attn_run_args.o is null",
          [](attn_run_args &a) { a.o = nullptr; });
  refused(ATTN_INVALID_ARGUMENT,
          "attn_run_args: k: slot stride of 12 elements, expected a positive multiple of 8 below "
          "2^39",
          [](attn_run_args &a) { a.k_slot_stride = 12; });
  EXPECT_TRUE(fakeState().launches.empty());
  fakeState().failNext["cuLaunchKernel"] = 1;
  refused(ATTN_FAILED, "cuLaunchKernel: CUDA_ERROR_INVALID_VALUE (invalid argument)",
          [](attn_run_args &) {});
  fakeState().failNext["cuTensorMapEncodeTiled"] = 1;
  refused(ATTN_FAILED, "q: cuTensorMapEncodeTiled: CUDA_ERROR_INVALID_VALUE (invalid argument)",
          [](attn_run_args &) {});
}

/// Options of a plan whose memory is that of the largest step.
attn_plan_options fixedOptions() {
  attn_plan_options options = cudaOptions();
  options.max_ranges = 4;
  options.flags = ATTN_PLAN_FIXED;
  return options;
}

TEST_F(CApiCuda, FixedPlansUseTheCallersMemory) {
  ArtifactHandle artifact(gpuArtifact());
  attn_plan_options options = fixedOptions();
  attn_workspace_size size = {};
  size.struct_size = sizeof(size);
  ASSERT_EQ(attn_plan_query_workspace(artifact.handle, &options, &size), ATTN_OK) << error();
  EXPECT_GT(size.host_bytes, 0u);
  EXPECT_EQ(size.host_bytes, size.device_bytes);
  EXPECT_EQ(size.alignment, 256u);
  EXPECT_TRUE(fakeState().memory.empty());
  auto pinned = rt::CudaPinned::create(device, size.host_bytes);
  auto memory = rt::CudaMemory::create(device, size.device_bytes);
  ASSERT_TRUE(pinned.ok() && memory.ok());
  attn_workspace workspace = {sizeof(workspace), pinned->data(), size.host_bytes,
                              reinterpret_cast<void *>(memory->address()), size.device_bytes};
  options.workspace = &workspace;
  attn_plan *none = nullptr;
  --workspace.device_bytes;
  EXPECT_EQ(attn_plan_create(artifact.handle, &options, &none), ATTN_INVALID_ARGUMENT);
  EXPECT_EQ(error(), "attn_plan_options: workspace: " + std::to_string(size.device_bytes - 1) +
                         " bytes on the device, expected " + std::to_string(size.device_bytes));
  ++workspace.device_bytes;
  workspace.device = nullptr;
  EXPECT_EQ(attn_plan_create(artifact.handle, &options, &none), ATTN_INVALID_ARGUMENT);
  EXPECT_EQ(error(), "attn_plan_options.workspace->device is null");
  workspace.device = reinterpret_cast<void *>(memory->address());
  PlanHandle plan(artifact, options);
  Tensors tensors(device);
  const size_t allocations = fakeState().memory.size();
  Batch batch;
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(attn_plan_prepare(plan.handle, &batch.batch, nullptr, nullptr), ATTN_OK) << error();
    ASSERT_EQ(attn_plan_run(plan.handle, &tensors.args, nullptr), ATTN_OK) << error();
    tensors.check(batch);
  }
  EXPECT_EQ(fakeState().memory.size(), allocations);
  attn_step_counts counts = {};
  counts.struct_size = sizeof(counts);
  ASSERT_EQ(attn_plan_step_counts(plan.handle, &counts), ATTN_OK) << error();
  EXPECT_EQ(counts.steps, 3u);
  EXPECT_EQ(counts.constant_copies, 1u);
  EXPECT_EQ(counts.waits, 0u);
  EXPECT_GT(counts.copied_bytes, 0u);
}

TEST_F(CApiCuda, StrictPlansAreFixed) {
  ArtifactHandle artifact(gpuArtifact());
  attn_plan_options options = fixedOptions();
  options.flags = ATTN_PLAN_STRICT;
  attn_plan *plan = nullptr;
  EXPECT_EQ(attn_plan_create(artifact.handle, &options, &plan), ATTN_INVALID_ARGUMENT);
  EXPECT_EQ(error(), "attn_plan_options.flags: ATTN_PLAN_STRICT, expected ATTN_PLAN_FIXED with it");
  options.flags = ATTN_PLAN_FIXED;
  options.heap_allocations = [] { return int64_t(0); };
  EXPECT_EQ(attn_plan_create(artifact.handle, &options, &plan), ATTN_INVALID_ARGUMENT);
  EXPECT_EQ(error(),
            "attn_plan_options.heap_allocations is set, expected ATTN_PLAN_STRICT with it");
  EXPECT_EQ(plan, nullptr);
}

TEST_F(CApiCuda, FixedPlansRefuseLargerSteps) {
  ArtifactHandle artifact(gpuArtifact());
  attn_plan_options options = fixedOptions();
  options.max_ranges = 3;
  PlanHandle plan(artifact, options);
  Batch batch;
  EXPECT_EQ(attn_plan_prepare(plan.handle, &batch.batch, nullptr, nullptr), ATTN_TOO_LARGE);
  EXPECT_EQ(error(), "the step has 4 ranges in a table, the plan was made for 3");
  attn_plan *none = nullptr;
  options.flags = 8;
  EXPECT_EQ(attn_plan_create(artifact.handle, &options, &none), ATTN_INVALID_ARGUMENT);
  EXPECT_EQ(error(), "attn_plan_options.flags: unknown bits 8");
  options = fixedOptions();
  options.device = "none";
  options.cuda_driver = nullptr;
  EXPECT_EQ(attn_plan_create(artifact.handle, &options, &none), ATTN_INVALID_ARGUMENT);
  EXPECT_EQ(error(), "attn_plan_options: members of device 'cuda' from max_ranges on are set, "
                     "expected 0");
  attn_step_counts counts = {};
  counts.struct_size = sizeof(counts);
  options = {};
  options.struct_size = sizeof(options);
  options.device = "none";
  PlanHandle host(artifact, options);
  EXPECT_EQ(attn_plan_step_counts(host.handle, &counts), ATTN_UNSUPPORTED);
  EXPECT_EQ(error(), "device 'none' copies nothing");
  EXPECT_EQ(attn_plan_forget_graphs(host.handle), ATTN_OK);
}

TEST_F(CApiCuda, CapturedRunsBindTheirParameters) {
  ArtifactHandle artifact(gpuArtifact());
  attn_plan_options options = fixedOptions();
  options.max_tokens = kTokens;
  options.flags = ATTN_PLAN_FOR_GRAPHS;
  PlanHandle plan(artifact, options);
  Tensors tensors(device);
  Batch batch;
  ASSERT_EQ(attn_plan_prepare(plan.handle, &batch.batch, nullptr, nullptr), ATTN_OK) << error();
  int stream = 0;
  void *graph = nullptr;
  auto driver = [](const char *symbol) { return dlsym(dlopen(kFake, RTLD_NOW), symbol); };
  ASSERT_EQ(reinterpret_cast<int (*)(void *, int)>(driver("cuStreamBeginCapture_v2"))(&stream, 0),
            0);
  tensors.args.kv_slots = kKeys;
  ASSERT_EQ(attn_plan_run(plan.handle, &tensors.args, &stream), ATTN_OK) << error();
  ASSERT_EQ(
      reinterpret_cast<int (*)(void *, void **)>(driver("cuStreamEndCapture"))(&stream, &graph), 0);
  batch.params[0].i = 3;
  EXPECT_EQ(attn_plan_prepare(plan.handle, &batch.batch, nullptr, nullptr), ATTN_INVALID_BATCH);
  EXPECT_EQ(error(), "param 'left': the step has 3, captured launches have 2");
  EXPECT_EQ(attn_plan_run(plan.handle, &tensors.args, nullptr), ATTN_NOT_PREPARED);
  batch.params[0].i = 2;
  batch.bounds[1] = 6; // other ranges
  ASSERT_EQ(attn_plan_prepare(plan.handle, &batch.batch, nullptr, nullptr), ATTN_OK) << error();
  ASSERT_EQ(reinterpret_cast<int (*)(void *, void *)>(driver("cuGraphLaunch"))(graph, nullptr), 0);
  tensors.check(batch);
  EXPECT_EQ(reinterpret_cast<int (*)(void *)>(driver("cuGraphDestroy"))(graph), 0);
  batch.params[0].i = 3;
  ASSERT_EQ(attn_plan_forget_graphs(plan.handle), ATTN_OK);
  EXPECT_EQ(attn_plan_prepare(plan.handle, &batch.batch, nullptr, nullptr), ATTN_OK) << error();
}

} // namespace
