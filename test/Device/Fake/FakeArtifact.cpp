// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "FakeArtifact.h"

#include "FakeCuda.h"

#include "attn/Core/MaskEval.h"

using namespace attn::core;

std::vector<uint8_t> fake::imageOf(const Kernel &kernel, const KernelBinary &binary) {
  Artifact inner;
  inner.compilerVersion = "fake";
  inner.kernels.push_back(kernel);
  inner.kernels[0].binaries = {binary};
  inner.kernels[0].binaries[0].format = "ptx";
  inner.kernels[0].binaries[0].blob = 0;
  inner.blobs = {{0}};
  const std::vector<uint8_t> bytes = serialize(inner);
  const std::string head = kImageMark + std::to_string(bytes.size()) + "\n";
  std::vector<uint8_t> image(head.begin(), head.end());
  image.insert(image.end(), bytes.begin(), bytes.end());
  image.push_back(0);
  return image;
}

Artifact fake::withFakeCode(Artifact artifact, bool countsTiles) {
  for (Kernel &kernel : artifact.kernels) {
    const KernelSpec &spec = kernel.spec;
    const KernelBinary *cpu = kernel.find("cpu");
    if (!cpu || spec.dimQk != spec.dimV || spec.qType == DType::F32 || spec.qType != spec.kvType ||
        (spec.dimQk != 64 && spec.dimQk != 128 && spec.dimQk != 256))
      continue;
    KernelBinary binary = *cpu;
    binary.target = "sm_90a";
    binary.format = "ptx";
    binary.maskEntry.clear();
    CudaLaunch launch;
    launch.groups = spec.dimQk == 64 ? 3 : 2;
    launch.keyTile = spec.dimQk == 256 ? 64 : 128;
    launch.threads = 128 * (launch.groups + 1);
    launch.sharedBytes = 200000;
    launch.testsVisible = !hasExactRows(spec.program);
    launch.countsTiles = countsTiles;
    binary.cuda = launch;
    const std::vector<uint8_t> image = imageOf(kernel, binary);
    binary.blob = static_cast<int32_t>(artifact.blobs.size());
    artifact.blobs.push_back(image);
    kernel.binaries.push_back(binary);
  }
  return artifact;
}
