/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Loads the artifact of causal_f32.mlir and runs one batch through the C API. All scores are
 * equal (K is 0), so a row that sees n keys has lse = ln(n) and the mean of their values as O.
 */
#include <attn-c/Runtime.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { NUM_REQS = 3, NUM_TOKENS = 9, NUM_KEYS = 11 };

static const int32_t queryStartLoc[NUM_REQS + 1] = {0, 3, 5, 9};
static const int32_t seqLens[NUM_REQS] = {3, 6, 2};

static int fail(const char *what) {
  fprintf(stderr, "run-causal: %s: %s\n", what, attn_last_error());
  return 1;
}

/* Value of V: differs by key, key/value head and column. */
static float valueOf(int64_t k, int64_t kvHead, int64_t d) { return (float)(k + 100 * kvHead + d); }

/* Fills V of every request. */
static void fillValues(float *v, const attn_kernel_info *info) {
  int64_t slot = 0;
  for (int b = 0; b < NUM_REQS; ++b)
    for (int64_t k = 0; k < seqLens[b]; ++k, ++slot)
      for (int64_t h = 0; h < info->num_kv_heads; ++h)
        for (int64_t d = 0; d < info->dim_v; ++d)
          v[(slot * info->num_kv_heads + h) * info->dim_v + d] = valueOf(k, h, d);
}

/* Number of wrong rows. */
static int countWrong(const attn_kernel_info *info, const float *o, const float *lse) {
  int wrong = 0;
  for (int b = 0; b < NUM_REQS; ++b)
    for (int64_t row = queryStartLoc[b]; row < queryStartLoc[b + 1]; ++row)
      for (int64_t h = 0; h < info->num_heads; ++h) {
        const int64_t q = seqLens[b] - queryStartLoc[b + 1] + row;
        const int64_t seen = q < 0 ? 0 : q + 1;
        const int64_t kvHead = h / (info->num_heads / info->num_kv_heads);
        const double gotLse = lse[h * NUM_TOKENS + row];
        int good = seen == 0 ? gotLse == -INFINITY : fabs(gotLse - log((double)seen)) < 1e-5;
        for (int64_t d = 0; d < info->dim_v; ++d) {
          const double expected = seen == 0 ? 0 : q / 2.0 + valueOf(0, kvHead, d);
          if (!(fabs(o[(row * info->num_heads + h) * info->dim_v + d] - expected) < 1e-3))
            good = 0;
        }
        wrong += !good;
      }
  return wrong;
}

/* Runs the batch with a prepared plan and checks it. */
static int runBatch(const attn_plan *plan, const attn_kernel_info *info) {
  const int64_t heads = info->num_heads, kvHeads = info->num_kv_heads;
  float *q = calloc(NUM_TOKENS * heads * info->dim_qk, sizeof(float));
  float *k = calloc(NUM_KEYS * kvHeads * info->dim_qk, sizeof(float));
  float *v = calloc(NUM_KEYS * kvHeads * info->dim_v, sizeof(float));
  float *o = calloc(NUM_TOKENS * heads * info->dim_v, sizeof(float));
  float *lse = calloc(NUM_TOKENS * heads, sizeof(float));
  int status = 1;
  if (q && k && v && o && lse) {
    fillValues(v, info);
    attn_run_args run = {0};
    run.struct_size = sizeof(run);
    run.q = q;
    run.q_token_stride = heads * info->dim_qk;
    run.q_head_stride = info->dim_qk;
    run.k = k;
    run.k_slot_stride = kvHeads * info->dim_qk;
    run.k_head_stride = info->dim_qk;
    run.v = v;
    run.v_slot_stride = kvHeads * info->dim_v;
    run.v_head_stride = info->dim_v;
    run.o = o;
    run.o_token_stride = heads * info->dim_v;
    run.o_head_stride = info->dim_v;
    run.lse = lse;
    run.lse_head_stride = NUM_TOKENS;
    if (attn_plan_run(plan, &run, NULL) != ATTN_OK) {
      fail("attn_plan_run");
    } else {
      const int wrong = countWrong(info, o, lse);
      printf("C program: %d rows, %d wrong\n", NUM_TOKENS * (int)heads, wrong);
      status = wrong != 0;
    }
  }
  free(q);
  free(k);
  free(v);
  free(o);
  free(lse);
  return status;
}

int main(int argc, char **argv) {
  if (argc != 2 || attn_abi_version() != ATTN_ABI_VERSION) {
    fprintf(stderr, "usage: run-causal ARTIFACT\n");
    return 1;
  }
  attn_artifact *artifact = NULL;
  if (attn_artifact_load_file(argv[1], &artifact) != ATTN_OK)
    return fail("attn_artifact_load_file");

  attn_kernel_info info = {0};
  info.struct_size = sizeof(info);
  attn_plan_options options = {0};
  options.struct_size = sizeof(options);
  options.device = "cpu";
  options.max_reqs = NUM_REQS;
  options.max_tokens = NUM_TOKENS;
  attn_batch batch = {0};
  batch.struct_size = sizeof(batch);
  batch.num_reqs = NUM_REQS;
  batch.query_start_loc = queryStartLoc;
  batch.seq_lens = seqLens;

  attn_plan *plan = NULL;
  int status = 1;
  if (attn_kernel_get_info(artifact, 0, &info) != ATTN_OK)
    fail("attn_kernel_get_info");
  else if (attn_plan_create(artifact, &options, &plan) != ATTN_OK)
    fail("attn_plan_create");
  else if (attn_plan_prepare(plan, &batch, NULL, NULL) != ATTN_OK)
    fail("attn_plan_prepare");
  else
    status = runBatch(plan, &info);
  attn_plan_destroy(plan);
  attn_artifact_destroy(artifact);
  return status;
}
