// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Two functions for each kernel, before and after the mask passes, and no attn operation left. The values are
// judged by the tests under Execution; this is the shape.
// RUN: attn-opt %s --convert-attn-to-loops | FileCheck %s --check-prefixes=CHECK,RAW
// RUN: attn-opt %s --attn-mask-passes --convert-attn-to-loops | FileCheck %s --check-prefixes=CHECK,FUSED
// RUN: attn-opt %s --attn-mask-passes --attn-to-native | FileCheck %s --check-prefix=NATIVE
//
// Every operation of the language, and the kernels at its edge.
// RUN: attn-opt %S/../../Dialect/Attn/mask-ops.mlir --convert-attn-to-loops \
// RUN:   | FileCheck %s --check-prefix=NONE
// RUN: attn-opt %S/../../Dialect/Attn/table-ops.mlir --convert-attn-to-loops \
// RUN:   | FileCheck %s --check-prefix=NONE
// RUN: attn-opt %S/../../Dialect/Attn/score-ops.mlir --convert-attn-to-loops \
// RUN:   | FileCheck %s --check-prefix=NONE
// RUN: attn-opt %S/../../Dialect/Attn/kernel.mlir --convert-attn-to-loops \
// RUN:   | FileCheck %s --check-prefix=NONE
// RUN: attn-opt %S/../../Pipeline/odd-kernels.mlir --convert-attn-to-loops \
// RUN:   | FileCheck %s --check-prefix=NONE
// RUN: attn-opt %S/../../Pipeline/odd-kernels.mlir --attn-mask-passes --convert-attn-to-loops \
// RUN:   | FileCheck %s --check-prefix=NONE

// NONE: llvm.func @attn.forward
// NONE-NOT: {{[ ="]attn\.[a-z_]+ }}
// NONE-NOT: unrealized_conversion_cast
// NONE: llvm.func @attn.mask
// NONE-NOT: {{[ ="]attn\.[a-z_]+ }}
// NONE-NOT: unrealized_conversion_cast

// CHECK: llvm.func @attn.forward.ranges(%{{.*}}: !llvm.ptr) {
// CHECK-NOT: {{[ ="]attn\.[a-z_]+ }}
// CHECK: scf.for
// RAW: scf.for
// FUSED: arith.minsi
// CHECK: llvm.func @attn.mask.ranges(%{{.*}}: !llvm.ptr) {
// CHECK-NOT: {{[ ="]attn\.[a-z_]+ }}
// CHECK: llvm.func @attn.forward.plain(%{{.*}}: !llvm.ptr) {
// CHECK: llvm.func @attn.mask.plain(%{{.*}}: !llvm.ptr) {

// NATIVE: llvm.func @attn.forward.ranges(%{{.*}}: !llvm.ptr) {
// NATIVE-NOT: {{[ ="](attn|scf|arith|math|cf|index)\.[a-z_]+ }}
// NATIVE: llvm.func @attn.mask.ranges(%{{.*}}: !llvm.ptr) {
// NATIVE-NOT: {{[ ="](attn|scf|arith|math|cf|index)\.[a-z_]+ }}
attn.kernel @ranges heads(8) kv_heads(4) dim(64) q(bf16) kv(bf16) params(%left: i32)
    tables(%mm: !attn.ranges) {
  attn.mask (%b, %h, %q, %k) {
    %c = attn.causal %q, %k
    %w = attn.window %q, %k left(%left)
    %cw = attn.and %c, %w
    %r = attn.mm_prefix %mm, %b, %q, %k clamp(%left)
    %m = attn.or %cw, %r
    attn.yield %m : i1
  }
  attn.score (%s, %b, %h, %q, %k) {
    %t = attn.soft_cap %s, 30.0
    attn.yield %t : f32
  }
}
attn.kernel @plain heads(1) dim(64) q(f32) kv(f32) {
}
