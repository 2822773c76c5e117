// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// attn-engine-artifact OUT: the artifact of gpuArtifact(), for programs that run on the fake
// driver.
#include "CudaWorkload.h"

#include <cstdio>

int main(int argc, char **argv) {
  if (argc != 2) {
    std::fputs("usage: attn-engine-artifact OUT\n", stderr);
    return 2;
  }
  const attn::core::Status status =
      attn::core::writeArtifact(testing_rt::gpuArtifact(/*countsTiles=*/false), argv[1]);
  if (status)
    return 0;
  std::fprintf(stderr, "attn-engine-artifact: error: %s\n", status.message().c_str());
  return 1;
}
