// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_TRANSFORMS_PASSES_TD
#define ATTN_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def RaiseMasksPass : Pass<"attn-raise-masks", "::attn::KernelOp"> {
  let summary = "Raise hand-written predicates and range scans to named mask operations";
  let description = [{
    Turns `arith` comparisons of q and k into `attn.causal`, `attn.window`, `attn.prefix` or
    `attn.in_rows`, i1 `arith` logic into `attn.and` / `or` / `not`, and an `scf.for` over the live
    ranges of a `!attn.ranges` that or-s "the range holds q and k" into `attn.mm_prefix`.

    Needs: any kernel. Promises: the same mask for every batch. Refuses, with a remark: a scan that
    is not of that form, comparisons whose arithmetic may wrap or whose other side depends on k.

    Before: `%m = arith.cmpi sle, %k, %q : index`
    After: `%m = attn.causal %q, %k`
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def SimplifyMaskPass : Pass<"attn-simplify-mask", "::attn::KernelOp"> {
  let summary = "Simplify the boolean algebra of masks";
  let description = [{
    Constants, idempotence, complements, absorption, double negation and common operands of
    `attn.and` / `or` / `not`; equal windows and causal bounds under `and`; `mm_prefix and window
    left(L)` becomes `mm_prefix clamp(L)`.

    Needs: any kernel. Promises: the same mask for every batch, never more operations.

    Before: `%m = attn.or %a, %ab` with `%ab = attn.and %a, %b`
    After: `%a`
  }];
}

def RangeScanToTablePass : Pass<"attn-range-scan-to-table", "::attn::KernelOp"> {
  let summary = "Turn range scans and document tests into per-query table lookups";
  let description = [{
    For a fixed q the union of the ranges that hold q is one interval, so `attn.mm_prefix` is an
    `attn.in_rows` over one row of a table that the runtime builds; the same holds for documents.
    Adds a `!attn.query_ranges` table to the kernel (one per source).

    Needs: any kernel; best after attn-raise-masks. Promises: the same mask for every batch,
    overlapping ranges included.

    Before: `%m = attn.mm_prefix %mm, %b, %q, %k`
    After: `%lo, %hi = attn.row_range %mm_rows, %q` and `%m = attn.in_rows %k, %lo, %hi`
  }];
}

def FuseIntervalsPass : Pass<"attn-fuse-intervals", "::attn::KernelOp"> {
  let summary = "Fuse a mask into at most two intervals of keys per row";
  let description = [{
    Computes the kept keys of a row symbolically and, when at most two runs describe them, replaces
    the mask by `attn.in_rows` of row-invariant bounds (two are joined by `attn.or`).

    Needs: any kernel; best after attn-range-scan-to-table. Promises: the same mask for every batch;
    nothing is changed when refused. Refuses, with a remark: a mask part that is no interval in k,
    or more than two runs.

    Before: `(causal and window left(L)) or in_rows(row)`
    After: `in_rows [min(q - L, lo), max(q + 1, hi))`
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def HoistInvariantsPass : Pass<"attn-hoist-invariants", "::attn::KernelOp"> {
  let summary = "Hoist loads and arithmetic to the outermost level their dependence set allows";
  let description = [{
    Moves pure operations of mask and score regions into the kernel body or an `attn.per` of level
    request, head, row or column, by the set of {b, h, q, k} they depend on.

    Needs: any kernel. Promises: every value is the same; operations that depend on all of q and k
    or on the score stay, and so do mask operations that depend on k.

    Before: `%lo = arith.subi %q, %left : index` inside `attn.mask`
    After: the same inside `attn.per row`
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def InferTileBoundsPass : Pass<"attn-infer-tile-bounds", "::attn::KernelOp"> {
  let summary = "Add the bounds of the keys that a row visits";
  let description = [{
    Adds `attn.bounds`: `exact` when the row's keys are one interval, else the hull of what the
    analysis can bound.

    Needs: a kernel without `attn.bounds` (one that has it is left alone). Promises: no kept key lies
    outside the bounds; with `exact` every key inside is kept.

    Before: a mask `attn.in_rows %k, %lo, %hi`
    After: the same, and `attn.bounds exact (%b, %h, %q) { attn.yield %lo, %hi : index, index }`
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

#endif // ATTN_TRANSFORMS_PASSES_TD
