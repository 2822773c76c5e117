// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checks a batch in engine terms against a kernel's spec and makes the core::Batch that every path
// reads. Batch files (BatchIO.h) and the C API both come down to this, so both refuse the same
// things with the same words.
#ifndef ATTN_RUNTIME_BATCHBINDING_H
#define ATTN_RUNTIME_BATCHBINDING_H

#include "attn/Core/Batch.h"
#include "attn/Core/Manifest.h"
#include "attn/Core/Status.h"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attn::rt {

struct RequestInput {
  int64_t queryLen = 0;
  int64_t seqLen = 0;
  std::optional<int64_t> contextLen; ///< default seqLen - queryLen
  /// The largest length of a decode row whose length is known on the device only. Ranges are
  /// checked against every length up to it. seqLen is one of the lengths it may have: devices that
  /// take exact lengths alone take that one, a GPU is told the range.
  std::optional<int64_t> seqLenBound;
  std::optional<int64_t> seqLenLeast; ///< of such a row, the smallest; default queryLen
  std::optional<bool> isPrefilling;
  std::optional<int64_t> keyBegin; ///< default 0
  std::optional<int64_t> keyEnd;   ///< default seqLen
};

/// Inclusive ranges of absolute positions as the user wrote them; request b has those at
/// offsets[b] .. offsets[b + 1].
struct RangesInput {
  std::vector<std::array<int64_t, 2>> ranges;
  std::vector<int64_t> offsets;
};

/// Document id of each key position; request b has those at offsets[b] .. offsets[b + 1].
struct DocumentsInput {
  std::vector<int32_t> ids;
  std::vector<int64_t> offsets;
};

/// A dense table. `data` points at elements of `element` that outlive the batch, or `owned` holds
/// them and `data` is null. Strides in elements; empty means row-major.
struct DenseInput {
  core::ScalarType element = core::ScalarType::I32;
  std::vector<int64_t> extents;
  std::vector<int64_t> strides;
  const void *data = nullptr;
  std::vector<unsigned char> owned;
};

/// A table by name; exactly one member is set.
struct TableInput {
  std::string name;
  std::optional<RangesInput> ranges;
  std::optional<DocumentsInput> documents;
  std::optional<DenseInput> dense;
};

struct ParamInput {
  std::string name;
  bool isInteger = true;
  int64_t i = 0;
  double f = 0;
};

/// Page ids of every request: entries [b * stride, b * stride + widths[b]) of `entries`. What lies
/// past the pages that hold keys is never looked at.
struct BlockTableInput {
  const int32_t *entries = nullptr;
  int64_t stride = 0;
  std::vector<int64_t> widths;
  std::optional<int64_t> numPages; ///< pages of the cache, if known
};

struct BatchInput {
  std::vector<RequestInput> requests;
  /// Ranges without a table name: for the kernel's only !attn.ranges table. Ignored by a kernel
  /// that has none.
  std::optional<RangesInput> mmRanges;
  std::vector<ParamInput> params;
  std::vector<TableInput> tables;
  bool allowPartialRanges = false;
  std::optional<int64_t> pageSize;
  std::optional<BlockTableInput> blockTable;
};

/// A checked batch.
struct BoundBatch {
  core::Batch batch;
  std::vector<int64_t> kvStart;        ///< [num_reqs + 1] exclusive prefix sum of seq_len
  std::vector<uint8_t> isPrefilling;   ///< as given, else query_len > 1
  std::vector<uint8_t> hasSeqLenBound; ///< seq_len is one of the shape's leastSeqLen to mostSeqLen
};

/// Checks everything that can be checked without reading tensors. The first fault is returned; it
/// names the request, table or parameter, what was expected and what was there.
core::Result<BoundBatch> bindBatch(const core::KernelSpec &spec, const BatchInput &input);

struct BindScratch;

/// The same step after step, into memory that is used again: batches no larger than earlier ones
/// allocate nothing. After a failure `bound` is not to be used.
class BatchBinder {
public:
  /// `spec` must outlive the binder.
  explicit BatchBinder(const core::KernelSpec &spec);
  BatchBinder(BatchBinder &&) noexcept;
  BatchBinder &operator=(BatchBinder &&) noexcept;
  ~BatchBinder();

  core::Status bind(const BatchInput &input, BoundBatch &bound);
  /// Takes memory of `bound` for batches of so many requests, and ranges in a table.
  void reserve(BoundBatch &bound, int64_t requests, int64_t ranges) const;

private:
  const core::KernelSpec *spec;
  std::unique_ptr<BindScratch> scratch;
};

/// An error naming the first request whose length is only a bound, for `who` takes exact lengths
/// alone: "device 'cpu'".
core::Status requireExactLengths(const BoundBatch &bound, std::string_view who);

/// Number of pages that hold keys of a request.
constexpr int64_t livePages(int64_t seqLen, int64_t pageSize) {
  return seqLen / pageSize + (seqLen % pageSize != 0);
}

} // namespace attn::rt

#endif // ATTN_RUNTIME_BATCHBINDING_H
