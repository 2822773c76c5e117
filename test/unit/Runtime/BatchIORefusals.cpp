// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Bad batch files, each with its whole message.
#include "attn/Runtime/BatchIO.h"

#include "TestKernel.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <set>

using namespace attn;
using namespace attn::core;
using namespace testing_rt;

namespace {

/// A kernel with one of everything: parameters left (i32, >= 0), count (i64, >= 1), cap (f32);
/// tables mm (ranges), doc (documents), bias (f32 [h, bucket]), n (i32 [b]), keys (i8 [k]), t (i64
/// [token]), rows (built).
KernelSpec richSpec() {
  KernelSpec spec = plainSpec();
  spec.name = "rich";
  spec.program.params = {{"left", ScalarType::I32, 0},
                         {"count", ScalarType::I64, 1},
                         {"cap", ScalarType::F32, std::nullopt}};
  auto table = [](const char *name, TableKind kind, std::vector<TableDim> dims = {},
                  ScalarType element = ScalarType::I32) {
    TableDecl decl;
    decl.name = name;
    decl.kind = kind;
    decl.dims = std::move(dims);
    decl.element = element;
    return decl;
  };
  spec.program.tables = {
      table("mm", TableKind::Ranges),
      table("doc", TableKind::Documents),
      table("bias", TableKind::Plain, {TableDim::H, TableDim::Bucket}, ScalarType::F32),
      table("n", TableKind::Plain, {TableDim::B}),
      table("keys", TableKind::Plain, {TableDim::K}, ScalarType::I8),
      table("t", TableKind::Plain, {TableDim::Token}, ScalarType::I64),
      table("rows", TableKind::QueryRanges)};
  spec.program.tables.back().source = 0;
  return spec;
}

KernelSpec twoRangesSpec() {
  KernelSpec spec = plainSpec();
  spec.name = "two";
  TableDecl decl;
  decl.kind = TableKind::Ranges;
  decl.name = "a";
  spec.program.tables.push_back(decl);
  decl.name = "b";
  spec.program.tables.push_back(decl);
  return spec;
}

std::string refusal(const KernelSpec &spec, const std::string &json) {
  Result<rt::BatchFile> file = rt::readBatch(json, spec);
  if (!file)
    return file.message();
  Result<rt::BoundBatch> bound = rt::bindBatch(spec, file->input);
  return bound ? std::string("accepted") : bound.message();
}

struct Case {
  std::string json;
  std::string message;
};

std::set<std::string> distinct;

void expectRefusals(const KernelSpec &spec, const std::vector<Case> &cases) {
  for (const Case &c : cases) {
    EXPECT_EQ(refusal(spec, c.json), c.message) << c.json;
    distinct.insert(c.message);
  }
  std::printf("%zu refusals, %zu distinct so far\n", cases.size(), distinct.size());
}

/// A batch of one request of the plain kernel.
std::string one(const std::string &members) {
  return "{\"requests\": [{\"query_len\": 2, \"seq_len\": 9" + members + "}]}";
}

TEST(BatchRefusals, Shape) {
  expectRefusals(
      plainSpec(),
      {{"", "line 1, column 1: expected a value, got the end of the text"},
       {"[]", "line 1, column 1: expected an object, got an array"},
       {"{}", "line 1, column 1: missing key 'requests'"},
       {R"({"requests": {}})", "line 1, column 14: requests: expected an array, got an object"},
       {R"({"requests": [], "pages": 3})",
        "line 1, column 18: unknown key 'pages', expected one of requests, page_size, "
        "partial_ranges, params, tables"},
       {R"({"requests": [3]})",
        "line 1, column 15: requests[0]: expected an object, got an integer"},
       {R"({"requests": [{"query_len": 1}]})",
        "line 1, column 15: requests[0]: missing key 'seq_len'"},
       {one(", \"mm_range\": []"),
        "line 1, column 46: requests[0]: unknown key 'mm_range', expected one of query_len, "
        "seq_len, context_len, seq_len_bound, seq_len_least, is_prefilling, mm_ranges, "
        "block_table"},
       {R"({"requests": [{"query_len": 1.5, "seq_len": 2}]})",
        "line 1, column 29: requests[0].query_len: expected an integer, got a number"},
       {R"({"requests": [{"query_len": 1, "seq_len": "2"}]})",
        "line 1, column 43: requests[0].seq_len: expected an integer, got a string"},
       {one(", \"is_prefilling\": 1"),
        "line 1, column 63: requests[0].is_prefilling: expected a boolean, got an integer"},
       {one(", \"mm_ranges\": [[1]]"),
        "line 1, column 60: requests[0].mm_ranges[0]: expected [start, end], got 1 elements"},
       {one(", \"mm_ranges\": [3]"),
        "line 1, column 60: requests[0].mm_ranges[0]: expected an array, got an integer"},
       {one(", \"mm_ranges\": [[1, true]]"),
        "line 1, column 64: requests[0].mm_ranges[0][1]: expected an integer, got a boolean"},
       {R"({"requests": [], "partial_ranges": "yes"})",
        "line 1, column 36: partial_ranges: expected \"allow\" or \"refuse\", got \"yes\""},
       {R"({"requests": [], "partial_ranges": true})",
        "line 1, column 36: partial_ranges: expected a string, got a boolean"},
       {R"({"requests": [], "params": []})",
        "line 1, column 28: params: expected an object, got an array"},
       {R"({"requests": [], "params": {"x": "3"}})",
        "line 1, column 34: params.x: expected a number, got a string"},
       {R"({"requests": [], "requests": []})", "line 1, column 18: duplicate key 'requests'"},
       // Names are quoted without what would break the line.
       {R"({"requests": [], "pag\nes": 3})",
        "line 1, column 18: unknown key 'pag\\u000aes', expected one of requests, page_size, "
        "partial_ranges, params, tables"},
       {R"({"requests": [], "params": {"x\u001b": 3}})",
        "param 'x\\u001b': kernel 'plain' has no such parameter (it has: none)"}});
  EXPECT_EQ(
      refusal(plainSpec(), R"({"requests": [], "params": {")" + std::string(9000, 'x') + "\": 3}}")
          .size(),
      1503u);
}

TEST(BatchRefusals, Lengths) {
  expectRefusals(
      plainSpec(),
      {{R"({"requests": [{"query_len": 1, "seq_len": 1}, {"query_len": -1, "seq_len": 1}]})",
        "request 1: query_len is -1, expected 0 to 1073741823"},
       {R"({"requests": [{"query_len": 1, "seq_len": -2}]})",
        "request 0: seq_len is -2, expected 0 to 1073741823"},
       {R"({"requests": [{"query_len": 1, "seq_len": 1073741824}]})",
        "request 0: seq_len is 1073741824, expected 0 to 1073741823"},
       {R"({"requests": [{"query_len": 9223372036854775807, "seq_len": 3}]})",
        "request 0: query_len is 9223372036854775807, expected 0 to 1073741823"},
       {one(", \"context_len\": -1073741824"),
        "request 0: context_len is -1073741824, expected a position between -1073741823 and "
        "1073741823"},
       {one(", \"context_len\": 1073741823"),
        "request 0: context_len 1073741823 plus query_len 2 passes the last position 1073741823"},
       {one(", \"seq_len_bound\": 8"),
        "request 0: seq_len_bound is 8, expected at least seq_len 9"},
       {one(", \"seq_len_bound\": -8"),
        "request 0: seq_len_bound is -8, expected 0 to 1073741823"}});
  KernelSpec odd = plainSpec();
  odd.numHeads = 33;
  odd.numKvHeads = 2;
  expectRefusals(odd, {{R"({"requests": []})",
                        "kernel 'plain': heads 33 expected to be a multiple of kv_heads 2"}});
}

TEST(BatchRefusals, Pages) {
  auto paged = [](const std::string &table, const char *pageSize = "4") {
    return "{\"requests\": [{\"query_len\": 1, \"seq_len\": 0}, {\"query_len\": 1, \"seq_len\": 9, "
           "\"block_table\": " +
           table + "}], \"page_size\": " + pageSize + "}";
  };
  expectRefusals(
      plainSpec(),
      {{R"({"requests": [], "page_size": 0})", "page_size is 0, expected 1 to 1073741823"},
       {R"({"requests": [], "page_size": -16})", "page_size is -16, expected 1 to 1073741823"},
       {one(", \"block_table\": [1, 2]"), "block_table: given without page_size"},
       {paged("[5, 6]"),
        "request 1: block_table has 2 entries, expected at least 3 for seq_len 9 in pages of 4"},
       {paged("[5, -1, 7]"), "request 1: block_table[1] is -1, expected a page id of at least 0, "
                             "because the page holds keys"},
       {paged("[5, 2147483648, 7]"),
        "line 1, column 97: requests[1].block_table[1]: expected an integer, -2147483648 to "
        "2147483647, got 2147483648"},
       {R"({"requests": [{"query_len": 1, "seq_len": 3},
                         {"query_len": 1, "seq_len": 3, "block_table": [1]}], "page_size": 4})",
        "request 0: block_table: missing, given for request 1"}});
}

TEST(BatchRefusals, Ranges) {
  const KernelSpec spec = tinySpec();
  auto batch = [](const std::string &request) {
    return "{\"requests\": [{\"query_len\": 1, \"seq_len\": 1}, {" + request +
           "}], \"params\": {\"left\": 1, \"scale\": 1}, \"tables\": {\"slopes\": [0,0,0,0]}}";
  };
  const std::string cut =
      " holds a scheduled query and ends at or past seq_len 13; its keys are not "
      "all there (partial_ranges: \"allow\" accepts that)";
  const std::string lengths = "\"query_len\": 6, \"seq_len\": 13, \"mm_ranges\": ";
  expectRefusals(
      spec, {{batch(lengths + "[[1,2],[2,4],[9,14]]"), "request 1: range 2 [9, 14]" + cut},
             {batch(lengths + "[[12,13]]"), "request 1: range 0 [12, 13]" + cut},
             {batch(lengths + "[[0,1073741823]]"), "request 1: range 0 [0, 1073741823]" + cut},
             {batch(lengths + "[[-1,4]]"), "request 1: range 0 [-1, 4] starts before 0"},
             {batch(lengths + "[[-1,-1]]"), "request 1: range 0 [-1, -1] starts before 0"},
             {batch(lengths + "[[3,4294967296]]"),
              "request 1: range 0 [3, 4294967296] passes the last position 1073741823"},
             {batch(lengths + "[[3,9223372036854775807]]"),
              "request 1: range 0 [3, 9223372036854775807] passes the last position 1073741823"},
             {batch(lengths + "[[9223372036854775807,0]]"),
              "request 1: range 0 [9223372036854775807, 0] passes the last position 1073741823"}});
  expectRefusals(
      twoRangesSpec(),
      {{one(", \"mm_ranges\": [[1,2]]"), "mm_ranges: kernel 'two' has several ranges tables ('a', "
                                         "'b'); give each by name as a table"},
       {R"({"requests": [], "tables": {"a": []}})",
        "table 'b': missing, expected a list of ranges for each request"},
       {R"({"requests": [{"query_len": 2, "seq_len": 2}], "tables": {"a": [[]], "b": [[[0, 2]]]}})",
        "request 0: range 0 [0, 2] of 'b' holds a scheduled query and ends at or past seq_len 2; "
        "its keys are not all there (partial_ranges: \"allow\" accepts that)"}});
  expectRefusals(spec, {{R"({"requests": [{"query_len": 1, "seq_len": 1, "mm_ranges": []}],
                  "params": {"left": 1, "scale": 1}, "tables": {"mm": [[]], "slopes": [0,0,0,0]}})",
                         "table 'mm': given twice, by name and as mm_ranges"},
                        {R"({"requests": [{"query_len": 1, "seq_len": 1}],
                  "params": {"left": 1, "scale": 1},
                  "tables": {"mm": [[], []], "slopes": [0,0,0,0]}})",
                         "table 'mm': given for 2 requests, expected 1"}});
}

TEST(BatchRefusals, Params) {
  auto params = [](const std::string &members) {
    return "{\"requests\": [], \"params\": {" + members + "}}";
  };
  expectRefusals(
      richSpec(),
      {{params(R"("lft": 3)"),
        "param 'lft': kernel 'rich' has no such parameter (it has: 'left', 'count', 'cap')"},
       {params(R"("left": 3, "count": 1)"), "param 'cap': missing (f32)"},
       {params(R"("cap": 3, "count": 1)"), "param 'left': missing (i32)"},
       {R"({"requests": []})", "param 'left': missing (i32)"},
       {params(R"("left": -1)"), "param 'left': expected at least 0, got -1"},
       {params(R"("count": 0)"), "param 'count': expected at least 1, got 0"},
       {params(R"("left": 2147483648)"), "param 'left': 2147483648 does not fit i32"},
       {params(R"("left": 3.0)"), "param 'left': expected an integer (i32), got 3"},
       {params(R"("count": 1e3)"), "param 'count': expected an integer (i64), got 1000"},
       {params(R"("left": true)"),
        "line 1, column 37: params.left: expected a number, got a boolean"},
       {params(R"("cap": 1e39)"), "param 'cap': 1e+39 does not fit f32"}});
  rt::BatchInput input;
  input.params = {{"cap", false, 0, std::nan("")}};
  EXPECT_EQ(rt::bindBatch(richSpec(), input).message(),
            "param 'cap': expected a finite f32, got nan");
  input.params = {{"left", true, 1, 0}, {"left", true, 1, 0}};
  EXPECT_EQ(rt::bindBatch(richSpec(), input).message(), "param 'left': given twice");
}

TEST(BatchRefusals, Tables) {
  // One request of 2 queries and 3 keys; every table but the one under test is good.
  auto tables = [](const std::string &name, const std::string &value) {
    const std::pair<const char *, const char *> good[] = {{"doc", "[[1, 1, 2]]"},
                                                          {"bias", "[[0, 1], [2, 3]]"},
                                                          {"n", "[4]"},
                                                          {"keys", "[1, 0, 1]"},
                                                          {"t", "[8, 9]"}};
    std::string text = R"({"requests": [{"query_len": 2, "seq_len": 3}], "params":
        {"left": 1, "count": 1, "cap": 1}, "tables": {)";
    bool first = true;
    for (auto [other, otherValue] : good) {
      const bool isNamed = name == other;
      if (isNamed && value.empty())
        continue;
      text +=
          std::string(first ? "" : ",\n") + "\"" + other + "\": " + (isNamed ? value : otherValue);
      first = false;
    }
    if (name == "rows" || name == "other" || name == "mm")
      text += ",\n\"" + name + "\": " + value;
    return text + "}}";
  };
  EXPECT_EQ(refusal(richSpec(), tables("none", "")), "accepted");
  expectRefusals(
      richSpec(),
      {{tables("doc", ""),
        "table 'doc': missing, expected a list of document ids for each request"},
       {tables("bias", ""), "table 'bias': missing, expected a dense table"},
       {tables("other", "[]"),
        "table 'other': kernel 'rich' has no such table (it has: 'mm', 'doc', "
        "'bias', 'n', 'keys', 't')"},
       {tables("rows", "[]"), "table 'rows': is built by the runtime and cannot be given"},
       {tables("mm", "{}"), "line 7, column 7: tables.mm: expected an array, got an object"},
       {tables("doc", "[[1, 1]]"), "request 0: table 'doc' has 2 document ids, expected seq_len 3"},
       {tables("doc", "[[1, 2, 1]]"), "request 0: table 'doc' has document id 1 again at key 2, "
                                      "expected the keys of a document to "
                                      "be contiguous"},
       {tables("doc", "[[1, 2, 2], []]"), "table 'doc': given for 2 requests, expected 1"},
       {tables("doc", "[[1, 2, 2147483648]]"),
        "line 2, column 70: tables.doc[0][2]: expected an integer, -2147483648 to 2147483647, got "
        "2147483648"},
       {tables("bias", "[[0, 1], [2]]"),
        "line 3, column 18: tables.bias[1]: expected 2 elements as "
        "in the lists before it, got 1"},
       {tables("bias", "[[0, 1]]"), "table 'bias': dimension 0 (h) is 1, expected 2"},
       {tables("bias", "[0, 1]"),
        "line 3, column 10: tables.bias[0]: expected an array, got an integer"},
       {tables("bias", "[[0, 1], [2, [3]]]"),
        "line 3, column 22: tables.bias[1][1]: expected a number, got an array"},
       {tables("bias", "[[0, 1], [2, 1e300]]"),
        "line 3, column 22: tables.bias[1][1]: does not fit f32"},
       {tables("bias", "3"), "line 3, column 9: tables.bias: expected an array, got an integer"},
       {tables("n", "[4, 5]"), "table 'n': dimension 0 (b) is 2, expected 1"},
       {tables("n", "[1.5]"), "line 4, column 7: tables.n[0]: expected an integer, got a number"},
       {tables("keys", "[1, 0]"),
        "table 'keys': dimension 0 (k) is 2, expected at least the largest seq_len 3"},
       {tables("keys", "[1, 0, 128]"),
        "line 5, column 16: tables.keys[2]: expected an integer, -128 "
        "to 127, got 128"},
       {tables("t", "[1, 2, 3]"), "table 't': dimension 0 (token) is 3, expected 2"},
       {tables("bias", R"({"recipe": "alibi"})"),
        "line 3, column 9: tables.bias: recipe \"alibi\" makes a table<[h], f32>, which 'bias' is "
        "not"}});
}

TEST(BatchRefusals, Recipes) {
  auto slopes = [](const std::string &value) {
    return "{\"requests\": [], \"params\": {\"left\": 1, \"scale\": 1},\n\"tables\": "
           "{\"slopes\": " +
           value + "}}";
  };
  expectRefusals(
      tinySpec(),
      {{slopes(R"({"recipe": "rope"})"),
        "line 2, column 33: tables.slopes.recipe: expected \"alibi\", got \"rope\""},
       {slopes(R"({"total_heads": 8})"), "line 2, column 22: tables.slopes: missing key 'recipe'"},
       {slopes(R"({"recipe": "alibi", "heads": 8})"),
        "line 2, column 42: tables.slopes: unknown key 'heads', expected one of recipe, "
        "total_heads, "
        "first_head"},
       {slopes(R"({"recipe": "alibi", "total_heads": 8, "first_head": 6})"),
        "line 2, column 22: tables.slopes: first_head 6 plus 4 heads of the kernel pass "
        "total_heads "
        "8"},
       {slopes(R"({"recipe": "alibi", "total_heads": 0})"),
        "line 2, column 57: tables.slopes.total_heads: expected an integer, 1 to 1048576, got 0"},
       {slopes("[1, 2, 3]"), "table 'slopes': dimension 0 (h) is 3, expected 4"},
       {slopes("[1, 2, 3, null]"),
        "line 2, column 32: tables.slopes[3]: expected a number, got null"}});
}

TEST(BatchRefusals, DamagedFilesNeverCrash) {
  const std::string good =
      R"({"requests": [{"query_len": 2, "seq_len": 3, "mm_ranges": [[0, 2]], "block_table": [0]}],
          "page_size": 16, "partial_ranges": "allow", "params": {"left": 1, "scale": 0.5},
          "tables": {"slopes": [0, 1, 2.5, -3e-3]}})";
  ASSERT_EQ(refusal(tinySpec(), good), "accepted");
  Random random(21);
  const char alphabet[] = "{}[],:\"0123456789-.eE truefalsn\\\x80\xff";
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text = good;
    for (int64_t edits = random.in(1, 3); edits > 0; --edits) {
      const size_t at = random.next() % text.size();
      const char c = alphabet[random.next() % (sizeof(alphabet) - 1)];
      if (random.in(0, 2) == 0)
        text.erase(at, static_cast<size_t>(random.in(1, 4)));
      else if (random.in(0, 1))
        text.insert(at, 1, c);
      else
        text[at] = c;
    }
    const std::string message = refusal(tinySpec(), text);
    ASSERT_FALSE(message.empty());
    accepted += message == "accepted";
  }
  std::printf("20000 damaged batches: %d accepted\n", accepted);
}

} // namespace
