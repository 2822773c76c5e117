#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles the artifacts of attn-device-test.

usage: build_artifacts.py --compile ATTN-COMPILE OUT [--only TEXT] [--fake ATTN-FAKE-ARTIFACT | --sim]

Writes OUT/MASK-dDIM-TYPE-hHEADSxKVHEADS[-tiles][-plain].attn; the kernel of a file is called MASK, which
tells the test what it must keep. Files named -tiles count the tiles they visit, -plain are compiled
without the mask passes. With --fake the kernels are made for the fake driver instead of a GPU. With --sim
they are PTX only, and more of them: every mask in every dim and type, and once without its passes; and
some with another --rescale-slack than the table's, -slack0 and -slack8.
"""

import argparse
import concurrent.futures
import os
import subprocess
import sys
import tempfile

WINDOW = """    %c = attn.causal %q, %k
    %w = attn.window %q, %k left(%left)
    %cw = attn.and %c, %w
"""
# Mask -> (parameters, tables, scale, mask lines, score lines).
MASKS = {
    "none": ("", "", "", "", ""),
    "causal": ("", "", "", "    %m = attn.causal %q, %k\n", ""),
    "window": ("%left: i32", "", "", WINDOW.replace("%cw =", "%m ="), ""),
    "window_mm": ("%left: i32", "%mm: !attn.ranges", "", WINDOW + """    %r = attn.mm_prefix %mm, %b, %q, %k
    %m = attn.or %cw, %r
""", ""),
    "window_mm_clamp": ("%left: i32", "%mm: !attn.ranges", "",
                        WINDOW + """    %r = attn.mm_prefix %mm, %b, %q, %k clamp(%left)
    %m = attn.or %cw, %r
""", ""),
    "prefix_lm": ("", "%prefix_len: !attn.table<[b], i32>", "",
                  """    %n = attn.load %prefix_len[%b] : !attn.table<[b], i32>
    %c = attn.causal %q, %k
    %p = attn.prefix %k, %n
    %m = attn.or %c, %p
""", ""),
    "document": ("", "%doc: !attn.documents", "", """    %c = attn.causal %q, %k
    %d = attn.document %doc, %b, %q, %k
    %m = attn.and %c, %d
""", ""),
    "rswa": ("%left: i32", "%prefix_len: !attn.table<[b], i32>", "",
             """    %n = attn.load %prefix_len[%b] : !attn.table<[b], i32>
    %c = attn.causal %q, %k
    %p = attn.prefix %k, %n
    %w = attn.window %q, %k left(%left)
    %pw = attn.or %p, %w
    %m = attn.and %c, %pw
""", ""),
    "global_window": ("%left: i32, %global_tokens: i32", "", "",
                      """    %w = attn.window %q, %k left(%left) right(%left)
    %g = attn.global %q, %k, %global_tokens
    %m = attn.or %w, %g
""", ""),
    "not_window": ("%left: i32", "", "", """    %c = attn.causal %q, %k
    %w = attn.window %q, %k left(%left)
    %n = attn.not %w
    %m = attn.and %c, %n
""", ""),
    "branches": ("", "%q_branch: !attn.table<[token], i32>, %k_branch: !attn.table<[b, k], i32>", "",
                 """    %shared = arith.constant 0 : i32
    %mine = attn.load %q_branch[%q] : !attn.table<[token], i32>
    %other = attn.load %k_branch[%b, %k] : !attn.table<[b, k], i32>
    %prompt = arith.cmpi eq, %other, %shared : i32
    %same = arith.cmpi eq, %other, %mine : i32
    %visible = arith.ori %prompt, %same : i1
    %c = attn.causal %q, %k
    %m = attn.and %c, %visible
""", ""),
    "predicate": ("", "", "", """    %two = arith.constant 2 : index
    %three = arith.constant 3 : index
    %zero = arith.constant 0 : index
    %twice = arith.muli %k, %two : index
    %sum = arith.addi %q, %twice : index
    %rest = arith.remsi %sum, %three : index
    %third = arith.cmpi ne, %rest, %zero : index
    %past = arith.cmpi sle, %k, %q : index
    %m = arith.andi %past, %third : i1
""", ""),
    "head_window": ("", "%radii: !attn.table<[h], i32>", "",
                    """    %left = attn.load %radii[%h] : !attn.table<[h], i32>
""" + WINDOW.replace("%cw =", "%m ="), ""),
    "alibi": ("", "%slopes: !attn.table<[h], f32>", "", "    %m = attn.causal %q, %k\n",
              """    %slope = attn.load %slopes[%h] : !attn.table<[h], f32>
    %x = attn.alibi %s, %q, %k, %slope
"""),
    "softcap": ("%scale: f32, %cap: f32", "", "scale(%scale)", "    %m = attn.causal %q, %k\n",
                "    %x = attn.soft_cap %s, %cap\n"),
    # Without a maximum in bf16; rows of a row group keep different blocks.
    "softcap50": ("%left: i32", "", "", WINDOW.replace("%cw =", "%m ="), "    %x = attn.soft_cap %s, 50.0\n"),
}
DIMS = (64, 128, 256)
TYPES = ("bf16", "f16")
# Query heads over key/value heads: groups of 1, 2, 4, 5 and 8.
HEADS = ((2, 2), (4, 2), (4, 1), (5, 1), (8, 1))


def cases(simulated=False):
    """(mask, dim, type, heads, kv heads, suffix) of every artifact."""
    result = []
    for i, mask in enumerate(MASKS):
        # Every mask in every dim; types and head groups take turns.
        for j, dim in enumerate(DIMS):
            heads, kv_heads = HEADS[(i + j) % len(HEADS)]
            result.append((mask, dim, TYPES[(i + j) % 2], heads, kv_heads, ""))
            if simulated:
                result.append((mask, dim, TYPES[(i + j + 1) % 2], 2, 1, ""))
        heads, kv_heads = HEADS[(i + 1) % len(HEADS)]
        result.append((mask, DIMS[i % 3], "bf16", heads, kv_heads, "-tiles"))
        if simulated:
            result.append((mask, DIMS[(i + 1) % 3], "bf16", 2, 1, "-plain"))
    # Every head group in every dim and type, on the mask of most moving parts.
    for j, dim in enumerate(DIMS):
        for t, dtype in enumerate(TYPES):
            for heads, kv_heads in HEADS:
                result.append(("window_mm_clamp", dim, dtype, heads, kv_heads, ""))
    # The shape of the batch files in examples/.
    result.append(("window_mm_clamp", 256, "bf16", 8, 4, ""))
    result.append(("window_mm_clamp", 256, "bf16", 8, 4, "-tiles"))
    if simulated:
        for mask, dim, slack in (("causal", 64, 8), ("causal", 128, 0), ("window_mm", 128, 8), ("alibi", 128, 8),
                                 ("causal", 256, 0), ("predicate", 256, 0)):
            result += [(mask, dim, dtype, 2, 1, "-slack%d" % slack) for dtype in TYPES]
    return sorted(set(result))


def spec(mask, dim, dtype, heads, kv_heads):
    params, tables, scale, lines, score = MASKS[mask]
    text = "attn.kernel @%s heads(%d) kv_heads(%d) dim(%d) q(%s) kv(%s) %s" % (
        mask, heads, kv_heads, dim, dtype, dtype, scale)
    if params:
        text += " params(%s)" % params
    if tables:
        text += " tables(%s)" % tables
    text += " {\n"
    if lines:
        text += "  attn.mask (%b, %h, %q, %k) {\n" + lines + "    attn.yield %m : i1\n  }\n"
    if score:
        text += "  attn.score (%s, %b, %h, %q, %k) {\n" + score + "    attn.yield %x : f32\n  }\n"
    return text + "}\n"


OPTIONS = {"": [], "-tiles": ["--instrument=tiles"], "-plain": ["--no-mask-passes"],
           "-slack0": ["--rescale-slack=0"], "-slack8": ["--rescale-slack=8"]}


def run(command):
    """Error text of a command, empty if it went well."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return "%s\n%s" % (" ".join(command), done.stderr or "exit status %d" % done.returncode) \
        if done.returncode else ""


def build(options, work, case):
    """Compiles one artifact; its errors."""
    mask, dim, dtype, heads, kv_heads, suffix = case
    name = "%s-d%d-%s-h%dx%d%s" % (mask, dim, dtype, heads, kv_heads, suffix)
    source = os.path.join(work, name + ".mlir")
    with open(source, "w", encoding="utf-8") as file:
        file.write(spec(mask, dim, dtype, heads, kv_heads))
    target = os.path.join(options.out, name + ".attn")
    if not options.fake:
        return run([options.compile, source, "--target=sm_90a", "-o", target] + OPTIONS[suffix] +
                   (["--ptxas=none"] if options.sim else []))
    cpu = os.path.join(work, name + ".attn")
    return run([options.compile, source, "--target=cpu", "-O0", "-o", cpu]) or \
        run([options.fake] + (["--tiles"] if suffix == "-tiles" else []) + [cpu, target])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compile", required=True, help="attn-compile")
    parser.add_argument("--fake", help="attn-fake-artifact")
    parser.add_argument("--sim", action="store_true", help="for the simulator: PTX, more kernels")
    parser.add_argument("--only", default="", help="files whose name contains this")
    parser.add_argument("out")
    options = parser.parse_args()
    os.makedirs(options.out, exist_ok=True)
    chosen = [c for c in cases(options.sim)
              if options.only in "%s-d%d-%s-h%dx%d%s" % c]
    if not chosen:
        sys.exit("no artifact with '%s' in its name" % options.only)
    with tempfile.TemporaryDirectory() as work, \
            concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        errors = [e for e in pool.map(lambda case: build(options, work, case), chosen) if e]
    if errors:
        sys.exit("\n".join(errors))
    print("%d artifacts in %s" % (len(chosen), options.out))


if __name__ == "__main__":
    main()
