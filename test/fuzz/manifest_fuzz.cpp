// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Any bytes are an artifact or are refused, and what was read is written and read again the same.
// Bytes that do not start as a container are taken for a manifest and put into one with the right
// sums, so that changes reach what lies behind them.
#include "Subject.h"

#include <algorithm>
#include <cstring>

using namespace attn::core;

static uint64_t fnv1a(const uint8_t *data, size_t size) {
  uint64_t hash = 0xcbf29ce484222325;
  for (size_t i = 0; i < size; ++i)
    hash = (hash ^ data[i]) * 0x100000001b3;
  return hash;
}

static std::vector<uint8_t> container(const uint8_t *manifest, size_t size) {
  constexpr char kMagic[] = "ATTNART\n";
  std::vector<uint8_t> bytes(kMagic, kMagic + 8);
  for (uint64_t number : {uint64_t(size), fnv1a(manifest, size)})
    for (int i = 0; i < 8; ++i)
      bytes.push_back(static_cast<uint8_t>(number >> (8 * i)));
  bytes.insert(bytes.end(), manifest, manifest + size);
  const Artifact artifact = fuzz::artifact();
  bytes.insert(bytes.end(), artifact.blobs[0].begin(), artifact.blobs[0].end());
  return bytes;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const bool isContainer = size >= 8 && std::memcmp(data, "ATTNART\n", 8) == 0;
  const std::vector<uint8_t> bytes =
      isContainer ? std::vector<uint8_t>(data, data + size) : container(data, size);
  const Result<Artifact> artifact = parseArtifact(bytes.data(), bytes.size());
  if (!artifact.ok()) {
    fuzz::requireRefusal(artifact.message());
    return 0;
  }
  for (const Kernel &kernel : artifact->kernels) {
    fuzz::require(!verify(kernel.spec.program), "programs are verified");
    for (const KernelBinary &binary : kernel.binaries)
      fuzz::require(!verifyRecipes(binary.recipes, binary.tables), "recipes are verified");
  }
  const std::vector<uint8_t> written = serialize(*artifact);
  const Result<Artifact> again = parseArtifact(written.data(), written.size());
  fuzz::require(again.ok(), "what was written is read");
  fuzz::require(serialize(*again) == written, "and written the same");
  return 0;
}
