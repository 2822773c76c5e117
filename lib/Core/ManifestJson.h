// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The manifest of an artifact as JSON. Blobs appear as their place in the container and a checksum.
#ifndef ATTN_LIB_CORE_MANIFESTJSON_H
#define ATTN_LIB_CORE_MANIFESTJSON_H

#include "attn/Core/Json.h"
#include "attn/Core/Manifest.h"

namespace attn::core {

/// A blob in the container, by byte offset from the end of the manifest.
struct BlobPlace {
  int64_t offset = 0;
  int64_t size = 0;
  uint64_t checksum = 0;
};

uint64_t fnv1a(const uint8_t *data, size_t size);

JsonValue writeManifest(const Artifact &artifact, const std::vector<BlobPlace> &blobs);

/// Reads and checks everything but the blobs' bytes; fills `blobs`.
Result<Artifact> readManifest(const JsonValue &manifest, std::vector<BlobPlace> &blobs);

} // namespace attn::core

#endif // ATTN_LIB_CORE_MANIFESTJSON_H
