// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_INTERFACES_TD
#define ATTN_INTERFACES_TD

include "mlir/IR/OpBase.td"

def ElementOpInterface : OpInterface<"ElementOpInterface"> {
  let cppNamespace = "::attn";
  let description = [{
    An operation of a mask, score, per or bounds region with a meaning for one (b, h, q, k). Both
    routes to the truth go through it: the mask program and element-wise IR. Passes and conversions
    never ask which operation it is.
  }];
  let methods = [
    InterfaceMethod<[{
      Appends this operation to a mask program and records the node of each result. Fails, with a
      diagnostic at the operation, if it has no counterpart.
    }], "::llvm::LogicalResult", "toProgram", (ins "::attn::ProgramBuilder &":$builder)>,
    InterfaceMethod<[{
      Emits the values of the results with `arith`, `scf`, `math` and the context's table accesses,
      one for each result, in order. Operands come already lowered through the context.
    }], "::llvm::SmallVector<::mlir::Value>", "lowerElement",
      (ins "::mlir::OpBuilder &":$builder, "::attn::ElementContext &":$context)>
  ];
}

def MaskOpInterface : OpInterface<"MaskOpInterface"> {
  let cppNamespace = "::attn";
  let description = [{
    A mask operation whose kept keys of one row form a set of intervals. Read-only: the answer is
    symbolic and changes no IR.
  }];
  let methods = [
    InterfaceMethod<[{
      The kept keys of a row as symbolic runs, or `RowSet::unknown()`.
    }], "::attn::RowSet", "getRowSet", (ins "::attn::RowSetAnalysis &":$analysis)>
  ];
}

def RowLookupOpInterface : OpInterface<"RowLookupOpInterface"> {
  let cppNamespace = "::attn";
  let description = [{
    A mask operation that searches a table of the user's for each (q, k), and whose kept keys of one
    row are an interval that the runtime can build once per token.
  }];
  let methods = [
    InterfaceMethod<"The table argument that is searched.", "::mlir::BlockArgument",
      "getSourceTable", (ins)>,
    InterfaceMethod<[{
      Emits the same test over `rows`, the `!attn.query_ranges` table built from the source.
    }], "::mlir::Value", "emitRowLookup",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::Value":$rows)>
  ];
}

#endif // ATTN_INTERFACES_TD
