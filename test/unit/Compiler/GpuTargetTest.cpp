// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Compiling for sm_90a: manifest, PTX that depends on meaning only, refusals.

#include "attn/Compiler/Compiler.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OperationSupport.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

using namespace attn;
using compiler::CompileOptions;
using compiler::Stage;

namespace {

CompileOptions gpu() {
  CompileOptions options;
  options.targets = {"sm_90a"};
  return options;
}

std::string emit(const std::string &spec, Stage stage, const CompileOptions &options = gpu()) {
  auto text = compiler::emitText(spec, "test.mlir", stage, options);
  if (!text)
    return "error: " + llvm::toString(text.takeError());
  return *text;
}

std::string ptxOf(const std::string &spec) {
  std::string ptx = emit(spec, Stage::Ptx);
  EXPECT_NE(ptx.find(".entry attn_forward("), std::string::npos) << ptx;
  return ptx;
}

std::string errorOf(const std::string &spec, const CompileOptions &options = gpu()) {
  auto artifact = compiler::compile(spec, "test.mlir", options);
  return artifact ? "" : llvm::toString(artifact.takeError());
}

std::string kernel(const std::string &clauses, const std::string &body = "",
                   const std::string &name = "k") {
  return "attn.kernel @" + name + " " + clauses + " {\n" + body + "}\n";
}

std::string mask(const std::string &body) {
  return "attn.mask (%b, %h, %q, %k) {\n" + body + "attn.yield %m : i1\n}\n";
}

constexpr const char *kShape = "heads(8) kv_heads(4) dim(128) q(bf16) kv(bf16)";
constexpr const char *kRanges = "heads(8) kv_heads(4) dim(128) q(bf16) kv(bf16) params(%left: i32) "
                                "tables(%mm: !attn.ranges)";

/// What a spec reads like in another hand: the generic form, with locations.
std::string reprinted(const std::string &spec) {
  mlir::DialectRegistry registry;
  compiler::registerAll(registry);
  mlir::MLIRContext context(registry);
  auto module = mlir::parseSourceString<mlir::ModuleOp>(spec, &context);
  EXPECT_TRUE(module) << spec;
  std::string text;
  llvm::raw_string_ostream stream(text);
  mlir::OpPrintingFlags flags;
  flags.printGenericOpForm().enableDebugInfo();
  module->print(stream, flags);
  return text;
}

std::string findPtxas() {
  llvm::ErrorOr<std::string> found = llvm::sys::findProgramByName("ptxas");
  return found ? *found : "";
}

} // namespace

// Every shape is a kernel of an artifact; text is of one.
TEST(GpuTarget, AllShapes) {
  CompileOptions options = gpu();
  options.allShapes = true;
  const std::string spec = kernel("heads(2) kv_heads(1) dim(256) q(bf16) kv(bf16)");
  auto artifact = compiler::compile(spec, "test.mlir", options);
  ASSERT_TRUE(bool(artifact)) << llvm::toString(artifact.takeError());
  std::vector<std::string> names;
  for (const core::Kernel &k : artifact->kernels) {
    names.push_back(k.spec.name);
    EXPECT_EQ(k.spec.specHash, artifact->kernels[0].spec.specHash);
    ASSERT_EQ(k.binaries.size(), 1u);
    EXPECT_EQ("k@" + std::to_string(k.binaries[0].cuda->groups) + "x" +
                  std::to_string(k.binaries[0].cuda->keyTile),
              k.spec.name.substr(0, k.spec.name.find('-')));
  }
  EXPECT_EQ(names, (std::vector<std::string>{"k@2x64-turns", "k@2x48", "k@2x48-turns", "k@2x64"}));
  auto text = compiler::emitText(spec, "test.mlir", Stage::Ptx, options);
  ASSERT_FALSE(bool(text));
  EXPECT_EQ(llvm::toString(text.takeError()),
            "all shapes make an artifact, expected none of them for text");
}

TEST(GpuTarget, ManifestSaysWhatTheLaunchNeeds) {
  CompileOptions options = gpu();
  options.targets.push_back("cpu");
  auto artifact = compiler::compile(
      kernel(kRanges, mask("%c = attn.causal %q, %k\n%r = attn.mm_prefix %mm, %b, %q, %k\n"
                           "%m = attn.or %c, %r\n")),
      "test.mlir", options);
  ASSERT_TRUE(static_cast<bool>(artifact)) << llvm::toString(artifact.takeError());
  const core::KernelBinary *binary = artifact->kernels[0].find("sm_90a");
  ASSERT_NE(binary, nullptr);
  EXPECT_EQ(binary->format, "ptx");
  EXPECT_EQ(binary->entry, "attn_forward");
  EXPECT_EQ(binary->maskEntry, "");
  EXPECT_EQ(binary->tilePlan, core::TilePlan::Intervals);
  ASSERT_EQ(binary->tables.size(), 2u);
  EXPECT_EQ(binary->tables[1].kind, core::TableKind::QueryRanges);
  ASSERT_TRUE(binary->cuda);
  EXPECT_EQ(binary->cuda->groups, 2);
  EXPECT_EQ(binary->cuda->keyTile, 128);
  EXPECT_EQ(binary->cuda->threads, 384);
  // Q, and two stages of K and V.
  EXPECT_GE(binary->cuda->sharedBytes, (128 + 4 * 128) * 128 * 2);
  EXPECT_FALSE(binary->cuda->testsVisible);
  EXPECT_FALSE(binary->cuda->countsTiles);
  const std::vector<uint8_t> &ptx = artifact->blobs[binary->blob];
  EXPECT_EQ(ptx.back(), 0);
  EXPECT_NE(artifact->kernels[0].find("cpu"), nullptr);
  // The manifest goes through its text.
  std::vector<uint8_t> bytes = core::serialize(*artifact);
  auto again = core::parseArtifact(bytes.data(), bytes.size());
  ASSERT_TRUE(again) << again.message();
  ASSERT_TRUE(again->kernels[0].find("sm_90a")->cuda);
  EXPECT_EQ(again->kernels[0].find("sm_90a")->cuda->threads, 384);
}

TEST(GpuTarget, MasksThatDoNotFuseAreTestedByTheKernel) {
  auto artifact =
      compiler::compile(kernel(std::string(kShape) + " tables(%t: !attn.table<[b, k], i32>)",
                               mask("%v = attn.load %t[%b, %k] : !attn.table<[b, k], i32>\n"
                                    "%z = arith.constant 0 : i32\n"
                                    "%m = arith.cmpi ne, %v, %z : i32\n")),
                        "test.mlir", gpu());
  ASSERT_TRUE(static_cast<bool>(artifact)) << llvm::toString(artifact.takeError());
  const core::KernelBinary *binary = artifact->kernels[0].find("sm_90a");
  EXPECT_TRUE(binary->cuda->testsVisible);
  EXPECT_EQ(binary->tilePlan, core::TilePlan::Abstract);
}

TEST(GpuTarget, CountingIsInTheCodeAndTheManifest) {
  std::string spec = kernel(kShape, mask("%m = attn.causal %q, %k\n"));
  CompileOptions counting = gpu();
  counting.countTiles = true;
  EXPECT_EQ(emit(spec, Stage::Ptx).find("red.global.add.u64"), std::string::npos);
  std::string counted = emit(spec, Stage::Ptx, counting);
  EXPECT_NE(counted, emit(spec, Stage::Ptx));
  auto artifact = compiler::compile(spec, "test.mlir", counting);
  ASSERT_TRUE(static_cast<bool>(artifact)) << llvm::toString(artifact.takeError());
  EXPECT_TRUE(artifact->kernels[0].binaries[0].cuda->countsTiles);
}

TEST(GpuTarget, RecipesAreInTheManifestOfGpuCodeOnly) {
  const std::string spec =
      kernel(kRanges, mask("%c = attn.causal %q, %k\n%r = attn.mm_prefix %mm, %b, %q, %k\n"
                           "%m = attn.or %c, %r\n")) +
      kernel(kRanges, mask("%m = attn.causal %q, %k\n"), "other");
  CompileOptions plain = gpu();
  plain.targets.push_back("cpu");
  CompileOptions options = plain;
  for (const char *text :
       {"range_tensor,per_request=8", "split_plan,name=s,policy=count,pieces=3"}) {
    auto request = compiler::parseRecipe(text);
    ASSERT_TRUE(static_cast<bool>(request)) << llvm::toString(request.takeError());
    options.recipes.push_back(*request);
  }
  auto artifact = compiler::compile(spec, "test.mlir", options);
  ASSERT_TRUE(static_cast<bool>(artifact)) << llvm::toString(artifact.takeError());
  const std::vector<uint8_t> bytes = core::serialize(*artifact);
  auto again = core::parseArtifact(bytes.data(), bytes.size());
  ASSERT_TRUE(again) << again.message();
  for (const core::Kernel &kernel : again->kernels) {
    EXPECT_TRUE(kernel.find("cpu")->recipes.empty());
    const std::vector<core::Recipe> &recipes = kernel.find("sm_90a")->recipes;
    ASSERT_EQ(recipes.size(), 2u);
    EXPECT_EQ(recipes[0].name, "range_tensor");
    EXPECT_EQ(recipes[0].source, 0);
    EXPECT_EQ(recipes[0].perRequest, 8);
    EXPECT_EQ(recipes[1].name, "s");
    EXPECT_EQ(recipes[1].kind, core::RecipeKind::SplitPlan);
    EXPECT_EQ(recipes[1].pieces, 3);
  }
  // Nothing else changes.
  for (core::Kernel &kernel : artifact->kernels)
    for (core::KernelBinary &binary : kernel.binaries)
      binary.recipes.clear();
  auto without = compiler::compile(spec, "test.mlir", plain);
  ASSERT_TRUE(static_cast<bool>(without)) << llvm::toString(without.takeError());
  EXPECT_EQ(core::serialize(*artifact), core::serialize(*without));
}

TEST(GpuTarget, RecipesAreRefusedByName) {
  CompileOptions options;
  options.recipes.push_back(llvm::cantFail(compiler::parseRecipe("page_runs,page_size=16")));
  const std::string spec = kernel(kShape, mask("%m = attn.causal %q, %k\n"));
  EXPECT_EQ(errorOf(spec, options),
            "recipe 'page_runs': target 'cpu' has no recipes, expected one of: sm_90a");
  options.targets = {"sm_90a"};
  // Requests that were not read from text.
  options.recipes[0].recipe.pageSize = 0;
  EXPECT_EQ(errorOf(spec, options),
            "test.mlir:1:1: error: recipe 'page_runs': page_size 0, expected 1 to 1073741823");
}

TEST(GpuTarget, NamesDoNotReachThePtx) {
  auto spec = [](const std::string &name, const std::string &left, const std::string &mm,
                 const std::string &value) {
    return kernel("heads(8) kv_heads(4) dim(128) q(bf16) kv(bf16) params(%" + left +
                      ": i32) tables(%" + mm + ": !attn.ranges)",
                  "attn.mask (%x, %y, %z, %w) {\n%" + value + " = attn.window %z, %w left(%" +
                      left + ") right(0)\n%r = attn.mm_prefix %" + mm + ", %x, %z, %w clamp(%" +
                      left + ")\n%m = attn.or %" + value + ", %r\nattn.yield %m : i1\n}\n",
                  name);
  };
  std::string ptx = ptxOf(spec("gemma", "left", "mm", "v"));
  EXPECT_EQ(ptx, ptxOf(spec("another_name", "radius", "images", "near")));
  EXPECT_EQ(ptx, ptxOf(reprinted(spec("gemma", "left", "mm", "v"))));
  for (const char *name : {"gemma", "radius", "images", "test.mlir"})
    EXPECT_EQ(ptx.find(name), std::string::npos) << ptx;
}

TEST(GpuTarget, OrderDoesNotReachThePtx) {
  // Masks that fuse, and ones whose operations go into the kernel as they are.
  std::vector<std::vector<std::string>> bodies = {
      {"%c = attn.causal %q, %k\n", "%w = attn.window %q, %k left(100)\n",
       "%n = arith.constant 4 : i32\n%g = attn.global %q, %k, %n\n"},
      {"%c = attn.causal %q, %k\n",
       "%t = arith.constant 7 : index\n%w = arith.cmpi slt, %t, %k : index\n",
       "%x = arith.muli %q, %k : index\n%n = arith.constant 1000 : index\n"
       "%g = arith.cmpi sgt, %x, %n : index\n"},
  };
  const std::string last = "%cw = attn.and %c, %w\n%m = attn.or %cw, %g\n";
  for (std::vector<std::string> &parts : bodies) {
    const std::string dead = "%dead = attn.window %q, %k left(3)\n";
    std::string ptx = ptxOf(kernel(kShape, mask(llvm::join(parts, "") + last)));
    EXPECT_EQ(ptx, ptxOf(kernel(kShape, mask(dead + llvm::join(parts, "") + last))));
    std::sort(parts.begin(), parts.end());
    do
      EXPECT_EQ(ptx, ptxOf(kernel(kShape, mask(llvm::join(parts, "") + last))));
    while (std::next_permutation(parts.begin(), parts.end()));
    std::string other = "%cw = attn.and %c, %w\n%m = attn.and %cw, %g\n";
    EXPECT_NE(ptx, ptxOf(kernel(kShape, mask(llvm::join(parts, "") + other))));
  }
  // The regions of a kernel, and loops.
  std::string causal = mask("%m = attn.causal %q, %k\n"),
              score = "attn.score (%s, %b, %h, %q, %k) {\n%c = attn.soft_cap %s, 5.0\n"
                      "attn.yield %c : f32\n}\n";
  EXPECT_EQ(ptxOf(kernel(kShape, causal + score)), ptxOf(kernel(kShape, score + causal)));
}

TEST(GpuTarget, OneLiteralChangesThePtx) {
  auto window = [](int left) {
    return ptxOf(kernel(
        kShape, mask("%m = attn.window %q, %k left(" + std::to_string(left) + ") right(0)\n")));
  };
  EXPECT_NE(window(1023), window(1024));
  auto cap = [](const std::string &literal) {
    return ptxOf(kernel(kShape, "attn.score (%s, %b, %h, %q, %k) {\n%c = attn.soft_cap %s, " +
                                    literal + "\nattn.yield %c : f32\n}\n"));
  };
  EXPECT_NE(cap("5.0"), cap("6.0"));
  std::string shape = kShape;
  EXPECT_NE(ptxOf(kernel(shape + " scale(0.5)")), ptxOf(kernel(shape + " scale(0.25)")));
}

TEST(GpuTarget, KernelsOfOneModuleShareABlob) {
  std::string two = kernel(kShape, mask("%m = attn.causal %q, %k\n"), "a") +
                    kernel("heads(2) dim(64) q(f16) kv(f16)", "", "b");
  auto artifact = compiler::compile(two, "test.mlir", gpu());
  ASSERT_TRUE(static_cast<bool>(artifact)) << llvm::toString(artifact.takeError());
  ASSERT_EQ(artifact->kernels.size(), 2u);
  EXPECT_EQ(artifact->blobs.size(), 1u);
  EXPECT_EQ(artifact->kernels[0].binaries[0].entry, "attn_forward");
  EXPECT_EQ(artifact->kernels[1].binaries[0].entry, "attn_forward_1");
  EXPECT_EQ(artifact->kernels[1].binaries[0].cuda->groups, 3);
  EXPECT_EQ(artifact->kernels[1].binaries[0].blob, 0);
}

TEST(GpuTarget, SpecsTheTargetHasNoKernelForAreRefused) {
  const std::string at = "test.mlir:1:1: error: target 'sm_90a' ";
  auto refusal = [](const std::string &clauses) { return errorOf(kernel(clauses)); };
  EXPECT_EQ(refusal("heads(1) dim(64) q(f32) kv(f32)"),
            at + "takes q of type f16 or bf16, got 'f32'");
  EXPECT_EQ(refusal("heads(1) dim(64) q(bf16) kv(f16)"),
            at + "takes q and kv of one type, got 'bf16' and 'f16'");
  EXPECT_EQ(refusal("heads(1) dim(128) dim_v(64) q(bf16) kv(bf16)"),
            at + "takes dim_v equal to dim, got 64 and 128");
  EXPECT_EQ(refusal("heads(1) dim(96) q(bf16) kv(bf16)"),
            at + "has no kernel for dim 96, expected one of 64, 128, 256");
  // For the CPU alone they are fine; with the GPU among the targets nothing is made.
  CompileOptions both;
  both.targets = {"cpu", "sm_90a"};
  std::string spec = kernel("heads(1) dim(96) q(bf16) kv(bf16)");
  EXPECT_EQ(errorOf(spec, {}), "");
  EXPECT_NE(errorOf(spec, both), "");
}

TEST(GpuTarget, TargetsAreRefusedByName) {
  EXPECT_EQ(compiler::targets(), (std::vector<std::string>{"cpu", "sm_90a"}));
  EXPECT_TRUE(compiler::isGpuTarget("sm_90a"));
  EXPECT_FALSE(compiler::isGpuTarget("cpu"));
  auto refusal = [](std::vector<std::string> targets) {
    CompileOptions options;
    options.targets = std::move(targets);
    return errorOf(kernel(kShape), options);
  };
  EXPECT_EQ(refusal({"sm_100a"}),
            "target 'sm_100a' is not available yet, expected one of: cpu, sm_90a");
  EXPECT_EQ(refusal({"sm_90a", "sm_90"}),
            "target 'sm_90' is not available, expected one of: cpu, sm_90a");
  EXPECT_EQ(refusal({"sm_90a", "sm_90a"}), "target 'sm_90a' is given twice");
  EXPECT_EQ(refusal({}), "no target is given, available: cpu, sm_90a");
}

TEST(GpuTarget, StagesAreOfTheFirstGpu) {
  std::string spec = kernel(kShape, mask("%m = attn.causal %q, %k\n"));
  EXPECT_NE(emit(spec, Stage::Attn).find("attn.mask"), std::string::npos);
  EXPECT_NE(emit(spec, Stage::Tile).find("tile.mma_register"), std::string::npos);
  EXPECT_NE(emit(spec, Stage::Nvvm).find("nvvm.kernel"), std::string::npos);
  EXPECT_NE(emit(spec, Stage::Llvm).find("define ptx_kernel void @attn_forward("),
            std::string::npos);
  EXPECT_EQ(emit(spec, Stage::Cubin), "error: level cubin needs ptxas, and none is given");
  CompileOptions both = gpu();
  both.targets = {"cpu", "sm_90a"};
  EXPECT_EQ(emit(spec, Stage::Llvm, both), emit(spec, Stage::Llvm));
  for (Stage stage : {Stage::Tile, Stage::Nvvm, Stage::Ptx, Stage::Cubin})
    EXPECT_EQ(emit(spec, stage, {}), "error: target 'cpu' has only the levels attn and llvm");
}

TEST(GpuTarget, PtxasMakesTheFirstBinary) {
  CompileOptions options = gpu();
  options.ptxas = findPtxas();
  if (options.ptxas.empty())
    GTEST_SKIP() << "no ptxas";
  options.strictPtxas = true;
  std::vector<std::string> lines;
  options.explain = [&](llvm::StringRef line) { lines.push_back(line.str()); };
  std::string spec = kernel("heads(1) dim(64) q(bf16) kv(bf16)");
  auto artifact = compiler::compile(spec, "test.mlir", options);
  ASSERT_TRUE(static_cast<bool>(artifact)) << llvm::toString(artifact.takeError());
  const std::vector<core::KernelBinary> &binaries = artifact->kernels[0].binaries;
  ASSERT_EQ(binaries.size(), 2u);
  EXPECT_EQ(binaries[0].format, "cubin");
  EXPECT_EQ(binaries[1].format, "ptx");
  EXPECT_EQ(artifact->kernels[0].find("sm_90a"), &binaries[0]);
  ASSERT_FALSE(lines.empty());
  EXPECT_NE(lines.back().find("sm_90a: kernel 'k': "), std::string::npos) << lines.back();
  EXPECT_NE(lines.back().find(" registers a thread, 0 bytes of spill stores"), std::string::npos)
      << lines.back();
  auto again = compiler::compile(spec, "other.mlir", options);
  ASSERT_TRUE(static_cast<bool>(again)) << llvm::toString(again.takeError());
  EXPECT_EQ(core::serialize(*artifact), core::serialize(*again));
}

TEST(GpuTarget, ComplaintsOfPtxasAreSaidOrRefused) {
  // A program that is called as ptxas is, and complains.
  std::string path = testing::TempDir() + "attn-complaining-ptxas";
  std::ofstream(path) << "#!/bin/sh\n"
                         "echo \"ptxas info    : (C7510) Potential Performance Loss: wgmma\"\n"
                         "echo code > \"$6\"\n";
  ASSERT_EQ(::chmod(path.c_str(), 0755), 0);
  CompileOptions options = gpu();
  options.ptxas = path;
  std::vector<std::string> lines;
  options.explain = [&](llvm::StringRef line) { lines.push_back(line.str()); };
  std::string spec = kernel("heads(1) dim(64) q(bf16) kv(bf16)");
  EXPECT_EQ(errorOf(spec, options), "");
  ASSERT_FALSE(lines.empty());
  EXPECT_EQ(lines.back(), "sm_90a: ptxas: (C7510) Potential Performance Loss: wgmma");
  options.strictPtxas = true;
  EXPECT_EQ(errorOf(spec, options), "test.mlir:1:1: error: code of target 'sm_90a' is not clean: "
                                    "(C7510) Potential Performance Loss: wgmma");
  EXPECT_EQ(emit(spec, Stage::Cubin, options).rfind("error: ", 0), 0u);
  options.strictPtxas = false;
  EXPECT_EQ(emit(spec, Stage::Cubin, options), "code\n");
  ::unlink(path.c_str());
}

TEST(GpuTarget, WithoutPtxasThatIsSaid) {
  CompileOptions options = gpu();
  std::vector<std::string> lines;
  options.explain = [&](llvm::StringRef line) { lines.push_back(line.str()); };
  EXPECT_EQ(errorOf(kernel("heads(1) dim(64) q(bf16) kv(bf16)"), options), "");
  ASSERT_FALSE(lines.empty());
  EXPECT_EQ(lines.back(),
            "sm_90a: no ptxas: the driver compiles the PTX when it loads the artifact");
}

TEST(GpuTarget, OnSeveralThreads) {
  std::string spec = kernel("heads(1) dim(64) q(bf16) kv(bf16)");
  std::vector<std::string> results(3);
  std::vector<std::thread> threads;
  for (std::string &result : results)
    threads.emplace_back([&] { result = emit(spec, Stage::Ptx); });
  for (std::thread &thread : threads)
    thread.join();
  for (const std::string &result : results)
    EXPECT_EQ(result, results[0]);
}
