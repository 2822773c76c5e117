/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * C API of what an engine asks besides running kernels (C99): facts of a step from host data, more
 * builders, split plans, what a target can do, which of several kernels a step takes, where a batch
 * may be cut, and a cache of compiled kernels. The rules of attn-c/Runtime.h hold here too: structs
 * start with their size, every call that can fail returns a status, attn_last_error() says why.
 */
#ifndef ATTN_C_ENGINE_H
#define ATTN_C_ENGINE_H

#include "attn-c/Runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/*===---------------------------------- facts of a step ---------------------------------------===*/

/* How requests are told apart. A request is a decode if it schedules at most decode_threshold
 * tokens and is not prefilling, else a prefill. */
typedef struct attn_split_rule {
  size_t struct_size;
  int64_t decode_threshold;
  int32_t short_extends_are_decodes; /* prefilling requests within the threshold too, unless the
                                        batch has ranges */
  int32_t has_ranges;
} attn_split_rule;

typedef struct attn_step_facts {
  size_t struct_size; /* in: bytes the caller has */
  int64_t longest_query;
  int64_t longest_query_rounded; /* up to a power of two */
  int64_t decodes, decode_tokens, longest_decode;
  int64_t prefills, prefill_tokens, longest_prefill;
  int32_t decodes_first;           /* no decode comes after a prefill */
  int32_t any_prefill_has_context; /* tokens computed before its scheduled ones */
} attn_step_facts;

/* Facts of the prepared batch of a plan of any device. `is_prefill` [num_reqs], optional, receives
 * 1 for a prefill. */
ATTN_API attn_status attn_plan_step_facts(const attn_plan *plan, const attn_split_rule *rule,
                                          uint8_t *is_prefill, attn_step_facts *facts);

/* Chunks for chunked scans: sequence i has tokens [query_start_loc[i], query_start_loc[i + 1]), the
 * first of which is at position computed_tokens[i]; a chunk ends where the position is a multiple
 * of chunk_size or the sequence ends. chunk_start [capacity + 1], sequence [capacity] and
 * last_chunk [num_sequences, -1 without tokens] may all be null to ask for num_chunks alone.
 * ATTN_TOO_LARGE if capacity is too small; num_chunks is set then too. */
ATTN_API attn_status attn_chunk_table(const int64_t *query_start_loc,
                                      const int64_t *computed_tokens, int64_t num_sequences,
                                      int64_t chunk_size, int64_t capacity, int64_t *chunk_start,
                                      int64_t *sequence, int64_t *last_chunk, int64_t *num_chunks);
/* Most chunks that so many tokens can make, whatever their positions. */
ATTN_API attn_status attn_most_chunks(int64_t tokens, int64_t sequences, int64_t chunk_size,
                                      int64_t *num_chunks);

/* The cut nearest to `token` that keeps the keys of a request of the prepared batch on their side:
 * no row before it keeps a key, or lies in a range with one, at or past it. */
ATTN_API attn_status attn_plan_nearest_safe_cut(const attn_plan *plan, int64_t request,
                                                int64_t token, int64_t *cut);

/*===---------------------------------- builders ----------------------------------------------===*/
/* Besides those of attn-c/Runtime.h, for kernels of other makers. They write the caller's memory;
 * with null memory they only say how much there is to write, and ATTN_TOO_LARGE says that too. */

/* The live ranges of `table` as a tensor [num_reqs, per_request] of inclusive (start, end), 8 bytes
 * each, for kernels that scan them; the rest of a row is (-1, -1). `table` names a ranges table;
 * null: the only one. `capacity` counts ranges. `num_ranges` receives how many there are; on 0
 * nothing is written. `most` (optional): those of the request that has most, which per_request must
 * not be below. */
ATTN_API attn_status attn_plan_range_tensor(const attn_plan *plan, const char *table,
                                            int64_t per_request, int32_t *tensor, int64_t capacity,
                                            int64_t *num_ranges, int64_t *most);

/* Consecutive pages of a request that lie side by side in the cache. */
typedef struct attn_page_run {
  int32_t page;       /* the first, counted in the request: holds keys from page * page_size */
  int32_t cache_page; /* its number in the cache */
  int32_t count;
} attn_page_run;

/* Runs of the pages that hold keys, as long as they can be; those of request b are offsets[b] ..
 * offsets[b + 1] - 1, [num_reqs + 1]. The batch has a block_table. `capacity` is at least the
 * number of pages, whatever the table holds; with null `runs`, `num_runs` receives that. */
ATTN_API attn_status attn_plan_page_runs(const attn_plan *plan, attn_page_run *runs,
                                         int64_t capacity, int64_t *offsets, int64_t *num_runs);

#define ATTN_GROUP_ROWS 64   /* queries of a row group */
#define ATTN_VISIBLE_WORDS 8 /* 32-bit words of a bitmap */

/* What a thread block does at a time: the keys of one query tile for one head. */
typedef struct attn_work_item {
  int32_t tile, head;
} attn_work_item;

/* Up to 64 * row_groups consecutive queries of one request. */
typedef struct attn_query_tile {
  int32_t request;
  int32_t query_begin; /* absolute position of row 0 */
  int32_t token_begin; /* token of row 0 */
  int32_t rows;
  int32_t entry_begin, entry_count;
  int32_t kv_row;             /* contiguous K and V: slot of key 0 */
  int32_t key_begin, key_end; /* keys of the launch */
  /* 1 in tiles of a plan's own list (attn_recipe.tiles) whose seq_len the device alone knows. Then
   * query_begin is less by that seq_len, key_end is the largest it may be, entries hold for every
   * seq_len that it may be, and bitmaps say nothing: a kernel tests the keys of their blocks. */
  int32_t is_bound;
  /* Bit g set: row group g is not skipped in the first entry's highest block, and no row of it
   * keeps a key of the upper half there. A clear bit says nothing. */
  uint32_t halves;
  int32_t reserved;
} attn_query_tile;

enum {
  ATTN_GROUP_SKIP = 0,    /* no row of the group keeps a key of these blocks */
  ATTN_GROUP_PARTIAL = 1, /* the mask must be tested */
  ATTN_GROUP_FULL = 2     /* every row of the group keeps every key */
};

/* A run of blocks of key_tile keys; those of a tile descend. */
typedef struct attn_tile_entry {
  int32_t key_begin; /* first key of the lowest block; may be negative */
  int32_t blocks;
  uint32_t classes; /* row group g: bits 2g and 2g + 1, ATTN_GROUP_* */
  int32_t visible;  /* number of the bitmap of the entry's one block; -1: some row of the tile keeps
                       each key of the blocks */
} attn_tile_entry;

typedef struct attn_launch_shape {
  size_t struct_size;
  int64_t row_groups;    /* of a query tile: 1 to 16 */
  int64_t key_tile;      /* keys of a block: 1 to 256 */
  int32_t tests_visible; /* the kernel hides keys that no row keeps by itself: no bitmaps */
  int32_t reserved;
} attn_launch_shape;

/* Arrays of the caller's with their capacities, in elements, and the numbers that are written. */
typedef struct attn_work_list {
  size_t struct_size;
  attn_work_item *work; /* heaviest tiles first, heads of a key/value head side by side, few
                           key/value heads at a time, so that their keys and values stay in L2 */
  int64_t work_capacity, num_work;
  attn_query_tile *tiles;
  int64_t tile_capacity, num_tiles;
  attn_tile_entry *entries;
  int64_t entry_capacity, num_entries;
  uint32_t *visible; /* bit r of a bitmap: some row of the tile keeps key r of the block */
  int64_t bitmap_capacity, num_bitmaps;
} attn_work_list;

/* The work of a launch of the prepared batch. For masks whose rows are interval sets classes are
 * exact. For others (holes, predicates over tables) the mask is evaluated over boxes of queries and
 * keys: skip and full are never wrong, and no pair is looked at to find them. Cuts of the
 * batch (attn_batch.cuts) do not count here. */
ATTN_API attn_status attn_plan_work_list(const attn_plan *plan, const attn_launch_shape *shape,
                                         attn_work_list *list);

/*===---------------------------------- split plans -------------------------------------------===*/

typedef enum attn_split_kind {
  ATTN_SPLIT_WHOLE = 0,
  ATTN_SPLIT_COUNT = 1,   /* into `value` pieces, fewer where a tile has fewer blocks */
  ATTN_SPLIT_BLOCKS = 2,  /* into the fewest pieces of at most `value` blocks */
  ATTN_SPLIT_ANCHORED = 3 /* where the number of a block, from key 0, is a multiple of `value`: what
                             a row's result is made of does not depend on the rest of the batch,
                             nor on how a prompt was cut into chunks */
} attn_split_kind;

/* How the blocks of every tile are cut. */
typedef struct attn_splits {
  size_t struct_size;
  int32_t kind; /* attn_split_kind */
  int32_t reserved;
  int64_t value; /* at least 1 but for ATTN_SPLIT_WHOLE */
} attn_splits;

/* What the policy "measured" looks at besides the list. */
typedef struct attn_measured_launch {
  size_t struct_size;
  int64_t sms;         /* multiprocessors of the device */
  int64_t ctas_per_sm; /* thread blocks on one at a time */
  int64_t key_tile;
  int64_t dim_qk, dim_v;
  int64_t kv_element_bytes;
} attn_measured_launch;

/* Splits by the work there is: the time of a launch is estimated for every number of pieces, and
 * the smallest within 85 % of the best is taken. Reads tiles, entries and num_work of the list. */
ATTN_API attn_status attn_measured_splits(const attn_work_list *list,
                                          const attn_measured_launch *launch, attn_splits *splits);

/* What the policy "sm100_relbias" looks at. */
typedef struct attn_relbias_launch {
  size_t struct_size;
  const char *target; /* "sm_100a"; targets of sm_90 are never split */
  int32_t is_local;   /* the mask has a window: never split */
  int32_t reserved;
  int64_t requests, longest_query, heads, kv_heads;
  int64_t keys; /* longest seq_len */
} attn_relbias_launch;
/* Number of pieces of kernels with a learned relative bias, for ATTN_SPLIT_COUNT. */
ATTN_API attn_status attn_sm100_relbias_splits(const attn_relbias_launch *launch, int64_t *count);

/* Consecutive blocks of one tile, from the highest key down. */
typedef struct attn_split_piece {
  int32_t tile;
  int32_t number, count; /* of the tile's pieces; 0 has the highest keys */
  int32_t entry_begin, entry_count;
  int32_t blocks;
} attn_split_piece;

typedef struct attn_split_work {
  int32_t piece, head;
  int64_t partial_row; /* first row of its partial result; -1: the tile is whole */
} attn_split_work;

/* Partial results that make one: those of piece i begin at partial_row + i * rows. */
typedef struct attn_split_combine {
  int32_t tile, head, pieces, rows;
  int64_t partial_row;
} attn_split_combine;

/* Arrays of the caller's as in attn_work_list. */
typedef struct attn_split_plan {
  size_t struct_size;
  attn_split_piece *pieces; /* those of a tile side by side */
  int64_t piece_capacity, num_pieces;
  int32_t *piece_begin; /* [num_tiles + 1] */
  int64_t piece_begin_capacity, num_piece_begin;
  attn_tile_entry *entries; /* the list's, cut; no entry belongs to two pieces */
  int64_t entry_capacity, num_entries;
  attn_split_work *work; /* in the list's order, pieces of a tile side by side */
  int64_t work_capacity, num_work;
  attn_split_combine *combines;
  int64_t combine_capacity, num_combines;
  int64_t partial_rows; /* f32 rows of dim_v + 1 values: O and the log-sum-exp of a piece */
} attn_split_plan;

/* Cuts a filled work list, which stays as it is. */
ATTN_API attn_status attn_make_split_plan(const attn_work_list *list, const attn_splits *splits,
                                          int64_t key_tile, attn_split_plan *plan);

/*===---------------------------------- recipes -----------------------------------------------===*/
/* Code for a GPU may name recipes (attn-compile --recipe): range tensors, page runs and split plans
 * that attn_plan_prepare builds on device "cuda" in the memory of the plan and copies with the rest
 * of the step, for kernels of other makers that run beside it. */

typedef enum attn_recipe_kind {
  ATTN_RECIPE_RANGE_TENSOR = 0,
  ATTN_RECIPE_PAGE_RUNS = 1,
  ATTN_RECIPE_SPLIT_PLAN = 2
} attn_recipe_kind;

/* Numbers of the step, in device memory too: there a captured kernel finds what changes between
 * replays. Those of other kinds are 0. */
typedef struct attn_recipe_counts {
  int64_t requests;                               /* of the step */
  int64_t items;                                  /* ranges; runs */
  int64_t tiles, pieces, entries, work, combines; /* split plan */
  int64_t partial_rows;                           /* as in attn_split_plan */
} attn_recipe_counts;

/* `count` elements in the plan's memory. The host's may be read until the prepare after the next,
 * the device's by what runs after the prepare in its stream. Addresses on the device are one of
 * two, used in turn; with ATTN_PLAN_FOR_GRAPHS always the same. */
typedef struct attn_recipe_array {
  const void *host;
  const void *device;
  int64_t count;
} attn_recipe_array;

/* What a recipe built for the prepared batch. Arrays of other kinds are empty. */
typedef struct attn_recipe {
  size_t struct_size; /* in: bytes the caller has */
  int32_t kind;       /* attn_recipe_kind */
  int32_t split_kind; /* attn_split_kind that the policy chose, and its value */
  int64_t split_value;
  attn_recipe_array counts; /* one attn_recipe_counts */
  /* int32 pairs [num_reqs, per_request] as of attn_plan_range_tensor. Without a range in the batch
   * empty; with ATTN_PLAN_FOR_GRAPHS filled with (-1, -1). */
  int64_t per_request;
  attn_recipe_array ranges;
  attn_recipe_array page_runs;        /* attn_page_run */
  attn_recipe_array page_run_offsets; /* int64 [num_reqs + 1] */
  /* As the members of attn_split_plan; the tiles and bitmaps are those of the plan's own list. */
  attn_recipe_array pieces;
  attn_recipe_array piece_begin; /* int32 [tiles + 1] */
  attn_recipe_array entries;
  attn_recipe_array work;
  attn_recipe_array combines;
  attn_recipe_array tiles;   /* attn_query_tile */
  attn_recipe_array visible; /* uint32, ATTN_VISIBLE_WORDS a bitmap */
} attn_recipe;

/* The recipe called `name` of a plan of device "cuda"; an unknown name is an error that lists those
 * there are. Allocates nothing. */
ATTN_API attn_status attn_plan_recipe(const attn_plan *plan, const char *name, attn_recipe *recipe);

/*===---------------------------------- what a target can do ----------------------------------===*/

/* ATTN_OK if `target` ("cpu", "sm_90a") runs the kernel with pages of page_size keys (0:
 * contiguous), else ATTN_UNSUPPORTED, and attn_last_error() has every reason, one a line. Whether
 * the artifact holds code for the target is not asked. */
ATTN_API attn_status attn_kernel_supported(const attn_artifact *artifact, int64_t kernel,
                                           const char *target, int64_t page_size,
                                           int32_t is_context_parallel);

typedef enum attn_kernel_use {
  ATTN_USE_NO_RANGES = 0,      /* no query of the batch lies in a range */
  ATTN_USE_IGNORES_RANGES = 1, /* the layer is one that ranges do not bind */
  ATTN_USE_ALWAYS = 2          /* fallback */
} attn_kernel_use;

typedef struct attn_candidate {
  size_t struct_size;
  const attn_artifact *artifact; /* must outlive the selector */
  int64_t kernel;
  int32_t use;      /* attn_kernel_use */
  int32_t priority; /* the highest is tried first */
} attn_candidate;

/* Kernels by priority. Candidates that the target does not run are left out; an error if none is
 * left. */
typedef struct attn_selector attn_selector;
ATTN_API attn_status attn_selector_create(const attn_candidate *candidates, int64_t num_candidates,
                                          const char *target, int64_t page_size,
                                          attn_selector **out);
/* Null is allowed. */
ATTN_API void attn_selector_destroy(attn_selector *selector);
/* Number of the first candidate whose use fits the step. */
ATTN_API attn_status attn_selector_select(const attn_selector *selector, int32_t batch_has_ranges,
                                          int32_t layer_ignores_ranges, int64_t *candidate);

/*===---------------------------------- kernel cache ------------------------------------------===*/

/* Compiled kernels in memory and in a folder that any number of processes share. Thread-safe. */
typedef struct attn_kernel_cache attn_kernel_cache;

typedef struct attn_kernel_cache_options {
  size_t struct_size;
  const char *folder;   /* optional: memory only without it; made when first written */
  int64_t memory_bytes; /* of artifacts kept in memory; 0: 256 MiB */
  int64_t folder_bytes; /* of artifacts kept in the folder; 0: 1 GiB */
} attn_kernel_cache_options;
ATTN_API attn_status attn_kernel_cache_create(const attn_kernel_cache_options *options,
                                              attn_kernel_cache **out);
/* Null is allowed. */
ATTN_API void attn_kernel_cache_destroy(attn_kernel_cache *cache);

typedef struct attn_kernel_key {
  size_t struct_size;
  const char *spec_hash; /* 64 hexadecimal digits, see attn_kernel_info */
  const char *target;
  const char *compiler_version;
  const char *spec_file; /* optional: the spec in the command that a miss names */
} attn_kernel_key;

/* Compiles the key's spec into an artifact. Returns 0 and sets `out`, which the cache destroys, or
 * another number, and `message` (of at most message_bytes, with its zero) says why. */
typedef int32_t (*attn_compile_fn)(void *context, const attn_kernel_key *key, attn_artifact **out,
                                   char *message, size_t message_bytes);

/* The key's artifact, to be destroyed by the caller, and the kernel's number in it: from memory,
 * from the folder, or from `compile`. A file that is damaged counts as missing. A miss without
 * `compile` is ATTN_UNSUPPORTED, and the error of a cache with a folder names the
 * attn-compile command that fills it. */
ATTN_API attn_status attn_kernel_cache_get(attn_kernel_cache *cache, const attn_kernel_key *key,
                                           attn_compile_fn compile, void *context,
                                           attn_artifact **out, int64_t *kernel);

#ifdef __cplusplus
}
#endif

#endif /* ATTN_C_ENGINE_H */
