// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: tile-opt %s -convert-tile-to-nvvm | FileCheck %s

!q = !tile.ring<1 x 64x128xbf16>
!k = !tile.ring<2 x 16x128xbf16>
!acc_s = !tile.fragment<64x16xf32, acc>
!acc_o = !tile.fragment<64x128xf32, acc>
!p = !tile.fragment<64x16xbf16, operand>

tile.kernel @products words(1) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  %q = tile.ring arrivals(4) : !q
  %k = tile.ring arrivals(4) : !k
  tile.producer registers(24) {
  }
  tile.consumers groups(1) registers(240) {
  ^bb0(%group: i32):
    // CHECK-LABEL: llvm.func @products(
    // K-major: leading offset 1, stride 1024 bytes, 128-byte swizzle. MN-major: column groups of 16
    // rows, 2048 bytes apart.
    // CHECK-DAG: %[[KMAJOR:.*]] = llvm.mlir.constant(4611686293305360384 : i64) : i64
    // CHECK-DAG: %[[MNMAJOR:.*]] = llvm.mlir.constant(4611686293313683456 : i64) : i64
    // CHECK-DAG: %[[STAGE16:.*]] = llvm.mlir.constant(256 : i32) : i32
    // CHECK: setmaxnreg.inc
    // CHECK: llvm.and %{{.*}}, %{{.*}} : i32
    // CHECK: %[[DQ:.*]] = llvm.or %{{.*}}, %[[KMAJOR]] : i64
    // Descriptors are made as soon as their use and their ring are known.
    // CHECK: %[[AHEADQ:.*]] = llvm.add %[[DQ]], %{{.*}} : i64
    // CHECK-NEXT: %[[A:.*]] = llvm.inline_asm has_side_effects asm_dialect = att "mov.b64 $0, $1;", "=l,l,~{memory}" %[[AHEADQ]]
    // CHECK: %[[DK:.*]] = llvm.or %{{.*}}, %[[KMAJOR]] : i64
    // CHECK: %[[OFFSET:.*]] = llvm.mul %{{.*}}, %[[STAGE16]] : i32
    // CHECK: %[[WIDE:.*]] = llvm.zext %[[OFFSET]] : i32 to i64
    // CHECK: %[[AHEADK:.*]] = llvm.add %[[DK]], %[[WIDE]] : i64
    // CHECK-NEXT: %[[B:.*]] = llvm.inline_asm has_side_effects asm_dialect = att "mov.b64 $0, $1;", "=l,l,~{memory}" %[[AHEADK]]
    // CHECK: %[[DV:.*]] = llvm.or %{{.*}}, %[[MNMAJOR]] : i64
    // CHECK: %[[OFFSETV:.*]] = llvm.mul %{{.*}}, %[[STAGE16]] : i32
    // CHECK: %[[AHEADV:.*]] = llvm.add %[[DV]], %{{.*}} : i64
    // CHECK-NEXT: %[[BV:.*]] = llvm.inline_asm has_side_effects asm_dialect = att "mov.b64 $0, $1;", "=l,l,~{memory}" %[[AHEADV]]
    // Steps of 32 bytes, then the next column group: 64 rows of Q, 16 rows of K.
    // CHECK: llvm.inline_asm has_side_effects asm_dialect = att "{\0A.reg .pred p, q;\0A.reg .b64 a, b;\0Asetp.ne.b32 p, 1, 0;\0Asetp.ne.b32 q, 0, 0;\0Awgmma.fence.sync.aligned;\0A
    // CHECK-SAME: add.s64 a, $8, 0;\0Aadd.s64 b, $9, 0;\0Awgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {$0, $1, $2, $3, $4, $5, $6, $7}, a, b, q, 1, 1, 0, 0;\0A
    // CHECK-SAME: add.s64 a, $8, 2;\0Aadd.s64 b, $9, 2;\0Awgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {$0, $1, $2, $3, $4, $5, $6, $7}, a, b, p, 1, 1, 0, 0;\0A
    // CHECK-SAME: add.s64 a, $8, 4;\0Aadd.s64 b, $9, 4;
    // CHECK-SAME: add.s64 a, $8, 6;\0Aadd.s64 b, $9, 6;
    // CHECK-SAME: add.s64 a, $8, 512;\0Aadd.s64 b, $9, 128;
    // CHECK-SAME: add.s64 a, $8, 518;\0Aadd.s64 b, $9, 134;
    // CHECK-SAME: wgmma.commit_group.sync.aligned;\0A}", "=f,=f,=f,=f,=f,=f,=f,=f,l,l,~{memory}" %[[A]], %[[B]] : (i64, i64) -> !llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32)>
    // CHECK-COUNT-8: llvm.extractvalue
    %sp = tile.mma_shared %q[%group], %k[%group] : !q, !k -> !tile.pending<!acc_s>
    // The wait takes and gives the registers.
    // CHECK: llvm.inline_asm has_side_effects asm_dialect = att "wgmma.wait_group.sync.aligned 0;", "=f,=f,=f,=f,=f,=f,=f,=f,0,1,2,3,4,5,6,7,~{memory}"
    %s = tile.wait_mma 0, %sp : !tile.pending<!acc_s>
    // Upper half first.
    // CHECK: %[[S0:.*]] = llvm.extractvalue %[[W:.*]][0]
    // CHECK: %[[S1:.*]] = llvm.extractvalue %[[W]][1]
    // CHECK: %[[P0:.*]] = llvm.inline_asm asm_dialect = att "cvt.rn.bf16x2.f32 $0, $1, $2;", "=r,f,f" %[[S1]], %[[S0]] : (f32, f32) -> i32
    // CHECK-COUNT-3: cvt.rn.bf16x2.f32
    %p = tile.to_operand %s : !acc_s -> !p
    %zero = arith.constant 0.0 : f32
    %o = tile.fill %zero : f32 -> !acc_o
    // CHECK: "{\0A.reg .pred p;\0A.reg .b64 b;\0Asetp.ne.b32 p, 1, 0;\0Awgmma.fence.sync.aligned;\0Aadd.s64 b, $68, 0;\0A
    // CHECK-SAME: wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {$0, {{.*}}, $63}, {$64, $65, $66, $67}, b, p, 1, 1, 1;\0Awgmma.commit_group.sync.aligned;\0A}"
    // CHECK-SAME: =f,r,r,r,r,l,0,1,2,{{.*}},63,~{memory}" %[[P0]], %{{.*}}, %{{.*}}, %{{.*}}, %[[BV]],
    %op = tile.mma_register %p, %k[%group], %o : !p, !k -> !tile.pending<!acc_o>
    // CHECK: wgmma.wait_group.sync.aligned 1;
    %o1 = tile.wait_mma 1, %op : !tile.pending<!acc_o>
    %stride = arith.constant 128 : i64
    tile.store %o1, %args, %stride, %group : !acc_o, !llvm.ptr as bf16
  }
}

// The first factor in registers: four matrices of 8 x 8 a step, addressed as the swizzle lays them.
// CHECK-LABEL: llvm.func @from_registers(
tile.kernel @from_registers words(1) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  %q = tile.ring arrivals(4) : !q
  %k = tile.ring arrivals(4) : !k
  tile.producer registers(24) {
  }
  tile.consumers groups(1) registers(240) {
  ^bb0(%group: i32):
    // CHECK: setmaxnreg.inc
    // CHECK-COUNT-8: "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {$0, $1, $2, $3}, [$4];", "=r,=r,=r,=r,r,~{memory}"
    // CHECK-NOT: ldmatrix
    %f = tile.load_operand %q[%group] : !q -> !tile.fragment<64x128xbf16, operand>
    // CHECK: wgmma.fence.sync.aligned;\0A
    // CHECK-SAME: add.s64 b, $40, 0;\0Awgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {$0, $1, $2, $3, $4, $5, $6, $7}, {$8, $9, $10, $11}, b, q, 1, 1, 0;\0A
    // CHECK-SAME: add.s64 b, $40, 2;\0Awgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {$0, $1, $2, $3, $4, $5, $6, $7}, {$12, $13, $14, $15}, b, p, 1, 1, 0;\0A
    // CHECK-SAME: add.s64 b, $40, 134;
    // CHECK-SAME: {$36, $37, $38, $39}, b, p, 1, 1, 0;\0Awgmma.commit_group.sync.aligned;\0A}", "=f,=f,=f,=f,=f,=f,=f,=f,r,
    // CHECK-SAME: r,l,~{memory}"
    %sp = tile.mma_operand %f, %k[%group] : !tile.fragment<64x128xbf16, operand>, !k -> !tile.pending<!acc_s>
    %s = tile.wait_mma 0, %sp : !tile.pending<!acc_s>
    %m = tile.row_max %s : !acc_s -> !tile.rows<f32>
    tile.store_rows %m, %args, %group : !tile.rows<f32>, !llvm.ptr
  }
}

// The first 16 of a slot's 32 rows: columns of S, while steps go by the slot's rows. Weights for all rows, of
// which those behind are 0.
// CHECK-LABEL: llvm.func @first_rows(
tile.kernel @first_rows words(1) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  %q = tile.ring arrivals(4) : !q
  %k = tile.ring arrivals(4) : !tile.ring<2 x 32x128xbf16>
  tile.producer registers(24) {
  }
  tile.consumers groups(1) registers(240) {
  ^bb0(%group: i32):
    // CHECK-DAG: %[[ZERO:.*]] = llvm.mlir.constant(0 : i32) : i32
    // CHECK: add.s64 a, $8, 0;\0Aadd.s64 b, $9, 0;\0Awgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {$0, $1, $2, $3, $4, $5, $6, $7}, a, b, q,
    // CHECK-SAME: add.s64 a, $8, 512;\0Aadd.s64 b, $9, 256;
    %sp = tile.mma_shared %q[%group], %k[%group] : !q, !tile.ring<2 x 32x128xbf16> -> !tile.pending<!acc_s>
    %s = tile.wait_mma 0, %sp : !tile.pending<!acc_s>
    // CHECK-COUNT-4: cvt.rn.bf16x2.f32
    // CHECK-NOT: cvt.rn.bf16x2.f32
    %p = tile.to_operand %s : !acc_s -> !tile.fragment<64x32xbf16, operand>
    %zero = arith.constant 0.0 : f32
    %o = tile.fill %zero : f32 -> !acc_o
    // CHECK: {$68, $69, $70, $71}, b, p, 1, 1, 1;\0Awgmma.commit_group.sync.aligned;
    // CHECK-SAME: %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[ZERO]], %[[ZERO]], %[[ZERO]], %[[ZERO]], %
    %op = tile.mma_register %p, %k[%group], %o : !tile.fragment<64x32xbf16, operand>, !tile.ring<2 x 32x128xbf16> -> !tile.pending<!acc_o>
    %o1 = tile.wait_mma 0, %op : !tile.pending<!acc_o>
    %stride = arith.constant 128 : i64
    tile.store %o1, %args, %stride, %group : !acc_o, !llvm.ptr as bf16
    // The first factor in registers.
    %f = tile.load_operand %q[%group] : !q -> !tile.fragment<64x128xbf16, operand>
    // CHECK: ldmatrix
    // CHECK: add.s64 b, $40, 0;\0Awgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {$0, $1, $2, $3, $4, $5, $6, $7}, {$8,
    // CHECK-SAME: add.s64 b, $40, 256;
    %rp = tile.mma_operand %f, %k[%group] : !tile.fragment<64x128xbf16, operand>, !tile.ring<2 x 32x128xbf16> -> !tile.pending<!acc_s>
    %r = tile.wait_mma 0, %rp : !tile.pending<!acc_s>
    %m = tile.row_max %r : !acc_s -> !tile.rows<f32>
    tile.store_rows %m, %args, %group : !tile.rows<f32>, !llvm.ptr
  }
}

// Three groups have K's descriptor in place.
// CHECK-LABEL: llvm.func @three(
tile.kernel @three words(1) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  %q = tile.ring arrivals(4) : !q
  %k = tile.ring arrivals(12) : !k
  tile.producer registers(24) {
  }
  tile.consumers groups(3) registers(160) {
  ^bb0(%group: i32):
    // CHECK: nvvm.barrier id
    // CHECK-NOT: mov.b64
    // CHECK: llvm.add %{{.*}}, %{{.*}} : i64
    // CHECK: wgmma.mma_async
    tile.await_turn
    %sp = tile.mma_shared %q[%group], %k[%group] : !q, !k -> !tile.pending<!acc_s>
    tile.pass_turn
    %s = tile.wait_mma 0, %sp : !tile.pending<!acc_s>
    %m = tile.row_max %s : !acc_s -> !tile.rows<f32>
    tile.store_rows %m, %args, %group : !tile.rows<f32>, !llvm.ptr
  }
}

// A use that is older than the rings' values, and one that is not though it is a constant.
// CHECK-LABEL: llvm.func @uses(
tile.kernel @uses words(1) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  %q = tile.ring arrivals(4) : !q
  %k = tile.ring arrivals(4) : !k
  tile.producer registers(24) {
  }
  tile.consumers groups(1) registers(240) {
  ^bb0(%group: i32):
    // CHECK: %[[THREAD:.*]] = llvm.and %{{.*}}, %{{.*}} : i32
    // CHECK: %[[BASE:.*]] = llvm.or %{{.*}}, %{{.*}} : i64
    // CHECK: llvm.and %[[THREAD]], %
    // CHECK: mov.b64
    // CHECK: llvm.mlir.constant(1 : i32)
    // CHECK: mov.b64
    %thread = tile.thread_id : i32
    %one = llvm.mlir.constant(1 : i32) : i32
    %sp = tile.mma_shared %q[%one], %k[%thread] : !q, !k -> !tile.pending<!acc_s>
    %s = tile.wait_mma 0, %sp : !tile.pending<!acc_s>
    %m = tile.row_max %s : !acc_s -> !tile.rows<f32>
    tile.store_rows %m, %args, %group : !tile.rows<f32>, !llvm.ptr
  }
}
