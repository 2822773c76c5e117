// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Several documents packed into one request: causal inside each, nothing across. The table holds
// the document id of every key position; ids of one document are contiguous.
attn.kernel @document_packing heads(4) kv_heads(2) dim(64) q(bf16) kv(bf16)
    tables(%doc: !attn.documents) {
  attn.mask (%b, %h, %q, %k) {
    %c = attn.causal %q, %k
    %d = attn.document %doc, %b, %q, %k
    %m = attn.and %c, %d
    attn.yield %m : i1
  }
}
