// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the records of a schedule can hold, and the caller's memory for them.
#ifndef ATTN_RUNTIME_RECORDLIMITS_H
#define ATTN_RUNTIME_RECORDLIMITS_H

#include "attn/Core/Status.h"

#include <limits>
#include <string>
#include <string_view>

namespace attn::rt {

/// Refuses a value that a 32-bit field of the records cannot hold. `schedule` begins the message
/// ("work list").
inline core::Status checkFits(const char *schedule, std::string_view what, int64_t value) {
  constexpr int64_t kLargest = std::numeric_limits<int32_t>::max();
  if (value <= kLargest)
    return {};
  return core::Error{std::string(schedule) + ": " + std::string(what) + " " +
                     std::to_string(value) + " passes " + std::to_string(kLargest) +
                     ", the largest in its records"};
}

/// Refuses memory for `room` records where there are `size`.
inline core::Status checkRoom(const char *schedule, const char *what, int64_t size, int64_t room) {
  if (size <= room)
    return {};
  return core::Error{std::string(schedule) + ": memory for " + std::to_string(room) + " " + what +
                     ", expected " + std::to_string(size)};
}

} // namespace attn::rt

#endif // ATTN_RUNTIME_RECORDLIMITS_H
