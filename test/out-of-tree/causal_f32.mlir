// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Causal attention with grouped heads. Positions are absolute, so a request whose keys outnumber
// its queries is aligned bottom-right by itself.
attn.kernel @causal heads(4) kv_heads(2) dim(32) q(f32) kv(f32) {
  attn.mask (%b, %h, %q, %k) {
    %m = attn.causal %q, %k
    attn.yield %m : i1
  }
}
