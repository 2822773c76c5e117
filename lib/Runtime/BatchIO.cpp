// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Runtime/BatchIO.h"

#include "TableJson.h"

#include <algorithm>

using namespace attn;
using namespace attn::core;
using namespace attn::rt;

namespace {

/// Reads one batch file; the rows of the block table are collected first and packed at the end.
class BatchReader {
public:
  explicit BatchReader(const KernelSpec &spec) : spec(spec) {}

  Result<BatchFile> read(const JsonValue &root);

private:
  Status readRequest(const JsonValue &value, const std::string &path);
  Status readBlockTable(const JsonValue &value, const std::string &path, std::vector<int32_t> &row);
  Status readParams(const JsonValue &value);
  Status readTables(const JsonValue &value);
  Status packBlockTable();

  const KernelSpec &spec;
  BatchFile file;
  RangesInput mmRanges{{}, {0}};
  bool hasMmRanges = false;
  std::vector<std::optional<std::vector<int32_t>>> blockRows;
};

} // namespace

Status BatchReader::readBlockTable(const JsonValue &value, const std::string &path,
                                   std::vector<int32_t> &row) {
  for (size_t i = 0; i < value.elements().size(); ++i) {
    Result<int64_t> page =
        readInteger(value.elements()[i], elementPath(path, i), INT32_MIN, INT32_MAX);
    if (!page)
      return page.takeError();
    row.push_back(static_cast<int32_t>(*page));
  }
  return {};
}

Status BatchReader::readRequest(const JsonValue &value, const std::string &path) {
  ObjectReader reader(value, path);
  RequestInput request;
  request.queryLen = reader.integer("query_len");
  request.seqLen = reader.integer("seq_len");
  request.contextLen = reader.optionalInteger("context_len");
  request.seqLenBound = reader.optionalInteger("seq_len_bound");
  request.seqLenLeast = reader.optionalInteger("seq_len_least");
  request.isPrefilling = reader.optionalBoolean("is_prefilling");
  std::optional<std::vector<int32_t>> row;
  if (const JsonValue *ranges = reader.optionalArray("mm_ranges")) {
    hasMmRanges = true;
    if (Status status = readRangeList(*ranges, reader.path("mm_ranges"), mmRanges); !status)
      reader.fail(Error{status.message()});
  }
  mmRanges.offsets.push_back(static_cast<int64_t>(mmRanges.ranges.size()));
  if (const JsonValue *table = reader.optionalArray("block_table")) {
    row.emplace();
    if (Status status = readBlockTable(*table, reader.path("block_table"), *row); !status)
      reader.fail(Error{status.message()});
  }
  file.input.requests.push_back(request);
  blockRows.push_back(std::move(row));
  return reader.finish();
}

Status BatchReader::readParams(const JsonValue &value) {
  for (const JsonValue::Member &member : value.members()) {
    if (!member.value.isNumber())
      return errorAt(member.value, memberPath("params", member.key),
                     "expected a number, got " + std::string(describe(member.value.kind())));
    ParamInput param;
    param.name = member.key;
    param.isInteger = member.value.isInt();
    param.i = member.value.asInt();
    param.f = member.value.asDouble();
    file.input.params.push_back(std::move(param));
  }
  return {};
}

Status BatchReader::readTables(const JsonValue &value) {
  for (const JsonValue::Member &member : value.members()) {
    Result<TableInput> table =
        readTable(member.value, memberPath("tables", member.key), member.key, spec);
    if (!table)
      return table.takeError();
    file.input.tables.push_back(std::move(*table));
  }
  return {};
}

/// Lays the rows of the block table out with one stride. A request without keys needs no row.
Status BatchReader::packBlockTable() {
  auto given = std::find_if(blockRows.begin(), blockRows.end(), [](auto &row) { return !!row; });
  if (given == blockRows.end())
    return {};
  BlockTableInput table;
  for (size_t b = 0; b < blockRows.size(); ++b) {
    if (!blockRows[b] && file.input.requests[b].seqLen > 0)
      return Error{"request " + std::to_string(b) + ": block_table: missing, given for request " +
                   std::to_string(given - blockRows.begin())};
    table.widths.push_back(blockRows[b] ? static_cast<int64_t>(blockRows[b]->size()) : 0);
    table.stride = std::max(table.stride, table.widths.back());
  }
  file.blockTable.assign(blockRows.size() * table.stride, -1);
  for (size_t b = 0; b < blockRows.size(); ++b)
    if (blockRows[b])
      std::copy(blockRows[b]->begin(), blockRows[b]->end(),
                file.blockTable.begin() + static_cast<int64_t>(b) * table.stride);
  table.entries = file.blockTable.data();
  file.input.blockTable = std::move(table);
  return {};
}

Result<BatchFile> BatchReader::read(const JsonValue &root) {
  ObjectReader reader(root, "");
  auto keep = [&](Status status) {
    if (!status)
      reader.fail(Error{status.message()});
  };
  if (const JsonValue *requests = reader.array("requests"))
    for (size_t b = 0; b < requests->elements().size() && reader.ok(); ++b)
      keep(readRequest(requests->elements()[b], elementPath("requests", b)));
  file.input.pageSize = reader.optionalInteger("page_size");
  if (std::optional<std::string> partial = reader.optionalString("partial_ranges")) {
    if (*partial != "allow" && *partial != "refuse")
      reader.fail(*root.find("partial_ranges"), "partial_ranges",
                  "expected \"allow\" or \"refuse\", got \"" + *partial + "\"");
    file.input.allowPartialRanges = *partial == "allow";
  }
  if (const JsonValue *params = reader.optionalObject("params"))
    keep(readParams(*params));
  if (const JsonValue *tables = reader.optionalObject("tables"))
    keep(readTables(*tables));
  if (Status status = reader.finish(); !status)
    return Error{status.message()};
  if (hasMmRanges)
    file.input.mmRanges = std::move(mmRanges);
  if (Status status = packBlockTable(); !status)
    return Error{status.message()};
  return std::move(file);
}

Result<BatchFile> rt::readBatch(std::string_view json, const KernelSpec &spec) {
  Result<JsonValue> root = parseJson(json);
  if (!root)
    return root.takeError();
  return BatchReader(spec).read(*root);
}
