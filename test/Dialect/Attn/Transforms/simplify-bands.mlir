// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: attn-opt %s --attn-simplify-mask | FileCheck %s
// RUN: attn-opt %s --attn-simplify-mask > %t.once
// RUN: attn-opt %t.once --attn-simplify-mask | diff %t.once -

// Windows under `and`: the smaller of literal sides, equal values, one operation for both sides.
// CHECK-LABEL: attn.kernel @windows
attn.kernel @windows heads(1) dim(64) q(f32) kv(f32) params(%left: i32) {
  // CHECK: attn.mask (%{{.*}}, %{{.*}}, %[[Q:.*]], %[[K:.*]]) {
  attn.mask (%b, %h, %q, %k) {
    %w0 = attn.window %q, %k left(7) right(3)
    %w1 = attn.window %q, %k left(5)
    %w2 = attn.sliding %q, %k count(9)
    %w3 = attn.window %q, %k right(%left)
    // CHECK-DAG: %[[W:.*]] = attn.window %[[Q]], %[[K]] left(5) right(3){{$}}
    // CHECK-DAG: %[[V:.*]] = attn.window %[[Q]], %[[K]] right(%left){{$}}
    // CHECK: %[[X:.*]] = attn.and %[[V]], %[[W]]
    // CHECK-NEXT: attn.yield %[[X]]
    %x0 = attn.and %w0, %w1
    %x1 = attn.and %x0, %w2
    %x2 = attn.and %x1, %w3
    attn.yield %x2 : i1
  }
}

// Causal makes windows one-sided, whatever their right side is; a value from a table may be negative.
// CHECK-LABEL: attn.kernel @causal
attn.kernel @causal heads(1) dim(64) q(f32) kv(f32) params(%left: i32, %right: i32)
    tables(%len: !attn.table<[b], i32>) {
  // CHECK: attn.mask (%[[B:.*]], %{{.*}}, %[[Q:.*]], %[[K:.*]]) {
  attn.mask (%b, %h, %q, %k) {
    // CHECK-DAG: %[[N:.*]] = attn.load
    %n = attn.load %len[%b] : !attn.table<[b], i32>
    // CHECK-DAG: %[[C:.*]] = attn.causal %[[Q]], %[[K]]
    %c = attn.causal %q, %k
    // CHECK-DAG: %[[W:.*]] = attn.window %[[Q]], %[[K]] left(%left) right(%[[N]]){{$}}
    // CHECK: %[[X:.*]] = attn.and %[[C]], %[[W]]
    // CHECK-NEXT: attn.yield %[[X]]
    %w0 = attn.window %q, %k left(%left) right(%right)
    %w1 = attn.window %q, %k right(0)
    %w2 = attn.window %q, %k right(%n)
    %x0 = attn.and %c, %w0
    %x1 = attn.and %x0, %w1
    %x2 = attn.and %x1, %w2
    attn.yield %x2 : i1
  }
}

// Windows under `or`: the larger; one to the left and one to the right meet at q.
// CHECK-LABEL: attn.kernel @either
attn.kernel @either heads(1) dim(64) q(f32) kv(f32) {
  // CHECK: attn.mask (%{{.*}}, %{{.*}}, %[[Q:.*]], %[[K:.*]]) {
  attn.mask (%b, %h, %q, %k) {
    %w0 = attn.window %q, %k left(7)
    %w1 = attn.window %q, %k left(5) right(2)
    // CHECK-NEXT: %[[W:.*]] = attn.window %[[Q]], %[[K]] left(7)
    // CHECK-NEXT: attn.yield %[[W]]
    %x0 = attn.or %w1, %w0
    attn.yield %x0 : i1
  }
}
// CHECK-LABEL: attn.kernel @everything
attn.kernel @everything heads(1) dim(64) q(f32) kv(f32) {
  attn.mask (%b, %h, %q, %k) {
    %c = attn.causal %q, %k
    %w = attn.window %q, %k left(0)
    // CHECK: attn.mask
    // CHECK-NEXT: %[[T:.*]] = arith.constant true
    // CHECK-NEXT: attn.yield %[[T]]
    %x0 = attn.or %w, %c
    attn.yield %x0 : i1
  }
}
// Two-sided windows of which none holds the other stay two.
// CHECK-LABEL: attn.kernel @crossing
attn.kernel @crossing heads(1) dim(64) q(f32) kv(f32) {
  attn.mask (%b, %h, %q, %k) {
    // CHECK: attn.window %{{.*}} left(7) right(1)
    %w0 = attn.window %q, %k left(7) right(1)
    // CHECK: attn.window %{{.*}} left(5) right(2)
    %w1 = attn.window %q, %k left(5) right(2)
    // CHECK: attn.or
    %x0 = attn.or %w0, %w1
    attn.yield %x0 : i1
  }
}

// A window on the past side is the clamp.
// CHECK-LABEL: attn.kernel @clamp
attn.kernel @clamp heads(1) dim(64) q(f32) kv(f32) params(%left: i32)
    tables(%mm: !attn.ranges, %im: !attn.ranges, %len: !attn.table<[b], i32>) {
  // CHECK: attn.mask (%[[B:.*]], %{{.*}}, %[[Q:.*]], %[[K:.*]]) {
  attn.mask (%b, %h, %q, %k) {
    %n = attn.load %len[%b] : !attn.table<[b], i32>
    %r0 = attn.mm_prefix %mm, %b, %q, %k
    %w0 = attn.window %q, %k left(%left)
    // CHECK-DAG: attn.mm_prefix %mm, %[[B]], %[[Q]], %[[K]] clamp(%left){{$}}
    %x0 = attn.and %r0, %w0
    // The smaller of two literals; the same value twice.
    %r1 = attn.mm_prefix %im, %b, %q, %k clamp(9)
    %w1 = attn.window %q, %k left(4)
    // CHECK-DAG: attn.mm_prefix %im, %[[B]], %[[Q]], %[[K]] clamp(4){{$}}
    %x1 = attn.and %w1, %r1
    %r2 = attn.mm_prefix %im, %b, %q, %k clamp(%n)
    %w2 = attn.window %q, %k left(%n)
    // CHECK-DAG: attn.mm_prefix %im, %[[B]], %[[Q]], %[[K]] clamp(%{{.*}}){{$}}
    %x2 = attn.and %r2, %w2
    // The other side of the window stays.
    %w3 = attn.window %q, %k left(6) right(2)
    %r3 = attn.mm_prefix %mm, %b, %q, %k
    // CHECK-DAG: attn.mm_prefix %mm, %[[B]], %[[Q]], %[[K]] clamp(6){{$}}
    // CHECK-DAG: attn.window %[[Q]], %[[K]] right(2){{$}}
    %x3 = attn.and %r3, %w3
    %y0 = attn.or %x0, %x1
    %y1 = attn.or %y0, %x2
    %y2 = attn.or %y1, %x3
    // CHECK: attn.yield
    attn.yield %y2 : i1
  }
}

// Negative twins: another value, and a window that cuts the future side.
// CHECK-LABEL: attn.kernel @no_clamp
attn.kernel @no_clamp heads(1) dim(64) q(f32) kv(f32) params(%left: i32, %other: i32)
    tables(%mm: !attn.ranges) {
  attn.mask (%b, %h, %q, %k) {
    // CHECK: attn.mm_prefix %mm, %{{.*}} clamp(%left)
    %r0 = attn.mm_prefix %mm, %b, %q, %k clamp(%left)
    // CHECK: attn.window %{{.*}} left(%other)
    %w0 = attn.window %q, %k left(%other)
    // CHECK: attn.and
    %x0 = attn.and %r0, %w0
    // CHECK: attn.mm_prefix %mm, %{{.*}}, %{{.*}}, %{{.*}}{{$}}
    %r1 = attn.mm_prefix %mm, %b, %q, %k
    // CHECK: attn.window %{{.*}} right(2)
    %w1 = attn.window %q, %k right(2)
    // CHECK: attn.and
    %x1 = attn.and %r1, %w1
    // CHECK: attn.or
    %y = attn.or %x0, %x1
    attn.yield %y : i1
  }
}

// Prefixes and global tokens that hold each other.
// CHECK-LABEL: attn.kernel @prefixes
attn.kernel @prefixes heads(1) dim(64) q(f32) kv(f32) params(%n: i32) {
  // CHECK: attn.mask (%{{.*}}, %{{.*}}, %[[Q:.*]], %[[K:.*]]) {
  attn.mask (%b, %h, %q, %k) {
    %p0 = attn.prefix %k, 4
    %p1 = attn.prefix %k, 9
    %g0 = attn.global %q, %k, 9
    %g1 = attn.global %q, %k, %n
    %p2 = attn.prefix %k, %n
    // CHECK-DAG: %[[G0:.*]] = attn.global %[[Q]], %[[K]], 9
    // CHECK-DAG: %[[G1:.*]] = attn.global %[[Q]], %[[K]], %n
    // CHECK: %[[M:.*]] = attn.or %[[G0]], %[[G1]]
    // CHECK-NEXT: attn.yield %[[M]]
    %x0 = attn.or %p0, %p1
    %x1 = attn.or %x0, %g0
    %x2 = attn.or %x1, %g1
    %x3 = attn.or %x2, %p2
    attn.yield %x3 : i1
  }
}
