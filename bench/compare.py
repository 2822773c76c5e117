#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Our kernels beside cuDNN and FlexAttention, in one process, on the same tensors.

Every result is compared with float64 on some rows first. One JSON object a line and peer goes to --out; the
table at the end is what docs/performance.md holds.
"""
import argparse
import json
import math
import pathlib
import re
import sys

import torch

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import attn_runtime  # noqa: E402
import cases  # noqa: E402
import ours  # noqa: E402
import peers  # noqa: E402
import timing  # noqa: E402

ROWS = 384  # compared, of each of two heads
TOLERANCE = 5e-3  # ||O - reference|| / ||reference||; rounding to bf16 gives about 2e-3


def error_of(case, tensors, call):
    rows = torch.randperm(case.tokens, generator=torch.Generator().manual_seed(7))[:ROWS].to(tensors[0].device)
    out = call()
    torch.cuda.synchronize()
    difference = total = 0.0
    for b, h in {(0, 0), (case.batch - 1, case.heads - 1)}:
        reference = case.reference(tensors, b, h, rows)
        difference += (out[b, rows, h].double() - reference).square().sum().item()
        total += reference.square().sum().item()
    return math.sqrt(difference / total)


def calls_of(case, tensors, runtime, artifacts, with_flex):
    made = {}
    for name, folder in artifacts.items():
        made[name] = lambda folder=folder: ours.attention(runtime, folder, case, tensors)
    made["cudnn"] = lambda: peers.cudnn(case, tensors)
    if with_flex:
        made["flex"] = lambda: peers.flex(case, tensors, tuned=False)
        made["flex-tuned"] = lambda: peers.flex(case, tensors, tuned=True)
    return made


def run_case(case, runtime, artifacts, with_flex, out):
    torch._dynamo.reset()
    tensors = case.tensors("cuda")
    calls, errors = {}, {}
    for name, make in calls_of(case, tensors, runtime, artifacts, with_flex).items():
        try:
            call = make()
            if call is None:
                continue
            errors[name] = error_of(case, tensors, call)
            if not errors[name] <= TOLERANCE:
                raise RuntimeError(f"error {errors[name]:.2e}, expected at most {TOLERANCE:.0e}")
            calls[name] = call
        except Exception as error:  # the others are still worth timing
            print(f"{case.name}: {name}: {str(error)[:300]}", flush=True)
    rows = {}
    for name, times in timing.measure(calls).items():
        row = {"case": case.name, "peer": name, "error": float(f"{errors[name]:.2e}")}
        for regime, values in times.items():
            row[regime] = timing.summary(values)
            row[regime]["tflops"] = round(case.flops() / row[regime]["ms"] / 1e9, 1)
        rows[name] = row
        out.write(json.dumps(row) + "\n")
    out.flush()
    return rows


def table(results, names):
    """Markdown; ratios are a peer's time over ours."""
    lines = []
    for regime in timing.REGIMES:
        lines += ["", f"### {regime.capitalize()}", "",
                  "| case | " + " | ".join(f"{n} ms / TFLOP/s" for n in names) + " | ratio |",
                  "| --- |" + " --- |" * (len(names) + 1)]
        for case, rows in results.items():
            cells = [f"{rows[n][regime]['ms']:.3f} / {rows[n][regime]['tflops']:.0f}" if n in rows else "-"
                     for n in names]
            others = [rows[n][regime]["ms"] for n in rows if not n.startswith("attn")]
            own = [rows[n][regime]["ms"] for n in rows if n.startswith("attn")]
            ratios = ", ".join(f"{min(others) / ms:.3f}" for ms in own) if others else "-"
            lines.append(f"| {case} | " + " | ".join(cells) + f" | {ratios} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runtime", default=HERE.parent / "build/lib/Runtime/libattn_runtime.so")
    parser.add_argument("--artifacts", action="append", metavar="[NAME=]FOLDER",
                        help="ours; several are timed beside each other (default: bench/artifacts)")
    parser.add_argument("--match", default="", help="only cases whose name this regular expression finds")
    parser.add_argument("--no-flex", action="store_true", help="without FlexAttention, which compiles for a while")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("compare.jsonl"))
    args = parser.parse_args()
    artifacts = {}
    for item in args.artifacts or [str(HERE / "artifacts")]:
        name, _, folder = item.rpartition("=")
        artifacts[f"attn-{name}" if name else "attn"] = pathlib.Path(folder)
    runtime = attn_runtime.Runtime(args.runtime)
    results = {}
    with args.out.open("w") as out:
        for case in cases.all_cases():
            if re.search(args.match, case.name):
                results[case.name] = run_case(case, runtime, artifacts, not args.no_flex, out)
                print(case.name, {n: (r["burst"]["ms"], r["sustained"]["ms"]) for n, r in results[case.name].items()},
                      flush=True)
    print(table(results, [*artifacts, "cudnn", *([] if args.no_flex else ["flex", "flex-tuned"])]))
    lost = [name for name, rows in results.items() if not set(artifacts) <= set(rows)]
    if lost:
        sys.exit("error: wrong, or not timed: " + ", ".join(lost))


if __name__ == "__main__":
    main()
