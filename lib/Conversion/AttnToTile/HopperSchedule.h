// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The Hopper schedule of a kernel: who loads, who computes, in which order.
//
// Producer: walks the tile's entries and loads K(0), Q, then K(j) and V(j-1), ..., V(last).
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

namespace attn {

/// How partial blocks test the mask.
struct MaskForm {
  /// Every key of the launch is kept, or the union of `runs`, whose bounds are row values.
  bool isRuns = false;
  llvm::SmallVector<InRowsOp> runs;

  static MaskForm get(KernelOp kernel);
};

/// The kernel's header and its TileHeader as scalars (i32).
struct TileScalars {
  mlir::Value head, request, queryBegin, tokenBegin, rows, entryCount, kvRow, keyBegin, keyEnd;
  mlir::Value entries; ///< address of the tile's first TileEntry
};

/// One TileEntry as scalars (i32).
struct EntryScalars {
  mlir::Value keyBegin, blocks, classes, visible;
};

class HopperSchedule {
public:
  HopperSchedule(KernelOp kernel, const TileShapeInfo &shape, bool countTiles);

  /// Emits the tile.kernel at the builder's place.
  tile::KernelOp emit(mlir::OpBuilder &builder);

private:
  /// Values that blocks of a row group carry on.
  struct State {
    mlir::Value use;           ///< number of the next block in the rings
    mlir::Value max, sum, o;   ///< running maximum, partial sum, unnormalised output
    mlir::Value visited, full; ///< counters; null unless counting

    llvm::SmallVector<mlir::Value> pack() const;
    static State unpack(mlir::ValueRange values);
  };
  enum class BlockKind { Partial, Full };

  mlir::Location getLoc() { return kernel.getLoc(); }
  bool isFolded() const { return folded; }

  TileScalars emitHeader(mlir::OpBuilder &builder);
  EntryScalars emitEntry(mlir::OpBuilder &builder, const TileScalars &tile, mlir::Value number);

  void emitProducer(mlir::OpBuilder &builder);
  void emitLoad(mlir::OpBuilder &builder, const TileScalars &tile, mlir::Value ring,
                mlir::Value map, mlir::Value use, mlir::Value key);

  void emitConsumers(mlir::OpBuilder &builder, mlir::Value group);
  void emitPer(mlir::OpBuilder &builder, Level level);
  void emitRegion(mlir::OpBuilder &builder, mlir::Region &region, mlir::Value score = {});
  void emitRowValues(mlir::OpBuilder &builder);
  /// Maps row values to the arguments of a map's region that start at `first`.
  void bindRow(mlir::ValueRange arguments);

  State emitSkip(mlir::OpBuilder &builder, const EntryScalars &entry, State state);
  /// Gives the number of the first entry after the stretch and the state.
  std::pair<mlir::Value, State> emitStretch(mlir::OpBuilder &builder, mlir::Value entryNumber,
                                            const EntryScalars &entry, State state);
  mlir::Value emitFirstScores(mlir::OpBuilder &builder, const EntryScalars &entry,
                              const State &state);
  std::pair<State, mlir::Value> emitBlocks(mlir::OpBuilder &builder, BlockKind kind,
                                           const EntryScalars &entry, mlir::Value first,
                                           State state, mlir::Value weights);
  std::pair<State, mlir::Value> emitBlock(mlir::OpBuilder &builder, BlockKind kind,
                                          const EntryScalars &entry, mlir::Value key, State state,
                                          mlir::Value weights);
  mlir::Value emitScore(mlir::OpBuilder &builder, mlir::Value scores, mlir::Value key);
  /// Bits of the kept elements of a partial block.
  mlir::Value emitKeep(mlir::OpBuilder &builder, mlir::Value key);
  mlir::Value emitMasked(mlir::OpBuilder &builder, mlir::Value bits, mlir::Value scores);
  /// Zeroes hidden rows of V's slot for a partial block.
  void emitHide(mlir::OpBuilder &builder, const EntryScalars &entry, mlir::Value use,
                mlir::Value bits);
  struct Softmax {
    mlir::Value max, sum, factor, weights; ///< weights: f32 fragment
  };
  Softmax emitSoftmax(mlir::OpBuilder &builder, mlir::Value scores, mlir::Value max,
                      mlir::Value sum);
  mlir::Value emitRescale(mlir::OpBuilder &builder, mlir::Value o, mlir::Value factor);
  mlir::Value emitLazyRescale(mlir::OpBuilder &builder, mlir::Value o, mlir::Value factor);
  void emitEpilogue(mlir::OpBuilder &builder, const State &state);
  void emitCounters(mlir::OpBuilder &builder, const State &state);
  mlir::Value groupClass(TileEmitter &e, mlir::Value classes);
  void count(TileEmitter &e, State &state, BlockKind kind);

  mlir::Type fragment(int64_t cols);
  mlir::Type rowsOf(mlir::Type element, bool partial = false);

  KernelOp kernel;
  const TileShapeInfo &shape;
  bool countTiles;
  MaskForm form;
  bool folded;          ///< the scale goes into the exponent
  bool overlap;         ///< regions are straight-line, so a product may be under way beside them
  double exponentScale; ///< of a score in exp2

  mlir::Value args, mapQ, mapK, mapV, ringQ, ringK, ringV;
  // Of the row groups.
  std::unique_ptr<GpuContext> context;
  std::unique_ptr<RegionEmitter> regions;
  TileScalars tile;
  mlir::Value group, scale, visibleTable;
  mlir::Value groupRows;                     ///< valid rows of the group (i32)
  llvm::SmallVector<mlir::Value> rowSources; ///< results of attn.per row
  llvm::SmallVector<mlir::Value> rowValues;  ///< q, token, then those of rowSources
  llvm::SmallVector<std::pair<mlir::Value, mlir::Value>> limits; ///< lo, hi of each run (i32)
};

} // namespace attn

#endif // ATTN_LIB_CONVERSION_ATTNTOTILE_HOPPERSCHEDULE_H
