// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "TableAccess.h"

#include "attn/Core/MaskEval.h"

#include <algorithm>
#include <cstring>

namespace attn::core {

Scalar TableAccess::param(int32_t number) const {
  const ParamValue &value = batch.params[number];
  ScalarType type = program.params[number].type;
  if (type == ScalarType::F32)
    return Scalar::ofFloat(static_cast<float>(value.f));
  return Scalar::ofInt(wrapTo(type, value.i));
}

const IntervalSet &TableAccess::documentKeys(int32_t table, int64_t b, int64_t q) {
  if (documentCaches.empty())
    documentCaches.resize(program.tables.size());
  DocumentCache &cache = documentCaches[table];
  std::optional<int32_t> id = document(table, b, q);
  static const IntervalSet none;
  if (!id)
    return none;
  if (cache.b == b && cache.id == *id)
    return cache.keys;
  const TableData &data = batch.tables[table];
  int64_t first = data.documentOffsets[b], last = data.documentOffsets[b + 1];
  std::vector<Interval> runs;
  for (int64_t i = first; i < last; ++i) {
    if (data.documents[i] != *id)
      continue;
    if (!runs.empty() && runs.back().hi == i - first)
      ++runs.back().hi;
    else
      runs.push_back({i - first, i - first + 1});
  }
  cache = {b, *id, IntervalSet::unionOf(std::move(runs))};
  return cache.keys;
}

Interval TableAccess::queryRangeByDefinition(int32_t table, int64_t b, int64_t q) {
  int32_t source = program.tables[table].source;
  if (program.tables[source].kind == TableKind::Documents)
    return documentKeys(source, b, q).hull();
  Interval result;
  for (const Range &range : ranges(source, b))
    if (range.start <= q && q <= range.end)
      result = hull(result, Interval::fromInclusive(range.start, range.end));
  return result;
}

Interval TableAccess::queryRange(int32_t table, int64_t b, int64_t q) {
  const std::vector<Range> &rows = batch.tables[table].rows;
  if (rows.empty())
    return queryRangeByDefinition(table, b, q);
  int64_t token = batch.shape.tokenOf(RequestIndex(b), QueryPos(q)).value;
  if (token < 0 || token >= static_cast<int64_t>(rows.size()))
    return Interval::none();
  return Interval::fromInclusive(rows[token].start, rows[token].end);
}

std::optional<int64_t> TableAccess::implicitIndex(TableDim dim, const RowPoint &at) const {
  switch (dim) {
  case TableDim::B:
    return at.b;
  case TableDim::Token:
    return batch.shape.tokenOf(RequestIndex(at.b), QueryPos(at.q)).value;
  case TableDim::H:
    return at.h;
  case TableDim::HKv:
    return at.h / std::max<int64_t>(1, batch.numHeads / std::max<int64_t>(1, batch.numKvHeads));
  default:
    return std::nullopt;
  }
}

template <class T>
static T loadAs(const void *data, int64_t offset) {
  T v;
  std::memcpy(&v, static_cast<const char *>(data) + offset * static_cast<int64_t>(sizeof(T)),
              sizeof(T));
  return v;
}

Scalar TableAccess::element(int32_t table, const int64_t *indices) const {
  const TableData &data = batch.tables[table];
  const TableDecl &decl = program.tables[table];
  int64_t offset = 0;
  for (size_t i = 0; i < decl.dims.size(); ++i) {
    if (i >= data.extents.size() || indices[i] < 0 || indices[i] >= data.extents[i])
      return {};
    offset += indices[i] * data.strides[i];
  }
  switch (decl.element) {
  case ScalarType::I8:
    return Scalar::ofInt(loadAs<int8_t>(data.data, offset));
  case ScalarType::I32:
    return Scalar::ofInt(loadAs<int32_t>(data.data, offset));
  case ScalarType::I64:
    return Scalar::ofInt(loadAs<int64_t>(data.data, offset));
  default:
    return Scalar::ofFloat(loadAs<float>(data.data, offset));
  }
}

Interval queryRangeByDefinition(const MaskProgram &program, const Batch &batch, int32_t table,
                                RequestIndex b, QueryPos q) {
  return TableAccess(program, batch).queryRangeByDefinition(table, b.value, q.value);
}

} // namespace attn::core
