#!/bin/sh
# Builds programs as they are installed and released: build.sh [ARGUMENTS OF CARGO BUILD], -p ringwall without any. No path of this
# machine gets into them, so that two builds of one source with one compiler are equal wherever they are made
# (packaging/reproducible.sh). RUSTFLAGS of the caller are not taken, CFLAGS are.
set -eu
cd "$(dirname "$0")/.."
. packaging/common.sh

[ $# -gt 0 ] || set -- -p ringwall
here=$(pwd -P)
home=${CARGO_HOME:-$HOME/.cargo}
mkdir -p "$home"
home=$(cd "$home" && pwd -P)
target=${CARGO_TARGET_DIR:-$here/target}
mkdir -p "$target"
target=$(cd "$target" && pwd -P)

# The last mapping that fits counts; the target directory lies within the tree as a rule.
split=$(printf '\037')
CARGO_ENCODED_RUSTFLAGS="--remap-path-prefix=$home=/cargo$split--remap-path-prefix=$here=/ringwall$split--remap-path-prefix=$target=/target"
# Addresses to be set at the start take 40 KB of a package otherwise; the C library does so since 2.36 (Debian 12).
CARGO_ENCODED_RUSTFLAGS="$CARGO_ENCODED_RUSTFLAGS$split-Clink-arg=-Wl,-z,pack-relative-relocs"
maps="-ffile-prefix-map=$here=/ringwall -ffile-prefix-map=$home=/cargo -ffile-prefix-map=$target=/target"
case "$here$home$target" in
*[[:space:]]*) echo "build.sh: a path has white space in it: C code will name it" >&2 ;;
*) CFLAGS="${CFLAGS:+$CFLAGS }$maps" && export CFLAGS ;;
esac
export CARGO_ENCODED_RUSTFLAGS
# For whatever would write the time of the build.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
export SOURCE_DATE_EPOCH
exec cargo build --release --locked "$@"
