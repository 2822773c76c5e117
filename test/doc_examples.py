#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks every example in the documentation.

- Each fenced block marked `mlir` in README.md, docs/ and the SPEC.md of a dialect must parse, verify and survive
  a round trip through attn-opt. A block marked `mlir PATH` must be the kernel of that file, word for word.
- The description of each operation in dialect/attn/IR has an example that does the same, inside a kernel
  that declares the values the example uses.
- With --docs, the generated reference pages must be there and hold every operation and pass.

usage: doc_examples.py --attn-opt=PATH [--docs=DIR]
       doc_examples.py --attn-opt=PATH --self-test
"""

import argparse
import glob
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGES = ["README.md", "CONTRIBUTING.md", "docs/*.md", "dialect/attn/SPEC.md", "dialect/tile/SPEC.md"]
FENCE = re.compile(r"^```(\w*) ?([^\n]*)\n(.*?)^```$", re.M | re.S)

# Around an example that is not a kernel by itself: parameters and tables by the names examples use.
PARAMS = {"left": "i32", "ahead": "i32", "n": "i32", "slope": "f32"}
TABLES = {
    "mm": "!attn.ranges",
    "doc": "!attn.documents",
    "rows": "!attn.query_ranges from %mm",
    "len": "!attn.table<[b], i32>",
}
ROW_BOUNDS = """%lo, %hi = attn.per row (%b, %h, %q) -> (index, index) {
  %l, %u = attn.row_range %rows, %q
  attn.yield %l, %u : index, index
}
"""


def kernel(body, defined=()):
    """A kernel around `body` that declares every name but those that the body defines."""
    params = ", ".join("%%%s: %s" % item for item in PARAMS.items() if item[0] not in defined)
    tables = ", ".join("%%%s: %s" % item for item in TABLES.items() if item[0] not in defined)
    head = "attn.kernel @example heads(8) kv_heads(4) dim(64) q(f32) kv(f32)\n    "
    return head + "params(%s) tables(%s) {\n%s\n}\n" % (params, tables, body)


def wrap(example):
    """The example inside the smallest kernel that makes it whole."""
    if example.startswith("attn.kernel"):
        return example
    if example.startswith(("attn.mask", "attn.score", "%lo, %hi = attn.per")):
        return kernel(example)
    if example.startswith("attn.bounds"):
        return kernel(ROW_BOUNDS + example)
    results = re.findall(r"%(\w+)", example.split("=")[0]) if "=" in example else []
    if re.search(r"= attn\.\w+ %s,", example):
        return kernel("attn.score (%%s, %%b, %%h, %%q, %%k) {\n  %s\n  attn.yield %%%s : f32\n}"
                      % (example, results[0]), results)
    lines = []
    arguments = "%b, %h, %q, %k"
    if re.search(r"attn\.(and|or|not) ", example):
        arguments = "%request, %head, %q, %k"
        lines += ["%a = attn.causal %q, %k", "%b = attn.window %q, %k left(%left)"]
    if "%lo, %hi" in example and "lo" not in results:
        lines.append("%lo, %hi = attn.row_range %rows, %q")
    if "%r]" in example:
        lines.append("%r = arith.constant 0 : index")
    if "m" not in results:
        lines.append("%m = attn.causal %q, %k")
    lines.append(example)
    if not example.startswith("attn.yield"):
        lines.append("attn.yield %m : i1")
    return kernel("attn.mask (%s) {\n  %s\n}" % (arguments, "\n  ".join(lines)), results)


def run_opt(tool, text):
    return subprocess.run([tool, "-"], input=text, capture_output=True, text=True, check=False)


def check_spec(tool, where, text):
    """Error text, or None if the spec parses and prints to what prints again as itself."""
    first = run_opt(tool, text)
    if first.returncode != 0:
        return "%s: attn-opt refuses it:\n%s" % (where, first.stderr)
    second = run_opt(tool, first.stdout)
    if second.returncode != 0 or second.stdout != first.stdout:
        return "%s: does not survive a round trip:\n%s%s" % (where, first.stdout, second.stderr)
    return None


def kernel_of(path):
    """The text of a spec file from its kernel on; leading comments are left out."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    return text[text.index("attn.kernel"):]


def page_examples():
    """Yields (place, info string, text) of every mlir block of the pages."""
    for pattern in PAGES:
        for path in sorted(glob.glob(os.path.join(ROOT, pattern))):
            with open(path, encoding="utf-8") as file:
                text = file.read()
            for match in FENCE.finditer(text):
                if match.group(1) == "mlir":
                    line = text.count("\n", 0, match.start()) + 1
                    place = "%s:%d" % (os.path.relpath(path, ROOT), line)
                    yield place, match.group(2).strip(), match.group(3)


def definition_examples():
    """Yields (place, text or None) of every operation definition."""
    for path in sorted(glob.glob(os.path.join(ROOT, "dialect/attn/IR/*.td"))):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        parts = re.split(r"(?m)^(?=(?:def|class) )", text)
        for part in parts:
            if not re.match(r"def Attn_\w+Op : ", part):
                continue
            place = "%s: %s" % (os.path.relpath(path, ROOT), part.split(" ")[1])
            fenced = re.search(r"Example:\s*```mlir\n(.*?)```", part, re.S)
            inline = re.search(r"Example:\s*`([^`]+)`", part)
            if fenced:
                lines = fenced.group(1).split("\n")
                indent = len(lines[0]) - len(lines[0].lstrip())
                yield place, "\n".join(line[indent:] for line in lines).strip()
            else:
                yield place, inline.group(1) if inline else None


def check_generated(folder):
    """Errors of the generated reference: every operation and pass has its heading."""
    expected = {}
    for path in glob.glob(os.path.join(ROOT, "dialect/**/*.td"), recursive=True):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for name in re.findall(r'def \w+Pass\s*:\s*Pass<"([^"]+)"', text):
            expected["### `-%s`" % name] = os.path.relpath(path, ROOT)
        for name in re.findall(r'(?:Attn_\w*Op<|Op<Attn_Dialect, )"(\w+)"', text):
            expected["### `attn.%s`" % name] = os.path.relpath(path, ROOT)
    pages = ""
    for path in glob.glob(os.path.join(folder, "**/*.md"), recursive=True):
        with open(path, encoding="utf-8") as file:
            pages += file.read()
    errors = ["%s: nothing headed \"%s\" in the generated pages under %s" % (source, heading, folder)
              for heading, source in sorted(expected.items()) if heading not in pages]
    if not expected:
        errors.append("no operation or pass definitions found")
    return len(expected), errors


def check(tool, folder):
    errors, specs, definitions, headings = [], 0, 0, 0
    for place, info, text in page_examples():
        specs += 1
        if info and not os.path.exists(os.path.join(ROOT, info)):
            errors.append("%s: no file %s" % (place, info))
        elif info and kernel_of(os.path.join(ROOT, info)) != text:
            errors.append("%s: differs from the kernel in %s" % (place, info))
        errors.append(check_spec(tool, place, text))
    for place, text in definition_examples():
        definitions += 1
        if text is None:
            errors.append("%s: has no example" % place)
        else:
            errors.append(check_spec(tool, place, wrap(text)))
    if folder:
        headings, missing = check_generated(folder)
        errors += missing
    errors = [error for error in errors if error]
    for error in errors:
        print(error)
    print("doc examples: %d specs on pages, %d operations, %d generated headings, %d errors"
          % (specs, definitions, headings, len(errors)))
    return 1 if errors or not specs or not definitions else 0


def self_test(tool):
    """A broken example must be an error, a good one must not."""
    good = "attn.kernel @x heads(2) dim(16) q(f32) kv(f32) {\n}\n"
    bad = [
        good.replace("heads", "heds"),
        good.replace("{\n", "{\n  attn.mask (%b, %h, %q, %k) {\n    attn.yield %nothing : i1\n  }\n"),
        wrap("%m = attn.sideways %q, %k"),
    ]
    results = [check_spec(tool, "good", good) is None]
    results += [check_spec(tool, "bad", text) is not None for text in bad]
    print("doc examples self-test: %d cases, %d failed" % (len(results), results.count(False)))
    return 0 if all(results) else 1


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--attn-opt", required=True)
    parser.add_argument("--docs", help="folder of the generated reference pages")
    parser.add_argument("--self-test", action="store_true")
    arguments = parser.parse_args()
    if arguments.self_test:
        return self_test(arguments.attn_opt)
    return check(arguments.attn_opt, arguments.docs)


if __name__ == "__main__":
    sys.exit(main())
