// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The state of a plan, which launches read.
#ifndef ATTN_LIB_RUNTIME_CUDA_PLANIMPL_H
#define ATTN_LIB_RUNTIME_CUDA_PLANIMPL_H

#include "StageLayout.h"

#include "attn/Runtime/Cuda.h"
#include "attn/Runtime/SplitPlan.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

namespace attn::rt {

struct CudaPlan::Impl {
  /// What launches are checked against.
  struct Needs {
    bool paged = false;
    int64_t tokens = 0;
    int64_t requests = 0;
    int64_t kvRows = 0;   ///< contiguous: past the last key
    int64_t longest = 0;  ///< keys of a request
    bool seqLens = false; ///< lengths of some requests are read from the device
  };
  /// What captured launches have, and steps for their replays must have too.
  struct Captured {
    bool exists = false;
    bool paged = false;
    std::vector<int64_t> words;
    int64_t kvRows = 0; ///< the fewest
    int64_t pageTableStride = 0;
    int64_t pageSize = 0;
    int64_t numPages = 0; ///< the fewest
    bool seqLens = false; ///< all of them have lengths on the device
  };

  Impl(const CudaKernel &kernel, const CudaPlanOptions &options, bool grows)
      : kernel(&kernel), options(options), grows(grows),
        builder(kernel.spec().program, kernel.shape(), kernel.binary().tilePlan) {}

  // Memory; PlanMemory.cpp.
  core::Status takeMemory();
  core::Status makeRoom(const core::Batch &batch, int64_t cuts);
  core::Status checkLimits(const core::Batch &batch, int64_t cuts) const;
  core::Status awaitSlot(CudaStream stream);
  core::Status copySlot(CudaStream stream);

  // One step; Plan.cpp.
  core::Status build(const core::Batch &batch, const int64_t *kvStart, CudaStream stream,
                     Span<const int64_t> cuts, const PageTable &pages);
  core::Status buildList(const core::Batch &batch, const int64_t *kvStart,
                         Span<const int64_t> cuts);
  core::Status writeTables(const core::Batch &batch);
  core::Status writeRecipes(const core::Batch &batch, const PageTable &pages); ///< Recipes.cpp
  Splits chooseSplits(const core::Recipe &recipe, const core::BatchShape &shape) const;
  core::Status checkCaptured() const;
  void captured(const CudaOperands &operands) const;

  uint8_t *hostSlot() const { return host + static_cast<uint64_t>(slot) * layout.slotBytes; }
  CudaPointer deviceSlot() const {
    return device + static_cast<uint64_t>(slot % cuda::deviceSlots(options)) * layout.slotBytes;
  }
  uint8_t *hostConstants(int version) const {
    return host + cuda::kHostSlots * layout.slotBytes +
           static_cast<uint64_t>(version) * layout.constantBytes;
  }
  CudaPointer deviceConstants(int version) const {
    const int versions = cuda::deviceSlots(options);
    return device + static_cast<uint64_t>(versions) * layout.slotBytes +
           static_cast<uint64_t>(version % versions) * layout.constantBytes;
  }
  /// Rows of Q as launches describe it.
  int64_t queryRows() const { return options.forGraphs ? options.limits.tokens : needs.tokens; }
  /// What a launch does of the step's work.
  core::Result<WorkSlice> sliceFor(const CudaOperands &operands) const;
  /// Number of the count of claimed work (core::kCudaClaims) of the next launch.
  uint32_t nextClaims() const { return launches.fetch_add(1) % kMostLaunches; }

  const CudaKernel *kernel;
  CudaPlanOptions options;
  bool grows; ///< options.limits follow the batches
  cuda::StageLayout layout;
  bool looksAtKeys = false; ///< the limit of the keys counts
  WorkListBuilder builder;
  std::vector<core::Range> scratch; ///< of the ranges' builder

  CudaPinned ownHost;
  CudaMemory ownDevice;
  uint8_t *host = nullptr;
  CudaPointer device = 0;
  CudaEvent copied[cuda::kHostSlots]; ///< the last copy out of a host slot
  bool isCopying[cuda::kHostSlots] = {};
  int slot = 0;          ///< of the step
  int constants = 0;     ///< version of the constants
  int nextConstants = 0; ///< of the step being built
  bool hasConstants = false;

  // The step.
  bool isBuilt = false;
  CudaStepFault fault = CudaStepFault::None;
  WorkListView list;
  size_t numWork = 0; ///< of a launch: those of the largest step where launches are captured
  Needs needs;
  std::vector<int64_t> words;       ///< the argument block; operands are filled in by a launch
  std::vector<cuda::Section> used;  ///< what is copied of the slot, ascending
  std::vector<Splits> recipeSplits; ///< those of split plans
  bool constantsChanged = false;
  CudaStepCounts counts;

  mutable std::atomic<uint32_t> launches{0};
  mutable std::mutex captureMutex;
  mutable Captured capture;
};

} // namespace attn::rt

#endif // ATTN_LIB_RUNTIME_CUDA_PLANIMPL_H
