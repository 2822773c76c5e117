// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: attn-opt %s --canonicalize | FileCheck %s
// RUN: attn-opt %s --canonicalize > %t.once
// RUN: attn-opt %t.once --canonicalize | diff %t.once -

// CHECK-LABEL: attn.kernel @logic
attn.kernel @logic heads(1) dim(64) q(f32) kv(f32) {
  attn.mask (%b, %h, %q, %k) {
    %t = arith.constant true
    %f = arith.constant false
    // CHECK: %[[C:.*]] = attn.causal
    %c = attn.causal %q, %k
    // CHECK-NEXT: %[[P:.*]] = attn.prefix
    %p = attn.prefix %k, 3
    %x0 = attn.and %c, %t
    %x1 = attn.or %f, %x0
    %x2 = attn.and %x1, %x1
    %n0 = attn.not %x2
    %n1 = attn.not %n0
    %n2 = attn.not %t
    %x3 = attn.or %n1, %n2
    // CHECK-NEXT: %[[M:.*]] = attn.or %[[C]], %[[P]]
    // CHECK-NEXT: attn.yield %[[M]]
    %x4 = attn.or %x3, %p
    attn.yield %x4 : i1
  }
}

// CHECK-LABEL: attn.kernel @absorbing
attn.kernel @absorbing heads(1) dim(64) q(f32) kv(f32) {
  attn.mask (%b, %h, %q, %k) {
    %f = arith.constant false
    %c = attn.causal %q, %k
    %n = attn.not %c
    %x0 = attn.and %c, %n
    %x1 = attn.or %x0, %c
    // CHECK: %[[F:.*]] = arith.constant false
    // CHECK-NEXT: attn.mask
    // CHECK-NEXT: attn.yield %[[F]]
    %x2 = attn.and %x1, %f
    attn.yield %x2 : i1
  }
}

// CHECK-LABEL: attn.kernel @everything
attn.kernel @everything heads(1) dim(64) q(f32) kv(f32) {
  attn.mask (%b, %h, %q, %k) {
    %c = attn.causal %q, %k
    %n = attn.not %c
    // CHECK: %[[T:.*]] = arith.constant true
    // CHECK-NEXT: attn.mask
    // CHECK-NEXT: attn.yield %[[T]]
    %x0 = attn.or %n, %c
    attn.yield %x0 : i1
  }
}

// Constant operands are literals; a literal count is a radius.
// CHECK-LABEL: attn.kernel @literals
attn.kernel @literals heads(1) dim(64) q(f32) kv(f32) params(%left: i32) {
  // CHECK: attn.mask (%{{.*}}, %{{.*}}, %[[Q:.*]], %[[K:.*]]) {
  attn.mask (%b, %h, %q, %k) {
    %c5 = arith.constant 5 : i32
    %max = arith.constant 2147483647 : i32
    // CHECK-NEXT: attn.window %[[Q]], %[[K]] left(5){{$}}
    %w0 = attn.window %q, %k left(%c5)
    // CHECK-NEXT: attn.window %[[Q]], %[[K]] left(%left) right(5){{$}}
    %w1 = attn.window %q, %k left(%left) right(%c5)
    // CHECK-NEXT: attn.window %[[Q]], %[[K]] left(4){{$}}
    %s0 = attn.sliding %q, %k count(5)
    // CHECK-NEXT: attn.window %[[Q]], %[[K]] left(0){{$}}
    %s1 = attn.sliding %q, %k count(1)
    // CHECK-NEXT: attn.window %[[Q]], %[[K]] left(2147483646){{$}}
    %s2 = attn.sliding %q, %k count(%max)
    // A value stays a count.
    // CHECK-NEXT: attn.sliding %[[Q]], %[[K]] count(%left){{$}}
    %s3 = attn.sliding %q, %k count(%left)
    // CHECK: attn.yield
    %x0 = attn.and %w0, %w1
    %x1 = attn.and %x0, %s0
    %x2 = attn.and %x1, %s1
    %x3 = attn.and %x2, %s2
    %x4 = attn.and %x3, %s3
    attn.yield %x4 : i1
  }
}

// Nothing here has a simpler form.
// CHECK-LABEL: attn.kernel @plain
attn.kernel @plain heads(1) dim(64) q(f32) kv(f32) tables(%mm: !attn.ranges) {
  attn.mask (%b, %h, %q, %k) {
    // CHECK: attn.window {{.*}} left(3) right(2)
    %w = attn.window %q, %k left(3) right(2)
    // CHECK-NEXT: attn.mm_prefix {{.*}} clamp(0)
    %r = attn.mm_prefix %mm, %b, %q, %k clamp(0)
    // CHECK-NEXT: attn.not
    %n = attn.not %w
    // CHECK-NEXT: attn.and
    %x = attn.and %n, %r
    attn.yield %x : i1
  }
  // CHECK: attn.score
  // CHECK-NEXT: attn.soft_cap
  attn.score (%s, %b, %h, %q, %k) {
    %t = attn.soft_cap %s, 1.0
    attn.yield %t : f32
  }
}
