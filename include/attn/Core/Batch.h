// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A batch as every path reads it: lengths, ranges, documents, tables and parameters bound to the
// declarations of one mask program. Plain data owned by the holder; attn/Runtime/BatchIO.h makes it
// from JSON and checks it, the C API makes it from engine arrays.
#ifndef ATTN_CORE_BATCH_H
#define ATTN_CORE_BATCH_H

#include "attn/Core/Interval.h"
#include "attn/Core/MaskProgram.h"

#include <cstdint>
#include <vector>

namespace attn::core {

/// Lengths and offsets of a batch. All vectors have num_reqs entries but queryStartLoc (+ 1).
struct BatchShape {
  std::vector<int64_t> queryStartLoc; ///< exclusive prefix sum of query_len
  std::vector<int64_t> seqLen;        ///< total keys
  std::vector<int64_t> contextLen;    ///< absolute position of the first scheduled query
  std::vector<int64_t> keyBegin;      ///< first key position the launch covers (0)
  std::vector<int64_t> keyEnd;        ///< past the last one (seq_len)
  /// The lengths that seq_len may have where the device alone knows it (a decode row's q moves with
  /// it), the only one elsewhere. Empty: all of them are known. What is built for a GPU reads these
  /// in place of seqLen, contextLen and keyEnd, which are one of the cases.
  std::vector<int64_t> leastSeqLen, mostSeqLen;

  /// Whether the device alone knows the length of a request.
  bool isBound(int64_t b) const { return !mostSeqLen.empty() && leastSeqLen[b] < mostSeqLen[b]; }
  /// The largest seq_len that a request may have.
  int64_t longest(int64_t b) const { return mostSeqLen.empty() ? seqLen[b] : mostSeqLen[b]; }
  int64_t numReqs() const { return static_cast<int64_t>(seqLen.size()); }
  int64_t numTokens() const { return queryStartLoc.empty() ? 0 : queryStartLoc.back(); }
  int64_t queryLen(RequestIndex b) const {
    return queryStartLoc[b.value + 1] - queryStartLoc[b.value];
  }
  /// The two maps between index spaces.
  TokenIndex tokenOf(RequestIndex b, QueryPos q) const {
    return TokenIndex(q.value - contextLen[b.value] + queryStartLoc[b.value]);
  }
  QueryPos queryOf(RequestIndex b, TokenIndex t) const {
    return QueryPos(t.value - queryStartLoc[b.value] + contextLen[b.value]);
  }
};

/// An inclusive range of absolute positions, as users and tables write it.
struct Range {
  int32_t start = 0;
  int32_t end = 0;
};

/// One bound parameter.
struct ParamValue {
  int64_t i = 0; ///< integer parameters
  double f = 0;  ///< f32 parameters
};

/// One bound table. Which members are used depends on the declaration's kind.
struct TableData {
  // Plain: dense, `data` points at elements of the declared type; strides in elements.
  const void *data = nullptr;
  std::vector<int64_t> extents;
  std::vector<int64_t> strides;
  // Ranges: live ranges only (start < end, start < seq_len), those of request b at
  // rangeOffsets[b] .. rangeOffsets[b + 1].
  std::vector<Range> ranges;
  std::vector<int64_t> rangeOffsets;
  // Documents: id of each key position of request b at documentOffsets[b] + k; contiguous per id.
  std::vector<int32_t> documents;
  std::vector<int64_t> documentOffsets;
  // QueryRanges: one row per token, inclusive, (-1, -1) outside. May be empty: then evaluators
  // derive the row from the source table.
  std::vector<Range> rows;
  // Storage behind `data` when the batch owns it.
  std::vector<unsigned char> owned;

  TableData() = default;
  TableData(TableData &&) = default;
  TableData &operator=(TableData &&) = default;
  /// A copy of an owning table points at its own storage.
  TableData(const TableData &other)
      : data(other.data), extents(other.extents), strides(other.strides), ranges(other.ranges),
        rangeOffsets(other.rangeOffsets), documents(other.documents),
        documentOffsets(other.documentOffsets), rows(other.rows), owned(other.owned) {
    if (!owned.empty() && other.data == other.owned.data())
      data = owned.data();
  }
  TableData &operator=(const TableData &other) { return *this = TableData(other); }
};

/// Everything a mask program reads.
struct Batch {
  BatchShape shape;
  int64_t numHeads = 1;
  int64_t numKvHeads = 1;
  std::vector<ParamValue> params; ///< in the program's order
  std::vector<TableData> tables;  ///< in the program's order
};

} // namespace attn::core

#endif // ATTN_CORE_BATCH_H
