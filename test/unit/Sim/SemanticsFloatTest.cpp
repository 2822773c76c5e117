// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Vectors worked by hand from PTX ISA, "Floating Point Instructions", "Half Precision Floating
// Point Instructions" and "Data Movement and Conversion Instructions: cvt".
#include "SemanticsSupport.h"

#include <limits>

using namespace attn::sim::test;

static constexpr uint64_t kNan = 0x7fffffff, kInf = 0x7f800000, kMinusInf = 0xff800000;
static constexpr uint64_t kOne = 0x3f800000, kZero = 0, kMinusZero = 0x80000000;

static uint64_t f(float value) { return bitsOf(value); }

/// The results are NaNs, whatever their payload.
static void expectNan(const std::string &op, const std::string &signature,
                      const std::vector<std::vector<uint64_t>> &operands) {
  std::vector<Vector> vectors;
  for (const std::vector<uint64_t> &in : operands)
    vectors.push_back({in, 0});
  static const char *const kOperands[] = {"$d", ", $a", ", $b", ", $c"};
  std::string statement = op + " ";
  for (size_t i = 0; i < signature.size(); ++i)
    statement += kOperands[i];
  for (uint64_t out : apply(statement + ";", signature, vectors))
    EXPECT_TRUE(std::isnan(floatOf(out))) << op << " gives " << floatOf(out);
}

// PTX ISA, "Floating Point Instructions: add, sub, mul": one rounding to nearest even.
TEST(SimFloat, AddSubMul) {
  for (const char *rounding : {"add.f32", "add.rn.f32"})
    expectOp(rounding, "rrr",
             {{{f(1), f(2)}, f(3)},
              {{kOne, 0x33800000}, kOne},             // 1 + 2^-24: tie, even stays
              {{0x3f800001, 0x33800000}, 0x3f800002}, // (1 + 2^-23) + 2^-24: tie, to even
              {{kOne, 0x33800001}, 0x3f800001},       // just above the tie
              {{0x7f7fffff, 0x7f7fffff}, kInf},
              {{1, 1}, 2}, // subnormals are numbers
              {{kMinusZero, kMinusZero}, kMinusZero},
              {{kOne, f(-1)}, kZero}});
  expectOp("sub.rn.f32", "rrr", {{{f(1), f(3)}, f(-2)}, {{kInf, kOne}, kInf}});
  expectOp("mul.rn.f32", "rrr",
           {{{f(3), f(-0.5f)}, f(-1.5f)},
            {{0x3f800001, 0x3f800001}, 0x3f800002}, // 1 + 2^-22 + 2^-46
            {{0x00800000, f(0.5f)}, 0x00400000},
            {{kMinusZero, f(5)}, kMinusZero}});
  expectNan("add.rn.f32", "rrr", {{kInf, kMinusInf}, {kNan, kOne}});
  expectNan("mul.rn.f32", "rrr", {{kInf, kZero}});
  expectOp("add.rn.f64", "ddd",
           {{{bitsOf(1.0), bitsOf(0x1p-53)}, bitsOf(1.0)},
            {{bitsOf(1.0), bitsOf(0x1p-52)}, bitsOf(1.0 + 0x1p-52)}});
  expectOp("mul.rn.f64", "ddd", {{{bitsOf(3.0), bitsOf(0.5)}, bitsOf(1.5)}});
}

// The same section, .ftz: subnormal operands and results become zeros of the same sign.
TEST(SimFloat, FlushToZero) {
  expectOp("add.ftz.f32", "rrr",
           {{{1, 1}, 0}, {{0x80000001, 0x80000001}, kMinusZero}, {{0x00800000, 1}, 0x00800000}});
  expectOp("mul.rn.ftz.f32", "rrr",
           {{{0x00800000, f(0.5f)}, 0}, {{0x80800000, f(0.5f)}, kMinusZero}});
  expectOp("fma.rn.ftz.f32", "rrrr", {{{0x00400000, f(4), kOne}, kOne}});
  expectOp("max.ftz.f32", "rrr", {{{1, kMinusInf}, 0}});
}

// PTX ISA, "Floating Point Instructions: fma": the product is not rounded.
TEST(SimFloat, FmaRoundsOnce) {
  const uint64_t x = 0x3f800800;              // 1 + 2^-12
  const uint64_t square = f(1.0f + 0x1p-11f); // x x = 1 + 2^-11 + 2^-24, rounded
  const uint64_t minus = f(-(1.0f + 0x1p-11f));
  expectOp("mul.rn.f32", "rrr", {{{x, x}, square}});
  expectOp("fma.rn.f32", "rrrr", {{{x, x, minus}, f(0x1p-24f)}, {{f(2), f(3), f(4)}, f(10)}});
  expectNan("fma.rn.f32", "rrrr", {{kInf, kZero, kOne}, {kInf, kOne, kMinusInf}});
  expectOp("fma.rn.f64", "dddd", {{{bitsOf(2.0), bitsOf(3.0), bitsOf(4.0)}, bitsOf(10.0)}});
}

// PTX ISA, "Floating Point Instructions: min, max": a NaN loses against a number, +0 is above -0.
TEST(SimFloat, MinMax) {
  expectOp("max.f32", "rrr",
           {{{f(1), f(2)}, f(2)},
            {{kNan, f(1)}, f(1)},
            {{f(1), kNan}, f(1)},
            {{kNan, kNan}, kNan},
            {{kZero, kMinusZero}, kZero},
            {{kMinusZero, kZero}, kZero},
            {{kMinusInf, kNan}, kMinusInf}});
  expectOp("min.f32", "rrr",
           {{{f(1), f(2)}, f(1)},
            {{kNan, f(1)}, f(1)},
            {{f(1), kNan}, f(1)},
            {{kNan, kNan}, kNan},
            {{kZero, kMinusZero}, kMinusZero},
            {{kMinusZero, kZero}, kMinusZero}});
  expectOp("max.NaN.f32", "rrr", {{{kNan, f(1)}, kNan}, {{f(1), f(2)}, f(2)}});
  expectOp("min.NaN.f32", "rrr", {{{f(1), kNan}, kNan}, {{f(1), f(2)}, f(1)}});
  expectOp("abs.f32", "rr", {{{f(-3)}, f(3)}, {{kMinusZero}, kZero}, {{kMinusInf}, kInf}});
  expectOp("neg.f32", "rr", {{{f(-3)}, f(3)}, {{kZero}, kMinusZero}});
}

// PTX ISA, "Floating Point Instructions: div, rcp, sqrt" with IEEE rounding.
TEST(SimFloat, Divisions) {
  expectOp("div.rn.f32", "rrr",
           {{{f(1), f(3)}, 0x3eaaaaab},
            {{f(2), f(3)}, 0x3f2aaaab},
            {{f(-1), kZero}, kMinusInf},
            {{f(1), kMinusInf}, kMinusZero}});
  expectNan("div.rn.f32", "rrr", {{kZero, kZero}, {kInf, kInf}});
  expectOp("rcp.rn.f32", "rr",
           {{{f(3)}, 0x3eaaaaab}, {{f(4)}, f(0.25f)}, {{kMinusZero}, kMinusInf}});
  expectOp("sqrt.rn.f32", "rr", {{{f(2)}, 0x3fb504f3}, {{f(9)}, f(3)}, {{kMinusZero}, kMinusZero}});
  expectOp("div.rn.f64", "ddd", {{{bitsOf(1.0), bitsOf(3.0)}, 0x3fd5555555555555}});
}

/// `op` of every value is within 2 units in the last place of `exact`.
static void expectNear(const std::string &op, const std::vector<float> &values,
                       double (*exact)(double)) {
  std::vector<Vector> vectors;
  for (float value : values)
    vectors.push_back({{bitsOf(value)}, 0});
  std::vector<uint64_t> out = apply(op + " $d, $a;", "rr", vectors);
  for (size_t i = 0; i < values.size(); ++i) {
    double want = exact(values[i]);
    auto rounded = static_cast<float>(want);
    double ulp = std::nextafter(std::fabs(rounded), std::numeric_limits<float>::infinity()) -
                 std::fabs(rounded);
    EXPECT_LE(std::fabs(floatOf(out[i]) - want), 2 * ulp) << op << " of " << values[i];
  }
}

// PTX ISA, "Floating Point Instructions: ex2, lg2, rcp, rsqrt" (.approx): small errors, and exact
// special values.
TEST(SimFloat, Approximations) {
  std::vector<float> any, positive;
  for (int i = -60; i < 60; ++i) {
    any.push_back(static_cast<float>(i) * 1.37f + 0.013f);
    positive.push_back(std::ldexp(1.0f + static_cast<float>(i + 60) / 120.0f, i));
  }
  expectNear("ex2.approx.ftz.f32", any, [](double x) { return std::exp2(x); });
  expectNear("rcp.approx.ftz.f32", any, [](double x) { return 1 / x; });
  expectNear("lg2.approx.ftz.f32", positive, [](double x) { return std::log2(x); });
  expectNear("rsqrt.approx.ftz.f32", positive, [](double x) { return 1 / std::sqrt(x); });
  expectOp("ex2.approx.ftz.f32", "rr",
           {{{kZero}, kOne},
            {{f(3)}, f(8)},
            {{f(-126)}, 0x00800000},
            {{f(-127)}, kZero}, // subnormal
            {{f(-1e30f)}, kZero},
            {{kMinusInf}, kZero},
            {{kInf}, kInf},
            {{f(128)}, kInf},
            {{1}, kOne}});
  expectOp("lg2.approx.ftz.f32", "rr",
           {{{kOne}, kZero},
            {{f(8)}, f(3)},
            {{kZero}, kMinusInf},
            {{kMinusZero}, kMinusInf},
            {{kInf}, kInf},
            {{1}, kMinusInf}});
  expectOp("rcp.approx.ftz.f32", "rr",
           {{{f(2)}, f(0.5f)},
            {{kZero}, kInf},
            {{kMinusZero}, kMinusInf},
            {{kInf}, kZero},
            {{kMinusInf}, kMinusZero},
            {{f(0x1p127f)}, kZero},
            {{1}, kInf}});
  expectNan("ex2.approx.ftz.f32", "rr", {{kNan}});
  expectNan("lg2.approx.ftz.f32", "rr", {{f(-1)}, {kMinusInf}, {kNan}});
  expectNan("rcp.approx.ftz.f32", "rr", {{kNan}});
}

// PTX ISA, "Comparison and Selection Instructions: setp" of floats: ordered comparisons are false
// with a NaN, those that end in u true.
TEST(SimFloat, SetpComparisons) {
  struct Row {
    const char *op;
    int less, equal, greater, nan;
  };
  const Row rows[] = {{"eq", 0, 1, 0, 0},  {"ne", 1, 0, 1, 0},  {"lt", 1, 0, 0, 0},
                      {"le", 1, 1, 0, 0},  {"gt", 0, 0, 1, 0},  {"ge", 0, 1, 1, 0},
                      {"equ", 0, 1, 0, 1}, {"neu", 1, 0, 1, 1}, {"ltu", 1, 0, 0, 1},
                      {"leu", 1, 1, 0, 1}, {"gtu", 0, 0, 1, 1}, {"geu", 0, 1, 1, 1},
                      {"num", 1, 1, 1, 0}, {"nan", 0, 0, 0, 1}};
  for (const Row &row : rows) {
    auto b = [](int value) { return static_cast<uint64_t>(value); };
    std::string setp = std::string("setp.") + row.op;
    expectOp(setp + ".f32", "prr",
             {{{f(1), f(2)}, b(row.less)},
              {{kMinusInf, kInf}, b(row.less)},
              {{f(2), f(2)}, b(row.equal)},
              {{kZero, kMinusZero}, b(row.equal)},
              {{kInf, kInf}, b(row.equal)},
              {{f(2), f(-3)}, b(row.greater)},
              {{1, 0}, b(row.greater)},
              {{kNan, f(2)}, b(row.nan)},
              {{f(2), kNan}, b(row.nan)},
              {{kNan, kNan}, b(row.nan)}});
    expectOp(setp + ".ftz.f32", "prr", {{{1, 0}, b(row.equal)}, {{0x80000001, 2}, b(row.equal)}});
    expectOp(setp + ".f64", "pdd",
             {{{bitsOf(1.0), bitsOf(2.0)}, b(row.less)},
              {{bitsOf(2.0), 0x7ff8000000000000}, b(row.nan)}});
  }
}

// PTX ISA, "Data Movement and Conversion Instructions: cvt" between integers: cut off or filled,
// with .sat kept in range.
TEST(SimConvert, Integers) {
  expectOp("cvt.s64.s32", "dr", {{{0xffffffff}, ~0ull}, {{5}, 5}});
  expectOp("cvt.u64.u32", "dr", {{{0xffffffff}, 0xffffffff}});
  expectOp("cvt.u32.u64", "rd", {{{0x123456789}, 0x23456789}});
  expectOp("cvt.s32.s64", "rd", {{{0xffffffff80000000}, 0x80000000}});
  expectOp("cvt.u32.u16", "rh", {{{0xffff}, 0xffff}});
  expectOp("cvt.s32.s16", "rh", {{{0xffff}, 0xffffffff}, {{0x7fff}, 0x7fff}});
  expectOp("cvt.u16.u32", "hr", {{{0x12345678}, 0x5678}});
  expectOp("cvt.s32.s8", "rr", {{{0x1ff}, 0xffffffff}, {{0x17f}, 0x7f}});
  expectOp("cvt.u32.u8", "rr", {{{0x1ff}, 0xff}});
  expectOp("cvt.u64.u16", "dh", {{{0xffff}, 0xffff}});
  // "Operand Size Exceeding Instruction-Type Size": the low bits of a wider register.
  expectOp("cvt.s64.s32", "dd", {{{0x5fffffffe}, ~1ull}, {{0x500000007}, 7}});
  expectOp("cvt.u64.u32", "dd", {{{0x5fffffffe}, 0xfffffffe}});
  expectOp("cvt.s32.s8", "rd", {{{0x5000000ff}, 0xffffffff}, {{0x50000017f}, 0x7f}});
  expectOp("cvt.s64.s16", "dh", {{{0xffff}, ~0ull}});
  expectOp("cvt.sat.u8.s32", "rr", {{{0xfffffffb}, 0}, {{300}, 255}, {{77}, 77}});
  expectOp("cvt.sat.s8.s32", "rr", {{{0xffffff00}, 0xffffff80}, {{300}, 127}});
  expectOp("cvt.sat.s32.s64", "rd", {{{1ull << 40}, 0x7fffffff}, {{1ull << 63}, 0x80000000}});
  expectOp("cvt.sat.u32.s32", "rr", {{{0xffffffff}, 0}, {{5}, 5}});
}

// The same section, integers to floats (.rn).
TEST(SimConvert, IntegersToFloats) {
  expectOp("cvt.rn.f32.s32", "rr",
           {{{16777217}, f(16777216)},
            {{16777219}, f(16777220)},
            {{0xffffffff}, f(-1)},
            {{0x80000000}, f(-0x1p31f)}});
  expectOp("cvt.rn.f32.u32", "rr", {{{0xffffffff}, f(0x1p32f)}, {{3}, f(3)}});
  expectOp("cvt.rn.f32.u64", "rd",
           {{{~0ull}, f(0x1p64f)},
            {{0}, 0},
            {{(1ull << 40) + (1ull << 16)}, f(0x1p40f)},
            {{(1ull << 40) + (1ull << 16) + 1}, f(0x1p40f + 0x1p17f)}});
  expectOp("cvt.rn.f32.s64", "rd", {{{~0ull}, f(-1)}, {{1ull << 63}, f(-0x1p63f)}});
  expectOp("cvt.rn.f64.s32", "dr", {{{0xffffffff}, bitsOf(-1.0)}});
  expectOp("cvt.rn.f64.u64", "dd", {{{(1ull << 53) + 1}, bitsOf(0x1p53)}});
  // 4097 lies between 4096 and 4100 of f16, 2049 in the middle of 2048 and 2050.
  expectOp("cvt.rn.f16.s32", "hr", {{{4097}, 0x6c00}, {{2049}, 0x6800}, {{70000}, 0x7c00}});
  // 257 is in the middle of 256 and 258 of bf16, 259 of 258 and 260.
  expectOp("cvt.rn.bf16.s32", "hr", {{{257}, 0x4380}, {{259}, 0x4382}});
  // Just above the middle of two bf16, and exactly there once rounded to f32.
  expectOp("cvt.rn.bf16.u32", "hr", {{{0x01010001}, 0x4b81}, {{0x01010000}, 0x4b80}});
}

// The same section, floats to integers: out of range is the nearest integer there is. NaN: zero,
// but the top bit alone if the source has 64 bits or the result has.
TEST(SimConvert, FloatsToIntegers) {
  auto s = [](int32_t value) { return static_cast<uint64_t>(static_cast<uint32_t>(value)); };
  expectOp("cvt.rzi.s32.f32", "rr",
           {{{f(2.9f)}, 2},
            {{f(-2.9f)}, s(-2)},
            {{f(3e9f)}, 0x7fffffff},
            {{f(-3e9f)}, 0x80000000},
            {{kNan}, 0},
            {{kInf}, 0x7fffffff}});
  expectOp("cvt.rni.s32.f32", "rr",
           {{{f(2.5f)}, 2}, {{f(3.5f)}, 4}, {{f(-0.5f)}, 0}, {{f(-1.5f)}, s(-2)}});
  expectOp("cvt.rmi.s32.f32", "rr", {{{f(-0.5f)}, s(-1)}, {{f(2.9f)}, 2}});
  expectOp("cvt.rpi.s32.f32", "rr", {{{f(-0.5f)}, 0}, {{f(2.1f)}, 3}});
  expectOp("cvt.rzi.u32.f32", "rr",
           {{{f(-5)}, 0}, {{f(0x1p32f)}, 0xffffffff}, {{f(3e9f)}, 3000000000}, {{kNan}, 0}});
  expectOp("cvt.rzi.u64.f32", "dr", {{{f(0x1p64f)}, ~0ull}, {{f(-1)}, 0}, {{kNan}, 1ull << 63}});
  expectOp("cvt.rzi.s64.f32", "dr", {{{f(0x1p63f)}, INT64_MAX}, {{kNan}, 1ull << 63}});
  expectOp(
      "cvt.rzi.s32.f64", "rd",
      {{{bitsOf(-2.9)}, s(-2)}, {{bitsOf(1e10)}, 0x7fffffff}, {{0x7ff8000000000000}, 1u << 31}});
  expectOp("cvt.rni.ftz.s32.f32", "rr", {{{f(2.5f)}, 2}, {{1}, 0}});
}

// The same section, to bf16: nearest even; the first operand is the high half.
TEST(SimConvert, Bf16) {
  expectOp("cvt.rn.bf16x2.f32", "rrr",
           {{{f(1), f(2)}, 0x3f804000},
            {{0x3f808000, 0x3f818000}, 0x3f803f82}, // ties
            {{0x3f808001, 0x3f807fff}, 0x3f813f80},
            {{0x7f7fffff, kMinusInf}, 0x7f80ff80},
            {{kNan, 0x00018000}, 0x7fff0002},
            {{0x00008000, 0x00008001}, 0x00000001}, // subnormal
            {{kMinusZero, kZero}, 0x80000000}});
  expectOp("cvt.rz.bf16x2.f32", "rrr",
           {{{0x3f80ffff, 0xbf80ffff}, 0x3f80bf80}, {{0x7f7fffff, 0}, 0x7f7f0000}});
  expectOp("cvt.rn.relu.bf16x2.f32", "rrr", {{{f(-1), f(2)}, 0x00004000}});
  expectOp("cvt.rn.bf16.f32", "hr", {{{0x3f818000}, 0x3f82}, {{kNan}, 0x7fff}});
  expectOp("cvt.f32.bf16", "rh", {{{0x3f80}, f(1)}, {{0xff80}, kMinusInf}, {{1}, 0x00010000}});
}

// The same section, to f16.
TEST(SimConvert, F16) {
  expectOp("cvt.rn.f16x2.f32", "rrr",
           {{{f(1), f(2)}, 0x3c004000},
            {{f(65504), f(65519.996f)}, 0x7bff7bff},
            {{f(65520), f(-65520)}, 0x7c00fc00},
            {{f(0x1p-24f), f(0x1p-25f)}, 0x00010000}, // tie to even
            {{f(0x1.8p-25f), f(0x1.8p-24f)}, 0x00010002},
            {{f(0x1p-14f), f(0x1.ff8p-15f)}, 0x040003ff},
            {{f(0x1.002p0f), f(0x1.006p0f)}, 0x3c003c02}, // ties
            {{kNan, kMinusZero}, 0x7fff8000}});
  expectOp("cvt.rn.f16.f32", "hr", {{{f(0x1.006p0f)}, 0x3c02}});
  expectOp("cvt.rz.f16.f32", "hr", {{{f(0x1.003p0f)}, 0x3c00}, {{f(65535)}, 0x7bff}});
  expectOp("cvt.f32.f16", "rh",
           {{{0x3c00}, f(1)},
            {{1}, f(0x1p-24f)},
            {{0x83ff}, f(-0x1.ff8p-15f)},
            {{0xfc00}, kMinusInf},
            {{0x7bff}, f(65504)},
            {{0x8000}, kMinusZero}});
}

// The same section, between f32 and f64, and to integers as floats.
TEST(SimConvert, Floats) {
  expectOp("cvt.f64.f32", "dr",
           {{{f(0.1f)}, bitsOf(static_cast<double>(0.1f))}, {{1}, bitsOf(0x1p-149)}});
  expectOp("cvt.rn.f32.f64", "rd",
           {{{bitsOf(1 + 0x1p-24)}, kOne},
            {{bitsOf(1 + 0x1p-24 + 0x1p-52)}, 0x3f800001},
            {{bitsOf(1e300)}, kInf}});
  expectOp("cvt.rni.f32.f32", "rr", {{{f(2.5f)}, f(2)}, {{f(-0.4f)}, kMinusZero}});
  expectOp("cvt.rzi.f32.f32", "rr", {{{f(-2.9f)}, f(-2)}});
  expectOp("cvt.rmi.f32.f32", "rr", {{{f(-2.1f)}, f(-3)}});
  expectOp("cvt.rpi.f32.f32", "rr", {{{f(-2.9f)}, f(-2)}, {{f(2.1f)}, f(3)}});
  expectOp("cvt.sat.f32.f32", "rr",
           {{{f(-2)}, 0}, {{f(0.5f)}, f(0.5f)}, {{f(7)}, kOne}, {{kNan}, 0}});
}

// PTX ISA, "Half Precision Floating Point Instructions": each half by itself, one rounding.
TEST(SimHalf, Pairs) {
  // 1.0 is 0x3f80 in bf16, the next number 0x3f81 (1 + 2^-7).
  expectOp("add.rn.bf16x2", "rrr", {{{0x3f804000, 0x3f803f80}, 0x40004040}});
  expectOp("fma.rn.bf16x2", "rrrr",
           // (1 + 2^-7)^2 - (1 + 2^-6) = 2^-14, lost if the product is rounded; 2 3 + 4 = 10.
           {{{0x3f814000, 0x3f814040, 0xbf824080}, 0x38804120}});
  expectOp("mul.rn.bf16x2", "rrr", {{{0x40004040, 0x40403f00}, 0x40c03fc0}});
  expectOp("max.bf16x2", "rrr", {{{0x7fff4000, 0x3f80bf80}, 0x3f804000}});
  // (1 + 2^-7) 1.5 is a tie, which 2^-40 less is not.
  expectOp("fma.rn.bf16", "hhhh",
           {{{0x3f81, 0x3f81, 0xbf82}, 0x3880},
            {{0x3f81, 0x3fc0, 0}, 0x3fc2},
            {{0x3f81, 0x3fc0, 0xab80}, 0x3fc1}});
  expectOp("add.f16x2", "rrr", {{{0x3c004000, 0x3c003c00}, 0x40004200}});
  // (1 + 2^-10)^2 - (1 + 2^-9) = 2^-20
  expectOp("fma.rn.f16x2", "rrrr", {{{0x3c013c00, 0x3c014000, 0xbc020000}, 0x00104000}});
  expectOp("max.f16", "hhh", {{{0x7fff, 0x3c00}, 0x3c00}, {{0x8000, 0}, 0}});
  expectOp("neg.bf16x2", "rr", {{{0x3f80bf80}, 0xbf803f80}});
  expectOp("abs.f16x2", "rr", {{{0xbc003c00}, 0x3c003c00}});
}
