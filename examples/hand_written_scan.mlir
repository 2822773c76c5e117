// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The mask of mm_prefix.mlir as kernels write it by hand: comparisons on the indices and, for
// every (q, k), a loop over the ranges of the request. The window is compiled in. attn-raise-masks
// recognises all of it, so it costs what the declarative form costs.
attn.kernel @hand_written_scan heads(4) kv_heads(2) dim(64) q(bf16) kv(bf16)
    tables(%mm: !attn.ranges) {
  attn.mask (%b, %h, %q, %k) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %radius = arith.constant 2 : index
    %none = arith.constant false

    %causal = arith.cmpi sle, %k, %q : index
    %age = arith.subi %q, %k : index
    %near = arith.cmpi sle, %age, %radius : index
    %text = arith.andi %causal, %near : i1

    %n = attn.num_ranges %mm[%b]
    %image = scf.for %r = %c0 to %n step %c1 iter_args(%found = %none) -> (i1) {
      %start, %end = attn.range %mm[%b, %r]
      %q_from = arith.cmpi sle, %start, %q : index
      %q_to = arith.cmpi sle, %q, %end : index
      %q_in = arith.andi %q_from, %q_to : i1
      %k_from = arith.cmpi sle, %start, %k : index
      %k_to = arith.cmpi sle, %k, %end : index
      %k_in = arith.andi %k_from, %k_to : i1
      %both = arith.andi %q_in, %k_in : i1
      %next = arith.ori %found, %both : i1
      scf.yield %next : i1
    }

    %m = arith.ori %text, %image : i1
    attn.yield %m : i1
  }
}
