// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Umbrella file: kernel structure and table accesses; includes mask and score operations.
#ifndef ATTN_OPS_TD
#define ATTN_OPS_TD

include "AttnMaskOps.td"
include "AttnScoreOps.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"

//===----------------------------------------------------------------------===//
// Structure
//===----------------------------------------------------------------------===//

def Attn_StructureDocGroup : OpDocGroup {
  let summary = "Kernel structure";
  let description = "The kernel and its regions.";
}

let opDocGroup = Attn_StructureDocGroup in {

def Attn_KernelOp : Op<Attn_Dialect, "kernel", [
    IsolatedFromAbove, SingleBlock, NoTerminator, Symbol,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "One attention forward kernel.";
  let description = [{
    Clauses in order: `heads(N)`, `kv_heads(N)` (default heads), `dim(N)`, `dim_v(N)` (default dim),
    `q(T)`, `kv(T)` with T one of f32, f16, bf16, `scale(F)` or `scale(%param)` (default
    1/sqrt(dim)), `params(...)` with types i32, i64, f32, `tables(...)`. The SSA name of a parameter
    or table is its name in batches and manifests. Results of a kernel are O and the natural-log LSE.

    Preconditions: heads, kv_heads, dim, dim_v > 0 and heads divisible by kv_heads (attn-C10,
    attn-C11); at most one mask, score and bounds region (attn-C12); the scale is finite, or an f32
    parameter (attn-C13); a `!attn.query_ranges` names a ranges or documents table (attn-C14); names
    unique (attn-C15); only pure operations stand in the body (attn-C16).

    Example:
    ```mlir
    attn.kernel @causal heads(8) kv_heads(4) dim(128) q(bf16) kv(bf16) {
      attn.mask (%b, %h, %q, %k) {
        %m = attn.causal %q, %k
        attn.yield %m : i1
      }
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, I64Attr:$heads, I64Attr:$kv_heads, I64Attr:$dim,
                       I64Attr:$dim_v, TypeAttr:$q_type, TypeAttr:$kv_type,
                       OptionalAttr<F64Attr>:$scale, OptionalAttr<I64Attr>:$scale_param,
                       StrArrayAttr:$arg_names, I64Attr:$num_params,
                       DenseI64ArrayAttr:$table_sources);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// Number of tables; they follow the parameters among the body's arguments.
    unsigned getNumTables() {
      return getBody().getNumArguments() - static_cast<unsigned>(getNumParams());
    }
    ::mlir::BlockArgument getTable(unsigned i) {
      return getBody().getArgument(static_cast<unsigned>(getNumParams()) + i);
    }
    /// Declared name of a parameter or table.
    ::llvm::StringRef getArgName(unsigned i) {
      return ::llvm::cast<::mlir::StringAttr>(getArgNames()[i]).getValue();
    }
    /// The scale where it is no parameter: as written, else 1/sqrt(dim).
    double getLiteralScale();
    /// The region ops, or null.
    ::attn::MaskOp getMask();
    ::attn::ScoreOp getScore();
    ::attn::BoundsOp getBounds();
    /// Appends a `!attn.query_ranges` table built from table number `source`; its name is derived
    /// from the source's and unique.
    ::mlir::BlockArgument addQueryRanges(unsigned source);
    /// The `!attn.query_ranges` table built from table number `source`, or null.
    ::mlir::BlockArgument findQueryRanges(unsigned source);
  }];
}

class Attn_RegionOp<string mnemonic> : Op<Attn_Dialect, mnemonic, [
    HasParent<"KernelOp">, SingleBlock,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasRegionVerifier = 1;
}

def Attn_MaskOp : Attn_RegionOp<"mask"> {
  let summary = "The mask: yields keep(b, h, q, k).";
  let description = [{
    Holds mask operations, table accesses, `arith`, `math` and `scf.for`; all pure. Yields one i1
    (attn-C20).

    Example:
    ```mlir
    attn.mask (%b, %h, %q, %k) {
      %m = attn.causal %q, %k
      attn.yield %m : i1
    }
    ```
  }];
}

def Attn_ScoreOp : Attn_RegionOp<"score"> {
  let summary = "The score modification: from the scaled score to the logit.";
  let description = [{
    Yields one f32 (attn-C21). `-inf` masks the key, NaN propagates.

    Example:
    ```mlir
    attn.score (%s, %b, %h, %q, %k) {
      %t = attn.soft_cap %s, 50.0
      attn.yield %t : f32
    }
    ```
  }];
}

def Attn_PerOp : Op<Attn_Dialect, "per", [HasParent<"KernelOp">, SingleBlock, Pure,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "Values computed once per request, head, row or column.";
  let description = [{
    Arguments are those of the level: `request (%b)`, `head (%b, %h)`, `row (%b, %h, %q)`,
    `column (%b, %h, %k)`. Inside mask, score, bounds and later `attn.per` regions a result stands
    for its value at the current indices. A region may use a result only if it has all indices of
    the result's level (attn-C23).

    Example:
    ```mlir
    %lo, %hi = attn.per row (%b, %h, %q) -> (index, index) {
      %l, %u = attn.row_range %rows, %q
      attn.yield %l, %u : index, index
    }
    ```
  }];
  let arguments = (ins Attn_Level:$level);
  let regions = (region SizedRegion<1>:$body);
  let results = (outs Variadic<AnyType>:$results);
  let hasCustomAssemblyFormat = 1;
  let hasRegionVerifier = 1;
}

def Attn_BoundsOp : Attn_RegionOp<"bounds"> {
  let summary = "The keys to visit of a row: half-open [lo, hi).";
  let description = [{
    No key outside is kept. With `exact` every key inside is kept, so the mask needs no test.
    Yields two index values (attn-C22).

    Example:
    ```mlir
    attn.bounds exact (%b, %h, %q) {
      attn.yield %lo, %hi : index, index
    }
    ```
  }];
  let arguments = (ins UnitAttr:$exact);
}

def Attn_YieldOp : Op<Attn_Dialect, "yield", [Pure, Terminator,
    ParentOneOf<["MaskOp", "ScoreOp", "PerOp", "BoundsOp"]>]> {
  let summary = "Ends a region of a kernel with its values.";
  let description = [{
    Example: `attn.yield %m : i1`
  }];
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

} // let opDocGroup

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

def Attn_TableDocGroup : OpDocGroup {
  let summary = "Table accesses";
  let description = "Reads of the kernel's tables. Tables are constant during a launch.";
}

class Attn_TableOp<string mnemonic, list<Trait> traits = []>
    : Op<Attn_Dialect, mnemonic,
         !listconcat([Pure, DeclareOpInterfaceMethods<ElementOpInterface>], traits)> {
  let opDocGroup = Attn_TableDocGroup;
}

def Attn_LoadOp : Attn_TableOp<"load"> {
  let summary = "One element of a plain table.";
  let description = [{
    One index per dimension. For `b`, `h` and `h_kv` dims it is the region's `%b`, `%h`, `%h`, for
    `token` dims the region's `%q` (the row's token and kv head are derived); for `k`, `slot` and
    `bucket` any index value. An index outside the table's extent loads 0.

    Preconditions: one index per dim (attn-C30); `b`, `h`, `h_kv`, `token` dims take the region's
    arguments (attn-C31).

    Example: `%n = attn.load %len[%b] : !attn.table<[b], i32>`
  }];
  let arguments = (ins Attn_TableType:$table, Variadic<Index>:$indices);
  let results = (outs AnyType:$result);
  let assemblyFormat = [{
    $table `[` $indices `]` attr-dict `:` custom<TableAndElement>(type($table), type($result))
  }];
  let hasVerifier = 1;
}

def Attn_NumRangesOp : Attn_TableOp<"num_ranges"> {
  let summary = "Number of live ranges of a request.";
  let description = [{
    Precondition: `b` is the region's argument (attn-C1).

    Example: `%n = attn.num_ranges %mm[%b]`
  }];
  let arguments = (ins Attn_Ranges:$ranges, Index:$b);
  let results = (outs Index:$result);
  let assemblyFormat = "$ranges `[` $b `]` attr-dict";
  let hasVerifier = 1;
}

def Attn_RangeOp : Attn_TableOp<"range"> {
  let summary = "Inclusive bounds of one live range of a request.";
  let description = [{
    `(0, -1)` for an index outside the list.

    Precondition: `b` is the region's argument (attn-C1).

    Example: `%s, %e = attn.range %mm[%b, %r]`
  }];
  let arguments = (ins Attn_Ranges:$ranges, Index:$b, Index:$index);
  let results = (outs Index:$start, Index:$end);
  let assemblyFormat = "$ranges `[` $b `,` $index `]` attr-dict";
  let hasVerifier = 1;
}

def Attn_RowRangeOp : Attn_TableOp<"row_range"> {
  let summary = "The row of a query range table as a half-open interval.";
  let description = [{
    The converter from inclusive rows: `(start, end)` gives `[start, end + 1)`, `(-1, -1)` the
    canonical empty interval `(2^30, -2^30)`, which is the identity of (min lo, max hi).

    Precondition: `q` is the region's argument (attn-C1).

    Example: `%lo, %hi = attn.row_range %rows, %q`
  }];
  let arguments = (ins Attn_QueryRanges:$rows, Index:$q);
  let results = (outs Index:$lo, Index:$hi);
  let assemblyFormat = "$rows `,` $q attr-dict";
  let hasVerifier = 1;
}

#endif // ATTN_OPS_TD
