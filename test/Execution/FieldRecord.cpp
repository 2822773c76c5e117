// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "FieldRecord.h"

#include "attn/Runtime/Safetensors.h"

#include "gtest/gtest.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <regex>
#include <stdexcept>

using namespace field;
using namespace attn;
using namespace attn::core;

static constexpr int64_t kDeviceDims[] = {64, 128, 256};

static JsonValue arrayOf(const std::vector<JsonValue> &values) {
  JsonValue array = JsonValue::array();
  for (const JsonValue &value : values)
    array.push(value);
  return array;
}

static JsonValue strings(const std::vector<std::string> &values) {
  JsonValue array = JsonValue::array();
  for (const std::string &value : values)
    array.push(JsonValue::string(value));
  return array;
}

static JsonValue pairOf(int64_t a, int64_t b) {
  return arrayOf({JsonValue::integer(a), JsonValue::integer(b)});
}

/// Numbers that JSON cannot spell are strings that Python's float() takes.
static JsonValue numberOf(double value) {
  if (std::isfinite(value))
    return JsonValue::number(value);
  return JsonValue::string(std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
}

static std::string testName() {
  return testing::UnitTest::GetInstance()->current_test_info()->name();
}

/// An object that starts with the running test.
static JsonValue ofTest() {
  JsonValue object = JsonValue::object();
  object.set("test", JsonValue::string(testName()));
  return object;
}

//===----------------------------------------------------------------------===//
// Twins
//===----------------------------------------------------------------------===//

/// The smallest head dim of a GPU kernel that holds the spec's, 0 if none does.
static int64_t deviceDim(const KernelSpec &spec) {
  for (int64_t dim : kDeviceDims)
    if (spec.dimQk <= dim && spec.dimV <= dim)
      return dim;
  return 0;
}

static DType deviceType(const KernelSpec &spec) {
  const bool half = spec.qType == DType::F16 || spec.kvType == DType::F16;
  return half ? DType::F16 : DType::BF16;
}

/// A literal that reads back equal.
static std::string literal(double value) {
  char text[64];
  const auto [end, error] = std::to_chars(text, text + sizeof text, value);
  std::string result(text, end);
  if (result.find('.') == std::string::npos)
    result += ".0";
  return result;
}

static std::string deviceSpec(const std::string &text, const KernelSpec &spec, int64_t dim) {
  const size_t body = text.find('{');
  std::string head = text.substr(0, body);
  const std::string type(toString(deviceType(spec)));
  head = std::regex_replace(head, std::regex("\\bdim_v\\([0-9]+\\) "), "");
  head = std::regex_replace(head, std::regex("\\bdim\\([0-9]+\\)"),
                            "dim(" + std::to_string(dim) + ")");
  head = std::regex_replace(head, std::regex("\\bq\\([a-z0-9]+\\)"), "q(" + type + ")");
  std::string kv = "kv(" + type + ")";
  if (head.find("scale(") == std::string::npos)
    kv += " scale(" + literal(spec.scale) + ")";
  head = std::regex_replace(head, std::regex("\\bkv\\([a-z0-9]+\\)"), kv);
  return head + text.substr(body);
}

static rt::FileDType fileType(ScalarType type) {
  switch (type) {
  case ScalarType::I8:
    return rt::FileDType::I8;
  case ScalarType::I64:
    return rt::FileDType::I64;
  case ScalarType::F32:
    return rt::FileDType::F32;
  default:
    return rt::FileDType::I32;
  }
}

namespace {

/// Tensors for one file.
class TensorFile {
public:
  void add(const std::string &name, rt::FileDType type, std::vector<int64_t> shape,
           std::vector<uint8_t> bytes) {
    data.push_back(std::move(bytes));
    rt::FileTensor tensor;
    tensor.name = name;
    tensor.dtype = type;
    tensor.shape = std::move(shape);
    tensors.push_back(std::move(tensor));
  }
  /// [rows, heads, dim] of a 16-bit type; `element` gives the values.
  template <class Element>
  void add16(const char *name, DType type, std::vector<int64_t> shape, const Element &element) {
    std::vector<uint8_t> bytes(shape[0] * shape[1] * shape[2] * 2);
    for (int64_t row = 0, at = 0; row < shape[0]; ++row)
      for (int64_t head = 0; head < shape[1]; ++head)
        for (int64_t d = 0; d < shape[2]; ++d, ++at)
          storeElement(bytes.data(), type, at, element(row, head, d));
    add(name, type == DType::F16 ? rt::FileDType::F16 : rt::FileDType::BF16, std::move(shape),
        std::move(bytes));
  }
  void addTables(const Launch &launch) {
    for (const rt::TableInput &table : launch.tables)
      add("tables." + table.name, fileType(table.dense->element), table.dense->extents,
          table.dense->owned);
  }
  std::string bytes() {
    for (size_t i = 0; i < tensors.size(); ++i) {
      tensors[i].data = data[i].data();
      tensors[i].size = data[i].size();
    }
    const std::vector<uint8_t> file = rt::serializeSafetensors(tensors);
    return {file.begin(), file.end()};
  }

private:
  std::vector<rt::FileTensor> tensors;
  std::vector<std::vector<uint8_t>> data;
};

} // namespace

static unsigned bitsOf(float value) {
  unsigned bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

static void addOperands(TensorFile &file, const Problem &problem, int64_t dim) {
  const KernelSpec &spec = *problem.spec;
  const DType type = deviceType(spec);
  std::vector<std::pair<int64_t, int64_t>> keys; // request, key
  for (int64_t b = 0; b < problem.batch->shape.numReqs(); ++b)
    for (int64_t k = 0; k < problem.batch->shape.keyEnd[b]; ++k)
      keys.push_back({b, k});
  const int64_t tokens = problem.batch->shape.numTokens();
  const int64_t rows = static_cast<int64_t>(keys.size());
  auto cached = [&](const KvView &view, int64_t row, int64_t head, int64_t d) {
    const auto [b, k] = keys[row];
    return loadElement(view.data, view.dtype, view.offset(problem.kv, b, k, head) + d);
  };
  file.add16("q", type, {tokens, spec.numHeads, dim}, [&](int64_t t, int64_t h, int64_t d) {
    return d < spec.dimQk ? loadElement(problem.q.data, problem.q.dtype, problem.q.offset(t, h) + d)
                          : 0.0f;
  });
  file.add16("k", type, {rows, spec.numKvHeads, dim}, [&](int64_t row, int64_t h, int64_t d) {
    return d < spec.dimQk ? cached(problem.k, row, h, d) : 0.0f;
  });
  file.add16("v", type, {rows, spec.numKvHeads, dim}, [&](int64_t row, int64_t h, int64_t d) {
    const float value = cached(problem.v, row, h, d % spec.dimV);
    // Of the value and the key, not of the request: a sequence alone has the same columns.
    return d < spec.dimV || std::isnan(value) ? value
                                              : noise(bitsOf(value), keys[row].second, h, d);
  });
}

//===----------------------------------------------------------------------===//
// Batches
//===----------------------------------------------------------------------===//

static JsonValue rangesOf(const truth::Request &request) {
  JsonValue ranges = JsonValue::array();
  for (const truth::Range &range : request.ranges)
    ranges.push(pairOf(range.start, range.end));
  return ranges;
}

static JsonValue documentsOf(const Launch &launch) {
  JsonValue lists = JsonValue::array();
  for (const truth::Request &request : launch.requests) {
    JsonValue ids = JsonValue::array();
    for (int id : request.documents)
      ids.push(JsonValue::integer(id));
    lists.push(ids);
  }
  return lists;
}

/// `keys[b]` is the length of request b.
static JsonValue batchOf(const KernelSpec &spec, const Launch &launch, const std::vector<Int> &keys,
                         bool allowCut) {
  JsonValue requests = JsonValue::array();
  for (size_t b = 0; b < launch.requests.size(); ++b) {
    const truth::Request &r = launch.requests[b];
    JsonValue request = JsonValue::object();
    request.set("query_len", JsonValue::integer(r.queryLen));
    request.set("seq_len", JsonValue::integer(keys[b]));
    if (r.contextLen != keys[b] - r.queryLen)
      request.set("context_len", JsonValue::integer(r.contextLen));
    if (!r.ranges.empty())
      request.set("mm_ranges", rangesOf(r));
    requests.push(request);
  }
  JsonValue batch = JsonValue::object();
  batch.set("requests", requests);
  if (allowCut)
    batch.set("partial_ranges", JsonValue::string("allow"));
  JsonValue params = JsonValue::object();
  for (const auto &[name, value] : launch.params)
    params.set(name, JsonValue::integer(value));
  batch.set("params", params);
  JsonValue tables = JsonValue::object();
  for (const TableDecl &decl : spec.program.tables)
    if (decl.kind == TableKind::Documents)
      tables.set(decl.name, documentsOf(launch));
  batch.set("tables", tables);
  return batch;
}

/// Kept keys of every token as inclusive stretches.
static JsonValue keptKeys(const BatchShape &shape, int64_t heads, const exec::KeepHeadFn &keep) {
  JsonValue tokens = JsonValue::array();
  for (int64_t b = 0; b < shape.numReqs(); ++b)
    for (int64_t i = 0; i < shape.queryLen(RequestIndex(b)); ++i) {
      const int64_t q = shape.contextLen[b] + i;
      JsonValue stretches = JsonValue::array();
      int64_t begin = -1;
      for (int64_t k = 0; k <= shape.keyEnd[b]; ++k) {
        const bool kept = k < shape.keyEnd[b] && keep(b, 0, q, k);
        for (int64_t h = 1; h < heads && k < shape.keyEnd[b]; ++h)
          if (keep(b, h, q, k) != kept)
            throw std::runtime_error("a record needs masks that are the same for all heads");
        if (kept && begin < 0)
          begin = k;
        if (!kept && begin >= 0) {
          stretches.push(pairOf(begin, k - 1));
          begin = -1;
        }
      }
      tokens.push(stretches);
    }
  return tokens;
}

static JsonValue pageTableOf(const Problem &problem) {
  JsonValue table = JsonValue::array();
  for (int64_t b = 0; b < problem.batch->shape.numReqs(); ++b) {
    JsonValue row = JsonValue::array();
    for (int64_t i = 0; i < problem.kv.requestStride; ++i)
      row.push(JsonValue::integer(problem.kv.pageTable[b * problem.kv.requestStride + i]));
    table.push(row);
  }
  return table;
}

//===----------------------------------------------------------------------===//
// Record
//===----------------------------------------------------------------------===//

Record &Record::get() {
  static Record record;
  return record;
}

void Record::open(const std::string &path) {
  folder = path;
  for (const char *part : {"specs", "launches"}) {
    std::filesystem::remove_all(folder + "/" + part);
    std::filesystem::create_directories(folder + "/" + part);
  }
  std::filesystem::remove(folder + "/manifest.json");
}

void Record::write(const std::string &name, const std::string &bytes) {
  const Status status = writeFileAtomically(folder + "/" + name, bytes.data(), bytes.size());
  if (!status)
    throw std::runtime_error(status.message());
}

/// Numbers in the order in which keys first came, and whether this one is new.
static std::pair<int, bool> numberOfKey(std::map<std::string, int> &numbers,
                                        const std::string &key) {
  const auto [at, isNew] = numbers.insert({key, static_cast<int>(numbers.size())});
  return {at->second, isNew};
}

int Record::specNumber(const std::string &text, const KernelSpec &spec, int64_t dim) {
  const std::string twin = deviceSpec(text, spec, dim);
  const auto [number, isNew] = numberOfKey(specs, twin);
  if (isNew)
    write("specs/" + std::to_string(number) + ".mlir", twin);
  return number;
}

int Record::add(const RecordedLaunch &recorded) {
  if (folder.empty())
    return -1;
  const KernelSpec &spec = *recorded.problem.spec;
  const BatchShape &shape = recorded.problem.batch->shape;
  const int64_t dim = deviceDim(spec);
  if (!dim) {
    notApplicable("no GPU kernel has dim " + std::to_string(std::max(spec.dimQk, spec.dimV)));
    return -1;
  }
  for (int64_t begin : shape.keyBegin)
    if (begin != 0)
      throw std::runtime_error("a record needs launches whose keys start at 0");

  const int specId = specNumber(recorded.spec, spec, dim);
  const std::string batch =
      writeJson(batchOf(spec, recorded.launch, {shape.keyEnd.begin(), shape.keyEnd.end()}, true));
  TensorFile file;
  addOperands(file, recorded.problem, dim);
  file.addTables(recorded.launch);
  const std::string tensors = file.bytes();
  const auto [launch, isNew] = numberOfKey(launches, std::to_string(specId) + batch + tensors);
  if (isNew) {
    const std::string name = "launches/" + std::to_string(launch);
    write(name + ".json", batch);
    write(name + ".safetensors", tensors);
    JsonValue value = JsonValue::object();
    value.set("spec", JsonValue::integer(specId));
    value.set("type", JsonValue::string(std::string(toString(deviceType(spec)))));
    value.set("scores_pass", JsonValue::boolean(spec.program.score < 0));
    value.set("kept", keptKeys(shape, spec.numHeads, recorded.keep));
    launchValues.push_back(value);
  }
  JsonValue value = ofTest();
  value.set("launch", JsonValue::integer(launch));
  if (recorded.problem.kv.pageTable) {
    value.set("page_size", JsonValue::integer(recorded.problem.kv.pageSize));
    value.set("block_table", pageTableOf(recorded.problem));
  }
  const auto [run, isNewRun] = numberOfKey(runs, writeJson(value, false));
  if (isNewRun) {
    runValues.push_back(value);
    runClaims.emplace_back();
  }
  return run;
}

void Record::claim(int run, const std::vector<Claim> &claims) {
  if (run >= 0)
    runClaims[run].insert(runClaims[run].end(), claims.begin(), claims.end());
}

void Record::sameRows(RunRows a, RunRows b, int64_t count, bool exact) {
  if (folder.empty())
    return;
  JsonValue value = ofTest();
  value.set("a", pairOf(a.run, a.firstToken));
  value.set("b", pairOf(b.run, b.firstToken));
  value.set("count", JsonValue::integer(count));
  value.set("exact", JsonValue::boolean(exact));
  same.push_back(value);
}

void Record::refusedSpec(const std::string &spec, const std::string &target,
                         const std::vector<std::string> &mentions) {
  if (folder.empty())
    return;
  JsonValue value = ofTest();
  value.set("text", JsonValue::string(spec));
  value.set("target", JsonValue::string(target));
  value.set("mentions", strings(mentions));
  refusedSpecs.push_back(value);
}

void Record::refusedLaunch(const std::string &text, const Launch &launch,
                           const std::string &message) {
  if (folder.empty())
    return;
  const KernelSpec &spec = *compiled(text).spec;
  std::vector<Int> keys;
  for (const truth::Request &request : launch.requests)
    keys.push_back(request.seqLen);
  const std::string name = "launches/refused" + std::to_string(refusedLaunches.size());
  TensorFile file;
  file.addTables(launch);
  write(name + ".json", writeJson(batchOf(spec, launch, keys, false)));
  write(name + ".safetensors", file.bytes());
  JsonValue value = ofTest();
  value.set("spec", JsonValue::integer(specNumber(text, spec, deviceDim(spec))));
  value.set("files", JsonValue::string(name));
  value.set("message", JsonValue::string(message));
  refusedLaunches.push_back(value);
}

void Record::notApplicable(const std::string &reason) {
  if (folder.empty())
    return;
  JsonValue value = ofTest();
  value.set("reason", JsonValue::string(reason));
  for (const JsonValue &note : notes)
    if (writeJson(note) == writeJson(value))
      return;
  notes.push_back(value);
}

static JsonValue claimsOf(const std::vector<Claim> &claims) {
  JsonValue list = JsonValue::array();
  for (const Claim &claim : claims) {
    JsonValue value = JsonValue::object();
    value.set("token", JsonValue::integer(claim.token));
    value.set("head", JsonValue::integer(claim.head));
    JsonValue o = JsonValue::array();
    for (double element : claim.o)
      o.push(numberOf(element));
    value.set("o", o);
    if (claim.lse)
      value.set("lse", numberOf(*claim.lse));
    value.set("exact", JsonValue::boolean(claim.tolerance == 0));
    list.push(value);
  }
  return list;
}

void Record::close() {
  if (folder.empty())
    return;
  for (size_t run = 0; run < runValues.size(); ++run)
    runValues[run].set("claims", claimsOf(runClaims[run]));
  JsonValue manifest = JsonValue::object();
  manifest.set("specs", JsonValue::integer(static_cast<int64_t>(specs.size())));
  manifest.set("launches", arrayOf(launchValues));
  manifest.set("runs", arrayOf(runValues));
  manifest.set("same_rows", arrayOf(same));
  manifest.set("refused_specs", arrayOf(refusedSpecs));
  manifest.set("refused_launches", arrayOf(refusedLaunches));
  manifest.set("not_applicable", arrayOf(notes));
  write("manifest.json", writeJson(manifest, false));
}
