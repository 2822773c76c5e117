// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Prefix language model: every query sees the whole prefix of its request, the rest is causal. The
// length of each request's prefix is a table with one entry a request.
attn.kernel @prefix_lm heads(4) kv_heads(2) dim(64) q(bf16) kv(bf16)
    tables(%prefix_len: !attn.table<[b], i32>) {
  attn.mask (%b, %h, %q, %k) {
    %n = attn.load %prefix_len[%b] : !attn.table<[b], i32>
    %c = attn.causal %q, %k
    %p = attn.prefix %k, %n
    %m = attn.or %c, %p
    attn.yield %m : i1
  }
}
