// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Terms.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Target/SMTLIB/ExportSMTLIB.h"

#include <algorithm>

using namespace mlir;
using namespace attn::proofs;

std::string attn::proofs::toString(Wide value) {
  if (value == 0)
    return "0";
  // The magnitude as unsigned, so that the smallest value has one.
  unsigned __int128 rest = value < 0 ? -static_cast<unsigned __int128>(value) : value;
  std::string digits;
  for (; rest; rest /= 10)
    digits += static_cast<char>('0' + static_cast<int>(rest % 10));
  if (value < 0)
    digits += '-';
  std::reverse(digits.begin(), digits.end());
  return digits;
}

Terms::Terms(MLIRContext *context)
    : context(context), loc(UnknownLoc::get(context)), builder(context) {
  context->getOrLoadDialect<smt::SMTDialect>();
  intType = smt::IntType::get(context);
  boolType = smt::BoolType::get(context);
  module = ModuleOp::create(loc);
  builder.setInsertionPointToStart(module->getBody());
  auto solver = smt::SolverOp::create(builder, loc, TypeRange{}, ValueRange{});
  top = &solver.getBodyRegion().emplaceBlock();
  builder.setInsertionPointToStart(top);
}

Term Terms::shared(StringRef tag, ArrayRef<Term> operands, llvm::function_ref<Term()> make) {
  ++asked;
  auto [entry, isNew] = tags.try_emplace(tag.str(), nullptr);
  if (isNew)
    entry->second = &entry->first;
  Key key = {entry->second};
  for (Term operand : operands)
    key.push_back(operand.getAsOpaquePointer());
  auto found = known.find(key);
  if (found != known.end())
    return found->second;
  Term term = make();
  known[key] = term;
  if (!scopes.empty())
    scopes.back().push_back(key);
  return term;
}

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

Term Terms::boolean(bool value) {
  return shared(value ? "true" : "false", {}, [&] {
    Term term = smt::BoolConstantOp::create(builder, loc, value);
    booleans[term] = value;
    return term;
  });
}

Term Terms::integer(Wide value) {
  return shared("int " + toString(value), {}, [&] {
    auto literal = [&](Wide magnitude) -> Term {
      uint64_t words[2] = {static_cast<uint64_t>(magnitude),
                           static_cast<uint64_t>(magnitude >> 64)};
      return smt::IntConstantOp::create(
          builder, loc, builder.getIntegerAttr(builder.getIntegerType(128), APInt(128, words)));
    };
    Term term = value >= 0 ? literal(value)
                           : smt::IntSubOp::create(builder, loc, literal(0), literal(-value));
    integers[term.getAsOpaquePointer()] = value;
    return term;
  });
}

std::optional<bool> Terms::asBoolean(Term term) const {
  auto found = booleans.find(term);
  if (found == booleans.end())
    return std::nullopt;
  return found->second;
}

std::optional<Wide> Terms::asInteger(Term term) const {
  auto found = integers.find(term.getAsOpaquePointer());
  if (found == integers.end())
    return std::nullopt;
  return found->second;
}

//===----------------------------------------------------------------------===//
// Booleans
//===----------------------------------------------------------------------===//

Term Terms::land(Term a, Term b) {
  if (a == b)
    return a;
  for (auto [x, y] : {std::pair(a, b), std::pair(b, a)})
    if (auto value = asBoolean(x))
      return *value ? y : x;
  return shared("and", {a, b}, [&] { return smt::AndOp::create(builder, loc, a, b); });
}

Term Terms::lor(Term a, Term b) {
  if (a == b)
    return a;
  for (auto [x, y] : {std::pair(a, b), std::pair(b, a)})
    if (auto value = asBoolean(x))
      return *value ? x : y;
  return shared("or", {a, b}, [&] { return smt::OrOp::create(builder, loc, a, b); });
}

Term Terms::lnot(Term a) {
  if (auto value = asBoolean(a))
    return boolean(!*value);
  if (auto inner = a.getDefiningOp<smt::NotOp>())
    return inner.getInput();
  return shared("not", {a}, [&] { return smt::NotOp::create(builder, loc, a); });
}

Term Terms::ite(Term condition, Term a, Term b) {
  if (auto value = asBoolean(condition))
    return *value ? a : b;
  if (a == b)
    return a;
  if (a.getType() == boolType) {
    if (auto value = asBoolean(a))
      return *value ? lor(condition, b) : land(lnot(condition), b);
    if (auto value = asBoolean(b))
      return *value ? lor(lnot(condition), a) : land(condition, a);
  }
  return shared("ite", {condition, a, b},
                [&] { return smt::IteOp::create(builder, loc, condition, a, b); });
}

Term Terms::equal(Term a, Term b) {
  if (a == b)
    return boolean(true);
  for (auto [x, y] : {std::pair(a, b), std::pair(b, a)})
    if (auto value = asBoolean(x))
      return *value ? y : lnot(y);
  auto x = asInteger(a), y = asInteger(b);
  if (x && y)
    return boolean(*x == *y);
  return shared("=", {a, b}, [&] { return smt::EqOp::create(builder, loc, a, b); });
}

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

Term Terms::add(Term a, Term b) {
  auto x = asInteger(a), y = asInteger(b);
  if (x && y)
    return integer(*x + *y);
  if (x && *x == 0)
    return b;
  if (y && *y == 0)
    return a;
  return shared("+", {a, b}, [&] { return smt::IntAddOp::create(builder, loc, ValueRange{a, b}); });
}

Term Terms::sub(Term a, Term b) {
  auto x = asInteger(a), y = asInteger(b);
  if (x && y)
    return integer(*x - *y);
  if (y && *y == 0)
    return a;
  return shared("-", {a, b}, [&] { return smt::IntSubOp::create(builder, loc, a, b); });
}

Term Terms::mul(Term a, Term b) {
  auto x = asInteger(a), y = asInteger(b);
  // Constants are of 64 bits at most, or a power of two below 2^65 times one.
  if (x && y && *x < (Wide(1) << 62) && *x > -(Wide(1) << 62) && *y < (Wide(1) << 62) &&
      *y > -(Wide(1) << 62))
    return integer(*x * *y);
  for (auto [value, other] : {std::pair(x, b), std::pair(y, a)}) {
    if (value && *value == 0)
      return integer(0);
    if (value && *value == 1)
      return other;
  }
  return shared("*", {a, b}, [&] { return smt::IntMulOp::create(builder, loc, ValueRange{a, b}); });
}

Term Terms::div(Term a, Term b) {
  return shared("div", {a, b}, [&] { return smt::IntDivOp::create(builder, loc, a, b); });
}

Term Terms::mod(Term a, Term b) {
  return shared("mod", {a, b}, [&] { return smt::IntModOp::create(builder, loc, a, b); });
}

Term Terms::le(Term a, Term b) {
  auto x = asInteger(a), y = asInteger(b);
  if (x && y)
    return boolean(*x <= *y);
  if (a == b)
    return boolean(true);
  return shared("<=", {a, b},
                [&] { return smt::IntCmpOp::create(builder, loc, smt::IntPredicate::le, a, b); });
}

Term Terms::lt(Term a, Term b) {
  auto x = asInteger(a), y = asInteger(b);
  if (x && y)
    return boolean(*x < *y);
  if (a == b)
    return boolean(false);
  return shared("<", {a, b},
                [&] { return smt::IntCmpOp::create(builder, loc, smt::IntPredicate::lt, a, b); });
}

//===----------------------------------------------------------------------===//
// Symbols and quantifiers
//===----------------------------------------------------------------------===//

Term Terms::declare(StringRef name, Type type) {
  OpBuilder::InsertionGuard guard(builder);
  if (lastDeclaration)
    builder.setInsertionPointAfter(lastDeclaration);
  else
    builder.setInsertionPointToStart(top);
  auto symbol = smt::DeclareFunOp::create(
      builder, loc, type, builder.getStringAttr(name.str() + "_" + std::to_string(names++)));
  lastDeclaration = symbol;
  return symbol;
}

Term Terms::integerSymbol(StringRef name) { return declare(name, intType); }
Term Terms::booleanSymbol(StringRef name) { return declare(name, boolType); }

Term Terms::function(StringRef name, unsigned arity) {
  if (arity == 0)
    return integerSymbol(name);
  return declare(name, smt::SMTFuncType::get(SmallVector<Type>(arity, intType), intType));
}

Term Terms::apply(Term function, ArrayRef<Term> arguments) {
  if (arguments.empty())
    return function;
  SmallVector<Term> key = {function};
  key.append(arguments.begin(), arguments.end());
  return shared("apply", key,
                [&] { return smt::ApplyFuncOp::create(builder, loc, function, arguments); });
}

Term Terms::quantify(bool exists, llvm::function_ref<Term(Term)> body) {
  auto build = [&](OpBuilder &, Location, ValueRange variables) -> Value {
    scopes.emplace_back();
    Term term = body(variables[0]);
    for (const Key &key : scopes.back())
      known.erase(key);
    scopes.pop_back();
    return term;
  };
  if (exists)
    return smt::ExistsOp::create(builder, loc, TypeRange{intType}, build);
  return smt::ForallOp::create(builder, loc, TypeRange{intType}, build);
}

void Terms::require(Term condition) {
  if (asBoolean(condition) == true)
    return;
  smt::AssertOp::create(builder, loc, condition);
}

std::string Terms::nameIt(Term term) {
  Term symbol = declare("value", term.getType());
  require(smt::EqOp::create(builder, loc, symbol, term));
  return cast<smt::DeclareFunOp>(symbol.getDefiningOp()).getNamePrefix()->str();
}

std::string Terms::exportText() {
  builder.setInsertionPointToEnd(top);
  smt::YieldOp::create(builder, loc);
  if (failed(mlir::verify(*module)))
    return "";
  std::string text;
  llvm::raw_string_ostream stream(text);
  smt::SMTEmissionOptions options;
  options.inlineSingleUseValues = true;
  if (failed(smt::exportSMTLIB(*module, stream, options)))
    return "";
  // The exporter ends every script so.
  size_t end = text.rfind("(reset)");
  if (end == std::string::npos)
    return "";
  text.resize(end);
  return text;
}
