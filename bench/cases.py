# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Benchmark cases: shapes, masks and scores, with their reference in float64."""
import dataclasses
import json
import math
import pathlib

import torch

SEQUENCES = ((1, 16384), (4, 4096), (16, 1024))
VIDEO = pathlib.Path(__file__).resolve().parent.parent / "examples/gemma4_video.json"
DOCUMENTS = [4096, 2048, 3072, 1024, 512, 5120, 256, 256]


@dataclasses.dataclass
class Case:
    name: str
    batch: int
    tokens: int
    heads: int
    kv_heads: int
    dim: int
    kind: str  # dense, causal, window (causal too), mm (window or ranges)
    window: int = 0  # keys a row keeps, the query's own included
    ranges: list = None  # inclusive pairs
    documents: list = None  # lengths of sequences packed into the batch element
    cap: float = 0.0
    alibi: bool = False
    page: int = 0  # K and V in pages of that many slots

    def limits(self, device):
        """First and last key of each row of one batch element, int64."""
        q = torch.arange(self.tokens, device=device)
        lo, hi = torch.zeros_like(q), q.clone()
        if self.kind == "dense":
            hi = torch.full_like(q, self.tokens - 1)
        if self.window:
            lo = (q - self.window + 1).clamp(min=0)
        for first, last in self.ranges or ():
            lo[first:last + 1] = lo[first:last + 1].clamp(max=first)
            hi[first:last + 1] = last
        start = 0
        for length in self.documents or ():
            lo[start:start + length] = lo[start:start + length].clamp(min=start)
            start += length
        return lo, hi

    def pairs(self):
        lo, hi = self.limits("cpu")
        if self.kind == "causal" and not self.documents:
            return self.tokens**2 / 2  # by convention, no credit for the diagonal
        if self.documents:
            return sum(length**2 for length in self.documents) / 2
        return int((hi - lo + 1).sum())

    def flops(self):
        return 4.0 * self.batch * self.heads * self.dim * self.pairs()

    def scale(self):
        return 1 / math.sqrt(self.dim)

    def slopes(self, device):
        return torch.exp2(-8.0 * torch.arange(1, self.heads + 1, device=device) / self.heads).float()

    def tensors(self, device):
        """q, k, v as [batch, tokens, heads, dim]."""
        generator = torch.Generator(device=device).manual_seed(1234)

        def random(heads):
            shape = (self.batch, self.tokens, heads, self.dim)
            return torch.randn(shape, device=device, dtype=torch.bfloat16, generator=generator)

        return random(self.heads), random(self.kv_heads), random(self.kv_heads)

    def reference(self, tensors, b, h, rows):
        """O of some rows of one head in float64."""
        q, k, v = tensors
        kv = h // (self.heads // self.kv_heads)
        keys, values = k[b, :, kv].double(), v[b, :, kv].double()
        scores = q[b, rows, h].double() @ keys.T * self.scale()
        if self.cap:
            scores = self.cap * torch.tanh(scores / self.cap)
        position = torch.arange(self.tokens, device=q.device)
        if self.alibi:
            scores = scores + self.slopes(q.device)[h].double() * (position[None] - rows[:, None])
        lo, hi = self.limits(q.device)
        hidden = (position[None] < lo[rows, None]) | (position[None] > hi[rows, None])
        return torch.softmax(scores.masked_fill(hidden, -math.inf), -1) @ values


def all_cases():
    cases = [Case(f"d{dim}-{kind}-{batch}x{tokens}", batch, tokens, 2048 // dim, 2048 // dim, dim, kind)
             for dim in (64, 128, 256) for kind in ("dense", "causal") for batch, tokens in SEQUENCES]
    long, video = 16384, 64 * 264
    ranges = [(264 * i, 264 * i + 255) for i in range(64)]
    prompt = json.loads(VIDEO.read_text())["requests"][0]
    cases += [
        Case("gemma-d256-causal-16384", 1, long, 8, 4, 256, "causal"),
        Case("gemma-d256-window-16896", 1, video, 8, 4, 256, "window", window=1024),
        Case("gemma-d256-ranges-16896", 1, video, 8, 4, 256, "mm", window=1024, ranges=ranges),
        Case("gemma-d256-noranges-16896", 1, video, 8, 4, 256, "mm", window=1024, ranges=[]),
        Case("gemma-d256-video-14570", 1, prompt["seq_len"], 8, 4, 256, "mm", window=1024, ranges=prompt["mm_ranges"]),
        Case("gqa-d128-causal-16384", 1, long, 16, 2, 128, "causal"),
        Case("d128-window-16384", 1, long, 16, 16, 128, "window", window=1024),
        Case("d128-documents-16384", 1, long, 16, 16, 128, "causal", documents=DOCUMENTS),
        Case("d128-pages16-16384", 1, long, 16, 16, 128, "causal", page=16),
    ]
    for dim in (128, 256):
        heads = 2048 // dim
        cases.append(Case(f"d{dim}-softcap-16384", 1, long, heads, heads, dim, "causal", cap=50.0))
        cases.append(Case(f"d{dim}-alibi-16384", 1, long, heads, heads, dim, "causal", alibi=True))
    return cases
