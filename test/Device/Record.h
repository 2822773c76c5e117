// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Results of a series of runs in a file, and how far those of another device are from them.
#ifndef ATTN_TEST_DEVICE_RECORD_H
#define ATTN_TEST_DEVICE_RECORD_H

#include "attn/Core/CudaAbi.h"
#include "attn/Core/Status.h"
#include "attn/Core/Tensor.h"

#include <cstdint>
#include <string>
#include <vector>

namespace device {

/// What one launch wrote.
struct RunRecord {
  std::string what; ///< artifact and batch
  attn::core::DType type{};
  int64_t tokens = 0, heads = 0, dim = 0;
  std::vector<uint16_t> o; ///< [tokens, heads, dim]
  std::vector<float> lse;  ///< [heads, tokens]
  uint8_t isCounted = 0;   ///< 0, or 1 where `counts` is filled
  attn::core::TileCounters counts{};
};

attn::core::Status writeRecords(const std::string &path, const std::vector<RunRecord> &records);
attn::core::Result<std::vector<RunRecord>> readRecords(const std::string &path);

/// Differences of runs that should be the same.
class Agreement {
public:
  /// Adds a pair of runs; `fault` says why they cannot be compared.
  void add(const RunRecord &a, const RunRecord &b, std::string &fault);
  /// At most 1 % of the elements more than an ulp of bf16 apart, no row more than 1e-3 of its norm,
  /// the same tiles.
  bool holds() const;
  std::string text() const;

private:
  int64_t runs = 0, elements = 0, rows = 0, equal = 0, far = 0, counted = 0, otherTiles = 0;
  int64_t offRows = 0; ///< more than 1e-3 apart
  double rowF16 = 0, rowBf16 = 0, lse = 0;
};

} // namespace device

#endif // ATTN_TEST_DEVICE_RECORD_H
