#!/usr/bin/env bash
# Installs the real programs that tests run against (requirements/apt-test.txt) where some are missing.
# Never fails: a test that needs a missing program skips, or fails where CI=true.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf 'real parts: %s\n' "$*" >&2; }

missing_packages() {
    local package
    while read -r package; do
        [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] \
            || echo "$package"
    done < <(grep -v '^\s*\(#\|$\)' requirements/apt-test.txt)
}

# The package of OpenSM starts a subnet manager: never install it unasked beside a real fabric.
has_rdma_device() { compgen -G '/sys/class/infiniband/*' >/dev/null; }

install_each() { # all at once; where that fails, one by one, so that one lost package costs only itself
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq >/dev/null || say "the lists of packages could not be renewed"
    apt-get install -y -qq --no-install-recommends "$@" >/dev/null 2>&1 && return
    local package
    for package in "$@"; do
        apt-get install -y -qq --no-install-recommends "$package" >/dev/null || true
    done
}

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    say "not a Debian system, none installed: tests that need them skip"
    exit 0
fi
mapfile -t missing < <(missing_packages)
[[ ${#missing[@]} == 0 ]] && exit 0
if [[ $(id -u) != 0 ]]; then
    say "missing, and not root: ${missing[*]}"
elif has_rdma_device; then
    say "missing, and not installed beside a real RDMA device: ${missing[*]}"
else
    say "installing ${missing[*]}"
    install_each "${missing[@]}"
    mapfile -t missing < <(missing_packages)
    [[ ${#missing[@]} == 0 ]] || say "could not be installed: ${missing[*]}"
fi
