// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// PTX ISA "Parallel Synchronization and Communication Instructions": atom, red. The lanes of a warp
// go one after the other.
#include "Memory.h"

using namespace attn::sim;

template <class T>
static T apply(AtomicOp op, T old, T b, T c) {
  switch (op) {
  case AtomicOp::Add:
    if constexpr (std::is_signed_v<T> && std::is_integral_v<T>)
      return static_cast<T>(static_cast<std::make_unsigned_t<T>>(old) +
                            static_cast<std::make_unsigned_t<T>>(b));
    return static_cast<T>(old + b);
  case AtomicOp::Exch:
    return b;
  case AtomicOp::Cas:
    return old == b ? c : old;
  case AtomicOp::Min:
    return std::min(old, b);
  case AtomicOp::Max:
    return std::max(old, b);
  case AtomicOp::Inc:
    return old >= b ? T(0) : static_cast<T>(old + 1);
  case AtomicOp::Dec:
    return old == 0 || old > b ? b : static_cast<T>(old - 1);
  default:
    break;
  }
  if constexpr (std::is_integral_v<T>)
    return op == AtomicOp::And ? old & b : op == AtomicOp::Or ? old | b : old ^ b;
  return old;
}

template <class T>
static uint64_t update(AtomicOp op, uint8_t *at, uint64_t b, uint64_t c) {
  T old, operand, other;
  std::memcpy(&old, at, sizeof(T));
  std::memcpy(&operand, &b, sizeof(T));
  std::memcpy(&other, &c, sizeof(T));
  const T result = apply<T>(op, old, operand, other);
  std::memcpy(at, &result, sizeof(T));
  uint64_t bits = 0;
  std::memcpy(&bits, &old, sizeof(T));
  return bits;
}

static uint64_t update(const Instr &in, uint8_t *at, uint64_t b, uint64_t c) {
  const AtomicOp op = static_cast<AtomicOp>(in.kind);
  switch (static_cast<AtomicType>(in.flags >> 4)) {
  case AtomicType::Float:
    return in.wide ? update<double>(op, at, b, c) : update<float>(op, at, b, c);
  case AtomicType::Signed:
    return in.wide ? update<int64_t>(op, at, b, c) : update<int32_t>(op, at, b, c);
  case AtomicType::Unsigned:
    break;
  }
  return in.wide ? update<uint64_t>(op, at, b, c) : update<uint32_t>(op, at, b, c);
}

bool attn::sim::executeAtomic(Cta &cta, Warp &warp, const Instr &in, uint32_t mask) {
  MemoryAccess access(cta, warp, in);
  uint8_t *at[32] = {};
  for (int lane = 0; lane < 32; ++lane)
    if (mask >> lane & 1)
      at[lane] = access.at(lane, in.width, in.width, true);
  access.synchronise(true, true);
  ++cta.cluster.progress;
  if (access.shared) {
    access.countWrites(in.width);
    const Access self = access.self();
    access.eachOwner([&](Cta &owner, uint32_t lanes) {
      owner.shadow.begin(self, warp.clock, warp.proxy);
      for (int lane = 0; lane < 32; ++lane)
        if (lanes >> lane & 1) {
          owner.shadow.read(cta, access.addresses[lane], in.width);
          owner.shadow.write(cta, access.addresses[lane], in.width);
        }
    });
  }
  std::lock_guard<std::mutex> lock(cta.grid.atomics);
  for (int lane = 0; lane < 32; ++lane) {
    if (!at[lane])
      continue;
    const uint64_t other = in.src[2] == kNoOperand ? 0 : warp.value(in.src[2], in.wide, lane);
    const uint64_t old = update(in, at[lane], warp.value(in.src[1], in.wide, lane), other);
    if (in.dst == kNoOperand)
      continue;
    if (in.wide)
      warp.longs(in.dst)[lane] = old;
    else
      warp.words(in.dst)[lane] = static_cast<uint32_t>(old);
  }
  return true;
}
