// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The C API through its shared library, on the hand-written kernel.
#include "CApiTest.h"
#include "TestKernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <thread>

using namespace testing_rt;

namespace {

attn_plan_options planOptions() {
  attn_plan_options options = {};
  options.struct_size = sizeof(options);
  options.device = "cpu";
  options.max_reqs = 8;
  options.max_tokens = 64;
  return options;
}

/// Tensors of the batch, and attention by definition.
struct Tensors {
  std::vector<float> q, k, v, o, lse;
  attn_run_args args = {};

  Tensors() {
    Random random(31);
    auto fill = [&](std::vector<float> &to, int count) {
      for (int i = 0; i < count; ++i)
        to.push_back(random.real());
    };
    fill(q, 14 * 32);
    fill(k, 21 * 16);
    fill(v, 21 * 12);
    o.assign(14 * 24, NAN);
    lse.assign(4 * 16, NAN);
    args = tinyRunArgs(q, k, v, o, lse, 16);
  }

  /// Compares the rows of tokens [begin, end) with the definition.
  void check(const Batch &b, int begin, int end) const {
    for (int token = begin; token < end; ++token)
      for (int h = 0; h < 4; ++h) {
        const int request = token >= 8;
        const long position = request ? 7 + token - 8 : token;
        const int first = request ? 8 : 0;
        double sum[6] = {}, total = 0;
        for (int key = 0; key < b.seqLens[request]; ++key) {
          if (!keeps(b, request, position, key))
            continue;
          double s = 0;
          for (int d = 0; d < 8; ++d)
            s += double(q[token * 32 + h * 8 + d]) * k[(first + key) * 16 + h / 2 * 8 + d];
          const double p =
              std::exp(s * b.params[1].f - b.slopes[h] * std::abs(double(position - key)));
          total += p;
          for (int d = 0; d < 6; ++d)
            sum[d] += p * v[(first + key) * 12 + h / 2 * 6 + d];
        }
        EXPECT_NEAR(lse[h * 16 + token], std::log(total), 1e-5);
        for (int d = 0; d < 6; ++d)
          EXPECT_NEAR(o[token * 24 + h * 6 + d], sum[d] / total, 1e-5);
      }
  }
};

TEST(CApi, VersionsAndQueries) {
  EXPECT_EQ(attn_abi_version(), ATTN_ABI_VERSION);
  EXPECT_EQ(std::string(attn_version()).substr(0, 2), "0.");
  ArtifactHandle artifact(tinyArtifact());
  EXPECT_EQ(attn_artifact_num_kernels(artifact.handle), 1);
  int64_t kernel = -1;
  EXPECT_EQ(attn_artifact_find_kernel(artifact.handle, nullptr, &kernel), ATTN_OK);
  EXPECT_EQ(kernel, 0);
  EXPECT_EQ(attn_artifact_find_kernel(artifact.handle, "tiny", &kernel), ATTN_OK);
  EXPECT_EQ(attn_artifact_find_kernel(artifact.handle, "big", &kernel), ATTN_INVALID_ARGUMENT);
  EXPECT_EQ(error(), "no kernel 'big' (the artifact has: 'tiny')");
  attn_kernel_info info = {};
  info.struct_size = sizeof(info);
  ASSERT_EQ(attn_kernel_get_info(artifact.handle, 0, &info), ATTN_OK);
  EXPECT_STREQ(info.name, "tiny");
  EXPECT_EQ(info.num_heads, 4);
  EXPECT_EQ(info.num_kv_heads, 2);
  EXPECT_EQ(info.dim_v, 6);
  EXPECT_EQ(info.q_dtype, ATTN_F32);
  EXPECT_EQ(info.num_params, 2);
  attn_param_info param = {};
  param.struct_size = sizeof(param);
  ASSERT_EQ(attn_kernel_get_param(artifact.handle, 0, 0, &param), ATTN_OK);
  EXPECT_STREQ(param.name, "left");
  EXPECT_TRUE(param.has_min);
  EXPECT_EQ(attn_kernel_get_param(artifact.handle, 0, 2, &param), ATTN_INVALID_ARGUMENT);
  EXPECT_EQ(error(), "param 2 of 2");
  attn_table_info table = {};
  table.struct_size = sizeof(table);
  ASSERT_EQ(attn_kernel_get_table(artifact.handle, 0, 1, &table), ATTN_OK);
  EXPECT_STREQ(table.name, "slopes");
  EXPECT_EQ(table.kind, ATTN_TABLE_DENSE);
  EXPECT_STREQ(table.dims[0], "h");
  EXPECT_EQ(attn_kernel_get_info(artifact.handle, 1, &info), ATTN_INVALID_ARGUMENT);
  EXPECT_EQ(error(), "kernel 1 of 1");
  info.struct_size = 3;
  EXPECT_EQ(attn_kernel_get_info(artifact.handle, 0, &info), ATTN_INVALID_ARGUMENT);
  EXPECT_EQ(error(), "attn_kernel_info.struct_size is 3, expected " +
                         std::to_string(sizeof(attn_kernel_info)));
}

TEST(CApi, RunsWithItsOwnAndTheCallersWorkspace) {
  ArtifactHandle artifact(tinyArtifact());
  PlanHandle plan(artifact, planOptions());
  Batch batch;
  {
    Tensors tensors;
    ASSERT_EQ(attn_plan_prepare(plan.handle, &batch.batch, nullptr, nullptr), ATTN_OK) << error();
    ASSERT_EQ(attn_plan_run(plan.handle, &tensors.args, nullptr), ATTN_OK) << error();
    tensors.check(batch, 0, 14);
  }
  attn_plan_options options = planOptions();
  attn_workspace_size size = {};
  size.struct_size = sizeof(size);
  ASSERT_EQ(attn_plan_query_workspace(artifact.handle, &options, &size), ATTN_OK);
  EXPECT_EQ(size.host_bytes, 64u * 8);
  EXPECT_EQ(size.device_bytes, 0u);
  void *memory = std::aligned_alloc(size.alignment, size.host_bytes);
  attn_workspace workspace = {};
  workspace.struct_size = sizeof(workspace);
  workspace.host = memory;
  workspace.host_bytes = size.host_bytes;
  {
    Tensors tensors;
    ASSERT_EQ(attn_plan_prepare(plan.handle, &batch.batch, &workspace, nullptr), ATTN_OK)
        << error();
    EXPECT_EQ(static_cast<int32_t *>(memory)[2], 1); // token 1 lies in [1, 3]
    EXPECT_EQ(static_cast<int32_t *>(memory)[3], 3);
    ASSERT_EQ(attn_plan_run(plan.handle, &tensors.args, nullptr), ATTN_OK) << error();
    tensors.check(batch, 0, 14);
  }
  workspace.host_bytes = 100;
  EXPECT_EQ(attn_plan_prepare(plan.handle, &batch.batch, &workspace, nullptr), ATTN_TOO_LARGE);
  EXPECT_EQ(error(), "attn_workspace.host_bytes is 100, the tables of this batch need 112");
  std::free(memory);
}

TEST(CApi, Parts) {
  ArtifactHandle artifact(tinyArtifact());
  PlanHandle plan(artifact, planOptions());
  Batch batch;
  Tensors tensors;
  ASSERT_EQ(attn_plan_prepare(plan.handle, &batch.batch, nullptr, nullptr), ATTN_OK);
  attn_subrange part = {sizeof(part), 0, 2, 3, 10};
  tensors.args.part = &part;
  ASSERT_EQ(attn_plan_run(plan.handle, &tensors.args, nullptr), ATTN_OK) << error();
  tensors.check(batch, 3, 10);
  EXPECT_TRUE(std::isnan(tensors.o[0]));
  EXPECT_TRUE(std::isnan(tensors.o[10 * 24]));
  part.token_end = 15;
  EXPECT_EQ(attn_plan_run(plan.handle, &tensors.args, nullptr), ATTN_INVALID_ARGUMENT);
  EXPECT_EQ(error(), "attn_subrange: tokens [3, 15) expected to lie in [0, 14)");
}

TEST(CApi, Pages) {
  ArtifactHandle artifact(tinyArtifact());
  PlanHandle plan(artifact, planOptions());
  Batch batch;
  Tensors tensors;
  // Pages of 4 keys: request 0 in pages 6, 1; request 1 in pages 0, 5, 3, 2; junk after them.
  const int32_t junk = INT32_MIN;
  const int32_t table[12] = {6, 1, junk, junk, junk, junk, 0, 5, 3, 2, junk, junk};
  std::vector<float> k(7 * 4 * 16, NAN), v(7 * 4 * 12, NAN);
  for (int b = 0; b < 2; ++b)
    for (int key = 0; key < batch.seqLens[b]; ++key) {
      const int slot = table[b * 6 + key / 4] * 4 + key % 4, dense = (b ? 8 : 0) + key;
      std::copy_n(&tensors.k[dense * 16], 16, &k[slot * 16]);
      std::copy_n(&tensors.v[dense * 12], 12, &v[slot * 12]);
    }
  batch.batch.page_size = 4;
  batch.batch.block_table = table;
  batch.batch.block_table_stride = batch.batch.block_table_width = 6;
  batch.batch.num_pages = 7;
  ASSERT_EQ(attn_plan_prepare(plan.handle, &batch.batch, nullptr, nullptr), ATTN_OK) << error();
  tensors.args.k = k.data();
  tensors.args.k_page_stride = 64;
  tensors.args.v = v.data();
  tensors.args.v_page_stride = 48;
  ASSERT_EQ(attn_plan_run(plan.handle, &tensors.args, nullptr), ATTN_OK) << error();
  tensors.check(batch, 0, 14);
  batch.batch.num_pages = 6;
  EXPECT_EQ(attn_plan_prepare(plan.handle, &batch.batch, nullptr, nullptr), ATTN_INVALID_BATCH);
  EXPECT_EQ(error(),
            "request 0: block_table[0] is 6, expected a page id of 0 to 5, because the page "
            "holds keys");
  EXPECT_EQ(attn_plan_run(plan.handle, &tensors.args, nullptr), ATTN_NOT_PREPARED);
}

TEST(CApi, QueryRangesAndTileRecords) {
  ArtifactHandle artifact(tinyArtifact());
  attn_plan_options options = planOptions();
  options.device = "none";
  PlanHandle plan(artifact, options);
  Batch batch;
  ASSERT_EQ(attn_plan_prepare(plan.handle, &batch.batch, nullptr, nullptr), ATTN_OK) << error();
  int64_t rows = 0, covered = -1;
  ASSERT_EQ(attn_plan_query_ranges(plan.handle, "mm", nullptr, 0, &rows, &covered), ATTN_OK);
  EXPECT_EQ(rows, 14);
  std::vector<int32_t> table(28, -7);
  EXPECT_EQ(attn_plan_query_ranges(plan.handle, nullptr, table.data(), 13, &rows, &covered),
            ATTN_TOO_LARGE);
  EXPECT_EQ(error(), "capacity is 13, expected at least 14");
  EXPECT_EQ(table[0], -7);
  ASSERT_EQ(attn_plan_query_ranges(plan.handle, nullptr, table.data(), 14, &rows, &covered),
            ATTN_OK);
  EXPECT_EQ(covered, 3 + 3 + 4);
  EXPECT_EQ(table[2 * 0], -1);
  EXPECT_EQ(table[2 * 6], 5);
  EXPECT_EQ(table[2 * 13 + 1], 12);
  EXPECT_EQ(attn_plan_query_ranges(plan.handle, "slopes", table.data(), 14, &rows, &covered),
            ATTN_INVALID_ARGUMENT);
  EXPECT_EQ(error(), "no ranges or documents table 'slopes' (the kernel has: 'mm')");

  attn_tile_shape shape = {sizeof(shape), 4, 4, 0};
  int64_t numRecords = 0, numSegments = 0;
  ASSERT_EQ(attn_plan_tile_records(plan.handle, &shape, nullptr, 0, nullptr, 0, &numRecords,
                                   &numSegments),
            ATTN_OK);
  EXPECT_EQ(numRecords, 4);
  std::vector<attn_tile_record> records(numRecords);
  std::vector<attn_segment> segments(numSegments);
  EXPECT_EQ(attn_plan_tile_records(plan.handle, &shape, records.data(), numRecords, segments.data(),
                                   numSegments - 1, &numRecords, &numSegments),
            ATTN_TOO_LARGE);
  ASSERT_EQ(attn_plan_tile_records(plan.handle, &shape, records.data(), numRecords, segments.data(),
                                   numSegments, &numRecords, &numSegments),
            ATTN_OK);
  int64_t next = 0;
  for (const attn_tile_record &record : records) {
    EXPECT_EQ(record.segment_begin, next);
    next += record.segment_count;
    EXPECT_EQ(record.head_count, 4);
    for (int64_t i = 0; i < record.query_count; ++i)
      for (long k = 0; k < batch.seqLens[record.request]; ++k) {
        const bool kept = keeps(batch, static_cast<int>(record.request), record.query_begin + i, k);
        bool visited = false, full = false;
        for (int64_t s = record.segment_begin; s < next; ++s)
          if (segments[s].begin <= k && k < segments[s].end) {
            visited = true;
            full = segments[s].cls == ATTN_SEGMENT_FULL;
          }
        EXPECT_TRUE(!kept || visited);
        EXPECT_TRUE(!full || kept);
      }
  }
  EXPECT_EQ(next, numSegments);
  shape.keys = 0;
  EXPECT_EQ(attn_plan_tile_records(plan.handle, &shape, nullptr, 0, nullptr, 0, &numRecords,
                                   &numSegments),
            ATTN_INVALID_ARGUMENT);
  Tensors tensors;
  EXPECT_EQ(attn_plan_run(plan.handle, &tensors.args, nullptr), ATTN_UNSUPPORTED);
  EXPECT_EQ(error(), "device 'none' runs nothing");
}

TEST(CApi, RefusedBatches) {
  ArtifactHandle artifact(tinyArtifact());
  PlanHandle plan(artifact, planOptions());
  auto refused = [&](attn_status status, const std::string &message, auto edit) {
    Batch b;
    edit(b);
    EXPECT_EQ(attn_plan_prepare(plan.handle, &b.batch, nullptr, nullptr), status) << message;
    EXPECT_EQ(error(), message);
  };
  const int32_t lengths[2] = {-4, 3};
  const uint8_t bounds[2] = {0, 1}, prefilling[2] = {1, 0};
  refused(ATTN_INVALID_ARGUMENT, "attn_batch: query_start_loc is null",
          [](Batch &b) { b.batch.query_start_loc = nullptr; });
  refused(ATTN_INVALID_ARGUMENT, "attn_batch: query_start_loc[0] is 2, expected 0",
          [](Batch &b) { b.startLoc[0] = 2; });
  refused(ATTN_INVALID_BATCH, "request 1: query_len is -3, expected 0 to 1073741823",
          [](Batch &b) { b.startLoc[2] = 5; });
  refused(ATTN_INVALID_ARGUMENT, "attn_batch: num_reqs is -1",
          [](Batch &b) { b.batch.num_reqs = -1; });
  refused(ATTN_TOO_LARGE, "the batch has 9 requests, the plan allows max_reqs 8",
          [](Batch &b) { b.batch.num_reqs = 9; });
  refused(ATTN_TOO_LARGE, "the batch has 72 tokens, the plan allows max_tokens 64",
          [](Batch &b) { b.startLoc[2] = b.startLoc[1] + 64; });
  refused(ATTN_INVALID_BATCH, "request 0: seq_len is -4, expected 0 to 1073741823",
          [&](Batch &b) { b.batch.seq_lens = lengths; });
  refused(ATTN_UNSUPPORTED,
          "request 1: seq_len_bound: device 'cpu' needs exact lengths (seq_len alone)",
          [&](Batch &b) {
            b.batch.seq_len_is_bound = bounds;
            b.batch.is_prefilling = prefilling;
            b.batch.num_ranges = 0;
          });
  refused(ATTN_INVALID_BATCH,
          "request 1: seq_len_bound: given for a prefill row, expected a decode row "
          "(is_prefilling: false)",
          [&](Batch &b) { b.batch.seq_len_is_bound = bounds; });
  refused(ATTN_INVALID_BATCH,
          "request 1: range 1 [9, 13] holds a scheduled query and ends at or past seq_len 13; its "
          "keys are not all there (partial_ranges: \"allow\" accepts that)",
          [](Batch &b) { b.bounds[7] = 13; });
  refused(ATTN_INVALID_ARGUMENT,
          "attn_batch: ranges[0].offsets[1] is -2, expected ascending offsets from 0",
          [](Batch &b) { b.offsets[1] = -2; });
  refused(ATTN_INVALID_ARGUMENT, "attn_batch: ranges[0] has offsets but no elements",
          [](Batch &b) { b.ranges.bounds = nullptr; });
  refused(ATTN_INVALID_BATCH,
          "table 'video': kernel 'tiny' has no such table (it has: 'mm', "
          "'slopes')",
          [](Batch &b) { b.ranges.table = "video"; });
  refused(ATTN_INVALID_BATCH, "table 'slopes': dimension 0 (h) is 3, expected 4",
          [](Batch &b) { b.table.extents[0] = 3; });
  refused(ATTN_INVALID_BATCH, "table 'slopes': has elements of type i32, expected f32",
          [](Batch &b) { b.table.element = ATTN_SCALAR_I32; });
  refused(ATTN_INVALID_BATCH, "table 'slopes': has no data",
          [](Batch &b) { b.table.data = nullptr; });
  refused(ATTN_INVALID_ARGUMENT, "attn_batch: tables[0].rank is 5, expected 0 to 4",
          [](Batch &b) { b.table.rank = 5; });
  refused(ATTN_INVALID_ARGUMENT, "attn_batch: tables[0].element is 9, expected an attn_scalar_type",
          [](Batch &b) { b.table.element = 9; });
  refused(ATTN_INVALID_BATCH, "param 'left': expected at least 0, got -1",
          [](Batch &b) { b.params[0].i = -1; });
  refused(ATTN_INVALID_BATCH, "param 'scale': expected a finite f32, got nan",
          [](Batch &b) { b.params[1].f = NAN; });
  refused(ATTN_INVALID_BATCH, "param 'scale': missing (f32)",
          [](Batch &b) { b.batch.num_params = 1; });
  refused(ATTN_INVALID_ARGUMENT, "attn_batch: params[1].name is null",
          [](Batch &b) { b.params[1].name = nullptr; });
  refused(ATTN_INVALID_ARGUMENT,
          "attn_batch: params[1].struct_size is 8, expected " + std::to_string(sizeof(attn_param)),
          [](Batch &b) { b.params[1].struct_size = 8; });
  refused(ATTN_INVALID_ARGUMENT, "attn_batch: flags: unknown bits 4",
          [](Batch &b) { b.batch.flags = 5; });
  refused(ATTN_INVALID_ARGUMENT, "attn_batch: block_table is null, given page_size 16",
          [](Batch &b) { b.batch.page_size = 16; });
  refused(ATTN_INVALID_ARGUMENT,
          "attn_batch.struct_size is 0, expected " + std::to_string(sizeof(attn_batch)),
          [](Batch &b) { b.batch.struct_size = 0; });
  const int64_t starts[2] = {0, -1};
  refused(ATTN_INVALID_ARGUMENT, "attn_batch: kv_start[1] is -1, expected 0 to 9223372035781033983",
          [&](Batch &b) { b.batch.kv_start = starts; });
  Batch good;
  int stream = 0;
  EXPECT_EQ(attn_plan_prepare(plan.handle, &good.batch, nullptr, &stream), ATTN_UNSUPPORTED);
  EXPECT_EQ(error(), "stream: device 'cpu' has none, expected null");
  EXPECT_EQ(attn_plan_prepare(plan.handle, nullptr, nullptr, nullptr), ATTN_INVALID_ARGUMENT);
  EXPECT_EQ(error(), "attn_batch is null");
}

TEST(CApi, NewerStructs) {
  // A newer caller's struct is longer; while its new members are zero they ask for nothing.
  struct Longer {
    attn_plan_options options;
    int64_t later;
  } longer = {planOptions(), 0};
  longer.options.struct_size = sizeof(longer);
  ArtifactHandle artifact(tinyArtifact());
  attn_plan *plan = nullptr;
  ASSERT_EQ(attn_plan_create(artifact.handle, &longer.options, &plan), ATTN_OK) << error();
  attn_plan_destroy(plan);
  longer.later = 1;
  plan = nullptr;
  EXPECT_EQ(attn_plan_create(artifact.handle, &longer.options, &plan), ATTN_INVALID_ARGUMENT);
  EXPECT_EQ(error(), "attn_plan_options sets members that this library does not know");
  EXPECT_EQ(plan, nullptr);
}

TEST(CApi, OlderStructs) {
  // Callers compiled before members were added; what follows their structs is not read.
  ArtifactHandle artifact(tinyArtifact());
  attn_plan_options options = planOptions();
  options.struct_size = offsetof(attn_plan_options, device_ordinal);
  options.device_ordinal = 77;
  PlanHandle plan(artifact, options);
  Batch batch;
  const int64_t junk[2] = {-1, -1};
  batch.batch.struct_size = offsetof(attn_batch, kv_start);
  batch.batch.kv_start = junk;
  ASSERT_EQ(attn_plan_prepare(plan.handle, &batch.batch, nullptr, nullptr), ATTN_OK) << error();
  Tensors tensors;
  uint64_t counters[3];
  tensors.args.struct_size = offsetof(attn_run_args, device_block_table);
  tensors.args.counters = counters;
  ASSERT_EQ(attn_plan_run(plan.handle, &tensors.args, nullptr), ATTN_OK) << error();
  tensors.check(batch, 0, 14);
  tensors.args.struct_size -= 1;
  EXPECT_EQ(attn_plan_run(plan.handle, &tensors.args, nullptr), ATTN_INVALID_ARGUMENT);
}

TEST(CApi, KeysWhereTheBatchSaysTheyAre) {
  ArtifactHandle artifact(tinyArtifact());
  PlanHandle plan(artifact, planOptions());
  Batch batch;
  Tensors tensors;
  // Request 1 first.
  std::rotate(tensors.k.begin(), tensors.k.begin() + 8 * 16, tensors.k.end());
  std::rotate(tensors.v.begin(), tensors.v.begin() + 8 * 12, tensors.v.end());
  const int64_t starts[2] = {13, 0};
  batch.batch.kv_start = starts;
  ASSERT_EQ(attn_plan_prepare(plan.handle, &batch.batch, nullptr, nullptr), ATTN_OK) << error();
  ASSERT_EQ(attn_plan_run(plan.handle, &tensors.args, nullptr), ATTN_OK) << error();
  std::rotate(tensors.k.begin(), tensors.k.begin() + 13 * 16, tensors.k.end());
  std::rotate(tensors.v.begin(), tensors.v.begin() + 13 * 12, tensors.v.end());
  tensors.check(batch, 0, 14);
}

TEST(CApi, RefusedPlansAndArtifacts) {
  attn_artifact *none = nullptr;
  EXPECT_EQ(attn_artifact_load_file("/nonexistent.attn", &none), ATTN_INVALID_ARTIFACT);
  EXPECT_NE(error().find("/nonexistent.attn"), std::string::npos);
  EXPECT_EQ(attn_artifact_load_file(nullptr, &none), ATTN_INVALID_ARGUMENT);
  EXPECT_EQ(error(), "path is null");
  std::vector<uint8_t> bytes = attn::core::serialize(tinyArtifact());
  bytes[bytes.size() - 1] ^= 1;
  EXPECT_EQ(attn_artifact_load_memory(bytes.data(), bytes.size(), &none), ATTN_INVALID_ARTIFACT);
  EXPECT_EQ(none, nullptr);
  ArtifactHandle artifact(tinyArtifact());
  attn_plan *plan = nullptr;
  auto refused = [&](attn_status status, const std::string &message, auto edit) {
    attn_plan_options options = planOptions();
    edit(options);
    EXPECT_EQ(attn_plan_create(artifact.handle, &options, &plan), status);
    EXPECT_EQ(error(), message);
  };
  refused(ATTN_UNSUPPORTED, "device 'tpu' is not known (known: cpu, cuda, none)",
          [](attn_plan_options &o) { o.device = "tpu"; });
  refused(ATTN_INVALID_ARGUMENT,
          "attn_plan_options.device_ordinal is 1, expected 0 on device 'cpu'",
          [](attn_plan_options &o) { o.device_ordinal = 1; });
  refused(ATTN_INVALID_ARGUMENT, "attn_plan_options.cuda_driver: expected null on device 'cpu'",
          [](attn_plan_options &o) { o.cuda_driver = "libcuda.so.1"; });
  refused(ATTN_INVALID_ARGUMENT, "attn_plan_options.kernel is 1, expected 0 to 0",
          [](attn_plan_options &o) { o.kernel = 1; });
  refused(ATTN_INVALID_ARGUMENT, "attn_plan_options.max_tokens is -1, expected 0 to 2147483647",
          [](attn_plan_options &o) { o.max_tokens = -1; });
  refused(ATTN_INVALID_ARGUMENT, "attn_plan_options.device is null",
          [](attn_plan_options &o) { o.device = nullptr; });
  refused(ATTN_INVALID_ARGUMENT, "attn_plan_options.num_threads is 5000, expected 0 to 1024",
          [](attn_plan_options &o) { o.num_threads = 5000; });
  PlanHandle good(artifact, planOptions());
  Tensors tensors;
  EXPECT_EQ(attn_plan_run(good.handle, &tensors.args, nullptr), ATTN_NOT_PREPARED);
  EXPECT_EQ(error(), "the plan has no batch; call attn_plan_prepare first");
  Batch batch;
  ASSERT_EQ(attn_plan_prepare(good.handle, &batch.batch, nullptr, nullptr), ATTN_OK);
  tensors.args.v = nullptr;
  EXPECT_EQ(attn_plan_run(good.handle, &tensors.args, nullptr), ATTN_INVALID_ARGUMENT);
  EXPECT_EQ(error(), "attn_run_args.v is null");
  uint64_t counters[3];
  Tensors counted;
  counted.args.counters = counters;
  EXPECT_EQ(attn_plan_run(good.handle, &counted.args, nullptr), ATTN_INVALID_ARGUMENT);
  EXPECT_EQ(error(), "attn_run_args.counters: expected null on device 'cpu'");
  Tensors paged;
  paged.args.device_block_table = batch.seqLens;
  EXPECT_EQ(attn_plan_run(good.handle, &paged.args, nullptr), ATTN_INVALID_ARGUMENT);
  EXPECT_EQ(error(), "attn_run_args.device_block_table: expected null on device 'cpu'");
  attn_tile_counts counts = {};
  counts.struct_size = sizeof(counts);
  EXPECT_EQ(attn_plan_tile_counts(good.handle, &counts), ATTN_UNSUPPORTED);
  EXPECT_EQ(error(), "device 'cpu' has no tiles to count");
  attn_artifact_destroy(nullptr);
  attn_plan_destroy(nullptr);
}

TEST(CApi, ErrorsBelongToTheirThread) {
  EXPECT_EQ(attn_artifact_load_file(nullptr, nullptr), ATTN_INVALID_ARGUMENT);
  std::thread other([] {
    EXPECT_EQ(error(), "");
    float slope;
    EXPECT_EQ(attn_alibi_slopes(0, 0, 1, &slope), ATTN_INVALID_ARGUMENT);
    EXPECT_EQ(error(), "heads [0, +1) expected to lie in [0, 0)");
  });
  other.join();
  EXPECT_EQ(error(), "path is null");
  float slopes[4];
  ASSERT_EQ(attn_alibi_slopes(8, 4, 4, slopes), ATTN_OK);
  EXPECT_EQ(slopes[0], 1.0f / 32);
}

} // namespace
