// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The table part of bindBatch.
#ifndef ATTN_LIB_RUNTIME_BINDTABLES_H
#define ATTN_LIB_RUNTIME_BINDTABLES_H

#include "attn/Runtime/BatchBinding.h"

namespace attn::rt {

/// Fills `batch.tables` from the tables of `input`; `batch.shape` is complete.
core::Status bindTables(const core::KernelSpec &spec, BatchInput &input, core::Batch &batch);

/// "'a', 'b'", or "none".
std::string quotedList(const std::vector<std::string> &names);

} // namespace attn::rt

#endif // ATTN_LIB_RUNTIME_BINDTABLES_H
