// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What stands in the loops over keys where the mask becomes intervals: no mask code in full blocks, bit
// tests in partial ones, and what a row reads from tables is read before. Without the mask passes the
// same kernels fail.
// RUN: attn-compile %s --target=sm_90a --emit=ptx -o %t.ptx
// RUN: ptx-loops %t.ptx --check full-clean --check partial-bits --check no-table-load --check no-scan
// RUN: ptx-loops %t.ptx | FileCheck %s
// RUN: attn-compile %s --target=sm_90a --emit=ptx --no-mask-passes -o %t.plain.ptx
// RUN: not ptx-loops %t.plain.ptx --check partial-bits | FileCheck %s --check-prefix=PLAIN-BITS
// RUN: not ptx-loops %t.plain.ptx --check no-table-load | FileCheck %s --check-prefix=PLAIN-LOAD
// RUN: not ptx-loops %t.plain.ptx --check no-scan | FileCheck %s --check-prefix=PLAIN-SCAN

// Each kernel has two loops over keys, of full and of partial blocks.
// CHECK-COUNT-2: attn_forward: kv loop
// CHECK-NOT: attn_forward: kv loop
// CHECK: attn_forward_1:

// PLAIN-BITS: attn_forward: partial-bits: the partial KV loop has {{.*}} expected
// PLAIN-BITS: attn_forward_1: partial-bits: the partial KV loop has {{.*}} expected
// PLAIN-BITS: attn_forward_2: partial-bits: the partial KV loop has {{.*}} expected
// PLAIN-BITS: attn_forward_3: partial-bits: the partial KV loop has {{.*}} expected
// PLAIN-BITS: attn_forward_4: partial-bits: the partial KV loop has {{.*}} expected
// PLAIN-LOAD: attn_forward_2: no-table-load: the KV loop
// PLAIN-LOAD: attn_forward_3: no-table-load: the KV loop
// PLAIN-SCAN: attn_forward_2: no-scan: the KV loop

attn.kernel @causal heads(4) kv_heads(2) dim(128) q(bf16) kv(bf16) {
  attn.mask (%b, %h, %q, %k) {
    %m = attn.causal %q, %k
    attn.yield %m : i1
  }
}

attn.kernel @window heads(4) kv_heads(2) dim(64) q(f16) kv(f16) params(%left: i32, %right: i32) {
  attn.mask (%b, %h, %q, %k) {
    %m = attn.window %q, %k left(%left) right(%right)
    attn.yield %m : i1
  }
}

attn.kernel @ranges heads(4) kv_heads(2) dim(128) q(bf16) kv(bf16) params(%left: i32)
    tables(%mm: !attn.ranges) {
  attn.mask (%b, %h, %q, %k) {
    %c  = attn.causal %q, %k
    %w  = attn.window %q, %k left(%left)
    %cw = attn.and %c, %w
    %r  = attn.mm_prefix %mm, %b, %q, %k clamp(%left)
    %m  = attn.or %cw, %r
    attn.yield %m : i1
  }
}

attn.kernel @documents heads(2) kv_heads(2) dim(64) q(bf16) kv(bf16) tables(%doc: !attn.documents) {
  attn.mask (%b, %h, %q, %k) {
    %c = attn.causal %q, %k
    %d = attn.document %doc, %b, %q, %k
    %m = attn.and %c, %d
    attn.yield %m : i1
  }
}

// Two intervals a row.
attn.kernel @global_window heads(2) kv_heads(2) dim(128) q(f16) kv(f16) {
  attn.mask (%b, %h, %q, %k) {
    %n = arith.constant 4 : i32
    %w = attn.window %q, %k left(64) right(64)
    %g = attn.global %q, %k, %n
    %m = attn.or %w, %g
    attn.yield %m : i1
  }
}
