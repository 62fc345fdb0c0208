#!/bin/sh
# `make test-machine`: real machines under QEMU, see packaging/machine/README.md. --kernel names
# another kernel's package; all other words are those of packaging/machine/run.py.
set -eu
cd "$(dirname "$0")/.."
packaging/setup.sh machine
. packaging/common.sh

kernel=linux-image-amd64
if [ "${1:-}" = --kernel ]; then
    kernel=$2
    shift 2
fi
is_root || fail "machines need root: for a network namespace and for their image"
directory=target/machine
mkdir -p "$directory"
packaging/build.sh
say "image of a machine with $kernel"
packaging/machine/image.sh "$directory" "$kernel"
say "machines"
/usr/bin/python3 packaging/machine/run.py "$directory" target/release/ringwall "$@"
