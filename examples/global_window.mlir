// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Long-document encoder: a window to both sides, and a few leading tokens that see everything and
// are seen by everything.
attn.kernel @global_window heads(2) kv_heads(2) dim(64) q(bf16) kv(bf16)
    params(%radius: i32, %global_tokens: i32) {
  attn.mask (%b, %h, %q, %k) {
    %w = attn.window %q, %k left(%radius) right(%radius)
    %g = attn.global %q, %k, %global_tokens
    %m = attn.or %w, %g
    attn.yield %m : i1
  }
}
