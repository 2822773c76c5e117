// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Instructions in which the lanes of a warp work together: bar.warp, shfl, vote, match, elect,
// redux. All lanes of the member mask must be there; those that come first wait.
#include "Handlers.h"
#include "Machine.h"

#include <algorithm>

using namespace attn::sim;

/// Waits for the members; false: they are not all there.
static bool members(Cta &cta, Warp &warp, const Instr &in, int32_t operand, uint32_t mask) {
  const uint32_t *masks = warp.words(operand);
  const uint32_t wanted = masks[__builtin_ctz(mask)];
  for (int lane = 0; lane < 32; ++lane) {
    if (!(mask >> lane & 1))
      continue;
    if (masks[lane] != wanted) {
      cta.report(Report::Kind::DivergentBarrier, warp.index, in.line, 0, 0,
                 "has lanes with the member masks " + hexText(wanted) + " and " +
                     hexText(masks[lane]));
      return true;
    }
    if (!(wanted >> lane & 1)) {
      cta.report(Report::Kind::DivergentBarrier, warp.index, in.line, 0, 0,
                 "is run by lane " + std::to_string(lane) + ", which is not in the member mask " +
                     hexText(wanted));
      return true;
    }
  }
  return cta.gather(warp, in, wanted, mask);
}

static void setPredicate(Warp &warp, int32_t offset, uint32_t mask, uint32_t value) {
  if (offset == kNoOperand)
    return;
  uint32_t &to = *warp.words(offset);
  to = (to & ~mask) | (value & mask);
}

// PTX ISA "bar.warp.sync"
bool attn::sim::executeWarpSync(Cta &cta, Warp &warp, const Instr &in, uint32_t mask) {
  return members(cta, warp, in, in.src[0], mask);
}

// PTX ISA "shfl.sync": the segment of a lane is given by the bits of c that are set in its mask.
bool attn::sim::executeShuffle(Cta &cta, Warp &warp, const Instr &in, uint32_t mask) {
  if (!members(cta, warp, in, in.src[3], mask))
    return false;
  const uint32_t *a = warp.words(in.src[0]), *b = warp.words(in.src[1]), *c = warp.words(in.src[2]);
  uint32_t result[32], inside = 0;
  for (int lane = 0; lane < 32; ++lane) {
    const int bound = c[lane] & 31, segment = c[lane] >> 8 & 31, amount = b[lane] & 31;
    const int most = (lane & segment) | (bound & ~segment), least = lane & segment;
    int from = 0;
    bool there = false;
    switch (in.kind) {
    case 0:
      from = lane - amount, there = from >= most;
      break;
    case 1:
      from = lane + amount, there = from <= most;
      break;
    case 2:
      from = lane ^ amount, there = from <= most;
      break;
    default:
      from = least | (amount & ~segment), there = from <= most;
    }
    inside |= uint32_t(there) << lane;
    if (there && mask >> lane & 1 && !(mask >> (from & 31) & 1))
      cta.report(Report::Kind::DivergentBarrier, warp.index, in.line, 0, 0,
                 "reads lane " + std::to_string(from) + " from lane " + std::to_string(lane) +
                     ", but only the lanes " + hexText(mask) + " take part");
    result[lane] = a[there ? from & 31 : lane];
  }
  if (in.dst != kNoOperand)
    for (int lane = 0; lane < 32; ++lane)
      if (mask >> lane & 1)
        warp.words(in.dst)[lane] = result[lane];
  setPredicate(warp, in.dst2, mask, inside);
  return true;
}

bool attn::sim::executeVote(Cta &cta, Warp &warp, const Instr &in, uint32_t mask) {
  if (!members(cta, warp, in, in.src[1], mask))
    return false;
  const uint32_t value = (*warp.words(in.src[0]) ^ (in.negated ? ~0u : 0u)) & mask;
  const bool all = value == mask, any = value != 0;
  if (in.kind == 3) {
    for (int lane = 0; lane < 32; ++lane)
      if (mask >> lane & 1)
        warp.words(in.dst)[lane] = value;
    return true;
  }
  const bool result = in.kind == 0 ? all : in.kind == 1 ? any : all || !any;
  setPredicate(warp, in.dst, mask, result ? ~0u : 0);
  return true;
}

bool attn::sim::executeMatch(Cta &cta, Warp &warp, const Instr &in, uint32_t mask) {
  if (!members(cta, warp, in, in.src[1], mask))
    return false;
  uint32_t result[32] = {};
  bool all = true;
  const int first = __builtin_ctz(mask);
  for (int lane = 0; lane < 32; ++lane) {
    if (!(mask >> lane & 1))
      continue;
    for (int other = 0; other < 32; ++other)
      if (mask >> other & 1 &&
          warp.value(in.src[0], in.wide, lane) == warp.value(in.src[0], in.wide, other))
        result[lane] |= 1u << other;
    all &= warp.value(in.src[0], in.wide, lane) == warp.value(in.src[0], in.wide, first);
  }
  for (int lane = 0; lane < 32 && in.dst != kNoOperand; ++lane)
    if (mask >> lane & 1)
      warp.words(in.dst)[lane] = in.kind ? (all ? mask : 0) : result[lane];
  setPredicate(warp, in.dst2, mask, all ? ~0u : 0);
  return true;
}

bool attn::sim::executeActiveMask(Cta &, Warp &warp, const Instr &in, uint32_t mask) {
  for (int lane = 0; lane < 32; ++lane)
    if (mask >> lane & 1)
      warp.words(in.dst)[lane] = mask;
  return true;
}

bool attn::sim::executeElect(Cta &cta, Warp &warp, const Instr &in, uint32_t mask) {
  if (!members(cta, warp, in, in.src[0], mask))
    return false;
  const int leader = __builtin_ctz(mask);
  for (int lane = 0; lane < 32 && in.dst != kNoOperand; ++lane)
    if (mask >> lane & 1)
      warp.words(in.dst)[lane] = leader;
  setPredicate(warp, in.dst2, mask, 1u << leader);
  return true;
}

bool attn::sim::executeRedux(Cta &cta, Warp &warp, const Instr &in, uint32_t mask) {
  if (!members(cta, warp, in, in.src[1], mask))
    return false;
  const uint32_t *a = warp.words(in.src[0]);
  uint32_t result = a[__builtin_ctz(mask)];
  for (int lane = __builtin_ctz(mask) + 1; lane < 32; ++lane) {
    if (!(mask >> lane & 1))
      continue;
    const uint32_t x = a[lane];
    const bool less = in.isSigned ? int32_t(x) < int32_t(result) : x < result;
    switch (in.kind) {
    case 0:
      result += x;
      break;
    case 1:
      result = less ? x : result;
      break;
    case 2:
      result = less ? result : x;
      break;
    case 3:
      result &= x;
      break;
    case 4:
      result |= x;
      break;
    default:
      result ^= x;
    }
  }
  for (int lane = 0; lane < 32; ++lane)
    if (mask >> lane & 1)
      warp.words(in.dst)[lane] = result;
  return true;
}
