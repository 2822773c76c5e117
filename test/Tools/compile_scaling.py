#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Guards against work of the compiler that grows faster than the spec.

Masks of 2,000 and of 8,000 operations, of several kinds, are compiled without LLVM's optimisation. Linear work
takes 4 times as long for the larger one, quadratic work 16 times. Processor time is compared, so that a busy
machine matters little, and a kind that is too slow gets two more tries.

usage: compile_scaling.py ATTN_COMPILE
"""

import os
import resource
import subprocess
import sys
import tempfile

SMALL, LARGE = 2000, 8000
MAX_RATIO = 9
MAX_SECONDS = 30


def scalars(n, names, operands):
    """A chain of operations whose second operands repeat."""
    lines = ["%v0 = arith.addi %q, {} : index".format(operands[0])]
    for i in range(n):
        line = "%v{} = arith.{} %v{}, {} : index"
        lines.append(line.format(i + 1, names[i % len(names)], i, operands[i % len(operands)]))
    return lines


def mixed(n):
    return scalars(n, ["addi", "xori", "muli", "subi"], ["%k", "%q", "%k"]) + [
        "%m = arith.cmpi sgt, %v{}, %b : index".format(n)
    ]


def of_row(n):
    """Nothing of the chain depends on the key."""
    return scalars(n, ["addi", "xori", "muli", "subi"], ["%b", "%q", "%b"]) + [
        "%m = arith.cmpi sgt, %v{}, %k : index".format(n)
    ]


def sums(n):
    """Every second operation undoes the one before."""
    return scalars(n, ["addi", "subi"], ["%k", "%k", "%q", "%q"]) + [
        "%m = arith.cmpi sgt, %v{}, %b : index".format(n)
    ]


def comparisons(n):
    """A mask operation for each link of a chain."""
    lines = ["%v0 = arith.addi %q, %b : index", "%m0 = attn.causal %q, %k"]
    for i in range(n // 3):
        name, operand = ["muli", "addi", "xori"][i % 3], ["%b", "%q"][i % 2]
        lines.append("%v{} = arith.{} %v{}, {} : index".format(i + 1, name, i, operand))
        lines.append("%c{} = arith.cmpi sge, %k, %v{} : index".format(i, i + 1))
        lines.append("%m{} = arith.{} %m{}, %c{} : i1".format(i + 1, ["andi", "ori"][i % 2], i, i))
    return lines + ["%m = attn.and %m0, %m{}".format(n // 3)]


def tests(n, logic, negated=False):
    """A chain of mask operations over tests of the key."""
    lines = ["%v0 = attn.causal %q, %k"]
    for i in range(n // 4):
        lines.append("%c{} = arith.constant {} : index".format(i, i + 3))
        lines.append("%x{} = arith.remsi %k, %c{} : index".format(i, i))
        lines.append("%y{} = arith.cmpi ne, %x{}, %q : index".format(i, i))
        if negated:
            lines.append("%z{} = attn.not %y{}".format(i, i))
        part = "%{}{}".format("z" if negated else "y", i)
        lines.append("%v{} = attn.{} %v{}, {}".format(i + 1, logic[i % len(logic)], i, part))
    return lines + ["%m = attn.and %v0, %v{}".format(n // 4)]


def nested(n):
    """Named masks under and, or and not, one inside the other."""
    lines = ["%v0 = attn.causal %q, %k"]
    for i in range(n // 6):
        lines.append("%a{} = attn.prefix %k, {}".format(i, i + 1))
        lines.append("%b{} = attn.window %q, %k left({})".format(i, i + 5))
        lines.append("%c{} = attn.or %a{}, %b{}".format(i, i, i))
        lines.append("%d{} = attn.not %c{}".format(i, i))
        lines.append("%e{} = attn.{} %d{}, %c{}".format(i, ["and", "or"][i % 2], i, max(0, i - 1)))
        lines.append("%v{} = attn.{} %v{}, %e{}".format(i + 1, ["or", "and"][i % 2], i, i))
    return lines + ["%m = attn.and %v0, %v{}".format(n // 6)]


def loads(n):
    lines = ["%v0 = arith.constant 1 : i32", "%limit = arith.constant 7 : i32"]
    for i in range(n // 4):
        lines.append("%c{} = arith.constant {} : index".format(i, i + 1))
        lines.append("%x{} = arith.addi %k, %c{} : index".format(i, i))
        lines.append("%y{} = attn.load %t[%b, %x{}] : !attn.table<[b, k], i32>".format(i, i))
        lines.append("%v{} = arith.xori %v{}, %y{} : i32".format(i + 1, i, i))
    return lines + ["%m = arith.cmpi sgt, %v{}, %limit : i32".format(n // 4)]


KINDS = {
    "mixed arithmetic": mixed,
    "arithmetic of the row": of_row,
    "sums": sums,
    "comparisons": comparisons,
    "chain of and": lambda n: tests(n, ["and"], negated=True),
    "chain of and, or": lambda n: tests(n, ["and", "or"]),
    "nested and, or, not": nested,
    "loads": loads,
}


def spec(lines):
    body = "".join("    " + line + "\n" for line in lines)
    return (
        "attn.kernel @k heads(1) kv_heads(1) dim(8) q(f32) kv(f32) tables(%t: !attn.table<[b, k], i32>) {\n"
        "  attn.mask (%b, %h, %q, %k) {\n" + body + "    attn.yield %m : i1\n  }\n}\n"
    )


def seconds(tool, folder, text):
    """Processor time of one compilation."""
    path = os.path.join(folder, "spec.mlir")
    with open(path, "w") as file:
        file.write(text)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([tool, "-O", "0", path, "-o", os.path.join(folder, "out.attn")], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main():
    tool = sys.argv[1]
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, make in KINDS.items():
            for _ in range(3):
                small = seconds(tool, folder, spec(make(SMALL)))
                large = seconds(tool, folder, spec(make(LARGE)))
                good = large <= MAX_RATIO * small and large <= MAX_SECONDS
                if good:
                    break
            line = "{}: {:.2f} s, 4 times the operations {:.2f} s, ratio {:.1f}{}"
            print(line.format(name, small, large, large / small, "" if good else ": TOO SLOW"))
            failures += not good
    return failures != 0


if __name__ == "__main__":
    sys.exit(main())
