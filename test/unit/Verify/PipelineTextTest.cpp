// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Verify/Passes.h"

#include "gtest/gtest.h"

using attn::proofs::addChecks;

TEST(PipelineText, PassesOnKernelsAreChecked) {
  EXPECT_EQ(addChecks("attn.kernel(a{x=1,2 y={3}},b)", "strict"),
            "attn.kernel(attn-tv-snapshot,a{x=1,2 y={3}},attn-tv-check{strict},"
            "attn-tv-snapshot,b,attn-tv-check{strict})");
}

TEST(PipelineText, PassesOnModulesAreChecked) {
  EXPECT_EQ(addChecks("cse,convert-attn-to-loops", "timeout=3"),
            "attn.kernel(attn-tv-snapshot),cse,attn.kernel(attn-tv-check{timeout=3}),"
            "convert-attn-to-loops");
  EXPECT_EQ(addChecks("builtin.module(sccp)", ""),
            "builtin.module(attn.kernel(attn-tv-snapshot),sccp,attn.kernel(attn-tv-check{}))");
}

TEST(PipelineText, PassesOnAnyOperationAreChecked) {
  EXPECT_EQ(addChecks("any(a,b)", "strict"),
            "attn.kernel(attn-tv-snapshot),any(a,b),attn.kernel(attn-tv-check{strict})");
}

TEST(PipelineText, OtherOperationsAndOwnPassesAreLeftAlone) {
  EXPECT_EQ(addChecks("func.func(a,b),attn.kernel(attn-tv-snapshot)", ""),
            "func.func(a,b),attn.kernel(attn-tv-snapshot)");
  EXPECT_EQ(addChecks("", "strict"), "");
}
