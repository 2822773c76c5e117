// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Parts of a batch: joined results equal those of the whole, by the reference and by native code;
// what cannot be cut is refused; the nearest safe cut is the nearest.
#include "attn/Runtime/MicroBatch.h"

#include "attn/Core/MaskEval.h"
#include "attn/Reference/Reference.h"

#include "TestKernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <limits>

using namespace attn;
using namespace attn::core;
using namespace testing_rt;

namespace {

/// Every kind of table: ((causal or mm_prefix) and document) or allow[token, k]; score + bias[b,
/// h].
KernelSpec tableSpec() {
  KernelSpec spec = plainSpec();
  MaskProgram &p = spec.program;
  TableDecl mm, docs, allow, bias;
  mm.name = "mm";
  mm.kind = TableKind::Ranges;
  docs.name = "docs";
  docs.kind = TableKind::Documents;
  allow.name = "allow";
  allow.dims = {TableDim::Token, TableDim::K};
  allow.element = ScalarType::I8;
  bias.name = "bias";
  bias.dims = {TableDim::B, TableDim::H};
  bias.element = ScalarType::F32;
  p.tables = {mm, docs, allow, bias};
  p.params = {{"cap", ScalarType::F32, std::nullopt}};
  const NodeId b = add(p, Op::IndexB, ScalarType::I64), h = add(p, Op::IndexH, ScalarType::I64);
  const NodeId q = add(p, Op::IndexQ, ScalarType::I64), k = add(p, Op::IndexK, ScalarType::I64);
  const NodeId causal = add(p, Op::Causal, ScalarType::Bool);
  const NodeId prefix = add(p, Op::MmPrefix, ScalarType::Bool, {}, 0);
  const NodeId seen = add(p, Op::Or, ScalarType::Bool, {causal, prefix});
  const NodeId document = add(p, Op::Document, ScalarType::Bool, {}, 1);
  const NodeId both = add(p, Op::And, ScalarType::Bool, {seen, document});
  const NodeId load = add(p, Op::TableLoad, ScalarType::I8, {q, k}, 2);
  const NodeId allowed = add(p, Op::CmpNe, ScalarType::Bool, {load, p.constant(ScalarType::I8, 0)});
  p.mask = add(p, Op::Or, ScalarType::Bool, {both, allowed});
  const NodeId s = add(p, Op::Score, ScalarType::F32);
  const NodeId term = add(p, Op::TableLoad, ScalarType::F32, {b, h}, 3);
  const NodeId sum = add(p, Op::FAdd, ScalarType::F32, {s, term});
  const NodeId cap = add(p, Op::Param, ScalarType::F32, {}, 0);
  p.score = add(p, Op::SoftCap, ScalarType::F32, {sum, cap});
  return spec;
}

/// A random batch with tensors, and the storage that its input points at.
struct Case {
  KernelSpec spec;
  rt::BatchInput input;
  rt::BoundBatch bound;
  std::vector<float> bias;
  std::vector<int8_t> allow;
  std::vector<int32_t> pages;
  std::vector<float> q, k, v;
};

void addDense(rt::BatchInput &input, const char *name, ScalarType element,
              std::vector<int64_t> extents, const void *data) {
  rt::TableInput table;
  table.name = name;
  table.dense.emplace();
  table.dense->element = element;
  table.dense->extents = std::move(extents);
  table.dense->data = data;
  input.tables.push_back(table);
}

constexpr int64_t kLongest = 24;

/// `useTables`: of tableSpec, else of tinySpec.
void fillCase(Case &c, Random &random, bool useTables) {
  c.spec = useTables ? tableSpec() : tinySpec();
  rt::RangesInput ranges;
  rt::DocumentsInput documents;
  ranges.offsets = documents.offsets = {0};
  for (int64_t n = random.in(1, 5); n > 0; --n) {
    rt::RequestInput request;
    request.seqLen = random.in(0, kLongest);
    request.queryLen = random.in(0, 3) ? random.in(0, request.seqLen) : random.in(0, 8);
    if (random.in(0, 3) == 0)
      request.isPrefilling = random.in(0, 1) == 1;
    if (random.in(0, 3) == 0) {
      request.keyBegin = random.in(0, request.seqLen);
      request.keyEnd = random.in(*request.keyBegin, request.seqLen);
    }
    c.input.requests.push_back(request);
    for (int64_t r = random.in(0, 3); r > 0; --r) {
      const int64_t start = random.in(0, kLongest);
      ranges.ranges.push_back({start, start + random.in(0, 8)});
    }
    ranges.offsets.push_back(static_cast<int64_t>(ranges.ranges.size()));
    for (int64_t key = 0, id = 0; key < request.seqLen; ++key)
      documents.ids.push_back(static_cast<int32_t>(id += random.in(0, 7) == 0));
    documents.offsets.push_back(static_cast<int64_t>(documents.ids.size()));
  }
  c.input.mmRanges = ranges;
  c.input.allowPartialRanges = true;
  const int64_t requests = static_cast<int64_t>(c.input.requests.size());
  int64_t tokens = 0;
  for (const rt::RequestInput &request : c.input.requests)
    tokens += request.queryLen;
  c.input.pageSize = random.in(1, 5);
  for (int64_t i = 0; i < requests * (kLongest + 1); ++i)
    c.pages.push_back(static_cast<int32_t>(random.in(0, 1000)));
  c.input.blockTable = rt::BlockTableInput{c.pages.data(), kLongest + 1,
                                           std::vector<int64_t>(requests, kLongest), std::nullopt};
  if (useTables) {
    rt::TableInput docs;
    docs.name = "docs";
    docs.documents = documents;
    c.input.tables.push_back(docs);
    for (int64_t i = 0; i < tokens * kLongest; ++i)
      c.allow.push_back(random.in(0, 9) == 0);
    for (int64_t i = 0; i < requests * 2; ++i)
      c.bias.push_back(random.real());
    addDense(c.input, "allow", ScalarType::I8, {tokens, kLongest}, c.allow.data());
    addDense(c.input, "bias", ScalarType::F32, {requests, 2}, c.bias.data());
    c.input.params = {{"cap", false, 0, 3.5}};
  } else {
    for (int64_t h = 0; h < 4; ++h)
      c.bias.push_back(0.25f * static_cast<float>(h));
    addDense(c.input, "slopes", ScalarType::F32, {4}, c.bias.data());
    c.input.params = {{"left", true, random.in(0, 8), 0}, {"scale", false, 0, 0.4}};
  }
  Result<rt::BoundBatch> bound = rt::bindBatch(c.spec, c.input);
  ASSERT_TRUE(bound) << bound.message();
  c.bound = std::move(*bound);
  auto fill = [&](std::vector<float> &to, int64_t count) {
    for (int64_t i = 0; i < count; ++i)
      to.push_back(random.real());
  };
  fill(c.q, tokens * c.spec.numHeads * c.spec.dimQk);
  fill(c.k, c.bound.kvStart.back() * c.spec.numKvHeads * c.spec.dimQk);
  fill(c.v, c.bound.kvStart.back() * c.spec.numKvHeads * c.spec.dimV);
}

/// The tensors of a case for a batch whose first token is `token`, with keys as contiguous rows.
Problem problemOf(const Case &c, const rt::BoundBatch &bound, int64_t token) {
  const KernelSpec &s = c.spec;
  Problem problem;
  problem.spec = &s;
  problem.batch = &bound.batch;
  problem.q = {const_cast<float *>(c.q.data()) + token * s.numHeads * s.dimQk, DType::F32,
               s.numHeads * s.dimQk, s.dimQk};
  problem.k = {c.k.data(), DType::F32, 0, s.numKvHeads * s.dimQk, s.dimQk};
  problem.v = {c.v.data(), DType::F32, 0, s.numKvHeads * s.dimV, s.dimV};
  problem.kv.kvStart = bound.kvStart.data();
  return problem;
}

/// O and LSE of the tokens of a batch, [tokens][heads * dim_v] and [tokens][heads].
struct Rows {
  std::vector<double> o, lse;
};

Rows referenceRows(const Problem &problem) {
  const reference::Output out = reference::run(problem);
  const int64_t tokens = problem.batch->shape.numTokens(), heads = problem.spec->numHeads;
  Rows rows{out.o, {}};
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t h = 0; h < heads; ++h)
      rows.lse.push_back(out.lse[h * tokens + t]);
  return rows;
}

Rows nativeRows(const rt::NativeRunner &runner, const Problem &problem) {
  const int64_t tokens = problem.batch->shape.numTokens(), heads = problem.spec->numHeads;
  const int64_t width = heads * problem.spec->dimV;
  std::vector<float> o(tokens * width), lse(heads * tokens);
  rt::NativeTables tables(runner.spec(), runner.binary(), *problem.batch);
  runner.run(problem, tables, {o.data(), width, problem.spec->dimV, lse.data(), tokens},
             rt::SubRange::all(problem.batch->shape));
  Rows rows{{o.begin(), o.end()}, {}};
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t h = 0; h < heads; ++h)
      rows.lse.push_back(lse[h * tokens + t]);
  return rows;
}

/// Rows of `part`, which are those of `whole` from `token` on, bit by bit.
void expectPart(const Rows &part, const Rows &whole, int64_t token, int64_t oWidth,
                int64_t lseWidth) {
  ASSERT_LE(token * oWidth + part.o.size(), whole.o.size());
  if (part.o.empty())
    return;
  EXPECT_EQ(
      std::memcmp(part.o.data(), whole.o.data() + token * oWidth, part.o.size() * sizeof(double)),
      0);
  EXPECT_EQ(std::memcmp(part.lse.data(), whole.lse.data() + token * lseWidth,
                        part.lse.size() * sizeof(double)),
            0);
}

rt::SubRange randomPart(const BatchShape &shape, Random &random) {
  rt::SubRange part;
  part.requestBegin = random.in(0, shape.numReqs());
  part.requestEnd = random.in(part.requestBegin, shape.numReqs());
  part.tokenBegin = random.in(0, shape.numTokens());
  part.tokenEnd = random.in(part.tokenBegin, shape.numTokens());
  return part;
}

//===----------------------------------------------------------------------===//
// Cuts
//===----------------------------------------------------------------------===//

TEST(MicroBatch, HalvesCoverEveryTokenOnce) {
  Random random(31);
  for (int round = 0; round < 300; ++round) {
    Case c;
    fillCase(c, random, false);
    const BatchShape &shape = c.bound.batch.shape;
    for (int64_t token = 0; token <= shape.numTokens(); ++token) {
      const rt::Halves halves = rt::cutBefore(shape, TokenIndex(token));
      EXPECT_EQ(halves.first.requestBegin, 0);
      EXPECT_EQ(halves.first.tokenBegin, 0);
      EXPECT_EQ(halves.first.tokenEnd, token);
      EXPECT_EQ(halves.second.tokenBegin, token);
      EXPECT_EQ(halves.second.tokenEnd, shape.numTokens());
      EXPECT_EQ(halves.second.requestEnd, shape.numReqs());
      bool isCut = false;
      for (int64_t b = 0; b < shape.numReqs(); ++b) {
        const bool inFirst = b < halves.first.requestEnd,
                   inSecond = b >= halves.second.requestBegin;
        const bool cut = shape.queryStartLoc[b] < token && token < shape.queryStartLoc[b + 1];
        isCut |= cut;
        EXPECT_EQ(inFirst && inSecond, cut);
        EXPECT_TRUE(inFirst || inSecond);
        if (!cut && shape.queryStartLoc[b] != shape.queryStartLoc[b + 1]) {
          EXPECT_EQ(inFirst, shape.queryStartLoc[b] < token);
        }
      }
      EXPECT_EQ(halves.first.requestEnd - halves.second.requestBegin, isCut);
    }
  }
}

TEST(MicroBatch, HalvesEqualTheWholeOnBothPaths) {
  const Artifact artifact = tinyArtifact();
  Result<rt::NativeRunner> runner = rt::NativeRunner::create(artifact, artifact.kernels[0]);
  ASSERT_TRUE(runner) << runner.message();
  Random random(32);
  int64_t inside = 0, cuts = 0;
  for (int round = 0; round < 600; ++round) {
    const bool useTables = round % 2;
    Case c;
    fillCase(c, random, useTables);
    const BatchShape &shape = c.bound.batch.shape;
    const int64_t oWidth = c.spec.numHeads * c.spec.dimV, lseWidth = c.spec.numHeads;
    const Problem whole = problemOf(c, c.bound, 0);
    const Rows expected = referenceRows(whole);
    const Rows native = useTables ? Rows() : nativeRows(*runner, whole);
    const int64_t token = random.in(0, shape.numTokens());
    const rt::Halves halves = rt::cutBefore(shape, TokenIndex(token));
    inside += halves.first.requestEnd > halves.second.requestBegin;
    ++cuts;
    for (const rt::SubRange &part : {halves.first, halves.second}) {
      Result<rt::MicroBatch> micro = rt::sliceBatch(c.spec, c.bound, part, {true});
      ASSERT_TRUE(micro) << micro.message();
      EXPECT_EQ(micro->tokenBegin, part.tokenBegin);
      const Problem problem = problemOf(c, micro->bound, micro->tokenBegin);
      expectPart(referenceRows(problem), expected, part.tokenBegin, oWidth, lseWidth);
      if (!useTables)
        expectPart(nativeRows(*runner, problem), native, part.tokenBegin, oWidth, lseWidth);
      ASSERT_FALSE(HasFailure()) << "round " << round << ", token " << token;
    }
  }
  EXPECT_GT(inside, cuts / 3);
}

TEST(MicroBatch, WithoutWrittenKeysNoLaterKeyIsRead) {
  Random random(33);
  int64_t accepted = 0, refused = 0;
  for (int round = 0; round < 1200; ++round) {
    Case c;
    fillCase(c, random, round % 2);
    const BatchShape &shape = c.bound.batch.shape;
    const int64_t token = random.in(0, shape.numTokens());
    const rt::Halves halves = rt::cutBefore(shape, TokenIndex(token));
    const int64_t cutRequest = halves.second.requestBegin;
    const bool isCut = halves.first.requestEnd > cutRequest;
    Result<rt::MicroBatch> micro = rt::sliceBatch(c.spec, c.bound, halves.first);
    if (!isCut) {
      EXPECT_TRUE(micro);
    }
    if (!isCut || !micro) {
      refused += !micro;
      continue;
    }
    ++accepted;
    const Rows expected = referenceRows(problemOf(c, c.bound, 0));
    // Keys of the tokens left out hold anything.
    const int64_t position = shape.queryOf(RequestIndex(cutRequest), TokenIndex(token)).value;
    for (int64_t key = std::max<int64_t>(position, 0); key < shape.seqLen[cutRequest]; ++key) {
      const int64_t row = c.bound.kvStart[cutRequest] + key;
      const int64_t kWidth = c.spec.numKvHeads * c.spec.dimQk,
                    vWidth = c.spec.numKvHeads * c.spec.dimV;
      std::fill_n(c.k.begin() + row * kWidth, kWidth, std::numeric_limits<float>::quiet_NaN());
      std::fill_n(c.v.begin() + row * vWidth, vWidth, std::numeric_limits<float>::quiet_NaN());
    }
    EXPECT_EQ(micro->bound.batch.shape.seqLen[cutRequest],
              std::clamp<int64_t>(position, 0, shape.seqLen[cutRequest]));
    expectPart(referenceRows(problemOf(c, micro->bound, 0)), expected, 0,
               c.spec.numHeads * c.spec.dimV, c.spec.numHeads);
    ASSERT_FALSE(HasFailure()) << "round " << round << ", token " << token;
  }
  EXPECT_GT(accepted, 100);
  EXPECT_GT(refused, 100);
}

/// By definition: a row before the cut keeps a key of the launch past it, or a range holds keys of
/// both sides.
bool isUnsafe(const Case &c, int64_t b, int64_t token) {
  const BatchShape &shape = c.bound.batch.shape;
  MaskEvaluator eval(c.spec.program, c.bound.batch);
  const int64_t cut = shape.queryOf(RequestIndex(b), TokenIndex(token)).value;
  for (const TableData &table : c.bound.batch.tables)
    if (!table.rangeOffsets.empty())
      for (int64_t r = table.rangeOffsets[b]; r < table.rangeOffsets[b + 1]; ++r)
        if (table.ranges[r].start < cut && table.ranges[r].end >= cut)
          return true;
  for (int64_t q = shape.contextLen[b]; q < cut; ++q)
    for (int64_t h = 0; h < c.spec.numHeads; ++h)
      for (int64_t k = std::max<int64_t>({cut, shape.keyBegin[b], 0}); k < shape.keyEnd[b]; ++k)
        if (eval.keep(RequestIndex(b), HeadIndex(h), QueryPos(q), KeyPos(k)))
          return true;
  return false;
}

TEST(MicroBatch, NearestSafeCutIsTheNearest) {
  Random random(34);
  int64_t moved = 0;
  for (int round = 0; round < 400; ++round) {
    Case c;
    fillCase(c, random, false);
    const BatchShape &shape = c.bound.batch.shape;
    for (int64_t b = 0; b < shape.numReqs(); ++b) {
      const int64_t first = shape.queryStartLoc[b], last = shape.queryStartLoc[b + 1];
      for (int64_t token = first; token <= last; ++token) {
        int64_t best = -1;
        for (int64_t t = first; t <= last; ++t)
          if ((t == first || t == last || !isUnsafe(c, b, t)) &&
              (best < 0 || std::abs(t - token) < std::abs(best - token)))
            best = t;
        Result<TokenIndex> cut =
            rt::nearestSafeCut(c.spec, c.bound, RequestIndex(b), TokenIndex(token));
        ASSERT_TRUE(cut) << cut.message();
        ASSERT_EQ(cut->value, best) << "request " << b << ", token " << token;
        moved += best != token;
        // Slices agree with it.
        const rt::Halves halves = rt::cutBefore(shape, TokenIndex(token));
        const bool safe = token == first || token == last || !isUnsafe(c, b, token);
        ASSERT_EQ(rt::checkSlice(c.spec, c.bound, halves.first).ok(), safe);
        ASSERT_TRUE(rt::checkSlice(c.spec, c.bound, halves.first, {true}));
        ASSERT_TRUE(rt::checkSlice(c.spec, c.bound, halves.second));
      }
    }
  }
  EXPECT_GT(moved, 500);
}

//===----------------------------------------------------------------------===//
// What a part carries
//===----------------------------------------------------------------------===//

void expectSameTable(const TableDecl &decl, const TableData &a, const TableData &b) {
  EXPECT_EQ(a.data, b.data) << decl.name;
  EXPECT_EQ(a.extents, b.extents);
  EXPECT_EQ(a.strides, b.strides);
  EXPECT_EQ(a.rangeOffsets, b.rangeOffsets);
  EXPECT_EQ(a.documents, b.documents);
  EXPECT_EQ(a.documentOffsets, b.documentOffsets);
  ASSERT_EQ(a.ranges.size(), b.ranges.size());
  for (size_t r = 0; r < a.ranges.size(); ++r) {
    EXPECT_EQ(a.ranges[r].start, b.ranges[r].start);
    EXPECT_EQ(a.ranges[r].end, b.ranges[r].end);
  }
}

TEST(MicroBatch, InputsAndBoundBatchesAreSlicedAlike) {
  Random random(35);
  int64_t compared = 0;
  for (int round = 0; round < 600; ++round) {
    Case c;
    fillCase(c, random, round % 2);
    const BatchShape &shape = c.bound.batch.shape;
    const rt::SubRange part = randomPart(shape, random);
    const rt::SliceOptions options{random.in(0, 1) == 1};
    Result<rt::MicroBatch> micro = rt::sliceBatch(c.spec, c.bound, part, options);
    Result<rt::BatchInput> input = rt::sliceInput(c.spec, c.input, part, options);
    ASSERT_EQ(micro.ok(), input.ok());
    if (!micro) {
      EXPECT_EQ(micro.message(), input.message());
      continue;
    }
    Result<rt::BoundBatch> bound = rt::bindBatch(c.spec, *input);
    ASSERT_TRUE(bound) << bound.message();
    ++compared;
    const BatchShape &a = micro->bound.batch.shape, &b = bound->batch.shape;
    EXPECT_EQ(a.queryStartLoc, b.queryStartLoc);
    EXPECT_EQ(a.seqLen, b.seqLen);
    EXPECT_EQ(a.contextLen, b.contextLen);
    EXPECT_EQ(a.keyBegin, b.keyBegin);
    EXPECT_EQ(a.keyEnd, b.keyEnd);
    EXPECT_EQ(micro->bound.isPrefilling, bound->isPrefilling);
    EXPECT_EQ(micro->bound.hasSeqLenBound, bound->hasSeqLenBound);
    ASSERT_EQ(micro->bound.batch.params.size(), bound->batch.params.size());
    for (size_t i = 0; i < bound->batch.params.size(); ++i) {
      EXPECT_EQ(micro->bound.batch.params[i].i, bound->batch.params[i].i);
      EXPECT_EQ(micro->bound.batch.params[i].f, bound->batch.params[i].f);
    }
    for (size_t i = 0; i < bound->batch.tables.size(); ++i)
      if (bound->batch.shape.numTokens())
        expectSameTable(c.spec.program.tables[i], micro->bound.batch.tables[i],
                        bound->batch.tables[i]);
    // Page tables: by base.
    ASSERT_TRUE(input->blockTable);
    EXPECT_EQ(input->blockTable->entries,
              c.pages.data() + part.requestBegin * c.input.blockTable->stride);
    EXPECT_EQ(input->blockTable->stride, c.input.blockTable->stride);
    EXPECT_EQ(static_cast<int64_t>(input->blockTable->widths.size()),
              part.requestEnd - part.requestBegin);
    EXPECT_EQ(input->pageSize, c.input.pageSize);
    EXPECT_EQ(input->allowPartialRanges, true);
    EXPECT_EQ(micro->requestBegin, part.requestBegin);
    for (int64_t i = 0; i < a.numReqs(); ++i)
      EXPECT_EQ(micro->bound.kvStart[i], c.bound.kvStart[part.requestBegin + i]);
    ASSERT_FALSE(HasFailure()) << "round " << round;
  }
  EXPECT_GT(compared, 200);
}

TEST(MicroBatch, OneTokenOfAPromptStaysAPrefill) {
  Case c;
  Random random(36);
  fillCase(c, random, false);
  c.input.requests = {{}, {}};
  c.input.requests[0].queryLen = 4;
  c.input.requests[0].seqLen = 9;
  c.input.requests[1].queryLen = 1;
  c.input.requests[1].seqLen = 5;
  c.input.mmRanges.reset();
  c.input.blockTable.reset();
  Result<rt::BoundBatch> bound = rt::bindBatch(c.spec, c.input);
  ASSERT_TRUE(bound) << bound.message();
  Result<rt::MicroBatch> micro = rt::sliceBatch(c.spec, *bound, {0, 2, 3, 5});
  ASSERT_TRUE(micro) << micro.message();
  EXPECT_EQ(micro->bound.batch.shape.queryStartLoc, (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(micro->bound.batch.shape.contextLen, (std::vector<int64_t>{8, 4}));
  EXPECT_EQ(micro->bound.isPrefilling, (std::vector<uint8_t>{1, 0}));
  Result<rt::BatchInput> input = rt::sliceInput(c.spec, c.input, {0, 2, 3, 5});
  ASSERT_TRUE(input) << input.message();
  EXPECT_EQ(input->requests[0].isPrefilling, true);
  EXPECT_EQ(input->requests[1].isPrefilling, std::nullopt);
}

//===----------------------------------------------------------------------===//
// Refusals
//===----------------------------------------------------------------------===//

/// One request of 8 tokens after 4, range [5, 8].
rt::BoundBatch rangeBatch(const KernelSpec &spec, std::optional<int64_t> bound = std::nullopt) {
  static const float kSlopes[4] = {};
  rt::BatchInput input;
  input.requests.resize(1);
  input.requests[0].queryLen = 8;
  input.requests[0].seqLen = 12;
  input.requests[0].seqLenBound = bound;
  input.mmRanges = rt::RangesInput{{{5, 8}}, {0, 1}};
  addDense(input, "slopes", ScalarType::F32, {4}, kSlopes);
  input.params = {{"left", true, 3, 0}, {"scale", false, 0, 1}};
  Result<rt::BoundBatch> batch = rt::bindBatch(spec, input);
  EXPECT_TRUE(batch) << batch.message();
  return std::move(*batch);
}

TEST(MicroBatch, Refusals) {
  const KernelSpec spec = tinySpec();
  const rt::BoundBatch bound = rangeBatch(spec);
  auto refusal = [&](const rt::BoundBatch &batch, const rt::SubRange &part) {
    Status status = rt::checkSlice(spec, batch, part);
    Result<rt::MicroBatch> micro = rt::sliceBatch(spec, batch, part);
    EXPECT_EQ(micro.ok(), status.ok());
    return status ? "" : status.message();
  };
  EXPECT_EQ(refusal(bound, {0, 1, 0, 1}), "");
  EXPECT_EQ(refusal(bound, {0, 1, 0, 4}),
            "request 0: cut before token 4, position 8, lies inside range [5, 8]; declare the keys "
            "written or cut before token 5");
  EXPECT_EQ(refusal(bound, {0, 1, 4, 8}), "");
  EXPECT_EQ(refusal(bound, {0, 2, 0, 8}), "part: requests [0, 2) expected to lie in [0, 1)");
  EXPECT_EQ(refusal(bound, {0, 1, 5, 4}), "part: tokens [5, 4) expected to lie in [0, 8)");
  const std::string device =
      "request 0: seq_len_bound: its positions are known on the device only, expected a cut "
      "between requests, got one inside, of tokens ";
  rt::BoundBatch onDevice = rangeBatch(spec);
  onDevice.hasSeqLenBound[0] = 1;
  EXPECT_EQ(refusal(onDevice, {0, 1, 0, 1}), device + "0 to 0");
  EXPECT_EQ(refusal(onDevice, {0, 1, 1, 8}), device + "1 to 7");
  EXPECT_EQ(refusal(onDevice, {0, 1, 0, 8}), "");
  EXPECT_EQ(rt::nearestSafeCut(spec, onDevice, RequestIndex(0), TokenIndex(5))->value, 8);
  EXPECT_EQ(rt::nearestSafeCut(spec, bound, RequestIndex(1), TokenIndex(5)).message(),
            "request 1, expected 0 to 0");
  EXPECT_EQ(rt::nearestSafeCut(spec, bound, RequestIndex(0), TokenIndex(9)).message(),
            "request 0: cut before token 9, expected 0 to 8");
}

TEST(MicroBatch, MasksThatLookAheadAreNotCut) {
  KernelSpec spec = plainSpec(); // keeps every key
  rt::BatchInput input;
  input.requests.resize(2);
  for (rt::RequestInput &request : input.requests)
    request.queryLen = request.seqLen = 6;
  Result<rt::BoundBatch> bound = rt::bindBatch(spec, input);
  ASSERT_TRUE(bound);
  EXPECT_EQ(rt::checkSlice(spec, *bound, {0, 1, 0, 4}).message(),
            "request 0: cut before token 4, position 4, leaves out keys that the row at position 0 "
            "may keep; declare the keys written or cut before token 6");
  EXPECT_TRUE(rt::checkSlice(spec, *bound, {0, 1, 0, 4}, {true}));
  EXPECT_TRUE(rt::checkSlice(spec, *bound, {0, 1, 0, 6}));
}

TEST(MicroBatch, KernelsThatComputeWithTheRequestAreRefused) {
  KernelSpec spec = plainSpec();
  MaskProgram &p = spec.program;
  const NodeId b = add(p, Op::IndexB, ScalarType::I64);
  p.mask = add(p, Op::CmpEq, ScalarType::Bool, {b, p.constant(ScalarType::I64, 1)});
  rt::BatchInput input;
  input.requests.resize(2);
  for (rt::RequestInput &request : input.requests)
    request.queryLen = request.seqLen = 3;
  Result<rt::BoundBatch> bound = rt::bindBatch(spec, input);
  ASSERT_TRUE(bound);
  EXPECT_TRUE(rt::checkSlice(spec, *bound, {0, 1, 0, 3}));
  EXPECT_EQ(rt::checkSlice(spec, *bound, {1, 2, 3, 6}).message(),
            "kernel 'plain' computes with the number of a request, which is another in a part that "
            "starts at request 1");
}

} // namespace
