// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The memory of a step on the GPU path: page-locked host slots that the builders write into, and
// device slots that kernels read. Both are sized by the largest step before the first one and never
// grow; every part has a fixed place in its slot, so a captured launch stays good.
#ifndef ATTN_RUNTIME_CUDASTAGE_H
#define ATTN_RUNTIME_CUDASTAGE_H

#include "attn/Core/Manifest.h"
#include "attn/Core/Status.h"
#include "attn/Runtime/CudaDriver.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace attn::rt {

/// The largest step. What is not needed by a kernel may be left 0: a step that needs it is refused.
struct StepLimits {
  int64_t requests = 0;
  int64_t tokens = 0;
  int64_t ranges = 0; ///< live ones of all requests, in one table
  /// Longest seq_len and extent of a dimension k. Looked at for masks that do not fuse and for
  /// tables with such a dimension only; others take keys of any number.
  int64_t keys = 0;
  int64_t documentKeys = 0; ///< seq_len of all requests, for kernels that read documents themselves
  int64_t slots = 0;        ///< largest extent of a dimension slot
  int64_t buckets = 0;      ///< and of a dimension bucket
  int64_t cuts = 0;         ///< of the batch, see CudaPlan::build
  /// Of requests whose length the device alone knows, the largest length less the smallest. 0:
  /// there are none.
  int64_t slack = 0;
  int64_t pages = 0; ///< with keys, of all requests; for recipes of page runs
};

/// Memory of the caller's. It must be aligned to kCudaStageAlignment and stay while the plan does;
/// `host` has to be page-locked, else copies from it wait.
struct CudaWorkspace {
  void *host = nullptr;
  size_t hostBytes = 0;
  CudaPointer device = 0;
  size_t deviceBytes = 0;
};
constexpr size_t kCudaStageAlignment = 256;

struct CudaStageSizes {
  size_t hostBytes = 0;
  size_t deviceBytes = 0;
};

struct CudaPlanOptions {
  StepLimits limits;
  /// Launches may be captured into graphs and replayed for later steps. There is one device slot
  /// then; a launch has the grid of the largest step, and does the work of the step it runs in.
  bool forGraphs = false;
  /// Null: the plan allocates its memory.
  CudaWorkspace workspace;
  /// Debug: a step that has to wait for a copy, or allocates on the heap, fails.
  bool isStrict = false;
  /// The number of heap allocations of this thread so far, for isStrict. Null: they are not looked
  /// at.
  int64_t (*heapAllocations)() = nullptr;
};

/// Where a part of a step lives.
enum class FieldHome : uint8_t {
  Host,     ///< read by builders only, never copied
  Step,     ///< copied every step
  Constant, ///< copied when its content changes
};
std::string_view toString(FieldHome home);

/// A part of a step and its place at most.
struct CudaField {
  std::string name; ///< "work", "table 'slopes'", "recipe 'splits'"
  FieldHome home = FieldHome::Step;
  size_t bytes = 0;
};

/// Kinds of steps that cannot be built.
enum class CudaStepFault : uint8_t {
  None,
  TooLarge, ///< past the limits
  Captured, ///< not what captured launches hold
  Unsuited, ///< without what a recipe is built from
  Failed,   ///< the driver refused something, a strict plan would have waited or allocated, or the
            ///< records cannot hold the step
};

/// What steps have cost so far.
struct CudaStepCounts {
  uint64_t steps = 0;
  uint64_t copies = 0;         ///< enqueued, those of constants included
  uint64_t constantCopies = 0; ///< of tables whose content changed, or was new
  uint64_t waits = 0;          ///< for the copy of two steps before
  uint64_t copiedBytes = 0;
};

} // namespace attn::rt

#endif // ATTN_RUNTIME_CUDASTAGE_H
