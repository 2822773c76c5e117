// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: attn-opt %s --attn-range-scan-to-table --remarks-filter='attn.*' --remark-policy=all \
// RUN:   -verify-diagnostics | FileCheck %s
// RUN: attn-opt %s --attn-range-scan-to-table > %t.once
// RUN: attn-opt %t.once --attn-range-scan-to-table | diff %t.once -

// One row a query; the clamp is a window beside it.
// CHECK-LABEL: attn.kernel @ranges
// CHECK-SAME: tables(%mm: !attn.ranges, %mm_rows: !attn.query_ranges from %mm)
attn.kernel @ranges heads(1) dim(64) q(f32) kv(f32) params(%left: i32) tables(%mm: !attn.ranges) {
  // CHECK: attn.mask (%{{.*}}, %{{.*}}, %[[Q:.*]], %[[K:.*]]) {
  attn.mask (%b, %h, %q, %k) {
    // CHECK-NEXT: %[[LO:.*]], %[[HI:.*]] = attn.row_range %mm_rows, %[[Q]]
    // CHECK-NEXT: %[[R:.*]] = attn.in_rows %[[K]], %[[LO]], %[[HI]]
    // expected-remark @+1 {{[Passed] RangeScanToTable | Category:attn | Remark="attn.mm_prefix reads one row of 'mm_rows', built from 'mm'"}}
    %r = attn.mm_prefix %mm, %b, %q, %k
    // CHECK-NEXT: %[[LO1:.*]], %[[HI1:.*]] = attn.row_range %mm_rows, %[[Q]]
    // CHECK-NEXT: %[[R1:.*]] = attn.in_rows %[[K]], %[[LO1]], %[[HI1]]
    // CHECK-NEXT: %[[W:.*]] = attn.window %[[Q]], %[[K]] left(%left){{$}}
    // CHECK-NEXT: %[[C:.*]] = attn.and %[[R1]], %[[W]]
    // expected-remark @+1 {{[Passed] RangeScanToTable | Category:attn | Remark="attn.mm_prefix reads one row of 'mm_rows', built from 'mm'"}}
    %s = attn.mm_prefix %mm, %b, %q, %k clamp(%left)
    // CHECK: attn.window %[[Q]], %[[K]] left(3){{$}}
    // expected-remark @+1 {{[Passed] RangeScanToTable | Category:attn | Remark="attn.mm_prefix reads one row of 'mm_rows', built from 'mm'"}}
    %t = attn.mm_prefix %mm, %b, %q, %k clamp(3)
    // CHECK: attn.or %[[R]], %[[C]]
    %x = attn.or %r, %s
    %y = attn.or %x, %t
    attn.yield %y : i1
  }
}

// One table for each source; a table that is there already is used; names stay unique.
// CHECK-LABEL: attn.kernel @sources
// CHECK-SAME: tables(%mm: !attn.ranges, %doc: !attn.documents, %rows: !attn.query_ranges from %mm, %doc_rows: !attn.table<[b], i32>, %doc_rows_: !attn.query_ranges from %doc)
attn.kernel @sources heads(1) dim(64) q(f32) kv(f32)
    tables(%mm: !attn.ranges, %doc: !attn.documents, %rows: !attn.query_ranges from %mm,
           %doc_rows: !attn.table<[b], i32>) {
  attn.mask (%b, %h, %q, %k) {
    // CHECK: attn.row_range %rows, %{{.*}}
    // expected-remark @+1 {{[Passed] RangeScanToTable | Category:attn | Remark="attn.mm_prefix reads one row of 'rows', built from 'mm'"}}
    %r = attn.mm_prefix %mm, %b, %q, %k
    // CHECK: attn.row_range %doc_rows_, %{{.*}}
    // expected-remark @+1 {{[Passed] RangeScanToTable | Category:attn | Remark="attn.document reads one row of 'doc_rows_', built from 'doc'"}}
    %d = attn.document %doc, %b, %q, %k
    %x = attn.and %r, %d
    attn.yield %x : i1
  }
}

// Left alone: nothing to look up. A scan by hand is for attn-raise-masks.
// CHECK-LABEL: attn.kernel @nothing
// CHECK-SAME: tables(%mm: !attn.ranges) {
attn.kernel @nothing heads(1) dim(64) q(f32) kv(f32) tables(%mm: !attn.ranges) {
  attn.mask (%b, %h, %q, %k) {
    // CHECK: attn.num_ranges
    %n = attn.num_ranges %mm[%b]
    // CHECK-NEXT: attn.in_rows
    %x = attn.in_rows %k, %b, %n
    attn.yield %x : i1
  }
}
// CHECK-LABEL: attn.kernel @no_mask
attn.kernel @no_mask heads(1) dim(64) q(f32) kv(f32) tables(%mm: !attn.ranges) {
}
