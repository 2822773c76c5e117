// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Other shapes than the table's.
// RUN: attn-opt %s --attn-mask-passes --convert-attn-to-tile=shape=2x80 | FileCheck %s
// RUN: attn-opt %s --attn-mask-passes --convert-attn-to-tile=shape=3x112-turns | FileCheck %s --check-prefix=THREE
// RUN: attn-opt %s --attn-mask-passes --convert-attn-to-tile=shape=2x160 | FileCheck %s --check-prefix=WORDS
// RUN: attn-opt %s --attn-mask-passes --convert-attn-to-tile=rescale-slack=4 | FileCheck %s --check-prefix=SLACK
// RUN: attn-opt %s --attn-mask-passes --convert-attn-to-tile=rescale-slack=0 | FileCheck %s --check-prefix=EXACT
// RUN: not attn-opt %s --attn-mask-passes --convert-attn-to-tile=rescale-slack=9 2>&1 | FileCheck %s --check-prefix=MUCH
// RUN: not attn-opt %s --attn-mask-passes --convert-attn-to-tile=rescale-slack=-2 2>&1 | FileCheck %s --check-prefix=LITTLE
// RUN: not attn-opt %s --attn-mask-passes --convert-attn-to-tile=shape=2x72 2>&1 | FileCheck %s --check-prefix=NONE

// CHECK: tile.ring arrivals(4) : <4 x 64x64xbf16>
// CHECK: tile.ring arrivals(8) : <2 x 80x64xbf16>
// CHECK: tile.producer registers(24)
// CHECK: tile.consumers groups(2) registers(240)
// CHECK-NOT: tile.await_turn

// THREE: tile.ring arrivals(4) : <6 x 64x64xbf16>
// THREE: tile.ring arrivals(12) : <2 x 112x64xbf16>
// THREE: tile.producer registers(24)
// THREE: tile.consumers groups(3) registers(160)
// THREE: tile.await_turn

// Of a bitmap of 160 keys a thread brings the words of rows t and 128 + t.
// WORDS: tile.consumers
// WORDS: %[[WORD:.*]] = arith.shrui %{{.*}}, %c5_i32
// WORDS: %[[EIGHT:.*]] = arith.muli %{{.*}}, %c8_i32
// WORDS-NEXT: %[[AT:.*]] = arith.addi %[[EIGHT]], %[[WORD]] : i32
// WORDS: %[[FIRST:.*]] = llvm.load {{.*}} -> i32
// WORDS-NEXT: %[[FOUR:.*]] = arith.constant 4 : i32
// WORDS-NEXT: %[[NEXT:.*]] = arith.addi %[[AT]], %[[FOUR]] : i32
// WORDS-NEXT: %[[WIDE:.*]] = arith.extsi %[[NEXT]] : i32 to i64
// WORDS-NEXT: %[[SIZE:.*]] = arith.constant 4 : i64
// WORDS-NEXT: %[[BYTES:.*]] = arith.muli %[[WIDE]], %[[SIZE]] : i64
// WORDS-NEXT: %[[PLACE:.*]] = llvm.getelementptr %{{.*}}[%[[BYTES]]]
// WORDS-NEXT: %[[SECOND:.*]] = llvm.load %[[PLACE]]
// WORDS-NEXT: scf.yield %[[FIRST]], %[[SECOND]] : i32, i32
// WORDS: tile.hide %{{.*}} keep %{{.*}}, %{{.*}} :

// The maximum stays where it is until it rises by more than 4.
// SLACK: tile.row_max
// SLACK: arith.maxnumf
// SLACK: %[[RISE:.*]] = arith.mulf
// SLACK: %[[FOUR:.*]] = arith.constant 4.000000e+00 : f32
// SLACK: arith.cmpf ogt, %[[RISE]], %[[FOUR]] : f32
// SLACK: tile.warp_any

// EXACT: tile.row_max
// EXACT-NOT: arith.cmpf ogt
// EXACT: tile.warp_any

// MUCH: error: rescale-slack: expected 0 to 8, got 9
// LITTLE: error: rescale-slack: expected 0 to 8, got -2

// NONE: error: target 'sm_90a' has no shape '2x72' for it, expected one of: 3x128-turns, 2x48, 2x48-turns,
attn.kernel @causal heads(4) kv_heads(2) dim(64) q(bf16) kv(bf16) {
  attn.mask (%b, %h, %q, %k) {
    %m = attn.causal %q, %k
    attn.yield %m : i1
  }
}
