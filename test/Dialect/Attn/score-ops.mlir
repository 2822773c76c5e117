// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: attn-opt %s | FileCheck %s
// RUN: attn-opt %s | attn-opt | FileCheck %s
// RUN: attn-opt %s --mlir-print-op-generic | attn-opt | FileCheck %s
// RUN: attn-opt %s --mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC

// CHECK-LABEL: attn.kernel @scores
attn.kernel @scores heads(8) dim(64) q(f16) kv(f16) params(%cap: f32, %slope: f32) {
  // CHECK: attn.score (%[[S:.*]], %[[B:.*]], %[[H:.*]], %[[Q:.*]], %[[K:.*]]) {
  attn.score (%s, %b, %h, %q, %k) {
    // CHECK: %[[T0:.*]] = attn.soft_cap %[[S]], 5.000000e+01{{$}}
    // GENERIC: "attn.soft_cap"(%{{.*}}) <{cap_literal = 5.000000e+01 : f32}> : (f32) -> f32
    %t0 = attn.soft_cap %s, 50.0
    // CHECK: %[[T1:.*]] = attn.soft_cap %[[T0]], %cap{{$}}
    %t1 = attn.soft_cap %t0, %cap
    // CHECK: %[[T2:.*]] = attn.alibi %[[T1]], %[[Q]], %[[K]], %slope{{$}}
    // GENERIC: "attn.alibi"(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) : (f32, index, index, f32) -> f32
    %t2 = attn.alibi %t1, %q, %k, %slope
    // CHECK: attn.yield %[[T2]] : f32
    attn.yield %t2 : f32
  }
}

// Everything a score may be written in.
// CHECK-LABEL: attn.kernel @free
attn.kernel @free heads(1) dim(1) q(f32) kv(f32) {
  attn.score (%s, %b, %h, %q, %k) {
    %d = arith.subi %q, %k : index
    %i = arith.index_cast %d : index to i32
    %f = arith.sitofp %i : i32 to f32
    // CHECK: math.exp2
    %e = math.exp2 %f : f32
    %inf = arith.constant 0xFF800000 : f32
    %far = arith.cmpf ogt, %f, %e : f32
    // CHECK: arith.select
    %t = arith.select %far, %inf, %s : f32
    attn.yield %t : f32
  }
}
