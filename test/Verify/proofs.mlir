// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// REQUIRES: solver
// RUN: split-file %s %t
// RUN: attn-opt %t/equal.mlir --attn-prove-equal=@scan,@table,@fused 2>&1 | FileCheck %t/equal.mlir
// RUN: not attn-opt %t/unequal.mlir --attn-prove-equal=@scan,@bare 2>&1 | FileCheck %t/unequal.mlir
// RUN: attn-opt %t/lowered.mlir -verify-diagnostics -o %t/out.mlir \
// RUN:   --pass-pipeline='builtin.module(attn.kernel(attn-tv-snapshot,attn-tv-expand-elements,attn-tv-check{strict report}))'
// RUN: FileCheck %t/lowered.mlir < %t/out.mlir
// RUN: attn-opt %t/refused.mlir -verify-diagnostics \
// RUN:   --pass-pipeline='builtin.module(attn.kernel(attn-tv-snapshot,attn-tv-expand-elements,attn-tv-check))'
// RUN: attn-opt %t/no-snapshot.mlir -verify-diagnostics --attn-tv-check
// RUN: not attn-opt %t/equal.mlir --attn-prove-equal=@scan 2>&1 | FileCheck %s --check-prefix=ONE
// RUN: not attn-opt %t/equal.mlir --attn-prove-equal=@scan,@none 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not attn-opt %t/equal.mlir --solver=z3 2>&1 | FileCheck %s --check-prefix=USELESS
// RUN: not attn-opt %t/equal.mlir --attn-verify-rewrites=maybe 2>&1 | FileCheck %s --check-prefix=MAYBE
// ONE: attn-opt: error: --attn-prove-equal: expected two kernels or more, got 1
// NONE: error: the module holds no attn.kernel @none
// USELESS: attn-opt: error: --solver has no meaning without --attn-verify-rewrites or --attn-prove-equal
// MAYBE: attn-opt: error: --attn-verify-rewrites: expected no value or strict, got 'maybe'

//--- equal.mlir
// CHECK: remark: proved: @scan and @table are the same mask for every batch
// CHECK: remark: proved: @scan and @fused are the same mask for every batch
attn.kernel @scan heads(1) dim(8) q(f32) kv(f32) params(%left: i32) tables(%mm: !attn.ranges) {
  attn.mask (%b, %h, %q, %k) {
    %c = attn.causal %q, %k
    %w = attn.window %q, %k left(%left)
    %cw = attn.and %c, %w
    %r = attn.mm_prefix %mm, %b, %q, %k
    %m = attn.or %cw, %r
    attn.yield %m : i1
  }
}
attn.kernel @table heads(1) dim(8) q(f32) kv(f32) params(%left: i32)
    tables(%mm: !attn.ranges, %rows: !attn.query_ranges from %mm) {
  attn.mask (%b, %h, %q, %k) {
    %c = attn.causal %q, %k
    %w = attn.window %q, %k left(%left)
    %cw = attn.and %c, %w
    %lo, %hi = attn.row_range %rows, %q
    %r = attn.in_rows %k, %lo, %hi
    %m = attn.or %cw, %r
    attn.yield %m : i1
  }
}
attn.kernel @fused heads(1) dim(8) q(f32) kv(f32) params(%left: i32)
    tables(%mm: !attn.ranges, %rows: !attn.query_ranges from %mm) {
  attn.mask (%b, %h, %q, %k) {
    %lo, %hi = attn.row_range %rows, %q
    %l = arith.index_cast %left : i32 to index
    %one = arith.constant 1 : index
    %old = arith.subi %q, %l : index
    %next = arith.addi %q, %one : index
    %from = arith.minsi %old, %lo : index
    %to = arith.maxsi %next, %hi : index
    %m = attn.in_rows %k, %from, %to
    attn.yield %m : i1
  }
}

//--- unequal.mlir
// CHECK: error: @scan and @bare are different masks: at b = 0, h = 0, q = {{-?[0-9]+}}, k = {{[0-9]+}} the first drops and the second keeps the element
// CHECK: note: batch file: {"requests": [{"query_len": 1, "seq_len": {{[0-9]+}}, "context_len": {{-?[0-9]+}}}], "tables": {"mm": {{.*}}}
attn.kernel @scan heads(1) dim(8) q(f32) kv(f32) tables(%mm: !attn.ranges) {
  attn.mask (%b, %h, %q, %k) {
    %w = attn.window %q, %k left(1) right(0)
    %r = attn.mm_prefix %mm, %b, %q, %k
    %m = attn.or %w, %r
    attn.yield %m : i1
  }
}
attn.kernel @bare heads(1) dim(8) q(f32) kv(f32)
    tables(%mm: !attn.ranges, %rows: !attn.query_ranges from %mm) {
  attn.mask (%b, %h, %q, %k) {
    %lo, %hi = attn.row_range %rows, %q
    %empty = arith.cmpi sge, %lo, %hi : index
    %minus = arith.constant -1 : index
    %one = arith.constant 1 : index
    %marked = arith.select %empty, %minus, %lo : index
    %old = arith.subi %q, %one : index
    %next = arith.addi %q, %one : index
    %from = arith.minsi %old, %marked : index
    %to = arith.maxsi %next, %hi : index
    %m = attn.in_rows %k, %from, %to
    attn.yield %m : i1
  }
}

//--- lowered.mlir
// Each operation as the CPU and GPU targets emit it.
// CHECK: attn.mask
// CHECK-NOT: attn.window
// CHECK-NOT: attn.mm_prefix
// CHECK: scf.for
// CHECK: attn.yield
attn.kernel @lowered heads(2) dim(8) q(f32) kv(f32) params(%left: i32, %n: i32, %count: i32)
    tables(%mm: !attn.ranges, %rows: !attn.query_ranges from %mm, %t: !attn.table<[b, k], i32>) {
  // expected-remark @+1 {{proved: the rewrite keeps the mask}}
  attn.mask (%b, %h, %q, %k) {
    %c = attn.causal %q, %k
    %w = attn.window %q, %k left(%left) right(2147483647)
    %s = attn.sliding %q, %k count(%count)
    %r = attn.mm_prefix %mm, %b, %q, %k clamp(%left)
    %p = attn.prefix %k, %n
    %g = attn.global %q, %k, %n
    %lo, %hi = attn.row_range %rows, %q
    %i = attn.in_rows %k, %lo, %hi
    %v = attn.load %t[%b, %k] : !attn.table<[b, k], i32>
    %z = arith.constant 0 : i32
    %d = arith.cmpi sgt, %v, %z : i32
    %x0 = attn.and %c, %w
    %x1 = attn.or %x0, %r
    %x2 = attn.not %p
    %x3 = attn.and %x2, %s
    %x4 = attn.or %x1, %x3
    %x5 = attn.and %i, %d
    %x6 = attn.or %x4, %x5
    %x7 = attn.not %g
    %x8 = attn.and %x6, %x7
    attn.yield %x8 : i1
  }
}

//--- refused.mlir
attn.kernel @refused heads(1) dim(8) q(f32) kv(f32) tables(%doc: !attn.documents) {
  attn.mask (%b, %h, %q, %k) {
    // expected-error @+1 {{reads what no operation of a region reads}}
    %m = attn.document %doc, %b, %q, %k
    attn.yield %m : i1
  }
}

//--- no-snapshot.mlir
// expected-error @+1 {{has no snapshot to be checked against}}
attn.kernel @alone heads(1) dim(8) q(f32) kv(f32) {
}
