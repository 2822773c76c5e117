// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Builders of attn-c/Engine.h: range tensors, page runs, work lists.
#include "attn/Runtime/Builders.h"

#include "Support.h"
#include "WorkArrays.h"

#include <algorithm>
#include <cstddef>

using namespace attn;
using namespace attn::capi;

attn_status attn_plan_range_tensor(const attn_plan *plan, const char *name, int64_t perRequest,
                                   int32_t *tensor, int64_t capacity, int64_t *numRanges,
                                   int64_t *most) {
  static_assert(sizeof(core::Range) == 2 * sizeof(int32_t), "a range is a pair of int32");
  return guarded([&]() -> attn_status {
    if (!plan)
      return nullArgument("plan");
    if (!numRanges)
      return nullArgument("num_ranges");
    if (!plan->isPrepared)
      return notPrepared();
    size_t table = 0;
    if (attn_status status = findSource(plan->settings.kernel->spec.program, name, true, table);
        status != ATTN_OK)
      return status;
    const core::Batch &batch = plan->bound.batch;
    const core::TableData &ranges = batch.tables[table];
    const int64_t longest = rt::mostRanges(ranges);
    *numRanges = static_cast<int64_t>(ranges.ranges.size());
    if (most)
      *most = longest;
    if (!tensor)
      return ATTN_OK;
    if (perRequest < longest)
      return tooSmall("per_request", perRequest, longest);
    const int64_t requests = batch.shape.numReqs();
    if (requests > 0 && capacity / requests < perRequest)
      return Failure(ATTN_TOO_LARGE, "capacity is " + std::to_string(capacity) +
                                         ", expected at least " + std::to_string(requests) +
                                         " requests of " + std::to_string(perRequest));
    const core::Result<int64_t> built = rt::buildRangeTensor(
        batch.shape, ranges, perRequest, {reinterpret_cast<core::Range *>(tensor), capacity});
    return built ? ATTN_OK : attn_status(Failure(ATTN_FAILED, built.message()));
  });
}

attn_status attn_plan_page_runs(const attn_plan *plan, attn_page_run *runs, int64_t capacity,
                                int64_t *offsets, int64_t *numRuns) {
  static_assert(sizeof(attn_page_run) == sizeof(rt::PageRun) &&
                    offsetof(attn_page_run, cache_page) == offsetof(rt::PageRun, cachePage) &&
                    offsetof(attn_page_run, count) == offsetof(rt::PageRun, count),
                "the same on both sides");
  return guarded([&]() -> attn_status {
    if (!plan)
      return nullArgument("plan");
    if (!numRuns)
      return nullArgument("num_runs");
    if (!plan->isPrepared)
      return notPrepared();
    const core::BatchShape &shape = plan->bound.batch.shape;
    const core::KvLayout &layout = plan->layout;
    if (layout.pageSize == 0)
      return Failure(ATTN_INVALID_ARGUMENT, "the batch has no pages");
    const int64_t most = rt::mostPageRuns(shape, layout.pageSize);
    if (!runs) {
      *numRuns = most;
      return ATTN_OK;
    }
    if (!offsets)
      return nullArgument("offsets");
    if (!layout.pageTable && most > 0)
      return Failure(ATTN_INVALID_ARGUMENT, "the batch has no attn_batch.block_table");
    if (capacity < most) {
      *numRuns = most;
      return tooSmall("capacity", capacity, most);
    }
    const core::Result<int64_t> built = rt::buildPageRuns(
        shape, {layout.pageTable, layout.requestStride, layout.pageSize},
        {reinterpret_cast<rt::PageRun *>(runs), capacity}, {offsets, shape.numReqs() + 1});
    if (!built)
      return Failure(ATTN_FAILED, built.message());
    *numRuns = *built;
    return ATTN_OK;
  });
}

/// A launch shape that records can hold.
static attn_status readShape(const attn_launch_shape *given, core::CudaLaunch &launch) {
  attn_launch_shape shape;
  if (auto fault = readStruct(given, "attn_launch_shape", shape))
    return Failure(ATTN_INVALID_ARGUMENT, *fault);
  constexpr int64_t kMostGroups = 32 / core::kGroupClassBits;
  if (shape.row_groups < 1 || shape.row_groups > kMostGroups || shape.key_tile < 1 ||
      shape.key_tile > core::kMaxKeyTile)
    return Failure(ATTN_INVALID_ARGUMENT, "attn_launch_shape: " + std::to_string(shape.row_groups) +
                                              " row_groups and key_tile " +
                                              std::to_string(shape.key_tile) + ", expected 1 to " +
                                              std::to_string(kMostGroups) + " and 1 to " +
                                              std::to_string(core::kMaxKeyTile));
  launch.groups = shape.row_groups;
  launch.keyTile = shape.key_tile;
  launch.testsVisible = shape.tests_visible != 0;
  return ATTN_OK;
}

attn_status attn_plan_work_list(const attn_plan *plan, const attn_launch_shape *shape,
                                attn_work_list *list) {
  return guarded([&]() -> attn_status {
    if (!plan)
      return nullArgument("plan");
    if (!plan->isPrepared)
      return notPrepared();
    if (attn_status status = requireExactLengths(*plan, "a work list"); status != ATTN_OK)
      return status;
    core::CudaLaunch launch;
    if (attn_status status = readShape(shape, launch); status != ATTN_OK)
      return status;
    attn_work_list out;
    if (auto fault = readStruct(list, "attn_work_list", out))
      return Failure(ATTN_INVALID_ARGUMENT, *fault);
    const core::KernelSpec &spec = plan->settings.kernel->spec;
    const bool isPaged = plan->layout.pageSize != 0;
    const int64_t keyBytes = (spec.dimQk + spec.dimV) * core::byteSize(spec.kvType);
    // Masks whose rows are no interval sets are found out by the builder.
    const core::Result<rt::WorkList> built =
        rt::buildWorkList(spec.program, plan->bound.batch, launch, core::TilePlan::Intervals,
                          {isPaged ? nullptr : plan->layout.kvStart, keyBytes});
    if (!built)
      return Failure(ATTN_TOO_LARGE, built.message());
    ArrayWriter writer("attn_work_list");
    writer.array("work", out.work, out.work_capacity, list->num_work, built->work);
    writer.array("tile", out.tiles, out.tile_capacity, list->num_tiles, built->tiles);
    writer.array("entry", out.entries, out.entry_capacity, list->num_entries, built->entries);
    writer.array("bitmap", out.visible, out.bitmap_capacity, list->num_bitmaps, built->visible,
                 core::kVisibleWords);
    return writer.finish();
  });
}
