// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Terms without a solver: the value of one, when each symbol stands for a number or a function.
#ifndef ATTN_TEST_UNIT_VERIFY_TERMVALUE_H
#define ATTN_TEST_UNIT_VERIFY_TERMVALUE_H

#include "Terms.h"

#include <functional>
#include <map>
#include <vector>

namespace attn::test {

class TermValue {
public:
  using Wide = proofs::Wide;
  using Function = std::function<Wide(const std::vector<Wide> &)>;

  /// Quantifiers try the numbers [low, high].
  TermValue(int64_t low, int64_t high) : low(low), high(high) {}

  /// What a symbol stands for; one of no arguments for a number. Forgets values.
  void set(proofs::Term symbol, Function function) {
    functions[symbol.getAsOpaquePointer()] = std::move(function);
    known.clear();
  }
  void set(proofs::Term symbol, Wide value) {
    set(symbol, [value](const std::vector<Wide> &) { return value; });
  }

  /// Booleans are 0 and 1.
  Wide of(proofs::Term term);

private:
  Wide compute(mlir::Operation *op);
  Wide quantify(mlir::Operation *op, bool exists);

  int64_t low, high;
  std::map<const void *, Function> functions;
  std::map<const void *, Wide> known;
};

/// The symbols of a query whose name begins with `prefix` and '_', in the order of declaration.
std::vector<proofs::Term> symbolsOf(proofs::Term any, llvm::StringRef prefix);
/// What a query asserts.
std::vector<proofs::Term> assertionsOf(proofs::Term any);

} // namespace attn::test

#endif // ATTN_TEST_UNIT_VERIFY_TERMVALUE_H
