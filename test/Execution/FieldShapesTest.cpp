// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Field failures of the classes dims and split-kv.
#include "FieldRecord.h"

#include "gtest/gtest.h"

#include <random>

using namespace field;
using namespace exec;
using namespace attn::core;
using truth::request;

static const char kCausal[] = "    %m = attn.causal %q, %k\n";

/// Causal rows of a request, of the last `count` keys.
static std::vector<Keys> causalRows(const truth::Request &r, Int count = Int(1) << 30) {
  std::vector<Keys> rows;
  for (Int q = r.contextLen; q < r.seqLen; ++q)
    rows.push_back({{std::max<Int>(0, q - count + 1), q}});
  return rows;
}

TEST(FieldFailures, R070_split_kv_sequences_stay_apart) {
  const std::string spec = kernel("heads(2) kv_heads(1) dim(64) q(f32) kv(f32)", kCausal);
  const Launch launch = {{request(4, 2048), request(4, 1500)}, {}, {}};
  const Rows rows = {causalRows(launch.requests[0]), causalRows(launch.requests[1])};
  expectRows(spec, launch, rows);

  Trial both(spec, launch, rows);
  fillByPosition(both, launch.requests, 0, true);
  const Outputs whole = both.native();
  EXPECT_EQ(compareRows(both.naive(), whole, 8, 2, 64, 1e-5), "");
  // Each alone, without split.
  for (unsigned b = 0; b < 2; ++b) {
    const Launch alone = {{launch.requests[b]}, {}, {}};
    Trial trial(spec, alone, {rows[b]});
    fillByPosition(trial, alone.requests, b);
    const Outputs native = trial.native();
    Outputs part;
    part.o.assign(whole.o.begin() + b * 4 * 2 * 64, whole.o.begin() + (b + 1) * 4 * 2 * 64);
    for (int64_t h = 0; h < 2; ++h)
      for (int64_t t = 0; t < 4; ++t)
        part.lse.push_back(whole.lse[h * 8 + b * 4 + t]);
    EXPECT_EQ(compareRows(native, part, 4, 2, 64, 1e-5), "") << "sequence " << b;
    Record::get().sameRows({both.recorded(), b * 4}, {trial.recorded(), 0}, 4, false);
  }
  // In four launches over a quarter of the keys each, merged.
  Outputs merged;
  for (int64_t split = 0; split < 4; ++split) {
    both.shape().keyBegin = {2048 * split / 4, 1500 * split / 4};
    both.shape().keyEnd = {2048 * (split + 1) / 4, 1500 * (split + 1) / 4};
    const Outputs part = both.Attention::native();
    merged = split ? merge(merged, part, 8, 2, 64) : part;
  }
  EXPECT_EQ(compareRows(whole, merged, 8, 2, 64, 1e-5), "");
  Record::get().notApplicable("the four splits: no GPU kernel splits the keys of a row yet");
}

TEST(FieldFailures, R077_dims_of_v_and_a_custom_mask) {
  const std::string clauses = "tables(%keep: !attn.table<[token, k], i8>)";
  const std::string mask = "    %x = attn.load %keep[%q, %k] : !attn.table<[token, k], i8>\n"
                           "    %zero = arith.constant 0 : i8\n"
                           "    %m = arith.cmpi ne, %x, %zero : i8\n";
  const std::string spec =
      kernel("heads(4) kv_heads(4) dim(192) dim_v(128) q(f32) kv(f32) " + clauses, mask);
  for (Int batch = 1; batch <= 12; ++batch) {
    SCOPED_TRACE(batch);
    std::mt19937 rng(static_cast<unsigned>(batch));
    Launch launch;
    Rows rows;
    std::vector<int8_t> values;
    for (Int b = 0; b < batch; ++b) {
      launch.requests.push_back(request(37, 54));
      rows.emplace_back(37);
      for (Keys &row : rows.back())
        for (Int key = 0; key < 54; ++key) {
          values.push_back(static_cast<int8_t>(rng() % 2));
          if (values.back())
            row.push_back({key, key});
        }
    }
    launch.tables.push_back(denseTable("keep", ScalarType::I8, {batch * 37, 54}, values));
    Trial trial(spec, launch, rows, {batch % 2 ? 0 : 16, false, false});
    trial.fillRandom(static_cast<unsigned>(batch));
    trial.poisonInvisible();
    EXPECT_EQ(trial.compareMasks(), "");
    const Outputs want = trial.naive();
    // Three sizes are enough of a record.
    const bool recorded = batch == 1 || batch == 2 || batch == 5;
    const Outputs native = recorded ? trial.native() : trial.Attention::native();
    EXPECT_EQ(compareRows(want, native, trial.tokens(), 4, 128, 1e-5), "");
    EXPECT_EQ(compareRows(want, trial.reference(), trial.tokens(), 4, 128, 1e-9), "");
  }
  Record::get().refusedSpec(
      kernel("heads(4) kv_heads(4) dim(192) dim_v(128) q(bf16) kv(bf16) " + clauses, mask),
      "sm_90a", {"target 'sm_90a' takes dim_v equal to dim, got 128 and 192"});
}

TEST(FieldFailures, R103_dims_grouped_heads_and_a_short_query) {
  const truth::Request r = request(100, 100);
  expectRows(kernel("heads(2) kv_heads(1) dim(128) q(f32) kv(f32)", kCausal), {{r}, {}, {}},
             {causalRows(r)});
  expectRows(kernel("heads(2) kv_heads(1) dim(128) q(f32) kv(f32)", ""), {{r}, {}, {}},
             {std::vector<Keys>(100, Keys{{0, 99}})});
}

TEST(FieldFailures, R106_dims_of_512_beside_windows_of_256) {
  const truth::Request global = request(5, 40);
  expectRows(kernel("heads(8) kv_heads(4) dim(512) q(f32) kv(f32)", kCausal), {{global}, {}, {}},
             {causalRows(global)});
  const truth::Request local = request(3, 1030);
  expectRows(kernel("heads(8) kv_heads(4) dim(256) q(f32) kv(f32)",
                    "    %c = attn.causal %q, %k\n    %w = attn.sliding %q, %k count(1024)\n"
                    "    %m = attn.and %c, %w\n"),
             {{local}, {}, {}}, {causalRows(local, 1024)});
  Record::get().refusedSpec(kernel("heads(8) kv_heads(4) dim(512) q(bf16) kv(bf16)", kCausal),
                            "sm_90a",
                            {"target 'sm_90a' has no kernel for dim 512, expected one of 64, 128, "
                             "256"});
}
