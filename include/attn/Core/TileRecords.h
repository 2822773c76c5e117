// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tile records: for a tile of consecutive queries of one request, the key segments a kernel visits
// and whether each needs the mask.
#ifndef ATTN_CORE_TILERECORDS_H
#define ATTN_CORE_TILERECORDS_H

#include "attn/Core/IndexSpaces.h"

#include <cstdint>
#include <vector>

namespace attn::core {

/// Class bits of a segment; 0 is full (no test needed).
enum SegmentClass : uint32_t {
  kSegmentFull = 0,
  kSegmentPartial = 1, ///< the mask is tested per element
};

/// Key positions [begin, end), clipped to the launch's keys; consecutive key blocks of one class.
struct Segment {
  int64_t begin = 0;
  int64_t end = 0;
  uint32_t cls = kSegmentFull;
};

/// One query tile x head group.
struct TileRecord {
  RequestIndex request;
  QueryPos queryBegin; ///< first query of the tile
  int64_t queryCount = 0;
  HeadIndex headBegin; ///< first head of the group that shares this record
  int64_t headCount = 0;
  std::vector<Segment> segments; ///< ascending, disjoint, not empty
};

} // namespace attn::core

#endif // ATTN_CORE_TILERECORDS_H
