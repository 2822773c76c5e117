// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The order of the passes, and what each does to one mask, as remarks.
// RUN: attn-opt %s --attn-mask-passes --remarks-filter='attn.*' --remark-policy=all \
// RUN:   -verify-diagnostics | FileCheck %s
// RUN: attn-opt %s --attn-mask-passes --dump-pass-pipeline 2>&1 >/dev/null | FileCheck %s --check-prefix=ORDER

// ORDER: attn.kernel(
// ORDER-NEXT: attn-raise-masks,
// ORDER-NEXT: attn-simplify-mask,
// ORDER-NEXT: attn-range-scan-to-table,
// ORDER-NEXT: attn-fuse-intervals,
// ORDER-NEXT: cse,
// ORDER-NEXT: attn-hoist-invariants,
// ORDER-NEXT: attn-infer-tile-bounds{{$}}
// ORDER-NEXT: ){{$}}

// By hand, with a scan and a window written twice: two values a row are all that is left.
// CHECK-LABEL: attn.kernel @gemma4
// CHECK-SAME: tables(%mm: !attn.ranges, %mm_rows: !attn.query_ranges from %mm)
attn.kernel @gemma4 heads(8) kv_heads(4) dim(256) q(bf16) kv(bf16) params(%left: i32)
    tables(%mm: !attn.ranges) {
  // CHECK: %[[L:.*]] = arith.index_cast %left : i32 to index
  // CHECK: %[[ROW:.*]]:2 = attn.per row (%{{.*}}, %{{.*}}, %[[Q:.*]]) -> (index, index) {
  // CHECK: %[[LO:.*]], %[[HI:.*]] = attn.row_range %mm_rows, %[[Q]]
  // CHECK: arith.subi %[[Q]], %[[L]] : index
  // CHECK-NOT: scf.for
  // CHECK: }
  // CHECK: attn.mask (%{{.*}}, %{{.*}}, %{{.*}}, %[[K:.*]]) {
  // CHECK-NEXT: %[[M:.*]] = attn.in_rows %[[K]], %[[ROW]]#0, %[[ROW]]#1
  // CHECK-NEXT: attn.yield %[[M]] : i1
  // CHECK-NEXT: }
  // CHECK-NEXT: attn.bounds exact (%{{.*}}, %{{.*}}, %{{.*}}) {
  // CHECK-NEXT: attn.yield %[[ROW]]#0, %[[ROW]]#1 : index, index
  // expected-remark @+6 {{[Passed] SimplifyMask | Category:attn | Remark="mask goes from 7 to 5 operations"}}
  // expected-remark @+5 {{[Passed] FuseIntervals | Category:attn | Remark="mask is 1 interval a row"}}
  // expected-remark @+4 {{[Passed] HoistInvariants | Category:attn | Remark="1 operation of 'attn.mask' computed once per kernel"}}
  // expected-remark @+3 {{[Passed] HoistInvariants | Category:attn | Remark="7 operations of 'attn.mask' computed once per row"}}
  // expected-remark @+2 {{[Passed] InferTileBounds | Category:attn | Remark="rows visit exactly the kept keys"}}
  // expected-remark @+1 {{[Passed] RangeScanToTable | Category:attn | Remark="attn.mm_prefix reads one row of 'mm_rows', built from 'mm'"}}
  attn.mask (%b, %h, %q, %k) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %none = arith.constant false
    // expected-remark @+1 {{[Passed] RaiseMasks | Category:attn | Remark="'arith.cmpi' is 'attn.causal'"}}
    %causal = arith.cmpi sle, %k, %q : index
    %near = attn.window %q, %k left(%left) right(5)
    // expected-remark @+1 {{[Passed] RaiseMasks | Category:attn | Remark="'arith.andi' is 'attn.and'"}}
    %text = arith.andi %causal, %near : i1
    %n = attn.num_ranges %mm[%b]
    // expected-remark @+1 {{[Passed] RaiseMasks | Category:attn | Remark="scan over ranges is 'attn.mm_prefix'"}}
    %image = scf.for %r = %c0 to %n step %c1 iter_args(%found = %none) -> (i1) {
      %start, %end = attn.range %mm[%b, %r]
      %q_from = arith.cmpi sle, %start, %q : index
      %q_to = arith.cmpi sle, %q, %end : index
      %q_in = arith.andi %q_from, %q_to : i1
      %k_from = arith.cmpi sle, %start, %k : index
      %k_to = arith.cmpi sle, %k, %end : index
      %k_in = arith.andi %k_from, %k_to : i1
      %both = arith.andi %q_in, %k_in : i1
      %next = arith.ori %found, %both : i1
      scf.yield %next : i1
    }
    %clamp = attn.window %q, %k left(%left)
    // expected-remark @+1 {{[Passed] RaiseMasks | Category:attn | Remark="'arith.andi' is 'attn.and'"}}
    %clamped = arith.andi %image, %clamp : i1
    // expected-remark @+1 {{[Passed] RaiseMasks | Category:attn | Remark="'arith.ori' is 'attn.or'"}}
    %m = arith.ori %text, %clamped : i1
    attn.yield %m : i1
  }
}
