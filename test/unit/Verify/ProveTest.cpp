// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What no text of a kernel can say: rules that contradict each other, declarations that do not fit,
// loops and integers at the edges. z3 has to be there.
#include "attn/Verify/Prove.h"

#include "mlir/IR/MLIRContext.h"
#include "gtest/gtest.h"

using namespace attn;
using core::Node;
using core::NodeId;
using core::Op;
using core::ScalarType;
using proofs::Outcome;
using proofs::Relation;
using proofs::Verdict;

namespace {

/// A program under construction.
struct Program {
  core::MaskProgram program;

  NodeId add(Op op, ScalarType type, std::vector<NodeId> operands = {}, int32_t ref = -1,
             int64_t imm = 0) {
    Node node;
    node.op = op;
    node.type = type;
    node.operands = std::move(operands);
    node.ref = ref;
    node.imm = imm;
    return program.add(std::move(node));
  }
  NodeId param(const std::string &name, ScalarType type, std::optional<int64_t> min = {}) {
    core::ParamDecl decl;
    decl.name = name;
    decl.type = type;
    decl.minValue = min;
    program.params.push_back(decl);
    return add(Op::Param, type, {}, static_cast<int32_t>(program.params.size()) - 1);
  }
  NodeId table(core::TableKind kind, const std::string &name) {
    core::TableDecl decl;
    decl.name = name;
    decl.kind = kind;
    program.tables.push_back(decl);
    return static_cast<NodeId>(program.tables.size()) - 1;
  }
};

class ProveTest : public ::testing::Test {
protected:
  Verdict prove(const Program &before, const Program &after, Relation relation = Relation::Equal) {
    for (const Program *p : {&before, &after})
      EXPECT_EQ(core::verify(p->program), std::nullopt);
    return proofs::proveMasks(&context, before.program, after.program, relation);
  }

  mlir::MLIRContext context;
};

/// k < n, said twice.
Program below(ScalarType type, std::optional<int64_t> min, int64_t more = 0) {
  Program p;
  NodeId n = p.param("n", type, min), k = p.add(Op::IndexK, ScalarType::I64);
  if (type != ScalarType::I64)
    n = p.add(Op::SExt, ScalarType::I64, {n});
  NodeId limit = p.add(Op::Add, ScalarType::I64, {n, p.program.constant(ScalarType::I64, more)});
  p.program.mask = p.add(Op::CmpSlt, ScalarType::Bool, {k, limit});
  return p;
}

TEST_F(ProveTest, ContradictingRulesProveNothing) {
  // No i32 is 2^40 or more: every claim holds for all of none.
  Program a = below(ScalarType::I32, int64_t(1) << 40), b = below(ScalarType::I32, {}, 1);
  Verdict verdict = prove(a, b);
  EXPECT_EQ(verdict.outcome, Outcome::NotChecked);
  EXPECT_NE(verdict.reason.find("contradict"), std::string::npos) << verdict.reason;
}

TEST_F(ProveTest, SmallestValuesAreThoseOfTheFirst) {
  Program never;
  never.program.mask = never.program.constant(ScalarType::Bool, 0);
  Program a, b;
  for (Program *p : {&a, &b}) {
    NodeId n = p->param("n", ScalarType::I32, p == &a ? std::nullopt : std::optional<int64_t>(0));
    p->program.mask =
        p->add(Op::CmpSlt, ScalarType::Bool, {n, p->program.constant(ScalarType::I32, 0)});
  }
  EXPECT_EQ(prove(a, never).outcome, Outcome::Refuted);
  EXPECT_EQ(prove(b, never).outcome, Outcome::Proved);
}

TEST_F(ProveTest, DeclarationsThatDoNotFitAreNotChecked) {
  Verdict verdict = prove(below(ScalarType::I32, {}), below(ScalarType::I64, {}));
  EXPECT_EQ(verdict.outcome, Outcome::NotChecked);
  EXPECT_NE(verdict.reason.find("'n' has two types"), std::string::npos) << verdict.reason;
}

TEST_F(ProveTest, ImpliesIsOneSided) {
  Program small = below(ScalarType::I32, {}), large = below(ScalarType::I32, {}, 1);
  EXPECT_EQ(prove(small, large, Relation::Implies).outcome, Outcome::Proved);
  Verdict verdict = prove(large, small, Relation::Implies);
  ASSERT_EQ(verdict.outcome, Outcome::Refuted);
  ASSERT_TRUE(verdict.counterexample);
  EXPECT_TRUE(verdict.counterexample->before);
  EXPECT_FALSE(verdict.counterexample->after);
}

TEST_F(ProveTest, SixtyFourBitsWrap) {
  // k < n + 1 is not k <= n where n is the largest.
  Program a = below(ScalarType::I64, {}, 1), b;
  NodeId n = b.param("n", ScalarType::I64), k = b.add(Op::IndexK, ScalarType::I64);
  b.program.mask = b.add(Op::CmpSle, ScalarType::Bool, {k, n});
  EXPECT_EQ(prove(a, b).outcome, Outcome::Refuted);
  Program c = below(ScalarType::I32, {}, 1), d;
  n = d.add(Op::SExt, ScalarType::I64, {d.param("n", ScalarType::I32)});
  k = d.add(Op::IndexK, ScalarType::I64);
  d.program.mask = d.add(Op::CmpSle, ScalarType::Bool, {k, n});
  EXPECT_EQ(prove(c, d).outcome, Outcome::Proved);
}

/// Keeps everything where op(n, other) < 1; `other` is a constant, or a parameter if there is none.
Program binary(Op op, ScalarType type, std::optional<int64_t> other) {
  Program p;
  auto param = [&](const char *name) {
    NodeId n = p.param(name, ScalarType::I32);
    return type == ScalarType::I32 ? n : p.add(Op::Trunc, type, {n});
  };
  NodeId x = param("n");
  NodeId y = other ? p.program.constant(type, *other) : param("m");
  NodeId z = p.add(op, type, {x, y});
  p.program.mask = p.add(Op::CmpSlt, ScalarType::Bool, {z, p.program.constant(type, 1)});
  return p;
}

TEST_F(ProveTest, OperationsAgreeWithTheEvaluator) {
  // The evaluator replays every difference and tries every proof on random batches: an encoding
  // that is wrong for small numbers is told by an outcome that is neither.
  const Op ops[] = {Op::Add,  Op::Sub,  Op::Mul,  Op::DivS, Op::RemS, Op::DivU,      Op::RemU,
                    Op::MinS, Op::MaxS, Op::MinU, Op::MaxU, Op::And,  Op::FloorDivS, Op::CeilDivS,
                    Op::Or,   Op::Xor,  Op::Shl,  Op::ShrS, Op::ShrU};
  Program never;
  never.program.mask = never.program.constant(ScalarType::Bool, 0);
  auto check = [&](Op op, ScalarType type, std::optional<int64_t> other) {
    Verdict verdict = prove(binary(op, type, other), never);
    EXPECT_TRUE(verdict.outcome == Outcome::Refuted || verdict.outcome == Outcome::Proved)
        << core::toString(op) << " " << core::toString(type) << " " << other.value_or(99) << ": "
        << proofs::toString(verdict.outcome) << " " << verdict.reason;
  };
  for (Op op : ops) {
    for (int64_t other : {-6, 0, 3})
      check(op, ScalarType::I8, other);
    check(op, ScalarType::I32, 3);
    check(op, ScalarType::I8, std::nullopt);
  }
}

TEST_F(ProveTest, BitOperationsWithConstantsAreExact) {
  // x & -8 == x - (x mod 8), (x | 5) >= x, and x ^ x shifted there and back.
  auto mask = [&](auto build) {
    Program p;
    NodeId x = p.param("x", ScalarType::I32);
    p.program.mask = build(p, x);
    return p;
  };
  auto constant = [](Program &p, int64_t value) {
    return p.program.constant(ScalarType::I32, value);
  };
  Program all;
  all.program.mask = all.program.constant(ScalarType::Bool, 1);
  auto cleared = mask([&](Program &p, NodeId x) {
    NodeId low = p.add(Op::And, ScalarType::I32, {x, constant(p, 7)});
    NodeId high = p.add(Op::And, ScalarType::I32, {x, constant(p, -8)});
    NodeId sum = p.add(Op::Or, ScalarType::I32, {high, constant(p, 0)});
    return p.add(Op::CmpEq, ScalarType::Bool, {p.add(Op::Add, ScalarType::I32, {low, sum}), x});
  });
  EXPECT_EQ(prove(cleared, all).outcome, Outcome::Proved);
  auto larger = mask([&](Program &p, NodeId x) {
    NodeId set = p.add(Op::Or, ScalarType::I32, {x, constant(p, 5)});
    return p.add(Op::CmpSge, ScalarType::Bool, {set, x});
  });
  EXPECT_EQ(prove(larger, all).outcome, Outcome::Proved);
  auto turned = mask([&](Program &p, NodeId x) {
    NodeId other = p.add(Op::Xor, ScalarType::I32, {x, constant(p, 5)});
    return p.add(Op::CmpSge, ScalarType::Bool, {other, x});
  });
  EXPECT_EQ(prove(turned, all).outcome, Outcome::Refuted);
}

} // namespace
