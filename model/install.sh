#!/bin/sh
# Puts Verifpal below target/, for this tree alone. It wants a newer Rust than the tree does, so it is built by nightly;
# without optimization over crates, which costs a build of minutes and wins little here.
set -eu
cd "$(dirname "$0")/.."
version=1.6.7
root=target/verifpal
if [ -x "$root/bin/verifpal" ] && "$root/bin/verifpal" --version 2>/dev/null | grep -qF "$version"; then
    exit 0
fi
if ! cargo +nightly --version >/dev/null 2>&1; then
    echo "no nightly Rust to build verifpal with (rustup toolchain install nightly)" >&2
    exit 3
fi
export CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_PROFILE_RELEASE_OPT_LEVEL=2
cargo +nightly install verifpal --version "=$version" --locked --ignore-rust-version --quiet \
    --root "$root" --target-dir "$root/build" || {
    echo "verifpal $version cannot be built here" >&2
    exit 3
}
rm -rf "$root/build"
