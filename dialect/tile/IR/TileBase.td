// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef TILE_BASE_TD
#define TILE_BASE_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"

def Tile_Dialect : Dialect {
  let name = "tile";
  let summary = "What a GPU kernel is made of: roles, rings, tile copies, products, fragments.";
  let description = [{
    One `tile.kernel` is one GPU kernel of warpgroups in roles. Tiles live in rings of shared memory
    or in fragments, which are spread over the registers of a warpgroup. Nothing synchronises
    unless an operation says so: products give `!tile.pending` values that only `tile.wait_mma`
    turns into fragments, ring slots are acquired, waited for and released. Scalar code and control
    flow are `arith`, `math`, `scf` and `llvm`. The meaning of every operation and the numbered
    constraints stand in dialect/tile/SPEC.md.
  }];
  let cppNamespace = "::attn::tile";
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
  let useDefaultTypePrinterParser = 1;
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

def Tile_FragmentLayout : I32EnumAttr<"FragmentLayout", "how a fragment lies in registers", [
  I32EnumAttrCase<"Acc", 0, "acc">,
  I32EnumAttrCase<"Operand", 1, "operand">
]> {
  let cppNamespace = "::attn::tile";
}

class Tile_Type<string name, string typeMnemonic> : TypeDef<Tile_Dialect, name> {
  let mnemonic = typeMnemonic;
}

def Tile_FragmentType : Tile_Type<"Fragment", "fragment"> {
  let summary = "64 x N elements in the registers of a warpgroup";
  let description = [{
    `acc`: f32, the accumulator layout of wgmma (PTX ISA, "Matrix fragments for
    wgmma.mma_async.m64nNk16", D): warp w holds rows 16w to 16w + 15, lane l of it rows l / 4 and
    l / 4 + 8, of each the columns 8j + 2 (l mod 4) and the next, for j = 0 ... N / 8 - 1. A thread holds
    N / 2 registers, for each j: (first row, both columns), (second row, both columns).
    `operand`: 16-bit, the register A operand of wgmma; the same elements in the same threads, packed
    in pairs.

    Example: `!tile.fragment<64x128xf32, acc>`
  }];
  let parameters = (ins "int64_t":$rows, "int64_t":$cols, "::mlir::Type":$element,
                        EnumParameter<Tile_FragmentLayout>:$layout);
  let assemblyFormat = "`<` custom<Shape>($rows, $cols, $element) `,` $layout `>`";
  let genVerifyDecl = 1;
}

def Tile_RowsType : Tile_Type<"Rows", "rows"> {
  let summary = "one value for each of a warpgroup's 64 rows";
  let description = [{
    Lies as the rows of an `acc` fragment: two values a thread, the four lanes of a quad hold the same
    ones. `partial`: each lane holds its own part of a sum; `tile.row_finish` adds them.

    Example: `!tile.rows<f32>`, `!tile.rows<f32, partial>`
  }];
  let parameters = (ins "::mlir::Type":$element, DefaultValuedParameter<"bool", "false">:$partial);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Tile_BitsType : Tile_Type<"Bits", "bits"> {
  let summary = "one bit for each element of an acc fragment";
  let description = [{
    Two masks a thread, one a row; bit e of a row is its e-th element in register order: column
    8 (e / 2) + 2 (l mod 4) + e mod 2.

    Example: `!tile.bits<64x128>`
  }];
  let parameters = (ins "int64_t":$rows, "int64_t":$cols);
  let assemblyFormat = "`<` custom<BitsShape>($rows, $cols) `>`";
  let genVerifyDecl = 1;
}

def Tile_PendingType : Tile_Type<"Pending", "pending"> {
  let summary = "a fragment that a product under way writes";
  let description = [{
    Its registers must not be touched until `tile.wait_mma` gives the fragment.

    Example: `!tile.pending<!tile.fragment<64x128xf32, acc>>`
  }];
  let parameters = (ins "::attn::tile::FragmentType":$fragment);
  let assemblyFormat = "`<` custom<WholeFragment>($fragment) `>`";
}

def Tile_RingType : Tile_Type<"Ring", "ring"> {
  let summary = "stages of one tile each in shared memory, with a full and an empty barrier a stage";
  let description = [{
    `stages x rows x cols`; a stage lies as cols / 64 column groups of [rows][64] elements, each with
    the 128-byte swizzle, one after the other: what TMA boxes of 64 columns write and wgmma
    descriptors read. Use number `it` of a ring is stage `it mod stages`, in barrier phase `it / stages
    mod 2`.

    Example: `!tile.ring<2 x 128x64xbf16>`
  }];
  let parameters = (ins "int64_t":$stages, "int64_t":$rows, "int64_t":$cols,
                        "::mlir::Type":$element);
  let assemblyFormat = "`<` $stages `x` custom<Shape>($rows, $cols, $element) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t getStageBytes() const { return getRows() * getCols() * 2; }
    int64_t getColumnGroups() const { return getCols() / 64; }
  }];
}

def Tile_QueueType : Tile_Type<"Queue", "queue"> {
  let summary = "records that the producer hands to the row groups, in shared memory";
  let description = [{
    `stages x rows`; a row is four i32. A stage has a full and an empty barrier; use number `it` is
    stage `it mod stages`, as in a ring.

    Example: `!tile.queue<2 x 19>`
  }];
  let parameters = (ins "int64_t":$stages, "int64_t":$rows);
  let assemblyFormat = "`<` $stages `x` $rows `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t getStageBytes() const { return getRows() * 16; }
  }];
}

def Tile_TensorMapType : Tile_Type<"TensorMap", "tensor_map"> {
  let summary = "a CUtensorMap, parameter of the kernel";
}

/// Any address space; what is addressed is global memory.
def Tile_Pointer : Type<CPred<"::llvm::isa<::mlir::LLVM::LLVMPointerType>($_self)">,
                        "pointer to global memory", "::mlir::LLVM::LLVMPointerType">;

def Tile_MapInput : AnyTypeOf<[Tile_FragmentType, Tile_RowsType, Tile_BitsType]>;
def Tile_MapOutput : AnyTypeOf<[Tile_FragmentType, Tile_BitsType]>;

#endif // TILE_BASE_TD
