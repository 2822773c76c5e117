// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Splits the keys of a launch among several CTAs. A policy says how far to split; the plan cuts the
// runs of a work list into pieces, always between key blocks. A tile that stays whole writes its
// result; the pieces of another write partial results (f32 O and LSE without the sink), which are
// combined in the order of the pieces.
#ifndef ATTN_RUNTIME_SPLITPLAN_H
#define ATTN_RUNTIME_SPLITPLAN_H

#include "attn/Core/Recipe.h"
#include "attn/Core/Status.h"
#include "attn/Runtime/Span.h"
#include "attn/Runtime/WorkList.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace attn::rt {

//===----------------------------------------------------------------------===//
// Policies
//===----------------------------------------------------------------------===//

/// How the visible blocks of a tile are cut. One value for a launch.
struct Splits {
  enum class Kind : uint8_t {
    Whole,    ///< not at all
    Count,    ///< into `value` pieces, fewer where a tile has fewer blocks
    Blocks,   ///< into the fewest pieces of at most `value` blocks
    Anchored, ///< where the number of a block, counted from key 0, is a multiple of `value`
  };
  Kind kind = Kind::Whole;
  int64_t value = 1;
};

/// Most pieces of a tile that a policy asks for.
constexpr int64_t kMostSplits = core::kMostSplitPieces;

/// What the policy `sm100_relbias` looks at.
struct RelbiasLaunch {
  std::string_view target; ///< "sm_100a"; targets of sm_90 are never split
  bool isLocal = false;    ///< the mask has a window
  int64_t requests = 0;
  int64_t longestQuery = 0;
  int64_t heads = 1;
  int64_t kvHeads = 1;
  int64_t keys = 0; ///< longest seq_len
};

/// Number of splits of kernels with a learned relative bias on sm_100: enough CTAs for the device
/// where a request has one tile of 256 packed rows, fewer where there are more.
int64_t sm100RelbiasSplits(const RelbiasLaunch &launch);

/// What the policy `measured` looks at besides the work list.
struct MeasuredLaunch {
  int64_t sms = 0;       ///< of the device
  int64_t ctasPerSm = 1; ///< that run at a time
  int64_t keyTile = 0;   ///< keys of a block
  int64_t dimQk = 0;     ///< of the kernel
  int64_t dimV = 0;      ///< of the kernel
  int64_t kvElement = 2; ///< bytes
};

/// Splits by the work there really is. The unit is one visible key block of one query tile; the
/// list knows how many each tile has. With slots = sms * ctasPerSm CTAs at a time and pieces of at
/// most c blocks, the time is taken to be the largest of
///   - the work of all pieces over the slots, and
///   - for every cost, that cost times the waves of the pieces that cost at least as much.
/// A piece of a split tile costs, besides its blocks, what its partial result moves: written and
/// read once, rows * (dim_v + 1) * 4 bytes, in units of the bytes of K and V of a block. Of c =
/// longest tile / s for s = 1 ... kMostSplits (every s to 8, then steps of a fourth), the smallest
/// s within 85 % of the best is taken; launches whose longest tile has at most 4 blocks stay whole.
/// The share, the 4 and the most splits are those of the FlashAttention-3 heuristic; the cost of a
/// piece is arithmetic on bytes. An estimate: pieces are not packed into slots.
Splits measuredSplits(const WorkListView &list, const MeasuredLaunch &launch);

/// Splits that do not depend on what else is in the batch, nor on how a prompt is cut into chunks:
/// the keys of a row are grouped, and its partial results combined, by position alone.
constexpr Splits invariantSplits(int64_t blocks) {
  return {Splits::Kind::Anchored, blocks < 1 ? 1 : blocks};
}

/// What the policy of a recipe asks for, in at most recipe.pieces pieces a tile. Each policy looks
/// at its own launch; `measured` has no ctasPerSm but the recipe's, `relbias` no isLocal but its.
Splits splitsOf(const core::Recipe &recipe, const WorkListView &list, MeasuredLaunch measured,
                RelbiasLaunch relbias);

//===----------------------------------------------------------------------===//
// The plan
//===----------------------------------------------------------------------===//

/// Consecutive blocks of one tile, from the highest key down.
struct SplitPiece {
  int32_t tile;       ///< number of its TileHeader
  int32_t number;     ///< of `count`; 0 has the highest keys
  int32_t count;      ///< pieces of the tile
  int32_t entryBegin; ///< first entry, in the plan's entries
  int32_t entryCount;
  int32_t blocks;
};

/// What one CTA does.
struct SplitWork {
  int32_t piece;
  int32_t head;
  int64_t partialRow; ///< first row of its partial result; -1: the tile is whole
};

/// Partial results of one tile and head; those of piece i start at partialRow + i * rows.
struct SplitCombine {
  int32_t tile;
  int32_t head;
  int32_t pieces;
  int32_t rows;
  int64_t partialRow;
};

struct SplitSizes {
  int64_t tiles = 0;
  int64_t pieces = 0;
  int64_t entries = 0;
  int64_t work = 0;
  int64_t combines = 0;
  int64_t partialRows = 0;

  /// Partial O and LSE, f32.
  int64_t partialBytes(int64_t dimV) const { return partialRows * (dimV + 1) * 4; }
};

/// Memory of a plan.
struct SplitMemory {
  Span<SplitPiece> pieces;       ///< those of a tile side by side, tiles in the list's order
  Span<int32_t> pieceBegin;      ///< [tiles + 1] first piece of each tile
  Span<core::TileEntry> entries; ///< as the list's; no entry belongs to two pieces
  Span<SplitWork> work;          ///< in the list's order, pieces of a tile side by side
  Span<SplitCombine> combines;   ///< of tiles with several pieces
};

/// What a plan takes. `keyTile` is CudaLaunch::keyTile. What does not fit the 32-bit fields of the
/// records is an error that names it. Allocates nothing, as fillSplitPlan does not.
core::Result<SplitSizes> splitSizes(const WorkListView &list, const Splits &splits,
                                    int64_t keyTile);
/// Fills memory of the caller's of at least those sizes and returns them.
core::Result<SplitSizes> fillSplitPlan(const WorkListView &list, const Splits &splits,
                                       int64_t keyTile, const SplitMemory &memory);

/// A plan with its own memory.
struct SplitPlan {
  SplitSizes sizes;
  std::vector<SplitPiece> pieces;
  std::vector<int32_t> pieceBegin;
  std::vector<core::TileEntry> entries;
  std::vector<SplitWork> work;
  std::vector<SplitCombine> combines;
};
core::Result<SplitPlan> buildSplitPlan(const WorkListView &list, const Splits &splits,
                                       int64_t keyTile);

} // namespace attn::rt

#endif // ATTN_RUNTIME_SPLITPLAN_H
