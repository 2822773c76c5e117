// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// PTX from modules of the LLVM dialect: what names reach it, and what is refused.

#include "Ptx.h"

#include "attn/Compiler/Compiler.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

#include <thread>

using namespace attn;

namespace {

/// PTX of `module` or, with "error: " in front, why there is none.
std::string ptxOf(const std::string &module, std::vector<std::string> kernels = {"f"},
                  llvm::StringRef chip = "sm_90a", llvm::StringRef features = "+ptx86") {
  mlir::DialectRegistry registry;
  compiler::registerAll(registry);
  mlir::MLIRContext context(registry);
  auto parsed = mlir::parseSourceString<mlir::ModuleOp>(module, &context);
  if (!parsed) {
    ADD_FAILURE() << "the module does not parse";
    return "";
  }
  auto ptx = compiler::emitPtx(*parsed, {chip, features, kernels});
  if (!ptx)
    return "error: " + llvm::toString(ptx.takeError());
  return *ptx;
}

/// A kernel @`name` that stores what `body` leaves in %r : f32.
std::string kernel(const std::string &name, const std::string &body) {
  return "llvm.func @\"" + name +
         "\"(%p: !llvm.ptr, %x: f32, %i: i32) attributes {nvvm.kernel} {\n" + body +
         "\nllvm.store %r, %p : f32, !llvm.ptr\nllvm.return\n}\n";
}

std::string bodyOf(const std::string &body) { return kernel("f", body); }

} // namespace

TEST(Ptx, IsForTheChip) {
  std::string ptx = ptxOf(bodyOf("%r = llvm.fadd %x, %x : f32"));
  EXPECT_NE(ptx.find(".version 8.6\n"), std::string::npos) << ptx;
  EXPECT_NE(ptx.find(".target sm_90a\n"), std::string::npos) << ptx;
  EXPECT_NE(ptx.find(".visible .entry attn_forward("), std::string::npos) << ptx;
}

TEST(Ptx, NamesDoNotEnter) {
  auto spec = [](const std::string &module, const std::string &name, const std::string &global,
                 const std::string &value, const std::string &block) {
    return "module @" + module + " {\nllvm.mlir.global external @" + global +
           "() {addr_space = 3 : i32} : !llvm.array<0 x i8>\nllvm.func @" + name +
           "(%p: !llvm.ptr, %i: i32) attributes {nvvm.kernel} {\n%" + value +
           " = llvm.mlir.addressof @" + global + " : !llvm.ptr<3>\n%l = llvm.load %" + value +
           " : !llvm.ptr<3> -> i32\nllvm.br ^" + block + "\n^" + block +
           ":\nllvm.store %l, %p : i32, !llvm.ptr\nllvm.return\n}\n}\n";
  };
  std::string one = ptxOf(spec("m", "f", "shared", "v", "next"), {"f"});
  EXPECT_EQ(one,
            ptxOf(spec("other", "kernel_of_mine", "smem", "address", "bb9"), {"kernel_of_mine"}));
  EXPECT_NE(one.find(".extern .shared"), std::string::npos) << one;
  for (const char *name : {"module", "shared_", "smem", "next", "LLVMDialectModule"})
    EXPECT_EQ(one.find(name), std::string::npos) << one;
}

TEST(Ptx, LiteralsEnter) {
  auto adding = [](const std::string &literal) {
    return ptxOf(bodyOf("%c = llvm.mlir.constant(" + literal +
                        " : f32) : f32\n%r = llvm.fadd %x, %c : f32"));
  };
  EXPECT_EQ(adding("1.5"), adding("1.5"));
  EXPECT_NE(adding("1.5"), adding("2.5"));
}

TEST(Ptx, EntriesGoByPlace) {
  std::string add = "%r = llvm.fadd %x, %x : f32", mul = "%r = llvm.fmul %x, %x : f32";
  // The second kernel has the name that the first one gets.
  std::string ptx = ptxOf(kernel("b", add) + kernel("attn_forward", mul), {"b", "attn_forward"});
  size_t first = ptx.find(".entry attn_forward("), second = ptx.find(".entry attn_forward_1(");
  ASSERT_NE(first, std::string::npos) << ptx;
  ASSERT_NE(second, std::string::npos) << ptx;
  EXPECT_LT(first, second);
  EXPECT_LT(ptx.find("add.rn.f32"), second);
  EXPECT_GT(ptx.find("mul.rn.f32"), second);
  EXPECT_EQ(ptx, ptxOf(kernel("x", add) + kernel("y", mul), {"x", "y"}));
}

TEST(Ptx, UnknownTargetsAreRefused) {
  std::string body = bodyOf("%r = llvm.fadd %x, %x : f32");
  EXPECT_EQ(ptxOf(body, {"f"}, "sm_9000"), "error: this LLVM has no chip 'sm_9000'");
  EXPECT_EQ(ptxOf(body, {"f"}, ""), "error: this LLVM has no chip ''");
  EXPECT_EQ(ptxOf(body, {"f"}, "sm_90a", "+ptx91"), "error: this LLVM has no feature '+ptx91'");
  EXPECT_EQ(ptxOf(body, {"f"}, "sm_90a", "ptx86"), "error: this LLVM has no feature 'ptx86'");
  EXPECT_EQ(ptxOf(body, {"g"}), "error: no kernel 'g' came out of the lowering");
}

TEST(Ptx, WhatHasNoCodeIsRefused) {
  auto refusal = [](const std::string &body) { return ptxOf(bodyOf(body)); };
  const std::string tail = ", which has no code on the GPU";
  EXPECT_EQ(refusal("%r = llvm.intr.pow(%x, %x) : (f32, f32) -> f32"),
            "error: 'attn_forward' uses 'llvm.pow.f32'" + tail);
  EXPECT_EQ(refusal("%r = llvm.intr.sin(%x) : (f32) -> f32"),
            "error: 'attn_forward' uses 'llvm.sin.f32'" + tail);
  EXPECT_EQ(
      ptxOf("llvm.func @expf(f32) -> f32\n" + bodyOf("%r = llvm.call @expf(%x) : (f32) -> f32")),
      "error: 'attn_forward' calls 'expf'" + tail);
  EXPECT_EQ(refusal("%q = llvm.load %p : !llvm.ptr -> !llvm.ptr\n"
                    "%r = llvm.call %q(%x) : !llvm.ptr, (f32) -> f32"),
            "error: 'attn_forward' calls through a pointer" + tail);
  EXPECT_EQ(refusal("%e = llvm.fpext %x : f32 to f128\n%j = llvm.sitofp %i : i32 to f128\n%s = "
                    "llvm.fdiv %j, %e : f128\n"
                    "%r = llvm.fptrunc %s : f128 to f32"),
            "error: 'attn_forward' computes a value of type fp128" + tail);
  EXPECT_EQ(
      refusal("llvm.call_intrinsic \"llvm.nvvm.tcgen05.fence.before.thread.sync\"() : () -> ()\n"
              "%r = llvm.fadd %x, %x : f32"),
      "error: 'attn_forward' uses 'llvm.nvvm.tcgen05.fence.before.thread.sync'" + tail);
  EXPECT_EQ(refusal("llvm.fence seq_cst\n%r = llvm.fadd %x, %x : f32"),
            "error: 'attn_forward' has instruction 'fence'" + tail);
}

TEST(Ptx, ErrorsOfTheCodeGeneratorAreErrors) {
  std::string ptx =
      ptxOf(bodyOf("%r = llvm.inline_asm \"mov.b32 $0, $1;\", \"=Z,f\" %x : (f32) -> f32"));
  EXPECT_NE(ptx.find("error: "), std::string::npos) << ptx;
  EXPECT_NE(ptx.find("constraint"), std::string::npos) << ptx;
}

TEST(Ptx, WhatKernelsUseIsTaken) {
  for (const char *body : {
           "%r = llvm.intr.exp2(%x) {fastmathFlags = #llvm.fastmath<afn>} : (f32) -> f32",
           "%r = llvm.intr.tanh(%x) {fastmathFlags = #llvm.fastmath<afn>} : (f32) -> f32",
           "%r = llvm.intr.maxnum(%x, %x) : (f32, f32) -> f32",
           "%r = llvm.call_intrinsic \"llvm.nvvm.ex2.approx.ftz.f32\"(%x) : (f32) -> f32",
           "%c = llvm.intr.ctpop(%i) : (i32) -> i32\n%r = llvm.sitofp %c : i32 to f32",
           "%m = llvm.intr.bitreverse(%i) : (i32) -> i32\n%r = llvm.bitcast %m : i32 to f32",
           "%t = nvvm.read.ptx.sreg.tid.x : i32\n%r = llvm.sitofp %t : i32 to f32",
           "%o = llvm.atomicrmw add %p, %i monotonic : !llvm.ptr, i32\n"
           "%r = llvm.sitofp %o : i32 to f32",
       })
    EXPECT_NE(ptxOf(bodyOf(body)).find(".entry"), std::string::npos) << body;
}

TEST(Ptx, OnSeveralThreads) {
  std::vector<std::thread> threads;
  std::vector<std::string> results(4);
  for (std::string &result : results)
    threads.emplace_back([&result] { result = ptxOf(bodyOf("%r = llvm.fadd %x, %x : f32")); });
  for (std::thread &thread : threads)
    thread.join();
  for (const std::string &result : results)
    EXPECT_EQ(result, results[0]);
}
