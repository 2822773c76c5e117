// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reasons against configurations, and the selector. That they agree with the compiler is tested
// with the compiler, in test/unit/Compiler.
#include "attn/Runtime/Capability.h"

#include "attn/Core/IndexSpaces.h"

#include "TestKernel.h"

#include <gtest/gtest.h>

#include <functional>

using namespace attn;
using namespace attn::core;
using namespace testing_rt;

namespace {

using Reasons = std::vector<std::string>;

rt::Configuration gemma(const std::string &target) {
  rt::Configuration c;
  c.target = target;
  c.qType = c.kvType = "bf16";
  c.numHeads = 8;
  c.numKvHeads = 4;
  c.dimQk = c.dimV = 256;
  c.hasRanges = true;
  c.pageSize = 16;
  return c;
}

TEST(Capability, EveryReasonIsGiven) {
  EXPECT_TRUE(rt::isSupported(gemma("cpu")));
  EXPECT_TRUE(rt::isSupported(gemma("sm_90a")));
  rt::Configuration c = gemma("sm_90a");
  c.qType = "f32";
  c.kvType = "e4m3";
  c.numHeads = 33;
  c.numKvHeads = 2;
  c.dimQk = 192;
  c.dimV = 128;
  c.hasSink = true;
  c.hasSoftCap = true;
  c.numParams = 30;
  c.numTables = 42;
  c.pageSize = -1;
  c.isContextParallel = true;
  EXPECT_EQ(rt::reasonsAgainst(c),
            (Reasons{"target 'sm_90a' takes q of type f16 or bf16, got 'f32'",
                     "target 'sm_90a' takes kv of type f16 or bf16, got 'e4m3'",
                     "target 'sm_90a' takes q and kv of one type, got 'f32' and 'e4m3'",
                     "heads 33 expected to be a multiple of kv_heads 2",
                     "target 'sm_90a' takes dim_v equal to dim, got 128 and 192",
                     "target 'sm_90a' has no kernel for dim 192, expected one of 64, 128, 256",
                     "target 'sm_90a' takes no sinks",
                     "parameters and tables take " + std::to_string(kNumCudaArgs + 450) +
                         " words of kernel arguments, expected at most 448",
                     "page_size is -1, expected 0 to 1073741823",
                     "target 'sm_90a' writes no partial results in f32, which context parallelism "
                     "takes"}));
  c.target = "cpu";
  EXPECT_EQ(rt::reasonsAgainst(c),
            (Reasons{"target 'cpu' takes kv of type f32 or f16 or bf16, got 'e4m3'",
                     "heads 33 expected to be a multiple of kv_heads 2",
                     "target 'cpu' takes no sinks", "page_size is -1, expected 0 to 1073741823"}));
  c.target = "sm_100a";
  EXPECT_EQ(rt::reasonsAgainst(c),
            (Reasons{"target 'sm_100a' is not available, expected one of: cpu, sm_90a"}));
}

/// A change of one field makes one reason, and only that.
TEST(Capability, OneFieldOneReason) {
  const std::vector<std::function<void(rt::Configuration &)>> changes = {
      [](rt::Configuration &c) { c.qType = c.kvType = "f32"; },
      [](rt::Configuration &c) { c.kvType = "f16"; },
      [](rt::Configuration &c) { c.numKvHeads = 3; },
      [](rt::Configuration &c) { c.numKvHeads = 0; },
      [](rt::Configuration &c) { c.dimQk = c.dimV = 512; },
      [](rt::Configuration &c) { c.dimV = 128; },
      [](rt::Configuration &c) { c.dimQk = c.dimV = 0; },
      [](rt::Configuration &c) { c.hasSink = true; },
      [](rt::Configuration &c) { c.numTables = 45; },
      [](rt::Configuration &c) { c.pageSize = kPositionLimit; },
      [](rt::Configuration &c) { c.isContextParallel = true; },
  };
  const std::vector<size_t> expected = {2, 1, 1, 1, 1, 1, 3, 1, 1, 1, 1};
  for (size_t i = 0; i < changes.size(); ++i) {
    rt::Configuration c = gemma("sm_90a");
    changes[i](c);
    EXPECT_EQ(rt::reasonsAgainst(c).size(), expected[i]) << i;
  }
  for (int64_t pageSize : {0, 1, 3, 16, 128, 4096}) {
    rt::Configuration c = gemma("sm_90a");
    c.pageSize = pageSize;
    EXPECT_TRUE(rt::isSupported(c));
  }
}

TEST(Capability, HeadsAreCountedBeforeTheyAreDivided) {
  for (int64_t heads : {int64_t(0), int64_t(-4), kMaxKernelExtent + 1}) {
    const std::string rest = " expected to be 1 to 1048576, got " + std::to_string(heads);
    rt::Configuration c = gemma("cpu");
    c.numHeads = heads;
    c.numKvHeads = 1;
    EXPECT_EQ(rt::reasonsAgainst(c), Reasons{"heads" + rest});
    c.numKvHeads = heads;
    EXPECT_EQ(rt::reasonsAgainst(c), (Reasons{"heads" + rest, "kv_heads" + rest}));
    c.numHeads = kMaxKernelExtent;
    if (heads < 1) {
      EXPECT_EQ(rt::reasonsAgainst(c), Reasons{"kv_heads" + rest});
    }
  }
}

TEST(Capability, ConfigurationOfASpec) {
  const rt::Configuration c = rt::configurationOf(tinySpec(), "cpu");
  EXPECT_EQ(c.qType, "f32");
  EXPECT_EQ(c.kvType, "f32");
  EXPECT_EQ(c.numHeads, 4);
  EXPECT_EQ(c.numKvHeads, 2);
  EXPECT_EQ(c.dimQk, 8);
  EXPECT_EQ(c.dimV, 6);
  EXPECT_EQ(c.numParams, 2);
  EXPECT_EQ(c.numTables, 3) << "rows are built from the ranges";
  EXPECT_TRUE(c.hasRanges);
  EXPECT_FALSE(c.hasSoftCap);
  EXPECT_TRUE(rt::isSupported(c));
  EXPECT_EQ(rt::reasonsAgainst(rt::configurationOf(tinySpec(), "sm_90a")).size(), 4u);
}

//===----------------------------------------------------------------------===//
// Selection
//===----------------------------------------------------------------------===//

Kernel kernelOf(const std::string &name, bool ranges, const std::string &target = "cpu") {
  Kernel kernel;
  kernel.spec = ranges ? tinySpec() : plainSpec();
  kernel.spec.name = name;
  KernelBinary binary;
  binary.target = target;
  kernel.binaries.push_back(binary);
  return kernel;
}

TEST(KernelSelector, ByPriority) {
  const Kernel ranges = kernelOf("ranges", true), plain = kernelOf("plain", false),
               other = kernelOf("other", true);
  Result<rt::KernelSelector> selector =
      rt::KernelSelector::create({{&other, rt::KernelUse::Always, 0},
                                  {&ranges, rt::KernelUse::Always, 0},
                                  {&plain, rt::KernelUse::NoRanges, 9},
                                  {&plain, rt::KernelUse::IgnoresRanges, 5}},
                                 "cpu");
  ASSERT_TRUE(selector) << selector.message();
  EXPECT_EQ(selector->leftOut(), "");
  EXPECT_EQ(*selector->select({false, false}), &plain);
  EXPECT_EQ(*selector->select({false, true}), &plain);
  EXPECT_EQ(*selector->select({true, true}), &plain);
  EXPECT_EQ(*selector->select({true, false}), &other) << "the first of equal ones";
}

TEST(KernelSelector, RangesAreNeverDropped) {
  const Kernel plain = kernelOf("plain", false);
  Result<rt::KernelSelector> selector =
      rt::KernelSelector::create({{&plain, rt::KernelUse::NoRanges, 2},
                                  {&plain, rt::KernelUse::IgnoresRanges, 1},
                                  {&plain, rt::KernelUse::Always, 0}},
                                 "cpu");
  ASSERT_TRUE(selector);
  EXPECT_TRUE(selector->select({false, false}));
  EXPECT_TRUE(selector->select({true, true}));
  EXPECT_EQ(selector->select({true, false}).message(),
            "selector: no kernel fits this step\n"
            "kernel 'plain' (no ranges in this batch): the batch has ranges\n"
            "kernel 'plain' (this layer ignores ranges): ranges bind this layer\n"
            "kernel 'plain' (fallback): it takes no ranges, and the batch has some");
}

TEST(KernelSelector, LeavesOutWhatCannotRun) {
  const Kernel ranges = kernelOf("ranges", true), elsewhere = kernelOf("elsewhere", true, "sm_90a");
  rt::Configuration launch;
  launch.pageSize = 16;
  Result<rt::KernelSelector> selector = rt::KernelSelector::create(
      {{&elsewhere, rt::KernelUse::Always, 9}, {&ranges, rt::KernelUse::Always, 0}}, "cpu", launch);
  ASSERT_TRUE(selector) << selector.message();
  EXPECT_EQ(*selector->select({true, false}), &ranges);
  EXPECT_EQ(selector->leftOut(), "kernel 'elsewhere': no code for target 'cpu'");
  launch.pageSize = -2;
  EXPECT_EQ(
      rt::KernelSelector::create({{&ranges, rt::KernelUse::Always, 0}}, "cpu", launch).message(),
      "selector: no kernel for target 'cpu'\nkernel 'ranges': page_size is -2, expected 0 to "
      "1073741823");
  EXPECT_EQ(rt::KernelSelector::create({}, "cpu").message(),
            "selector: no kernel for target 'cpu'");
  EXPECT_EQ(rt::KernelSelector::create({{}}, "cpu").message(),
            "selector: a candidate without a kernel");
  EXPECT_EQ(rt::toString(rt::KernelUse::IgnoresRanges), "this layer ignores ranges");
}

} // namespace
