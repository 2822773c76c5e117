#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# usage: run.sh BUILD_DIR
# Installs the build into a temporary prefix and uses it as a stranger would: builds the three programs beside
# this file against the package, compiles a spec with the installed compiler, and runs them.
set -euo pipefail

[[ $# == 1 && -f $1/CMakeCache.txt ]] || {
  echo "usage: run.sh BUILD_DIR" >&2
  exit 2
}
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
examples="$here/../../examples"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
prefix="$work/prefix"

cmake --install "$1" --prefix "$prefix" >/dev/null
if grep -rnE "$(cd "$1" && pwd)|$(cd "$here/../.." && pwd)" "$prefix"/lib/cmake "$prefix"/include; then
  echo "the package refers to the source or build tree" >&2
  exit 1
fi

for program in c-program cpp-program mlir-tool; do
  echo "== $program"
  cmake -S "$here/$program" -B "$work/$program" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_PREFIX_PATH="$prefix" >"$work/log" || { cat "$work/log"; exit 1; }
  cmake --build "$work/$program" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
done

"$prefix/bin/attn-compile" "$here/causal_f32.mlir" --target=cpu -o "$work/causal.attn"
"$work/c-program/run-causal" "$work/causal.attn"
"$work/cpp-program/run-causal" "$work/causal.attn"

"$work/mlir-tool/mask-opt" "$examples/window.mlir" --attn-fuse-intervals >"$work/fused.mlir"
grep -q 'attn.in_rows' "$work/fused.mlir"
if grep -q 'attn.window' "$work/fused.mlir"; then
  echo "attn-fuse-intervals left a window:" >&2
  cat "$work/fused.mlir" >&2
  exit 1
fi
echo "mask-opt: attn-fuse-intervals ran"
