// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Core/Json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

using namespace attn::core;

namespace {

JsonValue parsed(std::string_view text) {
  Result<JsonValue> value = parseJson(text);
  EXPECT_TRUE(value.ok()) << text << ": " << (value ? "" : value.message());
  return value ? *value : JsonValue();
}

TEST(Json, Values) {
  JsonValue v = parsed(R"( {"a": [1, -2, 0, 1.5, 1e3, -0.25E-2], "b": {}, "c": [], "d": true,
                           "e": false, "f": null, "g": "x\"\\\/\b\f\n\r\t"} )");
  ASSERT_TRUE(v.isObject());
  ASSERT_EQ(v.members().size(), 7u);
  EXPECT_EQ(v.members()[0].key, "a");
  EXPECT_EQ(v.members()[6].key, "g");
  const std::vector<JsonValue> &a = v.find("a")->elements();
  EXPECT_EQ(a[0].asInt(), 1);
  EXPECT_EQ(a[1].asInt(), -2);
  EXPECT_EQ(a[2].asInt(), 0);
  EXPECT_FALSE(a[3].isInt());
  EXPECT_EQ(a[3].asDouble(), 1.5);
  EXPECT_EQ(a[4].asDouble(), 1000);
  EXPECT_EQ(a[5].asDouble(), -0.0025);
  EXPECT_TRUE(v.find("d")->asBool());
  EXPECT_FALSE(v.find("e")->asBool());
  EXPECT_TRUE(v.find("f")->isNull());
  EXPECT_EQ(v.find("g")->asString(), "x\"\\/\b\f\n\r\t");
  EXPECT_EQ(v.find("h"), nullptr);
}

TEST(Json, IntegersAreExact) {
  EXPECT_EQ(parsed("9223372036854775807").asInt(), INT64_MAX);
  EXPECT_EQ(parsed("-9223372036854775808").asInt(), INT64_MIN);
  EXPECT_EQ(writeJson(JsonValue::integer(INT64_MIN)), "-9223372036854775808");
}

TEST(Json, DoublesRoundTrip) {
  std::mt19937_64 random(11);
  int finite = 0;
  for (int i = 0; i < 200000; ++i) {
    uint64_t bits = random();
    double d;
    std::memcpy(&d, &bits, sizeof(d));
    if (!std::isfinite(d))
      continue;
    ++finite;
    JsonValue back = parsed(writeJson(JsonValue::number(d)));
    ASSERT_EQ(back.kind(), JsonValue::Kind::Double);
    double e = back.asDouble();
    ASSERT_EQ(std::memcmp(&d, &e, sizeof(d)), 0) << d;
  }
  EXPECT_GT(finite, 100000);
  EXPECT_EQ(writeJson(JsonValue::number(1)), "1.0");
  EXPECT_EQ(writeJson(JsonValue::number(0.1)), "0.1");
  EXPECT_EQ(writeJson(JsonValue::number(1e300)), "1e+300");
  EXPECT_TRUE(std::signbit(parsed(writeJson(JsonValue::number(-0.0))).asDouble()));
}

TEST(Json, Unicode) {
  EXPECT_EQ(parsed(R"("\u0041\u00e9\u20ac\ud83d\ude00")").asString(), "A\u00e9\u20ac\U0001F600");
  EXPECT_EQ(parsed("\"\u00e9\u20ac\U0001F600\"").asString(), "\u00e9\u20ac\U0001F600");
  std::string odd("\x01\x1f\"\\\n\t\x7f\u00e9", 9);
  EXPECT_EQ(parsed(writeJson(JsonValue::string(odd))).asString(), odd);
}

TEST(Json, PlacesAreRemembered) {
  JsonValue v = parsed("{\n  \"a\": [1,\n    \"\u00e9\u00e9\", {\"b\": 2}]}");
  EXPECT_EQ(v.line, 1);
  EXPECT_EQ(v.column, 1);
  const JsonValue &a = *v.find("a");
  EXPECT_EQ(a.line, 2);
  EXPECT_EQ(a.column, 8);
  EXPECT_EQ(a.elements()[1].line, 3);
  EXPECT_EQ(a.elements()[1].column, 5);
  EXPECT_EQ(a.elements()[2].column, 11); // characters, not bytes
  EXPECT_EQ(a.elements()[2].members()[0].column, 12);
}

TEST(Json, IntegersPast64BitsAreDoubles) {
  EXPECT_EQ(parsed("9223372036854775807").kind(), JsonValue::Kind::Int);
  EXPECT_EQ(parsed("-9223372036854775808").kind(), JsonValue::Kind::Int);
  for (const char *text :
       {"9223372036854775808", "-9223372036854775809", "[123456789012345678901234567890]"}) {
    const JsonValue root = parsed(text);
    const JsonValue &v = root.isArray() ? root.elements()[0] : root;
    EXPECT_EQ(v.kind(), JsonValue::Kind::Double) << text;
    Result<double> number = readNumber(v, "x");
    ASSERT_TRUE(number) << text;
    EXPECT_EQ(*number, std::strtod(text + root.isArray(), nullptr));
    Result<int64_t> integer = readInteger(v, "x");
    ASSERT_FALSE(integer) << text;
    EXPECT_NE(integer.message().find("x: expected an integer of at most 64 bits, got "),
              std::string::npos)
        << integer.message();
  }
  Result<JsonValue> huge = parseJson("1" + std::string(400, '0'));
  ASSERT_FALSE(huge);
  EXPECT_EQ(huge.message(), "line 1, column 1: number does not fit a double");
}

struct Malformed {
  const char *text;
  const char *message;
};

TEST(Json, MalformedInputIsRefused) {
  const Malformed table[] = {
      {"", "line 1, column 1: expected a value, got the end of the text"},
      {"  \n ", "line 2, column 2: expected a value, got the end of the text"},
      {"{", "line 1, column 2: expected a key in quotes, got the end of the text"},
      {"[", "line 1, column 2: expected a value, got the end of the text"},
      {"[1", "line 1, column 3: expected ',' or ']', got the end of the text"},
      {"[1,]", "line 1, column 4: expected a value, got ']'"},
      {"[1 2]", "line 1, column 4: expected ',' or ']', got '2'"},
      {"{\"a\"}", "line 1, column 5: expected ':', got '}'"},
      {"{\"a\": 1,}", "line 1, column 9: expected a key in quotes, got '}'"},
      {"{\"a\": 1 \"b\": 2}", "line 1, column 9: expected ',' or '}', got '\"'"},
      {"{a: 1}", "line 1, column 2: expected a key in quotes, got 'a'"},
      {"{\"a\": 1,\n \"a\": 2}", "line 2, column 2: duplicate key 'a'"},
      {"{\"a\": 1, \"\\u0061\": 2}", "line 1, column 10: duplicate key 'a'"},
      {"1 2", "line 1, column 3: unexpected text after the value"},
      {"{} x", "line 1, column 4: unexpected text after the value"},
      {"NaN", "line 1, column 1: expected a value, got 'N'"},
      {"-Infinity", "line 1, column 1: malformed number"},
      {"Infinity", "line 1, column 1: expected a value, got 'I'"},
      {"nul", "line 1, column 1: expected a value, got 'n'"},
      {"truex", "line 1, column 1: expected a value, got 't'"},
      {"01", "line 1, column 1: number with a leading zero"},
      {"-01", "line 1, column 1: number with a leading zero"},
      {"-", "line 1, column 1: malformed number"},
      {"+1", "line 1, column 1: expected a value, got '+'"},
      {".5", "line 1, column 1: expected a value, got '.'"},
      {"1.", "line 1, column 1: malformed number"},
      {"1e", "line 1, column 1: malformed number"},
      {"1e+", "line 1, column 1: malformed number"},
      {"0x10", "line 1, column 2: unexpected text after the value"},
      {"1e999", "line 1, column 1: number does not fit a double"},
      {"\"abc", "line 1, column 5: string without an end"},
      {"\"abc\\", "line 1, column 5: string without an end"},
      {"\"a\nb\"", "line 1, column 3: control character in a string"},
      {"\"\\x\"", "line 1, column 2: unknown escape in a string"},
      {"\"\\u12\"", "line 1, column 2: \\u needs four hex digits"},
      {"\"\\u12g4\"", "line 1, column 2: \\u needs four hex digits"},
      {"\"\\ud800\"", "line 1, column 2: lone surrogate in a string"},
      {"\"\\ud800\\u0041\"", "line 1, column 2: lone surrogate in a string"},
      {"\"\\udc00\"", "line 1, column 2: lone surrogate in a string"},
      {"\"\x80\"", "line 1, column 2: invalid UTF-8"},
      {"\"\xC3\"", "line 1, column 2: invalid UTF-8"},
      {"\"\xC0\xAF\"", "line 1, column 2: invalid UTF-8"},
      {"\"\xED\xA0\x80\"", "line 1, column 2: invalid UTF-8"},
      {"\"\xF5\x80\x80\x80\"", "line 1, column 2: invalid UTF-8"},
      {"\xFF", "line 1, column 1: invalid UTF-8"},
      {"\x01", "line 1, column 1: expected a value, got a control character"},
      {"\xEF\xBB\xBF{}", "line 1, column 1: expected a value, got '\xEF\xBB\xBF'"},
  };
  for (const Malformed &entry : table) {
    Result<JsonValue> value = parseJson(entry.text);
    ASSERT_FALSE(value.ok()) << entry.text;
    EXPECT_EQ(value.message(), entry.message) << entry.text;
  }
}

// What a file holds is quoted in messages, which stay one line that can be read.
TEST(Json, MessagesAreOneShortLine) {
  EXPECT_EQ(oneLine("a b"), "a b");
  EXPECT_EQ(oneLine("a\nb\x1b[2J\x7f"), "a\\u000ab\\u001b[2J\\u007f");
  EXPECT_EQ(oneLine(std::string("\0", 1)), "\\u0000");
  EXPECT_EQ(oneLine("\xc3\xa4"), "\xc3\xa4");
  EXPECT_EQ(oneLine(std::string(1500, 'x')), std::string(1500, 'x'));
  EXPECT_EQ(oneLine(std::string(1501, 'x')), std::string(1500, 'x') + "...");
  // Two bytes a character: the limit lies between both.
  std::string umlauts = "x";
  for (int i = 0; i < 800; ++i)
    umlauts += "\xc3\xa4";
  EXPECT_EQ(oneLine(umlauts), umlauts.substr(0, 1499) + "...");
  const Result<JsonValue> value = parseJson("{\"a\\nb\": 1}");
  ASSERT_TRUE(value.ok());
  ObjectReader reader(*value, "");
  EXPECT_EQ(reader.finish().message(), "line 1, column 2: unknown key 'a\\u000ab'");
  const Result<JsonValue> twice = parseJson("{\"a\\n\": 1, \"a\\n\": 1}");
  ASSERT_FALSE(twice.ok());
  EXPECT_EQ(twice.message(), "line 1, column 12: duplicate key 'a\\u000a'");
}

TEST(Json, DepthIsBounded) {
  auto nested = [](int depth) {
    return std::string(static_cast<size_t>(depth), '[') +
           std::string(static_cast<size_t>(depth), ']');
  };
  EXPECT_TRUE(parseJson(nested(64)).ok());
  Result<JsonValue> deep = parseJson(nested(65));
  ASSERT_FALSE(deep.ok());
  EXPECT_EQ(deep.message(), "line 1, column 65: nesting deeper than 64 levels");
  EXPECT_FALSE(parseJson(std::string(1000000, '[')).ok());
}

TEST(Json, RandomBytesNeverCrashAndTruncationFails) {
  std::string text = writeJson(parsed(R"({"a": [1, 2.5, "x\u00e9", null, true], "b": {"c": []}})"));
  for (size_t n = 0; n < text.size(); ++n)
    EXPECT_FALSE(parseJson(std::string_view(text).substr(0, n)).ok()) << n;
  std::mt19937 random(5);
  for (int i = 0; i < 50000; ++i) {
    std::string changed = text;
    for (int j = 0; j < 3; ++j)
      changed[random() % changed.size()] = static_cast<char>(random());
    Result<JsonValue> value = parseJson(changed);
    if (!value) {
      EXPECT_EQ(value.message().rfind("line ", 0), 0u);
    }
  }
}

TEST(Json, LongLinesAreLinear) {
  std::string text = "[0";
  for (int i = 0; i < 300000; ++i)
    text += ", 1";
  EXPECT_EQ(parsed(text + "]").elements().size(), 300001u);
}

TEST(Json, PrettyPrinting) {
  JsonValue v = parsed(R"({"short": [1, 2], "long": [)"
                       R"("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",)"
                       R"("bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"]})");
  EXPECT_EQ(writeJson(v), "{\n"
                          "  \"short\": [1, 2],\n"
                          "  \"long\": [\n"
                          "    \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\",\n"
                          "    \"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\"\n"
                          "  ]\n"
                          "}");
  EXPECT_EQ(writeJson(parsed(writeJson(v)), false), writeJson(v, false));
}

//===----------------------------------------------------------------------===//
// ObjectReader
//===----------------------------------------------------------------------===//

TEST(ObjectReader, ReadsMembers) {
  JsonValue v = parsed(R"({"n": 3, "f": 2, "b": true, "s": "x", "a": [1], "o": {"k": 1}})");
  ObjectReader reader(v, "");
  EXPECT_EQ(reader.integer("n", 0, 10), 3);
  EXPECT_EQ(reader.number("f"), 2.0);
  EXPECT_TRUE(reader.boolean("b"));
  EXPECT_EQ(reader.string("s"), "x");
  ASSERT_NE(reader.array("a"), nullptr);
  ASSERT_NE(reader.object("o"), nullptr);
  EXPECT_FALSE(reader.optionalInteger("absent"));
  EXPECT_FALSE(reader.optionalNumber("absent"));
  EXPECT_FALSE(reader.optionalBoolean("absent"));
  EXPECT_FALSE(reader.optionalString("absent"));
  EXPECT_EQ(reader.optionalArray("absent"), nullptr);
  EXPECT_EQ(reader.optionalObject("absent"), nullptr);
  EXPECT_TRUE(reader.finish().ok());
}

/// What reading {"requests": [{}, <text>]} as a request reports.
std::string messageFor(const char *text, void (*read)(ObjectReader &)) {
  JsonValue v = parsed(text);
  ObjectReader reader(v, elementPath(memberPath("", "requests"), 1));
  read(reader);
  Status status = reader.finish();
  return status ? "" : status.message();
}

TEST(ObjectReader, FaultsNamePlaceAndReason) {
  EXPECT_EQ(messageFor("{\"n\": \"x\"}", [](ObjectReader &r) { r.integer("n"); }),
            "line 1, column 7: requests[1].n: expected an integer, got a string");
  EXPECT_EQ(messageFor("{\"n\": 1.5}", [](ObjectReader &r) { r.integer("n"); }),
            "line 1, column 7: requests[1].n: expected an integer, got a number");
  EXPECT_EQ(messageFor("{\"n\": -1}", [](ObjectReader &r) { r.integer("n", 0, 5); }),
            "line 1, column 7: requests[1].n: expected an integer, 0 to 5, got -1");
  EXPECT_EQ(messageFor("{\"n\": -1}", [](ObjectReader &r) { r.integer("n", 0); }),
            "line 1, column 7: requests[1].n: expected an integer, at least 0, got -1");
  EXPECT_EQ(messageFor("\n{}", [](ObjectReader &r) { r.integer("n"); }),
            "line 2, column 1: requests[1]: missing key 'n'");
  EXPECT_EQ(messageFor("{\"n\": {}}", [](ObjectReader &r) { r.array("n"); }),
            "line 1, column 7: requests[1].n: expected an array, got an object");
  EXPECT_EQ(messageFor("[]", [](ObjectReader &r) { r.optionalInteger("n"); }),
            "line 1, column 1: requests[1]: expected an object, got an array");
  EXPECT_EQ(messageFor("{\"n\": 1,\n \"m\": 2}", [](ObjectReader &r) { r.integer("n"); }),
            "line 2, column 2: requests[1]: unknown key 'm', expected one of n");
  // The first fault is the one reported.
  EXPECT_EQ(messageFor("{\"n\": true, \"z\": 1}",
                       [](ObjectReader &r) {
                         r.string("n");
                         r.integer("m");
                       }),
            "line 1, column 7: requests[1].n: expected a string, got a boolean");
}

} // namespace
