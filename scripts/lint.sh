#!/usr/bin/env bash
# Format, lint, types and import law; runs all of them and fails when one does.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

failed=()
step() { # NAME COMMAND...
    local name=$1
    shift
    echo "== $name"
    "$@" || failed+=("$name")
}

step "ruff format" .venv/bin/ruff format --check --quiet .
step "ruff check" .venv/bin/ruff check --quiet .
step "mypy" .venv/bin/mypy
step "import law" .venv/bin/lint-imports

if [[ ${#failed[@]} -gt 0 ]]; then
    printf 'lint failed: %s\n' "$(IFS=,; echo "${failed[*]}")" >&2
    exit 1
fi
