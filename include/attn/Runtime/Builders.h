// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Builders of the tables that kernels read, and of range tensors and page runs, which are recipes a
// manifest can name (attn/Core/Recipe.h).
#ifndef ATTN_RUNTIME_BUILDERS_H
#define ATTN_RUNTIME_BUILDERS_H

#include "attn/Core/Batch.h"
#include "attn/Core/Manifest.h"
#include "attn/Core/Status.h"
#include "attn/Core/TileRecords.h"
#include "attn/Runtime/Span.h"

#include <cstdint>
#include <vector>

namespace attn::rt {

/// Fills rows[token] for every scheduled token with the inclusive hull (min start, max end) of the
/// live ranges of its request that hold its q, or (-1, -1). `rows` has at least numTokens entries.
/// Returns the number of rows covered by some range; on 0 no buffer is touched, the caller runs the
/// plain kernel. O(tokens + ranges log ranges).
int64_t buildQueryRanges(const core::BatchShape &shape, const core::TableData &ranges,
                         core::Range *rows);
/// The same without allocation: `scratch` holds mostRanges() ranges.
int64_t buildQueryRanges(const core::BatchShape &shape, const core::TableData &ranges,
                         core::Range *rows, Span<core::Range> scratch);
/// The largest number of ranges of a request.
int64_t mostRanges(const core::TableData &ranges);

/// The same for documents, without allocation: inclusive extent of q's document, (-1, -1) where q
/// has none.
int64_t buildDocumentRows(const core::BatchShape &shape, const core::TableData &documents,
                          core::Range *rows);

/// Fills every row of a QueryRanges table from its source, of kind Ranges or Documents; (-1, -1)
/// everywhere if nothing is covered.
void buildRows(const core::BatchShape &shape, core::TableKind sourceKind,
               const core::TableData &source, core::Range *rows);

/// Builds every QueryRanges table of `decls` into `tables` (same order), by the recipe its source
/// names.
void buildTables(const core::BatchShape &shape, const std::vector<core::TableDecl> &decls,
                 std::vector<core::TableData> &tables);

/// Live ranges as a dense tensor [num_reqs, perRequest] for kernels that scan them, each request's
/// in its own order, the rest (-1, -1). A request with more is refused. Returns the number of
/// ranges; on 0 no buffer is touched. Allocates nothing.
core::Result<int64_t> buildRangeTensor(const core::BatchShape &shape, const core::TableData &ranges,
                                       int64_t perRequest, Span<core::Range> tensor);

/// Pages of every request: entries [b * stride, ...) of `entries`. Those past the pages that hold
/// keys of the launch are not read.
struct PageTable {
  const int32_t *entries = nullptr;
  int64_t stride = 0;
  int64_t pageSize = 0;
};

/// Consecutive pages of a request, `page` its first, that lie side by side in the cache.
struct PageRun {
  int32_t page;      ///< holds the keys from page * page_size
  int32_t cachePage; ///< its number in the cache
  int32_t count;
};

/// Fills the runs of all pages that hold keys of the launch, as long as they can be; those of
/// request b at offsets[b] .. offsets[b + 1]. `offsets` takes num_reqs + 1, `runs` mostPageRuns()
/// whatever the table holds; less is refused. Returns the number of runs. Allocates nothing.
core::Result<int64_t> buildPageRuns(const core::BatchShape &shape, const PageTable &table,
                                    Span<PageRun> runs, Span<int64_t> offsets);
/// Pages that hold keys of the launch.
int64_t mostPageRuns(const core::BatchShape &shape, int64_t pageSize);

/// ALiBi slopes of heads [firstHead, firstHead + count) of a model with totalHeads heads; a rank of
/// a tensor-parallel group names its first head.
std::vector<float> alibiSlopes(int64_t totalHeads, int64_t firstHead, int64_t count);

struct TileShape {
  int64_t queries = 128;
  int64_t keys = 80;
};

/// Tile records of every request: query tiles start at each request's first query; key blocks are
/// anchored at absolute position `keyAnchor`. For masks whose rows are interval sets the classes
/// are exact: a visited block holds a kept pair, a full block only kept pairs. For others they are
/// sound. Masks that depend on the head get one record per head, others one for all heads.
std::vector<core::TileRecord> buildTileRecords(const core::MaskProgram &program,
                                               const core::Batch &batch, TileShape shape,
                                               int64_t keyAnchor = 0);

/// Totals over records, per head: blocks visited, of them full, and blocks of the rectangle.
struct TileCounts {
  int64_t visited = 0;
  int64_t full = 0;
  int64_t rectangle = 0;
};
TileCounts countTiles(const std::vector<core::TileRecord> &records, const core::Batch &batch,
                      TileShape shape, int64_t keyAnchor = 0);

} // namespace attn::rt

#endif // ATTN_RUNTIME_BUILDERS_H
