// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whole forward passes in tests: tensors of a batch in any layout, NaN in every slot that no query
// keeps, the reference and the native path on them, and a naive attention over key sets that the
// test states.
#ifndef ATTN_TEST_EXECUTION_FORWARD_H
#define ATTN_TEST_EXECUTION_FORWARD_H

#include "Harness.h"

#include "attn/Core/Problem.h"

#include <functional>
#include <random>
#include <string>
#include <vector>

namespace exec {

/// Whether query head h of request b at position q keeps key k.
using KeepHeadFn = std::function<bool(int64_t b, int64_t h, int64_t q, int64_t k)>;
/// Logit of a kept pair from its scaled score.
using ScoreFn = std::function<double(double s, int64_t b, int64_t h, int64_t q, int64_t k)>;

/// How K and V lie in memory.
struct Layout {
  int64_t pageSize = 0;     ///< 0: contiguous
  bool headMajor = false;   ///< heads outside slots ("HND")
  bool interleaved = false; ///< K and V of a page (or of the whole cache) next to each other
};

/// O as [tokens, heads, dim_v], LSE as [heads, tokens].
struct Outputs {
  std::vector<double> o;
  std::vector<double> lse;
};

class Attention {
public:
  /// Tensors for `bound`, which must be of the kernel's spec. `keep` is the truth.
  Attention(const LoadedKernel &kernel, attn::rt::BoundBatch bound, KeepHeadFn keep,
            Layout layout = {});
  Attention(const Attention &) = delete;
  Attention &operator=(const Attention &) = delete;

  const attn::core::KernelSpec &spec() const { return *kernel.spec; }
  attn::core::BatchShape &shape() { return bound.batch.shape; }
  int64_t tokens() const { return bound.batch.shape.numTokens(); }

  void setQ(int64_t token, int64_t head, int64_t d, float value);
  void setK(int64_t b, int64_t k, int64_t kvHead, int64_t d, float value);
  void setV(int64_t b, int64_t k, int64_t kvHead, int64_t d, float value);
  /// Every element, slots without a key included.
  void fillQ(float value);
  void fillK(float value);
  void fillV(float value);
  void fillRandom(unsigned seed);
  /// NaN into K and V of every slot that holds no key, and of every key that no query of the launch
  /// keeps with a head of its group.
  void poisonInvisible();

  /// Differences of both dense masks from the truth, or empty text.
  std::string compareMasks();
  Outputs reference();
  /// Native code on NaN-filled outputs. Rows of O have padding that must stay as it was.
  Outputs native(unsigned threads = 1);
  /// By definition, over the pairs that the truth keeps.
  Outputs naive(const ScoreFn &score = nullptr) const;

  attn::core::Problem problem;

private:
  int64_t elementOf(const attn::core::KvView &view, int64_t b, int64_t k, int64_t kvHead) const;
  void layOut(Layout layout);

  const LoadedKernel &kernel;
  attn::rt::BoundBatch bound;
  KeepHeadFn keep;
  std::vector<uint8_t> qData;
  std::vector<uint8_t> kvData;
  int64_t kvElements = 0;
  int64_t vOffset = 0; ///< elements from the start of K to the start of V
  std::vector<int32_t> pageTable;
};

/// One native call on a problem whose views may lie anywhere; O and LSE as in Outputs.
Outputs runNative(const LoadedKernel &kernel, const attn::core::Problem &problem,
                  unsigned threads = 1);

/// The call itself, into memory of the caller; strides in elements.
void runNativeInto(const LoadedKernel &kernel, const attn::core::Problem &problem, float *o,
                   int64_t oTokenStride, int64_t oHeadStride, float *lse, int64_t lseHeadStride,
                   unsigned threads = 1);

/// Per (token, head) row: relative L2 distance of O at most `tolerance`, LSE as close (absolute, or
/// relative where |lse| > 1), empty rows exactly 0 and -inf. Empty text when right.
std::string compareRows(const Outputs &want, const Outputs &got, int64_t tokens, int64_t heads,
                        int64_t dimV, double tolerance);

/// Merges two partial results of the same rows by their natural-log LSE.
Outputs merge(const Outputs &a, const Outputs &b, int64_t tokens, int64_t heads, int64_t dimV);

} // namespace exec

#endif // ATTN_TEST_EXECUTION_FORWARD_H
