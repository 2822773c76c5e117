// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A band around the diagonal. `left` and `right` are radii, given with each batch: `left` older
// keys and `right` newer ones besides the query itself. right = 0 is the causal sliding window.
attn.kernel @window heads(4) kv_heads(1) dim(64) q(f16) kv(f16)
    params(%left: i32, %right: i32) {
  attn.mask (%b, %h, %q, %k) {
    %m = attn.window %q, %k left(%left) right(%right)
    attn.yield %m : i1
  }
}
