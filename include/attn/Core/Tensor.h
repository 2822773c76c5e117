// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Element types and strided views of the tensors a kernel reads and writes. Views own nothing.
#ifndef ATTN_CORE_TENSOR_H
#define ATTN_CORE_TENSOR_H

#include <cstdint>
#include <optional>
#include <string_view>

namespace attn::core {

enum class DType : uint8_t { F32, F16, BF16 };

/// "f32", "f16", "bf16".
std::string_view toString(DType type);
std::optional<DType> parseDType(std::string_view text);
/// Bytes of one element.
int64_t byteSize(DType type);

/// Element `index` of an array of `type`, widened (exact).
float loadElement(const void *data, DType type, int64_t index);
/// Stores `value` rounded to nearest even; overflow gives infinity, NaN stays NaN.
void storeElement(void *data, DType type, int64_t index, float value);

/// Q or O: [tokens, heads, dim] with the last dim contiguous; strides in elements.
struct RowsView {
  void *data = nullptr;
  DType dtype = DType::F32;
  int64_t tokenStride = 0;
  int64_t headStride = 0;

  int64_t offset(int64_t token, int64_t head) const {
    return token * tokenStride + head * headStride;
  }
};

/// Where the keys of each request lie. Without a page table, key k of request b is slot
/// kvStart[b] + k of "page" 0. With one, it is slot k % pageSize of page
/// entries[b * requestStride + k / pageSize]; entries past the live pages are never read.
struct KvLayout {
  const int64_t *kvStart = nullptr;   ///< [num_reqs]; used without a page table
  const int32_t *pageTable = nullptr; ///< [num_reqs, requestStride] or null
  int64_t requestStride = 0;          ///< entries between two requests' rows
  int64_t pageSize = 0;               ///< keys per page
};

/// K or V: strides in elements, last dim contiguous. NHD, HND and interleaved caches are strides.
struct KvView {
  const void *data = nullptr;
  DType dtype = DType::F32;
  int64_t pageStride = 0;
  int64_t slotStride = 0;
  int64_t headStride = 0;

  /// Element offset of the row of key `k` of request `b`, 64-bit throughout.
  int64_t offset(const KvLayout &layout, int64_t b, int64_t k, int64_t kvHead) const {
    if (!layout.pageTable)
      return (layout.kvStart[b] + k) * slotStride + kvHead * headStride;
    int64_t page = layout.pageTable[b * layout.requestStride + k / layout.pageSize];
    return page * pageStride + (k % layout.pageSize) * slotStride + kvHead * headStride;
  }
};

} // namespace attn::core

#endif // ATTN_CORE_TENSOR_H
