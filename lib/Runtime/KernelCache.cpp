// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Runtime/KernelCache.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <system_error>

using namespace attn;
using namespace attn::core;
using namespace attn::rt;

namespace fs = std::filesystem;

static constexpr std::string_view kSuffix = ".attn";

//===----------------------------------------------------------------------===//
// Keys
//===----------------------------------------------------------------------===//

static std::vector<std::string> namesOf(const KernelSpec &spec) {
  std::vector<std::string> names = {spec.name};
  for (const ParamDecl &param : spec.program.params)
    names.push_back(param.name);
  for (const TableDecl &table : spec.program.tables)
    names.push_back(table.name);
  return names;
}

KernelKey rt::kernelKey(const KernelSpec &spec, std::string_view target,
                        std::string_view compilerVersion) {
  return {spec.specHash, std::string(target), std::string(compilerVersion), namesOf(spec)};
}

/// Hash and target become part of a file's name.
static Status checkKey(const KernelKey &key) {
  auto isHex = [](char c) { return ('0' <= c && c <= '9') || ('a' <= c && c <= 'f'); };
  if (key.specHash.size() != 64 || !std::all_of(key.specHash.begin(), key.specHash.end(), isHex))
    return Error{"kernel cache: spec hash '" + key.specHash + "', expected 64 hexadecimal digits"};
  auto isName = [](char c) {
    return ('0' <= c && c <= '9') || ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || c == '_';
  };
  if (key.target.empty() || !std::all_of(key.target.begin(), key.target.end(), isName))
    return Error{"kernel cache: target '" + key.target + "', expected letters, digits and '_'"};
  return {};
}

/// "HASH.TARGET.REST.attn": the rest, 16 digits, stands for compiler and names.
static std::string fileName(const KernelKey &key) {
  uint64_t hash = 0xcbf29ce484222325u; // FNV-1a
  auto mix = [&](std::string_view text) {
    for (char c : text)
      hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    hash = (hash ^ 0xff) * 0x100000001b3u;
  };
  mix(key.compilerVersion);
  for (const std::string &name : key.names)
    mix(name);
  std::string rest;
  for (int shift = 60; shift >= 0; shift -= 4)
    rest += "0123456789abcdef"[(hash >> shift) & 15];
  return key.specHash + "." + key.target + "." + rest + std::string(kSuffix);
}

/// Whether a file of a folder is one of a cache's: HASH.TARGET.REST.attn and nothing more.
static bool isEntry(const std::string &name) {
  return name.size() > 64 + 2 + 16 + kSuffix.size() && name[64] == '.' &&
         name.compare(name.size() - kSuffix.size(), kSuffix.size(), kSuffix) == 0 &&
         name.find_first_not_of("0123456789abcdef") == 64;
}

/// A file that a writer has not finished, see writeFileAtomically.
static bool isTemporary(const std::string &name) {
  const size_t at = name.find(std::string(kSuffix) + ".tmp.");
  return at != std::string::npos && isEntry(name.substr(0, at + kSuffix.size()));
}

static const Kernel *findKernel(const Artifact &artifact, const KernelKey &key) {
  if (artifact.compilerVersion != key.compilerVersion)
    return nullptr;
  for (const Kernel &kernel : artifact.kernels)
    if (kernel.spec.specHash == key.specHash && kernel.find(key.target) &&
        (key.names.empty() || key.names == namesOf(kernel.spec)))
      return &kernel;
  return nullptr;
}

static std::string describe(const KernelKey &key) {
  return "kernel " + (key.names.empty() ? "" : "'" + key.names[0] + "' ") + "of spec " +
         key.specHash + " for target '" + key.target + "', compiler '" + key.compilerVersion + "'";
}

static std::string shellQuoted(const std::string &text) {
  std::string quoted = "'";
  for (char c : text)
    quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

/// A file as an argument of a shell command: never taken for an option.
static std::string fileArgument(const std::string &file) {
  return shellQuoted(!file.empty() && file[0] == '-' ? "./" + file : file);
}

/// The command that fills a miss.
static std::string compileCommand(const KernelKey &key, const std::string &folder,
                                  const std::string &file, std::string_view specFile) {
  return "mkdir -p " + fileArgument(folder) + " && attn-compile --target=" + key.target + " -o " +
         fileArgument(file) + " " + fileArgument(std::string(specFile));
}

std::string KernelCache::path(const KernelKey &key) const {
  const std::string name = fileName(key);
  return options.folder.empty() ? name : options.folder + "/" + name;
}

//===----------------------------------------------------------------------===//
// The folder
//===----------------------------------------------------------------------===//

KernelCache::Found KernelCache::load(const KernelKey &key) const {
  Found found;
  const std::string file = path(key);
  std::error_code code;
  const fs::file_status status = fs::status(file, code);
  if (options.folder.empty() || status.type() == fs::file_type::not_found)
    return found;
  // Anything but a file could be read forever.
  if (status.type() != fs::file_type::regular) {
    found.damage =
        code ? "cannot read '" + file + "': " + code.message() : "'" + file + "' is not a file";
    return found;
  }
  const uintmax_t size = fs::file_size(file, code);
  if (!code && size > static_cast<uintmax_t>(options.folderBytes)) {
    found.damage = "'" + file + "' has " + std::to_string(size) + " bytes, expected at most " +
                   std::to_string(options.folderBytes);
    return found;
  }
  Result<std::vector<uint8_t>> bytes = readFile(file);
  if (!bytes) {
    // Another process may have made room meanwhile.
    if (fs::exists(file, code))
      found.damage = bytes.message();
    return found;
  }
  Result<Artifact> artifact = parseArtifact(bytes->data(), bytes->size());
  if (!artifact) {
    found.damage = "'" + file + "': " + artifact.message();
    return found;
  }
  auto shared = std::make_shared<const Artifact>(std::move(*artifact));
  const Kernel *kernel = findKernel(*shared, key);
  if (!kernel) {
    found.damage = "'" + file + "' holds no " + describe(key);
    return found;
  }
  // The time of the last use; a folder that cannot be written keeps its order.
  fs::last_write_time(file, fs::file_time_type::clock::now(), code);
  found.kernel = {shared, kernel};
  found.bytes = static_cast<int64_t>(bytes->size());
  return found;
}

/// Removes what was used longest ago until the folder keeps to its bound, and what writers that
/// were killed left behind. Another process may do the same: files that are gone count as removed.
void KernelCache::trimFolder(const std::string &keep) const {
  struct File {
    fs::path path;
    fs::file_time_type time;
    int64_t bytes;
  };
  std::vector<File> files;
  int64_t total = 0;
  std::error_code code;
  const fs::file_time_type now = fs::file_time_type::clock::now();
  for (fs::directory_iterator it(options.folder, code), end; !code && it != end;
       it.increment(code)) {
    std::error_code gone;
    const std::string name = it->path().filename().string();
    const fs::file_time_type time = fs::last_write_time(it->path(), gone);
    if (gone)
      continue;
    if (isTemporary(name) && now - time > std::chrono::hours(1))
      fs::remove(it->path(), gone);
    if (!isEntry(name) || !fs::is_regular_file(it->path(), gone))
      continue;
    const int64_t bytes = static_cast<int64_t>(fs::file_size(it->path(), gone));
    if (gone)
      continue;
    total += bytes;
    if (name != keep)
      files.push_back({it->path(), time, bytes});
  }
  std::sort(files.begin(), files.end(), [](const File &a, const File &b) {
    return a.time != b.time ? a.time < b.time : a.path < b.path;
  });
  for (const File &file : files) {
    if (total <= options.folderBytes)
      return;
    std::error_code gone;
    fs::remove(file.path, gone);
    total -= file.bytes;
  }
}

void KernelCache::publish(const std::string &name, const std::vector<uint8_t> &bytes) {
  const std::string file = options.folder + "/" + name;
  std::error_code code;
  fs::create_directories(options.folder, code);
  const fs::file_type type = fs::symlink_status(file, code).type();
  if (type != fs::file_type::regular && type != fs::file_type::not_found)
    fs::remove(file, code); // a folder that holds something stays, and the write is refused
  Status status =
      static_cast<int64_t>(bytes.size()) > options.folderBytes
          ? Status(Error{"'" + file + "' takes " + std::to_string(bytes.size()) +
                         " bytes, the cache at most " + std::to_string(options.folderBytes)})
          : writeFileAtomically(file, bytes.data(), bytes.size());
  if (status)
    return trimFolder(name);
  std::lock_guard<std::mutex> lock(mutex);
  ++counts.folderErrors;
  counts.lastFolderError = status.message();
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

void KernelCache::forget(std::list<Entry>::iterator entry) {
  counts.memoryBytes -= entry->bytes;
  byName.erase(entry->name);
  entries.erase(entry);
}

void KernelCache::remember(const std::string &name, const KernelKey &key,
                           const CachedKernel &kernel, int64_t bytes) {
  std::lock_guard<std::mutex> lock(mutex);
  if (auto it = byName.find(name); it != byName.end())
    forget(it->second); // of another key, see get()
  if (bytes > options.memoryBytes)
    return;
  entries.push_front({name, key, kernel, bytes});
  byName[name] = entries.begin();
  counts.memoryBytes += bytes;
  while (counts.memoryBytes > options.memoryBytes)
    forget(std::prev(entries.end()));
}

KernelCacheStats KernelCache::stats() const {
  std::lock_guard<std::mutex> lock(mutex);
  return counts;
}

Result<CachedKernel> KernelCache::produce(const KernelKey &key, const std::string &name,
                                          const Compile &compile, std::string_view specFile) {
  Found found = load(key);
  {
    std::lock_guard<std::mutex> lock(mutex);
    counts.folderHits += found.kernel.kernel != nullptr;
    counts.damaged += !found.damage.empty();
  }
  if (found.kernel.kernel) {
    remember(name, key, found.kernel, found.bytes);
    return found.kernel;
  }
  if (!compile)
    return Error{
        describe(key) + " is not in the kernel cache" +
        (found.damage.empty() ? "" : " (" + found.damage + ")") + ", and there is no compiler" +
        (options.folder.empty()
             ? ""
             : "; make it with: " + compileCommand(key, options.folder, path(key), specFile))};
  Result<Artifact> artifact = compile(key);
  if (!artifact)
    return Error{artifact.message()};
  auto shared = std::make_shared<const Artifact>(std::move(*artifact));
  const CachedKernel kernel = {shared, findKernel(*shared, key)};
  if (!kernel.kernel)
    return Error{"kernel cache: what was compiled holds no " + describe(key)};
  const std::vector<uint8_t> bytes = serialize(*shared);
  {
    std::lock_guard<std::mutex> lock(mutex);
    ++counts.compiled;
  }
  if (!options.folder.empty())
    publish(name, bytes);
  remember(name, key, kernel, static_cast<int64_t>(bytes.size()));
  return kernel;
}

Result<CachedKernel> KernelCache::get(const KernelKey &key, const Compile &compile,
                                      std::string_view specFile) {
  if (Status status = checkKey(key); !status)
    return Error{status.message()};
  const std::string name = fileName(key);
  std::unique_lock<std::mutex> lock(mutex);
  // Another thread's attempt may fail where this one's would not, so nothing is taken from it but
  // what it left in memory or in the folder.
  produced.wait(lock, [&] { return inProgress.count(name) == 0; });
  // Two keys may have one file name, of which a part is a hash.
  if (auto it = byName.find(name); it != byName.end() && it->second->key == key) {
    entries.splice(entries.begin(), entries, it->second);
    ++counts.memoryHits;
    return entries.front().kernel;
  }
  inProgress.insert(name);
  lock.unlock();
  // However the attempt ends.
  struct Done {
    KernelCache &cache;
    const std::string &name;
    ~Done() {
      std::lock_guard<std::mutex> lock(cache.mutex);
      cache.inProgress.erase(name);
      cache.produced.notify_all();
    }
  } done{*this, name};
  return produce(key, name, compile, specFile);
}
