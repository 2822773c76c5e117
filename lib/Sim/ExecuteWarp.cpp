// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Instructions in which the lanes of a warp work together: shfl, vote, match, elect, redux. All
// lanes of the member mask must be there; a warp of this machine that is split has lost some.
#include "Handlers.h"
#include "Machine.h"

#include <algorithm>

using namespace attn::sim;

/// The members that the first lane names; false after a report: some are elsewhere.
static bool members(Cta &cta, Warp &warp, const Instr &in, int32_t operand, uint32_t mask) {
  const uint32_t wanted = warp.words(operand)[__builtin_ctz(mask)] & warp.lanes;
  if ((wanted & warp.live & ~mask) == 0)
    return true;
  cta.report(Report::Kind::DivergentBarrier, warp.index, in.line, 0, 0,
             "expects the lanes " + hexText(wanted) + ", but only " + hexText(mask) + " are there");
  return false;
}

static void setPredicate(Warp &warp, int32_t offset, uint32_t mask, uint32_t value) {
  if (offset == kNoOperand)
    return;
  uint32_t &to = *warp.words(offset);
  to = (to & ~mask) | (value & mask);
}

// PTX ISA "shfl.sync": the segment of a lane is given by the bits of c that are set in its mask.
bool attn::sim::executeShuffle(Cta &cta, Warp &warp, const Instr &in, uint32_t mask) {
  members(cta, warp, in, in.src[3], mask);
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
  members(cta, warp, in, in.src[1], mask);
  const uint32_t value = (*warp.words(in.src[0]) ^ (in.negated[0] ? ~0u : 0u)) & mask;
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
  members(cta, warp, in, in.src[1], mask);
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
  members(cta, warp, in, in.src[0], mask);
  const int leader = __builtin_ctz(mask);
  for (int lane = 0; lane < 32 && in.dst != kNoOperand; ++lane)
    if (mask >> lane & 1)
      warp.words(in.dst)[lane] = leader;
  setPredicate(warp, in.dst2, mask, 1u << leader);
  return true;
}

bool attn::sim::executeRedux(Cta &cta, Warp &warp, const Instr &in, uint32_t mask) {
  members(cta, warp, in, in.src[1], mask);
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
