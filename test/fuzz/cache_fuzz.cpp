// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Any bytes in a file of the kernel cache give the kernel that was asked for, or are compiled over.
#include "Subject.h"

#include "attn/Runtime/KernelCache.h"

#include <cstdio>
#include <filesystem>
#include <fstream>

#include <unistd.h>

using namespace attn;
using namespace attn::core;

namespace {

/// A folder that goes with the program.
struct Folder {
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "attn-fuzz-XXXXXX").string();
    fuzz::require(::mkdtemp(pattern.data()) != nullptr, "a folder for files");
    path = pattern;
  }
  ~Folder() {
    std::error_code code;
    std::filesystem::remove_all(path, code);
  }
  std::string path;
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const Folder folder;
  static const Artifact artifact = fuzz::artifact();
  static const std::vector<uint8_t> bytes = serialize(artifact);
  const rt::KernelKey key =
      rt::kernelKey(artifact.kernels[0].spec, "cpu", artifact.compilerVersion);
  rt::KernelCache cache({folder.path, 1 << 20, 1 << 20});
  std::ofstream(cache.path(key), std::ios::binary)
      .write(reinterpret_cast<const char *>(data), static_cast<std::streamsize>(size));
  // Without a compiler: the kernel, or a miss that says how to make it.
  const Result<rt::CachedKernel> found = cache.get(key);
  if (!found.ok()) {
    fuzz::require(!found.message().empty() && found.message().size() < 4000, "a short message");
  } else {
    fuzz::require(found->kernel->spec.specHash == key.specHash && found->kernel->find("cpu"),
                  "the kernel that was asked for");
    fuzz::require(serialize(*found->artifact) == bytes, "equal to the one that was stored");
  }
  bool compiled = false;
  const Result<rt::CachedKernel> made = cache.get(key, [&](const rt::KernelKey &) {
    compiled = true;
    return Result<Artifact>(artifact);
  });
  fuzz::require(made.ok() && compiled == !found.ok(), "what is damaged is compiled");
  fuzz::require(serialize(*made->artifact) == bytes, "the kernel");
  return 0;
}
