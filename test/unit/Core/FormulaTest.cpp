// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ProgramBuilder.h"

#include <gtest/gtest.h>

using namespace attn::core;
using namespace attn::test;

namespace {

using Type = ScalarType;

TEST(Formula, NamedMasks) {
  ProgramBuilder build;
  int32_t mm = build.table("mm", TableKind::Ranges);
  int32_t docs = build.table("docs", TableKind::Documents);
  int32_t rows = build.table("rows", TableKind::QueryRanges, mm);
  NodeId left = build.node(Op::Param, Type::I32, {}, build.param("left", Type::I32));
  NodeId cw = build.andOf(build.mask(Op::Causal), build.window(left));
  NodeId m = build.orOf(cw, build.mask(Op::MmPrefix, {left}, mm));
  EXPECT_EQ(toFormula(build.program, m),
            "(causal and window(left = left)) or mm_prefix(mm, clamp = left)");
  NodeId both = build.mask(Op::Window, {build.i32(3), left}, -1, 3);
  NodeId doc = build.mask(Op::Document, {}, docs);
  NodeId all = build.andOf(build.andOf(both, doc), build.notOf(m));
  EXPECT_EQ(toFormula(build.program, all),
            "window(left = 3, right = left) and document(docs) and not ((causal and window(left = "
            "left)) or mm_prefix(mm, clamp = left))");
  NodeId inRows = build.mask(Op::InRows, {build.node(Op::RowLo, Type::I64, {}, rows),
                                          build.node(Op::RowHi, Type::I64, {}, rows)});
  EXPECT_EQ(toFormula(build.program, inRows), "in_rows(row_lo(rows), row_hi(rows))");
  NodeId others = build.orOf(build.mask(Op::Prefix, {left}), build.mask(Op::Global, {left}));
  EXPECT_EQ(toFormula(build.program, build.notOf(others)), "not (prefix(left) or global(left))");
  EXPECT_EQ(toFormula(build.program, -1), "true");
}

TEST(Formula, ArithmeticNeedsTheRightParentheses) {
  ProgramBuilder build;
  NodeId q = build.q(), k = build.k(), two = build.i64(2);
  auto i64 = [&](Op op, NodeId a, NodeId b) { return build.node(op, Type::I64, {a, b}); };
  NodeId difference = i64(Op::Sub, q, k);
  EXPECT_EQ(toFormula(build.program, i64(Op::Sub, difference, two)), "q - k - 2");
  EXPECT_EQ(toFormula(build.program, i64(Op::Sub, two, difference)), "2 - (q - k)");
  EXPECT_EQ(toFormula(build.program, i64(Op::Mul, difference, two)), "(q - k) * 2");
  EXPECT_EQ(toFormula(build.program, i64(Op::Add, i64(Op::Mul, q, two), k)), "q * 2 + k");
  NodeId less = build.mask(Op::CmpSlt, {difference, i64(Op::FloorDivS, q, two)});
  EXPECT_EQ(toFormula(build.program, less), "q - k < floor_div_s(q, 2)");
  EXPECT_EQ(toFormula(build.program, build.andOf(less, build.notOf(less))),
            "q - k < floor_div_s(q, 2) and not (q - k < floor_div_s(q, 2))");
  EXPECT_EQ(toFormula(build.program, build.mask(Op::CmpEq, {less, build.boolean(true)})),
            "(q - k < floor_div_s(q, 2)) == true");
  NodeId narrow = build.node(Op::Trunc, Type::I32, {q});
  EXPECT_EQ(toFormula(build.program, build.node(Op::ZExt, Type::I64, {narrow})),
            "zext_i64(i32(q))");
  int32_t t = build.plain("t", {TableDim::HKv, TableDim::K}, Type::F32);
  NodeId element = build.node(Op::TableLoad, Type::F32, {k, difference}, t);
  NodeId s = build.node(Op::Score, Type::F32);
  NodeId sum = build.node(Op::FAdd, Type::F32, {s, element});
  EXPECT_EQ(toFormula(build.program, build.node(Op::SoftCap, Type::F32, {sum, build.f32(20)})),
            "soft_cap(s + t[h_kv, q - k], 20)");
}

TEST(Formula, Loops) {
  ProgramBuilder build;
  int32_t mm = build.table("mm", TableKind::Ranges);
  EXPECT_EQ(toFormula(build.program, build.scanRanges(mm)),
            "for(i in 0 .. num_ranges(mm), acc = false: acc or (range_start(mm, i) <= q and "
            "range_end(mm, i) >= q and k >= range_start(mm, i) and k <= range_end(mm, i)))");
}

TEST(Formula, SharedNodesDoNotExplode) {
  ProgramBuilder build;
  NodeId x = build.q();
  for (int i = 0; i < 200; ++i)
    x = build.node(Op::Add, Type::I64, {x, x});
  EXPECT_LT(toFormula(build.program, x).size(), 10000u);
}

} // namespace
