// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Vectors worked by hand from PTX ISA, "Integer Arithmetic Instructions", "Logic and Shift
// Instructions", "Comparison and Selection Instructions" and "Data Movement".
#include "SemanticsSupport.h"

using namespace attn::sim::test;

// PTX ISA, "Integer Arithmetic Instructions: add, sub". No carry, no saturation unless asked for.
TEST(SimInteger, AddAndSub) {
  expectOp("add.s32", "rrr", {{{1, 2}, 3}, {{0x7fffffff, 1}, 0x80000000}, {{0xffffffff, 1}, 0}});
  expectOp("add.u32", "rrr", {{{0xffffffff, 0xffffffff}, 0xfffffffe}});
  expectOp("add.s64", "ddd", {{{0xffffffff, 1}, 0x100000000}, {{~0ull, 1}, 0}});
  expectOp("add.u16", "hhh", {{{0xffff, 2}, 1}});
  expectOp("add.s16", "hhh", {{{0x7fff, 1}, 0x8000}});
  expectOp("add.sat.s32", "rrr",
           {{{0x7fffffff, 1}, 0x7fffffff},
            {{0x80000000, 0xffffffff}, 0x80000000},
            {{5, 0xfffffffd}, 2}});
  expectOp("sub.s32", "rrr", {{{3, 5}, 0xfffffffe}, {{0x80000000, 1}, 0x7fffffff}});
  expectOp("sub.s64", "ddd", {{{0, 1}, ~0ull}});
  expectOp("sub.sat.s32", "rrr", {{{0x80000000, 1}, 0x80000000}, {{0, 0x80000000}, 0x7fffffff}});
}

// An immediate takes the type of the instruction.
TEST(SimInteger, Immediates) {
  expectStatement("add.s32 $d, $a, -128;", "rr", {{{100}, 0xffffffe4}, {{128}, 0}});
  expectStatement("add.s64 $d, $a, -1;", "dd", {{{0}, ~0ull}});
  expectStatement("mul.wide.u16 $d, $a, -32768;", "rh", {{{1}, 0x8000}, {{2}, 0x10000}});
  expectStatement("mul.wide.s16 $d, $a, -32768;", "rh", {{{1}, 0xffff8000}});
  expectStatement("mul.wide.u32 $d, $a, -1;", "dr", {{{2}, 0x1fffffffe}});
  expectStatement("mul.wide.s32 $d, $a, -1;", "dr", {{{2}, 0xfffffffffffffffe}});
  expectStatement("setp.gt.u32 $d, $a, -2;", "pr", {{{0xffffffff}, 1}, {{5}, 0}});
  expectStatement("setp.gt.s32 $d, $a, -2;", "pr", {{{0xffffffff}, 1}, {{0xfffffffe}, 0}});
  expectStatement("mov.b32 $d, 0x80000000;", "rr", {{{0}, 0x80000000}});
  expectStatement("mov.b64 $d, -2;", "dr", {{{0}, 0xfffffffffffffffe}});
}

// PTX ISA, "Integer Arithmetic Instructions: mul, mad".
TEST(SimInteger, MulAndMad) {
  expectOp("mul.lo.s32", "rrr", {{{65537, 65537}, 0x20001}, {{0xfffffffd, 5}, 0xfffffff1}});
  expectOp("mul.hi.u32", "rrr", {{{65537, 65537}, 1}, {{0xffffffff, 0xffffffff}, 0xfffffffe}});
  expectOp("mul.hi.s32", "rrr",
           {{{0xffffffff, 2}, 0xffffffff}, {{0x80000000, 0x80000000}, 0x40000000}});
  expectOp("mul.lo.s64", "ddd", {{{0x100000001, 0x100000001}, 0x200000001}});
  expectOp("mul.hi.u64", "ddd", {{{~0ull, ~0ull}, 0xfffffffffffffffe}});
  expectOp("mul.hi.s64", "ddd", {{{~0ull, 2}, ~0ull}});
  expectOp("mul.wide.s32", "drr",
           {{{0xfffffffd, 5}, 0xfffffffffffffff1}, {{0x80000000, 0x80000000}, 1ull << 62}});
  expectOp("mul.wide.u32", "drr", {{{0xfffffffd, 5}, 0x4fffffff1}});
  expectOp("mul.wide.u16", "rhh", {{{0xffff, 0xffff}, 0xfffe0001}});
  expectOp("mul.wide.s16", "rhh", {{{0xffff, 3}, 0xfffffffd}});
  expectOp("mad.lo.s32", "rrrr", {{{3, 4, 5}, 17}, {{0x10000, 0x10000, 7}, 7}});
  expectOp("mad.lo.s64", "dddd", {{{3, ~0ull, 5}, 2}});
  expectOp("mad.hi.u32", "rrrr", {{{0x80000000, 2, 10}, 11}});
  expectOp("mad.wide.u32", "drrd", {{{0xffffffff, 2, 3}, 0x200000001}});
  expectOp("mad.wide.s32", "drrd", {{{0xffffffff, 2, 3}, 1}});
}

// PTX ISA, "Integer Arithmetic Instructions: div, rem": towards zero; the remainder has the sign of
// the dividend.
TEST(SimInteger, DivAndRem) {
  auto s = [](int32_t value) { return static_cast<uint32_t>(value); };
  expectOp("div.s32", "rrr",
           {{{7, 2}, 3}, {{s(-7), 2}, s(-3)}, {{7, s(-2)}, s(-3)}, {{s(-7), s(-2)}, 3}});
  expectOp("div.u32", "rrr", {{{0xffffffff, 2}, 0x7fffffff}, {{5, 0xffffffff}, 0}});
  expectOp("rem.s32", "rrr",
           {{{7, 2}, 1}, {{s(-7), 2}, s(-1)}, {{7, s(-2)}, 1}, {{s(-7), s(-2)}, s(-1)}});
  expectOp("rem.u32", "rrr", {{{0xffffffff, 16}, 15}});
  expectOp("div.s64", "ddd", {{{static_cast<uint64_t>(-9), 4}, static_cast<uint64_t>(-2)}});
  expectOp("div.u64", "ddd", {{{~0ull, 2}, 0x7fffffffffffffff}});
  expectOp("rem.u64", "ddd", {{{~0ull, 10}, 5}});
}

// PTX ISA, "Integer Arithmetic Instructions: min, max, abs, neg, sad".
TEST(SimInteger, MinMaxAbsNegSad) {
  expectOp("min.s32", "rrr", {{{0xffffffff, 1}, 0xffffffff}});
  expectOp("min.u32", "rrr", {{{0xffffffff, 1}, 1}});
  expectOp("max.s32", "rrr", {{{0xffffffff, 1}, 1}});
  expectOp("max.u32", "rrr", {{{0xffffffff, 1}, 0xffffffff}});
  expectOp("min.s64", "ddd", {{{~0ull, 1}, ~0ull}});
  expectOp("max.s64", "ddd", {{{~0ull, 1}, 1}});
  expectOp("max.u64", "ddd", {{{~0ull, 1}, ~0ull}});
  expectOp("min.s16", "hhh", {{{0xffff, 1}, 0xffff}});
  expectOp("max.u16", "hhh", {{{0xffff, 1}, 0xffff}});
  expectOp("abs.s32", "rr", {{{0xfffffffb}, 5}, {{5}, 5}, {{0x80000000}, 0x80000000}});
  expectOp("abs.s64", "dd", {{{static_cast<uint64_t>(-5)}, 5}});
  expectOp("neg.s32", "rr", {{{5}, 0xfffffffb}, {{0x80000000}, 0x80000000}});
  expectOp("neg.s64", "dd", {{{1}, ~0ull}});
  expectOp("sad.s32", "rrrr", {{{0xffffffff, 2, 10}, 13}});
  expectOp("sad.u32", "rrrr", {{{5, 2, 10}, 13}});
}

// PTX ISA, "Integer Arithmetic Instructions: bfe": position and length are the low 8 bits; past the
// top the field is filled with the sign, which is the highest bit it has.
TEST(SimInteger, Bfe) {
  expectOp("bfe.u32", "rrrr",
           {{{0xabcd1234, 8, 8}, 0x12},
            {{0xffffffff, 1, 1}, 1},
            {{0x80000000, 31, 4}, 1},
            {{0xabcd1234, 4, 0}, 0},
            {{0xffffffff, 32, 8}, 0},
            {{0xabcd1234, 0x108, 0x208}, 0x12},
            {{0xabcd1234, 0, 32}, 0xabcd1234},
            {{0xabcd1234, 0, 255}, 0xabcd1234}});
  expectOp("bfe.s32", "rrrr",
           {{{0x0000f000, 12, 4}, 0xffffffff},
            {{0x00007000, 12, 4}, 7},
            {{0x80000000, 31, 4}, 0xffffffff},
            {{0x80000000, 40, 4}, 0xffffffff},
            {{0x40000000, 40, 4}, 0},
            {{0xffffffff, 12, 0}, 0},
            {{0xdeadbeef, 0, 32}, 0xdeadbeef}});
  expectOp("bfe.u64", "ddrr", {{{0x123456789abcdef0, 32, 16}, 0x5678}, {{~0ull, 60, 32}, 15}});
  expectOp("bfe.s64", "ddrr", {{{0x0000800000000000, 40, 8}, 0xffffffffffffff80}});
}

// PTX ISA, "Integer Arithmetic Instructions: bfi".
TEST(SimInteger, Bfi) {
  expectOp("bfi.b32", "rrrrr",
           {{{0xff, 0, 8, 4}, 0xf00},
            {{0, 0xffffffff, 4, 8}, 0xfffff00f},
            {{0xff, 0, 28, 8}, 0xf0000000},
            {{0xff, 0x1234, 32, 8}, 0x1234},
            {{0xff, 0x1234, 8, 0}, 0x1234},
            {{0x12345678, 0, 0, 32}, 0x12345678}});
  expectOp("bfi.b64", "dddrr", {{{0xffff, 0, 40, 8}, 0x0000ff0000000000}});
}

// PTX ISA, "Integer Arithmetic Instructions: popc, clz, bfind, brev".
TEST(SimInteger, CountsAndPositions) {
  expectOp("popc.b32", "rr", {{{0xf0f0}, 8}, {{0}, 0}, {{0xffffffff}, 32}});
  expectOp("popc.b64", "rd", {{{~0ull}, 64}, {{1ull << 63}, 1}});
  expectOp("clz.b32", "rr", {{{0}, 32}, {{1}, 31}, {{0x80000000}, 0}});
  expectOp("clz.b64", "rd", {{{0}, 64}, {{1}, 63}});
  expectOp("bfind.u32", "rr", {{{0x10}, 4}, {{0}, 0xffffffff}, {{0xffffffff}, 31}});
  // Of a negative number the highest bit that is not a copy of the sign.
  expectOp("bfind.s32", "rr", {{{0xffffffff}, 0xffffffff}, {{0xfffffffe}, 0}, {{0x7fffffff}, 30}});
  expectOp("bfind.shiftamt.u32", "rr", {{{0x10}, 27}, {{0}, 0xffffffff}});
  expectOp("bfind.u64", "rd", {{{1ull << 40}, 40}});
  expectOp("brev.b32", "rr", {{{1}, 0x80000000}, {{0x0000000d}, 0xb0000000}});
  expectOp("brev.b64", "dd", {{{1}, 1ull << 63}});
}

// PTX ISA, "Logic and Shift Instructions".
TEST(SimInteger, Logic) {
  expectOp("and.b32", "rrr", {{{0xff00ff00, 0x0ff00ff0}, 0x0f000f00}});
  expectOp("or.b32", "rrr", {{{0xff00ff00, 0x0ff00ff0}, 0xfff0fff0}});
  expectOp("xor.b32", "rrr", {{{0xff00ff00, 0x0ff00ff0}, 0xf0f0f0f0}});
  expectOp("not.b32", "rr", {{{0xff00ff00}, 0x00ff00ff}});
  expectOp("cnot.b32", "rr", {{{0}, 1}, {{5}, 0}});
  expectOp("and.b64", "ddd", {{{~0ull, 0x123456789abcdef0}, 0x123456789abcdef0}});
  expectOp("or.b64", "ddd", {{{1ull << 40, 1}, 0x10000000001}});
  expectOp("not.b64", "dd", {{{0}, ~0ull}});
  expectOp("xor.b16", "hhh", {{{0xffff, 0x0ff0}, 0xf00f}});
  expectOp("not.b16", "hh", {{{0x00ff}, 0xff00}});
  expectOp("and.pred", "ppp", {{{1, 1}, 1}, {{1, 0}, 0}, {{0, 0}, 0}});
  expectOp("or.pred", "ppp", {{{1, 1}, 1}, {{1, 0}, 1}, {{0, 0}, 0}});
  expectOp("xor.pred", "ppp", {{{1, 1}, 0}, {{1, 0}, 1}, {{0, 0}, 0}});
  expectOp("not.pred", "pp", {{{1}, 0}, {{0}, 1}});
  expectOp("mov.pred", "pp", {{{1}, 1}, {{0}, 0}});
  // Table bits by a, b, c as 4, 2, 1: (0xF0 & 0xCC) | 0xAA is (a & b) | c.
  expectStatement("lop3.b32 $d, $a, $b, $c, 0xEA;", "rrrr",
                  {{{0xff00, 0xf0f0, 0x000f}, 0xf00f}, {{~0u, 0, 0}, 0}});
  expectStatement("lop3.b32 $d, $a, $b, $c, 0x96;", "rrrr", {{{0xff00, 0xf0f0, 0x00ff}, 0x0f0f}});
}

// PTX ISA, "Logic and Shift Instructions: shl, shr": amounts past the width clamp to it.
TEST(SimInteger, ShiftsClamp) {
  expectOp("shl.b32", "rrr",
           {{{1, 31}, 0x80000000},
            {{1, 32}, 0},
            {{0xffffffff, 33}, 0},
            {{1, 0xffffffff}, 0},
            {{3, 0}, 3}});
  expectOp("shr.u32", "rrr", {{{0x80000000, 31}, 1}, {{0x80000000, 32}, 0}, {{~0u, 64}, 0}});
  expectOp("shr.s32", "rrr",
           {{{0x80000000, 31}, 0xffffffff},
            {{0x80000000, 32}, 0xffffffff},
            {{0x80000000, 0xffffffff}, 0xffffffff},
            {{0x7fffffff, 40}, 0},
            {{0xfffffff0, 2}, 0xfffffffc}});
  expectOp("shr.b32", "rrr", {{{0x80000000, 31}, 1}});
  expectOp("shl.b64", "ddr", {{{1, 63}, 1ull << 63}, {{1, 64}, 0}, {{1, 0x80000001}, 0}});
  expectOp("shr.u64", "ddr", {{{1ull << 63, 63}, 1}, {{~0ull, 64}, 0}});
  expectOp("shr.s64", "ddr", {{{1ull << 63, 64}, ~0ull}, {{1ull << 62, 64}, 0}});
  expectOp("shl.b16", "hhr", {{{1, 15}, 0x8000}, {{1, 16}, 0}, {{0xffff, 20}, 0}});
  expectOp("shr.s16", "hhr", {{{0x8000, 20}, 0xffff}, {{0x8000, 3}, 0xf000}});
  expectOp("shr.u16", "hhr", {{{0x8000, 15}, 1}, {{0x8000, 16}, 0}});
}

// PTX ISA, "Logic and Shift Instructions: shf": a is the low word, b the high one.
TEST(SimInteger, FunnelShift) {
  expectOp("shf.l.wrap.b32", "rrrr",
           {{{0x80000000, 1, 1}, 3}, {{0x80000000, 1, 33}, 3}, {{5, 7, 0}, 7}});
  expectOp("shf.r.wrap.b32", "rrrr",
           {{{2, 1, 1}, 0x80000001}, {{2, 1, 33}, 0x80000001}, {{5, 7, 0}, 5}});
  expectOp("shf.l.clamp.b32", "rrrr", {{{5, 7, 40}, 5}, {{5, 7, 0}, 7}});
  expectOp("shf.r.clamp.b32", "rrrr", {{{5, 7, 40}, 7}, {{5, 7, 0}, 5}});
}

// PTX ISA, "Data Movement and Conversion Instructions: prmt": bit 3 of a selector copies the sign.
TEST(SimInteger, Prmt) {
  expectOp("prmt.b32", "rrrr",
           {{{0x33221100, 0x77665544, 0x5410}, 0x55441100},
            {{0x33221100, 0x77665544, 0x7632}, 0x77663322},
            {{0x33221180, 0x77665544, 0x0008}, 0x808080ff},
            {{0x33221100, 0x77665544, 0xfb98}, 0}});
}

// PTX ISA, "Comparison and Selection Instructions: setp" of integers.
TEST(SimInteger, SetpComparisons) {
  const uint64_t values[] = {0, 1, 0x7fffffff, 0x80000000, 0xffffffff};
  auto table = [&](bool (*holds)(uint32_t, uint32_t)) {
    std::vector<Vector> vectors;
    for (uint64_t a : values)
      for (uint64_t b : values)
        vectors.push_back({{a, b}, holds(static_cast<uint32_t>(a), static_cast<uint32_t>(b))});
    return vectors;
  };
  expectOp("setp.eq.s32", "prr", table([](uint32_t a, uint32_t b) { return a == b; }));
  expectOp("setp.eq.b32", "prr", table([](uint32_t a, uint32_t b) { return a == b; }));
  expectOp("setp.ne.u32", "prr", table([](uint32_t a, uint32_t b) { return a != b; }));
  expectOp("setp.lt.u32", "prr", table([](uint32_t a, uint32_t b) { return a < b; }));
  expectOp("setp.lo.u32", "prr", table([](uint32_t a, uint32_t b) { return a < b; }));
  expectOp("setp.le.u32", "prr", table([](uint32_t a, uint32_t b) { return a <= b; }));
  expectOp("setp.ls.u32", "prr", table([](uint32_t a, uint32_t b) { return a <= b; }));
  expectOp("setp.gt.u32", "prr", table([](uint32_t a, uint32_t b) { return a > b; }));
  expectOp("setp.hi.u32", "prr", table([](uint32_t a, uint32_t b) { return a > b; }));
  expectOp("setp.ge.u32", "prr", table([](uint32_t a, uint32_t b) { return a >= b; }));
  expectOp("setp.hs.u32", "prr", table([](uint32_t a, uint32_t b) { return a >= b; }));
  expectOp("setp.lt.s32", "prr",
           table([](uint32_t a, uint32_t b) { return int32_t(a) < int32_t(b); }));
  expectOp("setp.le.s32", "prr",
           table([](uint32_t a, uint32_t b) { return int32_t(a) <= int32_t(b); }));
  expectOp("setp.gt.s32", "prr",
           table([](uint32_t a, uint32_t b) { return int32_t(a) > int32_t(b); }));
  expectOp("setp.ge.s32", "prr",
           table([](uint32_t a, uint32_t b) { return int32_t(a) >= int32_t(b); }));
  expectOp("setp.lt.s64", "pdd", {{{~0ull, 0}, 1}, {{0, ~0ull}, 0}, {{1ull << 32, 1}, 0}});
  expectOp("setp.lt.u64", "pdd", {{{~0ull, 0}, 0}, {{0, ~0ull}, 1}, {{1, 1ull << 32}, 1}});
  expectOp("setp.ge.s64", "pdd", {{{~0ull, 0}, 0}, {{5, 5}, 1}});
  expectOp("setp.gt.s64", "pdd", {{{0, ~0ull}, 1}, {{~0ull, 0}, 0}, {{3, 3}, 0}});
  expectOp("setp.gt.u64", "pdd", {{{0, ~0ull}, 0}, {{~0ull, 0}, 1}, {{3, 3}, 0}});
  expectOp("setp.le.s64", "pdd", {{{0, ~0ull}, 0}, {{~0ull, 0}, 1}, {{3, 3}, 1}});
  expectOp("setp.le.u64", "pdd", {{{0, ~0ull}, 1}, {{~0ull, 0}, 0}, {{3, 3}, 1}});
  expectOp("setp.ne.b64", "pdd", {{{1ull << 32, 0}, 1}, {{7, 7}, 0}});
  expectOp("setp.gt.s16", "phh", {{{0, 0xffff}, 1}, {{0x8000, 0x7fff}, 0}});
  expectOp("setp.gt.u16", "phh", {{{0, 0xffff}, 0}, {{0x8000, 0x7fff}, 1}});
}

// The same section: a boolean operator with a third predicate, and the second result, which takes
// the opposite comparison before the operator.
TEST(SimInteger, SetpWithOperators) {
  auto statement = [&](const char *op, const std::string &results) {
    return std::string("setp.lt.") + op + ".s32 " + results + ", $a, $b, $c;";
  };
  auto rows = [](int tt, int tf, int ft, int ff) {
    // a < b true and false, with c true and false
    return std::vector<Vector>{{{1, 2, 1}, uint64_t(tt)},
                               {{1, 2, 0}, uint64_t(tf)},
                               {{2, 1, 1}, uint64_t(ft)},
                               {{2, 1, 0}, uint64_t(ff)}};
  };
  expectStatement(statement("and", "$d"), "prrp", rows(1, 0, 0, 0));
  expectStatement(statement("or", "$d"), "prrp", rows(1, 1, 1, 0));
  expectStatement(statement("xor", "$d"), "prrp", rows(0, 1, 1, 0));
  expectStatement(statement("and", "$d|%p1"), "prrp", rows(1, 0, 0, 0));
  expectStatement(statement("and", "%p1|$d"), "prrp", rows(0, 0, 1, 0));
  expectStatement(statement("or", "%p1|$d"), "prrp", rows(1, 0, 1, 1));
  expectStatement(statement("xor", "_|$d"), "prrp", rows(1, 0, 0, 1));
  expectStatement("setp.lt.and.s32 $d, $a, $b, !$c;", "prrp", rows(0, 1, 0, 0));
  expectStatement("setp.lt.s32 %p1|$d, $a, $b;", "prr", {{{1, 2}, 0}, {{2, 2}, 1}});
}

// PTX ISA, "Comparison and Selection Instructions: selp".
TEST(SimInteger, Selp) {
  expectOp("selp.b32", "rrrp", {{{5, 7, 1}, 5}, {{5, 7, 0}, 7}});
  expectOp("selp.b64", "dddp", {{{1ull << 40, 7, 1}, 1ull << 40}, {{1ull << 40, 7, 0}, 7}});
  expectOp("selp.b16", "hhhp", {{{5, 7, 1}, 5}, {{5, 7, 0}, 7}});
  expectOp("selp.f32", "rrrp", {{{0x7fffffff, 7, 1}, 0x7fffffff}});
  expectStatement("selp.b32 $d, 1, -1, $a;", "rp", {{{1}, 1}, {{0}, 0xffffffff}});
}

// PTX ISA, "Data Movement and Conversion Instructions: mov": the first element is the low part.
TEST(SimInteger, PackAndUnpack) {
  expectStatement("mov.b64 $d, {$a, $b};", "drr", {{{0x11111111, 0x22222222}, 0x2222222211111111}});
  expectStatement("mov.b32 $d, {$a, $b};", "rhh", {{{0x1111, 0x2222}, 0x22221111}});
  expectStatement("mov.b64 $d, {$a, $b, $c, $e};", "dhhhh", {{{1, 2, 3, 4}, 0x0004000300020001}});
  expectStatement("mov.b64 {$d, %r1}, $a;", "rd", {{{0x2222222211111111}, 0x11111111}});
  expectStatement("mov.b64 {%r1, $d}, $a;", "rd", {{{0x2222222211111111}, 0x22222222}});
  expectStatement("mov.b32 {_, $d}, $a;", "hr", {{{0x22221111}, 0x2222}});
  expectStatement("mov.b32 {$d, _}, $a;", "hr", {{{0x22221111}, 0x1111}});
}

// A guard that is false leaves the destination alone.
TEST(SimInteger, Guards) {
  expectStatement("mov.b32 $d, 3;\n@$b mov.b32 $d, $a;", "rrp", {{{5, 1}, 5}, {{5, 0}, 3}});
  expectStatement("mov.b32 $d, 3;\n@!$b mov.b32 $d, $a;", "rrp", {{{5, 1}, 3}, {{5, 0}, 5}});
  expectStatement("setp.eq.b32 $d, $a, $a;\n@$b setp.ne.b32 $d, $a, $a;", "prp",
                  {{{5, 1}, 0}, {{5, 0}, 1}});
}
