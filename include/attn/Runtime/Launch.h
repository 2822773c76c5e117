// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs the native code of a `cpu` kernel on a problem.
#ifndef ATTN_RUNTIME_LAUNCH_H
#define ATTN_RUNTIME_LAUNCH_H

#include "attn/Core/Problem.h"
#include "attn/Runtime/NativeModule.h"
#include "attn/Runtime/SubRange.h"

#include <vector>

namespace attn::rt {

/// Tables and parameters of one batch as native code reads them, built tables included. Points into
/// the batch, which must outlive it.
class NativeTables {
public:
  NativeTables() = default;

  /// Number of core::Range that the built tables of `tokens` tokens take.
  static int64_t rowsNeeded(const core::KernelBinary &binary, int64_t tokens);

  /// `rows`: storage of rowsNeeded() rows for the built tables, or null to keep them here.
  NativeTables(const core::KernelSpec &spec, const core::KernelBinary &binary,
               const core::Batch &batch, core::Range *rows = nullptr);

  const core::NativeTable *tables() const { return entries.data(); }
  const int64_t *params() const { return paramWords.data(); }

private:
  std::vector<core::NativeTable> entries;
  std::vector<int64_t> paramWords;
  std::vector<core::Range> ownRows;
};

/// Where results go; f32.
struct NativeOutput {
  float *o = nullptr;
  int64_t oTokenStride = 0, oHeadStride = 0;
  float *lse = nullptr; ///< [heads, lseHeadStride]
  int64_t lseHeadStride = 0;
};

/// The loaded code of one kernel. Immutable: one runner serves any number of threads. Spec and
/// binary must outlive it.
class NativeRunner {
public:
  /// Loads the `cpu` code of `kernel`; an error if the artifact holds none.
  static core::Result<NativeRunner> create(const core::Artifact &artifact,
                                           const core::Kernel &kernel);

  const core::KernelSpec &spec() const { return *kernelSpec; }
  const core::KernelBinary &binary() const { return *kernelBinary; }

  /// Computes O and LSE of the rows of `part`; other rows are not touched. `threads` workers share
  /// the tokens; the result does not depend on their number.
  void run(const core::Problem &problem, const NativeTables &tables, const NativeOutput &output,
           const SubRange &part, unsigned threads = 1) const;

  /// The mask as bytes: keep[(h * tokens + token) * stride + k] for k in [keyBegin, keyEnd), 0
  /// elsewhere. `stride` is at least the largest keyEnd.
  std::vector<uint8_t> denseMask(const core::Batch &batch, const NativeTables &tables,
                                 int64_t stride) const;

private:
  NativeRunner(NativeModule module) : module(std::move(module)) {}

  NativeModule module;
  const core::KernelSpec *kernelSpec = nullptr;
  const core::KernelBinary *kernelBinary = nullptr;
  core::NativeKernel entry = nullptr;
  core::NativeKernel maskEntry = nullptr;
};

} // namespace attn::rt

#endif // ATTN_RUNTIME_LAUNCH_H
