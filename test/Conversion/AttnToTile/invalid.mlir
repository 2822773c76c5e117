// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: attn-opt %s --convert-attn-to-tile --split-input-file --verify-diagnostics

// expected-error@+1 {{target 'sm_90a' takes q of type f16 or bf16, got 'f32'}}
attn.kernel @f32 heads(2) dim(64) q(f32) kv(f32) {
}

// -----

// expected-error@+1 {{target 'sm_90a' takes q and kv of one type, got 'f16' and 'bf16'}}
attn.kernel @mixed heads(2) dim(64) q(f16) kv(bf16) {
}

// -----

// expected-error@+1 {{target 'sm_90a' takes dim_v equal to dim, got 64 and 128}}
attn.kernel @dim_v heads(2) dim(128) dim_v(64) q(f16) kv(f16) {
}

// -----

// expected-error@+1 {{target 'sm_90a' has no kernel for dim 96, expected one of 64, 128, 256}}
attn.kernel @dim heads(2) dim(96) q(f16) kv(f16) {
}
