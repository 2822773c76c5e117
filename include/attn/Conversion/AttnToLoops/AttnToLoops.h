// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_CONVERSION_ATTNTOLOOPS_ATTNTOLOOPS_H
#define ATTN_CONVERSION_ATTNTOLOOPS_ATTNTOLOOPS_H

#include "mlir/Pass/Pass.h"

#include <string>

namespace attn {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "conversion/Passes.h.inc"

/// Symbol of the dense-mask entry of kernel `name`.
inline std::string getMaskEntryName(const std::string &name) { return name + ".mask"; }

} // namespace attn

#endif // ATTN_CONVERSION_ATTNTOLOOPS_ATTNTOLOOPS_H
