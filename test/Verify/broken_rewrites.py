#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Wrong rewrites, each refuted with a counterexample that attn-mask confirms for both masks.

usage: broken_rewrites.py --attn-mask=PATH --attn-break=PATH
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

KERNEL = """attn.kernel @m heads(2) dim(16) q(f32) kv(f32)%s {
  attn.mask (%%b, %%h, %%q, %%k) {
%s
    attn.yield %%m : i1
  }
}
"""
MM = "tables(%mm: !attn.ranges)"
ROWS = "tables(%mm: !attn.ranges, %rows: !attn.query_ranges from %mm)"
ROW = "%lo, %hi = attn.row_range %rows, %q\n"

# kind: (clauses, mask)
KINDS = {
    "bare-marker": ("params(%left: i32) " + ROWS, ROW + """%r = attn.in_rows %k, %lo, %hi
        %c = attn.causal %q, %k
        %w = attn.window %q, %k left(%left)
        %cw = attn.and %c, %w
        %m = attn.or %cw, %r"""),
    "first-match": (MM, "%m = attn.mm_prefix %mm, %b, %q, %k"),
    "prefix-hull": ("params(%n: i32)", """%p = attn.prefix %k, %n
        %c = attn.causal %q, %k
        %w = attn.window %q, %k left(3)
        %cw = attn.and %c, %w
        %m = attn.or %p, %cw"""),
    "end-plus-one": ("params(%end: i32)", """%k32 = arith.index_cast %k : index to i32
        %m = arith.cmpi sle, %k32, %end : i32"""),
    "query-plus-right": ("params(%right: i32)", "%m = attn.window %q, %k right(%right)"),
    "key-for-query": (MM, "%m = attn.mm_prefix %mm, %b, %q, %k"),
    "token-for-query": ("tables(%token: !attn.table<[token], i32>)",
                        """%t = attn.load %token[%q] : !attn.table<[token], i32>
        %m = attn.causal %q, %k"""),
    "clamp-on-future": ("params(%left: i32) " + MM, "%m = attn.mm_prefix %mm, %b, %q, %k clamp(%left)"),
    "dropped-conjunct": ("", """%c = attn.causal %q, %k
        %w = attn.window %q, %k left(4)
        %m = attn.and %c, %w"""),
    "swapped-bound": (ROWS, ROW + "%m = attn.in_rows %k, %lo, %hi"),
    "full-empty-rows": (ROWS, ROW + "%m = attn.in_rows %k, %lo, %hi"),
    "document-hole": ("tables(%doc: !attn.table<[b, k], i32>)",
                      """%dq = attn.load %doc[%b, %q] : !attn.table<[b, k], i32>
        %dk = attn.load %doc[%b, %k] : !attn.table<[b, k], i32>
        %m = arith.cmpi eq, %dq, %dk : i32"""),
    "count-as-radius": ("params(%count: i32)", "%m = attn.sliding %q, %k count(%count)"),
    "hull-for-intersection": ("params(%n: i32)", """%n0 = arith.index_cast %n : i32 to index
        %c0 = arith.constant 0 : index
        %a = attn.in_rows %k, %c0, %q
        %b0 = attn.in_rows %k, %n0, %q
        %m = attn.and %a, %b0"""),
}

ERROR = re.compile(r"error: (rewrite changes the mask|bounds do not fit the mask, which is the first): at "
                   r"b = (\d+), h = (\d+), q = (-?\d+), k = (\d+) the first (keeps|drops) and the second "
                   r"(keeps|drops) the element")


def draws(tool, spec, batch, b, h, k):
    """What attn-mask draws for the only query at key k: keeps or drops; or why it draws nothing."""
    done = subprocess.run([tool, spec, "--batch", batch, "--request=%d" % b, "--head=%d" % h],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
    rows = [line.strip() for line in done.stdout.splitlines() if re.fullmatch(r"\s*[#.]+", line)]
    if done.returncode or len(rows) != 1:
        return "attn-mask: " + done.stderr + done.stdout
    return "keeps" if rows[0][k] == "#" else "drops"


def check(args, folder, kind):
    """Returns what is wrong, or None."""
    before, after, batch = (os.path.join(folder, name) for name in ("before.mlir", "after.mlir", "b.json"))
    clauses, mask = KINDS[kind]
    with open(before, "w") as file:
        file.write(KERNEL % (clauses and " " + clauses, mask))
    pass_name = "test-attn-break-rewrite{kind=%s}" % kind
    plain = subprocess.run([args.attn_break, before, "--pass-pipeline=builtin.module(attn.kernel(%s))" % pass_name,
                            "-o", after], stderr=subprocess.PIPE, universal_newlines=True)
    if plain.returncode:
        return "the rewrite itself fails: " + plain.stderr
    done = subprocess.run(
        [args.attn_break, before, "--pass-pipeline=builtin.module(attn.kernel(attn-tv-snapshot,%s,"
         "attn-tv-check{strict timeout=60}))" % pass_name], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        universal_newlines=True)
    found = ERROR.search(done.stderr)
    note = re.search(r"note: batch file: (\{.*\})", done.stderr)
    if not done.returncode or not found or not note:
        return "it is not refuted: " + done.stderr
    json.loads(note.group(1))
    with open(batch, "w") as file:
        file.write(note.group(1))
    b, h, k = int(found.group(2)), int(found.group(3)), int(found.group(5))
    specs = [(before, found.group(6))]
    if found.group(1).startswith("rewrite"):
        specs.append((after, found.group(7)))
    for spec, wanted in specs:
        got = draws(args.attn_mask, spec, batch, b, h, k)
        if got != wanted:
            return "expected that %s %s the element, got: %s\n%s" % (os.path.basename(spec), wanted, got,
                                                                       note.group(1))
    print("%-22s %s  %s" % (kind, found.group(0)[7:], note.group(1)))
    return None


def main():
    parser = argparse.ArgumentParser()
    for name in ("--attn-mask", "--attn-break"):
        parser.add_argument(name, required=True)
    args = parser.parse_args()
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        for kind in KINDS:
            fault = check(args, folder, kind)
            if fault:
                failures += 1
                print("error: %s: %s" % (kind, fault))
    print("%d of %d wrong rewrites refuted" % (len(KINDS) - failures, len(KINDS)))
    return 1 if failures or len(KINDS) < 12 else 0


if __name__ == "__main__":
    sys.exit(main())
