// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Recipes that attn-compile puts into the manifest of GPU targets, and what of --recipe is refused.
// RUN: split-file %s %t
// RUN: attn-compile %t/two.mlir --target=cpu,sm_90a --ptxas=none --recipe=range_tensor,per_request=8,table=mm --recipe=page_runs,name=runs,page_size=16 --recipe=split_plan,name=few,policy=count,pieces=4 --recipe=split_plan,name=some,policy=measured,pieces=16 --recipe=split_plan,name=many,policy=measured,pieces=128,ctas_per_sm=2 --recipe=split_plan,name=bias,policy=sm100_relbias,pieces=8,local=yes -o %t.attn
// RUN: sed -n '/"target":/p; /"recipes":/,/\]/p' %t.attn | tr '\n' ' ' | tr -s ' ' | sed 's/{ /{/g; s/ }/}/g' | FileCheck %s
// CHECK: "target": "cpu", "target": "sm_90a", "recipes": [
// CHECK-SAME: {{^ *}}{"name": "range_tensor", "kind": "range_tensor", "source": 1, "per_request": 8},
// CHECK-SAME: {{^ *}}{"name": "runs", "kind": "page_runs", "page_size": 16},
// CHECK-SAME: {{^ *}}{"name": "few", "kind": "split_plan", "policy": "count", "pieces": 4},
// CHECK-SAME: {{^ *}}{"name": "some", "kind": "split_plan", "policy": "measured", "pieces": 16, "ctas_per_sm": 1},
// CHECK-SAME: {{^ *}}{"name": "many", "kind": "split_plan", "policy": "measured", "pieces": 128, "ctas_per_sm": 2},
// CHECK-SAME: {{^ *}}{"name": "bias", "kind": "split_plan", "policy": "sm100_relbias", "pieces": 8, "local": true} ]

// RUN: rm -f %t.out
// RUN: not attn-compile %t/two.mlir --recipe=page_runs,page_size=16 -o %t.out 2>&1 | FileCheck %s --check-prefix=CPU
// CPU: attn-compile: recipe 'page_runs': target 'cpu' has no recipes, expected one of: sm_90a
// RUN: not attn-compile %t/two.mlir --target=sm_90a --recipe=tile_lists -o %t.out 2>&1 | FileCheck %s --check-prefix=KIND
// KIND: attn-compile: unknown recipe 'tile_lists', expected one of: range_tensor, page_runs, split_plan
// RUN: not attn-compile %t/two.mlir --target=sm_90a --recipe=page_runs -o %t.out 2>&1 | FileCheck %s --check-prefix=MISSING
// MISSING: attn-compile: recipe 'page_runs': expected page_size=...
// RUN: not attn-compile %t/two.mlir --target=sm_90a --recipe=page_runs,16 -o %t.out 2>&1 | FileCheck %s --check-prefix=FORM
// FORM: attn-compile: recipe 'page_runs': expected key=value, got '16'
// RUN: not attn-compile %t/two.mlir --target=sm_90a --recipe=page_runs,page_size=0 -o %t.out 2>&1 | FileCheck %s --check-prefix=SIZE
// SIZE: attn-compile: recipe 'page_runs': page_size: expected 1 to 1073741823, got '0'
// RUN: not attn-compile %t/two.mlir --target=sm_90a --recipe=page_runs,page_size=4,page_size=4 -o %t.out 2>&1 | FileCheck %s --check-prefix=TWICE
// TWICE: attn-compile: recipe 'page_runs': page_size is given twice
// RUN: not attn-compile %t/two.mlir --target=sm_90a --recipe=split_plan,policy=count,pieces=4,ctas_per_sm=2 -o %t.out 2>&1 | FileCheck %s --check-prefix=KEY
// KEY: attn-compile: recipe 'split_plan': unknown key 'ctas_per_sm', expected one of: name, policy, pieces
// RUN: not attn-compile %t/two.mlir --target=sm_90a --recipe=split_plan,policy=best,pieces=4 -o %t.out 2>&1 | FileCheck %s --check-prefix=POLICY
// POLICY: attn-compile: recipe 'split_plan': policy: expected one of: count, measured, sm100_relbias, got 'best'
// RUN: not attn-compile %t/two.mlir --target=sm_90a --recipe=split_plan,policy=sm100_relbias,pieces=4,local=1 -o %t.out 2>&1 | FileCheck %s --check-prefix=LOCAL
// LOCAL: attn-compile: recipe 'split_plan': local: expected yes or no, got '1'
// RUN: not attn-compile %t/two.mlir --target=sm_90a --recipe=range_tensor,per_request=8 -o %t.out 2>&1 | FileCheck %s --check-prefix=WHICH
// WHICH: two.mlir:1:1: error: recipe 'range_tensor': expected table=..., one of: other, mm
// RUN: not attn-compile %t/two.mlir --target=sm_90a --recipe=range_tensor,per_request=8,table=slopes -o %t.out 2>&1 | FileCheck %s --check-prefix=TABLE
// TABLE: two.mlir:1:1: error: recipe 'range_tensor': the kernel has no table of ranges 'slopes', expected one of: other, mm
// RUN: not attn-compile %t/none.mlir --target=sm_90a --recipe=range_tensor,per_request=8 -o %t.out 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: none.mlir:1:1: error: recipe 'range_tensor': the kernel has no table of ranges
// RUN: not attn-compile %t/two.mlir --target=sm_90a --recipe=page_runs,page_size=4,name=mm -o %t.out 2>&1 | FileCheck %s --check-prefix=TAKEN
// TAKEN: two.mlir:1:1: error: recipe 'mm': a table has this name
// RUN: not attn-compile %t/none.mlir --target=sm_90a --recipe=page_runs,page_size=4 --recipe=page_runs,page_size=8 -o %t.out 2>&1 | FileCheck %s --check-prefix=SECOND
// SECOND: none.mlir:1:1: error: recipe 'page_runs': a second one of this name
// RUN: not attn-compile %t/none.mlir --target=sm_90a --recipe=page_runs,page_size=4 --emit=ptx -o %t.out 2>&1 | FileCheck %s --check-prefix=EMIT
// EMIT: attn-compile: --recipe has no meaning with --emit=ptx, no artifact is made
// RUN: not ls %t.out

//--- two.mlir
attn.kernel @two heads(2) kv_heads(1) dim(64) q(bf16) kv(bf16)
    tables(%other: !attn.ranges, %mm: !attn.ranges, %slopes: !attn.table<[h], f32>) {
  attn.mask (%b, %h, %q, %k) {
    %c = attn.causal %q, %k
    %r = attn.mm_prefix %mm, %b, %q, %k
    %m = attn.or %c, %r
    attn.yield %m : i1
  }
}
//--- none.mlir
attn.kernel @none heads(2) kv_heads(1) dim(64) q(bf16) kv(bf16) {
  attn.mask (%b, %h, %q, %k) {
    %m = attn.causal %q, %k
    attn.yield %m : i1
  }
}
