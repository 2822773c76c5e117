// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// JSON values, reader and writer.
#include "attn/Core/Json.h"

#include <charconv>
#include <cmath>
#include <unordered_set>

namespace attn::core {

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

JsonValue JsonValue::boolean(bool v) {
  JsonValue r;
  r.valueKind = Kind::Bool;
  r.intValue = v;
  return r;
}

JsonValue JsonValue::integer(int64_t v) {
  JsonValue r;
  r.valueKind = Kind::Int;
  r.intValue = v;
  return r;
}

JsonValue JsonValue::number(double v) {
  JsonValue r;
  r.valueKind = Kind::Double;
  r.doubleValue = v;
  return r;
}

JsonValue JsonValue::string(std::string v) {
  JsonValue r;
  r.valueKind = Kind::String;
  r.stringValue = std::move(v);
  return r;
}

JsonValue JsonValue::array() {
  JsonValue r;
  r.valueKind = Kind::Array;
  return r;
}

JsonValue JsonValue::object() {
  JsonValue r;
  r.valueKind = Kind::Object;
  return r;
}

double JsonValue::asDouble() const {
  if (valueKind == Kind::Double)
    return doubleValue;
  return valueKind == Kind::Int ? static_cast<double>(intValue) : 0;
}

const JsonValue *JsonValue::find(std::string_view key) const {
  for (const Member &member : objectMembers)
    if (member.key == key)
      return &member.value;
  return nullptr;
}

void JsonValue::push(JsonValue value) { arrayElements.push_back(std::move(value)); }

void JsonValue::set(std::string key, JsonValue value, int32_t keyLine, int32_t keyColumn) {
  objectMembers.push_back({std::move(key), std::move(value), keyLine, keyColumn});
}

std::string_view describe(JsonValue::Kind kind) {
  switch (kind) {
  case JsonValue::Kind::Null:
    return "null";
  case JsonValue::Kind::Bool:
    return "a boolean";
  case JsonValue::Kind::Int:
    return "an integer";
  case JsonValue::Kind::Double:
    return "a number";
  case JsonValue::Kind::String:
    return "a string";
  case JsonValue::Kind::Array:
    return "an array";
  case JsonValue::Kind::Object:
    return "an object";
  }
  return "a value";
}

//===----------------------------------------------------------------------===//
// Parser
//===----------------------------------------------------------------------===//

namespace {

constexpr int kMaxDepth = 64;

bool isDigit(char c) { return c >= '0' && c <= '9'; }

/// Length of the valid UTF-8 sequence at the start of `s`, or 0. Overlong forms, surrogates and
/// code points past U+10FFFF are not valid.
size_t utf8Length(std::string_view s) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(s[i]); };
  unsigned char first = byte(0);
  if (first < 0x80)
    return 1;
  size_t n = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || s.size() < n)
    return 0;
  for (size_t i = 1; i < n; ++i)
    if ((byte(i) & 0xC0) != 0x80)
      return 0;
  unsigned char second = byte(1);
  if ((first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) ||
      (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F))
    return 0;
  return n;
}

void appendUtf8(std::string &out, uint32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xC0 | (c >> 6));
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xE0 | (c >> 12));
    out += static_cast<char>(0x80 | ((c >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | (c >> 18));
    out += static_cast<char>(0x80 | ((c >> 12) & 0x3F));
    out += static_cast<char>(0x80 | ((c >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  }
}

/// Recursive descent; every function returns false after it has set `error`.
class Parser {
public:
  explicit Parser(std::string_view text) : text(text) {}

  Result<JsonValue> parse() {
    JsonValue value;
    if (!parseValue(value, 0))
      return std::move(*error);
    skipSpace();
    if (pos != text.size()) {
      fail("unexpected text after the value");
      return std::move(*error);
    }
    return value;
  }

private:
  bool fail(std::string_view what) { return failFrom(line, column(), what); }
  bool failFrom(int32_t atLine, int32_t atColumn, std::string_view what) {
    error = Error{oneLine("line " + std::to_string(atLine) + ", column " +
                          std::to_string(atColumn) + ": " + std::string(what))};
    return false;
  }

  /// Characters before `pos` on its line, from 1. Only continuation bytes are not counted.
  int32_t column() const {
    int32_t n = 1 + counted;
    for (size_t i = countedTo; i < pos; ++i)
      n += (static_cast<unsigned char>(text[i]) & 0xC0) != 0x80;
    return n;
  }
  /// Moves the start of the column count to `pos`, so that long lines stay linear.
  void settleColumn() {
    counted = column() - 1;
    countedTo = pos;
  }

  void skipSpace() {
    for (; pos < text.size(); ++pos) {
      char c = text[pos];
      if (c == '\n') {
        ++line;
        counted = 0;
        countedTo = pos + 1;
      } else if (c != ' ' && c != '\t' && c != '\r') {
        break;
      }
    }
    settleColumn();
  }

  bool unexpected(std::string_view wanted) {
    std::string what = "expected " + std::string(wanted) + ", got ";
    if (pos >= text.size())
      return fail(what + "the end of the text");
    size_t n = utf8Length(text.substr(pos));
    unsigned char c = static_cast<unsigned char>(text[pos]);
    if (n == 0)
      return fail("invalid UTF-8");
    if (c < 0x20 || c == 0x7F)
      return fail(what + "a control character");
    return fail(what + "'" + std::string(text.substr(pos, n)) + "'");
  }

  bool parseValue(JsonValue &out, int depth) {
    skipSpace();
    int32_t atLine = line, atColumn = column();
    if (!parseUnplaced(out, depth))
      return false;
    out.line = atLine;
    out.column = atColumn;
    return true;
  }

  bool parseUnplaced(JsonValue &out, int depth) {
    if (pos >= text.size())
      return unexpected("a value");
    char c = text[pos];
    if (c == '{' || c == '[') {
      if (depth >= kMaxDepth)
        return fail("nesting deeper than " + std::to_string(kMaxDepth) + " levels");
      return c == '{' ? parseObject(out, depth + 1) : parseArray(out, depth + 1);
    }
    if (c == '"') {
      std::string s;
      if (!parseString(s))
        return false;
      out = JsonValue::string(std::move(s));
      return true;
    }
    if (c == '-' || isDigit(c))
      return parseNumber(out);
    if (takeWord("true")) {
      out = JsonValue::boolean(true);
      return true;
    }
    if (takeWord("false")) {
      out = JsonValue::boolean(false);
      return true;
    }
    if (takeWord("null")) {
      out = JsonValue();
      return true;
    }
    return unexpected("a value");
  }

  bool takeWord(std::string_view word) {
    if (text.substr(pos, word.size()) != word)
      return false;
    char next = pos + word.size() < text.size() ? text[pos + word.size()] : ' ';
    if (isDigit(next) || (next >= 'a' && next <= 'z') || (next >= 'A' && next <= 'Z') ||
        next == '_')
      return false;
    pos += word.size();
    return true;
  }

  bool parseArray(JsonValue &out, int depth) {
    out = JsonValue::array();
    ++pos;
    skipSpace();
    if (pos < text.size() && text[pos] == ']') {
      ++pos;
      return true;
    }
    while (true) {
      JsonValue element;
      if (!parseValue(element, depth))
        return false;
      out.push(std::move(element));
      skipSpace();
      if (pos < text.size() && text[pos] == ']') {
        ++pos;
        return true;
      }
      if (pos >= text.size() || text[pos] != ',')
        return unexpected("',' or ']'");
      ++pos;
    }
  }

  bool parseObject(JsonValue &out, int depth) {
    out = JsonValue::object();
    std::unordered_set<std::string> keys;
    ++pos;
    skipSpace();
    if (pos < text.size() && text[pos] == '}') {
      ++pos;
      return true;
    }
    while (true) {
      skipSpace();
      int32_t keyLine = line, keyColumn = column();
      if (pos >= text.size() || text[pos] != '"')
        return unexpected("a key in quotes");
      std::string key;
      if (!parseString(key))
        return false;
      if (!keys.insert(key).second)
        return failFrom(keyLine, keyColumn, "duplicate key '" + key + "'");
      skipSpace();
      if (pos >= text.size() || text[pos] != ':')
        return unexpected("':'");
      ++pos;
      JsonValue value;
      if (!parseValue(value, depth))
        return false;
      out.set(std::move(key), std::move(value), keyLine, keyColumn);
      skipSpace();
      if (pos < text.size() && text[pos] == '}') {
        ++pos;
        return true;
      }
      if (pos >= text.size() || text[pos] != ',')
        return unexpected("',' or '}'");
      ++pos;
    }
  }

  bool parseString(std::string &out) {
    ++pos;
    while (true) {
      if (pos >= text.size())
        return fail("string without an end");
      unsigned char c = static_cast<unsigned char>(text[pos]);
      if (c == '"') {
        ++pos;
        return true;
      }
      if (c < 0x20)
        return fail("control character in a string");
      if (c == '\\') {
        if (!parseEscape(out))
          return false;
        continue;
      }
      size_t n = utf8Length(text.substr(pos));
      if (n == 0)
        return fail("invalid UTF-8");
      out.append(text.substr(pos, n));
      pos += n;
    }
  }

  bool parseEscape(std::string &out) {
    constexpr std::string_view names = "\"\\/bfnrt", values = "\"\\/\b\f\n\r\t";
    if (pos + 1 >= text.size())
      return fail("string without an end");
    char c = text[pos + 1];
    if (size_t i = names.find(c); i != names.npos) {
      out += values[i];
      pos += 2;
      return true;
    }
    if (c != 'u')
      return fail("unknown escape in a string");
    uint32_t unit = 0;
    if (!hexUnit(pos + 2, unit))
      return fail("\\u needs four hex digits");
    if (unit >= 0xDC00 && unit <= 0xDFFF)
      return fail("lone surrogate in a string");
    if (unit < 0xD800 || unit > 0xDBFF) {
      appendUtf8(out, unit);
      pos += 6;
      return true;
    }
    uint32_t low = 0;
    if (text.substr(pos + 6, 2) != "\\u" || !hexUnit(pos + 8, low) || low < 0xDC00 || low > 0xDFFF)
      return fail("lone surrogate in a string");
    appendUtf8(out, 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00));
    pos += 12;
    return true;
  }

  bool hexUnit(size_t at, uint32_t &unit) const {
    if (at + 4 > text.size())
      return false;
    const char *end = text.data() + at + 4;
    auto [ptr, code] = std::from_chars(text.data() + at, end, unit, 16);
    return code == std::errc() && ptr == end && text[at] != '-';
  }

  bool parseNumber(JsonValue &out) {
    size_t start = pos, i = pos;
    bool integral = true;
    auto digits = [&] {
      size_t first = i;
      while (i < text.size() && isDigit(text[i]))
        ++i;
      return i > first;
    };
    if (text[i] == '-')
      ++i;
    size_t firstDigit = i;
    if (!digits())
      return fail("malformed number");
    if (text[firstDigit] == '0' && i - firstDigit > 1)
      return fail("number with a leading zero");
    if (i < text.size() && text[i] == '.') {
      integral = false;
      ++i;
      if (!digits())
        return fail("malformed number");
    }
    if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
      integral = false;
      ++i;
      if (i < text.size() && (text[i] == '+' || text[i] == '-'))
        ++i;
      if (!digits())
        return fail("malformed number");
    }
    const char *first = text.data() + start, *last = text.data() + i;
    // An integer past 64 bits is a double: a float may be written so, and readInteger refuses it.
    int64_t integer = 0;
    if (integral && std::from_chars(first, last, integer).ec == std::errc()) {
      out = JsonValue::integer(integer);
    } else {
      double v = 0;
      if (std::from_chars(first, last, v).ec != std::errc())
        return fail("number does not fit a double");
      out = JsonValue::number(v);
    }
    pos = i;
    return true;
  }

  std::string_view text;
  size_t pos = 0;
  int32_t line = 1;
  int32_t counted = 0;  ///< characters of the line before `countedTo`
  size_t countedTo = 0; ///< never before the start of the line
  std::optional<Error> error;
};

} // namespace

Result<JsonValue> parseJson(std::string_view text) { return Parser(text).parse(); }

//===----------------------------------------------------------------------===//
// Writer
//===----------------------------------------------------------------------===//

static void writeString(std::string &out, const std::string &s) {
  constexpr char hex[] = "0123456789abcdef";
  out += '"';
  for (char c : s) {
    unsigned char u = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (u < 0x20) {
      out += "\\u00";
      out += hex[u >> 4];
      out += hex[u & 15];
    } else {
      out += c;
    }
  }
  out += '"';
}

static void writeDouble(std::string &out, double v) {
  if (!std::isfinite(v)) {
    out += "null";
    return;
  }
  char buffer[40];
  auto [end, code] = std::to_chars(buffer, buffer + sizeof(buffer), v);
  std::string_view digits(buffer, code == std::errc() ? end - buffer : 0);
  out += digits;
  // A double stays a double when it is read back.
  if (digits.find_first_of(".e") == digits.npos)
    out += ".0";
}

/// Lines that fit are not spread.
constexpr size_t kLineLength = 96;

static void writeValue(std::string &out, const JsonValue &v, bool pretty, size_t indent) {
  switch (v.kind()) {
  case JsonValue::Kind::Null:
    out += "null";
    return;
  case JsonValue::Kind::Bool:
    out += v.asBool() ? "true" : "false";
    return;
  case JsonValue::Kind::Int:
    out += std::to_string(v.asInt());
    return;
  case JsonValue::Kind::Double:
    writeDouble(out, v.asDouble());
    return;
  case JsonValue::Kind::String:
    writeString(out, v.asString());
    return;
  case JsonValue::Kind::Array:
  case JsonValue::Kind::Object:
    break;
  }
  bool spread = pretty;
  if (pretty) {
    std::string line;
    writeValue(line, v, false, indent);
    spread = indent + line.size() > kLineLength;
    if (!spread) {
      out += line;
      return;
    }
  }
  bool isArray = v.isArray();
  size_t count = isArray ? v.elements().size() : v.members().size();
  out += isArray ? '[' : '{';
  for (size_t i = 0; i < count; ++i) {
    if (i > 0)
      out += spread ? "," : ", ";
    if (spread) {
      out += '\n';
      out.append(indent + 2, ' ');
    }
    if (!isArray) {
      writeString(out, v.members()[i].key);
      out += ": ";
    }
    writeValue(out, isArray ? v.elements()[i] : v.members()[i].value, pretty, indent + 2);
  }
  if (spread) {
    out += '\n';
    out.append(indent, ' ');
  }
  out += isArray ? ']' : '}';
}

std::string writeJson(const JsonValue &value, bool pretty) {
  std::string out;
  writeValue(out, value, pretty, 0);
  return out;
}

} // namespace attn::core
