#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The field failures on a GPU: compiles and runs what attn-field-failures --record=RECORD wrote.

usage: field_cases.py build --compile ATTN-COMPILE [--target sm_90a] [-O N] RECORD OUT
       field_cases.py run --attn-run ATTN-RUN [--device cuda|cpu] [--jobs N] [--only TEXT] OUT

build compiles every spec and checks that what must be refused is refused. OUT holds all that run needs
besides Python and attn-run.

run puts every launch through attn-run --check, contiguous and in pages, and reads the results for what
the tests know of them: empty rows are 0 with LSE -inf, rows that the tests state, rows of two launches
that must agree, batches that attn-run must refuse. Each launch whose scores pass also runs with K = 0, so that exp(LSE)
counts the kept keys, and V = pseudo-random bits of the key's position, so that each column of O counts the
kept keys with its bit. Prints one line for each test. Without a GPU: SKIPPED, exit status 77.
"""

import argparse
import array
import collections
import concurrent.futures
import ctypes
import gzip
import json
import math
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
PAGE_SIZE = 16  # of launches that no test puts into pages
# Row error and LSE error of each type; of the CPU, which computes in f32.
TOLERANCE = {"bf16": (8e-3, 1e-3), "f16": (2e-3, 1e-3), "cpu": (1e-5, 1e-5)}
PROBE_COLUMNS = 64


def read_json(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def write_json(path, value):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(value, file)


def pack(source, target):
    with open(source, "rb") as file, open(target, "wb") as raw:
        with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as packed:
            shutil.copyfileobj(file, packed)


def unpack(source, target):
    with gzip.open(source, "rb") as packed, open(target, "wb") as file:
        shutil.copyfileobj(packed, file)


def call(command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=300, check=False)


# ---------------------------------------------------------------------------------------------
# build
# ---------------------------------------------------------------------------------------------


def check_refused_spec(options, refused, work):
    """Complaints about a spec that the compiler must refuse."""
    source, target = os.path.join(work, "refused.mlir"), os.path.join(work, "refused.attn")
    with open(source, "w", encoding="utf-8") as file:
        file.write(refused["text"])
    done = call([options.compile, source, "--target=" + refused["target"], "-o", target])
    missing = [text for text in refused["mentions"] if text not in done.stdout]
    if done.returncode == 2 and not missing and not os.path.exists(target):
        return []
    return ["%s: status %d, expected a refusal; missing %s in\n%s" %
            (refused["test"], done.returncode, missing, done.stdout)]


def build(options):
    manifest = read_json(os.path.join(options.record, "manifest.json"))
    manifest["target"] = options.target
    if os.path.exists(os.path.join(options.out, "manifest.json")):
        shutil.rmtree(options.out)
    for folder in "specs", "launches":
        os.makedirs(os.path.join(options.out, folder), exist_ok=True)

    with tempfile.TemporaryDirectory() as work:

        def compile_spec(number):
            artifact = os.path.join(work, "%d.attn" % number)
            source = os.path.join(options.record, "specs", "%d.mlir" % number)
            done = call([options.compile, source, "--target=" + options.target, "-o", artifact] +
                        ([] if options.effort is None else ["-O" + options.effort]))
            if done.returncode:
                return ["%s: %s" % (source, done.stdout)]
            pack(artifact, os.path.join(options.out, "specs", "%d.attn.gz" % number))
            return []

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            results = list(pool.map(compile_spec, range(manifest["specs"])))
        results += [check_refused_spec(options, refused, work)
                    for refused in manifest["refused_specs"]]
    for name in os.listdir(os.path.join(options.record, "launches")):
        pack(os.path.join(options.record, "launches", name),
             os.path.join(options.out, "launches", name + ".gz"))
    complaints = [text for result in results for text in result]
    if complaints:
        sys.exit("\n".join(complaints))
    write_json(os.path.join(options.out, "manifest.json"), manifest)
    size = sum(os.path.getsize(os.path.join(folder, name))
               for folder, _, names in os.walk(options.out) for name in names)
    print("%d specs for %s, %d launches, %d refused specs, %.1f MB in %s" %
          (manifest["specs"], options.target, len(manifest["launches"]),
           len(manifest["refused_specs"]), size / 1e6, options.out))
    return 0


# ---------------------------------------------------------------------------------------------
# Tensor files
# ---------------------------------------------------------------------------------------------


def read_tensors(path):
    """Name -> (dtype, shape, bytes)."""
    with open(path, "rb") as file:
        data = file.read()
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    return {name: (t["dtype"], t["shape"],
                   data[start + t["data_offsets"][0]:start + t["data_offsets"][1]])
            for name, t in header.items() if name != "__metadata__"}


def write_tensors(path, tensors):
    header, offset = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + len(data)]}
        offset += len(data)
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for _, _, data in tensors.values():
            file.write(data)


class Output:
    """What attn-run wrote."""

    def __init__(self, path):
        tensors = read_tensors(path)
        _, (self.tokens, self.heads, self.dim), o = tensors["o"]
        self.o = array.array("f", o)
        self.lse_values = array.array("f", tensors["lse"][2])

    def row(self, token, head):
        start = (token * self.heads + head) * self.dim
        return self.o[start:start + self.dim]

    def lse(self, token, head):
        return self.lse_values[head * self.tokens + token]


def key_bits(position):
    """The bits of a key in the probe, a column each."""
    return random.Random(position).getrandbits(PROBE_COLUMNS)


def write_probe(source, target, seq_lens):
    """The inputs with K = 0 and V = bits of positions; NaN stays."""
    tensors = read_tensors(source)
    one, nan_from = {"BF16": (0x3F80, 0x7F80), "F16": (0x3C00, 0x7C00)}[tensors["k"][0]]
    dtype, shape, data = tensors["k"]
    values = array.array("H", data)
    zeroed = array.array("H", (x if x & 0x7FFF > nan_from else 0 for x in values))
    tensors["k"] = (dtype, shape, zeroed.tobytes())
    dtype, shape, data = tensors["v"]
    values = array.array("H", data)
    _, heads, dim = shape
    at = 0
    for length in seq_lens:
        for position in range(length):
            bits = key_bits(position)
            row = array.array("H", (one * (bits >> (d % PROBE_COLUMNS) & 1) for d in range(dim)))
            for _ in range(heads):
                if values[at] & 0x7FFF <= nan_from:
                    values[at:at + dim] = row
                at += dim
    tensors["v"] = (dtype, shape, values.tobytes())
    write_tensors(target, tensors)


# ---------------------------------------------------------------------------------------------
# run
# ---------------------------------------------------------------------------------------------


def gpu_missing():
    """Why there is no GPU; empty if there is one."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        return "no CUDA driver: %s" % error
    count = ctypes.c_int(0)
    status = driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count))
    if status or not count.value:
        return "no GPU (CUDA error %d)" % status
    return ""


# One call of attn-run: a launch in a layout, of the tests that it stands for.
Job = collections.namedtuple("Job", "launch layout probe runs")


class Report:
    """What is known of each test."""

    def __init__(self):
        self.jobs = collections.Counter()
        self.row_error = collections.defaultdict(float)
        self.lse_error = collections.defaultdict(float)
        self.faults = collections.defaultdict(list)


class Runner:
    def __init__(self, options, work):
        self.options, self.work = options, work
        self.manifest = read_json(os.path.join(options.out, "manifest.json"))
        self.report = Report()
        self.outputs = {}  # run -> Output

    def path(self, *parts):
        return os.path.join(self.work, *parts)

    def unpack(self):
        for folder in "specs", "launches":
            os.mkdir(self.path(folder))
            for name in os.listdir(os.path.join(self.options.out, folder)):
                unpack(os.path.join(self.options.out, folder, name),
                       self.path(folder, name[:-len(".gz")]))

    def attn_run(self, spec, batch, inputs, *more):
        return call([self.options.attn_run, self.path("specs", "%d.attn" % spec), "--batch", batch,
                     "--inputs", inputs, "--device=" + self.options.device, *more])

    def jobs(self):
        """Every launch in the layouts that the tests gave it, at least one of them in pages."""
        by_layout = {}
        for number, run in enumerate(self.manifest["runs"]):
            layout = {key: run[key] for key in ("page_size", "block_table") if key in run}
            key = (run["launch"], json.dumps(layout))
            by_layout.setdefault(key, (layout, []))[1].append(number)
        jobs, layouts = [], collections.defaultdict(list)
        for (launch, _), (layout, runs) in by_layout.items():
            jobs.append(Job(launch, layout, False, runs))
            layouts[launch].append(layout)
        for launch, given in layouts.items():
            runs = [n for n, run in enumerate(self.manifest["runs"]) if run["launch"] == launch]
            for added in [{}] * ({} not in given) + [{"page_size": PAGE_SIZE}] * (given == [{}]):
                jobs.append(Job(launch, added, False, runs))
            if self.manifest["launches"][launch]["scores_pass"]:
                # In turn contiguous and in pages.
                paged = next((layout for layout in given if layout), {"page_size": PAGE_SIZE})
                jobs.append(Job(launch, paged if launch % 2 else {}, True, runs))
        return [job for job in jobs
                if any(self.options.only in test for test in self.tests_of(job))]

    def tests_of(self, job):
        return sorted({self.manifest["runs"][run]["test"] for run in job.runs})

    def tolerance(self, launch):
        return TOLERANCE["cpu" if self.options.device == "cpu" else launch["type"]]

    def run_job(self, number, job):
        """(job, row error, lse error, output, faults)."""
        launch = self.manifest["launches"][job.launch]
        files = self.path("launches", str(job.launch))
        batch = read_json(files + ".json")
        inputs = files + ".safetensors"
        if job.layout:
            batch["page_size"] = job.layout["page_size"]
            for request, pages in zip(batch["requests"], job.layout.get("block_table", [])):
                request["block_table"] = pages
        batch_file = self.path("batch%d.json" % number)
        write_json(batch_file, batch)
        if job.probe:
            probe = self.path("probe%d.safetensors" % number)
            write_probe(inputs, probe, [request["seq_len"] for request in batch["requests"]])
            inputs = probe
        result = self.path("output%d.safetensors" % number)
        done = self.attn_run(launch["spec"], batch_file, inputs, "--check", "--output", result)
        errors = [float(text) for text in re.findall(r"max .* error (\S+) \(", done.stdout)]
        errors += [math.inf] * (2 - len(errors))
        faults = []
        if done.returncode or "\n  ok\n" not in done.stdout:
            faults.append("attn-run, status %d:\n%s" % (done.returncode, done.stdout))
        output = None
        if os.path.exists(result):
            output = Output(result)
            check = self.check_probe if job.probe else self.check_empty
            faults += check(launch, output)
            os.remove(result)
        if job.probe:
            os.remove(inputs)
        return job, errors[0], errors[1], output, faults

    def check_empty(self, launch, output):
        """Rows without keys are 0 and -inf, others are numbers."""
        if not launch["scores_pass"]:
            return []
        for token, kept in enumerate(launch["kept"]):
            for head in range(output.heads):
                row, lse = output.row(token, head), output.lse(token, head)
                if kept and not (math.isfinite(lse) and all(map(math.isfinite, row))):
                    return ["token %d head %d: not finite, lse %s" % (token, head, lse)]
                if not kept and not (lse == -math.inf and not any(row)):
                    return ["token %d head %d: lse %s, expected an empty row" % (token, head, lse)]
        return []

    def check_probe(self, launch, output):
        """The kept keys, counted by LSE and by the columns of O."""
        longest = max((last for kept in launch["kept"] for _, last in kept), default=-1) + 1
        bits = [key_bits(position) for position in range(longest)]
        # sums[d][n]: how many of the first n keys have bit d.
        sums = []
        for d in range(PROBE_COLUMNS):
            column = array.array("l", [0])
            for value in bits:
                column.append(column[-1] + (value >> d & 1))
            sums.append(column)
        relative = 1e-5 if self.options.device == "cpu" else 2.0**-8
        for token, kept in enumerate(launch["kept"]):
            count = sum(last + 1 - first for first, last in kept)
            want = [sum(column[last + 1] - column[first] for first, last in kept) for column in sums]
            for head in range(output.heads):
                place = "probe, token %d head %d: " % (token, head)
                lse, row = output.lse(token, head), output.row(token, head)
                if not count:
                    if lse != -math.inf or any(row):
                        return [place + "lse %s, expected an empty row" % lse]
                    continue
                if not math.isfinite(lse) or round(math.exp(lse)) != count:
                    return [place + "lse %s, expected that of %d keys" % (lse, count)]
                for d, expected in enumerate(want):
                    if not abs(row[d] * count - expected) <= 0.25 + relative * expected:
                        return [place + "column %d counts %s keys, expected %d" %
                                (d, row[d] * count, expected)]
        return []

    def check_claims(self, run, output):
        launch = self.manifest["launches"][run["launch"]]
        row_tolerance, lse_tolerance = self.tolerance(launch)

        def agrees(value, want, tolerance, exact):
            want = float(want)
            if math.isnan(want):
                return math.isnan(value)
            return value == want or (
                not exact and abs(value - want) <= tolerance * max(1.0, abs(want)))

        for claim in run["claims"]:
            place = "token %d head %d: " % (claim["token"], claim["head"])
            row = output.row(claim["token"], claim["head"])
            for d, (value, want) in enumerate(zip(row, claim["o"])):
                if not agrees(value, want, row_tolerance, claim["exact"]):
                    return [place + "column %d is %s, expected %s" % (d, value, want)]
            lse = output.lse(claim["token"], claim["head"])
            if "lse" in claim and not agrees(lse, claim["lse"], lse_tolerance, claim["exact"]):
                return [place + "lse %s, expected %s" % (lse, claim["lse"])]
        return []

    def check_same(self, same):
        """Rows of two runs."""
        (run_a, first_a), (run_b, first_b) = same["a"], same["b"]
        a, b = self.outputs.get(run_a), self.outputs.get(run_b)
        if not a or not b:
            return ["no result to compare"]
        row_tolerance, lse_tolerance = self.tolerance(
            self.manifest["launches"][self.manifest["runs"][run_a]["launch"]])
        for i in range(same["count"]):
            for head in range(a.heads):
                place = "tokens %d and %d, head %d: " % (first_a + i, first_b + i, head)
                x, y = a.row(first_a + i, head), b.row(first_b + i, head)
                lse_x, lse_y = a.lse(first_a + i, head), b.lse(first_b + i, head)
                if x == y and lse_x == lse_y:
                    continue
                if same["exact"]:
                    return [place + "expected equal bits"]
                distance = math.sqrt(sum((p - q)**2 for p, q in zip(x, y)))
                norm = math.sqrt(sum(p * p for p in x))
                if not distance <= row_tolerance * norm:
                    return [place + "rows %s apart of %s" % (distance, norm)]
                if not abs(lse_x - lse_y) <= lse_tolerance * max(1.0, abs(lse_x)):
                    return [place + "lse %s and %s" % (lse_x, lse_y)]
        return []

    def check_refused(self, refused):
        files = self.path(refused["files"])
        result = self.path("refused.safetensors")
        done = self.attn_run(refused["spec"], files + ".json", files + ".safetensors", "--output",
                             result)
        if (done.returncode == 2 and refused["message"] in done.stdout
                and not os.path.exists(result)):
            return []
        return ["status %d, expected a refusal with '%s':\n%s" %
                (done.returncode, refused["message"], done.stdout)]

    def run(self):
        self.unpack()
        jobs = self.jobs()
        report = self.report
        with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
            for job, row, lse, output, faults in pool.map(self.run_job, range(len(jobs)), jobs):
                for test in self.tests_of(job):
                    report.jobs[test] += 1
                    report.row_error[test] = max(report.row_error[test], row)
                    report.lse_error[test] = max(report.lse_error[test], lse)
                    where = "launch %d, %s%s: " % (job.launch, job.layout or "contiguous",
                                                   ", probe" if job.probe else "")
                    report.faults[test] += [where + fault for fault in faults]
                if job.probe or not output:
                    continue
                for number in job.runs:
                    run = self.manifest["runs"][number]
                    report.faults[run["test"]] += self.check_claims(run, output)
                    self.outputs.setdefault(number, output)
        for same in self.of_wanted("same_rows"):
            report.faults[same["test"]] += self.check_same(same)
        for refused in self.of_wanted("refused_launches"):
            report.jobs[refused["test"]] += 1
            report.faults[refused["test"]] += self.check_refused(refused)
        return self.print_report()

    def of_wanted(self, key):
        return [value for value in self.manifest[key] if self.options.only in value["test"]]

    def print_report(self):
        report = self.report
        notes = collections.defaultdict(list)
        for note in self.of_wanted("not_applicable"):
            notes[note["test"]].append(note["reason"])
        refused = collections.Counter(r["test"] for r in self.of_wanted("refused_specs"))
        tests = sorted(set(report.jobs) | set(notes) | set(refused))
        failed = 0
        for test in tests:
            faults = report.faults[test]
            failed += bool(faults)
            print("%-60s %s, %d runs, %d specs refused, row error %.1e, lse error %.1e" %
                  (test, "FAILED" if faults else "ok", report.jobs[test], refused[test],
                   report.row_error[test], report.lse_error[test]))
            for reason in notes[test]:
                print("    not applicable: " + reason)
            for fault in faults:
                print("    " + fault.replace("\n", "\n    "))
        print("%d tests, %d runs on %s, %d failed: %s" %
              (len(tests), sum(report.jobs.values()), self.options.device, failed,
               "ok" if tests and not failed else "FAILED"))
        return 1 if failed or not tests else 0


def run(options):
    if options.device == "cuda":
        reason = gpu_missing()
        if reason:
            print("SKIPPED: " + reason)
            return SKIPPED
    with tempfile.TemporaryDirectory() as work:
        return Runner(options, work).run()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    parts = commands.add_parser("build")
    parts.add_argument("--compile", required=True, help="attn-compile")
    parts.add_argument("--target", default="sm_90a")
    parts.add_argument("-O", dest="effort", help="for target cpu")
    parts.add_argument("record")
    parts.add_argument("out")
    parts = commands.add_parser("run")
    parts.add_argument("--attn-run", required=True)
    parts.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parts.add_argument("--jobs", type=int, default=min(16, os.cpu_count() or 1))
    parts.add_argument("--only", default="", help="tests whose name contains this")
    parts.add_argument("out")
    options = parser.parse_args()
    return build(options) if options.command == "build" else run(options)


if __name__ == "__main__":
    sys.exit(main())
