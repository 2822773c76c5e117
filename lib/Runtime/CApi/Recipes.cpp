// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What recipes of a plan's code built, of attn-c/Engine.h.
#include "Support.h"
#include "WorkArrays.h"

#include <cstddef>

using namespace attn;
using namespace attn::capi;

ATTN_SAME_RECORD(attn_page_run, rt::PageRun);
ATTN_SAME_RECORD(attn_recipe_counts, rt::RecipeCounts);
ATTN_SAME_RECORD(attn_split_piece, rt::SplitPiece);
ATTN_SAME_RECORD(attn_split_work, rt::SplitWork);
ATTN_SAME_RECORD(attn_split_combine, rt::SplitCombine);
static_assert(offsetof(attn_recipe_counts, partial_rows) ==
                      offsetof(rt::RecipeCounts, partialRows) &&
                  offsetof(attn_recipe_counts, items) == offsetof(rt::RecipeCounts, items) &&
                  offsetof(attn_recipe_counts, work) == offsetof(rt::RecipeCounts, work),
              "the same on both sides");
static_assert(int(core::RecipeKind::RangeTensor) == ATTN_RECIPE_RANGE_TENSOR &&
                  int(core::RecipeKind::PageRuns) == ATTN_RECIPE_PAGE_RUNS &&
                  int(core::RecipeKind::SplitPlan) == ATTN_RECIPE_SPLIT_PLAN,
              "kinds are the same on both sides");

template <class T>
static attn_recipe_array arrayOf(const rt::CudaArray<T> &array) {
  return {array.host.data, reinterpret_cast<const void *>(array.device), array.host.size};
}

attn_status attn_plan_recipe(const attn_plan *plan, const char *name, attn_recipe *recipe) {
  return guarded([&]() -> attn_status {
    if (!plan)
      return nullArgument("plan");
    if (!name)
      return nullArgument("name");
    if (!plan->cudaPlan)
      return Failure(ATTN_UNSUPPORTED,
                     std::string("device '") + deviceName(plan->settings) + "' has no recipes");
    if (!plan->isPrepared)
      return notPrepared();
    const core::Result<rt::CudaRecipe> found = plan->cudaPlan->recipe(name);
    if (!found)
      return Failure(ATTN_INVALID_ARGUMENT, found.message());
    attn_recipe value = {};
    value.kind = static_cast<int32_t>(found->recipe->kind);
    value.counts = arrayOf(found->counts);
    value.per_request = found->recipe->perRequest;
    value.ranges = arrayOf(found->ranges);
    value.page_runs = arrayOf(found->runs);
    value.page_run_offsets = arrayOf(found->offsets);
    value.split_kind = static_cast<int32_t>(found->splits.kind);
    value.split_value = found->splits.value;
    value.pieces = arrayOf(found->pieces);
    value.piece_begin = arrayOf(found->pieceBegin);
    value.entries = arrayOf(found->entries);
    value.work = arrayOf(found->work);
    value.combines = arrayOf(found->combines);
    value.tiles = arrayOf(found->tiles);
    value.visible = arrayOf(found->visible);
    return writeStruct(recipe, "attn_recipe", value);
  });
}
