// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef TILE_OPS_TD
#define TILE_OPS_TD

include "TileBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Tile_Op<string mnemonic, list<Trait> traits = []> : Op<Tile_Dialect, mnemonic, traits>;

// Where an operation may stand (tile-C7).
class Tile_RoleTrait<string name> : NativeOpTrait<name> {
  let cppNamespace = "::attn::tile";
}
def Tile_InRole : Tile_RoleTrait<"InRole">;
def Tile_InProducer : Tile_RoleTrait<"InProducer">;
def Tile_Loading : Tile_RoleTrait<"Loading">;
def Tile_Taking : Tile_RoleTrait<"Taking">;
def Tile_InConsumers : Tile_RoleTrait<"InConsumers">;

//===----------------------------------------------------------------------===//
// Structure
//===----------------------------------------------------------------------===//

def Tile_StructureDocGroup : OpDocGroup {
  let summary = "Kernel structure";
  let description = "The kernel, its rings and the roles of its warpgroups.";
}

let opDocGroup = Tile_StructureDocGroup in {

def Tile_KernelOp : Tile_Op<"kernel", [IsolatedFromAbove, SingleBlock, NoTerminator, Symbol]> {
  let summary = "One GPU kernel.";
  let description = [{
    Arguments: the tensor maps of Q, K, V and O and the argument block (attn/Core/CudaAbi.h) of `words`
    64-bit words. The body holds rings and queues, then one `tile.producer`, up to three
    `tile.loader` and one `tile.consumers` (tile-C6).
    Warpgroup 0 has the producer and the loaders; the barriers are initialised before any role starts.

    Example:
    ```mlir
    tile.kernel @f words(15) {
    ^bb0(%q: !tile.tensor_map, %k: !tile.tensor_map, %v: !tile.tensor_map, %o: !tile.tensor_map, %args: !llvm.ptr):
      %ring = tile.ring arrivals(8) : !tile.ring<2 x 128x64xbf16>
      tile.producer registers(24) {
      }
      tile.consumers groups(2) registers(240) {
      ^bb0(%group: i32):
      }
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, I64Attr:$words);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name `words` `(` $words `)` $body attr-dict";
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    ::attn::tile::ProducerOp getProducer();
    /// In the order of their warps.
    auto getLoaders() { return getBody().front().getOps<::attn::tile::LoaderOp>(); }
    ::attn::tile::ConsumersOp getConsumers();
    /// Threads of a CTA: one warpgroup more than there are row groups.
    int64_t getThreads();
  }];
}

def Tile_RingOp : Tile_Op<"ring", [HasParent<"KernelOp">]> {
  let summary = "A ring in shared memory.";
  let description = [{
    `arrivals`: how many `tile.release` make a stage empty; one is counted a warp.

    Example: `%k = tile.ring arrivals(8) : !tile.ring<2 x 128x64xbf16>`
  }];
  let arguments = (ins I64Attr:$arrivals);
  let results = (outs Tile_RingType:$result);
  let assemblyFormat = "`arrivals` `(` $arrivals `)` attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Tile_QueueOp : Tile_Op<"queue", [HasParent<"KernelOp">]> {
  let summary = "A queue in shared memory.";
  let description = [{
    `arrivals`: how many warps `tile.pop` a record.

    Example: `%n = tile.queue arrivals(8) : !tile.queue<2 x 19>`
  }];
  let arguments = (ins I64Attr:$arrivals);
  let results = (outs Tile_QueueType:$result);
  let assemblyFormat = "`arrivals` `(` $arrivals `)` attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Tile_ProducerOp : Tile_Op<"producer", [HasParent<"KernelOp">, SingleBlock, NoTerminator]> {
  let summary = "What the first warp of warpgroup 0 does.";
  let description = [{
    Runs in all 32 lanes. `registers`: what setmaxnreg lowers the warpgroup to.
  }];
  let arguments = (ins I64Attr:$registers);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "`registers` `(` $registers `)` $body attr-dict";
  let hasVerifier = 1;
}

def Tile_LoaderOp : Tile_Op<"loader", [HasParent<"KernelOp">, SingleBlock, NoTerminator]> {
  let summary = "What another warp of warpgroup 0 does: the first loader the second warp, and so on.";
  let description = [{
    Runs in all 32 lanes. It loads, as the producer does, and takes records from queues, as row
    groups do. Warps without a loader have nothing to do.
  }];
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$body attr-dict";
  let hasVerifier = 1;
}

def Tile_ConsumersOp : Tile_Op<"consumers", [HasParent<"KernelOp">, SingleBlock, NoTerminator]> {
  let summary = "What the other warpgroups do, one for each group of 64 rows.";
  let description = [{
    The argument is the number of the row group. `registers`: what setmaxnreg raises them to.
  }];
  let arguments = (ins I64Attr:$groups, I64Attr:$registers);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "`groups` `(` $groups `)` `registers` `(` $registers `)` $body attr-dict";
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def Tile_BlockIdOp : Tile_Op<"block_id", [Tile_InRole, Pure]> {
  let summary = "Number of this CTA in the grid.";
  let description = "Example: `%i = tile.block_id : i32`";
  let results = (outs I32:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

def Tile_GridSizeOp : Tile_Op<"grid_size", [Tile_InRole, Pure]> {
  let summary = "Number of CTAs in the grid.";
  let description = "Example: `%n = tile.grid_size : i32`";
  let results = (outs I32:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

def Tile_ThreadIdOp : Tile_Op<"thread_id", [Tile_InRole, Pure]> {
  let summary = "Number of this thread in its role: 0 to 31 in a warp, 0 to 127 in a row group.";
  let description = "Example: `%t = tile.thread_id : i32`";
  let results = (outs I32:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

def Tile_YieldOp : Tile_Op<"yield", [Pure, Terminator, ReturnLike,
                                     ParentOneOf<["MapOp", "MapRowsOp"]>]> {
  let summary = "Ends the region of a map.";
  let description = "Example: `tile.yield %x : f32`";
  let arguments = (ins Variadic<AnyType>:$values);
  let builders = [OpBuilder<(ins), [{ build($_builder, $_state, ::mlir::ValueRange()); }]>];
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

} // opDocGroup

//===----------------------------------------------------------------------===//
// Rings
//===----------------------------------------------------------------------===//

def Tile_RingDocGroup : OpDocGroup {
  let summary = "Rings";
  let description = "Hand-over of shared memory between producer and consumers.";
}

let opDocGroup = Tile_RingDocGroup in {

class Tile_SlotOp<string mnemonic, Trait role> : Tile_Op<mnemonic, [role]> {
  let hasVerifier = 1;
  let arguments = (ins Tile_RingType:$ring, I32:$use);
  let assemblyFormat = "$ring `[` $use `]` attr-dict `:` type($ring)";
}

def Tile_AcquireOp : Tile_SlotOp<"acquire", Tile_Loading> {
  let summary = "Producer, loader: waits until the slot of this use is empty.";
  let description = "Example: `tile.acquire %ring[%it] : !tile.ring<2 x 128x64xbf16>`";
}

def Tile_ExpectOp : Tile_SlotOp<"expect", Tile_Loading> {
  let summary = "Producer, loader: lane 0 arrives on the full barrier and announces one stage of bytes.";
  let description = [{
    Every byte of the stage must then be written by `tile.copy`; what lies outside the tensor counts
    too.

    Example: `tile.expect %ring[%it] : !tile.ring<2 x 128x64xbf16>`
  }];
}

def Tile_CopyOp : Tile_Op<"copy", [Tile_Loading]> {
  let summary = "TMA: one box of a tensor into a slot; every lane that executes it copies its own.";
  let description = [{
    The box starts at (row, column group, head, page) of the map and lands at row `at` of its column
    group of the stage. Asynchronous; counts on the full barrier.

    Example: `tile.copy %map[%row, %c, %h, %page] to %ring[%it] at %r : !tile.ring<2 x 128x64xbf16>`
  }];
  let arguments = (ins Tile_TensorMapType:$map, I32:$row, I32:$column_group, I32:$head, I32:$page,
                       Tile_RingType:$ring, I32:$use, I32:$at);
  let assemblyFormat = [{
    $map `[` $row `,` $column_group `,` $head `,` $page `]` `to` $ring `[` $use `]` `at` $at
    attr-dict `:` type($ring)
  }];
  let hasVerifier = 1;
}

def Tile_WaitOp : Tile_SlotOp<"wait", Tile_InConsumers> {
  let summary = "Consumer: waits until the slot of this use is full. May be repeated.";
  let description = "Example: `tile.wait %ring[%it] : !tile.ring<2 x 128x64xbf16>`";
}

def Tile_ReleaseOp : Tile_SlotOp<"release", Tile_InConsumers> {
  let summary = "Consumer: one lane of each warp arrives on the empty barrier.";
  let description = "Example: `tile.release %ring[%it] : !tile.ring<2 x 128x64xbf16>`";
}

class Tile_QueueSlotOp<string mnemonic, Trait role> : Tile_Op<mnemonic, [role]> {
  let hasVerifier = 1;
  let arguments = (ins Tile_QueueType:$queue, I32:$use);
  let assemblyFormat = "$queue `[` $use `]` attr-dict `:` type($queue)";
}

def Tile_PushOp : Tile_Op<"push", [Tile_InProducer]> {
  let summary = "Producer: waits until the stage of this use is empty and hands over a record.";
  let description = [{
    `values`, four a row, are its first rows; after them come the first `count` rows of 16 bytes at
    `source`, as many as there is room for. Values and count are the same in every lane.

    Example: `tile.push %a, %b, %c, %d and %n rows of %p to %queue[%it] : !llvm.ptr<1>, !tile.queue<2 x 19>`
  }];
  let arguments = (ins Variadic<I32>:$values, I32:$count, Tile_Pointer:$source,
                       Tile_QueueType:$queue, I32:$use);
  let assemblyFormat = [{
    $values `and` $count `rows` `of` $source `to` $queue `[` $use `]` attr-dict `:` type($source)
    `,` type($queue)
  }];
  let hasVerifier = 1;
}

def Tile_FrontOp : Tile_QueueSlotOp<"front", Tile_Taking> {
  let summary = "Loader, consumer: waits until the record of this use is there.";
  let description = "Example: `tile.front %queue[%it] : !tile.queue<2 x 19>`";
}

def Tile_ReadOp : Tile_Op<"read", [Tile_Taking]> {
  let summary = "Loader, consumer: a row of a record, between `tile.front` and `tile.pop`.";
  let description = [{
    The row must lie in the stage; what the producer left out is undefined.

    Example: `%a, %b, %c, %d = tile.read %row of %queue[%it] : !tile.queue<2 x 19>`
  }];
  let arguments = (ins I32:$row, Tile_QueueType:$queue, I32:$use);
  let results = (outs I32:$word0, I32:$word1, I32:$word2, I32:$word3);
  let assemblyFormat = "$row `of` $queue `[` $use `]` attr-dict `:` type($queue)";
  let hasVerifier = 1;
}

def Tile_PopOp : Tile_QueueSlotOp<"pop", Tile_Taking> {
  let summary = "Loader, consumer: gives the stage back; one arrival a warp on the empty barrier.";
  let description = "Example: `tile.pop %queue[%it] : !tile.queue<2 x 19>`";
}

def Tile_FromLaneOp : Tile_Op<"from_lane", [Tile_Loading, SameOperandsAndResultType]> {
  let summary = "Producer, loader: the value that a lane has, in every lane.";
  let description = [{
    All lanes take part, and the number of the lane (0 to 31) is the same in all of them.

    Example: `%b = tile.from_lane %lane of %a : i32`
  }];
  let arguments = (ins I32:$lane, I32:$value);
  let results = (outs I32:$result);
  let assemblyFormat = "$lane `of` $value attr-dict `:` type($result)";
}

def Tile_ClaimOp : Tile_Op<"claim", [Tile_InProducer]> {
  let summary = "Producer: takes the next number of a counter in global memory.";
  let description = [{
    Counts from 0 across all CTAs. Number `total - 1` is the last that anybody claims: whoever gets
    it puts the counter back to 0 for the next launch. The same in every lane.

    Example: `%n = tile.claim %counter of %total : !llvm.ptr`
  }];
  let arguments = (ins Tile_Pointer:$counter, I32:$total);
  let results = (outs I32:$result);
  let assemblyFormat = "$counter `of` $total attr-dict `:` type($counter)";
}

def Tile_AwaitTurnOp : Tile_Op<"await_turn", [Tile_InConsumers]> {
  let summary = "Consumer: waits for the row group's turn to issue products.";
  let description = [{
    Row groups take turns, group 0 first: each waits until the one before it passed the turn on.
    Every group must await and pass the turn equally often.

    Example: `tile.await_turn`
  }];
  let assemblyFormat = "attr-dict";
}

def Tile_PassTurnOp : Tile_Op<"pass_turn", [Tile_InConsumers]> {
  let summary = "Consumer: the next row group's turn.";
  let description = "Example: `tile.pass_turn`";
  let assemblyFormat = "attr-dict";
}

def Tile_HideOp : Tile_Op<"hide", [Tile_InConsumers]> {
  let summary = "Zeroes the rows of a full slot whose bit in a bitmap is 0.";
  let description = [{
    Row r has bit r mod 32 of word r / 32. Thread t of the row group (`tile.thread_id`) brings the
    word of row t, and of row 128 + t if the slot has more rows than 128; what it brings for rows
    that the slot does not have is ignored.

    Every thread of the row group takes part; the rows are then visible to its products (generic
    stores, proxy fence, barrier of the row group). No product of the group may be pending on the
    slot. Row groups that call it for the same slot must have the same bitmap.

    Example: `tile.hide %v[%it] keep %word : !tile.ring<2 x 128x64xbf16>`
  }];
  let arguments = (ins Tile_RingType:$ring, I32:$use, Variadic<I32>:$words);
  let assemblyFormat = "$ring `[` $use `]` `keep` $words attr-dict `:` type($ring)";
  let hasVerifier = 1;
}

def Tile_HideUnseenOp : Tile_SlotOp<"hide_unseen", Tile_InConsumers> {
  let summary = "Zeroes the rows of a full slot whose column of `bits` is 0 in every row.";
  let description = [{
    As `tile.hide`, with the union of the bits of all rows of this row group and of those in `sharing`
    (bit g: row group g calls it for the same use too; this group's own bit is set): the groups that
    share meet at a barrier. Where another group that reads the slot does not call it, that group must
    keep no key of it.

    Example: `tile.hide_unseen %v[%it] keep %bits, %sharing : !tile.ring<2 x 128x64xbf16>, !tile.bits<64x128>`
  }];
  let arguments = (ins Tile_RingType:$ring, I32:$use, Tile_BitsType:$bits, I32:$sharing);
  let assemblyFormat = [{
    $ring `[` $use `]` `keep` $bits `,` $sharing attr-dict `:` type($ring) `,` type($bits)
  }];
}

} // opDocGroup

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

def Tile_ProductDocGroup : OpDocGroup {
  let summary = "Products";
  let description = "Asynchronous matrix products of a warpgroup; no hidden synchronisation.";
}

let opDocGroup = Tile_ProductDocGroup in {

def Tile_MmaSharedOp : Tile_Op<"mma_shared", [Tile_InConsumers]> {
  let summary = "A slot of 64 rows times the transpose of another: S = A B^T.";
  let description = [{
    B is the slot's first rows, as many as S has columns. Starts from zero. Committed as a group of
    its own.

    Example:
    ```mlir
    %s = tile.mma_shared %q[%g], %k[%it] : !tile.ring<2 x 64x128xbf16>, !tile.ring<2 x 128x128xbf16>
           -> !tile.pending<!tile.fragment<64x128xf32, acc>>
    ```
  }];
  let arguments = (ins Tile_RingType:$a, I32:$a_use, Tile_RingType:$b, I32:$b_use);
  let results = (outs Tile_PendingType:$result);
  let assemblyFormat = [{
    $a `[` $a_use `]` `,` $b `[` $b_use `]` attr-dict `:` type($a) `,` type($b) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Tile_LoadOperandOp : Tile_Op<"load_operand", [Tile_InConsumers]> {
  let summary = "A full slot of 64 rows into registers, as an operand.";
  let description = [{
    Example:
    ```mlir
    %f = tile.load_operand %q[%g] : !tile.ring<2 x 64x128xbf16> -> !tile.fragment<64x128xbf16, operand>
    ```
  }];
  let arguments = (ins Tile_RingType:$ring, I32:$use);
  let results = (outs Tile_FragmentType:$result);
  let assemblyFormat = "$ring `[` $use `]` attr-dict `:` type($ring) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_MmaOperandOp : Tile_Op<"mma_operand", [Tile_InConsumers]> {
  let summary = "A fragment times the transpose of a slot: S = A B^T.";
  let description = [{
    As `tile.mma_shared`, with the first factor in registers.

    Example:
    ```mlir
    %s = tile.mma_operand %f, %k[%it] : !tile.fragment<64x128xbf16, operand>,
           !tile.ring<2 x 128x128xbf16> -> !tile.pending<!tile.fragment<64x128xf32, acc>>
    ```
  }];
  let arguments = (ins Tile_FragmentType:$a, Tile_RingType:$b, I32:$b_use);
  let results = (outs Tile_PendingType:$result);
  let assemblyFormat = [{
    $a `,` $b `[` $b_use `]` attr-dict `:` type($a) `,` type($b) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Tile_MmaRegisterOp : Tile_Op<"mma_register", [Tile_InConsumers, 
    TypesMatchWith<"the accumulator is the fragment of the result", "result", "c",
                   "::llvm::cast<::attn::tile::PendingType>($_self).getFragment()">]> {
  let summary = "A fragment times a slot, added to an accumulator: D = A B + C.";
  let description = [{
    Committed as a group of its own.

    Example:
    ```mlir
    %o1 = tile.mma_register %p, %v[%it], %o : !tile.fragment<64x128xbf16, operand>,
            !tile.ring<2 x 128x128xbf16> -> !tile.pending<!tile.fragment<64x128xf32, acc>>
    ```
  }];
  let arguments = (ins Tile_FragmentType:$a, Tile_RingType:$b, I32:$b_use, Tile_FragmentType:$c);
  let results = (outs Tile_PendingType:$result);
  let assemblyFormat = [{
    $a `,` $b `[` $b_use `]` `,` $c attr-dict `:` type($a) `,` type($b) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Tile_WaitMmaOp : Tile_Op<"wait_mma", [Tile_InConsumers, 
    TypesMatchWith<"result is the fragment of the pending value", "pending", "result",
                   "::llvm::cast<::attn::tile::PendingType>($_self).getFragment()">]> {
  let summary = "Waits until at most `pending` later products are under way and gives the fragment.";
  let description = [{
    Example: `%s = tile.wait_mma 1, %pending : !tile.pending<!tile.fragment<64x128xf32, acc>>`
  }];
  let arguments = (ins I64Attr:$later, Tile_PendingType:$pending);
  let results = (outs Tile_FragmentType:$result);
  let assemblyFormat = "$later `,` $pending attr-dict `:` type($pending)";
  let hasVerifier = 1;
}

} // opDocGroup

//===----------------------------------------------------------------------===//
// Fragments
//===----------------------------------------------------------------------===//

def Tile_FragmentDocGroup : OpDocGroup {
  let summary = "Fragments";
  let description = "Element-wise work and row reductions in registers.";
}

let opDocGroup = Tile_FragmentDocGroup in {

def Tile_FillOp : Tile_Op<"fill", [Tile_InConsumers, Pure]> {
  let summary = "Every element is the given scalar.";
  let description = "Example: `%o = tile.fill %zero : f32 -> !tile.fragment<64x128xf32, acc>`";
  let arguments = (ins AnyType:$value);
  let results = (outs AnyTypeOf<[Tile_FragmentType, Tile_RowsType]>:$result);
  let assemblyFormat = "$value attr-dict `:` type($value) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_MapOp : Tile_Op<"map", [Tile_InConsumers, RecursiveMemoryEffects,
    SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "Element by element over acc fragments.";
  let description = [{
    The region's arguments are one scalar for each input (a fragment's element, a row's value, a bit
    as i1), then row (0 to 63) and column as i32. It yields one scalar for each result: f32 for a
    fragment, i1 for bits. It is instantiated for every element; what stands in it should be
    straight-line where a product is pending.

    Example:
    ```mlir
    %p = tile.map %s, %m : !tile.fragment<64x128xf32, acc>, !tile.rows<f32>
           -> !tile.fragment<64x128xf32, acc> {
    ^bb0(%x: f32, %max: f32, %row: i32, %col: i32):
      %d = arith.subf %x, %max : f32
      %e = tile.ex2 %d : f32
      tile.yield %e : f32
    }
    ```
  }];
  let arguments = (ins Variadic<Tile_MapInput>:$inputs);
  let results = (outs Variadic<Tile_MapOutput>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    ($inputs^ `:` type($inputs))? `->` type($results) $body attr-dict
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def Tile_MapRowsOp : Tile_Op<"map_rows", [Tile_InConsumers, RecursiveMemoryEffects,
    SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "Row by row.";
  let description = [{
    The region's arguments are one scalar for each input, then the row (0 to 63) as i32. Yields one
    scalar for each result. A partial input is the lane's part.

    Example:
    ```mlir
    %d = tile.map_rows %a, %b : !tile.rows<f32>, !tile.rows<f32> -> !tile.rows<f32> {
    ^bb0(%x: f32, %y: f32, %row: i32):
      %z = arith.subf %x, %y : f32
      tile.yield %z : f32
    }
    ```
  }];
  let arguments = (ins Variadic<Tile_RowsType>:$inputs);
  let results = (outs Variadic<Tile_RowsType>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    ($inputs^ `:` type($inputs))? `->` type($results) $body attr-dict
  }];
  let hasRegionVerifier = 1;
}

def Tile_RowMaxOp : Tile_Op<"row_max", [Tile_InConsumers, Pure]> {
  let summary = "Largest element of each row; NaN counts as absent.";
  let description = "Example: `%m = tile.row_max %s : !tile.fragment<64x128xf32, acc> -> !tile.rows<f32>`";
  let arguments = (ins Tile_FragmentType:$fragment);
  let results = (outs Tile_RowsType:$result);
  let assemblyFormat = "$fragment attr-dict `:` type($fragment) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_RowSumOp : Tile_Op<"row_sum", [Tile_InConsumers, Pure]> {
  let summary = "Sum of the elements of each row that the lane holds.";
  let description = [{
    Example: `%l = tile.row_sum %p : !tile.fragment<64x128xf32, acc> -> !tile.rows<f32, partial>`
  }];
  let arguments = (ins Tile_FragmentType:$fragment);
  let results = (outs Tile_RowsType:$result);
  let assemblyFormat = "$fragment attr-dict `:` type($fragment) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_RowFinishOp : Tile_Op<"row_finish", [Tile_InConsumers, Pure]> {
  let summary = "Adds the parts of a partial sum.";
  let description = "Example: `%l = tile.row_finish %part : !tile.rows<f32, partial> -> !tile.rows<f32>`";
  let arguments = (ins Tile_RowsType:$rows);
  let results = (outs Tile_RowsType:$result);
  let assemblyFormat = "$rows attr-dict `:` type($rows) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_WarpAnyOp : Tile_Op<"warp_any"> {
  let summary = "Whether any of the 16 rows of the warp has the value true.";
  let description = [{
    The same in every lane of a warp; other warps of the row group may differ. A branch on it may hold
    no product and no wait for one, and none may be under way.

    Example: `%any = tile.warp_any %changed : !tile.rows<i1>`
  }];
  let arguments = (ins Tile_RowsType:$rows);
  let results = (outs I1:$result);
  let assemblyFormat = "$rows attr-dict `:` type($rows)";
  let hasVerifier = 1;
}

def Tile_ToOperandOp : Tile_Op<"to_operand", [Tile_InConsumers, Pure]> {
  let summary = "Rounds an acc fragment to 16 bits as an operand; no data moves between threads.";
  let description = [{
    Round to nearest even. Columns past the fragment's are 0.

    Example: `%p = tile.to_operand %f : !tile.fragment<64x128xf32, acc> -> !tile.fragment<64x128xbf16, operand>`
  }];
  let arguments = (ins Tile_FragmentType:$fragment);
  let results = (outs Tile_FragmentType:$result);
  let assemblyFormat = "$fragment attr-dict `:` type($fragment) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_RangeBitsOp : Tile_Op<"range_bits", [Tile_InConsumers, Pure, AllTypesMatch<["lo", "hi"]>]> {
  let summary = "Bits of the columns in [lo, hi) of each row.";
  let description = [{
    Any i32 bounds; what lies outside the columns is cut off, and lo >= hi gives none.

    Example: `%b = tile.range_bits %lo, %hi : !tile.rows<i32> -> !tile.bits<64x128>`
  }];
  let arguments = (ins Tile_RowsType:$lo, Tile_RowsType:$hi);
  let results = (outs Tile_BitsType:$result);
  let assemblyFormat = "$lo `,` $hi attr-dict `:` type($lo) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_BitsOrOp : Tile_Op<"bits_or", [Tile_InConsumers, Pure, SameOperandsAndResultType]> {
  let summary = "Union of bits.";
  let description = "Example: `%c = tile.bits_or %a, %b : !tile.bits<64x128>`";
  let arguments = (ins Tile_BitsType:$lhs, Tile_BitsType:$rhs);
  let results = (outs Tile_BitsType:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($result)";
}

def Tile_SelectOp : Tile_Op<"select", [Tile_InConsumers, Pure, AllTypesMatch<["fragment", "result"]>]> {
  let summary = "Elements whose bit is set; the others become the scalar.";
  let description = [{
    Example: `%m = tile.select %bits, %s, %ninf : !tile.bits<64x128>, !tile.fragment<64x128xf32, acc>`
  }];
  let arguments = (ins Tile_BitsType:$bits, Tile_FragmentType:$fragment, F32:$otherwise);
  let results = (outs Tile_FragmentType:$result);
  let assemblyFormat = "$bits `,` $fragment `,` $otherwise attr-dict `:` type($bits) `,` type($fragment)";
  let hasVerifier = 1;
}

def Tile_Ex2Op : Tile_Op<"ex2", [Tile_InRole, Pure, SameOperandsAndResultType]> {
  let summary = "2^x: ex2.approx.ftz.f32.";
  let description = "Example: `%y = tile.ex2 %x : f32`";
  let arguments = (ins F32:$x);
  let results = (outs F32:$result);
  let assemblyFormat = "$x attr-dict `:` type($x)";
}

def Tile_Lg2Op : Tile_Op<"lg2", [Tile_InRole, Pure, SameOperandsAndResultType]> {
  let summary = "log2(x): lg2.approx.ftz.f32.";
  let description = "Example: `%y = tile.lg2 %x : f32`";
  let arguments = (ins F32:$x);
  let results = (outs F32:$result);
  let assemblyFormat = "$x attr-dict `:` type($x)";
}

def Tile_RcpOp : Tile_Op<"rcp", [Tile_InRole, Pure, SameOperandsAndResultType]> {
  let summary = "1/x: rcp.approx.ftz.f32.";
  let description = "Example: `%y = tile.rcp %x : f32`";
  let arguments = (ins F32:$x);
  let results = (outs F32:$result);
  let assemblyFormat = "$x attr-dict `:` type($x)";
}

def Tile_StoreOp : Tile_Op<"store", [Tile_InConsumers]> {
  let summary = "Rounds a fragment to 16 bits and writes its first rows to global memory.";
  let description = [{
    Row r goes to `base + r * stride` elements; only rows r < `rows` are written, in 16-byte stores:
    base must be 16-byte aligned and the stride a multiple of 8.

    Example: `tile.store %o, %base, %stride, %rows : !tile.fragment<64x128xf32, acc>, !llvm.ptr as bf16`
  }];
  let arguments = (ins Tile_FragmentType:$fragment, Tile_Pointer:$base, I64:$stride, I32:$rows,
                       TypeAttr:$element);
  let assemblyFormat = [{
    $fragment `,` $base `,` $stride `,` $rows attr-dict `:` type($fragment) `,` type($base)
    `as` $element
  }];
  let hasVerifier = 1;
}

def Tile_StoreBoxOp : Tile_Op<"store_box", [Tile_InConsumers]> {
  let summary = "Rounds a fragment to 16 bits and writes all of its rows through TMA.";
  let description = [{
    To rows `row` ... `row + 63` of head `head` of the map, whose boxes have 16 rows of one column
    group: a warp's. `columns` at a time lie in scratch memory of the row group, from which each
    warp copies its own while it goes on; the kernel ends when all are read.

    Example: `tile.store_box %o to %map[%row, %head] columns(128) : !tile.fragment<64x128xf32, acc> as bf16`
  }];
  let arguments = (ins Tile_FragmentType:$fragment, Tile_TensorMapType:$map, I32:$row, I32:$head,
                       I64Attr:$columns, TypeAttr:$element);
  let assemblyFormat = [{
    $fragment `to` $map `[` $row `,` $head `]` `columns` `(` $columns `)` attr-dict `:`
    type($fragment) `as` $element
  }];
  let hasVerifier = 1;
}

def Tile_StoreRowsOp : Tile_Op<"store_rows", [Tile_InConsumers]> {
  let summary = "Writes the values of the first rows to consecutive places of global memory.";
  let description = "Example: `tile.store_rows %lse, %base, %rows : !tile.rows<f32>, !llvm.ptr`";
  let arguments = (ins Tile_RowsType:$values, Tile_Pointer:$base, I32:$rows);
  let assemblyFormat = "$values `,` $base `,` $rows attr-dict `:` type($values) `,` type($base)";
  let hasVerifier = 1;
}

} // opDocGroup

#endif // TILE_OPS_TD
