// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a run will take, known before any tensor is allocated.
#ifndef ATTN_TOOLS_ATTNRUN_SIZE_H
#define ATTN_TOOLS_ATTNRUN_SIZE_H

#include "Options.h"

#include "attn/Core/Manifest.h"
#include "attn/Runtime/BatchBinding.h"

namespace attn::run {

/// As double: a batch may ask for more than 64 bits count.
struct Size {
  double bytes = 0;   ///< of tensors and results that are touched
  double pairs = 0;   ///< (query, key), the mask not considered
  double seconds = 0; ///< expected, roughly
};

Size sizeOf(const Options &options, const core::Kernel &kernel, const rt::BatchInput &input,
            const rt::BoundBatch &bound);

/// Bytes of memory of this machine.
double physicalMemory();

/// "1.5 GiB".
std::string gibibytes(double bytes);

} // namespace attn::run

#endif // ATTN_TOOLS_ATTNRUN_SIZE_H
