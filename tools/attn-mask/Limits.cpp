// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Limits.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>

using namespace attn;

/// True if the rows of a request are not interval sets, judged by a few of them.
static bool isPairByPair(core::MaskEvaluator &evaluator, const core::Batch &batch,
                         core::RequestIndex b) {
  const int64_t first = batch.shape.contextLen[b.value], queries = batch.shape.queryLen(b);
  for (int64_t i : {int64_t(0), queries / 2, queries - 1})
    if (!evaluator.rowKeys(b, core::HeadIndex(0), core::QueryPos(first + i)))
      return true;
  return false;
}

mask::Work mask::workOf(core::MaskEvaluator &evaluator, const core::KernelSpec &spec,
                        const core::Batch &batch, const rt::TileShape &tile) {
  const bool byHead = core::dependence(spec.program, spec.program.mask).h;
  const int64_t heads = byHead ? spec.numHeads : 1;
  Work work;
  for (int64_t b = 0; b < batch.shape.numReqs(); ++b) {
    const core::RequestIndex request(b);
    const int64_t queries = batch.shape.queryLen(request), keys = batch.shape.seqLen[b];
    if (queries == 0)
      continue;
    work.rows += queries * heads;
    if (keys == 0)
      continue;
    const double tileRows = static_cast<double>((queries + tile.queries - 1) / tile.queries);
    const double tileColumns = static_cast<double>((keys + tile.keys - 1) / tile.keys);
    work.pairs += static_cast<double>(queries) * static_cast<double>(keys);
    work.tiles += tileRows * tileColumns * static_cast<double>(heads);
    work.pairByPair =
        work.pairByPair || (work.rows <= kMaxRows && isPairByPair(evaluator, batch, request));
  }
  return work;
}

double mask::Work::seconds() const {
  // Measured: a window over 4e6 rows took 6 s; a predicate of a product and a remainder took 2.7 s
  // over 5e7 pairs in large tiles, and 36 s in as many tiles of one pair.
  constexpr double kPerRow = 1.5e-6, kPerPair = 55e-9, kPerTile = 0.7e-6;
  const double rowTime = static_cast<double>(rows) * kPerRow;
  return pairByPair ? rowTime + pairs * kPerPair + tiles * kPerTile : rowTime;
}

/// A count that may pass 64 bits.
static std::string countText(double value) {
  char text[64];
  std::snprintf(text, sizeof(text), value < 1e18 ? "%.0f" : "%.3g", value);
  return text;
}

core::Status mask::checkWork(const Work &work) {
  if (work.rows > kMaxRows)
    return core::Error{"the mask has " + std::to_string(work.rows) +
                       " rows (queries, for each head if heads differ), expected at most " +
                       std::to_string(kMaxRows)};
  if (work.pairByPair && work.pairs > static_cast<double>(kMaxPairs))
    return core::Error{"the mask is not made of intervals and has " + countText(work.pairs) +
                       " (query, key) pairs, expected at most " + std::to_string(kMaxPairs)};
  if (work.pairByPair && work.tiles > static_cast<double>(kMaxTiles))
    return core::Error{"the mask is not made of intervals and has " + countText(work.tiles) +
                       " tiles, expected at most " + std::to_string(kMaxTiles) +
                       "; give a larger --tile"};
  return {};
}

core::Status mask::checkPicture(const std::vector<Picture> &pictures) {
  double tiles = 0;
  for (const Picture &picture : pictures)
    tiles += static_cast<double>(picture.tiles.rows) * static_cast<double>(picture.tiles.columns);
  if (tiles > static_cast<double>(kMaxPictureTiles))
    return core::Error{"--png: a picture of " + countText(tiles) + " tiles, expected at most " +
                       std::to_string(kMaxPictureTiles) + "; give --request or a larger --tile"};
  const PictureSize size = sizeOf(pictures);
  const double pixels = static_cast<double>(size.width) * static_cast<double>(size.height);
  if (pixels > static_cast<double>(kMaxPixels))
    return core::Error{"--png: a picture of " + std::to_string(size.width) + " x " +
                       std::to_string(size.height) + " pixels, expected at most " +
                       std::to_string(kMaxPixels) + " pixels; give --request"};
  return {};
}
