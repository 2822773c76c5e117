// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The check of full blocks sees a select per element there: one of the score, which masks nothing.
// RUN: attn-compile %s --target=sm_90a --emit=ptx -o %t.ptx
// RUN: not ptx-loops %t.ptx --check full-clean | FileCheck %s

// CHECK: attn_forward: full-clean: 0 of 2 KV loops have no mask code, expected 1

attn.kernel @relu heads(2) kv_heads(2) dim(128) q(bf16) kv(bf16) {
  attn.mask (%b, %h, %q, %k) {
    %m = attn.causal %q, %k
    attn.yield %m : i1
  }
  attn.score (%s, %b, %h, %q, %k) {
    %d = arith.subi %q, %k : index
    %near = arith.constant 100 : index
    %p = arith.cmpi slt, %d, %near : index
    %half = arith.constant 0.5 : f32
    %t = arith.mulf %s, %half : f32
    %r = arith.select %p, %s, %t : f32
    attn.yield %r : f32
  }
}
