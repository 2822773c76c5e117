// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels at the edge of the language: every pass, and all of them, leaves IR that verifies.
// RUN: attn-opt %s --canonicalize | attn-opt | FileCheck %s --check-prefix=ALL
// RUN: attn-opt %s --attn-raise-masks | attn-opt | FileCheck %s --check-prefix=ALL
// RUN: attn-opt %s --attn-simplify-mask | attn-opt | FileCheck %s --check-prefix=ALL
// RUN: attn-opt %s --attn-range-scan-to-table | attn-opt | FileCheck %s --check-prefix=ALL
// RUN: attn-opt %s --attn-fuse-intervals | attn-opt | FileCheck %s --check-prefix=ALL
// RUN: attn-opt %s --attn-hoist-invariants | attn-opt | FileCheck %s --check-prefix=ALL
// RUN: attn-opt %s --attn-infer-tile-bounds | attn-opt | FileCheck %s --check-prefix=ALL
// RUN: attn-opt %s --attn-mask-passes | attn-opt | FileCheck %s --check-prefixes=ALL,CHECK
// RUN: attn-opt %s --attn-mask-passes | attn-opt --attn-mask-passes | FileCheck %s --check-prefix=ALL

// ALL-LABEL: attn.kernel @no_mask
// CHECK-NOT: attn.bounds
attn.kernel @no_mask heads(1) dim(64) q(f32) kv(f32) {
}

// ALL-LABEL: attn.kernel @only_score
// ALL: attn.soft_cap
attn.kernel @only_score heads(1) dim(64) q(f32) kv(f32) {
  attn.score (%s, %b, %h, %q, %k) {
    %t = attn.soft_cap %s, 50.0
    attn.yield %t : f32
  }
}

// ALL-LABEL: attn.kernel @always
// CHECK: attn.bounds exact
// CHECK: attn.yield %c-1073741824{{.*}}, %c1073741824{{.*}} : index, index
attn.kernel @always heads(1) dim(64) q(f32) kv(f32) {
  attn.mask (%b, %h, %q, %k) {
    %t = arith.constant true
    attn.yield %t : i1
  }
}

// ALL-LABEL: attn.kernel @never
// CHECK: attn.bounds exact
// CHECK: attn.yield %c1073741824{{.*}}, %c-1073741824{{.*}} : index, index
attn.kernel @never heads(1) dim(64) q(f32) kv(f32) {
  attn.mask (%b, %h, %q, %k) {
    %f = arith.constant false
    attn.yield %f : i1
  }
}

// ALL-LABEL: attn.kernel @constant_of_the_body
attn.kernel @constant_of_the_body heads(1) dim(64) q(f32) kv(f32) {
  %t = arith.constant true
  attn.mask (%b, %h, %q, %k) {
    attn.yield %t : i1
  }
}

// Neither a scan nor an interval: a loop in a loop, with a mask operation inside.
// ALL-LABEL: attn.kernel @nested_loops
// ALL: scf.for
// ALL: scf.for
attn.kernel @nested_loops heads(1) dim(64) q(f32) kv(f32) tables(%mm: !attn.ranges) {
  attn.mask (%b, %h, %q, %k) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %f = arith.constant false
    %n = attn.num_ranges %mm[%b]
    %m = scf.for %r = %c0 to %n step %c1 iter_args(%acc = %f) -> (i1) {
      %s, %e = attn.range %mm[%b, %r]
      %any = scf.for %i = %s to %e step %c1 iter_args(%in = %acc) -> (i1) {
        %hit = arith.cmpi eq, %i, %k : index
        %c = attn.causal %q, %k
        %both = attn.and %hit, %c
        %next = arith.ori %in, %both : i1
        scf.yield %next : i1
      }
      scf.yield %any : i1
    }
    attn.yield %m : i1
  }
}

// A mask that depends on the query or the head alone.
// ALL-LABEL: attn.kernel @whole_rows
// CHECK: attn.bounds exact
attn.kernel @whole_rows heads(1) dim(64) q(f32) kv(f32) params(%n: i32) {
  attn.mask (%b, %h, %q, %k) {
    %i = arith.index_cast %n : i32 to index
    %m = arith.cmpi slt, %q, %i : index
    attn.yield %m : i1
  }
}

// Half of the heads see a window, the others everything before.
// ALL-LABEL: attn.kernel @by_head
// CHECK: attn.bounds exact
attn.kernel @by_head heads(4) dim(64) q(f32) kv(f32) {
  attn.mask (%b, %h, %q, %k) {
    %c2 = arith.constant 2 : index
    %far = arith.cmpi slt, %h, %c2 : index
    %c = attn.causal %q, %k
    %w = attn.window %q, %k left(3)
    %cw = attn.and %c, %w
    %x = attn.and %far, %c
    %near = attn.not %far
    %y = attn.and %near, %cw
    %z = attn.or %x, %y
    attn.yield %z : i1
  }
}

// The same for all queries: exact bounds, though nothing depends on q.
// ALL-LABEL: attn.kernel @prefix_only
// CHECK: attn.bounds exact
attn.kernel @prefix_only heads(1) dim(64) q(f32) kv(f32) tables(%len: !attn.table<[b], i32>) {
  attn.mask (%b, %h, %q, %k) {
    %n = attn.load %len[%b] : !attn.table<[b], i32>
    %m = attn.prefix %k, %n
    attn.yield %m : i1
  }
}

// Radii that depend on the key.
// ALL-LABEL: attn.kernel @radius_of_key
// CHECK-NOT: attn.in_rows
attn.kernel @radius_of_key heads(1) dim(64) q(f32) kv(f32) tables(%t: !attn.table<[b, k], i32>) {
  attn.mask (%b, %h, %q, %k) {
    %n = attn.load %t[%b, %k] : !attn.table<[b, k], i32>
    // ALL: attn.window
    %w = attn.window %q, %k left(%n) right(%n)
    attn.yield %w : i1
  }
}

// A loop without a trip, a division by zero, a shift past the width: never executed by a pass.
// ALL-LABEL: attn.kernel @poison
attn.kernel @poison heads(1) dim(64) q(f32) kv(f32) {
  attn.mask (%b, %h, %q, %k) {
    %c0 = arith.constant 0 : index
    %c70 = arith.constant 70 : index
    %x = arith.divsi %k, %c0 : index
    %y = arith.shli %q, %c70 : index
    %z = scf.for %i = %q to %k step %c0 iter_args(%a = %c0) -> (index) {
      scf.yield %i : index
    }
    %xy = arith.addi %x, %y : index
    %xyz = arith.addi %xy, %z : index
    // ALL: arith.cmpi
    %m = arith.cmpi sle, %xyz, %q : index
    attn.yield %m : i1
  }
}
