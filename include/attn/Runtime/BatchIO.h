// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Batch files: JSON as docs/batch.md and docs/batch-schema.json describe it.
#ifndef ATTN_RUNTIME_BATCHIO_H
#define ATTN_RUNTIME_BATCHIO_H

#include "attn/Runtime/BatchBinding.h"

#include <string_view>

namespace attn::rt {

/// A batch file as read: the input of bindBatch, with the block table's storage.
struct BatchFile {
  BatchInput input; ///< input.blockTable points into `blockTable`
  std::vector<int32_t> blockTable;
};

/// Reads the text of a batch file for a kernel. The kernel's declarations decide how a table is
/// read. Unknown keys and values of the wrong type are refused with line, column and path; what the
/// values mean is judged by bindBatch.
core::Result<BatchFile> readBatch(std::string_view json, const core::KernelSpec &spec);

} // namespace attn::rt

#endif // ATTN_RUNTIME_BATCHIO_H
