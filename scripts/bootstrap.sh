#!/usr/bin/env bash
# Makes .venv and installs gpufabric with its locked requirements; does nothing when all is there.
# usage: scripts/bootstrap.sh [test] [docs] [lock]     (base is always installed)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf 'bootstrap: %s\n' "$*" >&2; }
stop() { say "$*"; exit 1; }

find_python() {
    local name
    for name in ${PYTHON:+"$PYTHON"} python3 python3.13 python3.12 python3.11; do
        if "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$name"
            return
        fi
    done
}

# Debian and Ubuntu keep ensurepip in a package of its own; python3 -m venv fails without it.
ensure_venv_module() {
    local python=$1 package
    "$python" -c 'import ensurepip, venv' 2>/dev/null && return
    package="$(basename "$python")-venv"
    if ! command -v apt-get >/dev/null || [[ $(id -u) != 0 ]]; then
        stop "$package is missing; install it as root, such as: apt-get install $package"
    fi
    say "installing $package"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq >/dev/null || say "the lists of packages could not be renewed"
    apt-get install -y -qq --no-install-recommends "$package" >/dev/null \
        || stop "$package could not be installed"
    "$python" -c 'import ensurepip, venv' || stop "$python still has no venv after installing $package"
}

make_venv() {
    local python
    python=$(find_python)
    [[ -n $python ]] || stop "no python3 of version 3.11 or newer found; set PYTHON=/path/to/python3"
    ensure_venv_module "$python"
    say "making .venv with $("$python" --version)"
    "$python" -m venv --clear .venv
}

# A folder that was copied or moved holds a .venv that still points to the old place.
venv_is_ours() {
    .venv/bin/python -c '' 2>/dev/null || return 1
    [[ ! -e .venv/home || $(<.venv/home) == "$PWD" ]]
}

stamp_of() { # the state of one set: what was asked for
    sha256sum "$@" | sha256sum
}

install_set() { # NAME FILE...: the stamp is written last, so a broken install is done again
    local name=$1 stamp
    shift
    stamp=$(stamp_of "$@")
    [[ -e .venv/stamp-$name && $(<".venv/stamp-$name") == "$stamp" ]] && return
    "install_$name"
    echo "$stamp" >".venv/stamp-$name"
}

locked() { # FILE...
    local args=() file
    for file in "$@"; do args+=(-r "$file"); done
    say "installing ${*}"
    .venv/bin/python -m pip install -qq --disable-pip-version-check --require-hashes "${args[@]}"
}

install_base() {
    locked requirements/build.txt requirements/base.txt
    .venv/bin/python -m pip install -qq --disable-pip-version-check \
        --no-deps --no-build-isolation --editable .
}
install_test() { locked requirements/test.txt; }
install_docs() { locked requirements/docs.txt; }
install_lock() { locked requirements/lock.txt; }

venv_is_ours || make_venv
[[ -e .venv/home ]] || echo "$PWD" >.venv/home
install_set base requirements/build.txt requirements/base.txt pyproject.toml
for name in "$@"; do
    install_set "$name" "requirements/$name.txt"
done
