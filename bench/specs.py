# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Specs of the kernels that the benchmark cases need."""

CAUSAL = "    %m = attn.causal %q, %k\n"
# left: keys older than the query that are kept besides it.
WINDOW = """    %c = attn.causal %q, %k
    %w = attn.window %q, %k left(%left)
    %m = attn.and %c, %w
"""
MM_PREFIX = """    %c = attn.causal %q, %k
    %w = attn.window %q, %k left(%left)
    %cw = attn.and %c, %w
    %r = attn.mm_prefix %mm, %b, %q, %k
    %m = attn.or %cw, %r
"""
SOFT_CAP = "    %x = attn.soft_cap %s, 50.0\n"
ALIBI = """    %slope = attn.load %slopes[%h] : !attn.table<[h], f32>
    %x = attn.alibi %s, %q, %k, %slope
"""

# Kind: (lines of the mask or None, lines of the score or None, parameters, tables).
KINDS = {
    "dense": (None, None, "", ""),
    "causal": (CAUSAL, None, "", ""),
    "window": (WINDOW, None, "%left: i32", ""),
    "mm": (MM_PREFIX, None, "%left: i32", "%mm: !attn.ranges"),
    "causal_softcap50": (CAUSAL, SOFT_CAP, "", ""),
    "causal_alibi": (CAUSAL, ALIBI, "", "%slopes: !attn.table<[h], f32>"),
}

# (kind, query heads, key/value heads, dim); all bf16.
KERNELS = [
    *((kind, 2048 // dim, 2048 // dim, dim) for dim in (64, 128, 256) for kind in ("dense", "causal")),
    *((kind, 8, 4, 256) for kind in ("mm", "window", "causal")),
    ("causal", 16, 2, 128),
    *((kind, 2048 // dim, 2048 // dim, dim) for dim in (128, 256)
      for kind in ("window", "causal_softcap50", "causal_alibi")),
]


def name_of(kind, heads, kv_heads, dim):
    return f"{kind}_h{heads}_kv{kv_heads}_d{dim}"


def text_of(kind, heads, kv_heads, dim):
    mask, score, params, tables = KINDS[kind]
    lines = [f"attn.kernel @{name_of(kind, heads, kv_heads, dim)} heads({heads}) kv_heads({kv_heads}) "
             f"dim({dim}) q(bf16) kv(bf16)"]
    if params:
        lines.append(f"    params({params})")
    if tables:
        lines.append(f"    tables({tables})")
    text = "\n".join(lines) + " {\n"
    if mask:
        text += "  attn.mask (%b, %h, %q, %k) {\n" + mask + "    attn.yield %m : i1\n  }\n"
    if score:
        text += "  attn.score (%s, %b, %h, %q, %k) {\n" + score + "    attn.yield %x : f32\n  }\n"
    return text + "}\n"
