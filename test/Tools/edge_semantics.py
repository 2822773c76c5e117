#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scalar operations at their edges: every kernel computes what the reference says, with and without the
mask passes, and the passes keep the number of kept pairs. Masks on floats keep the pairs that exact
arithmetic, rounded to f32 here, says. usage: edge_semantics.py --bin DIR"""

import argparse
import fractions
import math
import os
import re
import subprocess
import sys
import tempfile

BATCH = '{"requests": [{"query_len": 6, "seq_len": 8}, {"query_len": 4, "seq_len": 2}]}'
# Its query sees key k through a window that reaches 2^30 - 1 + k to the right.
FAR_BATCH = '{"requests": [{"query_len": 1, "seq_len": 4, "context_len": -1073741823}]}'
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


def f32(x):
    """The number of f32 nearest to an exact one, ties to even; infinity beyond the largest."""
    x = fractions.Fraction(x)
    if x == 0:
        return x
    exponent = max(math.frexp(abs(x.numerator / x.denominator))[1] - 24, -149)
    unit = fractions.Fraction(2) ** exponent
    if abs(x) / unit >= 1 << 24:
        unit *= 2
    result = round(x / unit) * unit
    return result if abs(result) < 2 ** 128 else math.copysign(math.inf, x)


def root(x):
    return f32(math.sqrt(x))  # rounding twice does no harm to square roots


TENTH, BIG = f32(0.1), 2 ** 60 + 2 ** 36
FLOATS = """%%qi = arith.index_cast %%q : index to i64
%%ki = arith.index_cast %%k : index to i64
%%qf = arith.sitofp %%qi : i64 to f32
%%kf = arith.sitofp %%ki : i64 to f32
%%zero = arith.constant 0.0 : f32
%%one = arith.constant 1.0 : f32
%%tenth = arith.constant 0.1 : f32
%s"""


def tenths(k):
    total = f32(0)
    for _ in range(k):
        total = f32(total + TENTH)
    return total


# Each: the region and keep(q, k). Most come out otherwise in float64 or with operations fused.
FLOAT_MASKS = {
    "to-f32": ("""%c = arith.constant 16777214 : i64
%i = arith.addi %c, %ki : i64
%j = arith.addi %c, %qi : i64
%x = arith.sitofp %i : i64 to f32
%y = arith.sitofp %j : i64 to f32
%m = arith.cmpf oeq, %x, %y : f32""", lambda q, k: f32(16777214 + k) == f32(16777214 + q)),
    "to-f32-constant": ("""%c = arith.constant 16777213 : i64
%i = arith.addi %c, %ki : i64
%x = arith.sitofp %i : i64 to f32
%y = arith.constant 16777216.0 : f32
%m = arith.cmpf ole, %x, %y : f32""", lambda q, k: f32(16777213 + k) <= 16777216),
    "to-f32-once": ("""%c = arith.constant 1152921573326323712 : i64
%d = arith.addi %c, %ki : i64
%i = arith.subi %d, %qi : i64
%x = arith.sitofp %i : i64 to f32
%y = arith.constant 1152921504606846976.0 : f32
%m = arith.cmpf ogt, %x, %y : f32""", lambda q, k: f32(BIG + k - q) > 2 ** 60),
    "to-f32-unsigned": ("""%c = arith.constant -9223371487098961920 : i64
%d = arith.addi %c, %ki : i64
%i = arith.subi %d, %qi : i64
%x = arith.uitofp %i : i64 to f32
%y = arith.constant 9223372036854775808.0 : f32
%m = arith.cmpf ogt, %x, %y : f32""", lambda q, k: f32(2 ** 63 + 2 ** 39 + k - q) > 2 ** 63),
    "sum-of-tenths": ("""%lo = arith.constant 0 : index
%step = arith.constant 1 : index
%x = scf.for %i = %lo to %k step %step iter_args(%a = %zero) -> (f32) {
  %n = arith.addf %a, %tenth : f32
  scf.yield %n : f32
}
%y = arith.mulf %kf, %tenth : f32
%m = arith.cmpf oge, %x, %y : f32""", lambda q, k: tenths(k) >= f32(k * TENTH)),
    "two-roundings": ("""%x = arith.mulf %kf, %tenth : f32
%s = arith.mulf %x, %x : f32
%n = arith.negf %s : f32
%t = arith.mulf %x, %x : f32
%d = arith.addf %t, %n : f32
%m = arith.cmpf oeq, %d, %zero : f32""", lambda q, k: True),
    "fma": ("""%x = arith.mulf %kf, %tenth : f32
%s = arith.mulf %x, %x : f32
%n = arith.negf %s : f32
%d = math.fma %x, %x, %n : f32
%m = arith.cmpf ogt, %d, %zero : f32""",
            lambda q, k: f32(f32(k * TENTH) ** 2 - f32(f32(k * TENTH) ** 2)) > 0),
    "sum-order": ("""%big = arith.constant 16777216.0 : f32
%x = arith.addf %kf, %big : f32
%y = arith.subf %x, %big : f32
%m = arith.cmpf oeq, %y, %kf : f32""", lambda q, k: f32(f32(k + 2 ** 24) - 2 ** 24) == k),
    "quotient": ("""%three = arith.constant 3.0 : f32
%n = arith.constant 10.0 : f32
%x = arith.mulf %kf, %n : f32
%y = arith.divf %x, %n : f32
%d = arith.divf %tenth, %three : f32
%s = arith.mulf %d, %kf : f32
%t = arith.mulf %tenth, %kf : f32
%u = arith.divf %t, %three : f32
%e = arith.cmpf oeq, %s, %u : f32
%g = arith.cmpf oge, %y, %kf : f32
%m = arith.andi %e, %g : i1""", lambda q, k: f32(f32(TENTH / 3) * k) == f32(f32(TENTH * k) / 3)
                     and f32(f32(k * 10) / 10) >= k),
    "root": ("""%x = arith.mulf %kf, %tenth : f32
%r = math.sqrt %x : f32
%s = arith.mulf %r, %r : f32
%m = arith.cmpf oge, %s, %x : f32""",
             lambda q, k: f32(root(f32(k * TENTH)) ** 2) >= f32(k * TENTH)),
    "reciprocal-root": ("""%x = arith.addf %kf, %one : f32
%r = math.rsqrt %x : f32
%s = math.sqrt %x : f32
%p = arith.mulf %r, %s : f32
%m = arith.cmpf oeq, %p, %one : f32""",
                        lambda q, k: f32(f32(1 / root(k + 1)) * root(k + 1)) == 1),
    "subnormal": ("""%tiny = arith.constant 1.0e-45 : f32
%half = arith.constant 0.5 : f32
%x = arith.mulf %kf, %tiny : f32
%y = arith.mulf %x, %half : f32
%z = arith.addf %y, %y : f32
%m = arith.cmpf oeq, %z, %x : f32""",
                  lambda q, k: 2 * f32(k * f32(1e-45) / 2) == k * f32(1e-45)),
    "overflow": ("""%c = arith.constant 1.7014117e38 : f32
%x = arith.mulf %kf, %c : f32
%inf = arith.constant 0x7F800000 : f32
%m = arith.cmpf oeq, %x, %inf : f32""", lambda q, k: f32(k * f32(1.7014117e38)) == math.inf),
    "to-integer": ("""%c = arith.constant 16777216.0 : f32
%x = arith.addf %kf, %c : f32
%i = arith.fptosi %x : f32 to i64
%n = arith.constant 16777216 : i64
%d = arith.subi %i, %n : i64
%m = arith.cmpi eq, %d, %ki : i64""", lambda q, k: f32(k + 2 ** 24) - 2 ** 24 == k),
    "floor-and-ceil": ("""%n = arith.constant 0.7 : f32
%x = arith.mulf %kf, %n : f32
%y = arith.divf %x, %n : f32
%f = math.floor %y : f32
%c = math.ceil %y : f32
%a = arith.cmpf oeq, %f, %kf : f32
%g = arith.cmpf oeq, %c, %kf : f32
%m = arith.andi %a, %g : i1""",
                  lambda q, k: f32(f32(k * f32(0.7)) / f32(0.7)) == k),
    "min-max": ("""%x = arith.mulf %kf, %tenth : f32
%y = arith.mulf %qf, %tenth : f32
%s = arith.minimumf %x, %y : f32
%t = arith.maxnumf %x, %y : f32
%d = arith.subf %t, %s : f32
%e = math.absf %d : f32
%m = arith.cmpf ole, %e, %tenth : f32""",
                lambda q, k: f32(abs(f32(k * TENTH) - f32(q * TENTH))) <= TENTH),
    "zeros-as-numbers": ("""%n = arith.negf %zero : f32
%a1 = arith.minnumf %zero, %n : f32
%b1 = arith.minnumf %n, %zero : f32
%c1 = arith.maxnumf %n, %zero : f32
%d1 = arith.maxnumf %zero, %n : f32
%w = arith.divf %one, %a1 : f32
%x = arith.divf %one, %b1 : f32
%y = arith.divf %one, %c1 : f32
%z = arith.divf %one, %d1 : f32
%l = arith.maximumf %w, %x : f32
%r = arith.minimumf %y, %z : f32
%t = arith.cmpf olt, %l, %zero : f32
%u = arith.cmpf ogt, %r, %zero : f32
%v = arith.andi %t, %u : i1
%e = arith.cmpf ole, %kf, %qf : f32
%m = arith.andi %v, %e : i1""", lambda q, k: k <= q),
    "zeros": ("""%p = arith.mulf %kf, %zero : f32
%negated = arith.negf %qf : f32
%n = arith.mulf %negated, %zero : f32
%x = arith.minimumf %p, %n : f32
%y = arith.minimumf %n, %p : f32
%ix = arith.divf %one, %x : f32
%iy = arith.divf %one, %y : f32
%a = arith.cmpf olt, %ix, %zero : f32
%e = arith.cmpf oeq, %ix, %iy : f32
%m = arith.andi %a, %e : i1""", lambda q, k: q >= 0),  # -0 is below +0
    "alibi-in-a-mask": ("""%x = attn.alibi %one, %q, %k, %tenth
%d = arith.subi %qi, %ki : i64
%n = arith.subi %ki, %qi : i64
%a = arith.maxsi %d, %n : i64
%f = arith.sitofp %a : i64 to f32
%p = arith.mulf %f, %tenth : f32
%y = arith.subf %one, %p : f32
%half = arith.constant 0.5 : f32
%e = arith.cmpf oeq, %x, %y : f32
%l = arith.cmpf ole, %x, %half : f32
%m = arith.andi %e, %l : i1""", lambda q, k: f32(1 - f32(TENTH * abs(q - k))) <= 0.5),
}
ROWS = [(q, 8) for q in range(2, 8)] + [(q, 2) for q in range(-2, 2)]  # q and seq_len, as in BATCH


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
            ran = run("attn-mask", spec, "--batch", "b.json")
            if ran.returncode:
                failures.append("%s: attn-mask: %s" % (name, ran.stderr))
            return re.findall(r"(\d+) of \d+ pairs kept", ran.stdout)

        write("b.json", BATCH)
        cases = dict(CASES)
        for name, (region, _) in FLOAT_MASKS.items():
            cases["f32-" + name] = MASK % (FLOATS % region)
        shown = {}
        for name, body in cases.items():
            write("f.mlir", KERNEL % body)
            for flags in ([], ["--no-mask-passes"], ["-O0"]):
                made = run("attn-compile", "f.mlir", "-o", "f.attn", *flags)
                ran = made if made.returncode else run("attn-run", "f.attn", "--batch", "b.json", "--check")
                if ran.returncode:
                    failures.append("%s %s: %s%s" % (name, flags, ran.stdout, ran.stderr))
            after = run("attn-opt", "f.mlir", "--attn-mask-passes")
            write("after.mlir", after.stdout)
            shown[name] = kept(name, "f.mlir")
            if after.returncode or shown[name] != kept(name, "after.mlir"):
                failures.append("%s: the passes change the mask %s" % (name, after.stderr))
        write("far.json", FAR_BATCH)
        for radius in (2**30 - 1, 2**30, 2**30 + 1, 2**31 - 1):
            write("f.mlir", KERNEL % (MASK % ("%%m = attn.window %%q, %%k right(%d)" % radius)))
            for flags in ([], ["--no-mask-passes"]):
                made = run("attn-compile", "f.mlir", "-o", "f.attn", *flags)
                ran = made if made.returncode else run("attn-run", "f.attn", "--batch", "far.json", "--check")
                if ran.returncode:
                    failures.append("right(%d) %s: %s%s" % (radius, flags, ran.stdout, ran.stderr))
        for name, (_, keep) in FLOAT_MASKS.items():
            want = [sum(keep(q, k) for q, length in rows for k in range(length))
                    for rows in (ROWS[:6], ROWS[6:])]
            if shown["f32-" + name] != [str(n) for n in want]:
                failures.append("f32-%s: expected %s pairs kept, got %s"
                                % (name, want, shown["f32-" + name]))
    for failure in failures:
        print(failure)
    print("%d kernels, %d failures" % (len(cases), len(failures)))
    sys.exit(1 if failures else 0)


main()
