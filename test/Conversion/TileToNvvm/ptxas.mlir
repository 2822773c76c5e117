// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// REQUIRES: ptxas
// RUN: tile-opt %S/attention.mlir -convert-tile-to-nvvm | mlir-translate -mlir-to-llvmir | \
// RUN:   llc -O3 -mcpu=sm_90a -mattr=+ptx86 -o %t.ptx
// RUN: %ptxas -v -arch=sm_90a %t.ptx -o %t.cubin 2>&1 | FileCheck %s

// Neither serialised products nor ignored setmaxnreg (C75xx), nor spills.
// CHECK-NOT: C75
// CHECK: 0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
// CHECK-NOT: C75
