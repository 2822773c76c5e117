// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Metadata of a step that code for a GPU names besides its tables: the runtime builds it every step
// in the memory of the plan and copies it with the rest, for kernels of the engine's own. Our
// kernels do not read it.
#ifndef ATTN_CORE_RECIPE_H
#define ATTN_CORE_RECIPE_H

#include "attn/Core/IndexSpaces.h"
#include "attn/Core/MaskProgram.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attn::core {

enum class RecipeKind : uint8_t {
  RangeTensor, ///< live ranges of a table, [requests, perRequest], for kernels that scan them
  PageRuns,    ///< pages of a request that lie side by side in the cache
  SplitPlan,   ///< the work list, its tiles cut into pieces of keys
};
std::string_view toString(RecipeKind kind);
std::optional<RecipeKind> parseRecipeKind(std::string_view text);

/// What decides into how many pieces a split plan cuts tiles.
enum class SplitPolicy : uint8_t {
  Count,        ///< always `pieces`, fewer where a tile has fewer blocks
  Measured,     ///< the work there is and the slots of the GPU
  Sm100Relbias, ///< the lengths of the batch; code for sm_90 stays whole
};
std::string_view toString(SplitPolicy policy);
std::optional<SplitPolicy> parseSplitPolicy(std::string_view text);

/// Bounds of a recipe's numbers, each at least 1.
constexpr int64_t kMostRangesPerRequest = int64_t(1) << 20;
constexpr int64_t kMostRecipePageSize = kPositionLimit - 1; ///< that of a batch
constexpr int64_t kMostSplitPieces = 128;
constexpr int64_t kMostCtasPerSm = 32;

struct Recipe {
  std::string name; ///< unique among recipes, tables and the other parts of a step
  RecipeKind kind = RecipeKind::RangeTensor;

  // RangeTensor.
  int32_t source = -1;    ///< number of a Ranges table
  int64_t perRequest = 0; ///< ranges of a request at most; a step with more is refused

  // PageRuns.
  int64_t pageSize = 0; ///< keys of a page; a step with other pages is refused

  // SplitPlan.
  SplitPolicy policy = SplitPolicy::Count;
  int64_t pieces = 0;    ///< of a tile at most, whatever the policy asks for
  int64_t ctasPerSm = 1; ///< Measured: CTAs of the splitting kernel on a multiprocessor at a time
  bool isLocal = false;  ///< Sm100Relbias: the mask has a window
};

/// Why `recipes` cannot be those of code with `tables`, or nothing. The message names the recipe.
std::optional<std::string> verifyRecipes(const std::vector<Recipe> &recipes,
                                         const std::vector<TableDecl> &tables);

} // namespace attn::core

#endif // ATTN_CORE_RECIPE_H
