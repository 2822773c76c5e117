// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls LLVMFuzzerTestOneInput with mutations of files, for compilers without libFuzzer: it does
// not watch which code an input reaches, but knows what tokens are.
//
// usage: DRIVER SECONDS SEED FILE...
#include <cctype>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

using Random = std::mt19937_64;

static size_t below(Random &random, size_t limit) { return limit ? random() % limit : 0; }

static bool isWord(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '%';
}

/// Begin and end of the token around `at`.
static std::pair<size_t, size_t> tokenAt(const std::string &text, size_t at) {
  size_t begin = at, end = at + 1;
  if (!isWord(text[at]))
    return {begin, end};
  while (begin > 0 && isWord(text[begin - 1]))
    --begin;
  while (end < text.size() && isWord(text[end]))
    ++end;
  return {begin, end};
}

static std::string randomToken(Random &random, const std::string &other) {
  static const char *const kTokens[] = {"{",
                                        "}",
                                        "[",
                                        "]",
                                        ";",
                                        ":",
                                        "|",
                                        "!",
                                        "@",
                                        "-",
                                        "_",
                                        "::",
                                        ".",
                                        "<",
                                        ">",
                                        "\"",
                                        "//",
                                        "/*",
                                        "*/",
                                        "\n",
                                        "0x",
                                        "0f",
                                        "0f3F800000",
                                        "18446744073709551616",
                                        "-9223372036854775808",
                                        "%tid.x",
                                        ".reg .b32 x;",
                                        ".reg .pred %p<2147483647>;",
                                        ".shared .b8 x[2147483647];",
                                        "bra L;",
                                        "L:",
                                        ".loc 1 2 3",
                                        ".section .x {",
                                        ".extern .shared .b8 e[];",
                                        ".visible .entry",
                                        ".pragma \"x\";"};
  size_t count = std::size(kTokens);
  size_t choice = below(random, count + 8);
  if (choice < count)
    return kTokens[choice];
  if (other.empty())
    return "";
  auto [begin, end] = tokenAt(other, below(random, other.size()));
  return other.substr(begin, end - begin);
}

static void mutate(Random &random, std::string &text, const std::string &other) {
  size_t at = below(random, text.size());
  size_t length = below(random, 1 + below(random, 200));
  switch (text.empty() ? 3 : below(random, 8)) {
  case 0: // a bit
    text[at] = static_cast<char>(text[at] ^ (1 << below(random, 8)));
    break;
  case 1: // a piece is lost
    text.erase(at, length);
    break;
  case 2: // a piece again
    text.insert(at, text.substr(below(random, text.size()), length));
    break;
  case 3: // a piece of the other file
    if (!other.empty())
      text.insert(at, other.substr(below(random, other.size()), length));
    break;
  case 4: // the end is lost
    text.resize(at);
    break;
  case 5: { // a token for another
    auto [begin, end] = tokenAt(text, at);
    text.replace(begin, end - begin, randomToken(random, other));
    break;
  }
  case 6: // a token more, now and then very often
    for (size_t i = below(random, 50) ? 1 : below(random, 500); i > 0; --i)
      text.insert(at, randomToken(random, other));
    break;
  default: { // a token less
    auto [begin, end] = tokenAt(text, at);
    text.erase(begin, end - begin);
    break;
  }
  }
}

int main(int argc, char **argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: %s SECONDS SEED FILE...\n", argv[0]);
    return 2;
  }
  std::vector<std::string> files;
  for (int i = 3; i < argc; ++i) {
    std::ifstream file(argv[i], std::ios::binary);
    if (!file) {
      std::fprintf(stderr, "cannot read %s\n", argv[i]);
      return 2;
    }
    files.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  double seconds = std::atof(argv[1]);
  Random random(std::strtoull(argv[2], nullptr, 10));
  auto start = std::chrono::steady_clock::now();
  uint64_t inputs = 0;
  while (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() <
         seconds) {
    std::string text = files[below(random, files.size())];
    const std::string &other = files[below(random, files.size())];
    for (size_t changes = below(random, 2) ? below(random, 3) : below(random, 30); changes > 0;
         --changes)
      mutate(random, text, other);
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t *>(text.data()), text.size());
    ++inputs;
  }
  std::printf("%llu inputs in %.0f s\n", static_cast<unsigned long long>(inputs), seconds);
  return inputs ? 0 : 1;
}
