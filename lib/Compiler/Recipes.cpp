// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Recipes as they are asked for: text, and the tables of a kernel that they name.

#include "Recipes.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace attn;
using compiler::CompileOptions;
using compiler::RecipeRequest;
using core::RecipeKind;
using core::SplitPolicy;

static llvm::Error refuse(const Twine &text) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), text);
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

namespace {

/// Reads the members of "KIND,key=value,...". The first fault sticks.
class RecipeText {
public:
  explicit RecipeText(StringRef text) {
    SmallVector<StringRef> words;
    text.split(words, ',');
    kind = words.front();
    for (StringRef word : ArrayRef(words).drop_front()) {
      auto [key, value] = word.split('=');
      if (key.empty() || value.empty())
        fail("expected key=value, got '" + word + "'");
      else if (!members.insert({key, value}).second)
        fail(key + " is given twice");
      order.push_back(key);
    }
  }

  StringRef getKind() const { return kind; }

  std::string text(StringRef key, StringRef missing = "") {
    known.push_back(key);
    auto at = members.find(key);
    return (at == members.end() ? missing : at->second).str();
  }
  std::string requiredText(StringRef key) {
    std::string value = text(key);
    if (value.empty())
      fail("expected " + key + "=...");
    return value;
  }
  /// An integer, 1 to `most`; without `missing` it has to be there.
  int64_t number(StringRef key, int64_t most, std::optional<int64_t> missing = std::nullopt) {
    std::string value = missing ? text(key) : requiredText(key);
    if (value.empty())
      return missing.value_or(1);
    int64_t result = 0;
    if (StringRef(value).getAsInteger(10, result) || result < 1 || result > most)
      fail(key + ": expected 1 to " + Twine(most) + ", got '" + value + "'");
    return result;
  }
  bool flag(StringRef key) {
    std::string value = text(key, "no");
    if (value != "yes" && value != "no")
      fail(key + ": expected yes or no, got '" + value + "'");
    return value == "yes";
  }
  void fail(const Twine &why) {
    if (fault.empty())
      fault = ("recipe '" + kind + "': " + why).str();
  }
  /// The first fault, or the first key that nobody asked for.
  llvm::Error finish() {
    for (StringRef key : order)
      if (!llvm::is_contained(known, key))
        fail("unknown key '" + key + "', expected one of: " + llvm::join(known, ", "));
    return fault.empty() ? llvm::Error::success() : refuse(fault);
  }

private:
  StringRef kind;
  llvm::StringMap<StringRef> members;
  SmallVector<StringRef> order;
  SmallVector<StringRef> known;
  std::string fault;
};

} // namespace

static void readSplitPlan(RecipeText &text, core::Recipe &recipe) {
  std::string policy = text.requiredText("policy");
  std::optional<SplitPolicy> known = core::parseSplitPolicy(policy);
  if (!known)
    text.fail("policy: expected one of: count, measured, sm100_relbias, got '" + policy + "'");
  recipe.policy = known.value_or(SplitPolicy::Count);
  recipe.pieces = text.number("pieces", core::kMostSplitPieces);
  if (recipe.policy == SplitPolicy::Measured)
    recipe.ctasPerSm = text.number("ctas_per_sm", core::kMostCtasPerSm, 1);
  if (recipe.policy == SplitPolicy::Sm100Relbias)
    recipe.isLocal = text.flag("local");
}

llvm::Expected<RecipeRequest> compiler::parseRecipe(StringRef given) {
  RecipeText text(given);
  std::optional<RecipeKind> kind = core::parseRecipeKind(text.getKind().str());
  if (!kind)
    return refuse("unknown recipe '" + text.getKind() +
                  "', expected one of: range_tensor, page_runs, split_plan");
  RecipeRequest request;
  request.recipe.kind = *kind;
  request.recipe.name = text.text("name", text.getKind());
  switch (*kind) {
  case RecipeKind::RangeTensor:
    request.table = text.text("table");
    request.recipe.perRequest = text.number("per_request", core::kMostRangesPerRequest);
    break;
  case RecipeKind::PageRuns:
    request.recipe.pageSize = text.number("page_size", core::kMostRecipePageSize);
    break;
  case RecipeKind::SplitPlan:
    readSplitPlan(text, request.recipe);
    break;
  }
  if (llvm::Error error = text.finish())
    return error;
  return request;
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

llvm::Error compiler::checkRecipeTargets(const CompileOptions &options) {
  if (options.recipes.empty() || llvm::any_of(options.targets, compiler::isGpuTarget))
    return llvm::Error::success();
  std::vector<std::string> gpus;
  llvm::copy_if(compiler::targets(), std::back_inserter(gpus), compiler::isGpuTarget);
  return refuse("recipe '" + options.recipes.front().recipe.name + "': target '" +
                options.targets.front() +
                "' has no recipes, expected one of: " + llvm::join(gpus, ", "));
}

/// Number of the ranges table called `name`, or of the only one; else why there is none.
static FailureOr<int32_t> findRanges(KernelOp kernel, const RecipeRequest &request,
                                     ArrayRef<core::TableDecl> tables) {
  std::vector<std::string> names;
  std::optional<int32_t> found;
  for (auto [i, table] : llvm::enumerate(tables)) {
    if (table.kind != core::TableKind::Ranges)
      continue;
    names.push_back(table.name);
    if (request.table.empty() || request.table == table.name)
      found = static_cast<int32_t>(i);
  }
  if (found && (!request.table.empty() || names.size() == 1))
    return *found;
  InFlightDiagnostic error = kernel.emitError("recipe '") << request.recipe.name << "': ";
  if (names.empty())
    return error << "the kernel has no table of ranges";
  if (request.table.empty())
    return error << "expected table=..., one of: " << llvm::join(names, ", ");
  return error << "the kernel has no table of ranges '" << request.table
               << "', expected one of: " << llvm::join(names, ", ");
}

LogicalResult compiler::addRecipes(KernelOp kernel, ArrayRef<RecipeRequest> requests,
                                   core::KernelBinary &binary) {
  for (const RecipeRequest &request : requests) {
    core::Recipe &recipe = binary.recipes.emplace_back(request.recipe);
    if (recipe.kind != RecipeKind::RangeTensor)
      continue;
    FailureOr<int32_t> source = findRanges(kernel, request, binary.tables);
    if (failed(source))
      return failure();
    recipe.source = *source;
  }
  if (std::optional<std::string> fault = core::verifyRecipes(binary.recipes, binary.tables))
    return kernel.emitError(*fault);
  return success();
}
