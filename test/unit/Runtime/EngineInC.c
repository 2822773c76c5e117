/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Builders and split plans of attn-c/Engine.h, called from C99. A test returns the number of the
 * line that did not hold, or 0. */
#include "EngineInC.h"

#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                           \
  if (!(condition))                                                                                \
  return __LINE__
#define REFUSED(call, status, message)                                                             \
  CHECK((call) == (status));                                                                       \
  CHECK(strcmp(attn_last_error(), message) == 0)

enum { GROUPS = 2, KEY_TILE = 4, HEADS = 4, BLOCKS = 8 };

int attn_test_range_tensor(const attn_plan *plan) {
  int64_t count = 0, most = 0;
  CHECK(attn_plan_range_tensor(plan, NULL, 0, NULL, 0, &count, &most) == ATTN_OK);
  CHECK(count == 4 && most == 2);
  int32_t tensor[12];
  CHECK(attn_plan_range_tensor(plan, "mm", 3, tensor, 6, &count, NULL) == ATTN_OK);
  const int32_t expected[12] = {1, 3, 5, 7, -1, -1, 2, 4, 9, 12, -1, -1};
  CHECK(memcmp(tensor, expected, sizeof(expected)) == 0);
  REFUSED(attn_plan_range_tensor(plan, "mm", 1, tensor, 6, &count, NULL), ATTN_TOO_LARGE,
          "per_request is 1, expected at least 2");
  REFUSED(attn_plan_range_tensor(plan, "mm", 3, tensor, 5, &count, NULL), ATTN_TOO_LARGE,
          "capacity is 5, expected at least 2 requests of 3");
  REFUSED(attn_plan_range_tensor(plan, "slopes", 3, tensor, 6, &count, NULL), ATTN_INVALID_ARGUMENT,
          "no ranges table 'slopes' (the kernel has: 'mm')");
  return 0;
}

int attn_test_page_runs(const attn_plan *plan) {
  /* Pages of 4: request 0 has 8 keys in pages 6, 7; request 1 has 13 in 0, 1, 4, 5. */
  int64_t count = 0, offsets[3];
  attn_page_run runs[6];
  CHECK(attn_plan_page_runs(plan, NULL, 0, NULL, &count) == ATTN_OK);
  CHECK(count == 6);
  CHECK(attn_plan_page_runs(plan, runs, 6, offsets, &count) == ATTN_OK);
  CHECK(count == 3);
  CHECK(offsets[0] == 0 && offsets[1] == 1 && offsets[2] == 3);
  const attn_page_run expected[3] = {{0, 6, 2}, {0, 0, 2}, {2, 4, 2}};
  CHECK(memcmp(runs, expected, sizeof(expected)) == 0);
  REFUSED(attn_plan_page_runs(plan, runs, 5, offsets, &count), ATTN_TOO_LARGE,
          "capacity is 5, expected at least 6");
  CHECK(count == 6);
  REFUSED(attn_plan_page_runs(plan, runs, 6, NULL, &count), ATTN_INVALID_ARGUMENT,
          "offsets is null");
  return 0;
}

int attn_test_has_no_pages(const attn_plan *plan) {
  attn_page_run runs[1];
  int64_t count = 0, offsets[3];
  REFUSED(attn_plan_page_runs(plan, runs, 1, offsets, &count), ATTN_INVALID_ARGUMENT,
          "the batch has no pages");
  return 0;
}

/* A list with room for all that it takes, to be freed. */
static int make_list(const attn_plan *plan, attn_work_list *list) {
  const attn_launch_shape shape = {sizeof(shape), GROUPS, KEY_TILE, 0, 0};
  memset(list, 0, sizeof(*list));
  list->struct_size = sizeof(*list);
  CHECK(attn_plan_work_list(plan, &shape, list) == ATTN_OK);
  list->work_capacity = list->num_work;
  list->tile_capacity = list->num_tiles;
  list->entry_capacity = list->num_entries;
  list->bitmap_capacity = list->num_bitmaps;
  list->work = calloc((size_t)list->num_work, sizeof(*list->work));
  list->tiles = calloc((size_t)list->num_tiles, sizeof(*list->tiles));
  list->entries = calloc((size_t)list->num_entries, sizeof(*list->entries));
  list->visible = calloc((size_t)list->num_bitmaps + 1, ATTN_VISIBLE_WORDS * sizeof(uint32_t));
  CHECK(attn_plan_work_list(plan, &shape, list) == ATTN_OK);
  --list->entry_capacity;
  CHECK(attn_plan_work_list(plan, &shape, list) == ATTN_TOO_LARGE);
  ++list->entry_capacity;
  return 0;
}

static void free_list(attn_work_list *list) {
  free(list->work);
  free(list->tiles);
  free(list->entries);
  free(list->visible);
}

/* Every block of a tile against the mask, pair by pair. */
static int check_tile(const attn_work_list *list, const attn_query_tile *tile,
                      attn_test_keeps keeps, const void *batch) {
  uint32_t classes[BLOCKS] = {0};
  int32_t visible[BLOCKS];
  for (int b = 0; b < BLOCKS; ++b)
    visible[b] = -1;
  for (int32_t e = tile->entry_begin; e < tile->entry_begin + tile->entry_count; ++e) {
    const attn_tile_entry *entry = &list->entries[e];
    for (int32_t b = 0; b < entry->blocks; ++b) {
      CHECK(entry->key_begin >= 0 && entry->key_begin / KEY_TILE + b < BLOCKS);
      classes[entry->key_begin / KEY_TILE + b] = entry->classes;
      visible[entry->key_begin / KEY_TILE + b] = entry->visible;
    }
  }
  for (int b = 0; b < BLOCKS; ++b) {
    int kept = 0, seen = 0;
    for (int k = b * KEY_TILE; k < (b + 1) * KEY_TILE; ++k) {
      int by = 0;
      for (int row = 0; row < tile->rows; ++row)
        by += k < tile->key_end && keeps(batch, tile->request, tile->query_begin + row, k);
      kept += by;
      seen |= (by > 0) << (k % KEY_TILE);
    }
    /* All rows lie in the first group. */
    const uint32_t expected = kept == 0                       ? ATTN_GROUP_SKIP
                              : kept == tile->rows * KEY_TILE ? ATTN_GROUP_FULL
                                                              : ATTN_GROUP_PARTIAL;
    CHECK(classes[b] == expected);
    if (kept == 0 || seen == (1 << KEY_TILE) - 1) {
      CHECK(visible[b] == -1);
    } else {
      CHECK(visible[b] >= 0 && visible[b] < list->num_bitmaps);
      CHECK(list->visible[visible[b] * ATTN_VISIBLE_WORDS] == (uint32_t)seen);
    }
  }
  return 0;
}

int attn_test_work_list(const attn_plan *plan, attn_test_keeps keeps, const void *batch) {
  attn_work_list list;
  int line = make_list(plan, &list);
  CHECK(line == 0);
  CHECK(list.num_tiles == 2 && list.num_work == 2 * HEADS);
  for (int64_t t = 0; t < list.num_tiles; ++t) {
    CHECK(list.tiles[t].request == t && list.tiles[t].token_begin == (t ? 8 : 0));
    CHECK(list.tiles[t].rows == (t ? 6 : 8) && list.tiles[t].query_begin == (t ? 7 : 0));
    line = check_tile(&list, &list.tiles[t], keeps, batch);
    CHECK(line == 0);
  }
  int done[2][HEADS] = {{0}};
  for (int64_t i = 0; i < list.num_work; ++i)
    ++done[list.work[i].tile][list.work[i].head];
  for (int t = 0; t < 2; ++t)
    for (int h = 0; h < HEADS; ++h)
      CHECK(done[t][h] == 1);
  const attn_launch_shape wide = {sizeof(wide), 17, KEY_TILE, 0, 0};
  REFUSED(attn_plan_work_list(plan, &wide, &list), ATTN_INVALID_ARGUMENT,
          "attn_launch_shape: 17 row_groups and key_tile 4, expected 1 to 16 and 1 to 256");
  free_list(&list);
  return 0;
}

/* Pieces take every block of their tile once, from the highest key down. */
static int check_pieces(const attn_work_list *list, const attn_split_plan *plan, int64_t tile,
                        int64_t anchor) {
  const attn_query_tile *whole = &list->tiles[tile];
  int64_t blocks = 0, taken = 0, below = INT64_MAX;
  for (int32_t e = whole->entry_begin; e < whole->entry_begin + whole->entry_count; ++e)
    blocks += list->entries[e].blocks;
  const int32_t first = plan->piece_begin[tile], end = plan->piece_begin[tile + 1];
  for (int32_t p = first; p < end; ++p) {
    const attn_split_piece *piece = &plan->pieces[p];
    CHECK(piece->tile == tile && piece->number == p - first && piece->count == end - first);
    int64_t own = 0, group = -1;
    for (int32_t e = piece->entry_begin; e < piece->entry_begin + piece->entry_count; ++e) {
      const attn_tile_entry *entry = &plan->entries[e];
      CHECK(entry->key_begin + entry->blocks * KEY_TILE <= below);
      below = entry->key_begin;
      own += entry->blocks;
      for (int32_t b = 0; anchor && b < entry->blocks; ++b) {
        const int64_t of = (entry->key_begin / KEY_TILE + b) / anchor;
        CHECK(group < 0 || group == of);
        group = of;
      }
    }
    CHECK(own == piece->blocks);
    taken += own;
  }
  CHECK(taken == blocks);
  return 0;
}

static int check_plan(const attn_work_list *list, int32_t kind, int64_t value) {
  const attn_splits splits = {sizeof(splits), kind, 0, value};
  attn_split_plan plan = {0};
  plan.struct_size = sizeof(plan);
  CHECK(attn_make_split_plan(list, &splits, KEY_TILE, &plan) == ATTN_OK);
  CHECK(plan.num_piece_begin == list->num_tiles + 1);
  attn_split_piece pieces[32];
  int32_t begins[3];
  attn_tile_entry entries[32];
  attn_split_work work[64];
  attn_split_combine combines[2 * HEADS];
  plan.pieces = pieces, plan.piece_capacity = 32;
  plan.piece_begin = begins, plan.piece_begin_capacity = 3;
  plan.entries = entries, plan.entry_capacity = 32;
  plan.work = work, plan.work_capacity = 64;
  plan.combines = combines, plan.combine_capacity = 2 * HEADS;
  CHECK(attn_make_split_plan(list, &splits, KEY_TILE, &plan) == ATTN_OK);
  CHECK(plan.num_work == plan.num_pieces * HEADS);
  CHECK(kind == ATTN_SPLIT_WHOLE ? plan.num_combines == 0 && plan.partial_rows == 0
                                 : plan.num_combines > 0);
  for (int64_t t = 0; t < list->num_tiles; ++t) {
    const int line = check_pieces(list, &plan, t, kind == ATTN_SPLIT_ANCHORED ? value : 0);
    CHECK(line == 0);
    if (kind == ATTN_SPLIT_COUNT)
      CHECK(begins[t + 1] - begins[t] == value);
  }
  int64_t rows = 0;
  for (int64_t i = 0; i < plan.num_combines; ++i) {
    CHECK(combines[i].partial_row == rows);
    CHECK(combines[i].rows == list->tiles[combines[i].tile].rows);
    rows += (int64_t)combines[i].rows * combines[i].pieces;
  }
  CHECK(rows == plan.partial_rows);
  return 0;
}

int attn_test_split_plans(const attn_plan *plan) {
  attn_work_list list;
  int line = make_list(plan, &list);
  CHECK(line == 0);
  const int64_t kinds[4][2] = {{ATTN_SPLIT_WHOLE, 0},
                               {ATTN_SPLIT_COUNT, 2},
                               {ATTN_SPLIT_BLOCKS, 1},
                               {ATTN_SPLIT_ANCHORED, 2}};
  for (int i = 0; i < 4; ++i) {
    line = check_plan(&list, (int32_t)kinds[i][0], kinds[i][1]);
    CHECK(line == 0);
  }
  attn_split_plan out = {0};
  out.struct_size = sizeof(out);
  attn_splits splits = {sizeof(splits), 4, 0, 1};
  REFUSED(attn_make_split_plan(&list, &splits, KEY_TILE, &out), ATTN_INVALID_ARGUMENT,
          "attn_splits.kind is 4, expected an attn_split_kind");
  splits.kind = ATTN_SPLIT_COUNT, splits.value = 0;
  REFUSED(attn_make_split_plan(&list, &splits, KEY_TILE, &out), ATTN_INVALID_ARGUMENT,
          "attn_splits.value is 0, expected 1 to 2147483647");
  splits.value = 2;
  REFUSED(attn_make_split_plan(&list, &splits, 0, &out), ATTN_INVALID_ARGUMENT,
          "key_tile is 0, expected 1 to 256");
  list.work[1].tile = 2;
  REFUSED(attn_make_split_plan(&list, &splits, KEY_TILE, &out), ATTN_INVALID_ARGUMENT,
          "attn_work_list.work[1].tile is 2, expected 0 to 1");
  list.tiles[1].entry_count = 1000;
  CHECK(attn_make_split_plan(&list, &splits, KEY_TILE, &out) == ATTN_INVALID_ARGUMENT);
  list.tiles[0].entry_begin = 0;
  list.entries[0].blocks = 0;
  REFUSED(attn_make_split_plan(&list, &splits, KEY_TILE, &out), ATTN_INVALID_ARGUMENT,
          "attn_work_list.entries[0].blocks is 0, expected 1 to 2147483647");
  free_list(&list);
  return 0;
}

int attn_test_split_policies(void) {
  /* One tile of 64 rows and 512 blocks for one head, on 132 multiprocessors: split, so that they
   * all have work. 132 such tiles are not. */
  attn_work_item work[132];
  attn_query_tile tiles[132];
  attn_tile_entry entry = {0, 512, ATTN_GROUP_FULL, -1};
  memset(tiles, 0, sizeof(tiles));
  for (int i = 0; i < 132; ++i) {
    work[i].tile = i, work[i].head = 0;
    tiles[i].rows = 64, tiles[i].entry_count = 1;
  }
  attn_work_list list = {0};
  list.struct_size = sizeof(list);
  list.work = work, list.num_work = 1;
  list.tiles = tiles, list.num_tiles = 1;
  list.entries = &entry, list.num_entries = 1;
  attn_measured_launch launch = {sizeof(launch), 132, 1, 128, 128, 128, 2};
  attn_splits splits = {0};
  splits.struct_size = sizeof(splits);
  CHECK(attn_measured_splits(&list, &launch, &splits) == ATTN_OK);
  CHECK(splits.kind == ATTN_SPLIT_BLOCKS && splits.value >= 4 && splits.value <= 16);
  list.num_work = list.num_tiles = 132;
  CHECK(attn_measured_splits(&list, &launch, &splits) == ATTN_OK);
  CHECK(splits.kind == ATTN_SPLIT_WHOLE);
  launch.sms = 0;
  REFUSED(attn_measured_splits(&list, &launch, &splits), ATTN_INVALID_ARGUMENT,
          "attn_measured_launch.sms is 0, expected 1 to 1048576");

  /* By the formula: one request of one token, 8 key/value heads: min(256 / 8, 16, 512). */
  attn_relbias_launch relbias = {sizeof(relbias), "sm_100a", 0, 0, 1, 1, 64, 8, 65536};
  int64_t count = 0;
  CHECK(attn_sm100_relbias_splits(&relbias, &count) == ATTN_OK && count == 16);
  relbias.requests = 4; /* 128 / 32 */
  CHECK(attn_sm100_relbias_splits(&relbias, &count) == ATTN_OK && count == 4);
  relbias.is_local = 1;
  CHECK(attn_sm100_relbias_splits(&relbias, &count) == ATTN_OK && count == 1);
  relbias.is_local = 0, relbias.target = "sm_90a";
  CHECK(attn_sm100_relbias_splits(&relbias, &count) == ATTN_OK && count == 1);
  relbias.kv_heads = 0;
  REFUSED(attn_sm100_relbias_splits(&relbias, &count), ATTN_INVALID_ARGUMENT,
          "attn_relbias_launch.kv_heads is 0, expected 1 to 1048576");
  return 0;
}
