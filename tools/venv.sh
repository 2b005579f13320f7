#!/bin/sh
# Make or refresh the virtual environment from the lock. Used by the Makefile.
#
#   tools/venv.sh PYTHON VENV INSTALLER
#
# Does nothing when VENV already fits: its stamp holds the interpreter and a
# checksum of all that decides its content.
set -eu

python=$1
venv=$2
installer=$3

cd "$(dirname "$0")/.."

say() { printf '%s\n' "$*"; }
die() { say "make: $*" >&2; exit 1; }

case $installer in
    uv | pip) ;;
    *) die "INSTALLER is uv or pip, not '$installer'" ;;
esac

# What leaks in from the caller's shell would make the environment differ
# from machine to machine.
unset PYTHONPATH PYTHONHOME VIRTUAL_ENV CONDA_PREFIX PIP_USER PIP_TARGET PIP_PREFIX \
    UV_SYSTEM_PYTHON UV_PYTHON UV_TARGET UV_PREFIX UV_NO_BINARY UV_CONSTRAINT UV_OVERRIDE

# The interpreter itself, also when "$python" is that of an active environment
# (perhaps VENV, about to be removed).
who=$("$python" -c '
import os, sys
base = getattr(sys, "_base_executable", sys.executable)
print("%d.%d" % sys.version_info[:2])
print(base)
print(sys.version.split()[0], os.path.realpath(base))
' 2>/dev/null) || die "cannot run '$python'; name a Python 3.11, 3.12 or 3.13, as in: make test PYTHON=python3.12"
minor=$(say "$who" | sed -n 1p)
base=$(say "$who" | sed -n 2p)
interpreter=$(say "$who" | sed -n 3p)
case $minor in
    3.11 | 3.12 | 3.13) ;;
    *) die "'$python' is Python $minor; this project needs 3.11, 3.12 or 3.13, as in: make test PYTHON=python3.12" ;;
esac

# The folder is part of the content: scripts in VENV start with its path.
wanted=$(
    say "$interpreter"
    say "$PWD"
    cat requirements.lock pyproject.toml tools/venv.sh | cksum
)
if [ -x "$venv/bin/python" ] && [ "$(cat "$venv/.stamp" 2>/dev/null)" = "$wanted" ]; then
    exit 0
fi
rm -f "$venv/.stamp"

# Another interpreter or another place: start afresh. Else refresh in place.
made_for=$(cat "$venv/.made-for" 2>/dev/null || :)
if [ "$made_for" != "$interpreter $PWD" ] || ! "$venv/bin/python" -c '' 2>/dev/null; then
    say "venv: making $venv with Python $interpreter"
    rm -rf "$venv"
    "$base" -m venv "$venv" || die "'$base -m venv' failed (on Debian and Ubuntu: install python3-venv)"
    printf '%s' "$interpreter $PWD" >"$venv/.made-for"
fi
py=$venv/bin/python

case $installer in
    uv)
        # pip fetches uv only: uv does the rest several times faster. Its
        # version and hashes are those of the lock.
        awk '/^[a-z]/ { mine = /^uv==/ } mine' requirements.lock >"$venv/uv.txt"
        say "venv: installing uv"
        "$py" -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r "$venv/uv.txt"
        say "venv: installing requirements.lock"
        # Compiled now, not at every start where Python may not write bytecode: an import takes a third of the time.
        "$venv/bin/uv" pip sync --quiet --compile-bytecode --python "$py" --require-hashes requirements.lock
        ;;
    pip)
        # For a network where only pip is set up. Slower.
        say "venv: installing requirements.lock"
        "$py" -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements.lock
        ;;
esac

# setuptools is in the lock, so the build needs no network.
# What an older version left here would be found before the new one.
rm -rf lib/*.egg-info
say "venv: installing rankrouting, editable"
"$py" -m pip install --quiet --disable-pip-version-check --no-index --no-deps --no-build-isolation --editable .

printf '%s\n' "$wanted" >"$venv/.stamp"
say "venv: ready"
