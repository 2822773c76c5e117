// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How large a batch attn-mask works through, and how large a picture it draws.
#ifndef ATTN_TOOLS_ATTNMASK_LIMITS_H
#define ATTN_TOOLS_ATTNMASK_LIMITS_H

#include "Png.h"

namespace attn::mask {

/// Rows of the mask: each is evaluated, some are held in memory together.
constexpr int64_t kMaxRows = int64_t(1) << 26;
/// Pairs and tiles of masks that are not made of intervals, which take them one by one.
constexpr int64_t kMaxPairs = int64_t(1) << 36;
constexpr int64_t kMaxTiles = int64_t(1) << 32;
/// A picture.
constexpr int64_t kMaxPictureTiles = int64_t(1) << 24;
constexpr int64_t kMaxPixels = int64_t(1) << 27;

/// The work that a batch makes; the pairs are all those of its requests.
struct Work {
  int64_t rows = 0;
  double pairs = 0, tiles = 0;
  bool pairByPair = false;

  /// Expected time on one core.
  double seconds() const;
};

Work workOf(core::MaskEvaluator &evaluator, const core::KernelSpec &spec, const core::Batch &batch,
            const rt::TileShape &tile);

/// Refuses what passes the limits above.
core::Status checkWork(const Work &work);
core::Status checkPicture(const std::vector<Picture> &pictures);

} // namespace attn::mask

#endif // ATTN_TOOLS_ATTNMASK_LIMITS_H
