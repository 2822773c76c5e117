// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Several continuations of one prompt drafted side by side in one request. Every query token and
// every key has the number of its branch; branch 0 is the shared prompt. A query sees the prompt
// and its own branch. Note the two index spaces: the table of queries has a row per token of the
// batch, the table of keys a row per request and key position.
attn.kernel @table_predicate heads(4) kv_heads(2) dim(64) q(bf16) kv(bf16)
    tables(%q_branch: !attn.table<[token], i32>, %k_branch: !attn.table<[b, k], i32>) {
  attn.mask (%b, %h, %q, %k) {
    %shared = arith.constant 0 : i32
    %mine = attn.load %q_branch[%q] : !attn.table<[token], i32>
    %other = attn.load %k_branch[%b, %k] : !attn.table<[b, k], i32>
    %prompt = arith.cmpi eq, %other, %shared : i32
    %same = arith.cmpi eq, %other, %mine : i32
    %visible = arith.ori %prompt, %same : i1
    %c = attn.causal %q, %k
    %m = attn.and %c, %visible
    attn.yield %m : i1
  }
}
