// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Q of two tiles where it is read from shared memory and there is room; larger key blocks leave none.
// RUN: attn-opt %s --attn-mask-passes --convert-attn-to-tile | FileCheck %s --check-prefix=TWO
// RUN: attn-opt %s --attn-mask-passes --convert-attn-to-tile=shape=2x144-turns | FileCheck %s --check-prefix=ONE

// TWO: %[[Q:.*]] = tile.ring arrivals(4) : <4 x 64x128xbf16>
// TWO: tile.consumers groups(2)
// TWO: tile.wait %[[Q]][%[[USE:.*]]]
// TWO: tile.mma_shared %[[Q]][%[[USE]]]

// ONE: %[[Q:.*]] = tile.ring arrivals(4) : <2 x 64x128xbf16>
// ONE: tile.consumers groups(2)
// ONE-NEXT: ^bb0(%[[GROUP:.*]]: i32):
// ONE: tile.mma_shared %[[Q]][%[[GROUP]]]
attn.kernel @alibi heads(8) dim(128) q(bf16) kv(bf16) tables(%slopes: !attn.table<[h], f32>) {
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
