#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Puts faults into compiled kernels and checks that the simulator, or the result, shows every one.

usage: mutants.py --test ATTN-DEVICE-TEST ARTIFACTS [--seed N] [--seeds N] [--per-kind N] [--only TEXT]
                  [--verbose]

ARTIFACTS is what `build_artifacts.py --sim` made. Of each kind of fault (faults.py) some sites are
chosen by the seed, each in another kernel. A faulty kernel runs on small batches under the five policies
until a report or a wrong result shows. One that never does must be equivalent by a rule of faults.py, and
one that is must never show.
"""

import argparse
import collections
import concurrent.futures
import os
import random
import re
import subprocess
import sys
import tempfile

import faults

POLICIES = ("earliest", "latest", "random:1", "random:2", "random:3")
# Faults that need many batches to meet get more of them.
ROUNDS = (2, 6, 16)
SECONDS = 120
REPORT = re.compile(r"^([a-z-]+): ((?:line|launch).*)$", re.M)


def read_ptx(path):
    """The PTX of an artifact: its last part."""
    with open(path, "rb") as file:
        data = file.read()
    return data[data.index(b".version"):].decode().rstrip("\0")


class Runner:
    def __init__(self, options, work):
        self.options, self.work, self.runs = options, work, 0

    def folder(self, kernel):
        """A folder with this artifact alone."""
        path = os.path.join(self.work, kernel)
        if not os.path.isdir(path):
            os.mkdir(path)
            os.symlink(os.path.join(os.path.abspath(self.options.artifacts), kernel + ".attn"),
                       os.path.join(path, kernel + ".attn"))
        return path

    def run(self, kernel, ptx, policy, rounds, seed):
        """What showed, or empty text."""
        self.runs += 1
        command = [self.options.test, self.folder(kernel), "--sim", policy, "--ptx", ptx, "--small",
                   "--many", "0", "--rounds", str(rounds), "--seed", str(seed)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False,
                                  timeout=SECONDS)
        except subprocess.TimeoutExpired:
            return "does not end"
        reports = REPORT.findall(done.stderr)
        if done.returncode not in (0, 1) or any(kind == "unsupported" for kind, _ in reports):
            raise RuntimeError("%s: %s\n%s%s" % (kernel, " ".join(command), done.stdout, done.stderr))
        if done.returncode == 0:
            return ""
        if reports:
            return "%s: %s" % reports[0]
        wrong = re.search(r"^FAILED .*?\): (.*)$", done.stdout, re.M)
        return "result: " + (wrong.group(1) if wrong else done.stdout)

    def shows(self, kernel, lines, name, seed, steps=len(ROUNDS)):
        """(policy, what showed) of the first run that shows something, or None."""
        ptx = os.path.join(self.work, name + ".ptx")
        with open(ptx, "w", encoding="utf-8") as file:
            file.write(lines)
        for step in range(steps):
            for i, policy in enumerate(POLICIES):
                found = self.run(kernel, ptx, policy, ROUNDS[step], seed + 1000 * step + 100 * i)
                if found:
                    return policy, found
        return None


def choose(kernels, texts, per_kind, rng):
    """[(kernel, Fault)]: of each kind `per_kind`, no two in one kernel."""
    chosen = []
    for kind in faults.KINDS:
        count = 0
        for kernel in rng.sample(kernels, len(kernels)):
            sites = collections.defaultdict(list)
            for fault in kind(texts[kernel]):
                sites[fault.line].append(fault)
            if not sites:
                continue
            chosen.append((kernel, rng.choice(sites[rng.choice(sorted(sites))])))
            count += 1
            if count == per_kind:
                break
        if count < per_kind:
            sys.exit("only %d kernels have a place for '%s'" % (count, kind.__name__))
    return chosen


def kernels_of(options):
    """Kernels of few CTAs, uninstrumented."""
    names = sorted(name[:-5] for name in os.listdir(options.artifacts) if name.endswith(".attn"))
    return [name for name in names
            if re.search(r"-h2x[12]$", name) and options.only in name]


def judge(runner, kernel, fault, name, seed):
    """(outcome, how it showed or why not)."""
    shown = runner.shows(kernel, fault.text, name, seed, 1 if fault.equivalent else len(ROUNDS))
    if shown and fault.equivalent:
        return "WRONG", "equivalent (%s), but %s: %s" % ((fault.equivalent,) + shown)
    if shown:
        return "result" if shown[1].startswith("result") else "report", "%s: %s" % shown
    if fault.equivalent:
        return "equivalent", fault.equivalent
    if not runner.shows(kernel, fault.reached, name + "-reached", seed):
        return "WRONG", "not reached by any batch"
    if fault.needed and not runner.shows(kernel, fault.needed, name + "-needed", seed):
        return "equivalent", "wherever it was reached the warp had waited for this phase already"
    return "WRONG", "escaped"


def run_seed(options, kernels, texts, seed):
    """Number of mistakes of one seed."""
    chosen = choose(kernels, texts, options.per_kind, random.Random(seed))
    used = sorted({kernel for kernel, _ in chosen})
    first = 10007 * seed
    with tempfile.TemporaryDirectory() as work, \
            concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        runner = Runner(options, work)
        clean = list(pool.map(lambda kernel: runner.shows(
            kernel, "\n".join(texts[kernel].lines), kernel, first, 1), used))
        judged = list(pool.map(lambda item: judge(runner, item[1][0], item[1][1], str(item[0]), first),
                               enumerate(chosen)))
    wrong = ["%s without a fault: %s: %s" % ((kernel,) + shown)
             for kernel, shown in zip(used, clean) if shown]
    counts = collections.defaultdict(collections.Counter)
    for (kernel, fault), (outcome, reason) in zip(chosen, judged):
        counts[fault.kind][outcome] += 1
        line = "%s, line %d, %s: %s\n    %s: %s" % (kernel, fault.line + 1, fault.kind, fault.what,
                                                   outcome, reason)
        if outcome == "WRONG":
            wrong.append(line)
        elif outcome == "equivalent" or options.verbose:
            print(line)
    print("seed %d: %d faults in %d kernels, %d runs" % (seed, len(chosen), len(used), runner.runs))
    for kind, outcomes in counts.items():
        print("  %-26s %s" % (kind, ", ".join("%d %s" % (n, o) for o, n in sorted(outcomes.items()))))
    print("".join(text + "\n" for text in wrong), end="", flush=True)
    return len(wrong)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--test", required=True, help="attn-device-test")
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--seeds", type=int, default=1, help="how many")
    parser.add_argument("--per-kind", type=int, default=3, help="faults of each kind (default 3)")
    parser.add_argument("--only", default="", help="kernels whose name contains this")
    parser.add_argument("--verbose", action="store_true", help="what shows each fault")
    parser.add_argument("artifacts")
    options = parser.parse_args()
    kernels = kernels_of(options)
    if len(kernels) < options.per_kind:
        sys.exit("%s: %d kernels, expected at least %d" % (options.artifacts, len(kernels),
                                                           options.per_kind))
    texts = {kernel: faults.Text(read_ptx(os.path.join(options.artifacts, kernel + ".attn")))
             for kernel in kernels}
    mistakes = 0
    for seed in range(options.seed, options.seed + options.seeds):
        mistakes += run_seed(options, kernels, texts, seed)
    print("%d mistakes" % mistakes)
    return 1 if mistakes else 0


if __name__ == "__main__":
    sys.exit(main())
