// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: attn-opt %s --attn-raise-masks --remarks-filter-missed='attn.*' --remark-policy=all \
// RUN:   -verify-diagnostics | FileCheck %s
// RUN: attn-opt %s --attn-raise-masks > %t.once
// RUN: attn-opt %t.once --attn-raise-masks | diff %t.once -

// CHECK-LABEL: attn.kernel @step_two
attn.kernel @step_two heads(1) dim(64) q(f32) kv(f32) tables(%mm: !attn.ranges, %im: !attn.ranges) {
  attn.mask (%b, %h, %q, %k) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %none = arith.constant false
    %n = attn.num_ranges %mm[%b]
    %c2 = arith.constant 2 : index
    // CHECK: scf.for
    // CHECK-NOT: attn.mm_prefix
    // CHECK: attn.yield
    // expected-remark @+1 {{[Missed] RaiseMasks | Category:attn | Remark="loop is no scan over ranges: its step is not 1"}}
    %m = scf.for %r = %c0 to %n step %c2 iter_args(%acc = %none) -> (i1) {
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
    attn.yield %m : i1
  }
}

// CHECK-LABEL: attn.kernel @late_start
attn.kernel @late_start heads(1) dim(64) q(f32) kv(f32) tables(%mm: !attn.ranges, %im: !attn.ranges) {
  attn.mask (%b, %h, %q, %k) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %none = arith.constant false
    %n = attn.num_ranges %mm[%b]
    // CHECK: scf.for
    // CHECK-NOT: attn.mm_prefix
    // CHECK: attn.yield
    // expected-remark @+1 {{[Missed] RaiseMasks | Category:attn | Remark="loop is no scan over ranges: it does not start at range 0"}}
    %m = scf.for %r = %c1 to %n step %c1 iter_args(%acc = %none) -> (i1) {
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
    attn.yield %m : i1
  }
}

// CHECK-LABEL: attn.kernel @constant_end
attn.kernel @constant_end heads(1) dim(64) q(f32) kv(f32) tables(%mm: !attn.ranges, %im: !attn.ranges) {
  attn.mask (%b, %h, %q, %k) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %none = arith.constant false
    %n = attn.num_ranges %mm[%b]
    %c9 = arith.constant 9 : index
    // CHECK: scf.for
    // CHECK-NOT: attn.mm_prefix
    // CHECK: attn.yield
    // expected-remark @+1 {{[Missed] RaiseMasks | Category:attn | Remark="loop is no scan over ranges: it does not end at attn.num_ranges of its table"}}
    %m = scf.for %r = %c0 to %c9 step %c1 iter_args(%acc = %none) -> (i1) {
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
    attn.yield %m : i1
  }
}

// CHECK-LABEL: attn.kernel @other_count
attn.kernel @other_count heads(1) dim(64) q(f32) kv(f32) tables(%mm: !attn.ranges, %im: !attn.ranges) {
  attn.mask (%b, %h, %q, %k) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %none = arith.constant false
    %n = attn.num_ranges %mm[%b]
    %n2 = attn.num_ranges %im[%b]
    // CHECK: scf.for
    // CHECK-NOT: attn.mm_prefix
    // CHECK: attn.yield
    // expected-remark @+1 {{[Missed] RaiseMasks | Category:attn | Remark="loop is no scan over ranges: it does not end at attn.num_ranges of its table"}}
    %m = scf.for %r = %c0 to %n2 step %c1 iter_args(%acc = %none) -> (i1) {
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
    attn.yield %m : i1
  }
}

// CHECK-LABEL: attn.kernel @starts_true
attn.kernel @starts_true heads(1) dim(64) q(f32) kv(f32) tables(%mm: !attn.ranges, %im: !attn.ranges) {
  attn.mask (%b, %h, %q, %k) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %none = arith.constant false
    %n = attn.num_ranges %mm[%b]
    %yes = arith.constant true
    // CHECK: scf.for
    // CHECK-NOT: attn.mm_prefix
    // CHECK: attn.yield
    // expected-remark @+1 {{[Missed] RaiseMasks | Category:attn | Remark="loop is no scan over ranges: its accumulator does not start as false"}}
    %m = scf.for %r = %c0 to %n step %c1 iter_args(%acc = %yes) -> (i1) {
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
    attn.yield %m : i1
  }
}

// CHECK-LABEL: attn.kernel @starts_unknown
attn.kernel @starts_unknown heads(1) dim(64) q(f32) kv(f32) tables(%mm: !attn.ranges, %im: !attn.ranges) {
  attn.mask (%b, %h, %q, %k) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %none = arith.constant false
    %n = attn.num_ranges %mm[%b]
    %yes = attn.causal %q, %k
    // CHECK: scf.for
    // CHECK-NOT: attn.mm_prefix
    // CHECK: attn.yield
    // expected-remark @+1 {{[Missed] RaiseMasks | Category:attn | Remark="loop is no scan over ranges: its accumulator does not start as false"}}
    %m = scf.for %r = %c0 to %n step %c1 iter_args(%acc = %yes) -> (i1) {
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
    attn.yield %m : i1
  }
}

// Every range instead of some range.
// CHECK-LABEL: attn.kernel @and_ed
attn.kernel @and_ed heads(1) dim(64) q(f32) kv(f32) tables(%mm: !attn.ranges, %im: !attn.ranges) {
  attn.mask (%b, %h, %q, %k) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %none = arith.constant false
    %n = attn.num_ranges %mm[%b]
    // CHECK: scf.for
    // CHECK-NOT: attn.mm_prefix
    // CHECK: attn.yield
    // expected-remark @+1 {{[Missed] RaiseMasks | Category:attn | Remark="loop is no scan over ranges: its accumulator is not or-ed"}}
    %m = scf.for %r = %c0 to %n step %c1 iter_args(%acc = %none) -> (i1) {
      %s, %e = attn.range %mm[%b, %r]
      %t0 = arith.cmpi sle, %s, %q : index
      %t1 = arith.cmpi sle, %q, %e : index
      %t2 = arith.cmpi sle, %s, %k : index
      %t3 = arith.cmpi sle, %k, %e : index
      %x0 = arith.andi %t0, %t1 : i1
      %x1 = arith.andi %t2, %t3 : i1
      %x2 = arith.andi %x0, %x1 : i1
      %next = arith.andi %acc, %x2 : i1
      scf.yield %next : i1
    }
    attn.yield %m : i1
  }
}

// The last range only.
// CHECK-LABEL: attn.kernel @overwritten
attn.kernel @overwritten heads(1) dim(64) q(f32) kv(f32) tables(%mm: !attn.ranges, %im: !attn.ranges) {
  attn.mask (%b, %h, %q, %k) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %none = arith.constant false
    %n = attn.num_ranges %mm[%b]
    // CHECK: scf.for
    // CHECK-NOT: attn.mm_prefix
    // CHECK: attn.yield
    // expected-remark @+1 {{[Missed] RaiseMasks | Category:attn | Remark="loop is no scan over ranges: its accumulator is not or-ed"}}
    %m = scf.for %r = %c0 to %n step %c1 iter_args(%acc = %none) -> (i1) {
      %s, %e = attn.range %mm[%b, %r]
      %t0 = arith.cmpi sle, %s, %q : index
      %t1 = arith.cmpi sle, %q, %e : index
      %t2 = arith.cmpi sle, %s, %k : index
      %t3 = arith.cmpi sle, %k, %e : index
      %x0 = arith.andi %t0, %t1 : i1
      %x1 = arith.andi %t2, %t3 : i1
      %x2 = arith.andi %x0, %x1 : i1
      %next = arith.ori %acc, %x2 : i1
      scf.yield %x2 : i1
    }
    attn.yield %m : i1
  }
}

// CHECK-LABEL: attn.kernel @parity
attn.kernel @parity heads(1) dim(64) q(f32) kv(f32) tables(%mm: !attn.ranges, %im: !attn.ranges) {
  attn.mask (%b, %h, %q, %k) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %none = arith.constant false
    %n = attn.num_ranges %mm[%b]
    // CHECK: scf.for
    // CHECK-NOT: attn.mm_prefix
    // CHECK: attn.yield
    // expected-remark @+1 {{[Missed] RaiseMasks | Category:attn | Remark="loop is no scan over ranges: its accumulator is not or-ed"}}
    %m = scf.for %r = %c0 to %n step %c1 iter_args(%acc = %none) -> (i1) {
      %s, %e = attn.range %mm[%b, %r]
      %t0 = arith.cmpi sle, %s, %q : index
      %t1 = arith.cmpi sle, %q, %e : index
      %t2 = arith.cmpi sle, %s, %k : index
      %t3 = arith.cmpi sle, %k, %e : index
      %x0 = arith.andi %t0, %t1 : i1
      %x1 = arith.andi %t2, %t3 : i1
      %x2 = arith.andi %x0, %x1 : i1
      %next = arith.xori %acc, %x2 : i1
      scf.yield %next : i1
    }
    attn.yield %m : i1
  }
}

// CHECK-LABEL: attn.kernel @two_values
attn.kernel @two_values heads(1) dim(64) q(f32) kv(f32) tables(%mm: !attn.ranges, %im: !attn.ranges) {
  attn.mask (%b, %h, %q, %k) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %none = arith.constant false
    %n = attn.num_ranges %mm[%b]
    // CHECK: scf.for
    // CHECK-NOT: attn.mm_prefix
    // CHECK: attn.yield
    // expected-remark @+1 {{[Missed] RaiseMasks | Category:attn | Remark="loop is no scan over ranges: it carries more than one i1 value"}}
    %m, %count = scf.for %r = %c0 to %n step %c1 iter_args(%acc = %none, %cnt = %c0) -> (i1, index) {
      %s, %e = attn.range %mm[%b, %r]
      %t0 = arith.cmpi sle, %s, %q : index
      %t1 = arith.cmpi sle, %q, %e : index
      %t2 = arith.cmpi sle, %s, %k : index
      %t3 = arith.cmpi sle, %k, %e : index
      %x0 = arith.andi %t0, %t1 : i1
      %x1 = arith.andi %t2, %t3 : i1
      %x2 = arith.andi %x0, %x1 : i1
      %next = arith.ori %acc, %x2 : i1
      %more = arith.addi %cnt, %c1 : index
      scf.yield %next, %more : i1, index
    }
    attn.yield %m : i1
  }
}
