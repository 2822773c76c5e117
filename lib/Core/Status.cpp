// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Core/Status.h"

#include <cstdio>

std::string attn::core::oneLine(std::string message) {
  constexpr size_t kMost = 1500;
  const auto isControl = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  std::string line;
  size_t i = 0;
  for (; i < message.size() && line.size() < kMost; ++i) {
    if (!isControl(message[i])) {
      line += message[i];
      continue;
    }
    char escape[8];
    std::snprintf(escape, sizeof(escape), "\\u%04x", static_cast<unsigned char>(message[i]));
    line += escape;
  }
  if (i == message.size())
    return line;
  // Not in the middle of a character.
  while (!line.empty() && (static_cast<unsigned char>(message[i]) & 0xC0) == 0x80) {
    line.pop_back();
    --i;
  }
  return line + "...";
}
