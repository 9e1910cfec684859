#!/usr/bin/env bash
# Lint, then all tests; pytest's closing line comes last. Fails when either fails.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

status=0
scripts/lint.sh || status=1
echo "== pytest"
.venv/bin/python -m pytest -n 2 || status=1
exit "$status"
