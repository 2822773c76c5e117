// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the PTX ISA leaves to the hardware, as measured on an H200 (driver 580.159.04): approximate
// functions, and sums of products. The expected values, and hashes of many, are the GPU's.
#include "SemanticsSupport.h"

using namespace attn::sim::test;

/// FNV-1a of the low words.
static uint64_t hashOf(const std::vector<uint64_t> &words) {
  uint64_t hash = 0xcbf29ce484222325;
  for (uint64_t word : words)
    for (int i = 0; i < 4; ++i)
      hash = (hash ^ (word >> (8 * i) & 255)) * 0x100000001b3;
  return hash;
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

// Values that rounding to nearest would not give.
TEST(SimMeasured, Functions) {
  expectOp("ex2.approx.ftz.f32", "rr",
           {
               {{0x40e81cfc}, 0x431897a0}, // not 0x4318979f
               {{0x3e93b6d0}, 0x3f9c55f6}, // not 0x3f9c55f5
               {{0xbdd986e0}, 0x3f6dd46d}, // not 0x3f6dd46e
               {{0x40cfe4a4}, 0x42b499cd}, // not 0x42b499cc
           });
  expectOp("lg2.approx.ftz.f32", "rr",
           {
               {{0x3f2e3bf5}, 0xbf0e1c12}, // not 0xbf0e1c14
               {{0x3e93b6d0}, 0xbfe58c09}, // not 0xbfe58c0a
               {{0x3f60555d}, 0xbe43122d}, // not 0xbe43122f
               {{0x3e46c01f}, 0xc0175f32}, // not 0xc0175f33
           });
  expectOp("rcp.approx.ftz.f32", "rr",
           {
               {{0x40cfe4a4}, 0x3e1d9e95}, // not 0x3e1d9e94
               {{0x3f60555d}, 0x3f92117b}, // not 0x3f92117a
               {{0xbe97228c}, 0xc058d018}, // not 0xc058d017
               {{0x3d3ebc10}, 0x41abcc86}, // not 0x41abcc85
           });
  expectOp("rsqrt.approx.ftz.f32", "rr",
           {
               {{0x3f60555d}, 0x3f88bc6b}, // not 0x3f88bc6c
               {{0x402a749c}, 0x3f1cdd4b}, // not 0x3f1cdd4a
               {{0x3d099638}, 0x40ae9953}, // not 0x40ae9954
               {{0x3d17cdb1}, 0x40a638e3}, // not 0x40a638e4
           });
  expectOp("sqrt.approx.ftz.f32", "rr",
           {
               {{0x40e81cfc}, 0x402c5e08}, // not 0x402c5e09
               {{0x3e93b6d0}, 0x3f098113}, // not 0x3f098114
               {{0x40cfe4a4}, 0x40232070}, // not 0x4023206f
               {{0x40ba5a48}, 0x401a71d2}, // not 0x401a71d3
           });
  expectOp("tanh.approx.f32", "rr",
           {
               {{0x3f2e3bf5}, 0x3f17877e}, // not 0x3f178778
               {{0xbf52e39d}, 0xbf2d5833}, // not 0xbf2d5811
               {{0x40e81cfc}, 0x3f7ffff0}, // not 0x3f7fffef
               {{0x3e93b6d0}, 0x3e8fbf4a}, // not 0x3e8fbf70
           });
}

/// `op` of 2^14 values of one exponent and sign, 512 or 513 apart, which meet every piece of the
/// tables.
static uint64_t hashOfBinade(const std::string &op, uint32_t first) {
  TinyKernel kernel;
  kernel.threads = 1024;
  kernel.ctas = 16;
  kernel.outWords = 1 << 14;
  kernel.body = "mov.u32 %r0, %ctaid.x;\nmad.lo.u32 %r0, %r0, 1024, %t;\nand.b32 %r1, %r0, 511;\n"
                "mad.lo.u32 %r1, %r0, 512, %r1;\nadd.u32 %r1, %r1, " +
                std::to_string(first) + ";\n" + op +
                " %r2, %r1;\nmul.wide.u32 %d0, %r0, 8;\nadd.s64 %d0, %out, %d0;\n"
                "st.global.b32 [%d0], %r2;";
  return hashOf(runClean(kernel));
}

TEST(SimMeasured, FunctionsOfWholeBinades) {
  struct Row {
    const char *op;
    uint32_t first;
    uint64_t hash;
  };
  const Row rows[] = {{"ex2.approx.ftz.f32", 0x3f800000, 0x5642306f8a501154},
                      {"ex2.approx.ftz.f32", 0xbf800000, 0x83a90389f4153b36},
                      {"ex2.approx.ftz.f32", 0x3f000000, 0x243b24e4b5b262e6},
                      {"ex2.approx.ftz.f32", 0xbf000000, 0xeec9bad58538a04b},
                      {"ex2.approx.ftz.f32", 0x3e800000, 0x928a18df9e7aaa11},
                      {"ex2.approx.ftz.f32", 0xbe800000, 0x96b4524f9fa0ad7c},
                      {"ex2.approx.ftz.f32", 0x41000000, 0x3c7599eddc532925},
                      {"ex2.approx.ftz.f32", 0xc1000000, 0x8601e830f31c24d1},
                      {"lg2.approx.ftz.f32", 0x3f800000, 0x4bb7114a0b21e040},
                      {"lg2.approx.ftz.f32", 0x3f000000, 0xf4ce4c18aec9608a},
                      {"lg2.approx.ftz.f32", 0x40000000, 0x826e3b3c838ceba7},
                      {"rcp.approx.ftz.f32", 0x3f800000, 0xda7955cdcde7cfc7},
                      {"rsqrt.approx.ftz.f32", 0x3f800000, 0xea6aa5d5cba5c53f},
                      {"sqrt.approx.ftz.f32", 0x3f800000, 0x78bc4db667d74c13},
                      {"rsqrt.approx.ftz.f32", 0x40000000, 0x090105e723ca95a2},
                      {"sqrt.approx.ftz.f32", 0x40000000, 0x080f0917fd354e41},
                      {"tanh.approx.f32", 0x3b000000, 0xa2841929ef35f925},
                      {"tanh.approx.f32", 0x3b800000, 0xfba446d14e1db1c8},
                      {"tanh.approx.f32", 0x3c000000, 0x1cbaa9608706e84b},
                      {"tanh.approx.f32", 0x3c800000, 0x924b7c4eaf793bb2},
                      {"tanh.approx.f32", 0x3d000000, 0xfd38f265ce7a11a3},
                      {"tanh.approx.f32", 0x3d800000, 0xd11e1cd7374c9bbd},
                      {"tanh.approx.f32", 0x3e000000, 0xd5ee559d72c173db},
                      {"tanh.approx.f32", 0x3e800000, 0x2bcc9bd2b1f0ebf5},
                      {"tanh.approx.f32", 0x3f000000, 0xa36874e1e5784822},
                      {"tanh.approx.f32", 0x3f800000, 0x192627854aa66b47},
                      {"tanh.approx.f32", 0x40000000, 0x0b668e94b28d9802},
                      {"tanh.approx.f32", 0x40800000, 0x6665da05bcf1bba0},
                      {"tanh.approx.f32", 0x41000000, 0x6f621e94856c2325}};
  for (const Row &row : rows)
    EXPECT_EQ(hashOfBinade(row.op, row.first), row.hash)
        << row.op << " from " << floatOf(row.first);
}

// Zeros, subnormal numbers, infinities, NaNs, and where the results leave the range.
TEST(SimMeasured, FunctionsOfLimits) {
  const uint32_t values[] = {
      0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007fffff, 0x807fffff, 0x00800000,
      0x80800000, 0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc00001,
      0x7f800001, 0x3f800000, 0xbf800000, 0x40000000, 0xc0000000, 0x42fc0000, 0xc2fc0000,
      0xc2fc0001, 0x42fe0000, 0xc2fe0000, 0x42ffffff, 0xc2ffffff, 0x43000000, 0xc3000000,
      0x43160000, 0xc3160000, 0x7e800000, 0x7e800001, 0xfe800001, 0x7f000000, 0x3f7fffff,
      0x3f800001, 0x3f000000, 0x41000000, 0x40ffffff, 0xc1000000, 0x3b800000, 0x3b7fffff,
      0x7e7fffff, 0x00400000, 0x3eaaaaab, 0xc0490fdb, 0x40490fdb, 0x4b000000};
  struct Row {
    const char *op;
    uint64_t hash;
  };
  const Row rows[] = {
      {"ex2.approx.ftz.f32", 0x50700558c2d6aa1d},   {"ex2.approx.f32", 0xa0c7b865215f1e1e},
      {"lg2.approx.ftz.f32", 0xaa8d7fdd7e646d98},   {"lg2.approx.f32", 0x385f93044fc9a16e},
      {"rcp.approx.ftz.f32", 0xbefc8eee91e92f58},   {"rcp.approx.f32", 0x286d2ebbfee04884},
      {"rsqrt.approx.ftz.f32", 0x00c84d7a1d505b88}, {"rsqrt.approx.f32", 0xe2d421033d3d23a9},
      {"sqrt.approx.ftz.f32", 0x27c14a46d43d5355},  {"sqrt.approx.f32", 0x706bf4fa3a550d8e},
      {"tanh.approx.f32", 0x59ec8f50aa090fc9},      {"div.full.ftz.f32", 0x14f59a1d2c2f969d},
      {"div.full.f32", 0x73fd1b4de4e2499e},         {"div.approx.ftz.f32", 0x820a50c7e83b2161},
      {"div.approx.f32", 0x616dbf2c03b56969}};
  for (const Row &row : rows) {
    const bool isQuotient = std::string(row.op).compare(0, 3, "div") == 0;
    std::vector<uint64_t> out;
    for (uint32_t a : values) {
      std::vector<Vector> vectors;
      for (uint32_t b : values)
        vectors.push_back({{isQuotient ? a : b, b}, 0});
      const std::string operands = isQuotient ? " $d, $a, $b;" : " $d, $a;";
      std::vector<uint64_t> some = apply(row.op + operands, isQuotient ? "rrr" : "rr", vectors);
      out.insert(out.end(), some.begin(), some.end());
      if (!isQuotient)
        break;
    }
    EXPECT_EQ(hashOf(out), row.hash) << row.op;
  }
}

//===----------------------------------------------------------------------===//
// Sums of products
//===----------------------------------------------------------------------===//

namespace {

/// c + a b, as the factors' bytes say: 16 of two bytes or 32 of one.
struct Dot {
  std::array<uint8_t, 32> a{}, b{};
  uint32_t c = 0;
};

/// Format of a factor, and the biased exponents that random ones have.
struct Format {
  const char *type;
  int exponentBits, fractionBits;
  int middle[2], wide[2];
  int bytes() const { return (1 + exponentBits + fractionBits) / 8; }
};
constexpr Format kF16 = {"f16", 5, 10, {9, 20}, {0, 30}};
constexpr Format kBf16 = {"bf16", 8, 7, {121, 132}, {100, 150}};
constexpr Format kE4m3 = {"e4m3", 4, 3, {5, 10}, {0, 14}};
constexpr Format kE5m2 = {"e5m2", 5, 2, {10, 20}, {0, 30}};

/// A value that the format holds.
uint32_t encode(const Format &format, double value) {
  if (value == 0)
    return 0;
  const int width = format.exponentBits + format.fractionBits;
  const uint32_t sign = value < 0 ? 1u << width : 0;
  if (std::isinf(value))
    return sign | ((1u << format.exponentBits) - 1) << format.fractionBits;
  const int bias = (1 << (format.exponentBits - 1)) - 1;
  const int exponent = std::max(std::ilogb(value), 1 - bias);
  const double fraction = std::ldexp(std::fabs(value), format.fractionBits - exponent);
  EXPECT_EQ(fraction, std::floor(fraction)) << value << " as " << format.type;
  // A subnormal number lacks the bit that the exponent is one less without.
  return sign | ((static_cast<uint32_t>(exponent + bias - 1) << format.fractionBits) +
                 static_cast<uint32_t>(fraction));
}

void put(const Format &format, std::array<uint8_t, 32> &to, int i, uint64_t bits) {
  for (int byte = 0; byte < format.bytes(); ++byte)
    to[i * format.bytes() + byte] = static_cast<uint8_t>(bits >> (8 * byte));
}

/// Each by a warpgroup of its own, as the sum of row 0 and column 0.
std::vector<uint64_t> run(const Format &format, const std::vector<Dot> &dots) {
  TinyKernel kernel;
  kernel.threads = 128;
  kernel.ctas = static_cast<uint32_t>(dots.size());
  kernel.sharedBytes = 256;
  kernel.outWords = dots.size();
  kernel.in.resize(9 * dots.size());
  for (size_t i = 0; i < dots.size(); ++i) {
    std::memcpy(&kernel.in[9 * i], dots[i].a.data(), 32);
    std::memcpy(&kernel.in[9 * i + 4], dots[i].b.data(), 32);
    kernel.in[9 * i + 8] = dots[i].c;
  }
  const bool isByte = format.bytes() == 1;
  kernel.body = R"(mov.u32 %r10, %ctaid.x;
mul.wide.u32 %d2, %r10, 72;
add.s64 %d2, %in, %d2;
mov.u32 %r12, smem;
shl.b32 %r13, %t, 1;
add.u32 %r13, %r12, %r13;
mov.b16 %h0, 0;
st.shared.b16 [%r13], %h0;
mov.b32 %r0, 0;
mov.b32 %r1, 0;
mov.b32 %r2, 0;
mov.b32 %r3, 0;
mov.b32 %r4, 0;
mov.b32 %r5, 0;
mov.b32 %r6, 0;
mov.b32 %r7, 0;
bar.sync 0;
setp.ge.u32 %p1, %t, 4;
@%p1 bra FILLED;
mul.wide.u32 %d3, %t, 4;
add.s64 %d3, %d2, %d3;
ld.global.b32 %r4, [%d3];
ld.global.b32 %r6, [%d3+16];
ld.global.b32 %r14, [%d3+32];
ld.global.b32 %r15, [%d3+48];
shl.b32 %r16, %t, 2;
add.u32 %r16, %r12, %r16;
st.shared.b32 [%r16], %r14;
st.shared.b32 [%r16+128], %r15;
ld.global.b32 %r0, [%d2+64];
FILLED:
fence.proxy.async.shared::cta;
bar.sync 0;
shr.u32 %r17, %r12, 4;
and.b32 %r17, %r17, 0x3fff;
cvt.u64.u32 %d4, %r17;
or.b64 %d4, %d4, 0x1000080000;
setp.eq.b32 %p2, 0, 0;
wgmma.fence.sync.aligned;
wgmma.mma_async.sync.aligned.m64n8k)" +
                std::string(isByte ? "32" : "16") + ".f32." + format.type + "." + format.type +
                " {%r0, %r1, %r2, %r3}, {%r4, %r5, %r6, %r7}, %d4, %p2, 1, 1" +
                (isByte ? "" : ", 0") + R"(;
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
setp.ne.b32 %p3, %t, 0;
@%p3 ret;
mul.wide.u32 %d5, %r10, 8;
add.s64 %d5, %out, %d5;
st.global.b32 [%d5], %r0;)";
  return runClean(kernel);
}

/// The factors that are not 0; the last is repeated to have `repeat` of them.
struct Worked {
  std::vector<std::pair<double, double>> factors;
  uint32_t c, out;
  int repeat = 0;
};

void expectSums(const Format &format, const std::vector<Worked> &sums) {
  std::vector<Dot> dots;
  for (const Worked &sum : sums) {
    Dot &dot = dots.emplace_back();
    dot.c = sum.c;
    const int count = std::max(sum.repeat, static_cast<int>(sum.factors.size()));
    for (int i = 0; i < count; ++i) {
      const auto &[a, b] = sum.factors[std::min<size_t>(i, sum.factors.size() - 1)];
      put(format, dot.a, i, encode(format, a));
      put(format, dot.b, i, encode(format, b));
    }
  }
  std::vector<uint64_t> out = run(format, dots);
  for (size_t i = 0; i < sums.size(); ++i)
    EXPECT_EQ(out[i], sums[i].out) << std::hex << format.type << ", sum " << i << ": got 0x"
                                   << out[i] << ", expected 0x" << sums[i].out;
}

constexpr uint32_t kOne = 0x3f800000, kMinusOne = 0xbf800000, kNan = 0x7fffffff;
constexpr uint32_t kMinusInf = 0xff800000;
constexpr double kInf = INFINITY;

/// 2^exponent as f32.
constexpr uint32_t power(int exponent) { return static_cast<uint32_t>(127 + exponent) << 23; }

/// Random factors: three of four times of like exponents, else of all; each sixteenth of any bits.
class RandomDots {
public:
  explicit RandomDots(const Format &format) : format(format) {}
  std::vector<Dot> make(int count) {
    std::vector<Dot> dots(count);
    for (int i = 0; i < count; ++i) {
      const bool isWide = i % 4 == 3, isAny = i % 16 == 15;
      for (std::array<uint8_t, 32> *to : {&dots[i].a, &dots[i].b})
        for (int k = 0; k < 32 / format.bytes(); ++k)
          put(format, *to, k,
              isAny ? next()
                    : number(format.exponentBits, format.fractionBits,
                             isWide ? format.wide : format.middle));
      constexpr int middle[] = {115, 135}, wide[] = {90, 160};
      dots[i].c = static_cast<uint32_t>(number(8, 23, isWide ? wide : middle));
    }
    return dots;
  }

private:
  uint64_t next() {
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  uint64_t number(int exponentBits, int fractionBits, const int (&range)[2]) {
    const uint64_t value = next();
    if (value >> 60 == 0)
      return 0;
    return (value & 1) << (exponentBits + fractionBits) |
           (range[0] + (value >> 8) % (range[1] - range[0] + 1)) << fractionBits |
           (value >> 32 & ((uint64_t(1) << fractionBits) - 1));
  }
  const Format &format;
  uint64_t state = 7;
};

} // namespace

// Worked by hand from the rules in lib/Sim/TensorCore.cpp, and what the GPU gives.
TEST(SimMeasured, SumsOfTwoBytes) {
  const double e12 = std::ldexp(1, -12), e13 = std::ldexp(1, -13);
  for (const Format &format : {kF16, kBf16})
    expectSums(format, {{{{e12, e13}}, kOne, 0x3f800004, 16}, // 16 times 2^-25, the last bit kept
                        {{{e13, e13}}, kOne, kOne, 16},       // 16 times 2^-26 are cut off
                        {{{1.5 * e12, e12}}, kOne, kOne}, // total 1 + 1.5 2^-24, rounded 1 + 2^-23
                        {{{-1.5 * e12, e12}}, kMinusOne, kMinusOne},
                        {{{-e12, e13}}, kOne, 0x3f7fffff}, // 1 - 2^-25, rounded 1
                        // 1.5 1.5 has exponent 0, though it is 2.25; 2 has 1.
                        {{{1.5, 1.5}, {-1.5, 1.5}}, power(-25), power(-25)},
                        {{{2, 1}, {-2, 1}}, power(-25), 0},
                        {{{e12, e12}}, power(-40), 0x33800080}, // 2^-24 + 2^-40
                        {{{0, 32768}}, power(-30), power(-30)}, // 0 has no exponent
                        {{{kInf, 0}}, kOne, kNan},
                        {{{kInf, 1}, {-kInf, 1}}, kOne, kNan},
                        {{{kInf, -2}}, kOne, kMinusInf},
                        {{{1, 1}}, kMinusInf, kMinusInf},
                        {{{1, 1}}, 0x7fc00001, kNan},
                        {{{0, 0}}, 0x80000000, 0},                       // -0
                        {{{0, 0}}, 1, 1}});                              // subnormal
  expectSums(kF16, {{{{std::ldexp(1, -24), 1}}, power(-40), power(-24)}, // exponent -14
                    {{{65504, 65504}}, 0x40400000, 0x517fc004, 16},
                    {{{65504, -65504}}, 0xcf7fc004, 0xd187de02, 16}});
  expectSums(kBf16, {{{{0x1p127, 1}}, power(127), 0x7f800000},
                     {{{0x1p103, 1}}, 0x7f7fffff, 0x7f7fffff}, // rounded, infinite
                     {{{0x1p-75, 0x1p-75}}, 3, 3},
                     {{{0x1p-75, 0x1p-74}}, 3, 4},
                     {{{255, 255}}, 0x40400000, 0x497e0130, 16}});
}

// The same with 13 bits.
TEST(SimMeasured, SumsOfBytes) {
  const double e6 = std::ldexp(1, -6), e7 = std::ldexp(1, -7);
  for (const Format &format : {kE4m3, kE5m2})
    expectSums(format, {{{{e6, e7}}, kOne, 0x3f808000, 32}, // 32 times 2^-13
                        {{{e7, e7}}, kOne, kOne, 32},
                        {{{0, 0}}, 0x3f800200, kOne}, // 1 + 2^-14
                        {{{1.5, 1.5}, {-1.5, 1.5}}, power(-13), power(-13)},
                        {{{2, 1}, {-2, 1}}, power(-13), 0},
                        {{{0, 0}}, 0x80000001, 0}});
  expectSums(kE4m3, {{{{std::ldexp(1, -9), 1}}, power(-20), power(-9)}});
  expectSums(kE5m2, {{{{kInf, 1}}, kOne, 0x7f800000}});
}

TEST(SimMeasured, RandomSums) {
  EXPECT_EQ(hashOf(run(kF16, RandomDots(kF16).make(128))), 0xc856fda3298f912b);
  EXPECT_EQ(hashOf(run(kBf16, RandomDots(kBf16).make(128))), 0xdfe99b6c7b05d2e0);
  EXPECT_EQ(hashOf(run(kE4m3, RandomDots(kE4m3).make(128))), 0x19ad8aa1a4f3c5c0);
  EXPECT_EQ(hashOf(run(kE5m2, RandomDots(kE5m2).make(128))), 0xe69140c36db75d66);
}
