// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ties the native code of a kernel to its manifest. Code has shapes, types, parameters and tables
// built in; the compiler writes them down, as text, in a read-only symbol beside the code, and the
// runtime compares that text with what the manifest says.
#ifndef ATTN_CORE_KERNELSIGNATURE_H
#define ATTN_CORE_KERNELSIGNATURE_H

#include "attn/Core/Manifest.h"

#include <string>
#include <string_view>

namespace attn::core {

/// Symbol of the signature of the code whose forward entry is `entry`.
std::string signatureSymbol(std::string_view entry);

/// Everything in a manifest that calls of native code depend on, one fact a line: the calling
/// convention, entries, heads, dims, types, scale, parameters and tables in their order. Not the
/// program: whether the code computes it is what checks against the reference are for.
std::string kernelSignature(const KernelSpec &spec, const KernelBinary &binary);

/// Checks that code of signature `ofCode` is what the manifest describes; the error names the first
/// fact that differs.
Status checkSignature(const KernelSpec &spec, const KernelBinary &binary, std::string_view ofCode);

} // namespace attn::core

#endif // ATTN_CORE_KERNELSIGNATURE_H
