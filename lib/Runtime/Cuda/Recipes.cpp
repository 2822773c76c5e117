// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Recipes of a step: checked before anything is written, built into the slot beside the tables, and
// shown where they lie.
#include "Recipes.h"

#include "PlanImpl.h"

#include "attn/Core/IntMath.h"
#include "attn/Runtime/CudaRecipes.h"

#include <algorithm>
#include <limits>

using namespace attn;
using namespace attn::core;
using namespace attn::rt;
using namespace attn::rt::cuda;

/// Entries of a list whose tiles are cut into so many pieces; at most what no memory has.
static int64_t moreEntries(const WorkListSizes &list, int64_t pieces) {
  int64_t entries = 0;
  if (__builtin_mul_overflow(list.tiles, pieces - 1, &entries) ||
      __builtin_add_overflow(entries, list.entries, &entries))
    return std::numeric_limits<int64_t>::max();
  return entries;
}

RecipeArrays cuda::mostArrays(const Recipe &recipe, const StepLimits &limits,
                              const WorkListSizes &list) {
  RecipeArrays arrays;
  arrays[kRecipeCounts] = {1, sizeof(RecipeCounts)};
  switch (recipe.kind) {
  case RecipeKind::RangeTensor:
    arrays[kRecipeData] = {limits.requests, recipe.perRequest * int64_t(sizeof(Range))};
    break;
  case RecipeKind::PageRuns:
    arrays[kRecipeData] = {limits.pages, sizeof(PageRun)};
    arrays[kRecipeOffsets] = {limits.requests + 1, sizeof(int64_t)};
    break;
  case RecipeKind::SplitPlan:
    // An entry is cut where a piece begins, but for the first of a tile.
    arrays[kRecipeData] = {list.tiles, recipe.pieces * int64_t(sizeof(SplitPiece))};
    arrays[kRecipeOffsets] = {list.tiles + 1, sizeof(int32_t)};
    arrays[kRecipeEntries] = {moreEntries(list, recipe.pieces), sizeof(TileEntry)};
    arrays[kRecipeWork] = {list.work, recipe.pieces * int64_t(sizeof(SplitWork))};
    arrays[kRecipeCombines] = {recipe.pieces > 1 ? list.work : 0, sizeof(SplitCombine)};
    break;
  }
  return arrays;
}

int64_t cuda::recipePages(const std::vector<Recipe> &recipes, const BatchShape &shape) {
  int64_t pages = 0;
  for (const Recipe &recipe : recipes)
    if (recipe.kind == RecipeKind::PageRuns)
      pages = std::max(pages, mostPageRuns(shape, recipe.pageSize));
  return pages;
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

/// The table is there, its pages are the recipe's, and a row of it has an entry for every key.
static Status checkPageTable(const Recipe &recipe, const BatchShape &shape,
                             const PageTable &pages) {
  const auto refuse = [&](const std::string &what) {
    return Error{"recipe '" + recipe.name + "': " + what};
  };
  if (!pages.entries) {
    const int64_t held = mostPageRuns(shape, recipe.pageSize);
    if (held == 0)
      return {};
    return refuse("the step has no block table on the host, expected one for " +
                  std::to_string(held) + " pages");
  }
  if (pages.pageSize != recipe.pageSize)
    return refuse("the step has pages of " + std::to_string(pages.pageSize) + " keys, expected " +
                  std::to_string(recipe.pageSize));
  for (int64_t b = 0; b < shape.numReqs(); ++b) {
    const int64_t entries = ceilDiv(shape.keyEnd[b], pages.pageSize);
    if (shape.keyBegin[b] < shape.keyEnd[b] && entries > pages.stride)
      return refuse("request " + std::to_string(b) + " has " + std::to_string(entries) +
                    " pages, the block table has " + std::to_string(pages.stride) +
                    " entries a request");
  }
  return {};
}

Status cuda::checkRecipes(const std::vector<Recipe> &recipes, const Batch &batch,
                          const PageTable &pages, CudaStepFault &fault) {
  for (const Recipe &recipe : recipes) {
    if (recipe.kind == RecipeKind::PageRuns) {
      fault = CudaStepFault::Unsuited;
      if (Status status = checkPageTable(recipe, batch.shape, pages); !status)
        return status;
    }
    if (recipe.kind != RecipeKind::RangeTensor)
      continue;
    fault = CudaStepFault::TooLarge;
    const int64_t most = mostRanges(batch.tables[recipe.source]);
    if (most > recipe.perRequest)
      return Error{"recipe '" + recipe.name + "': a request of the step has " +
                   std::to_string(most) + " ranges, the recipe was made for " +
                   std::to_string(recipe.perRequest)};
  }
  return {};
}

//===----------------------------------------------------------------------===//
// Building
//===----------------------------------------------------------------------===//

namespace {

/// The arrays of one recipe in a slot's memory.
class RecipeMemory {
public:
  RecipeMemory(uint8_t *slot, const RecipePlace &place) : slot(slot), place(place) {}

  template <class T>
  Span<T> array(RecipePart part) const {
    const Section &section = place[part];
    return {reinterpret_cast<T *>(slot + section.offset),
            static_cast<int64_t>(section.bytes / sizeof(T))};
  }
  RecipeCounts &counts() const { return array<RecipeCounts>(kRecipeCounts)[0]; }

private:
  uint8_t *slot;
  const RecipePlace &place;
};

/// Bytes of the arrays that a step has.
using UsedBytes = std::array<int64_t, kNumRecipeParts>;

} // namespace

static Result<UsedBytes> writeRangeTensor(const Recipe &recipe, const Batch &batch, bool forGraphs,
                                          const RecipeMemory &memory) {
  const Span<Range> tensor = memory.array<Range>(kRecipeData);
  const int64_t size = batch.shape.numReqs() * recipe.perRequest;
  Result<int64_t> count =
      buildRangeTensor(batch.shape, batch.tables[recipe.source], recipe.perRequest, tensor);
  if (!count)
    return count.takeError();
  memory.counts().items = *count;
  UsedBytes used = {};
  if (*count == 0 && !forGraphs)
    return used;
  if (*count == 0)
    std::fill_n(tensor.data, size, Range{-1, -1});
  used[kRecipeData] = size * static_cast<int64_t>(sizeof(Range));
  return used;
}

static Result<UsedBytes> writePageRuns(const Recipe &recipe, const BatchShape &shape,
                                       const PageTable &pages, const RecipeMemory &memory) {
  // Without a table there is no page either.
  PageTable table = pages;
  table.pageSize = recipe.pageSize;
  Result<int64_t> count = buildPageRuns(shape, table, memory.array<PageRun>(kRecipeData),
                                        memory.array<int64_t>(kRecipeOffsets));
  if (!count)
    return count.takeError();
  memory.counts().items = *count;
  UsedBytes used = {};
  used[kRecipeData] = *count * static_cast<int64_t>(sizeof(PageRun));
  used[kRecipeOffsets] = (shape.numReqs() + 1) * static_cast<int64_t>(sizeof(int64_t));
  return used;
}

static Result<UsedBytes> writeSplitPlan(const Splits &splits, const WorkListView &list,
                                        int64_t keyTile, const RecipeMemory &memory) {
  const Result<SplitSizes> sizes =
      fillSplitPlan(list, splits, keyTile,
                    {memory.array<SplitPiece>(kRecipeData), memory.array<int32_t>(kRecipeOffsets),
                     memory.array<TileEntry>(kRecipeEntries), memory.array<SplitWork>(kRecipeWork),
                     memory.array<SplitCombine>(kRecipeCombines)});
  if (!sizes)
    return Error{sizes.message()};
  RecipeCounts &counts = memory.counts();
  counts.tiles = sizes->tiles;
  counts.pieces = sizes->pieces;
  counts.entries = sizes->entries;
  counts.work = sizes->work;
  counts.combines = sizes->combines;
  counts.partialRows = sizes->partialRows;
  UsedBytes used = {};
  used[kRecipeData] = sizes->pieces * static_cast<int64_t>(sizeof(SplitPiece));
  used[kRecipeOffsets] = (sizes->tiles + 1) * static_cast<int64_t>(sizeof(int32_t));
  used[kRecipeEntries] = sizes->entries * static_cast<int64_t>(sizeof(TileEntry));
  used[kRecipeWork] = sizes->work * static_cast<int64_t>(sizeof(SplitWork));
  used[kRecipeCombines] = sizes->combines * static_cast<int64_t>(sizeof(SplitCombine));
  return used;
}

/// What the policy of a split plan asks for in this step.
Splits CudaPlan::Impl::chooseSplits(const Recipe &recipe, const BatchShape &shape) const {
  const KernelSpec &spec = kernel->spec();
  MeasuredLaunch measured;
  measured.sms = kernel->device()->multiprocessors();
  measured.keyTile = kernel->shape().keyTile;
  measured.dimQk = spec.dimQk;
  measured.dimV = spec.dimV;
  measured.kvElement = byteSize(spec.kvType);
  RelbiasLaunch relbias;
  relbias.target = kernel->binary().target;
  relbias.requests = shape.numReqs();
  relbias.heads = spec.numHeads;
  relbias.kvHeads = spec.numKvHeads;
  relbias.keys = needs.longest;
  for (int64_t b = 0; b < shape.numReqs(); ++b)
    relbias.longestQuery = std::max(relbias.longestQuery, shape.queryLen(RequestIndex(b)));
  return splitsOf(recipe, list, measured, relbias);
}

Status CudaPlan::Impl::writeRecipes(const Batch &batch, const PageTable &pages) {
  const std::vector<Recipe> &recipes = kernel->binary().recipes;
  for (size_t i = 0; i < recipes.size(); ++i) {
    const Recipe &recipe = recipes[i];
    const RecipePlace &place = layout.recipes[i];
    const RecipeMemory memory(hostSlot(), place);
    memory.counts().requests = batch.shape.numReqs();
    recipeSplits[i] = {};
    Result<UsedBytes> bytes = [&]() -> Result<UsedBytes> {
      switch (recipe.kind) {
      case RecipeKind::RangeTensor:
        return writeRangeTensor(recipe, batch, options.forGraphs, memory);
      case RecipeKind::PageRuns:
        return writePageRuns(recipe, batch.shape, pages, memory);
      case RecipeKind::SplitPlan:
        break;
      }
      recipeSplits[i] = chooseSplits(recipe, batch.shape);
      return writeSplitPlan(recipeSplits[i], list, kernel->shape().keyTile, memory);
    }();
    if (!bytes)
      return Error{"recipe '" + recipe.name + "': " + bytes.message()};
    (*bytes)[kRecipeCounts] = sizeof(RecipeCounts);
    for (size_t part = 0; part < kNumRecipeParts; ++part)
      if ((*bytes)[part])
        used.push_back({place[part].offset, static_cast<uint64_t>((*bytes)[part])});
  }
  return {};
}

//===----------------------------------------------------------------------===//
// Access
//===----------------------------------------------------------------------===//

Result<CudaRecipe> CudaPlan::recipe(std::string_view name) const {
  const std::vector<Recipe> &recipes = impl->kernel->binary().recipes;
  const auto at = std::find_if(recipes.begin(), recipes.end(),
                               [&](const Recipe &recipe) { return recipe.name == name; });
  if (at == recipes.end()) {
    std::string known;
    for (const Recipe &recipe : recipes)
      known += (known.empty() ? "" : ", ") + recipe.name;
    return Error{"kernel '" + impl->kernel->spec().name + "' has no recipe '" + std::string(name) +
                 "' (it has: " + (known.empty() ? "none" : known) + ")"};
  }
  if (!impl->isBuilt)
    return Error{"recipe '" + std::string(name) + "': the plan has no step"};
  const size_t number = static_cast<size_t>(at - recipes.begin());
  const RecipePlace &place = impl->layout.recipes[number];
  const auto arrayAt = [&](auto &array, const Section &section, int64_t count) {
    using T = std::remove_reference_t<decltype(array.host[0])>;
    array.host = {reinterpret_cast<T *>(impl->hostSlot() + section.offset), count};
    array.device = impl->deviceSlot() + section.offset;
  };
  CudaRecipe result;
  result.recipe = &*at;
  result.splits = impl->recipeSplits[number];
  arrayAt(result.counts, place[kRecipeCounts], 1);
  const RecipeCounts &counts = result.counts.host[0];
  switch (at->kind) {
  case RecipeKind::RangeTensor: {
    const bool isEmpty = counts.items == 0 && !impl->options.forGraphs;
    arrayAt(result.ranges, place[kRecipeData], isEmpty ? 0 : counts.requests * at->perRequest);
    break;
  }
  case RecipeKind::PageRuns:
    arrayAt(result.runs, place[kRecipeData], counts.items);
    arrayAt(result.offsets, place[kRecipeOffsets], counts.requests + 1);
    break;
  case RecipeKind::SplitPlan:
    arrayAt(result.pieces, place[kRecipeData], counts.pieces);
    arrayAt(result.pieceBegin, place[kRecipeOffsets], counts.tiles + 1);
    arrayAt(result.entries, place[kRecipeEntries], counts.entries);
    arrayAt(result.work, place[kRecipeWork], counts.work);
    arrayAt(result.combines, place[kRecipeCombines], counts.combines);
    arrayAt(result.tiles, impl->layout.tiles, impl->list.tiles.size);
    arrayAt(result.visible, impl->layout.visible, impl->list.visible.size);
    break;
  }
  return result;
}
