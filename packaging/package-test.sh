#!/bin/sh
# package-test.sh PROGRAM: packs the program twice and looks at what came of it: equal byte by byte,
# small enough, everything in its place, nothing that names this machine, and lintian silent where
# it is installed. The package is thrown away. Status 3 says that a tool is missing.
set -eu
cd "$(dirname "$0")/.."
. packaging/common.sh

program=$1
# What a slow line and a small disk still take.
package_most=6000000
installed_most=20480

for tool in dpkg-deb dpkg-shlibdeps strip ar xz python3; do
    if ! command -v "$tool" >/dev/null; then
        skip "Debian package: no $tool (packages dpkg-dev, binutils, xz-utils)"
        exit 3
    fi
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

packaging/package.sh --program "$program" --revision 0.1 --out "$work/a"
# Quickly, for what is compared is all but the work of xz.
packaging/package.sh --program "$program" --revision 0.1 --out "$work/b" --effort 0 >/dev/null
packaging/package.sh --program "$program" --revision 0.1 --out "$work/c" --effort 0 >/dev/null
package=$(echo "$work"/a/*.deb)
cmp "$work"/b/*.deb "$work"/c/*.deb || fail "two packages of one program differ"
[ "$(stat -c %s "$package")" -le "$package_most" ] || fail "the package is larger than $package_most bytes"
[ "$(dpkg-deb -f "$package" Installed-Size)" -le "$installed_most" ] || fail "it takes more than $installed_most KiB"

tree=$work/tree
dpkg-deb -x "$package" "$tree"
dpkg-deb -e "$package" "$work/control"
for file in sbin/ringwall lib/ringwall/closed.sh lib/systemd/system/ringwall@.service lib/systemd/system/ringwall-akd@.service \
    lib/systemd/system/ringwall-gate@.service lib/systemd/system/ringwall-closed@.service \
    lib/systemd/system/ringwall-virtual@.service lib/systemd/system/ringwall-made@.service \
    lib/systemd/system/ringwall-renew@.timer lib/systemd/system/ringwall-metrics.service \
    lib/systemd/system/ringwall-metrics.timer lib/systemd/system/ringwall-report@.timer \
    lib/systemd/system/ringwall-report@.service lib/systemd/system/ringwall-site.service \
    lib/systemd/system/ringwall-signer.service lib/systemd/system/ringwall-console.service share/ringwall/monitoring/ringwall.rules.yml \
    share/ringwall/wireshark/ringwall.lua lib/x86_64-linux-gnu/wireshark/plugins/ringwall.lua \
    share/ringwall/monitoring/ringwall.dashboard.json share/ringwall/monitoring/prometheus.yml lib/ringwall/namespace.conf lib/systemd/system-generators/ringwall \
    lib/systemd/system/ringwall-rights@.service lib/systemd/network/10-ringwall.network lib/systemd/network/10-ringwall.link \
    lib/udev/rules.d/70-ringwall.rules lib/udev/rules.d/81-ringwall.rules lib/sysusers.d/ringwall.conf lib/tmpfiles.d/ringwall.conf \
    share/man/man8/ringwall.8.gz share/man/man5/ringwall.toml.5.gz share/bash-completion/completions/ringwall \
    share/zsh/vendor-completions/_ringwall share/fish/vendor_completions.d/ringwall.fish \
    share/doc/ringwall/ringwall.cdx.json share/doc/ringwall/manual.md.gz; do
    [ -s "$tree/usr/$file" ] || fail "the package lacks /usr/$file"
done
[ -s "$tree/etc/apparmor.d/usr.sbin.ringwall" ] || fail "the package lacks its AppArmor profile"
sum=$(sha256sum "$tree/usr/sbin/ringwall" | cut -d' ' -f1)
grep -q "$sum" "$tree/usr/share/doc/ringwall/ringwall.cdx.json" || fail "the bill of materials is of another program"
"$tree/usr/sbin/ringwall" --version
for script in postinst prerm postrm; do
    sh -n "$work/control/$script"
done
! grep -rIl -e '@SBINDIR@' -e '@LIBEXECDIR@' -e "$work" "$tree" "$work/control" || fail "these files name a place that is not the package's"

# What systemd says of each unit's sandbox, in tenths: 0 is shut, 100 is open. A generator loosens
# those instances whose card is in a namespace (record 0106).
check_exposure() {
    if ! systemd-analyze security --help 2>/dev/null | grep -q -- --offline; then
        skip "exposure of the units: no systemd-analyze, or one that knows no --offline"
        return
    fi
    for unit in "$tree"/usr/lib/systemd/system/ringwall*.service; do
        systemd-analyze security --no-pager --offline=true --threshold=25 "$unit" >"$work/said" 2>&1 ||
            { cat "$work/said"; fail "$(basename "$unit") is more exposed than 2.5"; }
        tail -n 1 "$work/said"
    done
}
check_exposure

if command -v lintian >/dev/null; then
    lintian --allow-root --fail-on error,warning "$package" || fail "lintian complains"
else
    skip "lintian of the package: not installed"
fi
echo "packed: $(basename "$package"), two equal"
[ -z "${skipped:-}" ] || exit 3
