// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// attn-c/Engine.h.
#include "attn-c/Engine.h"

#include "CApiTest.h"
#include "EngineInC.h"
#include "TestKernel.h"

#include <cstdlib>
#include <cstring>

using namespace attn;
using namespace testing_rt;

namespace {

attn_plan_options hostOptions() {
  attn_plan_options options = {};
  options.struct_size = sizeof(options);
  options.device = "none";
  options.max_reqs = 8;
  options.max_tokens = 64;
  return options;
}

TEST(CApiEngine, FactsOfAStep) {
  ArtifactHandle artifact(tinyArtifact());
  PlanHandle plan(artifact, hostOptions());
  Batch batch;
  attn_split_rule rule = {sizeof(rule), 6, 1, 0};
  attn_step_facts facts = {};
  facts.struct_size = sizeof(facts);
  EXPECT_EQ(attn_plan_step_facts(plan.handle, &rule, nullptr, &facts), ATTN_NOT_PREPARED);
  ASSERT_EQ(attn_plan_prepare(plan.handle, &batch.batch, nullptr, nullptr), ATTN_OK) << error();
  uint8_t classes[2] = {7, 7};
  ASSERT_EQ(attn_plan_step_facts(plan.handle, &rule, classes, &facts), ATTN_OK) << error();
  // Queries of 8 and 6 tokens: short extends are decodes.
  EXPECT_EQ(classes[0], 1);
  EXPECT_EQ(classes[1], 0);
  EXPECT_EQ(facts.longest_query, 8);
  EXPECT_EQ(facts.longest_query_rounded, 8);
  EXPECT_EQ(facts.decodes, 1);
  EXPECT_EQ(facts.decode_tokens, 6);
  EXPECT_EQ(facts.longest_decode, 6);
  EXPECT_EQ(facts.prefills, 1);
  EXPECT_EQ(facts.prefill_tokens, 8);
  EXPECT_EQ(facts.longest_prefill, 8);
  EXPECT_EQ(facts.decodes_first, 0);
  EXPECT_EQ(facts.any_prefill_has_context, 0);
  rule.has_ranges = 1; // but not beside ranges
  ASSERT_EQ(attn_plan_step_facts(plan.handle, &rule, nullptr, &facts), ATTN_OK) << error();
  EXPECT_EQ(facts.prefills, 2);
  EXPECT_EQ(facts.any_prefill_has_context, 1);
}

TEST(CApiEngine, Chunks) {
  const int64_t offsets[] = {0, 6, 6, 15}, computed[] = {3, 2, 8};
  int64_t count = 0, starts[7], sequences[6], last[3];
  ASSERT_EQ(attn_chunk_table(offsets, computed, 3, 4, 0, nullptr, nullptr, nullptr, &count),
            ATTN_OK);
  EXPECT_EQ(count, 6);
  EXPECT_EQ(attn_chunk_table(offsets, computed, 3, 4, 5, starts, sequences, last, &count),
            ATTN_TOO_LARGE);
  EXPECT_EQ(error(), "capacity is 5, expected at least 6");
  ASSERT_EQ(attn_chunk_table(offsets, computed, 3, 4, 6, starts, sequences, last, &count), ATTN_OK)
      << error();
  EXPECT_EQ(std::vector<int64_t>(starts, starts + 7),
            (std::vector<int64_t>{0, 1, 5, 6, 10, 14, 15}));
  EXPECT_EQ(std::vector<int64_t>(last, last + 3), (std::vector<int64_t>{2, -1, 5}));
  EXPECT_EQ(attn_chunk_table(offsets, computed, 3, 0, 6, starts, sequences, last, &count),
            ATTN_INVALID_ARGUMENT);
  EXPECT_EQ(error(), "chunk size is 0, expected at least 1");
  EXPECT_EQ(attn_chunk_table(offsets, computed, 3, 4, 6, starts, nullptr, last, &count),
            ATTN_INVALID_ARGUMENT);
  ASSERT_EQ(attn_most_chunks(9, 2, 4, &count), ATTN_OK);
  EXPECT_EQ(count, 5);
  EXPECT_EQ(attn_most_chunks(9, 2, -1, &count), ATTN_INVALID_ARGUMENT);
}

TEST(CApiEngine, SafeCuts) {
  ArtifactHandle artifact(tinyArtifact());
  PlanHandle plan(artifact, hostOptions());
  Batch batch;
  ASSERT_EQ(attn_plan_prepare(plan.handle, &batch.batch, nullptr, nullptr), ATTN_OK) << error();
  // Request 0 has ranges [1, 3] and [5, 7].
  int64_t cut = -1;
  ASSERT_EQ(attn_plan_nearest_safe_cut(plan.handle, 0, 4, &cut), ATTN_OK) << error();
  EXPECT_EQ(cut, 4);
  ASSERT_EQ(attn_plan_nearest_safe_cut(plan.handle, 0, 3, &cut), ATTN_OK) << error();
  EXPECT_EQ(cut, 4);
  ASSERT_EQ(attn_plan_nearest_safe_cut(plan.handle, 0, 2, &cut), ATTN_OK) << error();
  EXPECT_EQ(cut, 1);
  EXPECT_EQ(attn_plan_nearest_safe_cut(plan.handle, 2, 2, &cut), ATTN_INVALID_ARGUMENT);
  EXPECT_EQ(error(), "request 2 of 2");
  EXPECT_EQ(attn_plan_nearest_safe_cut(plan.handle, 0, 12, &cut), ATTN_INVALID_ARGUMENT);
}

/// Called from C, EngineInC.c.
TEST(CApiEngine, BuildersInC) {
  ArtifactHandle artifact(tinyArtifact());
  PlanHandle plan(artifact, hostOptions());
  Batch batch;
  int64_t count = 0;
  EXPECT_EQ(attn_plan_range_tensor(plan.handle, nullptr, 2, nullptr, 0, &count, nullptr),
            ATTN_NOT_PREPARED);
  EXPECT_EQ(attn_plan_page_runs(plan.handle, nullptr, 0, nullptr, &count), ATTN_NOT_PREPARED);
  ASSERT_EQ(attn_plan_prepare(plan.handle, &batch.batch, nullptr, nullptr), ATTN_OK) << error();
  EXPECT_EQ(attn_test_range_tensor(plan.handle), 0) << error();
  EXPECT_EQ(attn_test_has_no_pages(plan.handle), 0) << error();
  const auto keep = [](const void *of, int request, int64_t q, int64_t k) {
    return static_cast<int>(keeps(*static_cast<const Batch *>(of), request, q, k));
  };
  EXPECT_EQ(attn_test_split_plans(plan.handle), 0) << error();
  EXPECT_EQ(attn_test_split_policies(), 0) << error();
  // With pages, blocks start at multiples of their size.
  const int32_t table[] = {6, 7, 99, -1, 0, 1, 4, 5};
  batch.batch.page_size = 4;
  batch.batch.block_table = table;
  batch.batch.block_table_stride = batch.batch.block_table_width = 4;
  ASSERT_EQ(attn_plan_prepare(plan.handle, &batch.batch, nullptr, nullptr), ATTN_OK) << error();
  EXPECT_EQ(attn_test_page_runs(plan.handle), 0) << error();
  EXPECT_EQ(attn_test_work_list(plan.handle, keep, &batch), 0) << error();
}

/// On the host alone, rows may have a length that only the device knows.
TEST(CApiEngine, BoundedRows) {
  ArtifactHandle artifact(tinyArtifact());
  PlanHandle plan(artifact, hostOptions());
  Batch batch;
  batch.startLoc[2] = 9; // one token
  const uint8_t isBound[] = {0, 1}, isPrefilling[] = {1, 0};
  batch.batch.seq_len_is_bound = isBound;
  batch.batch.is_prefilling = isPrefilling;
  auto prepare = [&] { return attn_plan_prepare(plan.handle, &batch.batch, nullptr, nullptr); };
  EXPECT_EQ(prepare(), ATTN_INVALID_BATCH);
  EXPECT_EQ(error(), "request 1: range 0 [2, 4] reaches into positions 0 to 12 that the row may "
                     "take, whose seq_len is known on the device only (seq_len_least says how far "
                     "down they go)");
  // Of request 1, lengths from 10: positions from 9, which the range [9, 12] holds.
  int32_t least[] = {-5, 10};
  batch.batch.seq_len_least = least;
  EXPECT_EQ(prepare(), ATTN_INVALID_BATCH);
  EXPECT_NE(error().find("range 1 [9, 12] reaches into positions 9 to 12"), std::string::npos);
  least[1] = 14;
  EXPECT_EQ(prepare(), ATTN_INVALID_BATCH);
  EXPECT_EQ(error(), "request 1: seq_len_least is 14, expected query_len 1 to seq_len 13");
  least[1] = 10;
  batch.bounds[6] = 5, batch.bounds[7] = 8;
  ASSERT_EQ(prepare(), ATTN_OK) << error();
  // It lies outside every range; what follows from its position is not built.
  int32_t rows[18];
  int64_t numRows = 0, covered = 0;
  ASSERT_EQ(attn_plan_query_ranges(plan.handle, nullptr, rows, 9, &numRows, &covered), ATTN_OK);
  EXPECT_EQ(numRows, 9);
  EXPECT_EQ(covered, 6);
  EXPECT_EQ(rows[16], -1);
  const attn_tile_shape tile = {sizeof(tile), 64, 64, 0};
  int64_t records = 0, segments = 0;
  EXPECT_EQ(attn_plan_tile_records(plan.handle, &tile, nullptr, 0, nullptr, 0, &records, &segments),
            ATTN_UNSUPPORTED);
  EXPECT_EQ(error(), "request 1: seq_len_bound: a tile record needs exact lengths (seq_len alone)");
  const attn_launch_shape shape = {sizeof(shape), 1, 64, 0, 0};
  attn_work_list list = {};
  list.struct_size = sizeof(list);
  EXPECT_EQ(attn_plan_work_list(plan.handle, &shape, &list), ATTN_UNSUPPORTED);
  EXPECT_EQ(error(), "request 1: seq_len_bound: a work list needs exact lengths (seq_len alone)");
}

TEST(CApiEngine, SupportAndSelection) {
  core::Artifact with = tinyArtifact("ranges"), without = tinyArtifact("plain");
  core::MaskProgram &program = without.kernels[0].spec.program;
  program.tables[0].kind = core::TableKind::Documents;
  for (core::Node &node : program.nodes)
    if (node.op == core::Op::MmPrefix)
      node.op = core::Op::Document;
  for (core::TableDecl &table : without.kernels[0].binaries[0].tables)
    if (table.kind == core::TableKind::Ranges)
      table.kind = core::TableKind::Documents;
  ArtifactHandle ranges(with), plain(without);
  EXPECT_EQ(attn_kernel_supported(ranges.handle, 0, "cpu", 16, 0), ATTN_OK) << error();
  EXPECT_EQ(attn_kernel_supported(ranges.handle, 0, "sm_90a", 0, 0), ATTN_UNSUPPORTED);
  EXPECT_NE(error().find("got 'f32'\n"), std::string::npos) << error();
  EXPECT_NE(error().find("takes dim_v equal to dim, got 6 and 8"), std::string::npos) << error();
  EXPECT_EQ(attn_kernel_supported(ranges.handle, 1, "cpu", 0, 0), ATTN_INVALID_ARGUMENT);
  EXPECT_EQ(error(), "kernel 1 of 1");

  const attn_candidate candidates[] = {
      {sizeof(attn_candidate), ranges.handle, 0, ATTN_USE_ALWAYS, 0},
      {sizeof(attn_candidate), plain.handle, 0, ATTN_USE_NO_RANGES, 1}};
  attn_selector *selector = nullptr;
  ASSERT_EQ(attn_selector_create(candidates, 2, "cpu", 0, &selector), ATTN_OK) << error();
  int64_t chosen = -1;
  EXPECT_EQ(attn_selector_select(selector, 0, 0, &chosen), ATTN_OK);
  EXPECT_EQ(chosen, 1);
  EXPECT_EQ(attn_selector_select(selector, 1, 0, &chosen), ATTN_OK);
  EXPECT_EQ(chosen, 0);
  attn_selector_destroy(selector);
  selector = nullptr;
  ASSERT_EQ(attn_selector_create(candidates + 1, 1, "cpu", 0, &selector), ATTN_OK) << error();
  EXPECT_EQ(attn_selector_select(selector, 1, 0, &chosen), ATTN_UNSUPPORTED);
  EXPECT_EQ(error(),
            "selector: no kernel fits this step\nkernel 'plain' (no ranges in this batch): "
            "the batch has ranges");
  attn_selector_destroy(selector);
  selector = nullptr;
  EXPECT_EQ(attn_selector_create(candidates, 2, "sm_90a", 0, &selector), ATTN_UNSUPPORTED);
  EXPECT_EQ(selector, nullptr);
  attn_candidate wrong = candidates[0];
  wrong.use = 3;
  EXPECT_EQ(attn_selector_create(&wrong, 1, "cpu", 0, &selector), ATTN_INVALID_ARGUMENT);
  EXPECT_EQ(error(), "candidates[0].use is 3, expected an attn_kernel_use");
  EXPECT_EQ(attn_selector_create(nullptr, 1, "cpu", 0, &selector), ATTN_INVALID_ARGUMENT);
  EXPECT_EQ(error(), "candidates is null");
  // A kernel may stand there twice.
  const attn_candidate twice[] = {
      {sizeof(attn_candidate), ranges.handle, 0, ATTN_USE_IGNORES_RANGES, 2},
      {sizeof(attn_candidate), plain.handle, 0, ATTN_USE_NO_RANGES, 1},
      {sizeof(attn_candidate), ranges.handle, 0, ATTN_USE_ALWAYS, 0}};
  ASSERT_EQ(attn_selector_create(twice, 3, "cpu", 0, &selector), ATTN_OK) << error();
  EXPECT_EQ(attn_selector_select(selector, 1, 0, &chosen), ATTN_OK);
  EXPECT_EQ(chosen, 2);
  attn_selector_destroy(selector);
}

/// A compiler that makes the tiny kernel, or fails.
int32_t compileTiny(void *context, const attn_kernel_key *key, attn_artifact **out, char *message,
                    size_t bytes) {
  int &calls = *static_cast<int *>(context);
  if (++calls == 1) {
    std::strncpy(message, "not today", bytes);
    return 1;
  }
  core::Artifact artifact = tinyArtifact();
  artifact.compilerVersion = key->compiler_version;
  const std::vector<uint8_t> data = core::serialize(artifact);
  return attn_artifact_load_memory(data.data(), data.size(), out);
}

TEST(CApiEngine, KernelCache) {
  const std::string hash = tinySpec().specHash;
  attn_kernel_cache_options options = {};
  options.struct_size = sizeof(options);
  attn_kernel_cache *cache = nullptr;
  ASSERT_EQ(attn_kernel_cache_create(&options, &cache), ATTN_OK) << error();
  const attn_kernel_key key = {sizeof(key), hash.c_str(), "cpu", "7", nullptr};
  attn_artifact *artifact = nullptr;
  int64_t kernel = -1;
  EXPECT_EQ(attn_kernel_cache_get(cache, &key, nullptr, nullptr, &artifact, &kernel),
            ATTN_UNSUPPORTED);
  EXPECT_NE(error().find("is not in the kernel cache, and there is no compiler"),
            std::string::npos);
  int calls = 0;
  EXPECT_EQ(attn_kernel_cache_get(cache, &key, compileTiny, &calls, &artifact, &kernel),
            ATTN_FAILED);
  EXPECT_EQ(error(), "not today");
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(attn_kernel_cache_get(cache, &key, compileTiny, &calls, &artifact, &kernel), ATTN_OK)
        << error();
    EXPECT_EQ(kernel, 0);
    EXPECT_EQ(attn_artifact_num_kernels(artifact), 1);
    attn_artifact_destroy(artifact);
  }
  EXPECT_EQ(calls, 2);
  attn_kernel_key bad = key;
  bad.target = nullptr;
  EXPECT_EQ(attn_kernel_cache_get(cache, &bad, nullptr, nullptr, &artifact, &kernel),
            ATTN_INVALID_ARGUMENT);
  EXPECT_EQ(error(), "attn_kernel_key.target is null");
  attn_kernel_cache_destroy(cache);
  options.memory_bytes = -1;
  EXPECT_EQ(attn_kernel_cache_create(&options, &cache), ATTN_INVALID_ARGUMENT);
}

} // namespace
