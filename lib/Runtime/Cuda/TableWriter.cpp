// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "TableWriter.h"

#include "../BindTables.h"

#include "attn/Runtime/Builders.h"

#include <algorithm>
#include <cstring>

using namespace attn;
using namespace attn::core;
using namespace attn::rt;
using namespace attn::rt::cuda;

/// Extents as the kernel gets them, and strides without gaps. Captured launches hold both, so
/// dimensions that change from step to step are taken at their largest there.
bool TableWriter::shapeOf(size_t table, Shape &shape) const {
  const TableDecl &decl = binary.tables[table];
  const TableData &data = batch.tables[table];
  shape.rank = decl.dims.size();
  shape.width = bitWidth(decl.element) / 8;
  for (size_t dim = 0; dim < shape.rank; ++dim) {
    const bool isOfStep = decl.dims[dim] == TableDim::B || decl.dims[dim] == TableDim::Token;
    shape.extents[dim] = options.forGraphs && isOfStep
                             ? mostExtent(spec, decl.dims[dim], options.limits)
                             : data.extents[dim];
  }
  return denseStrides(shape.extents, shape.rank, shape.strides);
}

/// Calls visit(byte offset in the dense table, address of the source, bytes) for runs of elements
/// that lie side by side in both, until it returns false.
template <class Visit>
bool TableWriter::forEachRun(size_t table, const Shape &shape, Visit visit) const {
  const TableData &data = batch.tables[table];
  for (int64_t extent : data.extents)
    if (extent == 0)
      return true;
  // Inner dimensions that both sides have without gaps make one run.
  size_t outer = shape.rank;
  int64_t run = 1;
  while (outer > 0 && data.strides[outer - 1] == run && shape.strides[outer - 1] == run) {
    run *= data.extents[outer - 1];
    --outer;
  }
  int64_t at[kMaxTableRank] = {};
  const auto *from = static_cast<const uint8_t *>(data.data);
  for (;;) {
    int64_t source = 0, target = 0;
    for (size_t dim = 0; dim < outer; ++dim) {
      source += at[dim] * data.strides[dim];
      target += at[dim] * shape.strides[dim];
    }
    if (!visit(target * shape.width, from + source * shape.width, run * shape.width))
      return false;
    size_t dim = outer;
    while (dim > 0 && ++at[dim - 1] == data.extents[dim - 1])
      at[--dim] = 0;
    if (dim == 0)
      return true;
  }
}

bool TableWriter::hasSameContent(size_t table, const uint8_t *memory) const {
  Shape shape;
  if (!shapeOf(table, shape))
    return false;
  const uint8_t *base = memory + layout.tables[table].data.offset;
  return forEachRun(table, shape, [&](int64_t offset, const uint8_t *from, int64_t bytes) {
    return std::memcmp(base + offset, from, static_cast<size_t>(bytes)) == 0;
  });
}

/// Ranges or documents with their offsets, for kernels that read them one by one.
void TableWriter::writeLists(size_t table, uint8_t *memory, NativeTable &result,
                             std::vector<Section> *used) const {
  const TableData &data = batch.tables[table];
  const TablePlace &place = layout.tables[table];
  const bool isRanges = binary.tables[table].kind == TableKind::Ranges;
  const std::vector<int64_t> &offsets = isRanges ? data.rangeOffsets : data.documentOffsets;
  const void *from =
      isRanges ? static_cast<const void *>(data.ranges.data()) : data.documents.data();
  const size_t count = isRanges ? data.ranges.size() : data.documents.size();
  const size_t bytes = count * (isRanges ? sizeof(Range) : sizeof(int32_t));
  if (bytes)
    std::memcpy(memory + place.data.offset, from, bytes);
  std::memcpy(memory + place.offsets.offset, offsets.data(), offsets.size() * sizeof(int64_t));
  const int64_t most = isRanges ? options.limits.ranges : options.limits.documentKeys;
  result.extents[0] = options.forGraphs ? most : static_cast<int64_t>(count);
  used->push_back({place.data.offset, bytes});
  used->push_back({place.offsets.offset, offsets.size() * sizeof(int64_t)});
}

/// Rows built in place. Without a covered row there is no table; captured launches have one.
void TableWriter::writeRows(size_t table, uint8_t *memory, NativeTable &result,
                            std::vector<Section> *used) const {
  const int32_t source = binary.tables[table].source;
  const TableData &data = batch.tables[source];
  auto *rows = reinterpret_cast<Range *>(memory + layout.tables[table].data.offset);
  const int64_t tokens = batch.shape.numTokens();
  const int64_t covered = binary.tables[source].kind == TableKind::Documents
                              ? buildDocumentRows(batch.shape, data, rows)
                              : buildQueryRanges(batch.shape, data, rows, scratch);
  result.extents[0] = options.forGraphs ? options.limits.tokens : covered ? tokens : 0;
  if (covered == 0) {
    if (!options.forGraphs)
      return;
    std::fill(rows, rows + tokens, Range{-1, -1});
  }
  used->push_back(
      {layout.tables[table].data.offset, static_cast<uint64_t>(tokens) * sizeof(Range)});
}

Result<NativeTable> TableWriter::write(size_t table, uint8_t *memory, bool isWritten,
                                       std::vector<Section> *used) const {
  NativeTable result = {};
  const TableDecl &decl = binary.tables[table];
  if (layout.tables[table].home == FieldHome::Host)
    return result;
  if (decl.kind == TableKind::QueryRanges) {
    writeRows(table, memory, result, used);
    return result;
  }
  if (decl.kind != TableKind::Plain) {
    writeLists(table, memory, result, used);
    return result;
  }
  Shape shape;
  if (!shapeOf(table, shape))
    return Error{"table '" + decl.name + "': has more elements than 64 bits count"};
  std::copy_n(shape.extents, shape.rank, result.extents);
  std::copy_n(shape.strides, shape.rank, result.strides);
  if (!isWritten)
    return result;
  uint64_t end = 0;
  uint8_t *base = memory + layout.tables[table].data.offset;
  forEachRun(table, shape, [&](int64_t offset, const uint8_t *from, int64_t bytes) {
    std::memcpy(base + offset, from, static_cast<size_t>(bytes));
    end = std::max(end, static_cast<uint64_t>(offset + bytes));
    return true;
  });
  if (used && end)
    used->push_back({layout.tables[table].data.offset, end});
  return result;
}
