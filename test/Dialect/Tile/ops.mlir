// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: tile-opt %s | tile-opt | FileCheck %s
// RUN: tile-opt %s -mlir-print-op-generic | tile-opt | FileCheck %s

!q_ring = !tile.ring<2 x 64x64xbf16>
!ring = !tile.ring<3 x 128x64xbf16>
!acc = !tile.fragment<64x128xf32, acc>
!out = !tile.fragment<64x64xf32, acc>
!operand = !tile.fragment<64x128xbf16, operand>
!bits = !tile.bits<64x128>

// CHECK-LABEL: tile.kernel @empty words(1) {
// CHECK-NEXT: ^bb0(%{{.*}}: !tile.tensor_map, %{{.*}}: !tile.tensor_map, %{{.*}}: !tile.tensor_map, %{{.*}}: !tile.tensor_map, %{{.*}}: !llvm.ptr):
// CHECK-NEXT: tile.producer registers(24) {
// CHECK-NEXT: }
// CHECK-NEXT: tile.consumers groups(1) registers(240) {
// CHECK-NEXT: ^bb0(%{{.*}}: i32):
// CHECK-NEXT: }
tile.kernel @empty words(1) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  tile.producer registers(24) {
  }
  tile.consumers groups(1) registers(240) {
  ^bb0(%group: i32):
  }
}

// CHECK-LABEL: tile.kernel @all words(15)
tile.kernel @all words(15) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  // CHECK: %[[Q:.*]] = tile.ring arrivals(4) : <2 x 64x64xbf16>
  %q = tile.ring arrivals(4) : !q_ring
  // CHECK: %[[K:.*]] = tile.ring arrivals(8) : <3 x 128x64xbf16>
  %k = tile.ring arrivals(8) : !ring
  // CHECK: %[[N:.*]] = tile.queue arrivals(8) : <2 x 4>
  %n = tile.queue arrivals(8) : !tile.queue<2 x 4>
  tile.producer registers(24) {
    // CHECK: %[[BLOCK:.*]] = tile.block_id : i32
    %block = tile.block_id : i32
    // CHECK: %[[LANE:.*]] = tile.thread_id : i32
    %lane = tile.thread_id : i32
    // CHECK: tile.acquire %[[K]][%[[BLOCK]]] : <3 x 128x64xbf16>
    tile.acquire %k[%block] : !ring
    // CHECK: tile.expect %[[K]][%[[BLOCK]]] : <3 x 128x64xbf16>
    tile.expect %k[%block] : !ring
    // CHECK: tile.copy %{{.*}}[%[[BLOCK]], %[[LANE]], %[[BLOCK]], %[[BLOCK]]] to %[[K]][%[[BLOCK]]] at %[[LANE]] : <3 x 128x64xbf16>
    tile.copy %mk[%block, %lane, %block, %block] to %k[%block] at %lane : !ring
    // CHECK: %[[GRID:.*]] = tile.grid_size : i32
    %grid = tile.grid_size : i32
    // CHECK: %[[CLAIM:.*]] = tile.claim %{{.*}} of %[[GRID]] : !llvm.ptr
    %claim = tile.claim %args of %grid : !llvm.ptr
    // CHECK: tile.push %[[CLAIM]], %[[GRID]], %[[GRID]], %[[GRID]] and %[[LANE]] rows of %{{.*}} to %[[N]][%[[BLOCK]]] : !llvm.ptr, <2 x 4>
    tile.push %claim, %grid, %grid, %grid and %lane rows of %args to %n[%block] : !llvm.ptr, !tile.queue<2 x 4>
  }
  // CHECK: tile.loader {
  tile.loader {
    // CHECK: %[[WARPLANE:.*]] = tile.thread_id : i32
    %lane = tile.thread_id : i32
    // CHECK: tile.front %[[N]][%[[WARPLANE]]] : <2 x 4>
    tile.front %n[%lane] : !tile.queue<2 x 4>
    // CHECK: tile.read %[[WARPLANE]] of %[[N]][%[[WARPLANE]]] : <2 x 4>
    %a, %b, %c, %d = tile.read %lane of %n[%lane] : !tile.queue<2 x 4>
    // CHECK: tile.acquire %[[K]][%{{.*}}] : <3 x 128x64xbf16>
    tile.acquire %k[%a] : !ring
    // CHECK: tile.from_lane %{{.*}} of %[[WARPLANE]] : i32
    %e = tile.from_lane %a of %lane : i32
    // CHECK: tile.pop %[[N]][%[[WARPLANE]]] : <2 x 4>
    tile.pop %n[%lane] : !tile.queue<2 x 4>
  }
  // CHECK: tile.consumers groups(2) registers(240)
  tile.consumers groups(2) registers(240) {
  // CHECK-NEXT: ^bb0(%[[GROUP:.*]]: i32):
  ^bb0(%group: i32):
    %f = arith.constant 0.0 : f32
    %i = arith.constant 1 : i32
    %stride = arith.constant 64 : i64
    %sharing = arith.constant 3 : i32
    // CHECK: tile.front %[[N]][%[[GROUP]]] : <2 x 4>
    tile.front %n[%group] : !tile.queue<2 x 4>
    // CHECK: %[[ITEM:.*]], %{{.*}}, %{{.*}}, %{{.*}} = tile.read %[[GROUP]] of %[[N]][%[[GROUP]]] : <2 x 4>
    %item, %w1, %w2, %w3 = tile.read %group of %n[%group] : !tile.queue<2 x 4>
    // CHECK: tile.pop %[[N]][%[[GROUP]]] : <2 x 4>
    tile.pop %n[%group] : !tile.queue<2 x 4>
    // CHECK: %[[QF:.*]] = tile.load_operand %[[Q]][%[[ITEM]]] : <2 x 64x64xbf16> -> <64x64xbf16, operand>
    %qf = tile.load_operand %q[%item] : !q_ring -> !tile.fragment<64x64xbf16, operand>
    // CHECK: tile.await_turn
    tile.await_turn
    // CHECK: tile.mma_operand %[[QF]], %[[K]][%[[GROUP]]] : <64x64xbf16, operand>, <3 x 128x64xbf16> -> <!tile.fragment<64x128xf32, acc>>
    %qk = tile.mma_operand %qf, %k[%group] : !tile.fragment<64x64xbf16, operand>, !ring -> !tile.pending<!acc>
    // CHECK: tile.pass_turn
    tile.pass_turn
    // CHECK: tile.wait %[[K]][%[[GROUP]]] : <3 x 128x64xbf16>
    tile.wait %k[%group] : !ring
    // CHECK: %[[SP:.*]] = tile.mma_shared %[[Q]][%[[GROUP]]], %[[K]][%[[GROUP]]] : <2 x 64x64xbf16>, <3 x 128x64xbf16> -> <!tile.fragment<64x128xf32, acc>>
    %sp = tile.mma_shared %q[%group], %k[%group] : !q_ring, !ring -> !tile.pending<!acc>
    // CHECK: %[[S:.*]] = tile.wait_mma 0, %[[SP]] : <!tile.fragment<64x128xf32, acc>>
    %s = tile.wait_mma 0, %sp : !tile.pending<!acc>
    // CHECK: %[[LO:.*]] = tile.fill %{{.*}} : i32 -> !tile.rows<i32>
    %lo = tile.fill %i : i32 -> !tile.rows<i32>
    // CHECK: %[[O:.*]] = tile.fill %{{.*}} : f32 -> !tile.fragment<64x64xf32, acc>
    %o = tile.fill %f : f32 -> !out
    // CHECK: %[[B:.*]] = tile.range_bits %[[LO]], %[[LO]] : <i32> -> <64x128>
    %b = tile.range_bits %lo, %lo : !tile.rows<i32> -> !bits
    // CHECK: %[[B2:.*]] = tile.bits_or %[[B]], %[[B]] : <64x128>
    %b2 = tile.bits_or %b, %b : !bits
    // CHECK: %[[S2:.*]] = tile.select %[[B2]], %[[S]], %{{.*}} : <64x128>, <64x128xf32, acc>
    %s2 = tile.select %b2, %s, %f : !bits, !acc
    // CHECK: tile.hide %[[K]][%[[GROUP]]] keep %[[GROUP]] : <3 x 128x64xbf16>
    tile.hide %k[%group] keep %group : !ring
    // CHECK: tile.hide_unseen %[[K]][%[[GROUP]]] keep %[[B]], %{{.*}} : <3 x 128x64xbf16>, <64x128>
    tile.hide_unseen %k[%group] keep %b, %sharing : !ring, !bits
    // CHECK: %[[M:.*]] = tile.row_max %[[S2]] : <64x128xf32, acc> -> <f32>
    %m = tile.row_max %s2 : !acc -> !tile.rows<f32>
    // CHECK: %[[E:.*]]:2 = tile.map %[[S2]], %[[M]], %[[B]] : !tile.fragment<64x128xf32, acc>, !tile.rows<f32>, !tile.bits<64x128> -> !tile.fragment<64x128xf32, acc>, !tile.bits<64x128> {
    %e, %keep = tile.map %s2, %m, %b : !acc, !tile.rows<f32>, !bits -> !acc, !bits {
    // CHECK-NEXT: ^bb0(%{{.*}}: f32, %{{.*}}: f32, %{{.*}}: i1, %{{.*}}: i32, %{{.*}}: i32):
    ^bb0(%x: f32, %max: f32, %bit: i1, %row: i32, %col: i32):
      %d = arith.subf %x, %max : f32
      // CHECK: tile.ex2 %{{.*}} : f32
      %y = tile.ex2 %d : f32
      // CHECK: tile.lg2 %{{.*}} : f32
      %z = tile.lg2 %y : f32
      // CHECK: tile.rcp %{{.*}} : f32
      %r = tile.rcp %z : f32
      // CHECK: tile.yield %{{.*}}, %{{.*}} : f32, i1
      tile.yield %r, %bit : f32, i1
    }
    // CHECK: tile.map -> !tile.bits<64x128> {
    %even = tile.map -> !bits {
    ^bb0(%row: i32, %col: i32):
      %c = arith.cmpi sle, %col, %row : i32
      tile.yield %c : i1
    }
    // CHECK: %[[SUM:.*]] = tile.row_sum %[[E]]#0 : <64x128xf32, acc> -> <f32, partial>
    %sum = tile.row_sum %e : !acc -> !tile.rows<f32, partial>
    // CHECK: %[[WHOLE:.*]] = tile.row_finish %[[SUM]] : <f32, partial> -> <f32>
    %whole = tile.row_finish %sum : !tile.rows<f32, partial> -> !tile.rows<f32>
    %nonzero = tile.map_rows %whole : !tile.rows<f32> -> !tile.rows<i1> {
    ^bb0(%x: f32, %row: i32):
      %zero = arith.constant 0.0 : f32
      %c = arith.cmpf une, %x, %zero : f32
      tile.yield %c : i1
    }
    // CHECK: tile.warp_any %{{.*}} : <i1>
    %any = tile.warp_any %nonzero : !tile.rows<i1>
    // CHECK: tile.map_rows %[[WHOLE]], %[[LO]] : !tile.rows<f32>, !tile.rows<i32> -> !tile.rows<index> {
    %r = tile.map_rows %whole, %lo : !tile.rows<f32>, !tile.rows<i32> -> !tile.rows<index> {
    // CHECK-NEXT: ^bb0(%{{.*}}: f32, %{{.*}}: i32, %{{.*}}: i32):
    ^bb0(%x: f32, %y: i32, %row: i32):
      %z = arith.index_cast %y : i32 to index
      tile.yield %z : index
    }
    // CHECK: %[[P:.*]] = tile.to_operand %[[E]]#0 : <64x128xf32, acc> -> <64x128xbf16, operand>
    %p = tile.to_operand %e : !acc -> !operand
    // CHECK: %[[OP:.*]] = tile.mma_register %[[P]], %[[K]][%[[GROUP]]], %[[O]] : <64x128xbf16, operand>, <3 x 128x64xbf16> -> <!tile.fragment<64x64xf32, acc>>
    %op = tile.mma_register %p, %k[%group], %o : !operand, !ring -> !tile.pending<!out>
    // CHECK: %[[O1:.*]] = tile.wait_mma 1, %[[OP]]
    %o1 = tile.wait_mma 1, %op : !tile.pending<!out>
    // CHECK: tile.release %[[K]][%[[GROUP]]] : <3 x 128x64xbf16>
    tile.release %k[%group] : !ring
    // CHECK: tile.store %[[O1]], %{{.*}}, %{{.*}}, %{{.*}} : <64x64xf32, acc>, !llvm.ptr as bf16
    tile.store %o1, %args, %stride, %i : !out, !llvm.ptr as bf16
    // CHECK: tile.store_box %[[O1]] to %{{.*}}[%{{.*}}, %[[GROUP]]] columns(64) : <64x64xf32, acc> as bf16
    tile.store_box %o1 to %mo[%i, %group] columns(64) : !out as bf16
    // CHECK: tile.store_rows %[[WHOLE]], %{{.*}}, %{{.*}} : <f32>, !llvm.ptr
    tile.store_rows %whole, %args, %i : !tile.rows<f32>, !llvm.ptr
  }
}
