// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// 300 seeded random batches of the mask "(causal and window) or ranges", clamped and unclamped:
// native code against the reference row by row, and a count probe against the hand-written
// predicate.
#include "FieldSupport.h"

#include "gtest/gtest.h"

#include <cmath>
#include <cstdio>

using namespace exec;
using namespace attn;
using truth::Int;

namespace {

constexpr int kBatches = 300;
constexpr int64_t kDims[] = {16, 32, 64, 80, 96, 128, 192, 256};
constexpr int64_t kGroups[] = {1, 2, 4, 5, 8};

struct Shape {
  int64_t heads;
  int64_t kvHeads;
  int64_t dimQk;
  int64_t dimV;
  const char *qType;
  const char *kvType;
  bool clamp;
};

Shape shapeOf(int i) {
  const int64_t group = kGroups[i % 5];
  const int64_t kvHeads = 1 + (i / 5) % 2;
  // Mostly f32; every sixth batch has bf16 or f16 inputs.
  const char *types[] = {"f32", "f32", "f32", "f32", "f32", i % 12 == 5 ? "bf16" : "f16"};
  const char *type = types[i % 6];
  return {group * kvHeads,
          kvHeads,
          kDims[(i / 2) % 8],
          kDims[(i / (i % 3 ? 2 : 5)) % 8],
          type,
          i % 18 == 5 ? "f32" : type,
          i % 2 == 1};
}

std::string specOf(const Shape &s) {
  const std::string clauses = "heads(" + std::to_string(s.heads) + ") kv_heads(" +
                              std::to_string(s.kvHeads) + ") dim(" + std::to_string(s.dimQk) +
                              ") dim_v(" + std::to_string(s.dimV) + ") q(" + s.qType + ") kv(" +
                              s.kvType + ") params(%left: i32) tables(%mm: !attn.ranges)";
  return field::kernel(clauses, std::string("    %c = attn.causal %q, %k\n"
                                            "    %w = attn.window %q, %k left(%left)\n"
                                            "    %cw = attn.and %c, %w\n"
                                            "    %r = attn.mm_prefix %mm, %b, %q, %k") +
                                    (s.clamp ? " clamp(%left)" : "") +
                                    "\n    %m = attn.or %cw, %r\n");
}

/// 1 to 6 requests; with `longRange` one of them has a range longer than the window.
std::vector<truth::Request> randomRequests(std::mt19937 &rng, bool longRange, Int left) {
  std::vector<truth::Request> requests;
  const unsigned count = 1 + rng() % 6;
  for (unsigned b = 0; b < count; ++b) {
    Int queryLen = 0;
    Int seqLen = 0;
    switch (rng() % 6) {
    case 0: // decode
      queryLen = 1;
      seqLen = 1 + rng() % 90;
      break;
    case 1: // nothing scheduled, or no keys
      queryLen = rng() % 2 ? 0 : rng() % 5;
      seqLen = queryLen ? 0 : rng() % 20;
      break;
    case 2: // more queries than keys
      seqLen = rng() % 12;
      queryLen = seqLen + 1 + rng() % 8;
      break;
    case 3: // whole prompt
      queryLen = seqLen = 1 + rng() % 40;
      break;
    default: // chunk behind a context
      queryLen = 1 + rng() % 30;
      seqLen = queryLen + rng() % 60;
    }
    if (longRange && b == 0) {
      queryLen = std::max<Int>(queryLen, 6);
      seqLen = std::max<Int>(seqLen, queryLen + left + 4);
    }
    truth::Request r = truth::request(queryLen, seqLen);
    if (longRange && b == 0) {
      Int start = std::max<Int>(0, seqLen - left - 6 - Int(rng() % 3));
      r.ranges.push_back({start, seqLen - 1 - Int(rng() % 2)});
    }
    for (unsigned n = rng() % 4; n > 0 && seqLen > 1; --n) {
      Int start = rng() % seqLen;
      r.ranges.push_back({start, std::min<Int>(seqLen - 1, start + rng() % 20)});
    }
    requests.push_back(r);
  }
  return requests;
}

struct Totals {
  int64_t rows = 0;
  int64_t emptyRows = 0;
  int64_t longRangeBatches = 0;
  int64_t paged = 0;
  int64_t split = 0;
};

void checkBatch(int i, Totals &totals) {
  SCOPED_TRACE("batch " + std::to_string(i));
  std::mt19937 rng(static_cast<unsigned>(1000 + i));
  const Shape shape = shapeOf(i);
  const LoadedKernel &kernel = field::compiled(specOf(shape));
  const Int left = rng() % 12;
  const bool longRange = (i / 2) % 2 == 0;
  const std::vector<truth::Request> requests = randomRequests(rng, longRange, left);
  if (longRange) {
    ASSERT_GT(requests[0].ranges[0].end - requests[0].ranges[0].start + 1, left + 1);
    ++totals.longRangeBatches;
  }
  auto keep = [&](int64_t b, int64_t, int64_t q, int64_t k) {
    const truth::Request &r = requests[b];
    return (truth::causal(q, k) && truth::windowLeft(q, k, left)) ||
           (shape.clamp ? truth::mmPrefixClamp(r, q, k, left) : truth::mmPrefix(r, q, k));
  };
  const int64_t pageSizes[] = {0, 0, 16, 1, 7};
  const Layout layout = {pageSizes[rng() % 5], rng() % 2 == 0, rng() % 2 == 0};
  totals.paged += layout.pageSize > 0;
  Attention attention(kernel, field::bound(kernel, {requests, {{"left", left}}, {}}), keep, layout);
  const int64_t tokens = attention.tokens();
  attention.fillRandom(static_cast<unsigned>(i));
  attention.poisonInvisible();
  EXPECT_EQ(attention.compareMasks(), "");
  const Outputs reference = attention.reference();
  const Outputs native = attention.native();
  EXPECT_EQ(compareRows(reference, native, tokens, shape.heads, shape.dimV, 1e-5), "");
  EXPECT_EQ(compareRows(attention.naive(), reference, tokens, shape.heads, shape.dimV, 1e-9), "");
  const Outputs threaded = attention.native(3);
  EXPECT_EQ(compareRows(native, threaded, tokens, shape.heads, shape.dimV, 0), "");

  if (i % 4 == 0) {
    // The same in two launches, each over a part of every request's keys.
    core::BatchShape &launch = attention.shape();
    const std::vector<int64_t> end = launch.keyEnd;
    std::vector<int64_t> cut;
    for (int64_t keys : end)
      cut.push_back(static_cast<int64_t>(rng() % static_cast<unsigned>(keys + 1)));
    launch.keyEnd = cut;
    const Outputs first = attention.native();
    EXPECT_EQ(compareRows(attention.reference(), first, tokens, shape.heads, shape.dimV, 1e-5), "");
    launch.keyBegin = cut;
    launch.keyEnd = end;
    const Outputs merged = merge(first, attention.native(), tokens, shape.heads, shape.dimV);
    EXPECT_EQ(compareRows(reference, merged, tokens, shape.heads, shape.dimV, 1e-5), "");
    launch.keyBegin.assign(end.size(), 0);
    ++totals.split;
  }

  // K = 0: every kept key has weight 1, so exp(lse) counts them.
  attention.fillK(0);
  attention.poisonInvisible();
  const Outputs counted[] = {attention.reference(), attention.native()};
  int64_t token = 0;
  for (size_t b = 0; b < requests.size(); ++b)
    for (Int j = 0; j < requests[b].queryLen; ++j, ++token) {
      const Int q = requests[b].contextLen + j;
      int64_t visible = 0;
      for (Int k = 0; k < requests[b].seqLen; ++k)
        visible += keep(static_cast<int64_t>(b), 0, q, k);
      for (int64_t h = 0; h < shape.heads; ++h)
        for (const Outputs &out : counted)
          ASSERT_EQ(std::llround(std::exp(out.lse[h * tokens + token])), visible)
              << "request " << b << " q " << q << " head " << h;
      totals.rows += shape.heads;
      totals.emptyRows += visible == 0 ? shape.heads : 0;
    }
}

} // namespace

TEST(RandomBatches, NativeEqualsReferenceRowByRow) {
  Totals totals;
  for (int i = 0; i < kBatches && !HasFatalFailure(); ++i)
    checkBatch(i, totals);
  std::printf("%d batches (%lld with a range longer than the window, %lld paged, %lld also "
              "split), %lld rows, %lld of them empty\n",
              kBatches, static_cast<long long>(totals.longRangeBatches),
              static_cast<long long>(totals.paged), static_cast<long long>(totals.split),
              static_cast<long long>(totals.rows), static_cast<long long>(totals.emptyRows));
  EXPECT_GE(totals.longRangeBatches, kBatches / 2);
  EXPECT_GT(totals.paged, 0);
  EXPECT_GT(totals.emptyRows, 0);
}
