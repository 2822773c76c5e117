// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: attn-opt %s -split-input-file -verify-diagnostics

// attn-C30
attn.kernel @few_indices heads(1) dim(64) q(f32) kv(f32) tables(%t: !attn.table<[b, k], i32>) {
  attn.mask (%b, %h, %q, %k) {
    // expected-error @+1 {{'attn.load' op expects 2 indices for '!attn.table<[b, k], i32>', got 1 (attn-C30)}}
    %n = attn.load %t[%b] : !attn.table<[b, k], i32>
    %m = attn.prefix %k, %n
    attn.yield %m : i1
  }
}

// -----

// attn-C30
attn.kernel @no_index heads(1) dim(64) q(f32) kv(f32) tables(%t: !attn.table<[b], i32>) {
  attn.mask (%b, %h, %q, %k) {
    // expected-error @+1 {{'attn.load' op expects 1 indices for '!attn.table<[b], i32>', got 0 (attn-C30)}}
    %n = attn.load %t[] : !attn.table<[b], i32>
    %m = attn.prefix %k, %n
    attn.yield %m : i1
  }
}

// -----

// attn-C31: the token of a row is derived from q; q itself is not a token, but stands for it.
attn.kernel @token heads(1) dim(64) q(f32) kv(f32) tables(%t: !attn.table<[token], i32>) {
  attn.mask (%b, %h, %q, %k) {
    // expected-error @+1 {{'attn.load' op index 0 of dim token is expected to be the region's argument %q (attn-C31)}}
    %n = attn.load %t[%k] : !attn.table<[token], i32>
    %m = attn.prefix %k, %n
    attn.yield %m : i1
  }
}

// -----

// attn-C31
attn.kernel @head heads(8) kv_heads(4) dim(64) q(f32) kv(f32)
    tables(%t: !attn.table<[b, h_kv], i32>) {
  attn.mask (%b, %h, %q, %k) {
    %c2 = arith.constant 2 : index
    %g = arith.divui %h, %c2 : index
    // expected-error @+1 {{'attn.load' op index 1 of dim h_kv is expected to be the region's argument %h (attn-C31)}}
    %n = attn.load %t[%b, %g] : !attn.table<[b, h_kv], i32>
    %m = attn.prefix %k, %n
    attn.yield %m : i1
  }
}

// -----

// attn-C31: no %h at this level.
attn.kernel @level heads(8) dim(64) q(f32) kv(f32) tables(%t: !attn.table<[h], i32>) {
  %v = attn.per request (%b) -> (i32) {
    // expected-error @+1 {{'attn.load' op index 0 of dim h is expected to be the region's argument %h (attn-C31)}}
    %n = attn.load %t[%b] : !attn.table<[h], i32>
    attn.yield %n : i32
  }
}

// -----

// attn-C32
// expected-error @+1 {{a table has 1 to 4 dims, got 5 (attn-C32)}}
attn.kernel @rank heads(1) dim(64) q(f32) kv(f32) tables(%t: !attn.table<[b, k, slot, h, bucket], i32>) {
}

// -----

// attn-C32
// expected-error @+1 {{a table has 1 to 4 dims, got 0 (attn-C32)}}
attn.kernel @scalar heads(1) dim(64) q(f32) kv(f32) tables(%t: !attn.table<[], i32>) {
}

// -----

// attn-C33
// expected-error @+1 {{table elements are i8, i32, i64 or f32, got 'f64' (attn-C33)}}
attn.kernel @element heads(1) dim(64) q(f32) kv(f32) tables(%t: !attn.table<[b], f64>) {
}

// -----

// attn-C33
// expected-error @+1 {{table elements are i8, i32, i64 or f32, got 'vector<4xf32>' (attn-C33)}}
attn.kernel @vector heads(1) dim(64) q(f32) kv(f32) tables(%t: !attn.table<[b], vector<4xf32>>) {
}

// -----

// attn-C34
attn.kernel @result heads(1) dim(64) q(f32) kv(f32) tables(%t: !attn.table<[b], i32>) {
  attn.mask (%b, %h, %q, %k) {
    // expected-error @+1 {{'attn.load' op expects the result type 'i32', got 'i64' (attn-C34)}}
    %n = "attn.load"(%t, %b) : (!attn.table<[b], i32>, index) -> i64
    %m = attn.prefix %k, 4
    attn.yield %m : i1
  }
}

// -----

// attn-C1
attn.kernel @num_ranges heads(1) dim(64) q(f32) kv(f32) tables(%mm: !attn.ranges) {
  attn.mask (%b, %h, %q, %k) {
    // expected-error @+1 {{'attn.num_ranges' op operand b is expected to be the region's argument %b, got %q (attn-C1)}}
    %n = attn.num_ranges %mm[%q]
    %m = attn.in_rows %k, %n, %n
    attn.yield %m : i1
  }
}

// -----

// attn-C1
attn.kernel @range heads(1) dim(64) q(f32) kv(f32) tables(%mm: !attn.ranges) {
  attn.mask (%b, %h, %q, %k) {
    // expected-error @+1 {{'attn.range' op operand b is expected to be the region's argument %b, got %h (attn-C1)}}
    %s, %e = attn.range %mm[%h, %b]
    %m = attn.in_rows %k, %s, %e
    attn.yield %m : i1
  }
}

// -----

// attn-C1
attn.kernel @row_range heads(1) dim(64) q(f32) kv(f32)
    tables(%mm: !attn.ranges, %rows: !attn.query_ranges from %mm) {
  attn.mask (%b, %h, %q, %k) {
    // expected-error @+1 {{'attn.row_range' op operand q is expected to be the region's argument %q, got %k (attn-C1)}}
    %lo, %hi = attn.row_range %rows, %k
    %m = attn.prefix %k, 4
    attn.yield %m : i1
  }
}

// -----

// attn-C1: inside a loop, too.
attn.kernel @in_loop heads(1) dim(64) q(f32) kv(f32) tables(%mm: !attn.ranges) {
  attn.mask (%b, %h, %q, %k) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %f = arith.constant false
    %m = scf.for %i = %c0 to %q step %c1 iter_args(%x = %f) -> (i1) {
      // expected-error @+1 {{'attn.range' op operand b is expected to be the region's argument %b, got another value (attn-C1)}}
      %s, %e = attn.range %mm[%i, %i]
      %n = arith.cmpi slt, %s, %e : index
      scf.yield %n : i1
    }
    attn.yield %m : i1
  }
}
