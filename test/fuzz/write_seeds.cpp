// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writes the seeds that are not text.
//
// usage: write-fuzz-seeds FOLDER
#include "Subject.h"

#include "attn/Runtime/Safetensors.h"

using namespace attn;
using namespace attn::core;

static bool write(const std::string &path, const std::vector<uint8_t> &bytes) {
  const Status status = writeFileAtomically(path, bytes.data(), bytes.size());
  if (!status)
    std::fprintf(stderr, "%s\n", status.message().c_str());
  return status.ok();
}

int main(int argc, char **argv) {
  if (argc != 2)
    return 2;
  const std::string folder = argv[1];
  const std::vector<uint8_t> artifact = serialize(fuzz::artifact());
  // Behind magic, size and sum, before seven bytes of code.
  const std::vector<uint8_t> manifest(artifact.begin() + 24, artifact.end() - 7);
  const float values[6] = {1, 2, 3, 4, 5, 6};
  const uint8_t bytes[3] = {7, 8, 9};
  const auto *data = reinterpret_cast<const uint8_t *>(values);
  const std::vector<rt::FileTensor> tensors = {
      {"q", rt::FileDType::F32, {2, 3}, data, sizeof(values)},
      {"none", rt::FileDType::BF16, {0, 4}, data, 0},
      {"table", rt::FileDType::U8, {3}, bytes, sizeof(bytes)}};
  return write(folder + "/artifact.attn", artifact) && write(folder + "/manifest.json", manifest) &&
                 write(folder + "/tensors.safetensors", rt::serializeSafetensors(tensors))
             ? 0
             : 1;
}
