// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_LIB_COMPILER_SPECHASH_H
#define ATTN_LIB_COMPILER_SPECHASH_H

#include "attn/Core/Manifest.h"

#include <string>

namespace attn::compiler {

/// Hash of what decides the code of a kernel: shapes, types, scale, and the nodes that the mask and
/// the score reach, numbered by first use from the results. Names, dead nodes and the order of
/// independent nodes do not enter; neither do parameters' and tables' names, but their positions do
/// (they are the order of the launch's arguments).
std::string hashSpec(const core::KernelSpec &spec);

} // namespace attn::compiler

#endif // ATTN_LIB_COMPILER_SPECHASH_H
