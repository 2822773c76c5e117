#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# usage: no-llvm.sh BUILD_DIR
# Fails if a library or program of a runtime-only build refers to LLVM or MLIR: by symbol, by a needed
# library or by a run path.
set -euo pipefail

[[ $# == 1 && -d $1 ]] || {
  echo "usage: no-llvm.sh BUILD_DIR" >&2
  exit 2
}

found=0
checked=0
while IFS= read -r -d '' path; do
  case "$(head -c 8 "$path" | od -An -c | tr -d ' \n')" in
  '!<arch>\n') hits="$(nm -A "$path" 2>/dev/null | grep -iE 'llvm|mlir' || true)" ;;
  '177ELF'*)
    hits="$({ nm -A "$path" && nm -AD "$path" && readelf -d "$path" |
      grep -E 'NEEDED|RUNPATH|RPATH'; } 2>/dev/null | grep -iE 'llvm|mlir' || true)"
    ;;
  *) continue ;;
  esac
  checked=$((checked + 1))
  if [[ -n $hits ]]; then
    found=$((found + 1))
    printf '%s refers to LLVM or MLIR:\n%s\n' "$path" "$(head -5 <<<"$hits")"
  fi
done < <(find "$1" -path '*/CMakeFiles' -prune -o -type f -print0)

echo "no-llvm: $checked files, $found with LLVM or MLIR"
[[ $checked -gt 0 && $found == 0 ]]
