// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_MASKOPS_TD
#define ATTN_MASKOPS_TD

include "AttnBase.td"
include "AttnInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Attn_MaskDocGroup : OpDocGroup {
  let summary = "Mask operations";
  let description = "Operations whose i1 result says whether query q of request b keeps key k.";
}

class Attn_PredicateOp<string mnemonic, list<Trait> traits = []>
    : Op<Attn_Dialect, mnemonic, !listconcat([Pure,
        DeclareOpInterfaceMethods<ElementOpInterface>,
        DeclareOpInterfaceMethods<MaskOpInterface>], traits)> {
  let opDocGroup = Attn_MaskDocGroup;
}

def Attn_CausalOp : Attn_PredicateOp<"causal"> {
  let summary = "Keeps the query's own key and every older one: k <= q.";
  let description = [{
    Positions are absolute, so with query_len != seq_len the triangle is anchored at the bottom
    right; with more queries than keys the early rows are empty.

    Precondition: `q` and `k` are the region's arguments (attn-C1).

    Example: `%m = attn.causal %q, %k`
  }];
  let arguments = (ins Index:$q, Index:$k);
  let results = (outs I1:$result);
  let assemblyFormat = "$q `,` $k attr-dict";
  let hasVerifier = 1;
}

def Attn_WindowOp : Attn_PredicateOp<"window", [AttrSizedOperandSegments]> {
  let summary = "Keeps keys within a radius: q - k <= left and k - q <= right.";
  let description = [{
    Radii count the keys besides self; an absent side is unbounded, radius 0 is a bound. Each side is
    an i32 literal or value. Computed in exact integers: a huge radius keeps everything.

    Preconditions: `q`, `k` are the region's arguments (attn-C1); a side is given (attn-C2); literals
    are >= 0 (attn-C3).

    Example: `%m = attn.window %q, %k left(1023) right(%ahead)`
  }];
  let arguments = (ins Index:$q, Index:$k, Optional<I32>:$left, Optional<I32>:$right,
                       OptionalAttr<I32Attr>:$left_literal, OptionalAttr<I32Attr>:$right_literal);
  let results = (outs I1:$result);
  let assemblyFormat = [{
    $q `,` $k (`left` `(` custom<Bound>($left, $left_literal)^ `)`)?
    (`right` `(` custom<Bound>($right, $right_literal)^ `)`)? attr-dict
  }];
  let hasVerifier = 1;
  let hasCanonicalizer = 1;
}

def Attn_SlidingOp : Attn_PredicateOp<"sliding"> {
  let summary = "Keeps the last `count` keys, self included, and every newer one: q - k < count.";
  let description = [{
    The count convention of sliding windows. `count` = left + 1 in terms of `attn.window`, to which
    literals are canonicalized. Newer keys are cut by `attn.causal`, as everywhere.

    Preconditions: `q`, `k` are the region's arguments (attn-C1); a literal count is >= 1 (attn-C4).

    Example: `%m = attn.sliding %q, %k count(1024)`
  }];
  let arguments = (ins Index:$q, Index:$k, Optional<I32>:$count,
                       OptionalAttr<I32Attr>:$count_literal);
  let results = (outs I1:$result);
  let assemblyFormat = [{
    $q `,` $k `count` `(` custom<Bound>($count, $count_literal) `)` attr-dict
  }];
  let hasVerifier = 1;
  let hasCanonicalizer = 1;
}

def Attn_MmPrefixOp : Attn_PredicateOp<"mm_prefix",
    [DeclareOpInterfaceMethods<RowLookupOpInterface>]> {
  let summary = "Keeps the keys of every live range that holds q: bidirectional blocks.";
  let description = [{
    For a fixed q the union of all ranges that hold q is one interval, so overlapping ranges need no
    promise. With `clamp(L)` only keys with q - k <= L stay, on the past side only; future keys of
    the range stay visible.

    Preconditions: `b`, `q`, `k` are the region's arguments (attn-C1); a literal clamp is >= 0
    (attn-C3).

    Example: `%m = attn.mm_prefix %mm, %b, %q, %k clamp(%left)`
  }];
  let arguments = (ins Attn_Ranges:$ranges, Index:$b, Index:$q, Index:$k, Optional<I32>:$clamp,
                       OptionalAttr<I32Attr>:$clamp_literal);
  let results = (outs I1:$result);
  let assemblyFormat = [{
    $ranges `,` $b `,` $q `,` $k (`clamp` `(` custom<Bound>($clamp, $clamp_literal)^ `)`)? attr-dict
  }];
  let hasVerifier = 1;
}

def Attn_PrefixOp : Attn_PredicateOp<"prefix"> {
  let summary = "Keeps the first n keys: k < n.";
  let description = [{
    `n` is an i32 literal or value, for example one table element per request.

    Precondition: `k` is the region's argument (attn-C1).

    Example: `%m = attn.prefix %k, %n`
  }];
  let arguments = (ins Index:$k, Optional<I32>:$n, OptionalAttr<I32Attr>:$n_literal);
  let results = (outs I1:$result);
  let assemblyFormat = "$k `,` custom<Bound>($n, $n_literal) attr-dict";
  let hasVerifier = 1;
}

def Attn_DocumentOp : Attn_PredicateOp<"document",
    [DeclareOpInterfaceMethods<RowLookupOpInterface>]> {
  let summary = "Keeps the keys of the query's own document.";
  let description = [{
    Ids are contiguous by the contract of `!attn.documents`, so a row is one interval. A q outside
    the table belongs to no document and keeps nothing.

    Precondition: `b`, `q`, `k` are the region's arguments (attn-C1).

    Example: `%m = attn.document %doc, %b, %q, %k`
  }];
  let arguments = (ins Attn_Documents:$documents, Index:$b, Index:$q, Index:$k);
  let results = (outs I1:$result);
  let assemblyFormat = "$documents `,` $b `,` $q `,` $k attr-dict";
  let hasVerifier = 1;
}

def Attn_GlobalOp : Attn_PredicateOp<"global"> {
  let summary = "Global tokens: the first n keys are kept by all, the first n queries keep all.";
  let description = [{
    `k < n or q < n`, with `n` an i32 literal or value.

    Precondition: `q`, `k` are the region's arguments (attn-C1).

    Example: `%m = attn.global %q, %k, 4`
  }];
  let arguments = (ins Index:$q, Index:$k, Optional<I32>:$n, OptionalAttr<I32Attr>:$n_literal);
  let results = (outs I1:$result);
  let assemblyFormat = "$q `,` $k `,` custom<Bound>($n, $n_literal) attr-dict";
  let hasVerifier = 1;
}

def Attn_InRowsOp : Attn_PredicateOp<"in_rows"> {
  let summary = "Keeps the keys of one half-open interval: lo <= k < hi.";
  let description = [{
    The form that fused masks take; `lo` and `hi` do not depend on k.

    Preconditions: `k` is the region's argument (attn-C1); `lo`, `hi` do not depend on it (attn-C5).

    Example: `%m = attn.in_rows %k, %lo, %hi`
  }];
  let arguments = (ins Index:$k, Index:$lo, Index:$hi);
  let results = (outs I1:$result);
  let assemblyFormat = "$k `,` $lo `,` $hi attr-dict";
  let hasVerifier = 1;
}

class Attn_BoolOp<string mnemonic> : Attn_PredicateOp<mnemonic, [Commutative]> {
  let arguments = (ins I1:$lhs, I1:$rhs);
  let results = (outs I1:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict";
  let hasFolder = 1;
}

def Attn_AndOp : Attn_BoolOp<"and"> {
  let summary = "Keeps what both masks keep.";
  let description = [{
    Operands are any i1 values of the region.

    Example: `%m = attn.and %a, %b`
  }];
}

def Attn_OrOp : Attn_BoolOp<"or"> {
  let summary = "Keeps what either mask keeps.";
  let description = [{
    Operands are any i1 values of the region.

    Example: `%m = attn.or %a, %b`
  }];
}

def Attn_NotOp : Attn_PredicateOp<"not"> {
  let summary = "Keeps what the mask drops.";
  let description = [{
    The operand is any i1 value of the region.

    Example: `%m = attn.not %a`
  }];
  let arguments = (ins I1:$input);
  let results = (outs I1:$result);
  let assemblyFormat = "$input attr-dict";
  let hasFolder = 1;
}

#endif // ATTN_MASKOPS_TD
