#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Solvers that are missing, hang, crash, talk nonsense or lie: no mask ends as proved because of them.

usage: bad_solvers.py --attn-opt=PATH --attn-compile=PATH [--attn-smt=PATH]
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time

HEAD = "attn.kernel @%s heads(1) dim(8) q(f32) kv(f32) params(%%n: i32)%s {\n  attn.mask (%%b, %%h, %%q, %%k) {\n"
TAIL = "\n    attn.yield %m : i1\n  }\n}\n"


def pair(x, y, tables=""):
    return HEAD % ("x", tables) + x + TAIL + HEAD % ("y", tables) + y + TAIL


EQUAL = pair("%m = attn.prefix %k, %n", """%n0 = arith.index_cast %n : i32 to index
    %one = arith.constant 1 : index
    %last = arith.subi %n0, %one : index
    %m = arith.cmpi sle, %k, %last : index""")
UNEQUAL = pair("%m = attn.prefix %k, %n", """%n0 = arith.index_cast %n : i32 to index
    %m = arith.cmpi sle, %k, %n0 : index""")
# Overflow flags mean nothing in a region: k + n may wrap.
WRAPS = pair("%m = arith.constant true", """%one = arith.constant 1 : i32
    %next = arith.addi %n, %one overflow<nsw> : i32
    %m = arith.cmpi slt, %n, %next : i32""")
DIVIDES = pair("%m = arith.constant true", """%n0 = arith.index_cast %n : i32 to index
    %d = arith.divsi %n0, %n0 : index
    %c1 = arith.constant 1 : index
    %m = arith.cmpi eq, %d, %c1 : index""")
SHIFTS = pair("%m = arith.constant true", """%c32 = arith.constant 32 : i32
    %d = arith.shli %n, %c32 : i32
    %m = arith.cmpi eq, %d, %n : i32""")
# Nobody answers this in a second.
CUBES = """(declare-fun x () Int) (declare-fun y () Int) (declare-fun z () Int)
(assert (= (+ (* x x x) (* y y y) (* z z z)) 42)) (assert (> x 100)) (check-sat)"""
FLOAT = """%%f = arith.sitofp %%n : i32 to f32
    %%s = math.%s %%f : f32
    %%z = arith.constant 0.5 : f32
    %%m = arith.cmpf olt, %%s, %%z : f32"""
# Equal for every number, but only to those who know what the functions are.
FLOATS = pair(FLOAT % "absf", """%nn = arith.sitofp %n : i32 to f32
    %neg = arith.negf %nn : f32
    %s = math.absf %neg : f32
    %z = arith.constant 0.5 : f32
    %m = arith.cmpf olt, %s, %z : f32""")
SAME_FLOATS = pair(FLOAT % "sin", "%c = attn.causal %q, %k\n" + FLOAT.replace("%%m", "%%m0") % "sin"
                   + "\n    %m1 = attn.or %c, %m0\n    %m = attn.and %m1, %m0")

# Its windows merge, so that a pass has something to prove.
SPEC = HEAD % ("spec", "") + """%w = attn.window %q, %k left(4)
    %v = attn.window %q, %k left(9)
    %c = attn.causal %q, %k
    %x = attn.and %w, %c
    %m = attn.and %x, %v""" + TAIL

PIPE = '#!/bin/sh\n"%s" -in | %s\n'
# Changes the answers to real questions, which stand between the first mark and the last. Where there are two,
# one asks whether the rules of a batch can hold, the other whether the masks differ.
BETWEEN = ("awk '{ line[NR] = $0 } /^mark-/ { if (!first) first = NR; last = NR } "
           "END { for (i = 1; i <= NR; i++) { $0 = line[i]; if (first < i && i < last) %s; print } }'")
LIE = BETWEEN % 'sub(/^sat/, "unsat")'
# Changes the answer to one of the two questions: -gt the longer, about the masks, -lt the one about the rules.
SHARP = """#!/bin/sh
cat > "$0.in"
sizes=$(awk '/^\\(push/ { size = 0 } { size += length($0) } /^\\(pop/ && size > 300 { print size }' "$0.in")
first=$(echo "$sizes" | head -n 1)
second=$(echo "$sizes" | tail -n 1)
at=1; [ "$second" %s "$first" ] && at=2
"%s" -in < "$0.in" | awk -v at="$at" '/^mark-/ { n++ } n == at { %s } { print }'
"""
# One that answers the first time it is asked, and lies from then on.
LATE = """#!/bin/sh
if [ -e "$0.asked" ]; then "%s" -in | %s; else touch "$0.asked"; "%s" -in; fi
"""


def ask(tool, text, options, env):
    start = time.time()
    done = subprocess.run([tool, "-", "--attn-prove-equal=@x,@y"] + list(options), input=text, env=env,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
    return done.returncode, done.stderr, time.time() - start


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--attn-opt", required=True)
    parser.add_argument("--attn-compile", required=True)
    parser.add_argument("--attn-smt", help="if it is built")
    args = parser.parse_args()
    z3 = shutil.which("z3")
    if not z3:
        sys.exit("error: z3 is not in PATH, install package z3")
    failures = []

    def expect(name, text, said, options=(), code=2, limit=60, env=None, tool=args.attn_opt):
        got, stderr, seconds = ask(tool, text, options, env)
        fine = got == code and said in stderr and (code == 0 or "remark: proved" not in stderr) and seconds < limit
        print("%-28s %s" % (name, "ok" if fine else "failed"))
        if not fine:
            failures.append(name)
            print("error: %s: expected status %d and '%s', got %d in %.1f s:\n%s"
                  % (name, code, said, got, seconds, stderr))

    expect("equal", EQUAL, "proved: @x and @y are the same mask", code=0)
    expect("unequal", UNEQUAL, "different masks: at b = 0")
    expect("nsw", WRAPS, "different masks")
    expect("division by zero", DIVIDES, "different masks")
    expect("shift by the width", SHIFTS, "different masks")
    expect("float, not interpreted", FLOATS, "not proved: @x and @y are the same mask for every batch: "
           "not interpreted: ")
    expect("float, by congruence", SAME_FLOATS, "proved: @x and @y", code=0)

    with tempfile.TemporaryDirectory() as folder:
        def solver(name, text):
            path = os.path.join(folder, name)
            with open(path, "w") as file:
                file.write(text)
            os.chmod(path, 0o755)
            return "--solver=" + path

        late = LATE % (z3, LIE, z3)
        for name, text, said in [
                ("hangs", "#!/bin/sh\nsleep 50 &\nsleep 50\n", ("different masks", "not proved: @x and @y are the "
                 "same mask for every batch: the solver gave no answer within 1 s")),
                ("endless", "#!/bin/sh\nyes sat\n", "the solver"),
                ("crashes", "#!/bin/sh\nkill -SEGV $$\n", "the solver crashed: signal 11"),
                ("fails", "#!/bin/sh\necho unsat\nexit 3\n", "the solver crashed: exit status 3"),
                ("silent", "#!/bin/sh\n", "not to be trusted"),
                ("nonsense", "#!/bin/sh\necho 'Maybe ?'\n", "not to be trusted"),
                ("always unsat", "#!/bin/sh\nyes unsat | head -n 100\n", "not to be trusted"),
                ("always sat", "#!/bin/sh\nyes sat | head -n 100\n", "not to be trusted"),
                # The evaluator finds the difference by itself.
                ("unknown", PIPE % (z3, BETWEEN % 'sub(/^(un)?sat/, "unknown")'),
                 ("different masks", "the solver does not know")),
                ("error", PIPE % (z3, BETWEEN % 'sub(/^(un)?sat/, "(error \\"x\\")")'), "not to be trusted"),
                ("error after unsat", PIPE % (z3, BETWEEN % 'sub(/^unsat/, "unsat\\n(error \\"x\\")")'),
                 (None, "it says more than 'unsat'")),
                ("lies", PIPE % (z3, LIE), "the rules of a batch contradict each other"),
                # What these say of equal masks is no lie.
                ("lies of masks", SHARP % ("-gt", z3, 'sub(/^sat/, "unsat")'), ("different masks", None)),
                ("lies of rules", SHARP % ("-lt", z3, 'sub(/^sat/, "unsat")'), "the rules of a batch contradict"),
                ("unsure of rules", SHARP % ("-lt", z3, 'sub(/^sat/, "unknown")'),
                 ("different masks", "the solver does not know")),
                ("lies at the end", late, ("different masks", None))]:
            said = (said, said) if isinstance(said, str) else said
            for label, masks, what in (("unequal", UNEQUAL, said[0]), ("equal", EQUAL, said[1])):
                if what is not None:
                    expect("%s, %s" % (name, label), masks, what,
                           [solver(name.replace(" ", "-") + "-" + label, text), "--solver-timeout=1"], limit=20)
        os.symlink(z3, os.path.join(folder, "z3, {with} space"))
        expect("a path of many words", EQUAL, "proved: @x and @y", code=0,
               options=["--solver=" + os.path.join(folder, "z3, {with} space")])
        # Without z3 in PATH there is the one beside the tool; without that there is none.
        nowhere = dict(os.environ, PATH=folder)
        if args.attn_smt:
            expect("attn-smt", EQUAL, "proved: @x and @y are the same mask", code=0, env=nowhere)
            expect("attn-smt, unequal", UNEQUAL, "different masks: at b = 0", env=nowhere)
            expect("attn-smt by path", EQUAL, "proved: @x and @y", ["--solver=" + args.attn_smt], code=0)
            expect("attn-smt by name", EQUAL, "proved: @x and @y", ["--solver=attn-smt"], code=0, env=nowhere)
            for option, text, code, said in [
                    ("-T:1", CUBES, 0, "timeout"), ("-in", "(check-sat)", 0, "sat"),
                    ("-in", "(assert what)", 1, "(error "), ("-T:none", "", 2, "expected -in or -T:")]:
                done = subprocess.run([args.attn_smt, option], input=text, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, universal_newlines=True, timeout=60)
                if done.returncode != code or said not in done.stdout:
                    failures.append("attn-smt " + option)
                    print("error: attn-smt %s: expected status %d and '%s', got %d: %s"
                          % (option, code, said, done.returncode, done.stdout))
        # Nothing stays in the temporary folder, even if the tool is killed while it waits.
        temporary = os.path.join(folder, "temporary")
        os.mkdir(temporary)
        asked = solver("asked", "#!/bin/sh\ntouch \"$0.asked\"\nsleep 20\n")
        waits = subprocess.Popen([args.attn_opt, "-", "--attn-prove-equal=@x,@y", asked], stdin=subprocess.PIPE,
                                 stderr=subprocess.DEVNULL, env=dict(os.environ, TMPDIR=temporary))
        waits.stdin.write(EQUAL.encode())
        waits.stdin.close()
        end = time.time() + 20
        while not os.path.exists(os.path.join(folder, "asked.asked")) and time.time() < end:
            time.sleep(0.05)
        left = os.listdir(temporary)
        waits.kill()
        waits.wait()
        if left or time.time() >= end:
            failures.append("temporary files")
            print("error: temporary files: expected none while a solver runs, got %s" % left)
        alone = shutil.copy(args.attn_opt, os.path.join(folder, "attn-opt"))
        expect("no solver anywhere", EQUAL, "not checked: @x and @y are the same mask for every batch: no solver 'z3'",
               env=nowhere, tool=alone)
        expect("missing", EQUAL, "not checked: @x and @y are the same mask for every batch: no solver "
               "'no-such-solver'", ["--solver=no-such-solver"])
        plain = os.path.join(folder, "plain")
        with open(plain, "w") as file:
            file.write("not a program\n")
        for name, path in (("missing file", os.path.join(folder, "none")), ("no program", plain)):
            expect(name, EQUAL, "not checked: @x and @y are the same mask for every batch: '%s' does not start"
                   % path, ["--solver=" + path])
        spec, artifact = os.path.join(folder, "spec.mlir"), os.path.join(folder, "out.attn")
        with open(spec, "w") as file:
            file.write(SPEC)
        crashes = solver("compile", "#!/bin/sh\nexit 3\n")
        for options, code, said in [
                ([], 0, ""), (["--verify=strict"], 0, ""),
                (["--verify", crashes], 0, "not checked: the rewrite keeps the mask: the solver crashed"),
                (["--verify=strict", crashes], 2, "error: not checked: the rewrite keeps the mask: the solver"),
                (["--verify=maybe"], 2, "--verify: expected no value or strict, got 'maybe'"),
                ([crashes], 2, "--solver has no meaning without --verify"),
                (["--verify", "--no-mask-passes"], 2, "--verify has no meaning with --no-mask-passes")]:
            done = subprocess.run([args.attn_compile, spec, "-o", artifact] + options, stderr=subprocess.PIPE,
                                  universal_newlines=True)
            name = "attn-compile " + " ".join(option.split("=/")[0] for option in options)
            fine = (done.returncode == code and said in done.stderr and (said or not done.stderr)
                    and os.path.exists(artifact) == (code == 0))
            print("%-28s %s" % (name, "ok" if fine else "failed"))
            if not fine:
                failures.append(name)
                print("error: %s: expected status %d and '%s', got %d:\n%s"
                      % (name, code, said, done.returncode, done.stderr))
            if os.path.exists(artifact):
                os.remove(artifact)
        expect("dump, no folder", EQUAL, "cannot be written", ["--dump-smt=" + os.path.join(folder, "no")])
    print("%d failed" % len(failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
