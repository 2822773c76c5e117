# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Our kernels on a case, through the C API."""
import torch

import attn_runtime
import specs


def kernel_of(case):
    kind = case.kind
    if case.cap:
        kind += f"_softcap{case.cap:g}"
    if case.alibi:
        kind += "_alibi"
    return kind, case.heads, case.kv_heads, case.dim


def batch_of(case):
    """Parameters, ranges and tables."""
    params = {"left": case.window - 1} if case.window else {}
    ranges = [case.ranges] * case.batch if case.kind == "mm" else None
    tables = {"slopes": case.slopes("cpu").tolist()} if case.alibi else {}
    return params, ranges, tables


def in_pages(case, x):
    """K or V [batch, tokens, heads, dim] as shuffled pages [pages, slots, heads, dim], and their table."""
    pages = x.reshape(-1, case.page, *x.shape[2:])
    order = torch.randperm(len(pages), generator=torch.Generator().manual_seed(5)).to(x.device)
    shuffled = torch.empty_like(pages)
    shuffled[order] = pages
    return shuffled, order.int().reshape(case.batch, -1).contiguous()


def attention(runtime, artifacts, case, tensors):
    """A callable that enqueues the kernel on the current stream and gives O as [batch, tokens, heads, dim]."""
    q, k, v = tensors
    tokens = case.batch * case.tokens
    lengths = (case.documents or [case.tokens]) * case.batch
    o = torch.full_like(q, float("nan"))
    lse = torch.full((case.heads, tokens), float("nan"), device=q.device, dtype=torch.float32)
    args = attn_runtime.RunArgs(q=q.data_ptr(), o=o.data_ptr(), lse=lse.data_ptr(), lse_head_stride=tokens)
    args.q_token_stride, args.q_head_stride = q.stride(1), q.stride(2)
    args.o_token_stride, args.o_head_stride = o.stride(1), o.stride(2)
    table = None
    if case.page:
        k, table = in_pages(case, k)
        v, _ = in_pages(case, v)
        args.k_page_stride, args.v_page_stride = k.stride(0), v.stride(0)
        args.device_block_table, args.device_block_table_stride = table.data_ptr(), table.stride(0)
    args.k, args.v = k.data_ptr(), v.data_ptr()
    args.k_slot_stride, args.k_head_stride = k.stride(1), k.stride(2)
    args.v_slot_stride, args.v_head_stride = v.stride(1), v.stride(2)

    path = artifacts / f"{specs.name_of(*kernel_of(case))}.attn"
    plan = attn_runtime.Plan(runtime, path, max_reqs=len(lengths), max_tokens=tokens, ordinal=q.device.index or 0)
    plan.prepare(lengths, *batch_of(case), torch.cuda.current_stream().cuda_stream, page=case.page,
                 table=table.cpu() if case.page else None)
    torch.cuda.synchronize()

    def run():
        plan.run(args, torch.cuda.current_stream().cuda_stream)
        return o

    run.keep = (q, k, v, o, lse, table)  # their addresses are in args
    return run
