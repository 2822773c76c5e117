// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Floats of masks against the float arithmetic of C++: every operation is rounded to f32, in exact
// evaluation, in interval sets and over boxes.
#include "ProgramBuilder.h"

#include "attn/Core/MaskEval.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <limits>
#include <random>

using namespace attn::core;
using namespace attn::test;

namespace {

using Type = ScalarType;
using Make = std::function<NodeId(ProgramBuilder &)>;
constexpr float kInf = std::numeric_limits<float>::infinity();

/// One request of 12 queries and keys; parameter `x` and table `t` hold the numbers of a test.
struct Setting {
  explicit Setting(float param = 0, std::vector<float> elements = {}) {
    addRequest(batch.shape, 12, 12);
    batch.params = {{0, param}};
    batch.tables = {plainTable({static_cast<int64_t>(elements.size())}, elements)};
  }
  Batch batch;
};

ProgramBuilder newBuilder() {
  ProgramBuilder build;
  build.param("x", Type::F32);
  build.plain("t", {TableDim::Slot}, Type::F32);
  return build;
}

NodeId param(ProgramBuilder &b) { return b.node(Op::Param, Type::F32, {}, 0); }
NodeId element(ProgramBuilder &b, int64_t i) {
  return b.node(Op::TableLoad, Type::F32, {b.i64(i)}, 0);
}

/// Whether the mask, which depends on nothing, is true for all three readings (or false for all).
bool holds(const ProgramBuilder &build, const Batch &batch) {
  EXPECT_FALSE(verify(build.program)) << *verify(build.program);
  MaskEvaluator eval(build.program, batch);
  bool kept = eval.keep(RequestIndex(0), HeadIndex(0), QueryPos(2), KeyPos(3));
  auto keys = eval.rowKeys(RequestIndex(0), HeadIndex(0), QueryPos(2));
  EXPECT_TRUE(keys && *keys == (kept ? IntervalSet::all() : IntervalSet::none()));
  EXPECT_EQ(eval.classify(RequestIndex(0), HeadIndex(0), {0, 5}, {1, 7}),
            kept ? TileClass::Full : TileClass::Skip);
  return kept;
}

/// Whether `make` builds `expected`: NaN is NaN, zeros have signs.
bool gives(float expected, const Batch &batch, const Make &make) {
  ProgramBuilder b = newBuilder();
  NodeId value = make(b);
  if (std::isnan(expected)) {
    b.program.mask = b.mask(Op::FCmpUno, {value, value});
  } else {
    NodeId same = b.mask(Op::FCmpOeq, {value, b.f32(expected)});
    if (expected == 0) {
      NodeId inverse = b.node(Op::FDiv, Type::F32, {b.f32(1), value});
      same = b.andOf(same, b.mask(Op::FCmpOeq, {inverse, b.f32(1 / expected)}));
    }
    b.program.mask = same;
  }
  return holds(b, batch);
}

float minimum(float a, float b) {
  if (std::isnan(a) || std::isnan(b))
    return NAN;
  return a < b || (a == b && std::signbit(a)) ? a : b;
}
float maximum(float a, float b) { return -minimum(-a, -b); }

struct Function {
  Op op;
  size_t operands;
  std::function<float(float, float, float)> expected;
};

const std::vector<Function> &functions() {
  static const std::vector<Function> all = {
      {Op::FAdd, 2, [](float a, float b, float) { return a + b; }},
      {Op::FSub, 2, [](float a, float b, float) { return a - b; }},
      {Op::FMul, 2, [](float a, float b, float) { return a * b; }},
      {Op::FDiv, 2, [](float a, float b, float) { return a / b; }},
      {Op::FNeg, 1, [](float a, float, float) { return -a; }},
      {Op::FAbs, 1, [](float a, float, float) { return std::fabs(a); }},
      {Op::FMin, 2, [](float a, float b, float) { return minimum(a, b); }},
      {Op::FMax, 2, [](float a, float b, float) { return maximum(a, b); }},
      {Op::Fma, 3, [](float a, float b, float c) { return ::fmaf(a, b, c); }},
      {Op::Sqrt, 1, [](float a, float, float) { return ::sqrtf(a); }},
      {Op::Rsqrt, 1, [](float a, float, float) { return 1.0f / ::sqrtf(a); }},
      {Op::Floor, 1, [](float a, float, float) { return ::floorf(a); }},
      {Op::Ceil, 1, [](float a, float, float) { return ::ceilf(a); }},
      // The library's functions for float, which native code calls.
      {Op::Exp, 1, [](float a, float, float) { return ::expf(a); }},
      {Op::Exp2, 1, [](float a, float, float) { return ::exp2f(a); }},
      {Op::ExpM1, 1, [](float a, float, float) { return ::expm1f(a); }},
      {Op::Log, 1, [](float a, float, float) { return ::logf(a); }},
      {Op::Log2, 1, [](float a, float, float) { return ::log2f(a); }},
      {Op::Log1p, 1, [](float a, float, float) { return ::log1pf(a); }},
      {Op::Tanh, 1, [](float a, float, float) { return ::tanhf(a); }},
      {Op::Pow, 2, [](float a, float b, float) { return ::powf(a, b); }},
      {Op::Sin, 1, [](float a, float, float) { return ::sinf(a); }},
      {Op::Cos, 1, [](float a, float, float) { return ::cosf(a); }},
      {Op::Erf, 1, [](float a, float, float) { return ::erff(a); }},
      {Op::SoftCap, 2, [](float s, float cap, float) { return cap * ::tanhf(s / cap); }},
  };
  return all;
}

/// Any bit pattern, a number of ordinary size, or an edge.
float randomFloat(std::mt19937 &random) {
  static const float edges[] = {0,        -0.0f,         1,     -1,     0.1f,       3,
                                16777216, kInf,          -kInf, 1e-45f, -1e-45f,    1.17549435e-38f,
                                NAN,      3.4028235e38f, 0.5f,  2.5f,   8388608.0f, 16777215.0f};
  switch (random() % 3) {
  case 0:
    return edges[random() % std::size(edges)];
  case 1:
    return static_cast<float>(static_cast<int32_t>(random())) * 1e-8f;
  default: {
    uint32_t bits = random();
    float f;
    std::memcpy(&f, &bits, 4);
    return f;
  }
  }
}

TEST(FloatMask, EveryOperationIsRoundedToF32) {
  std::mt19937 random(1);
  for (const Function &function : functions())
    for (int round = 0; round < 400 && !HasFailure(); ++round) {
      float a = randomFloat(random), b = randomFloat(random), c = randomFloat(random);
      Setting setting(b, {c, a});
      EXPECT_TRUE(gives(
          function.expected(a, b, c), setting.batch,
          [&](ProgramBuilder &build) {
            std::vector<NodeId> operands = {element(build, 1), param(build), element(build, 0)};
            if (round % 2)
              operands = {build.f32(a), build.f32(b), build.f32(c)};
            operands.resize(function.operands);
            return build.node(function.op, Type::F32, operands);
          }))
          << toString(function.op) << " " << a << " " << b << " " << c;
    }
}

TEST(FloatMask, IntegersAreRoundedOnce) {
  Setting setting;
  auto check = [&](int64_t v) {
    auto converted = [&](Op op, Type type) {
      return
          [=](ProgramBuilder &b) { return b.node(op, Type::F32, {b.program.constant(type, v)}); };
    };
    EXPECT_TRUE(gives(static_cast<float>(v), setting.batch, converted(Op::SIToFP, Type::I64))) << v;
    EXPECT_TRUE(gives(static_cast<float>(static_cast<uint64_t>(v)), setting.batch,
                      converted(Op::UIToFP, Type::I64)))
        << v;
    if (v != static_cast<int32_t>(v))
      return;
    EXPECT_TRUE(gives(static_cast<float>(v), setting.batch, converted(Op::SIToFP, Type::I32)));
    EXPECT_TRUE(gives(static_cast<float>(static_cast<uint32_t>(v)), setting.batch,
                      converted(Op::UIToFP, Type::I32)));
  };
  // By way of a double these two would become ties and go down.
  const int64_t up = (int64_t(1) << 60) + (int64_t(1) << 36) + 1;
  ASSERT_NE(static_cast<float>(up), static_cast<float>(static_cast<double>(up)));
  check(up);
  check(INT64_MIN + (int64_t(1) << 39) + 1);
  std::mt19937_64 random(2);
  for (int64_t v : {int64_t(16777217), int64_t(16777219), int64_t(-16777217), INT64_MAX, INT64_MIN,
                    int64_t(-1), int64_t(0), int64_t(INT32_MAX), int64_t(INT32_MIN)})
    check(v);
  for (int i = 0; i < 500; ++i)
    check(static_cast<int64_t>(random()) >> (random() % 60));
}

TEST(FloatMask, WhereFloat64WouldDecideOtherwise) {
  Setting setting(0.1f, {0.1f});
  auto check = [&](const Make &mask, bool single, bool twice) {
    ASSERT_NE(single, twice) << "the case is meant to tell f32 from f64";
    ProgramBuilder b = newBuilder();
    b.program.mask = mask(b);
    EXPECT_EQ(holds(b, setting.batch), single) << toFormula(b.program, b.program.mask);
  };
  auto op = [](ProgramBuilder &b, Op o, NodeId x, NodeId y) {
    return b.node(o, Type::F32, {x, y});
  };
  // 16777217 is no f32.
  check(
      [&](ProgramBuilder &b) {
        NodeId i = b.node(Op::SIToFP, Type::F32, {b.i64(16777217)});
        return b.mask(Op::FCmpOeq, {i, b.f32(16777216)});
      },
      static_cast<float>(16777217) == 16777216.0f, static_cast<double>(16777217) == 16777216.0);
  // 0.1 * 3 == 0.3
  const float tenth = 0.1f, third = 0.3f;
  check(
      [&](ProgramBuilder &b) {
        return b.mask(Op::FCmpOeq, {op(b, Op::FMul, param(b), b.f32(3)), b.f32(third)});
      },
      tenth * 3 == third, double(tenth) * 3 == double(third));
  // A product and a sum are two roundings.
  const float square = tenth * tenth;
  check(
      [&](ProgramBuilder &b) {
        NodeId product = op(b, Op::FMul, element(b, 0), param(b));
        return b.mask(Op::FCmpOeq, {op(b, Op::FAdd, product, b.f32(-square)), b.f32(0)});
      },
      tenth * tenth - square == 0, double(tenth) * tenth - square == 0);
  // The sum rounds to 16777216 before it becomes an integer.
  check(
      [&](ProgramBuilder &b) {
        NodeId sum = op(b, Op::FAdd, b.f32(16777216), b.f32(1));
        NodeId i = b.node(Op::FPToSI, Type::I32, {sum});
        return b.mask(Op::CmpEq, {i, b.i32(16777216)});
      },
      static_cast<int>(16777216.0f + 1.0f) == 16777216,
      static_cast<int>(16777216.0 + 1) == 16777216);
  // Sums leave the range of f32, products fall below its smallest number.
  check(
      [&](ProgramBuilder &b) {
        NodeId x = b.f32(3e38f);
        return b.mask(Op::FCmpOeq, {op(b, Op::FAdd, x, x), b.f32(INFINITY)});
      },
      3e38f + 3e38f == kInf, 3e38 + 3e38 == double(kInf));
  check(
      [&](ProgramBuilder &b) {
        NodeId x = b.f32(1e-30f);
        return b.mask(Op::FCmpOeq, {op(b, Op::FMul, x, x), b.f32(0)});
      },
      1e-30f * 1e-30f == 0, 1e-30 * 1e-30 == 0);
  // A constant is a f32 whatever digits it was given with.
  check(
      [&](ProgramBuilder &b) {
        return b.mask(Op::FCmpOeq, {b.f32(0.1), b.f32(0.1f)});
      },
      static_cast<float>(0.1) == 0.1f, 0.1 == double(0.1f));
  // alibi of a mask: 1 - 0.1 * 1
  ProgramBuilder b = newBuilder();
  NodeId biased = b.node(Op::Alibi, Type::F32, {b.f32(1), param(b)});
  b.program.mask = b.mask(Op::FCmpOeq, {biased, b.f32(1.0f - tenth)});
  MaskEvaluator eval(b.program, setting.batch);
  EXPECT_TRUE(eval.keep(RequestIndex(0), HeadIndex(0), QueryPos(3), KeyPos(4)));
  EXPECT_FALSE(eval.keep(RequestIndex(0), HeadIndex(0), QueryPos(3), KeyPos(5)));
}

TEST(FloatMask, ScoresStayFloat64) {
  ProgramBuilder b = newBuilder();
  NodeId x = b.node(Op::SIToFP, Type::F32, {b.i64(16777217)});
  b.program.score = b.node(Op::FAdd, Type::F32, {x, b.node(Op::Score, Type::F32)});
  // The same node in the mask is f32.
  b.program.mask = b.mask(Op::FCmpOeq, {x, b.f32(16777216)});
  ASSERT_FALSE(verify(b.program));
  Setting setting;
  MaskEvaluator eval(b.program, setting.batch);
  EXPECT_EQ(eval.score(0.1, RequestIndex(0), HeadIndex(0), QueryPos(0), KeyPos(0)), 16777217 + 0.1);
  EXPECT_TRUE(eval.keep(RequestIndex(0), HeadIndex(0), QueryPos(0), KeyPos(0)));
}

/// A random expression over q, k and small constants, as nodes and as C++.
class Expression {
public:
  Expression(std::mt19937 &random, ProgramBuilder &build) : random(random), build(build) {}

  struct Term {
    NodeId node;
    std::function<float(int64_t, int64_t)> single;
    std::function<double(int64_t, int64_t)> twice;
  };

  Term make(int depth) {
    if (depth == 0)
      return leaf();
    Term a = make(depth - 1), b = make(depth - 1);
    switch (random() % 5) {
    case 0:
      return combine(Op::FAdd, a, b, [](auto x, auto y) { return x + y; });
    case 1:
      return combine(Op::FSub, a, b, [](auto x, auto y) { return x - y; });
    case 2:
      return combine(Op::FDiv, a, b, [](auto x, auto y) { return x / y; });
    default:
      return combine(Op::FMul, a, b, [](auto x, auto y) { return x * y; });
    }
  }

private:
  Term leaf() {
    auto index = [&](NodeId node, bool ofQuery) {
      return Term{build.node(Op::SIToFP, Type::F32, {node}),
                  [=](int64_t q, int64_t k) { return static_cast<float>(ofQuery ? q : k); },
                  [=](int64_t q, int64_t k) { return static_cast<double>(ofQuery ? q : k); }};
    };
    switch (random() % 3) {
    case 0:
      return index(build.q(), true);
    case 1:
      return index(build.k(), false);
    default: {
      float v = static_cast<float>(1 + random() % 9) * 0.1f;
      return {build.f32(v), [=](int64_t, int64_t) { return v; },
              [=](int64_t, int64_t) { return double(v); }};
    }
    }
  }

  template <class F>
  Term combine(Op op, const Term &a, const Term &b, F f) {
    return {build.node(op, Type::F32, {a.node, b.node}),
            [=](int64_t q, int64_t k) -> float { return f(a.single(q, k), b.single(q, k)); },
            [=](int64_t q, int64_t k) -> double { return f(a.twice(q, k), b.twice(q, k)); }};
  }

  std::mt19937 &random;
  ProgramBuilder &build;
};

TEST(FloatMask, RandomExpressionsAndBoxes) {
  std::mt19937 random(3);
  long pairs = 0, otherwise = 0, boxes = 0, decided = 0;
  for (int program = 0; program < 600 && !HasFatalFailure(); ++program) {
    ProgramBuilder build = newBuilder();
    Expression expression(random, build);
    Expression::Term a = expression.make(1 + random() % 3), b = expression.make(1 + random() % 3);
    // Often the same number but for rounding: 3 a / 3.
    if (program % 2) {
      Expression::Term three{build.f32(3), [](int64_t, int64_t) { return 3.0f; },
                             [](int64_t, int64_t) { return 3.0; }};
      b = {build.node(Op::FMul, Type::F32,
                      {build.node(Op::FDiv, Type::F32, {a.node, three.node}), three.node}),
           [=](int64_t q, int64_t k) { return a.single(q, k) / 3.0f * 3.0f; },
           [=](int64_t q, int64_t k) { return a.twice(q, k) / 3.0 * 3.0; }};
    }
    build.program.mask = build.mask(Op::FCmpOle, {a.node, b.node});
    ASSERT_FALSE(verify(build.program));
    Setting setting;
    MaskEvaluator eval(build.program, setting.batch);
    const RequestIndex r(0);
    const HeadIndex h(0);
    auto truth = [&](int64_t q, int64_t k) { return a.single(q, k) <= b.single(q, k); };
    for (int64_t q = 0; q < 12; ++q) {
      auto keys = eval.rowKeys(r, h, QueryPos(q));
      IntervalSet bound = eval.rowKeysBound(r, h, QueryPos(q));
      for (int64_t k = 0; k < 12; ++k) {
        bool kept = truth(q, k);
        ++pairs;
        otherwise += kept != (a.twice(q, k) <= b.twice(q, k));
        ASSERT_EQ(eval.keep(r, h, QueryPos(q), KeyPos(k)), kept)
            << toFormula(build.program, build.program.mask) << " q=" << q << " k=" << k;
        ASSERT_TRUE(!keys || keys->contains(k) == kept);
        ASSERT_TRUE(!kept || bound.contains(k));
      }
    }
    for (int i = 0; i < 60; ++i) {
      Interval q{int64_t(random() % 12), 0}, k{int64_t(random() % 12), 0};
      q.hi = q.lo + 1 + int64_t(random() % 2);
      k.hi = k.lo + 1 + int64_t(random() % 2);
      bool some = false, all = true;
      for (int64_t x = q.lo; x < q.hi; ++x)
        for (int64_t y = k.lo; y < k.hi; ++y) {
          some |= truth(x, y);
          all &= truth(x, y);
        }
      TileClass got = eval.classify(r, h, q, k);
      ++boxes;
      decided += got != TileClass::Partial;
      ASSERT_TRUE(got == TileClass::Partial || got == (all ? TileClass::Full : TileClass::Skip))
          << toFormula(build.program, build.program.mask);
      ASSERT_TRUE(got != TileClass::Skip || !some);
    }
  }
  std::printf("pairs %ld (%ld otherwise in float64), boxes %ld (%ld decided)\n", pairs, otherwise,
              boxes, decided);
  EXPECT_GT(otherwise, pairs / 50);
  EXPECT_GT(decided, boxes / 10);
}

} // namespace
