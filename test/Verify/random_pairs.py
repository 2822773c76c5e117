#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random pairs of masks: equal ones have to be proved, unequal ones refuted.

A mask is an expression tree. An equal partner comes from rewriting it at random with rules that are sound for
every batch; an unequal one from a change that brute force sees on a small batch. Brute force is an evaluator
of the trees that shares nothing with the compiler; it looks at every pair, and a pair that it can tell apart
must not end as proved.

usage: random_pairs.py --attn-opt=PATH [--count=N] [--seed=N]
"""

import argparse
import concurrent.futures
import itertools
import json
import os
import random
import re
import subprocess
import sys

LIMIT, SEQ_LEN = 1 << 30, 6
QUERIES, KEYS = range(-1, 7), range(SEQ_LEN)
RADII, FREE = ["l0", "l1"], ["n0", "n1"]
CHUNK = 25  # pairs for one process of attn-opt

# ---- Trees ------------------------------------------------------------------------------------------------
# ("causal",) ("window", left, right) ("mm", clamp) ("prefix", n) ("global", n) ("document",) ("rows",)
# ("cmp", predicate, x, y) ("remainder", of, divisor) ("table", i) ("not", x) ("and", x, y) ("or", x, y)
# ("xor", x, y) ("select", c, x, y) ("scan", negated); numbers: int or parameter name


def number(rng, names, low, high):
    return rng.choice(names) if rng.random() < 0.5 else rng.randrange(low, high)


def leaf(rng):
    kind = rng.randrange(11)
    if kind == 0:
        return ("causal",)
    if kind <= 2:
        left, right = number(rng, RADII, 0, 4), number(rng, RADII, 0, 4)
        return ("window",) + rng.choice([(left, None), (None, right), (left, right)])
    if kind <= 4:
        return ("mm", rng.choice([None, number(rng, RADII, 0, 3)]))
    if kind == 5:
        return ("prefix", number(rng, FREE, -1, 5))
    if kind == 6:
        return ("global", number(rng, FREE, -1, 3))
    if kind == 7:
        return rng.choice([("document",), ("rows",)])
    if kind == 8:
        return ("cmp", rng.choice(["slt", "sle", "sgt", "sge", "eq", "ne"]), rng.choice(["q", "k"]),
                rng.choice(["q", "k"] + FREE))
    if kind == 9:
        return ("remainder", rng.choice(["q", "k"]), rng.randrange(2, 5))
    return ("table", rng.choice(["q", "k"]))


def tree(rng, depth):
    if depth == 0 or rng.random() < 0.2:
        return leaf(rng)
    kind = rng.choice(["and", "or", "and", "or", "not", "xor", "select"])
    return (kind,) + tuple(tree(rng, depth - 1) for _ in range({"not": 1, "select": 3}.get(kind, 2)))


BOOLEAN = {"not", "and", "or", "xor", "select"}


def rewritten(rng, t):
    """The same mask, written otherwise."""
    if t[0] in BOOLEAN:
        t = (t[0],) + tuple(rewritten(rng, x) for x in t[1:])
    kind = t[0]
    if kind == "window" and t[1] is not None and t[2] is not None and rng.random() < 0.6:
        return ("and", ("window", t[1], None), ("window", None, t[2]))
    if kind == "window" and t[1] is None and t[2] == 0:
        return ("causal",)
    if kind == "causal" and rng.random() < 0.6:
        return rng.choice([("window", None, 0), ("cmp", "sle", "k", "q"), ("not", ("cmp", "sgt", "k", "q"))])
    if kind == "prefix" and rng.random() < 0.6 and isinstance(t[1], str):
        return ("cmp", "slt", "k", t[1])
    if kind == "global" and rng.random() < 0.6 and isinstance(t[1], str):
        return ("or", ("cmp", "sgt", t[1], "q"), ("prefix", t[1]))
    if kind == "mm" and rng.random() < 0.7:
        plain = rng.choice([("scan", False), ("scan", True), ("mm", None), ("rows",)])
        return plain if t[1] is None else ("and", plain, ("window", t[1], None))
    if kind == "rows" and rng.random() < 0.7:
        return ("mm", None)
    if kind == "cmp" and rng.random() < 0.6:
        turned = {"slt": "sgt", "sle": "sge", "sgt": "slt", "sge": "sle", "eq": "eq", "ne": "ne"}
        inverse = {"slt": "sge", "sle": "sgt", "sgt": "sle", "sge": "slt", "eq": "ne", "ne": "eq"}
        return rng.choice([("cmp", turned[t[1]], t[3], t[2]), ("not", ("cmp", inverse[t[1]], t[2], t[3]))])
    if kind in ("and", "or"):
        x, y = t[1], t[2]
        other = "or" if kind == "and" else "and"
        return rng.choice([t, (kind, y, x), ("not", (other, ("not", x), ("not", y))), (kind, x, (kind, y, x)),
                           (kind, (other, x, (kind, x, y)), y),
                           ("select", x, y, x) if kind == "and" else ("select", x, x, y)])
    if kind == "xor":
        x, y = t[1], t[2]
        return rng.choice([t, ("or", ("and", x, ("not", y)), ("and", ("not", x), y)),
                           ("select", x, ("not", y), y)])
    if kind == "select":
        return rng.choice([t, ("or", ("and", t[1], t[2]), ("and", ("not", t[1]), t[3])),
                           ("select", ("not", t[1]), t[3], t[2])])
    if kind == "not" and t[1][0] == "not" and rng.random() < 0.7:
        return t[1][1]
    return rng.choice([t, ("not", ("not", t)), ("and", t, t)]) if rng.random() < 0.3 else t


def changed(rng, t):
    """A tree that may be another mask."""
    if t[0] in BOOLEAN and rng.random() < 0.8:
        if t[0] in ("and", "or") and rng.random() < 0.25:
            return rng.choice([t[1], t[2], ({"and": "or", "or": "and"}[t[0]], t[1], t[2])])
        i = rng.randrange(1, len(t))
        return t[:i] + (changed(rng, t[i]),) + t[i + 1:]
    if t[0] in ("prefix", "global") and isinstance(t[1], int):
        return (t[0], t[1] + rng.choice([-1, 1]))
    if t[0] == "window":
        return rng.choice([("window", t[2] if t[2] is not None else None, t[1]),
                           ("window", t[1], 1 if t[2] is None else None)
                           if t[1] is not None else ("window", 1, t[2])])
    if t[0] == "mm":
        return ("mm", 1 if t[1] is None else None)
    if t[0] == "cmp":
        return (t[0], rng.choice(["slt", "sle", "sgt", "sge", "eq", "ne"]), t[2], t[3])
    return rng.choice([leaf(rng), ("not", t)])


# ---- Brute force ------------------------------------------------------------------------------------------

def evaluate(t, s, q, k):
    def value(x):
        return s[x] if isinstance(x, str) and x in s else {"q": q, "k": k}.get(x, x)
    kind = t[0]
    holding = [(a, b) for a, b in s["ranges"] if a <= q <= b]
    if kind == "causal":
        return k <= q
    if kind == "window":
        return (t[1] is None or q - k <= value(t[1])) and (t[2] is None or k - q <= value(t[2]))
    if kind in ("mm", "rows", "scan"):
        kept = any(a <= k <= b for a, b in holding)
        return kept and (kind != "mm" or t[1] is None or q - k <= value(t[1]))
    if kind == "prefix":
        return k < value(t[1])
    if kind == "global":
        return k < value(t[1]) or q < value(t[1])
    if kind == "document":
        doc = s["documents"]
        return 0 <= q < len(doc) and doc[q] == doc[k]
    if kind == "cmp":
        x, y = value(t[2]), value(t[3])
        return {"slt": x < y, "sle": x <= y, "sgt": x > y, "sge": x >= y, "eq": x == y, "ne": x != y}[t[1]]
    if kind == "remainder":
        return abs(value(t[1])) % t[2] == 0
    if kind == "table":
        i = value(t[1])
        return (s["table"][i] if 0 <= i < len(s["table"]) else 0) > 0
    bits = [evaluate(x, s, q, k) for x in t[1:]]
    if kind == "select":
        return bits[1] if bits[0] else bits[2]
    return {"not": lambda: not bits[0], "and": lambda: all(bits), "or": lambda: any(bits),
            "xor": lambda: bits[0] != bits[1]}[kind]()


def make_settings(rng):
    settings = []
    for ranges in [[], [(1, 3)], [(0, 1), (3, 5)], [(1, 3), (2, 5)], [(2, 3), (3, 4), (0, 1)]]:
        cut = sorted(rng.sample(range(1, SEQ_LEN), 2))
        setting = {"ranges": ranges, "documents": [(i >= cut[0]) + (i >= cut[1]) for i in range(SEQ_LEN)],
                   "table": [rng.randrange(-1, 2) for _ in range(SEQ_LEN)]}
        setting.update({name: rng.randrange(4) for name in RADII})
        setting.update({name: rng.randrange(-1, 5) for name in FREE})
        settings.append(setting)
    return settings


def points(t, settings):
    return [evaluate(t, s, q, k) for s in settings for q in QUERIES for k in KEYS]


# ---- Text -------------------------------------------------------------------------------------------------

class Printer:
    def __init__(self):
        self.lines, self.count = [], 0

    def emit(self, text):
        self.count += 1
        self.lines.append("    %%v%d = %s" % (self.count, text))
        return "%%v%d" % self.count

    def index(self, x):
        if x in ("q", "k"):
            return "%" + x
        if isinstance(x, int):
            return self.emit("arith.constant %d : index" % x)
        return self.emit("arith.index_cast %%%s : i32 to index" % x)

    def scan(self, negated):
        """The loop that mm_prefix is, or with `negated` the loop over "no range holds both"."""
        zero, one, number_ = self.index(0), self.index(1), self.emit("attn.num_ranges %mm[%b]")
        start = self.emit("arith.constant %s" % ("true" if negated else "false"))
        self.count += 1
        n = self.count
        self.lines.append("    %%v%d = scf.for %%r%d = %s to %s step %s iter_args(%%a%d = %s) -> (i1) {"
                          % (n, n, zero, number_, one, n, start))
        self.lines.append("    %%s%d, %%e%d = attn.range %%mm[%%b, %%r%d]" % (n, n, n))
        tests = [self.emit("arith.cmpi %s, %%%s%d, %%%s : index" % (how, end, n, index))
                 for end, index, how in (("s", "q", "sle"), ("e", "q", "sge"), ("s", "k", "sle"), ("e", "k", "sge"))]
        both = self.emit("arith.andi %s, %s : i1" % (self.emit("arith.andi %s, %s : i1" % tuple(tests[:2])),
                                                    self.emit("arith.andi %s, %s : i1" % tuple(tests[2:]))))
        if negated:
            both = self.emit("attn.not %s" % both)
        total = self.emit("arith.%s %%a%d, %s : i1" % ("andi" if negated else "ori", n, both))
        self.lines.append("    scf.yield %s : i1\n    }" % total)
        return self.emit("attn.not %%v%d" % n) if negated else "%%v%d" % n

    def mask(self, t):
        def text(x):
            return "%" + x if isinstance(x, str) else str(x)
        kind = t[0]
        if kind == "causal":
            return self.emit("attn.causal %q, %k")
        if kind == "window":
            sides = "".join(" %s(%s)" % (name, text(x)) for name, x in zip(("left", "right"), t[1:])
                            if x is not None)
            return self.emit("attn.window %q, %k" + sides)
        if kind == "mm":
            return self.emit("attn.mm_prefix %mm, %b, %q, %k"
                             + ("" if t[1] is None else " clamp(%s)" % text(t[1])))
        if kind == "rows":
            self.count += 1
            n = self.count
            self.lines.append("    %%lo%d, %%hi%d = attn.row_range %%rows, %%q" % (n, n))
            return self.emit("attn.in_rows %%k, %%lo%d, %%hi%d" % (n, n))
        if kind == "scan":
            return self.scan(t[1])
        if kind == "prefix":
            return self.emit("attn.prefix %%k, %s" % text(t[1]))
        if kind == "global":
            return self.emit("attn.global %%q, %%k, %s" % text(t[1]))
        if kind == "document":
            return self.emit("attn.document %doc, %b, %q, %k")
        if kind == "cmp":
            return self.emit("arith.cmpi %s, %s, %s : index" % (t[1], self.index(t[2]), self.index(t[3])))
        if kind == "remainder":
            rest = self.emit("arith.remsi %%%s, %s : index" % (t[1], self.index(t[2])))
            return self.emit("arith.cmpi eq, %s, %s : index" % (rest, self.index(0)))
        if kind == "table":
            v = self.emit("attn.load %%t[%%%s] : !attn.table<[k], i32>" % t[1])
            zero = self.emit("arith.constant 0 : i32")
            return self.emit("arith.cmpi sgt, %s, %s : i32" % (v, zero))
        values = [self.mask(x) for x in t[1:]]
        if kind == "not":
            return self.emit("attn.not %s" % values[0])
        if kind == "select":
            return self.emit("arith.select %s, %s, %s : i1" % tuple(values))
        return self.emit("%s %s, %s%s" % (("attn." + kind, values[0], values[1], "") if kind != "xor"
                                         else ("arith.xori", values[0], values[1], " : i1")))


def kernel(name, t):
    printer = Printer()
    result = printer.mask(t)
    # Every parameter is used as what it is, so that its smallest value is the same in both kernels.
    uses = "".join("    %%use_%s = attn.window %%q, %%k left(%%%s)\n" % (r, r) for r in RADII)
    params = ", ".join("%%%s: i32" % p for p in RADII + FREE)
    return ("attn.kernel @%s heads(1) dim(8) q(f32) kv(f32) params(%s)\n"
            "    tables(%%mm: !attn.ranges, %%doc: !attn.documents, %%t: !attn.table<[k], i32>,\n"
            "           %%rows: !attn.query_ranges from %%mm) {\n"
            "  attn.mask (%%b, %%h, %%q, %%k) {\n%s%s\n    attn.yield %s : i1\n  }\n}\n"
            % (name, params, uses, "\n".join(printer.lines), result))


# ---- Verdicts ---------------------------------------------------------------------------------------------

EVENT = re.compile(r"^.*(?:remark: proved: @x and @y|error: @x and @y are different masks|"
                   r"error: not (?:proved|checked): ).*$", re.M)
DIFFERENT = re.compile(r"error: @x and @y are different masks: at b = (\d+), h = 0, q = (-?\d+), k = (\d+) "
                       r"the first (keeps|drops) and the second (keeps|drops) the element")


def verdict(said, x, y):
    """Of one pair, from what was said of it. A counterexample has to be one by brute force."""
    found = DIFFERENT.search(said)
    if not found:
        return "proved" if "remark: proved: " in said else "other"
    batch = json.loads(re.search(r"note: batch file: (\{.*\})", said).group(1))
    b, q, k = int(found.group(1)), int(found.group(2)), int(found.group(3))
    setting = dict(batch["params"], ranges=[tuple(r) for r in batch["tables"]["mm"][b]],
                   documents=batch["tables"]["doc"][b], table=batch["tables"]["t"])
    got = ["keeps" if evaluate(t, setting, q, k) else "drops" for t in (x, y)]
    return "refuted" if got == [found.group(4), found.group(5)] else "refuted, but equal there"


def ask(tool, pairs):
    """[(verdict, what was said)] of pairs of masks, all asked for at once."""
    text = "\n// -----\n".join(kernel("x", x) + kernel("y", y) for x, y in pairs)
    done = subprocess.run([tool, "-", "-o", os.devnull, "--split-input-file", "--attn-prove-equal=@x,@y",
                           "--solver-timeout=60"], input=text, stderr=subprocess.PIPE, universal_newlines=True)
    starts = [found.start() for found in EVENT.finditer(done.stderr)]
    if len(starts) != len(pairs):
        sys.exit("error: %d verdicts on %d pairs:\n%s" % (len(starts), len(pairs), done.stderr[:2000]))
    parts = [done.stderr[i:j] for i, j in zip(starts, starts[1:] + [None])]
    answers = [(verdict(said, x, y), said) for said, (x, y) in zip(parts, pairs)]
    if (done.returncode == 0) != all(said == "proved" for said, _ in answers):
        sys.exit("error: exit status %d:\n%s" % (done.returncode, done.stderr[:2000]))
    return answers


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--attn-opt", required=True)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    settings = make_settings(rng)
    pairs = []
    for wanted in ("proved", "refuted"):
        while sum(1 for pair in pairs if pair[0] == wanted) < args.count:
            x = tree(rng, rng.randrange(1, 4))
            if wanted == "proved":
                y = rewritten(rng, rewritten(rng, x))
            else:
                y = rewritten(rng, changed(rng, x))
            same = points(x, settings) == points(y, settings)
            if wanted == "proved" and not same:
                sys.exit("error: a rule of this test is not sound: %s and %s" % (x, y))
            if y != x and same == (wanted == "proved"):
                pairs.append((wanted, x, y))
    failures, counts = [], {}
    chunks = [pairs[i:i + CHUNK] for i in range(0, len(pairs), CHUNK)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        answers = pool.map(lambda chunk: ask(args.attn_opt, [pair[1:] for pair in chunk]), chunks)
        for (wanted, x, y), (got, said) in zip(pairs, itertools.chain.from_iterable(answers)):
            counts[wanted, got] = counts.get((wanted, got), 0) + 1
            if got != wanted:
                failures.append("expected %s, got %s for %s and %s:\n%s" % (wanted, got, x, y, said[:600]))
    for failure in failures[:10]:
        print("error: " + failure)
    for (wanted, got), count in sorted(counts.items()):
        print("%s pairs that are %s: %d" % ("equal" if wanted == "proved" else "unequal", got, count))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
