#!/bin/sh
# Builds both programs and runs ringwall-lab with these arguments, as root.
set -eu
cd "$(dirname "$0")/.."
case ${1:-} in
bench) packaging/setup.sh bench ;;
*) packaging/setup.sh build ;;
esac
. packaging/common.sh
packaging/build.sh -p ringwall -p ringwall-lab
if is_root; then
    exec target/release/ringwall-lab "$@"
fi
exec sudo target/release/ringwall-lab "$@"
