// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// PTX text as a list of instructions: what LLVM's NVPTX backend and our inline pieces write
// (PTX ISA 8.6 to 9.0). The parser knows the grammar, not the meaning: opcodes and their modifiers
// stay text, registers become numbers.
#ifndef ATTN_SIM_PTX_H
#define ATTN_SIM_PTX_H

#include "attn/Core/Status.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace attn::sim {

/// Fundamental type of a register or parameter (PTX ISA, "Fundamental types").
enum class PtxType : uint8_t {
  Pred,
  B8,
  B16,
  B32,
  B64,
  B128,
  U8,
  U16,
  U32,
  U64,
  S8,
  S16,
  S32,
  S64,
  F16,
  BF16,
  F32,
  F64
};
int64_t byteSize(PtxType type); ///< 1 for Pred

/// Registers that instructions name; those only declared are left out.
struct PtxRegister {
  std::string name; ///< "%r12"; of a nested scope "name$3" with a number of its own
  PtxType type = PtxType::B32;
};

/// A named piece of memory: a parameter, or a variable in shared, global, const or local space.
struct PtxVariable {
  std::string name;           ///< no two that a kernel sees are equal; of a nested scope "name$3"
  PtxType type = PtxType::B8; ///< of an element
  int64_t count = 1;          ///< elements; 0: extern array of unknown size (dynamic shared memory)
  int64_t align = 1;
  int64_t bytes() const { return count * byteSize(type); }
};

struct PtxOperand {
  enum class Kind : uint8_t {
    Register, ///< `number`
    Special,  ///< `text`: "%tid.x"
    Integer,  ///< `value`
    Float,    ///< `value`: bits; `number`: how many, 32 or 64 as written (0f..., 0d...)
    Label,    ///< `value`: instruction number it stands before; may be one past the last
    Symbol,   ///< `text`: variable whose address is meant
    Memory, ///< [base + value]; base: register `number`, or symbol `text` if number < 0, or neither
    Vector, ///< {a, b, ...}: `elements`
    TensorAt, ///< [a, {c0, c1, ...}]: elements[0] is [a] as Memory, the rest coordinates
    Pair,     ///< a|b: two `elements`, registers or sinks (shfl.sync d|p, setp p|q)
    Sink,     ///< _
  };
  Kind kind = Kind::Integer;
  bool negated = false; ///< !p
  int32_t number = -1;
  int64_t value = 0;
  std::string text;
  std::vector<PtxOperand> elements;
};

struct PtxInstruction {
  int32_t line = 0;
  /// Guard predicate register, or -1; `guardNegated`: @!p.
  int32_t guard = -1;
  bool guardNegated = false;
  std::string opcode;                 ///< "wgmma"
  std::vector<std::string> modifiers; ///< {"mma_async", "sync", ...}; "::" stays inside one
  std::vector<PtxOperand> operands;
  /// opcode and modifiers as written.
  std::string mnemonic() const;
};

struct PtxKernel {
  std::string name;
  int32_t line = 0;
  std::vector<PtxVariable> params;
  std::vector<PtxRegister> registers; ///< of every scope
  std::vector<PtxVariable> shared;    ///< declared in the kernel
  std::vector<PtxVariable> locals;
  std::vector<PtxInstruction> instructions;
  int32_t maxThreads[3] = {0, 0, 0}; ///< .maxntid, 0 if absent
  int32_t requiredThreads[3] = {0, 0, 0};
  int32_t minCtasPerSm = 0;
  int32_t maxRegisters = 0;               ///< .maxnreg, 0 if absent
  int32_t requiredCluster[3] = {0, 0, 0}; ///< .reqnctapercluster, 0 if absent
  bool explicitCluster = false;           ///< .explicitcluster
  bool blocksAreClusters = false;         ///< .blocksareclusters
};

struct PtxModule {
  int32_t versionMajor = 0, versionMinor = 0;
  std::string target; ///< "sm_90a"
  int32_t addressSize = 64;
  std::vector<PtxVariable> shared; ///< module scope, extern included
  std::vector<PtxVariable> globals;
  std::vector<PtxKernel> kernels;

  const PtxKernel *find(std::string_view name) const;
};

/// Parses a module. An error names the line, what was found and what was expected; anything the
/// grammar here does not cover is refused: functions and calls, initial values of variables, the
/// const space, vector registers. Nothing is skipped silently but .loc, .file, .section and
/// .pragma. Variables without initial values are zero. Never crashes, whatever the bytes; at most
/// `text.size()` memory times a small constant.
core::Result<PtxModule> parsePtx(std::string_view text);

} // namespace attn::sim

#endif // ATTN_SIM_PTX_H
