// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Names, verification, dependence and the emission order.
#include "ProgramBuilder.h"

#include "attn/Core/MaskProgramEmit.h"

#include <gtest/gtest.h>

#include <functional>

using namespace attn::core;
using namespace attn::test;

namespace {

using Type = ScalarType;

TEST(MaskProgram, NamesRoundTrip) {
  for (int i = 0; i <= static_cast<int>(Op::ForResult); ++i) {
    Op op = static_cast<Op>(i);
    EXPECT_FALSE(toString(op).empty());
    EXPECT_EQ(parseOp(toString(op)), op);
  }
  for (Type type : {Type::Bool, Type::I8, Type::I16, Type::I32, Type::I64, Type::F32})
    EXPECT_EQ(parseScalarType(toString(type)), type);
  for (TableDim dim : {TableDim::B, TableDim::Token, TableDim::K, TableDim::Slot, TableDim::H,
                       TableDim::HKv, TableDim::Bucket})
    EXPECT_EQ(parseTableDim(toString(dim)), dim);
  for (TableKind kind :
       {TableKind::Plain, TableKind::Ranges, TableKind::Documents, TableKind::QueryRanges})
    EXPECT_EQ(parseTableKind(toString(kind)), kind);
  EXPECT_EQ(toString(Op::CmpSle), "cmp_sle");
  EXPECT_EQ(toString(Op::MmPrefix), "mm_prefix");
  EXPECT_FALSE(parseOp("nothing"));
  EXPECT_EQ(bitWidth(Type::Bool), 1u);
  EXPECT_EQ(bitWidth(Type::I16), 16u);
  EXPECT_EQ(bitWidth(Type::F32), 32u);
}

struct Faulty {
  const char *message;
  std::function<void(ProgramBuilder &)> make;
};

/// Adds a node whose operands, type and numbers are as given.
std::function<void(ProgramBuilder &)> only(Op op, Type type, std::vector<NodeId> operands = {},
                                           int32_t ref = -1, int64_t imm = 0) {
  return [=](ProgramBuilder &b) {
    b.i64(0);
    b.f32(0);
    b.boolean(false);
    b.i32(0);
    b.node(op, type, operands, ref, imm);
  };
}

// Node 0 is i64, 1 is f32, 2 is i1, 3 is i32; the node in question is number 4.
const Faulty kFaults[] = {
    {"node 4 (add): operand 1 is node 4, which does not come before its user",
     only(Op::Add, Type::I64, {0, 4})},
    {"node 4 (add): operand 0 is node -1, which does not come before its user",
     only(Op::Add, Type::I64, {-1, 0})},
    {"node 4 (add): expected 2 operands, got 1", only(Op::Add, Type::I64, {0})},
    {"node 4 (add): operand 1: expected type i64, got i32", only(Op::Add, Type::I64, {0, 3})},
    {"node 4 (add): expected an integer type, got f32", only(Op::Add, Type::F32, {1, 1})},
    {"node 4 (not): expected 1 operands, got 2", only(Op::Not, Type::Bool, {2, 2})},
    {"node 4 (cmp_eq): expected type i1, got i64", only(Op::CmpEq, Type::I64, {0, 0})},
    {"node 4 (cmp_eq): operand 0: expected an integer type, got f32",
     only(Op::CmpEq, Type::Bool, {1, 1})},
    {"node 4 (cmp_slt): operand 1: expected type i64, got i32",
     only(Op::CmpSlt, Type::Bool, {0, 3})},
    {"node 4 (sext): expected an integer type wider than i32, got i32",
     only(Op::SExt, Type::I32, {3})},
    {"node 4 (trunc): expected an integer type narrower than i32, got i64",
     only(Op::Trunc, Type::I64, {3})},
    {"node 4 (zext): operand 0: expected an integer type, got f32",
     only(Op::ZExt, Type::I64, {1})},
    {"node 4 (select): operand 0: expected type i1, got i64",
     only(Op::Select, Type::I64, {0, 0, 0})},
    {"node 4 (select): operand 2: expected type i64, got i32",
     only(Op::Select, Type::I64, {2, 0, 3})},
    {"node 4 (fadd): operand 0: expected type f32, got i64", only(Op::FAdd, Type::F32, {0, 1})},
    {"node 4 (fadd): expected type f32, got i64", only(Op::FAdd, Type::I64, {1, 1})},
    {"node 4 (fma): expected 3 operands, got 2", only(Op::Fma, Type::F32, {1, 1})},
    {"node 4 (fcmp_olt): expected type i1, got f32", only(Op::FCmpOlt, Type::F32, {1, 1})},
    {"node 4 (sitofp): operand 0: expected an integer type, got f32",
     only(Op::SIToFP, Type::F32, {1})},
    {"node 4 (sitofp): expected type f32, got i32", only(Op::SIToFP, Type::I32, {0})},
    {"node 4 (fptosi): operand 0: expected type f32, got i64", only(Op::FPToSI, Type::I32, {0})},
    {"node 4 (fptosi): expected an integer type, got i1", only(Op::FPToSI, Type::Bool, {1})},
    {"node 4 (index_k): expected type i64, got i32", only(Op::IndexK, Type::I32)},
    {"node 4 (index_k): expected 0 operands, got 1", only(Op::IndexK, Type::I64, {0})},
    {"node 4 (score): expected type f32, got i64", only(Op::Score, Type::I64)},
    {"node 4 (param): no parameter 0", only(Op::Param, Type::I32, {}, 0)},
    {"node 4 (const): value 128 does not fit i8", only(Op::Const, Type::I8, {}, -1, 128)},
    {"node 4 (const): value 2 does not fit i1", only(Op::Const, Type::Bool, {}, -1, 2)},
    {"node 4 (table_load): no table 0", only(Op::TableLoad, Type::I32, {}, 0)},
    {"node 4 (num_ranges): no table -1", only(Op::NumRanges, Type::I64)},
    {"node 4 (causal): expected type i1, got i64", only(Op::Causal, Type::I64)},
    {"node 4 (causal): expected 0 operands, got 1", only(Op::Causal, Type::Bool, {0})},
    {"node 4 (window): expected sides 1 (left), 2 (right) or 3 (both), got 0",
     only(Op::Window, Type::Bool, {3}, -1, 0)},
    {"node 4 (window): expected 2 operands, got 1", only(Op::Window, Type::Bool, {3}, -1, 3)},
    {"node 4 (window): operand 0: expected an integer type, got f32",
     only(Op::Window, Type::Bool, {1}, -1, 1)},
    {"node 4 (window): operand 0: expected an integer type, got i1",
     only(Op::Window, Type::Bool, {2}, -1, 1)},
    {"node 4 (prefix): expected 1 operands, got 0", only(Op::Prefix, Type::Bool)},
    {"node 4 (in_rows): operand 0: expected type i64, got i32",
     only(Op::InRows, Type::Bool, {3, 3})},
    {"node 4 (mm_prefix): no table 5", only(Op::MmPrefix, Type::Bool, {}, 5)},
    {"node 4 (alibi): expected 2 operands, got 1", only(Op::Alibi, Type::F32, {1})},
    {"node 4 (for): expected at least one carried value, got 0",
     only(Op::For, Type::I64, {0, 0, 0}, -1, 0)},
    {"node 4 (for): expected 5 operands, got 4", only(Op::For, Type::I64, {0, 0, 0, 0}, -1, 1)},
    {"node 4 (for): expected at least one carried value, got 9223372036854775807",
     only(Op::For, Type::I64, {0, 0, 0, 0, 0}, -1, INT64_MAX)},
    {"node 4 (for): operand 1: expected type i64, got i32",
     only(Op::For, Type::I64, {0, 3, 0, 0, 0}, -1, 1)},
    {"node 4 (for): operand 4: expected type i64, got i32",
     only(Op::For, Type::I64, {0, 0, 0, 0, 3}, -1, 1)},
    {"node 4 (for): expected type i32, got i64",
     only(Op::For, Type::I64, {0, 0, 0, 3, 3}, -1, 1)},
    {"node 4 (loop_index): node 0 is not a loop", only(Op::LoopIndex, Type::I64, {}, 0)},
    {"node 4 (loop_index): node 99 is not a loop", only(Op::LoopIndex, Type::I64, {}, 99)},
    {"node 4 (for_result): node -1 is not a loop", only(Op::ForResult, Type::I64)},
    {"node 5 (loop_index): node 4 lies on the wrong side",
     [](ProgramBuilder &b) {
       only(Op::For, Type::I64, {0, 0, 0, 0, 0}, -1, 1)(b);
       b.node(Op::LoopIndex, Type::I64, {}, 4);
     }},
    {"node 5 (for_result): loop 4 has no carried value 1",
     [](ProgramBuilder &b) {
       only(Op::For, Type::I64, {0, 0, 0, 0, 0}, -1, 1)(b);
       b.node(Op::ForResult, Type::I64, {}, 4, 1);
     }},
    {"node 5 (for_result): expected type i64, got i1",
     [](ProgramBuilder &b) {
       only(Op::For, Type::I64, {0, 0, 0, 0, 0}, -1, 1)(b);
       b.node(Op::ForResult, Type::Bool, {}, 4, 0);
     }},
    {"node 3 (add): uses a value of the body of node 2 outside of that loop",
     [](ProgramBuilder &b) {
       b.i64(0);
       b.node(Op::LoopIndex, Type::I64, {}, 2);
       b.node(Op::For, Type::I64, {0, 0, 0, 0, 1}, -1, 1);
       b.node(Op::Add, Type::I64, {1, 1});
     }},
    {"node 2 (for): uses a value of the body of node 2 outside of that loop",
     [](ProgramBuilder &b) {
       b.i64(0);
       b.node(Op::LoopIndex, Type::I64, {}, 2);
       b.node(Op::For, Type::I64, {0, 1, 0, 0, 0}, -1, 1);
     }},
    {"mask: node 1 lies in the body of a loop",
     [](ProgramBuilder &b) {
       b.i64(0);
       b.node(Op::LoopCarried, Type::Bool, {}, 3, 0);
       b.boolean(true);
       b.node(Op::LoopCarried, Type::Bool, {}, 4, 0);
       b.node(Op::For, Type::Bool, {0, 0, 0, 2, 3}, -1, 1);
       b.program.nodes[1].ref = 4;
       b.program.mask = 1;
     }},
    {"mask: no node 7", [](ProgramBuilder &b) { b.program.mask = 7; }},
    {"mask: no node -2", [](ProgramBuilder &b) { b.program.mask = -2; }},
    {"mask: expected type i1, got i64", [](ProgramBuilder &b) { b.program.mask = b.i64(1); }},
    {"score: expected type f32, got i64", [](ProgramBuilder &b) { b.program.score = b.i64(1); }},
    {"parameter 1: name 'a' is taken",
     [](ProgramBuilder &b) {
       b.param("a", Type::I32);
       b.param("a", Type::F32);
     }},
    {"parameter 0: empty name", [](ProgramBuilder &b) { b.param("", Type::I32); }},
    {"parameter 0: expected type i32, i64 or f32, got i8",
     [](ProgramBuilder &b) { b.param("a", Type::I8); }},
    {"parameter 0: a smallest value needs an integer type",
     [](ProgramBuilder &b) {
       b.param("a", Type::F32);
       b.program.params[0].minValue = 0;
     }},
    {"table 1: name 't' is taken",
     [](ProgramBuilder &b) {
       b.table("t", TableKind::Ranges);
       b.table("t", TableKind::Documents);
     }},
    {"table 0: empty name", [](ProgramBuilder &b) { b.table("", TableKind::Ranges); }},
    {"table 0: expected 1 to 4 dims, got 0",
     [](ProgramBuilder &b) { b.plain("t", {}, Type::I32); }},
    {"table 0: expected 1 to 4 dims, got 5",
     [](ProgramBuilder &b) {
       b.plain("t", std::vector<TableDim>(5, TableDim::K), Type::I32);
     }},
    {"table 0: expected element type i8, i32, i64 or f32, got i16",
     [](ProgramBuilder &b) { b.plain("t", {TableDim::K}, Type::I16); }},
    {"table 0: only plain tables have dims",
     [](ProgramBuilder &b) {
       b.table("t", TableKind::Ranges);
       b.program.tables[0].dims = {TableDim::K};
     }},
    {"table 0: no source table -1",
     [](ProgramBuilder &b) { b.table("t", TableKind::QueryRanges); }},
    {"table 0: expected a source of kind ranges or documents, got query_ranges",
     [](ProgramBuilder &b) { b.table("t", TableKind::QueryRanges, 0); }},
    {"node 0 (num_ranges): table 't': expected kind ranges, got documents",
     [](ProgramBuilder &b) {
       b.table("t", TableKind::Documents);
       b.node(Op::NumRanges, Type::I64, {}, 0);
     }},
    {"node 1 (table_load): expected 2 operands, got 1",
     [](ProgramBuilder &b) {
       b.plain("t", {TableDim::B, TableDim::K}, Type::I32);
       b.node(Op::TableLoad, Type::I32, {b.i64(0)}, 0);
     }},
    {"node 1 (table_load): expected type i32, got i64",
     [](ProgramBuilder &b) {
       b.plain("t", {TableDim::K}, Type::I32);
       b.node(Op::TableLoad, Type::I64, {b.i64(0)}, 0);
     }},
    {"node 0 (row_lo): table 'mm': expected kind query_ranges, got ranges",
     [](ProgramBuilder &b) {
       b.table("mm", TableKind::Ranges);
       b.node(Op::RowLo, Type::I64, {}, 0);
     }},
    {"node 0 (document): table 'mm': expected kind documents, got ranges",
     [](ProgramBuilder &b) {
       b.table("mm", TableKind::Ranges);
       b.mask(Op::Document, {}, 0);
     }},
};

TEST(MaskProgram, FaultsAreFoundAndNamed) {
  for (const Faulty &fault : kFaults) {
    ProgramBuilder build;
    fault.make(build);
    std::optional<std::string> message = verify(build.program);
    ASSERT_TRUE(message) << fault.message;
    EXPECT_EQ(*message, fault.message);
  }
}

/// `depth` loops inside each other; the body of the innermost reads every induction variable.
MaskProgram nestedLoops(int depth) {
  ProgramBuilder build;
  NodeId zero = build.i64(0), two = build.i64(2), one = build.i64(1);
  std::vector<NodeId> ivs;
  for (int i = 0; i < depth; ++i)
    ivs.push_back(build.node(Op::LoopIndex, Type::I64));
  NodeId sum = zero;
  for (NodeId iv : ivs)
    sum = build.node(Op::Add, Type::I64, {sum, iv});
  for (int i = depth; i-- > 0;) {
    sum = build.node(Op::For, Type::I64, {zero, two, one, zero, sum}, -1, 1);
    build.program.nodes[ivs[i]].ref = sum;
  }
  build.program.mask = build.mask(Op::CmpEq, {sum, zero});
  return build.program;
}

TEST(MaskProgram, LoopDepthIsBounded) {
  EXPECT_FALSE(verify(nestedLoops(16)));
  std::optional<std::string> fault = verify(nestedLoops(17));
  ASSERT_TRUE(fault);
  EXPECT_EQ(*fault, "node 36 (add): loops nest deeper than 16");
}

TEST(MaskProgram, EmissionOrderPutsNodesIntoTheirInnermostLoop) {
  MaskProgram program = nestedLoops(2);
  // 0..2 constants, 3 outer iv, 4 inner iv, 5 = 0 + 3, 6 = 5 + 4, 7 inner for, 8 outer for, 9 mask.
  EmissionOrder order = emissionOrder(program, program.mask);
  EXPECT_EQ(order.outside, (std::vector<NodeId>{0, 1, 2, 8, 9}));
  EXPECT_EQ(order.bodies[8], (std::vector<NodeId>{3, 5, 7}));
  EXPECT_EQ(order.bodies[7], (std::vector<NodeId>{4, 6}));
  // Only what the root needs.
  EXPECT_EQ(emissionOrder(program, 1).outside, (std::vector<NodeId>{1}));
}

TEST(MaskProgram, DependenceFollowsLoopsAndDims) {
  auto text = [](const MaskProgram &program, NodeId root) {
    Dependence d = dependence(program, root);
    std::string s;
    for (auto [flag, name] : {std::pair{d.b, 'b'}, {d.h, 'h'}, {d.q, 'q'}, {d.k, 'k'}, {d.s, 's'}})
      if (flag)
        s += name;
    return s;
  };
  ProgramBuilder build;
  int32_t mm = build.table("mm", TableKind::Ranges);
  int32_t rows = build.table("rows", TableKind::QueryRanges, mm);
  int32_t t = build.plain("t", {TableDim::HKv, TableDim::Token, TableDim::Bucket}, Type::I32);
  EXPECT_EQ(text(build.program, -1), "");
  EXPECT_EQ(text(build.program, build.mask(Op::Causal)), "qk");
  EXPECT_EQ(text(build.program, build.mask(Op::Prefix, {build.i32(1)})), "k");
  EXPECT_EQ(text(build.program, build.mask(Op::MmPrefix, {}, mm)), "bqk");
  EXPECT_EQ(text(build.program, build.node(Op::RowLo, Type::I64, {}, rows)), "bq");
  NodeId h = build.node(Op::IndexH, Type::I64), k = build.k(), zero = build.i64(0);
  EXPECT_EQ(text(build.program, build.node(Op::TableLoad, Type::I32, {k, k, zero}, t)), "bhq");
  EXPECT_EQ(text(build.program, build.node(Op::TableLoad, Type::I32, {zero, zero, k}, t)), "bhqk");
  EXPECT_EQ(text(build.program, build.node(Op::Score, Type::F32)), "s");
  NodeId scan = build.scanRanges(mm);
  EXPECT_EQ(text(build.program, scan), "bqk");
  // A loop's first result depends on what the bounds depend on.
  NodeId iv = build.node(Op::LoopIndex, Type::I64);
  NodeId loop = build.node(Op::For, Type::I64, {zero, h, zero, zero, iv}, -1, 1);
  build.program.nodes[iv].ref = loop;
  EXPECT_EQ(text(build.program, loop), "h");
  EXPECT_EQ(text(build.program, build.node(Op::ForResult, Type::I64, {}, loop)), "h");
}

} // namespace
