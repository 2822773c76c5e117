// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Builds one SMT query in MLIR's smt dialect: equal terms once, and folded where a constant
// decides.
//
// Integers are unbounded. The exporter prints a negative constant as no SMT-LIB reader but one
// takes it, so those are written 0 - n.
#ifndef ATTN_LIB_VERIFY_TERMS_H
#define ATTN_LIB_VERIFY_TERMS_H

#include "mlir/Dialect/SMT/IR/SMTOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace attn::proofs {

/// Holds sums, differences and products of 64-bit integers.
using Wide = __int128;
std::string toString(Wide value);

/// A boolean or integer term of one query.
using Term = mlir::Value;

/// A query for which more terms were asked takes no more large ones (Terms::isLarge).
inline constexpr size_t kMaxTerms = 100000;

class Terms {
public:
  explicit Terms(mlir::MLIRContext *context);

  Term boolean(bool value);
  Term integer(Wide value);
  /// The value of a constant term.
  std::optional<bool> asBoolean(Term term) const;
  std::optional<Wide> asInteger(Term term) const;

  Term land(Term a, Term b);
  Term lor(Term a, Term b);
  Term lnot(Term a);
  Term implies(Term a, Term b) { return lor(lnot(a), b); }
  Term ite(Term condition, Term a, Term b);
  /// Of two booleans or two integers.
  Term equal(Term a, Term b);

  Term add(Term a, Term b);
  Term sub(Term a, Term b);
  Term mul(Term a, Term b);
  /// SMT-LIB's division: the remainder is never negative. Nothing is known of a divisor 0.
  Term div(Term a, Term b);
  Term mod(Term a, Term b);
  Term le(Term a, Term b);
  Term lt(Term a, Term b);
  Term between(Term low, Term x, Term high) { return land(le(low, x), le(x, high)); }

  /// New symbols. `name` is letters, digits and '_'; it is made unique.
  Term integerSymbol(llvm::StringRef name);
  Term booleanSymbol(llvm::StringRef name);
  /// A symbol for a function of `arity` integers, or if that is 0 a symbol, with that name.
  Term function(llvm::StringRef name, unsigned arity);
  Term apply(Term function, llvm::ArrayRef<Term> arguments);

  /// exists x. body(x), or forall.
  Term exists(llvm::function_ref<Term(Term)> body) { return quantify(true, body); }
  Term forall(llvm::function_ref<Term(Term)> body) { return quantify(false, body); }

  void require(Term condition);

  /// Whether more than kMaxTerms were asked for, shared ones each time. To be looked at before
  /// many more are made: nothing else stops them.
  bool isLarge() const { return asked > kMaxTerms; }

  /// Gives `term` a name that a model can be asked for.
  std::string nameIt(Term term);

  /// The declarations and assertions as SMT-LIB, without check-sat. Empty where MLIR cannot export
  /// the query. Nothing may be added afterwards.
  std::string exportText();

private:
  using Key = std::vector<const void *>;
  Term shared(mlir::StringRef tag, llvm::ArrayRef<Term> operands, llvm::function_ref<Term()> make);
  Term quantify(bool exists, llvm::function_ref<Term(Term)> body);
  Term declare(llvm::StringRef name, mlir::Type type);

  mlir::MLIRContext *context;
  mlir::Location loc;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::OpBuilder builder;
  mlir::Block *top = nullptr;
  mlir::Operation *lastDeclaration = nullptr;
  mlir::Type intType, boolType;
  std::map<Key, Term> known;
  std::vector<std::vector<Key>> scopes; ///< what each open quantifier added to `known`
  std::map<std::string, const void *> tags;
  llvm::DenseMap<Term, bool> booleans;
  std::map<const void *, Wide> integers;
  unsigned names = 0;
  size_t asked = 0;
};

} // namespace attn::proofs

#endif // ATTN_LIB_VERIFY_TERMS_H
