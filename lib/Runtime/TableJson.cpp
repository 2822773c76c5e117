// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "TableJson.h"

#include "attn/Runtime/Builders.h"

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace attn;
using namespace attn::core;
using namespace attn::rt;

Status rt::readRangeList(const JsonValue &value, const std::string &path, RangesInput &ranges) {
  if (Status status = expectKind(value, path, JsonValue::Kind::Array); !status)
    return status;
  for (size_t i = 0; i < value.elements().size(); ++i) {
    const JsonValue &element = value.elements()[i];
    const std::string elementName = elementPath(path, i);
    if (Status status = expectKind(element, elementName, JsonValue::Kind::Array); !status)
      return status;
    if (element.elements().size() != 2)
      return errorAt(element, elementName,
                     "expected [start, end], got " + std::to_string(element.elements().size()) +
                         " elements");
    std::array<int64_t, 2> range{};
    for (size_t j = 0; j < 2; ++j) {
      Result<int64_t> bound = readInteger(element.elements()[j], elementPath(elementName, j));
      if (!bound)
        return bound.takeError();
      range[j] = *bound;
    }
    ranges.ranges.push_back(range);
  }
  return {};
}

static Result<RangesInput> readRanges(const JsonValue &value, const std::string &path) {
  RangesInput ranges;
  ranges.offsets.push_back(0);
  for (size_t b = 0; b < value.elements().size(); ++b) {
    if (Status status = readRangeList(value.elements()[b], elementPath(path, b), ranges); !status)
      return Error{status.message()};
    ranges.offsets.push_back(static_cast<int64_t>(ranges.ranges.size()));
  }
  return ranges;
}

static Result<DocumentsInput> readDocuments(const JsonValue &value, const std::string &path) {
  DocumentsInput documents;
  documents.offsets.push_back(0);
  for (size_t b = 0; b < value.elements().size(); ++b) {
    const JsonValue &row = value.elements()[b];
    const std::string rowPath = elementPath(path, b);
    if (Status status = expectKind(row, rowPath, JsonValue::Kind::Array); !status)
      return Error{status.message()};
    for (size_t k = 0; k < row.elements().size(); ++k) {
      Result<int64_t> id =
          readInteger(row.elements()[k], elementPath(rowPath, k), INT32_MIN, INT32_MAX);
      if (!id)
        return id.takeError();
      documents.ids.push_back(static_cast<int32_t>(*id));
    }
    documents.offsets.push_back(static_cast<int64_t>(documents.ids.size()));
  }
  return documents;
}

//===----------------------------------------------------------------------===//
// Dense tables
//===----------------------------------------------------------------------===//

namespace {

/// Flattens nested arrays into elements of one type.
class DenseReader {
public:
  DenseReader(const TableDecl &decl) : decl(decl) {
    dense.element = decl.element;
    dense.extents.assign(decl.dims.size(), -1);
  }

  Status read(const JsonValue &value, const std::string &path, size_t dim = 0);
  /// Extents below an empty list are unknown: they count as 0.
  DenseInput take() {
    std::replace(dense.extents.begin(), dense.extents.end(), int64_t(-1), int64_t(0));
    return std::move(dense);
  }

private:
  Status readElement(const JsonValue &value, const std::string &path);
  template <class T>
  void append(T value) {
    const size_t at = dense.owned.size();
    dense.owned.resize(at + sizeof(T));
    std::memcpy(dense.owned.data() + at, &value, sizeof(T));
  }

  const TableDecl &decl;
  DenseInput dense;
};

} // namespace

Status DenseReader::readElement(const JsonValue &value, const std::string &path) {
  if (decl.element == ScalarType::F32) {
    Result<double> number = readNumber(value, path);
    if (!number)
      return number.takeError();
    const float narrow = static_cast<float>(*number);
    if (!std::isfinite(narrow))
      return errorAt(value, path, "does not fit f32");
    append(narrow);
    return {};
  }
  const unsigned bits = bitWidth(decl.element);
  const int64_t max = static_cast<int64_t>(~uint64_t(0) >> (65 - bits));
  Result<int64_t> number = readInteger(value, path, -max - 1, max);
  if (!number)
    return number.takeError();
  if (decl.element == ScalarType::I8)
    append(static_cast<int8_t>(*number));
  else if (decl.element == ScalarType::I32)
    append(static_cast<int32_t>(*number));
  else
    append(*number);
  return {};
}

Status DenseReader::read(const JsonValue &value, const std::string &path, size_t dim) {
  if (dim == decl.dims.size())
    return readElement(value, path);
  if (Status status = expectKind(value, path, JsonValue::Kind::Array); !status)
    return status;
  const int64_t extent = static_cast<int64_t>(value.elements().size());
  if (dense.extents[dim] < 0)
    dense.extents[dim] = extent;
  if (dense.extents[dim] != extent)
    return errorAt(value, path,
                   "expected " + std::to_string(dense.extents[dim]) +
                       " elements as in the lists before it, got " + std::to_string(extent));
  for (size_t i = 0; i < value.elements().size(); ++i)
    if (Status status = read(value.elements()[i], elementPath(path, i), dim + 1); !status)
      return status;
  return {};
}

/// {"recipe": "alibi", "total_heads": 8, "first_head": 4}
static Result<DenseInput> readRecipe(const JsonValue &value, const std::string &path,
                                     const TableDecl &decl, const KernelSpec &spec) {
  ObjectReader reader(value, path);
  const std::string recipe = reader.string("recipe");
  if (reader.ok() && recipe != "alibi")
    reader.fail(*value.find("recipe"), "recipe", "expected \"alibi\", got \"" + recipe + "\"");
  const int64_t total = reader.optionalInteger("total_heads", 1, 1 << 20).value_or(spec.numHeads);
  const int64_t first = reader.optionalInteger("first_head", 0, 1 << 20).value_or(0);
  if (Status status = reader.finish(); !status)
    return Error{status.message()};
  if (decl.element != ScalarType::F32 || decl.dims != std::vector<TableDim>{TableDim::H})
    return errorAt(value, path,
                   "recipe \"alibi\" makes a table<[h], f32>, which '" + decl.name + "' is not");
  if (first + spec.numHeads > total)
    return errorAt(value, path,
                   "first_head " + std::to_string(first) + " plus " +
                       std::to_string(spec.numHeads) + " heads of the kernel pass total_heads " +
                       std::to_string(total));
  const std::vector<float> slopes = alibiSlopes(total, first, spec.numHeads);
  DenseInput dense;
  dense.element = ScalarType::F32;
  dense.extents = {spec.numHeads};
  dense.owned.resize(slopes.size() * sizeof(float));
  std::memcpy(dense.owned.data(), slopes.data(), dense.owned.size());
  return dense;
}

Result<TableInput> rt::readTable(const JsonValue &value, const std::string &path,
                                 const std::string &name, const KernelSpec &spec) {
  TableInput table;
  table.name = name;
  const std::vector<TableDecl> &decls = spec.program.tables;
  auto decl =
      std::find_if(decls.begin(), decls.end(), [&](const TableDecl &d) { return d.name == name; });
  if (decl == decls.end() || decl->kind == TableKind::QueryRanges)
    return table; // bindBatch says why
  if (decl->kind == TableKind::Plain && value.isObject()) {
    Result<DenseInput> dense = readRecipe(value, path, *decl, spec);
    if (!dense)
      return dense.takeError();
    table.dense = std::move(*dense);
    return table;
  }
  if (Status status = expectKind(value, path, JsonValue::Kind::Array); !status)
    return Error{status.message()};
  if (decl->kind == TableKind::Ranges) {
    Result<RangesInput> ranges = readRanges(value, path);
    if (!ranges)
      return ranges.takeError();
    table.ranges = std::move(*ranges);
  } else if (decl->kind == TableKind::Documents) {
    Result<DocumentsInput> documents = readDocuments(value, path);
    if (!documents)
      return documents.takeError();
    table.documents = std::move(*documents);
  } else {
    DenseReader reader(*decl);
    if (Status status = reader.read(value, path); !status)
      return Error{status.message()};
    table.dense = reader.take();
  }
  return table;
}
