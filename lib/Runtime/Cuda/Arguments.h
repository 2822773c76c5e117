// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Size of the argument block of a GPU kernel, see attn/Core/CudaAbi.h.
#ifndef ATTN_LIB_RUNTIME_CUDA_ARGUMENTS_H
#define ATTN_LIB_RUNTIME_CUDA_ARGUMENTS_H

#include "attn/Core/CudaAbi.h"
#include "attn/Core/Manifest.h"

namespace attn::rt::cuda {

inline int64_t numArgumentWords(const core::KernelSpec &spec, const core::KernelBinary &binary) {
  return core::kNumCudaArgs + static_cast<int64_t>(spec.program.params.size()) +
         core::kNativeTableWords * static_cast<int64_t>(binary.tables.size());
}

} // namespace attn::rt::cuda

#endif // ATTN_LIB_RUNTIME_CUDA_ARGUMENTS_H
