// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The reference against a dense softmax written here, and its promises about empty rows, infinities
// and memory that no row sees.
#include "attn/Reference/Reference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>

using namespace attn::core;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// One problem with its storage: contiguous K and V, or pages in scrambled order.
struct Case {
  KernelSpec spec;
  Batch batch;
  std::vector<uint8_t> q, k, v;
  std::vector<int64_t> kvStart;
  std::vector<int32_t> pages;
  Problem problem;

  NodeId add(Op op, ScalarType type, std::vector<NodeId> operands = {}, int64_t imm = 0) {
    Node node;
    node.op = op;
    node.type = type;
    node.operands = std::move(operands);
    node.imm = imm;
    return spec.program.add(std::move(node));
  }

  void request(int64_t queryLen, int64_t seqLen) {
    BatchShape &shape = batch.shape;
    if (shape.queryStartLoc.empty())
      shape.queryStartLoc.push_back(0);
    shape.queryStartLoc.push_back(shape.queryStartLoc.back() + queryLen);
    shape.seqLen.push_back(seqLen);
    shape.contextLen.push_back(seqLen - queryLen);
    shape.keyBegin.push_back(0);
    shape.keyEnd.push_back(seqLen);
  }

  /// Allocates and fills the tensors. With a page size, pages lie in reverse order.
  void fill(std::mt19937 &random, int64_t pageSize = 0) {
    batch.numHeads = spec.numHeads;
    batch.numKvHeads = spec.numKvHeads;
    int64_t slots = 0, longest = 0;
    for (int64_t length : batch.shape.seqLen) {
      kvStart.push_back(slots);
      slots += length;
      longest = std::max(longest, length);
    }
    int64_t perRequest = pageSize ? longest / pageSize + 1 : 0, numReqs = batch.shape.numReqs();
    if (pageSize) {
      slots = perRequest * numReqs * pageSize;
      for (int64_t i = 0; i < perRequest * numReqs; ++i)
        pages.push_back(static_cast<int32_t>(perRequest * numReqs - 1 - i));
    }
    auto normal = [&](std::vector<uint8_t> &bytes, int64_t count, DType type) {
      std::normal_distribution<float> distribution;
      bytes.resize(static_cast<size_t>(count * byteSize(type)));
      for (int64_t i = 0; i < count; ++i)
        storeElement(bytes.data(), type, i, distribution(random));
    };
    normal(q, batch.shape.numTokens() * spec.numHeads * spec.dimQk, spec.qType);
    normal(k, slots * spec.numKvHeads * spec.dimQk, spec.kvType);
    normal(v, slots * spec.numKvHeads * spec.dimV, spec.kvType);
    problem.spec = &spec;
    problem.batch = &batch;
    problem.q = {q.data(), spec.qType, spec.numHeads * spec.dimQk, spec.dimQk};
    problem.k = view(k.data(), spec.dimQk, pageSize);
    problem.v = view(v.data(), spec.dimV, pageSize);
    problem.kv = {kvStart.data(), pageSize ? pages.data() : nullptr, perRequest, pageSize};
  }

  KvView view(const void *data, int64_t dim, int64_t pageSize) const {
    return {data, spec.kvType, pageSize * spec.numKvHeads * dim, spec.numKvHeads * dim, dim};
  }

  void setRow(std::vector<uint8_t> &bytes, const KvView &of, int64_t dim, int64_t b, int64_t key,
              int64_t kvHead, float value) {
    int64_t at = of.offset(problem.kv, b, key, kvHead);
    for (int64_t i = 0; i < dim; ++i)
      storeElement(bytes.data(), of.dtype, at + i, value);
  }
};

using Keep = std::function<bool(int64_t b, int64_t h, int64_t q, int64_t k)>;
using Score = std::function<double(double s, int64_t h, int64_t q, int64_t k)>;

/// Softmax by definition over all keys; dropped ones have weight 0.
void checkDense(const Case &c, const Keep &keep, const Score &score) {
  attn::reference::Output out = attn::reference::run(c.problem);
  const KernelSpec &spec = c.spec;
  int64_t tokens = c.batch.shape.numTokens();
  ASSERT_EQ(static_cast<int64_t>(out.o.size()), tokens * spec.numHeads * spec.dimV);
  ASSERT_EQ(static_cast<int64_t>(out.lse.size()), tokens * spec.numHeads);
  for (int64_t b = 0; b < c.batch.shape.numReqs(); ++b)
    for (int64_t t = c.batch.shape.queryStartLoc[b]; t < c.batch.shape.queryStartLoc[b + 1]; ++t)
      for (int64_t h = 0; h < spec.numHeads; ++h) {
        int64_t position = c.batch.shape.contextLen[b] + t - c.batch.shape.queryStartLoc[b];
        int64_t kvHead = h * spec.numKvHeads / spec.numHeads;
        long double sum = 0;
        std::vector<long double> o(static_cast<size_t>(spec.dimV), 0);
        for (int64_t k = c.batch.shape.keyBegin[b]; k < c.batch.shape.keyEnd[b]; ++k) {
          if (!keep(b, h, position, k))
            continue;
          long double s = 0;
          for (int64_t i = 0; i < spec.dimQk; ++i)
            s += static_cast<long double>(loadElement(c.problem.q.data, spec.qType,
                                                      (t * spec.numHeads + h) * spec.dimQk + i)) *
                 loadElement(c.problem.k.data, spec.kvType,
                             c.problem.k.offset(c.problem.kv, b, k, kvHead) + i);
          long double w = std::exp(static_cast<long double>(
              score(static_cast<double>(s * c.problem.scale()), h, position, k)));
          sum += w;
          for (int64_t i = 0; i < spec.dimV; ++i)
            o[i] += w * loadElement(c.problem.v.data, spec.kvType,
                                    c.problem.v.offset(c.problem.kv, b, k, kvHead) + i);
        }
        double lse = out.lse[h * tokens + t];
        const double *row = out.o.data() + (t * spec.numHeads + h) * spec.dimV;
        if (sum == 0) {
          ASSERT_EQ(lse, -kInfinity);
          for (int64_t i = 0; i < spec.dimV; ++i)
            ASSERT_TRUE(row[i] == 0 && !std::signbit(row[i]));
          continue;
        }
        ASSERT_NEAR(lse, static_cast<double>(std::log(sum)), 1e-12);
        for (int64_t i = 0; i < spec.dimV; ++i)
          ASSERT_NEAR(row[i], static_cast<double>(o[i] / sum), 1e-12) << t << " " << h << " " << i;
      }
}

double unchanged(double s, int64_t, int64_t, int64_t) { return s; }

Case causalCase(DType qType, DType kvType, int64_t heads, int64_t kvHeads, int64_t dim) {
  Case c;
  c.spec.numHeads = heads;
  c.spec.numKvHeads = kvHeads;
  c.spec.dimQk = dim;
  c.spec.dimV = dim + 3;
  c.spec.qType = qType;
  c.spec.kvType = kvType;
  c.spec.scale = 1 / std::sqrt(static_cast<double>(dim));
  c.spec.program.mask = c.add(Op::Causal, ScalarType::Bool);
  // More queries than keys, no queries, no keys, one of each.
  c.request(5, 9);
  c.request(0, 4);
  c.request(6, 3);
  c.request(2, 0);
  c.request(1, 1);
  return c;
}

TEST(Reference, CausalOverTypesGroupsAndPages) {
  std::mt19937 random(1);
  for (DType qType : {DType::F32, DType::BF16, DType::F16})
    for (DType kvType : {DType::F32, DType::BF16, DType::F16})
      for (int64_t group : {1, 2, 5})
        for (int64_t pageSize : {0, 4})
          for (int64_t dim : {1, 16, 37}) {
            Case c = causalCase(qType, kvType, 2 * group, 2, dim);
            c.fill(random, pageSize);
            checkDense(
                c, [](int64_t, int64_t, int64_t q, int64_t k) { return k <= q; }, unchanged);
            if (HasFatalFailure())
              return;
          }
}

TEST(Reference, MaskAndScoreThatDependOnTheHead) {
  std::mt19937 random(2);
  Case c = causalCase(DType::F32, DType::F32, 4, 2, 8);
  ScalarType i64 = ScalarType::I64, f32 = ScalarType::F32;
  NodeId h = c.add(Op::IndexH, i64);
  c.spec.program.mask = c.add(Op::Window, ScalarType::Bool, {h}, 1);
  NodeId slope = c.add(Op::SIToFP, f32, {h});
  NodeId cap = c.add(Op::SIToFP, f32, {c.spec.program.constant(i64, 3)});
  NodeId capped = c.add(Op::SoftCap, f32, {c.add(Op::Score, f32), cap});
  c.spec.program.score = c.add(Op::Alibi, f32, {capped, slope});
  ASSERT_FALSE(verify(c.spec.program));
  c.fill(random);
  checkDense(
      c, [](int64_t, int64_t h, int64_t q, int64_t k) { return q - k <= h; },
      [](double s, int64_t h, int64_t q, int64_t k) {
        return 3 * std::tanh(s / 3) - static_cast<double>(h) * std::abs(static_cast<double>(q - k));
      });
}

TEST(Reference, LaunchesOverPartOfTheKeysAndScaleParameters) {
  std::mt19937 random(3);
  Case c = causalCase(DType::F32, DType::BF16, 2, 1, 8);
  c.batch.shape.keyBegin[0] = 3;
  c.batch.shape.keyEnd[0] = 7;
  c.batch.shape.keyBegin[2] = c.batch.shape.keyEnd[2] = 2;
  c.spec.program.params.push_back({"scale", ScalarType::F32, std::nullopt});
  c.spec.scaleParam = 0;
  c.batch.params = {{0, -0.75}};
  c.fill(random, 2);
  checkDense(
      c, [](int64_t, int64_t, int64_t q, int64_t k) { return k <= q; }, unchanged);
}

TEST(Reference, InvisibleSlotsNeverReachAResult) {
  // Everything that no row keeps holds NaN: the results are the same bits as without.
  std::mt19937 random(4);
  Case c = causalCase(DType::F32, DType::F32, 2, 1, 8);
  c.spec.program.mask =
      c.add(Op::Window, ScalarType::Bool, {c.spec.program.constant(ScalarType::I64, 1)}, 1);
  NodeId causal = c.add(Op::Causal, ScalarType::Bool);
  c.spec.program.mask = c.add(Op::And, ScalarType::Bool, {c.spec.program.mask, causal});
  c.fill(random, 4);
  attn::reference::Output before = attn::reference::run(c.problem);
  for (int64_t key = 0; key < 3; ++key) { // request 0: q from 4, so keys below 3 are too old
    c.setRow(c.k, c.problem.k, c.spec.dimQk, 0, key, 0, NAN);
    c.setRow(c.v, c.problem.v, c.spec.dimV, 0, key, 0, NAN);
  }
  for (int64_t slot = 9; slot < 12; ++slot) // the rest of its last page
    c.setRow(c.v, c.problem.v, c.spec.dimV, 0, slot, 0, INFINITY);
  // Entries past the live pages are junk.
  c.problem.kv.pageTable = c.pages.data();
  c.pages[static_cast<size_t>(c.problem.kv.requestStride) * 3] = 1 << 30;
  attn::reference::Output after = attn::reference::run(c.problem);
  EXPECT_EQ(before.o, after.o);
  EXPECT_EQ(before.lse, after.lse);
}

/// A case of one row over four keys whose scores are given, all values of key k being k + 1.
Case rowWithScores(const std::vector<double> &scores, std::vector<float> &table) {
  Case c;
  c.spec.numHeads = c.spec.numKvHeads = c.spec.dimQk = c.spec.dimV = 1;
  TableDecl decl;
  decl.name = "scores";
  decl.dims = {TableDim::K};
  decl.element = ScalarType::F32;
  c.spec.program.tables.push_back(decl);
  NodeId load = c.add(Op::TableLoad, ScalarType::F32, {c.add(Op::IndexK, ScalarType::I64)});
  c.spec.program.nodes[load].ref = 0;
  c.spec.program.score = load;
  c.request(1, static_cast<int64_t>(scores.size()));
  std::mt19937 random(0);
  c.fill(random);
  table.assign(scores.begin(), scores.end());
  c.batch.tables.resize(1);
  c.batch.tables[0].data = table.data();
  c.batch.tables[0].extents = {static_cast<int64_t>(table.size())};
  c.batch.tables[0].strides = {1};
  for (size_t k = 0; k < scores.size(); ++k)
    c.setRow(c.v, c.problem.v, 1, 0, static_cast<int64_t>(k), 0, static_cast<float>(k + 1));
  return c;
}

/// Runs the case where it lies: its problem points into it.
attn::reference::Output runScores(const std::vector<double> &scores, bool poisonDropped = false) {
  std::vector<float> table;
  Case c = rowWithScores(scores, table);
  c.problem.spec = &c.spec;
  c.problem.batch = &c.batch;
  for (size_t k = 0; k < scores.size(); ++k)
    if (poisonDropped && scores[k] == -kInfinity)
      c.setRow(c.v, c.problem.v, 1, 0, static_cast<int64_t>(k), 0, NAN);
  return attn::reference::run(c.problem);
}

TEST(Reference, MinusInfinityDropsTheKeyWithoutReadingV) {
  attn::reference::Output out = runScores({-kInfinity, 0, -kInfinity, 0}, true);
  EXPECT_EQ(out.o[0], 3);
  EXPECT_NEAR(out.lse[0], std::log(2.0), 1e-15);
  out = runScores({-kInfinity, -kInfinity}, true);
  EXPECT_TRUE(out.o[0] == 0 && !std::signbit(out.o[0]));
  EXPECT_EQ(out.lse[0], -kInfinity);
}

TEST(Reference, NaNPropagatesWhereverItStands) {
  for (size_t at = 0; at < 3; ++at) {
    std::vector<double> scores = {1, 5, 2};
    scores[at] = kNaN;
    attn::reference::Output out = runScores(scores);
    EXPECT_TRUE(std::isnan(out.o[0])) << at;
    EXPECT_TRUE(std::isnan(out.lse[0])) << at;
  }
  // The log-sum-exp of +inf is +inf, also beside a NaN.
  EXPECT_EQ(runScores({kNaN, kInfinity}).lse[0], kInfinity);
  EXPECT_TRUE(std::isnan(runScores({-kInfinity, kNaN}).lse[0]));
}

TEST(Reference, PlusInfinityIsAsTheFormulaGives) {
  attn::reference::Output out = runScores({0, kInfinity, 0});
  EXPECT_TRUE(std::isnan(out.o[0]));
  EXPECT_EQ(out.lse[0], kInfinity);
}

TEST(Reference, LargeScoresDoNotOverflow) {
  attn::reference::Output out = runScores({1e30, 1e30, -1e30});
  EXPECT_EQ(out.o[0], 1.5);
  EXPECT_EQ(out.lse[0], static_cast<double>(1e30f));
  out = runScores({-1e4, -1e4, -1e4});
  EXPECT_NEAR(out.o[0], 2, 1e-12);
  EXPECT_NEAR(out.lse[0], -1e4 + std::log(3.0), 1e-9);
}

TEST(Reference, DenseMask) {
  Case c = causalCase(DType::F32, DType::F32, 2, 1, 1);
  c.spec.program.mask =
      c.add(Op::Window, ScalarType::Bool, {c.add(Op::IndexH, ScalarType::I64)}, 1);
  c.batch.numHeads = 2;
  c.batch.shape.keyBegin[0] = 5;
  int64_t stride = 11, tokens = c.batch.shape.numTokens();
  std::vector<uint8_t> mask = attn::reference::denseMask(c.spec, c.batch, stride);
  ASSERT_EQ(static_cast<int64_t>(mask.size()), 2 * tokens * stride);
  for (int64_t h = 0; h < 2; ++h)
    for (int64_t b = 0; b < c.batch.shape.numReqs(); ++b)
      for (int64_t t = c.batch.shape.queryStartLoc[b]; t < c.batch.shape.queryStartLoc[b + 1]; ++t)
        for (int64_t k = 0; k < stride; ++k) {
          int64_t q = c.batch.shape.contextLen[b] + t - c.batch.shape.queryStartLoc[b];
          bool inside = k >= c.batch.shape.keyBegin[b] && k < c.batch.shape.keyEnd[b];
          EXPECT_EQ(mask[(h * tokens + t) * stride + k], inside && q - k <= h);
        }
}

} // namespace
