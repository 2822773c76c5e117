// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How masks become partial blocks: fused ones as bits from row limits, others per element.
// RUN: attn-opt %s --attn-mask-passes --convert-attn-to-tile | FileCheck %s
// RUN: attn-opt %s --convert-attn-to-tile | FileCheck %s --check-prefix=RAW
// RUN: attn-opt %s --attn-mask-passes --convert-attn-to-tile=count-tiles=true \
// RUN:   | FileCheck %s --check-prefix=COUNT

// Rings of the shape for dim 128: two row groups, 128 keys. The producer hands the records of tiles over,
// then one that ends the work. The next tile is claimed behind the loads of K; a warp of its own loads V.
// O leaves through a box if the group has 64 rows.
// CHECK-LABEL: tile.kernel @attn.forward.dense words(20)
// CHECK: %[[Q:.*]] = tile.ring arrivals(4) : <2 x 64x128xf16>
// CHECK: %[[K:.*]] = tile.ring arrivals(8) : <2 x 128x128xf16>
// CHECK: %[[V:.*]] = tile.ring arrivals(8) : <2 x 128x128xf16>
// CHECK: %[[N:.*]] = tile.queue arrivals(9) : <2 x 19>
// CHECK: tile.producer registers(24)
// The work item is read beside the list's size, without knowing whether there is one: at the last of the
// launch's (word 16) at most.
// CHECK: scf.while (%[[NUMBER:.*]] = %{{.*}}, %{{.*}} = %{{.*}}, %{{.*}} = %{{.*}})
// CHECK-NEXT: %[[WORD:.*]] = arith.constant 128 : i64
// CHECK-NEXT: %[[AT:.*]] = llvm.getelementptr %arg4[%[[WORD]]]
// CHECK-NEXT: %[[LONG:.*]] = llvm.load %[[AT]]
// CHECK-NEXT: %[[MOST:.*]] = arith.trunci %[[LONG]]
// CHECK-NEXT: %[[ONE:.*]] = arith.constant 1 : i32
// CHECK-NEXT: %[[LAST:.*]] = arith.subi %[[MOST]], %[[ONE]] : i32
// CHECK-NEXT: %[[ITEM:.*]] = arith.minsi %[[NUMBER]], %[[LAST]] : i32
// CHECK-NEXT: %[[WIDE:.*]] = arith.extsi %[[ITEM]]
// CHECK-NEXT: %[[SIZE:.*]] = arith.constant 8 : i64
// CHECK-NEXT: %[[OFFSET:.*]] = arith.muli %[[WIDE]], %[[SIZE]] : i64
// CHECK: %[[PLACE:.*]] = llvm.getelementptr %{{.*}}[%[[OFFSET]]]
// CHECK-NEXT: llvm.load volatile %[[PLACE]] {{.*}} -> vector<2xi32>
// CHECK: %[[MORE:.*]] = arith.cmpi slt, %[[NUMBER]], %
// CHECK-NEXT: scf.condition(%[[MORE]])
// Q in registers leaves its slot at once: it is not behind the record.
// CHECK-COUNT-2: tile.acquire %[[Q]]
// CHECK-NOT: tile.acquire %[[Q]]
// A length that the device alone knows: rows and keys follow from it, and of each bitmap a lane has a word.
// CHECK: %{{.*}}:2 = scf.if %{{.*}} -> (i32, i32) {
// CHECK: llvm.inline_asm "mov.b64 $0, $1;"
// CHECK: arith.minsi
// CHECK: nvvm.redux.sync or %
// CHECK: llvm.store %{{.*}} : i32, !llvm.ptr<1>
// CHECK: } else {
// CHECK: tile.push {{.*}} and %{{.*}} rows of %{{.*}} to %[[N]]
// A box of all rows, or pieces of pages: the lanes find out which pages before the slot is empty, one copies.
// CHECK: tile.acquire %[[K]]
// CHECK-NEXT: tile.expect %[[K]]
// CHECK: tile.copy
// CHECK-NOT: tile.copy
// CHECK: llvm.load
// CHECK: tile.acquire %[[K]]
// CHECK-NEXT: tile.expect %[[K]]
// A page comes from a lane, the slot in it is the same in all: one more piece on, or 0 where a page is over.
// CHECK: tile.from_lane
// CHECK-NOT: tile.from_lane
// CHECK-COUNT-2: tile.copy
// CHECK: arith.cmpi eq
// CHECK: arith.select
// CHECK-NOT: tile.acquire %[[V]]
// CHECK: tile.claim
// CHECK: tile.push {{.*}} and %{{.*}} rows of %{{.*}} to %[[N]]
// CHECK: tile.loader
// CHECK: tile.front %[[N]]
// CHECK-COUNT-3: tile.read %{{.*}} of %[[N]]
// CHECK: tile.read %{{.*}} of %[[N]]
// CHECK: tile.acquire %[[V]]
// CHECK-NEXT: tile.expect %[[V]]
// CHECK: tile.copy
// CHECK-NOT: tile.acquire %[[K]]
// CHECK: tile.pop %[[N]]
// CHECK: tile.consumers groups(2) registers(240)
// CHECK: tile.front %[[N]]
// CHECK-COUNT-3: tile.read %{{.*}} of %[[N]]
// Q goes into registers; its slot is not handed back before a product has used them.
// CHECK: tile.wait %[[Q]]
// CHECK: %[[F:.*]] = tile.load_operand %[[Q]]
// CHECK-NOT: tile.release %[[Q]]
// Entries are in the queue, but for those past the 16th.
// CHECK: %[[C16:.*]] = arith.constant 16 : i32
// CHECK: %[[INQUEUE:.*]] = arith.cmpi slt, %{{.*}}, %[[C16]] : i32
// CHECK-NEXT: %{{.*}} = scf.if %[[INQUEUE]]
// CHECK: tile.read %{{.*}} of %[[N]]
// CHECK: } else {
// CHECK: llvm.load {{.*}} -> vector<4xi32>
// A group waits for blocks it skips before it hands them back.
// CHECK: tile.wait %[[K]]
// CHECK-NEXT: tile.release %[[K]]
// CHECK-NEXT: tile.wait %[[V]]
// CHECK-NEXT: tile.release %[[V]]
// The first block of a stretch. Its bitmap is read ahead of the product, bits are made beside it, and rows are
// hidden behind the softmax: none of it is waited for. Without a mask it has no form for half of it.
// CHECK: llvm.load {{.*}} -> i32
// CHECK-NOT: tile.mma_operand
// CHECK: tile.mma_operand %[[F]], %[[K]]{{.*}} -> <!tile.fragment<64x128xf32, acc>>
// CHECK-NOT: tile.wait_mma
// CHECK: tile.range_bits
// CHECK: tile.wait_mma 0
// CHECK-NOT: tile.range_bits
// CHECK-NOT: tile.hide
// CHECK: tile.select
// CHECK-NOT: tile.hide
// CHECK: tile.release %[[Q]]
// CHECK: tile.to_operand
// CHECK: tile.hide %[[V]]
// The full loop: S is issued, then O; S is waited for alone; no bits.
// CHECK: tile.mma_operand %[[F]], %[[K]]
// CHECK: tile.mma_register
// CHECK: tile.wait_mma 1
// CHECK-NOT: tile.range_bits
// CHECK-NOT: tile.select
// CHECK: tile.wait_mma 0
// CHECK: } else {
// The partial loop.
// CHECK: llvm.load {{.*}} -> i32
// CHECK: tile.mma_operand %[[F]], %[[K]]
// CHECK: tile.mma_register
// CHECK: tile.wait_mma 1
// CHECK: tile.range_bits
// CHECK: tile.select
// CHECK: tile.wait_mma 0
// CHECK: tile.hide %[[V]]
// Behind the last product a wait that is over keeps the sums of rows, for ptxas, from between its steps.
// CHECK: tile.mma_register {{.*}}, %[[V]][%[[LAST:[0-9]+]]],
// CHECK-NEXT: tile.wait %[[V]][%[[LAST]]]
// CHECK-NEXT: tile.row_finish
// CHECK: tile.pop %[[N]]
// CHECK: %[[WHOLE:.*]] = arith.cmpi eq, %{{.*}}, %c64_i32{{.*}} : i32
// CHECK: scf.if %[[WHOLE]] {
// CHECK: tile.store_box {{.*}} columns(128)
// CHECK: } else {
// CHECK: tile.store %
// CHECK: tile.store_rows
// CHECK-NOT: atomicrmw
// CHECK: tile.key_tile = 128 : i64
// COUNT-LABEL: tile.kernel @attn.forward.dense
// COUNT-COUNT-3: llvm.atomicrmw add
// COUNT: tile.counts_tiles
attn.kernel @dense heads(8) kv_heads(2) dim(128) q(f16) kv(f16) {
}

// One run a row: limits are computed once, while the first product runs. Q's slot is handed back behind
// the last product with it; a second one takes that of the next tile before, so it is not behind the record.
// CHECK-LABEL: tile.kernel @attn.forward.causal
// CHECK: %[[Q:.*]] = tile.ring arrivals(4) : <6 x 64x64xbf16>
// CHECK: tile.ring arrivals(12) : <2 x 128x64xbf16>
// CHECK: %[[V:.*]] = tile.ring arrivals(12) : <2 x 128x64xbf16>
// CHECK: %[[N:.*]] = tile.queue arrivals(13) : <2 x 19>
// CHECK: tile.producer registers(24)
// The rows of a tile go round among the groups: group g of tile t has part (g + t) mod 3.
// CHECK: tile.acquire %[[Q]]
// CHECK: %[[WHICH:.*]] = arith.addi %c0_i32{{.*}}, %[[TILE:.*]] : i32
// CHECK-NEXT: %[[GROUPS:.*]] = arith.constant 3 : i32
// CHECK-NEXT: %[[PART:.*]] = arith.remui %[[WHICH]], %[[GROUPS]] : i32
// CHECK-NEXT: %[[ROWS:.*]] = arith.constant 64 : i32
// CHECK-NEXT: %[[FIRST:.*]] = arith.muli %[[PART]], %[[ROWS]] : i32
// CHECK-NEXT: %[[ROW:.*]] = arith.addi %{{.*}}, %[[FIRST]] : i32
// CHECK: tile.copy %arg0[%[[ROW]],
// CHECK: tile.acquire %[[Q]]
// CHECK: arith.addi %c1_i32{{.*}}, %[[TILE]] : i32
// CHECK: tile.acquire %[[Q]]
// CHECK: arith.addi %c2_i32{{.*}}, %[[TILE]] : i32
// CHECK: tile.push {{.*}} to %[[N]]
// CHECK-NOT: tile.acquire %[[Q]]
// CHECK: tile.consumers groups(3) registers(160)
// CHECK-NEXT: ^bb0(%[[GROUP:.*]]: i32):
// CHECK: tile.front %[[N]]
// CHECK: %[[WHICH:.*]] = arith.addi %[[GROUP]], %{{.*}} : i32
// CHECK: %[[PART:.*]] = arith.remui %[[WHICH]], %
// CHECK: tile.wait %[[Q]][%[[USE:.*]]]
// CHECK-NOT: tile.load_operand
// Of a tile's first block (entry 0) the header says which groups need the lower half alone.
// CHECK: arith.shrui %{{.*}}, %[[PART]] : i32
// CHECK: %[[OWN:.*]] = arith.cmpi ne
// CHECK: %[[ZERO:.*]] = arith.cmpi eq
// CHECK-NEXT: %[[HALF:.*]] = arith.andi %[[OWN]], %[[ZERO]] : i1
// CHECK-NEXT: tile.wait
// CHECK-NEXT: tile.await_turn
// CHECK-NEXT: %[[FIRSTBLOCK:.*]]:9 = scf.if %[[HALF]]
// CHECK-NEXT: tile.mma_shared %[[Q]][%[[USE]]]{{.*}} -> <!tile.fragment<64x64xf32, acc>>
// CHECK-NEXT: tile.pass_turn
// CHECK: tile.map_rows -> {{.*}}!tile.rows<i32>, !tile.rows<i32>
// CHECK-NOT: arith.cmpi {{.*}} : index
// CHECK-NOT: scf.if
// CHECK-NOT: tile.wait_mma
// CHECK: tile.range_bits {{.*}} -> <64x64>
// CHECK: tile.wait_mma 0
// CHECK: tile.select {{.*}} : <64x64>, <64x64xf32, acc>
// CHECK: tile.to_operand {{.*}} : <64x64xf32, acc> -> <64x128xbf16, operand>
// CHECK-NEXT: scf.yield
// CHECK-NEXT: } else {
// CHECK-NEXT: tile.mma_shared %[[Q]][%[[USE]]]{{.*}} -> <!tile.fragment<64x128xf32, acc>>
// CHECK-NEXT: tile.pass_turn
// CHECK: tile.map_rows -> {{.*}}!tile.rows<i32>, !tile.rows<i32>
// CHECK-NOT: arith.cmpi {{.*}} : index
// The bits of a first block are made beside its product, if it is partial.
// CHECK-NOT: tile.wait_mma
// CHECK: scf.if
// CHECK: tile.range_bits {{.*}} -> <64x128>
// CHECK: } else {
// CHECK: tile.range_bits {{.*}} -> <64x128>
// CHECK: tile.wait_mma
// CHECK: tile.to_operand {{.*}} : <64x128xf32, acc> -> <64x128xbf16, operand>
// CHECK: tile.map_rows %[[FIRSTBLOCK]]#7
// CHECK: tile.map_rows %[[FIRSTBLOCK]]#8
// CHECK: tile.range_bits
// CHECK-NOT: tile.range_bits
// CHECK-NOT: tile.tests_visible
// RAW-LABEL: tile.kernel @attn.forward.causal
// RAW-NOT: nvvm.redux
// RAW: tile.consumers groups(2)
// RAW-NOT: tile.range_bits
// RAW: tile.hide_unseen
// RAW: tile.tests_visible
attn.kernel @causal heads(8) kv_heads(4) dim(64) q(bf16) kv(bf16) {
  attn.mask (%b, %h, %q, %k) {
    %m = attn.causal %q, %k
    attn.yield %m : i1
  }
}

// Row groups take turns where all of them need about the same blocks: awaited before S of a block,
// passed on behind O of the one before; also for blocks that a group skips.
// CHECK-LABEL: tile.kernel @attn.forward.turns
// CHECK: %[[Q:.*]] = tile.ring arrivals(4) : <2 x 64x256xbf16>
// CHECK: tile.ring arrivals(8) : <2 x 64x256xbf16>
// Q's one slot is read to the end of a tile, for which who loads V must not wait: the record is first.
// CHECK-NOT: tile.acquire %[[Q]]
// CHECK: tile.push
// CHECK-COUNT-2: tile.acquire %[[Q]]
// CHECK: tile.consumers
// CHECK: tile.await_turn
// CHECK-NEXT: tile.pass_turn
// CHECK: tile.await_turn
// CHECK-NEXT: tile.mma_shared
// CHECK-NEXT: tile.pass_turn
// CHECK: tile.await_turn
// CHECK-NEXT: tile.mma_shared
// CHECK-NEXT: tile.wait
// CHECK-NEXT: tile.mma_register
// CHECK-NEXT: tile.pass_turn
// A maximum that rises little is kept.
// CHECK: arith.constant 8.000000e+00 : f32
// CHECK: tile.warp_any
attn.kernel @turns heads(8) kv_heads(8) dim(256) q(bf16) kv(bf16) {
}

// Two runs a row; no turns.
// CHECK-LABEL: tile.kernel @attn.forward.two_runs
// CHECK-NOT: tile.await_turn
// CHECK: tile.ring arrivals(8) : <2 x 64x256xbf16>
// CHECK: tile.range_bits
// CHECK: tile.range_bits
// CHECK: tile.bits_or
// CHECK-NOT: tile.hide_unseen
// CHECK: tile.key_tile = 64 : i64
attn.kernel @two_runs heads(8) kv_heads(4) dim(256) q(bf16) kv(bf16) params(%left: i32) {
  attn.mask (%b, %h, %q, %k) {
    %c = attn.causal %q, %k
    %w = attn.window %q, %k left(%left)
    %p = attn.prefix %k, 100
    %o = attn.or %w, %p
    %m = attn.and %c, %o
    attn.yield %m : i1
  }
}

// A mask with holes has the shape for predicates, two row groups and 64 keys: the predicate per element, rows and columns hidden by what it keeps; without
// branches, so it stays beside the product under way.
// CHECK-LABEL: tile.kernel @attn.forward.table
// CHECK: tile.wait_mma 1
// CHECK: %[[BITS:.*]] = tile.map {{.*}} -> !tile.bits<64x64>
// CHECK-NOT: scf.if
// CHECK: tile.select %[[BITS]]
// CHECK: tile.hide_unseen {{.*}} keep %[[BITS]]
// CHECK: tile.tests_visible
attn.kernel @table heads(8) dim(128) q(bf16) kv(bf16) tables(%t: !attn.table<[b, k], i32>) {
  attn.mask (%b, %h, %q, %k) {
    %x = attn.load %t[%b, %k] : !attn.table<[b, k], i32>
    %zero = arith.constant 0 : i32
    %m = arith.cmpi ne, %x, %zero : i32
    attn.yield %m : i1
  }
}

// A loop in the predicate: no product is under way beside it.
// CHECK-LABEL: tile.kernel @attn.forward.loop
// CHECK-NOT: tile.wait_mma 1
// CHECK: scf.for {{.*}} -> (i1) {
attn.kernel @loop heads(8) dim(128) q(bf16) kv(bf16) {
  attn.mask (%b, %h, %q, %k) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %false = arith.constant false
    %m = scf.for %i = %c0 to %c3 step %c1 iter_args(%any = %false) -> (i1) {
      %s = arith.muli %i, %k : index
      %e = arith.cmpi eq, %s, %q : index
      %n = arith.ori %any, %e : i1
      scf.yield %n : i1
    }
    attn.yield %m : i1
  }
}
