// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// REQUIRES: solver
// RUN: split-file %s %t
// RUN: attn-opt %t/equal.mlir --attn-prove-equal=@scan,@table,@fused 2>&1 | FileCheck %t/equal.mlir
// RUN: not attn-opt %t/unequal.mlir --attn-prove-equal=@scan,@bare 2>&1 | FileCheck %t/unequal.mlir
// RUN: attn-opt %t/lowered.mlir -verify-diagnostics -o %t/out.mlir \
// RUN:   --pass-pipeline='builtin.module(attn.kernel(attn-tv-snapshot,attn-tv-expand-elements,attn-tv-check{strict report}))'
// RUN: FileCheck %t/lowered.mlir < %t/out.mlir
// RUN: attn-opt %t/documents.mlir -verify-diagnostics -o %t/documents.out \
// RUN:   --pass-pipeline='builtin.module(attn.kernel(attn-tv-snapshot,attn-tv-expand-elements,attn-tv-check{strict report}))'
// RUN: FileCheck %t/documents.mlir < %t/documents.out
// RUN: attn-opt %t/other.mlir -split-input-file -verify-diagnostics --pass-pipeline='builtin.module(attn.kernel(attn-tv-check))'
// RUN: attn-opt %t/no-snapshot.mlir -verify-diagnostics --attn-tv-check
// RUN: not attn-opt %t/equal.mlir --attn-prove-equal=@scan 2>&1 | FileCheck %s --check-prefix=ONE
// RUN: not attn-opt %t/equal.mlir --attn-prove-equal=@scan,@none 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not attn-opt %t/equal.mlir --solver=z3 2>&1 | FileCheck %s --check-prefix=USELESS
// RUN: not attn-opt %t/equal.mlir --attn-verify-rewrites=maybe 2>&1 | FileCheck %s --check-prefix=MAYBE
// RUN: not attn-opt %t/lowered.mlir --attn-verify-rewrites=strict --solver=no-such-solver \
// RUN:   --pass-pipeline='builtin.module(any(attn-raise-masks,attn-simplify-mask))' 2>&1 | FileCheck %s --check-prefix=ANY
// RUN: not attn-opt %t/equal.mlir --attn-verify-rewrites '--solver=a"b' 2>&1 | FileCheck %s --check-prefix=QUOTE
// ONE: attn-opt: error: --attn-prove-equal: expected two kernels or more, got 1
// NONE: error: the module holds no attn.kernel @none
// RUN: not attn-opt %t/equal.mlir --attn-prove-equal=@scan,@table, 2>&1 | FileCheck %s --check-prefix=COMMA
// RUN: not attn-opt %t/equal.mlir '--attn-prove-equal=@scan, @table' 2>&1 | FileCheck %s --check-prefix=SPACE
// RUN: not attn-opt %t/equal.mlir --attn-prove-equal=@scan,@scan 2>&1 | FileCheck %s --check-prefix=ITSELF
// RUN: not attn-opt %t/equal.mlir --pass-pipeline='builtin.module(attn-tv-prove-equal{kernels=@scan,scan})' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=PASS
// COMMA: attn-opt: error: --attn-prove-equal: expected @name,@name,..., got '@scan,@table,'
// SPACE: attn-opt: error: --attn-prove-equal: expected @name,@name,..., got '@scan, @table'
// ITSELF: attn-opt: error: --attn-prove-equal: kernel @scan is to be compared with itself
// PASS: error: kernel @scan is to be compared with itself
// USELESS: attn-opt: error: --solver has no meaning without --attn-verify-rewrites or --attn-prove-equal
// MAYBE: attn-opt: error: --attn-verify-rewrites: expected no value or strict, got 'maybe'
// ANY: error: not checked: the rewrite keeps the mask: no solver 'no-such-solver'
// QUOTE: attn-opt: error: --solver: a path with '"' cannot be handed on

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

//--- documents.mlir
// Ids come from tables that the pass adds, as regions have no read of them.
// CHECK: attn.kernel @documents
// CHECK-SAME: %doc_has: !attn.table<[b, k], i8>, %doc_id: !attn.table<[b, k], i32>
// CHECK-NOT: attn.document
attn.kernel @documents heads(1) dim(8) q(f32) kv(f32)
    tables(%doc: !attn.documents, %rows: !attn.query_ranges from %doc) {
  // expected-remark @+1 {{proved: the rewrite keeps the mask}}
  attn.mask (%b, %h, %q, %k) {
    %d = attn.document %doc, %b, %q, %k
    %lo, %hi = attn.row_range %rows, %q
    %i = attn.in_rows %k, %lo, %hi
    %n = attn.not %i
    %c = attn.causal %q, %k
    %x = attn.or %n, %c
    %m = attn.and %d, %x
    attn.yield %m : i1
  }
}

//--- other.mlir
// A mask is proved for the heads and parameters that the kernel has: they must be those of before.
// expected-error @+1 {{has another 'heads' than its snapshot: expected 4 : i64, got 1 : i64}}
"attn.kernel"() <{arg_names = [], dim = 8 : i64, dim_v = 8 : i64, heads = 1 : i64, kv_heads = 1 : i64, kv_type = f32, num_params = 0 : i64, q_type = f32, sym_name = "heads", table_sources = array<i64>}> ({
^bb0:
}) {attn.tv_minimums = [], attn.tv_snapshot = "attn.kernel @heads heads(4) kv_heads(1) dim(8) q(f32) kv(f32) {\0A}\0A"} : () -> ()

// -----

// expected-error @+1 {{has another parameter than its snapshot: expected 'm', got 'n'}}
"attn.kernel"() <{arg_names = ["n"], dim = 8 : i64, dim_v = 8 : i64, heads = 1 : i64, kv_heads = 1 : i64, kv_type = f32, num_params = 1 : i64, q_type = f32, sym_name = "params", table_sources = array<i64>}> ({
^bb0(%n: i32):
}) {attn.tv_minimums = [unit], attn.tv_snapshot = "attn.kernel @params heads(1) dim(8) q(f32) kv(f32) params(%m: i32) {\0A}\0A"} : () -> ()

// -----

// expected-error @+1 {{has a snapshot without the smallest values of its parameters}}
"attn.kernel"() <{arg_names = ["n"], dim = 8 : i64, dim_v = 8 : i64, heads = 1 : i64, kv_heads = 1 : i64, kv_type = f32, num_params = 1 : i64, q_type = f32, sym_name = "minimums", table_sources = array<i64>}> ({
^bb0(%n: i32):
}) {attn.tv_minimums = [2 : ui8], attn.tv_snapshot = "attn.kernel @minimums heads(1) dim(8) q(f32) kv(f32) params(%n: i32) {\0A}\0A"} : () -> ()

//--- no-snapshot.mlir
// expected-error @+1 {{has no snapshot to be checked against}}
attn.kernel @alone heads(1) dim(8) q(f32) kv(f32) {
}
