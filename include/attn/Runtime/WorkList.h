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
#include "attn/Runtime/Span.h"
#include "attn/Runtime/SubRange.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace attn::rt {

/// What lies between two cuts of a list. A launch of consecutive parts does consecutive work items.
struct WorkPart {
  int64_t tokenEnd; ///< past its tokens; they start where those of the part before end
  int64_t workEnd;  ///< past its work items, likewise
};

struct WorkList {
  std::vector<core::WorkItem> work; ///< in the order of the grid, part by part
  std::vector<core::TileHeader> tiles;
  std::vector<core::TileEntry> entries;
  std::vector<uint32_t> visible; ///< core::kVisibleWords a bitmap
  std::vector<WorkPart> parts;   ///< one more than there are cuts
  core::TileCounters counts{};   ///< what an instrumented kernel counts for this list
};

/// A list in memory of the caller's, but for `parts`, which the builder keeps until its next list.
struct WorkListView {
  Span<const core::WorkItem> work;
  Span<const core::TileHeader> tiles;
  Span<const core::TileEntry> entries;
  Span<const uint32_t> visible;
  Span<const WorkPart> parts;
  core::TileCounters counts{};

  WorkListView() = default;
  /*implicit*/ WorkListView(const WorkList &list)
      : work(list.work), tiles(list.tiles), entries(list.entries), visible(list.visible),
        parts(list.parts), counts(list.counts) {}
};

/// Whether cuts lie in the batch, from 0 to numTokens, and ascend.
core::Status checkCuts(const core::BatchShape &shape, Span<const int64_t> cuts);

/// Work items [begin, end).
struct WorkSlice {
  int64_t begin = 0, end = 0;
};
/// Those of some tokens; an error if a bound is no cut of the list, nor an end of the batch.
core::Result<WorkSlice> sliceOf(const WorkListView &list, TokenRange tokens);

/// Where the keys lie, as far as the order and the records need it.
struct WorkListKeys {
  const int64_t *kvStart = nullptr; ///< [num_reqs] rows of contiguous K/V, or null: paged
  int64_t bytes = 0;                ///< of K and V of one key in one key/value head
};

/// Keys and values of the key/value heads that run at a time fill at most this much of L2 (of 50 MB
/// on sm_90), so that the query tiles of a head find them there. Measured on an H200, 8 MiB instead
/// of 32 (burst / sustained): dense 128 at 16384 tokens 2.965 / 3.420 -> 2.911 / 3.352 ms, at 4096
/// 0.756 / 0.869 -> 0.745 / 0.850, dense 64 at 16384 3.666 / 4.127 -> 3.624 / 4.051.
constexpr int64_t kL2Budget = int64_t(8) << 20;
/// The same of the last heads of a part in which some tiles cost much more than others. A group of
/// few heads is done soon, and its heaviest tile alone may take longer: at the end nothing runs
/// beside it. Measured, 8 MiB for all instead of 32: documents of 256 to 5120 tokens 0.343 -> 0.363
/// ms.
constexpr int64_t kLastL2Budget = int64_t(32) << 20;

/// The largest batch that memory is sized for.
struct WorkListLimits {
  int64_t requests = 0;
  int64_t tokens = 0;
  int64_t ranges = 0; ///< of all requests, in one table
  int64_t keys = 0;   ///< longest seq_len; looked at for masks that do not fuse only
  int64_t heads = 1;
  int64_t cuts = 0;
  int64_t slack = 0; ///< of a request whose length the device alone knows: most - least
};

struct WorkListSizes {
  int64_t work = 0;
  int64_t tiles = 0;
  int64_t entries = 0;
  int64_t bitmaps = 0; ///< of core::kVisibleWords words
};

struct WorkListMemory {
  Span<core::WorkItem> work;
  Span<core::TileHeader> tiles;
  Span<core::TileEntry> entries;
  Span<uint32_t> visible;
};

/// Builds lists of one kernel, step after step.
///
/// Key blocks start at multiples of launch.keyTile, or, for contiguous K/V where each row group of
/// a tile needs one interval of keys, where its groups compute least. A block is full for a row
/// group only if all of its keys lie in the launch's keys and every row of the group keeps all of
/// them. For masks whose rows are interval sets all classes are exact; for others Skip and Full are
/// never wrong. Bitmaps are exact for any mask. Masks that depend on the head get the records of a
/// query tile once a head, others once.
///
/// A request whose length the device alone knows (BatchShape::isBound) gets tiles with
/// TileHeader::isBound, whose entries are those of every length together. Where a mask is not
/// followed all of its blocks are partial.
///
/// Order, of each part by itself: groups of key/value heads within kL2Budget, where some tile costs
/// more than 1.5 times the mean the last group within kLastL2Budget; inside a group the tiles with
/// most work first, the query heads of a key/value head side by side.
class WorkListBuilder {
public:
  /// `program` must outlive the builder.
  WorkListBuilder(const core::MaskProgram &program, const core::CudaLaunch &launch,
                  core::TilePlan plan);
  WorkListBuilder(WorkListBuilder &&) noexcept;
  WorkListBuilder &operator=(WorkListBuilder &&) noexcept;
  ~WorkListBuilder();

  /// True if the mask is followed without looking at single rows: boolean combinations of named
  /// masks and of comparisons of sums of q, k, parameters and tables of the request or head. Then
  /// the time of a list grows with its tiles, ranges and documents alone, and build() allocates
  /// nothing within the limits that were reserved. Other masks are evaluated row by row.
  bool isFollowed() const;

  /// Memory that the list of any batch within the limits fits.
  WorkListSizes mostSizes(const WorkListLimits &limits) const;
  /// Takes the builder's own memory for such batches.
  void reserve(const WorkListLimits &limits);

  /// Builds the list into memory of the caller's. What does not fit that memory or the 32-bit
  /// fields of the records is an error that names it. Time of a list: O(tiles + runs of rows).
  ///
  /// `cuts`: tokens, ascending, 0 to numTokens, before which the list is cut, so that a launch may
  /// do the tokens between two of them. A tile does not go on past a cut.
  core::Result<WorkListView> build(const core::Batch &batch, const WorkListKeys &keys,
                                   const WorkListMemory &memory, Span<const int64_t> cuts = {});
  /// What the last list takes, also where it did not fit.
  const WorkListSizes &sizes() const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

/// Builds one list with its own memory.
core::Result<WorkList> buildWorkList(const core::MaskProgram &program, const core::Batch &batch,
                                     const core::CudaLaunch &launch, core::TilePlan plan,
                                     const WorkListKeys &keys, Span<const int64_t> cuts = {});

} // namespace attn::rt

#endif // ATTN_RUNTIME_WORKLIST_H
