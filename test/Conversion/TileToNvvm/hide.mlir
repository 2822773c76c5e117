// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: tile-opt %s -convert-tile-to-nvvm | FileCheck %s

!v = !tile.ring<2 x 160x128xbf16>

// CHECK-LABEL: llvm.func @hide(
// Two tiles and four barriers; no scratch memory.
// CHECK-SAME: tile.shared_bytes = 81952 : i64
tile.kernel @hide words(1) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  %v = tile.ring arrivals(8) : !v
  tile.producer registers(24) {
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
    // CHECK-DAG: %[[C0:.*]] = llvm.mlir.constant(0 : i32) : i32
    // CHECK-DAG: %[[C1:.*]] = llvm.mlir.constant(1 : i32) : i32
    // CHECK-DAG: %[[C4:.*]] = llvm.mlir.constant(4 : i32) : i32
    // CHECK-DAG: %[[C7:.*]] = llvm.mlir.constant(7 : i32) : i32
    // CHECK-DAG: %[[C31:.*]] = llvm.mlir.constant(31 : i32) : i32
    // CHECK-DAG: %[[C128:.*]] = llvm.mlir.constant(128 : i32) : i32
    // CHECK-DAG: %[[C160:.*]] = llvm.mlir.constant(160 : i32) : i32
    // CHECK-DAG: %[[TILE:.*]] = llvm.mlir.constant(40960 : i32) : i32
    // CHECK: setmaxnreg.inc
    // CHECK: %[[GROUP:.*]] = llvm.sub
    // CHECK: %[[THREAD:.*]] = llvm.and
    // CHECK: %[[OTHER:.*]] = nvvm.read.ptx.sreg.ctaid.x
    // CHECK: %[[AT:.*]] = llvm.mul %{{.*}}, %[[TILE]] : i32
    // CHECK-NEXT: %[[BASE:.*]] = llvm.add %{{.*}}, %[[AT]] : i32
    // A thread has row t; its bit of the first word decides.
    // CHECK-NEXT: %[[ROW:.*]] = llvm.add %[[THREAD]], %[[C0]] : i32
    // CHECK-NEXT: %[[NUMBER:.*]] = llvm.and %[[ROW]], %[[C31]] : i32
    // CHECK-NEXT: %[[SHIFTED:.*]] = llvm.lshr %[[GROUP]], %[[NUMBER]] : i32
    // CHECK-NEXT: %[[BIT:.*]] = llvm.and %[[SHIFTED]], %[[C1]] : i32
    // CHECK-NEXT: %[[SEEN:.*]] = llvm.icmp "ne" %[[BIT]], %[[C0]] : i32
    // CHECK-NEXT: llvm.cond_br %[[SEEN]], ^[[NEXT:bb[0-9]+]], ^[[ZERO:bb[0-9]+]]
    // CHECK: ^[[ZERO]]:
    // Eight rows next to each other start at the eight pieces of their 128 bytes.
    // CHECK-NEXT: %[[EIGHTH:.*]] = llvm.and %[[ROW]], %[[C7]] : i32
    // CHECK-NEXT: %[[PIECE:.*]] = llvm.shl %[[EIGHTH]], %[[C4]] : i32
    // CHECK-NEXT: %[[BYTES:.*]] = llvm.shl %[[ROW]], %[[C7]] : i32
    // CHECK-NEXT: %[[LINE:.*]] = llvm.add %[[BASE]], %[[BYTES]] : i32
    // CHECK-NEXT: %[[TO:.*]] = llvm.or %[[LINE]], %[[PIECE]] : i32
    // Every piece of both column groups.
    // CHECK-NEXT: xor.b32 a, $0, 0;\0Ast.shared.v4.b32 [a+0], {$1, $1, $1, $1};\0Ast.shared.v4.b32 [a+20480], {$1, $1, $1, $1};\0Axor.b32 a, $0, 16;\0Ast{{.*}}xor.b32 a, $0, 112;\0Ast.shared.v4.b32 [a+0], {$1, $1, $1, $1};\0Ast.shared.v4.b32 [a+20480], {$1, $1, $1, $1};\0A}", "r,r,~{memory}" %[[TO]], %[[C0]]
    // CHECK-NEXT: llvm.br ^[[NEXT]]
    // Row t + 128 where there is one; its bit of the second word.
    // CHECK: ^[[NEXT]]:
    // CHECK-NEXT: %[[ROW2:.*]] = llvm.add %[[THREAD]], %[[C128]] : i32
    // CHECK-NEXT: %[[INSIDE:.*]] = llvm.icmp "slt" %[[ROW2]], %[[C160]] : i32
    // CHECK-NEXT: llvm.cond_br %[[INSIDE]], ^[[SECOND:bb[0-9]+]], ^[[AFTER:bb[0-9]+]]
    // CHECK: ^[[SECOND]]:
    // CHECK-NEXT: %[[NUMBER2:.*]] = llvm.and %[[ROW2]], %[[C31]] : i32
    // CHECK-NEXT: llvm.lshr %[[OTHER]], %[[NUMBER2]] : i32
    // CHECK: llvm.cond_br %{{.*}}, ^[[AFTER]], ^{{bb[0-9]+}}
    // CHECK: st.shared.v4.b32
    // CHECK: ^[[AFTER]]:
    // CHECK-NEXT: "fence.proxy.async.shared::cta;"
    // CHECK-NEXT: %[[ID:.*]] = llvm.add %[[GROUP]], %[[C1]] : i32
    // CHECK-NEXT: nvvm.barrier id = %[[ID]] number_of_threads = %[[C128]]
    %other = tile.block_id : i32
    tile.hide %v[%group] keep %group, %other : !v
  }
}

!w = !tile.ring<3 x 64x64xf16>

// CHECK-LABEL: llvm.func @hide_unseen(
// Three tiles, six barriers, three stages of 2 groups x 4 warps x 4 lanes x 1 word.
// CHECK-SAME: tile.shared_bytes = 25008 : i64
tile.kernel @hide_unseen words(1) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  %v = tile.ring arrivals(8) : !w
  tile.producer registers(24) {
  }
  tile.consumers groups(2) registers(240) {
  ^bb0(%group: i32):
    %lo = tile.fill %group : i32 -> !tile.rows<i32>
    %bits = tile.range_bits %lo, %lo : !tile.rows<i32> -> !tile.bits<64x64>
    %sharing = tile.block_id : i32
    // CHECK-DAG: %[[C0:.*]] = llvm.mlir.constant(0 : i32) : i32
    // CHECK-DAG: %[[C1:.*]] = llvm.mlir.constant(1 : i32) : i32
    // CHECK-DAG: %[[C2:.*]] = llvm.mlir.constant(2 : i32) : i32
    // CHECK-DAG: %[[C3:.*]] = llvm.mlir.constant(3 : i32) : i32
    // CHECK-DAG: %[[C4:.*]] = llvm.mlir.constant(4 : i32) : i32
    // CHECK-DAG: %[[C5:.*]] = llvm.mlir.constant(5 : i32) : i32
    // CHECK-DAG: %[[C7:.*]] = llvm.mlir.constant(7 : i32) : i32
    // CHECK-DAG: %[[C8:.*]] = llvm.mlir.constant(8 : i32) : i32
    // CHECK-DAG: %[[C16:.*]] = llvm.mlir.constant(16 : i32) : i32
    // CHECK-DAG: %[[C31:.*]] = llvm.mlir.constant(31 : i32) : i32
    // CHECK-DAG: %[[C64:.*]] = llvm.mlir.constant(64 : i32) : i32
    // CHECK-DAG: %[[C112:.*]] = llvm.mlir.constant(112 : i32) : i32
    // CHECK-DAG: %[[C128:.*]] = llvm.mlir.constant(128 : i32) : i32
    // CHECK-DAG: %[[C256:.*]] = llvm.mlir.constant(256 : i32) : i32
    // CHECK-DAG: %[[SCRATCH:.*]] = llvm.mlir.constant(24624 : i32) : i32
    // CHECK: %[[SHARED:.*]] = llvm.ptrtoint
    // CHECK: %[[LANE:.*]] = llvm.and
    // CHECK: %[[WARPS:.*]] = nvvm.shfl.sync
    // CHECK: setmaxnreg.inc
    // CHECK: %[[GROUP:.*]] = llvm.sub
    // CHECK: shl.b32
    // CHECK-NEXT: %[[WORD0:.*]] = llvm.and
    // CHECK: shl.b32
    // CHECK-NEXT: %[[WORD1:.*]] = llvm.and
    // CHECK-NEXT: %[[SHARING:.*]] = nvvm.read.ptx.sreg.ctaid.x
    // CHECK-DAG: %[[S0:.*]] = llvm.add %[[SHARED]], %[[SCRATCH]] : i32
    // CHECK-DAG: %[[STAGEAT:.*]] = llvm.mul %{{.*}}, %[[C128]] : i32
    // CHECK: %[[BASE:.*]] = llvm.add %[[S0]], %[[STAGEAT]] : i32
    // CHECK-NEXT: %[[WARP:.*]] = llvm.and %[[WARPS]], %[[C3]] : i32
    // CHECK-DAG: %[[GROUPAT:.*]] = llvm.mul %[[GROUP]], %[[C64]] : i32
    // CHECK-DAG: %[[WARPAT:.*]] = llvm.mul %[[WARP]], %[[C16]] : i32
    // CHECK-DAG: %[[LANEAT:.*]] = llvm.mul %[[LANE]], %[[C4]] : i32
    // CHECK-DAG: %[[T0:.*]] = llvm.add %[[BASE]], %[[GROUPAT]] : i32
    // CHECK-DAG: %[[T1:.*]] = llvm.add %[[WARPAT]], %[[LANEAT]] : i32
    // CHECK: %[[OWN:.*]] = llvm.add %[[T0]], %[[T1]] : i32
    // The union of the warp's 16 rows.
    // CHECK-NEXT: %[[U0:.*]] = llvm.or %[[WORD0]], %[[WORD1]] : i32
    // CHECK-NEXT: %[[U1:.*]] = nvvm.shfl.sync bfly %{{.*}}, %[[U0]], %[[C4]], %[[C31]] : i32 -> i32
    // CHECK-NEXT: %[[U2:.*]] = llvm.or %[[U0]], %[[U1]] : i32
    // CHECK-NEXT: %[[U3:.*]] = nvvm.shfl.sync bfly %{{.*}}, %[[U2]], %[[C8]], %[[C31]] : i32 -> i32
    // CHECK-NEXT: %[[U4:.*]] = llvm.or %[[U2]], %[[U3]] : i32
    // CHECK-NEXT: %[[U5:.*]] = nvvm.shfl.sync bfly %{{.*}}, %[[U4]], %[[C16]], %[[C31]] : i32 -> i32
    // CHECK-NEXT: %[[U6:.*]] = llvm.or %[[U4]], %[[U5]] : i32
    // CHECK-NEXT: "{\0A.reg .pred P;\0Asetp.lt.u32 P, $2, 4;\0A@P st.shared.b32 [$0+0], $1;\0A}", "r,r,r,~{memory}" %[[OWN]], %[[U6]], %[[LANE]]
    // Both groups, or this one alone.
    // CHECK-NEXT: %[[BOTH:.*]] = llvm.icmp "eq" %[[SHARING]], %[[C3]] : i32
    // CHECK-NEXT: llvm.cond_br %[[BOTH]], ^[[MEET:bb[0-9]+]], ^[[ALONE:bb[0-9]+]]
    // CHECK: ^[[MEET]]:
    // CHECK-NEXT: nvvm.barrier id = %[[C5]] number_of_threads = %[[C256]]
    // CHECK: ^[[ALONE]]:
    // CHECK: nvvm.barrier id = %{{.*}} number_of_threads = %[[C128]]
    // CHECK: llvm.icmp "slt" %[[ROW:.*]], %[[C64]]
    // Row r: lane (r mod 8) / 2, element 2 (r / 8) + r mod 2.
    // CHECK: %[[R7:.*]] = llvm.and %[[ROW]], %[[C7]] : i32
    // CHECK-NEXT: %[[QUAD:.*]] = llvm.lshr %[[R7]], %[[C1]] : i32
    // CHECK-DAG: %[[R8:.*]] = llvm.lshr %[[ROW]], %[[C3]] : i32
    // CHECK-DAG: %[[PAIR:.*]] = llvm.shl %[[R8]], %[[C1]] : i32
    // CHECK-DAG: %[[ODD:.*]] = llvm.and %[[ROW]], %[[C1]] : i32
    // CHECK: %[[ELEMENT:.*]] = llvm.or %[[PAIR]], %[[ODD]] : i32
    // CHECK: %[[WORDOF:.*]] = llvm.lshr %[[ELEMENT]], %[[C5]] : i32
    // CHECK: %[[BYTES:.*]] = llvm.shl %{{.*}}, %[[C2]] : i32
    // CHECK-NEXT: %[[PLACE:.*]] = llvm.add %[[BASE]], %[[BYTES]] : i32
    // Four warps of either group; words of groups that do not share are not read.
    // CHECK: %[[IN0:.*]] = llvm.and %[[SHARING]], %[[C1]] : i32
    // CHECK-COUNT-4: "{\0A.reg .pred P;\0Asetp.ne.b32 P, $1, 0;\0Amov.b32 $0, 0;\0A@P ld.shared.b32 $0, [$2];\0A}", "=&r,r,r,~{memory}" %[[IN0]],
    // CHECK: %[[IN1:.*]] = llvm.and %[[SHARING]], %[[C2]] : i32
    // CHECK-COUNT-3: ld.shared.b32 $0, [$2];\0A}", "=&r,r,r,~{memory}" %[[IN1]],
    // CHECK: %[[LAST:.*]] = llvm.add %[[PLACE]], %[[C112]] : i32
    // CHECK-NEXT: ld.shared.b32 {{.*}} %[[IN1]], %[[LAST]]
    // CHECK: %[[SEEN:.*]] = llvm.or
    // CHECK-NEXT: %[[NUMBER:.*]] = llvm.and %[[ELEMENT]], %[[C31]] : i32
    // CHECK-NEXT: llvm.lshr %[[SEEN]], %[[NUMBER]] : i32
    // CHECK: llvm.cond_br
    // CHECK: st.shared.v4.b32
    // CHECK: fence.proxy.async.shared::cta
    // The groups that share meet again.
    // CHECK-NEXT: llvm.icmp "eq" %[[SHARING]], %[[C3]] : i32
    // CHECK: nvvm.barrier id = %[[C5]] number_of_threads = %[[C256]]
    // CHECK: nvvm.barrier id = %{{.*}} number_of_threads = %[[C128]]
    tile.hide_unseen %v[%group] keep %bits, %sharing : !w, !tile.bits<64x64>
  }
}
