// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Runtime/Safetensors.h"

#include "TestKernel.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <unistd.h>

using namespace attn;
using namespace testing_rt;

namespace {

/// A file with this header and `data` bytes of data.
std::vector<uint8_t> fileWith(const std::string &header, size_t data) {
  std::vector<uint8_t> bytes(8);
  for (int i = 0; i < 8; ++i)
    bytes[i] = static_cast<uint8_t>(uint64_t(header.size()) >> (8 * i));
  bytes.insert(bytes.end(), header.begin(), header.end());
  bytes.resize(bytes.size() + data);
  return bytes;
}

TEST(Safetensors, RoundTrip) {
  const std::vector<float> floats = {1, -2, 3.5f, 4, 5, 6};
  const std::vector<uint8_t> bools = {1, 0, 1};
  rt::FileTensor a{
      "a", rt::FileDType::F32, {2, 3}, reinterpret_cast<const uint8_t *>(floats.data()), 24};
  rt::FileTensor empty{"empty", rt::FileDType::BF16, {0, 7}, nullptr, 0};
  rt::FileTensor b{"b \"quoted\"", rt::FileDType::Bool, {3}, bools.data(), 3};
  rt::FileTensor scalar{
      "scalar", rt::FileDType::F32, {}, reinterpret_cast<const uint8_t *>(floats.data()), 4};
  const std::string path = ::testing::TempDir() + "/attn-round-trip.safetensors";
  core::Status written = rt::writeSafetensors(path, {a, empty, b, scalar});
  ASSERT_TRUE(written) << written.message();
  core::Result<rt::SafetensorsFile> file = rt::SafetensorsFile::read(path);
  ASSERT_TRUE(file) << file.message();
  unlink(path.c_str());
  ASSERT_EQ(file->tensors().size(), 4u);
  const rt::FileTensor *read = file->find("a");
  ASSERT_NE(read, nullptr);
  EXPECT_EQ(read->shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(std::memcmp(read->data, floats.data(), 24), 0);
  EXPECT_EQ(file->find("b \"quoted\"")->size, 3u);
  EXPECT_EQ(file->find("empty")->dtype, rt::FileDType::BF16);
  EXPECT_EQ(file->find("scalar")->size, 4u);
  EXPECT_EQ(file->find("nothing"), nullptr);
}

TEST(Safetensors, EveryDType) {
  for (const char *name : {"F64", "F32", "F16", "BF16", "I64", "I32", "I8", "U8", "BOOL"}) {
    std::optional<rt::FileDType> type = rt::parseFileDType(name);
    ASSERT_TRUE(type) << name;
    EXPECT_EQ(rt::toString(*type), name);
    const std::string size = std::to_string(rt::byteSize(*type) * 3);
    core::Result<rt::SafetensorsFile> file = rt::SafetensorsFile::parse(
        fileWith("{\"t\":{\"dtype\":\"" + std::string(name) +
                     "\",\"shape\":[3],\"data_offsets\":[0," + size + "]}}",
                 rt::byteSize(*type) * 3));
    EXPECT_TRUE(file) << file.message();
  }
}

TEST(Safetensors, DataInAnyOrderAndMetadata) {
  core::Result<rt::SafetensorsFile> file = rt::SafetensorsFile::parse(
      fileWith(R"({"__metadata__":{"made by":"hand"},)"
               R"("b":{"dtype":"U8","shape":[2],"data_offsets":[3,5]},)"
               R"("a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}}   )",
               5));
  ASSERT_TRUE(file) << file.message();
  EXPECT_EQ(file->find("b")->data - file->find("a")->data, 3);
}

TEST(Safetensors, Refusals) {
  struct Case {
    const char *header;
    size_t data;
    const char *message;
  };
  const Case cases[] = {
      {"[]", 0, "header: line 1, column 1: expected an object, got an array"},
      {"{", 0, "header: line 1, column 2: expected a key in quotes, got the end of the text"},
      {R"({"t":{"dtype":"F8","shape":[1],"data_offsets":[0,1]}})", 1,
       "header: line 1, column 6: t.dtype: \"F8\" is not supported"},
      {R"({"t":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}})", 1,
       "header: line 1, column 29: t.shape[0]: expected an integer, at least 0, got -1"},
      {R"({"t":{"dtype":"U8","shape":[2],"data_offsets":[0,1]}})", 1,
       "header: line 1, column 6: t: shape [2] of U8 does not fill 1 bytes"},
      {R"({"t":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}})", 0,
       "header: line 1, column 6: t: shape [4611686018427387904, 4] of F32 does not fill 0 bytes"},
      {R"({"t":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", 1,
       "header: line 1, column 50: t.data_offsets[1]: expected an integer, 0 to 1, got 2"},
      {R"({"t":{"dtype":"U8","shape":[0],"data_offsets":[1,0]}})", 1,
       "header: line 1, column 50: t.data_offsets[1]: expected an integer, 1 to 1, got 0"},
      {R"({"t":{"dtype":"U8","shape":[1],"data_offsets":[0]}})", 1,
       "header: line 1, column 47: t.data_offsets: expected [begin, end]"},
      {R"({"t":{"dtype":"U8","shape":[1]}})", 1,
       "header: line 1, column 6: t: missing key 'data_offsets'"},
      {R"({"__metadata__":{"n":3}})", 0,
       "header: line 1, column 22: __metadata__.n: expected a string, got an integer"},
      {R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
       R"("b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
       3, "b: overlaps the tensor before it"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
       R"("b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}})",
       3, "b: data starts 1 bytes after the end of the tensor before it"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 3,
       "2 bytes after the last tensor"},
  };
  for (const Case &c : cases) {
    core::Result<rt::SafetensorsFile> file = rt::SafetensorsFile::parse(fileWith(c.header, c.data));
    ASSERT_FALSE(file) << c.header;
    EXPECT_EQ(file.message(), c.message);
  }
  EXPECT_EQ(rt::SafetensorsFile::parse({1, 2, 3}).message(),
            "not a safetensors file: expected at least 8 bytes, got 3");
  std::vector<uint8_t> cut = fileWith("{}", 0);
  cut.pop_back();
  EXPECT_EQ(rt::SafetensorsFile::parse(cut).message(),
            "not a safetensors file: header of 2 bytes in a file of 9");
  cut[7] = 0x80;
  EXPECT_EQ(rt::SafetensorsFile::parse(cut).message(),
            "not a safetensors file: header of 9223372036854775810 bytes in a file of 9");
}

TEST(Safetensors, DamagedFilesNeverCrash) {
  const std::vector<uint8_t> good = fileWith(
      R"({"__metadata__":{"x":"y"},"a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},)"
      R"("b":{"dtype":"I8","shape":[5],"data_offsets":[16,21]}})",
      21);
  Random random(5);
  int parsed = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<uint8_t> bytes = good;
    for (int64_t flips = random.in(1, 3); flips > 0; --flips)
      bytes[random.next() % bytes.size()] = static_cast<uint8_t>(random.in(0, 255));
    if (random.in(0, 3) == 0)
      bytes.resize(random.next() % bytes.size());
    bytes.shrink_to_fit();
    core::Result<rt::SafetensorsFile> file = rt::SafetensorsFile::parse(std::move(bytes));
    if (!file)
      continue;
    ++parsed;
    unsigned sum = 0; // every tensor can be read to its end
    for (const rt::FileTensor &tensor : file->tensors())
      for (size_t i = 0; i < tensor.size; ++i)
        sum += tensor.data[i];
    EXPECT_LT(sum, 1u << 20);
  }
  std::printf("20000 damaged files: %d parsed\n", parsed);
}

} // namespace
