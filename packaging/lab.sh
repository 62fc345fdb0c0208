#!/bin/sh
# Builds both programs and runs ringwall-lab with these arguments, as root. `bench machine` is
# carried out by packaging/machine/peers.py.
set -eu
cd "$(dirname "$0")/.."
# What this machine's kernel may not have is measured in machines that have it.
if [ "${1:-} ${2:-}" = "bench machine" ]; then
    shift 2
    exec packaging/machine.sh --peers "$@"
fi
case ${1:-} in
bench) packaging/setup.sh bench ;;
*) packaging/setup.sh build ;;
esac
. packaging/common.sh
# shellcheck disable=SC2086 # words of cargo
packaging/build.sh $lab_programs
if is_root; then
    exec target/release/ringwall-lab "$@"
fi
exec sudo target/release/ringwall-lab "$@"
