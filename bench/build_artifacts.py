#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles the kernels of the benchmark cases into bench/artifacts."""
import argparse
import pathlib
import subprocess
import sys

import specs

HERE = pathlib.Path(__file__).resolve().parent


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compile", default=HERE.parent / "build/bin/attn-compile", metavar="ATTN-COMPILE")
    parser.add_argument("--target", default="sm_90a")
    parser.add_argument("--out", type=pathlib.Path, default=HERE / "artifacts")
    parser.add_argument("--match", default="", help="only kernels with this in their name")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    failed = 0
    for kernel in specs.KERNELS:
        name = specs.name_of(*kernel)
        if args.match not in name:
            continue
        artifact = args.out / f"{name}.attn"
        artifact.unlink(missing_ok=True)  # an old one must not stand in for one that fails
        done = subprocess.run([args.compile, "-", f"--target={args.target}", "-o", artifact],
                              input=specs.text_of(*kernel), text=True)
        failed += done.returncode != 0
        print(f"{name}: {artifact.stat().st_size} bytes" if artifact.exists() else f"{name}: failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
