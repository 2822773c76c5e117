// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Places of what recipes build, and the batches they can be built from.
#ifndef ATTN_LIB_RUNTIME_CUDA_RECIPES_H
#define ATTN_LIB_RUNTIME_CUDA_RECIPES_H

#include "attn/Core/Manifest.h"
#include "attn/Runtime/Builders.h"
#include "attn/Runtime/CudaStage.h"
#include "attn/Runtime/WorkList.h"

#include <array>
#include <vector>

namespace attn::rt::cuda {

/// Arrays of a recipe, in the order they lie in a slot. Which of them it has depends on its kind.
enum RecipePart : size_t {
  kRecipeCounts,
  kRecipeData,    ///< ranges, page runs or pieces
  kRecipeOffsets, ///< of page runs; of pieces, a tile
  kRecipeEntries,
  kRecipeWork,
  kRecipeCombines,
  kNumRecipeParts
};

/// Elements of an array and bytes of each.
struct RecipeArray {
  int64_t count = 0;
  int64_t width = 0;
};
using RecipeArrays = std::array<RecipeArray, kNumRecipeParts>;

/// What a recipe takes at most. `list`: of the largest step's work list.
RecipeArrays mostArrays(const core::Recipe &recipe, const StepLimits &limits,
                        const WorkListSizes &list);

/// Pages that hold keys of the batch, as the recipe with most of them counts; 0 without such a
/// recipe.
int64_t recipePages(const std::vector<core::Recipe> &recipes, const core::BatchShape &shape);

/// Whether the recipes' own limits hold, and what they are built from is there; else `fault` says
/// which of the two is not so.
core::Status checkRecipes(const std::vector<core::Recipe> &recipes, const core::Batch &batch,
                          const PageTable &pages, CudaStepFault &fault);

} // namespace attn::rt::cuda

#endif // ATTN_LIB_RUNTIME_CUDA_RECIPES_H
