// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: tile-opt %s -convert-tile-to-nvvm | FileCheck %s

!acc = !tile.fragment<64x8xf32, acc>
!rows = !tile.rows<f32>

tile.kernel @control words(1) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  tile.producer registers(24) {
  }
  tile.consumers groups(1) registers(240) {
  ^bb0(%group: i32):
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %f = arith.constant 1.0 : f32
    %o = tile.fill %f : f32 -> !acc
    %m = tile.fill %f : f32 -> !rows
    // CHECK-LABEL: llvm.func @control(
    // CHECK-DAG: %[[C0:.*]] = llvm.mlir.constant(0 : i32) : i32
    // CHECK-DAG: %[[C1:.*]] = llvm.mlir.constant(1 : i32) : i32
    // CHECK-DAG: %[[F:.*]] = llvm.mlir.constant(1.000000e+00 : f32) : f32
    // CHECK: setmaxnreg.inc
    // CHECK: %[[GROUP:.*]] = llvm.sub
    // A loop carries the registers: four of the fragment, two rows.
    // CHECK: llvm.br ^[[HEAD:bb[0-9]+]](%[[C0]], %[[F]], %[[F]], %[[F]], %[[F]], %[[F]], %[[F]] : i32, f32, f32, f32, f32, f32, f32)
    // CHECK: ^[[HEAD]](%[[I:.*]]: i32, %[[O0:.*]]: f32, %[[O1:.*]]: f32, %[[O2:.*]]: f32, %[[O3:.*]]: f32, %[[M0:.*]]: f32, %[[M1:.*]]: f32):
    // CHECK-NEXT: %[[LESS:.*]] = llvm.icmp "slt" %[[I]], %[[GROUP]] : i32
    // CHECK-NEXT: llvm.cond_br %[[LESS]], ^[[BODY:bb[0-9]+]], ^[[AFTER:bb[0-9]+]]
    // CHECK: ^[[BODY]]:
    // Row by row.
    // CHECK-NEXT: %[[N0:.*]] = llvm.fadd %[[O0]], %[[M0]] : f32
    // CHECK-NEXT: %[[N1:.*]] = llvm.fadd %[[O1]], %[[M0]] : f32
    // CHECK-NEXT: %[[N2:.*]] = llvm.fadd %[[O2]], %[[M1]] : f32
    // CHECK-NEXT: %[[N3:.*]] = llvm.fadd %[[O3]], %[[M1]] : f32
    // CHECK-NEXT: %[[NEXT:.*]] = llvm.add %[[I]], %[[C1]] : i32
    // CHECK-NEXT: llvm.br ^[[HEAD]](%[[NEXT]], %[[N0]], %[[N1]], %[[N2]], %[[N3]], %[[M0]], %[[M1]] :
    %r:2 = scf.for %i = %zero to %group step %one iter_args(%a = %o, %b = %m) -> (!acc, !rows) : i32 {
      %s = tile.map %a, %b : !acc, !rows -> !acc {
      ^bb0(%x: f32, %y: f32, %row: i32, %col: i32):
        %z = arith.addf %x, %y : f32
        tile.yield %z : f32
      }
      scf.yield %s, %b : !acc, !rows
    }
    // CHECK: ^[[AFTER]]:
    // CHECK-NEXT: %[[IS:.*]] = llvm.icmp "eq" %[[GROUP]], %[[C0]] : i32
    // CHECK-NEXT: llvm.cond_br %[[IS]], ^[[YES:bb[0-9]+]], ^[[NO:bb[0-9]+]]
    // CHECK: ^[[YES]]:
    // CHECK-NEXT: llvm.br ^[[JOIN:bb[0-9]+]](%[[O0]], %[[O1]], %[[O2]], %[[O3]], %[[GROUP]] : f32, f32, f32, f32, i32)
    // CHECK: ^[[NO]]:
    // CHECK-NEXT: llvm.br ^[[JOIN]](%[[F]], %[[F]], %[[F]], %[[F]], %[[C1]] : f32, f32, f32, f32, i32)
    // CHECK: ^[[JOIN]](%[[J0:.*]]: f32, %{{.*}}: f32, %{{.*}}: f32, %{{.*}}: f32, %[[J4:.*]]: i32):
    %is = arith.cmpi eq, %group, %zero : i32
    %q, %n = scf.if %is -> (!acc, i32) {
      scf.yield %r#0, %group : !acc, i32
    } else {
      scf.yield %o, %one : !acc, i32
    }
    // An index is an i64; unsigned comparisons stay.
    // CHECK: %[[UP:.*]] = llvm.sext %[[J4]] : i32 to i64
    // CHECK: ^{{bb[0-9]+}}(%[[IX:.*]]: i64):
    // CHECK-NEXT: llvm.icmp "ult" %[[IX]], %[[UP]] : i64
    %up = arith.index_cast %n : i32 to index
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    scf.for unsigned %i = %c0 to %up step %c1 {
      llvm.store volatile %zero, %args : i32, !llvm.ptr
    }
    // What the condition passes on goes to both sides as it is.
    // CHECK: ^[[WHILE:bb[0-9]+]](%[[W0:.*]]: f32, %[[W1:.*]]: f32, %[[K:.*]]: i32):
    // CHECK-NEXT: %[[K1:.*]] = llvm.add %[[K]], %[[C1]] : i32
    // CHECK-NEXT: %[[MORE:.*]] = llvm.icmp "slt" %[[K1]], %[[GROUP]] : i32
    // CHECK-NEXT: llvm.cond_br %[[MORE]], ^[[DO:bb[0-9]+]], ^[[END:bb[0-9]+]]
    // CHECK: ^[[DO]]:
    // CHECK-NEXT: llvm.br ^[[WHILE]](%[[W0]], %[[W1]], %[[K1]] : f32, f32, i32)
    // CHECK: ^[[END]]:
    // CHECK-NEXT: llvm.store volatile %[[K1]],
    %w:2 = scf.while (%x = %r#1, %k = %n) : (!rows, i32) -> (i32, !rows) {
      %k1 = arith.addi %k, %one : i32
      %more = arith.cmpi slt, %k1, %group : i32
      scf.condition(%more) %k1, %x : i32, !rows
    } do {
    ^bb0(%k: i32, %x: !rows):
      scf.yield %x, %k : !rows, i32
    }
    llvm.store volatile %w#0, %args : i32, !llvm.ptr
    // A loop inside a map: once for each element.
    // CHECK-COUNT-4: ^{{bb[0-9]+}}(%{{.*}}: i32, %{{.*}}: f32):
    %e = tile.map %q : !acc -> !acc {
    ^bb0(%x: f32, %row: i32, %col: i32):
      %s = scf.for %i = %zero to %group step %one iter_args(%a = %x) -> (f32) : i32 {
        %b = arith.mulf %a, %a : f32
        scf.yield %b : f32
      }
      tile.yield %s : f32
    }
    %max = tile.row_max %e : !acc -> !rows
    tile.store_rows %max, %args, %group : !rows, !llvm.ptr
  }
}
