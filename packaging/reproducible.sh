#!/bin/sh
# `make reproducible`: builds the program twice, in two folders with paths of different lengths, and compares the two byte by byte.
# Takes two full release builds. With QUICK=1 nothing is optimised, which shows paths, times and order all the same, but not the
# work of the optimiser. Status 1 if the programs differ; both are kept then.
set -eu
cd "$(dirname "$0")/.."
packaging/setup.sh build
. packaging/common.sh

if [ -n "${QUICK:-}" ]; then
    export CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16
fi
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || echo 0)
export SOURCE_DATE_EPOCH

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# What is tracked, as it lies here; of an unpacked archive everything but what was built.
list() {
    git ls-files -z 2>/dev/null || find . -path ./target -prune -o -path ./fuzz/target -prune -o -type f -print0
}

build_in() {
    mkdir -p "$1"
    list | xargs -0 cp --parents -t "$1"
    # A target directory of the caller's would be one for both.
    (unset CARGO_TARGET_DIR && cd "$1" && nice -n 10 packaging/build.sh)
}

say "first build"
build_in "$work/a"
say "second build, in a folder with a longer path"
build_in "$work/somewhere/else/with-a-longer/path"
first=$work/a/target/release/ringwall
second="$work/somewhere/else/with-a-longer/path/target/release/ringwall"
sha256sum "$first" "$second"
if cmp -s "$first" "$second"; then
    say "equal byte by byte, with $(rustc --version)"
    exit 0
fi
kept=$(mktemp -d)
cp "$first" "$kept/first"
cp "$second" "$kept/second"
fail "the two programs differ; they are in $kept"
