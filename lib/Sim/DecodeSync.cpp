// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Decode.h"
#include "Handlers.h"

using namespace attn::sim;

using Kind = PtxOperand::Kind;

static const char *const kScopes[] = {"cta", "cluster", "gpu", "sys"};

void Decoder::barrier(const PtxInstruction &from, Instr &in) {
  in.cls = Class::Barrier;
  Modifiers m(from);
  // bar.* is barrier.*.aligned; bar.warp.sync is something else.
  if (from.opcode == "bar" && m.take("warp")) {
    if (!m.take("sync") || !m.done())
      return fail("unknown form");
    if (operands(from, 1, 1))
      in.src[0] = source(from.operands[0], PtxType::B32);
    in.run = executeWarpSync;
    return;
  }
  if (from.opcode == "barrier" && !from.modifiers.empty() && from.modifiers[0] == "cluster")
    return clusterBarrier(from, in);
  m.take("cta");
  const bool sync = m.take("sync");
  if (!sync && !m.take("arrive"))
    return fail("unknown form");
  in.aligned = m.take("aligned") || from.opcode == "bar";
  if (!m.done())
    return fail("unknown modifier '" + m.next() + "'");
  if (!operands(from, sync ? 1 : 2, 2))
    return;
  in.run = executeBarrier;
  in.kind = sync;
  in.src[0] = source(from.operands[0], PtxType::U32);
  if (from.operands.size() == 2)
    in.src[1] = source(from.operands[1], PtxType::U32);
}

void Decoder::clusterBarrier(const PtxInstruction &from, Instr &in) {
  Modifiers m(from);
  m.skip();
  const bool wait = m.take("wait");
  if (!wait && !m.take("arrive"))
    return fail("unknown form");
  if (!wait && m.take("relaxed"))
    in.flags = kRelaxed;
  else
    m.take(wait ? "acquire" : "release");
  in.aligned = m.take("aligned");
  if (!m.done())
    return fail("unknown modifier '" + m.next() + "'");
  operands(from, 0, 0);
  in.run = wait ? executeClusterWait : executeClusterArrive;
}

void Decoder::shuffle(const PtxInstruction &from, Instr &in) {
  static const char *const modes[] = {"up", "down", "bfly", "idx"};
  Modifiers m(from);
  const bool sync = m.take("sync");
  const int mode = m.oneOf(modes);
  if (!sync || mode < 0 || !m.take("b32") || !m.done())
    return fail("unknown form");
  if (!operands(from, 5, 5))
    return;
  in.run = executeShuffle;
  in.kind = static_cast<uint8_t>(mode);
  const PtxOperand &to = from.operands[0];
  const bool pair = to.kind == Kind::Pair;
  in.dst = destination(pair ? to.elements[0] : to, PtxType::B32);
  if (pair)
    in.dst2 = destination(to.elements[1], PtxType::Pred);
  for (int i = 0; i < 4; ++i)
    in.src[i] = source(from.operands[i + 1], PtxType::B32);
}

void Decoder::vote(const PtxInstruction &from, Instr &in) {
  static const char *const modes[] = {"all", "any", "uni", "ballot"};
  Modifiers m(from);
  const bool sync = m.take("sync");
  const int mode = m.oneOf(modes);
  if (!sync || mode < 0 || !m.take(mode == 3 ? "b32" : "pred") || !m.done())
    return fail("unknown form");
  if (!operands(from, 3, 3))
    return;
  in.run = executeVote;
  in.kind = static_cast<uint8_t>(mode);
  in.dst = destination(from.operands[0], mode == 3 ? PtxType::B32 : PtxType::Pred);
  in.src[0] = predicate(from.operands[1], in.negated);
  in.src[1] = source(from.operands[2], PtxType::B32);
  if (in.dst == kNoOperand)
    fail("no register to write");
}

void Decoder::match(const PtxInstruction &from, Instr &in) {
  Modifiers m(from);
  if (from.opcode == "activemask") {
    if (!m.take("b32") || !m.done())
      return fail("unknown form");
    if (operands(from, 1, 1))
      in.dst = destination(from.operands[0], PtxType::B32);
    if (in.dst == kNoOperand)
      fail("no register to write");
    in.run = executeActiveMask;
    return;
  }
  const bool all = m.take("all");
  if ((!all && !m.take("any")) || !m.take("sync"))
    return fail("unknown form");
  in.wide = m.take("b64");
  if ((!in.wide && !m.take("b32")) || !m.done())
    return fail("unknown form");
  if (!operands(from, 3, 3))
    return;
  const PtxOperand &to = from.operands[0];
  const bool pair = to.kind == Kind::Pair;
  in.kind = all;
  in.dst = destination(pair ? to.elements[0] : to, PtxType::B32);
  if (pair)
    in.dst2 = destination(to.elements[1], PtxType::Pred);
  in.src[0] = source(from.operands[1], in.wide ? PtxType::B64 : PtxType::B32);
  in.src[1] = source(from.operands[2], PtxType::B32);
  in.run = executeMatch;
}

void Decoder::elect(const PtxInstruction &from, Instr &in) {
  Modifiers m(from);
  if (!m.take("sync") || !m.done())
    return fail("unknown form");
  if (!operands(from, 2, 2))
    return;
  const PtxOperand &to = from.operands[0];
  if (to.kind != Kind::Pair)
    return fail("expected two results joined by '|'");
  in.dst = destination(to.elements[0], PtxType::B32);
  in.dst2 = destination(to.elements[1], PtxType::Pred);
  in.src[0] = source(from.operands[1], PtxType::B32);
  in.run = executeElect;
}

void Decoder::redux(const PtxInstruction &from, Instr &in) {
  static const char *const ops[] = {"add", "min", "max", "and", "or", "xor"};
  static const char *const types[] = {"b32", "u32", "s32"};
  Modifiers m(from);
  const bool sync = m.take("sync");
  const int op = m.oneOf(ops), type = m.oneOf(types);
  if (!sync || op < 0 || type < 0 || (op < 3) == (type == 0) || !m.done())
    return fail("unknown form");
  if (!operands(from, 3, 3))
    return;
  in.kind = static_cast<uint8_t>(op);
  in.isSigned = type == 2;
  in.dst = destination(from.operands[0], PtxType::B32);
  in.src[0] = source(from.operands[1], PtxType::B32);
  in.src[1] = source(from.operands[2], PtxType::B32);
  in.run = executeRedux;
  if (in.dst == kNoOperand)
    fail("no register to write");
}

void Decoder::fence(const PtxInstruction &from, Instr &in) {
  static const char *const memoryBarriers[] = {"cta", "gl", "sys"};
  static const char *const orders[] = {"sc", "acq_rel", "acquire", "release"};
  static const char *const spaces[] = {"global", "shared::cta", "shared::cluster"};
  in.cls = Class::Barrier;
  Modifiers m(from);
  if (from.opcode == "nanosleep") { // a hint
    in.run = executeNothing;
    in.cls = Class::Other;
    return;
  }
  if (from.opcode == "prefetch") { // another; PTX ISA "prefetch"
    static const char *const memories[] = {"global", "local"};
    static const char *const levels[] = {"L1", "L2", "L2::evict_last", "L2::evict_normal"};
    in.run = executeNothing;
    in.cls = Class::Other;
    if (!m.take("tensormap")) {
      m.oneOf(memories);
      if (m.oneOf(levels) < 0)
        return fail("unknown form");
    }
    if (!m.done())
      return fail("unknown modifier '" + m.next() + "'");
    if (operands(from, 1, 1) && from.operands[0].kind != PtxOperand::Kind::Memory)
      fail("expected an address in brackets");
    return;
  }
  if (from.opcode == "griddepcontrol") { // of a launch with no other before it
    in.run = executeNothing;
    in.cls = Class::Other;
    if (!(m.take("launch_dependents") || m.take("wait")) || !m.done())
      fail("unknown form");
    operands(from, 0, 0);
    return;
  }
  if (from.opcode == "membar") {
    in.run = executeFence;
    if (m.oneOf(memoryBarriers) < 0 || !m.done())
      fail("unknown form");
  } else if (m.take("mbarrier_init")) {
    in.run = executeInitFence;
    if (!m.take("release") || !m.take("cluster") || !m.done())
      fail("unknown form");
  } else if (m.take("proxy")) {
    if (!m.take("async"))
      return fail("unknown proxy");
    // One for global memory alone leaves shared memory as it is.
    in.run = m.oneOf(spaces) == 0 ? executeNothing : executeProxyFence;
    if (!m.done())
      fail("unknown form");
  } else {
    in.run = executeFence;
    m.oneOf(orders);
    if (m.oneOf(kScopes) < 0 || !m.done())
      fail("unknown form");
  }
  operands(from, 0, 0);
}

void Decoder::setMaxRegisters(const PtxInstruction &from, Instr &in) {
  Modifiers m(from);
  in.kind = m.take("inc");
  if ((!in.kind && !m.take("dec")) || !m.take("sync") || !m.take("aligned") || !m.take("u32") ||
      !m.done())
    return fail("unknown form");
  if (!operands(from, 1, 1))
    return;
  in.cls = Class::Other;
  in.aligned = true;
  in.imm = integer(from.operands[0], 24, 256);
  if (in.imm % 8)
    fail("expected a multiple of 8");
  in.run = executeSetMaxRegisters;
}

/// Words of mbarrier instructions that say order, scope and space.
static void takeScope(Modifiers &m, Instr &in) {
  if (m.take("relaxed"))
    in.flags |= kRelaxed;
  else if (!m.take("release"))
    m.take("acquire");
  if (m.take("cluster"))
    in.flags |= kClusterScope;
  else
    m.take("cta");
  if (m.take("shared::cluster"))
    in.space = Space::Cluster;
  else
    in.space = m.take("shared") || m.take("shared::cta") ? Space::Shared : Space::Generic;
}

void Decoder::mbarrier(const PtxInstruction &from, Instr &in) {
  in.cls = Class::Barrier;
  if (from.modifiers.empty())
    return fail("unknown form");
  const std::string &what = from.modifiers[0];
  if (what == "arrive" || what == "arrive_drop")
    return mbarrierArrive(from, in);
  if (what == "try_wait" || what == "test_wait")
    return mbarrierWait(from, in);
  Modifiers m(from);
  m.skip();
  takeScope(m, in);
  if (!m.take("b64") || !m.done())
    return fail("unknown form");
  const bool hasCount = what != "inval";
  if (!operands(from, 1 + hasCount, 1 + hasCount) || !address(from.operands[0], in.at))
    return;
  if (hasCount)
    in.src[1] = source(from.operands[1], PtxType::U32);
  if (what == "init") {
    in.run = executeMbarrierInit;
  } else if (what == "inval") {
    in.run = executeMbarrierInvalidate;
  } else if (what == "expect_tx" || what == "complete_tx") {
    in.run = executeMbarrierTx;
    in.kind = what == "expect_tx";
  } else {
    fail("unknown instruction");
  }
}

void Decoder::mbarrierArrive(const PtxInstruction &from, Instr &in) {
  // kind: 1 expect_tx, 2 drop; state|_, [address]{, count or bytes}
  Modifiers m(from);
  in.kind = m.take("arrive_drop") ? 2 : 0;
  if (in.kind == 0)
    m.take("arrive");
  const bool expects = m.take("expect_tx");
  in.kind |= expects;
  takeScope(m, in);
  if (!m.take("b64") || !m.done())
    return fail("unknown form");
  const size_t low = expects ? 2 : 1;
  const bool hasState = !from.operands.empty() && from.operands[0].kind != Kind::Memory;
  if (!operands(from, low + hasState, hasState ? 3 : 2))
    return;
  if (hasState)
    in.dst = destination(from.operands[0], PtxType::B64);
  if (in.space == Space::Cluster && in.dst != kNoOperand)
    return fail("no state of an mbarrier of another CTA, expected '_'");
  if (!address(from.operands[hasState], in.at))
    return;
  if (from.operands.size() > size_t(1) + hasState)
    in.src[1] = source(from.operands[1 + hasState], PtxType::U32);
  in.run = executeMbarrierArrive;
}

void Decoder::mbarrierWait(const PtxInstruction &from, Instr &in) {
  // kind: 1 parity, 2 test
  Modifiers m(from);
  in.kind = m.take("test_wait") ? 2 : 0;
  if (in.kind == 0)
    m.take("try_wait");
  const bool parity = m.take("parity");
  in.kind |= parity;
  takeScope(m, in);
  if (in.space == Space::Cluster)
    return fail("waits are for mbarriers of the own CTA, expected .shared::cta");
  if (!m.take("b64") || !m.done())
    return fail("unknown form");
  if (!operands(from, 3, in.kind & 2 ? 3 : 4) || !address(from.operands[1], in.at))
    return;
  in.dst = destination(from.operands[0], PtxType::Pred);
  in.src[1] = source(from.operands[2], parity ? PtxType::U32 : PtxType::B64);
  if (from.operands.size() == 4)
    in.src[2] = source(from.operands[3], PtxType::U32);
  if (in.dst == kNoOperand)
    fail("no predicate to write");
  in.run = executeMbarrierWait;
}
