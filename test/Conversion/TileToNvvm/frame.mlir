// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: tile-opt %s -convert-tile-to-nvvm | FileCheck %s

// The frame of a kernel: parameters, shared memory, barriers, roles.

// CHECK: module attributes {llvm.target_triple = "nvptx64-nvidia-cuda"}
// CHECK: llvm.mlir.global external @tile_shared_memory() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>
// Three stages of 128 x 64 and one of 64 x 128, then 3 + 3 + 1 + 1 barriers.
// CHECK-LABEL: llvm.func @frame(
// CHECK-SAME: %{{[^:]*}}: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>, nvvm.grid_constant}
// CHECK-SAME: %{{[^:]*}}: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>, nvvm.grid_constant}
// CHECK-SAME: %{{[^:]*}}: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>, nvvm.grid_constant}
// CHECK-SAME: %{{[^:]*}}: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>, nvvm.grid_constant}
// CHECK-SAME: %[[ARGS:[^:]*]]: !llvm.ptr {llvm.align = 8 : i64, llvm.byval = !llvm.array<17 x i64>}
// CHECK-SAME: nvvm.kernel
// CHECK-SAME: nvvm.maxntid = array<i32: 384>
// CHECK-SAME: nvvm.minctasm = 1 : i32
// CHECK-SAME: tile.key_tile = 128 : i64
// CHECK-SAME: tile.shared_bytes = 65600 : i64
// CHECK-SAME: tile.threads = 384 : i64
tile.kernel @frame words(17) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  %k = tile.ring arrivals(8) : !tile.ring<3 x 128x64xbf16>
  %q = tile.ring arrivals(4) : !tile.ring<1 x 64x128xf16>
  tile.producer registers(24) {
    %lane = tile.thread_id : i32
    llvm.store %lane, %args : i32, !llvm.ptr
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
    %thread = tile.thread_id : i32
    %block = tile.block_id : i32
    %sum = arith.addi %thread, %block : i32
    %both = arith.addi %sum, %group : i32
    llvm.store %both, %args : i32, !llvm.ptr
  }
} {tile.key_tile = 128 : i64}
// CHECK-DAG: %[[ONE:.*]] = llvm.mlir.constant(1 : i32) : i32
// CHECK-DAG: %[[FOUR:.*]] = llvm.mlir.constant(4 : i32) : i32
// CHECK-DAG: %[[FIVE:.*]] = llvm.mlir.constant(5 : i32) : i32
// CHECK-DAG: %[[EIGHT:.*]] = llvm.mlir.constant(8 : i32) : i32
// CHECK-DAG: %[[FULL:.*]] = llvm.mlir.constant(65536 : i32) : i32
// CHECK-DAG: %[[EMPTY:.*]] = llvm.mlir.constant(65560 : i32) : i32
// CHECK-DAG: %[[QFULL:.*]] = llvm.mlir.constant(65584 : i32) : i32
// CHECK-DAG: %[[QEMPTY:.*]] = llvm.mlir.constant(65592 : i32) : i32
// CHECK: %[[PTR:.*]] = llvm.mlir.addressof @tile_shared_memory : !llvm.ptr<3>
// CHECK-NEXT: %[[BASE:.*]] = llvm.ptrtoint %[[PTR]] : !llvm.ptr<3> to i32
// CHECK-NEXT: %[[TID:.*]] = nvvm.read.ptx.sreg.tid.x : i32
// CHECK-NEXT: %[[LANE:.*]] = llvm.and %[[TID]], %{{.*}} : i32
// CHECK-NEXT: %[[W:.*]] = llvm.lshr %[[TID]], %[[FIVE]] : i32
// CHECK-NEXT: %[[WARP:.*]] = nvvm.shfl.sync idx %{{.*}}, %[[W]], %{{.*}}, %{{.*}} : i32 -> i32
// CHECK: llvm.cond_br %{{.*}}, ^[[INIT:bb[0-9]+]], ^[[READY:bb[0-9]+]]
// CHECK: ^[[INIT]]:
// CHECK-COUNT-4: prefetch.tensormap [$0]
// CHECK: %[[F0:.*]] = llvm.add %[[BASE]], %[[FULL]] : i32
// CHECK-NEXT: llvm.inline_asm has_side_effects asm_dialect = att "mbarrier.init.shared::cta.b64 [$0], $1;", "r,r,~{memory}" %[[F0]], %[[ONE]]
// CHECK: %[[E0:.*]] = llvm.add %[[BASE]], %[[EMPTY]] : i32
// CHECK-NEXT: "mbarrier.init.shared::cta.b64 [$0], $1;", "r,r,~{memory}" %[[E0]], %[[EIGHT]]
// CHECK-COUNT-2: mbarrier.init
// CHECK: %[[QF:.*]] = llvm.add %[[BASE]], %[[QFULL]] : i32
// CHECK-NEXT: mbarrier.init{{.*}} %[[QF]], %[[ONE]]
// CHECK: %[[QE:.*]] = llvm.add %[[BASE]], %[[QEMPTY]] : i32
// CHECK-NEXT: mbarrier.init{{.*}} %[[QE]], %[[FOUR]]
// CHECK-NEXT: "fence.mbarrier_init.release.cluster;"
// CHECK-NEXT: llvm.br ^[[READY]]
// CHECK: ^[[READY]]:
// CHECK-NEXT: nvvm.barrier{{$}}
// CHECK-NEXT: %[[ISPRODUCER:.*]] = llvm.icmp "ult" %[[WARP]], %[[FOUR]] : i32
// CHECK-NEXT: llvm.cond_br %[[ISPRODUCER]], ^[[PRODUCER:bb[0-9]+]], ^[[CONSUMERS:bb[0-9]+]]
// CHECK: ^[[PRODUCER]]:
// CHECK-NEXT: "setmaxnreg.dec.sync.aligned.u32 24;"
// CHECK-NEXT: %[[FIRST:.*]] = llvm.icmp "eq" %[[WARP]], %{{.*}} : i32
// CHECK-NEXT: llvm.cond_br %[[FIRST]], ^[[WORK:bb[0-9]+]], ^[[DONE:bb[0-9]+]]
// CHECK: ^[[WORK]]:
// CHECK: %[[READ:.*]] = llvm.inline_asm has_side_effects asm_dialect = att "mov.u32 $0, %laneid;"
// CHECK-NEXT: llvm.store %[[READ]], %[[ARGS]]
// CHECK-NEXT: llvm.br ^[[DONE]]
// CHECK: ^[[CONSUMERS]]:
// CHECK-NEXT: "setmaxnreg.inc.sync.aligned.u32 240;"
// CHECK-NEXT: %[[WG:.*]] = llvm.lshr %[[WARP]], %{{.*}} : i32
// CHECK-NEXT: %[[GROUP:.*]] = llvm.sub %[[WG]], %[[ONE]] : i32
// CHECK-NEXT: %[[THREAD:.*]] = llvm.and %[[TID]], %{{.*}} : i32
// CHECK: %[[BLOCK:.*]] = nvvm.read.ptx.sreg.ctaid.x : i32
// CHECK-NEXT: %[[SUM:.*]] = llvm.add %[[THREAD]], %[[BLOCK]] : i32
// CHECK-NEXT: %[[BOTH:.*]] = llvm.add %[[SUM]], %[[GROUP]] : i32
// CHECK-NEXT: llvm.store %[[BOTH]], %[[ARGS]]
// CHECK-NEXT: llvm.br ^[[DONE]]
// CHECK: ^[[DONE]]:
// CHECK-NEXT: llvm.return
