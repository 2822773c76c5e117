// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What good batch files mean. What is refused is in BatchIORefusals.cpp.
#include "attn/Runtime/BatchIO.h"

#include "attn/Core/Json.h"

#include "TestKernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

using namespace attn;
using namespace attn::core;
using namespace testing_rt;

namespace {

rt::BoundBatch bindText(const KernelSpec &spec, const std::string &json) {
  Result<rt::BatchFile> file = rt::readBatch(json, spec);
  EXPECT_TRUE(file) << file.message();
  if (!file)
    return {};
  Result<rt::BoundBatch> bound = rt::bindBatch(spec, file->input);
  EXPECT_TRUE(bound) << bound.message();
  return bound ? std::move(*bound) : rt::BoundBatch();
}

std::string tiny(const std::string &requests) {
  return "{\"requests\": [" + requests +
         "], \"params\": {\"left\": 3, \"scale\": 1}, \"tables\": {\"slopes\": [0, 0, 0, 0]}}";
}

TableDecl decl(const char *name, TableKind kind, std::vector<TableDim> dims = {},
               ScalarType element = ScalarType::I32) {
  TableDecl table;
  table.name = name;
  table.kind = kind;
  table.dims = std::move(dims);
  table.element = element;
  return table;
}

TEST(BatchFile, Lengths) {
  const rt::BoundBatch bound =
      bindText(plainSpec(), R"({"requests": [{"query_len": 8, "seq_len": 8},
                                    {"query_len": 0, "seq_len": 0},
                                    {"query_len": 6, "seq_len": 13, "is_prefilling": false},
                                    {"query_len": 5, "seq_len": 2},
                                    {"query_len": 3, "seq_len": 10, "context_len": 4}]})");
  const BatchShape &shape = bound.batch.shape;
  EXPECT_EQ(shape.queryStartLoc, (std::vector<int64_t>{0, 8, 8, 14, 19, 22}));
  EXPECT_EQ(shape.contextLen, (std::vector<int64_t>{0, 0, 7, -3, 4}));
  EXPECT_EQ(shape.keyEnd, shape.seqLen);
  EXPECT_EQ(shape.keyBegin, std::vector<int64_t>(5, 0));
  EXPECT_EQ(bound.kvStart, (std::vector<int64_t>{0, 8, 8, 21, 23, 33}));
  EXPECT_EQ(bound.isPrefilling, (std::vector<uint8_t>{1, 0, 0, 1, 1}));
  EXPECT_EQ(bound.batch.numHeads, 2);
  EXPECT_EQ(bound.batch.numKvHeads, 1);
}

TEST(BatchFile, NoRequests) {
  const rt::BoundBatch bound = bindText(plainSpec(), R"({"requests": []})");
  EXPECT_EQ(bound.batch.shape.numReqs(), 0);
  EXPECT_EQ(bound.batch.shape.numTokens(), 0);
}

TEST(BatchFile, RangesThatCountAndRangesThatDoNot) {
  // Live: [1,3], [5,7]. Not scheduled yet: [8,12] and [9,9999]. Degenerate: [4,4], [6,2], [0,0].
  const rt::BoundBatch bound =
      bindText(tinySpec(), tiny(R"({"query_len": 8, "seq_len": 8,
               "mm_ranges": [[1,3],[8,12],[4,4],[5,7],[6,2],[9,9999],[0,0]]},
              {"query_len": 2, "seq_len": 4},
              {"query_len": 1, "seq_len": 30, "mm_ranges": [[2,9],[20,40]]},
              {"query_len": 0, "seq_len": 6, "mm_ranges": [[2,8]]})"
                                // the third request's query is 29: [20,40] would be cut
                                )
                               .replace(0, 1, R"({"partial_ranges": "allow", )"));
  const TableData &mm = bound.batch.tables[0];
  EXPECT_EQ(mm.rangeOffsets, (std::vector<int64_t>{0, 2, 2, 4, 5}));
  EXPECT_EQ(mm.ranges[0].start, 1);
  EXPECT_EQ(mm.ranges[1].end, 7);
  EXPECT_EQ(mm.ranges[3].end, 40); // kept whole
}

TEST(BatchFile, CutRangesOfEarlierOrLaterChunksAreLegal) {
  // The query is 29; the first range ends past seq_len but starts after the query's chunk, the
  // second lies in an earlier chunk.
  bindText(tinySpec(), tiny(R"({"query_len": 3, "seq_len": 20, "context_len": 4,
                                "mm_ranges": [[10, 25], [0, 3]]})"));
}

TEST(BatchFile, SpecWithoutRangesIgnoresThem) {
  const rt::BoundBatch bound =
      bindText(plainSpec(), R"({"requests": [{"query_len": 14, "seq_len": 14,
                                              "mm_ranges": [[6, 13], [6, 99]]}]})");
  EXPECT_TRUE(bound.batch.tables.empty());
}

TEST(BatchFile, RangesByName) {
  KernelSpec spec = plainSpec();
  spec.program.tables = {decl("images", TableKind::Ranges), decl("audio", TableKind::Ranges)};
  const rt::BoundBatch bound = bindText(
      spec, R"({"requests": [{"query_len": 9, "seq_len": 9}, {"query_len": 1, "seq_len": 9}],
                         "tables": {"audio": [[[1, 2]], []], "images": [[], [[3, 4], [5, 6]]]}})");
  EXPECT_EQ(bound.batch.tables[0].rangeOffsets, (std::vector<int64_t>{0, 0, 2}));
  EXPECT_EQ(bound.batch.tables[1].rangeOffsets, (std::vector<int64_t>{0, 1, 1}));
}

TEST(BatchFile, Params) {
  KernelSpec spec = plainSpec();
  spec.program.params = {{"a", ScalarType::I32, 0},
                         {"b", ScalarType::I64, std::nullopt},
                         {"c", ScalarType::F32, std::nullopt},
                         {"d", ScalarType::F32, std::nullopt}};
  const rt::BoundBatch bound = bindText(spec, R"({"requests": [],
      "params": {"d": -3, "c": 0.1, "b": -9223372036854775808, "a": 2147483647}})");
  EXPECT_EQ(bound.batch.params[0].i, INT32_MAX);
  EXPECT_EQ(bound.batch.params[1].i, INT64_MIN);
  EXPECT_EQ(bound.batch.params[2].f, double(0.1f)); // the value that f32 code sees
  EXPECT_EQ(bound.batch.params[3].f, -3);
}

TEST(BatchFile, Documents) {
  KernelSpec spec = plainSpec();
  spec.program.tables = {decl("doc", TableKind::Documents)};
  const rt::BoundBatch bound = bindText(
      spec, R"({"requests": [{"query_len": 3, "seq_len": 4}, {"query_len": 0, "seq_len": 0},
                                      {"query_len": 1, "seq_len": 2}],
                         "tables": {"doc": [[7, 7, -1, -1], [], [7, 8]]}})");
  EXPECT_EQ(bound.batch.tables[0].documents, (std::vector<int32_t>{7, 7, -1, -1, 7, 8}));
  EXPECT_EQ(bound.batch.tables[0].documentOffsets, (std::vector<int64_t>{0, 4, 4, 6}));
}

TEST(BatchFile, DenseTables) {
  KernelSpec spec = plainSpec();
  spec.program.tables = {
      decl("n", TableKind::Plain, {TableDim::B}),
      decl("bias", TableKind::Plain, {TableDim::H, TableDim::Bucket}, ScalarType::F32),
      decl("bits", TableKind::Plain, {TableDim::Token, TableDim::K}, ScalarType::I8),
      decl("big", TableKind::Plain, {TableDim::Slot}, ScalarType::I64)};
  const rt::BoundBatch bound = bindText(
      spec, R"({"requests": [{"query_len": 1, "seq_len": 2}, {"query_len": 1, "seq_len": 1}],
                         "tables": {"n": [5, 6], "bias": [[0.5, 1, 2], [3, 4, 1e-3]],
                                    "bits": [[1, 0, -128], [0, 127, 1]],
                                    "big": [9007199254740993]}})");
  const std::vector<TableData> &tables = bound.batch.tables;
  EXPECT_EQ(static_cast<const int32_t *>(tables[0].data)[1], 6);
  EXPECT_EQ(tables[1].extents, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(tables[1].strides, (std::vector<int64_t>{3, 1}));
  EXPECT_EQ(static_cast<const float *>(tables[1].data)[5], 1e-3f);
  EXPECT_EQ(static_cast<const int8_t *>(tables[2].data)[2], -128);
  EXPECT_EQ(tables[2].extents, (std::vector<int64_t>{2, 3})); // more keys than the longest request
  EXPECT_EQ(static_cast<const int64_t *>(tables[3].data)[0], 9007199254740993);
}

TEST(BatchFile, AlibiRecipe) {
  const rt::BoundBatch bound =
      bindText(tinySpec(), R"({"requests": [], "params": {"left": 3, "scale": 1},
        "tables": {"slopes": {"recipe": "alibi", "total_heads": 8, "first_head": 4}}})");
  const float *slopes = static_cast<const float *>(bound.batch.tables[1].data);
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(slopes[i], std::ldexp(1.0f, -(5 + i)));
  const rt::BoundBatch own =
      bindText(tinySpec(), R"({"requests": [], "params": {"left": 3, "scale": 1},
                      "tables": {"slopes": {"recipe": "alibi"}}})");
  EXPECT_EQ(static_cast<const float *>(own.batch.tables[1].data)[0], 0.25f);
}

TEST(BatchFile, Pages) {
  Result<rt::BatchFile> file = rt::readBatch(
      R"({"requests": [{"query_len": 1, "seq_len": 20, "block_table": [7, 3, -1, 1073741824]},
                       {"query_len": 0, "seq_len": 0},
                       {"query_len": 1, "seq_len": 16, "block_table": [3]}],
          "page_size": 16})",
      plainSpec());
  ASSERT_TRUE(file) << file.message();
  EXPECT_TRUE(rt::bindBatch(plainSpec(), file->input));
  EXPECT_EQ(file->input.pageSize, 16);
  EXPECT_EQ(file->input.blockTable->stride, 4);
  EXPECT_EQ(file->input.blockTable->widths, (std::vector<int64_t>{4, 0, 1}));
  EXPECT_EQ(file->input.blockTable->entries[8], 3);
}

TEST(BatchFile, SeqLenBoundIsReadButNotForHostPaths) {
  const rt::BoundBatch bound =
      bindText(plainSpec(), R"({"requests": [{"query_len": 1, "seq_len": 5},
                                    {"query_len": 1, "seq_len": 20, "seq_len_bound": 32}]})");
  EXPECT_EQ(rt::requireExactLengths(bound, "device 'cpu'").message(),
            "request 1: seq_len_bound: device 'cpu' needs exact lengths (seq_len alone)");
  EXPECT_TRUE(rt::requireExactLengths(
      bindText(plainSpec(), R"({"requests": [{"query_len": 1, "seq_len": 5}]})"), "cpu"));
}

TEST(BatchInput, KeyRange) {
  rt::BatchInput input;
  rt::RequestInput request;
  request.queryLen = 1;
  request.seqLen = 10;
  request.keyBegin = 3;
  request.keyEnd = 7;
  input.requests = {request};
  Result<rt::BoundBatch> bound = rt::bindBatch(plainSpec(), input);
  ASSERT_TRUE(bound);
  EXPECT_EQ(bound->batch.shape.keyBegin[0], 3);
  EXPECT_EQ(bound->batch.shape.keyEnd[0], 7);
  input.requests[0].keyEnd = 11;
  EXPECT_EQ(rt::bindBatch(plainSpec(), input).message(),
            "request 0: keys [3, 11) expected to lie in [0, 10)");
}

std::string keysOf(const JsonValue *object) {
  std::string keys;
  for (const JsonValue::Member &member : object->members())
    keys += (keys.empty() ? "" : ", ") + member.key;
  return keys;
}

// The schema in docs/ lists what the reader accepts.
TEST(BatchFile, SchemaNamesTheSameKeys) {
  const std::vector<uint8_t> text = readBytes(ATTN_TEST_SCHEMA);
  Result<JsonValue> schema =
      parseJson(std::string_view(reinterpret_cast<const char *>(text.data()), text.size()));
  ASSERT_TRUE(schema) << schema.message();
  auto keysThatTheReaderNames = [](const std::string &json) {
    const std::string message = rt::readBatch(json, tinySpec()).message();
    const std::string marker = "expected one of ";
    EXPECT_NE(message.find(marker), std::string::npos) << message;
    return message.substr(message.find(marker) + marker.size());
  };
  const JsonValue *batch = schema->find("properties");
  EXPECT_EQ(keysThatTheReaderNames(R"({"requests": [], "?": 0})"), keysOf(batch));
  EXPECT_EQ(keysThatTheReaderNames(R"({"requests": [{"query_len": 0, "seq_len": 0, "?": 0}]})"),
            keysOf(batch->find("requests")->find("items")->find("properties")));
  const JsonValue *table = batch->find("tables")->find("additionalProperties")->find("anyOf");
  EXPECT_EQ(keysThatTheReaderNames(
                R"({"requests": [], "tables": {"slopes": {"recipe": "alibi", "?": 0}}})"),
            keysOf(table->elements()[1].find("properties")));
}

/// The first key whose id was seen before, with another between them; -1: none.
int64_t firstOutOfPlace(const std::vector<int32_t> &ids) {
  std::set<int32_t> seen;
  for (size_t k = 0; k < ids.size(); ++k)
    if ((k == 0 || ids[k] != ids[k - 1]) && !seen.insert(ids[k]).second)
      return static_cast<int64_t>(k);
  return -1;
}

// Whatever the documents' lengths are, in memory that an earlier batch left, with ids that belong
// to no request before and after.
TEST(BindBatch, DocumentsAreTakenOrRefused) {
  KernelSpec spec = plainSpec();
  spec.program.tables = {decl("doc", TableKind::Documents)};
  Random random(21);
  rt::BatchBinder binder(spec);
  rt::BoundBatch bound;
  int64_t taken = 0, refused = 0;
  for (int round = 0; round < 2000; ++round) {
    rt::BatchInput input;
    rt::TableInput table;
    table.name = "doc";
    rt::DocumentsInput &documents = table.documents.emplace();
    documents.ids.resize(random.in(0, 3), 5);
    documents.offsets = {static_cast<int64_t>(documents.ids.size())};
    std::string expected;
    for (int64_t b = 0, count = random.in(1, 3); b < count; ++b) {
      std::vector<int32_t> ids(random.in(0, 200));
      const int64_t step = random.in(1, 90);
      for (size_t k = 1; k < ids.size(); ++k)
        ids[k] = ids[k - 1] + (random.in(1, step) == 1);
      if (!ids.empty() && random.in(0, 3) == 0) {
        int64_t from = random.in(0, static_cast<int64_t>(ids.size()) - 1);
        from -= random.in(0, 1) ? from % 16 : 0;
        std::fill(ids.begin() + from,
                  ids.begin() + from + std::min<int64_t>(random.in(1, 60), ids.size() - from),
                  ids[0]);
      }
      const int64_t again = firstOutOfPlace(ids);
      if (again >= 0 && expected.empty())
        expected = "request " + std::to_string(b) + ": table 'doc' has document id " +
                   std::to_string(ids[again]) + " again at key " + std::to_string(again) +
                   ", expected the keys of a document to be contiguous";
      documents.ids.insert(documents.ids.end(), ids.begin(), ids.end());
      documents.offsets.push_back(static_cast<int64_t>(documents.ids.size()));
      input.requests.emplace_back().seqLen = static_cast<int64_t>(ids.size());
    }
    const std::vector<int32_t> ids = documents.ids;
    documents.ids.resize(ids.size() + random.in(0, 3), 6);
    const std::vector<int64_t> offsets = documents.offsets;
    input.tables.push_back(std::move(table));
    const Status status = binder.bind(input, bound);
    ASSERT_EQ(status ? "" : status.message(), expected);
    ++(status ? taken : refused);
    if (!status)
      continue;
    ASSERT_EQ(bound.batch.tables[0].documents, ids);
    ASSERT_EQ(bound.batch.tables[0].documentOffsets, offsets);
  }
  EXPECT_GT(taken, 500);
  EXPECT_GT(refused, 300);
}

} // namespace
