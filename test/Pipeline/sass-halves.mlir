// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A causal tile's first block has two forms: S of its lower half, of 64 keys, or of all 128. Each waits for its own
// product, so that ptxas keeps the overlap of the products of both loops (it takes the overlap from all of them where
// two paths meet with one under way: no wait then leaves a later product running). The first step of a product that
// starts from zero is the one that reads no accumulator.
// REQUIRES: ptxas, nvdisasm
// RUN: attn-compile %s --target=sm_90a --emit=cubin -o %t.cubin
// RUN: %nvdisasm -c %t.cubin > %t.sass
// RUN: FileCheck %s --check-prefix=HALF < %t.sass
// RUN: FileCheck %s --check-prefix=WHOLE < %t.sass
// RUN: FileCheck %s --check-prefix=OVERLAP < %t.sass
// RUN: not grep -E " (STL|LDL)" %t.sass
// RUN: sed s/dim.128./dim\(64\)/ %s > %t.64.mlir
// RUN: attn-compile %t.64.mlir --target=sm_90a --emit=cubin -o %t.64.cubin
// RUN: %nvdisasm -c %t.64.cubin > %t.64.sass
// RUN: FileCheck %s --check-prefix=HALF < %t.64.sass
// RUN: FileCheck %s --check-prefix=WHOLE < %t.64.sass
// RUN: FileCheck %s --check-prefix=OVERLAP < %t.64.sass
// RUN: not grep -E " (STL|LDL)" %t.64.sass
// HALF: HGMMA.64x64x16.F32.BF16 {{.*}}, RZ, !UPT
// HALF-NOT: HGMMA.64x64x16.F32.BF16 {{.*}}, RZ, !UPT
// WHOLE-COUNT-3: HGMMA.64x128x16.F32.BF16 {{.*}}, RZ, !UPT
// WHOLE-NOT: HGMMA.64x128x16.F32.BF16 {{.*}}, RZ, !UPT
// OVERLAP-COUNT-2: WARPGROUP.DEPBAR.LE gsb0, 0x1
// OVERLAP-NOT: WARPGROUP.DEPBAR.LE gsb0, 0x1
attn.kernel @causal heads(8) kv_heads(4) dim(128) q(bf16) kv(bf16) {
  attn.mask (%b, %h, %q, %k) {
    %m = attn.causal %q, %k
    attn.yield %m : i1
  }
}
