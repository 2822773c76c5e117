// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// attn-compile --prove-equal. What a solver does to it, and its exit status: prove_equal.py.
// REQUIRES: solver
// RUN: split-file %s %t
// RUN: attn-compile %t/mine.mlir --prove-equal=@scan,@table,@fused > %t/out 2> %t/err
// RUN: FileCheck %s --check-prefix=EQUAL --implicit-check-not={{.}} < %t/out
// RUN: not grep . %t/err
// RUN: not attn-compile %t/mine.mlir --prove-equal=@scan,@old,@table > %t/out 2> %t/err
// RUN: FileCheck %s --check-prefix=SOME --implicit-check-not={{.}} < %t/out
// RUN: FileCheck %s --check-prefix=UNEQUAL < %t/err
// EQUAL: proved: @scan and @table are the same mask for every batch{{$}}
// EQUAL: proved: @scan and @fused are the same mask for every batch (not compared: dim, dim_v, kv, scale, score){{$}}
// SOME: proved: @scan and @table are the same mask for every batch{{$}}
// UNEQUAL: mine.mlir:40:1: error: @scan and @old are different masks: at b = 0, h = 0, q = {{-?[0-9]+}}, k = {{[0-9]+}} the first {{keeps|drops}} and the second {{keeps|drops}} the element
// UNEQUAL-NEXT: mine.mlir:1:1: note: the first is here
// UNEQUAL-NEXT: mine.mlir:1:1: note: batch file: {"requests": [{"query_len": 1, "seq_len": {{[0-9]+}}, "context_len": {{-?[0-9]+}}}], "params": {"left": {{[0-9]+}}}, "tables": {"mm": {{.*}}}
// UNEQUAL-NEXT: mine.mlir:40:1: note: batch file of the second: {"requests": [{"query_len": 1, "seq_len": {{[0-9]+}}, "context_len": {{-?[0-9]+}}}], "params": {"left": {{[0-9]+}}}}

// Two files: by name where one holds several, and names of one mean nothing to the other.
// RUN: attn-compile %t/two.mlir --prove-equal=%t/swapped.mlir | FileCheck %s --check-prefix=SAME --implicit-check-not={{.}}
// RUN: not attn-compile %t/two.mlir --prove-equal=%t/other.mlir 2>&1 | FileCheck %s --check-prefix=OTHER
// RUN: attn-compile %t/one.mlir --prove-equal=%t/single.mlir | FileCheck %s --check-prefix=SINGLE --implicit-check-not={{.}}
// RUN: attn-compile - --prove-equal=%t/single.mlir < %t/one.mlir | FileCheck %s --check-prefix=STDIN
// RUN: not attn-compile %t/two.mlir --prove-equal=%t/single.mlir > %t/out 2> %t/err
// RUN: not grep . %t/out
// RUN: FileCheck %s --check-prefix=MISSING < %t/err
// SAME: proved: @a of {{.*}}two.mlir and @a of {{.*}}swapped.mlir are the same mask for every batch{{$}}
// SAME: proved: @b of {{.*}}two.mlir and @b of {{.*}}swapped.mlir are the same mask for every batch{{$}}
// OTHER: {{.*}}other.mlir:8:1: error: @a of {{.*}}two.mlir and @a of {{.*}}other.mlir are different masks: at b = 0,
// OTHER-NEXT: {{.*}}two.mlir:1:1: note: the first is here
// OTHER-NEXT: {{.*}}two.mlir:1:1: note: batch file: {{.*}}"params": {"n": {{-?[0-9]+}}}
// OTHER-NEXT: {{.*}}other.mlir:1:1: error: @b of {{.*}}two.mlir and @b of {{.*}}other.mlir are different masks: at b = 0,
// OTHER-NEXT: {{.*}}two.mlir:7:1: note: the first is here
// OTHER-NEXT: {{.*}}two.mlir:7:1: note: batch file: {"requests"
// SINGLE: proved: @mine of {{.*}}one.mlir and @b of {{.*}}single.mlir are the same mask for every batch{{$}}
// STDIN: proved: @mine of - and @b of {{.*}}single.mlir are the same mask
// MISSING: two.mlir:1:1: error: {{.*}}single.mlir holds no attn.kernel @a to compare with, it has @b{{$}}

// Only one uses %n as a radius, which is >= 0 in every batch for both.
// RUN: attn-compile %t/radius.mlir --prove-equal=@sign,@all | FileCheck %s --check-prefix=RADIUS
// RUN: attn-compile %t/radius.mlir --prove-equal=@all,@sign | FileCheck %s --check-prefix=RADIUS
// RADIUS: proved: @{{all|sign}} and @{{all|sign}} are the same mask for every batch

// What no batch can be for both.
// RUN: not attn-compile %t/apart.mlir --prove-equal=@a,@heads,@groups,@type,@table,@meaning > %t/out 2> %t/err
// RUN: not grep . %t/out
// RUN: FileCheck %s --check-prefix=APART --implicit-check-not=error: < %t/err
// RUN: not attn-opt %t/apart.mlir --attn-prove-equal=@a,@heads 2>&1 | FileCheck %s --check-prefix=HEADS
// APART: apart.mlir:7:1: error: not checked: @a and @heads are the same mask for every batch: their heads differ, 4 and 2
// APART: apart.mlir:8:1: error: not checked: @a and @groups are the same mask for every batch: their kv_heads differ, 4 and 2
// APART: apart.mlir:9:1: error: not checked: @a and @type are the same mask for every batch: parameter 'n' has two types
// APART: apart.mlir:10:1: error: not checked: @a and @table are the same mask for every batch: table 't' has two types
// APART: apart.mlir:11:1: error: not checked: @a and @meaning are the same mask for every batch: 'n' is a parameter of one and a table of the other
// HEADS: error: not checked: @a and @heads are the same mask for every batch: their heads differ, 4 and 2

// What is asked for makes no sense.
// RUN: not attn-compile %t/mine.mlir --prove-equal=@scan 2>&1 | FileCheck %s --check-prefix=ALONE
// RUN: not attn-compile %t/mine.mlir --prove-equal=@scan,@none 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not attn-compile %t/mine.mlir --prove-equal=@scan,@scan 2>&1 | FileCheck %s --check-prefix=ITSELF
// RUN: not attn-compile %t/mine.mlir --prove-equal=@scan,table 2>&1 | FileCheck %s --check-prefix=MIXED
// RUN: not attn-compile %t/mine.mlir --prove-equal=@scan, 2>&1 | FileCheck %s --check-prefix=COMMA
// RUN: not attn-compile %t/mine.mlir --prove-equal= 2>&1 | FileCheck %s --check-prefix=EMPTY
// RUN: not attn-compile %t/mine.mlir --prove-equal=%t/none.mlir 2>&1 | FileCheck %s --check-prefix=FILE
// RUN: not attn-compile %t/one.mlir --prove-equal=%t/broken.mlir 2>&1 | FileCheck %s --check-prefix=BROKEN
// RUN: not attn-compile - --prove-equal=- < %t/one.mlir 2>&1 | FileCheck %s --check-prefix=TWICE
// ALONE: attn-compile: --prove-equal: expected two kernels or more, got 1
// NONE: mine.mlir:1:1: error: the spec holds no attn.kernel @none, expected one of @scan, @table, @fused, @old
// ITSELF: mine.mlir:1:1: error: kernel @scan is to be compared with itself
// MIXED: attn-compile: --prove-equal: expected @name,@name,... or a file, got '@scan,table'
// COMMA: attn-compile: --prove-equal: expected @name,@name,... or a file, got '@scan,'
// EMPTY: attn-compile: --prove-equal: expected a value, got ''
// FILE: attn-compile: cannot read '{{.*}}none.mlir': No such file or directory
// BROKEN: broken.mlir:2:1: error: custom op 'junk' is unknown
// TWICE: attn-compile: --prove-equal: only one of two specs can be read from standard input

//--- mine.mlir
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
    %w = attn.window %q, %k left(%left) right(0)
    %lo, %hi = attn.row_range %rows, %q
    %r = attn.in_rows %k, %lo, %hi
    %m = attn.or %w, %r
    attn.yield %m : i1
  }
}
attn.kernel @fused heads(1) dim(16) q(f32) kv(bf16) params(%left: i32)
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
  attn.score (%s, %b, %h, %q, %k) {
    attn.yield %s : f32
  }
}
// Not a rewrite of the others.
// (It forgets the ranges.)
attn.kernel @old heads(1) dim(8) q(f32) kv(f32) params(%left: i32) {
  attn.mask (%b, %h, %q, %k) {
    %m = attn.window %q, %k left(%left) right(0)
    attn.yield %m : i1
  }
}

//--- two.mlir
attn.kernel @a heads(2) dim(8) q(f32) kv(f32) params(%n: i32) {
  attn.mask (%b, %h, %q, %k) {
    %m = attn.prefix %k, %n
    attn.yield %m : i1
  }
}
attn.kernel @b heads(2) dim(8) q(f32) kv(f32) {
  attn.mask (%b, %h, %q, %k) {
    %m = attn.causal %q, %k
    attn.yield %m : i1
  }
}

//--- swapped.mlir
attn.kernel @b heads(2) dim(8) q(f32) kv(f32) {
  attn.mask (%b, %h, %q, %k) {
    %m = arith.cmpi sge, %q, %k : index
    attn.yield %m : i1
  }
}
attn.kernel @more heads(2) dim(8) q(f32) kv(f32) {
}
attn.kernel @a heads(2) dim(8) q(f32) kv(f32) params(%n: i32) {
  attn.mask (%b, %h, %q, %k) {
    %i = arith.index_cast %n : i32 to index
    %m = arith.cmpi slt, %k, %i : index
    attn.yield %m : i1
  }
}

//--- other.mlir
attn.kernel @b heads(2) dim(8) q(f32) kv(f32) {
  attn.mask (%b, %h, %q, %k) {
    %m = arith.cmpi sgt, %q, %k : index
    attn.yield %m : i1
  }
}

attn.kernel @a heads(2) dim(8) q(f32) kv(f32) params(%n: i32) {
  attn.mask (%b, %h, %q, %k) {
    %i = arith.index_cast %n : i32 to index
    %m = arith.cmpi sle, %k, %i : index
    attn.yield %m : i1
  }
}

//--- one.mlir
attn.kernel @mine heads(2) dim(8) q(f32) kv(f32) {
  attn.mask (%b, %h, %q, %k) {
    %m = attn.causal %q, %k
    attn.yield %m : i1
  }
}

//--- single.mlir
attn.kernel @b heads(2) dim(8) q(f32) kv(f32) {
  attn.mask (%b, %h, %q, %k) {
    %m = arith.cmpi sle, %k, %q : index
    attn.yield %m : i1
  }
}

//--- radius.mlir
attn.kernel @sign heads(2) dim(8) q(f32) kv(f32) params(%n: i32) {
  attn.mask (%b, %h, %q, %k) {
    %z = arith.constant 0 : i32
    %m = arith.cmpi sge, %n, %z : i32
    attn.yield %m : i1
  }
}
attn.kernel @all heads(2) dim(8) q(f32) kv(f32) params(%n: i32) {
  attn.mask (%b, %h, %q, %k) {
    %w = attn.window %q, %k left(%n)
    %x = attn.not %w
    %m = attn.or %w, %x
    attn.yield %m : i1
  }
}

//--- apart.mlir
attn.kernel @a heads(4) dim(8) q(f32) kv(f32) params(%n: i32) tables(%t: !attn.table<[b], i32>) {
  attn.mask (%b, %h, %q, %k) {
    %m = attn.causal %q, %k
    attn.yield %m : i1
  }
}
attn.kernel @heads heads(2) dim(8) q(f32) kv(f32) {}
attn.kernel @groups heads(4) kv_heads(2) dim(8) q(f32) kv(f32) {}
attn.kernel @type heads(4) dim(8) q(f32) kv(f32) params(%n: i64) {}
attn.kernel @table heads(4) dim(8) q(f32) kv(f32) tables(%t: !attn.table<[h], i32>) {}
attn.kernel @meaning heads(4) dim(8) q(f32) kv(f32) tables(%n: !attn.ranges) {}

//--- broken.mlir
// Not a spec.
junk
