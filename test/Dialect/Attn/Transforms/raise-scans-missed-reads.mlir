// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: attn-opt %s --attn-raise-masks --remarks-filter-missed='attn.*' --remark-policy=all \
// RUN:   -verify-diagnostics | FileCheck %s
// RUN: attn-opt %s --attn-raise-masks > %t.once
// RUN: attn-opt %t.once --attn-raise-masks | diff %t.once -

// CHECK-LABEL: attn.kernel @uses_index
attn.kernel @uses_index heads(1) dim(64) q(f32) kv(f32) tables(%mm: !attn.ranges, %im: !attn.ranges) {
  attn.mask (%b, %h, %q, %k) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %none = arith.constant false
    %n = attn.num_ranges %mm[%b]
    // CHECK: scf.for
    // CHECK-NOT: attn.mm_prefix
    // CHECK: attn.yield
    // expected-remark @+1 {{[Missed] RaiseMasks | Category:attn | Remark="loop is no scan over ranges: its induction variable has other uses than attn.range"}}
    %m = scf.for %r = %c0 to %n step %c1 iter_args(%acc = %none) -> (i1) {
      %s, %e = attn.range %mm[%b, %r]
      %t0 = arith.cmpi sle, %r, %q : index
      %t1 = arith.cmpi sle, %q, %e : index
      %t2 = arith.cmpi sle, %s, %k : index
      %t3 = arith.cmpi sle, %k, %e : index
      %x0 = arith.andi %t0, %t1 : i1
      %x1 = arith.andi %t2, %t3 : i1
      %x2 = arith.andi %x0, %x1 : i1
      %next = arith.ori %acc, %x2 : i1
      scf.yield %next : i1
    }
    attn.yield %m : i1
  }
}

// CHECK-LABEL: attn.kernel @other_index
attn.kernel @other_index heads(1) dim(64) q(f32) kv(f32) tables(%mm: !attn.ranges, %im: !attn.ranges) {
  attn.mask (%b, %h, %q, %k) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %none = arith.constant false
    %n = attn.num_ranges %mm[%b]
    // CHECK: scf.for
    // CHECK-NOT: attn.mm_prefix
    // CHECK: attn.yield
    // expected-remark @+1 {{[Missed] RaiseMasks | Category:attn | Remark="loop is no scan over ranges: it reads ranges of another table or index"}}
    %m = scf.for %r = %c0 to %n step %c1 iter_args(%acc = %none) -> (i1) {
      %s, %e = attn.range %mm[%b, %c1]
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
    attn.yield %m : i1
  }
}

// CHECK-LABEL: attn.kernel @other_table
attn.kernel @other_table heads(1) dim(64) q(f32) kv(f32) tables(%mm: !attn.ranges, %im: !attn.ranges) {
  attn.mask (%b, %h, %q, %k) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %none = arith.constant false
    %n = attn.num_ranges %mm[%b]
    // CHECK: scf.for
    // CHECK-NOT: attn.mm_prefix
    // CHECK: attn.yield
    // expected-remark @+1 {{[Missed] RaiseMasks | Category:attn | Remark="loop is no scan over ranges: it reads ranges of another table or index"}}
    %m = scf.for %r = %c0 to %n step %c1 iter_args(%acc = %none) -> (i1) {
      %s, %e = attn.range %mm[%b, %r]
      %t0 = arith.cmpi sle, %s, %q : index
      %s2, %e2 = attn.range %im[%b, %r]
      %t1 = arith.cmpi sle, %q, %e : index
      %t2 = arith.cmpi sle, %s, %k : index
      %t3 = arith.cmpi sle, %k, %e : index
      %x0 = arith.andi %t0, %t1 : i1
      %x1 = arith.andi %t2, %t3 : i1
      %x2 = arith.andi %x0, %x1 : i1
      %next = arith.ori %acc, %x2 : i1
      scf.yield %next : i1
    }
    attn.yield %m : i1
  }
}

// CHECK-LABEL: attn.kernel @mask_in_loop
attn.kernel @mask_in_loop heads(1) dim(64) q(f32) kv(f32) tables(%mm: !attn.ranges, %im: !attn.ranges) {
  attn.mask (%b, %h, %q, %k) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %none = arith.constant false
    %n = attn.num_ranges %mm[%b]
    // CHECK: scf.for
    // CHECK-NOT: attn.mm_prefix
    // CHECK: attn.yield
    // expected-remark @+1 {{[Missed] RaiseMasks | Category:attn | Remark="loop is no scan over ranges: its body holds 'arith.trunci'"}}
    %m = scf.for %r = %c0 to %n step %c1 iter_args(%acc = %none) -> (i1) {
      %s, %e = attn.range %mm[%b, %r]
      %t0 = arith.cmpi sle, %s, %q : index
      %t1 = arith.cmpi sle, %q, %e : index
      %t2 = arith.cmpi sle, %s, %k : index
      %t3 = arith.cmpi sle, %k, %e : index
      %x0 = arith.andi %t0, %t1 : i1
      %w = arith.extui %t2 : i1 to i32
      %v = arith.trunci %w : i32 to i1
      %x1 = arith.andi %v, %t3 : i1
      %x2 = arith.andi %x0, %x1 : i1
      %next = arith.ori %acc, %x2 : i1
      scf.yield %next : i1
    }
    attn.yield %m : i1
  }
}

// Start and end lists as plain tables promise nothing about their order or liveness.
// CHECK-LABEL: attn.kernel @plain_table
attn.kernel @plain_table heads(1) dim(64) q(f32) kv(f32) tables(%mm: !attn.ranges, %starts: !attn.table<[b, slot], i32>, %ends: !attn.table<[b, slot], i32>) {
  attn.mask (%b, %h, %q, %k) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %none = arith.constant false
    %n = attn.num_ranges %mm[%b]
    // CHECK: scf.for
    // CHECK-NOT: attn.mm_prefix
    // CHECK: attn.yield
    // expected-remark @+1 {{[Missed] RaiseMasks | Category:attn | Remark="loop is no scan over ranges: it reads a plain table; declare the ranges as !attn.ranges"}}
    %m = scf.for %r = %c0 to %n step %c1 iter_args(%acc = %none) -> (i1) {
      %s32 = attn.load %starts[%b, %r] : !attn.table<[b, slot], i32>
      %e32 = attn.load %ends[%b, %r] : !attn.table<[b, slot], i32>
      %s = arith.index_cast %s32 : i32 to index
      %e = arith.index_cast %e32 : i32 to index
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
    attn.yield %m : i1
  }
}

// CHECK-LABEL: attn.kernel @plain_guard
attn.kernel @plain_guard heads(1) dim(64) q(f32) kv(f32) tables(%mm: !attn.ranges, %starts: !attn.table<[b, slot], i32>) {
  attn.mask (%b, %h, %q, %k) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %none = arith.constant false
    %n = attn.num_ranges %mm[%b]
    // CHECK: scf.for
    // CHECK-NOT: attn.mm_prefix
    // CHECK: attn.yield
    // expected-remark @+1 {{[Missed] RaiseMasks | Category:attn | Remark="loop is no scan over ranges: it reads a plain table besides the range"}}
    %m = scf.for %r = %c0 to %n step %c1 iter_args(%acc = %none) -> (i1) {
      %s, %e = attn.range %mm[%b, %r]
      %on = attn.load %starts[%b, %r] : !attn.table<[b, slot], i32>
      %one = arith.constant 1 : i32
      %t0 = arith.cmpi eq, %on, %one : i32
      %t1 = arith.cmpi sle, %q, %e : index
      %t2 = arith.cmpi sle, %s, %k : index
      %t3 = arith.cmpi sle, %k, %e : index
      %x0 = arith.andi %t0, %t1 : i1
      %x1 = arith.andi %t2, %t3 : i1
      %x2 = arith.andi %x0, %x1 : i1
      %next = arith.ori %acc, %x2 : i1
      scf.yield %next : i1
    }
    attn.yield %m : i1
  }
}
