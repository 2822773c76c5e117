// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: attn-opt %s -split-input-file -verify-diagnostics

// attn-C10
// expected-error @+1 {{'attn.kernel' op heads is expected to be positive, got 0 (attn-C10)}}
attn.kernel @heads heads(0) kv_heads(1) dim(64) q(f32) kv(f32) {
}

// -----

// attn-C10
// expected-error @+1 {{'attn.kernel' op kv_heads is expected to be positive, got -1 (attn-C10)}}
attn.kernel @kv_heads heads(4) kv_heads(-1) dim(64) q(f32) kv(f32) {
}

// -----

// attn-C10
// expected-error @+1 {{'attn.kernel' op dim is expected to be positive, got 0 (attn-C10)}}
attn.kernel @dim heads(4) dim(0) q(f32) kv(f32) {
}

// -----

// attn-C10
// expected-error @+1 {{'attn.kernel' op dim_v is expected to be positive, got -9223372036854775808 (attn-C10)}}
attn.kernel @dim_v heads(4) dim(64) dim_v(-9223372036854775808) q(f32) kv(f32) {
}

// -----

// attn-C11
// expected-error @+1 {{'attn.kernel' op heads is expected to be a multiple of kv_heads, got 8 and 3 (attn-C11)}}
attn.kernel @group heads(8) kv_heads(3) dim(64) q(f32) kv(f32) {
}

// -----

// attn-C11
// expected-error @+1 {{'attn.kernel' op heads is expected to be a multiple of kv_heads, got 4 and 8 (attn-C11)}}
attn.kernel @more_kv heads(4) kv_heads(8) dim(64) q(f32) kv(f32) {
}

// -----

// attn-C12
attn.kernel @masks heads(4) dim(64) q(f32) kv(f32) {
  // expected-note @+1 {{the first one is here}}
  attn.mask (%b, %h, %q, %k) {
    %m = attn.causal %q, %k
    attn.yield %m : i1
  }
  // expected-error @+1 {{'attn.mask' op a kernel has at most one attn.mask (attn-C12)}}
  attn.mask (%b, %h, %q, %k) {
    %m = attn.causal %q, %k
    attn.yield %m : i1
  }
}

// -----

// attn-C12
attn.kernel @scores heads(4) dim(64) q(f32) kv(f32) {
  // expected-note @+1 {{the first one is here}}
  attn.score (%s, %b, %h, %q, %k) {
    attn.yield %s : f32
  }
  // expected-error @+1 {{'attn.score' op a kernel has at most one attn.score (attn-C12)}}
  attn.score (%s, %b, %h, %q, %k) {
    attn.yield %s : f32
  }
}

// -----

// attn-C12
attn.kernel @bounds heads(4) dim(64) q(f32) kv(f32) {
  // expected-note @+1 {{the first one is here}}
  attn.bounds exact (%b, %h, %q) {
    attn.yield %q, %q : index, index
  }
  // expected-error @+1 {{'attn.bounds' op a kernel has at most one attn.bounds (attn-C12)}}
  attn.bounds hull (%b, %h, %q) {
    attn.yield %q, %q : index, index
  }
}

// -----

// attn-C13
// expected-error @+1 {{'attn.kernel' op scale is expected to be finite in f32 (attn-C13)}}
attn.kernel @inf heads(4) dim(64) q(f32) kv(f32) scale(1.0e400) {
}

// -----

// expected-error @+1 {{'attn.kernel' op scale is expected to be finite in f32 (attn-C13)}}
attn.kernel @inf heads(4) dim(64) q(f32) kv(f32) scale(1.0e39) {
}

// -----

// attn-C13
// expected-error @+1 {{'attn.kernel' op scale is expected to be finite in f32 (attn-C13)}}
"attn.kernel"() <{arg_names = [], dim = 64 : i64, dim_v = 64 : i64, heads = 4 : i64, kv_heads = 4 : i64, kv_type = f32, num_params = 0 : i64, q_type = f32, scale = 0x7FF8000000000000 : f64, sym_name = "nan", table_sources = array<i64>}> ({
^bb0:
}) : () -> ()

// -----

// attn-C13
// expected-error @+1 {{'attn.kernel' op scale is given both as a literal and as a parameter (attn-C13)}}
"attn.kernel"() <{arg_names = ["x"], dim = 64 : i64, dim_v = 64 : i64, heads = 4 : i64, kv_heads = 4 : i64, kv_type = f32, num_params = 1 : i64, q_type = f32, scale = 1.0 : f64, scale_param = 0 : i64, sym_name = "both", table_sources = array<i64>}> ({
^bb0(%x: f32):
}) : () -> ()

// -----

// attn-C13
// expected-error @+1 {{'attn.kernel' op scale is expected to name an f32 parameter (attn-C13)}}
attn.kernel @int_scale heads(4) dim(64) q(f32) kv(f32) scale(%n) params(%n: i32) {
}

// -----

// attn-C13
// expected-error @+1 {{'attn.kernel' op scale is expected to name an f32 parameter (attn-C13)}}
"attn.kernel"() <{arg_names = ["x"], dim = 64 : i64, dim_v = 64 : i64, heads = 4 : i64, kv_heads = 4 : i64, kv_type = f32, num_params = 1 : i64, q_type = f32, scale_param = 7 : i64, sym_name = "far", table_sources = array<i64>}> ({
^bb0(%x: f32):
}) : () -> ()

// -----

// attn-C13
// expected-error @+1 {{'attn.kernel' op scale is expected to name an f32 parameter (attn-C13)}}
"attn.kernel"() <{arg_names = ["x"], dim = 64 : i64, dim_v = 64 : i64, heads = 4 : i64, kv_heads = 4 : i64, kv_type = f32, num_params = 1 : i64, q_type = f32, scale_param = -1 : i64, sym_name = "negative", table_sources = array<i64>}> ({
^bb0(%x: f32):
}) : () -> ()

// -----

// attn-C13
// expected-error @+1 {{scale names '%x', which is no parameter of this kernel (attn-C13)}}
attn.kernel @no_param heads(4) dim(64) q(f32) kv(f32) scale(%x) params(%y: f32) {
}

// -----

// attn-C14
// expected-error @+1 {{'%mm' is no table declared before this one (attn-C14)}}
attn.kernel @later heads(4) dim(64) q(f32) kv(f32) tables(%rows: !attn.query_ranges from %mm, %mm: !attn.ranges) {
}

// -----

// attn-C14
// expected-error @+1 {{'attn.kernel' op table 'rows' is expected to name an earlier !attn.ranges or !attn.documents table after 'from' (attn-C14)}}
attn.kernel @plain heads(4) dim(64) q(f32) kv(f32) tables(%t: !attn.table<[b], i32>, %rows: !attn.query_ranges from %t) {
}

// -----

// attn-C14
// expected-error @+1 {{'attn.kernel' op table 'rows' is expected to name an earlier !attn.ranges or !attn.documents table after 'from' (attn-C14)}}
attn.kernel @nothing heads(4) dim(64) q(f32) kv(f32) tables(%rows: !attn.query_ranges) {
}

// -----

// attn-C14
// expected-error @+1 {{'attn.kernel' op table 'doc' is the user's and takes no 'from' (attn-C14)}}
attn.kernel @user heads(4) dim(64) q(f32) kv(f32) tables(%mm: !attn.ranges, %doc: !attn.documents from %mm) {
}

// -----

// attn-C15
// expected-error @+1 {{'attn.kernel' op two parameters or tables are named 'x' (attn-C15)}}
"attn.kernel"() <{arg_names = ["x", "x"], dim = 64 : i64, dim_v = 64 : i64, heads = 4 : i64, kv_heads = 4 : i64, kv_type = f32, num_params = 1 : i64, q_type = f32, sym_name = "twice", table_sources = array<i64: -1>}> ({
^bb0(%x: f32, %t: !attn.ranges):
}) : () -> ()

// -----

// attn-C15
// expected-error @+1 {{'attn.kernel' op parameter or table name '0' is expected to be letters, digits, '_', '.', '-' or '$', first a letter or '_' (attn-C15)}}
attn.kernel @digits heads(4) dim(64) q(f32) kv(f32) params(%0: f32) {
}

// -----

// attn-C15
// expected-error @+1 {{'attn.kernel' op parameter or table name 'a b' is expected to be letters, digits, '_', '.', '-' or '$', first a letter or '_' (attn-C15)}}
"attn.kernel"() <{arg_names = ["a b"], dim = 64 : i64, dim_v = 64 : i64, heads = 4 : i64, kv_heads = 4 : i64, kv_type = f32, num_params = 1 : i64, q_type = f32, sym_name = "space", table_sources = array<i64>}> ({
^bb0(%x: f32):
}) : () -> ()

// -----

// attn-C15
// expected-error @+1 {{'attn.kernel' op parameter or table name '' is expected to be letters, digits, '_', '.', '-' or '$', first a letter or '_' (attn-C15)}}
"attn.kernel"() <{arg_names = [""], dim = 64 : i64, dim_v = 64 : i64, heads = 4 : i64, kv_heads = 4 : i64, kv_type = f32, num_params = 1 : i64, q_type = f32, sym_name = "empty", table_sources = array<i64>}> ({
^bb0(%x: f32):
}) : () -> ()

// -----

// attn-C16
attn.kernel @body heads(4) dim(64) q(f32) kv(f32) {
  // expected-error @+1 {{'builtin.module' op is not allowed in the body of a kernel, expected attn.mask, attn.score or scalar arithmetic on parameters (attn-C16)}}
  builtin.module {
  }
}

// -----

// attn-C16
attn.kernel @vector heads(4) dim(64) q(f32) kv(f32) {
  // expected-error @+1 {{'arith.constant' op is not allowed in the body of a kernel, expected attn.mask, attn.score or scalar arithmetic on parameters (attn-C16)}}
  %v = arith.constant dense<1.0> : vector<4xf32>
}

// -----

// attn-C16: inside a loop, too.
attn.kernel @loop heads(4) dim(64) q(f32) kv(f32) {
  %c1 = arith.constant 1 : index
  %x = scf.for %i = %c1 to %c1 step %c1 iter_args(%y = %c1) -> (index) {
    // expected-error @+1 {{'arith.constant' op is not allowed in the body of a kernel, expected attn.mask, attn.score or scalar arithmetic on parameters (attn-C16)}}
    %v = arith.constant 1.0 : f64
    scf.yield %y : index
  }
}

// -----

// attn-C17
// expected-error @+1 {{'attn.kernel' op q is expected to be f32, f16 or bf16, got 'f64' (attn-C17)}}
attn.kernel @q_type heads(4) dim(64) q(f64) kv(f32) {
}

// -----

// attn-C17
// expected-error @+1 {{'attn.kernel' op kv is expected to be f32, f16 or bf16, got 'i8' (attn-C17)}}
attn.kernel @kv_type heads(4) dim(64) q(f32) kv(i8) {
}

// -----

// attn-C18
// expected-error @+1 {{'attn.kernel' op parameter and table declarations do not match the body's 2 arguments (attn-C18)}}
"attn.kernel"() <{arg_names = ["x"], dim = 64 : i64, dim_v = 64 : i64, heads = 4 : i64, kv_heads = 4 : i64, kv_type = f32, num_params = 1 : i64, q_type = f32, sym_name = "names", table_sources = array<i64: -1>}> ({
^bb0(%x: f32, %t: !attn.ranges):
}) : () -> ()

// -----

// attn-C18
// expected-error @+1 {{'attn.kernel' op parameter and table declarations do not match the body's 1 arguments (attn-C18)}}
"attn.kernel"() <{arg_names = ["x"], dim = 64 : i64, dim_v = 64 : i64, heads = 4 : i64, kv_heads = 4 : i64, kv_type = f32, num_params = 5 : i64, q_type = f32, sym_name = "count", table_sources = array<i64>}> ({
^bb0(%x: f32):
}) : () -> ()

// -----

// attn-C18
// expected-error @+1 {{'attn.kernel' op parameter and table declarations do not match the body's 1 arguments (attn-C18)}}
"attn.kernel"() <{arg_names = ["t"], dim = 64 : i64, dim_v = 64 : i64, heads = 4 : i64, kv_heads = 4 : i64, kv_type = f32, num_params = 0 : i64, q_type = f32, sym_name = "sources", table_sources = array<i64>}> ({
^bb0(%t: !attn.ranges):
}) : () -> ()

// -----

// attn-C18: 2^32 is no 0.
// expected-error @+1 {{'attn.kernel' op parameter and table declarations do not match the body's 0 arguments (attn-C18)}}
"attn.kernel"() <{arg_names = [], dim = 64 : i64, dim_v = 64 : i64, heads = 4 : i64, kv_heads = 4 : i64, kv_type = f32, num_params = 4294967296 : i64, q_type = f32, sym_name = "wide", table_sources = array<i64>}> ({
^bb0:
}) : () -> ()

// -----

// attn-C18
// expected-error @+1 {{'attn.kernel' op parameter and table declarations do not match the body's 1 arguments (attn-C18)}}
"attn.kernel"() <{arg_names = ["t"], dim = 64 : i64, dim_v = 64 : i64, heads = 4 : i64, kv_heads = 4 : i64, kv_type = f32, num_params = -1 : i64, q_type = f32, sym_name = "negative", table_sources = array<i64: -1, -1>}> ({
^bb0(%t: !attn.ranges):
}) : () -> ()

// -----

// attn-C19
// expected-error @+1 {{'attn.kernel' op parameter 'x' is expected to be i32, i64 or f32, got 'f64' (attn-C19)}}
attn.kernel @param heads(4) dim(64) q(f32) kv(f32) params(%x: f64) {
}

// -----

// attn-C19
// expected-error @+1 {{'attn.kernel' op parameter 'mm' is expected to be i32, i64 or f32, got '!attn.ranges' (attn-C19)}}
attn.kernel @table_as_param heads(4) dim(64) q(f32) kv(f32) params(%mm: !attn.ranges) {
}

// -----

// attn-C19
// expected-error @+1 {{'attn.kernel' op table 'x' is expected to have a table type, got 'i32' (attn-C19)}}
attn.kernel @param_as_table heads(4) dim(64) q(f32) kv(f32) tables(%x: i32) {
}
