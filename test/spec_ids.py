#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks that the constraints of a dialect's SPEC.md, its verifier and its tests name the same numbers.

Every id of the table in dialect/D/SPEC.md has to occur in a message under lib/Dialect, and in an expected
error of a lit test; every id that occurs there, or in the definitions under dialect/D, has to stand in the
table.

usage: spec_ids.py [--self-test]
"""

import glob
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DIALECTS = ["attn", "tile"]


def read(pattern):
    paths = glob.glob(os.path.join(ROOT, pattern), recursive=True)
    return "\n".join(open(path, encoding="utf-8").read() for path in sorted(paths))


def order(ids):
    return sorted(ids, key=lambda name: int(name.split("-C")[1]))


def rows_of(dialect, spec):
    return re.findall(r"^\| (%s-C\d+) \|" % dialect, spec, re.M)


def check(spec, sources, definitions, tests, dialect="attn"):
    """The list of complaints; empty if everything agrees."""
    found = re.compile(dialect + r"-C\d+").findall
    rows = rows_of(dialect, spec)
    table = set(rows)
    in_code = set(found(re.sub(r"//.*", "", sources)))
    in_tests = set()
    for error in re.findall(r"expected-error[^{]*\{\{(.*)\}\}", tests):
        in_tests.update(found(error))
    problems = []
    for name in order(table):
        if rows.count(name) > 1:
            problems.append("%s has %d rows in SPEC.md" % (name, rows.count(name)))
        if name not in in_code:
            problems.append("%s is in SPEC.md, but no message under lib/Dialect has it" % name)
        if name not in in_tests:
            problems.append("%s is in SPEC.md, but no lit test expects it" % name)
    known = table
    for where, ids in [("lib/Dialect", in_code), ("dialect/" + dialect, set(found(definitions))),
                       ("a lit test", in_tests)]:
        problems += ["%s is in %s, but not in SPEC.md" % (name, where) for name in order(ids - known)]
    if not table:
        problems.append("SPEC.md has no table of constraints")
    return problems


def self_test():
    spec = "| attn-C1 | x |\n| attn-C2 | y |\n"
    code = 'emit("a (attn-C1)"); // attn-C9\nemit("b (attn-C2)");'
    test = "// expected-error @+1 {{a (attn-C1)}}\n// expected-error {{b (attn-C2)}}\n"
    cases = [
        (spec, code, "attn-C1", test, 0),
        (spec + "| attn-C3 | z |\n", code, "", test, 2),
        (spec, code + 'emit("attn-C4");', "", test, 1),
        (spec, code, "attn-C5", test, 1),
        (spec, code, "", test + "// attn-C6\n", 0),
        (spec, code, "", test + "// expected-error {{attn-C6}}\n", 1),
        (spec, code, "", test.replace("attn-C2", "attn-C1"), 1),
        (spec + "| attn-C1 | x |\n", code, "", test, 1),
        ("", "", "", "", 1),
    ]
    for number, (*texts, expected) in enumerate(cases):
        problems = check(*texts)
        if len(problems) != expected:
            print("self-test %d: expected %d problems, got %s" % (number, expected, problems))
            return 1
    print("self-test: %d cases" % len(cases))
    return 0


def main():
    if "--self-test" in sys.argv[1:]:
        return self_test()
    failed = False
    for dialect in DIALECTS:
        spec = read("dialect/%s/SPEC.md" % dialect)
        problems = check(spec, read("lib/Dialect/**/*.cpp"), read("dialect/%s/IR/*.td" % dialect),
                         read("test/**/*.mlir"), dialect)
        for problem in problems:
            print("error: " + problem)
        if not problems:
            print("%s: %d constraints agree" % (dialect, len(rows_of(dialect, spec))))
        failed |= bool(problems)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
