// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The work of one launch of a GPU kernel, in the records of attn/Core/CudaAbi.h: query tiles, the
// runs of key blocks that each visits with a class for every row group, and the order of the work.
#ifndef ATTN_RUNTIME_WORKLIST_H
#define ATTN_RUNTIME_WORKLIST_H

#include "attn/Core/Batch.h"
#include "attn/Core/CudaAbi.h"
#include "attn/Core/Manifest.h"
#include "attn/Core/Status.h"

#include <cstdint>
#include <vector>

namespace attn::rt {

struct WorkList {
  std::vector<core::WorkItem> work; ///< in the order of the grid
  std::vector<core::TileHeader> tiles;
  std::vector<core::TileEntry> entries;
  std::vector<uint32_t> visible; ///< core::kVisibleWords a bitmap
  core::TileCounters counts{};   ///< what an instrumented kernel counts for this list
};

/// Where the keys lie, as far as the order and the records need it.
struct WorkListKeys {
  const int64_t *kvStart = nullptr; ///< [num_reqs] rows of contiguous K/V, or null: paged
  int64_t bytes = 0;                ///< of K and V of one key in one key/value head
};

/// Keys and values of the key/value heads that run at a time fill at most this much of L2 (of 50 MB
/// on sm_90), so that the query tiles of a head find them there.
constexpr int64_t kL2Budget = int64_t(32) << 20;

/// Builds the list. Key blocks start at multiples of launch.keyTile; a block is full for a row
/// group only if all of its keys lie in the launch's keys and every row of the group keeps all of
/// them. For masks whose rows are interval sets all classes are exact; for others Skip and Full are
/// never wrong. Bitmaps are exact for any mask. Masks that depend on the head get the records of a
/// query tile once a head, others once.
///
/// Order: groups of key/value heads within kL2Budget; inside a group the tiles with most work
/// first, the query heads of a key/value head side by side.
///
/// What does not fit the 32-bit fields of the records is an error that names it.
core::Result<WorkList> buildWorkList(const core::MaskProgram &program, const core::Batch &batch,
                                     const core::CudaLaunch &launch, core::TilePlan plan,
                                     const WorkListKeys &keys);

} // namespace attn::rt

#endif // ATTN_RUNTIME_WORKLIST_H
