#!/bin/sh
# Look up known vulnerabilities of all that requirements.lock pins. Used by the Makefile.
#
#   tools/audit.sh UV LOCK [ARGUMENT FOR PIP-AUDIT]...
#
# Exit code 1: there are some. 2: it could not be found out.
set -eu

uv=$1
lock=$2
shift 2

# An environment of its own, kept by uv. The lock is complete and has hashes, so nothing is resolved or installed.
# Strict: a package of which nothing could be found out is not taken for a sound one.
status=0
said=$("$uv" tool run --quiet --from 'pip-audit>=2.9,<3' pip-audit --progress-spinner off --desc off --strict \
    --disable-pip --require-hashes --requirement "$lock" "$@" 2>&1) || status=$?

case $status:$said in
    0:* | *'Found '[0-9]*' known vulnerabilit'*)
        printf '%s\n' "$said"
        exit "$status"
        ;;
esac
reason=$(printf '%s\n' "$said" | sed -n 's/^ *\(.*[^ ]\) *$/\1/p' | tail -n 1)
echo "make: the audit could not be made; it needs a network, for pip-audit and for a list of vulnerabilities: $reason" >&2
exit 2
