#!/bin/sh
# `make test-machine`: real machines under QEMU, see packaging/machine/README.md. --kernel names
# another kernel's package; --built takes the program that is in target/release; after --peers
# (`make bench ARGS=machine`) they measure, beside what the kernel has. All other words are those of
# packaging/machine/run.py, or of peers.py.
set -eu
cd "$(dirname "$0")/.."
packaging/setup.sh machine
. packaging/common.sh

kernel=linux-image-amd64
script=run.py
is_built=no
while :; do
    case ${1:-} in
    --kernel) kernel=$2 && shift ;;
    --built) is_built=yes ;;
    --peers) script=peers.py ;;
    *) break ;;
    esac
    shift
done
is_root || fail "machines need root: for a network namespace and for their image"
directory=target/machine
mkdir -p "$directory"
[ "$is_built" = yes ] || packaging/build.sh
say "image of a machine with $kernel"
packaging/machine/image.sh "$directory" "$kernel"
say "machines"
/usr/bin/python3 "packaging/machine/$script" "$directory" target/release/ringwall "$@"
