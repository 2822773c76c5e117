// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From parsed instructions to handlers. Every function here either understands all of an
// instruction or says why not; nothing is guessed.
#ifndef ATTN_SIM_DECODE_H
#define ATTN_SIM_DECODE_H

#include "Program.h"

#include <map>
#include <set>
#include <tuple>

namespace attn::sim {

/// A variable that instructions may name. `bytes`: 0 where its size is the launch's.
struct Symbol {
  uint64_t address = 0;
  Space space = Space::Generic;
  int64_t bytes = 0;
};

class Decoder {
public:
  Decoder(const PtxModule &module, const PtxKernel &kernel, const uint8_t *globals,
          std::vector<Report> &unsupported);
  Program run();

private:
  using List = std::vector<PtxOperand>;

  void layoutRegisters();
  void layoutVariables();
  void findProducts();
  void findLoads();
  void instruction(const PtxInstruction &from);
  void dispatch(const PtxInstruction &from, Instr &in);
  void recordTouches(const PtxInstruction &from, Instr &in);
  void recordLoads(const PtxInstruction &from, Instr &in);

  // Kinds of instructions.
  void alu(const PtxInstruction &from, Instr &in);
  void compare(const PtxInstruction &from, Instr &in);
  void branch(const PtxInstruction &from, Instr &in);
  bool moveVector(const PtxInstruction &from, Instr &in);
  void load(const PtxInstruction &from, Instr &in);
  void store(const PtxInstruction &from, Instr &in);
  void atomic(const PtxInstruction &from, Instr &in);
  void matrix(const PtxInstruction &from, Instr &in);
  void convertAddress(const PtxInstruction &from, Instr &in);
  void barrier(const PtxInstruction &from, Instr &in);
  void shuffle(const PtxInstruction &from, Instr &in);
  void vote(const PtxInstruction &from, Instr &in);
  void match(const PtxInstruction &from, Instr &in);
  void mapAddress(const PtxInstruction &from, Instr &in);
  void clusterBarrier(const PtxInstruction &from, Instr &in);
  void elect(const PtxInstruction &from, Instr &in);
  void redux(const PtxInstruction &from, Instr &in);
  void fence(const PtxInstruction &from, Instr &in);
  void setMaxRegisters(const PtxInstruction &from, Instr &in);
  void mbarrier(const PtxInstruction &from, Instr &in);
  void mbarrierArrive(const PtxInstruction &from, Instr &in);
  void mbarrierWait(const PtxInstruction &from, Instr &in);
  void copy(const PtxInstruction &from, Instr &in);
  void copyTensor(const PtxInstruction &from, Instr &in);
  void copyBulk(const PtxInstruction &from, Instr &in);
  void copySmall(const PtxInstruction &from, Instr &in);
  void wgmma(const PtxInstruction &from, Instr &in);
  void product(const PtxInstruction &from, Instr &in);

  // Operands; a failure is kept in `problem` and gives kNoOperand.
  int32_t source(const PtxOperand &operand, PtxType type);
  int32_t destination(const PtxOperand &operand, PtxType type);
  int32_t predicate(const PtxOperand &operand, bool &negated);
  /// An address in brackets; `mustBeWide`: of 64 bits, as those of global memory. Where it names a
  /// variable, `bytes` from there on must lie inside of it.
  bool address(const PtxOperand &operand, Address &to, bool mustBeWide = false, int64_t bytes = 1);
  int64_t integer(const PtxOperand &operand, int64_t low, int64_t high);
  void list(Instr &in, const List &operands, PtxType type, bool isDestination);
  bool operands(const PtxInstruction &from, size_t low, size_t high);
  int32_t special(const std::string &name);
  /// `isShared`: an address in shared memory, which is another one in every CTA of a cluster.
  int32_t constant(uint64_t value, bool wide, bool isShared = false);
  const Symbol *symbol(const std::string &name);
  bool isWide(int32_t reg) const { return wide[reg]; }
  void fail(const std::string &why);

  const PtxModule &module;
  const PtxKernel &kernel;
  const uint8_t *globals;
  std::vector<Report> &unsupported;
  Program program;
  std::string problem;
  Report::Kind problemKind = Report::Kind::Unsupported;
  std::vector<int32_t> registerOffset;
  std::vector<uint8_t> wide;
  std::map<std::tuple<uint64_t, bool, bool>, int32_t> constantAt;
  std::map<std::string, int32_t> specialAt;
  std::map<std::string, Symbol> symbols;
  std::map<int32_t, int32_t> tracked; ///< registers of products, numbered
  std::map<int32_t, int32_t> loaded;  ///< those of loads of shared memory, and of moves from them
};

/// Modifiers of an instruction, taken one after the other.
class Modifiers {
public:
  explicit Modifiers(const PtxInstruction &from) : all(from.modifiers) {}
  bool take(const char *text) {
    if (at < all.size() && all[at] == text) {
      ++at;
      return true;
    }
    return false;
  }
  /// The number of the one that comes next, or -1.
  template <size_t n>
  int oneOf(const char *const (&texts)[n]) {
    for (size_t i = 0; i < n; ++i)
      if (take(texts[i]))
        return static_cast<int>(i);
    return -1;
  }
  bool done() const { return at == all.size(); }
  const std::string &next() const {
    static const std::string none;
    return at < all.size() ? all[at] : none;
  }
  void skip() { ++at; }

private:
  const std::vector<std::string> &all;
  size_t at = 0;
};

/// Types that instructions of their own name, as ld and atom do.
bool parseType(const std::string &text, PtxType &type);
inline bool isSignedType(PtxType type) {
  return type == PtxType::S8 || type == PtxType::S16 || type == PtxType::S32 ||
         type == PtxType::S64;
}

} // namespace attn::sim

#endif // ATTN_SIM_DECODE_H
