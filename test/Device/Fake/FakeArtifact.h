// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Artifacts for the fake driver.
#ifndef ATTN_TEST_DEVICE_FAKE_FAKEARTIFACT_H
#define ATTN_TEST_DEVICE_FAKE_FAKEARTIFACT_H

#include "attn/Core/Manifest.h"

namespace fake {

/// The image that makes the fake driver emulate `kernel` as launched for `binary`, which has a
/// CudaLaunch.
std::vector<uint8_t> imageOf(const attn::core::Kernel &kernel,
                             const attn::core::KernelBinary &binary);

/// The artifact with such code for the GPU target beside each kernel's code for the cpu, whose
/// tables it takes. Kernels of shapes that no GPU kernel has are left as they are.
attn::core::Artifact withFakeCode(attn::core::Artifact artifact, bool countsTiles);

} // namespace fake

#endif // ATTN_TEST_DEVICE_FAKE_FAKEARTIFACT_H
