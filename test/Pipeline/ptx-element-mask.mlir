// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A mask that is no interval is tested per element, in partial blocks only.
// RUN: attn-compile %s --target=sm_90a --emit=ptx -o %t.ptx
// RUN: ptx-loops %t.ptx --check full-clean --check partial-element
// RUN: not ptx-loops %t.ptx --check partial-bits | FileCheck %s

// CHECK: attn_forward: partial-bits: the partial KV loop has

attn.kernel @dilated heads(2) kv_heads(2) dim(128) q(bf16) kv(bf16) {
  attn.mask (%b, %h, %q, %k) {
    %c = attn.causal %q, %k
    %d = arith.subi %q, %k : index
    %two = arith.constant 2 : index
    %r = arith.remsi %d, %two : index
    %zero = arith.constant 0 : index
    %e = arith.cmpi eq, %r, %zero : index
    %m = attn.and %c, %e
    attn.yield %m : i1
  }
}
