// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_BASE_TD
#define ATTN_BASE_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/EnumAttr.td"

def Attn_Dialect : Dialect {
  let name = "attn";
  let summary = "Declarative attention kernels: masks, score modifications, tables.";
  let description = [{
    One `attn.kernel` describes one attention forward kernel. Its mask and score regions mix named
    operations with `arith`, `math` and `scf`; parameters and tables are data of a launch. The
    meaning of every operation and the numbered constraints stand in dialect/attn/SPEC.md.
  }];
  let cppNamespace = "::attn";
  let useDefaultTypePrinterParser = 1;
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let hasConstantMaterializer = 1;
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

class Attn_Type<string name, string typeMnemonic> : TypeDef<Attn_Dialect, name> {
  let mnemonic = typeMnemonic;
}

def Attn_RangesType : Attn_Type<"Ranges", "ranges"> {
  let summary = "per request a list of inclusive position ranges";
  let description = [{
    The user's list of `[start, end]` ranges of each request, absolute positions, both ends included.
    Only live ranges (`start < end`, `start < seq_len`) are seen by operations.

    Example: `%mm: !attn.ranges`
  }];
}

def Attn_DocumentsType : Attn_Type<"Documents", "documents"> {
  let summary = "per request a document id for each key position";
  let description = [{
    Ids are arbitrary i32; the positions of one id are contiguous (checked when a batch is bound).

    Example: `%doc: !attn.documents`
  }];
}

def Attn_QueryRangesType : Attn_Type<"QueryRanges", "query_ranges"> {
  let summary = "built table: one inclusive (start, end) row per token";
  let description = [{
    Built by the runtime from the table its declaration names: the hull of the live ranges that hold
    the token's q, or the extent of q's document; `(-1, -1)` where there is none.

    Example: `%rows: !attn.query_ranges from %mm`
  }];
}

def Attn_TableType : Attn_Type<"Table", "table"> {
  let summary = "dense table of the user's, indexed by index spaces";
  let description = [{
    Dims are names of index spaces: `b`, `token`, `k`, `slot`, `h`, `h_kv`, `bucket`; at most 4.
    Elements are `i8`, `i32`, `i64` or `f32`.

    Example: `!attn.table<[b, k], i32>`
  }];
  let parameters = (ins ArrayRefParameter<"::attn::core::TableDim">:$dims, "::mlir::Type":$element);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Attn_AnyTable : AnyTypeOf<[Attn_RangesType, Attn_DocumentsType, Attn_QueryRangesType,
                               Attn_TableType]>;

// Buildable forms, so that uses need no trailing type.
def Attn_Ranges : Type<CPred<"::llvm::isa<::attn::RangesType>($_self)">, "list of ranges">,
                  BuildableType<"::attn::RangesType::get($_builder.getContext())">;
def Attn_Documents : Type<CPred<"::llvm::isa<::attn::DocumentsType>($_self)">, "documents table">,
                     BuildableType<"::attn::DocumentsType::get($_builder.getContext())">;
def Attn_QueryRanges : Type<CPred<"::llvm::isa<::attn::QueryRangesType>($_self)">,
                            "query range table">,
                       BuildableType<"::attn::QueryRangesType::get($_builder.getContext())">;

//===----------------------------------------------------------------------===//
// Enums
//===----------------------------------------------------------------------===//

def Attn_Level : I32EnumAttr<"Level", "how often a value is computed", [
  I32EnumAttrCase<"Request", 0, "request">,
  I32EnumAttrCase<"Head", 1, "head">,
  I32EnumAttrCase<"Row", 2, "row">,
  I32EnumAttrCase<"Column", 3, "column">
]> {
  let cppNamespace = "::attn";
}

#endif // ATTN_BASE_TD
