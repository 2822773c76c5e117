// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What an artifact says about itself: the kernel's shapes and semantics (as a mask program) and,
// per target, the code that computes it and the tables that code reads. Compiler and runtime meet
// here.
#ifndef ATTN_CORE_MANIFEST_H
#define ATTN_CORE_MANIFEST_H

#include "attn/Core/CudaAbi.h"
#include "attn/Core/MaskProgram.h"
#include "attn/Core/Recipe.h"
#include "attn/Core/Status.h"
#include "attn/Core/Tensor.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attn::core {

/// Version of the artifact container, of the manifest's keys and of the calling conventions
/// (NativeAbi.h, CudaAbi.h). Any other one is refused.
constexpr int64_t kArtifactFormatVersion = 5;

/// Largest number of heads and head dimension of a kernel.
constexpr int64_t kMaxKernelExtent = int64_t(1) << 20;

/// What does not change from batch to batch.
struct KernelSpec {
  std::string name;
  std::string specHash; ///< 64 hex digits; equal for specs that differ in names or printing only
  int64_t numHeads = 0;
  int64_t numKvHeads = 0;
  int64_t dimQk = 0;
  int64_t dimV = 0;
  DType qType = DType::F32;
  DType kvType = DType::F32;
  /// Scale of q.k: parameter `scaleParam` of the program when >= 0, else the literal `scale`.
  double scale = 1;
  int32_t scaleParam = -1;
  MaskProgram program;
};

/// How the tiles of a kernel are classified on the host.
enum class TilePlan : uint8_t {
  Intervals, ///< rows are interval sets: exact classes
  Abstract,  ///< abstract evaluation over boxes: sound classes
};
std::string_view toString(TilePlan plan);
std::optional<TilePlan> parseTilePlan(std::string_view text);

/// What a GPU kernel needs from its launch; see attn/Core/CudaAbi.h.
struct CudaLaunch {
  int64_t groups = 0;        ///< row groups of kGroupRows queries in a query tile
  int64_t keyTile = 0;       ///< keys of a block
  int64_t threads = 0;       ///< of a CTA
  int64_t sharedBytes = 0;   ///< dynamic shared memory
  bool testsVisible = false; ///< finds hidden keys by itself: entries need no bitmaps
  bool countsTiles = false;  ///< instrumented: writes TileCounters

  int64_t queryTile() const { return groups * kGroupRows; }
};

/// Code of one kernel for one target.
struct KernelBinary {
  std::string target; ///< "cpu", "sm_90a"
  /// "elf-x86-64": a relocatable object, see attn/Core/NativeAbi.h. "ptx": text, NUL-terminated.
  /// "cubin": an executable image of the driver's.
  std::string format;
  int32_t blob = -1;     ///< number of the code in Artifact::blobs; kernels may share one
  std::string entry;     ///< symbol that computes O and LSE
  std::string maskEntry; ///< symbol that writes the dense mask; native code only
  TilePlan tilePlan = TilePlan::Abstract;
  /// Tables in the order the code takes them: the program's tables, then built ones, whose `source`
  /// is a number in this list.
  std::vector<TableDecl> tables;
  std::optional<CudaLaunch> cuda; ///< GPU targets
  std::vector<Recipe> recipes;    ///< GPU targets: what else the runtime builds every step
};

/// One kernel of an artifact.
struct Kernel {
  KernelSpec spec;
  std::vector<KernelBinary> binaries;

  /// The first binary for `target`.
  const KernelBinary *find(std::string_view target) const {
    for (const KernelBinary &binary : binaries)
      if (binary.target == target)
        return &binary;
    return nullptr;
  }
};

/// One artifact: at least one kernel, names unique.
struct Artifact {
  std::string compilerVersion;
  std::vector<Kernel> kernels;
  std::vector<std::vector<uint8_t>> blobs;
};

/// The container: "ATTNART\n", size of the manifest and its FNV-1a checksum (u64, little-endian),
/// the manifest (JSON), then the code blobs one after the other; the manifest lists their offsets
/// (from the end of the manifest), sizes and FNV-1a checksums.
std::vector<uint8_t> serialize(const Artifact &artifact);
/// Reads and checks a container; the program is verified. Errors name what is wrong; "not an attn
/// artifact" for foreign files.
Result<Artifact> parseArtifact(const uint8_t *data, size_t size);

/// Files. Writing goes through a temporary name beside `path` and a rename, so no partial file is
/// left behind.
Result<Artifact> readArtifact(const std::string &path);
Status writeArtifact(const Artifact &artifact, const std::string &path);

/// Whole-file helpers with the same promise; used by every tool that writes output.
Result<std::vector<uint8_t>> readFile(const std::string &path);
Status writeFileAtomically(const std::string &path, const void *data, size_t size);

} // namespace attn::core

#endif // ATTN_CORE_MANIFEST_H
