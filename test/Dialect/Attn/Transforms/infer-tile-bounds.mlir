// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: attn-opt %s --attn-infer-tile-bounds --remarks-filter='attn.*' --remark-policy=all \
// RUN:   -verify-diagnostics | FileCheck %s
// RUN: attn-opt %s --attn-infer-tile-bounds > %t.once
// RUN: attn-opt %t.once --attn-infer-tile-bounds | diff %t.once -

// One interval: exact.
// CHECK-LABEL: attn.kernel @exact
attn.kernel @exact heads(1) dim(64) q(f32) kv(f32) {
  // expected-remark @+1 {{[Passed] InferTileBounds | Category:attn | Remark="rows visit exactly the kept keys"}}
  attn.mask (%b, %h, %q, %k) {
    %c = attn.causal %q, %k
    %w = attn.window %q, %k left(9)
    %m = attn.and %c, %w
    attn.yield %m : i1
  }
  // CHECK: attn.bounds exact (%{{.*}}, %{{.*}}, %[[Q:.*]]) {
  // CHECK: %[[LO:.*]] = arith.subi %[[Q]], %c9{{.*}} : index
  // CHECK: %[[LO1:.*]] = arith.maxsi %[[LO]], %c-1073741824
  // CHECK: %[[HI:.*]] = arith.addi %[[Q]], %c1{{.*}} : index
  // CHECK: attn.yield %[[LO1]], %[[HI]] : index, index
}

// A hole: the hull. Loads that the bounds need are copied.
// CHECK-LABEL: attn.kernel @hull
attn.kernel @hull heads(1) dim(64) q(f32) kv(f32)
    tables(%len: !attn.table<[b], i32>, %t: !attn.table<[b, k], i32>) {
  // expected-remark @+1 {{[Passed] InferTileBounds | Category:attn | Remark="rows visit the hull of the kept keys"}}
  attn.mask (%b, %h, %q, %k) {
    %n = attn.load %len[%b] : !attn.table<[b], i32>
    %p = attn.prefix %k, %n
    %v = attn.load %t[%b, %k] : !attn.table<[b, k], i32>
    %z = arith.constant 0 : i32
    %x = arith.cmpi eq, %v, %z : i32
    %m = attn.and %p, %x
    attn.yield %m : i1
  }
  // CHECK: attn.bounds hull (%[[B:.*]], %{{.*}}, %{{.*}}) {
  // CHECK: %[[N:.*]] = attn.load %len[%[[B]]]
  // CHECK: %[[NI:.*]] = arith.index_cast %[[N]]
  // CHECK: attn.yield %c-1073741824{{.*}}, %[[NI]] : index, index
}

// Two intervals: their hull, not exact.
// CHECK-LABEL: attn.kernel @two
attn.kernel @two heads(1) dim(64) q(f32) kv(f32) {
  // expected-remark @+1 {{[Passed] InferTileBounds | Category:attn | Remark="rows visit the hull of the kept keys"}}
  attn.mask (%b, %h, %q, %k) {
    %c = attn.causal %q, %k
    %w = attn.window %q, %k left(9)
    %cw = attn.and %c, %w
    %p = attn.prefix %k, 4
    %m = attn.or %cw, %p
    attn.yield %m : i1
  }
  // CHECK: attn.bounds hull
  // CHECK: arith.maxsi
}

// A negation is bounded by what it is known to drop, never by its operand's hull.
// CHECK-LABEL: attn.kernel @negated
attn.kernel @negated heads(1) dim(64) q(f32) kv(f32) tables(%t: !attn.table<[b, k], i32>) {
  // expected-remark @+1 {{[Passed] InferTileBounds | Category:attn | Remark="rows visit the hull of the kept keys"}}
  attn.mask (%b, %h, %q, %k) {
    %c = attn.causal %q, %k
    %v = attn.load %t[%b, %k] : !attn.table<[b, k], i32>
    %z = arith.constant 0 : i32
    %x = arith.cmpi eq, %v, %z : i32
    %p = attn.prefix %k, 4
    %px = attn.and %p, %x
    %n = attn.not %px
    %m = attn.and %c, %n
    attn.yield %m : i1
  }
  // CHECK: attn.bounds hull (%{{.*}}, %{{.*}}, %[[Q:.*]]) {
  // CHECK: %[[HI:.*]] = arith.addi %[[Q]], %c1{{.*}} : index
  // CHECK: attn.yield %c-1073741824{{.*}}, %[[HI]] : index, index
}

// Nothing kept, everything kept.
// CHECK-LABEL: attn.kernel @nothing
attn.kernel @nothing heads(1) dim(64) q(f32) kv(f32) {
  // expected-remark @+1 {{[Passed] InferTileBounds | Category:attn | Remark="rows visit exactly the kept keys"}}
  attn.mask (%b, %h, %q, %k) {
    %f = arith.constant false
    attn.yield %f : i1
  }
  // CHECK: attn.bounds exact
  // CHECK: attn.yield %c1073741824{{.*}}, %c-1073741824{{.*}} : index, index
}
// CHECK-LABEL: attn.kernel @everything
attn.kernel @everything heads(1) dim(64) q(f32) kv(f32) {
  // expected-remark @+1 {{[Passed] InferTileBounds | Category:attn | Remark="rows visit exactly the kept keys"}}
  attn.mask (%b, %h, %q, %k) {
    %t = arith.constant true
    attn.yield %t : i1
  }
  // CHECK: attn.bounds exact
  // CHECK: attn.yield %c-1073741824{{.*}}, %c1073741824{{.*}} : index, index
}

// Refused: nothing is known.
// CHECK-LABEL: attn.kernel @unknown
attn.kernel @unknown heads(1) dim(64) q(f32) kv(f32) tables(%t: !attn.table<[b, k], i32>) {
  // expected-remark @+1 {{[Missed] InferTileBounds | Category:attn | Remark="no bound of the visited keys is known"}}
  attn.mask (%b, %h, %q, %k) {
    %v = attn.load %t[%b, %k] : !attn.table<[b, k], i32>
    %z = arith.constant 0 : i32
    %x = arith.cmpi eq, %v, %z : i32
    attn.yield %x : i1
  }
  // CHECK-NOT: attn.bounds
  // CHECK: attn.score
  attn.score (%s, %b, %h, %q, %k) {
    attn.yield %s : f32
  }
}

// Bounds that are there stay; no mask needs none.
// CHECK-LABEL: attn.kernel @given
attn.kernel @given heads(1) dim(64) q(f32) kv(f32) {
  attn.mask (%b, %h, %q, %k) {
    %m = attn.causal %q, %k
    attn.yield %m : i1
  }
  // CHECK: attn.bounds hull
  attn.bounds hull (%b, %h, %q) {
    %c0 = arith.constant 0 : index
    %c9 = arith.constant 9 : index
    attn.yield %c0, %c9 : index, index
  }
  // CHECK-NOT: attn.bounds
}
// CHECK-LABEL: attn.kernel @no_mask
// CHECK-NOT: attn.bounds
attn.kernel @no_mask heads(1) dim(64) q(f32) kv(f32) {
}
