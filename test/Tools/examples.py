#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs one example through the tools and judges the result by itself.

Compiles examples/NAME.mlir, makes random tensors for examples/NAME.json with NaN in every key and value that
no query of the batch sees, runs the artifact, and compares every row of O and LSE with attention computed
here from the predicate below, which shares nothing with the project's code; the counts of attn-mask are
compared with it too. Only the Python standard library is used.

usage: examples.py --bin=DIR --work=DIR NAME
       examples.py --list
"""

import argparse
import json
import math
import os
import random
import re
import struct
import subprocess
import sys

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples")
TOLERANCE = 1e-5
TILE = 4


class Spec:
    """What the kernel of an example declares, said a second time."""

    def __init__(self, heads, kv_heads, keep, dim=64, dtype="BF16", scale=None, score=None,
                 intervals=True):
        self.heads, self.kv_heads, self.dim, self.dtype = heads, kv_heads, dim, dtype
        self.keep = keep  # keep(batch, b, h, q, k)
        self.intervals = intervals  # rows are made of intervals, so tile classes are exact
        self.score = score or (lambda batch, h, q, k, s: s)
        self.scale = scale or (lambda batch: 1 / math.sqrt(dim))


def param(batch, name):
    return batch["params"][name]


def in_one_range(batch, b, q, k):
    for start, end in batch["requests"][b].get("mm_ranges", []):
        if start < end and start <= q <= end and start <= k <= end:
            return True
    return False


def token_of(batch, b, q):
    requests = batch["requests"]
    context = requests[b]["seq_len"] - requests[b]["query_len"]
    return sum(r["query_len"] for r in requests[:b]) + q - context


def same_document(batch, b, q, k):
    documents = batch["tables"]["doc"][b]
    return 0 <= q < len(documents) and documents[q] == documents[k]


def text_or_image(batch, b, h, q, k):
    left = param(batch, "left")
    return (k <= q and q - k <= left) or in_one_range(batch, b, q, k)


def scan(batch, b, h, q, k):
    return (k <= q and q - k <= 2) or in_one_range(batch, b, q, k)


def clamped(batch, b, h, q, k):
    left = param(batch, "left")
    return (k <= q and q - k <= left) or (in_one_range(batch, b, q, k) and q - k <= left)


def prefix_lm(batch, b, h, q, k):
    return k <= q or k < batch["tables"]["prefix_len"][b]


def retained_prefix(batch, b, h, q, k):
    return k <= q and (k < batch["tables"]["prefix_len"][b] or q - k <= param(batch, "left"))


def global_window(batch, b, h, q, k):
    n = param(batch, "global_tokens")
    return abs(q - k) <= param(batch, "radius") or k < n or q < n


def branches(batch, b, h, q, k):
    mine = batch["tables"]["q_branch"][token_of(batch, b, q)]
    other = batch["tables"]["k_branch"][b][k]
    return k <= q and other in (0, mine)


def causal(batch, b, h, q, k):
    return k <= q


def soft_cap(batch, h, q, k, s):
    return param(batch, "cap") * math.tanh(s / param(batch, "cap"))


def alibi(batch, h, q, k, s):
    # Heads 4..7 of a model with 8 heads.
    return s - 2.0 ** -(h + 5) * abs(q - k)


SPECS = {
    "causal": Spec(4, 2, causal),
    "window": Spec(4, 1, lambda batch, b, h, q, k: -param(batch, "right") <= q - k <= param(batch, "left"),
                   dtype="F16"),
    "prefix_lm": Spec(4, 2, prefix_lm),
    "document_packing": Spec(4, 2, lambda batch, b, h, q, k: k <= q and same_document(batch, b, q, k)),
    "global_window": Spec(2, 2, global_window),
    "rswa": Spec(8, 2, retained_prefix),
    "mm_prefix": Spec(4, 2, text_or_image),
    "gemma4_sliding": Spec(8, 4, clamped, dim=256),
    "hand_written_scan": Spec(4, 2, scan),
    "table_predicate": Spec(4, 2, branches, intervals=False),
    "soft_cap": Spec(4, 2, causal, scale=lambda batch: param(batch, "scale"), score=soft_cap),
    "alibi": Spec(4, 4, causal, score=alibi),
}


# Tensors: flat lists of floats, rounded to what the file's type holds.

def encode(values, dtype):
    if dtype == "F32":
        return struct.pack("<%df" % len(values), *values)
    if dtype == "F16":
        return struct.pack("<%de" % len(values), *values)
    words = [struct.unpack("<I", struct.pack("<f", v))[0] >> 16 for v in values]
    return struct.pack("<%dH" % len(words), *[0x7FC0 if math.isnan(v) else w for v, w in zip(values, words)])


def decode(data, dtype):
    if dtype == "F32":
        return list(struct.unpack("<%df" % (len(data) // 4), data))
    if dtype == "F16":
        return list(struct.unpack("<%de" % (len(data) // 2), data))
    words = struct.unpack("<%dH" % (len(data) // 2), data)
    return [struct.unpack("<f", struct.pack("<I", w << 16))[0] for w in words]


def write_safetensors(path, tensors):
    header, blob = {}, b""
    for name, (shape, dtype, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(blob), len(blob) + len(data)]}
        blob += data
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text + blob)


def read_safetensors(path):
    with open(path, "rb") as file:
        data = file.read()
    size = struct.unpack("<Q", data[:8])[0]
    tensors = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            values = decode(data[8 + size + begin:8 + size + end], entry["dtype"])
            tensors[name] = (entry["shape"], values)
    return tensors


def visible_rows(spec, batch):
    """For each token and head: request, and the positions of the keys it sees."""
    rows = []
    for b, request in enumerate(batch["requests"]):
        for local in range(request["query_len"]):
            q = request["seq_len"] - request["query_len"] + local
            rows.append([(b, q, [k for k in range(request["seq_len"]) if spec.keep(batch, b, h, q, k)])
                         for h in range(spec.heads)])
    return rows


def attend(spec, batch, h, q, keys, row, k_rows, v_rows):
    """O and LSE of one row by definition, in double precision."""
    logits = []
    for k in keys:
        s = spec.scale(batch) * math.fsum(x * y for x, y in zip(row, k_rows[k]))
        logits.append(spec.score(batch, h, q, k, s))
    if not logits:
        return [0.0] * spec.dim, -math.inf
    top = max(logits)
    weights = [math.exp(s - top) for s in logits]
    total = math.fsum(weights)
    out = [math.fsum(w * v_rows[k][d] for w, k in zip(weights, keys)) / total for d in range(spec.dim)]
    return out, top + math.log(total)


def make_tensors(spec, batch, rows, path):
    """Random q, k, v as the file holds them, as lists of rows: q[token][head], k[key][kv head]."""
    rng = random.Random(7)
    starts, total = [], 0
    for request in batch["requests"]:
        starts.append(total)
        total += request["seq_len"]
    seen = {(starts[b] + k, h * spec.kv_heads // spec.heads)
            for token in rows for h, (b, _, keys) in enumerate(token) for k in keys}

    def rows_of(count, heads, poisoned):
        flat = []
        for i in range(count):
            for h in range(heads):
                hidden = poisoned and (i, h) not in seen
                flat += [math.nan if hidden else rng.gauss(0, 1) for _ in range(spec.dim)]
        return flat

    tensors, result = {}, []
    for name, count, heads, poisoned in (("q", len(rows), spec.heads, False),
                                         ("k", total, spec.kv_heads, True),
                                         ("v", total, spec.kv_heads, True)):
        data = encode(rows_of(count, heads, poisoned), spec.dtype)
        flat = decode(data, spec.dtype)
        tensors[name] = ([count, heads, spec.dim], spec.dtype, data)
        result.append([[flat[(i * heads + h) * spec.dim:(i * heads + h + 1) * spec.dim]
                        for h in range(heads)] for i in range(count)])
    write_safetensors(path, tensors)
    return result, starts


def compare(spec, batch, rows, tensors, starts, output):
    """Returns (largest error of a row relative to its norm, largest error of LSE, errors)."""
    q, k, v = tensors
    (o_shape, o), (lse_shape, lse) = output["o"], output["lse"]
    errors = []
    if o_shape != [len(rows), spec.heads, spec.dim] or lse_shape != [spec.heads, len(rows)]:
        return 0, 0, ["shapes are %s and %s" % (o_shape, lse_shape)]
    worst_o = worst_lse = 0.0
    for token, heads in enumerate(rows):
        for h, (b, position, keys) in enumerate(heads):
            h_kv = h * spec.kv_heads // spec.heads
            k_rows = {key: k[starts[b] + key][h_kv] for key in keys}
            v_rows = {key: v[starts[b] + key][h_kv] for key in keys}
            want, want_lse = attend(spec, batch, h, position, keys, q[token][h], k_rows, v_rows)
            at = (token * spec.heads + h) * spec.dim
            got, got_lse = o[at:at + spec.dim], lse[h * len(rows) + token]
            where = "token %d head %d (request %d, q %d, %d keys)" % (token, h, b, position, len(keys))
            if not keys:
                if any(got) or got_lse != -math.inf:
                    errors.append("%s: empty row gave %s, lse %s" % (where, got[:4], got_lse))
                continue
            error = math.dist(got, want) / math.hypot(*want)
            worst_o, worst_lse = max(worst_o, error), max(worst_lse, abs(got_lse - want_lse))
            if not error <= TOLERANCE or not abs(got_lse - want_lse) <= TOLERANCE:
                errors.append("%s: o off by %g relative, lse %g instead of %g"
                              % (where, error, got_lse, want_lse))
    return worst_o, worst_lse, errors


def count_tiles(rows, batch):
    """(visited, full, rectangle) of head 0 by looking at every pair."""
    visited = full = rectangle = first = 0
    for request in batch["requests"]:
        for top in range(0, request["query_len"], TILE):
            keys_of = [set(rows[first + i][0][2])
                       for i in range(top, min(top + TILE, request["query_len"]))]
            for left in range(0, request["seq_len"], TILE):
                block = range(left, min(left + TILE, request["seq_len"]))
                kept = sum(k in keys for keys in keys_of for k in block)
                rectangle += 1
                visited += kept > 0
                full += kept == len(keys_of) * len(block)
        first += request["query_len"]
    return visited, full, rectangle


def check_counts(spec, batch, rows, text):
    """Errors of what attn-mask printed."""
    errors = []
    counts = [int(x) for x in re.search(
        r"(\d+) visited \((\d+) full, \d+ partial\) of (\d+)", text).groups()]
    want = count_tiles(rows, batch)
    sound = counts[0] >= want[0] and counts[1] <= want[1] and counts[2] == want[2]
    if not sound or (spec.intervals and tuple(counts) != want):
        errors.append("tiles visited, full, all: %s instead of %s" % (counts, want))
    for b, request in enumerate(batch["requests"]):
        pairs = sum(len(token[0][2]) for token in rows if token[0][0] == b)
        line = "request %d: %d queries from position %d, %d keys" % (
            b, request["query_len"], request["seq_len"] - request["query_len"], request["seq_len"])
        if request["query_len"] and request["seq_len"]:
            line += ", %d of %d pairs kept" % (pairs, request["query_len"] * request["seq_len"])
        if line not in text:
            errors.append("attn-mask does not say: %s" % line)
    return errors


def run_example(name, tools, work):
    spec = SPECS[name]
    source = os.path.join(EXAMPLES, name + ".mlir")
    batch_path = os.path.join(EXAMPLES, name + ".json")
    with open(batch_path, encoding="utf-8") as file:
        batch = json.load(file)
    os.makedirs(work, exist_ok=True)
    artifact, inputs, outputs = (os.path.join(work, name + end)
                                 for end in (".attn", ".in.safetensors", ".out.safetensors"))

    def tool(program, *arguments):
        run = subprocess.run([os.path.join(tools, program), *arguments], check=True,
                             stdout=subprocess.PIPE, text=True)
        print(run.stdout, end="", flush=True)
        return run.stdout

    tool("attn-compile", source, "--target=cpu", "-o", artifact)
    rows = visible_rows(spec, batch)
    picture = tool("attn-mask", artifact, "--batch", batch_path, "--tile=%dx%d" % (TILE, TILE))
    tensors, starts = make_tensors(spec, batch, rows, inputs)
    tool("attn-run", artifact, "--batch", batch_path, "--device=cpu", "--check", "--inputs", inputs,
         "--output", outputs)
    worst_o, worst_lse, errors = compare(spec, batch, rows, tensors, starts, read_safetensors(outputs))
    errors += check_counts(spec, batch, rows, picture)
    for error in errors[:10]:
        print(error)
    pairs = sum(len(keys) for token in rows for _, _, keys in token)
    print("%s: %d rows, %d kept pairs, largest error %.2g in o, %.2g in lse, %d things wrong"
          % (name, len(rows) * spec.heads, pairs, worst_o, worst_lse, len(errors)))
    return 1 if errors else 0


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="?", choices=sorted(SPECS))
    parser.add_argument("--bin", help="folder of the tools")
    parser.add_argument("--work", help="folder for what is written")
    parser.add_argument("--list", action="store_true", help="names of the examples")
    arguments = parser.parse_args()
    if arguments.list:
        print("\n".join(SPECS))
        return 0
    if not (arguments.name and arguments.bin and arguments.work):
        parser.error("expected --bin, --work and a name")
    return run_example(arguments.name, arguments.bin, arguments.work)


if __name__ == "__main__":
    sys.exit(main())
