// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Batches for device tests: lengths, ranges, tables and parameters of every mask of
// build_artifacts.py, with what each mask keeps written by hand.
#ifndef ATTN_TEST_DEVICE_SCENE_H
#define ATTN_TEST_DEVICE_SCENE_H

#include "../Execution/Predicates.h"

#include "attn/Core/Manifest.h"
#include "attn/Runtime/BatchBinding.h"

#include <random>
#include <string>
#include <utility>
#include <vector>

namespace device {

using truth::Int;

/// Entries of a tile that kernels hand over in shared memory; they read further ones elsewhere.
constexpr Int kManyRuns = 16;

/// Everything that some mask reads; each takes what it declares.
struct Scene {
  std::vector<truth::Request> requests;
  std::vector<std::pair<Int, Int>> keys; ///< of the launch, [begin, end) of each request
  std::vector<Int> firstToken;           ///< of each request
  Int left = 0;
  Int globalTokens = 0;
  double scale = 0.1, cap = 20;
  std::vector<int32_t> prefixLen; ///< [request]
  std::vector<int32_t> radii;     ///< [head]
  std::vector<float> slopes;      ///< [head]
  std::vector<int32_t> qBranch;   ///< [token]
  std::vector<int32_t> kBranch;   ///< [request, kStride]
  Int kStride = 0;
  bool manyRuns = false; ///< every tile has more than kManyRuns runs of key blocks, if it is a mask
                         ///< by branches
  std::string what;      ///< for reports

  Int tokens() const;
};

struct Family {
  const char *name; ///< of the kernel
  bool (*keep)(const Scene &, Int b, Int h, Int q, Int k);
  bool perHead; ///< keep() differs from head to head
  bool flat;    ///< with K = 0 every kept key has weight 1
};

/// The family of a kernel, or null.
const Family *familyOf(const std::string &kernel);

/// 1 to 6 requests: decode rows, chunks, prompts, more queries than keys, nothing scheduled.
/// `number` decides what the batch must hold: a request without queries first, in the middle or
/// last; in every second one a range longer than the window; in every fourth a part of the keys.
Scene randomScene(int number, Int heads, std::mt19937 &rng);

/// As randomScene, with queries for exactly `tiles` query tiles of `queryTile` rows.
/// With `manyRuns` the scene is one of those; `number` then has to ask for all keys.
Scene smallScene(int number, Int heads, Int tiles, Int queryTile, bool manyRuns, std::mt19937 &rng);

/// 1 to 64 requests with up to 64 ranges and a window of `left`.
Scene manyRequests(Int left, Int heads, std::mt19937 &rng);

/// The scene as a batch of a kernel.
attn::rt::BatchInput batchInput(const Scene &scene, const attn::core::KernelSpec &spec);

} // namespace device

#endif // ATTN_TEST_DEVICE_SCENE_H
