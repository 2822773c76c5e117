// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reading the tables and parameters of a batch at the current request, head and row. Every access
// is checked against the table's extent: outside, a load gives 0 and a row is empty.
#ifndef ATTN_LIB_CORE_TABLEACCESS_H
#define ATTN_LIB_CORE_TABLEACCESS_H

#include "attn/Core/Batch.h"
#include "attn/Core/NativeAbi.h"

#include "ScalarOps.h"

#include <optional>

namespace attn::core {

/// The live ranges of one request.
struct RangeSpan {
  const Range *first = nullptr;
  int64_t count = 0;

  const Range *begin() const { return first; }
  const Range *end() const { return first + count; }
};

/// Where a mask program is evaluated, the key aside.
struct RowPoint {
  int64_t b = 0;
  int64_t h = 0;
  int64_t q = 0;
};

class TableAccess {
public:
  TableAccess(const MaskProgram &program, const Batch &batch) : program(program), batch(batch) {}

  Scalar param(int32_t number) const;

  RangeSpan ranges(int32_t table, int64_t b) const {
    const TableData &data = batch.tables[table];
    if (b < 0 || b + 1 >= static_cast<int64_t>(data.rangeOffsets.size()))
      return {};
    int64_t first = data.rangeOffsets[b];
    return {data.ranges.data() + first, data.rangeOffsets[b + 1] - first};
  }
  int64_t rangeStart(int32_t table, int64_t b, int64_t number) const {
    RangeSpan span = ranges(table, b);
    return number >= 0 && number < span.count ? span.first[number].start : 0;
  }
  int64_t rangeEnd(int32_t table, int64_t b, int64_t number) const {
    RangeSpan span = ranges(table, b);
    return number >= 0 && number < span.count ? span.first[number].end : -1;
  }

  /// Number of the document at a position, if the table covers it.
  std::optional<int32_t> document(int32_t table, int64_t b, int64_t position) const {
    const TableData &data = batch.tables[table];
    if (b < 0 || b + 1 >= static_cast<int64_t>(data.documentOffsets.size()))
      return std::nullopt;
    int64_t first = data.documentOffsets[b];
    if (position < 0 || position >= data.documentOffsets[b + 1] - first)
      return std::nullopt;
    return data.documents[first + position];
  }
  /// All positions of q's document. Remembers the last answer for each table.
  const IntervalSet &documentKeys(int32_t table, int64_t b, int64_t q);

  /// The QueryRanges row of (b, q): from the table's rows, or by definition if it has none.
  Interval queryRange(int32_t table, int64_t b, int64_t q);
  Interval queryRangeByDefinition(int32_t table, int64_t b, int64_t q);

  /// Extents in which a dimension of a plain table is addressed: the implicit index, or nothing
  /// where an operand gives it.
  std::optional<int64_t> implicitIndex(TableDim dim, const RowPoint &at) const;
  /// Element of a plain table; `indices` has one entry for each dimension.
  Scalar element(int32_t table, const int64_t *indices) const;

private:
  struct DocumentCache {
    int64_t b = -1;
    int32_t id = 0;
    IntervalSet keys;
  };

  const MaskProgram &program;
  const Batch &batch;
  std::vector<DocumentCache> documentCaches;
};

} // namespace attn::core

#endif // ATTN_LIB_CORE_TABLEACCESS_H
