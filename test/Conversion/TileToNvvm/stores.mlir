// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: tile-opt %s -convert-tile-to-nvvm | FileCheck %s

!acc = !tile.fragment<64x32xf32, acc>

// CHECK-LABEL: llvm.func @stores(
tile.kernel @stores words(1) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  tile.producer registers(24) {
  }
  tile.consumers groups(1) registers(240) {
  ^bb0(%group: i32):
    // CHECK-DAG: %[[C0:.*]] = llvm.mlir.constant(0 : i32) : i32
    // CHECK-DAG: %[[C2:.*]] = llvm.mlir.constant(2 : i32) : i32
    // CHECK-DAG: %[[C3:.*]] = llvm.mlir.constant(3 : i32) : i32
    // CHECK-DAG: %[[C4:.*]] = llvm.mlir.constant(4 : i32) : i32
    // CHECK-DAG: %[[C8:.*]] = llvm.mlir.constant(8 : i32) : i32
    // CHECK: %[[LANE:.*]] = llvm.and
    // CHECK: setmaxnreg.inc
    // CHECK: %[[GROUP:.*]] = llvm.sub
    // CHECK: %[[ROW:.*]] = llvm.add
    %f = arith.constant 1.0 : f32
    %o = tile.map -> !acc {
    ^bb0(%row: i32, %col: i32):
      %v = llvm.load volatile %args : !llvm.ptr -> f32
      tile.yield %v : f32
    }
    // Pairs 0, 2, 4, 6 are the first row, 1, 3, 5, 7 the second.
    // CHECK: %[[P0:.*]] = llvm.inline_asm asm_dialect = att "cvt.rn.bf16x2.f32 $0, $1, $2;"
    // CHECK: %[[P1:.*]] = llvm.inline_asm
    // CHECK: %[[P2:.*]] = llvm.inline_asm
    // CHECK: %[[P3:.*]] = llvm.inline_asm
    // CHECK: %[[P4:.*]] = llvm.inline_asm
    // CHECK: %[[P5:.*]] = llvm.inline_asm
    // CHECK: %[[P6:.*]] = llvm.inline_asm
    // CHECK: %[[P7:.*]] = llvm.inline_asm
    // CHECK: %[[BASE:.*]] = llvm.addrspacecast %{{.*}} : !llvm.ptr to !llvm.ptr<1>
    // CHECK: %[[STRIDE:.*]] = llvm.shl %{{.*}}, %{{.*}} : i64
    // CHECK: %[[QUAD:.*]] = llvm.and %[[LANE]], %[[C3]] : i32
    // CHECK: %[[ODD:.*]] = llvm.icmp "ne"
    // CHECK: %[[UPPER:.*]] = llvm.icmp "ne"
    // CHECK: %[[R0:.*]] = llvm.add %[[ROW]], %[[C0]] : i32
    // CHECK-DAG: %[[WIDE:.*]] = llvm.zext %[[R0]] : i32 to i64
    // CHECK-DAG: %[[AT:.*]] = llvm.mul %[[WIDE]], %[[STRIDE]] : i64
    // CHECK-DAG: llvm.shl %[[QUAD]], %[[C4]] : i32
    // CHECK: %[[TO:.*]] = llvm.getelementptr %[[BASE]][%{{.*}}] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
    // CHECK: %[[LIVE:.*]] = llvm.icmp "slt" %[[R0]], %[[GROUP]] : i32
    // CHECK: %[[FLAG:.*]] = llvm.zext %[[LIVE]] : i1 to i32
    // Round with the neighbour: odd lanes give the first of a pair and keep the second.
    // CHECK: %[[G:.*]] = llvm.select %[[ODD]], %[[P0]], %[[P2]] : i1, i32
    // CHECK: %[[H:.*]] = nvvm.shfl.sync bfly %{{.*}}, %[[G]], %{{.*}}, %{{.*}} : i32 -> i32
    // CHECK: %[[V0:.*]] = llvm.select %[[ODD]], %[[H]], %[[P0]] : i1, i32
    // CHECK: %[[V1:.*]] = llvm.select %[[ODD]], %[[P2]], %[[H]] : i1, i32
    // CHECK: llvm.select %[[ODD]], %[[P4]], %[[P6]] : i1, i32
    // CHECK: %[[V2:.*]] = llvm.select %[[ODD]], %{{.*}}, %[[P4]] : i1, i32
    // CHECK: %[[V3:.*]] = llvm.select %[[ODD]], %[[P6]], %{{.*}} : i1, i32
    // Round with the other pair of lanes.
    // CHECK: llvm.select %[[UPPER]], %[[V0]], %[[V2]] : i1, i32
    // CHECK: %[[W0:.*]] = llvm.select %[[UPPER]], %{{.*}}, %[[V0]] : i1, i32
    // CHECK: %[[W2:.*]] = llvm.select %[[UPPER]], %[[V2]], %{{.*}} : i1, i32
    // CHECK: llvm.select %[[UPPER]], %[[V1]], %[[V3]] : i1, i32
    // CHECK: %[[W1:.*]] = llvm.select %[[UPPER]], %{{.*}}, %[[V1]] : i1, i32
    // CHECK: %[[W3:.*]] = llvm.select %[[UPPER]], %[[V3]], %{{.*}} : i1, i32
    // CHECK: "{\0A.reg .pred P;\0Asetp.ne.b32 P, $5, 0;\0A@P st.global.v4.b32 [$0+0], {$1, $2, $3, $4};\0A}", "l,r,r,r,r,r,~{memory}" %[[TO]], %[[W0]], %[[W1]], %[[W2]], %[[W3]], %[[FLAG]]
    // CHECK: llvm.add %[[ROW]], %[[C8]] : i32
    // CHECK: llvm.select %[[ODD]], %[[P1]], %[[P3]] : i1, i32
    // CHECK: st.global.v4.b32
    %stride = arith.constant 64 : i64
    tile.store %o, %args, %stride, %group : !acc, !llvm.ptr as bf16
    // One lane of a quad.
    // CHECK: %[[Q:.*]] = llvm.and %[[LANE]], %[[C3]] : i32
    // CHECK: %[[FIRST:.*]] = llvm.icmp "eq" %[[Q]], %[[C0]] : i32
    // CHECK: %[[RR:.*]] = llvm.add %[[ROW]], %[[C0]] : i32
    // CHECK: %[[IN:.*]] = llvm.icmp "slt" %[[RR]], %[[GROUP]] : i32
    // CHECK: llvm.and %[[FIRST]], %[[IN]] : i1
    // CHECK: llvm.shl %[[RR]], %[[C2]] : i32
    // CHECK: "{\0A.reg .pred P;\0Asetp.ne.b32 P, $2, 0;\0A@P st.global.b32 [$0], $1;\0A}", "l,f,r,~{memory}"
    // CHECK: st.global.b32
    %rows = tile.fill %f : f32 -> !tile.rows<f32>
    tile.store_rows %rows, %args, %group : !tile.rows<f32>, !llvm.ptr
    // CHECK: st.global.b32 [$0], $1;\0A}", "l,r,r,~{memory}"
    %ints = tile.fill %group : i32 -> !tile.rows<i32>
    tile.store_rows %ints, %args, %group : !tile.rows<i32>, !llvm.ptr
  }
}

// Two row groups have 64 rows of two column groups each at 0 and 16384, behind them no barrier. A lane of each
// warp waits until its copies before have read, the warp meets, every lane stores its row of four 8x8 matrices;
// what was stored is shown to the copies, the warp meets again, and the lane copies its 16 rows of both column
// groups.
!wide = !tile.fragment<64x128xf32, acc>

// CHECK-LABEL: llvm.func @box(
// CHECK-SAME: tile.shared_bytes = 32768 : i64
tile.kernel @box words(1) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  tile.producer registers(24) {
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
    // CHECK-DAG: %[[C16:.*]] = llvm.mlir.constant(16 : i32) : i32
    // CHECK-DAG: %[[C128:.*]] = llvm.mlir.constant(128 : i32) : i32
    // CHECK: %[[LANE:.*]] = llvm.and
    // CHECK: setmaxnreg.inc
    // CHECK: %[[GROUP:.*]] = llvm.sub
    // CHECK-COUNT-32: cvt.rn.f16x2.f32
    %f = arith.constant 1.0 : f32
    %o = tile.fill %f : f32 -> !wide
    // Each warp writes its own 16 rows, without the others.
    // CHECK: %[[FIRST:.*]] = llvm.mul %{{.*}}, %[[C16]] : i32
    // CHECK-NEXT: %[[ROW:.*]] = llvm.add %[[GROUP]], %[[FIRST]] : i32
    // CHECK-NEXT: %[[BYTES:.*]] = llvm.mul %[[FIRST]], %[[C128]] : i32
    // CHECK-NEXT: %[[SOURCE:.*]] = llvm.add %{{.*}}, %[[BYTES]] : i32
    // CHECK: "{\0A.reg .pred P;\0Asetp.eq.u32 P, $0, 0;\0A@P cp.async.bulk.wait_group.read 0;\0A}", "r,~{memory}" %[[LANE]] : (i32) -> ()
    // CHECK-NOT: nvvm.barrier
    // CHECK: nvvm.bar.warp.sync
    // CHECK-COUNT-8: stmatrix.sync.aligned.m8n8.x4.shared.b16 [$0], {$1, $2, $3, $4};
    // CHECK-NOT: stmatrix
    // CHECK: fence.proxy.async.shared::cta;
    // CHECK-NOT: nvvm.barrier
    // CHECK: nvvm.bar.warp.sync
    // CHECK: setp.eq.u32 P, $5, 0;\0A@P cp.async.bulk.tensor.5d.global.shared::cta.bulk_group [$0, {$2, $3, 0, $4, $2}], [$1+0];\0A@P cp.async.bulk.tensor.5d.global.shared::cta.bulk_group [$0, {$2, $3, 1, $4, $2}], [$1+8192];\0A@P cp.async.bulk.commit_group;\0A}", "l,r,r,r,r,r,~{memory}" %arg3, %[[SOURCE]], %{{.*}}, %[[ROW]], %[[GROUP]], %[[LANE]]
    tile.store_box %o to %mo[%group, %group] columns(128) : !wide as f16
    // The memory is there until all is read.
    // CHECK: cp.async.bulk.wait_group.read 0;
  }
}

// Half of the columns at a time: between the halves a lane waits and the warp meets.
// CHECK-LABEL: llvm.func @halves(
// CHECK-SAME: tile.shared_bytes = 8192 : i64
tile.kernel @halves words(1) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  tile.producer registers(24) {
  }
  tile.consumers groups(1) registers(240) {
  ^bb0(%group: i32):
    %f = arith.constant 1.0 : f32
    %o = tile.fill %f : f32 -> !wide
    // CHECK: cp.async.bulk.wait_group.read 0;
    // CHECK-COUNT-4: stmatrix
    // CHECK: {$2, $3, 0, $4, $2}], [$1+0];
    // CHECK: cp.async.bulk.wait_group.read 0;
    // CHECK-NOT: nvvm.barrier
    // CHECK: nvvm.bar.warp.sync
    // CHECK-COUNT-4: stmatrix
    // CHECK: {$2, $3, 1, $4, $2}], [$1+0];
    tile.store_box %o to %mo[%group, %group] columns(64) : !wide as bf16
  }
}
