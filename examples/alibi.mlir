// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A bias that falls off with distance, with a slope for each head. The slopes are a table, so a
// rank that owns heads 4..7 of a larger model passes the slopes of those heads.
attn.kernel @alibi heads(4) kv_heads(4) dim(64) q(bf16) kv(bf16)
    tables(%slopes: !attn.table<[h], f32>) {
  attn.mask (%b, %h, %q, %k) {
    %m = attn.causal %q, %k
    attn.yield %m : i1
  }
  attn.score (%s, %b, %h, %q, %k) {
    %slope = attn.load %slopes[%h] : !attn.table<[h], f32>
    %x = attn.alibi %s, %q, %k, %slope
    attn.yield %x : f32
  }
}
