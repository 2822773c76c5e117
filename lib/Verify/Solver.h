// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A solver as a process that reads SMT-LIB on its standard input. It is not trusted to run, to end
// or to answer sense; what it says counts only if it also answers a few questions whose answers are
// known, before and after, in an order that depends on the questions. Several questions share a
// process, as its start costs as much as an answer.
#ifndef ATTN_LIB_VERIFY_SOLVER_H
#define ATTN_LIB_VERIFY_SOLVER_H

#include "Terms.h"

#include <map>
#include <string>
#include <vector>

namespace attn::proofs {

struct Answer {
  enum Kind {
    Sat,
    Unsat,
    Unknown,  ///< it says so
    TimeOut,  ///< it was ended at its limit
    Crashed,  ///< it ended with a signal or an exit status other than 0
    Nonsense, ///< it said something else, or failed a question whose answer is known
    NoSolver, ///< there is no such program, or it cannot be started
  } kind = Unknown;
  std::string detail;
  /// Of the terms that were asked for, if Sat. Booleans are 0 and 1.
  std::map<std::string, Wide> model;
};

class Solver {
public:
  /// `program`: path or name; empty: z3 of PATH, else attn-smt beside this program, where
  /// "attn-smt" is looked for too.
  Solver(const std::string &program, unsigned timeoutSeconds);

  /// Are the assertions of each text satisfiable? One answer for each.
  std::vector<Answer> ask(const std::vector<std::string> &texts) const;
  /// Are the assertions of `text` satisfiable, and with which values of `names`? For examples only:
  /// here Unsat may come with complaints about values that are not there.
  Answer askForModel(const std::string &text, const std::vector<std::string> &names) const;

private:
  std::vector<Answer> converse(const std::vector<std::string> &texts,
                               const std::vector<std::string> &names) const;

  std::string wanted, path;
  unsigned timeoutSeconds;
};

} // namespace attn::proofs

#endif // ATTN_LIB_VERIFY_SOLVER_H
