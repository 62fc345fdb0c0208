#!/bin/sh
# Builds both programs and runs ringwall-lab with these arguments, as root.
set -eu
cd "$(dirname "$0")/.."
packaging/setup.sh build
. packaging/common.sh
cargo build --release --locked -p ringwall -p ringwall-lab
if is_root; then
    exec target/release/ringwall-lab "$@"
fi
exec sudo target/release/ringwall-lab "$@"
