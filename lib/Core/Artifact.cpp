// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The artifact container.
#include "ManifestJson.h"

#include <algorithm>
#include <string_view>

namespace attn::core {

static constexpr std::string_view kMagic = "ATTNART\n";
/// Magic, size and checksum of the manifest.
static constexpr size_t kHeaderSize = 24;

uint64_t fnv1a(const uint8_t *data, size_t size) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (size_t i = 0; i < size; ++i)
    hash = (hash ^ data[i]) * 0x100000001b3u;
  return hash;
}

static void appendU64(std::vector<uint8_t> &out, uint64_t v) {
  for (int i = 0; i < 8; ++i)
    out.push_back(static_cast<uint8_t>(v >> (8 * i)));
}

static uint64_t readU64(const uint8_t *data) {
  uint64_t v = 0;
  for (int i = 0; i < 8; ++i)
    v |= static_cast<uint64_t>(data[i]) << (8 * i);
  return v;
}

std::vector<uint8_t> serialize(const Artifact &artifact) {
  std::vector<BlobPlace> places;
  int64_t offset = 0;
  for (const std::vector<uint8_t> &blob : artifact.blobs) {
    int64_t size = static_cast<int64_t>(blob.size());
    places.push_back({offset, size, fnv1a(blob.data(), blob.size())});
    offset += size;
  }
  std::string manifest = writeJson(writeManifest(artifact, places)) + "\n";
  const uint8_t *bytes = reinterpret_cast<const uint8_t *>(manifest.data());
  std::vector<uint8_t> out(kMagic.begin(), kMagic.end());
  appendU64(out, manifest.size());
  appendU64(out, fnv1a(bytes, manifest.size()));
  out.insert(out.end(), manifest.begin(), manifest.end());
  for (const std::vector<uint8_t> &blob : artifact.blobs)
    out.insert(out.end(), blob.begin(), blob.end());
  return out;
}

Result<Artifact> parseArtifact(const uint8_t *data, size_t size) {
  if (size < kMagic.size() || !std::equal(kMagic.begin(), kMagic.end(), data))
    return Error{"not an attn artifact"};
  if (size < kHeaderSize)
    return Error{"artifact is cut short: expected at least " + std::to_string(kHeaderSize) +
                 " bytes, got " + std::to_string(size)};
  uint64_t manifestSize = readU64(data + 8);
  if (manifestSize > size - kHeaderSize)
    return Error{"artifact is cut short: expected " + std::to_string(manifestSize) +
                 " bytes of manifest, got " + std::to_string(size - kHeaderSize)};
  const uint8_t *manifest = data + kHeaderSize;
  if (fnv1a(manifest, manifestSize) != readU64(data + 16))
    return Error{"artifact is damaged: the manifest does not match its checksum"};

  Result<JsonValue> json =
      parseJson({reinterpret_cast<const char *>(manifest), static_cast<size_t>(manifestSize)});
  if (!json)
    return Error{"artifact manifest: " + json.message()};
  std::vector<BlobPlace> places;
  Result<Artifact> artifact = readManifest(*json, places);
  if (!artifact)
    return Error{oneLine("artifact manifest: " + artifact.message())};

  const uint8_t *blobs = manifest + manifestSize;
  uint64_t left = size - kHeaderSize - manifestSize, at = 0;
  for (size_t i = 0; i < places.size(); ++i) {
    const BlobPlace &place = places[i];
    std::string name = "blob " + std::to_string(i);
    if (static_cast<uint64_t>(place.offset) != at)
      return Error{"artifact manifest: " + name + ": expected offset " + std::to_string(at) +
                   ", got " + std::to_string(place.offset)};
    uint64_t bytes = static_cast<uint64_t>(place.size);
    if (bytes > left)
      return Error{"artifact is cut short: expected " + std::to_string(bytes) + " bytes of " +
                   name + ", got " + std::to_string(left)};
    if (fnv1a(blobs + at, bytes) != place.checksum)
      return Error{"artifact is damaged: " + name + " does not match its checksum"};
    artifact->blobs.emplace_back(blobs + at, blobs + at + bytes);
    at += bytes;
    left -= bytes;
  }
  if (left != 0)
    return Error{"artifact has " + std::to_string(left) + " bytes past its end"};
  return artifact;
}

Result<Artifact> readArtifact(const std::string &path) {
  Result<std::vector<uint8_t>> data = readFile(path);
  if (!data)
    return data.takeError();
  Result<Artifact> artifact = parseArtifact(data->data(), data->size());
  if (!artifact)
    return Error{"'" + path + "': " + artifact.message()};
  return artifact;
}

Status writeArtifact(const Artifact &artifact, const std::string &path) {
  std::vector<uint8_t> data = serialize(artifact);
  return writeFileAtomically(path, data.data(), data.size());
}

} // namespace attn::core
