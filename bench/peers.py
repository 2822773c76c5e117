# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What our kernels are compared with: PyTorch's SDPA with cuDNN, and FlexAttention."""
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

# Options of FlexAttention that are faster than its own on an H200, besides which its own are timed:
# BLOCK_M, BLOCK_N, stages, warps, TMA.
FLEX_OPTIONS = {64: None, 128: (64, 64, 3, 4, True), 256: (128, 64, 2, 8, True)}


def cudnn(case, tensors):
    """A callable, or None where SDPA has no such mask or score."""
    if case.kind not in ("dense", "causal") or case.documents or case.cap or case.alibi:
        return None
    q, k, v = (x.transpose(1, 2) for x in tensors)

    def run():
        with sdpa_kernel([SDPBackend.CUDNN_ATTENTION]):
            o = F.scaled_dot_product_attention(q, k, v, is_causal=case.kind == "causal",
                                               enable_gqa=case.heads != case.kv_heads)
        return o.transpose(1, 2)

    return run


def flex(case, tensors, tuned):
    """A callable with options of FLEX_OPTIONS or with its own; None if there are none to choose."""
    options = FLEX_OPTIONS[case.dim] if tuned else None
    if tuned and not options:
        return None
    q, k, v = (x.transpose(1, 2).contiguous() for x in tensors)
    lo, hi = (x.int() for x in case.limits(q.device))
    slopes = case.slopes(q.device)
    block_mask = score_mod = None
    if case.kind == "causal" and not case.documents:
        block_mask = create_block_mask(lambda b, h, q, kv: q >= kv, None, None, case.tokens, case.tokens, q.device)
    elif case.kind == "window":
        width = case.window
        block_mask = create_block_mask(lambda b, h, q, kv: (q >= kv) & (q - kv < width), None, None, case.tokens,
                                       case.tokens, q.device)
    elif case.kind != "dense":
        # One interval a row: the fastest form of ranges and documents for it.
        block_mask = create_block_mask(lambda b, h, q, kv: (lo[q] <= kv) & (kv <= hi[q]), None, None, case.tokens,
                                       case.tokens, q.device)
    if case.cap:
        cap = case.cap
        score_mod = lambda s, b, h, q, kv: cap * torch.tanh(s / cap)  # noqa: E731
    elif case.alibi:
        score_mod = lambda s, b, h, q, kv: s + slopes[h] * (kv - q)  # noqa: E731
    arguments = dict(score_mod=score_mod, block_mask=block_mask, scale=case.scale(),
                     enable_gqa=case.heads != case.kv_heads)
    if options:
        m, n, stages, warps, tma = options
        arguments["kernel_options"] = dict(BLOCK_M=m, BLOCK_N=n, num_stages=stages, num_warps=warps,
                                           **({"USE_TMA": True} if tma else {}))
    compiled = torch.compile(flex_attention, dynamic=False)
    return lambda: compiled(q, k, v, **arguments).transpose(1, 2)
