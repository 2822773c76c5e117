// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Field failures of the classes mm-prefix, prefix-lm, custom-mask, per-seq and packing.
#include "FieldRecord.h"

#include "gtest/gtest.h"

using namespace field;
using namespace exec;
using truth::request;

static const char kShape[] = "heads(2) kv_heads(1) dim(16) q(f32) kv(f32)";
static const std::string kRanges = std::string(kShape) + " tables(%mm: !attn.ranges)";

static truth::Request withRanges(Int queryLen, Int seqLen, std::vector<truth::Range> ranges) {
  truth::Request r = request(queryLen, seqLen);
  r.ranges = std::move(ranges);
  return r;
}

/// (causal and W keys) or range; the window counts self.
static std::string unclamped(Int count) {
  return "    %c = attn.causal %q, %k\n    %w = attn.sliding %q, %k count(" +
         std::to_string(count) +
         ")\n    %cw = attn.and %c, %w\n    %r = attn.mm_prefix %mm, %b, %q, %k\n"
         "    %m = attn.or %cw, %r\n";
}

static const char kCausalOrRange[] = "    %c = attn.causal %q, %k\n"
                                     "    %r = attn.mm_prefix %mm, %b, %q, %k\n"
                                     "    %m = attn.or %c, %r\n";

TEST(FieldFailures, R023_mm_prefix_chunked) {
  const Rows rows = {{{{13, 20}}, {{14, 24}}, {{15, 24}}, {{16, 24}}, {{17, 24}}, {{18, 25}}}};
  const std::string spec = kernel(kRanges, unclamped(8));
  expectRows(spec, {{withRanges(6, 26, {{21, 24}})}, {}, {}}, rows);
  // The same behind a neighbour: rows of the query tensor are not positions.
  expectRows(spec, {{request(2, 3), withRanges(6, 26, {{21, 24}})}, {}, {}},
             {{{{0, 1}}, {{0, 2}}}, rows[0]});
}

TEST(FieldFailures, R024_mm_prefix_range_longer_than_the_window) {
  const Rows rows = {{{{0, 0}},
                      {{0, 1}},
                      {{0, 9}},
                      {{0, 9}},
                      {{1, 9}},
                      {{2, 9}},
                      {{3, 9}},
                      {{4, 9}},
                      {{5, 9}},
                      {{6, 9}},
                      {{7, 10}},
                      {{8, 11}}}};
  const Launch launch = {{withRanges(12, 12, {{2, 9}})}, {}, {}};
  expectRows(kernel(kRanges, "    %c = attn.causal %q, %k\n"
                             "    %r = attn.mm_prefix %mm, %b, %q, %k\n"
                             "    %cr = attn.or %c, %r\n    %w = attn.sliding %q, %k count(4)\n"
                             "    %m = attn.and %cr, %w\n"),
             launch, rows);
  expectRows(kernel(kRanges, "    %c = attn.causal %q, %k\n"
                             "    %w = attn.window %q, %k left(3)\n    %cw = attn.and %c, %w\n"
                             "    %r = attn.mm_prefix %mm, %b, %q, %k clamp(3)\n"
                             "    %m = attn.or %cw, %r\n"),
             launch, rows);
}

TEST(FieldFailures, R026_mm_prefix_images_do_not_see_each_other) {
  expectRows(kernel(kRanges, kCausalOrRange), {{withRanges(10, 10, {{1, 3}, {6, 8}})}, {}, {}},
             {{{{0, 0}},
               {{0, 3}},
               {{0, 3}},
               {{0, 3}},
               {{0, 4}},
               {{0, 5}},
               {{0, 8}},
               {{0, 8}},
               {{0, 8}},
               {{0, 9}}}});
}

TEST(FieldFailures, R029_mm_prefix_ranges_of_a_batch_bind_only_who_asks) {
  auto causalCount = [](Int count) {
    return "    %c = attn.causal %q, %k\n    %w = attn.sliding %q, %k count(" +
           std::to_string(count) + ")\n    %m = attn.and %c, %w\n";
  };
  Rows rows(1);
  for (Int q = 0; q < 14; ++q)
    rows[0].push_back({{q < 3 ? 0 : q - 3, q}});
  EXPECT_EQ(rows[0][6], (Keys{{3, 6}}));
  expectRows(kernel(kShape, causalCount(4)), {{withRanges(14, 14, {{6, 13}})}, {}, {}}, rows);
  expectRows(kernel(kShape, causalCount(128)), {{withRanges(1, 1901, {{1900, 3947}})}, {}, {}},
             {{{{1773, 1900}}}});
}

TEST(FieldFailures, R033_mm_prefix_chunk_ends_inside_a_range) {
  const std::string spec = kernel(kRanges, kCausalOrRange);
  const LoadedKernel &k = compiled(spec);
  const std::vector<truth::Request> first = {withRanges(8, 8, {{4, 11}})};
  attn::rt::BatchInput input = batchInput(*k.spec, first);
  input.allowPartialRanges = false;
  attn::core::Result<attn::rt::BoundBatch> refused = attn::rt::bindBatch(*k.spec, input);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.message(),
            "request 0: range 0 [4, 11] holds a scheduled query and ends at or past seq_len 8; its "
            "keys are not all there (partial_ranges: \"allow\" accepts that)");
  Record::get().refusedLaunch(spec, {first, {}, {}}, refused.message());
  // When allowed, rows of the range see the keys that are there.
  expectRows(spec, {first, {}, {}},
             {{{{0, 0}}, {{0, 1}}, {{0, 2}}, {{0, 3}}, {{0, 7}}, {{0, 7}}, {{0, 7}}, {{0, 7}}}});
  // The next chunk needs no permission.
  const std::vector<truth::Request> second = {withRanges(8, 16, {{4, 11}})};
  input = batchInput(*k.spec, second);
  input.allowPartialRanges = false;
  EXPECT_TRUE(attn::rt::bindBatch(*k.spec, input).ok());
  expectRows(
      spec, {second, {}, {}},
      {{{{0, 11}}, {{0, 11}}, {{0, 11}}, {{0, 11}}, {{0, 12}}, {{0, 13}}, {{0, 14}}, {{0, 15}}}});
}

TEST(FieldFailures, R034_custom_mask_holds_on_interior_tiles) {
  const std::string spec =
      kernel("heads(1) kv_heads(1) dim(16) q(f32) kv(f32)",
             "    %hole = arith.constant 150 : index\n    %m = arith.cmpi ne, %k, %hole : index\n");
  const Rows rows = {std::vector<Keys>(64, Keys{{0, 149}, {151, 511}})};
  const Launch launch = {{request(64, 512)}, {}, {}};
  expectRows(spec, launch, rows);
  Trial trial(spec, launch, rows);
  trial.fillRandom(5);
  trial.fillV(0);
  for (int64_t d = 0; d < 16; ++d)
    trial.setV(0, 150, 0, d, 1e4f);
  std::vector<Claim> claims;
  for (int64_t token = 0; token < 64; ++token)
    claims.push_back({token, 0, std::vector<double>(16, 0.0), std::nullopt, 0});
  trial.expectClaims(claims);
}

TEST(FieldFailures, R035_prefix_lm_keeps_left_padding_out) {
  expectRows(kernel(std::string(kShape) + " params(%pad: i32, %n: i32)",
                    "    %p = arith.index_cast %pad : i32 to index\n"
                    "    %qp = arith.cmpi sge, %q, %p : index\n"
                    "    %kp = arith.cmpi sge, %k, %p : index\n"
                    "    %c = attn.causal %q, %k\n    %x = attn.prefix %k, %n\n"
                    "    %cx = attn.or %c, %x\n    %both = attn.and %qp, %kp\n"
                    "    %m = attn.and %cx, %both\n"),
             {{request(6, 6)}, {{"pad", 2}, {"n", 4}}, {}},
             {{{}, {}, {{2, 3}}, {{2, 3}}, {{2, 4}}, {{2, 5}}}});
}

TEST(FieldFailures, R036_prefix_lm_suffix_stays_causal) {
  const std::string spec = kernel(std::string(kShape) + " tables(%n: !attn.table<[b], i32>)",
                                  "    %len = attn.load %n[%b] : !attn.table<[b], i32>\n"
                                  "    %c = attn.causal %q, %k\n    %x = attn.prefix %k, %len\n"
                                  "    %m = attn.or %c, %x\n");
  auto prefixes = [](std::vector<int32_t> values) {
    const auto count = static_cast<int64_t>(values.size());
    return denseTable("n", attn::core::ScalarType::I32, {count}, values);
  };
  const std::vector<Keys> rows = {{{0, 2}}, {{0, 2}}, {{0, 2}}, {{0, 3}},
                                  {{0, 4}}, {{0, 5}}, {{0, 6}}, {{0, 7}}};
  expectRows(spec, {{request(8, 8)}, {}, {prefixes({3})}}, {rows});
  expectRows(spec, {{request(1, 9)}, {}, {prefixes({3})}}, {{{{0, 8}}}});
  expectRows(spec, {{request(1, 10)}, {}, {prefixes({3})}}, {{{{0, 9}}}});
  // Each request of a batch has its own prefix.
  expectRows(spec, {{request(2, 2), request(8, 8), request(1, 9)}, {}, {prefixes({2, 3, 0})}},
             {{{{0, 1}}, {{0, 1}}}, rows, {{{0, 8}}}});
}

TEST(FieldFailures, R095_packing_documents_do_not_read_each_other) {
  const std::string spec = kernel(std::string(kShape) + " tables(%doc: !attn.documents)",
                                  "    %c = attn.causal %q, %k\n"
                                  "    %d = attn.document %doc, %b, %q, %k\n"
                                  "    %m = attn.and %c, %d\n");
  truth::Request packed = request(7, 7);
  packed.documents = {0, 0, 0, 1, 1, 1, 1};
  const Launch launch = {{packed}, {}, {}};
  const Rows rows = {{{{0, 0}}, {{0, 1}}, {{0, 2}}, {{3, 3}}, {{3, 4}}, {{3, 5}}, {{3, 6}}}};
  expectRows(spec, launch, rows);
  Trial trial(spec, launch, rows);
  trial.fillRandom(21);
  const Outputs before = trial.native();
  const int runBefore = trial.recorded();
  for (int64_t key = 0; key < 3; ++key)
    for (int64_t d = 0; d < 16; ++d) {
      trial.setK(0, key, 0, d, 3.5f);
      trial.setV(0, key, 0, d, -8.25f);
    }
  const Outputs after = trial.native();
  Record::get().sameRows({runBefore, 3}, {trial.recorded(), 3}, 4, true);
  bool firstChanged = false;
  for (size_t i = 0; i < before.o.size(); ++i) {
    if (i < 3 * 2 * 16)
      firstChanged |= before.o[i] != after.o[i];
    else
      ASSERT_EQ(before.o[i], after.o[i]) << "element " << i;
  }
  EXPECT_TRUE(firstChanged);
}

TEST(FieldFailures, R099_per_seq_bidirectional_block_with_left_window) {
  expectRows(kernel(kShape, "    %m = attn.sliding %q, %k count(3)\n"), {{request(4, 10)}, {}, {}},
             {{{{4, 9}}, {{5, 9}}, {{6, 9}}, {{7, 9}}}});
}
