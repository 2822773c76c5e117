// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Failures seen in other systems, as far as the host's part of a step decides them: classes ubatch,
// plan, cache, and the host part of packing, per-seq and invariance.
#include "attn/Core/MaskEval.h"
#include "attn/Reference/Reference.h"
#include "attn/Runtime/Builders.h"
#include "attn/Runtime/KernelCache.h"
#include "attn/Runtime/MicroBatch.h"
#include "attn/Runtime/SplitPlan.h"

#include "TestKernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>

using namespace attn;
using namespace attn::core;
using namespace testing_rt;

namespace {

using Ints = std::vector<int64_t>;
/// First and last key of each row.
using Rows = std::vector<std::pair<int64_t, int64_t>>;

rt::BatchInput inputOf(const Ints &queryLens, const Ints &seqLens) {
  rt::BatchInput input;
  for (size_t b = 0; b < queryLens.size(); ++b) {
    input.requests.emplace_back();
    input.requests[b].queryLen = queryLens[b];
    input.requests[b].seqLen = seqLens[b];
  }
  return input;
}

/// A batch of tinySpec, (causal and q - k <= left) or mm_prefix.
rt::BoundBatch tinyBatch(rt::BatchInput input, int64_t left) {
  static const float kSlopes[4] = {0.5f, 0.25f, 0, -0.125f};
  rt::TableInput slopes;
  slopes.name = "slopes";
  slopes.dense.emplace();
  slopes.dense->element = ScalarType::F32;
  slopes.dense->extents = {4};
  slopes.dense->data = kSlopes;
  input.tables = {slopes};
  input.params = {{"left", true, left, 0}, {"scale", false, 0, 0.4}};
  Result<rt::BoundBatch> bound = rt::bindBatch(tinySpec(), input);
  EXPECT_TRUE(bound) << bound.message();
  return std::move(*bound);
}

rt::BoundBatch boundBatch(const KernelSpec &spec, const rt::BatchInput &input) {
  Result<rt::BoundBatch> bound = rt::bindBatch(spec, input);
  EXPECT_TRUE(bound) << bound.message();
  return std::move(*bound);
}

/// Rows of the dense mask, which have no holes; all heads agree.
Rows rowsOf(const KernelSpec &spec, const Batch &batch) {
  const int64_t tokens = batch.shape.numTokens(), stride = 64;
  const std::vector<uint8_t> keep = reference::denseMask(spec, batch, stride);
  Rows rows;
  for (int64_t t = 0; t < tokens; ++t) {
    int64_t first = 0, last = -1, count = 0;
    for (int64_t k = 0; k < stride; ++k) {
      for (int64_t h = 1; h < batch.numHeads; ++h)
        EXPECT_EQ(keep[(h * tokens + t) * stride + k], keep[t * stride + k]);
      if (!keep[t * stride + k])
        continue;
      first = count++ ? first : k;
      last = k;
    }
    EXPECT_EQ(count, last - first + 1);
    rows.push_back({first, last});
  }
  return rows;
}

/// Tensors of the tiny kernel with values that depend on the row only.
struct Tensors {
  explicit Tensors(const rt::BoundBatch &bound) {
    Random random(5);
    auto fill = [&](std::vector<float> &to, int64_t count) {
      for (int64_t i = 0; i < count; ++i)
        to.push_back(random.real());
    };
    fill(q, bound.batch.shape.numTokens() * 32);
    fill(k, bound.kvStart.back() * 16);
    fill(v, bound.kvStart.back() * 12);
  }

  Problem problem(const KernelSpec &spec, const rt::BoundBatch &bound, int64_t token = 0) {
    Problem p;
    p.spec = &spec;
    p.batch = &bound.batch;
    p.q = {q.data() + token * 32, DType::F32, 32, 8};
    p.k = {k.data(), DType::F32, 0, 16, 8};
    p.v = {v.data(), DType::F32, 0, 12, 6};
    p.kv.kvStart = bound.kvStart.data();
    return p;
  }

  std::vector<float> q, k, v;
};

/// O, [tokens][24], then LSE, [4][tokens]; `rows` is memory for the built table or null.
std::vector<float> runNative(const Artifact &artifact, const Problem &problem,
                             Range *rows = nullptr) {
  Result<rt::NativeRunner> runner = rt::NativeRunner::create(artifact, artifact.kernels[0]);
  EXPECT_TRUE(runner) << runner.message();
  const int64_t tokens = problem.batch->shape.numTokens();
  std::vector<float> out(tokens * 28);
  rt::NativeTables tables(runner->spec(), runner->binary(), *problem.batch, rows);
  runner->run(problem, tables, {out.data(), 24, 6, out.data() + tokens * 24, tokens},
              rt::SubRange::all(problem.batch->shape));
  return out;
}

bool sameBits(const std::vector<float> &a, const std::vector<float> &b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

void expectReference(const std::vector<float> &got, const Problem &problem) {
  const reference::Output expected = reference::run(problem);
  for (size_t i = 0; i < expected.o.size(); ++i)
    EXPECT_NEAR(got[i], expected.o[i], 1e-4);
  for (size_t i = 0; i < expected.lse.size(); ++i)
    EXPECT_NEAR(got[expected.o.size() + i], expected.lse[i], 1e-4);
}

//===----------------------------------------------------------------------===//
// ubatch
//===----------------------------------------------------------------------===//

TEST(FieldFailures, R031_ubatch_cut_inside_a_range) {
  rt::BatchInput input = inputOf({4, 6, 3}, {4, 10, 3});
  input.mmRanges = rt::RangesInput{{{5, 8}}, {0, 0, 1, 1}};
  const Artifact artifact = tinyArtifact();
  const KernelSpec &spec = artifact.kernels[0].spec;
  const rt::BoundBatch bound = tinyBatch(input, 100);
  const Rows whole = {{0, 0}, {0, 1}, {0, 2}, {0, 3}, {0, 4}, {0, 8}, {0, 8},
                      {0, 8}, {0, 8}, {0, 9}, {0, 0}, {0, 1}, {0, 2}};
  ASSERT_EQ(rowsOf(spec, bound.batch), whole);

  const rt::Halves halves = rt::cutBefore(bound.batch.shape, TokenIndex(7));
  EXPECT_EQ(rt::checkSlice(spec, bound, halves.first).message(),
            "request 1: cut before token 7, position 7, lies inside range [5, 8]; declare the keys "
            "written or cut before token 5");
  EXPECT_EQ(rt::nearestSafeCut(spec, bound, RequestIndex(1), TokenIndex(7))->value, 5);
  EXPECT_EQ(rt::nearestSafeCut(spec, bound, RequestIndex(1), TokenIndex(8))->value, 9);

  Result<rt::MicroBatch> first = rt::sliceBatch(spec, bound, halves.first, {true});
  Result<rt::MicroBatch> second = rt::sliceBatch(spec, bound, halves.second, {true});
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->bound.batch.shape.queryStartLoc, (Ints{0, 4, 7}));
  EXPECT_EQ(first->bound.batch.shape.seqLen, (Ints{4, 10}));
  EXPECT_EQ(first->bound.batch.shape.contextLen, (Ints{0, 4})) << "not seq_len - query_len";
  EXPECT_EQ(second->bound.batch.shape.queryStartLoc, (Ints{0, 3, 6}));
  EXPECT_EQ(second->bound.batch.shape.contextLen, (Ints{7, 0}));
  EXPECT_EQ(second->bound.batch.tables[0].rangeOffsets, (Ints{0, 1, 1})) << "under its new row";
  EXPECT_EQ(second->bound.batch.tables[0].ranges[0].start, 5) << "absolute";
  Rows joined = rowsOf(spec, first->bound.batch), rest = rowsOf(spec, second->bound.batch);
  joined.insert(joined.end(), rest.begin(), rest.end());
  EXPECT_EQ(joined, whole);

  // Results: the halves' are the whole's, with sliced batches and with sub-ranges of the whole.
  Tensors tensors(bound);
  const Problem problem = tensors.problem(spec, bound);
  const std::vector<float> expected = runNative(artifact, problem);
  expectReference(expected, problem);
  std::vector<float> o(13 * 24);
  for (const rt::MicroBatch *half : {&*first, &*second}) {
    const std::vector<float> part =
        runNative(artifact, tensors.problem(spec, half->bound, half->tokenBegin));
    const int64_t tokens = half->bound.batch.shape.numTokens();
    std::copy_n(part.begin(), tokens * 24, o.begin() + half->tokenBegin * 24);
    for (int64_t h = 0; h < 4; ++h)
      for (int64_t t = 0; t < tokens; ++t)
        EXPECT_EQ(part[tokens * 24 + h * tokens + t],
                  expected[13 * 24 + h * 13 + half->tokenBegin + t]);
  }
  EXPECT_EQ(std::memcmp(o.data(), expected.data(), o.size() * sizeof(float)), 0);
  Result<rt::NativeRunner> runner = rt::NativeRunner::create(artifact, artifact.kernels[0]);
  ASSERT_TRUE(runner);
  rt::NativeTables tables(spec, runner->binary(), bound.batch);
  std::vector<float> parts(13 * 28);
  for (const rt::SubRange &part : {halves.second, halves.first})
    runner->run(problem, tables, {parts.data(), 24, 6, parts.data() + 13 * 24, 13}, part);
  EXPECT_TRUE(sameBits(parts, expected));

  // Cut where it is safe, the first half needs no key of the second.
  const rt::Halves safe = rt::cutBefore(bound.batch.shape, TokenIndex(5));
  Result<rt::MicroBatch> early = rt::sliceBatch(spec, bound, safe.first);
  ASSERT_TRUE(early) << early.message();
  EXPECT_EQ(early->bound.batch.shape.seqLen, (Ints{4, 5}));
  EXPECT_EQ(rowsOf(spec, early->bound.batch), Rows(whole.begin(), whole.begin() + 5));
}

//===----------------------------------------------------------------------===//
// plan
//===----------------------------------------------------------------------===//

TEST(FieldFailures, R073_plan_made_for_longer_keys) {
  const Artifact artifact = tinyArtifact();
  const KernelSpec &spec = artifact.kernels[0].spec;
  rt::BatchInput longInput = inputOf({256, 256}, {256, 256});
  longInput.mmRanges = rt::RangesInput{{{3, 200}, {0, 255}}, {0, 1, 2}};
  const rt::BoundBatch longBatch = tinyBatch(longInput, 100),
                       shortBatch = tinyBatch(inputOf({2, 2}, {2, 2}), 100);
  // One memory for both.
  std::vector<Range> rows(512, Range{-7, -7});
  Tensors longTensors(longBatch), tensors(shortBatch);
  runNative(artifact, longTensors.problem(spec, longBatch), rows.data());
  const Problem problem = tensors.problem(spec, shortBatch);
  const std::vector<float> got = runNative(artifact, problem, rows.data());
  expectReference(got, problem);
  EXPECT_TRUE(sameBits(got, runNative(artifact, problem)));

  // The split plan in memory of the longer launch.
  CudaLaunch launch;
  launch.groups = 2;
  launch.keyTile = 64;
  auto listOf = [&](const rt::BoundBatch &bound) {
    Result<rt::WorkList> list =
        rt::buildWorkList(spec.program, bound.batch, launch, TilePlan::Intervals, {nullptr, 56});
    EXPECT_TRUE(list) << list.message();
    return std::move(*list);
  };
  const rt::WorkList longList = listOf(longBatch), list = listOf(shortBatch);
  const rt::Splits splits{rt::Splits::Kind::Blocks, 1};
  Result<rt::SplitPlan> longPlan = rt::buildSplitPlan(longList, splits, 64);
  Result<rt::SplitPlan> fresh = rt::buildSplitPlan(list, splits, 64);
  ASSERT_TRUE(longPlan && fresh);
  const rt::SplitMemory memory{longPlan->pieces, longPlan->pieceBegin, longPlan->entries,
                               longPlan->work, longPlan->combines};
  Result<rt::SplitSizes> sizes = rt::fillSplitPlan(list, splits, 64, memory);
  ASSERT_TRUE(sizes) << sizes.message();
  EXPECT_EQ(sizes->work, fresh->sizes.work);
  EXPECT_EQ(std::memcmp(memory.work.data, fresh->work.data(), sizes->work * sizeof(rt::SplitWork)),
            0);
  EXPECT_EQ(
      std::memcmp(memory.entries.data, fresh->entries.data(), sizes->entries * sizeof(TileEntry)),
      0);
  // The other way round the stale plan is too small, and refused.
  EXPECT_EQ(rt::fillSplitPlan(
                longList, splits, 64,
                {fresh->pieces, fresh->pieceBegin, fresh->entries, fresh->work, fresh->combines})
                .message(),
            "split plan: memory for " + std::to_string(fresh->sizes.pieces) + " pieces, expected " +
                std::to_string(longPlan->sizes.pieces));
}

TEST(FieldFailures, R079_plan_state_of_an_earlier_mask) {
  const Artifact artifact = tinyArtifact();
  const KernelSpec &spec = artifact.kernels[0].spec;
  rt::BatchInput masked = inputOf({9, 4}, {9, 12});
  rt::BatchInput plain = masked;
  masked.mmRanges = rt::RangesInput{{{1, 7}, {8, 11}}, {0, 1, 2}};
  const rt::BoundBatch first = tinyBatch(masked, 2), second = tinyBatch(plain, 100);
  Tensors tensors(first);
  std::vector<Range> rows(13);
  const std::vector<float> before = runNative(artifact, tensors.problem(spec, first), rows.data());
  const Problem problem = tensors.problem(spec, second);
  const std::vector<float> after = runNative(artifact, problem, rows.data());
  EXPECT_TRUE(sameBits(after, runNative(artifact, problem)));
  EXPECT_FALSE(sameBits(after, before));
  expectReference(after, problem);
  for (const Range &row : rows)
    EXPECT_TRUE(row.start == -1 && row.end == -1);
}

//===----------------------------------------------------------------------===//
// cache
//===----------------------------------------------------------------------===//

TEST(FieldFailures, R101_cache_lengths_do_not_recompile) {
  rt::KernelCache cache({""});
  const rt::KernelKey key = rt::kernelKey(tinySpec(), "cpu", "test");
  int compiled = 0;
  auto compile = [&](const rt::KernelKey &) {
    ++compiled;
    return Result<Artifact>(tinyArtifact());
  };
  for (auto [q, kv] : {std::pair(2, 5), std::pair(3, 7), std::pair(1, 40)}) {
    Result<rt::CachedKernel> kernel = cache.get(key, compile);
    ASSERT_TRUE(kernel) << kernel.message();
    const rt::BoundBatch bound = tinyBatch(inputOf({q}, {kv}), 1000);
    Rows expected;
    for (int64_t i = 0; i < q; ++i)
      expected.push_back({0, kv - q + i});
    EXPECT_EQ(rowsOf(kernel->kernel->spec, bound.batch), expected);
    Tensors tensors(bound);
    const Problem problem = tensors.problem(kernel->kernel->spec, bound);
    expectReference(runNative(*kernel->artifact, problem), problem);
  }
  EXPECT_EQ(compiled, 1);
}

//===----------------------------------------------------------------------===//
// packing, per-seq
//===----------------------------------------------------------------------===//

TEST(FieldFailures, R095_packing_rows_and_cuts_of_documents) {
  KernelSpec spec = plainSpec();
  TableDecl docs;
  docs.name = "docs";
  docs.kind = TableKind::Documents;
  spec.program.tables = {docs};
  const NodeId causal = add(spec.program, Op::Causal, ScalarType::Bool);
  const NodeId document = add(spec.program, Op::Document, ScalarType::Bool, {}, 0);
  const NodeId both = add(spec.program, Op::And, ScalarType::Bool, {causal, document});
  spec.program.mask = both;
  auto bind = [&](std::vector<int32_t> ids) {
    rt::BatchInput input = inputOf({7}, {7});
    rt::TableInput table;
    table.name = "docs";
    table.documents = rt::DocumentsInput{std::move(ids), {0, 7}};
    input.tables = {table};
    return boundBatch(spec, input);
  };
  const rt::BoundBatch packed = bind({4, 4, 4, 9, 9, 9, 9}), changed = bind({1, 2, 2, 9, 9, 9, 9});
  EXPECT_EQ(rowsOf(spec, packed.batch),
            (Rows{{0, 0}, {0, 1}, {0, 2}, {3, 3}, {3, 4}, {3, 5}, {3, 6}}));
  std::vector<Range> rows(7), other(7);
  rt::buildDocumentRows(packed.batch.shape, packed.batch.tables[0], rows.data());
  rt::buildDocumentRows(changed.batch.shape, changed.batch.tables[0], other.data());
  for (int64_t t = 0; t < 7; ++t) {
    EXPECT_EQ(rows[t].start, t < 3 ? 0 : 3);
    EXPECT_EQ(rows[t].end, t < 3 ? 2 : 6);
  }
  EXPECT_EQ(std::memcmp(&rows[3], &other[3], 4 * sizeof(Range)), 0) << "document B is untouched";
  EXPECT_NE(std::memcmp(&rows[0], &other[0], 3 * sizeof(Range)), 0);

  // Documents that see all of themselves can be cut between them only.
  spec.program.mask = document;
  EXPECT_TRUE(rt::checkSlice(spec, packed, {0, 1, 0, 3}));
  EXPECT_FALSE(rt::checkSlice(spec, packed, {0, 1, 0, 2}));
  EXPECT_EQ(rt::nearestSafeCut(spec, packed, RequestIndex(0), TokenIndex(4))->value, 3);
  Result<rt::MicroBatch> second = rt::sliceBatch(spec, packed, {0, 1, 3, 7});
  ASSERT_TRUE(second);
  EXPECT_EQ(rowsOf(spec, second->bound.batch), (Rows{{3, 6}, {3, 6}, {3, 6}, {3, 6}}));
}

TEST(FieldFailures, R099_per_seq_bidirectional_block_is_not_cut) {
  KernelSpec spec = plainSpec();
  spec.program.mask = add(spec.program, Op::Window, ScalarType::Bool,
                          {spec.program.constant(ScalarType::I64, 2)}, -1, 1);
  const rt::BoundBatch bound = boundBatch(spec, inputOf({4}, {10}));
  const Rows rows = {{4, 9}, {5, 9}, {6, 9}, {7, 9}};
  EXPECT_EQ(rowsOf(spec, bound.batch), rows);
  const rt::Halves halves = rt::cutBefore(bound.batch.shape, TokenIndex(2));
  EXPECT_FALSE(rt::checkSlice(spec, bound, halves.first));
  EXPECT_EQ(rt::nearestSafeCut(spec, bound, RequestIndex(0), TokenIndex(2))->value, 0);
  Rows joined;
  for (const rt::SubRange &part : {halves.first, halves.second}) {
    Result<rt::MicroBatch> micro = rt::sliceBatch(spec, bound, part, {true});
    ASSERT_TRUE(micro) << micro.message();
    for (auto row : rowsOf(spec, micro->bound.batch))
      joined.push_back(row);
  }
  EXPECT_EQ(joined, rows);
}

//===----------------------------------------------------------------------===//
// invariance
//===----------------------------------------------------------------------===//

KernelSpec causalSpec(int64_t heads, int64_t kvHeads) {
  KernelSpec spec = plainSpec();
  spec.numHeads = heads;
  spec.numKvHeads = kvHeads;
  spec.dimQk = spec.dimV = 64;
  spec.program.mask = add(spec.program, Op::Causal, ScalarType::Bool);
  return spec;
}

CudaLaunch launchOf(int64_t keyTile) {
  CudaLaunch launch;
  launch.groups = 2;
  launch.keyTile = keyTile;
  return launch;
}

rt::WorkList workOf(const KernelSpec &spec, const rt::BoundBatch &bound, const CudaLaunch &launch) {
  Result<rt::WorkList> list =
      rt::buildWorkList(spec.program, bound.batch, launch, TilePlan::Intervals, {nullptr, 256});
  EXPECT_TRUE(list) << list.message();
  return std::move(*list);
}

/// First key, blocks, classes, and whether there is a bitmap.
using Entry = std::array<int64_t, 4>;

/// The entries of each piece of a tile.
std::vector<std::vector<Entry>> piecesOf(const rt::SplitPlan &plan, int64_t tile) {
  std::vector<std::vector<Entry>> pieces;
  for (int32_t i = plan.pieceBegin[tile]; i < plan.pieceBegin[tile + 1]; ++i) {
    pieces.emplace_back();
    for (int32_t e = 0; e < plan.pieces[i].entryCount; ++e) {
      const TileEntry &entry = plan.entries[plan.pieces[i].entryBegin + e];
      pieces.back().push_back({entry.keyBegin, entry.blocks, entry.classes, entry.visible >= 0});
    }
  }
  return pieces;
}

TEST(FieldFailures, R084_invariance_a_growing_neighbour) {
  const KernelSpec spec = causalSpec(14, 2);
  const CudaLaunch launch = launchOf(128);
  std::vector<std::vector<std::vector<Entry>>> seen;
  for (int64_t neighbour : {9, 10, 900}) {
    const rt::BoundBatch bound = boundBatch(spec, inputOf({neighbour, 1}, {neighbour, 19802}));
    const rt::WorkList list = workOf(spec, bound, launch);
    Result<rt::SplitPlan> plan = rt::buildSplitPlan(list, rt::invariantSplits(16), 128);
    ASSERT_TRUE(plan) << plan.message();
    const int64_t decode = static_cast<int64_t>(list.tiles.size()) - 1;
    ASSERT_EQ(list.tiles[decode].request, 1);
    seen.push_back(piecesOf(*plan, decode));
  }
  // 155 blocks: groups of 16 from key 0, the last of 11.
  EXPECT_EQ(seen[0].size(), 10u);
  EXPECT_EQ(seen[0], seen[1]);
  EXPECT_EQ(seen[0], seen[2]);

  // On the CPU nothing is split: bits of the row do not depend on the neighbour.
  const Artifact artifact = tinyArtifact();
  std::vector<std::vector<float>> bits;
  for (int64_t neighbour : {9, 10}) {
    const rt::BoundBatch bound = tinyBatch(inputOf({1, neighbour}, {19802, neighbour}), 1 << 29);
    Tensors tensors(bound);
    std::fill(tensors.q.begin(), tensors.q.end(), 0.25f);
    for (size_t i = 0; i < tensors.k.size(); ++i)
      tensors.k[i] = std::sin(static_cast<float>(i));
    for (size_t i = 0; i < tensors.v.size(); ++i)
      tensors.v[i] = std::cos(static_cast<float>(i));
    std::vector<float> out = runNative(artifact, tensors.problem(artifact.kernels[0].spec, bound));
    out.resize(24); // the first request's O
    bits.push_back(out);
  }
  EXPECT_TRUE(sameBits(bits[0], bits[1]));
}

/// For each query position: keys that its row keeps, by the piece that computes them.
std::map<int64_t, std::vector<Ints>> keysByPiece(const rt::WorkList &list,
                                                 const rt::SplitPlan &plan, int64_t keyTile) {
  std::map<int64_t, std::vector<Ints>> rows;
  for (size_t t = 0; t < list.tiles.size(); ++t)
    for (int64_t r = 0; r < list.tiles[t].rows; ++r) {
      const int64_t q = list.tiles[t].queryBegin + r;
      for (const std::vector<Entry> &piece : piecesOf(plan, static_cast<int64_t>(t))) {
        Ints keys;
        for (const auto &[begin, blocks, classes, hasBitmap] : piece)
          for (int64_t k = begin; k < begin + blocks * keyTile; ++k)
            if (k <= q) // causal
              keys.push_back(k);
        std::sort(keys.begin(), keys.end());
        if (!keys.empty())
          rows[q].push_back(keys);
      }
    }
  return rows;
}

TEST(FieldFailures, R084_invariance_chunks_of_a_prompt) {
  const KernelSpec spec = causalSpec(2, 1);
  const CudaLaunch launch = launchOf(16);
  auto rowsOfChunks = [&](const Ints &chunks, const rt::Splits &splits) {
    std::map<int64_t, std::vector<Ints>> rows;
    int64_t end = 0;
    for (int64_t chunk : chunks) {
      end += chunk;
      const rt::WorkList list = workOf(spec, boundBatch(spec, inputOf({chunk}, {end})), launch);
      Result<rt::SplitPlan> plan = rt::buildSplitPlan(list, splits, 16);
      EXPECT_TRUE(plan) << plan.message();
      rows.merge(keysByPiece(list, *plan, 16));
    }
    return rows;
  };
  const rt::Splits invariant = rt::invariantSplits(3);
  const auto whole = rowsOfChunks({300}, invariant);
  EXPECT_EQ(whole.size(), 300u);
  EXPECT_EQ(rowsOfChunks({137, 1, 62, 100}, invariant), whole);
  EXPECT_EQ(rowsOfChunks({33, 267}, invariant), whole);
  // An even cut moves with the tile.
  const rt::Splits even{rt::Splits::Kind::Count, 3};
  EXPECT_NE(rowsOfChunks({33, 267}, even), rowsOfChunks({300}, even));
}

TEST(FieldFailures, R104_invariance_formula_and_table) {
  KernelSpec formula = plainSpec(), table = plainSpec();
  formula.program.mask = add(formula.program, Op::Causal, ScalarType::Bool);
  TableDecl keep;
  keep.name = "keep";
  keep.dims = {TableDim::Token, TableDim::K};
  keep.element = ScalarType::I8;
  MaskProgram &p = table.program;
  p.tables = {keep};
  const NodeId q = add(p, Op::IndexQ, ScalarType::I64), k = add(p, Op::IndexK, ScalarType::I64);
  const NodeId load = add(p, Op::TableLoad, ScalarType::I8, {q, k}, 0);
  p.mask = add(p, Op::CmpNe, ScalarType::Bool, {load, p.constant(ScalarType::I8, 0)});
  std::vector<int8_t> values;
  for (int64_t i = 0; i < 256; ++i)
    values.push_back(i % 16 <= i / 16);
  rt::BatchInput input = inputOf({16}, {16});
  const rt::BoundBatch byFormula = boundBatch(formula, input);
  rt::TableInput dense;
  dense.name = "keep";
  dense.dense.emplace();
  dense.dense->element = ScalarType::I8;
  dense.dense->extents = {16, 16};
  dense.dense->data = values.data();
  input.tables = {dense};
  const rt::BoundBatch byTable = boundBatch(table, input);
  EXPECT_EQ(rowsOf(formula, byFormula.batch), rowsOf(table, byTable.batch));

  struct Form {
    const KernelSpec &spec;
    const rt::BoundBatch &bound;
    TilePlan plan;
  };
  for (const Form &form :
       {Form{formula, byFormula, TilePlan::Intervals}, Form{table, byTable, TilePlan::Abstract}}) {
    std::vector<TileEntry> firstEntries;
    std::vector<int32_t> firstPieces;
    for (int repeat = 0; repeat < 500; ++repeat) {
      Result<rt::WorkList> list = rt::buildWorkList(form.spec.program, form.bound.batch,
                                                    launchOf(8), form.plan, {nullptr, 64});
      ASSERT_TRUE(list) << list.message();
      Result<rt::SplitPlan> plan = rt::buildSplitPlan(*list, rt::invariantSplits(1), 8);
      ASSERT_TRUE(plan) << plan.message();
      if (repeat == 0) {
        firstEntries = plan->entries;
        firstPieces = plan->pieceBegin;
      }
      ASSERT_EQ(plan->entries.size(), firstEntries.size());
      ASSERT_EQ(std::memcmp(plan->entries.data(), firstEntries.data(),
                            firstEntries.size() * sizeof(TileEntry)),
                0);
      ASSERT_EQ(plan->pieceBegin, firstPieces);
    }
    EXPECT_EQ(firstPieces.back(), 2) << "two blocks of 8 keys";
  }
}

} // namespace
