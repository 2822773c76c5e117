// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The runtime's table of targets against the compiler: what it supports compiles, what it does not
// is refused, in the same words where there is one reason.

#include "attn/Runtime/Capability.h"

#include "attn/Compiler/Compiler.h"
#include "attn/Conversion/AttnToTile/TargetInfo.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

using namespace attn;

namespace {

/// A spec, and what it asks for written down by hand.
struct Sample {
  std::string spec;
  rt::Configuration configuration;
};

Sample randomSample(std::mt19937 &random, const std::string &target) {
  auto pick = [&](auto... values) {
    const std::vector<std::common_type_t<decltype(values)...>> list = {values...};
    return list[random() % list.size()];
  };
  auto oneIn = [&](unsigned n) { return random() % n == 0; };
  Sample s;
  rt::Configuration &c = s.configuration;
  c.target = target;
  c.qType = c.kvType = pick("bf16", "f16");
  if (oneIn(4))
    c.qType = pick("f32", "bf16", "f8E4M3FN");
  if (oneIn(4))
    c.kvType = pick("f32", "f16", "f8E4M3FN");
  c.numKvHeads = pick(1, 2, 4);
  c.numHeads = c.numKvHeads * pick(1, 2, 8) + oneIn(8);
  c.dimQk = c.dimV = pick(64, 128, 256);
  if (oneIn(4))
    c.dimQk = c.dimV = pick(1, 16, 80, 96, 192, 512);
  if (oneIn(5))
    c.dimV = pick(64, 128, 512);
  c.hasRanges = oneIn(2);
  c.hasSoftCap = oneIn(2);
  const bool toInteger = oneIn(5);
  c.numParams = pick(0, 1, 7);
  // Around the largest number of kernel arguments.
  const int64_t plain = oneIn(4) ? pick(41, 42, 43, 44, 45) : pick(0, 1, 3);
  c.numTables = plain + 2 * c.hasRanges;

  std::string params, tables, mask = "%m = attn.causal %q, %k\n", score;
  for (int64_t i = 0; i < c.numParams; ++i)
    params += (i ? ", %p" : "%p") + std::to_string(i) + ": i32";
  if (c.hasRanges) {
    tables = "%mm: !attn.ranges";
    mask = "%c = attn.causal %q, %k\n%r = attn.mm_prefix %mm, %b, %q, %k\n%m = attn.or %c, %r\n";
  }
  for (int64_t i = 0; i < plain; ++i)
    tables += (tables.empty() ? "%t" : ", %t") + std::to_string(i) + ": !attn.table<[h], f32>";
  std::string value = "%s";
  if (c.hasSoftCap) {
    score += "%capped = attn.soft_cap " + value + ", 5.0\n";
    value = "%capped";
  }
  if (toInteger) {
    score += "%i = arith.fptosi " + value + " : f32 to i32\n%f = arith.sitofp %i : i32 to f32\n";
    value = "%f";
  }
  s.spec = "attn.kernel @k heads(" + std::to_string(c.numHeads) + ") kv_heads(" +
           std::to_string(c.numKvHeads) + ") dim(" + std::to_string(c.dimQk) + ") dim_v(" +
           std::to_string(c.dimV) + ") q(" + c.qType + ") kv(" + c.kvType + ")" +
           (params.empty() ? "" : " params(" + params + ")") +
           (tables.empty() ? "" : " tables(" + tables + ")") +
           " {\nattn.mask (%b, %h, %q, %k) {\n" + mask + "attn.yield %m : i1\n}\n" +
           (score.empty() ? ""
                          : "attn.score (%s, %b, %h, %q, %k) {\n" + score + "attn.yield " + value +
                                " : f32\n}\n") +
           "}\n";
  return s;
}

std::string joined(const std::vector<std::string> &lines) {
  std::string text;
  for (const std::string &line : lines)
    text += line + "\n";
  return text;
}

/// Why the spec does not come to `stage`, or "".
std::string errorAt(compiler::Stage stage, const Sample &sample) {
  compiler::CompileOptions options;
  options.targets = {sample.configuration.target};
  options.optLevel = 0;
  auto text = compiler::emitText(sample.spec, "test.mlir", stage, options);
  return text ? "" : llvm::toString(text.takeError());
}

void expectAgreement(const Sample &sample, const std::string &error) {
  const std::vector<std::string> reasons = rt::reasonsAgainst(sample.configuration);
  ASSERT_EQ(reasons.empty(), error.empty()) << sample.spec << "error: " << error << "\nreasons:\n"
                                            << joined(reasons);
  if (reasons.size() == 1 && reasons[0].rfind("target", 0) == 0 &&
      reasons[0].find("is not available") == std::string::npos &&
      reasons[0].find("f8E4M3FN") == std::string::npos) {
    EXPECT_NE(error.find(reasons[0]), std::string::npos) << error << "\n" << reasons[0];
  }
  // The same from the spec as the runtime knows it.
  auto specs = compiler::readSpecs(sample.spec, "test.mlir");
  if (!specs) {
    llvm::consumeError(specs.takeError());
    EXPECT_FALSE(reasons.empty());
    return;
  }
  const rt::Configuration c = rt::configurationOf(specs->front(), sample.configuration.target);
  EXPECT_EQ(rt::reasonsAgainst(c), reasons) << sample.spec;
}

} // namespace

TEST(Capability, TheTableHasTheCompilersTargets) {
  std::vector<std::string> names;
  for (const rt::TargetCapability &target : rt::targetCapabilities()) {
    names.push_back(target.name);
    const TargetInfo *info = findTarget(target.name);
    ASSERT_EQ(info != nullptr, compiler::isGpuTarget(target.name));
    if (!info)
      continue;
    std::vector<int64_t> dims;
    for (const TileShapeInfo &shape : info->shapes)
      if (dims.empty() || dims.back() != shape.dim)
        dims.push_back(shape.dim);
    EXPECT_EQ(target.dims, dims);
    // Every dim takes every kind of mask and score, which the table has no column for.
    for (int64_t dim : dims)
      EXPECT_NE(info->findShape(dim, ElementWork::Predicate, MaskShape::Any), nullptr) << dim;
  }
  EXPECT_EQ(names, compiler::targets());
}

TEST(Capability, YesIffItBecomesAKernel) {
  std::mt19937 random(7);
  int64_t yes = 0, no = 0;
  for (int round = 0; round < 400; ++round) {
    Sample sample = randomSample(random, "sm_90a");
    const std::string error = errorAt(compiler::Stage::Tile, sample);
    expectAgreement(sample, error);
    if (HasFatalFailure())
      return;
    ++(error.empty() ? yes : no);
  }
  EXPECT_GT(yes, 30);
  EXPECT_GT(no, 100);
}

TEST(Capability, YesIffItCompiles) {
  std::mt19937 random(8);
  int64_t yes = 0, no = 0;
  for (const char *target : {"cpu", "sm_90a", "sm_100a"})
    for (int round = 0; round < 30; ++round) {
      Sample sample = randomSample(random, target);
      const std::string error = errorAt(
          compiler::isGpuTarget(target) ? compiler::Stage::Ptx : compiler::Stage::Llvm, sample);
      expectAgreement(sample, error);
      if (HasFatalFailure())
        return;
      ++(error.empty() ? yes : no);
    }
  EXPECT_GT(yes, 10);
  EXPECT_GT(no, 40);
}
