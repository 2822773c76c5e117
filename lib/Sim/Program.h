// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A kernel as the machine runs it: every instruction is a handler and its operands, looked up once.
// Operands are byte offsets into the register file of a warp, where a register is 32 slots of 4 or
// 8 bytes, one a lane (predicates: one 4-byte mask); constants lie in a file of their own and have
// offsets below 0.
#ifndef ATTN_SIM_PROGRAM_H
#define ATTN_SIM_PROGRAM_H

#include "Special.h"

#include "attn/Sim/Sim.h"

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace attn::sim {

struct Cta;
struct Warp;
struct Instr;

/// Runs an instruction for the lanes of `mask`. False: it cannot go on now and is run again.
using Handler = bool (*)(Cta &, Warp &, const Instr &, uint32_t mask);

enum class Flow : uint8_t { Next, Branch, Exit };
enum class Class : uint8_t { Alu, Fp, Sfu, Load, Store, Branch, Barrier, Other };
constexpr int kNumClasses = 8;
/// Shared: of the own CTA; Cluster: of any CTA of the cluster.
enum class Space : uint8_t { Generic, Global, Shared, Cluster, Local, Param };

constexpr int32_t kNoOperand = INT32_MIN;

/// [base + offset]
struct Address {
  int64_t offset = 0;
  int32_t base = kNoOperand;
  bool wide = false; ///< the base has 8-byte slots; the sum has as many bits as the base
};

struct Instr {
  Handler run = nullptr;
  int32_t line = 0;
  int32_t guard = kNoOperand;
  bool guardNegated = false;
  Flow flow = Flow::Next;
  Class cls = Class::Alu;
  bool aligned = false; ///< every lane of the warp must be there
  bool wide = false;    ///< data registers have 8-byte slots
  bool isSigned = false;
  Space space = Space::Generic;
  uint8_t width = 0; ///< bytes of an element
  uint8_t kind = 0;  ///< meaning depends on the handler
  uint8_t flags = 0;
  int32_t target = 0;
  int32_t dst = kNoOperand, dst2 = kNoOperand;
  int32_t src[4] = {kNoOperand, kNoOperand, kNoOperand, kNoOperand};
  bool negated = false; ///< the predicate among the operands
  int64_t imm = 0;
  Address at;     ///< of accesses, mbarriers; of copies: in shared memory
  Address global; ///< of copies: global memory, a tensor map, or where shared memory is read
  Address signal; ///< of copies: the mbarrier
  uint32_t listBegin = 0, listCount = 0;   ///< operands in Program::lists
  uint32_t touchBegin = 0, touchCount = 0; ///< in Program::touches
  /// In Program::loadTouches: first the `loadWrites` registers that it writes, then those it reads.
  uint32_t loadBegin = 0, loadTouches = 0, loadWrites = 0;
  bool move = false; ///< of registers: ptxas makes no instruction of it
};

/// Shape and operands of a product.
struct WgmmaShape {
  enum class Type : uint8_t { F16, BF16, E4M3, E5M2 };
  int n = 0, k = 0;
  Type a = Type::BF16, b = Type::BF16;
  bool registersA = false;
  bool negateA = false, negateB = false;
  bool transposeA = false, transposeB = false;
};

struct SpecialRegister {
  int32_t offset;
  Special id;
  uint8_t axis;
};

struct Program {
  std::string name;
  std::vector<Instr> code;
  std::vector<int32_t> ranks; ///< an instruction: lanes at the lowest run first
  std::vector<int32_t> lists;
  /// Numbers of the registers of wgmma operands that an instruction touches.
  std::vector<int32_t> touches;
  /// Numbers of the registers that hold what a load of shared memory read.
  std::vector<int32_t> loadTouches;
  uint32_t numLoadRegisters = 0;
  std::vector<WgmmaShape> shapes;
  std::vector<uint8_t> constants;
  /// Those that are addresses in shared memory: offset, whether of 8 bytes.
  std::vector<std::pair<uint32_t, bool>> sharedConstants;
  std::vector<SpecialRegister> specials;
  uint32_t registerBytes = 0;
  uint32_t numRegisters = 0;
  uint32_t maxRegisters = 0; ///< a thread, 0: what the SM has for it
  uint32_t minCtasPerSm = 1;
  uint32_t staticShared = 0; ///< bytes before dynamic shared memory
  uint32_t localBytes = 0;   ///< a thread
  std::vector<uint32_t> paramOffsets;
  uint32_t paramBytes = 0;
  uint32_t globalBytes = 0;  ///< of the variables of the module; addresses are relative to them
  unsigned granuleShift = 2; ///< shared accesses have multiples of so many bytes (log2)
};

/// What a table of plain instructions says of one mnemonic: pure lane-wise functions.
struct AluEntry {
  Handler run;
  Class cls;
  PtxType dst;
  std::vector<PtxType> src;
};
using AluTable = std::unordered_map<std::string, AluEntry>;
/// Behind the mnemonic of a cvt that takes a narrower integer from a 64-bit register (PTX ISA
/// "Operand Size Exceeding Instruction-Type Size").
constexpr const char *kFromWide = " from 64 bits";

void addIntegerInstructions(AluTable &table);
void addBitInstructions(AluTable &table);
void addFloatInstructions(AluTable &table);
void addHalfInstructions(AluTable &table);
void addCompareInstructions(AluTable &table);
void addConversions(AluTable &table);

/// Shared memory starts here, as on sm_90 where the first KiB belongs to the system.
constexpr uint32_t kSharedBase = 1024;
constexpr uint32_t kMaxShared = 232448; ///< bytes a CTA of sm_90 may have
/// Addresses in the shared memory of a cluster: the rank of the CTA from this bit on.
constexpr int kRankShift = 24;
constexpr uint32_t kRankMask = 0xFFu << kRankShift;
constexpr uint64_t kMaxCluster = 8;       ///< CTAs of a cluster on every GPU that has clusters
constexpr uint32_t kMaxRegisters = 65536; ///< of an SM

/// Addresses of the other windows in the generic space; no host pointer looks like this.
constexpr uint64_t kSharedWindow = uint64_t(0xA1) << 56;
constexpr uint64_t kLocalWindow = uint64_t(0xA2) << 56;
constexpr uint64_t kParamWindow = uint64_t(0xA3) << 56;
constexpr uint64_t kWindowMask = uint64_t(0xFF) << 56;

/// Decodes a kernel for launches with `globals` as the memory of the module's variables. What is
/// not known is one report an instruction.
Program decode(const PtxModule &module, const PtxKernel &kernel, const uint8_t *globals,
               std::vector<Report> &unsupported);
std::vector<int32_t> rankInstructions(const std::vector<Instr> &code);
/// Bytes of the module's global variables and where each starts.
uint32_t layoutGlobals(const PtxModule &module, std::vector<uint32_t> &offsets);

} // namespace attn::sim

#endif // ATTN_SIM_PROGRAM_H
