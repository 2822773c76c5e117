#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""attn-compile --prove-equal: exit statuses, solvers that fail, options that go with it or not, and counterexamples
that attn-mask draws for both specs. What it says of specs: prove-equal.mlir.

usage: prove_equal.py --attn-compile=PATH --attn-mask=PATH
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time

KERNEL = """attn.kernel @%s heads(2) dim(8) q(f32) kv(f32) %s {
  attn.mask (%%b, %%h, %%q, %%k) {
    %s
    attn.yield %%m : i1
  }
}
"""
PREFIX = KERNEL % ("k", "params(%n: i32)", "%m = attn.prefix %k, %n")
# The same, which takes a solver to see; and one key more.
BELOW = KERNEL % ("k", "params(%n: i32)", """%i = arith.index_cast %n : i32 to index
    %one = arith.constant 1 : index
    %last = arith.subi %i, %one : index
    %m = arith.cmpi sle, %k, %last : index""")
MORE = BELOW.replace("%k, %last", "%k, %i")
# The same with other names: a batch for the one is none for the other.
RENAMED = PREFIX.replace("%n", "%count")
TABLE = KERNEL % ("k", "params(%n: i32) tables(%t: !attn.table<[b, k], i8>)", """%v = attn.load %t[%b, %k] : !attn.table<[b, k], i8>
    %z = arith.constant 0 : i8
    %m = arith.cmpi ne, %v, %z : i8""")
# Equal, but only to those who know what the functions are.
FLOAT = KERNEL % ("k", "params(%n: i32)", """%f = arith.sitofp %n : i32 to f32
    %s = math.absf %f : f32
    %z = arith.constant 0.5 : f32
    %m = arith.cmpf olt, %s, %z : f32""")
NEGATED = FLOAT.replace("%s = math.absf %f", "%g = arith.negf %f : f32\n    %s = math.absf %g")

# Loops of constant bounds, each in the one before; and a mask of k below a constant, beside tables it does not read.
def nest(depth, last="%c16", name="nest"):
    text = "%z = arith.constant 0 : index\n%o = arith.constant 1 : index\n%c16 = arith.constant 16 : index\n" \
        "%a = arith.constant false\n"
    for i in range(depth):
        text += "%%r%d = scf.for %%i%d = %%z to %%c16 step %%o iter_args(%%a%d = %s) -> (i1) {\n" \
            % (i, i, i, "%%a%d" % (i - 1) if i else "%a")
    text += "%%e = arith.cmpi slt, %%i0, %%q : index\n%%y = arith.ori %%e, %%a%d : i1\nscf.yield %%y : i1\n}\n" % (depth - 1)
    for i in reversed(range(1, depth)):
        text += "scf.yield %%r%d : i1\n}\n" % i
    return KERNEL % (name, "", text + "%m = arith.ori %r0, %a : i1")


def below(limit, tables=""):
    return KERNEL % ("k", tables, "%%c = arith.constant %d : index\n%%m = arith.cmpi slt, %%k, %%c : index" % limit)


DOCUMENTS = "tables(%d: !attn.documents)"
ALL = KERNEL % ("k", "", "%m = arith.constant true")
POSITIVE = KERNEL % ("k", "", "%z = arith.constant 0 : index\n%m = arith.cmpi sgt, %q, %z : index")
# k - q is as large only where q is about -2^30, not where seq_len is.
FAR = KERNEL % ("k", DOCUMENTS, "%m = attn.window %q, %k right(1073741822)")
SHOWN = KERNEL % ("k", "tables(%t: !attn.table<[b, k], i32>)", """%n = attn.load %t[%b, %k] : !attn.table<[b, k], i32>
    %c = arith.constant 3 : i32
    %m = arith.cmpi eq, %n, %c : i32""")
UNTIL = SHOWN.replace("%m =", "%m0 =").replace("    attn.yield", """    %g = arith.constant 2000 : index
    %m1 = arith.cmpi slt, %k, %g : index
    %m = arith.andi %m0, %m1 : i1
    attn.yield""")
# And of two unknown numbers, whose bits the search for an example cannot settle in time.
WIDE = KERNEL % ("k", "params(%n: i64, %o: i64)", "%x = arith.xori %n, %o : i64\n%y = arith.andi %x, %n : i64\n"
                 "%p = arith.muli %y, %x : i64\n%z = arith.constant 77 : i64\n%m = arith.cmpi eq, %p, %z : i64")
WIDE_OTHER = WIDE.replace("%n, %o : i64", "%o, %n : i64")

# A loop as long as a parameter says, which the evaluator had better not run for the largest one.
LONG = KERNEL % ("k", "params(%n: i32)", """%z = arith.constant 0 : index
    %o = arith.constant 1 : index
    %u = arith.index_cast %n : i32 to index
    %r = scf.for %i = %z to %u step %o iter_args(%a = %z) -> (index) {
      %x = arith.addi %a, %i : index
      %y = arith.xori %x, %q : index
      scf.yield %y : index
    }
    %m = arith.cmpi sgt, %r, %k : index""")

ERROR = re.compile(r"are different masks: at b = (\d+), h = (\d+), q = -?\d+, k = (\d+) the first (keeps|drops) and "
                   r"the second (keeps|drops) the element\n")
USELESS = ["-o=OUT", "--emit=attn", "--target=cpu", "--explain", "-O1", "--no-mask-passes", "--instrument=tiles",
           "--rescale-slack=0", "--recipe=page_runs,page_size=16", "--ptxas=none", "--strict-ptxas", "--verify",
           "--verify=strict"]


def draws(tool, spec, batch, b, h, k):
    """What attn-mask draws for the only query at key k: keeps or drops, or "tiles" if it has no column for each key;
    or why it draws nothing."""
    done = subprocess.run([tool, spec, "--batch", batch, "--request=%d" % b, "--head=%d" % h],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
    rows = [line.strip() for line in done.stdout.splitlines() if re.fullmatch(r"\s*[#.]+", line)]
    if done.returncode or len(rows) != 1:
        return "attn-mask: " + done.stderr + done.stdout
    if k >= len(rows[0]):
        return "tiles"
    return "keeps" if rows[0][k] == "#" else "drops"


class Suite:
    def __init__(self, args, folder):
        self.args, self.folder, self.failures = args, folder, 0

    def path(self, name, text=None):
        path = os.path.join(self.folder, name)
        if text is not None:
            with open(path, "w") as file:
                file.write(text)
        return path

    def solver(self, name, text):
        path = self.path(name, "#!/bin/sh\n" + text)
        os.chmod(path, 0o755)
        return "--solver=" + path

    def report(self, name, why):
        print("%-28s %s" % (name, "failed" if why else "ok"))
        if why:
            self.failures += 1
            print("error: %s: %s" % (name, why))

    def ask(self, mine, theirs, options=()):
        """Two files; `theirs` may be a list of options instead."""
        named = isinstance(theirs, list)
        mine = self.path("mine.mlir", mine)
        words = theirs if named else ["--prove-equal=" + self.path("theirs.mlir", theirs)]
        before = set(os.listdir(self.folder))
        start = time.time()
        done = subprocess.run([self.args.attn_compile, mine] + words + list(options), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, universal_newlines=True, cwd=self.folder)
        return done, time.time() - start, set(os.listdir(self.folder)) - before

    def expect(self, name, status, mine, theirs, options=(), proved=0, said="", limit=60):
        """`said` on standard error, `proved` lines on standard output and nothing else there."""
        done, seconds, files = self.ask(mine, theirs, options)
        lines = done.stdout.splitlines()
        fine = (done.returncode == status and said in done.stderr and bool(said) == bool(done.stderr)
                and len(lines) == proved and all(line.startswith("proved: @") for line in lines)
                and seconds < limit and not files)
        self.report(name, None if fine else "expected status %d, %d proved and '%s', got %d in %.1f s, files %s:\n%s%s"
                    % (status, proved, said, done.returncode, seconds, sorted(files), done.stdout, done.stderr))

    def expect_drawn(self, name, mine, theirs, wide=False):
        """A counterexample whose batch files both specs are drawn with, and differ as it says; `wide`: as tiles."""
        done, _, _ = self.ask(mine, theirs)
        found = ERROR.search(done.stderr)
        batches = re.findall(r"note: batch file(?: of the second)?: (\{.*\})", done.stderr)
        if done.returncode != 1 or done.stdout or not found or not batches:
            return self.report(name, "no counterexample: status %d\n%s" % (done.returncode, done.stderr))
        b, h, k = (int(found.group(i)) for i in (1, 2, 3))
        why = None
        for spec, batch, wanted in [("mine.mlir", batches[0], found.group(4)),
                                    ("theirs.mlir", batches[-1], found.group(5))]:
            got = draws(self.args.attn_mask, self.path(spec), self.path("batch.json", batch), b, h, k)
            if got != ("tiles" if wide else wanted):
                why = "expected that %s %s the element, got: %s\n%s" % (spec, wanted, got, batch)
        if found.group(4) == found.group(5):
            why = "both do the same: " + done.stderr
        self.report(name, why)

    def run(self):
        self.expect("equal", 0, PREFIX, BELOW, proved=1)
        self.expect("unequal", 1, PREFIX, MORE, said="theirs.mlir:1:1: error: @k of ")
        self.expect("not interpreted", 2, FLOAT, NEGATED,
                    said="are the same mask for every batch: not interpreted: ")
        # What loops in loops would be written out to has a limit, and so has their evaluation.
        for depth in (4, 9):
            self.expect("%d nested loops" % depth, 2, nest(depth), POSITIVE, limit=20,
                        said="for every batch: not interpreted: scf.for of 16 iterations inside another\n")
        self.expect("a long loop", 2, LONG, LONG.replace("%a, %i", "%i, %a"), limit=20,
                    said="not interpreted: scf.for\n")
        self.expect("2 nested loops", 1, nest(2), KERNEL % ("k", "", "%m = arith.constant false"),
                    said="are different masks")
        many = "".join(" %%s%d = arith.shli %%s%d, %%k : index\n" % (i + 1, i) for i in range(300))
        many = "%z = arith.constant 0 : index\n %s0 = arith.addi %q, %z : index\n" + many
        self.expect("many terms", 2, KERNEL % ("k", "", many + "%m = arith.cmpi eq, %s300, %q : index"),
                    KERNEL % ("k", "", many + "%m = arith.cmpi eq, %q, %s300 : index"), ["--solver-timeout=1"],
                    said="shl (the question is too large already)", limit=30)
        self.expect("not in time", 2, WIDE, WIDE_OTHER, ["--solver-timeout=1"], limit=30, said="not interpreted: ")
        # Batches are as small as they can be, and are not shown where that is large.
        self.expect_drawn("drawn, far", ALL, FAR)
        self.expect_drawn("drawn, large table", SHOWN, UNTIL, wide=True)
        self.expect("too large to show", 1, ALL, below(100000, DOCUMENTS), said="theirs.mlir:1:1: note: the batch file of "
                    "the second is not shown: its tables hold more than 4096 numbers\n")
        self.expect_drawn("drawn", PREFIX, MORE)
        self.expect_drawn("drawn, other parameters", PREFIX, RENAMED)
        self.expect_drawn("drawn, other tables", PREFIX, TABLE)

        # A difference is an answer, whatever else is not known.
        def several(*specs):
            return "".join(spec.replace("@k", "@k%d" % i) for i, spec in enumerate(specs))
        self.expect("proved and refuted", 1, several(PREFIX, BELOW, MORE), ["--prove-equal=@k0,@k1,@k2"], proved=1,
                    said="@k0 and @k2 are different masks")
        self.expect("proved and not proved", 2, several(FLOAT, FLOAT, NEGATED), ["--prove-equal=@k0,@k1,@k2"],
                    proved=1, said="error: not proved: @k0 and @k2")
        self.expect("not checked and refuted", 1, several(PREFIX, "attn.kernel @k heads(4) dim(8) q(f32) kv(f32) {}",
                    MORE), ["--prove-equal=@k0,@k1,@k2"], said="their heads differ, 2 and 4\n")

        for name, text, said in [
                ("hangs", "sleep 50 &\nsleep 50\n", "error: not proved: @k of "),
                ("crashes", "kill -SEGV $$\n", "the solver crashed: signal 11"),
                ("silent", "exit 0\n", "the solver is not to be trusted"),
                ("always unsat", "yes unsat | head -n 100\n", "the solver is not to be trusted")]:
            self.expect(name, 2, PREFIX, BELOW, [self.solver("solver", text), "--solver-timeout=1"], said=said,
                        limit=20)
        self.expect("hangs, for how long", 2, PREFIX, BELOW,
                    [self.solver("solver", "sleep 50\n"), "--solver-timeout=2"], limit=30,
                    said="the same mask for every batch: the solver gave no answer within 2 s")
        self.expect("missing", 2, PREFIX, BELOW, ["--solver=no-such-solver"],
                    said="not checked: @k of %s and @k of %s are the same mask for every batch: no solver "
                    "'no-such-solver'" % (self.path("mine.mlir"), self.path("theirs.mlir")))
        both = ["--prove-equal=@k0,@k1", "--prove-equal=@k1,@k0"]
        self.expect("twice", 2, several(PREFIX, BELOW), both,
                    said="attn-compile: --prove-equal: expected once, got it 2 times\n")
        self.expect("no time", 2, PREFIX, BELOW, ["--solver-timeout=0"],
                    said="attn-compile: --solver-timeout: expected at least 1 second, got 0")

        for option in USELESS:
            name = re.match("-O|-*[^=]*", option).group(0)
            self.expect("useless " + option, 2, PREFIX, BELOW, [option],
                        said="attn-compile: %s has no meaning with --prove-equal, nothing is compiled\n" % name)
        for options, said in [
                (["--solver-timeout=3", "--emit=attn"],
                 "attn-compile: --solver-timeout has no meaning without --verify or --prove-equal\n"),
                (["--solver=z3", "--emit=attn"],
                 "attn-compile: --solver has no meaning without --verify or --prove-equal\n"),
                (["--target=list", "--prove-equal=@a,@b"],
                 "attn-compile: --target=list only prints the targets, expected no other argument\n")]:
            self.expect("useless " + options[0], 2, PREFIX, options, said=said)

        theirs = self.path("theirs.mlir", BELOW)
        with open("/dev/full", "w") as full:
            done = subprocess.run([self.args.attn_compile, self.path("mine.mlir", PREFIX), "--prove-equal=" + theirs],
                                  stdout=full, stderr=subprocess.PIPE, universal_newlines=True)
        fine = done.returncode == 2 and "cannot write standard output" in done.stderr
        self.report("standard output is full", None if fine else "status %d, %s" % (done.returncode, done.stderr))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--attn-compile", required=True)
    parser.add_argument("--attn-mask", required=True)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        suite = Suite(args, folder)
        suite.run()
    print("%d failed" % suite.failures)
    return 1 if suite.failures else 0


if __name__ == "__main__":
    sys.exit(main())
