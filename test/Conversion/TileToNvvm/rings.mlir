// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: tile-opt %s -convert-tile-to-nvvm -cse | FileCheck %s

!two = !tile.ring<2 x 128x128xbf16>
!three = !tile.ring<3 x 64x64xbf16>
!one = !tile.ring<1 x 64x64xbf16>

tile.kernel @rings words(1) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  %k = tile.ring arrivals(8) : !two
  %q = tile.ring arrivals(4) : !three
  %r = tile.ring arrivals(4) : !one
  // CHECK-LABEL: llvm.func @rings(
  // CHECK-SAME: %[[MQ:[^:]*]]: !llvm.ptr {{.*}}, %[[MK:[^:]*]]: !llvm.ptr {{.*}}, %{{[^:]*}}: !llvm.ptr {{.*}}, %{{[^:]*}}: !llvm.ptr {{.*}}, %{{[^:]*}}: !llvm.ptr
  // CHECK-DAG: %[[C0:.*]] = llvm.mlir.constant(0 : i32) : i32
  // CHECK-DAG: %[[C1:.*]] = llvm.mlir.constant(1 : i32) : i32
  // CHECK-DAG: %[[C3:.*]] = llvm.mlir.constant(3 : i32) : i32
  // CHECK-DAG: %[[C7:.*]] = llvm.mlir.constant(7 : i32) : i32
  // CHECK-DAG: %[[TILE:.*]] = llvm.mlir.constant(32768 : i32) : i32
  // CHECK-DAG: %[[GROUPBYTES:.*]] = llvm.mlir.constant(16384 : i32) : i32
  // CHECK-DAG: %[[QDATA:.*]] = llvm.mlir.constant(65536 : i32) : i32
  // CHECK: %[[BASE:.*]] = llvm.ptrtoint
  // CHECK: %[[OWNLANE:.*]] = llvm.and
  tile.producer registers(24) {
    %it = tile.block_id : i32
    %zero = arith.constant 0 : i32
    // Powers of two: shifts. Acquire waits for the other parity.
    // CHECK: setmaxnreg.dec
    // CHECK: %[[IT:.*]] = nvvm.read.ptx.sreg.ctaid.x : i32
    // The lanes meet, so that none is two phases ahead of another.
    // CHECK-NEXT: nvvm.bar.warp.sync %{{.*}} : i32
    // CHECK-NEXT: %[[ROUND:.*]] = llvm.lshr %[[IT]], %[[C1]] : i32
    // CHECK-NEXT: %[[STAGE:.*]] = llvm.and %[[IT]], %[[C1]] : i32
    // CHECK-NEXT: %[[PARITY:.*]] = llvm.and %[[ROUND]], %[[C1]] : i32
    // CHECK-DAG: %[[AT8:.*]] = llvm.shl %[[STAGE]], %[[C3]] : i32
    // CHECK-DAG: %[[BARRIER:.*]] = llvm.add %[[BASE]], %[[AT8]] : i32
    // CHECK-DAG: %[[OTHER:.*]] = llvm.xor %[[PARITY]], %[[C1]] : i32
    // CHECK: llvm.inline_asm has_side_effects asm_dialect = att "{\0A.reg .pred P;\0AWAIT:\0Ambarrier.try_wait.parity.shared::cta.b64 P, [$0+98320], $1;\0A@P bra DONE;\0Abra WAIT;\0ADONE:\0A}", "r,r,~{memory}" %[[BARRIER]], %[[OTHER]]
    tile.acquire %k[%it] : !two
    // CHECK-NEXT: "{\0A.reg .pred P;\0A.reg .b32 l;\0Amov.u32 l, %laneid;\0Asetp.eq.u32 P, l, 0;\0A@P mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0+98304], $1;\0A}", "r,r,~{memory}" %[[BARRIER]], %[[TILE]]
    tile.expect %k[%it] : !two
    // The lane is read anew.
    // CHECK: %[[LANE:.*]] = llvm.inline_asm has_side_effects asm_dialect = att "mov.u32 $0, %laneid;", "=r,~{memory}"
    // CHECK-DAG: %[[STAGEAT:.*]] = llvm.mul %[[STAGE]], %[[TILE]] : i32
    // CHECK-DAG: %[[DATA:.*]] = llvm.add %{{.*}}, %[[STAGEAT]] : i32
    // CHECK-DAG: %[[COLUMNS:.*]] = llvm.mul %[[IT]], %[[GROUPBYTES]] : i32
    // CHECK: %[[TO:.*]] = llvm.add %[[DATA]], %[[COLUMNS]] : i32
    // CHECK-NEXT: %[[ROWS:.*]] = llvm.shl %[[LANE]], %[[C7]] : i32
    // CHECK-NEXT: %[[TARGET:.*]] = llvm.add %[[TO]], %[[ROWS]] : i32
    // CHECK-NEXT: "cp.async.bulk.tensor.5d.shared::cta.global.mbarrier::complete_tx::bytes [$0], [$1, {$3, $4, $5, $6, $7}], [$2+98304];", "r,l,r,r,r,r,r,r,~{memory}" %[[TARGET]], %[[MK]], %[[BARRIER]], %[[C0]], %[[LANE]], %[[IT]], %[[C0]], %[[LANE]]
    %lane = tile.thread_id : i32
    tile.copy %mk[%lane, %it, %zero, %lane] to %k[%it] at %lane : !two
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
    %it = tile.block_id : i32
    // Other numbers of stages: quotient and remainder.
    // CHECK: setmaxnreg.inc
    // CHECK: %[[USE:.*]] = nvvm.read.ptx.sreg.ctaid.x : i32
    // CHECK-NEXT: %[[Q:.*]] = llvm.udiv %[[USE]], %[[C3]] : i32
    // CHECK-NEXT: %[[Q3:.*]] = llvm.mul %[[Q]], %[[C3]] : i32
    // CHECK-NEXT: %[[REM:.*]] = llvm.sub %[[USE]], %[[Q3]] : i32
    // CHECK-NEXT: %[[PAR:.*]] = llvm.and %[[Q]], %[[C1]] : i32
    // CHECK-NEXT: %[[REM8:.*]] = llvm.shl %[[REM]], %[[C3]] : i32
    // CHECK-NEXT: %[[QBAR:.*]] = llvm.add %{{.*}}, %[[REM8]] : i32
    // CHECK-NEXT: mbarrier.try_wait.parity.shared::cta.b64 P, [$0+98336], {{.*}} %[[QBAR]], %[[PAR]]
    tile.wait %q[%it] : !three
    // CHECK-NEXT: "{\0A.reg .pred P;\0Asetp.eq.u32 P, $1, 0;\0A@P mbarrier.arrive.shared::cta.b64 _, [$0+98360];\0A}", "r,r,~{memory}" %[[QBAR]], %[[OWNLANE]]
    tile.release %q[%it] : !three
    // One stage: every use is a round.
    // CHECK-NEXT: %[[PAR1:.*]] = llvm.and %[[USE]], %[[C1]] : i32
    // CHECK: mbarrier.try_wait{{.*}} %{{.*}}, %[[PAR1]]
    tile.wait %r[%it] : !one
  }
}
