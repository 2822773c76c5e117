# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plugin for a harness that compares attention kernels: peers(case, t) gives the callable to time.

A case names its kind, sizes and mask; t holds q, k and v as [batch, tokens, heads, dim] in bf16.
"""
import os
import pathlib
import sys

import torch

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))  # the harness loads this file by its path

import attn_runtime  # noqa: E402
import specs  # noqa: E402

LIBRARY = os.environ.get("ATTN_RUNTIME_LIBRARY", str(HERE.parent / "build/lib/Runtime/libattn_runtime.so"))
ARTIFACTS = pathlib.Path(os.environ.get("ATTN_BENCH_ARTIFACTS", str(HERE / "artifacts")))
DRIVER = None  # the system's


def packed_strides(name, x):
    """Strides of a token and a head when the batch elements of x are taken as one run of tokens.

    Batch element b is request b, its tokens and keys start at row b * tokens: one kernel launch takes
    the whole batch as it lies, if a batch element starts where the one before ends.
    """
    batch, tokens = x.shape[:2]
    if x.stride(3) != 1 or (batch > 1 and x.stride(0) != tokens * x.stride(1)):
        raise ValueError(f"{name}: strides {x.stride()} of shape {tuple(x.shape)}, expected packed tokens")
    return x.stride(1), x.stride(2)


def kind_of(case):
    if case.cap:
        return f"{case.kind}_softcap{case.cap:g}"
    return case.kind + "_alibi" if case.alibi else case.kind


def inputs_of(case):
    """Parameters, ranges and tables of the case's batch."""
    params, ranges, tables = {}, None, {}
    if case.kind in ("window", "mm"):
        params["left"] = case.W - 1  # W counts the query itself
    if case.kind == "mm":
        ranges = [case.ranges] * case.B
    if case.alibi:
        tables["slopes"] = case.slopes.tolist()
    return params, ranges, tables


def peers(case, t):
    q, k, v = t
    kernel = (kind_of(case), case.H, case.HK, case.D)
    if kernel not in specs.KERNELS:
        raise ValueError(f"{case.name}: no spec for {kernel}")
    tokens = case.B * case.S
    # Sequences packed into one batch element are requests too.
    lengths = (case.lens or [case.S]) * case.B

    o = torch.empty(case.B, case.S, case.H, case.D, device=q.device, dtype=q.dtype)
    lse = torch.empty(case.H, tokens, device=q.device, dtype=torch.float32)
    args = attn_runtime.RunArgs(q=q.data_ptr(), k=k.data_ptr(), v=v.data_ptr(), o=o.data_ptr(), lse=lse.data_ptr(),
                                lse_head_stride=tokens)
    args.q_token_stride, args.q_head_stride = packed_strides("q", q)
    args.k_slot_stride, args.k_head_stride = packed_strides("k", k)
    args.v_slot_stride, args.v_head_stride = packed_strides("v", v)
    args.o_token_stride, args.o_head_stride = packed_strides("o", o)

    plan = attn_runtime.Plan(attn_runtime.Runtime(LIBRARY), ARTIFACTS / f"{specs.name_of(*kernel)}.attn",
                             max_reqs=len(lengths), max_tokens=tokens, ordinal=q.device.index or 0, driver=DRIVER)
    # Copies the work list; whatever stream runs later finds it there. Capture comes after.
    plan.prepare(lengths, *inputs_of(case), torch.cuda.current_stream().cuda_stream)
    torch.cuda.synchronize()

    def run():
        plan.run(args, torch.cuda.current_stream().cuda_stream)
        return o

    # The tensors whose addresses `args` holds live as long as the callable.
    run.tensors = (q, k, v, o, lse)
    return {"attn": run}
