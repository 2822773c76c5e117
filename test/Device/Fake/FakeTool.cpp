// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// attn-fake-artifact [--tiles] IN OUT: the artifact IN with code that the fake driver emulates.
#include "FakeArtifact.h"

#include <cstdio>
#include <cstring>

int main(int argc, char **argv) {
  const bool tiles = argc == 4 && std::strcmp(argv[1], "--tiles") == 0;
  if (argc != 3 && !tiles) {
    std::fputs("usage: attn-fake-artifact [--tiles] IN OUT\n", stderr);
    return 2;
  }
  attn::core::Result<attn::core::Artifact> artifact = attn::core::readArtifact(argv[argc - 2]);
  attn::core::Status status =
      artifact ? attn::core::writeArtifact(fake::withFakeCode(std::move(*artifact), tiles),
                                           argv[argc - 1])
               : attn::core::Status(artifact.takeError());
  if (status)
    return 0;
  std::fprintf(stderr, "attn-fake-artifact: error: %s\n", status.message().c_str());
  return 2;
}
