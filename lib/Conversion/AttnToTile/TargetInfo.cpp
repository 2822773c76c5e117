// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "attn/Conversion/AttnToTile/TargetInfo.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <string>

using namespace attn;

// Shapes and schedules of sm_90a. A thread of a consumer holds keyTile / 2 registers of S,
// keyTile / 4 of P, dim / 2 of O and dim / 4 of Q if it holds Q, which with about 24 more must fit
// its share: what a CTA gets at launch (a multiple of 8 a thread out of 65536) is dealt out again.
// With two consumer warpgroups 504: the producer needs 40 (ptxas 13.0 spills at 24), which leaves
// 232 each; with three 512: 32 and 160. K and V of two stages each and Q take 2 (groups * 64 + 4 *
// keyTile) dim bytes of shared memory: 88, 160 and 192 or 224 KiB.
//
// Measured on H200s, 16384 tokens unless said, burst / sustained (docs/performance.md says how);
// ratios are to cuDNN in the same run. "Before": kernels of the same structure made by hand.
//
// 64: 192 x 128 is 13 % over two warpgroups with 128 x 192 (before). Turns: 2 to 3 % for dense
// (before); for causal masks 1.174 / 1.153 with them, 1.201 / 1.163 without. Claims for dense: up
// to 2.5 % at 4096 tokens (before). Code per element spills with three warpgroups (132 bytes for
// ALiBi), so it gets two.
//
// 128: 176 keys are equal at long sequences and 2 to 3 % behind at 4096 (before). Q in registers:
// dense 0.923 -> 1.003 of FlashAttention-3 (before). Lazy rescale loses 4 %. Predicates spill with
// 128 keys, so they get 64.
//
// 256: 64 keys are 1 to 4 % ahead of 80 for windows and ranges, 0 to 1 % behind for dense (before).
// A slack of 2^8 instead of 0: dense 1.091 / 1.084 -> 1.101 / 1.097, causal 1.238 / 1.169 ->
// 1.246 / 1.212. Turns: for long sequences (before; at 4096 tokens causal masks were as fast
// without); off where row groups need different blocks, as each would wait for the other's.
//
// Claims, where tiles differ in cost: before the last V instead of at a tile's start, causal 256
// 0.847 -> 0.983 and 128 0.960 -> 1.004 of FlashAttention-3 (before).
static constexpr ElementWork kBits = ElementWork::Bits, kScore = ElementWork::Score,
                             kPredicate = ElementWork::Predicate;
static constexpr MaskShape kEverything = MaskShape::Everything, kPrefixes = MaskShape::Prefixes,
                           kAny = MaskShape::Any;
static constexpr int64_t kAlways = TileShapeInfo::kAlways;
// Columns: dim, work, masks; groups, keyTile, stages, registers; claims, takesTurns,
// queryInRegisters, rescaleSlack.
static constexpr TileShapeInfo kHopperShapes[] = {
    {64, kBits, kEverything, 3, 128, 2, 32, 160, true, true, false, 0},
    {64, kBits, kAny, 3, 128, 2, 32, 160, true, false, false, 0},
    {64, kPredicate, kAny, 2, 128, 2, 40, 232, true, false, false, 0},
    {128, kBits, kEverything, 2, 128, 2, 40, 232, false, false, true, kAlways},
    {128, kBits, kAny, 2, 128, 2, 40, 232, true, false, true, kAlways},
    {128, kScore, kAny, 2, 128, 2, 40, 232, true, false, false, kAlways},
    {128, kPredicate, kAny, 2, 64, 2, 40, 232, true, false, false, kAlways},
    {256, kBits, kEverything, 2, 80, 2, 40, 232, false, true, false, 8},
    {256, kBits, kPrefixes, 2, 64, 2, 40, 232, true, true, false, 8},
    {256, kPredicate, kAny, 2, 64, 2, 40, 232, true, false, false, 8},
};

// 227 KiB: the CUDA C++ programming guide's maximum shared memory of a block at compute
// capability 9.0.
static constexpr int64_t kMostSharedBytes = 232448;
// K, V and Q of two bytes an element, and 2 KiB at most for barriers, the queue and what
// tile.hide_unseen collects.
static constexpr bool fitSharedMemory() {
  for (const TileShapeInfo &shape : kHopperShapes)
    if (2 * shape.dim * (64 * shape.groups + 2 * shape.stages * shape.keyTile) + 2048 >
        kMostSharedBytes)
      return false;
  return true;
}
static_assert(fitSharedMemory(), "a shape takes more shared memory than a block has");

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
