// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Recipes of every kind for the kernel of CudaWorkload.h, random batches with block tables for
// them, and the judge of a step.
#ifndef ATTN_TEST_UNIT_RUNTIME_CUDARECIPES_H
#define ATTN_TEST_UNIT_RUNTIME_CUDARECIPES_H

#include "CudaWorkload.h"
#include "FakeDriver.h"

#include "attn/Core/IntMath.h"
#include "attn/Runtime/CudaRecipes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace testing_rt {

constexpr int64_t kRequests = 6, kTokens = 900, kRanges = 40, kPerRequest = 9;
constexpr int64_t kPageSize = 16, kWidth = 80, kPages = 300;

inline attn::core::Recipe rangeTensor(const std::string &name = "images") {
  attn::core::Recipe recipe;
  recipe.name = name;
  recipe.kind = attn::core::RecipeKind::RangeTensor;
  recipe.source = 0;
  recipe.perRequest = kPerRequest;
  return recipe;
}

inline attn::core::Recipe pageRuns(const std::string &name = "runs") {
  attn::core::Recipe recipe;
  recipe.name = name;
  recipe.kind = attn::core::RecipeKind::PageRuns;
  recipe.pageSize = kPageSize;
  return recipe;
}

inline attn::core::Recipe splitPlan(attn::core::SplitPolicy policy, int64_t pieces,
                                    const std::string &name) {
  attn::core::Recipe recipe;
  recipe.name = name;
  recipe.kind = attn::core::RecipeKind::SplitPlan;
  recipe.policy = policy;
  recipe.pieces = pieces;
  return recipe;
}

inline std::vector<attn::core::Recipe> allRecipes() {
  using attn::core::SplitPolicy;
  return {rangeTensor(),
          pageRuns(),
          splitPlan(SplitPolicy::Count, 3, "thirds"),
          splitPlan(SplitPolicy::Measured, attn::core::kMostSplitPieces, "measured"),
          splitPlan(SplitPolicy::Measured, 2, "halves"),
          splitPlan(SplitPolicy::Sm100Relbias, 16, "relbias")};
}

inline attn::core::Artifact artifactWith(const std::vector<attn::core::Recipe> &recipes) {
  attn::core::Artifact artifact = gpuArtifact(/*countsTiles=*/false);
  for (attn::core::KernelBinary &binary : artifact.kernels[0].binaries)
    binary.recipes = recipes;
  return artifact;
}

/// A batch for gpuSpec with a block table, whose entries past the keys are junk.
struct Step {
  attn::core::Batch batch;
  std::vector<int32_t> table;
  std::vector<float> slopes = std::vector<float>(4, 0.5f);

  Step() = default;
  Step(const Step &) = delete;

  attn::rt::PageTable pages() const { return {table.data(), kWidth, kPageSize}; }

  void draw(Random &random) {
    attn::core::BatchShape &shape = batch.shape;
    shape = {};
    batch.numHeads = 4;
    batch.numKvHeads = 2;
    batch.params = {{random.in(0, 300), 0}, {0, 0.125}};
    batch.tables.resize(2);
    attn::core::TableData &mm = batch.tables[0], &dense = batch.tables[1];
    dense.data = slopes.data();
    dense.extents = {4};
    dense.strides = {1};
    mm.ranges.clear();
    mm.rangeOffsets = shape.queryStartLoc = {0};
    table.assign(kRequests * kWidth, -7);
    const int64_t requests = random.in(0, kRequests);
    const bool hasRanges = random.in(0, 3) != 0;
    int64_t left = kPages;
    for (int64_t b = 0; b < requests; ++b) {
      const int64_t room = std::min(kTokens - shape.numTokens(), left * kPageSize);
      const int64_t queryLen =
          random.in(0, 2) ? random.in(0, std::min<int64_t>(room, 400)) : std::min<int64_t>(room, 1);
      const int64_t seqLen = std::min(
          {queryLen + random.in(0, 1) * random.in(0, 800), left * kPageSize, kWidth * kPageSize});
      left -= attn::core::ceilDiv(seqLen, kPageSize);
      shape.queryStartLoc.push_back(shape.queryStartLoc.back() + queryLen);
      shape.seqLen.push_back(seqLen);
      shape.contextLen.push_back(seqLen - queryLen);
      shape.keyBegin.push_back(random.in(0, 3) ? 0 : random.in(0, seqLen));
      shape.keyEnd.push_back(random.in(0, 3) ? seqLen : random.in(shape.keyBegin.back(), seqLen));
      const int64_t ranges = hasRanges && seqLen > 1 ? random.in(0, kPerRequest) : 0;
      for (int64_t n = 0; n < ranges && mm.ranges.size() < kRanges; ++n) {
        const auto start = static_cast<int32_t>(random.in(0, seqLen - 2));
        mm.ranges.push_back(
            {start, static_cast<int32_t>(random.in(start + 1, std::min(seqLen, start + 200L)))});
      }
      mm.rangeOffsets.push_back(static_cast<int64_t>(mm.ranges.size()));
      int32_t page = 0;
      for (int64_t i = shape.keyBegin.back() / kPageSize;
           i < attn::core::ceilDiv(shape.keyEnd.back(), kPageSize); ++i) {
        page = i && random.in(0, 3) ? page + 1 : static_cast<int32_t>(random.in(0, 1 << 30));
        table[b * kWidth + i] = page;
      }
    }
  }
};

class CudaRecipes : public FakeDriverTest {
protected:
  void load(const std::vector<attn::core::Recipe> &recipes) {
    kernel = nullptr;
    artifact = artifactWith(recipes);
    attn::core::Result<attn::rt::CudaKernel> loaded =
        attn::rt::CudaKernel::load(device, artifact, artifact.kernels[0]);
    ASSERT_TRUE(loaded.ok()) << loaded.message();
    kernel = std::make_unique<attn::rt::CudaKernel>(std::move(*loaded));
  }
  void TearDown() override {
    kernel = nullptr;
    FakeDriverTest::TearDown();
  }
  static attn::rt::CudaPlanOptions options() {
    attn::rt::CudaPlanOptions options;
    options.limits.requests = kRequests;
    options.limits.tokens = kTokens;
    options.limits.ranges = kRanges;
    options.limits.pages = kPages;
    return options;
  }
  attn::rt::CudaPlan makePlan(const attn::rt::CudaPlanOptions &options) {
    attn::core::Result<attn::rt::CudaPlan> plan = attn::rt::CudaPlan::create(*kernel, options);
    EXPECT_TRUE(plan.ok()) << plan.message();
    return std::move(*plan);
  }
  static attn::core::Status build(attn::rt::CudaPlan &plan, const Step &step) {
    return plan.build(step.batch, nullptr, nullptr, {}, step.pages());
  }

  /// The device has what the host has.
  template <class T>
  void expectCopied(const attn::rt::CudaArray<T> &array) const {
    std::vector<T> copy(static_cast<size_t>(array.host.size));
    const size_t bytes = copy.size() * sizeof(T);
    if (bytes == 0)
      return;
    ASSERT_TRUE(device->copyOut(copy.data(), array.device, bytes, nullptr).ok());
    EXPECT_EQ(std::memcmp(copy.data(), array.host.data, bytes), 0);
  }
  void expectCopied(const attn::rt::CudaRecipe &r) const;
  /// Every recipe of the step is its definition, and the device has it.
  void expectStep(const attn::rt::CudaPlan &plan, const Step &step, bool forGraphs) const;

  attn::core::Artifact artifact;
  std::unique_ptr<attn::rt::CudaKernel> kernel;
};

} // namespace testing_rt

#endif // ATTN_TEST_UNIT_RUNTIME_CUDARECIPES_H
