// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Text is causal with a sliding window; the tokens of one image (an inclusive range of positions)
// see each other in both directions, whatever the window says.
attn.kernel @mm_prefix heads(4) kv_heads(2) dim(64) q(bf16) kv(bf16)
    params(%left: i32) tables(%mm: !attn.ranges) {
  attn.mask (%b, %h, %q, %k) {
    %c  = attn.causal %q, %k
    %w  = attn.window %q, %k left(%left)
    %cw = attn.and %c, %w
    %r  = attn.mm_prefix %mm, %b, %q, %k
    %m  = attn.or %cw, %r
    attn.yield %m : i1
  }
}
