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

/// Draws the pictures below each other: kept pairs dark, the ground coloured by the tile's class
/// (white: skipped, amber: partial, green: full), tile borders grey where tiles are large enough to
/// see. Written atomically.
core::Status writePng(const std::string &path, const std::vector<Picture> &pictures);

} // namespace attn::mask

#endif // ATTN_TOOLS_ATTNMASK_PNG_H
