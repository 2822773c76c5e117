// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: attn-opt %s --attn-raise-masks --remarks-filter-missed='attn.*' --remark-policy=all \
// RUN:   -verify-diagnostics | FileCheck %s
// RUN: attn-opt %s --attn-raise-masks > %t.once
// RUN: attn-opt %t.once --attn-raise-masks | diff %t.once -

// A missing conjunct, each in turn.
// CHECK-LABEL: attn.kernel @lacks_q_from
attn.kernel @lacks_q_from heads(1) dim(64) q(f32) kv(f32) tables(%mm: !attn.ranges, %im: !attn.ranges) {
  attn.mask (%b, %h, %q, %k) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %none = arith.constant false
    %n = attn.num_ranges %mm[%b]
    // CHECK: scf.for
    // CHECK-NOT: attn.mm_prefix
    // CHECK: attn.yield
    // expected-remark @+1 {{[Missed] RaiseMasks | Category:attn | Remark="loop is no scan over ranges: its test lacks 'start <= q'"}}
    %m = scf.for %r = %c0 to %n step %c1 iter_args(%acc = %none) -> (i1) {
      %s, %e = attn.range %mm[%b, %r]
      %t0 = arith.cmpi sle, %s, %q : index
      %t1 = arith.cmpi sle, %q, %e : index
      %t2 = arith.cmpi sle, %s, %k : index
      %t3 = arith.cmpi sle, %k, %e : index
      %x0 = arith.andi %t1, %t1 : i1
      %x1 = arith.andi %t2, %t3 : i1
      %x2 = arith.andi %x0, %x1 : i1
      %next = arith.ori %acc, %x2 : i1
      scf.yield %next : i1
    }
    attn.yield %m : i1
  }
}

// CHECK-LABEL: attn.kernel @lacks_q_to
attn.kernel @lacks_q_to heads(1) dim(64) q(f32) kv(f32) tables(%mm: !attn.ranges, %im: !attn.ranges) {
  attn.mask (%b, %h, %q, %k) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %none = arith.constant false
    %n = attn.num_ranges %mm[%b]
    // CHECK: scf.for
    // CHECK-NOT: attn.mm_prefix
    // CHECK: attn.yield
    // expected-remark @+1 {{[Missed] RaiseMasks | Category:attn | Remark="loop is no scan over ranges: its test lacks 'q <= end'"}}
    %m = scf.for %r = %c0 to %n step %c1 iter_args(%acc = %none) -> (i1) {
      %s, %e = attn.range %mm[%b, %r]
      %t0 = arith.cmpi sle, %s, %q : index
      %t1 = arith.cmpi sle, %q, %e : index
      %t2 = arith.cmpi sle, %s, %k : index
      %t3 = arith.cmpi sle, %k, %e : index
      %x0 = arith.andi %t0, %t0 : i1
      %x1 = arith.andi %t2, %t3 : i1
      %x2 = arith.andi %x0, %x1 : i1
      %next = arith.ori %acc, %x2 : i1
      scf.yield %next : i1
    }
    attn.yield %m : i1
  }
}

// CHECK-LABEL: attn.kernel @lacks_k_from
attn.kernel @lacks_k_from heads(1) dim(64) q(f32) kv(f32) tables(%mm: !attn.ranges, %im: !attn.ranges) {
  attn.mask (%b, %h, %q, %k) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %none = arith.constant false
    %n = attn.num_ranges %mm[%b]
    // CHECK: scf.for
    // CHECK-NOT: attn.mm_prefix
    // CHECK: attn.yield
    // expected-remark @+1 {{[Missed] RaiseMasks | Category:attn | Remark="loop is no scan over ranges: its test lacks 'start <= k'"}}
    %m = scf.for %r = %c0 to %n step %c1 iter_args(%acc = %none) -> (i1) {
      %s, %e = attn.range %mm[%b, %r]
      %t0 = arith.cmpi sle, %s, %q : index
      %t1 = arith.cmpi sle, %q, %e : index
      %t2 = arith.cmpi sle, %s, %k : index
      %t3 = arith.cmpi sle, %k, %e : index
      %x0 = arith.andi %t0, %t1 : i1
      %x1 = arith.andi %t3, %t3 : i1
      %x2 = arith.andi %x0, %x1 : i1
      %next = arith.ori %acc, %x2 : i1
      scf.yield %next : i1
    }
    attn.yield %m : i1
  }
}

// CHECK-LABEL: attn.kernel @lacks_k_to
attn.kernel @lacks_k_to heads(1) dim(64) q(f32) kv(f32) tables(%mm: !attn.ranges, %im: !attn.ranges) {
  attn.mask (%b, %h, %q, %k) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %none = arith.constant false
    %n = attn.num_ranges %mm[%b]
    // CHECK: scf.for
    // CHECK-NOT: attn.mm_prefix
    // CHECK: attn.yield
    // expected-remark @+1 {{[Missed] RaiseMasks | Category:attn | Remark="loop is no scan over ranges: its test lacks 'k <= end'"}}
    %m = scf.for %r = %c0 to %n step %c1 iter_args(%acc = %none) -> (i1) {
      %s, %e = attn.range %mm[%b, %r]
      %t0 = arith.cmpi sle, %s, %q : index
      %t1 = arith.cmpi sle, %q, %e : index
      %t2 = arith.cmpi sle, %s, %k : index
      %t3 = arith.cmpi sle, %k, %e : index
      %x0 = arith.andi %t0, %t1 : i1
      %x1 = arith.andi %t2, %t2 : i1
      %x2 = arith.andi %x0, %x1 : i1
      %next = arith.ori %acc, %x2 : i1
      scf.yield %next : i1
    }
    attn.yield %m : i1
  }
}

// Half-open ranges.
// CHECK-LABEL: attn.kernel @exclusive_q
attn.kernel @exclusive_q heads(1) dim(64) q(f32) kv(f32) tables(%mm: !attn.ranges, %im: !attn.ranges) {
  attn.mask (%b, %h, %q, %k) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %none = arith.constant false
    %n = attn.num_ranges %mm[%b]
    // CHECK: scf.for
    // CHECK-NOT: attn.mm_prefix
    // CHECK: attn.yield
    // expected-remark @+1 {{[Missed] RaiseMasks | Category:attn | Remark="loop is no scan over ranges: its test of q against the range's end is not the inclusive one"}}
    %m = scf.for %r = %c0 to %n step %c1 iter_args(%acc = %none) -> (i1) {
      %s, %e = attn.range %mm[%b, %r]
      %t0 = arith.cmpi sle, %s, %q : index
      %t1 = arith.cmpi slt, %q, %e : index
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

// CHECK-LABEL: attn.kernel @exclusive_k
attn.kernel @exclusive_k heads(1) dim(64) q(f32) kv(f32) tables(%mm: !attn.ranges, %im: !attn.ranges) {
  attn.mask (%b, %h, %q, %k) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %none = arith.constant false
    %n = attn.num_ranges %mm[%b]
    // CHECK: scf.for
    // CHECK-NOT: attn.mm_prefix
    // CHECK: attn.yield
    // expected-remark @+1 {{[Missed] RaiseMasks | Category:attn | Remark="loop is no scan over ranges: its test of k against the range's end is not the inclusive one"}}
    %m = scf.for %r = %c0 to %n step %c1 iter_args(%acc = %none) -> (i1) {
      %s, %e = attn.range %mm[%b, %r]
      %t0 = arith.cmpi sle, %s, %q : index
      %t1 = arith.cmpi sle, %q, %e : index
      %t2 = arith.cmpi sle, %s, %k : index
      %t3 = arith.cmpi slt, %k, %e : index
      %x0 = arith.andi %t0, %t1 : i1
      %x1 = arith.andi %t2, %t3 : i1
      %x2 = arith.andi %x0, %x1 : i1
      %next = arith.ori %acc, %x2 : i1
      scf.yield %next : i1
    }
    attn.yield %m : i1
  }
}

// CHECK-LABEL: attn.kernel @exclusive_start
attn.kernel @exclusive_start heads(1) dim(64) q(f32) kv(f32) tables(%mm: !attn.ranges, %im: !attn.ranges) {
  attn.mask (%b, %h, %q, %k) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %none = arith.constant false
    %n = attn.num_ranges %mm[%b]
    // CHECK: scf.for
    // CHECK-NOT: attn.mm_prefix
    // CHECK: attn.yield
    // expected-remark @+1 {{[Missed] RaiseMasks | Category:attn | Remark="loop is no scan over ranges: its test of k against the range's start is not the inclusive one"}}
    %m = scf.for %r = %c0 to %n step %c1 iter_args(%acc = %none) -> (i1) {
      %s, %e = attn.range %mm[%b, %r]
      %t0 = arith.cmpi sle, %s, %q : index
      %t1 = arith.cmpi sle, %q, %e : index
      %t2 = arith.cmpi slt, %s, %k : index
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

// CHECK-LABEL: attn.kernel @shifted
attn.kernel @shifted heads(1) dim(64) q(f32) kv(f32) tables(%mm: !attn.ranges, %im: !attn.ranges) {
  attn.mask (%b, %h, %q, %k) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %none = arith.constant false
    %n = attn.num_ranges %mm[%b]
    // CHECK: scf.for
    // CHECK-NOT: attn.mm_prefix
    // CHECK: attn.yield
    // expected-remark @+1 {{[Missed] RaiseMasks | Category:attn | Remark="loop is no scan over ranges: its test of q against the range's start is not the inclusive one"}}
    %m = scf.for %r = %c0 to %n step %c1 iter_args(%acc = %none) -> (i1) {
      %s, %e = attn.range %mm[%b, %r]
      %q1 = arith.addi %q, %c1 : index
      %t0 = arith.cmpi sle, %s, %q1 : index
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

// The opposite test.
// CHECK-LABEL: attn.kernel @reversed
attn.kernel @reversed heads(1) dim(64) q(f32) kv(f32) tables(%mm: !attn.ranges, %im: !attn.ranges) {
  attn.mask (%b, %h, %q, %k) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %none = arith.constant false
    %n = attn.num_ranges %mm[%b]
    // CHECK: scf.for
    // CHECK-NOT: attn.mm_prefix
    // CHECK: attn.yield
    // expected-remark @+1 {{[Missed] RaiseMasks | Category:attn | Remark="loop is no scan over ranges: its test lacks 'k <= end'"}}
    %m = scf.for %r = %c0 to %n step %c1 iter_args(%acc = %none) -> (i1) {
      %s, %e = attn.range %mm[%b, %r]
      %t0 = arith.cmpi sle, %s, %q : index
      %t1 = arith.cmpi sle, %q, %e : index
      %t2 = arith.cmpi sle, %s, %k : index
      %t3 = arith.cmpi sgt, %k, %e : index
      %x0 = arith.andi %t0, %t1 : i1
      %x1 = arith.andi %t2, %t3 : i1
      %x2 = arith.andi %x0, %x1 : i1
      %next = arith.ori %acc, %x2 : i1
      scf.yield %next : i1
    }
    attn.yield %m : i1
  }
}

// A value that is no position of this request.
// CHECK-LABEL: attn.kernel @other_value
attn.kernel @other_value heads(1) dim(64) q(f32) kv(f32) tables(%mm: !attn.ranges, %im: !attn.ranges) {
  attn.mask (%b, %h, %q, %k) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %none = arith.constant false
    %n = attn.num_ranges %mm[%b]
    // CHECK: scf.for
    // CHECK-NOT: attn.mm_prefix
    // CHECK: attn.yield
    // expected-remark @+1 {{[Missed] RaiseMasks | Category:attn | Remark="loop is no scan over ranges: it compares the range with something else than q or k"}}
    %m = scf.for %r = %c0 to %n step %c1 iter_args(%acc = %none) -> (i1) {
      %s, %e = attn.range %mm[%b, %r]
      %t0 = arith.cmpi sle, %s, %h : index
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

// Not even one interval.
// CHECK-LABEL: attn.kernel @equal
attn.kernel @equal heads(1) dim(64) q(f32) kv(f32) tables(%mm: !attn.ranges, %im: !attn.ranges) {
  attn.mask (%b, %h, %q, %k) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %none = arith.constant false
    %n = attn.num_ranges %mm[%b]
    // CHECK: scf.for
    // CHECK-NOT: attn.mm_prefix
    // CHECK: attn.yield
    // expected-remark @+1 {{[Missed] RaiseMasks | Category:attn | Remark="loop is no scan over ranges: its test is no conjunction"}}
    %m = scf.for %r = %c0 to %n step %c1 iter_args(%acc = %none) -> (i1) {
      %s, %e = attn.range %mm[%b, %r]
      %t0 = arith.cmpi sle, %s, %q : index
      %t1 = arith.cmpi sle, %q, %e : index
      %t2 = arith.cmpi sle, %s, %k : index
      %t3 = arith.cmpi sle, %k, %e : index
      %x0 = arith.andi %t0, %t1 : i1
      %x1 = arith.andi %t2, %t3 : i1
      %x2 = arith.ori %x0, %x1 : i1
      %next = arith.ori %acc, %x2 : i1
      scf.yield %next : i1
    }
    attn.yield %m : i1
  }
}

// CHECK-LABEL: attn.kernel @unsigned
attn.kernel @unsigned heads(1) dim(64) q(f32) kv(f32) tables(%mm: !attn.ranges, %im: !attn.ranges) {
  attn.mask (%b, %h, %q, %k) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %none = arith.constant false
    %n = attn.num_ranges %mm[%b]
    // CHECK: scf.for
    // CHECK-NOT: attn.mm_prefix
    // CHECK: attn.yield
    // expected-remark @+1 {{[Missed] RaiseMasks | Category:attn | Remark="loop is no scan over ranges: a comparison in its body is unsigned"}}
    %m = scf.for %r = %c0 to %n step %c1 iter_args(%acc = %none) -> (i1) {
      %s, %e = attn.range %mm[%b, %r]
      %t0 = arith.cmpi ule, %s, %q : index
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

// CHECK-LABEL: attn.kernel @product
attn.kernel @product heads(1) dim(64) q(f32) kv(f32) tables(%mm: !attn.ranges, %im: !attn.ranges) {
  attn.mask (%b, %h, %q, %k) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %none = arith.constant false
    %n = attn.num_ranges %mm[%b]
    // CHECK: scf.for
    // CHECK-NOT: attn.mm_prefix
    // CHECK: attn.yield
    // expected-remark @+1 {{[Missed] RaiseMasks | Category:attn | Remark="loop is no scan over ranges: a comparison in its body does not fit: 'arith.muli' depends on k"}}
    %m = scf.for %r = %c0 to %n step %c1 iter_args(%acc = %none) -> (i1) {
      %s, %e = attn.range %mm[%b, %r]
      %t0 = arith.cmpi sle, %s, %q : index
      %t1 = arith.cmpi sle, %q, %e : index
      %kk = arith.muli %k, %q : index
      %t2 = arith.cmpi sle, %s, %kk : index
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

// CHECK-LABEL: attn.kernel @never
attn.kernel @never heads(1) dim(64) q(f32) kv(f32) tables(%mm: !attn.ranges, %im: !attn.ranges) {
  attn.mask (%b, %h, %q, %k) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %none = arith.constant false
    %n = attn.num_ranges %mm[%b]
    // CHECK: scf.for
    // CHECK-NOT: attn.mm_prefix
    // CHECK: attn.yield
    // expected-remark @+1 {{[Missed] RaiseMasks | Category:attn | Remark="loop is no scan over ranges: its test never holds"}}
    %m = scf.for %r = %c0 to %n step %c1 iter_args(%acc = %none) -> (i1) {
      %s, %e = attn.range %mm[%b, %r]
      %t0 = arith.cmpi sle, %s, %q : index
      %t1 = arith.cmpi sle, %q, %e : index
      %t2 = arith.cmpi sle, %s, %k : index
      %t3 = arith.cmpi sle, %k, %e : index
      %x0 = arith.andi %t0, %t1 : i1
      %t4 = arith.cmpi sgt, %s, %k : index
      %x1 = arith.andi %t2, %t4 : i1
      %x2 = arith.andi %x0, %x1 : i1
      %next = arith.ori %acc, %x2 : i1
      scf.yield %next : i1
    }
    attn.yield %m : i1
  }
}
