// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_TOOLS_ATTNMASK_PNG_H
#define ATTN_TOOLS_ATTNMASK_PNG_H

#include "View.h"

#include "attn/Core/Status.h"

#include <string>

namespace attn::mask {

/// A request as two grids over the same rectangle.
struct Picture {
  Grid fine;  ///< single pairs where they fit
  Grid tiles; ///< the kernel's tiles
};

/// Pixels of a drawing.
struct PictureSize {
  int64_t width = 0, height = 0;
};
/// Needs the shapes of the grids only.
PictureSize sizeOf(const std::vector<Picture> &pictures);

/// Draws the pictures below each other: kept pairs dark, the ground coloured by the tile's class
/// (white: skipped, amber: partial, green: full), tile borders grey where tiles are large enough to
/// see. Written atomically.
core::Status writePng(const std::string &path, const std::vector<Picture> &pictures);

} // namespace attn::mask

#endif // ATTN_TOOLS_ATTNMASK_PNG_H
