// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: attn-opt %s --attn-raise-masks | FileCheck %s
// RUN: attn-opt %s --attn-raise-masks > %t.once
// RUN: attn-opt %t.once --attn-raise-masks | diff %t.once -

// As kernels write it.
// CHECK-LABEL: attn.kernel @plain
attn.kernel @plain heads(1) dim(64) q(f32) kv(f32) tables(%mm: !attn.ranges) {
  // CHECK: attn.mask (%[[B:.*]], %{{.*}}, %[[Q:.*]], %[[K:.*]]) {
  attn.mask (%b, %h, %q, %k) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %none = arith.constant false
    %n = attn.num_ranges %mm[%b]
    // CHECK-NEXT: %[[M:.*]] = attn.mm_prefix %mm, %[[B]], %[[Q]], %[[K]]{{$}}
    // CHECK-NEXT: attn.yield %[[M]] : i1
    %m = scf.for %r = %c0 to %n step %c1 iter_args(%acc = %none) -> (i1) {
      %s, %e = attn.range %mm[%b, %r]
      %t0 = arith.cmpi sle, %s, %q : index
      %t1 = arith.cmpi sle, %q, %e : index
      %t2 = arith.cmpi sle, %s, %k : index
      %t3 = arith.cmpi sle, %k, %e : index
      %x0 = arith.andi %t0, %t1 : i1
      %x1 = arith.andi %x0, %t2 : i1
      %x2 = arith.andi %x1, %t3 : i1
      %next = arith.ori %acc, %x2 : i1
      scf.yield %next : i1
    }
    attn.yield %m : i1
  }
}

// Other operand orders, strictness, widths and associations; a guard against dead ranges; two reads
// of the same range; the accumulator on the right.
// CHECK-LABEL: attn.kernel @spelled
attn.kernel @spelled heads(1) dim(64) q(f32) kv(f32) tables(%mm: !attn.ranges) {
  // CHECK: attn.mask (%[[B:.*]], %{{.*}}, %[[Q:.*]], %[[K:.*]]) {
  attn.mask (%b, %h, %q, %k) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %none = arith.constant false
    %n = attn.num_ranges %mm[%b]
    // CHECK-NEXT: %[[M:.*]] = attn.mm_prefix %mm, %[[B]], %[[Q]], %[[K]]{{$}}
    // CHECK-NEXT: attn.yield %[[M]] : i1
    %m = scf.for %r = %c0 to %n step %c1 iter_args(%acc = %none) -> (i1) {
      %s, %e = attn.range %mm[%b, %r]
      %s2, %e2 = attn.range %mm[%b, %r]
      %e1 = arith.addi %e2, %c1 : index
      %live = arith.cmpi slt, %s, %e : index
      %t0 = arith.cmpi sgt, %e1, %q : index
      %t1 = arith.cmpi sge, %q, %s2 : index
      %s32 = arith.index_cast %s : index to i32
      %k32 = arith.index_cast %k : index to i32
      %t2 = arith.cmpi sge, %k32, %s32 : i32
      %d = arith.subi %k, %e : index
      %t3 = arith.cmpi slt, %d, %c1 : index
      %x0 = attn.and %t0, %t2
      %x1 = arith.andi %t3, %t1 : i1
      %x2 = arith.andi %x1, %x0 : i1
      %x3 = arith.andi %live, %x2 : i1
      %next = arith.ori %x3, %acc : i1
      scf.yield %next : i1
    }
    attn.yield %m : i1
  }
}

// Guards and the accumulator as selects, and by De Morgan.
// CHECK-LABEL: attn.kernel @selects
attn.kernel @selects heads(1) dim(64) q(f32) kv(f32) tables(%mm: !attn.ranges) {
  // CHECK: attn.mask (%[[B:.*]], %{{.*}}, %[[Q:.*]], %[[K:.*]]) {
  attn.mask (%b, %h, %q, %k) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %none = arith.constant false
    %yes = arith.constant true
    %n = attn.num_ranges %mm[%b]
    // CHECK-NEXT: %[[M:.*]] = attn.mm_prefix %mm, %[[B]], %[[Q]], %[[K]]{{$}}
    // CHECK-NEXT: attn.yield %[[M]] : i1
    %m = scf.for %r = %c0 to %n step %c1 iter_args(%acc = %none) -> (i1) {
      %s, %e = attn.range %mm[%b, %r]
      %live = arith.cmpi slt, %s, %e : index
      %t0 = arith.cmpi sle, %s, %q : index
      %t1 = arith.cmpi sgt, %q, %e : index
      %before = arith.cmpi slt, %k, %s : index
      %after = arith.cmpi slt, %e, %k : index
      %out = arith.ori %before, %after : i1
      %in = arith.xori %out, %yes : i1
      %qin = arith.select %t1, %none, %t0 : i1
      %both = arith.select %qin, %in, %none : i1
      %guarded = arith.select %live, %both, %none : i1
      %next = arith.select %acc, %yes, %guarded : i1
      scf.yield %next : i1
    }
    attn.yield %m : i1
  }
}

// Tests that do not change in the loop stay outside: a window, a parameter and a negated mask.
// CHECK-LABEL: attn.kernel @clamped
attn.kernel @clamped heads(1) dim(64) q(f32) kv(f32) params(%left: i32) tables(%mm: !attn.ranges) {
  // CHECK: attn.mask (%[[B:.*]], %{{.*}}, %[[Q:.*]], %[[K:.*]]) {
  attn.mask (%b, %h, %q, %k) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %none = arith.constant false
    %yes = arith.constant true
    // CHECK-DAG: %[[P:.*]] = attn.prefix %[[K]], 3
    %p = attn.prefix %k, 3
    %n = attn.num_ranges %mm[%b]
    // CHECK-DAG: %[[MM:.*]] = attn.mm_prefix %mm, %[[B]], %[[Q]], %[[K]]{{$}}
    // CHECK-DAG: %[[W:.*]] = attn.window %[[Q]], %[[K]] left(7)
    // CHECK-DAG: %[[L:.*]] = arith.subi %[[Q]], %{{.*}} : index
    // CHECK-DAG: %[[R:.*]] = attn.in_rows %[[K]], %[[L]],
    // CHECK-DAG: %[[NP:.*]] = attn.not %[[P]]
    // CHECK-NOT: scf.for
    // CHECK: attn.yield
    %m = scf.for %r = %c0 to %n step %c1 iter_args(%acc = %none) -> (i1) {
      %s, %e = attn.range %mm[%b, %r]
      %d = arith.subi %q, %k : index
      %c7 = arith.constant 7 : index
      %near = arith.cmpi sle, %d, %c7 : index
      %l = arith.index_cast %left : i32 to index
      %nearer = arith.cmpi sle, %d, %l : index
      %t0 = arith.cmpi sle, %s, %q : index
      %t1 = arith.cmpi sle, %q, %e : index
      %t2 = arith.cmpi sle, %s, %k : index
      %t3 = arith.cmpi sle, %k, %e : index
      %np = arith.xori %p, %yes : i1
      %x0 = arith.andi %t0, %t1 : i1
      %x1 = arith.andi %x0, %t2 : i1
      %x2 = arith.andi %x1, %t3 : i1
      %x3 = arith.andi %x2, %near : i1
      %x4 = arith.andi %nearer, %x3 : i1
      %x5 = arith.andi %x4, %np : i1
      %next = arith.ori %acc, %x5 : i1
      scf.yield %next : i1
    }
    attn.yield %m : i1
  }
}

// Two scans over two tables, one of them behind a mask.
// CHECK-LABEL: attn.kernel @two
attn.kernel @two heads(1) dim(64) q(f32) kv(f32) tables(%mm: !attn.ranges, %im: !attn.ranges) {
  attn.mask (%b, %h, %q, %k) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %none = arith.constant false
    %n0 = attn.num_ranges %mm[%b]
    %n1 = attn.num_ranges %im[%b]
    // CHECK: %[[M0:.*]] = attn.mm_prefix %mm
    %m0 = scf.for %r = %c0 to %n0 step %c1 iter_args(%acc = %none) -> (i1) {
      %s, %e = attn.range %mm[%b, %r]
      %t0 = arith.cmpi sle, %s, %q : index
      %t1 = arith.cmpi sle, %q, %e : index
      %t2 = arith.cmpi sle, %s, %k : index
      %t3 = arith.cmpi sle, %k, %e : index
      %x0 = arith.andi %t0, %t1 : i1
      %x1 = arith.andi %t2, %t3 : i1
      %x2 = arith.andi %x0, %x1 : i1
      %next = arith.ori %acc, %x2 : i1
      scf.yield %next : i1
    }
    // CHECK: %[[M1:.*]] = attn.mm_prefix %im
    %m1 = scf.for %r = %c0 to %n1 step %c1 iter_args(%acc = %none) -> (i1) {
      %s, %e = attn.range %im[%b, %r]
      %t0 = arith.cmpi sle, %s, %q : index
      %t1 = arith.cmpi sle, %q, %e : index
      %t2 = arith.cmpi sle, %s, %k : index
      %t3 = arith.cmpi sle, %k, %e : index
      %x0 = arith.andi %t0, %t1 : i1
      %x1 = arith.andi %t2, %t3 : i1
      %x2 = arith.andi %x0, %x1 : i1
      %next = arith.ori %acc, %x2 : i1
      scf.yield %next : i1
    }
    // CHECK: attn.or %[[M0]], %[[M1]]
    %m = arith.ori %m0, %m1 : i1
    attn.yield %m : i1
  }
}
