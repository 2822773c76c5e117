// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Decode.h"
#include "Handlers.h"

using namespace attn::sim;

using Kind = PtxOperand::Kind;

static bool startsWith(const std::string &text, const char *prefix) {
  return text.rfind(prefix, 0) == 0;
}

/// A state space as loads and stores name it.
static bool parseSpace(const std::string &text, Space &space) {
  if (text == "global" || text == "const")
    space = Space::Global;
  else if (text == "shared" || text == "shared::cta")
    space = Space::Shared;
  else if (text == "shared::cluster")
    space = Space::Cluster;
  else if (text == "local")
    space = Space::Local;
  else if (text == "param" || text == "param::entry")
    space = Space::Param;
  else
    return false;
  return true;
}

/// The space that `text` names, as the first one of an instruction.
static bool takeSpace(const std::string &text, Space &space) {
  return space == Space::Generic && parseSpace(text, space);
}

/// Words that say how strong an access is, or how to cache it.
static bool parseStrength(const std::string &m, uint8_t &flags) {
  static const std::set<std::string> plain = {"weak", "cta", "cluster", "gpu", "sys", "nc", "ca",
                                              "cg",   "cs",  "lu",      "cv",  "wb",  "wt"};
  if (m == "relaxed" || m == "volatile" || m == "mmio")
    flags |= kStrong;
  else if (m == "acquire")
    flags |= kStrong | kAcquire;
  else if (m == "release")
    flags |= kStrong | kRelease;
  else if (m == "acq_rel")
    flags |= kStrong | kAcquire | kRelease;
  else
    return plain.count(m) || startsWith(m, "L1::") || startsWith(m, "L2::");
  return true;
}

struct MemoryForm {
  int vector = 1;
  PtxType type = PtxType::B32;
  bool hint = false;

  int64_t bytes() const { return vector * byteSize(type); }
};

/// Modifiers of ld and st; false: one is unknown.
static bool parseForm(const PtxInstruction &from, Instr &in, MemoryForm &form, std::string &bad) {
  for (size_t i = 0; i < from.modifiers.size(); ++i) {
    const std::string &m = from.modifiers[i];
    if (i + 1 == from.modifiers.size()) {
      if (parseType(m, form.type) && form.type != PtxType::Pred && form.type != PtxType::B128)
        return true;
    } else if (m == "v2" || m == "v4" || m == "v8") {
      form.vector = m[1] - '0';
      continue;
    } else if (m == "L2::cache_hint") {
      form.hint = true;
      continue;
    } else if (takeSpace(m, in.space) || parseStrength(m, in.flags)) {
      continue;
    }
    bad = m;
    return false;
  }
  bad = "(no type)";
  return false;
}

/// Width of data registers: narrow types may sit in wide registers.
static PtxType registerType(const PtxKernel &kernel, const PtxOperand &operand, PtxType type) {
  const PtxOperand &first =
      operand.kind == Kind::Vector && !operand.elements.empty() ? operand.elements[0] : operand;
  if (first.kind == Kind::Register && byteSize(kernel.registers[first.number].type) == 8)
    return PtxType::B64;
  return byteSize(type) == 8 ? PtxType::B64 : type;
}

void Decoder::load(const PtxInstruction &from, Instr &in) {
  MemoryForm form;
  std::string bad;
  in.cls = Class::Load;
  if (!parseForm(from, in, form, bad))
    return fail("unknown modifier '" + bad + "'");
  if (!operands(from, 2 + form.hint, 2 + form.hint) ||
      !address(from.operands[1], in.at, false, form.bytes()))
    return;
  const PtxOperand &to = from.operands[0];
  in.run = executeLoad;
  in.width = static_cast<uint8_t>(byteSize(form.type));
  in.isSigned = isSignedType(form.type);
  const PtxType type = registerType(kernel, to, form.type);
  in.wide = byteSize(type) == 8;
  if ((to.kind == Kind::Vector) != (form.vector > 1) ||
      (form.vector > 1 && to.elements.size() != size_t(form.vector)))
    return fail("expected " + std::to_string(form.vector) + " registers");
  list(in, form.vector > 1 ? to.elements : List{to}, type, true);
}

void Decoder::store(const PtxInstruction &from, Instr &in) {
  MemoryForm form;
  std::string bad;
  in.cls = Class::Store;
  if (!parseForm(from, in, form, bad))
    return fail("unknown modifier '" + bad + "'");
  if (in.space == Space::Param)
    return fail("a kernel parameter cannot be written");
  if (!operands(from, 2 + form.hint, 2 + form.hint) ||
      !address(from.operands[0], in.at, false, form.bytes()))
    return;
  const PtxOperand &value = from.operands[1];
  in.run = executeStore;
  in.width = static_cast<uint8_t>(byteSize(form.type));
  if ((value.kind == Kind::Vector) != (form.vector > 1) ||
      (form.vector > 1 && value.elements.size() != size_t(form.vector)))
    return fail("expected " + std::to_string(form.vector) + " registers");
  const PtxType type = registerType(kernel, value, form.type);
  in.wide = byteSize(type) == 8;
  list(in, form.vector > 1 ? value.elements : List{value}, type, false);
}

void Decoder::atomic(const PtxInstruction &from, Instr &in) {
  static const char *const ops[] = {"add", "and", "or",  "xor", "exch",
                                    "cas", "min", "max", "inc", "dec"};
  in.cls = Class::Store;
  in.flags = kStrong;
  int op = -1;
  PtxType type = PtxType::B32;
  for (size_t i = 0; i < from.modifiers.size(); ++i) {
    const std::string &m = from.modifiers[i];
    int found = -1;
    for (int k = 0; k < 10; ++k)
      if (m == ops[k])
        found = k;
    if (i + 1 == from.modifiers.size() && parseType(m, type))
      continue;
    if (found >= 0 && op < 0)
      op = found;
    else if (!takeSpace(m, in.space) && !(parseStrength(m, in.flags) && m != "L2::cache_hint"))
      return fail("unknown modifier '" + m + "'");
  }
  const bool isFloat = type == PtxType::F32 || type == PtxType::F64;
  const int64_t bytes = byteSize(type);
  if (op < 0 || (bytes != 4 && bytes != 8) || type == PtxType::Pred)
    return fail("unknown operation or type");
  if (isFloat && op != static_cast<int>(AtomicOp::Add))
    return fail("operation on floats");
  const bool returns = from.opcode == "atom";
  const size_t count = (op == static_cast<int>(AtomicOp::Cas) ? 3 : 2) + returns;
  if (!operands(from, count, count) || !address(from.operands[returns], in.at, false, bytes))
    return;
  in.run = executeAtomic;
  in.kind = static_cast<uint8_t>(op);
  in.width = static_cast<uint8_t>(bytes);
  in.wide = bytes == 8;
  const AtomicType kind = isFloat              ? AtomicType::Float
                          : isSignedType(type) ? AtomicType::Signed
                                               : AtomicType::Unsigned;
  in.flags |= static_cast<uint8_t>(static_cast<int>(kind) << 4);
  if (returns)
    in.dst = destination(from.operands[0], type);
  in.src[1] = source(from.operands[returns + 1], type);
  if (op == static_cast<int>(AtomicOp::Cas))
    in.src[2] = source(from.operands[returns + 2], type);
}

void Decoder::matrix(const PtxInstruction &from, Instr &in) {
  // {ld,st}matrix.sync.aligned.m8n8.xN{.trans}{.shared}.b16
  static const char *const counts[] = {"x1", "x2", "x4"};
  const bool isLoad = from.opcode == "ldmatrix";
  Modifiers m(from);
  const bool start = m.take("sync") && m.take("aligned") && m.take("m8n8");
  const int count = m.oneOf(counts);
  in.kind = m.take("trans");
  in.space = m.take("shared") || m.take("shared::cta") ? Space::Shared : Space::Generic;
  if (!start || count < 0 || !m.take("b16") || !m.done())
    return fail("unknown form");
  if (!operands(from, 2, 2) || !address(from.operands[isLoad ? 1 : 0], in.at))
    return;
  const PtxOperand &data = from.operands[isLoad ? 0 : 1];
  if (data.kind != Kind::Vector || data.elements.size() != size_t(1) << count)
    return fail("expected " + std::to_string(1 << count) + " registers in braces");
  in.aligned = true;
  in.cls = isLoad ? Class::Load : Class::Store;
  in.width = 16;
  in.run = isLoad ? executeLoadMatrix : executeStoreMatrix;
  list(in, data.elements, PtxType::B32, isLoad);
}

void Decoder::convertAddress(const PtxInstruction &from, Instr &in) {
  Modifiers m(from);
  const bool to = m.take("to");
  Space space = Space::Generic;
  if (!parseSpace(m.next(), space))
    return fail("unknown state space");
  m.skip();
  if (!m.take("u64") || !m.done())
    return fail("unknown form");
  if (!operands(from, 2, 2))
    return;
  in.run = to ? executeFromGeneric : executeToGeneric;
  in.imm = static_cast<int64_t>(space == Space::Shared || space == Space::Cluster ? kSharedWindow
                                : space == Space::Local                           ? kLocalWindow
                                : space == Space::Param                           ? kParamWindow
                                                                                  : 0);
  in.dst = destination(from.operands[0], PtxType::U64);
  in.src[0] = source(from.operands[1], PtxType::U64);
  if (in.dst == kNoOperand)
    fail("no register to write");
}

// mapa{.shared::cluster}.TYPE d, a, rank; getctarank{.shared::cluster}.TYPE d, a
void Decoder::mapAddress(const PtxInstruction &from, Instr &in) {
  const bool map = from.opcode == "mapa";
  Modifiers m(from);
  m.take("shared::cluster");
  in.wide = m.take("u64");
  if ((!in.wide && !m.take("u32")) || !m.done())
    return fail("unknown form");
  if (!operands(from, 2 + map, 2 + map))
    return;
  const PtxType type = in.wide ? PtxType::U64 : PtxType::U32;
  in.dst = destination(from.operands[0], map ? type : PtxType::U32);
  in.src[0] = source(from.operands[1], type);
  if (map)
    in.src[1] = source(from.operands[2], PtxType::U32);
  in.run = map ? executeMapAddress : executeRankOf;
  if (in.dst == kNoOperand)
    fail("no register to write");
}

/// mov that packs or unpacks; false: another form.
bool Decoder::moveVector(const PtxInstruction &from, Instr &in) {
  if (from.operands.size() != 2)
    return false;
  const bool unpack = from.operands[0].kind == Kind::Vector;
  if (!unpack && from.operands[1].kind != Kind::Vector)
    return false;
  const PtxOperand &vector = from.operands[unpack ? 0 : 1];
  const PtxOperand &whole = from.operands[unpack ? 1 : 0];
  PtxType type;
  if (from.modifiers.size() != 1 || !parseType(from.modifiers[0], type) ||
      (byteSize(type) != 4 && byteSize(type) != 8) || type == PtxType::Pred) {
    fail("unknown form");
    return true;
  }
  const size_t count = vector.elements.size();
  const int64_t bytes = byteSize(type) / static_cast<int64_t>(count ? count : 1);
  if ((count != 2 && count != 4) || bytes < 1) {
    fail("expected 2 or 4 elements");
    return true;
  }
  in.width = static_cast<uint8_t>(bytes);
  in.wide = byteSize(type) == 8;
  const PtxType element = bytes == 1 ? PtxType::B8 : bytes == 2 ? PtxType::B16 : PtxType::B32;
  list(in, vector.elements, element, unpack);
  if (unpack) {
    in.run = executeUnpack;
    in.src[0] = source(whole, type);
  } else {
    in.run = executePack;
    in.dst = destination(whole, type);
    if (in.dst == kNoOperand)
      fail("no register to write");
  }
  return true;
}
