// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory of the caller's: an address and a number of elements.
#ifndef ATTN_RUNTIME_SPAN_H
#define ATTN_RUNTIME_SPAN_H

#include <cstdint>
#include <type_traits>
#include <vector>

namespace attn::rt {

/// Owns nothing. Span<const T> is made from a Span<T>, and both from vectors.
template <class T>
struct Span {
  T *data = nullptr;
  int64_t size = 0;

  constexpr Span() = default;
  constexpr Span(T *data, int64_t size) : data(data), size(size) {}
  Span(std::vector<std::remove_const_t<T>> &values)
      : data(values.data()), size(static_cast<int64_t>(values.size())) {}
  template <class U = T, class = std::enable_if_t<std::is_const_v<U>>>
  Span(const std::vector<std::remove_const_t<T>> &values)
      : data(values.data()), size(static_cast<int64_t>(values.size())) {}
  template <class U = T, class = std::enable_if_t<std::is_const_v<U>>>
  constexpr Span(const Span<std::remove_const_t<T>> &other) : data(other.data), size(other.size) {}

  constexpr T &operator[](int64_t i) const { return data[i]; }
  constexpr T *begin() const { return data; }
  constexpr T *end() const { return data + size; }
};

} // namespace attn::rt

#endif // ATTN_RUNTIME_SPAN_H
