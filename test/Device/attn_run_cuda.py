#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""attn-run --device=cuda on the fake driver: what it prints, writes and refuses.

usage: attn_run_cuda.py ATTN-RUN ARTIFACTS FAKE-DRIVER
"""

import json
import os
import re
import struct
import subprocess
import sys
import tempfile

BATCH = {
    "requests": [
        {"query_len": 70, "seq_len": 150, "mm_ranges": [[2, 80], [90, 120]]},
        {"query_len": 0, "seq_len": 9},
        {"query_len": 40, "seq_len": 12},
        {"query_len": 1, "seq_len": 200},
    ],
    "params": {"left": 20},
}


class Test:
    def __init__(self, attn_run, artifacts, driver, work):
        self.attn_run, self.artifacts, self.work = attn_run, artifacts, work
        self.drivers = os.path.join(work, "drivers")
        os.mkdir(self.drivers)
        os.symlink(os.path.abspath(driver), os.path.join(self.drivers, "libcuda.so.1"))
        self.failures = 0

    def path(self, name):
        return os.path.join(self.work, name)

    def write(self, name, batch):
        with open(self.path(name), "w", encoding="utf-8") as file:
            json.dump(batch, file)
        return self.path(name)

    def run(self, artifact, batch, *options, drivers=None):
        """Exit status and output of one run."""
        environment = dict(os.environ, LD_LIBRARY_PATH=drivers or self.drivers)
        done = subprocess.run([self.attn_run, os.path.join(self.artifacts, artifact + ".attn"),
                               "--batch", batch, "--device=cuda", *options],
                              env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, check=False)
        return done.returncode, done.stdout

    def expect(self, what, result, status, *patterns):
        code, output = result
        missing = [p for p in patterns if not re.search(p, output)]
        if code == status and not missing:
            return
        self.failures += 1
        print("%s: status %d, expected %d; missing %s in\n%s" % (what, code, status, missing, output))


def read_output(path):
    """Shapes of the tensors of a safetensors file, and whether any value is NaN."""
    with open(path, "rb") as file:
        data = file.read()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    values = struct.unpack("<%df" % ((len(data) - 8 - size) // 4), data[8 + size:])
    return {name: t["shape"] for name, t in header.items()}, any(v != v for v in values)


def with_recipes(source, target, recipes):
    """The artifact with recipes in its code for the GPU."""
    with open(source, "rb") as file:
        data = file.read()
    size = struct.unpack("<Q", data[8:16])[0]
    manifest = json.loads(data[24:24 + size])
    for kernel in manifest["kernels"]:
        for binary in kernel["binaries"]:
            if "cuda" in binary:
                binary["recipes"] = recipes
    text = json.dumps(manifest).encode()
    fnv1a = 0xcbf29ce484222325
    for byte in text:
        fnv1a = (fnv1a ^ byte) * 0x100000001b3 % 2**64
    with open(target, "wb") as file:
        file.write(data[:8] + struct.pack("<QQ", len(text), fnv1a) + text + data[24 + size:])


def check_recipes(test, name, plain, paged):
    """A kernel with recipes runs as it does without them, on batches that they can be built from."""
    recipes = [{"name": "images", "kind": "range_tensor", "source": 0, "per_request": 2},
               {"name": "splits", "kind": "split_plan", "policy": "measured", "pieces": 8, "ctas_per_sm": 1},
               {"name": "runs", "kind": "page_runs", "page_size": 16}]
    source, target = os.path.join(test.artifacts, name + ".attn"), test.path("recipes")
    with_recipes(source, target + ".attn", recipes)
    test.expect("recipes", test.run(target, paged, "--check"), 0, r"in pages of 16", r"\n  ok\n")
    test.expect("recipes without pages", test.run(target, plain, "--check"), 2,
                r"recipe 'runs': the step has no block table on the host, expected one for 25 pages")
    with_recipes(source, target + ".attn", recipes[:2])
    test.expect("recipes for packed keys", test.run(target, plain, "--check"), 0, r"\n  ok\n")


def fnv1a(data):
    value = 0xcbf29ce484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001b3 % 2**64
    return value


def edited(test, artifact, name, edit):
    """The path of the artifact with its list of kernels changed."""
    with open(os.path.join(test.artifacts, artifact + ".attn"), "rb") as file:
        data = file.read()
    size = struct.unpack("<Q", data[8:16])[0]
    manifest = json.loads(data[24:24 + size])
    edit(manifest["kernels"])
    text = json.dumps(manifest).encode()
    with open(test.path(name), "wb") as file:
        file.write(data[:8] + struct.pack("<QQ", len(text), fnv1a(text)) + text + data[24 + size:])
    return os.path.splitext(test.path(name))[0]


def check_tune(test, name, plain):
    test.expect("tune", test.run(name, plain, "--tune", "--check"), 0,
                r"kernel +median ms +min ms +TFLOP/s +code\n"
                r"window_mm_clamp +0\.5000 +0\.5000 +\d+\.\d  Fake GPU, ptx, 168 registers, .*\n"
                r"window_mm_clamp is the target's choice: 1\.000 of the time of the fastest\n")

    def copied(kernels):
        for shape in ("2x64", "3x64-turns"):
            kernels.append(dict(kernels[0], name=kernels[0]["name"] + "@" + shape))
        # One that the driver does not take.
        kernels[2]["binaries"] = [dict(b, entry="missing") for b in kernels[2]["binaries"]]

    several = edited(test, name, "several.attn", copied)
    test.expect("tune several", test.run(several, plain, "--tune", "--check"), 0,
                r"\nwindow_mm_clamp +0\.5000 .*\nwindow_mm_clamp@2x64 +0\.5000 .*\n"
                r"window_mm_clamp@3x64-turns +does not run: .*\nwindow_mm_clamp is the target's choice: 1\.000")

    def two_specs(kernels):
        kernels.append(dict(kernels[0], name="other", spec_hash="0" * 64))

    test.expect("tune two specs", test.run(edited(test, name, "two.attn", two_specs), plain, "--tune"), 2,
                r"kernels 'window_mm_clamp' and 'other' are not of one spec, expected an artifact of "
                r"attn-compile --shapes=all")
    for option in ("--bench", "--kernel=window_mm_clamp", "--output=" + test.path("none")):
        test.expect("tune " + option, test.run(name, plain, "--tune", option), 2,
                    r"--tune: times all kernels and writes nothing, expected none of")
    test.expect("tune elsewhere", test.run(name, plain, "--tune", "--device=cpu"), 2,
                r"--tune: device 'cpu' has no shapes to choose from, expected device 'cuda'")


def check(test):
    plain = test.write("plain.json", BATCH)
    paged = test.write("paged.json", dict(BATCH, page_size=16))
    empty = test.write("empty.json", {"requests": [{"query_len": 0, "seq_len": 5}],
                                      "params": {"left": 1}})
    name = "window_mm_clamp-d128-bf16-h4x2"
    out = test.path("out.safetensors")
    test.expect("check", test.run(name, plain, "--check", "--output", out), 0,
                r"gpu: Fake GPU, ptx, 168 registers, 0 bytes of local memory",
                r"cuda: \d+\.\d+ ms", r"check: 444 rows", r"tolerance 8e-03",
                r"\n  ok\n")
    shapes, has_nan = read_output(out)
    if shapes != {"o": [111, 4, 128], "lse": [4, 111]} or has_nan:
        test.failures += 1
        print("output: %s, NaN: %s" % (shapes, has_nan))
    test.expect("pages", test.run(name, paged, "--check"), 0, r"in pages of 16", r"\n  ok\n")
    check_recipes(test, name, plain, paged)
    test.expect("f16", test.run("window_mm_clamp-d64-f16-h4x1", paged, "--check"), 0,
                r"tolerance 2e-03", r"\n  ok\n")
    test.expect("bench", test.run(name, plain, "--bench"), 0,
                r"cuda: median 0\.500 ms, min 0\.500 ms of 50 runs", r"[\d.]+ TFLOP/s over kept pairs")
    test.expect("tiles", test.run("window_mm_clamp-d256-bf16-h8x4-tiles", plain, "--check"), 0,
                r"counted by the kernel: (\d+) key blocks loaded, (\d+) visited by row groups, (\d+) of "
                r"them full\n  planned by the host: \1 key blocks loaded, \2 visited by row groups, "
                r"\3 of them full\n", r"\n  ok\n")
    check_tune(test, name, plain)
    test.expect("nothing scheduled", test.run(name, empty, "--check"), 0, r"check: 0 rows", r"ok")
    test.expect("a length that the device alone knows",
                test.run(name, test.write("bound.json", {
                    "requests": [{"query_len": 1, "seq_len": 5, "seq_len_bound": 9},
                                 {"query_len": 3, "seq_len": 40, "seq_len_bound": 44,
                                  "seq_len_least": 30, "is_prefilling": False}],
                    "params": {"left": 1}}), "--check"), 0, r"check: 16 rows", r"ok")
    broken = test.path("no-driver")
    os.mkdir(broken)
    with open(os.path.join(broken, "libcuda.so.1"), "w", encoding="utf-8"):
        pass
    test.expect("no driver", test.run(name, plain, "--output", test.path("none"), drivers=broken), 2,
                r"attn-run: error: device 'cuda': no CUDA driver: .*libcuda\.so\.1")
    if os.path.exists(test.path("none")):
        test.failures += 1
        print("no driver: a file was written")


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as work:
        test = Test(*sys.argv[1:], work)
        check(test)
    if test.failures:
        sys.exit("%d failures" % test.failures)
    print("ok")


if __name__ == "__main__":
    main()
