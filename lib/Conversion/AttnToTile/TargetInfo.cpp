// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "attn/Conversion/AttnToTile/TargetInfo.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <string>

using namespace attn;

// Shapes and schedules of sm_90a. A thread of a consumer holds keyTile / 2 registers of S,
// keyTile / 4 of P, dim / 2 of O and dim / 4 of Q if it holds Q, which with about 24 more must fit
// its share: what a CTA gets at launch (a multiple of 8 a thread out of 65536) is dealt out again.
// With two consumer warpgroups 504, with three 512. The warps that load get 24, the least there is
// (PTX ISA, setmaxnreg; ptxas 13.0 spills nothing in them), which leaves 240 each, or 160. K and V
// of two stages each and Q take 2 (queryTiles * groups * 64 + 4 * keyTile) dim bytes of shared
// memory, with O 96 to 224 KiB of the 227 that there are.
//
// Measured on H200s, 16384 tokens unless said, burst / sustained (docs/performance.md says how);
// ratios are to cuDNN in the same run. "Before": kernels of the same structure made by hand.
//
// O through shared memory instead of 16-byte stores: causal 64 at 4096 tokens 0.572 -> 0.554 ms,
// causal 128 at 1024 0.1405 -> 0.1379, causal 256 at 1024 0.1264 -> 0.1241 (burst).
//
// Turns, with O through shared memory: causal 64 at 4096 tokens 0.555 -> 0.539 ms, at 1024 0.222 ->
// 0.208; causal 128 at 1024 0.1379 -> 0.1350, dense 128 at 16384 sustained 3.41 -> 3.36; ALiBi 128
// 1.858 -> 1.711, soft-cap 128 2.348 -> 2.285, both at 256 the same. Without them two warpgroups
// may fall into step and leave the tensor cores idle together: dense 128 lost 9 % to a mere change
// of ptxas's instruction order. Off where row groups need different blocks, as each would wait for
// the other's.
//
// 64: 192 x 128 is 13 % over two warpgroups with 128 x 192 (before). Code per element spills with
// three warpgroups (132 bytes for ALiBi), so it gets two.
//
// 128: 176 keys are equal at long sequences and 2 to 3 % behind at 4096 (before). Q in registers:
// dense 0.923 -> 1.003 of FlashAttention-3 (before), 3.07 -> 2.99 ms with turns. Lazy rescale loses
// up to 1 % (4 % without turns). Predicates spill with 128 keys, so they get 64.
//
// Soft caps without a maximum are bound by two special functions an element, which three warpgroups
// with few keys spread best: causal, 2 x 128 1.958 / 2.196 ms, 3 x 80 1.857 / 2.095. Of other
// shapes (attn-run --tune, median and least) 3 x 80 took 1.927 and 1.873, 2 x 80 1.930 and 1.921, 3
// x 64 2.002 and 1.854.
//
// 256: 64 keys are 1 to 4 % ahead of 80 for windows and ranges (before), and leave room for O:
// dense at 1024 tokens 0.207 -> 0.189 ms, at 16384 2.656 -> 2.655. A slack of 2^8 instead of 0:
// dense 1.091 / 1.084 -> 1.101 / 1.097, causal 1.238 / 1.169 -> 1.246 / 1.212.
//
// Q of two tiles, where it is read from shared memory: dense 64 at 1024 tokens 0.2831 / 0.3137 ->
// 0.2721 / 0.3074 ms, causal 64 0.1959 / 0.2099 -> 0.1899 / 0.2076, at 16384 tokens within 0.2 %
// (sustained +1.0 and -1.7 %), ALiBi 128 1.680 / 1.888 -> 1.670 / 1.889. Without it Q and the first
// K, which is loaded behind it, come when the slowest group is done with the tile before. 256 has
// no room; its first K ahead of Q changed nothing.
//
// Halves of first blocks: of the block that a causal tile starts with, the upper rows keep the
// lower half alone. Causal 64 at 1024 tokens 0.1876 / 0.2060 -> 0.1809 / 0.2003 ms, at 16384 within
// 0.6 %; causal 128 at 1024 0.1326 / 0.1532 -> 0.1312 / 0.1532, at 16384 +0.5 / +0.7 %. Windows at
// 128 lost 2 to 5 %, ALiBi 128 up to 6 %. Blocks of 64 keys have no half that 64 rows at the
// diagonal leave out, where it is aligned.
//
// The next tile is the next that no CTA has, claimed before the last V instead of at a tile's
// start: causal 256 0.847 -> 0.983 and 128 0.960 -> 1.004 of FlashAttention-3 (before). Where tiles
// cost the same it is as good as every grid-th tile or better: dense 64 at 4096 tokens by up to 2.5
// % (before), dense 128 0.759 -> 0.753 ms.
static constexpr ElementWork kBits = ElementWork::Bits, kCapped = ElementWork::Capped,
                             kScore = ElementWork::Score, kPredicate = ElementWork::Predicate;
static constexpr MaskShape kPrefixes = MaskShape::Prefixes, kAny = MaskShape::Any;
static constexpr int64_t kAlways = TileShapeInfo::kAlways;
// Columns: dim, work, masks; groups, keyTile, stages, registers; takesTurns,
// queryInRegisters, rescaleSlack, storeColumns, queryTiles, takesHalves.
static constexpr TileShapeInfo kHopperShapes[] = {
    {64, kBits, kPrefixes, 3, 128, 2, 24, 160, true, false, 0, 64, 2, true},
    {64, kBits, kAny, 3, 128, 2, 24, 160, false, false, 0, 64, 2, false},
    {64, kPredicate, kAny, 2, 128, 2, 24, 240, false, false, 0, 64, 1, false},
    {128, kBits, kPrefixes, 2, 128, 2, 24, 240, true, true, kAlways, 128, 1, true},
    {128, kBits, kAny, 2, 128, 2, 24, 240, false, true, kAlways, 128, 1, false},
    {128, kCapped, kPrefixes, 3, 80, 2, 24, 160, true, false, kAlways, 128, 1, false},
    {128, kScore, kPrefixes, 2, 128, 2, 24, 240, true, false, kAlways, 128, 2, false},
    {128, kScore, kAny, 2, 128, 2, 24, 240, false, false, kAlways, 128, 1, false},
    {128, kPredicate, kAny, 2, 64, 2, 24, 240, false, false, kAlways, 128, 1, false},
    {256, kBits, kPrefixes, 2, 64, 2, 24, 240, true, false, 8, 128, 1, false},
    {256, kPredicate, kAny, 2, 64, 2, 24, 240, false, false, 8, 128, 1, false},
};

// 227 KiB: the CUDA C++ programming guide's maximum shared memory of a block at compute
// capability 9.0.
static constexpr int64_t kMostSharedBytes = 232448;
// K, V, Q and the columns of O of two bytes an element, and 3 KiB at most for barriers, the queue
// and what tile.hide_unseen collects.
static constexpr bool fitsSharedMemory(const TileShapeInfo &shape) {
  const int64_t rows = 64 * shape.groups, keys = 2 * shape.stages * shape.keyTile;
  return 2 * shape.dim * (shape.queryTiles * rows + keys) + 2 * rows * shape.storeColumns + 3072 <=
         kMostSharedBytes;
}
static constexpr bool fitSharedMemory() {
  for (const TileShapeInfo &shape : kHopperShapes)
    if (!fitsSharedMemory(shape))
      return false;
  return true;
}
static_assert(fitSharedMemory(), "a shape takes more shared memory than a block has");

/// Whether S, P, O and Q leave the registers that the rest takes (see above).
static bool fitsRegisters(const TileShapeInfo &shape) {
  constexpr int64_t kRest = 24;
  const int64_t q = shape.queryInRegisters ? shape.dim / 4 : 0;
  return shape.keyTile / 2 + shape.keyTile / 4 + shape.dim / 2 + q + kRest <=
         shape.consumerRegisters;
}

std::string attn::toString(const TileShapeInfo &shape) {
  return std::to_string(shape.groups) + "x" + std::to_string(shape.keyTile) +
         (shape.takesTurns ? "-turns" : "");
}

std::vector<TileShapeInfo> TargetInfo::candidates(const TileShapeInfo &base) const {
  constexpr int64_t kStep = 16, kMostKeys = 256; // of wgmma's N
  std::vector<TileShapeInfo> all = {base};
  for (int64_t groups : {2, 3}) {
    // Registers are dealt out by the number of groups.
    const TileShapeInfo *like =
        llvm::find_if(shapes, [&](const TileShapeInfo &shape) { return shape.groups == groups; });
    assert(like != shapes.end() && "the table has both");
    for (int64_t keyTile = 3 * kStep; keyTile <= kMostKeys; keyTile += kStep)
      for (bool takesTurns : {false, true}) {
        TileShapeInfo shape = base;
        shape.groups = groups;
        shape.keyTile = keyTile;
        shape.takesTurns = takesTurns;
        shape.producerRegisters = like->producerRegisters;
        shape.consumerRegisters = like->consumerRegisters;
        if (!fitsSharedMemory(shape))
          shape.queryTiles = 1;
        if (fitsSharedMemory(shape) && fitsRegisters(shape) && toString(shape) != toString(base))
          all.push_back(shape);
      }
  }
  return all;
}

static const TargetInfo kTargets[] = {
    {"sm_90a", "+ptx86", kHopperShapes},
};

const TileShapeInfo *TargetInfo::findShape(int64_t dim, ElementWork work, MaskShape masks) const {
  for (const TileShapeInfo &shape : shapes)
    if (shape.dim == dim && work <= shape.work && masks <= shape.masks)
      return &shape;
  return nullptr;
}

std::string TargetInfo::dims() const {
  std::string text;
  int64_t last = 0;
  for (const TileShapeInfo &shape : shapes) {
    if (shape.dim != last)
      text += (text.empty() ? "" : ", ") + std::to_string(shape.dim);
    last = shape.dim;
  }
  return text;
}

const TargetInfo *attn::findTarget(llvm::StringRef name) {
  for (const TargetInfo &target : kTargets)
    if (target.name == name)
      return &target;
  return nullptr;
}
