#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles the engine of docs/embedding.md as it stands there, runs it on the fake driver and checks its results.

usage: engine_example.py --cc=CC --include=DIR --library=FILE --fake=FILE --artifact-tool=FILE
"""

import argparse
import math
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LEFT, RANGE = 7, (4, 9)


def program():
    with open(os.path.join(ROOT, "docs", "embedding.md"), encoding="utf-8") as page:
        blocks = re.findall(r"^```c\n(.*?)^```$", page.read(), re.M | re.S)
    if len(blocks) != 1:
        sys.exit("engine_example.py: docs/embedding.md has %d blocks of C, expected one" % len(blocks))
    lines = blocks[0].count("\n")
    if lines > 60:
        sys.exit("engine_example.py: the engine has %d lines, expected at most 60" % lines)
    return blocks[0]


def seen(request, q):
    """Keys that a query keeps."""
    keys = set(range(max(0, q - LEFT), q + 1))
    if request == 0 and RANGE[0] <= q <= RANGE[1]:
        keys |= set(range(RANGE[0], RANGE[1] + 1))
    return len(keys)


def expected():
    """Queries and keys are 0, so the logarithm of the sum is that of the number of keys."""
    rows = {}
    for q in range(20):
        rows[0, q] = seen(0, q)
    for q in range(12):
        rows[0, 20 + q] = seen(1, q)
    for step in (1, 2):
        rows[step, 0] = seen(0, 19 + step)
        rows[step, 1] = seen(1, 11 + step)
    return {key: math.log(count) for key, count in rows.items()}


def main():
    parser = argparse.ArgumentParser()
    for name in ("cc", "include", "library", "fake", "artifact-tool"):
        parser.add_argument("--" + name, required=True)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        source, binary = os.path.join(folder, "engine.c"), os.path.join(folder, "engine")
        artifact = os.path.join(folder, "kernel.attn")
        with open(source, "w", encoding="utf-8") as file:
            file.write(program())
        stub = os.path.join(ROOT, "test", "Device", "Fake", "include")
        libraries = [os.path.dirname(args.library), os.path.dirname(args.fake)]
        subprocess.run(
            [args.cc, "-std=c11", "-Wall", "-Wextra", "-Werror", "-I" + args.include, "-I" + stub, source,
             args.library, args.fake, "-o", binary] + ["-Wl,-rpath," + d for d in libraries], check=True)
        subprocess.run([args.artifact_tool, artifact], check=True)
        # The library asks for the driver by this name.
        os.symlink(args.fake, os.path.join(folder, "libcuda.so.1"))
        environment = dict(os.environ, LD_LIBRARY_PATH=folder)
        done = subprocess.run([binary, artifact], env=environment, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, universal_newlines=True)
    if done.returncode != 0:
        sys.exit("engine_example.py: the engine failed\n" + done.stderr)
    got = {}
    for line in done.stdout.splitlines():
        step, token, lse = line.split()
        got[int(step), int(token)] = float(lse)
    want = expected()
    if got.keys() != want.keys():
        sys.exit("engine_example.py: rows %s, expected %s" % (sorted(got), sorted(want)))
    for key, lse in want.items():
        if abs(got[key] - lse) > 1e-4:
            sys.exit("engine_example.py: step %d token %d: lse %f, expected %f" % (*key, got[key], lse))
    print("%d rows of 3 steps" % len(got))


if __name__ == "__main__":
    main()
