#!/bin/sh
# Builds the network stacks of others that the scrubber's receivers are compared on: gVisor's netstack (Go) and lwIP (C), into
# target/receivers. What a machine cannot build is said by name; the comparison then runs without it.
set -eu
cd "$(dirname "$0")/.."
. packaging/common.sh

source=crates/lab/stacks
built=${CARGO_TARGET_DIR:-$PWD/target}/receivers
mkdir -p "$built"

build_lwip() {
    if ! [ -e /usr/include/lwip/lwip/tcp.h ]; then
        skip "receiver lwip: no header files; on Debian: liblwip-dev"
        return
    fi
    cc -O2 -Wall -Wextra -Werror -I/usr/include/lwip -o "$built/lwip" "$source/lwip/receiver.c" -llwip
}

# A distribution's own Go may be older than what gVisor asks for, and would fetch another; that is not for a test to do.
build_gvisor() {
    if ! command -v go >/dev/null; then
        skip "receiver gvisor: no Go"
        return
    fi
    if ! (cd "$source/gvisor" && GOTOOLCHAIN=local GOFLAGS=-mod=readonly go build -o "$built/gvisor" .); then
        rm -f "$built/gvisor"
        skip "receiver gvisor: go could not build it (it needs the Go of $source/gvisor/go.mod, and the network at first)"
    fi
}

build_lwip
build_gvisor
