// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The Hopper schedule of a kernel: who loads, who computes, in which order.
//
// A CTA works on one query tile after the other, until the work list is done: the next one is the
// next that no CTA has, which the producer claims late, behind the last K of the tile it loads.
// What the loader and the row groups need of the records of a tile goes through a queue in shared
// memory: read from global memory, work item, header and entry would wait for each other at the
// start of every tile.
//
// Producer: walks a tile's entries and loads Q, K(0), ..., K(last); a second warp loads V(0), ...,
// V(last). Each of the two waits for its own ring only, and where keys lie in pages, one finds and
// issues the boxes of V while the other does those of K.
// A row group walks the same entries. A stretch is a run of entries it does not skip: the first
// block's S alone, then per block j  S(j) = Q K(j)  and  O += P V(j-1)  issued together, with the
// softmax of j under the second product; the last O += P V. Blocks run from the highest key to the
// lowest (FlashAttention-3, arXiv 2407.08608, intra-warpgroup overlap).
#ifndef ATTN_LIB_CONVERSION_ATTNTOTILE_HOPPERSCHEDULE_H
#define ATTN_LIB_CONVERSION_ATTNTOTILE_HOPPERSCHEDULE_H

#include "GpuContext.h"

#include "attn/Conversion/AttnToTile/TargetInfo.h"
#include "attn/Conversion/Regions/RegionEmitter.h"
#include "attn/Dialect/Tile/IR/TileOps.h"

#include <limits>
#include <optional>
#include <tuple>

namespace attn {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// A tile's record in the queue: rows of TileScalars, then entries, as many as there is room for;
/// a row group reads the others from global memory. 16 are more than a tile has unless its mask has
/// holes; with them the queue takes 608 bytes.
inline constexpr int64_t kQueueTileRows = 3, kQueueEntries = 16,
                         kQueueRows = kQueueTileRows + kQueueEntries;

/// How partial blocks test the mask.
struct MaskForm {
  /// Every key of the launch is kept, or the union of `runs`, whose bounds are row values.
  bool isRuns = false;
  llvm::SmallVector<InRowsOp> runs;

  static MaskForm get(KernelOp kernel);
  MaskShape getShape() const;
};

/// How scores reach the softmax, whose weights are exp2(score * unit - shift).
struct ScoreForm {
  double unit = 1;         ///< of scores, in log2 units
  bool inExponent = false; ///< score * unit - maximum * unit, not (score - maximum) * unit
  /// A constant instead of the row's maximum * unit: no running maximum, and nothing is rescaled.
  std::optional<double> shift;
  /// The soft cap or ALiBi that ends the score region and gives scores in `unit`, if one does.
  mlir::Operation *last = nullptr;
  bool takesProduct = false; ///< `last` takes Q K and has the scale, or `unit` has it

  static ScoreForm get(KernelOp kernel);
};

/// A work item with its TileHeader as scalars (i32), as a row group takes them.
struct TileScalars {
  mlir::Value head, request, queryBegin, tokenBegin, rows, keyBegin, keyEnd;
  mlir::Value entryBegin; ///< number of the first TileEntry
  mlir::Value entries;    ///< how many; the tile's own count from 0
  mlir::Value kvRow;      ///< for who loads
  mlir::Value halves;     ///< core::TileHeader::halves

  static constexpr size_t kCount = 11;
  llvm::SmallVector<mlir::Value> pack() const {
    return {head,   request,    queryBegin, tokenBegin, rows,  keyBegin,
            keyEnd, entryBegin, entries,    kvRow,      halves};
  }
  static TileScalars unpack(mlir::ValueRange v) {
    return {v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9], v[10]};
  }
};

/// What places the blocks of a tile.
struct LoadScalars {
  mlir::Value request, kvHead, kvRow, keyBegin, keyEnd;
};

/// One TileEntry as scalars (i32).
struct EntryScalars {
  mlir::Value keyBegin, blocks, classes, visible;
};

class HopperSchedule {
public:
  HopperSchedule(KernelOp kernel, MaskForm form, const TileShapeInfo &shape, bool countTiles);

  /// Emits the tile.kernel at the builder's place.
  tile::KernelOp emit(mlir::OpBuilder &builder);

private:
  /// Values that the producer carries from tile to tile (i32).
  struct Progress {
    mlir::Value item;  ///< number of the work item
    mlir::Value tiles; ///< tiles so far: the next use of the queue, and of each group's Q
    mlir::Value use;   ///< blocks so far: the next use of K's ring

    llvm::SmallVector<mlir::Value> pack() const { return {item, tiles, use}; }
    static Progress unpack(mlir::ValueRange v) { return {v[0], v[1], v[2]}; }
  };
  /// Values that blocks of a row group carry on.
  struct State {
    mlir::Value use;           ///< number of the next block in the rings
    mlir::Value qReleased;     ///< Q's slot was handed back (i1)
    mlir::Value max;           ///< running maximum; null where scores have a constant shift
    mlir::Value sum, o;        ///< partial sum, unnormalised output
    mlir::Value visited, full; ///< counters; null unless counting

    llvm::SmallVector<mlir::Value> pack() const;
  };
  /// Number of values of a State; what a loop carries besides stands before or behind them.
  size_t stateSize() const;
  State unpackState(mlir::ValueRange values) const;
  /// What becomes of a row's sums: O is multiplied by `inverse`.
  struct Finish {
    mlir::Value inverse, lse; ///< rows of f32
  };
  enum class BlockKind { Partial, Full };

  mlir::Location getLoc() { return kernel.getLoc(); }

  /// Tile and head of a work item (i32).
  std::pair<mlir::Value, mlir::Value> emitWorkItem(mlir::OpBuilder &builder, mlir::Value item);
  mlir::Value headerAddress(TileEmitter &e, mlir::Value tileNumber);
  /// An i32 field of a record.
  static mlir::Value loadField(TileEmitter &e, mlir::Value record, size_t offset);
  mlir::Value entryAddress(TileEmitter &e, mlir::Value number);
  /// Entry `number` of all.
  EntryScalars emitEntry(mlir::OpBuilder &builder, mlir::Value number);

  mlir::Value emitNumWork(mlir::OpBuilder &builder);
  void emitProducer(mlir::OpBuilder &builder);
  /// The tile whose header has the number, for a query head (emitWorkItem()).
  Progress emitProducerTile(mlir::OpBuilder &builder, Progress progress, mlir::Value number,
                            mlir::Value head);
  void emitLoader(mlir::OpBuilder &builder);
  void emitQueryLoad(mlir::OpBuilder &builder, const TileScalars &tile, mlir::Value tiles);
  LoadScalars emitLoadScalars(mlir::OpBuilder &builder, const TileScalars &tile);
  /// The blocks of an entry, from the highest on; gives the next use of the ring.
  mlir::Value emitLoads(mlir::OpBuilder &builder, const LoadScalars &tile,
                        const EntryScalars &entry, mlir::Value ring, mlir::Value map,
                        mlir::Value use);
  void emitLoad(mlir::OpBuilder &builder, const LoadScalars &tile, mlir::Value ring,
                mlir::Value map, mlir::Value use, mlir::Value key);
  std::pair<mlir::Value, mlir::Value> emitPageOf(TileEmitter &e, mlir::Value key);
  mlir::Value emitPageNumber(mlir::OpBuilder &builder, const LoadScalars &tile, mlir::Value first);

  /// The length on the device of a request, at most `most`.
  mlir::Value emitSeqLen(mlir::OpBuilder &builder, mlir::Value request, mlir::Value most);
  /// Makes queryBegin and keyEnd of a tile's header those of the length on the device if `isBound`,
  /// and writes the tile's bitmaps then.
  void emitRowsAndKeys(mlir::OpBuilder &builder, mlir::Value header, mlir::Value isBound,
                       TileScalars &tile);
  void emitBitmaps(mlir::OpBuilder &builder, const TileScalars &scalars);
  void emitBitmap(mlir::OpBuilder &builder, const EntryScalars &entry);

  void emitLoadCounter(mlir::OpBuilder &builder, mlir::Value blocks);

  void emitConsumers(mlir::OpBuilder &builder, mlir::Value group);
  /// The tile of the queue's record number `tiles`.
  TileScalars emitTakeTile(mlir::OpBuilder &builder, mlir::Value tiles);
  /// Every tile of the queue, which `emitTile` finds in `tile` and `tiles`; it takes and gives the
  /// number of the next block in the rings.
  void emitTiles(mlir::OpBuilder &builder,
                 llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Value)> emitTile);
  /// Entry `number` of the tile.
  EntryScalars emitTakeEntry(mlir::OpBuilder &builder, mlir::Value number);
  /// Gives the number of the next block in the rings.
  mlir::Value emitConsumerTile(mlir::OpBuilder &builder, mlir::Value use);
  /// Q and the entries of a tile.
  std::pair<State, Finish> emitEntries(mlir::OpBuilder &builder, State state);
  void emitRowValues(mlir::OpBuilder &builder);
  /// Which rows of a tile a row group has: [64 part, 64 part + 64).
  mlir::Value emitPart(mlir::OpBuilder &builder, mlir::Value groupNumber, mlir::Value tileNumber);
  /// `context` and `regions` for a request and head, with what is computed once for them.
  void emitContext(mlir::OpBuilder &builder, mlir::Value request, mlir::Value head);
  /// Lowest key and key past the highest (i32) of each run of the row at the context's indices, in
  /// [begin, end).
  llvm::SmallVector<std::pair<mlir::Value, mlir::Value>>
  emitLimits(mlir::OpBuilder &builder, mlir::Value begin, mlir::Value end);
  /// Maps row values to arguments of a map's region, which are in the order of rowValues.
  void bindRow(mlir::ValueRange arguments);

  State emitSkip(mlir::OpBuilder &builder, const EntryScalars &entry, State state);
  /// Gives the number of the first entry after the stretch, the state, and what finishes it.
  std::tuple<mlir::Value, State, Finish> emitStretch(mlir::OpBuilder &builder,
                                                     mlir::Value entryNumber,
                                                     const EntryScalars &entry, State state);
  Finish emitFinish(mlir::OpBuilder &builder, const State &state);
  /// S of the first `keys` keys of one block, under way.
  mlir::Value emitScoresProduct(mlir::OpBuilder &builder, mlir::Value use, int64_t keys);
  std::pair<State, mlir::Value> emitBlocks(mlir::OpBuilder &builder, BlockKind kind,
                                           const EntryScalars &entry, mlir::Value first,
                                           State state, mlir::Value weights);
  std::pair<State, mlir::Value> emitBlock(mlir::OpBuilder &builder, BlockKind kind,
                                          const EntryScalars &entry, mlir::Value key, State state,
                                          mlir::Value weights);
  void emitScoreRegion(mlir::OpBuilder &builder, ScoreOp region, mlir::Value score, mlir::Value key,
                       mlir::Value column);
  mlir::Value emitSoftCap(mlir::OpBuilder &builder, SoftCapOp op);
  mlir::Value emitAlibi(mlir::OpBuilder &builder, AlibiOp op, mlir::Value key, mlir::Value column);
  mlir::Value emitScore(mlir::OpBuilder &builder, mlir::Value scores, mlir::Value key);
  /// Bits of the kept elements of a partial block, for its first `keys` keys.
  mlir::Value emitKeep(mlir::OpBuilder &builder, mlir::Value key, int64_t keys);
  /// The same ahead of the block's scores, for one that is partial if `isPartial` is.
  mlir::Value emitEarlyKeep(mlir::OpBuilder &builder, mlir::Value key, mlir::Value isPartial);
  mlir::Value emitMasked(mlir::OpBuilder &builder, mlir::Value bits, mlir::Value scores);
  /// Zeroes hidden rows of V's slot for a partial block.
  void emitHide(mlir::OpBuilder &builder, const EntryScalars &entry, mlir::Value use,
                mlir::Value bits, mlir::ValueRange visible);
  /// What emitHide() takes as `visible` later; nothing where it goes by the bits of the block.
  llvm::SmallVector<mlir::Value> emitVisible(mlir::OpBuilder &builder, const EntryScalars &entry);
  struct Softmax {
    mlir::Value max, factor;  ///< factor: of O and the sum before; null as State::max
    mlir::Value sum, weights; ///< weights: f32 fragment; of a first block the operand
  };
  Softmax emitFirstBlock(mlir::OpBuilder &builder, const EntryScalars &entry, const State &state,
                         mlir::Value isPartial, bool isHalf);
  Softmax emitHalfOrWhole(mlir::OpBuilder &builder, mlir::Value isHalf, const EntryScalars &entry,
                          const State &state, mlir::Value isPartial);
  Softmax emitSoftmax(mlir::OpBuilder &builder, mlir::Value scores, const State &state);
  Softmax emitShiftedSoftmax(mlir::OpBuilder &builder, mlir::Value scores, mlir::Value sum);
  /// Scores, or differences of them, in log2 units.
  mlir::Value toLog2(mlir::OpBuilder &builder, mlir::Value value);
  mlir::Value emitRescale(mlir::OpBuilder &builder, mlir::Value o, mlir::Value factor);
  mlir::Value emitLazyRescale(mlir::OpBuilder &builder, mlir::Value o, mlir::Value factor);
  /// P as operand of the second product.
  mlir::Value toWeights(mlir::OpBuilder &builder, mlir::Value weights);
  void emitEpilogue(mlir::OpBuilder &builder, mlir::Value o, const Finish &finish);
  void emitCounters(mlir::OpBuilder &builder, const State &state);
  mlir::Value groupClass(TileEmitter &e, mlir::Value classes);
  void count(TileEmitter &e, State &state, BlockKind kind);

  mlir::Type fragment(int64_t cols);
  mlir::Type pendingOf(int64_t cols);
  mlir::Type rowsOf(mlir::Type element, bool partial = false);

  KernelOp kernel;
  const TileShapeInfo &shape;
  bool countTiles;
  MaskForm form;
  ScoreForm scoreForm;
  bool overlap;           ///< regions are straight-line, so a product may be under way beside them
  bool hasHalves;         ///< TileHeader::halves is looked at
  bool rowsBesideProduct; ///< what rows need is read while the first product runs

  mlir::Value args, mapQ, mapK, mapV, mapO, ringQ, ringK, ringV;
  mlir::Value queue; ///< of tiles
  // Of the row groups.
  std::unique_ptr<GpuContext> context;
  std::unique_ptr<RegionEmitter> regions;
  TileScalars tile;
  mlir::Value tiles; ///< number of the tile, and of its record in the queue
  mlir::Value group, scale, visibleTable;
  mlir::Value part;                          ///< of the tile's rows that the group has (emitPart())
  mlir::Value qUse, qOperand;                ///< Q of the tile: its slot, or its registers
  mlir::Value groupRows;                     ///< valid rows of the group (i32)
  llvm::SmallVector<mlir::Value> rowSources; ///< results of attn.per row
  llvm::SmallVector<mlir::Value> rowValues;  ///< q, token, then those of rowSources
  llvm::SmallVector<std::pair<mlir::Value, mlir::Value>>
      limits; ///< of each run: i32, or rows of them
};

} // namespace attn

#endif // ATTN_LIB_CONVERSION_ATTNTOTILE_HOPPERSCHEDULE_H
