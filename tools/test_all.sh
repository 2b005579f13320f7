#!/bin/sh
# Run the tests on every supported Python that is installed, each in an environment from the lock. Used by the Makefile.
#
#   tools/test_all.sh UV INSTALLER [ARGUMENT FOR PYTEST]...
set -eu

cd "$(dirname "$0")/.."
uv=$1
installer=$2
shift 2

# pyenv puts names on the path that end with an error for every version that is not switched on.
for folder in "${PYENV_ROOT:-$HOME/.pyenv}"/versions/*/bin; do
    [ -d "$folder" ] && PATH=$folder:$PATH
done
export PATH

passed='' failed='' missing=''
for version in 3.11 3.12 3.13; do
    if ! python=$("$uv" python find --no-project --system --no-python-downloads "$version" 2>/dev/null); then
        missing="$missing $version"
        continue
    fi
    echo "test-all: Python $version"
    if tools/venv.sh "$python" ".venv-$version" "$installer" && ".venv-$version/bin/python" -m pytest "$@"; then
        passed="$passed $version"
    else
        failed="$failed $version"
    fi
done

echo "test-all: passed:${passed:- none}; failed:${failed:- none}; not installed:${missing:- none}"
[ -z "$missing" ] || echo "test-all: uv python install$missing would install what is missing"
[ -z "$failed" ] && [ -n "$passed" ]
