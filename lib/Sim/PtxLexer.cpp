// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "PtxLexer.h"

#include <algorithm>

namespace attn::sim {

static bool isLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
static bool isDigit(char c) { return c >= '0' && c <= '9'; }
static bool isWordChar(char c) { return isLetter(c) || isDigit(c) || c == '_' || c == '$'; }

/// Value of a digit, 255 if it is none.
static unsigned digitValue(char c) {
  if (isDigit(c))
    return c - '0';
  if (c >= 'a' && c <= 'f')
    return c - 'a' + 10;
  if (c >= 'A' && c <= 'F')
    return c - 'A' + 10;
  return 255;
}

std::string quotePtx(std::string_view text) {
  constexpr size_t kShown = 48;
  static const char kHex[] = "0123456789abcdef";
  std::string result = "'";
  for (char c : text.substr(0, kShown)) {
    if (c >= ' ' && c <= '~') {
      result += c;
    } else {
      auto byte = static_cast<unsigned char>(c);
      result.append("\\x").append(1, kHex[byte >> 4]).append(1, kHex[byte & 15]);
    }
  }
  if (text.size() > kShown)
    result += "...";
  return result += '\'';
}

std::string PtxToken::describe() const {
  if (kind == Kind::End)
    return "the end of the text";
  std::string quoted = quotePtx(text);
  return kind == Kind::Bad ? std::string(problem) + " " + quoted : quoted;
}

PtxToken PtxLexer::take(PtxToken::Kind kind, size_t end) {
  PtxToken token;
  token.kind = kind;
  token.line = line;
  token.text = text.substr(at, end - at);
  at = end;
  return token;
}

PtxToken PtxLexer::bad(const char *problem, size_t end) {
  PtxToken token = take(PtxToken::Kind::Bad, end);
  token.problem = problem;
  // Nothing after it is looked at.
  at = text.size();
  return token;
}

bool PtxLexer::skipBlanks() {
  while (at < text.size()) {
    char c = text[at];
    if (c == '\n') {
      ++line;
      ++at;
    } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') {
      ++at;
    } else if (text.compare(at, 2, "//") == 0) {
      at = std::min(text.find('\n', at), text.size());
    } else if (text.compare(at, 2, "/*") == 0) {
      size_t end = text.find("*/", at + 2);
      if (end == std::string_view::npos)
        return false;
      for (; at < end + 2; ++at)
        line += text[at] == '\n';
    } else {
      break;
    }
  }
  return true;
}

void PtxLexer::skipLine() { at = std::min(text.find('\n', at), text.size()); }

size_t PtxLexer::wordEnd(size_t from) const {
  while (from < text.size() && isWordChar(text[from]))
    ++from;
  return from;
}

PtxToken PtxLexer::name() {
  size_t end = wordEnd(at + 1);
  if (text[at] == '%' && end == at + 1)
    return bad("unexpected character", end);
  return take(PtxToken::Kind::Name, end);
}

PtxToken PtxLexer::dotted() {
  size_t end = wordEnd(at + 1);
  if (end == at + 1)
    return bad("unexpected character", end);
  // ".shared::cta": two colons and a word, as often as they come.
  while (end + 2 < text.size() && text[end] == ':' && text[end + 1] == ':' &&
         isWordChar(text[end + 2]))
    end = wordEnd(end + 2);
  PtxToken token = take(PtxToken::Kind::Dotted, end);
  token.text.remove_prefix(1);
  return token;
}

PtxToken PtxLexer::string() {
  size_t end = at + 1;
  while (end < text.size() && text[end] != '"' && text[end] != '\n')
    ++end;
  if (end == text.size() || text[end] == '\n')
    return bad("string without an end", end);
  PtxToken token = take(PtxToken::Kind::String, end + 1);
  token.text = token.text.substr(1, token.text.size() - 2);
  return token;
}

PtxToken PtxLexer::floatBits(size_t digits) {
  size_t end = wordEnd(at);
  if (end - at != digits + 2)
    return bad(digits == 8 ? "0f takes 8 hexadecimal digits, not"
                           : "0d takes 16 hexadecimal digits, not",
               end);
  uint64_t value = 0;
  for (size_t i = at + 2; i < end; ++i) {
    unsigned digit = digitValue(text[i]);
    if (digit > 15)
      return bad("not a floating-point literal:", end);
    value = value << 4 | digit;
  }
  PtxToken token = take(PtxToken::Kind::Float, end);
  token.value = value;
  token.width = static_cast<int32_t>(digits) * 4;
  return token;
}

PtxToken PtxLexer::number() {
  char marker = at + 1 < text.size() ? text[at + 1] : ' ';
  unsigned base = 10;
  size_t digits = at;
  if (text[at] == '0') {
    if (marker == 'f' || marker == 'F')
      return floatBits(8);
    if (marker == 'd' || marker == 'D')
      return floatBits(16);
    if (marker == 'x' || marker == 'X')
      base = 16;
    else if (marker == 'b' || marker == 'B')
      base = 2;
    else if (isDigit(marker))
      base = 8;
    digits += base == 8 ? 1 : base == 10 ? 0 : 2;
  }
  size_t end = wordEnd(at);
  // U marks an unsigned literal; all of them are 64 bits wide anyway.
  size_t last = end > digits + 1 && text[end - 1] == 'U' ? end - 1 : end;
  if (digits == last)
    return bad("not an integer:", end);
  uint64_t value = 0;
  for (size_t i = digits; i < last; ++i) {
    unsigned digit = digitValue(text[i]);
    if (digit >= base)
      return bad("not an integer:", end);
    if (value > (UINT64_MAX - digit) / base)
      return bad("integer of more than 64 bits", end);
    value = value * base + digit;
  }
  PtxToken token = take(PtxToken::Kind::Integer, end);
  token.value = value;
  return token;
}

PtxToken PtxLexer::next() {
  if (!skipBlanks())
    return bad("comment without an end", text.size());
  if (at == text.size())
    return take(PtxToken::Kind::End, at);
  char c = text[at];
  if (isDigit(c))
    return number();
  if (isLetter(c) || c == '_' || c == '$' || c == '%')
    return name();
  if (c == '.')
    return dotted();
  if (c == '"')
    return string();
  if (std::string_view("@!,;:+-<>()[]{}|=").find(c) == std::string_view::npos)
    return bad("unexpected character", at + 1);
  PtxToken token = take(PtxToken::Kind::Punctuation, at + 1);
  token.punctuation = c;
  return token;
}

} // namespace attn::sim
