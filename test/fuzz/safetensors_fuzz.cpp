// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Any bytes are a file of tensors or are refused, and what was read is written and read again the
// same. Bytes that start with a brace are taken for a header of a file with 64 bytes of data.
#include "Subject.h"

#include "attn/Runtime/Safetensors.h"

#include <cstring>

using namespace attn;
using namespace attn::core;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::vector<uint8_t> bytes;
  if (size > 0 && data[0] == '{') {
    for (int i = 0; i < 8; ++i)
      bytes.push_back(static_cast<uint8_t>(uint64_t(size) >> (8 * i)));
    bytes.insert(bytes.end(), data, data + size);
    bytes.resize(bytes.size() + 64, 5);
  } else {
    bytes.assign(data, data + size);
  }
  const uint8_t *begin = nullptr;
  const size_t total = bytes.size();
  const Result<rt::SafetensorsFile> file = rt::SafetensorsFile::parse(std::move(bytes));
  if (!file.ok()) {
    fuzz::requireRefusal(file.message());
    return 0;
  }
  size_t used = 0;
  for (const rt::FileTensor &tensor : file->tensors()) {
    begin = begin ? std::min(begin, tensor.data) : tensor.data;
    used += tensor.size;
    uint64_t sum = 0; // every byte can be read
    for (size_t i = 0; i < tensor.size; ++i)
      sum += tensor.data[i];
    fuzz::require(sum <= 255 * tensor.size, "bytes");
  }
  fuzz::require(used <= total, "tensors lie in the file");
  const std::vector<uint8_t> written = rt::serializeSafetensors(file->tensors());
  const Result<rt::SafetensorsFile> again = rt::SafetensorsFile::parse(written);
  fuzz::require(again.ok() && again->tensors().size() == file->tensors().size(),
                "what was written is read");
  for (const rt::FileTensor &tensor : file->tensors()) {
    const rt::FileTensor *same = again->find(tensor.name);
    fuzz::require(same && same->dtype == tensor.dtype && same->shape == tensor.shape &&
                      same->size == tensor.size &&
                      (tensor.size == 0 || std::memcmp(same->data, tensor.data, tensor.size) == 0),
                  "tensors are the same");
  }
  return 0;
}
