// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Passes that prove what other passes did. Contracts: dialect/verify/Passes.td.
#ifndef ATTN_VERIFY_PASSES_H
#define ATTN_VERIFY_PASSES_H

#include "attn/Dialect/Attn/IR/AttnOps.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

#include <string>

namespace attn {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "verify/Passes.h.inc"

namespace proofs {

/// Attribute of a kernel: the plain tables that attn-tv-expand-elements added, with the documents
/// tables that they show.
inline constexpr llvm::StringLiteral kDocumentViews = "attn.tv_document_views";

/// The textual pipeline with attn-tv-snapshot before and attn-tv-check after each pass, on whatever
/// it runs, but conversions of kernels to something else. `checkOptions` is what stands in the
/// braces of attn-tv-check. Passes of this file are left alone.
std::string addChecks(llvm::StringRef pipeline, llvm::StringRef checkOptions);

} // namespace proofs
} // namespace attn

#endif // ATTN_VERIFY_PASSES_H
