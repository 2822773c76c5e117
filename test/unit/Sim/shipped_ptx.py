#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles kernels for sm_90a and compares what the PTX parser read with the text, statement by statement.

usage: shipped_ptx.py --compile ATTN-COMPILE --dump ATTN-PTX-DUMP SOURCES [--all]
       shipped_ptx.py --self-test --dump ATTN-PTX-DUMP SOURCES

Kernels are those of examples/ and the masks of the device test that no example has, each in one head
dimension, type and option; --all takes every mask and combination. The comparison has a reader of its own: one that knows PTX as our
compiler lays it out, lines and all.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile

DIMS = (64, 128, 256)
TYPES = ("bf16", "f16")
OPTIONS = ([], ["--instrument=tiles"], ["--no-mask-passes"])
# Masks of the device test that are not those of an example.
OTHER_MASKS = ("none", "window_mm", "document", "not_window", "branches", "head_window")
NUMBER = re.compile(r"(?<![\w%$.])(-?)(0[xX][0-9a-fA-F]+|\d+)(?![\w.])")


def statements(text):
    """[(line, statement)] of the kernel's body, labels and scopes included, without comments."""
    result, line = [], 0
    inside = False
    for raw in text.split("\n"):
        line += 1
        rest = raw.split("//")[0].strip()
        if not inside:
            inside = rest == "{"
            continue
        while rest:
            # A scope or a label, else up to the semicolon.
            match = re.match(r"([{}])|([\w$%]+:)(?!:)|([^;]*;)", rest)
            if not match:
                sys.exit("line %d: not the layout of our compiler: %s" % (line, rest))
            result.append((line, match.group(0)))
            rest = rest[match.end():].strip()
    return result


def spell(operands):
    operands = re.sub(r"\s+", "", operands)
    operands = re.sub(r"(?<=\w)-(?=\w)", "+-", operands).replace("+0]", "]")
    return NUMBER.sub(lambda m: str(int(m.group(1) + m.group(2), 0)), operands)


def expected(text):
    """What attn-ptx-dump should print of the body, without suffixes of nested registers."""
    scopes, labels, lines = [0], {}, []
    opened = 0
    found = statements(text)
    waiting = []  # labels without an instruction yet
    current = []
    for line, statement in found:
        if statement == "{":
            opened += 1
            scopes.append(opened)
        elif statement == "}":
            scopes.pop()
            if not scopes:
                break
        elif statement.endswith(":"):
            waiting.append((scopes[-1], statement[:-1]))
        elif not statement.startswith("."):
            for label in waiting:
                labels[label] = line
            waiting = []
            current.append((line, list(scopes), statement[:-1]))
    for line, chain, statement in current:
        match = re.match(r"(@!?\S+\s+)?([\w.:]+)\s*(.*)$", statement)
        guard, mnemonic, operands = match.groups()
        if mnemonic.split(".")[0] == "bra":
            scope = [s for s in reversed(chain) if (s, operands) in labels or (s, operands) in waiting]
            operands = "L%d" % labels.get((scope[0], operands), 0)
        lines.append("%d %s%s %s" % (line, guard.strip() + " " if guard else "", mnemonic, spell(operands)))
    return lines


def difference(ptx, dumped):
    """First difference between the text and what was read, or None."""
    got = [re.sub(r"(?<=\w)\$\d+", "", line) for line in dumped.splitlines()[1:]]
    want = expected(ptx)
    for i, (a, b) in enumerate(zip(want, got)):
        if a != b:
            return "instruction %d: expected '%s', got '%s'" % (i, a, b)
    if len(want) != len(got):
        return "expected %d instructions, got %d" % (len(want), len(got))
    head = re.search(r"\.entry (\w+)\((.*?)\)\s*\.maxntid (\d+)", ptx, re.S)
    first = "kernel %s params %d threads %s" % (head.group(1), head.group(2).count(".param"), head.group(3))
    if dumped.split("\n")[0] != first:
        return "expected '%s', got '%s'" % (first, dumped.split("\n")[0])
    return None


def specs(sources, everything):
    """(name, text of the spec, options)."""
    sys.path.insert(0, os.path.join(sources, "test", "Device"))
    import build_artifacts
    texts = []
    folder = os.path.join(sources, "examples")
    for name in sorted(os.listdir(folder)):
        if name.endswith(".mlir"):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                texts.append((name[:-5], file.read()))
    for mask in build_artifacts.MASKS if everything else OTHER_MASKS:
        texts.append(("mask-" + mask, build_artifacts.spec(mask, 64, "bf16", 4, 2)))
    for i, (name, text) in enumerate(texts):
        for d, dim in enumerate(DIMS):
            for t, dtype in enumerate(TYPES):
                for o, option in enumerate(OPTIONS):
                    if not everything and (d, t, o) != (i % 3, i % 2, i // 3 % 3):
                        continue
                    spec = re.sub(r"\bdim\(\d+\)", "dim(%d)" % dim, text)
                    spec = re.sub(r"\b(q|kv)\(\w+\)", r"\1(%s)" % dtype, spec)
                    yield "%s-d%d-%s%s" % (name, dim, dtype, "".join(option)), spec, option


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit("%s\n%s" % (" ".join(command), done.stderr))
    return done.stdout


SELF_TEST = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(
	.param .align 8 .b8 k_param_0[16]
)
.maxntid 128
{
	.reg .b32 %r<9>;
	.reg .b64 %rd<9>;

	mov.b32 	%r1, 0x10;
	// begin inline asm
	{
.reg .pred P;
WAIT:
setp.eq.b32 P, %r1, 0;
@P bra DONE;
bra WAIT;
DONE:
}
	// end inline asm
	ld.b32 	%r2, [%rd1+-8];
	ret;
}
"""


def self_test(dump):
    with tempfile.TemporaryDirectory() as work:
        path = os.path.join(work, "k.ptx")
        with open(path, "w", encoding="utf-8") as file:
            file.write(SELF_TEST)
        read = run([dump, path])
    failed = []
    if difference(SELF_TEST, read):
        failed.append(difference(SELF_TEST, read))
    # Every change of a statement is a difference.
    for old, new in (("0x10", "0x11"), ("-8", "-9"), ("%r2", "%r3"), ("@P", "@!P"), ("ret", "exit"),
                     ("bra WAIT", "bra DONE"), ("setp.eq", "setp.ne"), ("128", "256"), ("\tret;\n", ""),
                     ("DONE:\n}", "}\nDONE:\n"), (".maxntid", "\n.maxntid")):
        changed = SELF_TEST.replace(old, new, 1)
        if old == "DONE:\n}":
            changed = SELF_TEST.replace("\tld.b32", "\tnop;\n\tld.b32")
        if not difference(changed, read):
            failed.append("not seen: %s instead of %s" % (new, old))
    for text in failed:
        print(text)
    print("shipped_ptx self-test: %d failed" % len(failed))
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compile", help="attn-compile")
    parser.add_argument("--dump", required=True, help="attn-ptx-dump")
    parser.add_argument("--all", action="store_true", help="every combination")
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("sources", help="the source tree")
    options = parser.parse_args()
    if options.self_test:
        return self_test(options.dump)
    failed = count = instructions = 0
    with tempfile.TemporaryDirectory() as work:
        spec_path, ptx_path = os.path.join(work, "k.mlir"), os.path.join(work, "k.ptx")
        for name, spec, option in specs(options.sources, options.all):
            with open(spec_path, "w", encoding="utf-8") as file:
                file.write(spec)
            run([options.compile, spec_path, "--target=sm_90a", "--emit=ptx", "-o", ptx_path] + option)
            with open(ptx_path, encoding="utf-8") as file:
                ptx = file.read()
            read = run([options.dump, ptx_path])
            count += 1
            instructions += read.count("\n") - 1
            wrong = difference(ptx, read)
            if wrong:
                failed += 1
                print("%s: %s" % (name, wrong))
    print("shipped_ptx: %d kernels, %d instructions, %d kernels differ" % (count, instructions, failed))
    return 1 if failed or not count else 0


if __name__ == "__main__":
    sys.exit(main())
