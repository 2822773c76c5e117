// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Recipes from C: what a plan staged against what the builders of the same library say, and
// refusals.
#include "attn-c/Engine.h"

#include "../../Device/Fake/FakeArtifact.h"
#include "CApiTest.h"
#include "FakeDriver.h"
#include "TestKernel.h"

#include "attn/Runtime/Cuda.h"

#include <cstring>

using namespace attn;
using namespace testing_rt;

namespace {

core::Artifact recipeArtifact() {
  core::Artifact artifact = tinyArtifact();
  core::KernelSpec &spec = artifact.kernels[0].spec;
  spec.dimQk = spec.dimV = 64;
  spec.qType = spec.kvType = core::DType::BF16;
  artifact = fake::withFakeCode(std::move(artifact), /*countsTiles=*/false);
  core::Recipe images, runs, splits;
  images.name = "images";
  images.source = 0;
  images.perRequest = 3;
  runs.name = "runs";
  runs.kind = core::RecipeKind::PageRuns;
  runs.pageSize = 4;
  splits.name = "splits";
  splits.kind = core::RecipeKind::SplitPlan;
  splits.pieces = 2;
  for (core::KernelBinary &binary : artifact.kernels[0].binaries)
    if (binary.cuda) {
      binary.cuda->keyTile = 16; // of which the longest request has several
      binary.recipes = {images, runs, splits};
    }
  return artifact;
}

/// The batch in pages of 4 keys, one request of 60 keys.
struct PagedBatch : Batch {
  int32_t table[2 * 16];
  PagedBatch() {
    for (int i = 0; i < 32; ++i)
      table[i] = i < 16 ? i + 3 : 64 - i;
    seqLens[0] = 60;
    params[0].i = 1000;
    batch.page_size = 4;
    batch.num_pages = 80;
    batch.block_table = table;
    batch.block_table_stride = batch.block_table_width = 16;
  }
};

attn_plan_options planOptions() {
  attn_plan_options options = {};
  options.struct_size = sizeof(options);
  options.device = "cuda";
  options.max_reqs = 4;
  options.max_tokens = 64;
  options.max_ranges = 8;
  options.max_pages = 19;
  options.flags = ATTN_PLAN_FIXED;
  options.cuda_driver = kFake;
  return options;
}

class CApiRecipes : public FakeDriverTest {
protected:
  attn_recipe recipe(const PlanHandle &plan, const char *name) {
    attn_recipe value = {};
    value.struct_size = sizeof(value);
    EXPECT_EQ(attn_plan_recipe(plan.handle, name, &value), ATTN_OK) << error();
    return value;
  }
  /// Elements of an array, which are the same on the host and on the device.
  template <class T>
  std::vector<T> elements(const attn_recipe_array &array) {
    std::vector<T> values(static_cast<size_t>(array.count));
    const auto from = reinterpret_cast<rt::CudaPointer>(array.device);
    const size_t bytes = values.size() * sizeof(T);
    EXPECT_TRUE(device->copyOut(values.data(), from, bytes, nullptr).ok());
    EXPECT_EQ(std::memcmp(values.data(), array.host, bytes), 0);
    return values;
  }
};

template <class T>
bool same(const std::vector<T> &a, const std::vector<T> &b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

TEST_F(CApiRecipes, AreWhatTheBuildersSay) {
  ArtifactHandle artifact(recipeArtifact());
  PlanHandle plan(artifact, planOptions());
  PagedBatch batch;
  ASSERT_EQ(attn_plan_prepare(plan.handle, &batch.batch, nullptr, nullptr), ATTN_OK) << error();

  const attn_recipe images = recipe(plan, "images");
  EXPECT_EQ(images.kind, ATTN_RECIPE_RANGE_TENSOR);
  EXPECT_EQ(images.per_request, 3);
  std::vector<int32_t> tensor(2 * 3 * 2);
  int64_t count = 0;
  ASSERT_EQ(attn_plan_range_tensor(plan.handle, "mm", 3, tensor.data(), 6, &count, nullptr),
            ATTN_OK);
  ASSERT_EQ(images.ranges.count, 6);
  EXPECT_EQ(std::memcmp(images.ranges.host, tensor.data(), 48), 0);
  elements<core::Range>(images.ranges);
  EXPECT_EQ(elements<attn_recipe_counts>(images.counts)[0].items, count);
  EXPECT_EQ(images.page_runs.count, 0);
  EXPECT_EQ(images.pieces.count, 0);

  const attn_recipe runs = recipe(plan, "runs");
  EXPECT_EQ(runs.kind, ATTN_RECIPE_PAGE_RUNS);
  std::vector<attn_page_run> wantRuns(19);
  std::vector<int64_t> offsets(3);
  ASSERT_EQ(attn_plan_page_runs(plan.handle, wantRuns.data(), 19, offsets.data(), &count), ATTN_OK)
      << error();
  EXPECT_EQ(count, 5); // one run of 15 pages, then 4 pages that descend
  wantRuns.resize(static_cast<size_t>(count));
  EXPECT_TRUE(same(elements<attn_page_run>(runs.page_runs), wantRuns));
  EXPECT_EQ(elements<int64_t>(runs.page_run_offsets), offsets);
  EXPECT_EQ(elements<attn_recipe_counts>(runs.counts)[0].items, count);

  const attn_recipe splits = recipe(plan, "splits");
  EXPECT_EQ(splits.kind, ATTN_RECIPE_SPLIT_PLAN);
  EXPECT_EQ(splits.split_kind, ATTN_SPLIT_COUNT);
  EXPECT_EQ(splits.split_value, 2);
  const auto pieces = elements<attn_split_piece>(splits.pieces);
  const auto tiles = elements<attn_query_tile>(splits.tiles);
  const auto counts = elements<attn_recipe_counts>(splits.counts)[0];
  ASSERT_EQ(tiles.size(), 2u);
  ASSERT_EQ(pieces.size(), 3u); // the second request has one block
  EXPECT_EQ(elements<int32_t>(splits.piece_begin), (std::vector<int32_t>{0, 2, 3}));
  EXPECT_EQ(pieces[0].blocks + pieces[1].blocks, 4);
  EXPECT_EQ(counts.tiles, 2);
  EXPECT_EQ(counts.pieces, 3);
  EXPECT_EQ(counts.partial_rows, 4 * 2 * 8); // heads, pieces, rows
  EXPECT_EQ(splits.work.count, 4 * 3);
  EXPECT_EQ(splits.combines.count, 4);
  elements<attn_split_work>(splits.work);
  elements<attn_split_combine>(splits.combines);
  EXPECT_EQ(static_cast<int64_t>(elements<attn_tile_entry>(splits.entries).size()), counts.entries);
}

TEST_F(CApiRecipes, Refusals) {
  ArtifactHandle artifact(recipeArtifact());
  PagedBatch batch;
  attn_recipe value = {};
  value.struct_size = sizeof(value);
  const auto prepare = [&](const attn_plan_options &options, attn_status status) {
    PlanHandle plan(artifact, options);
    EXPECT_EQ(attn_plan_prepare(plan.handle, &batch.batch, nullptr, nullptr), status);
    EXPECT_EQ(attn_plan_recipe(plan.handle, "runs", &value),
              status == ATTN_OK ? ATTN_OK : ATTN_NOT_PREPARED);
    return attn_plan_prepare(plan.handle, &batch.batch, nullptr, nullptr), error();
  };
  attn_plan_options options = planOptions();
  prepare(options, ATTN_OK);
  options.max_pages = 18;
  EXPECT_EQ(prepare(options, ATTN_TOO_LARGE),
            "the step has 19 pages with keys, the plan was made for 18");
  // A caller that knows no max_pages.
  options.struct_size = offsetof(attn_plan_options, max_pages);
  EXPECT_EQ(prepare(options, ATTN_TOO_LARGE),
            "the step has 19 pages with keys, the plan was made for 0");
  options = planOptions();
  batch.batch.block_table = nullptr;
  const std::string absent =
      "recipe 'runs': the step has no block table on the host, expected one for 19 pages";
  EXPECT_EQ(prepare(options, ATTN_INVALID_BATCH), absent);
  batch.batch.page_size = 0;
  EXPECT_EQ(prepare(options, ATTN_INVALID_BATCH), absent);
  batch.batch.page_size = 8;
  batch.batch.block_table = batch.table;
  EXPECT_EQ(prepare(options, ATTN_INVALID_BATCH),
            "recipe 'runs': the step has pages of 8 keys, expected 4");
  batch.batch.page_size = 4;
  batch.offsets[1] = 4;
  EXPECT_EQ(prepare(options, ATTN_TOO_LARGE),
            "recipe 'images': a request of the step has 4 ranges, the recipe was made for 3");
  batch.offsets[1] = 2;

  PlanHandle plan(artifact, planOptions());
  ASSERT_EQ(attn_plan_prepare(plan.handle, &batch.batch, nullptr, nullptr), ATTN_OK) << error();
  EXPECT_EQ(attn_plan_recipe(nullptr, "runs", &value), ATTN_INVALID_ARGUMENT);
  EXPECT_EQ(attn_plan_recipe(plan.handle, nullptr, &value), ATTN_INVALID_ARGUMENT);
  EXPECT_EQ(error(), "name is null");
  EXPECT_EQ(attn_plan_recipe(plan.handle, "runs", nullptr), ATTN_INVALID_ARGUMENT);
  EXPECT_EQ(error(), "attn_recipe is null");
  EXPECT_EQ(attn_plan_recipe(plan.handle, "pages", &value), ATTN_INVALID_ARGUMENT);
  EXPECT_EQ(error(), "kernel 'tiny' has no recipe 'pages' (it has: images, runs, splits)");
  value.struct_size = 8;
  EXPECT_EQ(attn_plan_recipe(plan.handle, "runs", &value), ATTN_INVALID_ARGUMENT);

  options = {};
  options.struct_size = sizeof(options);
  options.device = "none";
  options.max_reqs = 4;
  options.max_tokens = 64;
  PlanHandle host(artifact, options);
  EXPECT_EQ(attn_plan_recipe(host.handle, "runs", &value), ATTN_UNSUPPORTED);
  EXPECT_EQ(error(), "device 'none' has no recipes");
  options.max_pages = 1;
  attn_plan *none = nullptr;
  EXPECT_EQ(attn_plan_create(artifact.handle, &options, &none), ATTN_INVALID_ARGUMENT);
  EXPECT_EQ(error(), "attn_plan_options: members of device 'cuda' from max_ranges on are set, "
                     "expected 0");
}

} // namespace
