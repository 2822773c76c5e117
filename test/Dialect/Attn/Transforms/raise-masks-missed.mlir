// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: attn-opt %s --attn-raise-masks --remarks-filter='attn.*' --remark-policy=all \
// RUN:   -verify-diagnostics | FileCheck %s

// CHECK-LABEL: attn.kernel @missed
attn.kernel @missed heads(1) dim(64) q(f32) kv(f32) params(%left: i32)
    tables(%doc: !attn.table<[b, k], i32>) {
  attn.mask (%b, %h, %q, %k) {
    %q32 = arith.index_cast %q : index to i32
    %k32 = arith.index_cast %k : index to i32
    %d = arith.subi %q32, %k32 : i32
    // CHECK: arith.addi %{{.*}}, %left : i32
    %e = arith.addi %d, %left : i32
    %c9 = arith.constant 9 : i32
    // CHECK: arith.cmpi slt
    // expected-remark @+1 {{[Missed] RaiseMasks | Category:attn | Remark="comparison is kept: its arithmetic may wrap"}}
    %m0 = arith.cmpi slt, %e, %c9 : i32
    %n = attn.load %doc[%b, %k] : !attn.table<[b, k], i32>
    // CHECK: arith.cmpi eq
    // expected-remark @+1 {{[Missed] RaiseMasks | Category:attn | Remark="comparison is kept: 'attn.load' depends on k"}}
    %m1 = arith.cmpi eq, %n, %c9 : i32
    // CHECK: arith.cmpi ule
    // expected-remark @+1 {{[Missed] RaiseMasks | Category:attn | Remark="comparison is kept: it is unsigned"}}
    %m2 = arith.cmpi ule, %k, %q : index
    %kk = arith.addi %k, %k : index
    // CHECK: arith.cmpi sle
    // expected-remark @+1 {{[Missed] RaiseMasks | Category:attn | Remark="comparison is kept: k is multiplied"}}
    %m3 = arith.cmpi sle, %kk, %q : index
    %c4 = arith.constant 4 : index
    %rem = arith.remsi %k, %c4 : index
    // CHECK: arith.cmpi eq
    // expected-remark @+1 {{[Missed] RaiseMasks | Category:attn | Remark="comparison is kept: 'arith.remsi' depends on k"}}
    %m4 = arith.cmpi eq, %rem, %c4 : index
    %s = arith.addi %q, %k : index
    // CHECK: arith.cmpi slt
    // expected-remark @+1 {{[Missed] RaiseMasks | Category:attn | Remark="comparison is kept: k cancels out"}}
    %m5 = arith.cmpi slt, %s, %k : index
    %square = arith.muli %k, %q : index
    // CHECK: arith.cmpi slt
    // expected-remark @+1 {{[Missed] RaiseMasks | Category:attn | Remark="comparison is kept: 'arith.muli' depends on k"}}
    %m6 = arith.cmpi slt, %square, %q : index
    %k8 = arith.trunci %k32 : i32 to i8
    %q8 = arith.trunci %q32 : i32 to i8
    // CHECK: arith.cmpi sle
    // expected-remark @+1 {{[Missed] RaiseMasks | Category:attn | Remark="comparison is kept: its arithmetic may wrap"}}
    %m7 = arith.cmpi sle, %k8, %q8 : i8
    // What does not depend on k is no mask of keys; no remark.
    // CHECK: arith.cmpi slt
    %m8 = arith.cmpi slt, %q, %c4 : index
    // CHECK: arith.xori
    // expected-remark @+1 {{[Missed] RaiseMasks | Category:attn | Remark="'arith.xori' of two masks is kept"}}
    %x0 = arith.xori %m0, %m1 : i1
    // CHECK: arith.select
    // expected-remark @+1 {{[Missed] RaiseMasks | Category:attn | Remark="'arith.select' of two masks is kept"}}
    %x1 = arith.select %m2, %x0, %m3 : i1
    // CHECK: arith.cmpi eq
    // expected-remark @+1 {{[Missed] RaiseMasks | Category:attn | Remark="'arith.cmpi' of two masks is kept"}}
    %x2 = arith.cmpi eq, %x1, %m4 : i1
    // expected-remark @+1 {{[Passed] RaiseMasks | Category:attn | Remark="'arith.andi' is 'attn.and'"}}
    %x3 = arith.andi %x2, %m5 : i1
    // expected-remark @+1 {{[Passed] RaiseMasks | Category:attn | Remark="'arith.ori' is 'attn.or'"}}
    %x4 = arith.ori %x3, %m6 : i1
    // expected-remark @+1 {{[Passed] RaiseMasks | Category:attn | Remark="'arith.ori' is 'attn.or'"}}
    %x5 = arith.ori %x4, %m7 : i1
    // expected-remark @+1 {{[Passed] RaiseMasks | Category:attn | Remark="'arith.ori' is 'attn.or'"}}
    %x6 = arith.ori %x5, %m8 : i1
    attn.yield %x6 : i1
  }
}

// A comparison in a loop that is no scan stays.
// CHECK-LABEL: attn.kernel @nested
attn.kernel @nested heads(1) dim(64) q(f32) kv(f32) {
  attn.mask (%b, %h, %q, %k) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %f = arith.constant false
    // CHECK: scf.for
    // expected-remark @+1 {{[Missed] RaiseMasks | Category:attn | Remark="loop is no scan over ranges: it reads no range of a !attn.ranges table"}}
    %m = scf.for %i = %c0 to %c3 step %c1 iter_args(%any = %f) -> (i1) {
      %j = scf.for %n = %c0 to %i step %c1 iter_args(%x = %k) -> (index) {
        %y = arith.addi %x, %c3 : index
        scf.yield %y : index
      }
      // CHECK: arith.cmpi eq
      %same = arith.cmpi eq, %j, %q : index
      // CHECK: arith.ori
      %next = arith.ori %any, %same : i1
      scf.yield %next : i1
    }
    attn.yield %m : i1
  }
}
