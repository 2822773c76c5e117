// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calling convention of the native CPU kernels that AttnToLoops makes: one pointer to NativeArgs.
// Every member is 8 bytes, so the compiler addresses member i at byte 8 * i; the enum below numbers
// them and the static_asserts keep both sides equal.
#ifndef ATTN_CORE_NATIVEABI_H
#define ATTN_CORE_NATIVEABI_H

#include <cstddef>
#include <cstdint>

namespace attn::core {

/// Largest number of dimensions of a plain table.
constexpr int64_t kMaxTableRank = 4;

/// One table as native code reads it. Ranges and QueryRanges: `data` points at (start, end) pairs
/// of int32. Documents: `data` points at int32 ids. `offsets` as in TableData (Ranges, Documents).
struct NativeTable {
  const void *data;
  const int64_t *offsets;
  int64_t extents[kMaxTableRank];
  int64_t strides[kMaxTableRank];
};
static_assert(sizeof(NativeTable) == 80, "the compiler addresses tables in steps of 80 bytes");

struct NativeArgs {
  const void *q;
  const void *k;
  const void *v;
  float *o;   ///< f32 always: the CPU path computes in f32 and does not round its result
  float *lse; ///< [heads, lseHeadStride]
  int64_t qTokenStride, qHeadStride;
  int64_t kPageStride, kSlotStride, kHeadStride;
  int64_t vPageStride, vSlotStride, vHeadStride;
  int64_t oTokenStride, oHeadStride;
  int64_t lseHeadStride;
  const int64_t *queryStartLoc; ///< [num_reqs + 1]
  const int64_t *contextLen;    ///< [num_reqs]
  const int64_t *keyBegin;      ///< [num_reqs]
  const int64_t *keyEnd;        ///< [num_reqs]
  const int64_t *kvStart;       ///< [num_reqs]; contiguous K/V
  const int32_t *pageTable;     ///< null: contiguous
  int64_t pageTableStride;
  int64_t pageSize;
  int64_t requestBegin, requestEnd; ///< sub-range of requests this call covers
  int64_t tokenBegin, tokenEnd;     ///< and of tokens
  const int64_t *params; ///< 8 bytes each: integers sign-extended, f32 as its bits in the low half
  const NativeTable *tables;
  uint8_t *keep;      ///< mask entry only: keep[(h * numTokens + token) * keepStride + k], 0 or 1
  int64_t keepStride; ///< at least the largest keyEnd
  int64_t numTokens;
};

/// Member numbers of NativeArgs.
enum NativeArg : int64_t {
  kArgQ,
  kArgK,
  kArgV,
  kArgO,
  kArgLse,
  kArgQTokenStride,
  kArgQHeadStride,
  kArgKPageStride,
  kArgKSlotStride,
  kArgKHeadStride,
  kArgVPageStride,
  kArgVSlotStride,
  kArgVHeadStride,
  kArgOTokenStride,
  kArgOHeadStride,
  kArgLseHeadStride,
  kArgQueryStartLoc,
  kArgContextLen,
  kArgKeyBegin,
  kArgKeyEnd,
  kArgKvStart,
  kArgPageTable,
  kArgPageTableStride,
  kArgPageSize,
  kArgRequestBegin,
  kArgRequestEnd,
  kArgTokenBegin,
  kArgTokenEnd,
  kArgParams,
  kArgTables,
  kArgKeep,
  kArgKeepStride,
  kArgNumTokens,
  kNumNativeArgs
};
static_assert(sizeof(NativeArgs) == 8 * kNumNativeArgs, "one number per member");
static_assert(offsetof(NativeArgs, queryStartLoc) == 8 * kArgQueryStartLoc, "member order");
static_assert(offsetof(NativeArgs, params) == 8 * kArgParams, "member order");
static_assert(offsetof(NativeArgs, numTokens) == 8 * kArgNumTokens, "member order");

/// Type of both entries.
using NativeKernel = void (*)(const NativeArgs *);

/// Symbols that native code may refer to: single-precision libm functions and the memory functions
/// LLVM emits by itself. The loader resolves these and refuses any other.
constexpr const char *kNativeImports[] = {
    "expf", "exp2f", "expm1f", "logf",  "log2f", "log1pf", "tanhf",  "powf",   "sinf",
    "cosf", "erff",  "floorf", "ceilf", "fmaf",  "sqrtf",  "memcpy", "memset", "memmove",
};

} // namespace attn::core

#endif // ATTN_CORE_NATIVEABI_H
