// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Index spaces of a batch, as types. `token` is a row of the packed query tensor, `q` an absolute
// position of a request: with more than one request, or with any context, they differ, so neither
// converts to the other. BatchShape (Batch.h) is the one place that maps between them.
#ifndef ATTN_CORE_INDEXSPACES_H
#define ATTN_CORE_INDEXSPACES_H

#include <cstdint>

namespace attn::core {

/// Positions q and k lie in (-kPositionLimit, kPositionLimit); "no limit" is kPositionLimit.
/// 2^30 keeps every difference of two positions, and every bit-mask form of a bound relative to a
/// tile, inside 32 bits.
constexpr int64_t kPositionLimit = int64_t(1) << 30;

/// An integer that belongs to one index space.
template <class Space>
struct SpaceIndex {
  int64_t value = 0;

  constexpr SpaceIndex() = default;
  constexpr explicit SpaceIndex(int64_t v) : value(v) {}

  friend constexpr bool operator==(SpaceIndex a, SpaceIndex b) { return a.value == b.value; }
  friend constexpr bool operator!=(SpaceIndex a, SpaceIndex b) { return a.value != b.value; }
  friend constexpr bool operator<(SpaceIndex a, SpaceIndex b) { return a.value < b.value; }
  friend constexpr bool operator<=(SpaceIndex a, SpaceIndex b) { return a.value <= b.value; }
  friend constexpr bool operator>(SpaceIndex a, SpaceIndex b) { return a.value > b.value; }
  friend constexpr bool operator>=(SpaceIndex a, SpaceIndex b) { return a.value >= b.value; }
  friend constexpr SpaceIndex operator+(SpaceIndex a, int64_t n) { return SpaceIndex(a.value + n); }
  friend constexpr SpaceIndex operator-(SpaceIndex a, int64_t n) { return SpaceIndex(a.value - n); }
  friend constexpr int64_t operator-(SpaceIndex a, SpaceIndex b) { return a.value - b.value; }
  constexpr SpaceIndex &operator++() {
    ++value;
    return *this;
  }
};

/// Request `b` of the batch, 0 <= b < num_reqs.
using RequestIndex = SpaceIndex<struct RequestSpace>;
/// Query head `h`; its key/value head is h / (num_heads / num_kv_heads).
using HeadIndex = SpaceIndex<struct HeadSpace>;
/// Row of the packed query tensor: query_start_loc[b] + q_local.
using TokenIndex = SpaceIndex<struct TokenSpace>;
/// Absolute query position: context_len[b] + q_local; negative where queries outnumber keys.
using QueryPos = SpaceIndex<struct QuerySpace>;
/// Absolute key position, 0 <= k < seq_len[b].
using KeyPos = SpaceIndex<struct KeySpace>;

/// How much older key `k` is than query `q`; negative for future keys.
constexpr int64_t distance(QueryPos q, KeyPos k) { return q.value - k.value; }

} // namespace attn::core

#endif // ATTN_CORE_INDEXSPACES_H
