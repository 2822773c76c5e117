// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Safetensors files: named dense tensors behind a JSON header. Little-endian machines only.
#ifndef ATTN_RUNTIME_SAFETENSORS_H
#define ATTN_RUNTIME_SAFETENSORS_H

#include "attn/Core/Status.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attn::rt {

enum class FileDType : uint8_t { F64, F32, F16, BF16, I64, I32, I8, U8, Bool };

/// "F64", "BF16", "BOOL", ...: the spelling in files.
std::string_view toString(FileDType type);
std::optional<FileDType> parseFileDType(std::string_view text);
int64_t byteSize(FileDType type);

/// "[3, 8, 64]".
std::string shapeText(const std::vector<int64_t> &shape);

/// A tensor in a file, row-major. Points into the bytes of the file, with no alignment promised.
struct FileTensor {
  std::string name;
  FileDType dtype = FileDType::F32;
  std::vector<int64_t> shape;
  const uint8_t *data = nullptr;
  size_t size = 0; ///< bytes
};

/// A file as read; owns its bytes. Move only.
class SafetensorsFile {
public:
  /// Checks the header against the bytes: every tensor lies inside, has the size its shape and
  /// dtype say, and tensors follow each other without overlap or gap.
  static core::Result<SafetensorsFile> parse(std::vector<uint8_t> bytes);
  static core::Result<SafetensorsFile> read(const std::string &path);

  SafetensorsFile(SafetensorsFile &&) = default;
  SafetensorsFile &operator=(SafetensorsFile &&) = default;

  /// In the header's order.
  const std::vector<FileTensor> &tensors() const { return entries; }
  const FileTensor *find(std::string_view name) const;

private:
  SafetensorsFile() = default;

  std::vector<uint8_t> bytes;
  std::vector<FileTensor> entries;
};

/// The bytes of a file with these tensors.
std::vector<uint8_t> serializeSafetensors(const std::vector<FileTensor> &tensors);
/// Writes a file whole or not at all.
core::Status writeSafetensors(const std::string &path, const std::vector<FileTensor> &tensors);

} // namespace attn::rt

#endif // ATTN_RUNTIME_SAFETENSORS_H
