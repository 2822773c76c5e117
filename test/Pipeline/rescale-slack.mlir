// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// attn-compile --rescale-slack: of the table 8 at dimension 256.
// RUN: attn-compile %s --target=sm_90a --emit=tile | FileCheck %s --check-prefixes=CHECK,TABLE
// RUN: attn-compile %s --target=sm_90a --rescale-slack=0 --emit=tile | FileCheck %s --check-prefixes=CHECK,EXACT
// RUN: attn-compile %s --target=sm_90a --rescale-slack=2 --emit=tile | FileCheck %s --check-prefixes=CHECK,TWO
// CHECK: tile.row_max
// TABLE: %[[SLACK:.*]] = arith.constant 8.000000e+00 : f32
// TABLE: arith.cmpf ogt, %{{.*}}, %[[SLACK]] : f32
// TWO: %[[SLACK:.*]] = arith.constant 2.000000e+00 : f32
// TWO: arith.cmpf ogt, %{{.*}}, %[[SLACK]] : f32
// EXACT-NOT: arith.cmpf ogt
// CHECK: tile.warp_any

// RUN: rm -f %t.out
// RUN: not attn-compile %s --target=sm_90a --rescale-slack=9 -o %t.out 2>&1 | FileCheck %s --check-prefix=MUCH
// MUCH: rescale-slack.mlir:[[# @LINE + 8]]:1: error: rescale-slack: expected 0 to 8, got 9
// RUN: not attn-compile %s --target=sm_90a --rescale-slack=some -o %t.out 2>&1 | FileCheck %s --check-prefix=SOME
// SOME: for the --rescale-slack option: 'some' value invalid
// RUN: not attn-compile %s --rescale-slack=0 -o %t.out 2>&1 | FileCheck %s --check-prefix=CPU
// CPU: attn-compile: --rescale-slack has no meaning without a GPU target
// RUN: not attn-compile %s --target=sm_90a --rescale-slack=0 --emit=attn 2>&1 | FileCheck %s --check-prefix=ATTN
// ATTN: attn-compile: --rescale-slack has no meaning with --emit=attn, no code is generated
// RUN: not ls %t.out
attn.kernel @causal heads(8) kv_heads(4) dim(256) q(bf16) kv(bf16) {
  attn.mask (%b, %h, %q, %k) {
    %m = attn.causal %q, %k
    attn.yield %m : i1
  }
}
