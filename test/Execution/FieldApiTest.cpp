// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Field failures of the classes api and gqa: what must be refused, and in which words.
#include "FieldRecord.h"

#include "attn/Runtime/BatchIO.h"

#include "llvm/Support/Error.h"

#include "gtest/gtest.h"

using namespace field;
using namespace exec;
using namespace attn;
using truth::request;

/// What the compiler says to a spec; "" if it accepts.
static std::string compileError(const std::string &text,
                                const compiler::CompileOptions &options = {}) {
  llvm::Expected<core::Artifact> result = compiler::compile(text, "spec.mlir", options);
  return result ? "" : llvm::toString(result.takeError());
}

static void expectMentions(const std::string &message, std::initializer_list<const char *> parts) {
  ASSERT_FALSE(message.empty()) << "accepted, expected a refusal";
  for (const char *part : parts)
    EXPECT_NE(message.find(part), std::string::npos) << "'" << part << "' missing in: " << message;
}

TEST(FieldFailures, R057_api_option_that_cannot_be_honoured) {
  // A learned sink is not part of this language yet: named and refused, never dropped.
  expectMentions(compileError("attn.kernel @k heads(2) kv_heads(1) dim(16) q(f32) kv(f32) "
                              "sink(%s) params(%s: f32) {\n}\n"),
                 {"spec.mlir:1:", "error", "sink"});
  // A target that is not there.
  compiler::CompileOptions options;
  options.targets = {"sm_100a"};
  expectMentions(
      compileError("attn.kernel @k heads(2) kv_heads(1) dim(16) q(f32) kv(f32) {\n}\n", options),
      {"sm_100a", "cpu"});
  const std::string device = "attn.kernel @k heads(2) kv_heads(1) dim(64) q(bf16) kv(bf16)";
  Record::get().refusedSpec(device + " sink(%s) params(%s: f32) {\n}\n", "sm_90a",
                            {"mlir:1:", "error", "sink"});
  Record::get().refusedSpec(device + " {\n}\n", "sm_100a", {"sm_100a", "cpu", "sm_90a"});
  // A parameter that the kernel does not have, and a key that batches do not have.
  const LoadedKernel &k = compiled(kernel("heads(2) kv_heads(1) dim(16) q(f32) kv(f32)", ""));
  rt::BatchInput input = batchInput(*k.spec, {request(1, 4)});
  rt::ParamInput sink;
  sink.name = "sink";
  input.params.push_back(sink);
  core::Result<rt::BoundBatch> refused = rt::bindBatch(*k.spec, input);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.message(), "param 'sink': kernel 'k' has no such parameter (it has: none)");
  core::Result<rt::BatchFile> file =
      rt::readBatch("{\"requests\": [{\"query_len\": 1, \"seq_len\": 4}], \"sink\": 2.0}", *k.spec);
  ASSERT_FALSE(file.ok());
  expectMentions(file.message(), {"sink"});
}

TEST(FieldFailures, R078_api_mask_of_the_wrong_shape) {
  const std::string spec = kernel(
      "heads(1) kv_heads(1) dim(16) q(f32) kv(f32) tables(%keep: !attn.table<[token, k], i8>)",
      "    %x = attn.load %keep[%q, %k] : !attn.table<[token, k], i8>\n"
      "    %zero = arith.constant 0 : i8\n    %m = arith.cmpi ne, %x, %zero : i8\n");
  const LoadedKernel &k = compiled(spec);
  auto bind = [&](int64_t rows, int64_t columns) {
    const Launch launch = {{request(10, 20)},
                           {},
                           {denseTable("keep", core::ScalarType::I8, {rows, columns},
                                       std::vector<int8_t>(rows * columns, 1))}};
    rt::BatchInput input = batchInput(*k.spec, launch.requests);
    input.tables = launch.tables;
    core::Result<rt::BoundBatch> result = rt::bindBatch(*k.spec, std::move(input));
    if (result)
      return std::string();
    Record::get().refusedLaunch(spec, launch, result.message());
    return result.message();
  };
  EXPECT_EQ(bind(10, 15),
            "table 'keep': dimension 1 (k) is 15, expected at least the largest seq_len 20");
  EXPECT_EQ(bind(20, 10), "table 'keep': dimension 0 (token) is 20, expected 10");
  EXPECT_EQ(bind(9, 20), "table 'keep': dimension 0 (token) is 9, expected 10");
  EXPECT_EQ(bind(10, 20), "");

  // The right shape is read as it is: row i sees the keys k with (i + k) even.
  std::vector<int8_t> values;
  Rows rows(1);
  for (Int i = 0; i < 10; ++i) {
    rows[0].emplace_back();
    for (Int key = 0; key < 20; ++key) {
      values.push_back((i + key) % 2 == 0);
      if ((i + key) % 2 == 0)
        rows[0].back().push_back({key, key});
    }
  }
  expectRows(spec,
             {{request(10, 20)}, {}, {denseTable("keep", core::ScalarType::I8, {10, 20}, values)}},
             rows);
}

TEST(FieldFailures, R080_gqa_heads_not_divisible_by_kv_heads) {
  for (const char *heads : {"heads(33) kv_heads(2)", "heads(3) kv_heads(2)"}) {
    expectMentions(
        compileError("attn.kernel @k " + std::string(heads) + " dim(16) q(f32) kv(f32) {\n}\n"),
        {"spec.mlir:1:", "error", "heads", "kv_heads", "attn-C11"});
    Record::get().refusedSpec("attn.kernel @k " + std::string(heads) +
                                  " dim(64) q(bf16) kv(bf16) {\n}\n",
                              "sm_90a", {"mlir:1:", "error", "heads", "kv_heads", "attn-C11"});
  }
  // Every kv head serves its own group of query heads.
  const std::string spec =
      kernel("heads(6) kv_heads(2) dim(16) q(f32) kv(f32)", "    %m = attn.causal %q, %k\n");
  expectRows(spec, {{request(3, 7)}, {}, {}}, {{{{0, 4}}, {{0, 5}}, {{0, 6}}}});
}
