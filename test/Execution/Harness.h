// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What every execution test needs: compile and load a spec, turn requests into a batch, call the
// native entries, and judge tile records by a predicate.
#ifndef ATTN_TEST_EXECUTION_HARNESS_H
#define ATTN_TEST_EXECUTION_HARNESS_H

#include "Predicates.h"

#include "attn/Compiler/Compiler.h"
#include "attn/Core/Batch.h"
#include "attn/Core/Interval.h"
#include "attn/Core/Manifest.h"
#include "attn/Core/NativeAbi.h"
#include "attn/Runtime/BatchBinding.h"
#include "attn/Runtime/Builders.h"
#include "attn/Runtime/Launch.h"
#include "attn/Runtime/NativeModule.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace exec {

/// One compiled kernel, ready to be called.
struct LoadedKernel {
  const attn::core::Artifact *artifact = nullptr;
  const attn::core::Kernel *kernel = nullptr;
  const attn::core::KernelSpec *spec = nullptr;
  const attn::core::KernelBinary *binary = nullptr;
  attn::core::NativeKernel forward = nullptr;
  attn::core::NativeKernel mask = nullptr;
};

/// The kernels of one spec. Owns artifact and code.
struct LoadedSpec {
  attn::core::Artifact artifact;
  std::vector<attn::rt::NativeModule> modules;
  std::vector<LoadedKernel> kernels; ///< in the artifact's order

  const LoadedKernel *find(const std::string &name) const;
};

/// Compiles `text` for the CPU and loads it, through the artifact's serialized form. Null with a
/// message in `error` when anything fails.
std::unique_ptr<LoadedSpec> compileAndLoad(const std::string &text, bool maskPasses,
                                           unsigned optLevel, std::string &error);

/// Requests in the terms of the batch binder: lengths, mm_ranges as written, and documents under
/// the name doc when `spec` has such a table. Ranges may be cut.
attn::rt::BatchInput batchInput(const attn::core::KernelSpec &spec,
                                const std::vector<truth::Request> &requests);

/// Parameters in the form native code reads.
std::vector<int64_t> nativeParams(const attn::core::MaskProgram &program,
                                  const std::vector<attn::core::ParamValue> &params);

/// Lengths and tables of a batch filled into an argument block, tensors left out.
void fillBatchArgs(attn::core::NativeArgs &args, const attn::core::Batch &batch,
                   const attn::rt::NativeTables &tables, const std::vector<int64_t> &params);

/// Number of pairs of a box that request b keeps by the third truth; the head never matters to the
/// masks judged here.
using KeptFn = std::function<int64_t(int64_t b, attn::core::Interval q, attn::core::Interval k)>;

struct TileTotals {
  int64_t tiles = 0;   ///< tiles of the rectangle that were judged
  int64_t visited = 0; ///< of them visited
  int64_t full = 0;    ///< of them full
  int64_t faulty = -1; ///< request of the fault, if it lies in one
};

/// Judges tile records: complete, ordered, clipped, sound; with `exact` also that a visited tile
/// holds a kept pair and that a tile is full if and only if all its pairs are kept. Empty text when
/// right.
std::string judgeTiles(const std::vector<attn::core::TileRecord> &records,
                       const attn::core::Batch &batch, attn::rt::TileShape shape, int64_t anchor,
                       bool exact, const KeptFn &keptIn, TileTotals &totals);

} // namespace exec

#endif // ATTN_TEST_EXECUTION_HARNESS_H
