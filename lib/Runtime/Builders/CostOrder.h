// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The order of work, what takes longest first, and its items.
#ifndef ATTN_LIB_RUNTIME_BUILDERS_COSTORDER_H
#define ATTN_LIB_RUNTIME_BUILDERS_COSTORDER_H

#include "attn/Core/CudaAbi.h"
#include "attn/Runtime/Span.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace attn::rt {

/// What the order looks at: a query tile, or its part of one key/value head.
struct Unit {
  uint32_t cost;
  int32_t queryTile;
  int32_t kvHead;
};

/// Sorts units by falling cost; those of equal cost keep their order. `spare` is as long.
inline void sortByCost(Unit *units, Unit *spare, int64_t count) {
  if (count <= 24) {
    for (int64_t i = 1; i < count; ++i) {
      const Unit unit = units[i];
      int64_t j = i;
      for (; j > 0 && units[j - 1].cost < unit.cost; --j)
        units[j] = units[j - 1];
      units[j] = unit;
    }
    return;
  }
  uint32_t most = units[0].cost;
  bool isSorted = true; // as where all requests have the same work
  for (int64_t i = 1; i < count; ++i) {
    isSorted &= units[i].cost <= units[i - 1].cost;
    most = std::max(most, units[i].cost);
  }
  if (isSorted)
    return;
  // Digits of 8 bits of what a cost lacks to the largest, the lowest digit first.
  Unit *from = units, *to = spare;
  for (unsigned shift = 0; shift < 32 && (most >> shift) != 0; shift += 8) {
    int64_t begin[257] = {};
    for (int64_t i = 0; i < count; ++i)
      ++begin[(((most - from[i].cost) >> shift) & 255) + 1];
    for (int i = 0; i < 255; ++i)
      begin[i + 1] += begin[i];
    for (int64_t i = 0; i < count; ++i)
      to[begin[((most - from[i].cost) >> shift) & 255]++] = from[i];
    std::swap(from, to);
  }
  if (from != units)
    std::copy(from, from + count, units);
}

/// The items of units whose heads all share their records. With kHeads 0 `numHeads` says how many
/// there are. Returns past the last item.
template <int kHeads>
core::WorkItem *fillItems(Span<const Unit> units, int32_t firstHead, int32_t numHeads,
                          core::WorkItem *item) {
  const int32_t heads = kHeads ? kHeads : numHeads;
  for (const Unit &unit : units) {
    for (int32_t h = 0; h < heads; ++h)
      item[h] = {unit.queryTile, firstHead + h};
    item += heads;
  }
  return item;
}

inline core::WorkItem *fillItems(Span<const Unit> units, int32_t firstHead, int32_t numHeads,
                                 core::WorkItem *item) {
  switch (numHeads) {
  case 1:
    return fillItems<1>(units, firstHead, 1, item);
  case 2:
    return fillItems<2>(units, firstHead, 2, item);
  case 4:
    return fillItems<4>(units, firstHead, 4, item);
  case 8:
    return fillItems<8>(units, firstHead, 8, item);
  default:
    return fillItems<0>(units, firstHead, numHeads, item);
  }
}

} // namespace attn::rt

#endif // ATTN_LIB_RUNTIME_BUILDERS_COSTORDER_H
