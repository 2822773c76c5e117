// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Records from the producer to the row groups, claims across CTAs, turns of row groups.
// RUN: tile-opt %s -convert-tile-to-nvvm -cse | FileCheck %s

// Two stages of 8192 bytes with 2 + 2 barriers, a queue of 2 + 2 barriers and two records of 48 bytes.
// CHECK-LABEL: llvm.func @handover(
// CHECK-SAME: %[[ARGS:[^:]*]]: !llvm.ptr {llvm.align = 8
// CHECK-SAME: tile.shared_bytes = 16544 : i64
tile.kernel @handover words(1) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  %k = tile.ring arrivals(8) : !tile.ring<2 x 64x64xbf16>
  %n = tile.queue arrivals(8) : !tile.queue<2 x 3>
  // CHECK-DAG: %[[C0:.*]] = llvm.mlir.constant(0 : i32) : i32
  // CHECK-DAG: %[[C1:.*]] = llvm.mlir.constant(1 : i32) : i32
  // CHECK-DAG: %[[C2:.*]] = llvm.mlir.constant(2 : i32) : i32
  // CHECK-DAG: %[[C3:.*]] = llvm.mlir.constant(3 : i32) : i32
  // CHECK-DAG: %[[C256:.*]] = llvm.mlir.constant(256 : i32) : i32
  // Barriers of the ring, then those of the queue: one arrival makes it full, 8 empty.
  // CHECK-COUNT-4: mbarrier.init
  // CHECK: mbarrier.init{{.*}} %{{.*}}, %[[C1]]
  // CHECK: mbarrier.init{{.*}} %{{.*}}, %[[C1]]
  // CHECK: mbarrier.init{{.*}} %{{.*}}, %[[C8:.*]] : (i32, i32)
  // CHECK: mbarrier.init{{.*}} %{{.*}}, %[[C8]] : (i32, i32)
  // CHECK-NOT: mbarrier.init
  tile.producer registers(24) {
    // CHECK: setmaxnreg.dec
    // CHECK: %[[GRID:.*]] = nvvm.read.ptx.sreg.nctaid.x : i32
    %grid = tile.grid_size : i32
    // The first lane claims; who gets the last number sets the counter back.
    // CHECK: %[[LAST:.*]] = llvm.sub %[[GRID]], %[[C1]] : i32
    // CHECK: %[[COUNTER:.*]] = llvm.addrspacecast %[[ARGS]] : !llvm.ptr to !llvm.ptr<1>
    // CHECK: %[[CLAIM:.*]] = llvm.inline_asm has_side_effects {{.*}}setp.eq.u32 P, $2, 0;\0Amov.b32 $0, 0;\0A@P atom.relaxed.gpu.global.add.u32 $0, [$1], 1;\0Asetp.eq.and.u32 Q, $0, $3, P;\0A@Q st.relaxed.gpu.global.u32 [$1], 0;\0A}", "=&r,l,r,r,~{memory}" %[[COUNTER]], %{{.*}}, %[[LAST]]
    // CHECK: %[[ITEM:.*]] = nvvm.shfl.sync idx %{{.*}}, %[[CLAIM]], %[[C0]]
    %claim = tile.claim %args of %grid : !llvm.ptr
    // A lane reads a row, of those there are and there is room for, then waits for the other parity of the
    // empty barrier. Lane 0 writes the values, each lane its row; they meet before lane 0 arrives.
    // CHECK: llvm.intr.smin(%[[GRID]], %[[C2]])
    // CHECK: %[[COPIED:.*]] = llvm.inline_asm has_side_effects {{.*}}@P ld.global.nc.v4.b32 {$0, $1, $2, $3}, [$4];
    // CHECK: nvvm.bar.warp.sync %{{.*}} : i32
    // CHECK: llvm.xor
    // CHECK: mbarrier.try_wait.parity.shared::cta.b64 P, [$0+16432], $1;
    // CHECK: setp.eq.u32 P, $5, 0;\0A@P st.shared.v4.b32 [$0+16448], {$1, $2, $3, $4};\0A}", "r,r,r,r,r,r,~{memory}" %{{.*}}, %[[ITEM]], %[[GRID]], %[[GRID]], %[[GRID]]
    // CHECK: setp.ne.b32 P, $5, 0;\0A@P st.shared.v4.b32 [$0+16464], {$1, $2, $3, $4};
    // CHECK-NEXT: nvvm.bar.warp.sync %{{.*}} : i32
    // CHECK: mbarrier.arrive.shared::cta.b64 _, [$0+16416];
    tile.push %claim, %grid, %grid, %grid and %grid rows of %args to %n[%grid] : !llvm.ptr, !tile.queue<2 x 3>
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
    // The last group passes the first turn to group 0.
    // CHECK: setmaxnreg.inc
    // CHECK: %[[GROUP:.*]] = llvm.sub
    // CHECK: %[[ISLAST:.*]] = llvm.icmp "eq" %[[GROUP]], %[[C1]] : i32
    // CHECK: llvm.cond_br %[[ISLAST]], ^[[OPEN:bb[0-9]+]], ^[[START:bb[0-9]+]]
    // CHECK: ^[[OPEN]]:
    // CHECK: %[[TO:.*]] = llvm.select %{{.*}}, %[[C0]], %{{.*}} : i1, i32
    // CHECK: %[[ID:.*]] = llvm.add %[[TO]], %[[C3]] : i32
    // CHECK: "bar.arrive $0, $1;", "r,r,~{memory}" %[[ID]], %[[C256]]
    // CHECK: ^[[START]]:
    // CHECK-NEXT: %[[OWN:.*]] = llvm.add %[[GROUP]], %[[C3]] : i32
    // CHECK: %[[NEXT:.*]] = llvm.select
    // CHECK-NEXT: %[[NEXTID:.*]] = llvm.add %[[NEXT]], %[[C3]] : i32
    // CHECK: mbarrier.try_wait.parity.shared::cta.b64 P, [$0+16416], $1;
    tile.front %n[%group] : !tile.queue<2 x 3>
    // CHECK: llvm.inline_asm has_side_effects {{.*}}"ld.shared.v4.b32 {$0, $1, $2, $3}, [$4+16448];"
    %item, %x, %y, %z = tile.read %group of %n[%group] : !tile.queue<2 x 3>
    // Every lane has read.
    // CHECK: nvvm.bar.warp.sync %{{.*}} : i32
    // CHECK: mbarrier.arrive.shared::cta.b64 _, [$0+16432];
    tile.pop %n[%group] : !tile.queue<2 x 3>
    // CHECK: nvvm.barrier id = %[[OWN]] number_of_threads = %[[C256]]
    tile.await_turn
    // CHECK: "bar.arrive $0, $1;", "r,r,~{memory}" %[[NEXTID]], %[[C256]]
    tile.pass_turn
    llvm.store %item, %args : i32, !llvm.ptr
  }
}
