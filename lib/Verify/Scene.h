// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One batch and one element of its masks: what a counterexample is, replayed by Core's evaluator
// and written as a batch file.
#ifndef ATTN_LIB_VERIFY_SCENE_H
#define ATTN_LIB_VERIFY_SCENE_H

#include "World.h"

#include "attn/Core/Batch.h"
#include "attn/Core/MaskProgram.h"
#include "attn/Verify/Prove.h"

#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace attn::proofs {

struct Scene {
  int64_t b = 0, h = 0, q = 0, k = 0;
  int64_t seqLen = 1;                   ///< of request b; the requests before it are empty
  int64_t contextLen = 0, queryLen = 1; ///< of request b
  int64_t heads = 1, kvHeads = 1;
  std::map<std::string, core::ParamValue> params;
  std::map<std::string, std::vector<core::Range>> ranges; ///< of request b
  std::map<std::string, std::vector<int32_t>> documents;  ///< of request b
  struct Table {
    std::vector<int64_t> extents; ///< one for each explicit dim
    /// By explicit indices; 0 elsewhere. Floats as their bits.
    std::map<std::vector<int64_t>, int64_t> elements;
  };
  std::map<std::string, Table> tables;
};

/// The scene that a model describes; nothing if it is too large to be one. Tables are as small as
/// what is read of them allows. `fewKeys`: no keys behind k, which may make another mask of it.
std::optional<Scene> makeScene(const Observations &seen, const std::map<std::string, Wide> &model,
                               int64_t heads, int64_t kvHeads, bool fewKeys);

/// A random small scene with everything that the programs declare.
Scene makeRandomScene(std::mt19937 &random, const std::vector<const core::MaskProgram *> &programs,
                      int64_t heads, int64_t kvHeads);

/// Fills the tables that are views of documents (ProveOptions::documentViews).
void addDocumentViews(Scene &scene, const core::MaskProgram &program,
                      const std::map<std::string, std::string> &views);

/// The batch of a scene for one program; nothing if a table would be too large.
std::optional<core::Batch> makeBatch(const Scene &scene, const core::MaskProgram &program);

/// The scene as one line of a batch file (docs/batch.md) for a kernel with these declarations;
/// nothing if its tables hold more than kMaxPrinted numbers.
std::optional<std::string> toJson(const Scene &scene, const core::MaskProgram &program);

} // namespace attn::proofs

#endif // ATTN_LIB_VERIFY_SCENE_H
