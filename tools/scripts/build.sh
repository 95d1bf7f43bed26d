#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# build.sh [PRESET [TARGET...]]: configures and builds a preset of
# CMakePresets.json (default: release, all). On a terminal ninja shows its
# progress in one line; elsewhere a line appears every twentieth of the work.
# The full output is in build/PRESET/build.log.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

preset=${1:-release}
shift || true
dir=build/$preset
log=$dir/build.log
mkdir -p "$dir"

if [[ ! -f $dir/build.ninja ]]; then
  echo "configure $preset"
  if ! cmake --preset "$preset" >"$log" 2>&1; then
    cat "$log" >&2
    exit 1
  fi
fi

# Compilers live on small allocations: a tenth of their time.
jemalloc=/usr/lib/$(uname -m)-linux-gnu/libjemalloc.so.2
if [[ -f $jemalloc && $preset != *san ]]; then
  export LD_PRELOAD=$jemalloc
fi

# ninja configures again by itself when a CMake file has changed.
build=(cmake --build --preset "$preset" --parallel "$(nproc)")
(($# == 0)) || build+=(--target "$@")
export NINJA_STATUS="[%f/%t] "
if [[ -t 1 ]]; then
  exec "${build[@]}"
fi

# Passes on every twentieth of ninja's progress lines.
show_progress() {
  local line shown=0 part
  while IFS= read -r line; do
    if [[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]]; then
      part=$((20 * BASH_REMATCH[1] / BASH_REMATCH[2]))
      if ((part > shown)); then
        echo "build $preset: ${BASH_REMATCH[1]} of ${BASH_REMATCH[2]} steps"
        shown=$part
      fi
    fi
  done
}

start=$SECONDS
echo "build $preset"
if ! "${build[@]}" 2>&1 | tee "$log" | show_progress; then
  sed -n '/^FAILED/,$p' "$log" | head -200 >&2
  echo "build $preset failed; the whole output is in $log" >&2
  exit 1
fi
echo "build $preset: done in $((SECONDS - start)) s"
