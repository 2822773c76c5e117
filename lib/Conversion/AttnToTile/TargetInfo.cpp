// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "attn/Conversion/AttnToTile/TargetInfo.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <string>

using namespace attn;

// Tile shapes of sm_90a. A thread of a consumer holds keyTile / 2 registers of S, keyTile / 4 of P
// and dim / 2 of O, which with about 24 more must fit its share (65536 registers an SM; setmaxnreg
// counts in steps of 8): 240 with two consumer warpgroups beside a producer of 24, 160 with three
// beside 32. K and V of two stages each and Q take 2 (groups * 64 + 4 * keyTile) dim bytes of
// shared memory: 88, 160 and 192 KiB.
//   64: 192 x 128. Measured (H200, dense): 13 % over two warpgroups with 128 x 192. Code per
//   element
//       spills there (ptxas 13.0: 132 bytes for ALiBi), so it gets two warpgroups.
//  128: 128 x 128. Measured: 176 keys are equal at long sequences and 2 to 3 % behind at 4096. 64
//       keys for predicates, which spill at 128.
//  256: 128 x 64. Measured: 1 to 4 % ahead of 80 keys for windows and ranges, 0 to 1 % behind for
//       dense; 80 keys also leave no shared memory for more.
// Lazy rescale, measured (16384 tokens, dense and causal): 256 gains 2 %, 64 up to 1 %, 128 loses
// 4 %.
static constexpr TileShapeInfo kHopperShapes[] = {
    {64, ElementWork::Bits, 3, 128, 2, 32, 160, true},
    {64, ElementWork::Predicate, 2, 128, 2, 24, 240, true},
    {128, ElementWork::Score, 2, 128, 2, 24, 240, false},
    {128, ElementWork::Predicate, 2, 64, 2, 24, 240, false},
    {256, ElementWork::Predicate, 2, 64, 2, 24, 240, true},
};

// 227 KiB: the CUDA C++ programming guide's maximum shared memory of a block at compute
// capability 9.0.
static const TargetInfo kTargets[] = {
    {"sm_90a", "+ptx86", 232448, kHopperShapes},
};

const TileShapeInfo *TargetInfo::findShape(int64_t dim, ElementWork work) const {
  for (const TileShapeInfo &shape : shapes)
    if (shape.dim == dim && work <= shape.work)
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
