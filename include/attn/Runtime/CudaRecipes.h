// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a step built by the recipes of its code (attn/Core/Recipe.h), for kernels of the engine's
// own. Every array lies in the slot of the step, on the host and on the device, at a place that
// does not depend on the step.
#ifndef ATTN_RUNTIME_CUDARECIPES_H
#define ATTN_RUNTIME_CUDARECIPES_H

#include "attn/Core/Batch.h"
#include "attn/Core/Recipe.h"
#include "attn/Runtime/Builders.h"
#include "attn/Runtime/CudaDriver.h"
#include "attn/Runtime/SplitPlan.h"

#include <cstdint>

namespace attn::rt {

/// Elements [0, host.size) of the step. The host's copy may be read until the build after the next.
template <class T>
struct CudaArray {
  Span<const T> host;
  CudaPointer device = 0;
};

/// Numbers of the step, on the device too: a captured kernel finds there what changes between
/// replays. Those of other kinds are 0.
struct RecipeCounts {
  int64_t requests; ///< of the step
  int64_t items;    ///< ranges; runs
  // Split plan: as SplitSizes.
  int64_t tiles;
  int64_t pieces;
  int64_t entries;
  int64_t work;
  int64_t combines;
  int64_t partialRows;
};
static_assert(sizeof(RecipeCounts) == 64, "device layout");

/// One recipe of the step built last. Arrays of other kinds are empty.
struct CudaRecipe {
  const core::Recipe *recipe = nullptr; ///< of the binary
  CudaArray<RecipeCounts> counts;       ///< one

  // Range tensor.
  /// [requests, perRequest], inclusive, rows filled up with (-1, -1). Empty in a step without
  /// ranges, where the plan is not for graphs.
  CudaArray<core::Range> ranges;

  // Page runs: those of request b are offsets[b] .. offsets[b + 1].
  CudaArray<PageRun> runs;
  CudaArray<int64_t> offsets; ///< [requests + 1]

  // Split plan, see SplitMemory. The tiles it cuts and the bitmaps of its entries are those of the
  // step's work list; entries are its own.
  CudaArray<SplitPiece> pieces;
  CudaArray<int32_t> pieceBegin; ///< [tiles + 1]
  CudaArray<core::TileEntry> entries;
  CudaArray<SplitWork> work;
  CudaArray<SplitCombine> combines;
  CudaArray<core::TileHeader> tiles;
  CudaArray<uint32_t> visible;
  Splits splits; ///< what the policy chose
};

} // namespace attn::rt

#endif // ATTN_RUNTIME_CUDARECIPES_H
