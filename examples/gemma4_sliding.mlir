// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sliding-window layer of a multimodal model: text is causal within a window, image tokens see
// their whole range. The clamp keeps the window on the past side of the ranges too; future keys of
// a range stay visible. A window of 1024 keys, self included, is left = 1023.
attn.kernel @gemma4_sliding heads(8) kv_heads(4) dim(256) q(bf16) kv(bf16)
    params(%left: i32) tables(%mm: !attn.ranges) {
  attn.mask (%b, %h, %q, %k) {
    %c  = attn.causal %q, %k
    %w  = attn.window %q, %k left(%left)
    %cw = attn.and %c, %w
    %r  = attn.mm_prefix %mm, %b, %q, %k clamp(%left)
    %m  = attn.or %cw, %r
    attn.yield %m : i1
  }
}
