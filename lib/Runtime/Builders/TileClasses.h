// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Classes of the key blocks of query tiles, for each row group. A block is visited if it meets the
// keys that some row keeps and full if it lies inside those that every row keeps. Where the mask is
// followed (RowTerms) both come from pieces of rows; else, for masks whose rows are interval sets,
// from each row. Otherwise blocks that meet the union of the rows' bounds are classified by
// abstract evaluation over boxes, large boxes first.
#ifndef ATTN_LIB_RUNTIME_BUILDERS_TILECLASSES_H
#define ATTN_LIB_RUNTIME_BUILDERS_TILECLASSES_H

#include "RowSums.h"

#include "attn/Core/CudaAbi.h"
#include "attn/Core/IntMath.h"
#include "attn/Core/Manifest.h"
#include "attn/Core/MaskEval.h"

#include <array>
#include <cstring>
#include <optional>
#include <utility>

namespace attn::rt {

/// Consecutive key blocks of one class.
struct ClassRun {
  /// For emplace_back: a run that is copied as a whole just after its parts were stored waits for
  /// them.
  ClassRun(int64_t lo, int64_t hi, core::GroupClass cls) : blocks{lo, hi}, cls(cls) {}

  core::Interval blocks;
  core::GroupClass cls;
};

/// One query tile for one head. `keys`: of the launch, not empty.
struct QueryTile {
  core::RequestIndex b;
  core::HeadIndex h;
  core::Interval queries;
  core::Interval keys;
};

/// A block whose mask is tested costs 1.2 times one whose mask is not. An estimate: the loop bodies
/// differ by about that many instructions.
constexpr int64_t kPartialCost = 6, kFullCost = 5;

/// Bit r: some row of the tile keeps key r of a block.
using KeyBitmap = std::array<uint32_t, core::kVisibleWords>;

class TileClasses {
public:
  /// `program` must outlive the classes.
  TileClasses(const core::MaskProgram &program, const core::CudaLaunch &launch,
              core::TilePlan plan);

  bool isFollowed() const { return plan == core::TilePlan::Intervals && terms.isKnown(); }
  bool isPerHead() const { return perHead; }
  bool readsDocuments() const;
  int64_t mostTerms() const { return terms.mostTerms(); }
  bool hasRowLimits() const { return terms.hasRowLimits(); }
  void reserve(int64_t mostRanges);

  /// Starts a list; `batch` outlives it. `anchored`: blocks start at multiples of their size;
  /// otherwise where the row groups of a tile compute least, if each needs one interval of keys.
  void bind(const core::Batch &batch, bool anchored);
  /// Starts a request that has keys. Its tiles follow in ascending order, the heads of each in
  /// ascending order from 0.
  void start(core::RequestIndex b);
  void classify(const QueryTile &tile);
  /// The same for a tile of a request whose length the device alone knows, without start():
  /// `queries` are its rows' numbers in the request, `keys` those of the longest. The classes hold
  /// for every length; where the mask is not followed every block is partial.
  void classifyBound(const QueryTile &tile);

  /// Whether tiles of one row may be asked for by singleRun().
  bool followsRows() const { return followsBatch && !perHead; }
  /// The keys of a tile of one row, its request's only one, if they are one run: clipped to the
  /// tile's keys, perhaps empty. Such a tile needs no classes, and start() was not called. Nothing
  /// if the request is to be started and the tile classified.
  std::optional<core::Interval> singleRun(core::RequestIndex b, int64_t q, core::Interval keys) {
    const std::optional<core::Interval> run = terms.runOf(b, q);
    if (!run)
      return std::nullopt;
    return core::Interval{std::max(run->lo, keys.lo), std::min(run->hi, keys.hi)};
  }

  /// Bitmap of the keys [begin, end) of a block, to kVisibleWords words.
  void writeKeyBits(int64_t begin, int64_t end, uint32_t *words) const {
    const KeyBitmap below = firstKeys[begin], upTo = firstKeys[end];
    KeyBitmap bits;
    for (size_t i = 0; i < bits.size(); ++i)
      bits[i] = upTo[i] ^ below[i];
    std::memcpy(words, bits.data(), sizeof(bits));
  }

  /// Of the tile classified last: ascending runs of a group, those of a class joined.
  const std::vector<ClassRun> &runs(int64_t group) const { return groups[group]; }
  /// TileHeader::halves of that tile; exact where its rows' keys are known as intervals, else 0.
  uint32_t halves() const;
  /// The first key of a block, and the blocks that meet some keys.
  int64_t firstKey(int64_t block) const { return anchor + block * size; }
  core::Interval blocksOf(core::Interval keys) const {
    return {blockOf(keys.lo), blockAfter(keys.hi)};
  }
  /// Whether some row of the tile keeps each key of a block; if not, `bits` says which are kept.
  bool seesAll(const QueryTile &tile, int64_t block, KeyBitmap &bits);

private:
  void classifyFollowed(const QueryTile &tile);
  void classifyBoundGroup(const QueryTile &tile, int64_t group);
  bool classifyRows(const QueryTile &tile);
  void classifySoundly(const QueryTile &tile);
  void classifyBoxes(const QueryTile &tile, core::Interval queries, core::Interval blocks,
                     std::vector<ClassRun> &runs);
  /// Runs of all groups from keptOf and inAllOf.
  void makeRuns();
  void makeRuns(int64_t group, const KeyRuns &some, const KeyRuns &every);
  void chooseAnchor();
  std::pair<int64_t, int64_t> costOf(int64_t candidate);

  bool hasAll(const KeyBitmap &bits) const;
  core::MaskEvaluator &evaluator();
  core::Interval groupRows(const QueryTile &tile, int64_t group) const {
    const int64_t lo = tile.queries.lo + group * core::kGroupRows;
    return {lo, std::min(lo + core::kGroupRows, tile.queries.hi)};
  }
  // Keys of a launch are not negative and lie below 2^30; block -1 may hold some of them.
  int64_t blockOf(int64_t key) const { return perKey.divide(key + size - anchor) - 1; }
  int64_t blockAfter(int64_t key) const { return blockOf(key + size - 1); }

  const core::MaskProgram &program;
  const int64_t numGroups;
  const int64_t size;
  const core::Reciprocal perKey; ///< of `size`, in a third of the time of a division
  const core::TilePlan plan;
  const bool perHead;
  RowTerms terms;
  std::vector<KeyBitmap> firstKeys; ///< [n]: the first n keys of a block
  std::vector<RowSums> sums;        ///< of each group
  std::vector<std::vector<ClassRun>> groups;
  std::vector<KeyRuns> rowSome, rowEvery; ///< keys of a group's rows, from single rows
  /// Keys that some row, and that every row, of a group keeps, wherever they come from.
  std::vector<const KeyRuns *> keptOf, inAllOf;
  int64_t anchor = 0; ///< where block 0 starts: 0 ... size - 1
  bool isAnchored = true;
  const core::Batch *batch = nullptr;
  std::optional<core::MaskEvaluator> eval; ///< made when it is first needed
  bool followsBatch = false;
  bool followsRequest = false;
  enum class Source : uint8_t { Terms, Rows, Boxes } source = Source::Boxes;
};

} // namespace attn::rt

#endif // ATTN_LIB_RUNTIME_BUILDERS_TILECLASSES_H
