// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// As ptx-loops.mlir, for the shorter blocks that head dimension 256 has.
// RUN: attn-compile %s --target=sm_90a --emit=ptx -o %t.ptx
// RUN: ptx-loops %t.ptx --check full-clean --check partial-bits --check no-table-load --check no-scan
// RUN: attn-compile %s --target=sm_90a --emit=ptx --no-mask-passes -o %t.plain.ptx
// RUN: not ptx-loops %t.plain.ptx --check partial-bits | FileCheck %s --check-prefix=BITS
// RUN: not ptx-loops %t.plain.ptx --check no-table-load | FileCheck %s --check-prefix=LOAD
// RUN: not ptx-loops %t.plain.ptx --check no-scan | FileCheck %s --check-prefix=SCAN

// BITS: attn_forward: partial-bits: the partial KV loop has
// LOAD: attn_forward: no-table-load: the KV loop
// SCAN: attn_forward: no-scan: the KV loop

attn.kernel @gemma heads(8) kv_heads(4) dim(256) q(bf16) kv(bf16) params(%left: i32)
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
