// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Errors of the parts that link no LLVM: a message that names place and reason, or a value.
// Messages are lower case, without full stop, expected before got, in the user's terms:
// "request 1: range 2 [9, 14] ends past seq_len 13".
#ifndef ATTN_CORE_STATUS_H
#define ATTN_CORE_STATUS_H

#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace attn::core {

/// Why a call failed.
struct Error {
  std::string message;
};

/// A message that quotes a file: control characters become escapes, and what makes it longer than
/// 1500 bytes is left out.
std::string oneLine(std::string message);

/// Success, or an Error.
class [[nodiscard]] Status {
public:
  Status() = default;
  /*implicit*/ Status(Error e) : error(std::move(e)) {}
  bool ok() const { return !error; }
  explicit operator bool() const { return ok(); }
  const std::string &message() const { return error->message; }

private:
  std::optional<Error> error;
};

/// A value, or an Error.
template <class T>
class [[nodiscard]] Result {
public:
  /*implicit*/ Result(T value) : state(std::move(value)) {}
  /*implicit*/ Result(Error e) : state(std::move(e)) {}
  bool ok() const { return state.index() == 0; }
  explicit operator bool() const { return ok(); }
  T &operator*() { return std::get<0>(state); }
  const T &operator*() const { return std::get<0>(state); }
  T *operator->() { return &std::get<0>(state); }
  const T *operator->() const { return &std::get<0>(state); }
  const std::string &message() const { return std::get<1>(state).message; }
  Error takeError() { return std::move(std::get<1>(state)); }

private:
  std::variant<T, Error> state;
};

} // namespace attn::core

#endif // ATTN_CORE_STATUS_H
