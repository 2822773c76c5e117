// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Core/Recipe.h"

#include <algorithm>
#include <array>
#include <utility>

using namespace attn;
using namespace attn::core;

static constexpr std::array kKinds = {RecipeKind::RangeTensor, RecipeKind::PageRuns,
                                      RecipeKind::SplitPlan};
static constexpr std::array kPolicies = {SplitPolicy::Count, SplitPolicy::Measured,
                                         SplitPolicy::Sm100Relbias};

std::string_view core::toString(RecipeKind kind) {
  switch (kind) {
  case RecipeKind::RangeTensor:
    return "range_tensor";
  case RecipeKind::PageRuns:
    return "page_runs";
  case RecipeKind::SplitPlan:
    break;
  }
  return "split_plan";
}

std::string_view core::toString(SplitPolicy policy) {
  switch (policy) {
  case SplitPolicy::Count:
    return "count";
  case SplitPolicy::Measured:
    return "measured";
  case SplitPolicy::Sm100Relbias:
    break;
  }
  return "sm100_relbias";
}

template <class Values>
static auto findNamed(const Values &values, std::string_view text) {
  using Value = typename Values::value_type;
  const auto at =
      std::find_if(values.begin(), values.end(), [&](Value v) { return toString(v) == text; });
  return at == values.end() ? std::nullopt : std::optional<Value>(*at);
}

std::optional<RecipeKind> core::parseRecipeKind(std::string_view text) {
  return findNamed(kKinds, text);
}
std::optional<SplitPolicy> core::parseSplitPolicy(std::string_view text) {
  return findNamed(kPolicies, text);
}

using Fault = std::optional<std::string>;

static Fault outside(const char *what, int64_t value, int64_t most) {
  if (value >= 1 && value <= most)
    return std::nullopt;
  return std::string(what) + " " + std::to_string(value) + ", expected 1 to " +
         std::to_string(most);
}

static Fault checkRecipe(const Recipe &recipe, const std::vector<TableDecl> &tables) {
  switch (recipe.kind) {
  case RecipeKind::RangeTensor:
    if (recipe.source < 0 || recipe.source >= static_cast<int32_t>(tables.size()))
      return "no source table " + std::to_string(recipe.source);
    if (const TableDecl &source = tables[recipe.source]; source.kind != TableKind::Ranges)
      return "source table '" + source.name + "' is of kind " + std::string(toString(source.kind)) +
             ", expected ranges";
    return outside("per_request", recipe.perRequest, kMostRangesPerRequest);
  case RecipeKind::PageRuns:
    return outside("page_size", recipe.pageSize, kMostRecipePageSize);
  case RecipeKind::SplitPlan:
    break;
  }
  if (Fault fault = outside("pieces", recipe.pieces, kMostSplitPieces))
    return fault;
  return outside("ctas_per_sm", recipe.ctasPerSm, kMostCtasPerSm);
}

/// What C strings, terminals and JSON all take as it is.
static bool isNameChar(char c) { return c >= ' ' && c <= '~'; }

Fault core::verifyRecipes(const std::vector<Recipe> &recipes,
                          const std::vector<TableDecl> &tables) {
  constexpr std::array kParts = {"work", "tiles", "entries", "visible"};
  for (size_t i = 0; i < recipes.size(); ++i) {
    const Recipe &recipe = recipes[i];
    if (recipe.name.empty())
      return "recipe " + std::to_string(i) + " has no name";
    if (!std::all_of(recipe.name.begin(), recipe.name.end(), isNameChar))
      return "recipe " + std::to_string(i) +
             ": its name has other characters than printable ones of ASCII";
    const std::string place = "recipe '" + recipe.name + "': ";
    for (size_t j = 0; j < i; ++j)
      if (recipes[j].name == recipe.name)
        return place + "a second one of this name";
    for (const TableDecl &table : tables)
      if (table.name == recipe.name)
        return place + "a table has this name";
    if (std::find(kParts.begin(), kParts.end(), recipe.name) != kParts.end())
      return place + "a part of every step has this name";
    if (Fault fault = checkRecipe(recipe, tables))
      return place + *fault;
  }
  return std::nullopt;
}
