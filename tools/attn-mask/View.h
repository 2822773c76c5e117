// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What attn-mask shows of one request: classes of cells of a grid over (q, k), and counts.
#ifndef ATTN_TOOLS_ATTNMASK_VIEW_H
#define ATTN_TOOLS_ATTNMASK_VIEW_H

#include "attn/Core/MaskEval.h"
#include "attn/Runtime/Builders.h"

#include <string>
#include <vector>

namespace attn::mask {

/// A grid over the (q, k) rectangle of one request and head: cell (r, c) covers `cellQueries` x
/// `cellKeys` pairs.
struct Grid {
  int64_t rows = 0, columns = 0;
  int64_t cellQueries = 1, cellKeys = 1;
  std::vector<core::TileClass> cells; ///< rows x columns

  core::TileClass at(int64_t row, int64_t column) const { return cells[row * columns + column]; }
};

/// The shape of a grid of a request, without its cells, with at most `maxRows` x `maxColumns`
/// cells; cells are whole multiples of `unitQueries` x `unitKeys`.
Grid gridShape(const core::Batch &batch, core::RequestIndex b, int64_t unitQueries,
               int64_t unitKeys, int64_t maxRows, int64_t maxColumns);

/// Finds the classes of the cells of `grid`, a shape of request `b`.
void fillGrid(Grid &grid, core::MaskEvaluator &evaluator, const core::Batch &batch,
              core::RequestIndex b, core::HeadIndex h);

/// The grid as lines of '#' (all kept), '+' (some kept), '.' (none kept).
std::string drawText(const Grid &grid);

/// Pairs kept of one request and head, by the mask itself.
int64_t countKept(core::MaskEvaluator &evaluator, const core::Batch &batch, core::RequestIndex b,
                  core::HeadIndex h);

} // namespace attn::mask

#endif // ATTN_TOOLS_ATTNMASK_VIEW_H
