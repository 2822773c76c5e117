#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random masks through each mask pass and all of them: the mask must stay the same.

The text that attn-opt prints is evaluated here, by an interpreter that shares nothing with the compiler, on a
small grid of q (negative too) and k for several settings of parameters and ranges. Also checked: each pass
changes nothing when run again, simplifying adds no operation, and bounds hold what they promise.

usage: random_masks.py --attn-opt=PATH [--count=N] [--seed=N]
"""

import argparse
import random
import re
import subprocess
import sys

LIMIT = 1 << 30
SEQ_LEN = 7
QUERIES = range(-2, 8)
KEYS = range(SEQ_LEN)
PASSES = ["attn-raise-masks", "attn-simplify-mask", "attn-range-scan-to-table", "attn-fuse-intervals",
          "attn-hoist-invariants", "attn-infer-tile-bounds"]
RADII, COUNTS, FREE = ["l0", "l1"], ["c0"], ["n0", "n1"]


# ---- What attn-opt prints, evaluated ------------------------------------------------------------------------

def wrap(value, kind):
    bits = {"i1": 1, "i8": 8, "i32": 32, "i64": 64, "index": 64}[kind]
    value &= (1 << bits) - 1
    return value - (1 << bits) if bits > 1 and value >> (bits - 1) else value


COMPARE = {"eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "slt": lambda a, b: a < b,
           "sle": lambda a, b: a <= b, "sgt": lambda a, b: a > b, "sge": lambda a, b: a >= b}
BINARY = {"addi": lambda a, b: a + b, "subi": lambda a, b: a - b, "muli": lambda a, b: a * b,
          "maxsi": max, "minsi": min, "andi": lambda a, b: a & b, "ori": lambda a, b: a | b,
          "xori": lambda a, b: a ^ b}


def parse(lines):
    """Nested statements: (text, body) with body None or a list."""
    statements = []
    while lines:
        line = lines.pop(0).strip()
        if line == "}":
            break
        if not line:
            continue
        if line.endswith("{"):
            statements.append((line[:-1].strip(), parse(lines)))
        else:
            statements.append((line, None))
    return statements


class Kernel:
    def __init__(self, header, body):
        self.name = re.search(r"@(\w+)", header).group(1)
        self.sources = dict(re.findall(r"(%\w+): !attn.query_ranges from (%\w+)", header))
        self.body = body
        self.ops = 0
        for text, inner in body:
            if text.startswith("attn.mask"):
                self.ops = len(inner)

    def run(self, setting, q, k, region="attn.mask"):
        """The yielded values of `region` at (q, k), or None if there is no such region."""
        self.setting, self.at = setting, {"%b": 0, "%h": 0, "%q": q, "%k": k}
        env = {"%" + name: value for name, value in setting["params"].items()}
        for text, inner in self.body:
            if text.startswith(region):
                return self.block(inner, dict(env, **self.at))
            if inner is None or "= attn.per" in text:
                self.statement(text, inner, env)
        return None

    def block(self, statements, env):
        for text, inner in statements:
            if text.startswith(("attn.yield", "scf.yield")):
                return [self.value(env, v) for v in re.findall(r"%[\w#-]+", text.split(":")[0])]
            self.statement(text, inner, env)
        raise ValueError("no yield")

    @staticmethod
    def value(env, name):
        return env[name]

    def statement(self, text, inner, env):
        results, rest = [part.strip() for part in text.split(" = ", 1)]
        values = self.evaluate(rest, inner, env)
        names = [name.strip() for name in results.split(",")]
        if ":" in names[0]:
            base, count = names[0].split(":")
            names = ["%s#%d" % (base, i) for i in range(int(count))]
        env.update(zip(names, values))

    def evaluate(self, text, inner, env):
        op, rest = (text.split(None, 1) + [""])[:2]
        if op == "attn.per":
            return self.block(inner, dict(env, **self.at))
        if op == "scf.for":
            return self.loop(rest, inner, env)
        if op == "arith.constant":
            literal = rest.split(":")[0].strip()
            return [{"true": 1, "false": 0}.get(literal) if literal in ("true", "false") else int(literal)]
        operands = [env[name] for name in re.findall(r"%[\w#-]+", rest.split(" : ")[0]) if name in env]
        kind = rest.split(":")[-1].strip()
        dialect, name = op.split(".")
        if dialect == "arith":
            if name == "cmpi":
                return [int(COMPARE[rest.split(",")[0]](*operands))]
            if name == "select":
                return [operands[1] if operands[0] else operands[2]]
            if name == "index_cast":
                return [wrap(operands[0], kind.split(" to ")[1])]
            return [wrap(BINARY[name](*operands), kind)]
        return self.attn(name, rest, operands)

    def loop(self, rest, inner, env):
        head = re.match(r"(%\w+) = (%[\w#-]+) to (%[\w#-]+) step (%[\w#-]+) iter_args\((.*?)\)", rest)
        carried = [pair.split(" = ") for pair in head.group(5).split(", ")]
        values = [env[init] for _, init in carried]
        for i in range(env[head.group(2)], env[head.group(3)], env[head.group(4)]):
            inside = dict(env)
            inside[head.group(1)] = i
            inside.update(zip([name for name, _ in carried], values))
            values = self.block(inner, inside)
        return values

    def clause(self, rest, name, operands_env):
        found = re.search(name + r"\(([^)]*)\)", rest)
        if not found:
            return None
        text = found.group(1)
        return self.setting["params"][text[1:]] if text.startswith("%") else int(text)

    def holding(self):
        q = self.at["%q"]
        return [(s, e) for s, e in self.setting["ranges"] if s <= q <= e]

    def attn(self, name, rest, operands):
        q, k = self.at["%q"], self.at["%k"]
        if name == "causal":
            return [int(k <= q)]
        if name == "window":
            left, right = self.clause(rest, "left", 0), self.clause(rest, "right", 0)
            return [int((left is None or q - k <= left) and (right is None or k - q <= right))]
        if name == "sliding":
            return [int(q - k < self.clause(rest, "count", 0))]
        if name == "mm_prefix":
            clamp = self.clause(rest, "clamp", 0)
            return [int(any(s <= k <= e for s, e in self.holding()) and (clamp is None or q - k <= clamp))]
        if name in ("prefix", "global"):
            last = rest.split(",")[-1].strip()
            n = self.setting["params"][last[1:]] if last.startswith("%") else int(last)
            return [int(k < n or (name == "global" and q < n))]
        if name == "document":
            doc = self.setting["documents"]
            return [int(0 <= q < len(doc) and 0 <= k < len(doc) and doc[q] == doc[k])]
        if name == "in_rows":
            return [int(operands[1] <= operands[0] < operands[2])]
        if name == "row_range":
            return self.row(self.sources[rest.split(",")[0].strip()])
        if name == "num_ranges":
            return [len(self.setting["ranges"])]
        if name == "range":
            ranges, i = self.setting["ranges"], operands[-1]
            return list(ranges[i]) if 0 <= i < len(ranges) else [0, -1]
        if name == "not":
            return [1 - operands[0]]
        return [operands[0] & operands[1] if name == "and" else operands[0] | operands[1]]

    def row(self, source):
        if source == "%mm":
            held = self.holding()
            ends = (min(s for s, _ in held), max(e for _, e in held) + 1) if held else None
        else:
            doc, q = self.setting["documents"], self.at["%q"]
            same = [i for i in range(len(doc)) if 0 <= q < len(doc) and doc[i] == doc[q]]
            ends = (same[0], same[-1] + 1) if same else None
        return list(ends or (LIMIT, -LIMIT))


# ---- Random kernels -----------------------------------------------------------------------------------------

class Generator:
    def __init__(self, rng):
        self.rng, self.lines, self.count = rng, [], 0

    def emit(self, text):
        self.count += 1
        self.lines.append("    %%v%d = %s" % (self.count, text))
        return "%%v%d" % self.count

    def radius(self):
        return "%" + self.rng.choice(RADII) if self.rng.random() < 0.5 else str(self.rng.randrange(5))

    def free(self):
        return "%" + self.rng.choice(FREE) if self.rng.random() < 0.5 else str(self.rng.randrange(-1, 6))

    def named(self):
        kind = self.rng.randrange(9)
        if kind == 0:
            return self.emit("attn.causal %q, %k")
        if kind in (1, 2):
            sides = self.rng.choice([["left"], ["right"], ["left", "right"]])
            return self.emit("attn.window %q, %k " + " ".join("%s(%s)" % (s, self.radius()) for s in sides))
        if kind == 3:
            count = "%c0" if self.rng.random() < 0.5 else str(self.rng.randrange(1, 5))
            return self.emit("attn.sliding %%q, %%k count(%s)" % count)
        if kind in (4, 5):
            clamp = " clamp(%s)" % self.radius() if self.rng.random() < 0.5 else ""
            return self.emit("attn.mm_prefix %mm, %b, %q, %k" + clamp)
        if kind == 6:
            return self.emit("attn.prefix %%k, %s" % self.free())
        if kind == 7:
            return self.emit("attn.global %%q, %%k, %s" % self.free())
        return self.emit("attn.document %doc, %b, %q, %k")

    def operand(self, kind):
        choice = self.rng.randrange(5)
        if choice < 2:
            name = "%q" if choice == 0 else "%k"
            return name if kind == "index" else self.emit("arith.index_cast %s : index to i32" % name)
        if choice == 2:
            name = "%" + self.rng.choice(RADII + FREE)
            return name if kind == "i32" else self.emit("arith.index_cast %s : i32 to index" % name)
        return self.emit("arith.constant %d : %s" % (self.rng.randrange(-2, 5), kind))

    def sum(self, kind):
        value = self.operand(kind)
        while self.rng.random() < 0.4:
            value = self.emit("arith.%s %s, %s : %s" % (self.rng.choice(["addi", "subi"]), value,
                                                       self.operand(kind), kind))
        return value

    def compared(self):
        kind = self.rng.choice(["index", "index", "i32"])
        return self.emit("arith.cmpi %s, %s, %s : %s" % (self.rng.choice(sorted(COMPARE)), self.sum(kind),
                                                       self.sum(kind), kind))

    def scan(self):
        """A scan over the ranges; half of them differ from the plain one somewhere."""
        zero, one = self.emit("arith.constant 0 : index"), self.emit("arith.constant 1 : index")
        start = self.emit("arith.constant %s" % ("true" if self.rng.random() < 0.1 else "false"))
        number = self.emit("attn.num_ranges %mm[%b]")
        self.count += 1
        name = self.count
        self.lines.append("    %%v%d = scf.for %%r%d = %s to %s step %s iter_args(%%a%d = %s) -> (i1) {"
                          % (name, name, self.rng.choice([zero] * 9 + [one]), number, one, name, start))
        self.lines.append("    %%s%d, %%e%d = attn.range %%mm[%%b, %%r%d]" % (name, name, name))
        tests = [("s", "q", "sle"), ("e", "q", "sge"), ("s", "k", "sle"), ("e", "k", "sge")]
        if self.rng.random() < 0.2:
            tests[self.rng.randrange(4)] = (self.rng.choice("se"), self.rng.choice("qk"),
                                            self.rng.choice(sorted(COMPARE)))
        if self.rng.random() < 0.1:
            tests.pop(self.rng.randrange(4))
        mirror = {"sle": "sge", "sge": "sle", "slt": "sgt", "sgt": "slt", "eq": "eq", "ne": "ne"}
        values = []
        for end, index, how in tests:
            if self.rng.random() < 0.5:
                values.append(self.emit("arith.cmpi %s, %%%s%d, %%%s : index" % (how, end, name, index)))
            else:
                values.append(self.emit("arith.cmpi %s, %%%s, %%%s%d : index"
                                        % (mirror[how], index, end, name)))
        if self.rng.random() < 0.3:
            values.append(self.compared())
        if self.rng.random() < 0.3:
            values.append(self.emit("arith.cmpi slt, %%s%d, %%e%d : index" % (name, name)))
        self.rng.shuffle(values)
        while len(values) > 1:
            a = values.pop(self.rng.randrange(len(values)))
            b = values.pop(self.rng.randrange(len(values)))
            if self.rng.random() < 0.2:
                no = self.emit("arith.constant false")
                values.append(self.emit("arith.select %s, %s, %s : i1" % (a, b, no)))
            else:
                values.append(self.emit("arith.andi %s, %s : i1" % (a, b)))
        how = "andi" if self.rng.random() < 0.05 else "ori"
        total = self.emit("arith.%s %%a%d, %s : i1" % (how, name, values[0]))
        self.lines.append("    scf.yield %s : i1" % total)
        self.lines.append("    }")
        return "%%v%d" % name

    def mask(self):
        leaves = [self.rng.choice([self.named, self.named, self.compared, self.scan])()
                  for _ in range(self.rng.randrange(1, 6))]
        if self.rng.random() < 0.2:
            leaves.append(self.emit("arith.constant %s" % self.rng.choice(["true", "false"])))
        values = list(leaves)
        for _ in range(self.rng.randrange(0, 9)):
            a, b = self.rng.choice(values), self.rng.choice(values)
            kind = self.rng.randrange(8)
            if kind == 0:
                values.append(self.emit("attn.not %s" % a))
            elif kind == 1:
                yes = self.emit("arith.constant true")
                values.append(self.emit("arith.xori %s, %s : i1" % (a, yes)))
            elif kind == 2:
                values.append(self.emit("arith.select %s, %s, %s : i1" % (a, b, self.rng.choice(values))))
            elif kind < 6:
                values.append(self.emit("attn.%s %s, %s" % (self.rng.choice(["and", "or"]), a, b)))
            else:
                values.append(self.emit("arith.%s %s, %s : i1" % (self.rng.choice(["andi", "ori"]), a, b)))
        return values[-1]


def make_kernel(seed, number):
    generator = Generator(random.Random("%d %d" % (seed, number)))
    result = generator.mask()
    params = ", ".join("%%%s: i32" % name for name in RADII + COUNTS + FREE)
    return ("attn.kernel @m%d heads(1) dim(8) q(f32) kv(f32) params(%s)\n"
            "    tables(%%mm: !attn.ranges, %%doc: !attn.documents) {\n"
            "  attn.mask (%%b, %%h, %%q, %%k) {\n%s\n    attn.yield %s : i1\n  }\n}\n"
            % (number, params, "\n".join(generator.lines), result))


def make_settings(seed):
    rng = random.Random(seed)
    settings = []
    for ranges in [[], [(1, 3)], [(0, 2), (4, 6)], [(1, 4), (3, 8)], [(2, 3), (3, 5)]]:
        params = {name: rng.randrange(4) for name in RADII}
        params.update({name: rng.randrange(1, 4) for name in COUNTS})
        params.update({name: rng.randrange(-2, 6) for name in FREE})
        cut = sorted(rng.sample(range(1, SEQ_LEN), 2))
        documents = [(i >= cut[0]) + (i >= cut[1]) for i in range(SEQ_LEN)]
        settings.append({"params": params, "ranges": ranges, "documents": documents})
    return settings


# ---- Comparison ---------------------------------------------------------------------------------------------

def opt(tool, text, *options):
    done = subprocess.run([tool, "-"] + list(options), input=text, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, universal_newlines=True)
    if done.returncode:
        sys.exit("error: attn-opt %s failed:\n%s" % (" ".join(options), done.stderr[:2000]))
    return done.stdout


def kernels(text):
    module = parse(text.splitlines())
    return [Kernel(header, body) for header, body in module[0][1]]


def table(kernel, settings):
    return [kernel.run(setting, q, k)[0] for setting in settings for q in QUERIES for k in KEYS]


def check_bounds(kernel, settings, keep):
    """Number of kernels with bounds; complains if a bound does not hold."""
    header = [text for text, _ in kernel.body if text.startswith("attn.bounds")]
    if not header:
        return None
    exact = header[0].startswith("attn.bounds exact")
    bits = iter(keep)
    for setting in settings:
        for q in QUERIES:
            lo, hi = kernel.run(setting, q, 0, "attn.bounds")
            for k in KEYS:
                kept = next(bits)
                if (kept and not lo <= k < hi) or (exact and not kept and lo <= k < hi):
                    return "%s bounds [%d, %d) are wrong at q = %d k = %d" % (
                        "exact" if exact else "hull", lo, hi, q, k)
    return "exact" if exact else "hull"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--attn-opt", required=True)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    settings = make_settings(args.seed)
    source = "module {\n%s}\n" % "".join(make_kernel(args.seed, i) for i in range(args.count))
    start = opt(args.attn_opt, source)
    wanted = {kernel.name: table(kernel, settings) for kernel in kernels(start)}
    failures, points, changed, bounds = [], 0, {}, {"exact": 0, "hull": 0}
    seen = set()

    def compare(label, before, after):
        nonlocal points
        old = {kernel.name: kernel for kernel in kernels(before)}
        for kernel in kernels(after):
            differs = kernel.body != old[kernel.name].body
            changed[label] = changed.get(label, 0) + differs
            if not differs or repr((kernel.name, kernel.body)) in seen:
                continue
            seen.add(repr((kernel.name, kernel.body)))
            got = table(kernel, settings)
            points += len(got)
            if got != wanted[kernel.name]:
                failures.append("%s changes the mask of @%s" % (label, kernel.name))
            if label == "attn-simplify-mask" and kernel.ops > old[kernel.name].ops:
                failures.append("%s grows @%s from %d to %d operations"
                                % (label, kernel.name, old[kernel.name].ops, kernel.ops))
            found = check_bounds(kernel, settings, wanted[kernel.name])
            if found in bounds:
                bounds[found] += 1
            elif found:
                failures.append("%s: %s of @%s" % (label, found, kernel.name))

    text = start
    for name in PASSES:
        for what, before in (("alone", start), ("in order", text)):
            after = opt(args.attn_opt, before, "--" + name)
            compare(name, before, after)
            if opt(args.attn_opt, after, "--" + name) != after:
                failures.append("%s, %s, changes its own result" % (name, what))
        text = after
    compare("attn-mask-passes", start, opt(args.attn_opt, start, "--attn-mask-passes"))

    for failure in failures[:20]:
        print("error: " + failure)
    print("%d masks, %d settings, %d points compared" % (len(wanted), len(settings), points))
    for name, number in changed.items():
        print("  %s changed %d" % (name, number))
        if not number:
            failures.append(name)
            print("error: %s never does anything" % name)
    print("  %d exact bounds, %d hulls" % (bounds["exact"], bounds["hull"]))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
