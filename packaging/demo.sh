#!/bin/sh
# `make demo`: set up, build, and run the demo.
set -eu
cd "$(dirname "$0")/.."
packaging/setup.sh demo
. packaging/common.sh
# shellcheck disable=SC2086 # words of cargo
packaging/build.sh $lab_programs
is_root || command -v sudo >/dev/null || fail "the demo makes network namespaces: run as root"
# A page that the caller names takes the place of this one.
set -- --page target/demo.html "$@"
# The demo takes the place of this script, so that Ctrl-C reaches it and it cleans up.
if is_root; then
    exec target/release/ringwall-lab demo "$@"
fi
exec sudo target/release/ringwall-lab demo "$@"
