// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Scores pressed into (-cap, cap) before the causal mask is applied. The scale is given with each
// batch too: models that normalise q and k use 1.
attn.kernel @soft_cap heads(4) kv_heads(2) dim(64) q(bf16) kv(bf16) scale(%scale)
    params(%scale: f32, %cap: f32) {
  attn.mask (%b, %h, %q, %k) {
    %m = attn.causal %q, %k
    attn.yield %m : i1
  }
  attn.score (%s, %b, %h, %q, %k) {
    %x = attn.soft_cap %s, %cap
    attn.yield %x : f32
  }
}
