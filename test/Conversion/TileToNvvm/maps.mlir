// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: tile-opt %s -convert-tile-to-nvvm | FileCheck %s

// What depends on nothing, the row or the column of an element is emitted once for each of those.

!acc = !tile.fragment<64x8xf32, acc>

// CHECK-LABEL: llvm.func @hoisted(
tile.kernel @hoisted words(1) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  tile.producer registers(24) {
  }
  tile.consumers groups(1) registers(240) {
  ^bb0(%group: i32):
    %block = tile.block_id : i32
    %f = arith.constant 2.0 : f32
    // CHECK-DAG: %[[C3:.*]] = llvm.mlir.constant(3 : i32) : i32
    // CHECK-DAG: %[[C8:.*]] = llvm.mlir.constant(8 : i32) : i32
    // CHECK-DAG: %[[C1:.*]] = llvm.mlir.constant(1 : i32) : i32
    // CHECK-DAG: %[[C0:.*]] = llvm.mlir.constant(0 : i32) : i32
    // CHECK: setmaxnreg.inc
    // CHECK: %[[ROW:.*]] = llvm.add
    // CHECK: %[[COL:.*]] = llvm.shl
    // CHECK: %[[BLOCK:.*]] = nvvm.read.ptx.sreg.ctaid.x
    // CHECK-NEXT: %[[X:.*]] = llvm.sitofp %[[BLOCK]] : i32 to f32
    %x = arith.sitofp %block : i32 to f32
    %in = tile.fill %x : f32 -> !acc
    // CHECK-NEXT: %[[INV:.*]] = llvm.mul %[[BLOCK]], %[[C3]] : i32
    // CHECK-NEXT: %[[ROW0:.*]] = llvm.add %[[ROW]], %[[C0]] : i32
    // CHECK-NEXT: %[[R0:.*]] = llvm.add %[[ROW0]], %[[INV]] : i32
    // CHECK-NEXT: %[[Q0:.*]] = llvm.sext %[[R0]] : i32 to i64
    // CHECK-NEXT: %[[ROW1:.*]] = llvm.add %[[ROW]], %[[C8]] : i32
    // CHECK-NEXT: %[[R1:.*]] = llvm.add %[[ROW1]], %[[INV]] : i32
    // CHECK-NEXT: %[[Q1:.*]] = llvm.sext %[[R1]] : i32 to i64
    // CHECK-NEXT: %[[COL0:.*]] = llvm.add %[[COL]], %[[C0]] : i32
    // CHECK-NEXT: %[[W0:.*]] = llvm.sext %[[COL0]] : i32 to i64
    // CHECK-NEXT: %[[COL1:.*]] = llvm.add %[[COL]], %[[C1]] : i32
    // CHECK-NEXT: %[[W1:.*]] = llvm.sext %[[COL1]] : i32 to i64
    // Element 0: first row, first column.
    // CHECK-NEXT: %[[K0:.*]] = llvm.icmp "sle" %[[W0]], %[[Q0]] : i64
    // CHECK-NEXT: llvm.fmul %[[X]], %{{.*}} : f32
    // Element 1: first row, second column.
    // CHECK-NEXT: %[[K1:.*]] = llvm.icmp "sle" %[[W1]], %[[Q0]] : i64
    // CHECK-NEXT: llvm.fmul
    // Element 2: second row, first column.
    // CHECK-NEXT: %[[K2:.*]] = llvm.icmp "sle" %[[W0]], %[[Q1]] : i64
    // CHECK-NEXT: llvm.fmul
    // CHECK-NEXT: %[[K3:.*]] = llvm.icmp "sle" %[[W1]], %[[Q1]] : i64
    // CHECK-NEXT: llvm.fmul
    // A word for either row.
    // CHECK-NEXT: %[[B0:.*]] = llvm.select %[[K0]], %[[C1]], %[[C0]] : i1, i32
    // CHECK-NEXT: %[[B1:.*]] = llvm.select %[[K1]], %{{.*}}, %[[C0]] : i1, i32
    // CHECK-NEXT: %[[WORD0:.*]] = llvm.or %[[B0]], %[[B1]] : i32
    // CHECK-NEXT: %[[B2:.*]] = llvm.select %[[K2]], %[[C1]], %[[C0]] : i1, i32
    // CHECK-NEXT: %[[B3:.*]] = llvm.select %[[K3]], %{{.*}}, %[[C0]] : i1, i32
    // CHECK-NEXT: %[[WORD1:.*]] = llvm.or %[[B2]], %[[B3]] : i32
    %out, %bits = tile.map %in : !acc -> !acc, !tile.bits<64x8> {
    ^bb0(%v: f32, %row: i32, %col: i32):
      %three = arith.constant 3 : i32
      %inv = arith.muli %block, %three : i32
      %r = arith.addi %row, %inv : i32
      %k = arith.index_cast %col : i32 to index
      %q = arith.index_cast %r : i32 to index
      %keep = arith.cmpi sle, %k, %q : index
      %y = arith.mulf %v, %f : f32
      tile.yield %y, %keep : f32, i1
    }
    %m = tile.row_max %out : !acc -> !tile.rows<f32>
    tile.store_rows %m, %args, %group : !tile.rows<f32>, !llvm.ptr
  }
}
