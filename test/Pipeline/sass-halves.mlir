// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A causal tile's first block has two forms: S of its lower half, of 64 keys, or of all 128. Each waits for its own
// product, so that ptxas keeps the overlap of the products of the loops (it takes the overlap from all of them where
// two paths meet with one under way: no wait then leaves a later product running).
// REQUIRES: ptxas, nvdisasm
// RUN: attn-compile %s --target=sm_90a --emit=cubin -o %t.cubin
// RUN: %nvdisasm -c %t.cubin > %t.sass
// RUN: FileCheck %s --check-prefix=HALF < %t.sass
// HALF: HGMMA.64x64x16.F32.BF16
// RUN: FileCheck %s --check-prefix=WHOLE < %t.sass
// WHOLE: HGMMA.64x128x16.F32.BF16
// RUN: FileCheck %s --check-prefix=OVERLAP < %t.sass
// OVERLAP: WARPGROUP.DEPBAR.LE gsb0, 0x1
// RUN: not grep -E " (STL|LDL)" %t.sass
attn.kernel @causal heads(8) kv_heads(4) dim(128) q(bf16) kv(bf16) {
  attn.mask (%b, %h, %q, %k) {
    %m = attn.causal %q, %k
    attn.yield %m : i1
  }
}
