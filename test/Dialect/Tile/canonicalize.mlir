// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: tile-opt %s -canonicalize | FileCheck %s

// Folded constants stay in their role: the kernel's body takes none.

// CHECK-LABEL: tile.kernel @fold
tile.kernel @fold words(1) {
^bb0(%mq: !tile.tensor_map, %mk: !tile.tensor_map, %mv: !tile.tensor_map, %mo: !tile.tensor_map, %args: !llvm.ptr):
  // CHECK: tile.producer registers(24) {
  // CHECK-NEXT: %[[C:.*]] = arith.constant 5 : i32
  // CHECK-NEXT: llvm.store %[[C]],
  tile.producer registers(24) {
    %a = arith.constant 2 : i32
    %b = arith.constant 3 : i32
    %c = arith.addi %a, %b : i32
    llvm.store %c, %args : i32, !llvm.ptr
  }
  // CHECK: tile.consumers groups(1) registers(240) {
  // CHECK-NEXT: ^bb0
  // CHECK-NEXT: %[[D:.*]] = arith.constant 6 : i32
  // CHECK-NEXT: %[[ROWS:.*]] = tile.fill
  tile.consumers groups(1) registers(240) {
  ^bb0(%group: i32):
    %rows = tile.fill %group : i32 -> !tile.rows<i32>
    %more = tile.map_rows %rows : !tile.rows<i32> -> !tile.rows<i32> {
    ^bb0(%x: i32, %row: i32):
      // CHECK: arith.addi %{{.*}}, %[[D]]
      %a = arith.constant 2 : i32
      %b = arith.constant 3 : i32
      %c = arith.muli %a, %b : i32
      %y = arith.addi %x, %c : i32
      tile.yield %y : i32
    }
    tile.store_rows %more, %args, %group : !tile.rows<i32>, !llvm.ptr
  }
}
