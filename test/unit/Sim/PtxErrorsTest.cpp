// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every refusal of the parser, with its whole message.
#include "PtxText.h"

using namespace attn::sim;
using attn::sim::test::header;
using attn::sim::test::inKernel;

static std::string messageOf(const std::string &text) {
  attn::core::Result<PtxModule> module = parsePtx(text);
  return module.ok() ? "accepted" : module.message();
}

struct Refusal {
  std::string text, message;
};

static void check(const std::vector<Refusal> &refusals,
                  std::string (*around)(const std::string &)) {
  for (const Refusal &refusal : refusals)
    EXPECT_EQ(messageOf(around(refusal.text)), refusal.message) << refusal.text;
}

static std::string alone(const std::string &text) { return text; }
static std::string afterHeader(const std::string &text) { return header() + text; }
static std::string body(const std::string &text) {
  return inKernel(".reg .b32 %r<4>; .reg .b64 %rd<4>; .reg .pred %p<4>; .shared .b8 s[4];\n" +
                  text);
}

TEST(PtxErrors, Header) {
  check({{"", "line 1: expected '.version', got the end of the text"},
         {"\n\nversion 8.6", "line 3: expected '.version', got 'version'"},
         {".version x", "line 1: expected a version, got 'x'"},
         {".version 8", "line 1: expected a minor version, got the end of the text"},
         {".version 8.x", "line 1: expected a minor version, got 'x'"},
         {".version 8.66", "line 1: expected a minor version, got '66'"},
         {".version 100.0", "line 1: expected a version of 1 to 99, got '100'"},
         {".version 5.0\n.target sm_90", "line 1: PTX ISA 5.0 is not supported, 6.0 to 9.9 are"},
         {".version 10.1\n.target sm_90", "line 1: PTX ISA 10.1 is not supported, 6.0 to 9.9 are"},
         {".version 8.6\n.address_size 64", "line 2: expected '.target', got 'address_size'"},
         {".version 8.6\n.target 90", "line 2: expected a target such as sm_90a, got '90'"},
         {".version 8.6\n.target compute_90",
          "line 2: expected a target such as sm_90a, got 'compute_90'"},
         {".version 8.6\n.target sm_90, texmode_independent",
          "line 2: expected 'debug' (no other target option is supported), got "
          "'texmode_independent'"},
         {".version 8.6\n.target sm_90\n",
          "line 3: expected '.address_size', got the end of the text"},
         {".version 8.6\n.target sm_90\n.address_size x",
          "line 3: expected an address size, got 'x'"},
         {".version 8.6\n.target sm_90\n.address_size 32",
          "line 3: expected an address size of 64 to 64, got '32'"}},
        alone);
}

TEST(PtxErrors, Characters) {
  check({{"`", "line 4: unexpected character '`'"},
         {std::string(1, '\0'), "line 4: unexpected character '\\x00'"},
         {"\xff\xfe", "line 4: unexpected character '\\xff'"},
         {". shared", "line 4: unexpected character '.'"},
         {"% r", "line 4: unexpected character '%'"},
         {"/", "line 4: unexpected character '/'"},
         {"#line", "line 4: unexpected character '#'"},
         {"\n/* no\n end", "line 5: comment without an end '/* no\\x0a end'"},
         {"/*/", "line 4: comment without an end '/*/'"},
         {".pragma \"abc\n\";", "line 4: string without an end '\"abc'"},
         {".pragma \"abc", "line 4: string without an end '\"abc'"},
         {"0x", "line 4: not an integer: '0x'"},
         {"0xg", "line 4: not an integer: '0xg'"},
         {"0b12", "line 4: not an integer: '0b12'"},
         {"089", "line 4: not an integer: '089'"},
         {"12ab", "line 4: not an integer: '12ab'"},
         {"0xU", "line 4: not an integer: '0xU'"},
         {"18446744073709551616", "line 4: integer of more than 64 bits '18446744073709551616'"},
         {"0x10000000000000000", "line 4: integer of more than 64 bits '0x10000000000000000'"},
         {"0f3F80000", "line 4: 0f takes 8 hexadecimal digits, not '0f3F80000'"},
         {"0f3F800000U", "line 4: 0f takes 8 hexadecimal digits, not '0f3F800000U'"},
         {"0d3FF", "line 4: 0d takes 16 hexadecimal digits, not '0d3FF'"},
         {"0f3F80000g", "line 4: not a floating-point literal: '0f3F80000g'"},
         {std::string(1000, 'a'),
          "line 4: expected a directive, got '" + std::string(48, 'a') + "...'"}},
        afterHeader);
}

TEST(PtxErrors, TopLevel) {
  check({{"mov", "line 4: expected a directive, got 'mov'"},
         {"}", "line 4: expected a directive, got '}'"},
         {".func f() { }", "line 4: functions are not supported: '.func'"},
         {".visible .func f() { }", "line 4: functions are not supported: '.func'"},
         {".extern .func (.param .b32 r) vprintf(.param .b64 a);",
          "line 4: functions are not supported: '.func'"},
         {".visible .const .b32 c;",
          "line 4: expected '.entry', '.shared' or '.global', got 'const'"},
         {".const .align 4 .b8 c[4];", "line 4: directive '.const' is not supported here"},
         {".alias a, b;", "line 4: directive '.alias' is not supported here"},
         {".loc 1 2 3", "line 4: directive '.loc' is not supported here"},
         {".tex .u64 t;", "line 4: directive '.tex' is not supported here"},
         {".extern .entry k();", "line 4: expected '.entry', '.shared' or '.global', got 'entry'"},
         {".section { }", "line 4: expected the name of a section, got '{'"},
         {".section .debug", "line 4: expected '{', got the end of the text"},
         {".section .debug {\n .b8 1",
          "line 5: expected '}' at the end of the section, got the end of the text"},
         {".section .debug {\n{ }", "line 5: expected '}' at the end of the section, got '{'"},
         {".section .debug {\n` }", "line 5: unexpected character '`'"},
         {".pragma x;", "line 4: expected a string, got 'x'"},
         {".pragma \"x\"", "line 4: expected ';', got the end of the text"}},
        afterHeader);
}

TEST(PtxErrors, Variables) {
  check({{".shared x;", "line 4: expected a type, got 'x'"},
         {".shared .q32 x;", "line 4: expected a type, got 'q32'"},
         {".shared .v2 .b32 x;", "line 4: expected a type, got 'v2'"},
         {".shared .align 3 .b8 x;", "line 4: expected an alignment that is a power of two, got 3"},
         {".shared .align 0 .b8 x;", "line 4: expected an alignment of 1 to 1048576, got '0'"},
         {".shared .align 2097152 .b8 x;",
          "line 4: expected an alignment of 1 to 1048576, got '2097152'"},
         {".shared .align x .b8 x;", "line 4: expected an alignment, got 'x'"},
         {".shared .pred x;", "line 4: a variable in memory cannot be a predicate"},
         {".shared .b8 [4];", "line 4: expected the name of a variable, got '['"},
         {".shared .b8 x[];", "line 4: expected a number of elements, got ']'"},
         {".shared .b8 x[0];", "line 4: expected a number of elements of 1 to 2147483647, got '0'"},
         {".shared .b8 x[4;", "line 4: expected ']', got ';'"},
         {".shared .b8 x[2147483648];",
          "line 4: expected a number of elements of 1 to 2147483647, got '2147483648'"},
         {".shared .b64 x[268435456];", "line 4: 'x' is larger than 2147483647 bytes"},
         {".shared .b8 x[65536][65536];", "line 4: 'x' is larger than 2147483647 bytes"},
         {".shared .b8 x[2147483647][2147483647][2147483647];",
          "line 4: 'x' is larger than 2147483647 bytes"},
         {".global .b8 x[];", "line 4: expected a number of elements, got ']'"},
         {".extern .global .b8 x[];", "line 4: expected a number of elements, got ']'"},
         {".extern .shared .b8 x[4];",
          "line 4: extern variable 'x' is not supported, only 'extern .shared' of unknown size is"},
         {".extern .global .b8 x;",
          "line 4: extern variable 'x' is not supported, only 'extern .shared' of unknown size is"},
         {".global .b32 x = 5;", "line 4: an initial value of 'x' is not supported"},
         {".global .b32 x[2] = {1, 2};", "line 4: an initial value of 'x' is not supported"},
         {".shared .b8 x", "line 4: expected ';' after the declaration, got the end of the text"},
         {".shared .b8 x;\n.global .b8 x;", "line 5: 'x' is declared twice"},
         {".shared .b8 x;\n.entry x() {}", "line 5: 'x' is declared twice"},
         {".entry x() {}\n.shared .b8 x;", "line 5: 'x' is declared twice"},
         {".entry x() {}\n.entry x() {}", "line 5: 'x' is declared twice"},
         {".shared .b8 x;\n.entry k(.param .b32 x) {}", "line 5: 'x' is declared twice"},
         {".shared .b8 x;\n.entry k() { .shared .b8 x; }", "line 5: 'x' is declared twice"},
         // The name that the machine would know the inner one by.
         {".shared .b8 x$1;\n.entry k() { { .shared .b8 x; } }", "line 5: 'x' is declared twice"}},
        afterHeader);
}

TEST(PtxErrors, Entry) {
  check(
      {{".entry", "line 4: expected the name of a kernel, got the end of the text"},
       {".entry 5()", "line 4: expected the name of a kernel, got '5'"},
       {".entry k(x)", "line 4: expected '.param', got 'x'"},
       {".entry k(.param .reg x)", "line 4: expected a type, got 'reg'"},
       {".entry k(.param .pred x)", "line 4: a parameter cannot be a predicate"},
       {".entry k(.param .b32 5)", "line 4: expected the name of a parameter, got '5'"},
       {".entry k(.param .b64 .ptr .global .align 5 x)",
        "line 4: expected an alignment that is a power of two, got 5"},
       {".entry k(.param .b8 x[])", "line 4: expected a number of elements, got ']'"},
       {".entry k(.param .b32 x, .param .b32 x)", "line 4: 'x' is declared twice"},
       {".entry k(.param .b32 x .param", "line 4: expected ',' or ')', got 'param'"},
       {".entry k(.param .b32 x,)", "line 4: expected '.param', got ')'"},
       {".entry k();", "line 4: expected '{', got ';'"},
       {".entry k() .noreturn {}", "line 4: directive '.noreturn' of a kernel is not supported"},
       {".entry k() .maxntid {}", "line 4: expected a count, got '{'"},
       {".entry k() .maxntid 0 {}", "line 4: expected a count of 1 to 2147483647, got '0'"},
       {".entry k() .maxntid 1,2,3,4 {}", "line 4: expected '{', got ','"},
       {".entry k() .maxntid 1, {}", "line 4: expected a count, got '{'"},
       {".entry k() .maxntid 1 .maxntid 1 {}", "line 4: '.maxntid' is given twice"},
       {".entry k() .reqntid 1 .reqntid 1 {}", "line 4: '.reqntid' is given twice"},
       {".entry k() .minnctapersm x {}", "line 4: expected a count, got 'x'"},
       {".entry k() .maxnreg 2147483648 {}",
        "line 4: expected a count of 1 to 2147483647, got '2147483648'"},
       {".entry k() {\n", "line 5: expected '}' at the end of kernel 'k', got the end of the text"},
       {".entry k() { { }", "line 4: expected '}' at the end of kernel 'k', got the end of the "
                            "text"}},
      afterHeader);
}

TEST(PtxErrors, Declarations) {
  check(
      {{".reg x;", "line 6: expected a type, got 'x'"},
       {".reg .v2 .b32 x;", "line 6: vector registers are not supported: '.v2'"},
       {".reg .v4 .f32 x;", "line 6: vector registers are not supported: '.v4'"},
       {".reg .b32 5;", "line 6: expected the name of a register, got '5'"},
       {".reg .b32 _;", "line 6: expected the name of a register, got '_'"},
       {".reg .b32 x", "line 7: expected ',' or ';', got '}'"},
       {".reg .b32 x<0>;", "line 6: expected a number of registers of 1 to 2147483647, got '0'"},
       {".reg .b32 x<2147483648>;",
        "line 6: expected a number of registers of 1 to 2147483647, got '2147483648'"},
       {".reg .b32 x<-1>;", "line 6: expected a number of registers, got '-'"},
       {".reg .b32 x<4;", "line 6: expected '>', got ';'"},
       {".reg .b32 x;\n.reg .b64 x;", "line 7: 'x' is declared twice"},
       {".reg .b32 %r<9>;", "line 6: range '%r' is declared twice"},
       {".reg .b32 x;\n.shared .b8 x;", "line 7: 'x' is declared twice"},
       {".reg .b32 s;", "line 6: 's' is declared twice"},
       {".reg .b32 %r3;\nmov.b32 %r3, 0;", "line 7: '%r3' is declared twice"},
       {".reg .b32 %q1<3>, %q<20>;\nmov.b32 %q12, 0;", "line 7: '%q12' is declared twice"},
       {".param .b32 x;", "line 6: directive '.param' in a kernel is not supported"},
       {".global .b32 x;", "line 6: directive '.global' in a kernel is not supported"},
       {".branchtargets a, b;", "line 6: directive '.branchtargets' in a kernel is not supported"}},
      body);
}

TEST(PtxErrors, Statements) {
  check({{"5;", "line 6: expected an instruction, a label or '}', got '5'"},
         {"@%p1;", "line 6: expected an instruction, got ';'"},
         {"@%p1 { }", "line 6: expected an instruction, got '{'"},
         {"@%p1 L: ret;", "line 6: expected an operand, got ':'"},
         {"@5 ret;", "line 6: expected a predicate after '@', got '5'"},
         {"@!5 ret;", "line 6: expected a predicate after '!', got '5'"},
         {"@%r1 ret;", "line 6: expected a predicate after '@', got '%r1'"},
         {"@!%r1 ret;", "line 6: expected a predicate after '!', got '%r1'"},
         {"@s ret;", "line 6: expected a predicate after '@', got 's'"},
         {"@_ ret;", "line 6: expected a predicate after '@', got '_'"},
         {"@q ret;", "line 6: unknown name 'q'"},
         {"L:\nL: ret;", "line 7: label 'L' is defined twice"},
         {"bra L;", "line 6: label 'L' is not defined"},
         {"bra N;\n{ bra M;\n{ M: ret; } }\nbra L;", "line 6: label 'N' is not defined"},
         {"{ bra\nM; } { M: }\nbra L;", "line 7: label 'M' is not defined"},
         {"bra;", "line 6: expected a label, got ';'"},
         {"bra 5;", "line 6: expected a label, got '5'"},
         {"L: bra L, 5;", "line 6: expected ';', got ','"},
         {"call.uni f, (x);", "line 6: instruction 'call.uni' is not supported"},
         {"\ncall (r), f;", "line 7: instruction 'call' is not supported"},
         {"@%p1 brx.idx %r1, T;", "line 6: instruction 'brx.idx' is not supported"},
         {"ret", "line 7: expected an operand, got '}'"},
         {"mov.b32 %r1, 5", "line 7: expected ',' or ';', got '}'"},
         {"mov.b32 %r1 5;", "line 6: expected ',' or ';', got '5'"},
         {"mov.b32 %r1,;", "line 6: expected an operand, got ';'"},
         {"mov.b32 %r1, 0.5;", "line 6: expected ',' or ';', got '5'"},
         {std::string(64, '{') + std::string(64, '}'),
          "line 6: scopes are nested more than 64 deep"}},
        body);
}

TEST(PtxErrors, Operands) {
  check({{"mov.b32 %r1, x;", "line 6: unknown name 'x'"},
         {"mov.b32 %r4, 0;", "line 6: unknown name '%r4'"},
         {"mov.b32 %r01, 0;", "line 6: unknown name '%r01'"},
         {"mov.b32 %r99999999999, 0;", "line 6: unknown name '%r99999999999'"},
         {"mov.b32 %r, 0;", "line 6: unknown name '%r'"},
         {"{ .reg .b32 y; }\nmov.b32 y, 0;", "line 7: unknown name 'y'"},
         {"mov.b32 %r1, %envreg3;", "line 6: unknown name '%envreg3'"},
         {"mov.b32 %r1, %tid;", "line 6: expected '.x', '.y' or '.z' after '%tid', got ';'"},
         {"mov.b32 %r1, %tid.w;", "line 6: expected '.x', '.y' or '.z' after '%tid', got 'w'"},
         {"mov.b32 %r1, %laneid.x;", "line 6: expected ',' or ';', got 'x'"},
         {"mov.b32 %r1, k;", "line 6: unknown name 'k'"},
         {"mov.b32 %r1, !5;", "line 6: expected a predicate after '!', got '5'"},
         {"mov.b32 %r1, !%r2;", "line 6: expected a predicate after '!', got '%r2'"},
         {"mov.b32 %r1, -%r2;", "line 6: expected a number after '-', got '%r2'"},
         {"mov.b32 %r1, -9223372036854775809;",
          "line 6: integer of more than 64 bits '-9223372036854775809'"},
         {"mov.b32 %r1, (1+2);", "line 6: expected an operand, got '('"},
         {"mov.b32 %r1, \"x\";", "line 6: expected an operand, got 'x'"},
         {"foo %r1|5;", "line 6: expected a register or '_' on both sides of '|'"},
         {"foo 5|%r1;", "line 6: expected a register or '_' on both sides of '|'"},
         {"foo !%p1|%p2;", "line 6: expected a register or '_' on both sides of '|'"},
         {"foo %r1|;", "line 6: expected an operand, got ';'"},
         {"foo %r1|%p1|%p2;", "line 6: expected ',' or ';', got '|'"},
         {"foo {};", "line 6: expected an operand, got '}'"},
         {"foo {%r1, {%r2}};", "line 6: expected an operand, got '{'"},
         {"foo {%r1, [%r2]};", "line 6: expected an operand, got '['"},
         {"foo {%r1;", "line 6: expected ',' or '}', got ';'"},
         {"foo [];", "line 6: expected an address, got ']'"},
         {"foo [{%r1}];", "line 6: expected an address, got '{'"},
         {"foo [%tid.x];", "line 6: expected a register or a variable as address, got '%tid'"},
         {"foo [_];", "line 6: expected a register or a variable as address, got '_'"},
         {"foo [0f00000000];", "line 6: expected an address, got '0f00000000'"},
         {"foo [-0f00000000];", "line 6: expected an integer as address"},
         {"foo [%rd1+%rd2];", "line 6: expected an offset, got '%rd2'"},
         {"foo [%rd1+];", "line 6: expected an offset, got ']'"},
         {"foo [%rd1--8];", "line 6: expected an offset, got '-'"},
         {"foo [%rd1+8+8];", "line 6: expected ']', got '+'"},
         {"foo [%rd1+9223372036854775808];",
          "line 6: offset of more than 63 bits '9223372036854775808'"},
         {"foo [16+8];", "line 6: expected ']', got '+'"},
         {"foo [%rd1;", "line 6: expected ']', got ';'"},
         {"foo [%rd1, %r1];", "line 6: expected '{' before the coordinates, got '%r1'"},
         {"foo [%rd1, {}];", "line 6: expected an operand, got '}'"},
         {"foo [%rd1, {%r1};", "line 6: expected ']', got ';'"}},
        body);
}

// Every beginning of a module, and every module with a byte changed, is refused or accepted.
TEST(PtxErrors, PrefixesAndChangedBytes) {
  std::string text = afterHeader(R"(.extern .shared .align 16 .b8 m[];
.visible .entry k(.param .align 8 .b8 p[16]) .maxntid 8 {
.reg .b32 %r<4>; .reg .pred %p<2>; .reg .b64 %rd<2>;
{ .reg .pred P; W: @!P bra W; }
@%p1 foo.x::y %r1|%p1, {%r2, _}, [m+-4], [%rd1, {%r1, 0x1F}], !%p1, 0f3F800000;
})");
  ASSERT_EQ(messageOf(text), "accepted");
  for (size_t length = 0; length < text.size(); ++length)
    EXPECT_NE(messageOf(text.substr(0, length)), "") << length;
  for (size_t i = 0; i < text.size(); ++i)
    for (char c : {'\0', '{', '}', '.', ';', '0', 'x', ' ', '"', '\n'}) {
      std::string changed = text;
      changed[i] = c;
      EXPECT_NE(messageOf(changed), "") << i;
    }
}
