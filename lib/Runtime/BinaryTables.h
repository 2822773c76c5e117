// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What every runner checks of a binary before it hands tables to its code, and words it hands it.
#ifndef ATTN_LIB_RUNTIME_BINARYTABLES_H
#define ATTN_LIB_RUNTIME_BINARYTABLES_H

#include "attn/Core/Batch.h"
#include "attn/Core/Manifest.h"

namespace attn::rt {

/// A parameter as code reads it: integers sign-extended, f32 as its bits in the low half.
int64_t paramWord(const core::ParamDecl &decl, const core::ParamValue &value);

/// The binary's tables start with the program's, and built ones name a source that can be read.
core::Status checkBinaryTables(const core::Kernel &kernel, const core::KernelBinary &binary);

} // namespace attn::rt

#endif // ATTN_LIB_RUNTIME_BINARYTABLES_H
