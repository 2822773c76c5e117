// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The third truth: what each mask keeps, written by hand from the table of the language, one
// sentence of the table a function. Judges the reference and the native path, so it includes no
// header of the project and knows nothing of how they compute.
#ifndef ATTN_TEST_EXECUTION_PREDICATES_H
#define ATTN_TEST_EXECUTION_PREDICATES_H

#include <vector>

namespace truth {

using Int = long long;

/// Both ends included, absolute positions, as a user writes it.
struct Range {
  Int start;
  Int end;
};

/// One request. `documents` holds the id of each key position.
struct Request {
  Int queryLen = 0;
  Int seqLen = 0;
  Int contextLen = 0;
  std::vector<Range> ranges;
  std::vector<int> documents;
};

/// A request whose queries are its last ones.
inline Request request(Int queryLen, Int seqLen) {
  Request r;
  r.queryLen = queryLen;
  r.seqLen = seqLen;
  r.contextLen = seqLen - queryLen;
  return r;
}

inline bool causal(Int q, Int k) { return k <= q; }

inline bool windowLeft(Int q, Int k, Int left) { return q - k <= left; }

inline bool windowRight(Int q, Int k, Int right) { return k - q <= right; }

inline bool window(Int q, Int k, Int left, Int right) { return q - k <= left && k - q <= right; }

inline bool sliding(Int q, Int k, Int count) { return q - k < count; }

inline bool live(const Request &r, const Range &range) {
  return range.start < range.end && range.start < r.seqLen;
}

inline bool mmPrefix(const Request &r, Int q, Int k) {
  for (const Range &range : r.ranges)
    if (live(r, range) && range.start <= q && q <= range.end && range.start <= k && k <= range.end)
      return true;
  return false;
}

inline bool mmPrefixClamp(const Request &r, Int q, Int k, Int left) {
  return mmPrefix(r, q, k) && q - k <= left;
}

inline bool prefix(Int k, Int n) { return k < n; }

inline bool document(const Request &r, Int q, Int k) {
  const Int length = static_cast<Int>(r.documents.size());
  if (q < 0 || q >= length || k < 0 || k >= length)
    return false;
  return r.documents[q] == r.documents[k];
}

inline bool global(Int q, Int k, Int n) { return k < n || q < n; }

inline bool inRows(Int k, Int lo, Int hi) { return lo <= k && k < hi; }

/// k lies between the first start and the last end of the ranges that hold q.
inline bool inQueryRange(const Request &r, Int q, Int k) {
  bool found = false;
  Int first = 0;
  Int last = 0;
  for (const Range &range : r.ranges) {
    if (!live(r, range) || q < range.start || q > range.end)
      continue;
    first = !found || range.start < first ? range.start : first;
    last = !found || range.end > last ? range.end : last;
    found = true;
  }
  return found && first <= k && k <= last;
}

} // namespace truth

#endif // ATTN_TEST_EXECUTION_PREDICATES_H
