// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Steps of a serving engine whose metadata is timed, and everything that is built for one of them,
// in memory that is used again.
#ifndef ATTN_BENCH_HOST_STEPS_H
#define ATTN_BENCH_HOST_STEPS_H

#include "attn/Core/Batch.h"
#include "attn/Core/Manifest.h"
#include "attn/Runtime/SplitPlan.h"
#include "attn/Runtime/WorkList.h"

#include <vector>

namespace bench {

/// A mask by name: "gemma" ((causal and window) or mm_prefix with the same clamp), "document",
/// "global" (window both ways or global tokens), "rswa" (causal and (prefix or window)),
/// "predicate" (causal, a window and every third diagonal: does not fuse).
attn::core::MaskProgram maskOf(const char *name);
bool isFollowedMask(const char *name);

/// A batch for any of those masks: equal requests of `queryLen` queries behind `context` keys, each
/// with `ranges` ranges of 20 tokens spread over its queries, documents of 700 tokens, a prefix of
/// 256 tokens; window radius 1023. 8 heads, 4 key/value heads.
attn::core::Batch step(int64_t requests, int64_t queryLen, int64_t context, int64_t ranges);

/// Of a kernel for head dimension 256: query tiles of two row groups, key blocks of 80.
attn::core::CudaLaunch launchShape();

/// Builds all of a step's metadata.
class StepBuilder {
public:
  /// The mask has to outlive the builder.
  StepBuilder(const attn::core::MaskProgram &mask, const char *name,
              const attn::core::Batch &largest);

  /// Rows of the query table. Returns the rows covered.
  int64_t buildTable(const attn::core::Batch &batch);
  /// Tiles, entries, bitmaps and order.
  attn::rt::WorkListView buildList(const attn::core::Batch &batch);
  /// The `measured` policy for an H200, and its plan if tiles are split.
  int64_t buildSplits(const attn::rt::WorkListView &list);
  /// A plan, whatever the policy says.
  int64_t buildPlan(const attn::rt::WorkListView &list, const attn::rt::Splits &splits);

  std::vector<attn::core::Range> rows;

private:
  std::vector<attn::core::Range> scratch;
  attn::rt::WorkListBuilder builder;
  std::vector<attn::core::WorkItem> work;
  std::vector<attn::core::TileHeader> tiles;
  std::vector<attn::core::TileEntry> entries;
  std::vector<uint32_t> visible;
  attn::rt::SplitPlan plan;
};

} // namespace bench

#endif // ATTN_BENCH_HOST_STEPS_H
