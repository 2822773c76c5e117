// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Runtime/NativeModule.h"

#include "TestKernel.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstring>

using namespace attn;
using namespace testing_rt;

namespace {

core::Result<rt::NativeModule> loadObject(const std::string &name) {
  std::vector<uint8_t> bytes = objectBytes(name);
  EXPECT_FALSE(bytes.empty()) << name;
  return rt::NativeModule::load(bytes.data(), bytes.size());
}

void call(const rt::NativeModule &module, const char *symbol, const std::vector<long> &args) {
  core::Result<core::NativeKernel> entry = module.find(symbol);
  ASSERT_TRUE(entry) << entry.message();
  (*entry)(reinterpret_cast<const core::NativeArgs *>(args.data()));
}

class NativeModulePieces : public ::testing::TestWithParam<const char *> {};

TEST_P(NativeModulePieces, Run) {
  core::Result<rt::NativeModule> module = loadObject(GetParam());
  ASSERT_TRUE(module) << module.message();

  float in[8], out[8];
  for (int i = 0; i < 8; ++i)
    in[i] = 0.25f * static_cast<float>(i) - 1;
  call(*module, "piece_expf", {reinterpret_cast<long>(out), reinterpret_cast<long>(in)});
  for (int i = 0; i < 8; ++i)
    EXPECT_FLOAT_EQ(out[i], std::exp(in[i]) + static_cast<float>(1 << i));

  long data[5];
  call(*module, "piece_data", {reinterpret_cast<long>(data), 5});
  EXPECT_EQ(data[0], 6);
  EXPECT_EQ(data[1], 8);
  EXPECT_EQ(data[2], 3);
  EXPECT_EQ(data[3], 25);
  EXPECT_EQ(data[4], 't');
  call(*module, "piece_data", {reinterpret_cast<long>(data), 4});
  EXPECT_EQ(data[0], 7);
  EXPECT_EQ(data[3], 8);
  EXPECT_EQ(data[4], 'o');

  const long expected[] = {11, 71, 7, 0, 44, 55, -1};
  for (long i = 0; i < 7; ++i) {
    long value = 99;
    call(*module, "piece_switch", {reinterpret_cast<long>(&value), i});
    EXPECT_EQ(value, expected[i]) << i;
  }

  char text[200] = {};
  call(*module, "piece_memory", {reinterpret_cast<long>(text), 100});
  float first;
  std::memcpy(&first, text, sizeof(first));
  EXPECT_EQ(first, 1);
  EXPECT_EQ(text[32], 'x');
  EXPECT_EQ(text[100], 'x');
  EXPECT_EQ(text[101], 0);
}

INSTANTIATE_TEST_SUITE_P(Variants, NativeModulePieces,
                         ::testing::Values("pieces-pic", "pieces-no-unwind", "pieces-no-plt",
                                           "pieces-pie", "pieces-sections", "pieces-unoptimized",
                                           "pieces-large"));

TEST(NativeModule, EachLoadHasItsOwnData) {
  core::Result<rt::NativeModule> first = loadObject("pieces-pic");
  core::Result<rt::NativeModule> second = loadObject("pieces-pic");
  ASSERT_TRUE(first && second);
  long data[5];
  call(*first, "piece_data", {reinterpret_cast<long>(data), 0});
  call(*first, "piece_data", {reinterpret_cast<long>(data), 0});
  EXPECT_EQ(data[0], 7);
  call(*second, "piece_data", {reinterpret_cast<long>(data), 0});
  EXPECT_EQ(data[0], 6);
}

TEST(NativeModule, Refusals) {
  auto message = [](const std::string &name) {
    core::Result<rt::NativeModule> module = loadObject(name);
    return module ? std::string("loaded") : module.message();
  };
  EXPECT_EQ(message("undefined"),
            "native code: undefined symbol 'puts' is not one that native code may use");
  EXPECT_EQ(message("thread-local"),
            "native code: section '.tdata' of type 1, flags 1027 cannot be loaded");
  EXPECT_EQ(message("constructor"),
            "native code: section '.init_array' of type 14, flags 3 cannot be loaded");
  EXPECT_EQ(message("no-code"), "native code: no code in the object");
  // Absolute 32-bit addresses do not reach memory the system gives out above 4 GiB.
  EXPECT_NE(message("pieces-absolute").find(" does not reach its target"), std::string::npos)
      << message("pieces-absolute");

  core::Result<rt::NativeModule> module = loadObject("pieces-pic");
  ASSERT_TRUE(module);
  EXPECT_EQ(module->find("nothing").message(), "native code: no function 'nothing'");
  EXPECT_EQ(module->find("shared").message(), "native code: no function 'shared'");
  EXPECT_EQ(module->find("local_piece").message(), "native code: no function 'local_piece'");
}

TEST(NativeModule, ForeignHeaders) {
  const std::vector<uint8_t> good = objectBytes("pieces-pic");
  auto message = [&](size_t at, uint8_t value) {
    std::vector<uint8_t> bytes = good;
    bytes[at] = value;
    core::Result<rt::NativeModule> module = rt::NativeModule::load(bytes.data(), bytes.size());
    return module ? std::string("loaded") : module.message();
  };
  EXPECT_EQ(message(0, 'x'), "native code: not an ELF object");
  EXPECT_EQ(message(4, 1), "native code: expected a 64-bit little-endian ELF object");
  EXPECT_EQ(message(5, 2), "native code: expected a 64-bit little-endian ELF object");
  EXPECT_EQ(message(18, 183), "native code: expected machine x86-64 (62), got machine 183");
  EXPECT_EQ(message(16, 3), "native code: expected a relocatable object (type 1), got type 3");
  EXPECT_EQ(message(58, 40), "native code: expected section headers of 64 bytes, got 40");
  EXPECT_EQ(message(62, 255), "native code: no section of section names");
  EXPECT_EQ(rt::NativeModule::load(nullptr, 0).message(), "native code: not an ELF object");
}

TEST(NativeModule, UnknownRelocation) {
  // Turns the type of each relocation of .rela.text into one that does not exist.
  std::vector<uint8_t> bytes = objectBytes("pieces-no-unwind");
  core::Result<rt::NativeModule> good = rt::NativeModule::load(bytes.data(), bytes.size());
  ASSERT_TRUE(good);
  uint64_t headers;
  uint16_t count;
  std::memcpy(&headers, &bytes[40], 8);
  std::memcpy(&count, &bytes[60], 2);
  int seen = 0;
  for (int i = 0; i < count; ++i) {
    uint32_t type;
    uint64_t offset;
    std::memcpy(&type, &bytes[headers + i * 64 + 4], 4);
    std::memcpy(&offset, &bytes[headers + i * 64 + 24], 8);
    if (type != 4)
      continue;
    std::vector<uint8_t> copy = bytes;
    copy[offset + 8] = 99;
    core::Result<rt::NativeModule> module = rt::NativeModule::load(copy.data(), copy.size());
    ASSERT_FALSE(module);
    EXPECT_NE(module.message().find("native code: relocation of type 99 at ."), std::string::npos)
        << module.message();
    EXPECT_NE(module.message().find("is not supported"), std::string::npos) << module.message();
    ++seen;
  }
  EXPECT_GE(seen, 2);
}

TEST(NativeModule, TruncationsNeverCrash) {
  const std::vector<uint8_t> good = objectBytes("pieces-pic");
  int refused = 0;
  for (size_t size = 0; size < good.size(); ++size) {
    // A buffer of exactly this size, so that a sanitizer sees any read past it.
    std::vector<uint8_t> bytes(good.begin(), good.begin() + static_cast<long>(size));
    bytes.shrink_to_fit();
    refused += !rt::NativeModule::load(bytes.data(), bytes.size()).ok();
  }
  std::printf("%zu truncations, %d refused\n", good.size(), refused);
  EXPECT_EQ(refused, static_cast<int>(good.size())); // the section headers come last
}

TEST(NativeModule, FlippedBytesNeverCrash) {
  Random random(7);
  int loaded = 0, refused = 0;
  for (const char *name : {"pieces-pic", "pieces-sections", "tiny"}) {
    const std::vector<uint8_t> good = objectBytes(name);
    for (int round = 0; round < 10000; ++round) {
      std::vector<uint8_t> bytes = good;
      for (int64_t flips = random.in(1, 4); flips > 0; --flips)
        bytes[random.next() % bytes.size()] ^= static_cast<uint8_t>(random.in(1, 255));
      (rt::NativeModule::load(bytes.data(), bytes.size()).ok() ? loaded : refused) += 1;
    }
  }
  std::printf("30000 damaged objects: %d loaded, %d refused\n", loaded, refused);
  EXPECT_GT(loaded, 1000);
  EXPECT_GT(refused, 1000);
}

} // namespace
