// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Field failures of the classes empty-row, numerics, softcap and alibi.
#include "FieldSupport.h"

#include "gtest/gtest.h"

#include <cmath>
#include <limits>

using namespace field;
using namespace exec;
using namespace attn::core;
using truth::request;

static constexpr double kInf = std::numeric_limits<double>::infinity();
static const char kCausal[] = "    %m = attn.causal %q, %k\n";

TEST(FieldFailures, R039_empty_row_only_key_masked) {
  const std::string spec =
      kernel("heads(1) kv_heads(1) dim(2) q(f32) kv(f32)",
             "    %zero = arith.constant 0 : index\n    %m = arith.cmpi ne, %k, %zero : index\n");
  const Launch launch = {{request(1, 1)}, {}, {}};
  expectRows(spec, launch, {{{}}});
  Trial trial(spec, launch, {{{}}});
  trial.fillRandom(1);
  trial.expectClaims({{0, 0, {0, 0}, -kInf, 0}});
}

TEST(FieldFailures, R041_empty_row_sequence_without_keys) {
  const std::string spec = kernel("heads(2) kv_heads(1) dim(16) q(f32) kv(f32)", "");
  truth::Request none = request(2, 0);
  expectRows(spec, {{request(3, 5), none, request(4, 4)}, {}, {}},
             {{{{0, 4}}, {{0, 4}}, {{0, 4}}}, {{}, {}}, {{{0, 3}}, {{0, 3}}, {{0, 3}}, {{0, 3}}}});
}

TEST(FieldFailures, R044_empty_row_merges_as_nothing) {
  const std::string spec = kernel("heads(4) kv_heads(1) dim(16) q(f32) kv(f32)", kCausal);
  const Launch launch = {{request(6, 2)}, {}, {}};
  const Rows rows = {{{}, {}, {}, {}, {{0, 0}}, {{0, 1}}}};
  expectRows(spec, launch, rows);
  Trial trial(spec, launch, rows, {2, false, false});
  trial.fillRandom(9);
  trial.poisonInvisible();
  std::vector<Claim> empty;
  for (int64_t h = 0; h < 4; ++h)
    for (int64_t t = 0; t < 4; ++t)
      empty.push_back({t, h, std::vector<double>(16, 0.0), -kInf, 0});
  trial.expectClaims(empty);
  Outputs other;
  for (int64_t i = 0; i < 6 * 4 * 16; ++i)
    other.o.push_back(0.25 * double(i % 7));
  for (int64_t i = 0; i < 6 * 4; ++i)
    other.lse.push_back(-3.5 + double(i));
  for (const Outputs &out : {trial.reference(), trial.native()}) {
    const Outputs merged = merge(out, other, 6, 4, 16);
    for (int64_t i = 0; i < 4 * 4 * 16; ++i)
      ASSERT_EQ(merged.o[i], other.o[i]);
    for (int64_t h = 0; h < 4; ++h)
      for (int64_t t = 0; t < 4; ++t)
        EXPECT_EQ(merged.lse[h * 6 + t], other.lse[h * 6 + t]);
  }
}

TEST(FieldFailures, R046_numerics_very_negative_scores_are_legal) {
  const std::string spec = kernel("heads(16) kv_heads(1) dim(128) q(f32) kv(f32)", "");
  const Launch launch = {{request(1, 64)}, {}, {}};
  Trial trial(spec, launch, {{{{0, 63}}}});
  trial.fillRandom(2);
  trial.fillQ(0);
  trial.fillK(0);
  for (int64_t h = 0; h < 16; ++h)
    trial.setQ(0, h, 0, 1);
  // The row's -55000 and -60000, to the nearest that bf16 holds.
  for (int64_t key = 0; key < 64; ++key)
    trial.setK(0, key, 0, 0, key == 0 ? -55040.0f : -59904.0f);
  std::vector<double> first;
  for (int64_t d = 0; d < 128; ++d) {
    first.push_back(static_cast<double>(d) - 50);
    trial.setV(0, 0, 0, d, static_cast<float>(d) - 50);
  }
  std::vector<Claim> claims;
  for (int64_t h = 0; h < 16; ++h)
    claims.push_back({0, h, first, -55040 / std::sqrt(128.0), 1e-4});
  trial.expectClaims(claims);
  EXPECT_EQ(compareRows(trial.naive(), trial.native(), 1, 16, 128, 1e-5), "");
}

TEST(FieldFailures, R046_numerics_scores_that_are_not_finite) {
  const std::string spec = kernel("heads(2) kv_heads(1) dim(16) q(f32) kv(f32) "
                                  "tables(%bias: !attn.table<[b, k], f32>)",
                                  "",
                                  "    %a = attn.load %bias[%b, %k] : !attn.table<[b, k], f32>\n"
                                  "    %x = arith.addf %s, %a : f32\n");
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  // Rows in turn: some keys at -inf, all, one at +inf, one NaN, none.
  const std::vector<float> bias = {0, -inf, 0, -inf, -inf, -inf, -inf, -inf, 0, inf,
                                   0, 0,    0, 0,    nan,  0,    0,    0,    0, 0};
  const Launch launch = {std::vector<truth::Request>(5, request(1, 4)),
                         {},
                         {denseTable("bias", ScalarType::F32, {5, 4}, bias)}};
  for (const Layout &layout : {Layout{0, false, false}, Layout{2, false, false}}) {
    Trial trial(spec, launch, Rows(5, {{{0, 3}}}), layout);
    trial.fillRandom(12);
    trial.fillQ(0);
    for (int64_t b = 0; b < 5; ++b)
      for (int64_t key = 0; key < 4; ++key)
        for (int64_t d = 0; d < 16; ++d)
          trial.setV(b, key, 0, d, static_cast<float>(key + d));
    std::vector<double> mean02, mean03;
    for (int64_t d = 0; d < 16; ++d) {
      mean02.push_back(1.0 + static_cast<double>(d));
      mean03.push_back(1.5 + static_cast<double>(d));
    }
    const std::vector<double> zeros(16, 0.0), nans(16, nan);
    for (int64_t h = 0; h < 2; ++h)
      trial.expectClaims({{0, h, mean02, std::log(2.0), 1e-5},
                          {1, h, zeros, -kInf, 0},
                          {2, h, nans, kInf, 0},
                          {3, h, nans, nan, 0},
                          {4, h, mean03, std::log(4.0), 1e-5}});
  }
}

TEST(FieldFailures, R048_numerics_band_that_forgets_old_keys) {
  const std::string spec = kernel("heads(1) kv_heads(1) dim(2) q(f32) kv(f32)",
                                  "    %c = attn.causal %q, %k\n"
                                  "    %w = attn.sliding %q, %k count(10)\n"
                                  "    %m = attn.and %c, %w\n");
  const Launch launch = {{request(600, 600)}, {}, {}};
  Rows rows(1);
  for (Int q = 0; q < 600; ++q)
    rows[0].push_back({{q < 9 ? 0 : q - 9, q}});
  expectRows(spec, launch, rows);
  Trial trial(spec, launch, rows);
  trial.fillQ(1);
  trial.fillK(1);
  trial.fillV(1);
  std::vector<Claim> claims;
  for (int64_t token = 0; token < 600; ++token)
    claims.push_back({token, 0, {1.0, 1.0}, std::nullopt, 1e-6});
  trial.expectClaims(claims);
}

TEST(FieldFailures, R052_softcap_comes_before_the_mask) {
  const std::string spec = kernel("heads(1) kv_heads(1) dim(4) q(f32) kv(f32)", kCausal,
                                  "    %x = attn.soft_cap %s, 1.0\n");
  const Launch launch = {{request(3, 3)}, {}, {}};
  const Rows rows = {{{{0, 0}}, {{0, 1}}, {{0, 2}}}};
  expectRows(spec, launch, rows,
             [](double s, int64_t, int64_t, int64_t, int64_t) { return std::tanh(s); });
  Trial trial(spec, launch, rows);
  trial.fillQ(0);
  trial.fillK(1);
  trial.fillV(0);
  for (int64_t key = 0; key < 3; ++key)
    trial.setV(0, key, 0, key, 1);
  const double third = 1.0 / 3;
  trial.expectClaims({{0, 0, {1, 0, 0, 0}, 0.0, 0},
                      {1, 0, {0.5, 0.5, 0, 0}, std::log(2.0), 1e-6},
                      {2, 0, {third, third, third, 0}, std::log(3.0), 1e-6}});
}

TEST(FieldFailures, R058_alibi_slopes_of_a_rank) {
  auto spec = [](int heads) {
    return kernel("heads(" + std::to_string(heads) +
                      ") kv_heads(1) dim(16) q(f32) kv(f32) tables(%slopes: !attn.table<[h], f32>)",
                  kCausal,
                  "    %slope = attn.load %slopes[%h] : !attn.table<[h], f32>\n"
                  "    %x = attn.alibi %s, %q, %k, %slope\n");
  };
  auto slopes = [](int first, int count) {
    std::vector<float> values;
    for (int h = first; h < first + count; ++h)
      values.push_back(std::ldexp(1.0f, -(h + 1)));
    return denseTable("slopes", ScalarType::F32, {count}, values);
  };
  const std::vector<truth::Request> requests = {request(2, 2), request(4, 9)};
  const Rows rows = {{{{0, 0}}, {{0, 1}}}, {{{0, 5}}, {{0, 6}}, {{0, 7}}, {{0, 8}}}};
  auto scoreFrom = [](int first) {
    return [first](double s, int64_t, int64_t h, int64_t q, int64_t k) {
      return s - std::ldexp(1.0, -static_cast<int>(first + h + 1)) * double(q > k ? q - k : k - q);
    };
  };
  expectRows(spec(8), {requests, {}, {slopes(0, 8)}}, rows, scoreFrom(0));
  // Rank 1 owns heads 4..7: slopes 2^-5 to 2^-8.
  expectRows(spec(4), {requests, {}, {slopes(4, 4)}}, rows, scoreFrom(4));
}
