// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Typed access to parsed JSON, with errors that name place, expectation and what was there.
#include "attn/Core/Json.h"

#include <algorithm>
#include <cmath>

namespace attn::core {

static Error placedError(int32_t line, int32_t column, std::string_view path,
                         std::string_view text) {
  std::string message;
  if (line > 0)
    message = "line " + std::to_string(line) + ", column " + std::to_string(column) + ": ";
  if (!path.empty())
    message.append(path).append(": ");
  return Error{oneLine(message.append(text))};
}

Error errorAt(const JsonValue &value, std::string_view path, std::string_view text) {
  return placedError(value.line, value.column, path, text);
}

std::string memberPath(std::string_view path, std::string_view key) {
  std::string result(path);
  if (!result.empty())
    result += '.';
  return result.append(key);
}

std::string elementPath(std::string_view path, size_t index) {
  return std::string(path) + "[" + std::to_string(index) + "]";
}

static Error wrongKind(const JsonValue &value, std::string_view path, std::string_view wanted) {
  std::string text("expected ");
  return errorAt(value, path, text.append(wanted).append(", got ").append(describe(value.kind())));
}

static std::string describeRange(int64_t min, int64_t max) {
  if (max == std::numeric_limits<int64_t>::max())
    return "at least " + std::to_string(min);
  if (min == std::numeric_limits<int64_t>::min())
    return "at most " + std::to_string(max);
  return std::to_string(min) + " to " + std::to_string(max);
}

Result<int64_t> readInteger(const JsonValue &value, std::string_view path, int64_t min,
                            int64_t max) {
  constexpr double kInt64Limit = 0x1p63;
  if (value.isNumber() && !value.isInt() && std::abs(value.asDouble()) >= kInt64Limit)
    return errorAt(value, path,
                   "expected an integer of at most 64 bits, got " +
                       writeJson(JsonValue::number(value.asDouble())));
  if (!value.isInt())
    return wrongKind(value, path, "an integer");
  int64_t v = value.asInt();
  if (v < min || v > max)
    return errorAt(value, path,
                   "expected an integer, " + describeRange(min, max) + ", got " +
                       std::to_string(v));
  return v;
}

Result<double> readNumber(const JsonValue &value, std::string_view path) {
  if (!value.isNumber())
    return wrongKind(value, path, "a number");
  return value.asDouble();
}

Result<bool> readBool(const JsonValue &value, std::string_view path) {
  if (!value.isBool())
    return wrongKind(value, path, "a boolean");
  return value.asBool();
}

Result<std::string> readString(const JsonValue &value, std::string_view path) {
  if (!value.isString())
    return wrongKind(value, path, "a string");
  return value.asString();
}

Status expectKind(const JsonValue &value, std::string_view path, JsonValue::Kind kind) {
  if (value.kind() != kind)
    return wrongKind(value, path, describe(kind));
  return {};
}

//===----------------------------------------------------------------------===//
// ObjectReader
//===----------------------------------------------------------------------===//

ObjectReader::ObjectReader(const JsonValue &object, std::string path)
    : source(object), objectPath(std::move(path)), used(object.members().size(), false) {
  if (!object.isObject())
    fault = wrongKind(object, objectPath, "an object");
}

void ObjectReader::fail(Error error) {
  if (!fault)
    fault = std::move(error);
}

void ObjectReader::fail(const JsonValue &at, std::string_view key, std::string_view text) {
  fail(errorAt(at, path(key), text));
}

const JsonValue *ObjectReader::optional(std::string_view key) {
  if (std::find(asked.begin(), asked.end(), key) == asked.end())
    asked.emplace_back(key);
  const std::vector<JsonValue::Member> &members = source.members();
  for (size_t i = 0; i < members.size(); ++i)
    if (members[i].key == key) {
      used[i] = true;
      return fault ? nullptr : &members[i].value;
    }
  return nullptr;
}

const JsonValue *ObjectReader::required(std::string_view key) {
  const JsonValue *member = optional(key);
  if (!member)
    fail(errorAt(source, objectPath, "missing key '" + std::string(key) + "'"));
  return member;
}

template <class T, class Read>
std::optional<T> ObjectReader::convert(const JsonValue *member, std::string_view key, Read read) {
  if (!member)
    return std::nullopt;
  Result<T> result = read(*member, path(key));
  if (result)
    return std::move(*result);
  fail(result.takeError());
  return std::nullopt;
}

const JsonValue *ObjectReader::ofKind(const JsonValue *member, std::string_view key,
                                      JsonValue::Kind kind) {
  if (!member)
    return nullptr;
  if (member->kind() == kind)
    return member;
  fail(wrongKind(*member, path(key), describe(kind)));
  return nullptr;
}

int64_t ObjectReader::integer(std::string_view key, int64_t min, int64_t max) {
  required(key);
  return optionalInteger(key, min, max).value_or(0);
}

std::optional<int64_t> ObjectReader::optionalInteger(std::string_view key, int64_t min,
                                                     int64_t max) {
  return convert<int64_t>(optional(key), key, [&](const JsonValue &v, const std::string &p) {
    return readInteger(v, p, min, max);
  });
}

double ObjectReader::number(std::string_view key) {
  required(key);
  return optionalNumber(key).value_or(0);
}

std::optional<double> ObjectReader::optionalNumber(std::string_view key) {
  return convert<double>(optional(key), key, readNumber);
}

bool ObjectReader::boolean(std::string_view key) {
  required(key);
  return optionalBoolean(key).value_or(false);
}

std::optional<bool> ObjectReader::optionalBoolean(std::string_view key) {
  return convert<bool>(optional(key), key, readBool);
}

std::string ObjectReader::string(std::string_view key) {
  required(key);
  return optionalString(key).value_or("");
}

std::optional<std::string> ObjectReader::optionalString(std::string_view key) {
  return convert<std::string>(optional(key), key, readString);
}

const JsonValue *ObjectReader::array(std::string_view key) {
  return ofKind(required(key), key, JsonValue::Kind::Array);
}

const JsonValue *ObjectReader::optionalArray(std::string_view key) {
  return ofKind(optional(key), key, JsonValue::Kind::Array);
}

const JsonValue *ObjectReader::object(std::string_view key) {
  return ofKind(required(key), key, JsonValue::Kind::Object);
}

const JsonValue *ObjectReader::optionalObject(std::string_view key) {
  return ofKind(optional(key), key, JsonValue::Kind::Object);
}

Status ObjectReader::finish() {
  if (fault)
    return *fault;
  const std::vector<JsonValue::Member> &members = source.members();
  for (size_t i = 0; i < members.size(); ++i) {
    if (used[i])
      continue;
    std::string text = "unknown key '" + members[i].key + "'";
    for (size_t j = 0; j < asked.size(); ++j)
      text.append(j == 0 ? ", expected one of " : ", ").append(asked[j]);
    return placedError(members[i].line, members[i].column, objectPath, text);
  }
  return {};
}

} // namespace attn::core
