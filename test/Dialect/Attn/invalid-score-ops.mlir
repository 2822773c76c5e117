// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: attn-opt %s -split-input-file -verify-diagnostics

// attn-C6
attn.kernel @zero_cap heads(1) dim(64) q(f32) kv(f32) {
  attn.score (%s, %b, %h, %q, %k) {
    // expected-error @+1 {{'attn.soft_cap' op cap is expected to be finite and > 0, got 0.000000e+00 (attn-C6)}}
    %t = attn.soft_cap %s, 0.0
    attn.yield %t : f32
  }
}

// -----

// attn-C6
attn.kernel @negative_cap heads(1) dim(64) q(f32) kv(f32) {
  attn.score (%s, %b, %h, %q, %k) {
    // expected-error @+1 {{'attn.soft_cap' op cap is expected to be finite and > 0, got -1.000000e+00 (attn-C6)}}
    %t = attn.soft_cap %s, -1.0
    attn.yield %t : f32
  }
}

// -----

// attn-C6
attn.kernel @infinite_cap heads(1) dim(64) q(f32) kv(f32) {
  attn.score (%s, %b, %h, %q, %k) {
    // expected-error @+1 {{'attn.soft_cap' op cap is expected to be finite and > 0, got INF (attn-C6)}}
    %t = attn.soft_cap %s, 0x7F800000
    attn.yield %t : f32
  }
}

// -----

// attn-C6
attn.kernel @nan_cap heads(1) dim(64) q(f32) kv(f32) {
  attn.score (%s, %b, %h, %q, %k) {
    // expected-error @+1 {{'attn.soft_cap' op cap is expected to be finite and > 0, got nan (attn-C6)}}
    %t = attn.soft_cap %s, 0x7FC00000
    attn.yield %t : f32
  }
}

// -----

// attn-C7
attn.kernel @no_cap heads(1) dim(64) q(f32) kv(f32) {
  attn.score (%s, %b, %h, %q, %k) {
    // expected-error @+1 {{'attn.soft_cap' op cap is missing (attn-C7)}}
    %t = "attn.soft_cap"(%s) : (f32) -> f32
    attn.yield %t : f32
  }
}

// -----

// attn-C7
attn.kernel @both_caps heads(1) dim(64) q(f32) kv(f32) params(%cap: f32) {
  attn.score (%s, %b, %h, %q, %k) {
    // expected-error @+1 {{'attn.soft_cap' op cap is given both as a value and as a literal (attn-C7)}}
    %t = "attn.soft_cap"(%s, %cap) <{cap_literal = 1.0 : f32}> : (f32, f32) -> f32
    attn.yield %t : f32
  }
}

// -----

// attn-C1
attn.kernel @alibi heads(1) dim(64) q(f32) kv(f32) params(%slope: f32) {
  attn.score (%s, %b, %h, %q, %k) {
    // expected-error @+1 {{'attn.alibi' op operand q is expected to be the region's argument %q, got %k (attn-C1)}}
    %t = attn.alibi %s, %k, %q, %slope
    attn.yield %t : f32
  }
}
