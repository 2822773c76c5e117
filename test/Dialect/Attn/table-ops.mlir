// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: attn-opt %s | FileCheck %s
// RUN: attn-opt %s | attn-opt | FileCheck %s
// RUN: attn-opt %s --mlir-print-op-generic | attn-opt | FileCheck %s
// RUN: attn-opt %s --mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC

// CHECK-LABEL: attn.kernel @tables
// CHECK-SAME: %len: !attn.table<[b], i32>
// CHECK-SAME: %bias: !attn.table<[h, bucket], f32>
// CHECK-SAME: %tree: !attn.table<[token, slot], i8>
// CHECK-SAME: %kv: !attn.table<[b, h_kv, k], i64>
attn.kernel @tables heads(8) kv_heads(4) dim(64) q(f32) kv(f32)
    tables(%mm: !attn.ranges, %rows: !attn.query_ranges from %mm, %len: !attn.table<[b], i32>,
           %bias: !attn.table<[h, bucket], f32>, %tree: !attn.table<[token, slot], i8>,
           %kv: !attn.table<[b, h_kv, k], i64>) {
  // CHECK: attn.mask (%[[B:.*]], %[[H:.*]], %[[Q:.*]], %[[K:.*]]) {
  attn.mask (%b, %h, %q, %k) {
    // CHECK: attn.load %len[%[[B]]] : !attn.table<[b], i32>
    // GENERIC: "attn.load"(%{{.*}}, %{{.*}}) : (!attn.table<[b], i32>, index) -> i32
    %0 = attn.load %len[%b] : !attn.table<[b], i32>
    // CHECK: attn.load %bias[%[[H]], %[[K]]] : !attn.table<[h, bucket], f32>
    %1 = attn.load %bias[%h, %k] : !attn.table<[h, bucket], f32>
    // CHECK: attn.load %tree[%[[Q]], %[[K]]] : !attn.table<[token, slot], i8>
    %2 = attn.load %tree[%q, %k] : !attn.table<[token, slot], i8>
    // CHECK: attn.load %kv[%[[B]], %[[H]], %[[K]]] : !attn.table<[b, h_kv, k], i64>
    %3 = attn.load %kv[%b, %h, %k] : !attn.table<[b, h_kv, k], i64>
    // CHECK: %[[N:.*]] = attn.num_ranges %mm[%[[B]]]{{$}}
    // GENERIC: "attn.num_ranges"(%{{.*}}, %{{.*}}) : (!attn.ranges, index) -> index
    %n = attn.num_ranges %mm[%b]
    // CHECK: %[[START:.*]], %[[END:.*]] = attn.range %mm[%[[B]], %[[N]]]{{$}}
    // GENERIC: "attn.range"(%{{.*}}, %{{.*}}, %{{.*}}) : (!attn.ranges, index, index) -> (index, index)
    %start, %end = attn.range %mm[%b, %n]
    // CHECK: %[[LO:.*]], %[[HI:.*]] = attn.row_range %rows, %[[Q]]{{$}}
    // GENERIC: "attn.row_range"(%{{.*}}, %{{.*}}) : (!attn.query_ranges, index) -> (index, index)
    %lo, %hi = attn.row_range %rows, %q
    %m = attn.in_rows %k, %start, %hi
    attn.yield %m : i1
  }
}
