// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The mask and score regions of a kernel as one small expression graph without MLIR.
//
// A program is a list of nodes in definition order: a node's operands come before it, so one
// forward walk visits operands first. Loops are the exception in evaluation only: the body nodes of
// a `For` depend on its LoopIndex / LoopCarried leaves and are evaluated once an iteration.
//
// Integers are two's complement of the node's width (`index` of the source is I64); named mask
// operations compute in exact integers, so a huge radius never overflows. Floats are the source's
// f32: every operation of a mask is rounded to f32, those of a score are float64 in the reference.
#ifndef ATTN_CORE_MASKPROGRAM_H
#define ATTN_CORE_MASKPROGRAM_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attn::core {

enum class ScalarType : uint8_t { Bool, I8, I16, I32, I64, F32 };

/// Width in bits of an integer type, 1 for Bool, 32 for F32.
unsigned bitWidth(ScalarType type);
/// "i1", "i8", ..., "f32".
std::string_view toString(ScalarType type);
std::optional<ScalarType> parseScalarType(std::string_view text);

/// Index spaces a table dimension can have. B, H, HKv and Token are addressed by the current
/// request, head, its key/value head, and the row's token; K, Slot and Bucket by any integer.
enum class TableDim : uint8_t { B, Token, K, Slot, H, HKv, Bucket };
std::string_view toString(TableDim dim);
std::optional<TableDim> parseTableDim(std::string_view text);

/// What a table holds and who makes it.
enum class TableKind : uint8_t {
  Plain,       ///< user's dense table: `dims` and `element`
  Ranges,      ///< user's inclusive [start, end] ranges of each request
  Documents,   ///< user's document id of every key position of each request
  QueryRanges, ///< built: per token the inclusive (start, end) of `source`, (-1, -1) outside
};
std::string_view toString(TableKind kind);
std::optional<TableKind> parseTableKind(std::string_view text);

struct ParamDecl {
  std::string name;
  ScalarType type = ScalarType::I32; ///< I32, I64 or F32
  /// Smallest legal value of an integer parameter (0 for a radius, 1 for a count), checked when a
  /// batch is bound.
  std::optional<int64_t> minValue;
};

struct TableDecl {
  std::string name;
  TableKind kind = TableKind::Plain;
  std::vector<TableDim> dims;           ///< Plain only
  ScalarType element = ScalarType::I32; ///< Plain only: I8, I32, I64 or F32
  /// QueryRanges only: index of the Ranges (hull of the ranges that hold q) or Documents (first and
  /// last key of q's document) table it is built from.
  int32_t source = -1;
};

enum class Op : uint8_t {
  // Leaves.
  Const,       ///< Bool or integer: `imm`; F32: `fimm`
  IndexB,      ///< request, I64
  IndexH,      ///< query head, I64
  IndexQ,      ///< absolute query position, I64
  IndexK,      ///< absolute key position, I64
  Score,       ///< incoming scaled score, F32
  Param,       ///< `ref`: parameter number
  LoopIndex,   ///< `ref`: node id of the For; its induction variable, I64
  LoopCarried, ///< `ref`: node id of the For, `imm`: number of the carried value
  // Tables; `ref` is the table number. An index outside the table's extent loads 0.
  TableLoad,  ///< operands: one per dim of the declaration (ignored for B, Token, H, HKv)
  NumRanges,  ///< number of live ranges of this request, I64
  RangeStart, ///< operand: range number; inclusive start, I64; 0 when out of bounds
  RangeEnd,   ///< operand: range number; inclusive end, I64; -1 when out of bounds
  RowLo,      ///< QueryRanges of this row as half-open interval: lo, I64 (kPositionLimit if empty)
  RowHi,      ///< ... hi, I64 (-kPositionLimit if empty)
  // Integers. Comparisons give Bool. Division by zero gives 0, shifts past the width give 0 / sign.
  Add,
  Sub,
  Mul,
  DivS,
  RemS,
  DivU,
  RemU,
  FloorDivS,
  CeilDivS,
  MinS,
  MaxS,
  MinU,
  MaxU,
  And,
  Or,
  Xor,
  Not,
  Shl,
  ShrS,
  ShrU,
  CmpEq,
  CmpNe,
  CmpSlt,
  CmpSle,
  CmpSgt,
  CmpSge,
  CmpUlt,
  CmpUle,
  CmpUgt,
  CmpUge,
  SExt,
  ZExt,
  Trunc,
  Select, ///< operands: condition, then, else; any type
  // Floats.
  FAdd,
  FSub,
  FMul,
  FDiv,
  FNeg,
  FAbs,
  FMin,
  FMax,
  FMinNum,
  FMaxNum,
  Fma,
  FCmpOeq,
  FCmpOne,
  FCmpOlt,
  FCmpOle,
  FCmpOgt,
  FCmpOge,
  FCmpOrd,
  FCmpUeq,
  FCmpUne,
  FCmpUlt,
  FCmpUle,
  FCmpUgt,
  FCmpUge,
  FCmpUno,
  SIToFP,
  UIToFP,
  FPToSI,
  Exp,
  Exp2,
  ExpM1,
  Log,
  Log2,
  Log1p,
  Tanh,
  Sqrt,
  Rsqrt,
  Pow,
  Sin,
  Cos,
  Erf,
  Floor,
  Ceil,
  // Named masks over the current (b, h, q, k); Bool.
  Causal, ///< k <= q
  Window, ///< imm bit 0: operand `left` present, bit 1: operand `right`; q-k <= left, k-q <= right
  MmPrefix, ///< ref: Ranges table; optional operand: clamp radius, q - k <= clamp
  Prefix,   ///< operand n: k < n
  Document, ///< ref: Documents table; q and k in the same document
  Global,   ///< operand n: k < n or q < n
  InRows,   ///< operands lo, hi (I64): lo <= k < hi
  // Named score modifications; F32.
  SoftCap, ///< operands s, cap: cap * tanh(s / cap)
  Alibi,   ///< operands s, slope: s - slope * |q - k|
  // Loop: operands lb, ub, step (I64, step >= 1), inits..., yields...; `imm` carried values. Its
  // type and value are carried value 0; ForResult reads the others.
  For,
  ForResult, ///< ref: node id of the For, imm: number of the carried value
};

/// Spelling in manifests and in text ("cmp_sle", "mm_prefix", ...).
std::string_view toString(Op op);
std::optional<Op> parseOp(std::string_view text);

using NodeId = int32_t;

struct Node {
  Op op = Op::Const;
  ScalarType type = ScalarType::Bool;
  std::vector<NodeId> operands;
  int32_t ref = -1;
  int64_t imm = 0;
  double fimm = 0;
};

struct MaskProgram {
  std::vector<ParamDecl> params;
  std::vector<TableDecl> tables;
  std::vector<Node> nodes;
  NodeId mask = -1;  ///< Bool node; -1: every key is kept
  NodeId score = -1; ///< F32 node; -1: the score passes unchanged

  /// Appends a node and returns its id.
  NodeId add(Node node);
  NodeId constant(ScalarType type, int64_t value);
};

/// Checks everything the visitors rely on: operand numbers before their user (loop yields may only
/// lie before their For), arities, types, table and parameter numbers, recipes. Returns the first
/// fault as text, or nothing. Programs from a manifest are checked with this before use.
std::optional<std::string> verify(const MaskProgram &program);
/// The part of verify() that looks at table declarations: names, dims, element types, recipes.
std::optional<std::string> verifyTables(const std::vector<TableDecl> &tables);

/// The program as a one-line formula in the terms of the spec, for people:
/// "(causal and window(left = left)) or mm_prefix(mm, clamp = left)".
std::string toFormula(const MaskProgram &program, NodeId root);

/// True if the node's value can change with b / h / q / k / s.
struct Dependence {
  bool b = false, h = false, q = false, k = false, s = false;
};
Dependence dependence(const MaskProgram &program, NodeId root);

//===----------------------------------------------------------------------===//
// Emission
//===----------------------------------------------------------------------===//

/// emitProgram<Emitter> of MaskProgramEmit.h walks a program for an emitter, operands first, each
/// node once; loop bodies through a callback. The formula printer, the interval and box analyses
/// and the compiler's IR emitter are instances.

} // namespace attn::core

#endif // ATTN_CORE_MASKPROGRAM_H
