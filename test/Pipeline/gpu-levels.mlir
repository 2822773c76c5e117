// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The levels of a GPU target, and what of attn-compile's options is for them.
// RUN: attn-compile %s --target=sm_90a --emit=attn | FileCheck %s --check-prefix=ATTN
// RUN: attn-compile %s --target=sm_90a --emit=tile | FileCheck %s --check-prefix=TILE
// RUN: attn-compile %s --target=sm_90a --emit=nvvm | FileCheck %s --check-prefix=NVVM
// RUN: attn-compile %s --target=sm_90a --emit=llvm | FileCheck %s --check-prefix=LLVM
// RUN: attn-compile %s --target=cpu,sm_90a --emit=ptx | FileCheck %s --check-prefix=PTX
// RUN: attn-compile %s --target=sm_90a --instrument=tiles --emit=ptx | FileCheck %s --check-prefix=COUNTS

// ATTN: attn.kernel @k
// TILE-NOT: attn.{{(kernel|causal|yield|in_rows)}}
// TILE: tile.kernel @attn.forward.k
// TILE: tile.mma_shared
// TILE-NOT: attn.{{(kernel|causal|yield|in_rows)}}
// NVVM: llvm.func @attn.forward.k
// NVVM-NOT: {{(= |^ *)"?(attn|tile|scf|arith|math)\.}}
// LLVM: define ptx_kernel void @attn_forward(
// PTX: .version 8.6
// PTX-NEXT: .target sm_90a
// PTX: .visible .entry attn_forward(
// The claim of the next tile.
// PTX: atom.relaxed.gpu.global.add.u32
// PTX-NOT: {{[[:space:]](atom|red)\.}}
// COUNTS-COUNT-4: {{[[:space:]](atom|red)\.}}
// COUNTS-NOT: {{[[:space:]](atom|red)\.}}

// RUN: attn-compile --target=list | FileCheck %s --check-prefix=LIST
// LIST: cpu
// LIST-NEXT: sm_90a
// RUN: attn-compile %s --target=sm_90a --ptxas=none --explain -o %t.attn 2>&1 | FileCheck %s --check-prefix=NO-PTXAS
// NO-PTXAS: sm_90a: no ptxas: the driver compiles the PTX when it loads the artifact

// RUN: rm -f %t.out
// RUN: not attn-compile %s --target=sm_100a -o %t.out 2>&1 | FileCheck %s --check-prefix=LATER
// LATER: attn-compile: target 'sm_100a' is not available yet, expected one of: cpu, sm_90a
// RUN: not attn-compile %s --target=sm_90a --ptxas=none --emit=cubin -o %t.out 2>&1 | FileCheck %s --check-prefix=CUBIN
// CUBIN: attn-compile: --emit=cubin does not go with --ptxas=none
// RUN: not attn-compile %s --target=sm_90a --ptxas=none --strict-ptxas -o %t.out 2>&1 | FileCheck %s --check-prefix=STRICT
// STRICT: attn-compile: --strict-ptxas does not go with --ptxas=none
// RUN: env PATH= CUDA_HOME= CUDA_PATH= not attn-compile %s --target=sm_90a --emit=cubin -o %t.out 2>&1 | FileCheck %s --check-prefix=NOWHERE
// NOWHERE: attn-compile: --emit=cubin needs ptxas, which is in none of PATH, CUDA_HOME and CUDA_PATH
// RUN: not attn-compile %s --target=sm_90a --ptxas=/nowhere/ptxas -o %t.out 2>&1 | FileCheck %s --check-prefix=NOT-THERE
// NOT-THERE: gpu-levels.mlir:{{[0-9]+:[0-9]+}}: error: cannot run '/nowhere/ptxas': 
// RUN: not attn-compile %s --emit=ptx -o %t.out 2>&1 | FileCheck %s --check-prefix=CPU
// CPU: attn-compile: target 'cpu' has no level 'ptx', expected attn or llvm
// RUN: not attn-compile %s --target=sm_90a --emit=sass -o %t.out 2>&1 | FileCheck %s --check-prefix=LEVEL
// LEVEL: attn-compile: there is no level 'sass', expected one of: attn, tile, nvvm, llvm, ptx, cubin
// RUN: not attn-compile %s --target=sm_90a --instrument=time -o %t.out 2>&1 | FileCheck %s --check-prefix=INSTRUMENT
// INSTRUMENT: attn-compile: --instrument: expected tiles, got 'time'
// RUN: not attn-compile %s --instrument=tiles -o %t.out 2>&1 | FileCheck %s --check-prefix=NO-GPU
// NO-GPU: attn-compile: --instrument has no meaning without a GPU target
// RUN: not attn-compile %s --target=sm_90a -O1 -o %t.out 2>&1 | FileCheck %s --check-prefix=EFFORT
// EFFORT: attn-compile: -O has no meaning without target 'cpu', GPU code is always made with all effort
// RUN: not attn-compile %s --target=sm_90a --emit=ptx --strict-ptxas -o %t.out 2>&1 | FileCheck %s --check-prefix=NO-CUBIN
// NO-CUBIN: attn-compile: --strict-ptxas has no meaning with --emit=ptx, no cubin is made
// RUN: echo 'attn.kernel @k heads(1) dim(64) q(f32) kv(f32) {}' > %t.f32
// RUN: not attn-compile %t.f32 --target=cpu,sm_90a -o %t.out 2>&1 | FileCheck %s --check-prefix=TYPE
// TYPE: .f32:1:1: error: target 'sm_90a' takes q of type f16 or bf16, got 'f32'
// RUN: not ls %t.out

attn.kernel @k heads(2) kv_heads(1) dim(64) q(bf16) kv(bf16) {
  attn.mask (%b, %h, %q, %k) {
    %m = attn.causal %q, %k
    attn.yield %m : i1
  }
}
