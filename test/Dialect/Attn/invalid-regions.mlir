// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: attn-opt %s -split-input-file -verify-diagnostics

// attn-C20
attn.kernel @mask_type heads(1) dim(64) q(f32) kv(f32) {
  attn.mask (%b, %h, %q, %k) {
    // expected-error @+1 {{'attn.yield' op yields 'index', expected 'i1' (attn-C20)}}
    attn.yield %q : index
  }
}

// -----

// attn-C20
attn.kernel @mask_nothing heads(1) dim(64) q(f32) kv(f32) {
  attn.mask (%b, %h, %q, %k) {
    // expected-error @+1 {{'attn.yield' op yields nothing, expected 'i1' (attn-C20)}}
    attn.yield
  }
}

// -----

// attn-C20
attn.kernel @mask_two heads(1) dim(64) q(f32) kv(f32) {
  attn.mask (%b, %h, %q, %k) {
    %m = attn.causal %q, %k
    // expected-error @+1 {{'attn.yield' op yields 'i1', 'i1', expected 'i1' (attn-C20)}}
    attn.yield %m, %m : i1, i1
  }
}

// -----

// attn-C21
attn.kernel @score_type heads(1) dim(64) q(f32) kv(f32) {
  attn.score (%s, %b, %h, %q, %k) {
    %m = attn.causal %q, %k
    // expected-error @+1 {{'attn.yield' op yields 'i1', expected 'f32' (attn-C21)}}
    attn.yield %m : i1
  }
}

// -----

// attn-C22
attn.kernel @bounds_one heads(1) dim(64) q(f32) kv(f32) {
  attn.bounds exact (%b, %h, %q) {
    // expected-error @+1 {{'attn.yield' op yields 'index', expected 'index', 'index' (attn-C22)}}
    attn.yield %q : index
  }
}

// -----

// attn-C23
attn.kernel @column_in_bounds heads(1) dim(64) q(f32) kv(f32) {
  // expected-note @+1 {{the value is computed here}}
  %c = attn.per column (%b, %h, %k) -> (index) {
    attn.yield %k : index
  }
  attn.bounds hull (%b, %h, %q) {
    // expected-error @+1 {{'attn.yield' op uses a value of level column where %k is not known (attn-C23)}}
    attn.yield %c, %c : index, index
  }
}

// -----

// attn-C23
attn.kernel @row_in_request heads(1) dim(64) q(f32) kv(f32) {
  // expected-note @+1 {{the value is computed here}}
  %r = attn.per row (%b, %h, %q) -> (index) {
    attn.yield %q : index
  }
  %x = attn.per request (%b) -> (index) {
    // expected-error @+1 {{'arith.addi' op uses a value of level row where %h is not known (attn-C23)}}
    %y = arith.addi %r, %b : index
    attn.yield %y : index
  }
}

// -----

// attn-C23: the kernel's body knows no index.
attn.kernel @row_in_body heads(1) dim(64) q(f32) kv(f32) {
  // expected-note @+1 {{the value is computed here}}
  %r = attn.per row (%b, %h, %q) -> (index) {
    attn.yield %q : index
  }
  // expected-error @+1 {{'arith.addi' op uses a value of level row where %b is not known (attn-C23)}}
  %y = arith.addi %r, %r : index
}

// -----

// attn-C24
attn.kernel @vector heads(1) dim(64) q(f32) kv(f32) {
  attn.mask (%b, %h, %q, %k) {
    // expected-error @+1 {{'arith.constant' op is not allowed in a region of a kernel, expected mask, score and table operations, scalar arith and math, and scf.for (attn-C24)}}
    %v = arith.constant dense<true> : vector<4xi1>
    %m = attn.causal %q, %k
    attn.yield %m : i1
  }
}

// -----

// attn-C24
attn.kernel @f64 heads(1) dim(64) q(f32) kv(f32) {
  attn.score (%s, %b, %h, %q, %k) {
    // expected-error @+1 {{'arith.extf' op is not allowed in a region of a kernel, expected mask, score and table operations, scalar arith and math, and scf.for (attn-C24)}}
    %d = arith.extf %s : f32 to f64
    attn.yield %s : f32
  }
}

// -----

// attn-C24
attn.kernel @scf_if heads(1) dim(64) q(f32) kv(f32) {
  attn.mask (%b, %h, %q, %k) {
    %m = attn.causal %q, %k
    // expected-error @+1 {{'scf.if' op is not allowed in a region of a kernel, expected mask, score and table operations, scalar arith and math, and scf.for (attn-C24)}}
    %x = scf.if %m -> i1 {
      scf.yield %m : i1
    } else {
      scf.yield %m : i1
    }
    attn.yield %x : i1
  }
}

// -----

// attn-C24: a loop that may never end.
attn.kernel @scf_while heads(1) dim(64) q(f32) kv(f32) {
  attn.mask (%b, %h, %q, %k) {
    %m = attn.causal %q, %k
    // expected-error @+1 {{'scf.while' op is not allowed in a region of a kernel, expected mask, score and table operations, scalar arith and math, and scf.for (attn-C24)}}
    %x = scf.while (%y = %m) : (i1) -> i1 {
      scf.condition(%y) %y : i1
    } do {
    ^bb0(%z: i1):
      scf.yield %z : i1
    }
    attn.yield %x : i1
  }
}

// -----

// attn-C24
attn.kernel @loop_type heads(1) dim(64) q(f32) kv(f32) {
  attn.mask (%b, %h, %q, %k) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %m = attn.causal %q, %k
    // expected-error @+1 {{'scf.for' op is not allowed in a region of a kernel, expected mask, score and table operations, scalar arith and math, and scf.for (attn-C24)}}
    %x = scf.for %i = %c0 to %c1 step %c1 iter_args(%y = %m) -> (i1) : i32 {
      scf.yield %y : i1
    }
    attn.yield %x : i1
  }
}

// -----

// attn-C24
attn.kernel @loop_without_result heads(1) dim(64) q(f32) kv(f32) {
  attn.mask (%b, %h, %q, %k) {
    %c1 = arith.constant 1 : index
    // expected-error @+1 {{'scf.for' op is not allowed in a region of a kernel, expected mask, score and table operations, scalar arith and math, and scf.for (attn-C24)}}
    scf.for %i = %q to %k step %c1 {
    }
    %m = attn.causal %q, %k
    attn.yield %m : i1
  }
}

// -----

// attn-C24: inside a loop.
attn.kernel @in_loop heads(1) dim(64) q(f32) kv(f32) {
  attn.mask (%b, %h, %q, %k) {
    %c1 = arith.constant 1 : index
    %m = attn.causal %q, %k
    %x = scf.for %i = %q to %k step %c1 iter_args(%y = %m) -> (i1) {
      // expected-error @+1 {{'arith.constant' op is not allowed in a region of a kernel, expected mask, score and table operations, scalar arith and math, and scf.for (attn-C24)}}
      %v = arith.constant 1 : i128
      scf.yield %y : i1
    }
    attn.yield %x : i1
  }
}

// -----

// attn-C25
attn.kernel @few_arguments heads(1) dim(64) q(f32) kv(f32) {
  // expected-error @+1 {{'attn.mask' op expects the arguments (%b, %h, %q, %k) (attn-C25)}}
  "attn.mask"() ({
  ^bb0(%b: index, %h: index):
    %m = arith.constant true
    "attn.yield"(%m) : (i1) -> ()
  }) : () -> ()
}

// -----

// attn-C25
attn.kernel @argument_type heads(1) dim(64) q(f32) kv(f32) {
  // expected-error @+1 {{'attn.score' op expects the arguments (%s, %b, %h, %q, %k) (attn-C25)}}
  "attn.score"() ({
  ^bb0(%s: f32, %b: i32, %h: index, %q: index, %k: index):
    "attn.yield"(%s) : (f32) -> ()
  }) : () -> ()
}

// -----

// attn-C25
attn.kernel @level heads(1) dim(64) q(f32) kv(f32) {
  // expected-error @+1 {{'attn.per' op expects the arguments (%b, %h, %q) (attn-C25)}}
  %0 = "attn.per"() <{level = 2 : i32}> ({
  ^bb0(%b: index):
    "attn.yield"(%b) : (index) -> ()
  }) : () -> index
}

// -----

// attn-C26
attn.kernel @other_end heads(1) dim(64) q(f32) kv(f32) {
  // expected-error @+1 {{'attn.mask' op expects attn.yield at the end of its region (attn-C26)}}
  attn.mask (%b, %h, %q, %k) {
    llvm.unreachable
  }
}

// -----

// attn-C27: a table is no scalar.
attn.kernel @per_table heads(1) dim(64) q(f32) kv(f32) tables(%mm: !attn.ranges) {
  // expected-error @+1 {{'attn.per' op computes scalars, got a value of type '!attn.ranges' (attn-C27)}}
  %t = attn.per request (%b) -> (!attn.ranges) {
    attn.yield %mm : !attn.ranges
  }
  attn.mask (%b, %h, %q, %k) {
    %m = attn.mm_prefix %t, %b, %q, %k
    attn.yield %m : i1
  }
}

// -----

// attn-C27
attn.kernel @per_types heads(1) dim(64) q(f32) kv(f32) {
  %x = attn.per head (%b, %h) -> (i32) {
    // expected-error @+1 {{'attn.yield' op yields 'index', expected 'i32' (attn-C27)}}
    attn.yield %h : index
  }
}

// -----

// No block, two blocks: what the definitions say, without a number.
attn.kernel @empty heads(1) dim(64) q(f32) kv(f32) {
  // expected-error @+1 {{'attn.mask' op region #0 ('body') failed to verify constraint: region with 1 blocks}}
  "attn.mask"() ({}) : () -> ()
}

// -----

attn.kernel @blocks heads(1) dim(64) q(f32) kv(f32) {
  // expected-error @+1 {{'attn.mask' op expects region #0 to have 0 or 1 blocks}}
  attn.mask (%b, %h, %q, %k) {
    %m = attn.causal %q, %k
    attn.yield %m : i1
  ^bb1:
    attn.yield %m : i1
  }
}
