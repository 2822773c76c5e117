// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Field failures of the classes align and window. Names carry the rows' ids.
#include "FieldRecord.h"

#include "gtest/gtest.h"

using namespace field;
using namespace exec;
using truth::request;

static const char kShape[] = "heads(2) kv_heads(1) dim(16) q(f32) kv(f32)";
static const char kCausal[] = "    %m = attn.causal %q, %k\n";

/// "causal and the last W keys", W as a count.
static std::string causalCount(Int count) {
  return "    %c = attn.causal %q, %k\n    %w = attn.sliding %q, %k count(" +
         std::to_string(count) + ")\n    %m = attn.and %c, %w\n";
}

TEST(FieldFailures, R001_align_causal_is_bottom_right) {
  expectRows(kernel(kShape, kCausal), {{request(2, 5)}, {}, {}}, {{{{0, 3}}, {{0, 4}}}});
}

TEST(FieldFailures, R003_align_independent_dense_reference) {
  expectRows(kernel("heads(1) kv_heads(1) dim(128) q(f32) kv(f32)", kCausal),
             {{request(3, 128)}, {}, {}}, {{{{0, 125}}, {{0, 126}}, {{0, 127}}}});
}

TEST(FieldFailures, R005_align_both_anchors) {
  // Top-left is asked for by name: the queries sit at the positions 0, 1, 2.
  truth::Request topLeft = request(3, 5);
  topLeft.contextLen = 0;
  expectRows(kernel(kShape, kCausal), {{topLeft, request(3, 5)}, {}, {}},
             {{{{0, 0}}, {{0, 1}}, {{0, 2}}}, {{{0, 2}}, {{0, 3}}, {{0, 4}}}});
}

TEST(FieldFailures, R007_align_chunk_after_a_cached_prefix) {
  const std::string spec = kernel(kShape, kCausal);
  struct Result {
    Outputs reference, native;
    int run;
  };
  auto run = [&](Int queryLen, Int seqLen) {
    const Launch launch = {{request(queryLen, seqLen)}, {}, {}};
    Rows rows(1);
    for (Int i = 0; i < queryLen; ++i)
      rows[0].push_back({{0, seqLen - queryLen + i}});
    expectRows(spec, launch, rows);
    Trial trial(spec, launch, rows);
    fillByPosition(trial, launch.requests);
    const Outputs native = trial.native();
    return Result{trial.reference(), native, trial.recorded()};
  };
  const Result whole = run(12, 12);
  const Result first = run(5, 5);
  const Result second = run(7, 12);
  auto stacked = [](const Outputs &a, const Outputs &b) {
    Outputs out = a;
    out.o.insert(out.o.end(), b.o.begin(), b.o.end());
    out.lse.clear();
    for (int64_t h = 0; h < 2; ++h) {
      out.lse.insert(out.lse.end(), a.lse.begin() + h * 5, a.lse.begin() + (h + 1) * 5);
      out.lse.insert(out.lse.end(), b.lse.begin() + h * 7, b.lse.begin() + (h + 1) * 7);
    }
    return out;
  };
  EXPECT_EQ(
      compareRows(whole.reference, stacked(first.reference, second.reference), 12, 2, 16, 1e-12),
      "");
  EXPECT_EQ(compareRows(whole.native, stacked(first.native, second.native), 12, 2, 16, 1e-5), "");
  Record::get().sameRows({whole.run, 0}, {first.run, 0}, 5, false);
  Record::get().sameRows({whole.run, 5}, {second.run, 0}, 7, false);
}

TEST(FieldFailures, R009_window_count_is_not_a_radius) {
  expectRows(kernel(kShape, causalCount(4)), {{request(10, 10)}, {}, {}},
             {{{{0, 0}},
               {{0, 1}},
               {{0, 2}},
               {{0, 3}},
               {{1, 4}},
               {{2, 5}},
               {{3, 6}},
               {{4, 7}},
               {{5, 8}},
               {{6, 9}}}});
}

TEST(FieldFailures, R011_window_count_3_equals_radius_2) {
  const Rows rows = {{{{0, 0}}, {{0, 1}}, {{0, 2}}, {{1, 3}}, {{2, 4}}, {{3, 5}}}};
  expectRows(kernel(kShape, causalCount(3)), {{request(6, 6)}, {}, {}}, rows);
  expectRows(kernel(std::string(kShape) + " params(%left: i32)",
                    "    %c = attn.causal %q, %k\n    %w = attn.window %q, %k left(%left)\n"
                    "    %m = attn.and %c, %w\n"),
             {{request(6, 6)}, {{"left", 2}}, {}}, rows);
}

TEST(FieldFailures, R015_window_right_bound_reaches_the_kernel) {
  const Rows rows = {{{{0, 0}}, {{0, 1}}, {{0, 2}}, {{1, 3}}, {{2, 4}}, {{3, 5}}}};
  expectRows(kernel(kShape, "    %m = attn.window %q, %k left(2) right(0)\n"),
             {{request(6, 6)}, {}, {}}, rows);
  expectRows(kernel(kShape,
                    "    %c = attn.causal %q, %k\n"
                    "    %w = attn.window %q, %k left(2) right(1)\n    %m = attn.and %c, %w\n"),
             {{request(6, 6)}, {}, {}}, rows);
}

TEST(FieldFailures, R016_window_of_an_encoder_has_two_sides) {
  expectRows(kernel(kShape, "    %m = attn.window %q, %k left(2) right(2)\n"),
             {{request(8, 8)}, {}, {}},
             {{{{0, 2}}, {{0, 3}}, {{0, 4}}, {{1, 5}}, {{2, 6}}, {{3, 7}}, {{4, 7}}, {{5, 7}}}});
}

TEST(FieldFailures, R018_window_of_one_layer_stays_there) {
  const std::string windowed = kernel(kShape, causalCount(512));
  const std::string plain = kernel(kShape, kCausal);
  const Launch launch = {{request(1, 600)}, {}, {}};
  expectRows(windowed, launch, {{{{88, 599}}}});
  expectRows(plain, launch, {{{{0, 599}}}});
  expectRows(windowed, launch, {{{{88, 599}}}});
}

TEST(FieldFailures, R020_window_across_a_shared_prefix) {
  const std::string spec = kernel(kShape, causalCount(4));
  const Launch launch = {{request(3, 11), request(5, 13)}, {}, {}};
  const Rows rows = {{{{5, 8}}, {{6, 9}}, {{7, 10}}},
                     {{{5, 8}}, {{6, 9}}, {{7, 10}}, {{8, 11}}, {{9, 12}}}};
  expectRows(spec, launch, rows);

  // The same with the prefix's two pages shared, whole and as two launches over prefix and suffix.
  Trial trial(spec, launch, rows, {4, false, false});
  const std::vector<int32_t> table = {0, 1, 2, -1, 0, 1, 3, 4};
  trial.problem.kv.pageTable = table.data();
  trial.problem.kv.requestStride = 4;
  trial.fillRandom(3);
  trial.poisonInvisible();
  const Outputs want = trial.naive();
  const int64_t tokens = trial.tokens();
  EXPECT_EQ(compareRows(want, trial.reference(), tokens, 2, 16, 1e-9), "");
  EXPECT_EQ(compareRows(want, trial.native(), tokens, 2, 16, 1e-5), "");
  trial.shape().keyEnd = {8, 8};
  const Outputs prefix = trial.native();
  const Outputs prefixReference = trial.reference();
  trial.shape().keyBegin = {8, 8};
  trial.shape().keyEnd = {11, 13};
  Record::get().notApplicable("the suffix as a launch of its own: batch files have no first key");
  const Outputs suffix = trial.Attention::native();
  EXPECT_EQ(compareRows(want, merge(prefix, suffix, tokens, 2, 16), tokens, 2, 16, 1e-5), "");
  EXPECT_EQ(compareRows(want, merge(prefixReference, trial.reference(), tokens, 2, 16), tokens, 2,
                        16, 1e-9),
            "");
}

TEST(FieldFailures, R022_window_leaves_early_tiles_empty) {
  Rows rows(1);
  for (Int i = 0; i < 32; ++i)
    rows[0].push_back({{61 + i, 64 + i}});
  expectRows(kernel(kShape, causalCount(4)), {{request(32, 96)}, {}, {}}, rows);
}

TEST(FieldFailures, R097_window_of_self_attention_stays_out_of_cross_attention) {
  expectRows(kernel(kShape, kCausal), {{request(4, 4)}, {}, {}},
             {{{{0, 0}}, {{0, 1}}, {{0, 2}}, {{0, 3}}}});
  expectRows(kernel(kShape, ""), {{request(4, 6)}, {}, {}},
             {{{{0, 5}}, {{0, 5}}, {{0, 5}}, {{0, 5}}}});
}
