// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: attn-opt %s -split-input-file -verify-diagnostics

// attn-C1
attn.kernel @swapped heads(1) dim(64) q(f32) kv(f32) {
  attn.mask (%b, %h, %q, %k) {
    // expected-error @+1 {{'attn.causal' op operand q is expected to be the region's argument %q, got %k (attn-C1)}}
    %m = attn.causal %k, %q
    attn.yield %m : i1
  }
}

// -----

// attn-C1
attn.kernel @other_value heads(1) dim(64) q(f32) kv(f32) {
  attn.mask (%b, %h, %q, %k) {
    %c1 = arith.constant 1 : index
    %next = arith.addi %k, %c1 : index
    // expected-error @+1 {{'attn.causal' op operand k is expected to be the region's argument %k, got another value (attn-C1)}}
    %m = attn.causal %q, %next
    attn.yield %m : i1
  }
}

// -----

// attn-C1
attn.kernel @window heads(1) dim(64) q(f32) kv(f32) {
  attn.mask (%b, %h, %q, %k) {
    // expected-error @+1 {{'attn.window' op operand k is expected to be the region's argument %k, got %b (attn-C1)}}
    %m = attn.window %q, %b left(1)
    attn.yield %m : i1
  }
}

// -----

// attn-C1
attn.kernel @sliding heads(1) dim(64) q(f32) kv(f32) {
  attn.mask (%b, %h, %q, %k) {
    // expected-error @+1 {{'attn.sliding' op operand q is expected to be the region's argument %q, got %h (attn-C1)}}
    %m = attn.sliding %h, %k count(1)
    attn.yield %m : i1
  }
}

// -----

// attn-C1
attn.kernel @mm_prefix heads(1) dim(64) q(f32) kv(f32) tables(%mm: !attn.ranges) {
  attn.mask (%b, %h, %q, %k) {
    // expected-error @+1 {{'attn.mm_prefix' op operand b is expected to be the region's argument %b, got %h (attn-C1)}}
    %m = attn.mm_prefix %mm, %h, %q, %k
    attn.yield %m : i1
  }
}

// -----

// attn-C1
attn.kernel @prefix heads(1) dim(64) q(f32) kv(f32) {
  attn.mask (%b, %h, %q, %k) {
    // expected-error @+1 {{'attn.prefix' op operand k is expected to be the region's argument %k, got %q (attn-C1)}}
    %m = attn.prefix %q, 4
    attn.yield %m : i1
  }
}

// -----

// attn-C1
attn.kernel @document heads(1) dim(64) q(f32) kv(f32) tables(%doc: !attn.documents) {
  attn.mask (%b, %h, %q, %k) {
    // expected-error @+1 {{'attn.document' op operand q is expected to be the region's argument %q, got %k (attn-C1)}}
    %m = attn.document %doc, %b, %k, %k
    attn.yield %m : i1
  }
}

// -----

// attn-C1
attn.kernel @global heads(1) dim(64) q(f32) kv(f32) {
  attn.mask (%b, %h, %q, %k) {
    // expected-error @+1 {{'attn.global' op operand k is expected to be the region's argument %k, got %q (attn-C1)}}
    %m = attn.global %q, %q, 4
    attn.yield %m : i1
  }
}

// -----

// attn-C1
attn.kernel @in_rows heads(1) dim(64) q(f32) kv(f32) {
  attn.mask (%b, %h, %q, %k) {
    // expected-error @+1 {{'attn.in_rows' op operand k is expected to be the region's argument %k, got %q (attn-C1)}}
    %m = attn.in_rows %q, %q, %q
    attn.yield %m : i1
  }
}

// -----

// attn-C1: a request has no q.
attn.kernel @per_request heads(1) dim(64) q(f32) kv(f32) {
  %m = attn.per request (%b) -> (i1) {
    // expected-error @+1 {{'attn.causal' op operand q is expected to be the region's argument %q, got %b (attn-C1)}}
    %c = attn.causal %b, %b
    attn.yield %c : i1
  }
}

// -----

// attn-C2
attn.kernel @no_side heads(1) dim(64) q(f32) kv(f32) {
  attn.mask (%b, %h, %q, %k) {
    // expected-error @+1 {{'attn.window' op expects left(...), right(...) or both (attn-C2)}}
    %m = attn.window %q, %k
    attn.yield %m : i1
  }
}

// -----

// attn-C3
attn.kernel @negative_left heads(1) dim(64) q(f32) kv(f32) {
  attn.mask (%b, %h, %q, %k) {
    // expected-error @+1 {{'attn.window' op left is a radius and expected to be >= 0, got -1 (attn-C3)}}
    %m = attn.window %q, %k left(-1)
    attn.yield %m : i1
  }
}

// -----

// attn-C3
attn.kernel @negative_right heads(1) dim(64) q(f32) kv(f32) {
  attn.mask (%b, %h, %q, %k) {
    // expected-error @+1 {{'attn.window' op right is a radius and expected to be >= 0, got -2147483648 (attn-C3)}}
    %m = attn.window %q, %k left(0) right(-2147483648)
    attn.yield %m : i1
  }
}

// -----

// attn-C3: constants count as literals.
attn.kernel @negative_clamp heads(1) dim(64) q(f32) kv(f32) tables(%mm: !attn.ranges) {
  attn.mask (%b, %h, %q, %k) {
    %c = arith.constant -5 : i32
    // expected-error @+1 {{'attn.mm_prefix' op clamp is a radius and expected to be >= 0, got -5 (attn-C3)}}
    %m = attn.mm_prefix %mm, %b, %q, %k clamp(%c)
    attn.yield %m : i1
  }
}

// -----

// attn-C4
attn.kernel @count_zero heads(1) dim(64) q(f32) kv(f32) {
  attn.mask (%b, %h, %q, %k) {
    // expected-error @+1 {{'attn.sliding' op count includes self and is expected to be >= 1, got 0 (attn-C4)}}
    %m = attn.sliding %q, %k count(0)
    attn.yield %m : i1
  }
}

// -----

// attn-C4: constants count as literals.
attn.kernel @count_constant heads(1) dim(64) q(f32) kv(f32) {
  attn.mask (%b, %h, %q, %k) {
    %c = arith.constant -3 : i32
    // expected-error @+1 {{'attn.sliding' op count includes self and is expected to be >= 1, got -3 (attn-C4)}}
    %m = attn.sliding %q, %k count(%c)
    attn.yield %m : i1
  }
}

// -----

// attn-C5
attn.kernel @lo_of_k heads(1) dim(64) q(f32) kv(f32) {
  attn.mask (%b, %h, %q, %k) {
    %lo = arith.subi %k, %q : index
    // expected-error @+1 {{'attn.in_rows' op lo is expected not to depend on %k (attn-C5)}}
    %m = attn.in_rows %k, %lo, %q
    attn.yield %m : i1
  }
}

// -----

// attn-C5: through a value of level column.
attn.kernel @hi_of_column heads(1) dim(64) q(f32) kv(f32) {
  %c = attn.per column (%b, %h, %k) -> (index) {
    attn.yield %k : index
  }
  attn.mask (%b, %h, %q, %k) {
    // expected-error @+1 {{'attn.in_rows' op hi is expected not to depend on %k (attn-C5)}}
    %m = attn.in_rows %k, %q, %c
    attn.yield %m : i1
  }
}

// -----

// attn-C7
attn.kernel @both heads(1) dim(64) q(f32) kv(f32) params(%left: i32) {
  attn.mask (%b, %h, %q, %k) {
    // expected-error @+1 {{'attn.window' op left is given both as a value and as a literal (attn-C7)}}
    %m = "attn.window"(%q, %k, %left) <{left_literal = 3 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 0>}> : (index, index, i32) -> i1
    attn.yield %m : i1
  }
}

// -----

// attn-C7
attn.kernel @both_clamp heads(1) dim(64) q(f32) kv(f32) params(%left: i32) tables(%mm: !attn.ranges) {
  attn.mask (%b, %h, %q, %k) {
    // expected-error @+1 {{'attn.mm_prefix' op clamp is given both as a value and as a literal (attn-C7)}}
    %m = "attn.mm_prefix"(%mm, %b, %q, %k, %left) <{clamp_literal = 3 : i32}> : (!attn.ranges, index, index, index, i32) -> i1
    attn.yield %m : i1
  }
}

// -----

// attn-C7
attn.kernel @no_count heads(1) dim(64) q(f32) kv(f32) {
  attn.mask (%b, %h, %q, %k) {
    // expected-error @+1 {{'attn.sliding' op count is missing (attn-C7)}}
    %m = "attn.sliding"(%q, %k) : (index, index) -> i1
    attn.yield %m : i1
  }
}

// -----

// attn-C7
attn.kernel @no_n heads(1) dim(64) q(f32) kv(f32) {
  attn.mask (%b, %h, %q, %k) {
    // expected-error @+1 {{'attn.prefix' op n is missing (attn-C7)}}
    %m = "attn.prefix"(%k) : (index) -> i1
    attn.yield %m : i1
  }
}

// -----

// attn-C7
attn.kernel @no_global_n heads(1) dim(64) q(f32) kv(f32) {
  attn.mask (%b, %h, %q, %k) {
    // expected-error @+1 {{'attn.global' op n is missing (attn-C7)}}
    %m = "attn.global"(%q, %k) : (index, index) -> i1
    attn.yield %m : i1
  }
}
