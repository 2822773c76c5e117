// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: attn-opt %s --attn-raise-masks | FileCheck %s
// RUN: attn-opt %s --attn-raise-masks > %t.once
// RUN: attn-opt %t.once --attn-raise-masks | diff %t.once -

// Every signed predicate, both orders, moved constants, i64 and i32 casts.
// CHECK-LABEL: attn.kernel @causal
attn.kernel @causal heads(1) dim(64) q(f32) kv(f32) {
  // CHECK: attn.mask (%{{.*}}, %{{.*}}, %[[Q:.*]], %[[K:.*]]) {
  attn.mask (%b, %h, %q, %k) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %cm1 = arith.constant -1 : index
    %q1 = arith.addi %q, %c1 : index
    %q2 = arith.addi %c1, %q : index
    %qm = arith.subi %q, %cm1 : index
    %d = arith.subi %q, %k : index
    %e = arith.subi %k, %q : index
    %n = arith.muli %d, %cm1 : index
    // CHECK-COUNT-14: attn.causal %[[Q]], %[[K]]
    %m0 = arith.cmpi sle, %k, %q : index
    %m1 = arith.cmpi sge, %q, %k : index
    %m2 = arith.cmpi slt, %k, %q1 : index
    %m3 = arith.cmpi sgt, %q2, %k : index
    %m4 = arith.cmpi slt, %k, %qm : index
    %m5 = arith.cmpi sge, %d, %c0 : index
    %m6 = arith.cmpi sgt, %d, %cm1 : index
    %m7 = arith.cmpi sle, %e, %c0 : index
    %m8 = arith.cmpi sgt, %c1, %e : index
    %m9 = arith.cmpi sle, %n, %c0 : index
    %q64 = arith.index_cast %q : index to i64
    %k64 = arith.index_cast %k : index to i64
    %m10 = arith.cmpi sle, %k64, %q64 : i64
    %q32 = arith.index_cast %q : index to i32
    %k32 = arith.trunci %k64 : i64 to i32
    %m11 = arith.cmpi sge, %q32, %k32 : i32
    %d32 = arith.subi %q32, %k32 : i32
    %z32 = arith.constant 0 : i32
    %m12 = arith.cmpi sge, %d32, %z32 : i32
    %d33 = arith.extsi %d32 : i32 to i64
    %z64 = arith.constant 0 : i64
    %m13 = arith.cmpi sle, %z64, %d33 : i64
    // CHECK-NOT: arith.cmpi
    // CHECK: attn.yield
    %x0 = arith.andi %m0, %m1 : i1
    %x1 = arith.andi %x0, %m2 : i1
    %x2 = arith.andi %x1, %m3 : i1
    %x3 = arith.andi %x2, %m4 : i1
    %x4 = arith.andi %x3, %m5 : i1
    %x5 = arith.andi %x4, %m6 : i1
    %x6 = arith.andi %x5, %m7 : i1
    %x7 = arith.andi %x6, %m8 : i1
    %x8 = arith.andi %x7, %m9 : i1
    %x9 = arith.andi %x8, %m10 : i1
    %x10 = arith.andi %x9, %m11 : i1
    %x11 = arith.andi %x10, %m12 : i1
    %x12 = arith.andi %x11, %m13 : i1
    attn.yield %x12 : i1
  }
}

// Constant radii are windows; strictly past and future halves are rows.
// CHECK-LABEL: attn.kernel @windows
attn.kernel @windows heads(1) dim(64) q(f32) kv(f32) {
  // CHECK: attn.mask (%{{.*}}, %{{.*}}, %[[Q:.*]], %[[K:.*]]) {
  attn.mask (%b, %h, %q, %k) {
    %c5 = arith.constant 5 : index
    %c1 = arith.constant 1 : index
    %d = arith.subi %q, %k : index
    %e = arith.subi %k, %q : index
    // q - k <= 5
    // CHECK: %[[M0:.*]] = attn.window %[[Q]], %[[K]] left(5)
    %m0 = arith.cmpi sle, %d, %c5 : index
    // q - k < 5, the count
    // CHECK: %[[M1:.*]] = attn.window %[[Q]], %[[K]] left(4)
    %m1 = arith.cmpi slt, %d, %c5 : index
    // k >= q - 5
    %l = arith.subi %q, %c5 : index
    // CHECK: %[[M2:.*]] = attn.window %[[Q]], %[[K]] left(5)
    %m2 = arith.cmpi sge, %k, %l : index
    // k > q - 5
    // CHECK: %[[M3:.*]] = attn.window %[[Q]], %[[K]] left(4)
    %m3 = arith.cmpi sgt, %k, %l : index
    // k + 5 >= q
    %u = arith.addi %k, %c5 : index
    // CHECK: %[[M4:.*]] = attn.window %[[Q]], %[[K]] left(5)
    %m4 = arith.cmpi sge, %u, %q : index
    // k >= q
    // CHECK: %[[M5:.*]] = attn.window %[[Q]], %[[K]] left(0)
    %m5 = arith.cmpi sge, %k, %q : index
    // k - q <= 5
    // CHECK: %[[M6:.*]] = attn.window %[[Q]], %[[K]] right(5)
    %m6 = arith.cmpi sle, %e, %c5 : index
    // k < q, q < k
    // CHECK: %[[M7:.*]] = attn.in_rows %[[K]], %c-1073741824, %[[Q]]
    %m7 = arith.cmpi slt, %k, %q : index
    // CHECK: %[[Q1:.*]] = arith.addi %[[Q]], %c1{{.*}} : index
    // CHECK: %[[M8:.*]] = attn.in_rows %[[K]], %[[Q1]], %c1073741824
    %m8 = arith.cmpi slt, %q, %k : index
    // k == q, k != 5
    // CHECK: %[[Q2:.*]] = arith.addi %[[Q]], %c1{{.*}} : index
    // CHECK: %[[M9:.*]] = attn.in_rows %[[K]], %[[Q]], %[[Q2]]
    %m9 = arith.cmpi eq, %q, %k : index
    // CHECK: %[[R:.*]] = attn.in_rows %[[K]], %c5, %c6
    // CHECK: %[[M10:.*]] = attn.not %[[R]]
    %m10 = arith.cmpi ne, %k, %c5 : index
    // CHECK: %[[X0:.*]] = attn.and %[[M0]], %[[M1]]
    %x0 = arith.andi %m0, %m1 : i1
    // CHECK: %[[X1:.*]] = attn.or %[[X0]], %[[M2]]
    %x1 = arith.ori %x0, %m2 : i1
    %x2 = arith.ori %x1, %m3 : i1
    %x3 = arith.ori %x2, %m4 : i1
    %x4 = arith.ori %x3, %m5 : i1
    %x5 = arith.ori %x4, %m6 : i1
    %x6 = arith.ori %x5, %m7 : i1
    %x7 = arith.ori %x6, %m8 : i1
    %x8 = arith.ori %x7, %m9 : i1
    %x9 = arith.ori %x8, %m10 : i1
    attn.yield %x9 : i1
  }
}

// A parameter is no radius here: below 0 the window is empty, and nobody refuses it.
// CHECK-LABEL: attn.kernel @parameters
attn.kernel @parameters heads(1) dim(64) q(f32) kv(f32) params(%left: i32, %far: i64)
    tables(%len: !attn.table<[b], i32>, %tok: !attn.table<[token], i32>) {
  // CHECK: attn.mask (%[[B:.*]], %{{.*}}, %[[Q:.*]], %[[K:.*]]) {
  attn.mask (%b, %h, %q, %k) {
    %d = arith.subi %q, %k : index
    %l = arith.index_cast %left : i32 to index
    // CHECK: %[[L:.*]] = arith.index_cast %left : i32 to index
    // CHECK: %[[LO:.*]] = arith.subi %[[Q]], %[[L]] : index
    // CHECK: attn.in_rows %[[K]], %[[LO]], %c1073741824
    %m0 = arith.cmpi sle, %d, %l : index
    // The same in i32: q - k does not wrap there, and the bound is exact.
    %q32 = arith.index_cast %q : index to i32
    %k32 = arith.index_cast %k : index to i32
    %d32 = arith.subi %q32, %k32 : i32
    // CHECK: %[[LO1:.*]] = arith.subi %[[Q]], %{{.*}} : index
    // CHECK: %[[LO2:.*]] = arith.addi %[[LO1]], %c1{{.*}} : index
    // CHECK: attn.in_rows %[[K]], %[[LO2]], %c1073741824
    %m1 = arith.cmpi slt, %d32, %left : i32
    // q - left may wrap in i32, but does not depend on k: it stays as written.
    // CHECK: %[[W:.*]] = arith.subi %{{.*}}, %left : i32
    %w = arith.subi %q32, %left : i32
    // CHECK: %[[WI:.*]] = arith.index_cast %[[W]] : i32 to index
    // CHECK: attn.in_rows %[[K]], %[[WI]], %c1073741824
    %m2 = arith.cmpi sge, %k32, %w : i32
    // k < n of a request is a prefix, whatever n is.
    // CHECK: %[[N:.*]] = attn.load %len[%[[B]]]
    %n = attn.load %len[%b] : !attn.table<[b], i32>
    // CHECK: attn.prefix %[[K]], %[[N]]
    %m3 = arith.cmpi slt, %k32, %n : i32
    // CHECK: attn.prefix %[[K]], %left
    %m4 = arith.cmpi slt, %k, %l : index
    // CHECK: attn.prefix %[[K]], 7
    %c7 = arith.constant 7 : index
    %m5 = arith.cmpi sgt, %c7, %k : index
    // A value per row is none.
    // CHECK: %[[T:.*]] = attn.load %tok[%[[Q]]]
    %t = attn.load %tok[%q] : !attn.table<[token], i32>
    // CHECK: %[[TI:.*]] = arith.index_cast %[[T]]
    // CHECK: attn.in_rows %[[K]], %c-1073741824{{.*}}, %[[TI]]
    %m6 = arith.cmpi slt, %k32, %t : i32
    // 64-bit values: a bound of their own is taken as it is, a sum saturates first.
    %f = arith.index_cast %far : i64 to index
    // CHECK: %[[F0:.*]] = arith.index_cast %far : i64 to index
    // CHECK-NEXT: arith.constant
    // CHECK-NEXT: attn.in_rows %[[K]], %c-1073741824{{.*}}, %[[F0]]
    %m7 = arith.cmpi slt, %k, %f : index
    // CHECK: %[[F1:.*]] = arith.maxsi %{{.*}}, %c-1099511627776
    // CHECK: %[[F2:.*]] = arith.minsi %[[F1]], %c1099511627776
    // CHECK: %[[F3:.*]] = arith.addi %[[F2]], %c1{{.*}} : index
    // CHECK: attn.in_rows %[[K]], %c-1073741824{{.*}}, %[[F3]]
    %m8 = arith.cmpi sle, %k, %f : index
    // CHECK-NOT: arith.cmpi
    // CHECK: attn.yield
    %x0 = arith.andi %m0, %m1 : i1
    %x1 = arith.andi %x0, %m2 : i1
    %x2 = arith.andi %x1, %m3 : i1
    %x3 = arith.andi %x2, %m4 : i1
    %x4 = arith.andi %x3, %m5 : i1
    %x5 = arith.andi %x4, %m6 : i1
    %x6 = arith.andi %x5, %m7 : i1
    %x7 = arith.andi %x6, %m8 : i1
    attn.yield %x7 : i1
  }
}

// Bounds beyond every position.
// CHECK-LABEL: attn.kernel @beyond
attn.kernel @beyond heads(1) dim(64) q(f32) kv(f32) {
  attn.mask (%b, %h, %q, %k) {
    %big = arith.constant 1073741824 : index
    %huge = arith.constant 9223372036854775807 : index
    %d = arith.subi %q, %k : index
    // CHECK: %[[T:.*]] = arith.constant true
    %m0 = arith.cmpi slt, %k, %big : index
    // CHECK: %[[F:.*]] = arith.constant false
    %m1 = arith.cmpi sge, %k, %big : index
    // q - k is at most 2^31 - 2.
    // CHECK: attn.window %{{.*}}, %{{.*}} left(1073741824)
    %m2 = arith.cmpi sle, %d, %big : index
    // CHECK: %[[T1:.*]] = arith.constant true
    %c31 = arith.constant 2147483648 : index
    %m3 = arith.cmpi slt, %d, %c31 : index
    // A constant of 64 bits is a bound like any value.
    // CHECK: attn.in_rows
    %m4 = arith.cmpi slt, %k, %huge : index
    %x0 = arith.andi %m0, %m1 : i1
    %x1 = arith.andi %x0, %m2 : i1
    %x2 = arith.andi %x1, %m3 : i1
    %x3 = arith.andi %x2, %m4 : i1
    attn.yield %x3 : i1
  }
}

// CHECK-LABEL: attn.kernel @logic
attn.kernel @logic heads(1) dim(64) q(f32) kv(f32) {
  attn.mask (%b, %h, %q, %k) {
    %t = arith.constant true
    %f = arith.constant false
    // CHECK: %[[A:.*]] = attn.causal
    %a = attn.causal %q, %k
    // CHECK: %[[B:.*]] = attn.prefix
    %p = attn.prefix %k, 3
    // CHECK: %[[X0:.*]] = attn.not %[[A]]
    %x0 = arith.xori %a, %t : i1
    // CHECK: %[[X1:.*]] = attn.not %[[X0]]
    %x1 = arith.cmpi eq, %f, %x0 : i1
    // CHECK: %[[X2:.*]] = attn.not %[[X1]]
    %x2 = arith.cmpi ne, %x1, %t : i1
    // The other constant leaves the mask as it is.
    %x3 = arith.xori %f, %x2 : i1
    %x4 = arith.cmpi eq, %x3, %t : i1
    // CHECK: %[[S0:.*]] = attn.or %[[X2]], %[[B]]
    %s0 = arith.select %x4, %t, %p : i1
    // CHECK: %[[S1:.*]] = attn.and %[[S0]], %[[B]]
    %s1 = arith.select %s0, %p, %f : i1
    // CHECK: %[[N0:.*]] = attn.not %[[S1]]
    // CHECK: %[[S2:.*]] = attn.and %[[N0]], %[[A]]
    %s2 = arith.select %s1, %f, %a : i1
    // CHECK: %[[N1:.*]] = attn.not %[[S2]]
    // CHECK: %[[S3:.*]] = attn.or %[[N1]], %[[B]]
    %s3 = arith.select %s2, %p, %t : i1
    // CHECK: %[[S4:.*]] = attn.not %[[S3]]
    %s4 = arith.select %s3, %f, %t : i1
    %s5 = arith.select %s4, %t, %f : i1
    // CHECK: attn.yield %[[S4]]
    attn.yield %s5 : i1
  }
}

// No mask: nothing to do. Scores are not touched.
// CHECK-LABEL: attn.kernel @score
attn.kernel @score heads(1) dim(64) q(f32) kv(f32) {
  attn.score (%s, %b, %h, %q, %k) {
    %z = arith.constant 0.0 : f32
    // CHECK: arith.cmpi sle
    %m = arith.cmpi sle, %k, %q : index
    // CHECK: arith.select
    %x = arith.select %m, %s, %z : f32
    attn.yield %x : f32
  }
}
