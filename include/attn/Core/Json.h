// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// JSON values, a strict reader and a writer. Integers that fit int64 are kept exact, every double
// prints so that it reads back equal, objects keep the order of their members, and each parsed
// value remembers where it stood, so that a later check can say which line it refuses.
//
// Refused: duplicate keys, text after the value, nesting deeper than 64, numbers that do not fit,
// NaN and infinities, invalid UTF-8, unknown escapes, lone surrogates. Errors start with
// "line L, column C: " (columns count characters).
#ifndef ATTN_CORE_JSON_H
#define ATTN_CORE_JSON_H

#include "attn/Core/Status.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attn::core {

class JsonValue {
public:
  enum class Kind : uint8_t { Null, Bool, Int, Double, String, Array, Object };
  struct Member;

  JsonValue() = default; ///< null
  static JsonValue boolean(bool v);
  static JsonValue integer(int64_t v);
  /// A finite double; NaN and infinities have no spelling in JSON and print as null.
  static JsonValue number(double v);
  static JsonValue string(std::string v);
  static JsonValue array();
  static JsonValue object();

  Kind kind() const { return valueKind; }
  bool isNull() const { return valueKind == Kind::Null; }
  bool isBool() const { return valueKind == Kind::Bool; }
  bool isInt() const { return valueKind == Kind::Int; }
  /// An integer or a double.
  bool isNumber() const { return valueKind == Kind::Int || valueKind == Kind::Double; }
  bool isString() const { return valueKind == Kind::String; }
  bool isArray() const { return valueKind == Kind::Array; }
  bool isObject() const { return valueKind == Kind::Object; }

  // The value, where the kind is the right one; zero or empty otherwise.
  bool asBool() const { return valueKind == Kind::Bool && intValue != 0; }
  int64_t asInt() const { return valueKind == Kind::Int ? intValue : 0; }
  double asDouble() const;
  const std::string &asString() const { return stringValue; }
  const std::vector<JsonValue> &elements() const { return arrayElements; }
  const std::vector<Member> &members() const { return objectMembers; }
  /// Member `key` of an object, or null.
  const JsonValue *find(std::string_view key) const;

  /// Appends to an array.
  void push(JsonValue value);
  /// Appends a member to an object; the key must be new.
  void set(std::string key, JsonValue value, int32_t keyLine = 0, int32_t keyColumn = 0);

  /// Where the value started, from 1; 0 for values that were not parsed.
  int32_t line = 0;
  int32_t column = 0;

private:
  Kind valueKind = Kind::Null;
  int64_t intValue = 0;
  double doubleValue = 0;
  std::string stringValue;
  std::vector<JsonValue> arrayElements;
  std::vector<Member> objectMembers;
};

struct JsonValue::Member {
  std::string key;
  JsonValue value;
  int32_t line = 0; ///< of the key
  int32_t column = 0;
};

/// "an integer", "a string", ... for messages.
std::string_view describe(JsonValue::Kind kind);

/// Reads exactly one value.
Result<JsonValue> parseJson(std::string_view text);

/// Writes a value. With `pretty`, objects and arrays too long for a line are spread over indented
/// lines; without it, everything is on one line.
std::string writeJson(const JsonValue &value, bool pretty = true);

/// Error about a parsed value: "line 3, column 7: requests[1].query_len: text". An empty path and
/// an unknown place are left out.
Error errorAt(const JsonValue &value, std::string_view path, std::string_view text);

/// Path of a member or an element: "requests[1].mm_ranges", "requests[1].mm_ranges[0]".
std::string memberPath(std::string_view path, std::string_view key);
std::string elementPath(std::string_view path, size_t index);

// One value as a type, with an error that names place, expectation and what was there.
Result<int64_t> readInteger(const JsonValue &value, std::string_view path,
                            int64_t min = std::numeric_limits<int64_t>::min(),
                            int64_t max = std::numeric_limits<int64_t>::max());
/// Any number, integers included.
Result<double> readNumber(const JsonValue &value, std::string_view path);
Result<bool> readBool(const JsonValue &value, std::string_view path);
Result<std::string> readString(const JsonValue &value, std::string_view path);
Status expectKind(const JsonValue &value, std::string_view path, JsonValue::Kind kind);

/// Reads the members of one object by name. The first fault sticks: after it every accessor returns
/// an empty value, and finish() returns it. finish() also refuses members that were never asked
/// for.
///
///   ObjectReader reader(value, "requests[1]");
///   int64_t queryLen = reader.integer("query_len", 0, kPositionLimit);
///   if (const JsonValue *ranges = reader.optionalArray("mm_ranges")) ...
///   if (Status s = reader.finish(); !s) return ...
class ObjectReader {
public:
  static constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  static constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

  /// `path` names the object in messages; empty for the root.
  ObjectReader(const JsonValue &object, std::string path);

  /// The member, or null. Marks it as read.
  const JsonValue *optional(std::string_view key);
  /// The member; an error if there is none.
  const JsonValue *required(std::string_view key);

  int64_t integer(std::string_view key, int64_t min = kMin, int64_t max = kMax);
  double number(std::string_view key);
  bool boolean(std::string_view key);
  std::string string(std::string_view key);
  const JsonValue *array(std::string_view key);
  const JsonValue *object(std::string_view key);

  std::optional<int64_t> optionalInteger(std::string_view key, int64_t min = kMin,
                                         int64_t max = kMax);
  std::optional<double> optionalNumber(std::string_view key);
  std::optional<bool> optionalBoolean(std::string_view key);
  std::optional<std::string> optionalString(std::string_view key);
  const JsonValue *optionalArray(std::string_view key);
  const JsonValue *optionalObject(std::string_view key);

  /// Path of a member, for nested readers and messages.
  std::string path(std::string_view key) const { return memberPath(objectPath, key); }
  /// Records a fault found by the caller; later ones are dropped.
  void fail(Error error);
  void fail(const JsonValue &at, std::string_view key, std::string_view text);
  bool ok() const { return !fault; }
  /// The first fault, or the first member that nobody asked for, or success.
  Status finish();

private:
  /// Asks for `key` and applies `read` to it.
  template <class T, class Read>
  std::optional<T> convert(const JsonValue *member, std::string_view key, Read read);
  const JsonValue *ofKind(const JsonValue *member, std::string_view key, JsonValue::Kind kind);

  const JsonValue &source;
  std::string objectPath;
  std::vector<std::string> asked;
  std::vector<bool> used;
  std::optional<Error> fault;
};

} // namespace attn::core

#endif // ATTN_CORE_JSON_H
