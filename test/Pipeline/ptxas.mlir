// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// ptxas has nothing to complain about, whichever way the mask is tested, and spills no register.
// REQUIRES: ptxas
// RUN: attn-compile %S/ptx-loops.mlir --target=sm_90a --strict-ptxas --explain -o %t.attn 2>&1 | FileCheck %s
// RUN: attn-compile %S/ptx-loops.mlir --target=sm_90a --strict-ptxas --instrument=tiles --emit=cubin -o %t.cubin
// RUN: attn-compile %S/ptx-loops-d256.mlir --target=sm_90a --strict-ptxas --emit=cubin -o %t.cubin
// RUN: attn-compile %S/ptx-element-mask.mlir --target=sm_90a --strict-ptxas --emit=cubin -o %t.cubin
// RUN: attn-compile %S/ptx-score-select.mlir --target=sm_90a --strict-ptxas --emit=cubin -o %t.cubin

// CHECK-NOT: ptxas: (C
// CHECK: sm_90a: kernel 'causal': {{[0-9]+}} registers a thread, 0 bytes of spill stores, 0 bytes of spill loads, {{[0-9]+}} bytes of shared memory
// CHECK-NEXT: sm_90a: kernel 'window': {{[0-9]+}} registers a thread, 0 bytes of spill stores
// CHECK-NEXT: sm_90a: kernel 'ranges': {{[0-9]+}} registers a thread, 0 bytes of spill stores
// CHECK-NEXT: sm_90a: kernel 'documents': {{[0-9]+}} registers a thread, 0 bytes of spill stores
// CHECK-NEXT: sm_90a: kernel 'global_window': {{[0-9]+}} registers a thread, 0 bytes of spill stores
