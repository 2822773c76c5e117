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
    return proofs::proveMasks(&context, before.program, after.program, relation, options);
  }

  proofs::ProveOptions options;

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

/// Keeps everything where op(n, m) < 1 in 8 bits.
Program binary(Op op) {
  Program p;
  auto param = [&](const char *name) {
    return p.add(Op::Trunc, ScalarType::I8, {p.param(name, ScalarType::I32)});
  };
  NodeId x = param("n"), y = param("m");
  NodeId z = p.add(op, ScalarType::I8, {x, y});
  p.program.mask = p.add(Op::CmpSlt, ScalarType::Bool, {z, p.program.constant(ScalarType::I8, 1)});
  return p;
}

TEST_F(ProveTest, OperationsAgreeWithTheEvaluator) {
  // With a solver; EncoderTest has more of them. The evaluator replays every difference and tries
  // every proof on random batches: an encoding that is wrong for small numbers is told by an
  // outcome that is neither.
  const Op ops[] = {Op::Add,  Op::Sub,  Op::Mul,  Op::DivS, Op::RemS, Op::DivU,      Op::RemU,
                    Op::MinS, Op::MaxS, Op::MinU, Op::MaxU, Op::And,  Op::FloorDivS, Op::CeilDivS,
                    Op::Or,   Op::Xor,  Op::Shl,  Op::ShrS, Op::ShrU};
  Program never;
  never.program.mask = never.program.constant(ScalarType::Bool, 0);
  for (Op op : ops) {
    Verdict verdict = prove(binary(op), never);
    EXPECT_EQ(verdict.outcome, Outcome::Refuted)
        << core::toString(op) << ": " << proofs::toString(verdict.outcome) << " " << verdict.reason;
  }
}

/// Some of the first `count` elements of a table is positive; or none is not.
Program someElement(int64_t count, bool isOr) {
  Program p;
  NodeId table = p.table(core::TableKind::Plain, "t");
  p.program.tables[table].dims = {core::TableDim::Slot};
  auto number = [&](int64_t value) { return p.program.constant(ScalarType::I64, value); };
  NodeId zero = number(0), end = number(count), one = number(1);
  NodeId start = p.program.constant(ScalarType::Bool, !isOr);
  NodeId index = p.add(Op::LoopIndex, ScalarType::I64);
  NodeId carried = p.add(Op::LoopCarried, ScalarType::Bool);
  NodeId element = p.add(Op::TableLoad, ScalarType::I32, {index}, table);
  NodeId test = p.add(isOr ? Op::CmpSgt : Op::CmpSle, ScalarType::Bool,
                      {element, p.program.constant(ScalarType::I32, 0)});
  NodeId yield = p.add(isOr ? Op::Or : Op::And, ScalarType::Bool, {carried, test});
  NodeId loop = p.add(Op::For, ScalarType::Bool, {zero, end, one, start, yield}, -1, 1);
  for (NodeId leaf : {index, carried})
    p.program.nodes[leaf].ref = loop;
  p.program.mask = isOr ? loop : p.add(Op::Not, ScalarType::Bool, {loop});
  return p;
}

TEST_F(ProveTest, LoopsOfManyIterations) {
  // They are no rule of a batch: the question whether those can hold does not see them.
  EXPECT_EQ(prove(someElement(20, true), someElement(20, false)).outcome, Outcome::Proved);
  Verdict verdict = prove(someElement(21, true), someElement(20, false));
  EXPECT_EQ(verdict.outcome, Outcome::Refuted) << verdict.reason;
}

TEST_F(ProveTest, NumbersOfALoopAreOfTheirType) {
  // Sums that no solver is told of: sext of a bit is not sext of the i8 that is 1 where it is set.
  auto sum = [](bool narrow) {
    Program p;
    NodeId n = p.param("n", ScalarType::I64), k = p.add(Op::IndexK, ScalarType::I64);
    auto number = [&](int64_t value) { return p.program.constant(ScalarType::I64, value); };
    NodeId zero = number(0), one = number(1);
    NodeId bit = p.add(Op::CmpSlt, ScalarType::Bool, {k, number(5)});
    if (narrow)
      bit = p.add(
          Op::Select, ScalarType::I8,
          {bit, p.program.constant(ScalarType::I8, 1), p.program.constant(ScalarType::I8, 0)});
    NodeId index = p.add(Op::LoopIndex, ScalarType::I64);
    NodeId carried = p.add(Op::LoopCarried, ScalarType::I64);
    NodeId moved = p.add(Op::Add, ScalarType::I64, {carried, index});
    NodeId yield =
        p.add(Op::Add, ScalarType::I64, {moved, p.add(Op::SExt, ScalarType::I64, {bit})});
    NodeId loop = p.add(Op::For, ScalarType::I64, {zero, n, one, zero, yield}, -1, 1);
    for (NodeId leaf : {index, carried})
      p.program.nodes[leaf].ref = loop;
    p.program.mask = p.add(Op::CmpSgt, ScalarType::Bool, {loop, zero});
    return p;
  };
  EXPECT_EQ(prove(sum(false), sum(false)).outcome, Outcome::Proved);
  EXPECT_NE(prove(sum(false), sum(true)).outcome, Outcome::Proved);
}

TEST_F(ProveTest, OperandsOfALoopAreTheirOwn) {
  // The same operations on the same numbers, but for which of two the last one reads.
  auto sum = [](bool first) {
    Program p;
    NodeId n = p.param("n", ScalarType::I64), x = p.param("x", ScalarType::I64),
           y = p.param("y", ScalarType::I64);
    auto number = [&](int64_t value) { return p.program.constant(ScalarType::I64, value); };
    NodeId zero = number(0), one = number(1);
    NodeId index = p.add(Op::LoopIndex, ScalarType::I64);
    NodeId carried = p.add(Op::LoopCarried, ScalarType::I64);
    NodeId moved = p.add(Op::Add, ScalarType::I64, {index, x});
    moved = p.add(Op::Sub, ScalarType::I64, {moved, y});
    moved = p.add(Op::MaxS, ScalarType::I64, {moved, first ? x : y});
    NodeId yield = p.add(Op::Add, ScalarType::I64, {carried, moved});
    NodeId loop = p.add(Op::For, ScalarType::I64, {zero, n, one, zero, yield}, -1, 1);
    for (NodeId leaf : {index, carried})
      p.program.nodes[leaf].ref = loop;
    p.program.mask = p.add(Op::CmpSgt, ScalarType::Bool, {loop, zero});
    return p;
  };
  EXPECT_EQ(prove(sum(true), sum(true)).outcome, Outcome::Proved);
  EXPECT_NE(prove(sum(true), sum(false)).outcome, Outcome::Proved);
}

TEST_F(ProveTest, TablesMayBeLargerThanAnyThatIsTried) {
  auto element = [](bool isLimited) {
    Program p;
    NodeId table = p.table(core::TableKind::Plain, "t");
    p.program.tables[table].dims = {core::TableDim::Bucket};
    p.program.tables[table].element = ScalarType::I8;
    NodeId n = p.param("n", ScalarType::I64);
    NodeId value = p.add(Op::TableLoad, ScalarType::I8, {n}, table);
    NodeId keep =
        p.add(Op::CmpSgt, ScalarType::Bool, {value, p.program.constant(ScalarType::I8, 0)});
    NodeId limit = p.program.constant(ScalarType::I64, int64_t(1) << 31);
    NodeId below = p.add(Op::CmpSlt, ScalarType::Bool, {n, limit});
    p.program.mask = isLimited ? p.add(Op::And, ScalarType::Bool, {keep, below}) : keep;
    return p;
  };
  Verdict verdict = prove(element(false), element(true));
  EXPECT_EQ(verdict.outcome, Outcome::Unknown);
  EXPECT_NE(verdict.reason.find("too large to be replayed"), std::string::npos) << verdict.reason;
}

TEST_F(ProveTest, ManyRangesAreCounted) {
  // More than two ranges hold nothing back, nor does any number that is tried for an example.
  auto more = [](int64_t than) {
    Program p;
    NodeId table = p.table(core::TableKind::Ranges, "mm");
    NodeId count = p.add(Op::NumRanges, ScalarType::I64, {}, table);
    p.program.mask =
        p.add(Op::CmpSgt, ScalarType::Bool, {count, p.program.constant(ScalarType::I64, than)});
    return p;
  };
  EXPECT_EQ(prove(more(1), more(2)).outcome, Outcome::Refuted);
  EXPECT_EQ(prove(more(3000000000), more(3000000001)).outcome, Outcome::Unknown);
}

TEST_F(ProveTest, ViewsOfDocuments) {
  Program document;
  document.program.mask = document.add(Op::Document, ScalarType::Bool, {},
                                       document.table(core::TableKind::Documents, "doc"));
  // Ids are equal; with `has`, where both are.
  auto lowered = [&](bool has) {
    Program p;
    p.table(core::TableKind::Documents, "doc");
    auto view = [&](const char *name, ScalarType element) {
      NodeId table = p.table(core::TableKind::Plain, name);
      p.program.tables[table].dims = {core::TableDim::B, core::TableDim::K};
      p.program.tables[table].element = element;
      return table;
    };
    NodeId ids = view("ids", ScalarType::I32), flags = view("flags", ScalarType::I8);
    NodeId b = p.add(Op::IndexB, ScalarType::I64), q = p.add(Op::IndexQ, ScalarType::I64),
           k = p.add(Op::IndexK, ScalarType::I64);
    auto load = [&](NodeId table, NodeId at) {
      return p.add(Op::TableLoad, p.program.tables[table].element, {b, at}, table);
    };
    NodeId same = p.add(Op::CmpEq, ScalarType::Bool, {load(ids, q), load(ids, k)});
    NodeId flag =
        p.add(Op::CmpNe, ScalarType::Bool, {load(flags, q), p.program.constant(ScalarType::I8, 0)});
    p.program.mask = has ? p.add(Op::And, ScalarType::Bool, {same, flag}) : same;
    return p;
  };
  options.documentViews = {{"ids", "doc"}, {"flags", "doc"}};
  EXPECT_EQ(prove(document, lowered(true)).outcome, Outcome::Proved);
  Verdict verdict = prove(document, lowered(false));
  EXPECT_EQ(verdict.outcome, Outcome::Refuted) << verdict.reason;
  options.documentViews["ids"] = "none";
  verdict = prove(document, lowered(true));
  EXPECT_EQ(verdict.outcome, Outcome::NotChecked);
  EXPECT_NE(verdict.reason.find("which is no documents table"), std::string::npos);
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
