// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Split policies and plans of attn-c/Engine.h.
#include "attn/Runtime/SplitPlan.h"

#include "Support.h"
#include "WorkArrays.h"

using namespace attn;
using namespace attn::capi;

ATTN_SAME_RECORD(attn_split_piece, rt::SplitPiece);
ATTN_SAME_RECORD(attn_split_work, rt::SplitWork);
ATTN_SAME_RECORD(attn_split_combine, rt::SplitCombine);
static_assert(int(rt::Splits::Kind::Whole) == ATTN_SPLIT_WHOLE &&
                  int(rt::Splits::Kind::Count) == ATTN_SPLIT_COUNT &&
                  int(rt::Splits::Kind::Blocks) == ATTN_SPLIT_BLOCKS &&
                  int(rt::Splits::Kind::Anchored) == ATTN_SPLIT_ANCHORED,
              "kinds are the same on both sides");

/// A member that is out of its range.
static Failure outside(const std::string &member, int64_t value, int64_t least, int64_t most) {
  return Failure(ATTN_INVALID_ARGUMENT, member + " is " + std::to_string(value) + ", expected " +
                                            std::to_string(least) + " to " + std::to_string(most));
}

/// A list whose numbers can be followed: tiles name entries, work names tiles that there are, and
/// no sum of them overflows.
static attn_status readList(const attn_work_list *given, rt::WorkListView &view) {
  attn_work_list list;
  if (auto fault = readStruct(given, "attn_work_list", list))
    return Failure(ATTN_INVALID_ARGUMENT, *fault);
  struct {
    const char *name;
    const void *data;
    int64_t number;
  } arrays[] = {{"work", list.work, list.num_work},
                {"tiles", list.tiles, list.num_tiles},
                {"entries", list.entries, list.num_entries}};
  for (const auto &array : arrays) {
    if (array.number < 0 || array.number > INT32_MAX)
      return outside(std::string("attn_work_list.num_") + array.name, array.number, 0, INT32_MAX);
    if (array.number > 0 && !array.data)
      return nullArgument((std::string("attn_work_list.") + array.name).c_str());
  }
  view.work = {reinterpret_cast<const core::WorkItem *>(list.work), list.num_work};
  view.tiles = {reinterpret_cast<const core::TileHeader *>(list.tiles), list.num_tiles};
  view.entries = {reinterpret_cast<const core::TileEntry *>(list.entries), list.num_entries};
  constexpr int32_t kMostRows = 32 / core::kGroupClassBits * core::kGroupRows;
  int64_t blocks = 0; // of all tiles
  for (int64_t i = 0; i < view.tiles.size; ++i) {
    const core::TileHeader &tile = view.tiles[i];
    if (tile.rows < 1 || tile.rows > kMostRows || tile.entryBegin < 0 || tile.entryCount < 0 ||
        int64_t(tile.entryBegin) + tile.entryCount > view.entries.size)
      return Failure(
          ATTN_INVALID_ARGUMENT,
          "attn_work_list.tiles[" + std::to_string(i) + "]: " + std::to_string(tile.rows) +
              " rows, " + std::to_string(tile.entryCount) + " entries from " +
              std::to_string(tile.entryBegin) + "; expected 1 to " + std::to_string(kMostRows) +
              " rows, and entries among " + std::to_string(view.entries.size));
    for (int64_t e = tile.entryBegin; e < tile.entryBegin + tile.entryCount; ++e) {
      const int32_t count = view.entries[e].blocks;
      if (count < 1 || count > INT32_MAX - blocks)
        return outside("attn_work_list.entries[" + std::to_string(e) + "].blocks", count, 1,
                       INT32_MAX - blocks);
      blocks += count;
    }
  }
  for (int64_t i = 0; i < view.work.size; ++i)
    if (view.work[i].tile < 0 || view.work[i].tile >= view.tiles.size)
      return outside("attn_work_list.work[" + std::to_string(i) + "].tile", view.work[i].tile, 0,
                     view.tiles.size - 1);
  const int64_t heads = view.tiles.size ? view.work.size / view.tiles.size : 0;
  if (heads * view.tiles.size != view.work.size || heads > core::kMaxKernelExtent)
    return Failure(ATTN_INVALID_ARGUMENT, "attn_work_list: " + std::to_string(view.work.size) +
                                              " work items for " + std::to_string(view.tiles.size) +
                                              " tiles, expected as many for each");
  return ATTN_OK;
}

attn_status attn_measured_splits(const attn_work_list *list, const attn_measured_launch *given,
                                 attn_splits *splits) {
  return guarded([&]() -> attn_status {
    rt::WorkListView view;
    if (attn_status status = readList(list, view); status != ATTN_OK)
      return status;
    attn_measured_launch launch;
    if (auto fault = readStruct(given, "attn_measured_launch", launch))
      return Failure(ATTN_INVALID_ARGUMENT, *fault);
    constexpr int64_t kMost = 1 << 20;
    for (auto [name, value] :
         {std::pair("sms", launch.sms), std::pair("ctas_per_sm", launch.ctas_per_sm),
          std::pair("key_tile", launch.key_tile), std::pair("dim_qk", launch.dim_qk),
          std::pair("dim_v", launch.dim_v), std::pair("kv_element_bytes", launch.kv_element_bytes)})
      if (value < 1 || value > kMost)
        return outside(std::string("attn_measured_launch.") + name, value, 1, kMost);
    const rt::Splits chosen =
        rt::measuredSplits(view, {launch.sms, launch.ctas_per_sm, launch.key_tile, launch.dim_qk,
                                  launch.dim_v, launch.kv_element_bytes});
    attn_splits value = {};
    value.kind = static_cast<int32_t>(chosen.kind);
    value.value = chosen.value;
    return writeStruct(splits, "attn_splits", value);
  });
}

attn_status attn_sm100_relbias_splits(const attn_relbias_launch *given, int64_t *count) {
  return guarded([&]() -> attn_status {
    attn_relbias_launch launch;
    if (auto fault = readStruct(given, "attn_relbias_launch", launch))
      return Failure(ATTN_INVALID_ARGUMENT, *fault);
    if (!launch.target)
      return nullArgument("attn_relbias_launch.target");
    if (!count)
      return nullArgument("count");
    constexpr int64_t kMost = core::kPositionLimit - 1;
    for (auto [name, value, least, most] :
         {std::tuple("requests", launch.requests, int64_t(0), kMost),
          std::tuple("longest_query", launch.longest_query, int64_t(0), kMost),
          std::tuple("heads", launch.heads, int64_t(1), core::kMaxKernelExtent),
          std::tuple("kv_heads", launch.kv_heads, int64_t(1), core::kMaxKernelExtent),
          std::tuple("keys", launch.keys, int64_t(0), kMost)})
      if (value < least || value > most)
        return outside(std::string("attn_relbias_launch.") + name, value, least, most);
    *count =
        rt::sm100RelbiasSplits({launch.target, launch.is_local != 0, launch.requests,
                                launch.longest_query, launch.heads, launch.kv_heads, launch.keys});
    return ATTN_OK;
  });
}

attn_status attn_make_split_plan(const attn_work_list *list, const attn_splits *given,
                                 int64_t keyTile, attn_split_plan *plan) {
  return guarded([&]() -> attn_status {
    rt::WorkListView view;
    if (attn_status status = readList(list, view); status != ATTN_OK)
      return status;
    attn_splits splits;
    if (auto fault = readStruct(given, "attn_splits", splits))
      return Failure(ATTN_INVALID_ARGUMENT, *fault);
    if (splits.kind < ATTN_SPLIT_WHOLE || splits.kind > ATTN_SPLIT_ANCHORED)
      return Failure(ATTN_INVALID_ARGUMENT, "attn_splits.kind is " + std::to_string(splits.kind) +
                                                ", expected an attn_split_kind");
    if (splits.kind != ATTN_SPLIT_WHOLE && (splits.value < 1 || splits.value > INT32_MAX))
      return outside("attn_splits.value", splits.value, 1, INT32_MAX);
    attn_split_plan out;
    if (auto fault = readStruct(plan, "attn_split_plan", out))
      return Failure(ATTN_INVALID_ARGUMENT, *fault);
    if (keyTile < 1 || keyTile > core::kMaxKeyTile)
      return outside("key_tile", keyTile, 1, core::kMaxKeyTile);
    const core::Result<rt::SplitPlan> built = rt::buildSplitPlan(
        view, {static_cast<rt::Splits::Kind>(splits.kind), splits.value}, keyTile);
    if (!built)
      return Failure(ATTN_TOO_LARGE, built.message());
    plan->partial_rows = built->sizes.partialRows;
    ArrayWriter writer("attn_split_plan");
    writer.array("piece", out.pieces, out.piece_capacity, plan->num_pieces, built->pieces);
    writer.array("piece_begin", out.piece_begin, out.piece_begin_capacity, plan->num_piece_begin,
                 built->pieceBegin);
    writer.array("entry", out.entries, out.entry_capacity, plan->num_entries, built->entries);
    writer.array("work", out.work, out.work_capacity, plan->num_work, built->work);
    writer.array("combine", out.combines, out.combine_capacity, plan->num_combines,
                 built->combines);
    return writer.finish();
  });
}
