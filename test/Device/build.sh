#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Builds attn-device-test and attn-run with g++ alone, for machines with a GPU that lack CMake, LLVM
# or this machine's system libraries.
#
# usage: build.sh OUT
set -eu
if [ $# -ne 1 ]; then
  echo "usage: build.sh OUT" >&2
  exit 2
fi
root=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$1/include/attn" "$1/objects"
out=$(cd "$1" && pwd)
version=$(sed -n 's/^project(Attn VERSION \([0-9.]*\).*/\1/p' "$root/CMakeLists.txt")
sed "s/@PROJECT_VERSION@/$version/" "$root/include/attn/Config.h.in" > "$out/include/attn/Config.h"
cd "$root"
ls lib/Core/*.cpp lib/Reference/*.cpp lib/Sim/*.cpp lib/Runtime/*.cpp lib/Runtime/Builders/*.cpp \
    lib/Runtime/Cuda/*.cpp test/Device/*.cpp tools/attn-run/*.cpp > "$out/sources"
# One compiler for each core; objects are named after their sources.
ROOT=$root OUT=$out xargs -P "$(nproc)" -I {} sh -c '
  g++ -std=c++17 -O2 -I"$ROOT/include" -I"$OUT/include" -c {} \
    -o "$OUT/objects/$(echo {} | tr / _ | sed s/[.]cpp$/.o/)"' < "$out/sources"
common=$(ls "$out"/objects/lib_*.o)
g++ $common "$out"/objects/test_Device_*.o "$out/objects/tools_attn-run_SimDriver.o" -o "$out/attn-device-test" -pthread -ldl
g++ $common "$out"/objects/tools_attn-run_*.o -o "$out/attn-run" -pthread -ldl
ls -l "$out/attn-device-test" "$out/attn-run"
