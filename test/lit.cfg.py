# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""lit configuration. Values of the build come from lit.site.cfg.py, which includes this file.

ATTN_ROUND_TRIP=1 in the environment makes every attn-opt of every test print what it parsed, parse that
again and compare. ATTN_PROOFS=1 makes every attn-opt prove each of its passes over kernels, or fail.
"""

import os
import subprocess
import sys

import lit.formats
import lit.util

config.name = "attn"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir"]
# Specs of programs outside the tree.
config.excludes = ["out-of-tree"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.attn_build_dir, "test", "lit")

# A variable of one function is not to match in the next.
config.environment["FILECHECK_OPTS"] = "--enable-var-scope"


def tool(name, folder, options=""):
    """`name` as the first word of a command stands for the tool of this build."""
    path = os.path.join(folder, name)
    if not os.access(path, os.X_OK):
        lit_config.fatal("test tool '%s' is not there: %s" % (name, path))
    word = r"(?<![-\w./%%])%s(?![-\w./])" % name
    config.substitutions.append((word, path + options))


# The solver that tools find: z3, or the one beside them. It has to solve something.
z3 = lit.util.which("z3", os.environ.get("PATH", "")) or lit.util.which("attn-smt", config.attn_bin_dir)
if z3 and subprocess.run([z3, "-in"], input="(check-sat)", stdout=subprocess.PIPE,
                         universal_newlines=True).stdout.strip() == "sat":
    config.available_features.add("solver")
if os.environ.get("ATTN_PROOFS") and "solver" not in config.available_features:
    lit_config.fatal("proofs need z3 in PATH or attn-smt, install package z3")

round_trip = " --verify-roundtrip" if os.environ.get("ATTN_ROUND_TRIP") else ""
proofs = " --attn-verify-rewrites=strict --solver-timeout=60" if os.environ.get("ATTN_PROOFS") else ""
tool("attn-opt", config.attn_bin_dir, round_trip + proofs)
tool("tile-opt", config.attn_bin_dir, round_trip)
tool("attn-compile", config.attn_bin_dir)
for name in ["FileCheck", "llc", "mlir-translate", "not", "split-file"]:
    tool(name, config.llvm_tools_dir)

# "ptx-loops" as the first word of a command: what stands in the loops of PTX.
ptx_loops = os.path.join(config.test_source_root, "Pipeline", "ptx_loops.py")
config.substitutions.append((r"(?<![-\w./%])ptx-loops(?![-\w./])", "%s %s" % (sys.executable, ptx_loops)))

# ptxas, where attn-compile looks for it.
toolkits = [name for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
for name in toolkits:
    config.environment[name] = os.environ[name]
folders = [os.environ.get("PATH", "")] + [os.path.join(os.environ[name], "bin") for name in toolkits]
ptxas = lit.util.which("ptxas", os.pathsep.join(folders))
if ptxas:
    config.available_features.add("ptxas")
    config.substitutions.append(("%ptxas", ptxas))
# The disassembler of the same toolkit.
nvdisasm = lit.util.which("nvdisasm", os.pathsep.join(folders))
if nvdisasm:
    config.available_features.add("nvdisasm")
    config.substitutions.append(("%nvdisasm", nvdisasm))
