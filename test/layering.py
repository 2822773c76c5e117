#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks who may include whom.

Every #include "attn/..." under include/, lib/ and tools/ is an edge between two components. EDGES lists
the legal ones; anything else is an error with file and line. Runtime-side components may not include
LLVM, MLIR or CUDA headers, and Core may include nothing but the C++ standard library and itself (one file
also uses POSIX file calls).

usage: layering.py [ROOT]         check a source tree (default: the one this file lies in)
       layering.py --self-test    check that violations are found
"""

import os
import re
import sys
import tempfile

# Component -> components it may include, besides itself.
IR = {"Support", "Core"}
ANALYSIS = IR | {"Dialect/Attn/IR"}
TRANSFORMS = ANALYSIS | {"Dialect/Attn/Analysis"}
CONVERSION = TRANSFORMS | {"Conversion"}
COMPILER = CONVERSION | {
    "Dialect/Attn/Transforms",
    "Dialect/Tile/IR",
    "Conversion/AttnToLoops",
    "Conversion/AttnToTile",
    "Conversion/TileToNvvm",
    "Verify",
    "Reference",
    "Config",
}
# The tile dialect knows nothing of attn.
TILE = {"Support", "Core"}
EDGES = {
    "Config": set(),
    "CApi": set(),
    "Support": set(),
    "Core": {"Config"},
    "Runtime": {"Core", "Config", "CApi"},
    "Reference": {"Core"},
    "Sim": {"Core"},
    "Dialect/Attn/IR": IR,
    "Dialect/Attn/Analysis": ANALYSIS,
    "Dialect/Attn/Transforms": TRANSFORMS,
    "Dialect/Tile/IR": TILE,
    "Conversion": CONVERSION | {"Conversion/AttnToLoops"},
    "Conversion/TileToNvvm": TILE | {"Dialect/Tile/IR", "Conversion"},
    "Conversion/Regions": CONVERSION,
    "Conversion/AttnToLoops": CONVERSION | {"Conversion/Regions"},
    "Conversion/AttnToTile": CONVERSION | {"Conversion/Regions", "Dialect/Tile/IR"},
    "Verify": IR | {"Dialect/Attn/IR"},
    "Compiler": COMPILER,
    "tools/tile-opt": {"Config", "Support", "Dialect/Tile/IR", "Conversion/TileToNvvm"},
    "tools/attn-opt": COMPILER | {"Compiler"},
    "tools/attn-compile": COMPILER | {"Compiler"},
    "tools/attn-mask": {"Core", "Config", "Support", "Runtime", "Reference", "Compiler"},
    "tools/attn-run": {"Core", "Config", "Runtime", "Reference", "Sim"},
    "tools/attn-smt": {"Config"},
}

# Components that must build without LLVM.
RUNTIME_SIDE = {"Config", "CApi", "Core", "Runtime", "Reference", "Sim", "tools/attn-run"}
FOREIGN = re.compile(r"^(mlir|llvm|mlir-c|llvm-c|clang|lld|cuda)(/|\.h$|_)")

STANDARD = set(
    """algorithm any array atomic bitset cassert cctype cerrno cfenv cfloat charconv chrono cinttypes climits
    clocale cmath complex condition_variable csetjmp csignal cstdarg cstddef cstdint cstdio cstdlib cstring
    ctime cuchar cwchar cwctype deque exception execution filesystem forward_list fstream functional future
    initializer_list iomanip ios iosfwd iostream istream iterator limits list locale map memory
    memory_resource mutex new numeric optional ostream queue random ratio regex scoped_allocator set
    shared_mutex sstream stack stdexcept streambuf string string_view strstream system_error thread tuple
    type_traits typeindex typeinfo unordered_map unordered_set utility valarray variant vector""".split()
)
# Exclusive creation and renaming of files, which the standard library lacks.
POSIX_FILES = {"lib/Core/Files.cpp": {"fcntl.h", "sys/stat.h", "unistd.h"}}

# A component per folder, longest first.
FOLDERS = sorted(set(EDGES) - {"Config", "CApi"}, key=len, reverse=True)
# Root of generated headers: build/dialect.
GENERATED = {
    "attn/IR/": "Dialect/Attn/IR",
    "attn/Transforms/": "Dialect/Attn/Transforms",
    "tile/IR/": "Dialect/Tile/IR",
    "conversion/": "Conversion",
    "verify/": "Verify",
}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def folder_component(path):
    """Component of a path below include/attn or lib, or None."""
    for component in FOLDERS:
        if path.startswith(component + "/"):
            return component
    return None


def file_component(path):
    """Component that owns a file, given its path below the root. None: not known."""
    if path.startswith("include/attn-c/"):
        return "CApi"
    if path.startswith("include/attn/Config.h"):
        return "Config"
    if path.startswith("include/attn/"):
        return folder_component(path[len("include/attn/"):])
    if path.startswith("lib/MlirPch."):
        return "Support"
    if path.startswith("lib/"):
        return folder_component(path[len("lib/"):])
    return folder_component(path)


def included_component(name):
    """Component of an included file, None if it is not ours, "?" if it is ours and not known."""
    if name.startswith("attn-c/"):
        return "CApi"
    if name == "attn/Config.h":
        return "Config"
    for prefix, component in GENERATED.items():
        if name.startswith(prefix):
            return component
    if name.startswith("attn/"):
        return folder_component(name[len("attn/"):]) or "?"
    return None


def check_line(root, path, component, bracket, name):
    """Returns why the file `path` of `component` may not include `name`, or None."""
    if component in RUNTIME_SIDE and FOREIGN.match(name):
        return "the runtime side must not include %s" % name
    target = included_component(name)
    if target == "?":
        return "%s belongs to no known component" % name
    if target is not None:
        if target == component or target in EDGES[component]:
            return None
        return "%s must not include %s (%s)" % (component, name, target)
    if bracket == '"' and ("/" not in name or name.startswith(".")):
        # A private header of the component, by its place relative to the includer.
        private = os.path.normpath(os.path.join(os.path.dirname(path), name))
        if not os.path.exists(os.path.join(root, private)):
            return "%s is neither beside its includer nor written from the include root" % name
        if file_component(private) != component:
            return "%s is private to %s" % (name, file_component(private))
        return None
    if component == "Core" and name not in STANDARD and name not in POSIX_FILES.get(path, ()):
        return "Core may include the C++ standard library only, not %s" % name
    return None


def source_files(root):
    for top in ("include", "lib", "tools"):
        for folder, folders, files in os.walk(os.path.join(root, top)):
            folders.sort()
            for name in sorted(files):
                if name.endswith((".h", ".c", ".cpp", ".h.in")):
                    yield os.path.relpath(os.path.join(folder, name), root)


def check(root):
    """Returns (number of files, number of includes, list of errors)."""
    errors, num_files, num_includes = [], 0, 0
    for path in source_files(root):
        num_files += 1
        component = file_component(path)
        if component is None:
            errors.append("%s:1: file belongs to no known component; add it to test/layering.py" % path)
            continue
        with open(os.path.join(root, path), encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                match = INCLUDE.match(line)
                if not match:
                    continue
                num_includes += 1
                why = check_line(root, path, component, match.group(1), match.group(2))
                if why:
                    errors.append("%s:%d: %s" % (path, number, why))
    return num_files, num_includes, errors


SELF_TEST = [
    # file, include, legal
    ("lib/Core/A.cpp", '"attn/Core/Interval.h"', True),
    ("lib/Core/A.cpp", "<vector>", True),
    ("lib/Core/A.cpp", '"attn/Runtime/Builders.h"', False),
    ("lib/Core/A.cpp", "<unistd.h>", False),
    ("lib/Core/A.cpp", '"llvm/ADT/StringRef.h"', False),
    ("lib/Runtime/A.cpp", '"attn/Core/Batch.h"', True),
    ("lib/Runtime/A.cpp", '"attn-c/Runtime.h"', True),
    ("lib/Runtime/A.cpp", "<dlfcn.h>", True),
    ("lib/Runtime/A.cpp", '"attn/Reference/Reference.h"', False),
    ("lib/Runtime/A.cpp", '"mlir/IR/MLIRContext.h"', False),
    ("lib/Runtime/A.cpp", "<cuda.h>", False),
    ("lib/Runtime/A.cpp", '"Missing.h"', False),
    ("lib/Runtime/A.cpp", '"../Core/Json.h"', False),
    ("lib/Runtime/CApi/A.cpp", '"../Private.h"', True),
    ("lib/Core/Files.cpp", "<unistd.h>", True),
    ("lib/Reference/A.cpp", '"../Runtime/Private.h"', False),
    ("lib/Reference/A.cpp", '"attn/Runtime/Builders.h"', False),
    ("lib/Sim/A.cpp", '"attn/Core/Status.h"', True),
    ("lib/Sim/A.cpp", '"attn/Runtime/Builders.h"', False),
    ("lib/Sim/A.cpp", '"llvm/ADT/StringRef.h"', False),
    ("lib/Dialect/Attn/IR/A.cpp", '"attn/IR/AttnOps.h.inc"', True),
    ("lib/Dialect/Attn/IR/A.cpp", '"attn/Transforms/Passes.h.inc"', False),
    ("lib/Dialect/Attn/Analysis/A.cpp", '"attn/Dialect/Attn/Transforms/Passes.h"', False),
    ("lib/Dialect/Attn/Transforms/A.cpp", '"attn/Dialect/Attn/Analysis/Dependence.h"', True),
    ("lib/Dialect/Attn/Transforms/A.cpp", '"attn/Compiler/Compiler.h"', False),
    ("lib/Conversion/AttnToLoops/A.cpp", '"attn/Dialect/Attn/Transforms/Passes.h"', False),
    ("lib/Dialect/Tile/IR/A.cpp", '"tile/IR/TileOps.h.inc"', True),
    ("lib/Dialect/Tile/IR/A.cpp", '"attn/Core/CudaAbi.h"', True),
    ("lib/Dialect/Tile/IR/A.cpp", '"attn/Dialect/Attn/IR/AttnOps.h"', False),
    ("lib/Conversion/TileToNvvm/A.cpp", '"attn/Dialect/Tile/IR/TileOps.h"', True),
    ("lib/Conversion/TileToNvvm/A.cpp", '"attn/Dialect/Attn/IR/AttnOps.h"', False),
    ("lib/Conversion/TileToNvvm/A.cpp", '"attn/Conversion/AttnToLoops/AttnToLoops.h"', False),
    ("tools/tile-opt/A.cpp", '"attn/Dialect/Attn/IR/AttnOps.h"', False),
    ("lib/Compiler/A.cpp", '"attn/Runtime/Builders.h"', False),
    ("lib/Compiler/A.cpp", '"attn/Conversion/AttnToLoops/AttnToLoops.h"', True),
    ("include/attn/Core/A.h", '"attn/Nowhere/A.h"', False),
    ("include/attn-c/A.h", '"attn/Core/Status.h"', False),
    ("tools/attn-run/A.cpp", '"attn/Compiler/Compiler.h"', False),
    ("tools/attn-run/A.cpp", '"attn/Reference/Reference.h"', True),
    ("lib/Elsewhere/A.cpp", "<vector>", False),
]


def self_test():
    failed = 0
    for path, include, legal in SELF_TEST:
        with tempfile.TemporaryDirectory() as root:
            os.makedirs(os.path.join(root, os.path.dirname(path)))
            os.makedirs(os.path.join(root, "lib/Runtime"), exist_ok=True)
            with open(os.path.join(root, "lib/Runtime/Private.h"), "w", encoding="utf-8"):
                pass
            with open(os.path.join(root, path), "w", encoding="utf-8") as out:
                out.write("// first line\n#include %s\n" % include)
            errors = check(root)[2]
            if legal == bool(errors):
                failed += 1
                print("self-test: %s including %s: expected %s, got %s"
                      % (path, include, "no error" if legal else "an error", errors or "none"))
    print("layering self-test: %d cases, %d failed" % (len(SELF_TEST), failed))
    return 1 if failed else 0


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    if len(arguments) > 1 or (arguments and arguments[0].startswith("-")):
        print(__doc__)
        return 2
    root = arguments[0] if arguments else os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    num_files, num_includes, errors = check(root)
    for error in errors:
        print(error)
    print("layering: %d files, %d includes, %d errors" % (num_files, num_includes, len(errors)))
    return 1 if errors or num_files == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
