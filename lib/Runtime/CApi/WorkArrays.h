// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arrays of the caller's that a call fills: capacities are checked before the first is written.
#ifndef ATTN_LIB_RUNTIME_CAPI_WORKARRAYS_H
#define ATTN_LIB_RUNTIME_CAPI_WORKARRAYS_H

#include "Support.h"

#include "attn-c/Engine.h"

#include "attn/Runtime/WorkList.h"

#include <cstddef>
#include <cstring>
#include <vector>

namespace attn::capi {

/// Records have one layout on both sides.
#define ATTN_SAME_RECORD(ours, theirs)                                                             \
  static_assert(sizeof(ours) == sizeof(theirs) && alignof(ours) == alignof(theirs), "one layout")
ATTN_SAME_RECORD(attn_work_item, core::WorkItem);
ATTN_SAME_RECORD(attn_query_tile, core::TileHeader);
ATTN_SAME_RECORD(attn_tile_entry, core::TileEntry);
static_assert(offsetof(attn_query_tile, is_bound) == offsetof(core::TileHeader, isBound) &&
                  offsetof(attn_query_tile, halves) == offsetof(core::TileHeader, halves),
              "one layout");
static_assert(ATTN_GROUP_ROWS == core::kGroupRows && ATTN_VISIBLE_WORDS == core::kVisibleWords &&
                  uint32_t(ATTN_GROUP_SKIP) == core::kGroupSkip &&
                  uint32_t(ATTN_GROUP_PARTIAL) == core::kGroupPartial &&
                  uint32_t(ATTN_GROUP_FULL) == core::kGroupFull,
              "the same on both sides");

class ArrayWriter {
public:
  explicit ArrayWriter(const char *name) : name(name) {}

  /// An array of the struct's: `what` is its member without "_capacity". `unit`: elements of
  /// `values` that count as one. Its number is set at once.
  template <class To, class From>
  void array(const char *what, To *to, int64_t capacity, int64_t &number,
             const std::vector<From> &values, int64_t unit = 1) {
    static_assert(sizeof(To) == sizeof(From), "one layout");
    number = static_cast<int64_t>(values.size()) / unit;
    isSizesOnly |= !to && number > 0;
    if (capacity < number && fault.empty())
      fault = std::string(name) + "." + what + "_capacity is " + std::to_string(capacity) +
              ", expected at least " + std::to_string(number);
    copies.push_back({to, values.data(), values.size() * sizeof(From)});
  }
  /// Writes all arrays, or none: where one is null, or too small.
  attn_status finish() const {
    if (isSizesOnly)
      return ATTN_OK;
    if (!fault.empty())
      return Failure(ATTN_TOO_LARGE, fault);
    for (const Copy &copy : copies)
      if (copy.bytes)
        std::memcpy(copy.to, copy.from, copy.bytes);
    return ATTN_OK;
  }

private:
  struct Copy {
    void *to;
    const void *from;
    size_t bytes;
  };
  const char *name;
  std::vector<Copy> copies;
  std::string fault;
  bool isSizesOnly = false;
};

} // namespace attn::capi

#endif // ATTN_LIB_RUNTIME_CAPI_WORKARRAYS_H
