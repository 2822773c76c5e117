// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What ptxas makes of a fused mask: bits of a mask become predicates seven at a time (R2P), products are HGMMA,
// tiles come and go by the tensor memory accelerator, and nothing is spilled.
// REQUIRES: ptxas, nvdisasm
// RUN: attn-compile %s --target=sm_90a --emit=cubin -o %t.cubin
// RUN: %nvdisasm -c %t.cubin > %t.sass
// RUN: FileCheck %s --check-prefix=BITS < %t.sass
// BITS: R2P PR, R{{[0-9]+}}, 0x7f
// BITS-NEXT: FSEL R{{[0-9]+}}, R{{[0-9]+}}, -INF , P{{[0-6]}}
// RUN: not grep -E "R2P PR, R[0-9]+(\.B[1-3])?, 0x(3|c|30) " %t.sass
// RUN: FileCheck %s --check-prefix=PRODUCTS < %t.sass
// PRODUCTS: HGMMA.64x128x16.F32.BF16
// RUN: FileCheck %s --check-prefix=LOADS < %t.sass
// LOADS: UTMALDG.5D
// RUN: FileCheck %s --check-prefix=STORES < %t.sass
// STORES: UTMASTG.5D
// RUN: not grep -E " (STL|LDL)" %t.sass
attn.kernel @window heads(8) kv_heads(4) dim(128) q(bf16) kv(bf16) params(%left: i32) {
  attn.mask (%b, %h, %q, %k) {
    %c = attn.causal %q, %k
    %w = attn.window %q, %k left(%left)
    %m = attn.and %c, %w
    attn.yield %m : i1
  }
}
