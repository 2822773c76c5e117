// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Steps that a plan's recipes cannot be built from, and what needs no block table.
#include "CudaRecipes.h"

using namespace attn;
using namespace attn::core;
using namespace testing_rt;

namespace {

class CudaRecipeRefusals : public CudaRecipes {
protected:
  /// Three requests with 3, 2 and 0 ranges and 2, 1 and 0 pages.
  void SetUp() override {
    CudaRecipes::SetUp();
    BatchShape &shape = step.batch.shape;
    Random random(1);
    step.draw(random);
    shape.queryStartLoc = {0, 4, 5, 5};
    shape.seqLen = shape.keyEnd = {20, 9, 0};
    shape.contextLen = {16, 8, 0};
    shape.keyBegin = {0, 0, 0};
    step.batch.tables[0].ranges = {{1, 2}, {3, 4}, {5, 6}, {1, 3}, {2, 4}};
    step.batch.tables[0].rangeOffsets = {0, 3, 5, 5};
    step.table.assign(kRequests * kWidth, 3);
  }
  std::string refusal(rt::CudaPlan &plan, const rt::PageTable &pages, rt::CudaStepFault fault) {
    Status status = plan.build(step.batch, nullptr, nullptr, {}, pages);
    EXPECT_EQ(plan.fault(), status ? rt::CudaStepFault::None : fault);
    if (status)
      return "built";
    EXPECT_EQ(plan.recipe(kernel->binary().recipes[0].name).message(),
              "recipe '" + kernel->binary().recipes[0].name + "': the plan has no step");
    return status.message();
  }
  Step step;
};

using Fault = rt::CudaStepFault;

TEST_F(CudaRecipeRefusals, StepsThatAreTooLargeNameBothNumbers) {
  std::vector<Recipe> recipes = {rangeTensor(), pageRuns()};
  recipes[0].perRequest = 2;
  load(recipes);
  {
    rt::CudaPlan plan = makePlan(options());
    EXPECT_EQ(refusal(plan, step.pages(), Fault::TooLarge),
              "recipe 'images': a request of the step has 3 ranges, the recipe was made for 2");
    rt::CudaPlan growing(*kernel);
    EXPECT_EQ(refusal(growing, step.pages(), Fault::TooLarge),
              "recipe 'images': a request of the step has 3 ranges, the recipe was made for 2");
  }
  load(allRecipes());
  for (auto [pages, message] :
       {std::pair(2, "the step has 3 pages with keys, the plan was made for 2"),
        std::pair(0, "the step has 3 pages with keys, the plan was made for 0"),
        std::pair(3, "built")}) {
    rt::CudaPlanOptions o = options();
    o.limits.pages = pages;
    rt::CudaPlan plan = makePlan(o);
    EXPECT_EQ(refusal(plan, step.pages(), Fault::TooLarge), message);
  }
  rt::CudaPlanOptions o = options();
  o.limits.pages = -1;
  EXPECT_EQ(rt::CudaPlan::create(*kernel, o).message(),
            "step limits: -1 pages, expected 0 to 2147483647");
}

TEST_F(CudaRecipeRefusals, StepsWithoutTheBlockTable) {
  load({pageRuns()});
  rt::CudaPlan plan = makePlan(options());
  rt::PageTable pages = step.pages();
  EXPECT_EQ(refusal(plan, {}, Fault::Unsuited),
            "recipe 'runs': the step has no block table on the host, expected one for 3 pages");
  pages.pageSize = 32;
  EXPECT_EQ(refusal(plan, pages, Fault::Unsuited),
            "recipe 'runs': the step has pages of 32 keys, expected 16");
  pages = step.pages();
  pages.stride = 1;
  EXPECT_EQ(refusal(plan, pages, Fault::Unsuited),
            "recipe 'runs': request 0 has 2 pages, the block table has 1 entries a request");
  pages.stride = 2;
  EXPECT_EQ(refusal(plan, pages, Fault::Unsuited), "built");
  // Nothing is read of a table where there are no keys.
  step.batch.shape.keyEnd = {0, 0, 0};
  EXPECT_EQ(refusal(plan, {}, Fault::Unsuited), "built");
  EXPECT_EQ(plan.recipe("runs")->runs.host.size, 0);
  EXPECT_EQ(plan.recipe("runs")->offsets.host.size, 4);
  expectStep(plan, step, false);
}

TEST_F(CudaRecipeRefusals, TheBlockTableIsForPageRunsOnly) {
  load({rangeTensor(), splitPlan(SplitPolicy::Count, 2, "halves")});
  rt::CudaPlanOptions o = options();
  o.limits.pages = 0;
  rt::CudaPlan plan = makePlan(o);
  EXPECT_EQ(refusal(plan, {}, Fault::None), "built");
  expectStep(plan, step, false);
}

TEST_F(CudaRecipeRefusals, NamesThatAreNotThere) {
  load({rangeTensor(), pageRuns()});
  {
    rt::CudaPlan plan = makePlan(options());
    EXPECT_EQ(plan.recipe("runs").message(), "recipe 'runs': the plan has no step");
    ASSERT_TRUE(build(plan, step).ok());
    EXPECT_EQ(plan.recipe("pages").message(),
              "kernel 'tiny' has no recipe 'pages' (it has: images, runs)");
  }
  load({});
  rt::CudaPlan none = makePlan(options());
  EXPECT_EQ(none.recipe("pages").message(), "kernel 'tiny' has no recipe 'pages' (it has: none)");
}

TEST_F(CudaRecipeRefusals, RecipesThatAreNone) {
  const auto message = [&](const Recipe &recipe) {
    load({recipe});
    const std::string planned = rt::CudaPlan::create(*kernel, options()).message();
    EXPECT_EQ(rt::CudaPlan::querySizes(kernel->spec(), kernel->binary(), options()).message(),
              planned);
    return planned;
  };
  Recipe recipe = rangeTensor();
  recipe.source = 1;
  EXPECT_EQ(message(recipe), "kernel 'tiny': recipe 'images': source table 'slopes' is of kind "
                             "plain, expected ranges");
  recipe = pageRuns();
  recipe.pageSize = 0;
  EXPECT_EQ(message(recipe), "kernel 'tiny': recipe 'runs': page_size 0, expected 1 to 1073741823");
}

} // namespace
