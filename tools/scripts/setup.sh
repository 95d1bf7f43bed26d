#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Installs what gdn needs on a Debian 12 machine: packages by apt, and a Python
# environment in .venv. Does nothing, quickly, when all of it is there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

llvm=$(<LLVM_VERSION)
packages=(
  lld "clang-$llvm" "lld-$llvm" "liblld-$llvm-dev" "libclang-rt-$llvm-dev"
  "llvm-$llvm-dev" "llvm-$llvm-tools" "libmlir-$llvm-dev" "mlir-$llvm-tools"
  "clang-format-$llvm" "clang-tidy-$llvm"
  abigail-tools ccache cmake dpkg-dev git libjemalloc2 ninja-build patchelf pkgconf shellcheck
  flatbuffers-compiler libflatbuffers-dev libxxhash-dev
  nlohmann-json3-dev libcli11-dev libopenblas-dev libtbb-dev
  libgtest-dev libgmock-dev libbenchmark-dev
  python3-venv python3-pip
  zlib1g-dev libzstd-dev
)

# Packages of the list that are not installed, one per line.
missing_packages() {
  local installed
  # dpkg-query fails when a name is unknown to it and still prints the others.
  installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "${packages[@]}" 2>/dev/null || true)
  printf '%s\n' "${packages[@]}" | grep -vxFf <(sed -n 's/^installed //p' <<<"$installed") || true
}

# Runs a command until it succeeds, five times at most: servers of packages fail now
# and then, and what was fetched before stays.
with_retries() {
  local wait=5 try
  for try in 1 2 3 4 5; do
    "$@" && return 0
    ((try == 5)) && break
    echo "setup: failed (try $try of 5), again in $wait s: $*" >&2
    sleep "$wait"
    wait=$((2 * wait))
  done
  return 1
}

as_root() {
  if ((EUID == 0)); then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    echo "setup: need root, or sudo, to run: $*" >&2
    return 1
  fi
}

mapfile -t missing < <(missing_packages)
if ((${#missing[@]})); then
  if ! command -v apt-get >/dev/null; then
    echo "setup: this machine has no apt; install by hand: ${missing[*]}" >&2
    exit 1
  fi
  echo "setup: installing ${#missing[@]} packages: ${missing[*]}"
  # Without it, apt-get update is content with lists that are gone.
  with_retries as_root apt-get update -qq -o APT::Update::Error-Mode=any
  for package in "${missing[@]}"; do
    if ! apt-cache show "$package" >/dev/null 2>&1; then
      echo "setup: apt does not know $package; give apt a source that has LLVM $llvm for this release" >&2
      exit 1
    fi
  done
  with_retries as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get install -qq -y -o Acquire::Retries=3 --no-install-recommends "${missing[@]}" >/dev/null
fi

# Debian's own Python: the version the pinned packages were chosen for.
requirements=tools/scripts/requirements.txt
cuda=tools/scripts/requirements-cuda.txt
stamp=.venv/requirements.txt
if ! cmp -s <(cat "$requirements" "$cuda") "$stamp"; then
  echo "setup: installing Python packages into .venv"
  [[ -x .venv/bin/python ]] || /usr/bin/python3 -m venv .venv
  pip=(.venv/bin/python -m pip install --quiet --disable-pip-version-check)
  with_retries "${pip[@]}" -r "$requirements"
  with_retries "${pip[@]}" --no-deps -r "$cuda"
  cat "$requirements" "$cuda" >"$stamp"
fi
