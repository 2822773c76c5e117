// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Other shapes than the table's.
// RUN: attn-opt %s --attn-mask-passes --convert-attn-to-tile=shape=2x80 | FileCheck %s
// RUN: attn-opt %s --attn-mask-passes --convert-attn-to-tile=shape=3x112-turns | FileCheck %s --check-prefix=THREE
// RUN: not attn-opt %s --attn-mask-passes --convert-attn-to-tile=shape=2x72 2>&1 | FileCheck %s --check-prefix=NONE

// CHECK: tile.ring arrivals(4) : <2 x 64x64xbf16>
// CHECK: tile.ring arrivals(8) : <2 x 80x64xbf16>
// CHECK: tile.producer registers(24)
// CHECK: tile.consumers groups(2) registers(240)
// CHECK-NOT: tile.await_turn

// THREE: tile.ring arrivals(4) : <3 x 64x64xbf16>
// THREE: tile.ring arrivals(12) : <2 x 112x64xbf16>
// THREE: tile.producer registers(24)
// THREE: tile.consumers groups(3) registers(160)
// THREE: tile.await_turn

// NONE: error: target 'sm_90a' has no shape '2x72' for it, expected one of: 3x128-turns, 2x48, 2x48-turns,
attn.kernel @causal heads(4) kv_heads(2) dim(64) q(bf16) kv(bf16) {
  attn.mask (%b, %h, %q, %k) {
    %m = attn.causal %q, %k
    attn.yield %m : i1
  }
}
