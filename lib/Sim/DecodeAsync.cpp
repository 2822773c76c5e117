// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Decode.h"
#include "Handlers.h"

using namespace attn::sim;

using Kind = PtxOperand::Kind;

/// A word for shared memory; Generic: it is none.
static Space takeShared(Modifiers &m) {
  if (m.take("shared::cluster"))
    return Space::Cluster;
  return m.take("shared::cta") || m.take("shared") ? Space::Shared : Space::Generic;
}

void Decoder::copy(const PtxInstruction &from, Instr &in) {
  in.cls = Class::Other;
  if (from.modifiers.size() < 2 || from.modifiers[0] != "async")
    return fail("unknown instruction");
  if (from.modifiers[1] != "bulk")
    return copySmall(from, in);
  if (from.modifiers.size() > 2 && from.modifiers[2] == "tensor")
    return copyTensor(from, in);
  if (from.modifiers.size() > 2 && from.modifiers[2] == "prefetch") { // a hint
    in.run = executeNothing;
    return;
  }
  copyBulk(from, in);
}

// at: shared memory; global: memory or tensor map; signal: mbarrier; src[2]: size; src[3]: CTAs of
// a multicast. kind: 1 is a load.
void Decoder::copyTensor(const PtxInstruction &from, Instr &in) {
  static const char *const ranks[] = {"1d", "2d", "3d", "4d", "5d"};
  Modifiers m(from);
  m.skip(), m.skip(), m.skip();
  const int rank = m.oneOf(ranks) + 1;
  in.space = takeShared(m);
  const bool toShared = in.space != Space::Generic;
  if (rank == 0 || !m.take("global"))
    return fail("unknown form");
  if (!toShared && (in.space = takeShared(m)) != Space::Shared)
    return fail("unknown form");
  m.take("tile");
  if (!m.take(toShared ? "mbarrier::complete_tx::bytes" : "bulk_group"))
    return fail("unknown completion or mode '" + m.next() + "'");
  const bool multicast = in.space == Space::Cluster && m.take("multicast::cluster");
  const bool hint = m.take("L2::cache_hint");
  if (!m.done())
    return fail("unknown modifier '" + m.next() + "'");
  const size_t count = (toShared ? 3 : 2) + multicast + hint;
  if (!operands(from, count, count) || !address(from.operands[toShared ? 0 : 1], in.at))
    return;
  const PtxOperand &tensor = from.operands[toShared ? 1 : 0];
  if (tensor.kind != Kind::TensorAt || tensor.elements.size() != size_t(rank) + 1)
    return fail("expected a tensor map and " + std::to_string(rank) + " coordinates");
  if (!address(tensor.elements[0], in.global, true))
    return;
  list(in, List(tensor.elements.begin() + 1, tensor.elements.end()), PtxType::S32, false);
  if (toShared && !address(from.operands[2], in.signal))
    return;
  if (multicast)
    in.src[3] = source(from.operands[3], PtxType::U16);
  in.kind = toShared;
  in.run = executeTensorCopy;
}

void Decoder::copyBulk(const PtxInstruction &from, Instr &in) {
  Modifiers m(from);
  m.skip(), m.skip();
  if (m.take("commit_group")) {
    in.run = executeBulkCommit;
    if (!m.done())
      fail("unknown modifier '" + m.next() + "'");
    operands(from, 0, 0);
    return;
  }
  if (m.take("wait_group")) {
    m.take("read");
    in.run = executeBulkWait;
    if (!m.done())
      fail("unknown modifier '" + m.next() + "'");
    if (operands(from, 1, 1))
      in.imm = integer(from.operands[0], 0, INT32_MAX);
    return;
  }
  in.space = takeShared(m);
  // kind: 0 to global memory, 1 from it, 2 from shared memory to that of the cluster.
  if (in.space == Space::Generic)
    in.kind = m.take("global") && (in.space = takeShared(m)) == Space::Shared ? 0 : 3;
  else
    in.kind = m.take("global") ? 1 : in.space == Space::Cluster && m.take("shared::cta") ? 2 : 3;
  if (in.kind == 3 || !m.take(in.kind ? "mbarrier::complete_tx::bytes" : "bulk_group"))
    return fail("unknown form");
  const bool multicast = in.kind == 1 && in.space == Space::Cluster && m.take("multicast::cluster");
  const bool hint = in.kind != 2 && m.take("L2::cache_hint");
  if (!m.done())
    return fail("unknown modifier '" + m.next() + "'");
  const size_t count = (in.kind ? 4 : 3) + multicast + hint;
  if (!operands(from, count, count) || !address(from.operands[in.kind ? 0 : 1], in.at) ||
      !address(from.operands[in.kind ? 1 : 0], in.global, in.kind != 2))
    return;
  in.src[2] = source(from.operands[2], PtxType::U32);
  if (in.kind && !address(from.operands[3], in.signal))
    return;
  if (multicast)
    in.src[3] = source(from.operands[4], PtxType::U16);
  in.run = executeBulkCopy;
}

void Decoder::copySmall(const PtxInstruction &from, Instr &in) {
  Modifiers m(from);
  m.skip();
  if (m.take("commit_group")) {
    in.run = executeSmallCommit;
    operands(from, 0, 0);
  } else if (m.take("wait_all")) {
    in.run = executeSmallWait;
    in.imm = -1;
    operands(from, 0, 0);
  } else if (m.take("wait_group")) {
    in.run = executeSmallWait;
    if (operands(from, 1, 1))
      in.imm = integer(from.operands[0], 0, INT32_MAX);
  } else if (m.take("mbarrier")) {
    in.run = executeSmallArrive;
    const bool start = m.take("arrive");
    in.kind = m.take("noinc");
    in.space = takeShared(m);
    if (!start || !m.take("b64"))
      return fail("unknown form");
    if (operands(from, 1, 1))
      address(from.operands[0], in.at);
  } else {
    const bool through = m.take("cg");
    if ((!through && !m.take("ca")) || (!m.take("shared") && !m.take("shared::cta")) ||
        !m.take("global"))
      return fail("unknown form");
    static const char *const prefetches[] = {"L2::64B", "L2::128B", "L2::256B"};
    m.oneOf(prefetches);
    if (!operands(from, 3, 4) || !address(from.operands[0], in.at) ||
        !address(from.operands[1], in.global, true))
      return;
    in.width = static_cast<uint8_t>(integer(from.operands[2], 4, 16));
    if ((in.width != 4 && in.width != 8 && in.width != 16) || (through && in.width != 16))
      fail("copy of " + std::to_string(in.width) + " bytes");
    if (from.operands.size() == 4) {
      if (from.operands[3].kind == Kind::Register &&
          kernel.registers[from.operands[3].number].type == PtxType::Pred)
        return fail("ignore-src");
      in.src[2] = source(from.operands[3], PtxType::U32);
    }
    in.run = executeSmallCopy;
  }
  if (!m.done())
    fail("unknown modifier '" + m.next() + "'");
}

void Decoder::wgmma(const PtxInstruction &from, Instr &in) {
  in.cls = Class::Other;
  in.aligned = true;
  Modifiers m(from);
  const bool isFence = m.take("fence"), isCommit = !isFence && m.take("commit_group"),
             isWait = !isFence && !isCommit && m.take("wait_group");
  if (!isFence && !isCommit && !isWait)
    return product(from, in);
  if (!m.take("sync") || !m.take("aligned") || !m.done())
    return fail("unknown form");
  in.run = isFence ? executeWgmmaFence : isCommit ? executeWgmmaCommit : executeWgmmaWait;
  if (operands(from, isWait, isWait) && isWait)
    in.imm = integer(from.operands[0], 0, 7);
}

/// Columns of "m64n128k16", or 0.
static int parseShape(const std::string &text, int k) {
  const std::string tail = "k" + std::to_string(k);
  if (text.rfind("m64n", 0) != 0 || text.size() < 5 + tail.size() ||
      text.compare(text.size() - tail.size(), tail.size(), tail) != 0)
    return 0;
  int n = 0;
  for (size_t i = 4; i < text.size() - tail.size(); ++i) {
    if (text[i] < '0' || text[i] > '9' || n > 256)
      return 0;
    n = 10 * n + (text[i] - '0');
  }
  return n % 8 == 0 && n >= 8 && n <= 256 ? n : 0;
}

// src[0], src[1]: descriptors; src[2]: whether to add to the accumulators; list: accumulators,
// then registers of A; imm: number of the shape.
void Decoder::product(const PtxInstruction &from, Instr &in) {
  static const char *const types[] = {"f16", "bf16", "e4m3", "e5m2"};
  const std::vector<std::string> &m = from.modifiers;
  if (m.size() != 7 || m[0] != "mma_async" || m[1] != "sync" || m[2] != "aligned" || m[4] != "f32")
    return fail("unknown form");
  WgmmaShape shape;
  int a = -1, b = -1;
  for (int i = 0; i < 4; ++i) {
    a = m[5] == types[i] ? i : a;
    b = m[6] == types[i] ? i : b;
  }
  if (a < 0 || b < 0 || (a < 2 ? a != b : b < 2))
    return fail("unknown types");
  shape.a = static_cast<WgmmaShape::Type>(a);
  shape.b = static_cast<WgmmaShape::Type>(b);
  const bool half = a < 2;
  shape.k = half ? 16 : 32;
  shape.n = parseShape(m[3], shape.k);
  if (shape.n == 0)
    return fail("unknown shape");
  if (!operands(from, 6, 8))
    return;
  const PtxOperand &d = from.operands[0], &operandA = from.operands[1];
  shape.registersA = operandA.kind == Kind::Vector;
  const size_t count = 6 + (half ? (shape.registersA ? 1 : 2) : 0);
  if (!operands(from, count, count))
    return;
  if (d.kind != Kind::Vector || d.elements.size() != size_t(shape.n) / 2)
    return fail("expected " + std::to_string(shape.n / 2) + " accumulators");
  if (shape.registersA && operandA.elements.size() != 4)
    return fail("expected 4 registers of A");
  list(in, d.elements, PtxType::F32, true);
  if (shape.registersA)
    list(in, operandA.elements, PtxType::B32, false);
  else
    in.src[0] = source(operandA, PtxType::B64);
  in.src[1] = source(from.operands[2], PtxType::B64);
  in.src[2] = predicate(from.operands[3], in.negated);
  const int64_t scaleA = integer(from.operands[4], -1, 1),
                scaleB = integer(from.operands[5], -1, 1);
  if (scaleA == 0 || scaleB == 0)
    return fail("scale of 0");
  shape.negateA = scaleA < 0, shape.negateB = scaleB < 0;
  size_t next = 6;
  if (half && !shape.registersA)
    shape.transposeA = integer(from.operands[next++], 0, 1);
  if (half)
    shape.transposeB = integer(from.operands[next], 0, 1);
  in.touchBegin = static_cast<uint32_t>(program.touches.size());
  for (const PtxOperand *vector : {&d, &operandA})
    for (const PtxOperand &element : vector->elements) {
      if (element.kind != Kind::Register)
        return fail("expected registers");
      program.touches.push_back(tracked.at(element.number));
    }
  in.touchCount = static_cast<uint32_t>(program.touches.size()) - in.touchBegin;
  in.imm = static_cast<int64_t>(program.shapes.size());
  program.shapes.push_back(shape);
  in.run = executeWgmma;
}
