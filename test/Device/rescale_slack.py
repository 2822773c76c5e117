#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""--rescale-slack=0 gives the bits of always multiplying, in the simulator.

usage: rescale_slack.py ATTN-COMPILE ATTN-DEVICE-TEST
"""
import pathlib
import subprocess
import sys
import tempfile

import build_artifacts


def main():
    compiler, device_test = sys.argv[1:]
    with tempfile.TemporaryDirectory() as work:
        folders = []
        # The table multiplies always at dimension 128 (TargetInfo.cpp).
        for number, options in enumerate(([], ["--rescale-slack=0"])):
            folder = pathlib.Path(work, str(number))
            folder.mkdir()
            folders.append(folder)
            for mask in ("causal", "window_mm"):
                name = f"{mask}-d128-bf16-h2x1"
                command = [compiler, "-", "--target=sm_90a", "--ptxas=none", *options]
                subprocess.run([*command, "-o", folder / f"{name}.attn"], check=True, text=True,
                               input=build_artifacts.spec(mask, 128, "bf16", 2, 1))
        if all((folders[0] / p.name).read_bytes() == p.read_bytes() for p in folders[1].iterdir()):
            sys.exit("the option changes nothing")
        run = ["--small", "--rounds", "6", "--many", "0", "--seed", "31", "--sim", "earliest"]
        record = pathlib.Path(work, "record")
        subprocess.run([device_test, folders[0], *run, "--record", record], check=True, stdout=subprocess.DEVNULL)
        done = subprocess.run([device_test, folders[1], *run, "--agree", record], check=True, stdout=subprocess.PIPE,
                              text=True)
        print(done.stdout.splitlines()[-1])
        if "100.0000 % equal" not in done.stdout:
            sys.exit("expected equal bits")


if __name__ == "__main__":
    main()
