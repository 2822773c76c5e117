// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A kernel written by hand, with the calling convention of the compiler's: what the runtime tests
// load and run. Mask: (k <= q and q - k <= left) or k in the token's row of the built table. Score:
// s - slope[h] * |q - k|. f32 throughout. Parameters: left, scale. Tables: mm, slopes, rows.
#include "attn/Core/NativeAbi.h"

#include <cmath>
#include <cstring>

using attn::core::NativeArgs;

namespace {

constexpr int kHeads = 4, kKvHeads = 2, kDimQk = 8, kDimV = 6;

constexpr char kSignature[] = "abi 1 264 80\n"
                              "entry 12:tiny_forward\n"
                              "mask_entry 9:tiny_mask\n"
                              "num_heads 4\n"
                              "num_kv_heads 2\n"
                              "dim_qk 8\n"
                              "dim_v 6\n"
                              "q_type f32\n"
                              "kv_type f32\n"
                              "scale_param 1\n"
                              "param 4:left i32 at least 0\n"
                              "param 5:scale f32\n"
                              "table 2:mm ranges\n"
                              "table 6:slopes plain h of f32\n"
                              "table 4:rows query_ranges from 0\n";

bool keeps(const NativeArgs &a, long token, long q, long k) {
  const int *row = static_cast<const int *>(a.tables[2].data) + 2 * token;
  if (row[0] >= 0 && row[0] <= k && k <= row[1])
    return true;
  return k <= q && q - k <= a.params[0];
}

long slotOf(const NativeArgs &a, long b, long k, long pageStride, long slotStride) {
  if (!a.pageTable)
    return (a.kvStart[b] + k) * slotStride;
  const long page = a.pageTable[b * a.pageTableStride + k / a.pageSize];
  return page * pageStride + k % a.pageSize * slotStride;
}

float scoreOf(const NativeArgs &a, const float *q, const float *k, long h, long distance) {
  float scale;
  std::memcpy(&scale, &a.params[1], sizeof(scale));
  float s = 0;
  for (int d = 0; d < kDimQk; ++d)
    s += q[d] * k[d];
  const float slope = static_cast<const float *>(a.tables[1].data)[h * a.tables[1].strides[0]];
  return s * scale - slope * static_cast<float>(distance < 0 ? -distance : distance);
}

void row(const NativeArgs &a, long b, long h, long token, long q) {
  const float *qRow = static_cast<const float *>(a.q) + token * a.qTokenStride + h * a.qHeadStride;
  const long kvHead = h / (kHeads / kKvHeads);
  float sum[kDimV] = {};
  float largest = -INFINITY, total = 0;
  for (long k = a.keyBegin[b]; k < a.keyEnd[b]; ++k) {
    if (!keeps(a, token, q, k))
      continue;
    const float *kRow = static_cast<const float *>(a.k) +
                        slotOf(a, b, k, a.kPageStride, a.kSlotStride) + kvHead * a.kHeadStride;
    const float *vRow = static_cast<const float *>(a.v) +
                        slotOf(a, b, k, a.vPageStride, a.vSlotStride) + kvHead * a.vHeadStride;
    const float s = scoreOf(a, qRow, kRow, h, q - k);
    const float next = s > largest ? s : largest;
    const float correction = largest == -INFINITY ? 0 : expf(largest - next);
    const float p = expf(s - next);
    total = total * correction + p;
    for (int d = 0; d < kDimV; ++d)
      sum[d] = sum[d] * correction + p * vRow[d];
    largest = next;
  }
  float *o = a.o + token * a.oTokenStride + h * a.oHeadStride;
  for (int d = 0; d < kDimV; ++d)
    o[d] = total > 0 ? sum[d] / total : 0;
  a.lse[h * a.lseHeadStride + token] = total > 0 ? largest + logf(total) : -INFINITY;
}

/// Calls f(b, token, q) for the rows of the part.
template <class F>
void forEachRow(const NativeArgs &a, F f) {
  for (long b = a.requestBegin; b < a.requestEnd; ++b)
    for (long token = a.queryStartLoc[b]; token < a.queryStartLoc[b + 1]; ++token)
      if (a.tokenBegin <= token && token < a.tokenEnd)
        f(b, token, a.contextLen[b] + token - a.queryStartLoc[b]);
}

/// What the compiler writes beside its code, see attn/Core/KernelSignature.h; ends without a 0.
struct Text {
  char bytes[sizeof(kSignature) - 1];
};
constexpr Text textOf(const char *from) {
  Text text = {};
  for (unsigned i = 0; i < sizeof(text.bytes); ++i)
    text.bytes[i] = from[i];
  return text;
}

} // namespace

extern "C" const Text tinySignature __asm__("attn.signature.tiny_forward");
extern "C" const Text tinySignature = textOf(kSignature);

extern "C" void tiny_forward(const NativeArgs *args) {
  forEachRow(*args, [&](long b, long token, long q) {
    for (long h = 0; h < kHeads; ++h)
      row(*args, b, h, token, q);
  });
}

extern "C" void tiny_mask(const NativeArgs *args) {
  forEachRow(*args, [&](long b, long token, long q) {
    for (long h = 0; h < kHeads; ++h)
      for (long k = args->keyBegin[b]; k < args->keyEnd[b]; ++k)
        args->keep[(h * args->numTokens + token) * args->keepStride + k] =
            keeps(*args, token, q, k);
  });
}
