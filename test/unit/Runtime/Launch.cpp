// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// NativeRunner on the hand-written kernel against the reference: dense and paged K/V, sub-ranges,
// threads, the mask entry.
#include "attn/Runtime/Launch.h"

#include "attn/Core/MaskEval.h"
#include "attn/Reference/Reference.h"
#include "attn/Runtime/BatchBinding.h"

#include "TestKernel.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <limits>

using namespace attn;
using namespace attn::core;
using namespace testing_rt;

namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

/// A random bound batch of the tiny kernel with tensors.
struct Case {
  rt::BoundBatch bound;
  std::vector<float> q, k, v;
  // The same K and V in pages: slot of key k of request b.
  std::vector<float> pagedK, pagedV;
  std::vector<int32_t> pages;
  int64_t pageStride = 0, pageSize = 0;
};

Case randomCase(const KernelSpec &spec, Random &random) {
  rt::BatchInput input;
  rt::RangesInput ranges;
  ranges.offsets = {0};
  for (int64_t b = random.in(1, 5); b > 0; --b) {
    rt::RequestInput request;
    request.queryLen = random.in(0, 9);
    request.seqLen = random.in(0, 25);
    input.requests.push_back(request);
    for (int64_t n = random.in(0, 3); n > 0; --n) {
      const int64_t start = random.in(0, 24);
      ranges.ranges.push_back({start, start + random.in(0, 12)});
    }
    ranges.offsets.push_back(static_cast<int64_t>(ranges.ranges.size()));
  }
  input.mmRanges = ranges;
  input.allowPartialRanges = true;
  input.params = {{"left", true, random.in(0, 8), 0}, {"scale", false, 0, 0.4}};
  rt::TableInput slopes;
  slopes.name = "slopes";
  slopes.dense.emplace();
  slopes.dense->element = ScalarType::F32;
  slopes.dense->extents = {4};
  static const float kSlopes[4] = {0.5f, 0.25f, 0, -0.125f};
  slopes.dense->data = kSlopes;
  input.tables.push_back(slopes);
  Result<rt::BoundBatch> bound = rt::bindBatch(spec, input);
  EXPECT_TRUE(bound) << bound.message();

  Case c;
  c.bound = std::move(*bound);
  auto fill = [&](std::vector<float> &to, int64_t count) {
    for (int64_t i = 0; i < count; ++i)
      to.push_back(random.real());
  };
  const BatchShape &shape = c.bound.batch.shape;
  fill(c.q, shape.numTokens() * 4 * 8);
  fill(c.k, c.bound.kvStart.back() * 2 * 8);
  fill(c.v, c.bound.kvStart.back() * 2 * 6);
  c.pageSize = random.in(1, 7);
  int64_t numPages = 1;
  for (int64_t length : shape.seqLen) {
    c.pageStride = std::max(c.pageStride, rt::livePages(length, c.pageSize) + 1);
    numPages += rt::livePages(length, c.pageSize);
  }
  c.pagedK.assign(numPages * c.pageSize * 16, kNaN);
  c.pagedV.assign(numPages * c.pageSize * 12, kNaN);
  c.pages.assign(shape.numReqs() * c.pageStride, INT32_MAX); // junk past the live pages
  int32_t next = static_cast<int32_t>(numPages);
  for (int64_t b = 0; b < shape.numReqs(); ++b)
    for (int64_t key = 0; key < shape.seqLen[b]; ++key) {
      int32_t &page = c.pages[b * c.pageStride + key / c.pageSize];
      if (key % c.pageSize == 0)
        page = --next;
      const int64_t slot = page * c.pageSize + key % c.pageSize;
      std::copy_n(&c.k[(c.bound.kvStart[b] + key) * 16], 16, &c.pagedK[slot * 16]);
      std::copy_n(&c.v[(c.bound.kvStart[b] + key) * 12], 12, &c.pagedV[slot * 12]);
    }
  return c;
}

Problem denseProblem(Case &c, const KernelSpec &spec) {
  Problem problem;
  problem.spec = &spec;
  problem.batch = &c.bound.batch;
  problem.q = {c.q.data(), DType::F32, 32, 8};
  problem.k = {c.k.data(), DType::F32, 0, 16, 8};
  problem.v = {c.v.data(), DType::F32, 0, 12, 6};
  problem.kv.kvStart = c.bound.kvStart.data();
  return problem;
}

Problem pagedProblem(Case &c, const KernelSpec &spec) {
  Problem problem = denseProblem(c, spec);
  problem.k = {c.pagedK.data(), DType::F32, c.pageSize * 16, 16, 8};
  problem.v = {c.pagedV.data(), DType::F32, c.pageSize * 12, 12, 6};
  problem.kv = {nullptr, c.pages.data(), c.pageStride, c.pageSize};
  return problem;
}

struct Result2 {
  std::vector<float> o, lse;
};

Result2 runPart(const rt::NativeRunner &runner, const Problem &problem, const rt::SubRange &part,
                unsigned threads = 1) {
  const int64_t tokens = problem.batch->shape.numTokens();
  Result2 result{std::vector<float>(tokens * 24, kNaN), std::vector<float>(4 * tokens, kNaN)};
  rt::NativeTables tables(runner.spec(), runner.binary(), *problem.batch);
  rt::NativeOutput output{result.o.data(), 24, 6, result.lse.data(), tokens};
  runner.run(problem, tables, output, part, threads);
  return result;
}

bool same(float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); }

TEST(NativeRunner, EqualsTheReference) {
  const Artifact artifact = tinyArtifact();
  const KernelSpec &spec = artifact.kernels[0].spec;
  Result<rt::NativeRunner> runner = rt::NativeRunner::create(artifact, artifact.kernels[0]);
  ASSERT_TRUE(runner) << runner.message();
  Random random(11);
  int64_t rows = 0, emptyRows = 0;
  double largest = 0;
  for (int round = 0; round < 300; ++round) {
    Case c = randomCase(spec, random);
    const int64_t tokens = c.bound.batch.shape.numTokens();
    const Problem dense = denseProblem(c, spec), paged = pagedProblem(c, spec);
    const rt::SubRange all = rt::SubRange::all(c.bound.batch.shape);
    const reference::Output expected = reference::run(dense);
    const Result2 got = runPart(*runner, dense, all);
    const Result2 fromPages = runPart(*runner, paged, all);
    const Result2 threaded = runPart(*runner, paged, all, 3);
    for (int64_t t = 0; t < tokens; ++t)
      for (int64_t h = 0; h < 4; ++h, ++rows) {
        const double lse = expected.lse[h * tokens + t];
        const float gotLse = got.lse[h * tokens + t];
        double norm = 0, difference = 0;
        for (int64_t d = 0; d < 6; ++d) {
          const int64_t i = (t * 4 + h) * 6 + d;
          ASSERT_TRUE(same(got.o[i], fromPages.o[i]));
          ASSERT_TRUE(same(got.o[i], threaded.o[i]));
          difference += std::pow(got.o[i] - expected.o[i], 2);
          norm += std::pow(expected.o[i], 2);
        }
        ASSERT_EQ(gotLse, fromPages.lse[h * tokens + t]);
        if (std::isinf(lse)) {
          ++emptyRows;
          ASSERT_EQ(gotLse, -std::numeric_limits<float>::infinity());
          ASSERT_EQ(difference, 0);
          continue;
        }
        ASSERT_NEAR(gotLse, lse, 1e-5 * std::max(1.0, std::abs(lse)));
        largest = std::max(largest, std::sqrt(difference / norm));
      }
  }
  std::printf("300 batches, %ld rows, %ld empty, largest relative row error %.2g\n",
              static_cast<long>(rows), static_cast<long>(emptyRows), largest);
  EXPECT_LT(largest, 1e-5);
  EXPECT_GT(emptyRows, 100);
}

TEST(NativeRunner, PartsWriteTheirRowsOnly) {
  const Artifact artifact = tinyArtifact();
  const KernelSpec &spec = artifact.kernels[0].spec;
  Result<rt::NativeRunner> runner = rt::NativeRunner::create(artifact, artifact.kernels[0]);
  ASSERT_TRUE(runner);
  Random random(12);
  for (int round = 0; round < 50; ++round) {
    Case c = randomCase(spec, random);
    const BatchShape &shape = c.bound.batch.shape;
    const Problem problem = denseProblem(c, spec);
    const Result2 whole = runPart(*runner, problem, rt::SubRange::all(shape));
    rt::SubRange part;
    part.requestBegin = random.in(0, shape.numReqs());
    part.requestEnd = random.in(part.requestBegin, shape.numReqs());
    part.tokenBegin = random.in(0, shape.numTokens());
    part.tokenEnd = random.in(part.tokenBegin, shape.numTokens());
    const Result2 got = runPart(*runner, problem, part, round % 2 ? 2 : 1);
    for (int64_t b = 0; b < shape.numReqs(); ++b)
      for (int64_t t = shape.queryStartLoc[b]; t < shape.queryStartLoc[b + 1]; ++t) {
        const bool inside = part.requestBegin <= b && b < part.requestEnd && part.tokenBegin <= t &&
                            t < part.tokenEnd;
        for (int64_t i = 0; i < 24; ++i) {
          const float value = got.o[t * 24 + i];
          ASSERT_TRUE(inside ? same(value, whole.o[t * 24 + i]) : std::isnan(value));
        }
      }
  }
}

TEST(NativeRunner, DenseMask) {
  const Artifact artifact = tinyArtifact();
  const KernelSpec &spec = artifact.kernels[0].spec;
  Result<rt::NativeRunner> runner = rt::NativeRunner::create(artifact, artifact.kernels[0]);
  ASSERT_TRUE(runner);
  Random random(13);
  for (int round = 0; round < 50; ++round) {
    Case c = randomCase(spec, random);
    const Batch &batch = c.bound.batch;
    rt::NativeTables tables(spec, runner->binary(), batch);
    ASSERT_EQ(runner->denseMask(batch, tables, 30), reference::denseMask(spec, batch, 30));
  }
}

TEST(NativeRunner, RowsInTheCallersMemory) {
  const Artifact artifact = tinyArtifact();
  const KernelSpec &spec = artifact.kernels[0].spec;
  Random random(14);
  Case c = randomCase(spec, random);
  const KernelBinary &binary = artifact.kernels[0].binaries[0];
  const int64_t tokens = c.bound.batch.shape.numTokens();
  ASSERT_EQ(rt::NativeTables::rowsNeeded(binary, tokens), tokens);
  std::vector<Range> rows(tokens, Range{-9, -9});
  rt::NativeTables tables(spec, binary, c.bound.batch, rows.data());
  EXPECT_EQ(tables.tables()[2].data, rows.data());
  for (const Range &row : rows)
    EXPECT_NE(row.start, -9);
}

TEST(NativeRunner, Refusals) {
  auto message = [](const Artifact &artifact) {
    Result<rt::NativeRunner> runner = rt::NativeRunner::create(artifact, artifact.kernels[0]);
    return runner ? std::string("made") : runner.message();
  };
  Artifact artifact = tinyArtifact();
  artifact.kernels[0].binaries[0].target = "sm_90a";
  EXPECT_EQ(message(artifact),
            "kernel 'tiny': no code for target 'cpu' (the artifact has: sm_90a)");
  artifact.kernels[0].binaries.clear();
  EXPECT_EQ(message(artifact), "kernel 'tiny': no code for target 'cpu' (the artifact has: none)");
  artifact = tinyArtifact();
  artifact.kernels[0].binaries[0].format = "macho";
  EXPECT_EQ(message(artifact), "kernel 'tiny': code of format 'macho', expected 'elf-x86-64'");
  artifact = tinyArtifact();
  artifact.kernels[0].binaries[0].blob = 4;
  EXPECT_EQ(message(artifact), "kernel 'tiny': code 4 is not in the artifact");
  artifact = tinyArtifact();
  artifact.kernels[0].binaries[0].maskEntry = "gone";
  EXPECT_EQ(message(artifact), "kernel 'tiny': native code: no function 'gone'");
  artifact = tinyArtifact();
  artifact.blobs[0].resize(10);
  EXPECT_EQ(message(artifact), "kernel 'tiny': native code: not an ELF object");
  artifact = tinyArtifact();
  artifact.kernels[0].binaries[0].tables.resize(1);
  EXPECT_EQ(message(artifact), "kernel 'tiny': code for target 'cpu' takes 1 tables, expected at "
                               "least 2");
  artifact = tinyArtifact();
  artifact.kernels[0].binaries[0].tables[2].source = 1;
  EXPECT_EQ(message(artifact), "kernel 'tiny': code for target 'cpu' takes table 'rows', whose "
                               "source cannot be built from");
  artifact = tinyArtifact();
  artifact.kernels[0].binaries[0].tables[2].kind = TableKind::Ranges;
  EXPECT_EQ(message(artifact), "kernel 'tiny': code for target 'cpu' takes table 'rows', which the "
                               "kernel does not declare");
}

} // namespace
