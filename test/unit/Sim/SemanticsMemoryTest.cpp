// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loads, stores, atomics and matrix fragments: PTX ISA, "Data Movement and Conversion
// Instructions", "Parallel Synchronization and Communication Instructions: atom, red" and "Warp
// Level Matrix Instructions: ldmatrix, stmatrix".
#include "SemanticsSupport.h"

using namespace attn::sim;
using namespace attn::sim::test;

// In these statements %d0 is the address of the operands of the lane, 32 bytes.
static constexpr uint64_t kLow = 0x8877665544332211, kHigh = 0xffeeddccbbaa9988;

// PTX ISA, "ld": narrow types fill the register with zeros, or with the sign.
TEST(SimMemory, LoadWidths) {
  const std::vector<uint64_t> in = {kLow, kHigh};
  expectStatement("ld.global.u8 $d, [%d0+7];", "rd", {{in, 0x88}});
  expectStatement("ld.global.s8 $d, [%d0+7];", "rd", {{in, 0xffffff88}});
  expectStatement("ld.global.s8 $d, [%d0+6];", "rd", {{in, 0x77}});
  expectStatement("ld.global.b8 $d, [%d0+9];", "hd", {{in, 0x99}});
  expectStatement("ld.global.u16 $d, [%d0+6];", "rd", {{in, 0x8877}});
  expectStatement("ld.global.s16 $d, [%d0+6];", "rd", {{in, 0xffff8877}});
  expectStatement("ld.global.b16 $d, [%d0+2];", "hd", {{in, 0x4433}});
  expectStatement("ld.global.b32 $d, [%d0+4];", "rd", {{in, 0x88776655}});
  expectStatement("ld.global.f32 $d, [%d0+8];", "rd", {{in, 0xbbaa9988}});
  expectStatement("ld.global.b64 $d, [%d0+8];", "dd", {{in, kHigh}});
  expectStatement("ld.global.s32 $d, [%d0+4];", "dd", {{in, 0xffffffff88776655}});
  expectStatement("ld.global.u32 $d, [%d0+4];", "dd", {{in, 0x88776655}});
  expectStatement("ld.global.nc.b32 $d, [%d0];", "rd", {{in, 0x44332211}});
  expectStatement("add.s64 %d1, %d0, 16; ld.global.b32 $d, [%d1-8];", "rd", {{in, 0xbbaa9988}});
  expectStatement("add.s64 %d1, %d0, 16; ld.global.b32 $d, [%d1+-12];", "rd", {{in, 0x88776655}});
  expectStatement("ld.b32 $d, [%d0+12];", "rd", {{in, 0xffeeddcc}}); // generic
}

// PTX ISA, "ld" of vectors.
TEST(SimMemory, LoadVectors) {
  const std::vector<uint64_t> in = {kLow, kHigh, 3, 4};
  expectStatement("ld.global.v2.b32 {%r1, $d}, [%d0];", "rd", {{in, 0x88776655}});
  expectStatement("ld.global.v4.b32 {%r1, _, %r2, $d}, [%d0];", "rd", {{in, 0xffeeddcc}});
  expectStatement("ld.global.v2.b64 {%d1, $d}, [%d0];", "dd", {{in, kHigh}});
  expectStatement("ld.global.v2.b64 {%d1, $d}, [%d0+16];", "dd", {{in, 4}});
  expectStatement("ld.global.v4.b16 {%h1, %h2, $d, %h3}, [%d0];", "hd", {{in, 0x6655}});
  expectStatement("ld.global.v4.u8 {%r1, %r2, %r3, $d}, [%d0+4];", "rd", {{in, 0x88}});
}

// PTX ISA, "st": the low bits of the register.
TEST(SimMemory, StoresToShared) {
  const std::string at = "mov.u32 %r1, smem; mad.lo.s32 %r1, %t, 32, %r1;"
                         "st.shared.v4.b32 [%r1], {-1, -1, -1, -1};";
  auto check = [&](const std::string &store, const std::string &signature, uint64_t out) {
    expectStatement(at + store + "ld.shared.b64 $d, [%r1];", signature, {{{kLow, kHigh}, out}});
  };
  check("st.shared.b8 [%r1+1], $a;", "dr", 0xffffffffffff11ff);
  check("st.shared.u8 [%r1+7], $a;", "dh", 0x11ffffffffffffff);
  check("st.shared.b16 [%r1+2], $a;", "dh", 0xffffffff2211ffff);
  check("st.shared.b32 [%r1+4], $a;", "dr", 0x44332211ffffffff);
  check("st.shared.b64 [%r1], $a;", "dd", kLow);
  check("st.shared.v2.b32 [%r1], {$b, $a};", "drr", 0x44332211bbaa9988);
  check("st.shared.v2.b16 [%r1+4], {$a, $b};", "dhh", 0x99882211ffffffff);
  expectStatement(at + "st.shared.v2.b64 [%r1], {$a, $b}; ld.shared.b32 $d, [%r1+12];", "rdd",
                  {{{kLow, kHigh}, 0xffeeddcc}});
  expectStatement(at + "st.shared.v4.b32 [%r1], {$a, 7, $a, $b}; ld.shared.v4.b32 "
                       "{%r2, $d, %r3, %r4}, [%r1];",
                  "rrr", {{{1, 2}, 7}});
  expectStatement(
      "mul.lo.s32 %r1, %t, 32; st.shared::cta.b32 [smem+4], 5; ld.shared.b32 $d, [smem+4];"
      "bar.warp.sync -1;",
      "rr", {{{1}, 5}});
}

// PTX ISA, "cvta": the generic space holds the others in windows.
TEST(SimMemory, GenericAddresses) {
  expectStatement("mov.b64 %d1, smem; mul.wide.u32 %d2, %t, 32; add.s64 %d1, %d1, %d2;"
                  "cvta.shared.u64 %d3, %d1; st.b32 [%d3+4], $a; ld.shared.b32 $d, [%d1+4];",
                  "rr", {{{77}, 77}});
  expectStatement("mov.b64 %d1, smem; mul.wide.u32 %d2, %t, 32; add.s64 %d1, %d1, %d2;"
                  "cvta.shared.u64 %d3, %d1; cvta.to.shared.u64 %d4, %d3; sub.s64 $d, %d4, %d1;",
                  "dr", {{{77}, 0}});
  expectStatement("cvta.to.global.u64 %d1, %d0; ld.global.b32 $d, [%d1];", "rr", {{{77}, 77}});
}

// PTX ISA, "State spaces: param": by name, by an address in the space, and in the generic space.
TEST(SimMemory, Parameters) {
  auto isIn = [](const std::string &load) {
    expectStatement(load + "sub.s64 $d, %d1, %in;", "dr", {{{1}, 0}});
  };
  isIn("ld.param.b64 %d1, [in];");
  isIn("ld.param.b32 %r1, [in]; ld.param.b32 %r2, [in+4]; mov.b64 %d1, {%r1, %r2};");
  isIn("ld.param.v2.b32 {%r1, %r2}, [in]; mov.b64 %d1, {%r1, %r2};");
  isIn("mov.b64 %d2, in; ld.param.b64 %d1, [%d2];");
  isIn("mov.b64 %d2, out; ld.param.b64 %d1, [%d2+-8];"); // the second of 8 bytes follows the first
  isIn("mov.b64 %d2, in; cvta.param.u64 %d2, %d2; ld.b64 %d1, [%d2];");
  expectStatement("ld.param.s32 %d1, [in]; cvt.u32.u64 %r1, %d1; ld.param.b32 %r2, [in];"
                  "sub.s32 $d, %r1, %r2;",
                  "rr", {{{1}, 0}});
  expectStatement("ld.param.b32 $d, [map+124];", "rr", {{{1}, 0}});
}

// PTX ISA, "State spaces: local": a thread's own.
TEST(SimMemory, Local) {
  expectStatement(".local .align 8 .b8 depot[16];\nst.local.b32 [depot+8], $a;"
                  "mov.b64 %d1, depot; cvta.local.u64 %d2, %d1; ld.b32 $d, [%d2+8];",
                  "rr", {{{1}, 1}, {{2}, 2}, {{3}, 3}});
  expectStatement(
      ".local .align 8 .b8 depot[16];\nmov.b64 %d1, depot; st.local.v2.b32 [%d1], {$a, 9};"
      "ld.local.b64 $d, [depot];",
      "dr", {{{1}, 0x900000001}, {{2}, 0x900000002}});
}

// Shared variables of a kernel; they do not overlap.
TEST(SimMemory, SharedVariables) {
  expectStatement(".shared .align 4 .b8 first[4]; .shared .align 8 .b64 second;\n"
                  "st.shared.b32 [first], 5; st.shared.b64 [second], 6; st.shared.b32 [smem], 7;"
                  "ld.shared.b32 $d, [first]; bar.warp.sync -1;",
                  "rr", {{{0}, 5}});
}

// PTX ISA, "atom": returns what was there. %r1 is a word of the lane.
TEST(SimMemory, AtomicOperations) {
  auto check = [](const std::string &op, uint64_t old, uint64_t operand, uint64_t after) {
    const std::string before =
        "mov.u32 %r1, smem; mad.lo.s32 %r1, %t, 32, %r1; st.shared.b32 [%r1], $a;";
    expectStatement(before + "atom.shared." + op + " $d, [%r1], $b;", "rrr",
                    {{{old, operand}, old}});
    expectStatement(before + "atom.shared." + op + " %r2, [%r1], $b; ld.shared.b32 $d, [%r1];",
                    "rrr", {{{old, operand}, after}});
  };
  check("add.u32", 0xffffffff, 2, 1);
  check("add.s32", 5, 0xffffffff, 4);
  check("add.f32", bitsOf(1.5f), bitsOf(2.0f), bitsOf(3.5f));
  check("exch.b32", 5, 7, 7);
  check("min.s32", 5, 0xffffffff, 0xffffffff);
  check("min.u32", 5, 0xffffffff, 5);
  check("max.s32", 5, 0xffffffff, 5);
  check("max.u32", 5, 0xffffffff, 0xffffffff);
  check("and.b32", 0xff, 0x3c, 0x3c);
  check("or.b32", 0xf0, 0x3c, 0xfc);
  check("xor.b32", 0xf0, 0x3c, 0xcc);
  check("inc.u32", 5, 7, 6); // wraps to 0 at the operand
  check("inc.u32", 7, 7, 0);
  check("inc.u32", 9, 7, 0);
  check("dec.u32", 5, 7, 4); // wraps to the operand at 0, and if it is above
  check("dec.u32", 0, 7, 7);
  check("dec.u32", 9, 7, 7);
  const std::string cas = "mov.u32 %r1, smem; mad.lo.s32 %r1, %t, 32, %r1; st.shared.b32 [%r1], $a;"
                          "atom.shared.cas.b32 %r2, [%r1], $b, $c;";
  expectStatement(cas + "ld.shared.b32 $d, [%r1];", "rrrr", {{{5, 5, 9}, 9}, {{5, 6, 9}, 5}});
  expectStatement(cas + "mov.b32 $d, %r2;", "rrrr", {{{5, 5, 9}, 5}, {{5, 6, 9}, 5}});
  expectStatement("mov.u32 %r1, smem; mad.lo.s32 %r1, %t, 32, %r1; st.shared.b64 [%r1], $a;"
                  "red.shared.add.u64 [%r1], $b; ld.shared.b64 $d, [%r1];",
                  "ddd", {{{~0ull, 2}, 1}});
}

// The same section: lanes, warps and CTAs that hit one word each see another old value.
TEST(SimMemory, AtomicsOfManyThreads) {
  TinyKernel kernel;
  kernel.threads = 64;
  kernel.ctas = 2;
  kernel.outWords = 1 + 128;
  kernel.body = R"(atom.global.add.u64 %d1, [%out], 1;
cvt.u32.u64 %r1, %d1;
mul.wide.u32 %d2, %r1, 8;
add.s64 %d2, %out, %d2;
atom.global.add.u64 %d3, [%d2+8], 1;)";
  std::vector<uint64_t> out = runClean(kernel);
  EXPECT_EQ(out[0], 128u);
  for (size_t i = 1; i < out.size(); ++i)
    EXPECT_EQ(out[i], 1u) << i;
}

/// Lane l of ldmatrix and stmatrix gives the address of row l; rows lie 48 bytes apart, from the
/// last to the first.
static const char kRows[] = "mov.u32 %r1, smem;\n"
                            "mov.u32 %r2, 31;\n"
                            "sub.s32 %r2, %r2, %t;\n"
                            "mad.lo.s32 %r1, %r2, 48, %r1;\n";

/// Element (row, col) of matrix m.
static uint32_t element(uint32_t m, uint32_t row, uint32_t col) { return m << 8 | row << 4 | col; }

/// What lane l holds of matrix m: two elements, the first in the low half.
static uint32_t fragment(uint32_t m, uint32_t lane, bool transposed) {
  uint32_t row = lane / 4, col = lane % 4 * 2;
  return transposed ? element(m, col, row) | element(m, col + 1, row) << 16
                    : element(m, row, col) | element(m, row, col + 1) << 16;
}

static void checkLoadMatrix(int count, bool transposed) {
  TinyKernel kernel;
  kernel.sharedBytes = 48 * 32;
  kernel.outWords = 32 * 4;
  // Row l of the matrices, 8 elements: matrix l / 8, row l % 8.
  for (uint32_t l = 0; l < 32; ++l)
    for (uint32_t word = 0; word < 2; ++word) {
      uint64_t four = 0;
      for (uint32_t i = 0; i < 4; ++i)
        four |= uint64_t(element(l / 8, l % 8, word * 4 + i)) << (16 * i);
      kernel.in.push_back(four);
    }
  std::string registers = "%a0";
  for (int i = 1; i < count; ++i)
    registers += ", %a" + std::to_string(i);
  kernel.body = std::string(kRows) + R"(mul.wide.u32 %d1, %t, 16;
add.s64 %d1, %in, %d1;
ld.global.v2.b64 {%d2, %d3}, [%d1];
st.shared.v2.b64 [%r1], {%d2, %d3};
bar.warp.sync -1;
ldmatrix.sync.aligned.m8n8.x)" +
                std::to_string(count) + (transposed ? ".trans" : "") + ".shared.b16 {" + registers +
                "}, [%r1];\n" + "mul.wide.u32 %d4, %t, 32;\nadd.s64 %d4, %out, %d4;\n";
  for (int i = 0; i < count; ++i)
    kernel.body +=
        "st.global.b32 [%d4+" + std::to_string(8 * i) + "], %a" + std::to_string(i) + ";\n";
  std::vector<uint64_t> out = runClean(kernel);
  for (uint32_t lane = 0; lane < 32; ++lane)
    for (int i = 0; i < count; ++i)
      EXPECT_EQ(out[lane * 4 + i], fragment(i, lane, transposed))
          << "x" << count << " lane " << lane << " matrix " << i;
}

TEST(SimMatrix, LoadMatrix) {
  for (int count : {1, 2, 4}) {
    checkLoadMatrix(count, false);
    checkLoadMatrix(count, true);
  }
}

static void checkStoreMatrix(int count, bool transposed) {
  TinyKernel kernel;
  kernel.sharedBytes = 48 * 32;
  kernel.outWords = 32 * 2;
  for (uint32_t lane = 0; lane < 32; ++lane)
    for (uint32_t m = 0; m < 4; ++m)
      kernel.in.push_back(fragment(m, lane, transposed));
  kernel.body = std::string(kRows) + R"(st.shared.v2.b64 [%r1], {0, 0};
bar.warp.sync -1;
mul.wide.u32 %d1, %t, 32;
add.s64 %d1, %in, %d1;
)";
  std::string registers;
  for (int i = 0; i < count; ++i) {
    std::string a = "%a" + std::to_string(i);
    kernel.body += "ld.global.b32 " + a + ", [%d1+" + std::to_string(8 * i) + "];\n";
    registers += (i ? ", " : "") + a;
  }
  kernel.body += "stmatrix.sync.aligned.m8n8.x" + std::to_string(count) +
                 (transposed ? ".trans" : "") + ".shared.b16 [%r1], {" + registers + "};\n" +
                 R"(bar.warp.sync -1;
ld.shared.v2.b64 {%d2, %d3}, [%r1];
mul.wide.u32 %d4, %t, 16;
add.s64 %d4, %out, %d4;
st.global.v2.b64 [%d4], {%d2, %d3};)";
  std::vector<uint64_t> out = runClean(kernel);
  for (uint32_t l = 0; l < 32; ++l)
    for (uint32_t col = 0; col < 8; ++col) {
      bool stored = static_cast<int>(l / 8) < count;
      EXPECT_EQ(out[l * 2 + col / 4] >> (col % 4 * 16) & 0xffff,
                stored ? element(l / 8, l % 8, col) : 0)
          << "x" << count << " row " << l << " col " << col;
    }
}

TEST(SimMatrix, StoreMatrix) {
  for (int count : {1, 2, 4}) {
    checkStoreMatrix(count, false);
    checkStoreMatrix(count, true);
  }
}
