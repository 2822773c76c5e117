#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How long an artifact takes from the file to the end of its first launch, in a process that has a CUDA context.

Prints milliseconds of three loads in a row of every kernel: reading and checking the artifact, loading its code on
the GPU (PTX alone is compiled by the driver, which keeps what it compiled), the plan of a step, one launch.
"""
import argparse
import pathlib
import sys
import time

import torch

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import attn_runtime  # noqa: E402
import cases  # noqa: E402
import ours  # noqa: E402

CASES = [
    cases.Case("d64-causal", 1, 256, 32, 32, 64, "causal"),
    cases.Case("d128-causal", 1, 256, 16, 16, 128, "causal"),
    cases.Case("d256-causal", 1, 256, 8, 8, 256, "causal"),
]


def first_launch(runtime, folder, case, tensors):
    torch.cuda.synchronize()
    start = time.perf_counter()
    ours.attention(runtime, folder, case, tensors)()
    torch.cuda.synchronize()
    return 1000 * (time.perf_counter() - start)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runtime", default=HERE.parent / "build/lib/Runtime/libattn_runtime.so")
    parser.add_argument("--artifacts", type=pathlib.Path, default=HERE / "artifacts")
    args = parser.parse_args()
    runtime = attn_runtime.Runtime(args.runtime)
    for dtype in (torch.bfloat16, torch.float32):
        torch.full((8,), float("nan"), device="cuda", dtype=dtype)  # PyTorch's own kernels load here, not below
    for case in CASES:
        tensors = case.tensors("cuda")
        times = [first_launch(runtime, args.artifacts, case, tensors) for _ in range(3)]
        print(f"{case.name}: " + ", ".join(f"{ms:.1f}" for ms in times) + " ms", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
