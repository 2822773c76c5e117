// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: attn-opt %s --attn-fuse-intervals --remarks-filter='attn.*' --remark-policy=all \
// RUN:   -verify-diagnostics | FileCheck %s
// RUN: attn-opt %s --attn-fuse-intervals > %t.once
// RUN: attn-opt %t.once --attn-fuse-intervals | diff %t.once -

// (causal and window) or row: one interval, since all three hold q or are empty.
// CHECK-LABEL: attn.kernel @gemma
attn.kernel @gemma heads(1) dim(64) q(f32) kv(f32) params(%left: i32)
    tables(%mm: !attn.ranges, %rows: !attn.query_ranges from %mm) {
  // expected-remark @+2 {{[Passed] FuseIntervals | Category:attn | Remark="mask is 1 interval a row"}}
  // CHECK: attn.mask (%{{.*}}, %{{.*}}, %[[Q:.*]], %[[K:.*]]) {
  attn.mask (%b, %h, %q, %k) {
    // CHECK: %[[LO:.*]], %[[HI:.*]] = attn.row_range %rows, %[[Q]]
    %lo, %hi = attn.row_range %rows, %q
    %r = attn.in_rows %k, %lo, %hi
    %c = attn.causal %q, %k
    %w = attn.window %q, %k left(%left)
    // CHECK: %[[L:.*]] = arith.index_cast %left : i32 to index
    // CHECK: %[[OLD:.*]] = arith.subi %[[Q]], %[[L]] : index
    // CHECK: %[[OLD1:.*]] = arith.maxsi %[[OLD]], %c-1073741824
    // CHECK: %[[FROM:.*]] = arith.minsi %[[OLD1]], %[[LO]] : index
    // CHECK: %[[NEXT:.*]] = arith.addi %[[Q]], %c1{{.*}} : index
    // CHECK: %[[TO:.*]] = arith.maxsi %[[NEXT]], %[[HI]] : index
    // CHECK: %[[M:.*]] = attn.in_rows %[[K]], %[[FROM]], %[[TO]]
    // CHECK-NEXT: attn.yield %[[M]]
    %cw = attn.and %c, %w
    %m = attn.or %cw, %r
    attn.yield %m : i1
  }
}

// Negative twin: a prefix and a window may leave a gap, so they are two intervals.
// CHECK-LABEL: attn.kernel @gap
attn.kernel @gap heads(1) dim(64) q(f32) kv(f32) params(%n: i32) {
  // expected-remark @+1 {{[Passed] FuseIntervals | Category:attn | Remark="mask is 2 intervals a row"}}
  attn.mask (%b, %h, %q, %k) {
    // CHECK: %[[A:.*]] = attn.in_rows
    // CHECK: %[[B:.*]] = attn.in_rows
    // CHECK: attn.or %[[A]], %[[B]]
    %c = attn.causal %q, %k
    %w = attn.window %q, %k left(4)
    %cw = attn.and %c, %w
    %p = attn.prefix %k, %n
    %m = attn.or %cw, %p
    attn.yield %m : i1
  }
}

// Negative twin: a range row without its marker read as a plain interval does not hold q for sure.
// CHECK-LABEL: attn.kernel @swapped_row
attn.kernel @swapped_row heads(1) dim(64) q(f32) kv(f32)
    tables(%mm: !attn.ranges, %rows: !attn.query_ranges from %mm) {
  // expected-remark @+1 {{[Passed] FuseIntervals | Category:attn | Remark="mask is 2 intervals a row"}}
  attn.mask (%b, %h, %q, %k) {
    %lo, %hi = attn.row_range %rows, %q
    %r = attn.in_rows %k, %hi, %lo
    %w = attn.window %q, %k left(4) right(0)
    // CHECK: attn.or
    %m = attn.or %w, %r
    attn.yield %m : i1
  }
}

// A value of a table may be negative: such a window need not hold q.
// CHECK-LABEL: attn.kernel @table_radius
attn.kernel @table_radius heads(1) dim(64) q(f32) kv(f32)
    tables(%mm: !attn.ranges, %rows: !attn.query_ranges from %mm, %len: !attn.table<[b], i32>) {
  // expected-remark @+1 {{[Passed] FuseIntervals | Category:attn | Remark="mask is 2 intervals a row"}}
  attn.mask (%b, %h, %q, %k) {
    %n = attn.load %len[%b] : !attn.table<[b], i32>
    %lo, %hi = attn.row_range %rows, %q
    %r = attn.in_rows %k, %lo, %hi
    %w = attn.window %q, %k left(%n) right(0)
    // CHECK: attn.or
    %m = attn.or %w, %r
    attn.yield %m : i1
  }
}

// Constants.
// CHECK-LABEL: attn.kernel @nothing
attn.kernel @nothing heads(1) dim(64) q(f32) kv(f32) {
  // expected-remark @+1 {{[Passed] FuseIntervals | Category:attn | Remark="mask is 0 intervals a row"}}
  attn.mask (%b, %h, %q, %k) {
    %c = attn.causal %q, %k
    %f = arith.constant false
    // CHECK: %[[F:.*]] = arith.constant false
    // CHECK-NEXT: attn.yield %[[F]]
    %m = attn.and %c, %f
    attn.yield %m : i1
  }
}

// Refused: three intervals.
// CHECK-LABEL: attn.kernel @three
attn.kernel @three heads(1) dim(64) q(f32) kv(f32) params(%n: i32)
    tables(%t: !attn.table<[b], i32>) {
  // expected-remark @+1 {{[Missed] FuseIntervals | Category:attn | Remark="mask is not fused: its rows are 3 intervals, the limit is 2"}}
  attn.mask (%b, %h, %q, %k) {
    // CHECK: attn.window
    %w = attn.window %q, %k left(4) right(0)
    %p = attn.prefix %k, %n
    %v = attn.load %t[%b] : !attn.table<[b], i32>
    %i = arith.index_cast %v : i32 to index
    %j = arith.addi %i, %i : index
    %r = attn.in_rows %k, %i, %j
    // CHECK: attn.or
    %x = attn.or %w, %p
    // CHECK: attn.or
    %m = attn.or %x, %r
    attn.yield %m : i1
  }
}

// Refused: a part that is no interval in k.
// CHECK-LABEL: attn.kernel @holes
attn.kernel @holes heads(1) dim(64) q(f32) kv(f32) tables(%t: !attn.table<[b, k], i32>) {
  attn.mask (%b, %h, %q, %k) {
    // CHECK: attn.causal
    %c = attn.causal %q, %k
    %v = attn.load %t[%b, %k] : !attn.table<[b, k], i32>
    %z = arith.constant 0 : i32
    // expected-remark @+1 {{[Missed] FuseIntervals | Category:attn | Remark="mask is not fused: 'arith.cmpi' is no interval in k"}}
    %x = arith.cmpi eq, %v, %z : i32
    // CHECK: attn.and
    %m = attn.and %c, %x
    attn.yield %m : i1
  }
}

// Refused: a bound that depends on k.
// CHECK-LABEL: attn.kernel @key_radius
attn.kernel @key_radius heads(1) dim(64) q(f32) kv(f32) tables(%t: !attn.table<[b, k], i32>) {
  attn.mask (%b, %h, %q, %k) {
    %v = attn.load %t[%b, %k] : !attn.table<[b, k], i32>
    // CHECK: attn.window
    // expected-remark @+1 {{[Missed] FuseIntervals | Category:attn | Remark="mask is not fused: 'attn.window' is no interval in k"}}
    %w = attn.window %q, %k left(%v)
    %p = attn.prefix %k, %v
    %g = attn.global %q, %k, %v
    %s = attn.sliding %q, %k count(%v)
    %x = attn.and %w, %p
    %y = attn.or %x, %g
    %m = attn.and %y, %s
    attn.yield %m : i1
  }
}

// Refused: ranges and documents that are no rows yet.
// CHECK-LABEL: attn.kernel @scan
attn.kernel @scan heads(1) dim(64) q(f32) kv(f32) tables(%mm: !attn.ranges) {
  attn.mask (%b, %h, %q, %k) {
    // CHECK: attn.mm_prefix
    // expected-remark @+1 {{[Missed] FuseIntervals | Category:attn | Remark="mask is not fused: 'attn.mm_prefix' is no interval in k"}}
    %r = attn.mm_prefix %mm, %b, %q, %k
    attn.yield %r : i1
  }
}

// CHECK-LABEL: attn.kernel @no_mask
attn.kernel @no_mask heads(1) dim(64) q(f32) kv(f32) {
}

// A radius counts keys: q may lie as far below 0 as keys lie above, so it may pass 2^30, the limit of
// positions.
// CHECK-LABEL: attn.kernel @far
attn.kernel @far heads(1) dim(64) q(f32) kv(f32) {
  // expected-remark @+1 {{[Passed] FuseIntervals | Category:attn | Remark="mask is 1 interval a row"}}
  attn.mask (%b, %h, %q, %k) {
    // CHECK: arith.addi %{{.*}}, %c1073741826
    %m = attn.window %q, %k right(1073741825)
    attn.yield %m : i1
  }
}

// CHECK-LABEL: attn.kernel @farthest
attn.kernel @farthest heads(1) dim(64) q(f32) kv(f32) {
  // expected-remark @+1 {{[Passed] FuseIntervals | Category:attn | Remark="mask is 1 interval a row"}}
  attn.mask (%b, %h, %q, %k) {
    // CHECK: arith.subi %{{.*}}, %c2147483647
    // CHECK: arith.addi %{{.*}}, %c2147483648
    %m = attn.window %q, %k left(2147483647) right(2147483647)
    attn.yield %m : i1
  }
}
