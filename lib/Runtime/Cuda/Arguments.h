// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Size of the argument block of a GPU kernel, see attn/Core/CudaAbi.h.
#ifndef ATTN_LIB_RUNTIME_CUDA_ARGUMENTS_H
#define ATTN_LIB_RUNTIME_CUDA_ARGUMENTS_H

#include "attn/Core/CudaAbi.h"
#include "attn/Core/Manifest.h"

namespace attn::rt::cuda {

/// Kernel parameters of all drivers: 4096 bytes, of which the tensor maps take 128 each.
constexpr size_t kMostArgumentWords = (4096 - 3 * 128) / 8;

inline size_t numArgumentWords(const core::KernelSpec &spec, const core::KernelBinary &binary) {
  return core::kNumCudaArgs + spec.program.params.size() +
         core::kNativeTableWords * binary.tables.size();
}

} // namespace attn::rt::cuda

#endif // ATTN_LIB_RUNTIME_CUDA_ARGUMENTS_H
