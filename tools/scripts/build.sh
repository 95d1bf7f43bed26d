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

# ninja configures again by itself when a CMake file has changed.
build=(cmake --build --preset "$preset" --parallel "$(nproc)")
(($# == 0)) || build+=(--target "$@")
export NINJA_STATUS="[%f/%t] "
if [[ -t 1 ]]; then
  exec "${build[@]}"
fi

start=$SECONDS
echo "build $preset"
if ! "${build[@]}" 2>&1 | tee "$log" | awk -v preset="$preset" '
    match($0, /^\[[0-9]+\/[0-9]+\]/) {
      split(substr($0, 2, RLENGTH - 2), n, "/")
      part = int(20 * n[1] / n[2])
      if (part > shown) {
        printf "build %s: %s of %s steps\n", preset, n[1], n[2]
        fflush()
        shown = part
      }
    }'; then
  sed -n '/^FAILED/,$p' "$log" | head -200 >&2
  echo "build $preset failed; the whole output is in $log" >&2
  exit 1
fi
echo "build $preset: done in $((SECONDS - start)) s"
