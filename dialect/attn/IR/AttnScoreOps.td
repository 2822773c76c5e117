// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_SCOREOPS_TD
#define ATTN_SCOREOPS_TD

include "AttnBase.td"
include "AttnInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Attn_ScoreDocGroup : OpDocGroup {
  let summary = "Score operations";
  let description = "Operations on the scaled score, run before the mask.";
}

class Attn_ScoreModOp<string mnemonic, list<Trait> traits = []>
    : Op<Attn_Dialect, mnemonic,
         !listconcat([Pure, DeclareOpInterfaceMethods<ElementOpInterface>], traits)> {
  let opDocGroup = Attn_ScoreDocGroup;
}

def Attn_SoftCapOp : Attn_ScoreModOp<"soft_cap"> {
  let summary = "Bounds the score smoothly: cap * tanh(s / cap).";
  let description = [{
    `cap` is an f32 literal or value. Runs before the mask, so it never turns -inf into -cap.

    Precondition: a literal cap is finite and > 0 (attn-C6).

    Example: `%t = attn.soft_cap %s, 50.0`
  }];
  let arguments = (ins F32:$s, Optional<F32>:$cap, OptionalAttr<F32Attr>:$cap_literal);
  let results = (outs F32:$result);
  let assemblyFormat = "$s `,` custom<FloatBound>($cap, $cap_literal) attr-dict";
  let hasVerifier = 1;
}

def Attn_AlibiOp : Attn_ScoreModOp<"alibi"> {
  let summary = "Adds the linear distance bias: s - slope * |q - k|.";
  let description = [{
    `slope` is the head's slope, usually loaded from a table over `h`, so that ranks of a tensor
    parallel model pass their own slopes as data.

    Precondition: `q`, `k` are the region's arguments (attn-C1).

    Example: `%t = attn.alibi %s, %q, %k, %slope`
  }];
  let arguments = (ins F32:$s, Index:$q, Index:$k, F32:$slope);
  let results = (outs F32:$result);
  let assemblyFormat = "$s `,` $q `,` $k `,` $slope attr-dict";
  let hasVerifier = 1;
}

#endif // ATTN_SCOREOPS_TD
