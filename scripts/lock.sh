#!/usr/bin/env bash
# Turns requirements/*.in into the locked *.txt: versions and hashes, no host, no path.
# usage: scripts/lock.sh [--upgrade]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export CUSTOM_COMPILE_COMMAND="make lock"
# The index alone counts: a wheel that lies only on this machine has a hash that nobody else can match.
export PIP_CONFIG_FILE=/dev/null
unset PIP_FIND_LINKS PIP_EXTRA_INDEX_URL

for name in base build test docs lock; do # test and docs are bound to the versions of base
    .venv/bin/python -m piptools compile --quiet --generate-hashes --strip-extras --allow-unsafe \
        --no-annotate --no-emit-index-url --no-emit-find-links "$@" \
        --output-file "requirements/$name.txt" "requirements/$name.in"
done
