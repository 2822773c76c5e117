// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every operation against the C++ operators and the library, at every width, on edge values.
#include "ProgramBuilder.h"

#include "attn/Core/MaskEval.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>
#include <set>

using namespace attn::core;
using namespace attn::test;

namespace {

using Type = ScalarType;
std::set<Op> tested;

/// Whether `make` builds an integer equal to `expected`.
bool equals(Type type, int64_t expected, const std::function<NodeId(ProgramBuilder &)> &make) {
  ProgramBuilder build;
  NodeId value = make(build);
  build.program.mask = build.mask(Op::CmpEq, {value, build.program.constant(type, expected)});
  EXPECT_FALSE(verify(build.program)) << *verify(build.program);
  Batch batch;
  addRequest(batch.shape, 1, 1);
  return MaskEvaluator(build.program, batch)
      .keep(RequestIndex(0), HeadIndex(0), QueryPos(0), KeyPos(0));
}

/// The float that `make` builds.
double valueOf(const std::function<NodeId(ProgramBuilder &)> &make) {
  ProgramBuilder build;
  build.program.score = make(build);
  EXPECT_FALSE(verify(build.program)) << *verify(build.program);
  Batch batch;
  addRequest(batch.shape, 1, 1);
  return MaskEvaluator(build.program, batch)
      .score(0, RequestIndex(0), HeadIndex(0), QueryPos(0), KeyPos(0));
}

void checkBinary(Type type, Op op, int64_t a, int64_t b, int64_t expected) {
  tested.insert(op);
  ASSERT_TRUE(equals(type, expected,
                     [&](ProgramBuilder &build) {
                       return build.node(
                           op, type,
                           {build.program.constant(type, a), build.program.constant(type, b)});
                     }))
      << toString(op) << " " << toString(type) << " " << a << " " << b << " expected " << expected;
}

void checkCompare(Type type, Op op, int64_t a, int64_t b, bool expected) {
  tested.insert(op);
  ASSERT_TRUE(equals(
      Type::Bool, expected,
      [&](ProgramBuilder &build) {
        return build.mask(op, {build.program.constant(type, a), build.program.constant(type, b)});
      }))
      << toString(op) << " " << toString(type) << " " << a << " " << b;
}

template <class S>
struct Widths;
template <>
struct Widths<int8_t> {
  static constexpr Type type = Type::I8;
};
template <>
struct Widths<int16_t> {
  static constexpr Type type = Type::I16;
};
template <>
struct Widths<int32_t> {
  static constexpr Type type = Type::I32;
};
template <>
struct Widths<int64_t> {
  static constexpr Type type = Type::I64;
};

template <class S>
class Integers : public testing::Test {};
using AllWidths = testing::Types<int8_t, int16_t, int32_t, int64_t>;
TYPED_TEST_SUITE(Integers, AllWidths);

template <class S>
std::vector<S> edgeValues() {
  constexpr S min = std::numeric_limits<S>::min(), max = std::numeric_limits<S>::max();
  constexpr S width = sizeof(S) * 8;
  return {min, S(min + 1), -9,           -2,    -1,           0,          1,
          2,   3,          S(width - 1), width, S(width + 1), S(max - 1), max};
}

TYPED_TEST(Integers, BinaryOperations) {
  using S = TypeParam;
  using U = std::make_unsigned_t<S>;
  constexpr Type type = Widths<S>::type;
  constexpr unsigned width = sizeof(S) * 8;
  for (S a : edgeValues<S>())
    for (S b : edgeValues<S>()) {
      U ua = static_cast<U>(a), ub = static_cast<U>(b);
      auto check = [&](Op op, auto expected) {
        checkBinary(type, op, a, b, static_cast<S>(expected));
      };
      check(Op::Add, static_cast<uint64_t>(ua) + ub);
      check(Op::Sub, static_cast<uint64_t>(ua) - ub);
      check(Op::Mul, static_cast<uint64_t>(ua) * ub);
      check(Op::And, a & b);
      check(Op::Or, a | b);
      check(Op::Xor, a ^ b);
      check(Op::MinS, std::min(a, b));
      check(Op::MaxS, std::max(a, b));
      check(Op::MinU, std::min(ua, ub));
      check(Op::MaxU, std::max(ua, ub));
      check(Op::DivU, ub == 0 ? 0 : ua / ub);
      check(Op::RemU, ub == 0 ? 0 : ua % ub);
      bool wraps = a == std::numeric_limits<S>::min() && b == -1;
      check(Op::DivS, b == 0 ? 0 : wraps ? a : a / b);
      check(Op::RemS, b == 0 || wraps ? 0 : a % b);
      long double quotient = b == 0 ? 0 : static_cast<long double>(a) / b;
      check(Op::FloorDivS, wraps ? a : static_cast<S>(std::floor(quotient)));
      check(Op::CeilDivS, wraps ? a : static_cast<S>(std::ceil(quotient)));
      check(Op::Shl, ub >= width ? 0 : static_cast<uint64_t>(ua) << ub);
      check(Op::ShrU, ub >= width ? 0 : ua >> ub);
      check(Op::ShrS, ub >= width ? (a < 0 ? -1 : 0) : a >> ub);
      checkCompare(type, Op::CmpEq, a, b, a == b);
      checkCompare(type, Op::CmpNe, a, b, a != b);
      checkCompare(type, Op::CmpSlt, a, b, a < b);
      checkCompare(type, Op::CmpSle, a, b, a <= b);
      checkCompare(type, Op::CmpSgt, a, b, a > b);
      checkCompare(type, Op::CmpSge, a, b, a >= b);
      checkCompare(type, Op::CmpUlt, a, b, ua < ub);
      checkCompare(type, Op::CmpUle, a, b, ua <= ub);
      checkCompare(type, Op::CmpUgt, a, b, ua > ub);
      checkCompare(type, Op::CmpUge, a, b, ua >= ub);
    }
}

TYPED_TEST(Integers, UnaryOperationsAndCasts) {
  using S = TypeParam;
  using U = std::make_unsigned_t<S>;
  constexpr Type type = Widths<S>::type;
  for (S a : edgeValues<S>()) {
    auto constant = [&](ProgramBuilder &b) { return b.program.constant(type, a); };
    auto check = [&](Op op, Type to, int64_t expected) {
      tested.insert(op);
      EXPECT_TRUE(
          equals(to, expected, [&](ProgramBuilder &b) { return b.node(op, to, {constant(b)}); }))
          << toString(op) << " " << toString(type) << " to " << toString(to) << " " << int64_t(a);
    };
    check(Op::Not, type, static_cast<S>(~a));
    check(Op::Trunc, Type::Bool, a & 1);
    if (sizeof(S) > 1)
      check(Op::Trunc, Type::I8, static_cast<int8_t>(a));
    if (sizeof(S) > 4)
      check(Op::Trunc, Type::I32, static_cast<int32_t>(a));
    if (sizeof(S) < 8) {
      check(Op::SExt, Type::I64, a);
      check(Op::ZExt, Type::I64, static_cast<int64_t>(static_cast<U>(a)));
    }
    if (sizeof(S) < 4) {
      check(Op::ZExt, Type::I32, static_cast<int64_t>(static_cast<U>(a)));
    }
    auto converted = [&](Op op) {
      tested.insert(op);
      return valueOf([&](ProgramBuilder &b) { return b.node(op, Type::F32, {constant(b)}); });
    };
    EXPECT_EQ(converted(Op::SIToFP), static_cast<double>(a));
    EXPECT_EQ(converted(Op::UIToFP), static_cast<double>(static_cast<U>(a)));
    for (bool condition : {false, true}) {
      tested.insert(Op::Select);
      EXPECT_TRUE(equals(type, condition ? a : 1, [&](ProgramBuilder &b) {
        return b.node(Op::Select, type,
                      {b.boolean(condition), constant(b), b.program.constant(type, 1)});
      }));
    }
  }
}

TYPED_TEST(Integers, FromFloat) {
  using S = TypeParam;
  constexpr Type type = Widths<S>::type;
  constexpr S min = std::numeric_limits<S>::min(), max = std::numeric_limits<S>::max();
  auto check = [&](double from, S expected) {
    tested.insert(Op::FPToSI);
    EXPECT_TRUE(equals(type, expected, [&](ProgramBuilder &b) {
      return b.node(Op::FPToSI, type, {b.f32(from)});
    })) << from;
  };
  check(2.9, 2);
  check(-2.9, -2);
  check(-0.0, 0);
  check(NAN, 0);
  check(INFINITY, max);
  check(-INFINITY, min);
  check(1e30, max);
  check(-1e30, min);
  check(std::ldexp(1.0, sizeof(S) * 8 - 1), max);
  check(-std::ldexp(1.0, sizeof(S) * 8 - 1), min);
}

TEST(OpSemantics, BoolsAreTwosComplementOfWidthOne) {
  // A set i1 is 1 unsigned and -1 signed.
  for (int a : {0, 1})
    for (int b : {0, 1}) {
      auto check = [&](Op op, int expected) { checkBinary(Type::Bool, op, a, b, expected); };
      check(Op::And, a & b);
      check(Op::Or, a | b);
      check(Op::Xor, a ^ b);
      check(Op::Add, (a + b) & 1);
      check(Op::Sub, (a - b) & 1);
      check(Op::Mul, a & b);
      check(Op::MinU, std::min(a, b));
      check(Op::MaxU, std::max(a, b));
      check(Op::MinS, std::max(a, b));
      check(Op::MaxS, std::min(a, b));
      check(Op::DivU, b ? a : 0);
      checkCompare(Type::Bool, Op::CmpSlt, a, b, -a < -b);
      checkCompare(Type::Bool, Op::CmpSge, a, b, -a >= -b);
      checkCompare(Type::Bool, Op::CmpUlt, a, b, a < b);
      checkCompare(Type::Bool, Op::CmpUge, a, b, a >= b);
      checkCompare(Type::Bool, Op::CmpEq, a, b, a == b);
    }
  for (int a : {0, 1}) {
    auto cast = [&](Op op, int64_t expected) {
      EXPECT_TRUE(equals(Type::I32, expected,
                         [&](ProgramBuilder &b) { return b.node(op, Type::I32, {b.boolean(a)}); }));
    };
    cast(Op::SExt, -a);
    cast(Op::ZExt, a);
    EXPECT_TRUE(
        equals(Type::Bool, 1 - a, [&](ProgramBuilder &b) { return b.notOf(b.boolean(a)); }));
  }
}

const std::vector<double> kFloats = {-INFINITY, -3.5, -1,  -0.25, -0.0, 0.0,      0.25,
                                     0.5,       1,    2.5, 30,    1e30, INFINITY, NAN};

bool same(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

double minimum(double a, double b) {
  if (std::isnan(a) || std::isnan(b))
    return NAN;
  return a < b || (a == b && std::signbit(a)) ? a : b;
}

double maximum(double a, double b) { return -minimum(-a, -b); }

TEST(OpSemantics, FloatBinary) {
  const std::pair<Op, std::function<double(double, double)>> table[] = {
      {Op::FAdd, [](double a, double b) { return a + b; }},
      {Op::FSub, [](double a, double b) { return a - b; }},
      {Op::FMul, [](double a, double b) { return a * b; }},
      {Op::FDiv, [](double a, double b) { return a / b; }},
      {Op::Pow, [](double a, double b) { return std::pow(a, b); }},
      {Op::FMin, minimum},
      {Op::FMax, maximum},
      {Op::FMinNum,
       [](double a, double b) { return std::isnan(a)   ? b
                                       : std::isnan(b) ? a
                                                       : minimum(a, b); }},
      {Op::FMaxNum,
       [](double a, double b) { return std::isnan(a)   ? b
                                       : std::isnan(b) ? a
                                                       : maximum(a, b); }},
      {Op::SoftCap, [](double a, double b) { return b * std::tanh(a / b); }},
  };
  for (const auto &[op, expected] : table) {
    tested.insert(op);
    for (double a : kFloats)
      for (double b : kFloats) {
        double got = valueOf([&, op = op](ProgramBuilder &build) {
          return build.node(op, Type::F32, {build.f32(a), build.f32(b)});
        });
        EXPECT_TRUE(same(got, expected(a, b)))
            << toString(op) << " " << a << " " << b << ": " << got;
      }
  }
}

TEST(OpSemantics, FloatUnary) {
  using Function = double (*)(double);
  const std::pair<Op, Function> table[] = {
      {Op::FNeg, [](double a) { return -a; }},
      {Op::FAbs, [](double a) { return std::fabs(a); }},
      {Op::Exp, [](double a) { return std::exp(a); }},
      {Op::Exp2, [](double a) { return std::exp2(a); }},
      {Op::ExpM1, [](double a) { return std::expm1(a); }},
      {Op::Log, [](double a) { return std::log(a); }},
      {Op::Log2, [](double a) { return std::log2(a); }},
      {Op::Log1p, [](double a) { return std::log1p(a); }},
      {Op::Tanh, [](double a) { return std::tanh(a); }},
      {Op::Sqrt, [](double a) { return std::sqrt(a); }},
      {Op::Rsqrt, [](double a) { return 1 / std::sqrt(a); }},
      {Op::Sin, [](double a) { return std::sin(a); }},
      {Op::Cos, [](double a) { return std::cos(a); }},
      {Op::Erf, [](double a) { return std::erf(a); }},
      {Op::Floor, [](double a) { return std::floor(a); }},
      {Op::Ceil, [](double a) { return std::ceil(a); }},
  };
  for (const auto &[op, expected] : table) {
    tested.insert(op);
    for (double a : kFloats) {
      double got = valueOf([&, op = op](ProgramBuilder &build) {
        return build.node(op, Type::F32, {build.f32(a)});
      });
      EXPECT_TRUE(same(got, expected(a))) << toString(op) << " " << a << ": " << got;
    }
  }
  tested.insert(Op::Fma);
  double fused = valueOf([&](ProgramBuilder &b) {
    return b.node(Op::Fma, Type::F32, {b.f32(1 + 0x1p-30), b.f32(1 - 0x1p-30), b.f32(-1)});
  });
  EXPECT_EQ(fused, -0x1p-60);
}

TEST(OpSemantics, FloatCompare) {
  const std::pair<Op, std::function<bool(double, double, bool)>> table[] = {
      {Op::FCmpOeq, [](double a, double b, bool nan) { return !nan && a == b; }},
      {Op::FCmpOne, [](double a, double b, bool nan) { return !nan && a != b; }},
      {Op::FCmpOlt, [](double a, double b, bool nan) { return !nan && a < b; }},
      {Op::FCmpOle, [](double a, double b, bool nan) { return !nan && a <= b; }},
      {Op::FCmpOgt, [](double a, double b, bool nan) { return !nan && a > b; }},
      {Op::FCmpOge, [](double a, double b, bool nan) { return !nan && a >= b; }},
      {Op::FCmpOrd, [](double, double, bool nan) { return !nan; }},
      {Op::FCmpUeq, [](double a, double b, bool nan) { return nan || a == b; }},
      {Op::FCmpUne, [](double a, double b, bool nan) { return nan || a != b; }},
      {Op::FCmpUlt, [](double a, double b, bool nan) { return nan || a < b; }},
      {Op::FCmpUle, [](double a, double b, bool nan) { return nan || a <= b; }},
      {Op::FCmpUgt, [](double a, double b, bool nan) { return nan || a > b; }},
      {Op::FCmpUge, [](double a, double b, bool nan) { return nan || a >= b; }},
      {Op::FCmpUno, [](double, double, bool nan) { return nan; }},
  };
  for (const auto &[op, expected] : table) {
    tested.insert(op);
    for (double a : kFloats)
      for (double b : kFloats)
        EXPECT_TRUE(equals(Type::Bool, expected(a, b, std::isnan(a) || std::isnan(b)),
                           [&, op = op](ProgramBuilder &build) {
                             return build.mask(op, {build.f32(a), build.f32(b)});
                           }))
            << toString(op) << " " << a << " " << b;
  }
}

TEST(OpSemantics, EveryPureOperationWasChecked) {
  if (tested.empty())
    GTEST_SKIP() << "the other tests did not run";
  long count = 0;
  for (int i = static_cast<int>(Op::Add); i <= static_cast<int>(Op::Ceil); ++i) {
    EXPECT_TRUE(tested.count(static_cast<Op>(i))) << toString(static_cast<Op>(i));
    ++count;
  }
  std::printf("operations checked: %ld\n", count);
}

} // namespace
