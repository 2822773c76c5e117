// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: tile-opt %s -convert-tile-to-nvvm | mlir-translate -mlir-to-llvmir | \
// RUN:   llc -O3 -mcpu=sm_90a -mattr=+ptx86 | FileCheck %s

// A whole schedule: the keys of one tile, 128 at a time, two row groups. Parameters are read where
// they lie, P is packed after the product that reads the last one.

// CHECK-LABEL: .entry attention(
// CHECK: .maxntid 384
// CHECK: .minnctapersm 1
// CHECK-NOT: .local
// CHECK: setmaxnreg.dec.sync.aligned.u32 24;
// CHECK: ld.param.b{{[0-9]+}} %{{.*}}, [{{.*}}+120];
// CHECK: setmaxnreg.inc.sync.aligned.u32 240;
// CHECK-COUNT-8: wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16
// CHECK: wgmma.wait_group.sync.aligned 0;
// CHECK-COUNT-32: cvt.rn.bf16x2.f32
// The loop.
// CHECK-COUNT-16: wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16
// CHECK-NOT: cvt.rn.bf16x2.f32
// CHECK: wgmma.wait_group.sync.aligned 1;
// CHECK-NOT: cvt.rn.bf16x2.f32
// CHECK: ex2.approx.ftz.f32
// CHECK-NOT: cvt.rn.bf16x2.f32
// CHECK: wgmma.wait_group.sync.aligned 0;
// CHECK-COUNT-32: cvt.rn.bf16x2.f32
// CHECK-COUNT-8: wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16
// CHECK: rcp.rn.f32
// CHECK-COUNT-8: st.global.v4.b32
!acc_s = !tile.fragment<64x128xf32, acc>
!acc_o = !tile.fragment<64x128xf32, acc>
!p = !tile.fragment<64x128xbf16, operand>
!q_ring = !tile.ring<2 x 64x128xbf16>
!kv_ring = !tile.ring<2 x 128x128xbf16>

tile.kernel @attention words(17) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  %q = tile.ring arrivals(4) : !q_ring
  %k = tile.ring arrivals(8) : !kv_ring
  %v = tile.ring arrivals(8) : !kv_ring
  tile.producer registers(24) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %c128 = arith.constant 128 : i32
    %block = tile.block_id : i32
    %lane = tile.thread_id : i32
    %blocks_at = llvm.getelementptr %args[120] : (!llvm.ptr) -> !llvm.ptr, i8
    %blocks64 = llvm.load %blocks_at invariant {alignment = 8 : i64} : !llvm.ptr -> i64
    %blocks = arith.trunci %blocks64 : i64 to i32
    %first = arith.cmpi eq, %lane, %c0 : i32
    %tile_row = arith.muli %block, %c128 : i32
    %row1 = arith.addi %tile_row, %c64 : i32
    tile.expect %q[%c0] : !q_ring
    tile.expect %q[%c1] : !q_ring
    scf.if %first {
      tile.copy %mq[%tile_row, %c0, %c0, %c0] to %q[%c0] at %c0 : !q_ring
      tile.copy %mq[%row1, %c0, %c0, %c0] to %q[%c1] at %c0 : !q_ring
    }
    scf.for %i = %c0 to %blocks step %c1 : i32 {
      %key = arith.muli %i, %c128 : i32
      tile.acquire %k[%i] : !kv_ring
      tile.expect %k[%i] : !kv_ring
      scf.if %first {
        tile.copy %mk[%key, %c0, %c0, %c0] to %k[%i] at %c0 : !kv_ring
      }
      tile.acquire %v[%i] : !kv_ring
      tile.expect %v[%i] : !kv_ring
      scf.if %first {
        tile.copy %mv[%key, %c0, %c0, %c0] to %v[%i] at %c0 : !kv_ring
      }
    }
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %c128 = arith.constant 128 : i32
    %zero = arith.constant 0.0 : f32
    %ninf = arith.constant 0xFF800000 : f32
    %floor = arith.constant -1.0e30 : f32
    %unit = arith.constant 0.1275 : f32
    %block = tile.block_id : i32
    %blocks_at = llvm.getelementptr %args[120] : (!llvm.ptr) -> !llvm.ptr, i8
    %blocks64 = llvm.load %blocks_at invariant {alignment = 8 : i64} : !llvm.ptr -> i64
    %blocks = arith.trunci %blocks64 : i64 to i32
    %keys_at = llvm.getelementptr %args[128] : (!llvm.ptr) -> !llvm.ptr, i8
    %keys64 = llvm.load %keys_at invariant {alignment = 8 : i64} : !llvm.ptr -> i64
    %keys = arith.trunci %keys64 : i64 to i32
    %o_word = llvm.load %args invariant {alignment = 8 : i64} : !llvm.ptr -> i64
    %o_base = llvm.inttoptr %o_word : i64 to !llvm.ptr<1>
    %stride_at = llvm.getelementptr %args[16] : (!llvm.ptr) -> !llvm.ptr, i8
    %stride = llvm.load %stride_at invariant {alignment = 8 : i64} : !llvm.ptr -> i64

    %m0 = tile.fill %floor : f32 -> !tile.rows<f32>
    %l0 = tile.fill %zero : f32 -> !tile.rows<f32, partial>
    %o0 = tile.fill %zero : f32 -> !acc_o
    tile.wait %q[%group] : !q_ring
    tile.wait %k[%c0] : !kv_ring
    %s0p = tile.mma_shared %q[%group], %k[%c0] : !q_ring, !kv_ring -> !tile.pending<!acc_s>
    %s0 = tile.wait_mma 0, %s0p : !tile.pending<!acc_s>
    tile.release %k[%c0] : !kv_ring
    %e0 = tile.map %s0 : !acc_s -> !acc_s {
    ^bb0(%x: f32, %row: i32, %col: i32):
      %y = arith.mulf %x, %unit : f32
      %z = tile.ex2 %y : f32
      tile.yield %z : f32
    }
    %p0 = tile.to_operand %e0 : !acc_s -> !p
    %r:4 = scf.for %i = %c1 to %blocks step %c1
        iter_args(%m = %m0, %l = %l0, %o = %o0, %pp = %p0)
        -> (!tile.rows<f32>, !tile.rows<f32, partial>, !acc_o, !p) : i32 {
      %before = arith.subi %i, %c1 : i32
      tile.wait %k[%i] : !kv_ring
      %sp = tile.mma_shared %q[%group], %k[%i] : !q_ring, !kv_ring -> !tile.pending<!acc_s>
      tile.wait %v[%before] : !kv_ring
      %op = tile.mma_register %pp, %v[%before], %o : !p, !kv_ring -> !tile.pending<!acc_o>
      %s1 = tile.wait_mma 1, %sp : !tile.pending<!acc_s>
      tile.release %k[%i] : !kv_ring
      %key = arith.muli %i, %c128 : i32
      %left = arith.subi %keys, %key : i32
      %lo = tile.fill %c0 : i32 -> !tile.rows<i32>
      %hi = tile.fill %left : i32 -> !tile.rows<i32>
      %bits = tile.range_bits %lo, %hi : !tile.rows<i32> -> !tile.bits<64x128>
      %s2 = tile.select %bits, %s1, %ninf : !tile.bits<64x128>, !acc_s
      %bm = tile.row_max %s2 : !acc_s -> !tile.rows<f32>
      %m1, %off, %fac = tile.map_rows %m, %bm : !tile.rows<f32>, !tile.rows<f32>
          -> !tile.rows<f32>, !tile.rows<f32>, !tile.rows<f32> {
      ^bb0(%a: f32, %b: f32, %row: i32):
        %n = arith.maxnumf %a, %b : f32
        %d = arith.subf %a, %n : f32
        %ds = arith.mulf %d, %unit : f32
        %f = tile.ex2 %ds : f32
        %ns = arith.mulf %n, %unit : f32
        %neg = arith.negf %ns : f32
        tile.yield %n, %neg, %f : f32, f32, f32
      }
      %e = tile.map %s2, %off : !acc_s, !tile.rows<f32> -> !acc_s {
      ^bb0(%x: f32, %b: f32, %row: i32, %col: i32):
        %y = math.fma %x, %unit, %b : f32
        %z = tile.ex2 %y : f32
        tile.yield %z : f32
      }
      %bs = tile.row_sum %e : !acc_s -> !tile.rows<f32, partial>
      %l1 = tile.map_rows %l, %fac, %bs : !tile.rows<f32, partial>, !tile.rows<f32>, !tile.rows<f32, partial>
          -> !tile.rows<f32, partial> {
      ^bb0(%a: f32, %b: f32, %c: f32, %row: i32):
        %x = math.fma %a, %b, %c : f32
        tile.yield %x : f32
      }
      %o1 = tile.wait_mma 0, %op : !tile.pending<!acc_o>
      tile.release %v[%before] : !kv_ring
      %p1 = tile.to_operand %e : !acc_s -> !p
      %o2 = tile.map %o1, %fac : !acc_o, !tile.rows<f32> -> !acc_o {
      ^bb0(%x: f32, %b: f32, %row: i32, %col: i32):
        %y = arith.mulf %x, %b : f32
        tile.yield %y : f32
      }
      scf.yield %m1, %l1, %o2, %p1 : !tile.rows<f32>, !tile.rows<f32, partial>, !acc_o, !p
    }
    %last = arith.subi %blocks, %c1 : i32
    tile.wait %v[%last] : !kv_ring
    %fp = tile.mma_register %r#3, %v[%last], %r#2 : !p, !kv_ring -> !tile.pending<!acc_o>
    %f = tile.wait_mma 0, %fp : !tile.pending<!acc_o>
    tile.release %v[%last] : !kv_ring
    %sum = tile.row_finish %r#1 : !tile.rows<f32, partial> -> !tile.rows<f32>
    %out = tile.map %f, %sum : !acc_o, !tile.rows<f32> -> !acc_o {
    ^bb0(%x: f32, %s: f32, %row: i32, %col: i32):
      %one = arith.constant 1.0 : f32
      %inv = arith.divf %one, %s : f32
      %y = arith.mulf %x, %inv : f32
      tile.yield %y : f32
    }
    %group_row = arith.muli %group, %c64 : i32
    %tile_row = arith.muli %block, %c128 : i32
    %at_row = arith.addi %tile_row, %group_row : i32
    %at_row64 = arith.extsi %at_row : i32 to i64
    %at = arith.muli %at_row64, %stride : i64
    %base = llvm.getelementptr %o_base[%at] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, bf16
    tile.store %out, %base, %stride, %c64 : !acc_o, !llvm.ptr<1> as bf16
  }
}
