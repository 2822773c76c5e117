// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calling convention of the GPU kernels.
//
// Kernel parameters, in order: four CUtensorMap by value (Q, K, V, O; 128 bytes each, 64-byte
// aligned), then one block of 64-bit words by value: CudaArg numbers its first kNumCudaArgs words;
// then one word a parameter of the spec (integers sign-extended, f32 as its bits in the low half),
// then one NativeTable (kNativeTableWords words) a table of the binary, in its order. Pointers are
// device addresses. The grid is one-dimensional and may be smaller than the work: CTA i does
// work[i] first, then the next one that no CTA has (CudaArg::Claims).
//
// Table reads on the GPU are clamped, not branched around: `data` and `offsets` always point at
// memory that can be read (16 bytes at least), whatever the extents. For Ranges, Documents and
// QueryRanges, extents[0] is the number of entries; a QueryRanges table of which no row is covered
// has extents[0] = 0.
//
// Tensor maps are 5-D over 16-bit elements, 128-byte swizzle, zero fill outside:
//   dimension 0: 64 columns (a column group)      box 64
//   dimension 1: rows: tokens (Q, O), slots       box kGroupRows (Q), kWarpRows (O),
//                                                 CudaArg::BoxRows (K, V)
//   dimension 2: column groups, dim / 64          O: box 1; all if the box has the tile's rows,
//                                                 else 1
//   dimension 3: heads (Q, O), key/value heads    box 1
//   dimension 4: pages (K, V), 1 where there are none   box 1
// Contiguous K/V: one page; the row of key k is TileHeader::kvRow + k. Paged: the row is the slot
// in the page that the page table names; a box never crosses a page.
#ifndef ATTN_CORE_CUDAABI_H
#define ATTN_CORE_CUDAABI_H

#include "attn/Core/NativeAbi.h"

#include <cstdint>

namespace attn::core {

/// Word numbers of the argument block.
enum CudaArg : int64_t {
  kCudaO,            ///< 16-bit elements of Q's type
  kCudaLse,          ///< f32, [heads, lseHeadStride]
  kCudaOTokenStride, ///< in elements; a multiple of 8, as is kCudaOHeadStride
  kCudaOHeadStride,
  kCudaLseHeadStride,   ///< in elements
  kCudaWork,            ///< WorkItem[numWork]
  kCudaTiles,           ///< TileHeader[]
  kCudaEntries,         ///< TileEntry[]
  kCudaVisible,         ///< uint32[][kVisibleWords]: bit r of a bitmap: some row of the query tile
                        ///< keeps key r of the block. Those of tiles with TileHeader::isBound are
                        ///< written by the kernel; where heads share them, by each with the same
                        ///< bits
  kCudaPageTable,       ///< int32 pages of every request, or null: contiguous
  kCudaPageTableStride, ///< entries a request
  kCudaPageSize,        ///< slots a page; 1 where contiguous
  kCudaPerPage,         ///< Reciprocal of that: factor, and shift << 32
  kCudaBoxRows,         ///< rows of one box of K and V: divides the key tile and the page size; the
                        ///< key tile where contiguous
  kCudaNumPages,        ///< first page number past the cache: a box there is filled with zeros
  kCudaCounters,        ///< TileCounters, or null; read by instrumented kernels only
  kCudaNumWork,         ///< most work items of the launch; at least as many as CTAs
  kCudaClaims,          ///< uint32: work items taken beyond the first of every CTA, 0 between
                        ///< launches
  kCudaSeqLens,  ///< int32 [num_reqs]: keys of the requests whose TileHeader::isBound is set;
                 ///< null if there is none
  kCudaListSize, ///< int32: work items of the list. A launch does no more, so that one that was
                 ///< captured with room for more does what the step has
  kNumCudaArgs
};

constexpr int64_t kNativeTableWords = sizeof(NativeTable) / 8;

/// Tensor maps of a kernel.
constexpr int kCudaMaps = 4;

/// Most words of the argument block. Parameters of a kernel take at most 4 KiB (CUDA C++
/// programming guide, function parameters); the tensor maps take 128 bytes each of them.
constexpr int64_t kMaxCudaWords = (4096 - kCudaMaps * 128) / 8;

/// What a CTA does at a time: all keys of one query tile for one head.
struct WorkItem {
  int32_t tile; ///< number of its TileHeader
  int32_t head; ///< query head
};
static_assert(sizeof(WorkItem) == 8, "device layout");

/// One query tile: up to the kernel's queryTile consecutive queries of one request.
struct TileHeader {
  int32_t request;
  int32_t queryBegin; ///< absolute position of row 0; isBound: that minus the request's seq_len
  int32_t tokenBegin; ///< packed token of row 0
  int32_t rows;       ///< 1 ... queryTile
  int32_t entryBegin; ///< first TileEntry
  int32_t entryCount; ///< 0: no row keeps any key
  int32_t kvRow;      ///< contiguous K/V: row of key 0
  int32_t keyBegin;   ///< keys of the launch: [keyBegin, keyEnd)
  int32_t keyEnd;     ///< isBound: the largest that it may be
  int32_t isBound;    ///< 1: seq_len, which is also where the keys end, is known on the device only
                   ///< (kCudaSeqLens). Entries then hold for every seq_len that it may be: a full
                   ///< block is full for each, and no key that is kept for one is left out
  uint32_t halves; ///< bit g set: row group g is not skipped in the first entry's highest block,
                   ///< and keeps no key of its upper half. A clear bit says nothing
  int32_t reserved;
};
static_assert(sizeof(TileHeader) == 48, "device layout; loaded as three 16-byte vectors");

/// Class of a run of key blocks for one row group.
enum GroupClass : uint32_t {
  kGroupSkip = 0,    ///< no row of the group keeps a key of these blocks
  kGroupPartial = 1, ///< the mask is tested per element
  kGroupFull = 2,    ///< every row of the group keeps every key
};
constexpr unsigned kGroupClassBits = 2;

/// A run of consecutive key blocks of `keyTile` keys, walked from the highest key to the lowest.
/// The entries of a tile are in descending order and do not overlap. Every block is loaded; each
/// row group does what its class says.
struct TileEntry {
  int32_t keyBegin; ///< first key of the lowest block; may be negative. Paged: a multiple of the
                    ///< box rows, and not negative
  int32_t blocks;   ///< >= 1
  uint32_t classes; ///< row group g: bits [2g, 2g + 2), a GroupClass; at least one is not skip
  int32_t visible;  ///< number of the bitmap of the entry's one block, or -1: every key of the
                    ///< blocks is kept by some row of the tile. Kernels whose masks do not fuse
                    ///< find this out by themselves and take -1.
};
static_assert(sizeof(TileEntry) == 16, "device layout; loaded as one vector");

/// Rows of a row group: those of one warpgroup's matrix product.
constexpr int64_t kGroupRows = 64;
/// Those of a warp, which writes its own of O.
constexpr int64_t kWarpRows = 16;
/// Rows of a tile with TileHeader::isBound: the lanes of a warp have one each.
constexpr int64_t kMostBoundRows = 32;
/// A bitmap covers one key block.
constexpr int64_t kMaxKeyTile = 256;
constexpr int64_t kVisibleWords = kMaxKeyTile / 32;

/// Written by instrumented kernels (added to).
struct TileCounters {
  uint64_t loaded;  ///< key blocks loaded by producers
  uint64_t visited; ///< (row group, key block) pairs computed
  uint64_t full;    ///< of them without the mask
};

} // namespace attn::core

#endif // ATTN_CORE_CUDAABI_H
