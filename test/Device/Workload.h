// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One batch with its tensors on the host and on the device, and what its results must be.
#ifndef ATTN_TEST_DEVICE_WORKLOAD_H
#define ATTN_TEST_DEVICE_WORKLOAD_H

#include "Record.h"

#include "attn/Core/Problem.h"
#include "attn/Reference/Reference.h"
#include "attn/Runtime/BatchBinding.h"
#include "attn/Runtime/Cuda.h"

#include <functional>
#include <random>
#include <string>
#include <vector>

namespace device {

/// How K and V lie in memory.
struct Layout {
  int64_t pageSize = 0;     ///< 0: contiguous
  bool headMajor = false;   ///< slots inside heads ("HND")
  bool interleaved = false; ///< K and V of a page next to each other

  std::string text() const;
};

/// Whether query head h of request b at position q keeps key k, by hand.
using Keep = std::function<bool(int64_t b, int64_t h, int64_t q, int64_t k)>;

/// Errors of the rows of one run.
struct Judgement {
  double row = 0; ///< largest |o - ref| / |ref|
  double lse = 0; ///< largest |lse - ref|
  int64_t rows = 0, emptyRows = 0;
  std::string fault; ///< the first row past the bars: where and by how much
};

/// Bars of the issue: 8e-3 (bf16) and 2e-3 (f16) of the row norm, lse 1e-3.
double rowBar(attn::core::DType type);
constexpr double kLseBar = 1e-3;

class Workload {
public:
  /// Random tensors; NaN in every K/V slot that no query keeps or that holds no key. Every second
  /// time a kernel with a soft cap gets scores that reach it. The page table deals pages out in
  /// random order and has junk past the live ones.
  Workload(const attn::core::KernelSpec &spec, attn::rt::BoundBatch bound, const Keep &keep,
           bool perHead, Layout layout, std::mt19937 &rng);
  Workload(const Workload &) = delete;
  Workload &operator=(const Workload &) = delete;

  /// One launch on poisoned outputs.
  attn::core::Status run(const attn::rt::CudaKernel &kernel, attn::rt::CudaPlan &plan);
  /// Sets K to 0 where some query keeps it.
  void clearKeys();

  /// The results of the last run against the reference on all threads.
  Judgement judge() const;
  /// With K cleared: exp(lse) against the number of kept keys of each row; empty text when right.
  std::string judgeCounts() const;

  /// What the last run wrote, without padding.
  RunRecord record() const;

  const attn::core::TileCounters &counters() const { return counts; }
  const attn::core::Batch &batch() const { return bound.batch; }

private:
  void layOut(std::mt19937 &rng);
  void findVisible(const Keep &keep, bool perHead);
  void reachCap(std::mt19937 &rng);
  /// Calls visit(offset of K, offset of V) for each key that some query keeps.
  template <class Visit>
  void forVisibleKeys(Visit visit) const;
  int64_t keptKeys(int64_t token, int64_t h) const {
    return kept[(kept.size() > static_cast<size_t>(tokens) ? h * tokens : 0) + token];
  }
  std::string place(int64_t token, int64_t head) const;
  bool isRowNaN(int64_t token, int64_t head) const;
  std::string padding() const;

  const attn::core::KernelSpec &spec;
  attn::rt::BoundBatch bound;
  Layout layout;
  attn::core::Problem problem;
  int64_t tokens = 0;
  std::vector<uint16_t> q, kv; ///< K, then V, or interleaved
  int64_t kvRows = 0, numPages = 0, vOffset = 0;
  std::vector<uint8_t> visible; ///< of kv: the element of a key that some query keeps
  std::vector<int32_t> pages;
  std::vector<int64_t> kept; ///< [token], or [head, token]: number of kept keys
  std::vector<bool> isNaN;   ///< [token, head]: Q has a NaN
  // Of the last run.
  int64_t oTokenStride = 0, lseStride = 0;
  std::vector<uint16_t> o;
  std::vector<float> lse;
  attn::core::TileCounters counts{};
};

/// Calls work(i) for each i in [0, count) from all cores; calls are handed out as cores come free.
void parallelFor(int64_t count, const std::function<void(int64_t)> &work);

/// The reference, tokens shared out to all cores.
attn::reference::Output parallelReference(const attn::core::Problem &problem);

} // namespace device

#endif // ATTN_TEST_DEVICE_WORKLOAD_H
