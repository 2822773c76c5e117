// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What every runner checks of a binary before it hands tables to its code.
#ifndef ATTN_LIB_RUNTIME_BINARYTABLES_H
#define ATTN_LIB_RUNTIME_BINARYTABLES_H

#include "attn/Core/Manifest.h"

namespace attn::rt {

/// The binary's tables start with the program's, and built ones name a source that can be read.
core::Status checkBinaryTables(const core::Kernel &kernel, const core::KernelBinary &binary);

} // namespace attn::rt

#endif // ATTN_LIB_RUNTIME_BINARYTABLES_H
