// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "View.h"

#include <algorithm>

using namespace attn;
using core::HeadIndex;
using core::RequestIndex;
using core::TileClass;

/// Smallest multiple of `unit` that divides `extent` into at most `limit` parts.
static int64_t cellSize(int64_t extent, int64_t unit, int64_t limit) {
  int64_t units = (extent + unit - 1) / unit;
  return unit * std::max<int64_t>(1, (units + limit - 1) / limit);
}

mask::Grid mask::gridShape(const core::Batch &batch, RequestIndex b, int64_t unitQueries,
                           int64_t unitKeys, int64_t maxRows, int64_t maxColumns) {
  int64_t queries = batch.shape.queryLen(b), keys = batch.shape.seqLen[b.value];
  Grid grid;
  grid.cellQueries = cellSize(queries, unitQueries, maxRows);
  grid.cellKeys = cellSize(keys, unitKeys, maxColumns);
  grid.rows = (queries + grid.cellQueries - 1) / grid.cellQueries;
  grid.columns = (keys + grid.cellKeys - 1) / grid.cellKeys;
  return grid;
}

void mask::fillGrid(Grid &grid, core::MaskEvaluator &evaluator, const core::Batch &batch,
                    RequestIndex b, HeadIndex h) {
  int64_t queries = batch.shape.queryLen(b), keys = batch.shape.seqLen[b.value];
  int64_t first = batch.shape.contextLen[b.value];
  for (int64_t row = 0; row < grid.rows; ++row)
    for (int64_t column = 0; column < grid.columns; ++column) {
      core::Interval q{first + row * grid.cellQueries,
                       first + std::min((row + 1) * grid.cellQueries, queries)};
      core::Interval k{column * grid.cellKeys, std::min((column + 1) * grid.cellKeys, keys)};
      grid.cells.push_back(evaluator.classify(b, h, q, k));
    }
}

std::string mask::drawText(const Grid &grid) {
  std::string text;
  for (int64_t row = 0; row < grid.rows; ++row) {
    text += "  ";
    for (int64_t column = 0; column < grid.columns; ++column)
      switch (grid.at(row, column)) {
      case TileClass::Skip:
        text += '.';
        break;
      case TileClass::Partial:
        text += '+';
        break;
      case TileClass::Full:
        text += '#';
        break;
      }
    text += '\n';
  }
  return text;
}

int64_t mask::countKept(core::MaskEvaluator &evaluator, const core::Batch &batch, RequestIndex b,
                        HeadIndex h) {
  core::Interval keys{batch.shape.keyBegin[b.value], batch.shape.keyEnd[b.value]};
  int64_t first = batch.shape.contextLen[b.value], kept = 0;
  for (int64_t i = 0, n = batch.shape.queryLen(b); i < n; ++i) {
    core::QueryPos q(first + i);
    if (auto row = evaluator.rowKeys(b, h, q)) {
      kept += (*row & core::IntervalSet(keys)).size();
      continue;
    }
    for (int64_t k = keys.lo; k < keys.hi; ++k)
      kept += evaluator.keep(b, h, q, core::KeyPos(k));
  }
  return kept;
}
