// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Places of the parts of a step. They are those of the largest step, whatever a step takes of them.
#ifndef ATTN_LIB_RUNTIME_CUDA_STAGELAYOUT_H
#define ATTN_LIB_RUNTIME_CUDA_STAGELAYOUT_H

#include "Recipes.h"

#include "attn/Runtime/CudaStage.h"
#include "attn/Runtime/WorkList.h"

#include <vector>

namespace attn::rt::cuda {

/// Bytes [offset, offset + bytes) of a slot, or of a version of the constants.
struct Section {
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

struct TablePlace {
  FieldHome home = FieldHome::Step;
  Section data;
  Section offsets; ///< ranges and documents
};

/// Those of its arrays that a recipe does not have are empty.
using RecipePlace = std::array<Section, kNumRecipeParts>;

struct StageLayout {
  Section work;
  Section tiles;
  Section entries;
  Section visible;
  Section claims;
  Section listSize;
  Section nothing; ///< what host-only tables point at
  std::vector<TablePlace> tables;
  std::vector<RecipePlace> recipes;

  WorkListSizes most;
  uint64_t slotBytes = 0;
  uint64_t constantBytes = 0; ///< of one version
};

/// Slots on the host, and versions of the constants there.
constexpr int kHostSlots = 2;
/// Slots and versions on the device. One where launches are captured: its address must stay.
constexpr int deviceSlots(const CudaPlanOptions &options) { return options.forGraphs ? 1 : 2; }

/// Where a table of the binary lives.
FieldHome homeOf(const core::KernelSpec &spec, const core::KernelBinary &binary, size_t table);

/// Largest extent of a dimension.
int64_t mostExtent(const core::KernelSpec &spec, core::TableDim dim, const StepLimits &limits);

/// Refuses limits whose memory 64 bits do not count.
core::Result<StageLayout> layOutStage(const core::KernelSpec &spec,
                                      const core::KernelBinary &binary, const StepLimits &limits);

CudaStageSizes stageSizes(const StageLayout &layout, const CudaPlanOptions &options);

} // namespace attn::rt::cuda

#endif // ATTN_LIB_RUNTIME_CUDA_STAGELAYOUT_H
