// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// attn-compile --shapes=all: one kernel in every shape that its target could have, the table's first.
// RUN: split-file %s %t
// RUN: attn-compile %t/one.mlir --target=sm_90a --ptxas=none --shapes=all -o %t.attn
// RUN: grep -a '"name": "causal' %t.attn | FileCheck %s
// CHECK: "causal@2x64-turns"
// CHECK-NEXT: "causal@2x48"
// CHECK-NEXT: "causal@2x48-turns"
// CHECK-NEXT: "causal@2x64"
// CHECK-NOT: causal

// RUN: rm -f %t.out
// RUN: not attn-compile %t/two.mlir --target=sm_90a --ptxas=none --shapes=all -o %t.out 2>&1 | FileCheck %s --check-prefix=TWO
// TWO: two.mlir:1:1: error: all shapes are compiled of one kernel, the spec has 2
// RUN: not attn-compile %t/one.mlir --target=cpu,sm_90a --ptxas=none --shapes=all -o %t.out 2>&1 | FileCheck %s --check-prefix=TARGETS
// TARGETS: one.mlir:1:1: error: all shapes are compiled for one GPU target, got cpu,sm_90a
// RUN: not attn-compile %t/one.mlir --shapes=all -o %t.out 2>&1 | FileCheck %s --check-prefix=CPU
// CPU: attn-compile: --shapes has no meaning without a GPU target
// RUN: not attn-compile %t/one.mlir --target=sm_90a --shapes=some -o %t.out 2>&1 | FileCheck %s --check-prefix=SOME
// SOME: attn-compile: --shapes: expected all, got 'some'
// RUN: not attn-compile %t/one.mlir --target=sm_90a --shapes=all --emit=ptx 2>&1 | FileCheck %s --check-prefix=EMIT
// EMIT: attn-compile: --shapes has no meaning with --emit=ptx, no artifact is made
// RUN: not ls %t.out

//--- one.mlir
attn.kernel @causal heads(8) kv_heads(4) dim(256) q(bf16) kv(bf16) {
  attn.mask (%b, %h, %q, %k) {
    %m = attn.causal %q, %k
    attn.yield %m : i1
  }
}
//--- two.mlir
attn.kernel @causal heads(8) kv_heads(4) dim(256) q(bf16) kv(bf16) {
  attn.mask (%b, %h, %q, %k) {
    %m = attn.causal %q, %k
    attn.yield %m : i1
  }
}
attn.kernel @none heads(8) kv_heads(4) dim(256) q(bf16) kv(bf16) {
}
