// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A cache of compiled kernels, in memory and in a folder that any number of processes share. The
// files are artifacts: attn-compile can put them there too.
#ifndef ATTN_RUNTIME_KERNELCACHE_H
#define ATTN_RUNTIME_KERNELCACHE_H

#include "attn/Core/Manifest.h"
#include "attn/Core/Status.h"

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace attn::rt {

/// What decides the code of a kernel. Lengths, ranges and parameters of a batch do not: a kernel is
/// compiled once for each key.
struct KernelKey {
  std::string specHash;
  std::string target;
  std::string compilerVersion;
  /// Names of the kernel, its parameters and tables, in this order. The hash leaves names out, but
  /// a batch is bound by them, so kernels that differ in names alone are two entries. Empty: any.
  std::vector<std::string> names;

  friend bool operator==(const KernelKey &a, const KernelKey &b) {
    return a.specHash == b.specHash && a.target == b.target &&
           a.compilerVersion == b.compilerVersion && a.names == b.names;
  }
};
KernelKey kernelKey(const core::KernelSpec &spec, std::string_view target,
                    std::string_view compilerVersion);

/// A kernel of the cache; lives as long as some copy of `artifact`, whatever the cache does.
struct CachedKernel {
  std::shared_ptr<const core::Artifact> artifact;
  const core::Kernel *kernel = nullptr; ///< of the artifact; has code for the key's target
};

struct KernelCacheOptions {
  std::string folder;                       ///< made when first written; "": memory only
  int64_t memoryBytes = int64_t(256) << 20; ///< of artifacts kept in memory
  int64_t folderBytes = int64_t(1) << 30;   ///< of artifacts kept in the folder
};

struct KernelCacheStats {
  int64_t memoryHits = 0;
  int64_t folderHits = 0;
  int64_t compiled = 0;
  int64_t damaged = 0;      ///< files that were there and could not be used
  int64_t memoryBytes = 0;  ///< now
  int64_t folderErrors = 0; ///< writes that failed; the kernel was returned all the same
  std::string lastFolderError;
};

/// Thread-safe. Both parts are bounded: the entries used longest ago go first. A file appears whole
/// or not at all, so processes need no lock between them; those that miss at the same time compile
/// each for itself, threads of a process wait for the one that does.
class KernelCache {
public:
  using Compile = std::function<core::Result<core::Artifact>(const KernelKey &)>;

  explicit KernelCache(KernelCacheOptions options) : options(std::move(options)) {}

  /// The kernel of `key`: from memory, from the folder, or from `compile`. A file that is damaged,
  /// or is something else than its name says, counts as missing. A miss without `compile` is an
  /// error; where there is a folder it names the shell command that fills it, with `specFile` as
  /// the spec.
  core::Result<CachedKernel> get(const KernelKey &key, const Compile &compile = nullptr,
                                 std::string_view specFile = "SPEC.mlir");

  KernelCacheStats stats() const;
  /// Where the key's file lies; its name alone without a folder.
  std::string path(const KernelKey &key) const;

private:
  struct Entry {
    std::string name; ///< of the file
    KernelKey key;
    CachedKernel kernel;
    int64_t bytes;
  };
  /// What looking into the folder found.
  struct Found {
    CachedKernel kernel; ///< null: not there, or `damage` says why it cannot be used
    int64_t bytes = 0;
    std::string damage;
  };

  core::Result<CachedKernel> produce(const KernelKey &key, const std::string &name,
                                     const Compile &compile, std::string_view specFile);
  Found load(const KernelKey &key) const;
  void publish(const std::string &name, const std::vector<uint8_t> &bytes);
  void trimFolder(const std::string &keep) const;
  void remember(const std::string &name, const KernelKey &key, const CachedKernel &kernel,
                int64_t bytes);
  void forget(std::list<Entry>::iterator entry);

  const KernelCacheOptions options;
  mutable std::mutex mutex;
  std::condition_variable produced;
  std::set<std::string> inProgress; ///< names that some thread loads or compiles
  std::list<Entry> entries;         ///< last used first
  std::unordered_map<std::string, std::list<Entry>::iterator> byName;
  KernelCacheStats counts;
};

} // namespace attn::rt

#endif // ATTN_RUNTIME_KERNELCACHE_H
