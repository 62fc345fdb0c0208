#!/bin/sh
# Builds both programs and runs ringwall-lab with these arguments, as root.
set -eu
cd "$(dirname "$0")/.."
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
