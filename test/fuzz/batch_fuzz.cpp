// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Any bytes are a batch or are refused; of a batch that is taken the tables and the work list equal
// their definitions.
#include "Subject.h"

#include "attn/Core/MaskEval.h"
#include "attn/Runtime/BatchIO.h"
#include "attn/Runtime/Builders.h"
#include "attn/Runtime/WorkList.h"

#include <algorithm>
#include <string_view>

using namespace attn;
using namespace attn::core;

/// The hull of the ranges that hold the query of each token.
static void checkRows(const Batch &batch) {
  const BatchShape &shape = batch.shape;
  const TableData &mm = batch.tables[0];
  std::vector<Range> rows(shape.numTokens(), {-1, -1});
  rt::buildRows(shape, TableKind::Ranges, mm, rows.data());
  for (int64_t b = 0; b < shape.numReqs(); ++b)
    for (int64_t t = shape.queryStartLoc[b]; t < shape.queryStartLoc[b + 1]; ++t) {
      const int64_t q = shape.queryOf(RequestIndex(b), TokenIndex(t)).value;
      Range row{-1, -1};
      for (int64_t r = mm.rangeOffsets[b]; r < mm.rangeOffsets[b + 1]; ++r)
        if (const Range &range = mm.ranges[r]; range.start <= q && q <= range.end)
          row = row.start < 0
                    ? range
                    : Range{std::min(row.start, range.start), std::max(row.end, range.end)};
      fuzz::require(rows[t].start == row.start && rows[t].end == row.end, "row of a token");
    }
}

/// Every pair that the mask keeps lies in a block that is not skipped, and a full block has no
/// other pairs.
static void checkList(const MaskProgram &program, const Batch &batch) {
  CudaLaunch launch;
  launch.groups = 2;
  launch.keyTile = 16;
  const Result<rt::WorkList> list =
      rt::buildWorkList(program, batch, launch, TilePlan::Intervals, {nullptr, 64});
  fuzz::require(list.ok(), "a list of a small batch");
  MaskEvaluator eval(program, batch);
  int64_t tokens = 0;
  for (const TileHeader &tile : list->tiles) {
    tokens += tile.rows;
    for (int64_t row = 0; row < tile.rows; ++row)
      for (int64_t k = tile.keyBegin; k < tile.keyEnd; ++k) {
        uint32_t cls = kGroupSkip;
        for (int32_t i = tile.entryBegin; i < tile.entryBegin + tile.entryCount; ++i)
          if (const TileEntry &entry = list->entries[i];
              entry.keyBegin <= k && k < entry.keyBegin + entry.blocks * launch.keyTile)
            cls = entry.classes >> (row / kGroupRows * kGroupClassBits) & 3;
        const bool keep = eval.keep(RequestIndex(tile.request), HeadIndex(0),
                                    QueryPos(tile.queryBegin + row), KeyPos(k));
        fuzz::require(cls == kGroupPartial || keep == (cls == kGroupFull), "class of a block");
      }
  }
  fuzz::require(tokens == batch.shape.numTokens(), "every token lies in a tile");
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const KernelSpec spec = fuzz::spec();
  const std::string_view text(reinterpret_cast<const char *>(data), size);
  Result<rt::BatchFile> file = rt::readBatch(text, spec);
  if (!file.ok()) {
    fuzz::requireRefusal(file.message());
    return 0;
  }
  const Result<rt::BoundBatch> bound = rt::bindBatch(spec, file->input);
  if (!bound.ok()) {
    fuzz::requireRefusal(bound.message());
    return 0;
  }
  int64_t longest = 0;
  for (int64_t keys : bound->batch.shape.seqLen)
    longest = std::max(longest, keys);
  if (bound->batch.shape.numTokens() > 300 || longest > 300)
    return 0; // definitions take too long
  checkRows(bound->batch);
  checkList(spec.program, bound->batch);
  return 0;
}
