// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_CONVERSION_ATTNTOLOOPS_ATTNTOLOOPS_H
#define ATTN_CONVERSION_ATTNTOLOOPS_ATTNTOLOOPS_H

#include "attn/Conversion/Passes.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"

#include <string>

namespace attn {

/// Symbols of the two entries of kernel `name`. The prefixes keep them apart from each other and
/// from library functions, whatever a kernel is called.
inline std::string getForwardEntryName(llvm::StringRef name) {
  return ("attn.forward." + name).str();
}
inline std::string getMaskEntryName(llvm::StringRef name) { return ("attn.mask." + name).str(); }

} // namespace attn

#endif // ATTN_CONVERSION_ATTNTOLOOPS_ATTNTOLOOPS_H
