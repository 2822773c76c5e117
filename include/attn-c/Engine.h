/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * C API of what an engine asks besides running kernels (C99): facts of a step from host data, what
 * a target can do, which of several kernels a step takes, where a batch may be cut, and a cache of
 * compiled kernels. The rules of attn-c/Runtime.h hold here too: structs start with their size,
 * every call that can fail returns a status, attn_last_error() says why.
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
