// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: attn-opt %s --attn-simplify-mask --remarks-filter='attn.*' --remark-policy=all \
// RUN:   -verify-diagnostics | FileCheck %s
// RUN: attn-opt %s --attn-simplify-mask > %t.once
// RUN: attn-opt %t.once --attn-simplify-mask | diff %t.once -

// Constants.
// CHECK-LABEL: attn.kernel @constants
attn.kernel @constants heads(1) dim(64) q(f32) kv(f32) {
  // expected-remark @+1 {{[Passed] SimplifyMask | Category:attn | Remark="mask goes from 8 to 1 operations"}}
  attn.mask (%b, %h, %q, %k) {
    %t = arith.constant true
    %f = arith.constant false
    // CHECK: %[[C:.*]] = attn.causal
    %c = attn.causal %q, %k
    %x0 = attn.and %t, %c
    %x1 = attn.or %x0, %f
    %x2 = attn.not %f
    %x3 = attn.and %x1, %x2
    %x4 = attn.or %x3, %f
    // CHECK-NEXT: attn.yield %[[C]] : i1
    attn.yield %x4 : i1
  }
}

// Equal operands, also of equal operations, and nested in a chain.
// CHECK-LABEL: attn.kernel @idempotence
attn.kernel @idempotence heads(1) dim(64) q(f32) kv(f32) tables(%doc: !attn.documents) {
  // expected-remark @+1 {{[Passed] SimplifyMask | Category:attn | Remark="mask goes from 7 to 3 operations"}}
  attn.mask (%b, %h, %q, %k) {
    // CHECK: %[[C:.*]] = attn.causal
    %c = attn.causal %q, %k
    %c2 = attn.causal %q, %k
    // CHECK-NEXT: %[[D:.*]] = attn.document
    %d = attn.document %doc, %b, %q, %k
    %d2 = attn.document %doc, %b, %q, %k
    %x0 = attn.and %c, %d
    %x1 = attn.and %x0, %c2
    // CHECK-NEXT: %[[M:.*]] = attn.and %[[C]], %[[D]]
    // CHECK-NEXT: attn.yield %[[M]]
    %x2 = attn.and %d2, %x1
    attn.yield %x2 : i1
  }
}

// x and not x; not not x.
// CHECK-LABEL: attn.kernel @complements
attn.kernel @complements heads(1) dim(64) q(f32) kv(f32) tables(%doc: !attn.documents) {
  // expected-remark @+1 {{[Passed] SimplifyMask | Category:attn | Remark="mask goes from 6 to 1 operations"}}
  attn.mask (%b, %h, %q, %k) {
    %c = attn.causal %q, %k
    %d = attn.document %doc, %b, %q, %k
    %nc = attn.not %c
    %nnc = attn.not %nc
    %x0 = attn.and %d, %nnc
    // CHECK: attn.mask
    // CHECK-NEXT: %[[F:.*]] = arith.constant false
    // CHECK-NEXT: attn.yield %[[F]]
    %x1 = attn.and %x0, %nc
    attn.yield %x1 : i1
  }
}

// x or (x and y); x and (x or y); across levels.
// CHECK-LABEL: attn.kernel @absorption
attn.kernel @absorption heads(1) dim(64) q(f32) kv(f32) tables(%doc: !attn.documents) {
  // expected-remark @+1 {{[Passed] SimplifyMask | Category:attn | Remark="mask goes from 7 to 1 operations"}}
  attn.mask (%b, %h, %q, %k) {
    // CHECK: attn.mask
    // CHECK-NEXT: %[[C:.*]] = attn.causal
    %c = attn.causal %q, %k
    %d = attn.document %doc, %b, %q, %k
    %p = attn.prefix %k, 5
    %x0 = attn.and %c, %d
    %x1 = attn.or %x0, %c
    %x2 = attn.or %c, %p
    // CHECK-NEXT: attn.yield %[[C]]
    %x3 = attn.and %x1, %x2
    attn.yield %x3 : i1
  }
}

// x and (not x or y) is x and y.
// CHECK-LABEL: attn.kernel @complement_in_operand
attn.kernel @complement_in_operand heads(1) dim(64) q(f32) kv(f32) tables(%doc: !attn.documents) {
  // expected-remark @+1 {{[Passed] SimplifyMask | Category:attn | Remark="mask goes from 5 to 3 operations"}}
  attn.mask (%b, %h, %q, %k) {
    // CHECK: %[[C:.*]] = attn.causal
    %c = attn.causal %q, %k
    // CHECK: %[[D:.*]] = attn.document
    %d = attn.document %doc, %b, %q, %k
    %nc = attn.not %c
    %x0 = attn.or %nc, %d
    // CHECK-NEXT: %[[M:.*]] = attn.and %[[C]], %[[D]]
    // CHECK-NEXT: attn.yield %[[M]]
    %x1 = attn.and %c, %x0
    attn.yield %x1 : i1
  }
}

// not x and not y is not (x or y): one operation less. not (x and y) stays: there is nothing to win.
// CHECK-LABEL: attn.kernel @de_morgan
attn.kernel @de_morgan heads(1) dim(64) q(f32) kv(f32) tables(%doc: !attn.documents) {
  // expected-remark @+1 {{[Passed] SimplifyMask | Category:attn | Remark="mask goes from 5 to 4 operations"}}
  attn.mask (%b, %h, %q, %k) {
    // CHECK: %[[C:.*]] = attn.causal
    %c = attn.causal %q, %k
    // CHECK: %[[D:.*]] = attn.document
    %d = attn.document %doc, %b, %q, %k
    %nc = attn.not %c
    %nd = attn.not %d
    // CHECK-NEXT: %[[O:.*]] = attn.or %[[C]], %[[D]]
    // CHECK-NEXT: %[[N:.*]] = attn.not %[[O]]
    // CHECK-NEXT: attn.yield %[[N]]
    %x = attn.and %nc, %nd
    attn.yield %x : i1
  }
}
// CHECK-LABEL: attn.kernel @de_morgan_kept
attn.kernel @de_morgan_kept heads(1) dim(64) q(f32) kv(f32) tables(%doc: !attn.documents) {
  attn.mask (%b, %h, %q, %k) {
    %c = attn.causal %q, %k
    %d = attn.document %doc, %b, %q, %k
    // CHECK: attn.and
    %x = attn.and %c, %d
    // CHECK-NEXT: attn.not
    %n = attn.not %x
    // CHECK-NEXT: attn.yield
    attn.yield %n : i1
  }
}

// (d and c) or (d and p) is d and (c or p).
// CHECK-LABEL: attn.kernel @factor
attn.kernel @factor heads(1) dim(64) q(f32) kv(f32) tables(%doc: !attn.documents) {
  // expected-remark @+1 {{[Passed] SimplifyMask | Category:attn | Remark="mask goes from 6 to 5 operations"}}
  attn.mask (%b, %h, %q, %k) {
    // CHECK: %[[C:.*]] = attn.causal
    %c = attn.causal %q, %k
    // CHECK: %[[D:.*]] = attn.document
    %d = attn.document %doc, %b, %q, %k
    // CHECK: %[[P:.*]] = attn.prefix
    %p = attn.prefix %k, 5
    %x0 = attn.and %d, %c
    %x1 = attn.and %p, %d
    // CHECK-NEXT: %[[O:.*]] = attn.or %[[C]], %[[P]]
    // CHECK-NEXT: %[[M:.*]] = attn.and %[[D]], %[[O]]
    // CHECK-NEXT: attn.yield %[[M]]
    %x2 = attn.or %x0, %x1
    attn.yield %x2 : i1
  }
}

// Where a term has another use, taking the common operand out would add operations.
// CHECK-LABEL: attn.kernel @factor_refused
attn.kernel @factor_refused heads(1) dim(64) q(f32) kv(f32)
    tables(%doc: !attn.documents, %page: !attn.documents) {
  // expected-remark @+1 {{[Missed] SimplifyMask | Category:attn | Remark="a common operand or negation is not taken out: its parts have other uses"}}
  attn.mask (%b, %h, %q, %k) {
    // CHECK: %[[C:.*]] = attn.causal
    %c = attn.causal %q, %k
    // CHECK: %[[D:.*]] = attn.document %doc
    %d = attn.document %doc, %b, %q, %k
    // CHECK: %[[E:.*]] = attn.document %page
    %e = attn.document %page, %b, %q, %k
    // CHECK: %[[P:.*]] = attn.prefix
    %p = attn.prefix %k, 5
    %g = attn.global %q, %k, 2
    // CHECK: %[[X0:.*]] = attn.and %[[D]], %[[C]]
    %x0 = attn.and %d, %c
    // CHECK: %[[X1:.*]] = attn.and %[[P]], %[[D]]
    %x1 = attn.and %p, %d
    // CHECK: attn.or %[[X0]], %[[X1]]
    %x2 = attn.or %x0, %x1
    %n0 = attn.not %x0
    %y0 = attn.or %n0, %e
    %n1 = attn.not %x1
    %y1 = attn.or %n1, %g
    %z0 = attn.and %x2, %y0
    // CHECK: attn.yield
    %z1 = attn.and %z0, %y1
    attn.yield %z1 : i1
  }
}

// No mask, and a mask with nothing to simplify: no change, no remark.
// CHECK-LABEL: attn.kernel @no_mask
attn.kernel @no_mask heads(1) dim(64) q(f32) kv(f32) {
}
// CHECK-LABEL: attn.kernel @plain
attn.kernel @plain heads(1) dim(64) q(f32) kv(f32) tables(%mm: !attn.ranges) {
  attn.mask (%b, %h, %q, %k) {
    // CHECK: %[[R:.*]] = attn.mm_prefix
    %r = attn.mm_prefix %mm, %b, %q, %k
    // CHECK-NEXT: %[[C:.*]] = attn.causal
    %c = attn.causal %q, %k
    // CHECK-NEXT: attn.or %[[R]], %[[C]]
    %x = attn.or %r, %c
    attn.yield %x : i1
  }
}

// i1 values that other operations read stay, and count as kept.
// CHECK-LABEL: attn.kernel @other_readers
attn.kernel @other_readers heads(1) dim(64) q(f32) kv(f32) {
  attn.mask (%b, %h, %q, %k) {
    // CHECK: %[[C:.*]] = attn.causal
    %c = attn.causal %q, %k
    // CHECK: %[[P:.*]] = attn.prefix
    %p = attn.prefix %k, 5
    // CHECK: %[[X:.*]] = attn.and %[[C]], %[[P]]
    %x = attn.and %c, %p
    // CHECK: %[[E:.*]] = arith.extui %[[X]]
    %e = arith.extui %x : i1 to i32
    %c1 = arith.constant 1 : i32
    // CHECK: %[[Y:.*]] = arith.cmpi
    %y = arith.cmpi eq, %e, %c1 : i32
    // CHECK: %[[Z:.*]] = attn.or %[[X]], %[[Y]]
    // CHECK-NEXT: attn.yield %[[Z]]
    %z = attn.or %x, %y
    attn.yield %z : i1
  }
}
