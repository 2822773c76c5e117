/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * C API of the attn runtime (C99): load an artifact, check a batch, build the tables a kernel
 * reads, run it.
 *
 *     attn_artifact *artifact;
 *     attn_plan *plan;
 *     attn_artifact_load_file("gemma4.attn", &artifact);
 *     attn_plan_create(artifact, &options, &plan);
 *     for each step:
 *       attn_plan_prepare(plan, &batch, NULL, stream);   checks the batch, builds its tables
 *       attn_plan_run(plan, &run, stream);               computes O and LSE
 *     attn_plan_destroy(plan);
 *     attn_artifact_destroy(artifact);
 *
 * Terms. A batch has requests b. Request b has query_len scheduled query tokens and seq_len keys;
 * `token` is a row of the packed query tensor (query_start_loc[b] + i), q and k are absolute
 * positions (context_len[b] + i; 0 <= k < seq_len[b]). Ranges are inclusive and absolute.
 *
 * Devices. "cpu" runs native code on the calling thread or several, "cuda" a GPU kernel on the
 * caller's stream, "none" nothing: it has only the builders. `stream` is a CUstream (a cudaStream_t
 * is one) on cuda, null being the default stream, and must be null elsewhere.
 *
 * Structs. The first member of every struct that a caller fills is its size in bytes, so that later
 * versions can add members at the end; members a caller's struct is too short for count as zero.
 * Zero is the default of every member that is called optional. Arrays of such structs are spaced by
 * the struct_size of their first element. Output records (attn_tile_record, attn_segment) have a
 * fixed layout.
 *
 * Errors. Every call that can fail returns a status; attn_last_error() then names place, expected
 * and got. On failure output arguments are left as they were, unless said otherwise.
 *
 * Threads. No global state but each thread's last error. An artifact may be used by any number of
 * threads at once. Calls on one plan must not overlap, except attn_plan_run with itself; different
 * plans are independent.
 *
 * Ownership. Memory given to attn_plan_prepare is copied, except where a member is said to be kept
 * by reference. Strings returned live as long as the handle they came from.
 */
#ifndef ATTN_C_RUNTIME_H
#define ATTN_C_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define ATTN_API
#else
#define ATTN_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Version of this interface. A library serves callers compiled against the same version, also those
 * compiled before members were added to its structs. */
#define ATTN_ABI_VERSION 1

/* ABI version the library was built with; compare with ATTN_ABI_VERSION before anything else. */
ATTN_API int32_t attn_abi_version(void);
/* Version of the project, "0.1.0". */
ATTN_API const char *attn_version(void);

typedef enum attn_status {
  ATTN_OK = 0,
  ATTN_INVALID_ARGUMENT = 1, /* a null pointer, an unknown name, a struct of the wrong size, an
                                address or a stride that the GPU cannot take */
  ATTN_INVALID_ARTIFACT = 2, /* not an artifact, damaged, or of a newer format */
  ATTN_INVALID_BATCH = 3,    /* what attn_plan_prepare found wrong with a batch */
  ATTN_UNSUPPORTED = 4,      /* legal, but not on this device */
  ATTN_TOO_LARGE = 5,        /* passes a limit of the plan or the memory given */
  ATTN_OUT_OF_MEMORY = 6,
  ATTN_NOT_PREPARED = 7, /* the plan has no batch */
  ATTN_FAILED = 8        /* the system or the GPU's driver refused something, such as memory */
} attn_status;

/* Why this thread's last failing call failed. Valid until its next failing call. Never null. */
ATTN_API const char *attn_last_error(void);

/*===---------------------------------- artifacts ---------------------------------------------===*/

/* One artifact file: kernels with their code. Immutable. */
typedef struct attn_artifact attn_artifact;

ATTN_API attn_status attn_artifact_load_file(const char *path, attn_artifact **out);
/* `data` is copied. */
ATTN_API attn_status attn_artifact_load_memory(const void *data, size_t size, attn_artifact **out);
/* Null is allowed. Plans made from it must be gone. */
ATTN_API void attn_artifact_destroy(attn_artifact *artifact);

ATTN_API int64_t attn_artifact_num_kernels(const attn_artifact *artifact);
/* Number of the kernel called `name`; a null name means the artifact's only kernel. */
ATTN_API attn_status attn_artifact_find_kernel(const attn_artifact *artifact, const char *name,
                                               int64_t *out);

typedef enum attn_dtype { ATTN_F32 = 0, ATTN_F16 = 1, ATTN_BF16 = 2 } attn_dtype;

typedef struct attn_kernel_info {
  size_t struct_size; /* in: bytes the caller has; the library fills no more */
  const char *name;
  const char *spec_hash; /* 64 hexadecimal digits */
  int64_t num_heads, num_kv_heads;
  int64_t dim_qk, dim_v;
  int32_t q_dtype, kv_dtype; /* attn_dtype */
  int64_t num_params, num_tables;
} attn_kernel_info;
ATTN_API attn_status attn_kernel_get_info(const attn_artifact *artifact, int64_t kernel,
                                          attn_kernel_info *info);

typedef enum attn_scalar_type {
  ATTN_SCALAR_I8 = 0,
  ATTN_SCALAR_I32 = 1,
  ATTN_SCALAR_I64 = 2,
  ATTN_SCALAR_F32 = 3
} attn_scalar_type;

typedef struct attn_param_info {
  size_t struct_size;
  const char *name;
  int32_t type; /* attn_scalar_type */
  int32_t has_min;
  int64_t min; /* smallest legal value if has_min */
} attn_param_info;
ATTN_API attn_status attn_kernel_get_param(const attn_artifact *artifact, int64_t kernel,
                                           int64_t param, attn_param_info *info);

typedef enum attn_table_kind {
  ATTN_TABLE_DENSE = 0,
  ATTN_TABLE_RANGES = 1,
  ATTN_TABLE_DOCUMENTS = 2,
  ATTN_TABLE_QUERY_RANGES = 3 /* built by the runtime, never given */
} attn_table_kind;

#define ATTN_MAX_TABLE_RANK 4

typedef struct attn_table_info {
  size_t struct_size;
  const char *name;
  int32_t kind;    /* attn_table_kind */
  int32_t element; /* dense: attn_scalar_type */
  int32_t rank;    /* dense */
  int32_t reserved;
  /* dense: "b", "token", "k", "slot", "h", "h_kv", "bucket" */
  const char *dims[ATTN_MAX_TABLE_RANK];
} attn_table_info;
ATTN_API attn_status attn_kernel_get_table(const attn_artifact *artifact, int64_t kernel,
                                           int64_t table, attn_table_info *info);

/*===---------------------------------- batches -----------------------------------------------===*/

/* Value of a parameter. */
typedef struct attn_param {
  size_t struct_size;
  const char *name;
  int32_t is_float; /* `f` holds the value, else `i` */
  int32_t reserved;
  int64_t i;
  double f;
} attn_param;

/* Ranges of one !attn.ranges table. */
typedef struct attn_ranges {
  size_t struct_size;
  const char *table;     /* null: the kernel's only ranges table; ignored by a kernel without one */
  const int32_t *bounds; /* pairs (start, end), both included */
  const int64_t *offsets; /* [num_reqs + 1]: request b has pairs offsets[b] .. offsets[b + 1] - 1 */
} attn_ranges;

/* One !attn.documents table. */
typedef struct attn_documents {
  size_t struct_size;
  const char *table;
  const int32_t *ids;     /* document of each key position; those of a document lie together */
  const int64_t *offsets; /* [num_reqs + 1]; request b has seq_lens[b] ids */
} attn_documents;

/* One dense table. `data` is host memory, kept by reference until the plan's next prepare or
 * destroy. */
typedef struct attn_dense_table {
  size_t struct_size;
  const char *table;
  const void *data;
  int32_t element; /* attn_scalar_type */
  int32_t rank;
  int64_t extents[ATTN_MAX_TABLE_RANK];
  int64_t strides[ATTN_MAX_TABLE_RANK]; /* in elements; all zero: row-major */
} attn_dense_table;

enum {
  /* A range that holds a scheduled query may end at or past seq_len: its rows see keys up to
   * seq_len - 1. Without this it is an error. */
  ATTN_BATCH_ALLOW_PARTIAL_RANGES = 1
};

/* A batch, all on the host. */
typedef struct attn_batch {
  size_t struct_size;
  int64_t num_reqs;
  const int32_t *query_start_loc;  /* [num_reqs + 1], from 0, ascending */
  const int32_t *seq_lens;         /* [num_reqs] */
  const int32_t *context_lens;     /* optional [num_reqs]; default seq_len - query_len */
  const uint8_t *seq_len_is_bound; /* optional [num_reqs]; 1: seq_lens[b] is only an upper bound and
                                      the exact length is on the device (attn_run_args.
                                      device_seq_lens). Of decode rows, which then have to lie
                                      outside every range; on "cuda" and "none" */
  const uint8_t *is_prefilling;    /* optional [num_reqs] */
  const int32_t *key_begin;        /* optional [num_reqs]; keys covered, default [0, seq_len) */
  const int32_t *key_end;
  const attn_param *params;
  int64_t num_params;
  const attn_ranges *ranges;
  int64_t num_ranges;
  const attn_documents *documents;
  int64_t num_documents;
  const attn_dense_table *tables;
  int64_t num_tables;
  /* Pages. page_size 0: K and V are contiguous. block_table [num_reqs, block_table_stride], of
   * which the first block_table_width entries of a row may be read; kept by reference like dense
   * tables. Entries past the pages that hold keys are never read. On cuda kernels read
   * attn_run_args.device_block_table; block_table is optional there but for kernels with a recipe
   * of page runs, and checked if it is given: with seq_len_is_bound up to the bound, as page runs
   * go, while a kernel reads the pages of the length on the device alone. */
  int64_t page_size;
  const int32_t *block_table;
  int64_t block_table_stride;
  int64_t block_table_width;
  int64_t num_pages; /* pages of the cache; block table entries are checked against it. Optional
                        but on cuda */
  uint64_t flags;    /* ATTN_BATCH_* */
  const int64_t *kv_start; /* optional [num_reqs]: contiguous K and V: slot of key 0; default
                              exclusive prefix sum of seq_lens. Unused with pages */
  /* Tokens at which runs of a part may begin and end on cuda, ascending, 0 to the number of tokens.
   * Query tiles end there and work is ordered between them. Other devices run any part. */
  const int64_t *cuts; /* optional [num_cuts] */
  int64_t num_cuts;
  const int32_t *seq_len_least; /* optional [num_reqs]: of rows with seq_len_is_bound, the smallest
                                   length; default query_len. Ranges may lie before the positions
                                   that follow from it. Not looked at for other rows */
} attn_batch;

/*===---------------------------------- plans -------------------------------------------------===*/

/* One kernel on one device, with the memory for its tables and the batch prepared last. */
typedef struct attn_plan attn_plan;

/* The caller's memory. On cuda `host` has to be page-locked, else copies from it wait. */
typedef struct attn_workspace {
  size_t struct_size;
  void *host;
  size_t host_bytes;
  void *device;
  size_t device_bytes;
} attn_workspace;

enum {
  /* cuda: all memory is taken when the plan is made, sized by its limits; nothing grows later, and
   * no prepare or run allocates on the device. Without it memory follows the batches. */
  ATTN_PLAN_FIXED = 1,
  /* cuda: runs may be captured into graphs and replayed for later batches. Includes the above. */
  ATTN_PLAN_FOR_GRAPHS = 2,
  /* cuda, with ATTN_PLAN_FIXED, to find what costs time: a prepare fails that would wait for the
   * GPU, or that allocates on the heap (see heap_allocations) while it builds and copies tables;
   * reading and checking the batch is not counted. */
  ATTN_PLAN_STRICT = 4
};

typedef struct attn_plan_options {
  size_t struct_size;
  int64_t kernel;     /* number of the kernel in the artifact */
  const char *device; /* "cpu", "cuda", or "none": tables only, no code is loaded */
  int64_t max_reqs;   /* largest batch that will be prepared; both are refused above */
  int64_t max_tokens;
  int32_t num_threads; /* cpu: threads of a run; 0 or 1: the calling one. On cuda 0 */
  int32_t reserved;
  int32_t device_ordinal; /* cuda: number of the GPU, as the driver counts them */
  int32_t reserved2;
  const char *cuda_driver; /* cuda, optional: file loaded as the driver instead of libcuda.so.1; for
                              tests */
  /* cuda, with ATTN_PLAN_FIXED: the rest of the largest step. A step that needs what is 0 here is
   * refused. */
  int64_t max_ranges;  /* live ones of all requests, in one table */
  int64_t max_seq_len; /* counts for masks that do not fuse and for tables with a dimension k */
  int64_t max_document_keys; /* keys of all requests; counts for kernels that read documents key by
                                key, of which attn-compile makes none */
  int64_t max_slots;         /* extents of dimensions "slot" and "bucket" */
  int64_t max_buckets;
  uint64_t flags;                  /* ATTN_PLAN_* */
  const attn_workspace *workspace; /* cuda, optional: memory that the plan uses instead of its own,
                                      until it is destroyed */
  int64_t (*heap_allocations)(void); /* optional, with ATTN_PLAN_STRICT: how often this thread has
                                        allocated so far */
  int64_t max_cuts;                  /* cuda, with ATTN_PLAN_FIXED: attn_batch.num_cuts at most */
  int64_t max_slack; /* cuda, with ATTN_PLAN_FIXED: of rows with seq_len_is_bound, seq_len less
                        seq_len_least at most */
  int64_t max_pages; /* cuda, with ATTN_PLAN_FIXED: pages that hold keys, of all requests; counts
                        for kernels with a recipe of page runs */
} attn_plan_options;

/* Bytes that attn_plan_options.workspace takes on cuda, or attn_plan_prepare's workspace on the
 * cpu, for any batch within the limits. */
typedef struct attn_workspace_size {
  size_t struct_size; /* in: bytes the caller has */
  size_t host_bytes;
  size_t device_bytes; /* 0 on the cpu */
  size_t alignment;    /* of both */
} attn_workspace_size;

/* The artifact must outlive the plan. On cuda ATTN_UNSUPPORTED says why this machine cannot run the
 * kernel: no driver, no GPU, another GPU than the kernel's. The plan holds the GPU's primary
 * context; no call changes the context that is current. */
ATTN_API attn_status attn_plan_create(const attn_artifact *artifact,
                                      const attn_plan_options *options, attn_plan **out);
/* Null is allowed. On cuda the runs of the plan must be over. */
ATTN_API void attn_plan_destroy(attn_plan *plan);
/* The same as for a plan with these options, without making one. */
ATTN_API attn_status attn_plan_query_workspace(const attn_artifact *artifact,
                                               const attn_plan_options *options,
                                               attn_workspace_size *size);

/* Checks a batch and builds the tables the kernel reads. With a null workspace the plan uses its
 * own memory. After a failure the plan has no batch. On cuda `workspace` is null, see
 * attn_plan_options.workspace.
 *
 * On cuda the tables are copied on `stream` without waiting for them. Two buffers are used in turn:
 * runs of the batch before the last must come before in the stream (with ATTN_PLAN_FOR_GRAPHS, all
 * runs), and where the stream is so far behind that the copy of that batch is not over, prepare
 * waits for it. A prepare cannot be captured into a graph.
 *
 * With ATTN_PLAN_FOR_GRAPHS, once a run was captured, a batch must have what graphs hold by value:
 * the same parameters, extents of dense tables (but of b and token) and page size, no more slots of
 * contiguous keys than attn_run_args.kv_slots, no more pages (attn_batch.num_pages), and no more of
 * a request than the block table had room for. Others are refused until attn_plan_forget_graphs.
 * Lengths, ranges, documents, contents of tables and pages are free. */
ATTN_API attn_status attn_plan_prepare(attn_plan *plan, const attn_batch *batch,
                                       const attn_workspace *workspace, void *stream);

/* Part of a batch: requests [request_begin, request_end) and of them tokens
 * [token_begin, token_end). Tensors and tables stay those of the whole batch, whose keys are in
 * memory as far as rows of the part keep them. On cuda the first of these tokens and the one past
 * the last are in attn_batch.cuts, or 0 or the number of tokens; a run of a part cannot be captured
 * with ATTN_PLAN_FOR_GRAPHS. */
typedef struct attn_subrange {
  size_t struct_size;
  int64_t request_begin, request_end;
  int64_t token_begin, token_end;
} attn_subrange;

/* Tensors of a run, in device memory on cuda. Strides count elements; the last dimension is
 * contiguous; dtypes are the kernel's (attn_kernel_info), O is float on the cpu and of q's dtype on
 * cuda, LSE is float. On cuda Q, K, V and O start at multiples of 16 bytes, and strides of
 * dimensions larger than 1 are positive multiples of 8; K and V are never null where there are
 * tokens. */
typedef struct attn_run_args {
  size_t struct_size;
  const void *q; /* [tokens, heads, dim_qk] */
  int64_t q_token_stride, q_head_stride;
  /* With pages: key k of request b is slot k % page_size of page block_table[b][k / page_size].
   * Contiguous: slot kv_start[b] + k, page strides unused. */
  const void *k;
  int64_t k_page_stride, k_slot_stride, k_head_stride;
  const void *v;
  int64_t v_page_stride, v_slot_stride, v_head_stride;
  const int64_t *kv_start; /* [num_reqs]; optional: instead of the batch's. With pages unused; null
                              on cuda */
  void *o;                 /* [tokens, heads, dim_v] */
  int64_t o_token_stride, o_head_stride;
  float *lse; /* [heads, tokens]: lse[h * lse_head_stride + token], natural logarithm, -inf for a
                 row without keys (its O is 0) */
  int64_t lse_head_stride;
  const attn_subrange *part; /* optional: everything */
  /* cuda, with pages: the block table in device memory, [num_reqs, device_block_table_stride]. */
  const int32_t *device_block_table;
  int64_t device_block_table_stride;
  /* cuda: three numbers in device memory (see attn_tile_counts), to which kernels that were
   * compiled to count their tiles add; others ignore it. */
  uint64_t *counters;
  /* cuda, contiguous K and V, optional: slots of both tensors. Needed where a run is captured, as
   * later batches may have more keys; else those of the batch. */
  int64_t kv_slots;
  /* cuda: int32 [num_reqs] in device memory, the lengths of all requests; those of rows with
   * seq_len_is_bound are read when the kernel runs, and lie from seq_len_least to seq_lens[b]. Null
   * if the batch has no such row; needed where a run is captured, if later batches have. */
  const int32_t *device_seq_lens;
} attn_run_args;

/* Computes O and LSE of the rows of the prepared batch; other rows are not written.
 *
 * On cuda this only enqueues the kernel: nothing is copied, allocated or waited for, so a run can
 * be captured into a graph. With ATTN_PLAN_FOR_GRAPHS the graph computes whatever batch was
 * prepared last when it is replayed, and Q and O have room for max_tokens rows; else it is good
 * until the plan's next prepare. `stream` is that of prepare or one that waits for it. */
ATTN_API attn_status attn_plan_run(const attn_plan *plan, const attn_run_args *args, void *stream);

/* The graphs in which runs were captured are not replayed any more: batches may differ from them.
 */
ATTN_API attn_status attn_plan_forget_graphs(attn_plan *plan);

/* What the prepares of a plan of device cuda have cost so far. */
typedef struct attn_step_counts {
  size_t struct_size; /* in: bytes the caller has */
  uint64_t steps;
  uint64_t copies; /* enqueued */
  uint64_t copied_bytes;
  uint64_t constant_copies; /* of tables that changed, or were new */
  uint64_t waits;           /* for an earlier copy */
} attn_step_counts;
ATTN_API attn_status attn_plan_step_counts(const attn_plan *plan, attn_step_counts *counts);

/* Work of one run of the prepared batch, heads included. */
typedef struct attn_tile_counts {
  size_t struct_size; /* in: bytes the caller has */
  uint64_t loaded;    /* key blocks loaded, over all query tiles */
  uint64_t visited;   /* (64 query rows, key block) pairs computed */
  uint64_t full;      /* of them without a test of the mask */
} attn_tile_counts;

/* On cuda; other devices have no such tiles. */
ATTN_API attn_status attn_plan_tile_counts(const attn_plan *plan, attn_tile_counts *counts);

/*===---------------------------------- builders ----------------------------------------------===*/
/* Tables of the prepared batch in the caller's memory, for kernels of other makers and tests. */

/* Per token of the batch the inclusive (start, end) hull of the ranges of `table` that hold its q,
 * or of its document, (-1, -1) outside; 8 bytes a row. `table` names a ranges or documents table;
 * null: the only one. `rows` may be null to ask for `num_rows` alone. `covered` (optional): rows
 * that lie in some range; on 0 nothing is written and the kernel without the table does the same.
 * ATTN_TOO_LARGE if capacity (in rows) is too small; `num_rows` is set then too. */
ATTN_API attn_status attn_plan_query_ranges(const attn_plan *plan, const char *table, int32_t *rows,
                                            int64_t capacity, int64_t *num_rows, int64_t *covered);

enum {
  ATTN_SEGMENT_FULL = 0,   /* every pair of the segment is kept */
  ATTN_SEGMENT_PARTIAL = 1 /* the mask must be tested */
};

/* Keys [begin, end) that a query tile visits, clipped to the keys of the launch. */
typedef struct attn_segment {
  int64_t begin, end;
  uint32_t cls; /* ATTN_SEGMENT_* */
  uint32_t reserved;
} attn_segment;

/* A tile of consecutive queries of one request for a group of heads. */
typedef struct attn_tile_record {
  int64_t request;
  int64_t query_begin; /* absolute position of the first query */
  int64_t query_count;
  int64_t head_begin, head_count;
  int64_t segment_begin, segment_count; /* in the segment array */
} attn_tile_record;

typedef struct attn_tile_shape {
  size_t struct_size;
  int64_t queries, keys; /* of a tile; at least 1 */
  int64_t key_anchor;    /* position at which some key block starts */
} attn_tile_shape;

/* Tile records of the batch: requests in order, queries ascending, segments ascending. Either array
 * may be null to ask for the numbers alone. ATTN_TOO_LARGE if one is too small; both numbers are
 * set then too. */
ATTN_API attn_status attn_plan_tile_records(const attn_plan *plan, const attn_tile_shape *shape,
                                            attn_tile_record *records, int64_t record_capacity,
                                            attn_segment *segments, int64_t segment_capacity,
                                            int64_t *num_records, int64_t *num_segments);

/* ALiBi slopes of heads [first_head, first_head + count) of a model with total_heads heads. */
ATTN_API attn_status attn_alibi_slopes(int64_t total_heads, int64_t first_head, int64_t count,
                                       float *slopes);

#ifdef __cplusplus
}
#endif

#endif /* ATTN_C_RUNTIME_H */
