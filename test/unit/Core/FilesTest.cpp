// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Core/Manifest.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

using namespace attn::core;
namespace fs = std::filesystem;

namespace {

class Files : public testing::Test {
protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "attn-files-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder = pattern;
  }
  void TearDown() override { fs::remove_all(folder); }

  std::string path(const char *name) const { return (folder / name).string(); }
  size_t entries() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder), {}));
  }
  std::string contents(const std::string &at) const {
    std::ifstream in(at, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  fs::path folder;
};

TEST_F(Files, WriteThenRead) {
  std::string text("a\0b\n", 4);
  ASSERT_TRUE(writeFileAtomically(path("x"), text.data(), text.size()).ok());
  EXPECT_EQ(entries(), 1u);
  Result<std::vector<uint8_t>> data = readFile(path("x"));
  ASSERT_TRUE(data.ok());
  EXPECT_EQ(std::string(data->begin(), data->end()), text);
  ASSERT_TRUE(writeFileAtomically(path("x"), "new", 3).ok());
  EXPECT_EQ(contents(path("x")), "new");
  ASSERT_TRUE(writeFileAtomically(path("empty"), nullptr, 0).ok());
  EXPECT_TRUE(readFile(path("empty"))->empty());
}

TEST_F(Files, LargeFile) {
  std::string text(3000000, 'x');
  ASSERT_TRUE(writeFileAtomically(path("x"), text.data(), text.size()).ok());
  EXPECT_EQ(readFile(path("x"))->size(), text.size());
}

TEST_F(Files, FaultsNameTheFileAndLeaveNothing) {
  Result<std::vector<uint8_t>> missing = readFile(path("none"));
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.message(), "cannot read '" + path("none") + "': No such file or directory");
  Result<std::vector<uint8_t>> directory = readFile(folder.string());
  ASSERT_FALSE(directory.ok());
  EXPECT_EQ(directory.message(), "cannot read '" + folder.string() + "': Is a directory");

  Status noFolder = writeFileAtomically(path("a/b"), "x", 1);
  ASSERT_FALSE(noFolder.ok());
  EXPECT_EQ(noFolder.message(), "cannot write '" + path("a/b") + "': No such file or directory");
  fs::create_directory(folder / "d");
  Status overFolder = writeFileAtomically(path("d"), "x", 1);
  ASSERT_FALSE(overFolder.ok());
  EXPECT_EQ(overFolder.message(), "cannot write '" + path("d") + "': Is a directory");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(Files, AFullDeviceIsReported) {
  if (!fs::exists("/dev/full"))
    GTEST_SKIP() << "no /dev/full";
  Status status = writeFileAtomically("/dev/full", "x", 1);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.message(), "cannot write '/dev/full': No space left on device");
}

TEST_F(Files, LinksAreWrittenThrough) {
  fs::create_directory(folder / "sub");
  ASSERT_TRUE(writeFileAtomically(path("sub/file"), "old", 3).ok());
  fs::create_symlink("file", folder / "sub" / "inner"); // relative to its own folder
  fs::create_symlink("sub/inner", folder / "outer");
  fs::create_symlink(folder / "outer", folder / "absolute");
  fs::create_symlink("sub/none", folder / "dangling");
  for (const char *link : {"outer", "absolute"}) {
    ASSERT_TRUE(writeFileAtomically(path(link), link, 3).ok());
    EXPECT_TRUE(fs::is_symlink(folder / link)) << link;
    EXPECT_EQ(contents(path("sub/file")), std::string(link, 3));
  }
  EXPECT_TRUE(fs::is_symlink(folder / "sub" / "inner"));
  ASSERT_TRUE(writeFileAtomically(path("dangling"), "new", 3).ok());
  EXPECT_TRUE(fs::is_symlink(folder / "dangling"));
  EXPECT_EQ(contents(path("sub/none")), "new");

  fs::create_symlink("loop", folder / "loop");
  Status loop = writeFileAtomically(path("loop"), "x", 1);
  ASSERT_FALSE(loop.ok());
  EXPECT_EQ(loop.message(),
            "cannot write '" + path("loop") + "': Too many levels of symbolic links");
  // Nothing temporary is left on either side.
  EXPECT_EQ(entries(), 5u);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder / "sub"), {}), 3);
}

TEST_F(Files, AnAbandonedTemporaryDoesNotBlock) {
  std::string stale = path("x") + ".tmp." + std::to_string(getpid()) + ".0";
  std::ofstream(stale) << "old";
  ASSERT_TRUE(writeFileAtomically(path("x"), "new", 3).ok());
  EXPECT_EQ(contents(path("x")), "new");
  EXPECT_EQ(contents(stale), "old");
}

} // namespace
