#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""attn-run --device=sim: what it prints, writes and refuses, with kernels as compiled and with faults.

usage: attn_run_sim.py ATTN-RUN ARTIFACTS
"""

import json
import os
import re
import subprocess
import sys
import tempfile

import faults
from mutants import POLICIES, read_ptx

BATCH = {
    "requests": [
        {"query_len": 70, "seq_len": 150, "mm_ranges": [[2, 80], [90, 120]]},
        {"query_len": 0, "seq_len": 9},
        {"query_len": 40, "seq_len": 12},
        {"query_len": 1, "seq_len": 200},
    ],
    "params": {"left": 20},
}
KERNEL = "window_mm_clamp-d64-bf16-h2x2"


def fnv1a(data):
    value = 0xcbf29ce484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001b3 & (1 << 64) - 1
    return value


def with_ptx(source, target, text):
    """An artifact of PTX that holds `text` instead, which is no longer than what it held."""
    with open(source, "rb") as file:
        data = file.read()
    start = 24 + int.from_bytes(data[8:16], "little")
    manifest, blob = data[24:start], data[start:]
    at = blob.index(b".version")
    room = len(blob.rstrip(b"\0")) - at
    assert len(text) <= room, "a text of %d bytes for %d" % (len(text), room)
    changed = blob[:at] + text.encode().ljust(room) + blob[at + room:]
    hashes = re.findall(rb'"fnv1a": "([0-9a-f]{16})"', manifest)
    assert hashes == [b"%016x" % fnv1a(blob)], "expected one binary"
    manifest = manifest.replace(hashes[0], b"%016x" % fnv1a(changed))
    with open(target, "wb") as file:
        file.write(data[:16] + fnv1a(manifest).to_bytes(8, "little") + manifest + changed)


class Test:
    def __init__(self, attn_run, artifacts, work):
        self.attn_run, self.artifacts, self.work = attn_run, artifacts, work
        self.failures = 0

    def path(self, name):
        return os.path.join(self.work, name)

    def write(self, name, batch):
        with open(self.path(name), "w", encoding="utf-8") as file:
            json.dump(batch, file)
        return self.path(name)

    def artifact(self, name):
        return os.path.join(self.artifacts, name + ".attn")

    def expect(self, what, artifact, batch, options, status, stdout, stderr):
        """Runs and compares exit status and patterns; an empty pattern expects no output."""
        done = subprocess.run([self.attn_run, artifact, "--batch", batch, "--device=sim"] + options,
                              capture_output=True, text=True, check=False)
        right = done.returncode == status
        for pattern, text in ((stdout, done.stdout), (stderr, done.stderr)):
            right = right and (re.search(pattern, text, re.S) if pattern else not text)
        if right:
            return
        self.failures += 1
        print("%s: status %d, expected %d\nstdout: %s\n  expected %s\nstderr: %s\n  expected %s" % (
            what, done.returncode, status, done.stdout, stdout, done.stderr, stderr))

    def faulty(self, kind, accept=lambda fault: True):
        """The kernel with the first fault of a kind that fits into the artifact."""
        text = faults.Text(read_ptx(self.artifact(KERNEL)))
        whole = len("\n".join(text.lines))
        fault = next(f for f in kind(text) if len(f.text) <= whole and accept(f))
        path = self.path(kind.__name__ + ".attn")
        with_ptx(self.artifact(KERNEL), path, fault.text)
        return path


def read(path):
    with open(path, "rb") as file:
        return file.read()


def check(test):
    plain = test.write("plain.json", BATCH)
    paged = test.write("paged.json", dict(BATCH, page_size=16))
    empty = test.write("empty.json", {"requests": [{"query_len": 0, "seq_len": 5}],
                                      "params": {"left": 1}})
    counters = r"\d+ warp instructions, [1-9]\d* matrix products of \S+ FLOP, [1-9]\d* tensor copies"
    for policy in POLICIES:
        test.expect(policy, test.artifact(KERNEL), paged, ["--check", "--sim-policy", policy], 0,
                    "sim: policy %s, 0 reports\n  %s.*check: 222 rows.*\n  ok\n" % (policy, counters), "")
    for threads in "12":
        out = test.path("out" + threads)
        test.expect(threads + " threads", test.artifact(KERNEL), plain,
                    ["--threads", threads, "--output", out], 0, "0 reports", "")
    if read(test.path("out1")) != read(test.path("out2")):
        test.failures += 1
        print("the number of threads changes the result")
    test.expect("tiles", test.artifact("window_mm_clamp-d256-bf16-h8x4-tiles"), plain, ["--check"], 0,
                r"counted by the kernel: (\d+ key blocks.*?)\n  planned by the host: \1\n.*\n  ok\n", "")
    test.expect("nothing scheduled", test.artifact(KERNEL), empty, ["--check"], 0, "check: 0 rows.*ok", "")
    test.expect("policy", test.artifact(KERNEL), plain, ["--sim-policy=random:-1"], 2, "",
                "^attn-run: error: --sim-policy: policy 'random:-1', expected earliest, latest or")
    test.expect("steps", test.artifact(KERNEL), plain, ["--sim-steps=5000", "--threads=1"], 1, "1 reports",
                r"^attn-run: step-limit: line \d+: warp \d+ of CTA \d+ is still running after 5000 instructions of "
                r"the launch: warp \d+ at line \d+.*; warp \d+")
    test.expect("no steps", test.artifact(KERNEL), plain, ["--sim-steps=0"], 2, "",
                "^attn-run: error: --sim-steps: expected a number from 1 to ")

    none = test.path("none")
    test.expect("products without a wait",
                test.faulty(faults.drop_wait, lambda f: "wait_group" in f.what), plain,
                ["--check", "--output", none], 1, r"sim: policy earliest, [1-9]\d* reports",
                r"^attn-run: register-in-flight: line \d+: warp \d+ of CTA \d+ uses a register of the "
                r"product of line \d+ before a wgmma\.wait_group")
    # The first is that of pieces of pages.
    test.expect("nobody arrives", test.faulty(faults.drop_arrive, lambda f: "expect_tx" in f.what),
                paged, ["--output", none], 1, "reports",
                r"attn-run: deadlock: line \d+: .*waits for the mbarrier shared\+0x")
    test.expect("another mask", test.faulty(faults.mask_bit, lambda f: "bit 1 instead of 0" in f.what
                                            or "bit 2 instead of 1" in f.what), plain,
                ["--check", "--output", none], 1, "0 reports.*FAILED", "")
    text = read_ptx(test.artifact(KERNEL)).replace("ex2.approx", "ex9.approx")
    with_ptx(test.artifact(KERNEL), test.path("unknown.attn"), text)
    test.expect("an instruction that is unknown", test.path("unknown.attn"), plain,
                ["--output", none], 1, "reports", r"attn-run: unsupported: line \d+: ex9\.approx")
    text = read_ptx(test.artifact(KERNEL)).replace("ret;", "ret ")
    with_ptx(test.artifact(KERNEL), test.path("broken.attn"), text)
    test.expect("no PTX", test.path("broken.attn"), plain, ["--output", none], 2, "",
                r"^attn-run: error: .*line \d+: ")
    if os.path.exists(none):
        test.failures += 1
        print("a run that failed wrote a file")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as work:
        test = Test(*sys.argv[1:], work)
        check(test)
    if test.failures:
        sys.exit("%d failures" % test.failures)
    print("ok")


if __name__ == "__main__":
    main()
