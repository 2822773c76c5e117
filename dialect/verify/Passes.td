// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_VERIFY_PASSES_TD
#define ATTN_VERIFY_PASSES_TD

include "mlir/Pass/PassBase.td"

def SolverOptions {
  list<Option> options = [
    Option<"solver", "solver", "std::string", /*default=*/"",
           "Program that reads SMT-LIB on standard input (default: z3 of PATH, else attn-smt)">,
    Option<"timeout", "timeout", "unsigned", /*default=*/"10", "Seconds for each question">,
    Option<"strict", "strict", "bool", /*default=*/"false",
           "What is not proved is an error, for whatever reason">,
    Option<"report", "report", "bool", /*default=*/"false", "Say what is proved, as a remark">,
    Option<"dumpSmt", "dump-smt", "std::string", /*default=*/"",
           "Folder that receives each question as an SMT-LIB file">
  ];
}

def TvSnapshotPass : Pass<"attn-tv-snapshot", "::attn::KernelOp"> {
  let summary = "Remember a kernel for attn-tv-check";
  let description = [{
    Keeps the kernel's text in a discardable attribute, and, where none did before, the smallest
    values of its parameters: those are the ones that the runtime will check, whatever later passes
    use a parameter for.
  }];
}

def TvCheckPass : Pass<"attn-tv-check", "::attn::KernelOp"> {
  let summary = "Prove that a kernel is what it was at the last attn-tv-snapshot";
  let description = [{
    The kernel must have its heads, dims, types, scale and parameters still. Asks a solver whether some batch tells the masks apart, whether new `attn.bounds` leave out a kept
    key (or, if `exact`, hold one that is not), and whether the score regions are the same operations.

    Refuted: an error with (b, h, q, k), what the masks say there, and a batch file. Unknown: a
    warning. Not checked: a remark. Both are errors with `strict`. Nothing but an unsatisfiable
    question ends as proved.
  }];
  let options = SolverOptions.options;
  let dependentDialects = ["::mlir::smt::SMTDialect", "::mlir::arith::ArithDialect"];
}

def TvProveEqualPass : Pass<"attn-tv-prove-equal", "::mlir::ModuleOp"> {
  let summary = "Prove that kernels have the same mask for every batch";
  let description = [{
    Compares the masks of the kernels of a list with that of the first one. Parameters and tables are
    the same if their names are. A kernel that differs is an error with a counterexample; what is
    proved is said as a remark, what is not is an error.
  }];
  let options = SolverOptions.options # [
    ListOption<"kernels", "kernels", "std::string", "Symbols of two kernels or more">
  ];
  let dependentDialects = ["::mlir::smt::SMTDialect"];
}

def TvExpandElementsPass : Pass<"attn-tv-expand-elements", "::attn::KernelOp"> {
  let summary = "Replace the operations of a mask by what the CPU target emits for them";
  let description = [{
    Named operations become `arith` and `scf` through the interface that the CPU and GPU lowerings
    use; reads of tables stay. Between attn-tv-snapshot and attn-tv-check this proves that lowering.
    Ids of `!attn.documents`, for which regions have no read, are read from two plain tables that the
    pass adds; attn-tv-check knows what those hold.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

#endif // ATTN_VERIFY_PASSES_TD
