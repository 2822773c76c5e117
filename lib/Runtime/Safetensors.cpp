// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Layout: u64 little-endian length of the header, the header (a JSON object of
// {"dtype", "shape", "data_offsets"} by tensor name, and "__metadata__" with strings), the data.
#include "attn/Runtime/Safetensors.h"

#include "attn/Core/Json.h"
#include "attn/Core/Manifest.h"

#include <algorithm>
#include <cstring>
#include <iterator>

using namespace attn;
using namespace attn::core;
using namespace attn::rt;

namespace {

struct DTypeInfo {
  FileDType type;
  std::string_view name;
  int64_t bytes;
};
constexpr DTypeInfo kDTypes[] = {
    {FileDType::F64, "F64", 8},   {FileDType::F32, "F32", 4}, {FileDType::F16, "F16", 2},
    {FileDType::BF16, "BF16", 2}, {FileDType::I64, "I64", 8}, {FileDType::I32, "I32", 4},
    {FileDType::I8, "I8", 1},     {FileDType::U8, "U8", 1},   {FileDType::Bool, "BOOL", 1},
};
constexpr size_t kPrefixSize = 8;
/// Headers are small; a larger length is a broken or hostile file.
constexpr uint64_t kMaxHeaderSize = 100 << 20;

const DTypeInfo &infoOf(FileDType type) {
  return *std::find_if(std::begin(kDTypes), std::end(kDTypes),
                       [&](const DTypeInfo &info) { return info.type == type; });
}

/// Bytes of a tensor, or nothing if 63 bits do not hold the number.
std::optional<int64_t> bytesOf(FileDType type, const std::vector<int64_t> &shape) {
  int64_t bytes = byteSize(type);
  for (int64_t extent : shape)
    if (__builtin_mul_overflow(bytes, extent, &bytes))
      return std::nullopt;
  return bytes;
}

/// The two integers of "data_offsets", 0 <= begin <= end <= dataSize.
Result<std::pair<int64_t, int64_t>> readOffsets(const JsonValue &value, const std::string &path,
                                                int64_t dataSize) {
  if (value.elements().size() != 2)
    return errorAt(value, path, "expected [begin, end]");
  Result<int64_t> begin = readInteger(value.elements()[0], elementPath(path, 0), 0, dataSize);
  if (!begin)
    return begin.takeError();
  Result<int64_t> end = readInteger(value.elements()[1], elementPath(path, 1), *begin, dataSize);
  if (!end)
    return end.takeError();
  return std::make_pair(*begin, *end);
}

Result<FileTensor> readEntry(const JsonValue::Member &member, const uint8_t *data,
                             int64_t dataSize) {
  ObjectReader reader(member.value, member.key);
  FileTensor tensor;
  tensor.name = member.key;
  const std::string dtype = reader.string("dtype");
  if (std::optional<FileDType> type = parseFileDType(dtype))
    tensor.dtype = *type;
  else if (reader.ok())
    reader.fail(member.value, "dtype", "\"" + dtype + "\" is not supported");
  if (const JsonValue *shape = reader.array("shape")) {
    for (size_t i = 0; i < shape->elements().size(); ++i) {
      Result<int64_t> extent =
          readInteger(shape->elements()[i], elementPath(reader.path("shape"), i), 0);
      if (!extent)
        return extent.takeError();
      tensor.shape.push_back(*extent);
    }
  }
  std::pair<int64_t, int64_t> offsets;
  if (const JsonValue *value = reader.array("data_offsets")) {
    Result<std::pair<int64_t, int64_t>> result =
        readOffsets(*value, reader.path("data_offsets"), dataSize);
    if (!result)
      return result.takeError();
    offsets = *result;
  }
  if (Status status = reader.finish(); !status)
    return Error{status.message()};
  std::optional<int64_t> expected = bytesOf(tensor.dtype, tensor.shape);
  if (!expected || *expected != offsets.second - offsets.first)
    return errorAt(member.value, member.key,
                   "shape " + shapeText(tensor.shape) + " of " + dtype + " does not fill " +
                       std::to_string(offsets.second - offsets.first) + " bytes");
  tensor.data = data + offsets.first;
  tensor.size = static_cast<size_t>(*expected);
  return tensor;
}

Status checkMetadata(const JsonValue &value) {
  if (Status status = expectKind(value, "__metadata__", JsonValue::Kind::Object); !status)
    return status;
  for (const JsonValue::Member &member : value.members())
    if (Status status = expectKind(member.value, memberPath("__metadata__", member.key),
                                   JsonValue::Kind::String);
        !status)
      return status;
  return {};
}

/// Tensors in the order of their data leave no byte out and share none.
Status checkCoverage(const std::vector<FileTensor> &tensors, const uint8_t *data, size_t size) {
  std::vector<const FileTensor *> order;
  for (const FileTensor &tensor : tensors)
    order.push_back(&tensor);
  std::sort(order.begin(), order.end(), [](const FileTensor *a, const FileTensor *b) {
    return std::make_pair(a->data, a->data + a->size) < std::make_pair(b->data, b->data + b->size);
  });
  const uint8_t *at = data;
  for (const FileTensor *tensor : order) {
    if (tensor->data < at)
      return Error{tensor->name + ": overlaps the tensor before it"};
    if (tensor->data > at)
      return Error{tensor->name + ": data starts " + std::to_string(tensor->data - at) +
                   " bytes after the end of the tensor before it"};
    at += tensor->size;
  }
  if (at != data + size)
    return Error{std::to_string(data + size - at) + " bytes after the last tensor"};
  return {};
}

} // namespace

std::string_view rt::toString(FileDType type) { return infoOf(type).name; }

int64_t rt::byteSize(FileDType type) { return infoOf(type).bytes; }

std::optional<FileDType> rt::parseFileDType(std::string_view text) {
  for (const DTypeInfo &info : kDTypes)
    if (info.name == text)
      return info.type;
  return std::nullopt;
}

std::string rt::shapeText(const std::vector<int64_t> &shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

Result<SafetensorsFile> SafetensorsFile::parse(std::vector<uint8_t> bytes) {
  if (bytes.size() < kPrefixSize)
    return Error{"not a safetensors file: expected at least 8 bytes, got " +
                 std::to_string(bytes.size())};
  uint64_t headerSize = 0;
  for (size_t i = 0; i < kPrefixSize; ++i)
    headerSize |= uint64_t(bytes[i]) << (8 * i);
  if (headerSize > kMaxHeaderSize || headerSize > bytes.size() - kPrefixSize)
    return Error{"not a safetensors file: header of " + std::to_string(headerSize) +
                 " bytes in a file of " + std::to_string(bytes.size())};
  std::string_view text(reinterpret_cast<const char *>(bytes.data()) + kPrefixSize, headerSize);
  Result<JsonValue> header = parseJson(text);
  if (!header)
    return Error{"header: " + header.message()};
  if (Status status = expectKind(*header, "", JsonValue::Kind::Object); !status)
    return Error{"header: " + status.message()};

  SafetensorsFile file;
  file.bytes = std::move(bytes);
  const uint8_t *data = file.bytes.data() + kPrefixSize + headerSize;
  const size_t dataSize = file.bytes.size() - kPrefixSize - headerSize;
  for (const JsonValue::Member &member : header->members()) {
    if (member.key == "__metadata__") {
      if (Status status = checkMetadata(member.value); !status)
        return Error{"header: " + status.message()};
      continue;
    }
    Result<FileTensor> tensor = readEntry(member, data, static_cast<int64_t>(dataSize));
    if (!tensor)
      return Error{oneLine("header: " + tensor.message())};
    file.entries.push_back(std::move(*tensor));
  }
  if (Status status = checkCoverage(file.entries, data, dataSize); !status)
    return Error{oneLine(status.message())};
  return file;
}

Result<SafetensorsFile> SafetensorsFile::read(const std::string &path) {
  Result<std::vector<uint8_t>> bytes = readFile(path);
  if (!bytes)
    return bytes.takeError();
  Result<SafetensorsFile> file = parse(std::move(*bytes));
  if (!file)
    return Error{path + ": " + file.message()};
  return file;
}

const FileTensor *SafetensorsFile::find(std::string_view name) const {
  for (const FileTensor &tensor : entries)
    if (tensor.name == name)
      return &tensor;
  return nullptr;
}

std::vector<uint8_t> rt::serializeSafetensors(const std::vector<FileTensor> &tensors) {
  JsonValue header = JsonValue::object();
  int64_t offset = 0;
  for (const FileTensor &tensor : tensors) {
    JsonValue shape = JsonValue::array();
    for (int64_t extent : tensor.shape)
      shape.push(JsonValue::integer(extent));
    JsonValue offsets = JsonValue::array();
    offsets.push(JsonValue::integer(offset));
    offset += static_cast<int64_t>(tensor.size);
    offsets.push(JsonValue::integer(offset));
    JsonValue entry = JsonValue::object();
    entry.set("dtype", JsonValue::string(std::string(toString(tensor.dtype))));
    entry.set("shape", std::move(shape));
    entry.set("data_offsets", std::move(offsets));
    header.set(tensor.name, std::move(entry));
  }
  std::string text = writeJson(header, /*pretty=*/false);
  text.resize((text.size() + 7) / 8 * 8, ' '); // the data starts aligned
  std::vector<uint8_t> bytes;
  bytes.reserve(kPrefixSize + text.size() + static_cast<size_t>(offset));
  for (size_t i = 0; i < kPrefixSize; ++i)
    bytes.push_back(static_cast<uint8_t>(uint64_t(text.size()) >> (8 * i)));
  bytes.insert(bytes.end(), text.begin(), text.end());
  for (const FileTensor &tensor : tensors)
    bytes.insert(bytes.end(), tensor.data, tensor.data + tensor.size);
  return bytes;
}

Status rt::writeSafetensors(const std::string &path, const std::vector<FileTensor> &tensors) {
  const std::vector<uint8_t> bytes = serializeSafetensors(tensors);
  return writeFileAtomically(path, bytes.data(), bytes.size());
}
