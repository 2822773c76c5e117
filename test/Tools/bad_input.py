#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every tool on bad input: the exit status is 2, the message is the expected one, whole, and no output file is
left behind. usage: bad_input.py --bin DIR"""

import argparse
import os
import subprocess
import sys
import tempfile

SPEC = "attn.kernel @k heads(2) dim(16) q(f32) kv(f32) {%s}\n"
MASK = SPEC % " attn.mask (%%b, %%h, %%q, %%k) { %s attn.yield %%m : i1 } "
PARAM = """attn.kernel @k heads(2) dim(16) q(f32) kv(f32) params(%left: i32) tables(%mm: !attn.ranges) {
  attn.mask (%b, %h, %q, %k) {
    %w = attn.window %q, %k left(%left)
    %r = attn.mm_prefix %mm, %b, %q, %k
    %m = attn.or %w, %r
    attn.yield %m : i1
  }
}
"""
TABLE = """attn.kernel @k heads(2) dim(16) q(f32) kv(f32) tables(%t: !attn.table<[token, k], i8>) {
  attn.mask (%b, %h, %q, %k) {
    %v = attn.load %t[%q, %k] : !attn.table<[token, k], i8>
    %z = arith.constant 0 : i8
    %m = arith.cmpi ne, %v, %z : i8
    attn.yield %m : i1
  }
}
"""
DOCUMENTS = """attn.kernel @k heads(2) dim(16) q(f32) kv(f32) tables(%doc: !attn.documents) {
  attn.mask (%b, %h, %q, %k) {
    %m = attn.document %doc, %b, %q, %k
    attn.yield %m : i1
  }
}
"""

# A mask that differs by head, and one that is not made of intervals.
HEADS = MASK % """%h2 = arith.muli %h, %k : index
    %m = arith.cmpi sle, %h2, %q : index"""
ODD = MASK % """%x = arith.muli %q, %k : index
    %seven = arith.constant 7 : index
    %r = arith.remsi %x, %seven : index
    %z = arith.constant 0 : index
    %m = arith.cmpi eq, %r, %z : index"""

# (spec, what attn-compile says; "OUT" stands for the output file's name)
SPECS = [
    ("", "spec.mlir:1:1: error: the spec holds no attn.kernel"),
    ("junk\n", "spec.mlir:1:1: error: custom op 'junk' is unknown (tried 'builtin.junk' as well)"),
    (SPEC % "" + SPEC % "", "spec.mlir:2:1: error: redefinition of symbol named 'k'\n"
     "spec.mlir:1:1: note: see existing symbol definition here"),
    ("attn.kernel @k heads(2) dim(16) q(f32) kv(f32) sink(%a) {}\n",
     "spec.mlir:1:48: error: custom op 'attn.kernel' unknown clause 'sink', expected one of heads, kv_heads, "
     "dim, dim_v, q, kv, scale, params, tables"),
    ("attn.kernel @k heads(33) kv_heads(2) dim(16) q(f32) kv(f32) {}\n",
     "spec.mlir:1:1: error: 'attn.kernel' op heads is expected to be a multiple of kv_heads, got 33 and 2 "
     "(attn-C11)"),
    ("attn.kernel @k heads(3) kv_heads(2) dim(16) q(f32) kv(f32) {}\n",
     "spec.mlir:1:1: error: 'attn.kernel' op heads is expected to be a multiple of kv_heads, got 3 and 2 "
     "(attn-C11)"),
    (MASK % "%m = attn.window %q, %k left(-1)\n",
     "spec.mlir:1:84: error: 'attn.window' op left is a radius and expected to be >= 0, got -1 (attn-C3)"),
    (MASK % "%m = attn.sliding %q, %k count(0)\n",
     "spec.mlir:1:84: error: 'attn.sliding' op count includes self and is expected to be >= 1, got 0 (attn-C4)"),
    (MASK % "%m = attn.causal %k, %q\n",
     "spec.mlir:1:84: error: 'attn.causal' op operand q is expected to be the region's argument %q, got %k "
     "(attn-C1)"),
    (MASK % "%m = attn.window %q, %k left(99999999999)\n",
     "spec.mlir:1:108: error: custom op 'attn.window' integer literal does not fit i32"),
    ("func.func @f() { return }\n",
     "spec.mlir:1:1: error: 'func.func' op is not allowed in a spec, expected attn.kernel"),
]

GOOD = '{"requests": [{"query_len": 2, "seq_len": 3%s}]%s}'

# (spec, batch, what attn-run says after "attn-run: error: batch.json: ")
BATCHES = [
    (SPEC % "", "", "line 1, column 1: expected a value, got the end of the text"),
    (SPEC % "", "{}", "line 1, column 1: missing key 'requests'"),
    (SPEC % "", '{"requests": [], "frob": 1}', "line 1, column 18: unknown key 'frob', expected one of requests, page_size, partial_ranges, params, tables"),
    (SPEC % "", GOOD % ('', ', "page_size": 0'),
     'page_size is 0, expected 1 to 1073741823'),
    (SPEC % "", GOOD % (', "query_len": 3', ''),
     "line 1, column 46: duplicate key 'query_len'"),
    (SPEC % "", '{"requests": [{"query_len": -1, "seq_len": 3}]}',
     'request 0: query_len is -1, expected 0 to 1073741823'),
    (SPEC % "", '{"requests": [{"query_len": 1, "seq_len": 1.5}]}',
     'line 1, column 43: requests[0].seq_len: expected an integer, got a number'),
    (SPEC % "", '{"requests": [{"query_len": 1, "seq_len": 99999999999}]}',
     'request 0: seq_len is 99999999999, expected 0 to 1073741823'),
    (SPEC % "", GOOD % ('', ', "params": {"left": 3}'),
     "param 'left': kernel 'k' has no such parameter (it has: none)"),
    (PARAM, GOOD % ('', ''),
     "param 'left': missing (i32)"),
    (PARAM, GOOD % ('', ', "params": {"left": -1}'),
     "param 'left': expected at least 0, got -1"),
    (PARAM, GOOD % ('', ', "params": {"left": 1.5}'),
     "param 'left': expected an integer (i32), got 1.5"),
    (PARAM, GOOD % ('', ', "params": {"left": 100000000000000000000}'),
     "param 'left': expected an integer (i32), got 1e+20"),
    (SPEC % "", '{"requests": [{"query_len": 1, "seq_len": 100000000000000000000}]}',
     'line 1, column 43: requests[0].seq_len: expected an integer of at most 64 bits, got 1e+20'),
    (PARAM, GOOD % ('', ', "params": {"left": 4294967296}'),
     "param 'left': 4294967296 does not fit i32"),
    (PARAM, GOOD % (', "mm_ranges": [[1, 3]]', ', "params": {"left": 1}'),
     "request 0: range 0 [1, 3] holds a scheduled query and ends at or past seq_len 3; its keys "
     "are not all there (partial_ranges: \"allow\" accepts that)"),
    (PARAM, GOOD % (', "mm_ranges": [[-1, 2]]', ', "params": {"left": 1}'),
     'request 0: range 0 [-1, 2] starts before 0'),
    (PARAM, GOOD % (', "mm_ranges": [[1]]', ', "params": {"left": 1}'),
     'line 1, column 60: requests[0].mm_ranges[0]: expected [start, end], got 1 elements'),
    (TABLE, GOOD % ('', ''),
     "table 't': missing, expected a dense table"),
    (TABLE, GOOD % ('', ', "tables": {"t": [[1, 1, 1]]}'),
     "table 't': dimension 0 (token) is 1, expected 2"),
    (TABLE, GOOD % ('', ', "tables": {"t": [[1, 1], [1, 1]]}'),
     "table 't': dimension 1 (k) is 2, expected at least the largest seq_len 3"),
    (TABLE, GOOD % ('', ', "tables": {"t": [[1, 1, 1], [1, 1]]}'),
     'line 1, column 76: tables.t[1]: expected 3 elements as in the lists before it, got 2'),
    (TABLE, GOOD % ('', ', "tables": {"t": [[1, 1, 300], [1, 1, 1]]}'),
     'line 1, column 72: tables.t[0][2]: expected an integer, -128 to 127, got 300'),
    (TABLE, GOOD % ('', ', "tables": {"u": [[1, 1, 1], [1, 1, 1]]}'),
     "table 'u': kernel 'k' has no such table (it has: 't')"),
    (DOCUMENTS, GOOD % ('', ', "tables": {"doc": [[0, 1]]}'),
     "request 0: table 'doc' has 2 document ids, expected seq_len 3"),
    (DOCUMENTS, GOOD % ('', ', "tables": {"doc": [[0, 1, 0]]}'),
     "request 0: table 'doc' has document id 0 again at key 2, expected the keys of a document "
     "to be contiguous"),
    (SPEC % "", GOOD % (', "seq_len_bound": 9', ''),
     "request 0: seq_len_bound: given for a prefill row, expected a decode row "
     "(is_prefilling: false)"),
    (SPEC % "", GOOD % (', "seq_len_bound": 9, "is_prefilling": false', ''),
     "request 0: seq_len_bound: device 'cpu' needs exact lengths (seq_len alone)"),
    (SPEC % "", GOOD % (', "block_table": [0]', ''),
     'block_table: given without page_size'),
    (SPEC % "", GOOD % (', "block_table": []', ', "page_size": 16'),
     'request 0: block_table has 0 entries, expected at least 1 for seq_len 3 in pages of 16'),
    (SPEC % "", GOOD % (', "block_table": [-1]', ', "page_size": 16'),
     "request 0: block_table[0] is -1, expected a page id of at least 0, because the page holds "
     "keys"),
    (SPEC % "", GOOD % (', "context_len": 1073741824', ''),
     'request 0: context_len is 1073741824, expected a position between -1073741823 and 1073741823'),
]

# (tool and arguments, what it says on standard error)
COMMANDS = [
    (["attn-compile"], "attn-compile: no spec is given, see --help"),
    (["attn-compile", "none.mlir", "-o", "OUT"],
     "attn-compile: cannot read 'none.mlir': No such file or directory"),
    (["attn-compile", "good.mlir"], "attn-compile: no output is given, expected -o FILE or --emit=LEVEL"),
    (["attn-compile", "good.mlir", "--target=sm_80", "-o", "OUT"],
     "attn-compile: target 'sm_80' is not available, expected one of: TARGETS"),
    (["attn-compile", "good.mlir", "--target=cpu,sm_100a", "-o", "OUT"],
     "attn-compile: target 'sm_100a' is not available yet, expected one of: TARGETS"),
    (["attn-compile", "good.mlir", "--emit=ptx", "-o", "OUT"],
     "attn-compile: target 'cpu' has no level 'ptx', expected attn or llvm"),
    (["attn-compile", "good.mlir", "-O7", "-o", "OUT"],
     "attn-compile: -O is expected to be 0 to 3, got 7"),
    (["attn-compile", "good.mlir", "-o", "none/OUT"],
     "attn-compile: cannot write 'none/OUT': No such file or directory"),
    (["attn-run"], "attn-run: error: no artifact given; see --help"),
    (["attn-run", "good.attn"], "attn-run: error: no batch given (--batch); see --help"),
    (["attn-run", "good.mlir", "--batch", "good.json"],
     "attn-run: error: 'good.mlir': not an attn artifact"),
    (["attn-run", "cut.attn", "--batch", "good.json", "--output", "OUT"],
     "attn-run: error: 'cut.attn': artifact is cut short: expected at least 24 bytes, got 10"),
    (["attn-run", "good.attn", "--batch", "none.json"],
     "attn-run: error: cannot read 'none.json': No such file or directory"),
    (["attn-run", "good.attn", "--batch", "good.json", "--device=cuda", "--threads=2", "--output", "OUT"],
     "attn-run: error: --threads: device 'cuda' has its own threads, expected device 'cpu' or 'sim'"),
    (["attn-run", "good.attn", "--batch", "good.json", "--device=sim", "--output", "OUT"],
     "attn-run: error: kernel 'k': no code for target 'sm_90a' (the artifact has: cpu)"),
    (["attn-run", "good.attn", "--batch", "good.json", "--device=reference", "--check"],
     "attn-run: error: --check: device 'reference' is the judge and cannot judge itself; choose another device"),
    (["attn-run", "good.attn", "--batch", "good.json", "--frob"],
     "attn-run: error: unknown option '--frob'; see --help"),
    (["attn-run", "good.attn", "--batch", "good.json", "--kernel=x", "--output", "OUT"],
     "attn-run: error: good.attn: no kernel 'x' (it has: k)"),
    (["attn-run", "good.attn", "--batch", "good.json", "--inputs", "good.json", "--output", "OUT"],
     "attn-run: error: good.json: not a safetensors file: header of 8315181416903221883 bytes in"
     " a file of 46"),
    (["attn-run", "good.attn", "--batch", "good.json", "--output", "none/OUT"],
     "attn-run: error: cannot write 'none/OUT': No such file or directory"),
    (["attn-mask", "good.mlir"], "attn-mask: error: no batch is given, expected --batch FILE"),
    (["attn-mask", "good.mlir", "--batch", "good.json", "--tile=0x80", "--png", "OUT"],
     "attn-mask: error: --tile is expected as QUERIESxKEYS, as in 128x80, got '0x80'"),
    (["attn-mask", "good.mlir", "--batch", "good.json", "--head=2", "--png", "OUT"],
     "attn-mask: error: --head is expected to be 0 to 1, got 2"),
    (["attn-mask", "good.mlir", "--batch", "good.json", "--request=1", "--png", "OUT"],
     "attn-mask: error: --request is expected to be 0 to 0, got 1"),
    (["attn-mask", "good.mlir", "--batch", "good.json", "--kernel=x", "--png", "OUT"],
     "attn-mask: error: no kernel is named 'x', expected one of: k"),
    (["attn-mask", "good.mlir", "--batch", "good.json", "--png", "none/OUT"],
     "attn-mask: error: cannot write 'none/OUT': No such file or directory"),
]


# An empty value, for every option that takes one.
for option in ["-o", "--emit"]:
    for given in ([option, ""], [option + "="]):
        COMMANDS.append((["attn-compile", "good.mlir", "--target=cpu"] + given,
                         "attn-compile: %s: expected a value, got ''" % option))
COMMANDS.append((["attn-compile", "good.mlir", "--target=", "-o", "OUT"],
                 "attn-compile: target '' is not available, expected one of: TARGETS"))
COMMANDS.append((["attn-compile", "good.mlir", "--target=cpu,", "-o", "OUT"],
                 "attn-compile: target '' is not available, expected one of: TARGETS"))
for option in ["--batch", "--kernel", "--inputs", "--output", "--device", "--seed", "--threads"]:
    for given in ([option, ""], [option + "="]):
        COMMANDS.append((["attn-run", "good.attn", "--batch", "good.json"] + given,
                         "attn-run: error: %s: expected a value, got ''" % option))
for option in ["--batch", "--png", "--tile", "--kernel"]:
    batch = [] if option == "--batch" else ["--batch", "good.json"]
    for given in ([option, ""], [option + "="]):
        COMMANDS.append((["attn-mask", "good.mlir"] + batch + given,
                         "attn-mask: error: %s: expected a value, got ''" % option))
COMMANDS.append((["attn-opt", "good.mlir", "-o", ""], "attn-opt: error: -o: expected a value, got ''"))

# What an option list may not hold together, and sizes.
COMMANDS += [
    (["attn-compile", "good.mlir", "--target=cpu,cpu", "-o", "OUT"],
     "attn-compile: target 'cpu' is given twice"),
    (["attn-compile", "good.mlir", "--target=cpu", "--target=cpu", "-o", "OUT"],
     "attn-compile: target 'cpu' is given twice"),
    (["attn-compile", "good.mlir", "--target=list", "-o", "OUT"],
     "attn-compile: --target=list only prints the targets, expected no other argument"),
    (["attn-compile", "good.mlir", "--emit=attn", "-O2", "-o", "OUT"],
     "attn-compile: -O has no meaning with --emit=attn, no code is generated for the CPU"),
    (["attn-run", "good.attn", "--batch", "good.json", "--device=reference", "--threads=2", "--output", "OUT"],
     "attn-run: error: --threads: device 'reference' has one thread, expected device 'cpu' or 'sim'"),
    (["attn-run", "good.attn", "--batch", "good.json", "--output", "-"],
     "attn-run: error: --output: '-' would mix the results with the report on standard output, expected a file "
     "(./- for one of that name)"),
    (["attn-mask", "good.mlir", "--batch", "good.json", "--png=-"],
     "attn-mask: error: --png: '-' would mix the picture with the text on standard output, expected a file "
     "(./- for one of that name)"),
    (["attn-mask", "good.mlir", "--batch", "long.json", "--png", "OUT"],
     "attn-mask: error: long.json: the mask has 500000000 rows (queries, for each head if heads differ), "
     "expected at most 67108864"),
    (["attn-mask", "heads.mlir", "--batch", "middle.json", "--png", "OUT"],
     "attn-mask: error: middle.json: the mask has 80000000 rows (queries, for each head if heads differ), "
     "expected at most 67108864"),
    (["attn-mask", "odd.mlir", "--batch", "middle.json", "--png", "OUT"],
     "attn-mask: error: middle.json: the mask is not made of intervals and has 1600000000000000 (query, key) "
     "pairs, expected at most 68719476736"),
    (["attn-mask", "odd.mlir", "--batch", "wide.json", "--tile=1x1", "--png", "OUT"],
     "attn-mask: error: wide.json: the mask is not made of intervals and has 10000000000 tiles, expected at most "
     "4294967296; give a larger --tile"),
    (["attn-mask", "good.mlir", "--batch", "wide.json", "--tile=16x16", "--png", "OUT"],
     "attn-mask: error: --png: a picture of 39062500 tiles, expected at most 16777216; give --request or a larger "
     "--tile"),
    (["attn-mask", "good.mlir", "--batch", "many.json", "--png", "OUT"],
     "attn-mask: error: --png: a picture of 784 x 232808 pixels, expected at most 134217728 pixels; give "
     "--request"),
]

# A batch whose tensors pass any machine's memory.
HUGE = '{"requests": [%s]}' % ", ".join(['{"query_len": 1000000000, "seq_len": 3}'] * 64)

# Commands that end well until standard output is full.
FULL = [
    (["attn-compile", "good.mlir", "-o", "-"], "attn-compile"),
    (["attn-compile", "good.mlir", "--emit=llvm"], "attn-compile"),
    (["attn-compile", "--target=list"], "attn-compile"),
    (["attn-run", "good.attn", "--batch", "good.json", "--check", "--output", "OUT"], "attn-run: error"),
    (["attn-run", "good.attn", "--batch", "good.json", "--device=reference", "--output", "OUT"], "attn-run: error"),
    (["attn-run", "--help"], "attn-run: error"),
    (["attn-run", "--version"], "attn-run: error"),
    (["attn-mask", "good.mlir", "--batch", "good.json", "--png", "OUT"], "attn-mask: error"),
]
# The same where LLVM writes by itself.
FULL_LLVM = [[tool, option] for tool in ("attn-compile", "attn-mask", "attn-opt")
             for option in ("--help", "--version")] + [["attn-opt", "good.mlir"]]
# Command lines that LLVM refuses, with words of its own.
USAGE = [
    ["attn-compile", "good.mlir", "good.mlir", "-o", "OUT"],
    ["attn-compile", "good.mlir", "--frob", "-o", "OUT"],
    ["attn-compile", "good.mlir", "-Ox", "-o", "OUT"],
    ["attn-mask", "good.mlir", "good.mlir", "--batch", "good.json", "--png", "OUT"],
    ["attn-mask", "good.mlir", "--batch", "good.json", "--head=x", "--png", "OUT"],
    ["attn-opt", "good.mlir", "good.mlir", "-o", "OUT"],
    ["attn-opt", "good.mlir", "--frob", "-o", "OUT"],
    ["attn-opt", "none.mlir", "-o", "OUT"],
]


class Checker:
    def __init__(self, bin_dir, work):
        self.bin, self.work = bin_dir, work
        self.failures, self.messages, self.count = [], set(), 0

    def path(self, name):
        return os.path.join(self.work, name)

    def write(self, name, text):
        with open(self.path(name), "w") as f:
            f.write(text)

    def run(self, command, stdout=subprocess.PIPE, stderr=subprocess.PIPE):
        return subprocess.run([os.path.join(self.bin, command[0])] + command[1:], cwd=self.work, stdout=stdout,
                              stderr=stderr, text=True, timeout=120, stdin=subprocess.DEVNULL)

    def expect(self, what, command, message, **streams):
        """`message` None: any that is not empty."""
        result = self.run(command, **streams)
        said = (result.stderr or "").strip()
        self.messages.add(said)
        self.count += 1
        if result.returncode != 2:
            self.failures.append("%s: exit status %d, expected 2" % (what, result.returncode))
        if not said if message is None else said != message:
            self.failures.append("%s:\n  expected: %s\n  got:      %s" % (what, message, said))
        left = [f for f in os.listdir(self.work) if f.startswith("OUT") or f.startswith(".")]
        if left:
            self.failures.append("%s: left behind: %s" % (what, ", ".join(left)))


def check_memory(check):
    """The message names what is needed and what the machine has."""
    check.write("huge.json", HUGE)
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    # In each of two heads q and o have 16 floats, lse one; k and v of 192 keys are lost in the rounding.
    needed = 64 * 1e9 * 2 * 33 * 4 / 2**30
    check.expect("huge batch", ["attn-run", "good.attn", "--batch", "huge.json", "--output", "OUT"],
                 "attn-run: error: huge.json: needs %.1f GiB of memory for its tensors, this machine has %.1f GiB"
                 % (needed, memory))


def check_full(check):
    if not os.path.exists("/dev/full"):
        return
    with open("/dev/full", "w") as full:
        for command, tool in FULL:
            check.expect(" ".join(command) + " >/dev/full", command,
                         tool + ": cannot write standard output: No space left on device", stdout=full)
        for command in FULL_LLVM:
            check.expect(" ".join(command) + " >/dev/full", command,
                         command[0] + ": error: IO failure on output stream: No space left on device", stdout=full)
        # An explanation that is lost is a failure too, though nothing can be said.
        check.expect("--explain 2>/dev/full", ["attn-compile", "window.mlir", "--explain", "-o", "OUT"], "",
                     stderr=full)


def check_link(check):
    """A link stays a link, the file it leads to is replaced."""
    os.mkdir(check.path("real"))
    os.symlink("real/file", check.path("link"))
    for command in (["attn-compile", "good.mlir", "-o", "link"],
                    ["attn-run", "good.attn", "--batch", "good.json", "--output", "link"],
                    ["attn-mask", "good.mlir", "--batch", "good.json", "--png", "link"],
                    ["attn-opt", "good.mlir", "-o", "link"]):
        check.write("real/file", "")
        made = check.run(command)
        if made.returncode or not os.path.islink(check.path("link")) or \
                not os.path.getsize(check.path("real/file")) or os.listdir(check.path("real")) != ["file"]:
            check.failures.append("%s: the link is not written through: %s" % (" ".join(command), made.stderr))
        check.count += 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        check = Checker(os.path.abspath(options.bin), work)
        check.write("good.mlir", SPEC % "")
        check.write("good.json", GOOD % ("", ""))
        check.write("window.mlir", PARAM)
        check.write("heads.mlir", HEADS)
        check.write("odd.mlir", ODD)
        for name, queries in ("long", 500000000), ("middle", 40000000), ("wide", 100000):
            check.write(name + ".json", '{"requests": [{"query_len": %d, "seq_len": %d}]}' % (queries, queries))
        check.write("many.json", '{"requests": [%s]}' % ", ".join(['{"query_len": 64, "seq_len": 64}'] * 300))
        targets = ", ".join(check.run(["attn-compile", "--target=list"]).stdout.split())
        made = check.run(["attn-compile", "good.mlir", "-o", "good.attn"])
        if made.returncode:
            sys.exit("attn-compile failed on a good spec:\n" + made.stderr)
        with open(check.path("good.attn"), "rb") as f:
            whole = f.read()
        with open(check.path("cut.attn"), "wb") as f:
            f.write(whole[:10])

        for spec, message in SPECS:
            check.write("spec.mlir", spec)
            check.expect("spec " + repr(spec), ["attn-compile", "spec.mlir", "-o", "OUT"], message)
        for spec, batch, message in BATCHES:
            check.write("spec.mlir", spec)
            made = check.run(["attn-compile", "spec.mlir", "-O0", "-o", "batch.attn"])
            if made.returncode:
                sys.exit("attn-compile failed on a good spec:\n" + made.stderr)
            check.write("batch.json", batch)
            command = ["attn-run", "batch.attn", "--batch", "batch.json", "--output", "OUT"]
            check.expect("batch " + batch, command, "attn-run: error: batch.json: %s" % message)
        for command, message in COMMANDS:
            check.expect(" ".join(command), command, message.replace("TARGETS", targets))
        for command in USAGE:
            check.expect(" ".join(command), command, None)
        check_memory(check)
        check_full(check)
        check_link(check)

        for failure in check.failures:
            print(failure)
        print("%d cases, %d distinct messages, %d failures"
              % (check.count, len(check.messages), len(check.failures)))
        if len(check.messages) < 40:
            sys.exit("expected at least 40 distinct messages")
        sys.exit(1 if check.failures else 0)


main()
