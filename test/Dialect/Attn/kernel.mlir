// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: attn-opt %s | FileCheck %s
// RUN: attn-opt %s | attn-opt | FileCheck %s
// RUN: attn-opt %s --mlir-print-op-generic | attn-opt | FileCheck %s
// RUN: attn-opt %s --mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC

// The shortest kernel: every default.
// CHECK: attn.kernel @empty heads(1) dim(64) q(f32) kv(f32) {
// GENERIC: "attn.kernel"() <{arg_names = [], dim = 64 : i64, dim_v = 64 : i64, heads = 1 : i64, kv_heads = 1 : i64, kv_type = f32, num_params = 0 : i64, q_type = f32, sym_name = "empty", table_sources = array<i64>}>
attn.kernel @empty heads(1) dim(64) q(f32) kv(f32) {
}

// Defaults that are spelled out are not printed.
// CHECK: attn.kernel @defaults heads(8) dim(64) q(f16) kv(bf16) {
attn.kernel @defaults heads(8) kv_heads(8) dim(64) dim_v(64) q(f16) kv(bf16) {
}

// Every clause.
// CHECK: attn.kernel @all heads(8) kv_heads(2) dim(192) dim_v(128) q(bf16) kv(f16) scale(1.250000e-01) params(%left: i32, %n: i64, %x: f32) tables(%mm: !attn.ranges, %doc: !attn.documents, %mm_rows: !attn.query_ranges from %mm, %doc_rows: !attn.query_ranges from %doc, %t: !attn.table<[b, k], i8>) {
attn.kernel @all heads(8) kv_heads(2) dim(192) dim_v(128) q(bf16) kv(f16) scale(0.125)
    params(%left: i32, %n: i64, %x: f32)
    tables(%mm: !attn.ranges, %doc: !attn.documents, %mm_rows: !attn.query_ranges from %mm,
           %doc_rows: !attn.query_ranges from %doc, %t: !attn.table<[b, k], i8>) {
}

// CHECK: attn.kernel @scale_param heads(1) dim(64) q(f32) kv(f32) scale(%sm) params(%left: i32, %sm: f32) {
attn.kernel @scale_param heads(1) dim(64) q(f32) kv(f32) scale(%sm) params(%left: i32, %sm: f32) {
}

// A negative, a large and an exact scale survive.
// CHECK: attn.kernel @negative heads(1) dim(64) q(f32) kv(f32) scale(-2.000000e+00) {
attn.kernel @negative heads(1) dim(64) q(f32) kv(f32) scale(-2.0) {
}
// CHECK: attn.kernel @exact heads(1) dim(64) q(f32) kv(f32) scale(0.088388347648318447) {
attn.kernel @exact heads(1) dim(64) q(f32) kv(f32) scale(0.088388347648318447) {
}

// All levels, both kinds of bounds, values of the kernel's body.
// CHECK-LABEL: attn.kernel @levels
attn.kernel @levels heads(1) dim(64) q(f32) kv(f32) params(%left: i32)
    tables(%len: !attn.table<[b], i32>) {
  // CHECK: %[[L:.*]] = arith.index_cast %left : i32 to index
  %l = arith.index_cast %left : i32 to index
  // CHECK: %[[REQUEST:.*]] = attn.per request (%[[B0:.*]]) -> (i32) {
  // CHECK-NEXT: attn.load %len[%[[B0]]] : !attn.table<[b], i32>
  %n = attn.per request (%b) -> (i32) {
    %v = attn.load %len[%b] : !attn.table<[b], i32>
    attn.yield %v : i32
  }
  // CHECK: attn.per head (%{{.*}}, %{{.*}}) -> (index) {
  %hd = attn.per head (%b, %h) -> (index) {
    attn.yield %h : index
  }
  // CHECK: %[[ROW:.*]]:2 = attn.per row (%{{.*}}, %{{.*}}, %[[Q:.*]]) -> (index, index) {
  // CHECK-NEXT: arith.subi %[[Q]], %[[L]] : index
  %row:2 = attn.per row (%b, %h, %q) -> (index, index) {
    %lo = arith.subi %q, %l : index
    attn.yield %lo, %q : index, index
  }
  // CHECK: attn.per column (%{{.*}}, %{{.*}}, %{{.*}}) -> (i1) {
  %col = attn.per column (%b, %h, %k) -> (i1) {
    %p = attn.prefix %k, %n
    attn.yield %p : i1
  }
  // CHECK: attn.mask (%{{.*}}, %{{.*}}, %{{.*}}, %[[K:.*]]) {
  attn.mask (%b, %h, %q, %k) {
    // CHECK-NEXT: attn.in_rows %[[K]], %[[ROW]]#0, %[[ROW]]#1
    %i = attn.in_rows %k, %row#0, %row#1
    %m = attn.and %i, %col
    attn.yield %m : i1
  }
  // CHECK: attn.bounds hull (%{{.*}}, %{{.*}}, %{{.*}}) {
  // CHECK-NEXT: attn.yield %[[ROW]]#0, %[[ROW]]#1 : index, index
  attn.bounds hull (%b, %h, %q) {
    attn.yield %row#0, %row#1 : index, index
  }
}

// CHECK-LABEL: attn.kernel @exact_bounds
// CHECK: attn.bounds exact (%{{.*}}, %{{.*}}, %[[Q:.*]]) {
// CHECK-NEXT: attn.yield %[[Q]], %[[Q]] : index, index
attn.kernel @exact_bounds heads(1) dim(64) q(f32) kv(f32) {
  attn.bounds exact (%b, %h, %q) {
    attn.yield %q, %q : index, index
  }
}
