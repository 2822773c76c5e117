// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the targets can do, without a compiler: whether a configuration compiles and runs, else
// every reason why not; and which of several kernels a step takes. Both are driven by tables.
#ifndef ATTN_RUNTIME_CAPABILITY_H
#define ATTN_RUNTIME_CAPABILITY_H

#include "attn/Core/Manifest.h"
#include "attn/Core/Status.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace attn::rt {

//===----------------------------------------------------------------------===//
// Targets
//===----------------------------------------------------------------------===//

/// A row of the table of targets. The compiler has its own facts of its targets; a test of the
/// compiler's keeps both equal.
struct TargetCapability {
  std::string name;
  std::vector<std::string> types; ///< of q and kv
  bool takesTypesThatDiffer = true;
  std::vector<int64_t> dims; ///< of q, k and v; empty: any
  bool takesDimsThatDiffer = true;
  bool takesRanges = true;
  bool takesSoftCap = true;
  bool takesSinks = false;
  bool takesPages = true;        ///< of any size
  bool writesPartials = false;   ///< f32 O and LSE of a part of the keys, for context parallelism
  int64_t mostArgumentWords = 0; ///< of parameters and tables; 0: any
};
const std::vector<TargetCapability> &targetCapabilities();

/// What a kernel asks of a target, and a launch of the kernel.
struct Configuration {
  std::string target;
  std::string qType; ///< "bf16"; any name, also of types that no target takes
  std::string kvType;
  int64_t numHeads = 1;
  int64_t numKvHeads = 1;
  int64_t dimQk = 0;
  int64_t dimV = 0;
  int64_t numParams = 0;
  int64_t numTables = 0; ///< built ones included
  bool hasRanges = false;
  bool hasSoftCap = false;
  bool hasSink = false;
  // Of the launch.
  int64_t pageSize = 0; ///< keys; 0: contiguous
  bool isContextParallel = false;
};

/// What `spec` asks for on `target`, for contiguous keys.
Configuration configurationOf(const core::KernelSpec &spec, std::string_view target);

/// Every reason why a configuration is not supported, most basic first; none: it is. Reasons of the
/// compiler have the compiler's words.
std::vector<std::string> reasonsAgainst(const Configuration &configuration);
inline bool isSupported(const Configuration &configuration) {
  return reasonsAgainst(configuration).empty();
}

//===----------------------------------------------------------------------===//
// Selection
//===----------------------------------------------------------------------===//

/// When a kernel may be taken.
enum class KernelUse : uint8_t {
  NoRanges,      ///< no query of the batch lies in a range
  IgnoresRanges, ///< the layer is one that ranges do not bind
  Always,        ///< fallback
};
std::string_view toString(KernelUse use);

struct KernelCandidate {
  const core::Kernel *kernel = nullptr; ///< of an artifact, which must outlive the selector
  KernelUse use = KernelUse::Always;
  int32_t priority = 0; ///< the highest is tried first; equal ones in the given order
  int64_t number = 0;   ///< the caller's, for pick()
};

/// Facts of one step of one layer.
struct SelectorFacts {
  bool batchHasRanges = false;
  bool layerIgnoresRanges = false;
};

/// Kernels by priority. Made once; pick() allocates nothing but the text of an error.
class KernelSelector {
public:
  /// Leaves out candidates that have no code for `target` or that it does not support for launches
  /// like `launch` (of which pageSize and isContextParallel are read); an error if none is left.
  static core::Result<KernelSelector> create(std::vector<KernelCandidate> candidates,
                                             std::string_view target,
                                             const Configuration &launch = {});

  /// The first candidate whose use fits. Whatever the use says, a kernel without ranges is never
  /// taken where they bind.
  core::Result<const KernelCandidate *> pick(const SelectorFacts &facts) const;
  /// Its kernel.
  core::Result<const core::Kernel *> select(const SelectorFacts &facts) const;

  /// Why each candidate that create() left out was, one a line.
  const std::string &leftOut() const { return rejected; }

private:
  KernelSelector() = default;

  std::vector<KernelCandidate> candidates;
  std::string rejected;
};

} // namespace attn::rt

#endif // ATTN_RUNTIME_CAPABILITY_H
