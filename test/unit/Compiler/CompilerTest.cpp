// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// compile(), specHash and their promises.

#include "attn/Compiler/Compiler.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

#include <thread>

using namespace attn;

namespace {

/// (causal and window) or ranges, with chosen names.
std::string gemma(const std::string &kernel, const std::string &param, const std::string &table,
                  const std::string &extra = "") {
  return "attn.kernel @" + kernel + " heads(8) kv_heads(4) dim(256) q(bf16) kv(bf16) params(%" +
         param + ": i32) tables(%" + table + ": !attn.ranges) {\n" +
         "  attn.mask (%b, %h, %q, %k) {\n" + extra +
         "    %c = attn.causal %q, %k\n"
         "    %w = attn.window %q, %k left(%" +
         param +
         ")\n"
         "    %cw = attn.and %c, %w\n"
         "    %r = attn.mm_prefix %" +
         table + ", %b, %q, %k clamp(%" + param +
         ")\n"
         "    %m = attn.or %cw, %r\n"
         "    attn.yield %m : i1\n  }\n}\n";
}

std::string hashOf(const std::string &spec) {
  auto specs = compiler::readSpecs(spec, "test.mlir");
  if (!specs) {
    ADD_FAILURE() << llvm::toString(specs.takeError());
    return "";
  }
  return specs->front().specHash;
}

std::string errorOf(const std::string &spec, const compiler::CompileOptions &options = {}) {
  auto artifact = compiler::compile(spec, "test.mlir", options);
  if (artifact)
    return "";
  return llvm::toString(artifact.takeError());
}

std::string causal(const std::string &clauses, const std::string &body = "") {
  return "attn.kernel @k " + clauses + " {" + body + "}";
}

} // namespace

TEST(SpecHash, NamesAndDeadCodeDoNotEnter) {
  std::string hash = hashOf(gemma("a", "left", "mm"));
  EXPECT_EQ(hash.size(), 64u);
  EXPECT_EQ(hash, hashOf(gemma("b", "radius", "images")));
  EXPECT_EQ(hash, hashOf(gemma("a", "left", "mm", "    %dead = attn.window %q, %k left(3)\n")));
}

TEST(SpecHash, OrderOfIndependentOperationsDoesNotEnter) {
  auto spec = [](bool swapped) {
    std::string a = "%a = attn.causal %q, %k\n", b = "%b2 = attn.window %q, %k left(7)\n";
    return "attn.kernel @k heads(1) dim(16) q(f32) kv(f32) { attn.mask (%b, %h, %q, %k) {\n" +
           (swapped ? b + a : a + b) + "%m = attn.and %a, %b2\nattn.yield %m : i1\n} }";
  };
  EXPECT_EQ(hashOf(spec(false)), hashOf(spec(true)));
}

TEST(SpecHash, WhatDecidesTheCodeEnters) {
  std::vector<std::string> specs = {
      causal("heads(8) dim(64) q(f32) kv(f32)"),
      causal("heads(4) dim(64) q(f32) kv(f32)"),
      causal("heads(8) kv_heads(2) dim(64) q(f32) kv(f32)"),
      causal("heads(8) dim(32) q(f32) kv(f32)"),
      causal("heads(8) dim(64) dim_v(32) q(f32) kv(f32)"),
      causal("heads(8) dim(64) q(bf16) kv(f32)"),
      causal("heads(8) dim(64) q(f32) kv(f16)"),
      causal("heads(8) dim(64) q(f32) kv(f32) scale(0.5)"),
      causal("heads(8) dim(64) q(f32) kv(f32) scale(%s) params(%s: f32)"),
      causal("heads(8) dim(64) q(f32) kv(f32) params(%s: f32)"),
      causal("heads(8) dim(64) q(f32) kv(f32) tables(%t: !attn.table<[b], i32>)"),
      causal("heads(8) dim(64) q(f32) kv(f32) tables(%t: !attn.table<[h], i32>)"),
      causal("heads(8) dim(64) q(f32) kv(f32)",
             "attn.mask (%b, %h, %q, %k) { %m = attn.window %q, %k left(3)\nattn.yield %m : i1 }"),
      causal("heads(8) dim(64) q(f32) kv(f32)",
             "attn.mask (%b, %h, %q, %k) { %m = attn.window %q, %k left(4)\nattn.yield %m : i1 }"),
      causal("heads(8) dim(64) q(f32) kv(f32)",
             "attn.mask (%b, %h, %q, %k) { %m = attn.window %q, %k right(3)\nattn.yield %m : i1 }"),
      causal("heads(8) dim(64) q(f32) kv(f32)",
             "attn.score (%s, %b, %h, %q, %k) { %t = attn.soft_cap %s, 5.0\nattn.yield %t : f32 }"),
      causal("heads(8) dim(64) q(f32) kv(f32)",
             "attn.score (%s, %b, %h, %q, %k) { %t = attn.soft_cap %s, 6.0\nattn.yield %t : f32 }"),
  };
  for (size_t i = 0; i < specs.size(); ++i)
    for (size_t j = i + 1; j < specs.size(); ++j)
      EXPECT_NE(hashOf(specs[i]), hashOf(specs[j])) << specs[i] << "\n" << specs[j];
}

TEST(SpecHash, OfAModule) {
  mlir::DialectRegistry registry;
  compiler::registerAll(registry);
  mlir::MLIRContext context(registry);
  auto module = mlir::parseSourceString<mlir::ModuleOp>(gemma("a", "left", "mm"), &context);
  ASSERT_TRUE(module);
  auto hash = compiler::specHash(*module, "a");
  ASSERT_TRUE(static_cast<bool>(hash)) << llvm::toString(hash.takeError());
  EXPECT_EQ(*hash, hashOf(gemma("a", "left", "mm")));
  auto missing = compiler::specHash(*module, "b");
  ASSERT_FALSE(static_cast<bool>(missing));
  EXPECT_EQ(llvm::toString(missing.takeError()), "the module holds no attn.kernel @b");
}

TEST(Compile, ManifestSaysWhatTheKernelNeeds) {
  auto artifact = compiler::compile(gemma("gemma", "left", "mm"), "test.mlir");
  ASSERT_TRUE(static_cast<bool>(artifact)) << llvm::toString(artifact.takeError());
  ASSERT_EQ(artifact->kernels.size(), 1u);
  const core::Kernel &kernel = artifact->kernels[0];
  EXPECT_EQ(kernel.spec.name, "gemma");
  EXPECT_EQ(kernel.spec.numKvHeads, 4);
  EXPECT_DOUBLE_EQ(kernel.spec.scale, 1.0 / 16);
  ASSERT_EQ(kernel.spec.program.params.size(), 1u);
  EXPECT_EQ(kernel.spec.program.params[0].minValue, std::optional<int64_t>(0));
  const core::KernelBinary *cpu = kernel.find("cpu");
  ASSERT_NE(cpu, nullptr);
  EXPECT_EQ(cpu->format, "elf-x86-64");
  EXPECT_EQ(cpu->tilePlan, core::TilePlan::Intervals);
  ASSERT_EQ(cpu->tables.size(), 2u);
  EXPECT_EQ(cpu->tables[1].kind, core::TableKind::QueryRanges);
  EXPECT_EQ(cpu->tables[1].source, 0);
  EXPECT_EQ(kernel.find("sm_90a"), nullptr);
}

/// Tile plan of a kernel with this mask, the same with and without the mask passes.
static core::TilePlan tilePlanOf(const std::string &mask) {
  std::string spec = "attn.kernel @k heads(1) dim(16) q(f32) kv(f32) params(%p: f32)\n"
                     "    tables(%mm: !attn.ranges, %doc: !attn.documents,\n"
                     "           %t: !attn.table<[b, k], i32>) {\n"
                     "  attn.mask (%b, %h, %q, %k) {\n" +
                     mask + "\n    attn.yield %m : i1\n  }\n}\n";
  std::vector<core::TilePlan> plans;
  for (bool passes : {true, false}) {
    compiler::CompileOptions options;
    options.maskPasses = passes;
    auto artifact = compiler::compile(spec, "test.mlir", options);
    if (!artifact) {
      ADD_FAILURE() << llvm::toString(artifact.takeError());
      return core::TilePlan::Abstract;
    }
    plans.push_back(artifact->kernels[0].find("cpu")->tilePlan);
  }
  EXPECT_EQ(plans[0], plans[1]) << mask;
  return plans[0];
}

TEST(Compile, TilePlanIsThatOfTheProgram) {
  const char *const exact[] = {
      "%m = attn.mm_prefix %mm, %b, %q, %k",
      "%m = attn.document %doc, %b, %q, %k",
      "%c = attn.causal %q, %k\n%d = attn.document %doc, %b, %q, %k\n%n = attn.not %d\n"
      "%m = attn.or %c, %n",
      "%c4 = arith.constant 4 : index\n%x = arith.floordivsi %q, %c4 : index\n"
      "%y = arith.floordivsi %k, %c4 : index\n%m = arith.cmpi eq, %x, %y : index",
  };
  for (const char *mask : exact)
    EXPECT_EQ(tilePlanOf(mask), core::TilePlan::Intervals) << mask;
  const char *const abstract[] = {
      "%v = attn.load %t[%b, %k] : !attn.table<[b, k], i32>\n%z = arith.constant 0 : i32\n"
      "%m = arith.cmpi eq, %v, %z : i32",
      "%i = arith.index_cast %k : index to i64\n%f = arith.sitofp %i : i64 to f32\n"
      "%m = arith.cmpf olt, %f, %p : f32",
      "%c2 = arith.constant 2 : index\n%r = arith.remsi %k, %c2 : index\n"
      "%m = arith.cmpi eq, %r, %c2 : index",
  };
  for (const char *mask : abstract)
    EXPECT_EQ(tilePlanOf(mask), core::TilePlan::Abstract) << mask;
}

TEST(Compile, SameSpecSameBytes) {
  auto a = compiler::compile(gemma("g", "left", "mm"), "a.mlir");
  auto b = compiler::compile(gemma("g", "left", "mm", "    // a comment\n"), "b.mlir");
  ASSERT_TRUE(static_cast<bool>(a)) << llvm::toString(a.takeError());
  ASSERT_TRUE(static_cast<bool>(b)) << llvm::toString(b.takeError());
  EXPECT_EQ(core::serialize(*a), core::serialize(*b));
}

TEST(Compile, LeavesTheCallersModuleAlone) {
  mlir::DialectRegistry registry;
  compiler::registerAll(registry);
  mlir::MLIRContext context(registry);
  auto module = mlir::parseSourceString<mlir::ModuleOp>(gemma("a", "left", "mm"), &context);
  ASSERT_TRUE(module);
  auto text = [&] {
    std::string s;
    llvm::raw_string_ostream stream(s);
    module->print(stream);
    return s;
  };
  std::string before = text();
  auto artifact = compiler::compile(*module);
  ASSERT_TRUE(static_cast<bool>(artifact)) << llvm::toString(artifact.takeError());
  EXPECT_EQ(before, text());
}

TEST(Compile, ExplainNamesPassesAndReasons) {
  compiler::CompileOptions options;
  std::vector<std::string> lines;
  options.explain = [&](llvm::StringRef line) { lines.push_back(line.str()); };
  ASSERT_EQ(errorOf(gemma("a", "left", "mm"), options), "");
  auto has = [&](const std::string &text) {
    return std::any_of(lines.begin(), lines.end(),
                       [&](const std::string &line) { return line.find(text) != line.npos; });
  };
  EXPECT_TRUE(has("test.mlir:2:3: FuseIntervals: mask is 1 interval a row"));
  EXPECT_TRUE(has("RangeScanToTable: attn.mm_prefix reads one row of 'mm_rows', built from 'mm'"));
  lines.clear();
  ASSERT_EQ(errorOf(causal("heads(1) dim(16) q(f32) kv(f32) tables(%t: !attn.table<[k], i32>)",
                           "attn.mask (%b, %h, %q, %k) {\n"
                           "%v = attn.load %t[%k] : !attn.table<[k], i32>\n"
                           "%z = arith.constant 0 : i32\n"
                           "%m = arith.cmpi ne, %v, %z : i32\nattn.yield %m : i1 }"),
                    options),
            "");
  EXPECT_TRUE(has("FuseIntervals refused: mask is not fused: 'arith.cmpi' is no interval in k"));
}

TEST(Compile, RefusesByName) {
  EXPECT_EQ(errorOf("module {}"), "test.mlir:1:1: error: the spec holds no attn.kernel");
  EXPECT_EQ(
      errorOf(causal("heads(3) kv_heads(2) dim(64) q(f32) kv(f32)")),
      "test.mlir:1:1: error: 'attn.kernel' op heads is expected to be a multiple of kv_heads, "
      "got 3 and 2 (attn-C11)");
  EXPECT_EQ(
      errorOf("attn.kernel @\"a b\" heads(1) dim(16) q(f32) kv(f32) {}"),
      "test.mlir:1:1: error: 'attn.kernel' op symbol is expected to be letters, digits, '_', '.', "
      "'-' or '$'");
}

TEST(Compile, DeepInputIsRefusedOrCompiled) {
  // Loops inside loops: the parser would recurse without a limit.
  auto nested = [](int depth) {
    std::string text = "%lo = arith.constant 0 : index\n%one = arith.constant 1 : index\n"
                       "%t = arith.constant true\n";
    for (int i = 0; i < depth; ++i)
      text += "%m" + std::to_string(i) + " = scf.for %i" + std::to_string(i) +
              " = %lo to %one step %one iter_args(%a" + std::to_string(i) + " = %t) -> (i1) {\n";
    for (int i = depth - 1; i >= 0; --i)
      text += "scf.yield " + (i == depth - 1 ? std::string("%t") : "%m" + std::to_string(i + 1)) +
              " : i1\n}\n";
    return causal("heads(1) dim(16) q(f32) kv(f32)",
                  "attn.mask (%b, %h, %q, %k) {\n" + text + "attn.yield %m0 : i1 }");
  };
  EXPECT_EQ(errorOf(nested(50)), "");
  EXPECT_EQ(errorOf(nested(20000)), "test.mlir:203:1: error: brackets nest deeper than 200 levels");
  // A long chain of arithmetic before a comparison.
  std::string chain = "%m0 = arith.subi %q, %k : index\n";
  for (int i = 0; i < 2000; ++i)
    chain +=
        "%m" + std::to_string(i + 1) + " = arith.muli %m" + std::to_string(i) + ", %k : index\n";
  compiler::CompileOptions options;
  options.optLevel = 0;
  bool refused = false;
  options.explain = [&](llvm::StringRef line) {
    refused |= line.contains("RaiseMasks refused: comparison is kept");
  };
  EXPECT_EQ(errorOf(causal("heads(1) dim(16) q(f32) kv(f32)",
                           "attn.mask (%b, %h, %q, %k) {\n" + chain +
                               "%m = arith.cmpi slt, %m2000, %q : index\nattn.yield %m : i1 }"),
                    options),
            "");
  EXPECT_TRUE(refused);
}

TEST(Compile, ShapesTheManifestCannotHoldAreRefused) {
  EXPECT_EQ(errorOf(causal("heads(1) dim(1048577) q(f32) kv(f32)")),
            "test.mlir:1:1: error: 'attn.kernel' op dim is expected to be at most 1048576, got "
            "1048577");
  EXPECT_EQ(errorOf("attn.kernel @\"\" heads(1) dim(16) q(f32) kv(f32) {}"),
            "test.mlir:1:1: error: 'attn.kernel' op symbol is expected not to be empty");
}

TEST(EmitText, WithoutATargetIsRefused) {
  compiler::CompileOptions options;
  options.targets.clear();
  for (auto stage : {compiler::Stage::Attn, compiler::Stage::Llvm, compiler::Stage::Ptx}) {
    auto text = compiler::emitText(gemma("a", "left", "mm"), "t.mlir", stage, options);
    ASSERT_FALSE(static_cast<bool>(text));
    EXPECT_EQ(llvm::toString(text.takeError()), "no target is given, available: cpu, sm_90a");
  }
}

TEST(Compile, StagesAreText) {
  auto attn = compiler::emitText(gemma("a", "left", "mm"), "t.mlir", compiler::Stage::Attn);
  ASSERT_TRUE(static_cast<bool>(attn)) << llvm::toString(attn.takeError());
  EXPECT_NE(attn->find("attn.in_rows"), std::string::npos);
  // What is printed is a spec again.
  EXPECT_EQ(errorOf(*attn), "");
  auto llvmText = compiler::emitText(gemma("a", "left", "mm"), "t.mlir", compiler::Stage::Llvm);
  ASSERT_TRUE(static_cast<bool>(llvmText)) << llvm::toString(llvmText.takeError());
  EXPECT_NE(llvmText->find("define void @attn.forward.a("), std::string::npos);
}

TEST(Compile, OnSeveralThreads) {
  std::vector<std::thread> threads;
  std::vector<std::vector<uint8_t>> results(4);
  for (size_t i = 0; i < results.size(); ++i)
    threads.emplace_back([&, i] {
      if (auto artifact = compiler::compile(gemma("g", "left", "mm"), "t.mlir"))
        results[i] = core::serialize(*artifact);
      else
        llvm::consumeError(artifact.takeError());
    });
  for (std::thread &thread : threads)
    thread.join();
  for (const auto &result : results) {
    EXPECT_FALSE(result.empty());
    EXPECT_EQ(result, results[0]);
  }
}
