#!/bin/sh
# `make release KEY=FILE`: what is published of a version, in target/release-files: the source, the
# program, its bill of materials, the Debian package, and SHA256SUMS with its signature by the SSH
# key in FILE. docs/releasing.md says what comes before and after.
set -eu
cd "$(dirname "$0")/.."
. packaging/common.sh
. packaging/signing.sh

key=${1:-}
[ -f "$key" ] || fail "usage: make release KEY=FILE, a private SSH key"
[ -z "$(git status --porcelain)" ] || fail "there are changes that are not committed"
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
tag=v$version
git tag --points-at HEAD | grep -Fxq "$tag" || fail "the tag $tag is not at this commit: git tag -s $tag"
git verify-tag "$tag" || fail "the tag $tag has no good signature"
grep -Fq "## [$version]" CHANGELOG.md || fail "CHANGELOG.md has no section [$version]"

out=target/release-files
rm -rf "$out"
mkdir -p "$out"
git archive --format=tar --prefix="ringwall-$version/" HEAD | gzip -9n >"$out/ringwall-$version.tar.gz"
packaging/build.sh
cp target/release/ringwall "$out/ringwall-$version-x86_64-linux"
packaging/package.sh --program target/release/ringwall --out "$out"
python3 packaging/sbom.py "$out/ringwall-$version-x86_64-linux" >"$out/ringwall-$version.cdx.json"
sign_files "$out" "$key"
say "signed: $out"
ls "$out"
