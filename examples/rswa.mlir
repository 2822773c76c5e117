// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sliding window that keeps the start of the request in sight: causal, and the key is either in
// the request's prefix or in the window. Rows far past the prefix see two separate runs of keys.
attn.kernel @rswa heads(8) kv_heads(2) dim(64) q(bf16) kv(bf16)
    params(%left: i32) tables(%prefix_len: !attn.table<[b], i32>) {
  attn.mask (%b, %h, %q, %k) {
    %n = attn.load %prefix_len[%b] : !attn.table<[b], i32>
    %c = attn.causal %q, %k
    %p = attn.prefix %k, %n
    %w = attn.window %q, %k left(%left)
    %pw = attn.or %p, %w
    %m = attn.and %c, %pw
    attn.yield %m : i1
  }
}
