#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random masks, those of random_masks.py, and the examples: every mask pass, and what targets emit for each
operation, is proved.

usage: random_rewrites.py --attn-opt=PATH [--count=N] [--seed=N]
"""

import argparse
import glob
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "Dialect", "Attn", "Transforms"))
import random_masks  # noqa: E402

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples")
LOWER = ("--pass-pipeline=builtin.module(attn.kernel(attn-tv-snapshot,attn-tv-expand-elements,"
         "attn-tv-check{strict report timeout=60}))")


def run(tool, kernels, *options):
    done = subprocess.run([tool, "-", "-o", os.devnull] + list(options), input="module {\n%s}\n" % "".join(kernels),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
    return done.returncode, done.stderr


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--attn-opt", required=True)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=2)
    args = parser.parse_args()
    kernels = [random_masks.make_kernel(args.seed, i) for i in range(args.count)]
    for path in sorted(glob.glob(os.path.join(EXAMPLES, "*.mlir"))):
        with open(path) as file:
            kernels.append(file.read())
    if len(kernels) < args.count + 10:
        sys.exit("error: examples are missing in " + EXAMPLES)
    code, said = run(args.attn_opt, kernels, "--attn-mask-passes", "--attn-verify-rewrites=strict",
                     "--solver-timeout=60")
    if code:
        sys.exit("error: a pass is not proved:\n" + said[:2000])
    code, said = run(args.attn_opt, kernels, LOWER)
    proved = said.count("remark: proved: the rewrite keeps the mask")
    if not any("attn.document %" in kernel for kernel in kernels):
        sys.exit("error: no mask has documents")
    if code or proved != len(kernels):
        sys.exit("error: %d of %d lowerings are proved:\n%s" % (proved, len(kernels), said[:2000]))
    print("%d masks through every pass, %d lowered" % (len(kernels), proved))
    return 0


if __name__ == "__main__":
    sys.exit(main())
