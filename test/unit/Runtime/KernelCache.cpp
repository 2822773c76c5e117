// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The kernel cache: hits, bounds, damaged files of every kind, folders that cannot be written, and
// several threads and processes in one folder.
#include "attn/Runtime/KernelCache.h"

#include "TestKernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace attn;
using namespace attn::core;
using namespace testing_rt;

namespace fs = std::filesystem;

namespace {

/// An empty folder that goes with the test.
class Folder {
public:
  Folder() {
    std::string pattern = testing::TempDir() + "attn-cache-XXXXXX";
    path = ::mkdtemp(pattern.data());
  }
  ~Folder() {
    std::error_code code;
    fs::permissions(path, fs::perms::owner_all, code);
    fs::remove_all(path, code);
  }
  std::string path;
};

KernelSpec specNumber(int number) {
  KernelSpec spec = plainSpec();
  spec.specHash =
      std::string(62, 'c') + "0123456789abcdef"[number / 16 % 16] + "0123456789abcdef"[number % 16];
  return spec;
}

rt::KernelKey keyNumber(int number) { return rt::kernelKey(specNumber(number), "cpu", "9.1"); }

/// What a compiler makes of a key: its code tells which.
Artifact artifactOf(const rt::KernelKey &key, size_t codeBytes = 300) {
  Artifact artifact;
  artifact.compilerVersion = key.compilerVersion;
  Kernel kernel;
  kernel.spec = plainSpec();
  kernel.spec.specHash = key.specHash;
  if (!key.names.empty())
    kernel.spec.name = key.names[0];
  KernelBinary binary;
  binary.target = key.target;
  binary.format = "elf-x86-64";
  binary.blob = 0;
  binary.entry = "f";
  binary.maskEntry = "m";
  kernel.binaries.push_back(binary);
  artifact.kernels.push_back(kernel);
  std::vector<uint8_t> code(key.specHash.begin(), key.specHash.end());
  code.resize(codeBytes, 7);
  artifact.blobs.push_back(code);
  return artifact;
}

bool isOf(const rt::CachedKernel &kernel, const rt::KernelKey &key) {
  return kernel.artifact && kernel.kernel && kernel.kernel->spec.specHash == key.specHash &&
         kernel.artifact->blobs == artifactOf(key, kernel.artifact->blobs[0].size()).blobs;
}

Result<Artifact> compile(const rt::KernelKey &key) { return artifactOf(key); }

int64_t bytesOf(const rt::KernelKey &key) {
  return static_cast<int64_t>(serialize(artifactOf(key)).size());
}

std::vector<std::string> filesIn(const std::string &folder) {
  std::vector<std::string> names;
  for (const fs::directory_entry &entry : fs::directory_iterator(folder))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

void write(const std::string &path, const std::vector<uint8_t> &bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char *>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

TEST(KernelCache, MemoryThenFolderThenCompiler) {
  Folder folder;
  const rt::KernelKey key = keyNumber(1);
  rt::KernelCache cache({folder.path + "/made/when/needed"});
  EXPECT_FALSE(fs::exists(folder.path + "/made"));
  for (int i = 0; i < 3; ++i) {
    Result<rt::CachedKernel> kernel = cache.get(key, compile);
    ASSERT_TRUE(kernel) << kernel.message();
    EXPECT_TRUE(isOf(*kernel, key));
  }
  EXPECT_EQ(cache.stats().compiled, 1);
  EXPECT_EQ(cache.stats().memoryHits, 2);
  EXPECT_EQ(cache.stats().memoryBytes, bytesOf(key));
  rt::KernelCache other({folder.path + "/made/when/needed"});
  for (int i = 0; i < 2; ++i)
    EXPECT_TRUE(isOf(*other.get(key), key));
  EXPECT_EQ(other.stats().folderHits, 1);
  EXPECT_EQ(other.stats().memoryHits, 1);
  EXPECT_EQ(other.stats().compiled, 0);
  // Without a folder nothing is written.
  rt::KernelCache memory({""});
  EXPECT_TRUE(memory.get(key, compile));
  EXPECT_TRUE(memory.get(key));
  EXPECT_EQ(memory.stats().folderErrors, 0);
}

TEST(KernelCache, EveryPartOfTheKeyCounts) {
  Folder folder;
  rt::KernelCache cache({folder.path});
  std::vector<rt::KernelKey> keys(5, keyNumber(1));
  keys[1].specHash = specNumber(2).specHash;
  keys[2].target = "sm_90a";
  keys[3].compilerVersion = "9.2";
  keys[4].names[0] = "other";
  for (const rt::KernelKey &key : keys)
    EXPECT_TRUE(isOf(*cache.get(key, compile), key));
  EXPECT_EQ(cache.stats().compiled, 5);
  EXPECT_EQ(filesIn(folder.path).size(), 5u);
  for (const rt::KernelKey &key : keys) {
    Result<rt::CachedKernel> kernel = cache.get(key);
    ASSERT_TRUE(kernel);
    EXPECT_EQ(kernel->kernel->binaries[0].target, key.target);
    EXPECT_EQ(kernel->artifact->compilerVersion, key.compilerVersion);
    EXPECT_EQ(kernel->kernel->spec.name, key.names[0]);
  }
  // Names are those of parameters and tables too.
  EXPECT_EQ(rt::kernelKey(tinySpec(), "cpu", "1").names,
            (std::vector<std::string>{"tiny", "left", "scale", "mm", "slopes"}));
  // A key without names takes any.
  rt::KernelKey any = keyNumber(1);
  any.names.clear();
  EXPECT_TRUE(cache.get(any, compile));
}

TEST(KernelCache, AMissNamesTheCommand) {
  rt::KernelCache cache({"/no/such/it's"});
  const rt::KernelKey key = keyNumber(1);
  Result<rt::CachedKernel> kernel = cache.get(key, nullptr, "gemma.mlir");
  ASSERT_FALSE(kernel);
  const std::string quoted = "'/no/such/it'\\''s" + cache.path(key).substr(13) + "'";
  EXPECT_EQ(kernel.message(),
            "kernel 'plain' of spec " + key.specHash +
                " for target 'cpu', compiler '9.1' is not in the kernel cache, and there is no "
                "compiler; make it with: mkdir -p '/no/such/it'\\''s' && attn-compile "
                "--target=cpu -o " +
                quoted + " 'gemma.mlir'");
  EXPECT_EQ(cache.get(key).message().rfind("'SPEC.mlir'"), cache.get(key).message().size() - 11);
  // Without a folder there is no file that a command could make.
  rt::KernelCache memory({""});
  EXPECT_EQ(memory.get(key).message(),
            "kernel 'plain' of spec " + key.specHash +
                " for target 'cpu', compiler '9.1' is not in the kernel cache, and there is no "
                "compiler");
}

TEST(KernelCache, TheCommandOfAMissWorks) {
  Folder folder;
  const rt::KernelKey key = keyNumber(1);
  // A compiler that copies its spec, which is the artifact here.
  const std::string tools = folder.path + "/tools";
  fs::create_directory(tools);
  const std::string script =
      "#!/bin/sh\n[ $# = 4 ] && [ \"$1\" = --target=cpu ] && [ \"$2\" = -o ] && cp \"$4\" \"$3\"\n";
  write(tools + "/attn-compile", {script.begin(), script.end()});
  fs::permissions(tools + "/attn-compile", fs::perms::owner_all);
  const std::string work = folder.path + "/work";
  fs::create_directory(work);
  // The words "it's a $(cache)" and a leading '-' mean nothing to the shell or to the commands.
  for (const std::string &place : {work + "/it's a $(cache)/deep", std::string("-rel `x`")}) {
    const fs::path before = fs::current_path();
    fs::current_path(work);
    const std::string spec = "-my 'spec'.mlir";
    const std::vector<uint8_t> bytes = serialize(artifactOf(key));
    write("./" + spec, bytes);
    rt::KernelCache cache({place});
    const std::string message = cache.get(key, nullptr, spec).message();
    const std::string mark = "make it with: ";
    const size_t at = message.find(mark);
    ASSERT_NE(at, std::string::npos) << message;
    write("run.sh", {});
    std::ofstream("run.sh") << message.substr(at + mark.size()) << "\n";
    EXPECT_EQ(std::system(("PATH=" + tools + ":$PATH sh -c \"$(cat run.sh)\"").c_str()), 0)
        << message;
    Result<rt::CachedKernel> kernel = cache.get(key);
    EXPECT_TRUE(kernel && isOf(*kernel, key)) << kernel.message();
    fs::current_path(before);
  }
}

TEST(KernelCache, KeysThatShareAFileNameAreTold) {
  // These compiler versions have one FNV-1a hash.
  Folder folder;
  rt::KernelKey one = keyNumber(1), two = one;
  one.compilerVersion = "8yn0iYCKYHlIj4-BwPqk";
  two.compilerVersion = "GReLUrM4wMqfg9yzV3KQ";
  for (const std::string &place : {folder.path, std::string()}) {
    rt::KernelCache cache({place});
    ASSERT_EQ(cache.path(one), cache.path(two));
    for (const rt::KernelKey &key : {one, two, two, one}) {
      Result<rt::CachedKernel> kernel = cache.get(key, compile);
      ASSERT_TRUE(kernel) << kernel.message();
      EXPECT_EQ(kernel->artifact->compilerVersion, key.compilerVersion);
    }
    EXPECT_EQ(cache.stats().compiled, 3);
    EXPECT_EQ(cache.stats().memoryHits, 1);
    EXPECT_EQ(cache.stats().memoryBytes, bytesOf(one));
  }
}

TEST(KernelCache, FailuresOfTheCompilerAreReturned) {
  Folder folder;
  rt::KernelCache cache({folder.path});
  const rt::KernelKey key = keyNumber(1);
  auto fails = [](const rt::KernelKey &) { return Result<Artifact>(Error{"no luck"}); };
  EXPECT_EQ(cache.get(key, fails).message(), "no luck");
  auto wrong = [](const rt::KernelKey &) { return Result<Artifact>(artifactOf(keyNumber(2))); };
  EXPECT_EQ(cache.get(key, wrong).message(),
            "kernel cache: what was compiled holds no kernel 'plain' of spec " + key.specHash +
                " for target 'cpu', compiler '9.1'");
  EXPECT_THROW((void)cache.get(key, [](const rt::KernelKey &) -> Result<Artifact> { throw 1; }),
               int);
  EXPECT_TRUE(filesIn(folder.path).empty());
  EXPECT_TRUE(isOf(*cache.get(key, compile), key));
  rt::KernelKey bad = key;
  bad.specHash[3] = '/';
  EXPECT_EQ(cache.get(bad, compile).message(),
            "kernel cache: spec hash '" + bad.specHash + "', expected 64 hexadecimal digits");
  bad = key;
  bad.target = "../x";
  EXPECT_EQ(cache.get(bad, compile).message(),
            "kernel cache: target '../x', expected letters, digits and '_'");
}

//===----------------------------------------------------------------------===//
// Bounds
//===----------------------------------------------------------------------===//

TEST(KernelCache, MemoryKeepsWhatWasUsedLast) {
  const int64_t bytes = bytesOf(keyNumber(0));
  rt::KernelCache cache({"", 3 * bytes + bytes / 2});
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(cache.get(keyNumber(i), compile));
  ASSERT_TRUE(cache.get(keyNumber(0), compile));
  Result<rt::CachedKernel> held = cache.get(keyNumber(2), compile);
  ASSERT_TRUE(cache.get(keyNumber(3), compile)); // 1 goes
  ASSERT_TRUE(cache.get(keyNumber(4), compile)); // 0 goes
  EXPECT_EQ(cache.stats().compiled, 5);
  EXPECT_EQ(cache.stats().memoryBytes, 3 * bytes);
  EXPECT_TRUE(cache.get(keyNumber(2)));
  EXPECT_TRUE(cache.get(keyNumber(3)));
  EXPECT_TRUE(cache.get(keyNumber(4)));
  EXPECT_FALSE(cache.get(keyNumber(0)));
  EXPECT_FALSE(cache.get(keyNumber(1)));
  for (int i = 5; i < 9; ++i)
    ASSERT_TRUE(cache.get(keyNumber(i), compile));
  EXPECT_FALSE(cache.get(keyNumber(2)));
  EXPECT_TRUE(isOf(*held, keyNumber(2))) << "a kernel in use outlives its entry";
  // Larger than the bound: returned, not kept.
  rt::KernelCache small({"", bytes - 1});
  EXPECT_TRUE(isOf(*small.get(keyNumber(1), compile), keyNumber(1)));
  EXPECT_EQ(small.stats().memoryBytes, 0);
}

TEST(KernelCache, TheFolderKeepsWhatWasUsedLast) {
  Folder folder;
  const int64_t bytes = bytesOf(keyNumber(0));
  const rt::KernelCacheOptions options{folder.path, 0, 3 * bytes + bytes / 2};
  rt::KernelCache cache(options);
  const std::string stranger = folder.path + "/notes.attn",
                    unfinished = cache.path(keyNumber(7)) + ".tmp.1.0",
                    unfinishedNow = cache.path(keyNumber(7)) + ".tmp.2.0";
  write(stranger, std::vector<uint8_t>(10 * bytes));
  write(unfinished, {1, 2});
  write(unfinishedNow, {1, 2});
  auto age = [&](const std::string &path, int hours) {
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(hours));
  };
  age(unfinished, 2);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(cache.get(keyNumber(i), compile));
    age(cache.path(keyNumber(i)), 10 - i);
  }
  EXPECT_TRUE(cache.get(keyNumber(0))); // its use makes it the last
  ASSERT_TRUE(cache.get(keyNumber(3), compile));
  EXPECT_FALSE(fs::exists(cache.path(keyNumber(1))));
  for (int i : {0, 2, 3})
    EXPECT_TRUE(fs::exists(cache.path(keyNumber(i)))) << i;
  EXPECT_TRUE(fs::exists(stranger)) << "not the cache's";
  EXPECT_FALSE(fs::exists(unfinished));
  EXPECT_TRUE(fs::exists(unfinishedNow)) << "its writer may be at work";
  // A file of more than the bound is not written, and the others stay.
  auto large = [&](const rt::KernelKey &key) {
    return Result<Artifact>(artifactOf(key, 4 * bytes));
  };
  EXPECT_TRUE(isOf(*cache.get(keyNumber(5), large), keyNumber(5)));
  EXPECT_FALSE(fs::exists(cache.path(keyNumber(5))));
  EXPECT_TRUE(fs::exists(cache.path(keyNumber(3))));
  EXPECT_EQ(cache.stats().folderErrors, 1);
}

//===----------------------------------------------------------------------===//
// Damaged files
//===----------------------------------------------------------------------===//

/// `path` holds something else: it is refused without a compiler, and with one made anew.
void expectMadeAnew(const rt::KernelCacheOptions &options, const rt::KernelKey &key,
                    const std::string &what) {
  rt::KernelCache cache(options);
  Result<rt::CachedKernel> refused = cache.get(key);
  ASSERT_FALSE(refused) << what;
  EXPECT_NE(refused.message().find("attn-compile"), std::string::npos) << refused.message();
  EXPECT_NE(refused.message().find(" ('" + cache.path(key)), std::string::npos)
      << refused.message();
  Result<rt::CachedKernel> kernel = cache.get(key, compile);
  ASSERT_TRUE(kernel) << what << ": " << kernel.message();
  EXPECT_TRUE(isOf(*kernel, key)) << what;
  EXPECT_EQ(cache.stats().compiled, 1) << what;
  EXPECT_EQ(cache.stats().damaged, 2) << what;
  EXPECT_EQ(cache.stats().folderErrors, 0) << what << ": " << cache.stats().lastFolderError;
  rt::KernelCache again(options);
  EXPECT_TRUE(again.get(key)) << what;
}

TEST(KernelCache, DamagedFilesAreMadeAnew) {
  Folder folder;
  const rt::KernelCacheOptions options{folder.path};
  const rt::KernelKey key = keyNumber(1);
  const std::string path = rt::KernelCache(options).path(key);
  const std::vector<uint8_t> good = serialize(artifactOf(key));
  auto expect = [&](const std::vector<uint8_t> &bytes, const std::string &what) {
    write(path, bytes);
    expectMadeAnew(options, key, what);
  };
  expect({}, "empty");
  expect(std::vector<uint8_t>(good.size(), 0), "zeros");
  expect({'{', '}'}, "foreign");
  std::vector<uint8_t> bytes = good;
  bytes.push_back(0);
  expect(bytes, "one byte more");
  Random random(41);
  for (size_t size = 1; size < good.size(); size += 1 + random.next() % 40)
    expect({good.begin(), good.begin() + static_cast<int64_t>(size)},
           "cut to " + std::to_string(size));
  for (size_t at = 0; at < good.size(); at += at < 32 ? 1 : 1 + random.next() % 25) {
    bytes = good;
    bytes[at] ^= 1 << random.in(0, 7);
    expect(bytes, "a bit of byte " + std::to_string(at));
  }
  expect(serialize(artifactOf(keyNumber(2))), "another kernel");
  Artifact other = artifactOf(key);
  other.compilerVersion = "9.0";
  expect(serialize(other), "another compiler");
  other = artifactOf(key);
  other.kernels[0].binaries[0].target = "sm_90a";
  expect(serialize(other), "another target");
  other = artifactOf(key);
  other.kernels[0].spec.name = "renamed";
  expect(serialize(other), "another name");
}

TEST(KernelCache, WhatIsNotAFileIsReplaced) {
  Folder folder;
  const rt::KernelCacheOptions options{folder.path};
  const rt::KernelKey key = keyNumber(1);
  const std::string path = rt::KernelCache(options).path(key);
  fs::create_directory(path);
  expectMadeAnew(options, key, "an empty folder");
  fs::remove(path);
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  expectMadeAnew(options, key, "a pipe, which nobody writes");
  fs::remove(path);
  // A folder that holds something is left alone.
  fs::create_directories(path + "/full");
  rt::KernelCache cache(options);
  EXPECT_TRUE(isOf(*cache.get(key, compile), key));
  EXPECT_EQ(cache.stats().folderErrors, 1);
  EXPECT_TRUE(fs::exists(path + "/full"));
}

//===----------------------------------------------------------------------===//
// Folders that cannot be written
//===----------------------------------------------------------------------===//

/// Runs `body` in a process of its own; its result is the exit status.
template <class Body>
int inProcess(Body body) {
  const pid_t pid = ::fork();
  if (pid == 0)
    ::_exit(body());
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + status;
}

/// 0 if every key is compiled and returned, from memory the second time, and nothing is left
/// behind.
int servesWithoutWriting(const std::string &folder, size_t files) {
  rt::KernelCache cache({folder});
  for (int round = 0; round < 2; ++round)
    for (int i = 0; i < 3; ++i) {
      Result<rt::CachedKernel> kernel = cache.get(keyNumber(i), compile);
      if (!kernel || !isOf(*kernel, keyNumber(i)))
        return 1;
    }
  const rt::KernelCacheStats stats = cache.stats();
  if (stats.compiled != 3 || stats.memoryHits != 3)
    return 2;
  if (stats.folderErrors != 3 || stats.lastFolderError.find("cannot write") != 0)
    return 3;
  std::error_code code;
  if (fs::is_directory(folder, code) && filesIn(folder).size() != files)
    return 4;
  return 0;
}

TEST(KernelCache, ServesWhereTheFolderCannotBeWritten) {
  Folder folder;
  write(folder.path + "/file", {1});
  EXPECT_EQ(servesWithoutWriting(folder.path + "/file", 0), 0) << "a file instead of a folder";
  // A full disk: no file may grow past a few bytes.
  const std::string full = folder.path + "/full";
  fs::create_directory(full);
  EXPECT_EQ(inProcess([&] {
              std::signal(SIGXFSZ, SIG_IGN);
              const rlimit limit = {100, 100};
              return ::setrlimit(RLIMIT_FSIZE, &limit) ? 50 : servesWithoutWriting(full, 0);
            }),
            0)
      << "a full disk";
  // Read-only, for a user who is bound by it. What is in the folder is still used.
  const std::string locked = folder.path + "/locked";
  rt::KernelCache writer({locked});
  ASSERT_TRUE(writer.get(keyNumber(9), compile));
  ::chmod(folder.path.c_str(), 0755);
  ::chmod(locked.c_str(), 0555);
  EXPECT_EQ(inProcess([&] {
              if (::geteuid() == 0 && ::setuid(65534) != 0)
                return 50;
              rt::KernelCache reader({locked});
              Result<rt::CachedKernel> kernel = reader.get(keyNumber(9));
              return !kernel || !isOf(*kernel, keyNumber(9)) ? 5 : servesWithoutWriting(locked, 1);
            }),
            0)
      << "a read-only folder";
  ::chmod(locked.c_str(), 0755);
}

//===----------------------------------------------------------------------===//
// Threads and processes
//===----------------------------------------------------------------------===//

TEST(KernelCache, ThreadsCompileOnce) {
  rt::KernelCache cache({""});
  std::atomic<int> compiled{0}, wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) {
        const rt::KernelKey key = keyNumber(i % 5);
        Result<rt::CachedKernel> kernel = cache.get(key, [&](const rt::KernelKey &k) {
          ++compiled;
          std::this_thread::sleep_for(std::chrono::milliseconds(2));
          return compile(k);
        });
        wrong += !kernel || !isOf(*kernel, key);
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(compiled, 5);
}

/// One of several processes: asks for kernels in a random order, each time of a new cache. 0 if
/// each was the right one.
int hammer(const rt::KernelCacheOptions &options, uint64_t seed, int rounds) {
  Random random(seed);
  for (int i = 0; i < rounds; ++i) {
    rt::KernelCache cache(options);
    const rt::KernelKey key = keyNumber(static_cast<int>(random.in(0, 9)));
    Result<rt::CachedKernel> kernel = cache.get(key, compile);
    if (!kernel || !isOf(*kernel, key))
      return 1;
  }
  return 0;
}

/// Spoils files in place until `stop` exists.
int spoil(const std::string &folder, const std::string &stop) {
  Random random(99);
  std::error_code code;
  while (!fs::exists(stop)) {
    const std::string path =
        rt::KernelCache({folder}).path(keyNumber(static_cast<int>(random.in(0, 9))));
    if (random.in(0, 2) == 0) {
      fs::remove(path, code);
    } else if (random.in(0, 1)) {
      fs::resize_file(path, static_cast<uintmax_t>(random.in(0, 500)), code);
    } else if (std::FILE *file = std::fopen(path.c_str(), "r+b")) {
      std::fseek(file, static_cast<long>(random.in(0, 400)), SEEK_SET);
      std::fputs("spoilt", file);
      std::fclose(file);
    }
    ::usleep(200);
  }
  return 0;
}

TEST(KernelCache, ProcessesShareAFolder) {
  Folder folder;
  const int64_t bytes = bytesOf(keyNumber(0));
  // Room for six of ten: processes also remove each other's files.
  const rt::KernelCacheOptions options{folder.path + "/cache", 0, 6 * bytes + 10};
  const std::string stop = folder.path + "/stop";
  fs::create_directory(options.folder);
  const pid_t spoiler = ::fork();
  if (spoiler == 0)
    ::_exit(spoil(options.folder, stop));
  std::vector<pid_t> children;
  for (int i = 0; i < 6; ++i) {
    const pid_t pid = ::fork();
    if (pid == 0)
      ::_exit(hammer(options, 100 + i, 150));
    children.push_back(pid);
  }
  auto exitOf = [](pid_t pid) {
    int status = 0;
    ::waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + status;
  };
  for (pid_t pid : children)
    EXPECT_EQ(exitOf(pid), 0);
  write(stop, {});
  EXPECT_EQ(exitOf(spoiler), 0);
  // No unfinished file is left, and one more write keeps the bound.
  rt::KernelCache cache(options);
  ASSERT_TRUE(cache.get(keyNumber(40), compile));
  int64_t total = 0;
  for (const std::string &name : filesIn(options.folder)) {
    EXPECT_EQ(name.find(".tmp."), std::string::npos) << name;
    total += static_cast<int64_t>(fs::file_size(options.folder + "/" + name));
  }
  EXPECT_LE(total, options.folderBytes);
  EXPECT_GT(total, 0);
}

} // namespace
