// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Are two masks the same for every batch? Asked of an SMT solver; what it finds is replayed by
// Core's evaluator. What is proved, and what is trusted, is in docs/proofs.md.
#ifndef ATTN_VERIFY_PROVE_H
#define ATTN_VERIFY_PROVE_H

#include "attn/Core/MaskProgram.h"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mlir {
class MLIRContext;
} // namespace mlir

namespace attn::proofs {

enum class Outcome {
  Proved,     ///< holds for every batch
  Refuted,    ///< does not, and the evaluator agrees at the counterexample
  Unknown,    ///< the solver does not know, or says what the evaluator does not confirm
  NotChecked, ///< there is no solver, it does not answer sense, or there is nothing to ask
};
/// "proved", "refuted", "unknown", "not checked".
const char *toString(Outcome outcome);

/// An element on which two masks differ.
struct Counterexample {
  int64_t b = 0, h = 0, q = 0, k = 0;
  bool before = false, after = false; ///< keep, or for scores: equal ones are not told apart
  /// A batch file with one query, for the first mask's kernel; empty if its tables hold more than
  /// kMaxPrinted numbers.
  std::string batch;
  std::string secondBatch; ///< the same for the second's, which may declare other names
};
/// Numbers in the tables of a batch file that is shown.
inline constexpr int64_t kMaxPrinted = 4096;
/// "at b = 0, h = 0, q = 3, k = 1 the first keeps and the second drops the element".
std::string toString(const Counterexample &counterexample);
/// What to say of the batches: "batch file: {...}", or that it is too large; and the same for the
/// second if that is another. Each with whether it is the second's.
std::vector<std::pair<std::string, bool>> batchNotes(const Counterexample &counterexample);

struct Verdict {
  Outcome outcome = Outcome::NotChecked;
  std::string reason; ///< unless proved or refuted
  std::optional<Counterexample> counterexample;
};

enum class Relation {
  Equal,   ///< before keeps exactly what after keeps
  Implies, ///< what before keeps, after keeps
};

struct ProveOptions {
  std::string solver;           ///< path or name; empty: z3 of PATH, else attn-smt beside it
  unsigned timeoutSeconds = 10; ///< of each process, which answers one or two questions
  std::string dumpDir;          ///< folder for the questions as files; empty: none are kept
  int64_t heads = 1, kvHeads = 1;
  /// Plain tables of dims [b, k] that are another view of a documents table, by name: of i32, the
  /// ids; of i8, 1 where there is one.
  std::map<std::string, std::string> documentViews;
};

/// Relates the masks of two programs. Parameters and tables are the same if their names are. The
/// smallest values of parameters are those of `before`.
Verdict proveMasks(mlir::MLIRContext *context, const core::MaskProgram &before,
                   const core::MaskProgram &after, Relation relation,
                   const ProveOptions &options = {});

/// A mask and what it is for.
struct KernelMask {
  const core::MaskProgram &program;
  int64_t heads = 1, kvHeads = 1;
};

/// Are the masks of two kernels equal for every batch that both take? Parameters and tables are the
/// same if their names are; of two smallest values of a parameter the larger holds. Not checked if
/// one batch cannot be for both: other heads, or a name with two meanings. Nothing but masks is
/// compared. Of `options`, `heads` and `kvHeads` are not read.
Verdict proveKernels(mlir::MLIRContext *context, const KernelMask &before, const KernelMask &after,
                     ProveOptions options = {});

/// Are the score regions equal, operation by operation? Floats are not interpreted, so this never
/// refutes.
Verdict proveScores(mlir::MLIRContext *context, const core::MaskProgram &before,
                    const core::MaskProgram &after, const ProveOptions &options = {});

} // namespace attn::proofs

#endif // ATTN_VERIFY_PROVE_H
