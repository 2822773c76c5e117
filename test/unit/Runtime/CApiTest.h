// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the tests of the C API share: handles that go away by themselves, and a batch.
#ifndef ATTN_TEST_UNIT_RUNTIME_CAPITEST_H
#define ATTN_TEST_UNIT_RUNTIME_CAPITEST_H

#include "attn-c/Runtime.h"

#include "attn/Core/Manifest.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace testing_rt {

inline std::string error() { return attn_last_error(); }

struct ArtifactHandle {
  attn_artifact *handle = nullptr;
  explicit ArtifactHandle(const attn::core::Artifact &artifact) {
    const std::vector<uint8_t> bytes = attn::core::serialize(artifact);
    EXPECT_EQ(attn_artifact_load_memory(bytes.data(), bytes.size(), &handle), ATTN_OK) << error();
  }
  ArtifactHandle(const ArtifactHandle &) = delete;
  ~ArtifactHandle() { attn_artifact_destroy(handle); }
};

struct PlanHandle {
  attn_plan *handle = nullptr;
  PlanHandle(const ArtifactHandle &artifact, const attn_plan_options &options) {
    EXPECT_EQ(attn_plan_create(artifact.handle, &options, &handle), ATTN_OK) << error();
  }
  PlanHandle(const PlanHandle &) = delete;
  ~PlanHandle() { attn_plan_destroy(handle); }
};

/// Two requests: 8 of 8 with ranges [1,3], [5,7]; 6 of 13 with ranges [2,4], [9,12].
struct Batch {
  int32_t startLoc[3] = {0, 8, 14};
  int32_t seqLens[2] = {8, 13};
  int32_t bounds[8] = {1, 3, 5, 7, 2, 4, 9, 12};
  int64_t offsets[3] = {0, 2, 4};
  float slopes[4] = {0.5f, 0, 0.25f, 0.125f};
  attn_param params[2] = {};
  attn_ranges ranges = {};
  attn_dense_table table = {};
  attn_batch batch = {};

  Batch() {
    params[0] = {sizeof(attn_param), "left", 0, 0, 2, 0};
    params[1] = {sizeof(attn_param), "scale", 1, 0, 0, 0.5};
    ranges.struct_size = sizeof(ranges);
    ranges.bounds = bounds;
    ranges.offsets = offsets;
    table.struct_size = sizeof(table);
    table.table = "slopes";
    table.data = slopes;
    table.element = ATTN_SCALAR_F32;
    table.rank = 1;
    table.extents[0] = 4;
    batch.struct_size = sizeof(batch);
    batch.num_reqs = 2;
    batch.query_start_loc = startLoc;
    batch.seq_lens = seqLens;
    batch.params = params;
    batch.num_params = 2;
    batch.ranges = &ranges;
    batch.num_ranges = 1;
    batch.tables = &table;
    batch.num_tables = 1;
  }
  Batch(const Batch &) = delete;
};

/// Arguments of a run of Batch by tinySpec: 4 heads of 8 (6 of V), 2 of K and V; LSE has rows of
/// `lseStride`.
inline attn_run_args tinyRunArgs(const std::vector<float> &q, const std::vector<float> &k,
                                 const std::vector<float> &v, std::vector<float> &o,
                                 std::vector<float> &lse, int64_t lseStride) {
  attn_run_args args = {};
  args.struct_size = sizeof(args);
  args.q = q.data();
  args.q_token_stride = 32;
  args.q_head_stride = 8;
  args.k = k.data();
  args.k_slot_stride = 16;
  args.k_head_stride = 8;
  args.v = v.data();
  args.v_slot_stride = 12;
  args.v_head_stride = 6;
  args.o = o.data();
  args.o_token_stride = 24;
  args.o_head_stride = 6;
  args.lse = lse.data();
  args.lse_head_stride = lseStride;
  return args;
}

/// The mask of tinySpec by definition.
inline bool keeps(const Batch &b, int request, long q, long k) {
  for (long r = b.offsets[request]; r < b.offsets[request + 1]; ++r)
    if (b.bounds[2 * r] <= q && q <= b.bounds[2 * r + 1] && b.bounds[2 * r] <= k &&
        k <= b.bounds[2 * r + 1])
      return true;
  return k <= q && q - k <= b.params[0].i;
}

} // namespace testing_rt

#endif // ATTN_TEST_UNIT_RUNTIME_CAPITEST_H
