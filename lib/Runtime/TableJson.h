// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tables in batch files.
#ifndef ATTN_LIB_RUNTIME_TABLEJSON_H
#define ATTN_LIB_RUNTIME_TABLEJSON_H

#include "attn/Core/Json.h"
#include "attn/Runtime/BatchBinding.h"

namespace attn::rt {

/// Reads `[[start, end], ...]` and appends it to `ranges`.
core::Status readRangeList(const core::JsonValue &value, const std::string &path,
                           RangesInput &ranges);

/// Reads the value of table `name`; how is decided by the kernel's declaration. A name that the
/// kernel does not know gives an input that bindBatch refuses.
core::Result<TableInput> readTable(const core::JsonValue &value, const std::string &path,
                                   const std::string &name, const core::KernelSpec &spec);

} // namespace attn::rt

#endif // ATTN_LIB_RUNTIME_TABLEJSON_H
