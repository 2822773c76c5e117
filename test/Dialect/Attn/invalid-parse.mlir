// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: attn-opt %s -split-input-file -verify-diagnostics

// expected-error @+1 {{kernel lacks the clause 'heads'}}
attn.kernel @x dim(64) q(f32) kv(f32) {
}

// -----

// expected-error @+1 {{kernel lacks the clause 'dim'}}
attn.kernel @x heads(4) q(f32) kv(f32) {
}

// -----

// expected-error @+1 {{kernel lacks the clause 'q'}}
attn.kernel @x heads(4) dim(64) kv(f32) {
}

// -----

// expected-error @+1 {{kernel lacks the clause 'kv'}}
attn.kernel @x heads(4) dim(64) q(f32) {
}

// -----

// expected-error @+1 {{unknown clause 'page_size', expected one of heads, kv_heads, dim, dim_v, q, kv, scale, params, tables}}
attn.kernel @x heads(4) dim(64) page_size(16) q(f32) kv(f32) {
}

// -----

// expected-error @+1 {{clause 'heads' is repeated or out of order, expected the order heads, kv_heads, dim, dim_v, q, kv, scale, params, tables}}
attn.kernel @x heads(4) heads(4) dim(64) q(f32) kv(f32) {
}

// -----

// expected-error @+1 {{clause 'q' is repeated or out of order, expected the order heads, kv_heads, dim, dim_v, q, kv, scale, params, tables}}
attn.kernel @x heads(4) dim(64) kv(f32) q(f32) {
}

// -----

// expected-error @+1 {{a kernel takes no attribute dictionary}}
attn.kernel @x heads(4) dim(64) q(f32) kv(f32) attributes {fast} {
}

// -----

// expected-error @+1 {{integer value too large}}
attn.kernel @x heads(99999999999999999999) dim(64) q(f32) kv(f32) {
}

// -----

// expected-error @+1 {{expected integer value}}
attn.kernel @x heads(many) dim(64) q(f32) kv(f32) {
}

// -----

// expected-error @+1 {{unknown table dim 'row', expected one of b, token, k, slot, h, h_kv, bucket}}
attn.kernel @x heads(4) dim(64) q(f32) kv(f32) tables(%t: !attn.table<[b, row], i32>) {
}

// -----

attn.kernel @x heads(4) dim(64) q(f32) kv(f32) {
  // expected-error @+1 {{expected the arguments (%b, %h, %q, %k), got 3}}
  attn.mask (%b, %q, %k) {
    %m = attn.causal %q, %k
    attn.yield %m : i1
  }
}

// -----

attn.kernel @x heads(4) dim(64) q(f32) kv(f32) {
  // expected-error @+1 {{expected the arguments (%s, %b, %h, %q, %k), got 4}}
  attn.score (%b, %h, %q, %k) {
    attn.yield %b : f32
  }
}

// -----

attn.kernel @x heads(4) dim(64) q(f32) kv(f32) {
  // expected-error @+1 {{expected 'exact' or 'hull', got 'about'}}
  attn.bounds about (%b, %h, %q) {
    attn.yield %q, %q : index, index
  }
}

// -----

attn.kernel @x heads(4) dim(64) q(f32) kv(f32) {
  // expected-error @+1 {{expected a level request, head, row or column, got 'batch'}}
  %x = attn.per batch (%b) -> (index) {
    attn.yield %b : index
  }
}

// -----

attn.kernel @x heads(4) dim(64) q(f32) kv(f32) params(%n: i32) {
  attn.mask (%b, %h, %q, %k) {
    // expected-error @+1 {{expected an i32 value or an integer literal}}
    %m = attn.prefix %k, many
    attn.yield %m : i1
  }
}

// -----

attn.kernel @x heads(4) dim(64) q(f32) kv(f32) {
  attn.mask (%b, %h, %q, %k) {
    // expected-error @+1 {{integer literal does not fit i32}}
    %m = attn.window %q, %k left(4294967295)
    attn.yield %m : i1
  }
}

// -----

attn.kernel @x heads(4) dim(64) q(f32) kv(f32) {
  attn.mask (%b, %h, %q, %k) {
    // expected-error @+1 {{integer literal does not fit i32}}
    %m = attn.window %q, %k left(340282366920938463463374607431768211456)
    attn.yield %m : i1
  }
}

// -----

// expected-note @+1 {{prior use here}}
attn.kernel @x heads(4) dim(64) q(f32) kv(f32) params(%n: i64) {
  attn.mask (%b, %h, %q, %k) {
    // expected-error @+1 {{use of value '%n' expects different type than prior uses: 'i32' vs 'i64'}}
    %m = attn.window %q, %k left(%n)
    attn.yield %m : i1
  }
}

// -----

attn.kernel @x heads(4) dim(64) q(f32) kv(f32) tables(%mm: !attn.ranges) {
  attn.mask (%b, %h, %q, %k) {
    // expected-error @+1 {{expected a !attn.table type, got '!attn.ranges'}}
    %m = attn.load %mm[%b] : !attn.ranges
    attn.yield %m : i1
  }
}

// -----

attn.kernel @x heads(4) dim(64) q(f32) kv(f32) {
  attn.score (%s, %b, %h, %q, %k) {
    // expected-error @+1 {{expected attribute value}}
    %t = attn.soft_cap %s, much
    attn.yield %t : f32
  }
}

// -----

// expected-error @+1 {{'attn.mask' op expects parent op 'attn.kernel'}}
attn.mask (%b, %h, %q, %k) {
  %m = attn.causal %q, %k
  attn.yield %m : i1
}

// -----

// expected-note @+1 {{see existing symbol definition here}}
attn.kernel @x heads(4) dim(64) q(f32) kv(f32) {
}
// expected-error @+1 {{redefinition of symbol named 'x'}}
attn.kernel @x heads(4) dim(64) q(f32) kv(f32) {
}
