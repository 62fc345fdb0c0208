#!/bin/sh
# `make package`: a Debian package in target/package, from what packaging/install.sh installs (record 0076).
#   --program FILE     packs this program instead of building one
#   --revision NUMBER  of the package, 1 without it
#   --out DIRECTORY    where it goes
#   --effort NUMBER    of xz, 0 to 9, 6 without it
# Two packages of one source with one compiler are equal byte by byte.
set -eu
cd "$(dirname "$0")/.."
. packaging/common.sh

usage() {
    fail "usage: package.sh [--program FILE] [--revision NUMBER] [--out DIRECTORY] [--effort NUMBER]"
}

program=""
revision=1
effort=6
out=target/package
while [ $# -gt 0 ]; do
    [ $# -ge 2 ] || usage
    case $1 in
    --program) program=$2 ;;
    --revision) revision=$2 ;;
    --out) out=$2 ;;
    --effort) effort=$2 ;;
    *) usage ;;
    esac
    shift 2
done
if [ -z "$program" ]; then
    packaging/setup.sh package
    packaging/build.sh
    program=target/release/ringwall
fi

SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
export SOURCE_DATE_EPOCH
umask 022
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tree=$work/tree
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)-$revision
architecture=$(dpkg --print-architecture)
documents=$tree/usr/share/doc/ringwall

put() {
    install -D -m "$1" "$2" "$tree/$3"
}

# What `make install` has, with the program as it is in the package, so that the bill of materials has its sum.
stage_files() {
    strip -o "$work/ringwall" "$program"
    PROGRAM=$work/ringwall PREFIX=/usr DESTDIR=$tree packaging/install.sh >/dev/null
    # Made with their modes when the package is configured.
    rmdir "$tree/etc/ringwall" "$tree/etc"
    # Where Wireshark looks; without it the link leads to a file that does no harm.
    plugins=usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)/wireshark/plugins
    mkdir -p "$tree/$plugins"
    ln -s ../../../../share/ringwall/wireshark/ringwall.lua "$tree/$plugins/ringwall.lua"
    put 644 packaging/debian/apparmor etc/apparmor.d/usr.sbin.ringwall
    put 644 packaging/debian/lintian-overrides usr/share/lintian/overrides/ringwall
}

changelog_of_package() {
    printf 'ringwall (%s) unstable; urgency=medium\n\n' "$version"
    printf '  * What changed is in changelog.gz.\n\n'
    printf ' -- The Ringwall founders <founders@ringwall.example>  %s\n' "$(LC_ALL=C date -u -R -d "@$SOURCE_DATE_EPOCH")"
}

stage_documents() {
    put 644 packaging/debian/copyright usr/share/doc/ringwall/copyright
    gzip -9n <docs/threats.md >"$documents/threats.md.gz"
    # One file: pages share their words, and a reader searches in all of them. The keys are
    # ringwall.toml(5) already.
    find docs/manual -name '*.md' ! -name configuration.md | LC_ALL=C sort | xargs cat |
        gzip -9n >"$documents/manual.md.gz"
    gzip -9n <CHANGELOG.md >"$documents/changelog.gz"
    changelog_of_package | gzip -9n >"$documents/changelog.Debian.gz"
    for page in "$tree"/usr/share/man/man*/*; do
        gzip -9n "$page"
    done
}

# The libraries that the program is linked with, and from which version on they serve.
libraries() {
    mkdir -p "$work/source/debian"
    printf 'Source: ringwall\n\nPackage: ringwall\nArchitecture: any\n' >"$work/source/debian/control"
    (cd "$work/source" && dpkg-shlibdeps -O -e"$tree/usr/sbin/ringwall") | sed -n 's/^shlibs:Depends=//p'
}

stage_control() {
    mkdir "$tree/DEBIAN"
    size=$(du -sk --apparent-size "$tree" | cut -f1)
    sed "s/@VERSION@/$version/; s/@ARCHITECTURE@/$architecture/; s/@SIZE@/$size/; s/@LIBRARIES@/$(libraries)/" \
        packaging/debian/control.in >"$tree/DEBIAN/control"
    for script in postinst prerm postrm; do
        install -m 755 "packaging/debian/$script" "$tree/DEBIAN/$script"
    done
    echo /etc/apparmor.d/usr.sbin.ringwall >"$tree/DEBIAN/conffiles"
    chmod 644 "$tree/DEBIAN/conffiles" "$tree/DEBIAN/control"
    (cd "$tree" && find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum) >"$tree/DEBIAN/md5sums"
}

stage_files
stage_documents
stage_control
find "$tree" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
mkdir -p "$out"
file=$out/ringwall_${version}_$architecture.deb
# dpkg-deb knows no way to ask xz for its filter of x86 code, which saves 4 %, so it packs nothing and
# its members are compressed here (deb(5)). One thread: what several write depends on how many there
# were. The checksum is the one that dpkg-deb asks for; one more bit of context (lc) saves 12 kB, a
# dictionary that holds the whole program 23 kB.
dpkg-deb --root-owner-group -Znone --build "$tree" "$work/plain.deb" >/dev/null
filter=
[ "$architecture" != amd64 ] || filter=--x86
(cd "$work" && ar x plain.deb && xz -T1 --check=crc32 control.tar &&
    xz -T1 --check=crc32 $filter --lzma2=preset="$effort",dict=32MiB,lc=4 data.tar &&
    ar rcD packed.deb debian-binary control.tar.xz data.tar.xz)
mv "$work/packed.deb" "$file"
echo "$file: $(stat -c %s "$file") bytes, $(sed -n 's/^Installed-Size: //p' "$tree/DEBIAN/control") KiB installed"
