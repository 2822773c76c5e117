// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: attn-opt %s | FileCheck %s
// RUN: attn-opt %s | attn-opt | FileCheck %s
// RUN: attn-opt %s --mlir-print-op-generic | attn-opt | FileCheck %s
// RUN: attn-opt %s --mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC

// CHECK-LABEL: attn.kernel @masks
// GENERIC: sym_name = "masks"
attn.kernel @masks heads(8) dim(64) q(f32) kv(f32)
    params(%left: i32, %ahead: i32, %n: i32)
    tables(%mm: !attn.ranges, %doc: !attn.documents, %rows: !attn.query_ranges from %mm) {
  // CHECK: attn.mask (%[[B:.*]], %[[H:.*]], %[[Q:.*]], %[[K:.*]]) {
  attn.mask (%b, %h, %q, %k) {
    // CHECK: %[[CAUSAL:.*]] = attn.causal %[[Q]], %[[K]]{{$}}
    // GENERIC: "attn.causal"(%{{.*}}, %{{.*}}) : (index, index) -> i1
    %causal = attn.causal %q, %k
    // CHECK: attn.window %[[Q]], %[[K]] left(3){{$}}
    // GENERIC: "attn.window"(%{{.*}}, %{{.*}}) <{left_literal = 3 : i32, operandSegmentSizes = array<i32: 1, 1, 0, 0>}>
    %w0 = attn.window %q, %k left(3)
    // CHECK: attn.window %[[Q]], %[[K]] right(0){{$}}
    %w1 = attn.window %q, %k right(0)
    // CHECK: attn.window %[[Q]], %[[K]] left(2147483647) right(%ahead){{$}}
    %w2 = attn.window %q, %k left(2147483647) right(%ahead)
    // CHECK: attn.window %[[Q]], %[[K]] left(%left) right(7){{$}}
    %w3 = attn.window %q, %k left(%left) right(7)
    // CHECK: attn.window %[[Q]], %[[K]] left(%left) right(%ahead){{$}}
    %w4 = attn.window %q, %k left(%left) right(%ahead)
    // CHECK: attn.sliding %[[Q]], %[[K]] count(1){{$}}
    %s0 = attn.sliding %q, %k count(1)
    // CHECK: attn.sliding %[[Q]], %[[K]] count(%left){{$}}
    %s1 = attn.sliding %q, %k count(%left)
    // CHECK: attn.mm_prefix %mm, %[[B]], %[[Q]], %[[K]]{{$}}
    %r0 = attn.mm_prefix %mm, %b, %q, %k
    // CHECK: attn.mm_prefix %mm, %[[B]], %[[Q]], %[[K]] clamp(0){{$}}
    %r1 = attn.mm_prefix %mm, %b, %q, %k clamp(0)
    // CHECK: attn.mm_prefix %mm, %[[B]], %[[Q]], %[[K]] clamp(%left){{$}}
    %r2 = attn.mm_prefix %mm, %b, %q, %k clamp(%left)
    // CHECK: attn.prefix %[[K]], -4{{$}}
    %p0 = attn.prefix %k, -4
    // CHECK: attn.prefix %[[K]], %n{{$}}
    %p1 = attn.prefix %k, %n
    // CHECK: attn.document %doc, %[[B]], %[[Q]], %[[K]]{{$}}
    %d = attn.document %doc, %b, %q, %k
    // CHECK: attn.global %[[Q]], %[[K]], 4{{$}}
    %g0 = attn.global %q, %k, 4
    // CHECK: attn.global %[[Q]], %[[K]], %n{{$}}
    %g1 = attn.global %q, %k, %n
    // CHECK: %[[LO:.*]], %[[HI:.*]] = attn.row_range %rows, %[[Q]]{{$}}
    %lo, %hi = attn.row_range %rows, %q
    // CHECK: attn.in_rows %[[K]], %[[LO]], %[[HI]]{{$}}
    %i = attn.in_rows %k, %lo, %hi
    // CHECK: %[[AND:.*]] = attn.and %[[CAUSAL]], %{{.*}}{{$}}
    // GENERIC: "attn.and"(%{{.*}}, %{{.*}}) : (i1, i1) -> i1
    %a = attn.and %causal, %i
    // CHECK: %[[OR:.*]] = attn.or %[[AND]], %{{.*}}{{$}}
    %o = attn.or %a, %d
    // CHECK: %[[NOT:.*]] = attn.not %[[OR]]{{$}}
    %m = attn.not %o
    // CHECK: attn.yield %[[NOT]] : i1
    attn.yield %m : i1
  }
}
