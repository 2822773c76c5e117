// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The table part of bindBatch.
#ifndef ATTN_LIB_RUNTIME_BINDTABLES_H
#define ATTN_LIB_RUNTIME_BINDTABLES_H

#include "attn/Runtime/BatchBinding.h"

#include <algorithm>
#include <utility>

namespace attn::rt {

/// The input of a declaration, of which the member that goes with its kind is set.
struct GivenTable {
  const RangesInput *ranges = nullptr;
  const DocumentsInput *documents = nullptr;
  const DenseInput *dense = nullptr;

  bool isGiven() const { return ranges || documents || dense; }
};

/// Memory of a BatchBinder that is used again.
struct BindScratch {
  std::vector<GivenTable> given;                   ///< per table
  std::vector<std::pair<int32_t, int64_t>> starts; ///< documents of a request: id, first key
  std::vector<uint8_t> hasParam;
};

/// As given, else whether there is more than one query.
bool isPrefilling(const RequestInput &request);

/// The positions that queries of a request may have whose length is known on the device only.
core::Interval boundedPositions(const RequestInput &request);

/// Fills `batch.tables` from the tables of `input`; `batch.shape` is complete.
core::Status bindTables(const core::KernelSpec &spec, const BatchInput &input, core::Batch &batch,
                        BindScratch &scratch);

/// Row-major strides of `rank` extents, in elements; false if the elements pass 64 bits.
inline bool denseStrides(const int64_t *extents, size_t rank, int64_t *strides) {
  int64_t elements = 1;
  for (size_t dim = rank; dim-- > 0;) {
    strides[dim] = elements;
    if (__builtin_mul_overflow(elements, std::max<int64_t>(extents[dim], 0), &elements))
      return false;
  }
  return true;
}

/// "'a', 'b'", or "none".
std::string quotedList(const std::vector<std::string> &names);

} // namespace attn::rt

#endif // ATTN_LIB_RUNTIME_BINDTABLES_H
