// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Guards against quadratic builders: when lengths grow 16-fold, time may grow with them, with a
// wide margin for noise, but not with their square.
#include "Harness.h"

#include "llvm/Support/Error.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <cstdio>
#include <ctime>

using namespace exec;
using namespace attn;
using namespace attn::core;
using truth::Int;

namespace {

constexpr Int kGrowth = 16;
/// Linear work grows 16-fold, n log n about 20-fold, quadratic work 256-fold.
constexpr double kMaxRatio = 64;

/// Processor time, so that a busy machine does not matter much.
double processorSeconds() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

template <class Fn>
double bestSeconds(Fn fn) {
  double best = 1e9;
  for (int i = 0; i < 7; ++i) {
    const double start = processorSeconds();
    fn();
    best = std::min(best, processorSeconds() - start);
  }
  return best;
}

/// A prompt of images of 280 tokens with 5 tokens of text between them.
truth::Request prompt(Int length) {
  truth::Request r = truth::request(length, length);
  for (Int start = 5; start + 280 < length; start += 285)
    r.ranges.push_back({start, start + 279});
  return r;
}

rt::BoundBatch bind(const KernelSpec &spec, const std::vector<truth::Request> &requests) {
  rt::BatchInput input = batchInput(spec, requests);
  for (const ParamDecl &decl : spec.program.params) {
    rt::ParamInput param;
    param.name = decl.name;
    param.i = 1023;
    input.params.push_back(param);
  }
  Result<rt::BoundBatch> bound = rt::bindBatch(spec, std::move(input));
  if (!bound) {
    ADD_FAILURE() << bound.message();
    return {};
  }
  return std::move(*bound);
}

KernelSpec specOf(const std::string &mask) {
  llvm::Expected<std::vector<KernelSpec>> specs = compiler::readSpecs(
      "attn.kernel @k heads(8) kv_heads(4) dim(64) q(f32) kv(f32) params(%left: i32) "
      "tables(%mm: !attn.ranges) {\n  attn.mask (%b, %h, %q, %k) {\n" +
          mask + "    attn.yield %m : i1\n  }\n}\n",
      "scaling.mlir");
  if (!specs) {
    ADD_FAILURE() << llvm::toString(specs.takeError());
    return {};
  }
  return specs->front();
}

void expectNearLinear(const char *what, double small, double large) {
  std::printf("%s: %.3f ms, %lld times as long: %.3f ms, ratio %.1f\n", what, small * 1e3,
              static_cast<long long>(kGrowth), large * 1e3, large / small);
  EXPECT_LT(large, kMaxRatio * std::max(small, 20e-6)) << what;
}

} // namespace

TEST(Scaling, TileRecordsOfIntervalMasks) {
  const char *const masks[] = {
      "    %c = attn.causal %q, %k\n    %w = attn.window %q, %k left(%left)\n"
      "    %cw = attn.and %c, %w\n    %r = attn.mm_prefix %mm, %b, %q, %k clamp(%left)\n"
      "    %m = attn.or %cw, %r\n",
      "    %m = attn.causal %q, %k\n",
      "    %c = attn.causal %q, %k\n    %p = attn.prefix %k, 64\n"
      "    %w = attn.window %q, %k left(%left)\n    %pw = attn.or %p, %w\n"
      "    %m = attn.and %c, %pw\n"};
  for (const char *mask : masks) {
    const KernelSpec spec = specOf(mask);
    size_t segments = 0;
    auto seconds = [&](Int length) {
      const rt::BoundBatch bound = bind(spec, {prompt(length)});
      return bestSeconds([&] {
        segments = 0;
        for (const TileRecord &record : rt::buildTileRecords(spec.program, bound.batch, {128, 80}))
          segments += record.segments.size();
      });
    };
    const double small = seconds(2048);
    const size_t smallSegments = segments;
    const double large = seconds(2048 * kGrowth);
    expectNearLinear("tile records", small, large);
    // A segment list does not grow with the number of key blocks in it.
    EXPECT_LE(segments, 2 * kGrowth * smallSegments);
  }
}

TEST(Scaling, QueryRangeTable) {
  const KernelSpec spec = specOf("    %m = attn.mm_prefix %mm, %b, %q, %k\n");
  auto seconds = [&](const truth::Request &request) {
    const rt::BoundBatch bound = bind(spec, {request});
    std::vector<Range> rows(bound.batch.shape.numTokens());
    return bestSeconds(
        [&] { rt::buildQueryRanges(bound.batch.shape, bound.batch.tables.at(0), rows.data()); });
  };
  expectNearLinear("query ranges, images", seconds(prompt(1 << 14)),
                   seconds(prompt((1 << 14) * kGrowth)));
  // Many short ranges, nested in a long one, and in descending order.
  auto nested = [](Int length) {
    truth::Request r = truth::request(length, length);
    for (Int start = length - 4; start >= 0; start -= 4)
      r.ranges.push_back({start, start + 3});
    r.ranges.push_back({0, length - 1});
    return r;
  };
  expectNearLinear("query ranges, short and nested", seconds(nested(1 << 14)),
                   seconds(nested((1 << 14) * kGrowth)));
  // Ranges that all overlap: [i, length - 1 - i].
  auto onion = [](Int length) {
    truth::Request r = truth::request(length, length);
    for (Int i = 0; 2 * i < length - 1; ++i)
      r.ranges.push_back({i, length - 1 - i});
    return r;
  };
  expectNearLinear("query ranges, all overlapping", seconds(onion(1 << 14)),
                   seconds(onion((1 << 14) * kGrowth)));
}
