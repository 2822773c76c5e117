// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every form of the grammar that the parser covers.
#include "PtxText.h"

#include <gtest/gtest.h>

using namespace attn::sim;
using attn::sim::test::header;
using attn::sim::test::inKernel;
using attn::sim::test::parse;
using Kind = PtxOperand::Kind;

/// Operands of the only instruction of `body`, after `declarations`.
static PtxInstruction instruction(const std::string &text, const std::string &declarations = "") {
  PtxModule module = parse(inKernel(declarations + "\n" + text));
  if (module.kernels.size() != 1 || module.kernels[0].instructions.size() != 1) {
    ADD_FAILURE() << text << ": not one instruction";
    return {};
  }
  return module.kernels[0].instructions[0];
}

static const char kRegs[] = ".reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .pred %p<4>; .reg .f32 %f<4>;";

TEST(PtxHeader, Fields) {
  PtxModule module = parse(".version 8.6\n.target sm_90a, debug\n.address_size 64\n");
  EXPECT_EQ(module.versionMajor, 8);
  EXPECT_EQ(module.versionMinor, 6);
  EXPECT_EQ(module.target, "sm_90a");
  EXPECT_EQ(module.addressSize, 64);
  EXPECT_TRUE(module.kernels.empty());
  EXPECT_EQ(parse(".version 9.0 .target sm_100f .address_size 64").target, "sm_100f");
}

TEST(PtxHeader, Skipped) {
  PtxModule module = parse(header() + R"(/* a comment
over lines */
.file 1 "some/path; { .cu", 17, 4
.pragma "nounroll", "x";
.section .debug_str { .b8 0, 1, 2
  info_string0:
  .b32 0x10 }
.section	.debug_macinfo	{	}
// the end)");
  EXPECT_TRUE(module.kernels.empty());
}

TEST(PtxVariables, ModuleScope) {
  PtxModule module = parse(header() + R"(
.extern .shared .align 1024 .b8 dynamic[];
.shared .align 16 .b8 buffer[4096];
.visible .shared .f64 one, two[3];
.global .align 8 .u32 table[2][3];
.visible .global .b64 $counter;
)");
  ASSERT_EQ(module.shared.size(), 4u);
  EXPECT_EQ(module.shared[0].name, "dynamic");
  EXPECT_EQ(module.shared[0].count, 0);
  EXPECT_EQ(module.shared[0].align, 1024);
  EXPECT_EQ(module.shared[1].bytes(), 4096);
  EXPECT_EQ(module.shared[1].align, 16);
  EXPECT_EQ(module.shared[2].name, "one");
  EXPECT_EQ(module.shared[2].type, PtxType::F64);
  EXPECT_EQ(module.shared[2].bytes(), 8);
  EXPECT_EQ(module.shared[2].align, 8); // that of its type
  EXPECT_EQ(module.shared[3].name, "two");
  EXPECT_EQ(module.shared[3].bytes(), 24);
  ASSERT_EQ(module.globals.size(), 2u);
  EXPECT_EQ(module.globals[0].bytes(), 24);
  EXPECT_EQ(module.globals[0].align, 8);
  EXPECT_EQ(module.globals[1].name, "$counter");
}

TEST(PtxVariables, KernelScope) {
  PtxModule module = parse(inKernel(R"(
.local .align 8 .b8 depot[16];
.shared .b32 x;
{ .shared .align 4 .b8 x[12]; .reg .b32 r; mov.u32 r, x; }
{ .shared .b16 x; .reg .b32 r; mov.u32 r, x; ld.shared.b16 r, [x+2]; }
.reg .b32 r; mov.u32 r, x;)"));
  const PtxKernel &kernel = module.kernels[0];
  ASSERT_EQ(kernel.locals.size(), 1u);
  EXPECT_EQ(kernel.locals[0].name, "depot");
  EXPECT_EQ(kernel.locals[0].bytes(), 16);
  ASSERT_EQ(kernel.shared.size(), 3u);
  EXPECT_EQ(kernel.shared[0].name, "x");
  EXPECT_EQ(kernel.shared[1].name, "x$1");
  EXPECT_EQ(kernel.shared[1].bytes(), 12);
  EXPECT_EQ(kernel.shared[2].name, "x$2");
  ASSERT_EQ(kernel.instructions.size(), 4u);
  EXPECT_EQ(kernel.instructions[0].operands[1].kind, Kind::Symbol);
  EXPECT_EQ(kernel.instructions[0].operands[1].text, "x$1");
  EXPECT_EQ(kernel.instructions[1].operands[1].text, "x$2");
  EXPECT_EQ(kernel.instructions[2].operands[1].text, "x$2");
  EXPECT_EQ(kernel.instructions[2].operands[1].value, 2);
  EXPECT_EQ(kernel.instructions[3].operands[1].text, "x");
}

TEST(PtxEntry, ParametersAndDirectives) {
  PtxModule module = parse(header() + R"(
.visible .entry first(
  .param .align 64 .b8 map[128],
  .param .u64 .ptr .global .align 16 pointer,
  .param .u64 .ptr any,
  .param .f32 scale
)
.maxntid 384
.minnctapersm 1
.maxnreg 168
.reqnctapercluster 2, 1, 1
.explicitcluster
.pragma "nounroll";
{ ret; }
.weak .entry second()
.reqntid 8, 4, 2
.blocksareclusters
{
}
.entry third .maxntid 32, 2 { exit; }
)");
  ASSERT_EQ(module.kernels.size(), 3u);
  const PtxKernel &first = module.kernels[0];
  EXPECT_EQ(first.name, "first");
  EXPECT_EQ(first.line, 5);
  ASSERT_EQ(first.params.size(), 4u);
  EXPECT_EQ(first.params[0].name, "map");
  EXPECT_EQ(first.params[0].align, 64);
  EXPECT_EQ(first.params[0].bytes(), 128);
  EXPECT_EQ(first.params[1].name, "pointer");
  EXPECT_EQ(first.params[1].type, PtxType::U64);
  EXPECT_EQ(first.params[1].align, 8);
  EXPECT_EQ(first.params[2].name, "any");
  EXPECT_EQ(first.params[3].bytes(), 4);
  EXPECT_EQ(first.maxThreads[0], 384);
  EXPECT_EQ(first.maxThreads[1], 1);
  EXPECT_EQ(first.maxThreads[2], 1);
  EXPECT_EQ(first.requiredThreads[0], 0);
  EXPECT_EQ(first.minCtasPerSm, 1);
  EXPECT_EQ(first.maxRegisters, 168);
  EXPECT_EQ(first.requiredCluster[0], 2);
  EXPECT_TRUE(first.explicitCluster);
  EXPECT_FALSE(first.blocksAreClusters);
  ASSERT_EQ(first.instructions.size(), 1u);
  EXPECT_EQ(first.instructions[0].opcode, "ret");
  EXPECT_TRUE(first.instructions[0].operands.empty());

  const PtxKernel &second = module.kernels[1];
  EXPECT_EQ(second.requiredThreads[0], 8);
  EXPECT_EQ(second.requiredThreads[1], 4);
  EXPECT_EQ(second.requiredThreads[2], 2);
  EXPECT_TRUE(second.blocksAreClusters);
  EXPECT_TRUE(second.instructions.empty());
  EXPECT_EQ(module.kernels[2].maxThreads[1], 2);
  EXPECT_EQ(module.find("second"), &module.kernels[1]);
  EXPECT_EQ(module.find("fourth"), nullptr);
}

TEST(PtxRegisters, ListsAndRangesAndNumbers) {
  PtxModule module = parse(inKernel(R"(
.reg .pred 	%p<3>;
.reg .b16 a, %h<2>, $b;
.reg .f16x2 pair;
.reg .b64 %rd<2000000000>;
mov.b64 %rd1999999999, %rd0;
add.s16 a, %h1, $b;
mov.b64 %rd0, %rd1999999999;
mov.b32 pair, 0;
@%p2 ret;)"));
  const PtxKernel &kernel = module.kernels[0];
  // In order of first use; a range costs nothing.
  std::vector<std::string> names;
  for (const PtxRegister &reg : kernel.registers)
    names.push_back(reg.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"%rd1999999999", "%rd0", "a", "%h1", "$b", "pair", "%p2"}));
  EXPECT_EQ(kernel.registers[1].type, PtxType::B64);
  EXPECT_EQ(kernel.registers[2].type, PtxType::B16);
  EXPECT_EQ(kernel.registers[5].type, PtxType::B32);
  EXPECT_EQ(kernel.registers[6].type, PtxType::Pred);
  EXPECT_EQ(kernel.instructions[2].operands[0].number, 1);
  EXPECT_EQ(kernel.instructions[2].operands[1].number, 0);
  EXPECT_EQ(kernel.instructions[4].guard, 6);
}

TEST(PtxRegisters, RangeWhosePrefixEndsInDigits) {
  PtxModule module =
      parse(inKernel(".reg .b32 %r1<3>; .reg .b64 %r<5>; mov.b32 %r12, %r10; mov.b64 %r3, %r1;"));
  const PtxKernel &kernel = module.kernels[0];
  EXPECT_EQ(kernel.registers[0].name, "%r12");
  EXPECT_EQ(kernel.registers[0].type, PtxType::B32);
  EXPECT_EQ(kernel.registers[2].name, "%r3");
  EXPECT_EQ(kernel.registers[2].type, PtxType::B64);
}

TEST(PtxScopes, RegistersOfTheirOwn) {
  PtxModule module = parse(inKernel(R"(
.reg .b32 x, y;
{ .reg .b64 x; mov.b64 x, 1; { .reg .pred x; setp.eq.b32 x, y, 0; } mov.b64 x, 2; }
mov.b32 x, 3;)"));
  const PtxKernel &kernel = module.kernels[0];
  ASSERT_EQ(kernel.registers.size(), 4u);
  EXPECT_EQ(kernel.registers[0].name, "x$1");
  EXPECT_EQ(kernel.registers[0].type, PtxType::B64);
  EXPECT_EQ(kernel.registers[1].name, "x$2");
  EXPECT_EQ(kernel.registers[2].name, "y");
  EXPECT_EQ(kernel.registers[3].name, "x");
  EXPECT_EQ(kernel.instructions[2].operands[0].number, 0);
  EXPECT_EQ(kernel.instructions[3].operands[0].number, 3);
}

TEST(PtxScopes, LabelsOfTheSameName) {
  std::string wait = R"({
.reg .pred P;
WAIT:
mbarrier.try_wait.parity.shared::cta.b64 P, [%r1], 0;
@P bra DONE;
bra WAIT;
DONE:
}
)";
  PtxModule module = parse(inKernel(".reg .b32 %r<2>;\n" + wait + wait));
  const std::vector<PtxInstruction> &code = module.kernels[0].instructions;
  ASSERT_EQ(code.size(), 6u);
  EXPECT_EQ(code[1].operands[0].kind, Kind::Label);
  EXPECT_EQ(code[1].operands[0].value, 3);
  EXPECT_EQ(code[2].operands[0].value, 0);
  EXPECT_EQ(code[4].operands[0].value, 6); // one past the last
  EXPECT_EQ(code[5].operands[0].value, 3);
  EXPECT_NE(code[1].guard, code[4].guard);
  EXPECT_EQ(code[3].line, 17);
  EXPECT_EQ(code[4].mnemonic(), "bra");
  EXPECT_EQ(code[3].mnemonic(), "mbarrier.try_wait.parity.shared::cta.b64");
}

TEST(PtxScopes, LabelOfAnOuterScopeAheadAndBehind) {
  PtxModule module = parse(inKernel(R"(
A: { { bra B; } bra A; { B: ret; } }
B: bra.uni A;)"));
  const std::vector<PtxInstruction> &code = module.kernels[0].instructions;
  ASSERT_EQ(code.size(), 4u);
  EXPECT_EQ(code[0].operands[0].value, 3); // not the B of a scope beside it
  EXPECT_EQ(code[1].operands[0].value, 0);
  EXPECT_EQ(code[3].operands[0].value, 0);
  EXPECT_EQ(code[3].modifiers, std::vector<std::string>{"uni"});
}

TEST(PtxInstructions, GuardsAndLines) {
  PtxModule module = parse(inKernel(".reg .pred p, q; .reg .b32 r;\n"
                                    "@p mov.b32 r, 1;\n"
                                    "@!q\n"
                                    "  mov.b32\n"
                                    "  r, /* two\n"
                                    "lines */ 2; @ ! p ret;\n"
                                    ".loc 1 2 3, function_name $L, inlined_at 1 2 3\n"
                                    ".pragma \"nounroll\";\n"
                                    "; ret;"));
  const std::vector<PtxInstruction> &code = module.kernels[0].instructions;
  const std::vector<PtxRegister> &regs = module.kernels[0].registers;
  ASSERT_EQ(code.size(), 4u);
  EXPECT_EQ(regs[code[0].guard].name, "p");
  EXPECT_FALSE(code[0].guardNegated);
  EXPECT_EQ(code[0].line, 6);
  EXPECT_EQ(regs[code[1].guard].name, "q");
  EXPECT_TRUE(code[1].guardNegated);
  EXPECT_EQ(code[1].line, 8);
  EXPECT_EQ(regs[code[2].guard].name, "p");
  EXPECT_TRUE(code[2].guardNegated);
  EXPECT_EQ(code[2].line, 10);
  EXPECT_EQ(code[3].guard, -1);
  EXPECT_EQ(code[3].line, 13);
}

TEST(PtxInstructions, Modifiers) {
  PtxInstruction got = instruction(
      "cp.async.bulk.tensor.5d.shared::cta.global.mbarrier::complete_tx::bytes .L2::cache_hint "
      "[%r0], [%rd1, {%r1, %r2, 3, -1, %r3}], [%r4], %rd2;",
      kRegs);
  EXPECT_EQ(got.opcode, "cp");
  EXPECT_EQ(got.modifiers,
            (std::vector<std::string>{"async", "bulk", "tensor", "5d", "shared::cta", "global",
                                      "mbarrier::complete_tx::bytes", "L2::cache_hint"}));
  ASSERT_EQ(got.operands.size(), 4u);
  EXPECT_EQ(got.operands[0].kind, Kind::Memory);
  ASSERT_EQ(got.operands[1].kind, Kind::TensorAt);
  ASSERT_EQ(got.operands[1].elements.size(), 6u);
  EXPECT_EQ(got.operands[1].elements[0].kind, Kind::Memory);
  EXPECT_EQ(got.operands[1].elements[0].number, 1); // %rd1, second register used
  EXPECT_EQ(got.operands[1].elements[1].kind, Kind::Register);
  EXPECT_EQ(got.operands[1].elements[3].value, 3);
  EXPECT_EQ(got.operands[1].elements[4].value, -1);
  EXPECT_EQ(
      instruction("ld.global.nc.L1::no_allocate.L2::128B.v4.f32 {%f0,%f1,%f2,%f3}, [%rd1];", kRegs)
          .modifiers[3],
      "L2::128B");
}

TEST(PtxOperands, Integers) {
  auto value = [](const std::string &literal) {
    PtxInstruction got = instruction("mov.b64 %rd0, " + literal + ";", kRegs);
    if (got.operands.size() != 2 || got.operands[1].kind != Kind::Integer) {
      ADD_FAILURE() << literal;
      return int64_t(0);
    }
    return got.operands[1].value;
  };
  EXPECT_EQ(value("0"), 0);
  EXPECT_EQ(value("1234567890"), 1234567890);
  EXPECT_EQ(value("-32768"), -32768);
  EXPECT_EQ(value("0x7fFF"), 0x7fff);
  EXPECT_EQ(value("0XFFU"), 255);
  EXPECT_EQ(value("-0x10"), -16);
  EXPECT_EQ(value("0777"), 511);
  EXPECT_EQ(value("0b1011"), 11);
  EXPECT_EQ(value("42U"), 42);
  EXPECT_EQ(value("0U"), 0);
  EXPECT_EQ(value("9223372036854775807"), INT64_MAX);
  EXPECT_EQ(value("18446744073709551615"), -1);
  EXPECT_EQ(value("0xFFFFFFFFFFFFFFFF"), -1);
  EXPECT_EQ(value("-9223372036854775808"), INT64_MIN);
  EXPECT_EQ(value("WARP_SZ"), 32);
}

TEST(PtxOperands, Floats) {
  PtxOperand one = instruction("mov.f32 %f0, 0f3F800000;", kRegs).operands[1];
  EXPECT_EQ(one.kind, Kind::Float);
  EXPECT_EQ(one.number, 32);
  EXPECT_EQ(one.value, 0x3f800000);
  PtxOperand minus = instruction("mov.f32 %f0, -0F3f800000;", kRegs).operands[1];
  EXPECT_EQ(minus.value, 0xbf800000);
  PtxOperand wide = instruction("mov.f64 %rd0, 0d3FF0000000000001;", kRegs).operands[1];
  EXPECT_EQ(wide.number, 64);
  EXPECT_EQ(wide.value, 0x3ff0000000000001);
  PtxOperand negative = instruction("mov.f64 %rd0, 0DBFF0000000000000;", kRegs).operands[1];
  EXPECT_EQ(static_cast<uint64_t>(negative.value), 0xbff0000000000000u);
}

TEST(PtxOperands, Memory) {
  auto memory = [](const std::string &text) {
    std::string declarations = std::string(kRegs) + ".shared .b8 s[64];";
    PtxOperand got = instruction("ld.b32 %r7, " + text + ";", declarations).operands[1];
    EXPECT_EQ(got.kind, Kind::Memory) << text;
    return got;
  };
  EXPECT_EQ(memory("[%rd1]").number, 1);
  EXPECT_EQ(memory("[%rd1]").value, 0);
  EXPECT_EQ(memory("[%rd1+40]").value, 40);
  EXPECT_EQ(memory("[%rd1+-128]").value, -128);
  EXPECT_EQ(memory("[%rd1-8]").value, -8);
  EXPECT_EQ(memory("[ %rd1 + 0x10 ]").value, 16);
  EXPECT_EQ(memory("[s]").text, "s");
  EXPECT_EQ(memory("[s]").number, -1);
  EXPECT_EQ(memory("[s+12]").value, 12);
  EXPECT_EQ(memory("[256]").value, 256);
  EXPECT_EQ(memory("[256]").number, -1);
  EXPECT_TRUE(memory("[256]").text.empty());
}

TEST(PtxOperands, NamesOfEveryKind) {
  PtxInstruction got = instruction("foo.bar !%p1, _, %r1|%p2, _|%p3, %tid.x, %laneid, {_, %r2, 5, "
                                   "0f00000000}, %cluster_nctaid.z, %clock64;",
                                   kRegs);
  ASSERT_EQ(got.operands.size(), 9u);
  EXPECT_EQ(got.operands[0].kind, Kind::Register);
  EXPECT_TRUE(got.operands[0].negated);
  EXPECT_EQ(got.operands[1].kind, Kind::Sink);
  ASSERT_EQ(got.operands[2].kind, Kind::Pair);
  ASSERT_EQ(got.operands[2].elements.size(), 2u);
  EXPECT_EQ(got.operands[2].elements[0].number, 1);
  EXPECT_EQ(got.operands[2].elements[1].number, 2);
  EXPECT_EQ(got.operands[3].elements[0].kind, Kind::Sink);
  EXPECT_EQ(got.operands[4].kind, Kind::Special);
  EXPECT_EQ(got.operands[4].text, "%tid.x");
  EXPECT_EQ(got.operands[5].text, "%laneid");
  ASSERT_EQ(got.operands[6].kind, Kind::Vector);
  ASSERT_EQ(got.operands[6].elements.size(), 4u);
  EXPECT_EQ(got.operands[6].elements[0].kind, Kind::Sink);
  EXPECT_EQ(got.operands[6].elements[2].value, 5);
  EXPECT_EQ(got.operands[6].elements[3].kind, Kind::Float);
  EXPECT_EQ(got.operands[7].text, "%cluster_nctaid.z");
  EXPECT_EQ(got.operands[8].text, "%clock64");
}

TEST(PtxOperands, ParametersAndModuleVariables) {
  PtxModule module = parse(header() + R"(.extern .shared .align 16 .b8 smem[];
.visible .entry k(.param .u64 p) { .reg .b64 a; .reg .b32 b;
ld.param.u64 a, [p]; mov.b64 a, p; mov.u32 b, smem; ld.shared.b32 b, [smem+4]; })");
  const std::vector<PtxInstruction> &code = module.kernels[0].instructions;
  EXPECT_EQ(code[0].operands[1].text, "p");
  EXPECT_EQ(code[1].operands[1].kind, Kind::Symbol);
  EXPECT_EQ(code[2].operands[1].text, "smem");
  EXPECT_EQ(code[3].operands[1].value, 4);
}

TEST(PtxTypes, Sizes) {
  EXPECT_EQ(byteSize(PtxType::Pred), 1);
  EXPECT_EQ(byteSize(PtxType::S8), 1);
  EXPECT_EQ(byteSize(PtxType::BF16), 2);
  EXPECT_EQ(byteSize(PtxType::F32), 4);
  EXPECT_EQ(byteSize(PtxType::U64), 8);
  EXPECT_EQ(byteSize(PtxType::B128), 16);
}

// Ten times the text takes about ten times as long; a quadratic parser would need minutes.
TEST(PtxScaling, LinearInItsParts) {
  std::string many = ".reg .b32 %r<100000>;\n.reg .pred p;\n";
  for (int i = 0; i < 100000; ++i) {
    std::string n = std::to_string(i);
    many += "{ .reg .b32 x; L: mov.b32 x, %r" + n + "; @p bra L; bra END; }\nM" + n + ":\n";
  }
  many += "END: ret;";
  PtxModule module = parse(inKernel(many));
  ASSERT_EQ(module.kernels.size(), 1u);
  EXPECT_EQ(module.kernels[0].instructions.size(), 300001u);
  EXPECT_EQ(module.kernels[0].instructions[2].operands[0].value, 300000);
  std::string vector = "mov.b32 {" + std::string("_");
  for (int i = 0; i < 200000; ++i)
    vector += ",_";
  EXPECT_EQ(instruction(vector + "}, 0;").operands[0].elements.size(), 200001u);
  // Names that differ in the last letter only, variables, deep scopes again and again.
  std::string deep;
  for (int i = 0; i < 3000; ++i)
    deep += std::string(63, '{') + "bra E;" + std::string(63, '}');
  EXPECT_EQ(parse(inKernel(deep + "E: ret;")).kernels[0].instructions.size(), 3001u);
}
