# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Shared by tools/check and tools/demo; sourced, not run. Needs bash and `set -euo pipefail`.

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"

# What the build needs, as Debian 12 packages.
build_packages=(cmake ninja-build clang-22 lld-22 ccache llvm-22-dev llvm-22-tools libmlir-22-dev
  libpng-dev mlir-22-tools)
# What the tests need besides.
test_packages=(python3 g++ libgtest-dev clang-format binutils z3 libz3-dev)

say() { printf '\n== %s (%ds)\n' "$*" "$SECONDS"; }

die() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 1
}

# ensure_packages NAME...: installs the Debian packages that are missing, if any.
ensure_packages() {
  local missing=() name
  for name in "$@"; do
    if ! dpkg-query -W -f '${Status}' "$name" 2>/dev/null | grep -q ' installed$'; then
      missing+=("$name")
    fi
  done
  ((${#missing[@]})) || return 0
  command -v apt-get >/dev/null || die "no apt-get; install what provides: ${missing[*]}"
  local as_root=()
  if ((EUID != 0)); then
    command -v sudo >/dev/null || die "run as root or install sudo; missing packages: ${missing[*]}"
    as_root=(sudo)
  fi
  say "install ${missing[*]}"
  "${as_root[@]}" apt-get update -q
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -q -y --no-install-recommends "${missing[@]}"
}

# configure DIR OPTION...: CMake with Ninja and ccache.
configure() {
  local dir="$1"
  shift
  cmake -S "$root" -B "$dir" -G Ninja \
    -DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache "$@"
}

# configure_all DIR OPTION...: the whole build with Clang, which reads MLIR's headers in half the time that
# g++ needs.
configure_all() {
  configure "$@" -DCMAKE_C_COMPILER=clang-22 -DCMAKE_CXX_COMPILER=clang++-22 \
    -DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=lld-22 -DCMAKE_SHARED_LINKER_FLAGS=-fuse-ld=lld-22
}
