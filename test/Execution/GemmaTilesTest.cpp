// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tile counts of the example model on its video batch: the known figures, and brute force over the
// hand-written predicate.
#include "Harness.h"

#include "attn/Runtime/BatchIO.h"

#include "llvm/Support/Error.h"

#include "gtest/gtest.h"

#include <cstdio>

using namespace exec;
using namespace attn;
using namespace attn::core;
using truth::Int;

static std::string readExample(const std::string &name) {
  const std::string path = std::string(ATTN_EXAMPLES_DIR) + "/" + name;
  Result<std::vector<uint8_t>> bytes = readFile(path);
  if (!bytes) {
    ADD_FAILURE() << bytes.message();
    return "";
  }
  return std::string(bytes->begin(), bytes->end());
}

namespace {

/// Tile counts from the number of kept pairs of every tile, pair by pair, without any knowledge of
/// intervals.
struct BruteForce {
  int64_t visited = 0;
  int64_t full = 0;
  int64_t rectangle = 0;
};

BruteForce bruteForce(const truth::Request &r, Int left, rt::TileShape shape) {
  BruteForce counts;
  const Int blocks = (r.seqLen + shape.keys - 1) / shape.keys;
  std::vector<Int> kept(blocks);
  for (Int q0 = r.contextLen; q0 < r.contextLen + r.queryLen; q0 += shape.queries) {
    const Int q1 = std::min<Int>(q0 + shape.queries, r.contextLen + r.queryLen);
    kept.assign(blocks, 0);
    for (Int q = q0; q < q1; ++q) {
      // Only ranges that hold q can keep one of its keys: the others are left out of the scan.
      truth::Request row = r;
      row.ranges.clear();
      for (const truth::Range &range : r.ranges)
        if (range.start <= q && q <= range.end)
          row.ranges.push_back(range);
      for (Int k = 0; k < r.seqLen; ++k)
        kept[k / shape.keys] += (truth::causal(q, k) && truth::windowLeft(q, k, left)) ||
                                truth::mmPrefixClamp(row, q, k, left);
    }
    for (Int block = 0; block < blocks; ++block) {
      const Int keys = std::min<Int>(shape.keys, r.seqLen - block * shape.keys);
      ++counts.rectangle;
      counts.visited += kept[block] > 0;
      counts.full += kept[block] == keys * (q1 - q0);
    }
  }
  return counts;
}

} // namespace

TEST(GemmaTiles, VideoBatchVisits1865Of20862) {
  llvm::Expected<std::vector<KernelSpec>> specs =
      compiler::readSpecs(readExample("gemma4_sliding.mlir"), "gemma4_sliding.mlir");
  ASSERT_TRUE(static_cast<bool>(specs)) << llvm::toString(specs.takeError());
  ASSERT_EQ(specs->size(), 1u);
  const KernelSpec &spec = specs->front();
  Result<rt::BatchFile> file = rt::readBatch(readExample("gemma4_video.json"), spec);
  ASSERT_TRUE(file.ok()) << file.message();
  file->input.params.clear();
  rt::ParamInput left;
  left.name = "left";
  left.i = 1023;
  file->input.params.push_back(left);

  // The batch for the predicate, straight from what the file says.
  ASSERT_EQ(file->input.requests.size(), 1u);
  ASSERT_TRUE(file->input.mmRanges.has_value());
  truth::Request request =
      truth::request(file->input.requests[0].queryLen, file->input.requests[0].seqLen);
  for (const auto &range : file->input.mmRanges->ranges)
    request.ranges.push_back({range[0], range[1]});
  EXPECT_EQ(request.queryLen, 14570);
  EXPECT_EQ(request.ranges.size(), 48u);

  Result<rt::BoundBatch> bound = rt::bindBatch(spec, file->input);
  ASSERT_TRUE(bound.ok()) << bound.message();
  const rt::TileShape shape = {128, 80};
  const std::vector<TileRecord> records = rt::buildTileRecords(spec.program, bound->batch, shape);
  const rt::TileCounts counts = rt::countTiles(records, bound->batch, shape);
  const BruteForce truthCounts = bruteForce(request, 1023, shape);
  std::printf("visited %lld of %lld, full %lld; brute force %lld of %lld, full %lld\n",
              static_cast<long long>(counts.visited), static_cast<long long>(counts.rectangle),
              static_cast<long long>(counts.full), static_cast<long long>(truthCounts.visited),
              static_cast<long long>(truthCounts.rectangle),
              static_cast<long long>(truthCounts.full));
  EXPECT_EQ(counts.visited, 1865);
  EXPECT_EQ(counts.rectangle, 20862);
  EXPECT_EQ(truthCounts.visited, 1865);
  EXPECT_EQ(truthCounts.rectangle, 20862);
  EXPECT_EQ(counts.full, truthCounts.full);
}
