#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scalar operations at their edges: every kernel computes what the reference says, with and without the
mask passes, and the passes keep the number of kept pairs. usage: edge_semantics.py --bin DIR"""

import argparse
import os
import re
import subprocess
import sys
import tempfile

BATCH = '{"requests": [{"query_len": 6, "seq_len": 8}, {"query_len": 4, "seq_len": 2}]}'
KERNEL = "attn.kernel @f heads(2) dim(4) q(f32) kv(f32) {\n%s}\n"
MASK = "attn.mask (%%b, %%h, %%q, %%k) {\n%s\nattn.yield %%m : i1\n}\n"
SCORE = "attn.score (%%s, %%b, %%h, %%q, %%k) {\n%s\nattn.yield %%r : f32\n}\n"
CAUSAL = MASK % "%m = attn.causal %q, %k"

# A product over a factor that may be 0: dropping both would assume that it is not.
QUOTIENT = """%%three = arith.constant 3 : index
%%d = arith.subi %%k, %%three : index
%%p = arith.muli %%q, %%d %s : index
%%x = arith.%s %%p, %%d : index
%%m = arith.cmpi sgt, %%x, %%k : index"""
# 0 * inf is NaN whatever the flags say.
PRODUCT = """%%zero = arith.constant 0.0 : f32
%%inf = arith.constant 0x7F800000 : f32
%%i = arith.index_cast %%q : index to i32
%%f = arith.sitofp %%i : i32 to f32
%%g = arith.mulf %%f, %%inf : f32
%%x = arith.mulf %%g, %%zero %s : f32
%%m = arith.cmpf oeq, %%x, %%zero : f32"""
# Three iterations over more than half of all integers.
LOOP = """%t = arith.constant true
%lo = arith.constant -9223372036854775808 : index
%hi = arith.constant 9223372036854775807 : index
%m = scf.for %i = %lo to %hi step %hi iter_args(%a = %t) -> (i1) {
  %n = attn.not %a
  scf.yield %n : i1
}"""
BAD_STEP = """%t = arith.constant true
%lo = arith.constant 0 : index
%hi = arith.constant 5 : index
%step = arith.subi %k, %q : index
%m = scf.for %i = %lo to %hi step %step iter_args(%a = %t) -> (i1) {
  %n = attn.not %a
  scf.yield %n : i1
}"""
SHIFT = """%%x = arith.%s %%q, %%k : index
%%eight = arith.constant 8 : index
%%far = arith.muli %%k, %%eight : index
%%y = arith.%s %%x, %%far : index
%%zero = arith.constant 0 : index
%%m = arith.cmpi eq, %%y, %%zero : index"""
CONSTANT_WINDOW = """%three = arith.constant 3 : i32
%w = attn.window %q, %k left(%three)
%c = attn.causal %q, %k
%m = attn.and %c, %w"""

CASES = {
    "quotient": MASK % (QUOTIENT % ("", "divsi")),
    "quotient-nsw": MASK % (QUOTIENT % ("overflow<nsw>", "divsi")),
    "quotient-nuw": MASK % (QUOTIENT % ("overflow<nuw>", "divui")),
    "floor": MASK % (QUOTIENT % ("overflow<nsw>", "floordivsi")),
    "ceil": MASK % (QUOTIENT % ("overflow<nsw>", "ceildivsi")),
    "rest": MASK % (QUOTIENT % ("overflow<nsw>", "remsi")),
    "product": MASK % (PRODUCT % ""),
    "product-fast": MASK % (PRODUCT % "fastmath<nnan,nsz,ninf>"),
    "long-loop": MASK % LOOP,
    "loop-step-below-1": MASK % BAD_STEP,
    "shift-left": MASK % (SHIFT % ("shli", "shli")),
    "shift-right": MASK % (SHIFT % ("shli", "shrsi")),
    "shift-right-unsigned": MASK % (SHIFT % ("shrsi", "shrui")),
    "constant-window": MASK % CONSTANT_WINDOW,
    "score-rsqrt": CAUSAL + SCORE % "%x = math.absf %s : f32\n%r = math.rsqrt %x : f32",
    "score-inf": CAUSAL + SCORE % "%r = arith.constant 0x7F800000 : f32",
    "score-minus-inf": CAUSAL + SCORE % "%r = arith.constant 0xFF800000 : f32",
    "score-nan": CAUSAL + SCORE % "%r = arith.constant 0x7FC00000 : f32",
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    bin_dir = os.path.abspath(parser.parse_args().bin)
    failures = []
    with tempfile.TemporaryDirectory() as work:
        def run(*command):
            return subprocess.run([os.path.join(bin_dir, command[0])] + list(command[1:]), cwd=work,
                                  capture_output=True, text=True, timeout=60)

        def write(name, text):
            with open(os.path.join(work, name), "w") as f:
                f.write(text)

        def kept(name, spec):
            shown = run("attn-mask", spec, "--batch", "b.json")
            if shown.returncode:
                failures.append("%s: attn-mask: %s" % (name, shown.stderr))
            return re.findall(r"(\d+) of \d+ pairs kept", shown.stdout)

        write("b.json", BATCH)
        for name, body in CASES.items():
            write("f.mlir", KERNEL % body)
            for flags in ([], ["--no-mask-passes"], ["-O0"]):
                made = run("attn-compile", "f.mlir", "-o", "f.attn", *flags)
                ran = made if made.returncode else run("attn-run", "f.attn", "--batch", "b.json", "--check")
                if ran.returncode:
                    failures.append("%s %s: %s%s" % (name, flags, ran.stdout, ran.stderr))
            after = run("attn-opt", "f.mlir", "--attn-mask-passes")
            write("after.mlir", after.stdout)
            if after.returncode or kept(name, "f.mlir") != kept(name, "after.mlir"):
                failures.append("%s: the passes change the mask %s" % (name, after.stderr))
    for failure in failures:
        print(failure)
    print("%d kernels, %d failures" % (len(CASES), len(failures)))
    sys.exit(1 if failures else 0)


main()
