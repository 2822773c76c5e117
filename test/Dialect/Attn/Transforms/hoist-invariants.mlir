// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: attn-opt %s --attn-hoist-invariants --remarks-filter='attn.*' --remark-policy=all \
// RUN:   -verify-diagnostics | FileCheck %s
// RUN: attn-opt %s --attn-hoist-invariants > %t.once
// RUN: attn-opt %t.once --attn-hoist-invariants | diff %t.once -

// Every level, one attn.per each; inner levels use outer ones.
// CHECK-LABEL: attn.kernel @levels
attn.kernel @levels heads(2) dim(64) q(f32) kv(f32) params(%left: i32)
    tables(%len: !attn.table<[b], i32>, %slope: !attn.table<[b, h], i32>,
           %kt: !attn.table<[b, k], i32>) {
  // CHECK: %[[L:.*]] = arith.index_cast %left : i32 to index
  // CHECK: %[[N:.*]] = attn.per request (%[[B:.*]]) -> (index) {
  // CHECK-NEXT: %[[V:.*]] = attn.load %len[%[[B]]]
  // CHECK-NEXT: %[[VI:.*]] = arith.index_cast %[[V]]
  // CHECK-NEXT: attn.yield %[[VI]] : index
  // CHECK: %[[S:.*]] = attn.per head (%{{.*}}, %{{.*}}) -> (index) {
  // CHECK: %[[R:.*]] = attn.per row (%{{.*}}, %{{.*}}, %[[Q:.*]]) -> (index) {
  // CHECK-NEXT: %[[D:.*]] = arith.subi %[[Q]], %[[L]] : index
  // CHECK-NEXT: %[[M:.*]] = arith.maxsi %[[D]], %[[N]] : index
  // CHECK-NEXT: %[[A:.*]] = arith.addi %[[M]], %[[S]] : index
  // CHECK-NEXT: attn.yield %[[A]] : index
  // CHECK: %[[C:.*]] = attn.per column (%{{.*}}, %{{.*}}, %{{.*}}) -> (i1) {
  // CHECK: arith.constant 0 : i32
  // CHECK: arith.cmpi
  // CHECK: attn.mask
  // CHECK-NEXT: arith.constant 1073741824
  // CHECK-NEXT: %[[I:.*]] = attn.in_rows %{{.*}}, %[[R]],
  // CHECK-NEXT: attn.and %[[I]], %[[C]]
  // expected-remark @+5 {{[Passed] HoistInvariants | Category:attn | Remark="1 operation of 'attn.mask' computed once per kernel"}}
  // expected-remark @+4 {{[Passed] HoistInvariants | Category:attn | Remark="2 operations of 'attn.mask' computed once per request"}}
  // expected-remark @+3 {{[Passed] HoistInvariants | Category:attn | Remark="2 operations of 'attn.mask' computed once per head"}}
  // expected-remark @+2 {{[Passed] HoistInvariants | Category:attn | Remark="3 operations of 'attn.mask' computed once per row"}}
  // expected-remark @+1 {{[Passed] HoistInvariants | Category:attn | Remark="2 operations of 'attn.mask' computed once per column"}}
  attn.mask (%b, %h, %q, %k) {
    %l = arith.index_cast %left : i32 to index
    %v = attn.load %len[%b] : !attn.table<[b], i32>
    %n = arith.index_cast %v : i32 to index
    %sv = attn.load %slope[%b, %h] : !attn.table<[b, h], i32>
    %s = arith.index_cast %sv : i32 to index
    %d = arith.subi %q, %l : index
    %m = arith.maxsi %d, %n : index
    %a = arith.addi %m, %s : index
    %kv = attn.load %kt[%b, %k] : !attn.table<[b, k], i32>
    %z = arith.constant 0 : i32
    %col = arith.cmpi eq, %kv, %z : i32
    %open = arith.constant 1073741824 : index
    %i = attn.in_rows %k, %a, %open
    %x = attn.and %i, %col
    attn.yield %x : i1
  }
}

// Scores: what depends on the score or on both q and k stays.
// CHECK-LABEL: attn.kernel @score
attn.kernel @score heads(2) dim(64) q(f32) kv(f32) tables(%slopes: !attn.table<[h], f32>) {
  // CHECK: %[[S:.*]] = attn.per head (%{{.*}}, %[[H:.*]]) -> (f32) {
  // CHECK-NEXT: attn.load %slopes[%[[H]]]
  // CHECK: attn.score (%[[X:.*]], %{{.*}}, %{{.*}}, %[[Q:.*]], %[[K:.*]]) {
  // CHECK-NEXT: attn.alibi %[[X]], %[[Q]], %[[K]], %[[S]]
  // CHECK-NEXT: attn.soft_cap
  // expected-remark @+1 {{[Passed] HoistInvariants | Category:attn | Remark="1 operation of 'attn.score' computed once per head"}}
  attn.score (%s, %b, %h, %q, %k) {
    %slope = attn.load %slopes[%h] : !attn.table<[h], f32>
    %t = attn.alibi %s, %q, %k, %slope
    %u = attn.soft_cap %t, 30.0
    attn.yield %u : f32
  }
}

// A whole loop moves, with what it captures; the mask itself may be a row's.
// CHECK-LABEL: attn.kernel @loop
attn.kernel @loop heads(2) dim(64) q(f32) kv(f32) tables(%mm: !attn.ranges) {
  // CHECK: %[[R:.*]] = attn.per row
  // CHECK: scf.for
  // CHECK: attn.range %mm
  // CHECK: attn.mask
  // CHECK-NOT: scf.for
  // CHECK: attn.yield %[[R]] : i1
  // expected-remark @+2 {{[Passed] HoistInvariants | Category:attn | Remark="1 operation of 'attn.mask' computed once per request"}}
  // expected-remark @+1 {{[Passed] HoistInvariants | Category:attn | Remark="1 operation of 'attn.mask' computed once per row"}}
  attn.mask (%b, %h, %q, %k) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %f = arith.constant false
    %n = attn.num_ranges %mm[%b]
    %m = scf.for %r = %c0 to %n step %c1 iter_args(%any = %f) -> (i1) {
      %s, %e = attn.range %mm[%b, %r]
      %in = arith.cmpi sle, %s, %q : index
      %next = arith.ori %any, %in : i1
      scf.yield %next : i1
    }
    attn.yield %m : i1
  }
}

// A mask of keys stays where its bounds can be read off, though it is the same for all queries.
// CHECK-LABEL: attn.kernel @prefix
attn.kernel @prefix heads(2) dim(64) q(f32) kv(f32) params(%n: i32) {
  // CHECK-NEXT: attn.mask
  attn.mask (%b, %h, %q, %k) {
    // CHECK-NEXT: attn.prefix
    %p = attn.prefix %k, %n
    attn.yield %p : i1
  }
}

// What such a mask is read by stays with it.
// CHECK-LABEL: attn.kernel @reader
attn.kernel @reader heads(2) dim(64) q(f32) kv(f32) params(%n: i32) {
  // CHECK-NEXT: attn.mask
  attn.mask (%b, %h, %q, %k) {
    // CHECK-NEXT: attn.prefix
    %p = attn.prefix %k, %n
    %t = arith.constant true
    // CHECK: arith.xori
    %x = arith.xori %p, %t : i1
    attn.yield %x : i1
  }
}

// Nothing to move: no change.
// CHECK-LABEL: attn.kernel @plain
attn.kernel @plain heads(2) dim(64) q(f32) kv(f32) {
  // CHECK-NEXT: attn.mask
  attn.mask (%b, %h, %q, %k) {
    %c = attn.causal %q, %k
    attn.yield %c : i1
  }
}
// CHECK-LABEL: attn.kernel @empty
attn.kernel @empty heads(2) dim(64) q(f32) kv(f32) {
}
