#!/bin/sh
# `make install`: program, units, manual pages, completions, example configurations, and /etc/ringwall for root only.
# PROGRAM=FILE installs that one and builds nothing. With DESTDIR nothing is done as root: the directory is its maker's.
set -eu
cd "$(dirname "$0")/.."
. packaging/common.sh

prefix=${PREFIX:-/usr/local}
root=${DESTDIR:-}
sbin=$prefix/sbin
libexec=$prefix/lib/ringwall
program=${PROGRAM:-}
if [ -z "$program" ]; then
    packaging/setup.sh build
    . packaging/common.sh
    packaging/build.sh
    program=target/release/ringwall
fi

unit=$(mktemp)
bill=$(mktemp)
trap 'rm -f "$unit" "$bill"' EXIT
# What is in this very program.
if command -v python3 >/dev/null; then
    python3 packaging/sbom.py "$program" >"$bill"
else
    skip "bill of materials: no python3"
fi

maker=as_root
[ -z "$root" ] || maker=
put() {
    $maker install -D -m "$1" "$2" "$root$3"
}

# Where zsh looks: Debian keeps its own place for what packages bring.
functions=$prefix/share/zsh/site-functions
[ "$prefix" != /usr ] || functions=$prefix/share/zsh/vendor-completions

put 755 "$program" "$sbin/ringwall"
put 755 packaging/closed.sh "$libexec/closed.sh"
put 644 packaging/pages/ringwall.8 "$prefix/share/man/man8/ringwall.8"
put 644 packaging/pages/ringwall.toml.5 "$prefix/share/man/man5/ringwall.toml.5"
put 644 packaging/pages/ringwall.bash "$prefix/share/bash-completion/completions/ringwall"
put 644 packaging/pages/_ringwall "$functions/_ringwall"
put 644 packaging/pages/ringwall.fish "$prefix/share/fish/vendor_completions.d/ringwall.fish"
[ ! -s "$bill" ] || put 644 "$bill" "$prefix/share/doc/ringwall/ringwall.cdx.json"
put 644 packaging/host.toml "$prefix/share/doc/ringwall/host.toml"
put 644 packaging/gate.toml "$prefix/share/doc/ringwall/gate.toml"
for name in ringwall@.service ringwall-rights@.service \
    ringwall-closed@.service ringwall-made@.service ringwall-gate@.service \
    ringwall-renew@.service ringwall-renew@.timer ringwall-report@.service ringwall-report@.timer \
    ringwall-metrics.service ringwall-metrics.timer ringwall-site.service ringwall-signer.service \
    ringwall-console.service; do
    sed "s#@SBINDIR@#$sbin#; s#@LIBEXECDIR@#$libexec#" "packaging/$name" >"$unit"
    put 644 "$unit" "$prefix/lib/systemd/system/$name"
done
# What is closed as soon as it is made needs a way out, and no closing.
sed "s#@LIBEXECDIR@#$libexec#; /^ExecStart=/d; /^After=/d; /^# It begins by/d; /^# Those that/d; /^# Not over/d; 2d
    s#^Wants=.*#Wants=ringwall-made@%i.service#
    1s#.*#\# ringwall-made@%i and a rule of udev close the VLAN, bond or bridge %i when it is made; the rule starts ringwall@%i.#
    s#^Description=.*#Description=Have Ringwall guard %i whenever it is made#
    /^Before=/d; s#^WantedBy=.*#WantedBy=multi-user.target#" \
    packaging/ringwall-closed@.service >"$unit"
put 644 "$unit" "$prefix/lib/systemd/system/ringwall-virtual@.service"
# Alerts and a dashboard.
for name in prometheus.yml ringwall.rules.yml ringwall.dashboard.json; do
    put 644 "packaging/monitoring/$name" "$prefix/share/ringwall/monitoring/$name"
done
put 644 packaging/ringwall.lua "$prefix/share/ringwall/wireshark/ringwall.lua"
# What keeps managers of the network away from the TAP beside a card that stays in place.
for name in 10-ringwall.link 10-ringwall.network; do
    put 644 "packaging/network/$name" "$prefix/lib/systemd/network/$name"
done
# Which instances of the units need a namespace or an address, and what they get then.
put 644 packaging/network/namespace.conf "$libexec/namespace.conf"
sed "s#@SBINDIR@#$sbin#; s#@LIBEXECDIR@#$libexec#" packaging/network/generator.sh >"$unit"
put 755 "$unit" "$prefix/lib/systemd/system-generators/ringwall"
for name in 70-ringwall.rules 81-ringwall.rules; do
    sed "s#@LIBEXECDIR@#$libexec#" "packaging/network/$name" >"$unit"
    put 644 "$unit" "$prefix/lib/udev/rules.d/$name"
done
put 644 packaging/ringwall.sysusers "$prefix/lib/sysusers.d/ringwall.conf"
put 644 packaging/ringwall.tmpfiles "$prefix/lib/tmpfiles.d/ringwall.conf"
# A key distributor is a guarded host that also writes to the site's repository, which may be in etcd.
sed "s#@SBINDIR@#$sbin#; s#@LIBEXECDIR@#$libexec#; s#ringwall host run#ringwall akd run#
    s#^Description=.*#Description=Ringwall guards %i and distributes keys#
    s#^ProtectSystem=strict#&\nReadWritePaths=-/etc/ringwall/site\nInaccessiblePaths=-/etc/ringwall/site/ca.key.pem -/etc/ringwall/site/site.key.pem -/etc/ringwall/site/request.key.pem -/etc/ringwall/site/dhcp.key.pem#
    s#^Conflicts=shutdown.target#& ringwall@%i.service#" packaging/ringwall@.service >"$unit"
put 644 "$unit" "$prefix/lib/systemd/system/ringwall-akd@.service"
$maker install -d -m 700 "$root/etc/ringwall"
# As whom daemons read frames. A package for an image leaves this to the image's first boot, or to its own scripts.
if [ -z "$root" ] && ! getent passwd ringwall >/dev/null; then
    if command -v systemd-sysusers >/dev/null; then
        as_root systemd-sysusers "$prefix/lib/sysusers.d/ringwall.conf"
    else
        as_root useradd --system --user-group --no-create-home --home-dir / --shell /usr/sbin/nologin ringwall
    fi
fi
if [ -z "$root" ] && [ -d /run/systemd/system ]; then
    as_root systemctl daemon-reload
fi
echo "installed $root$sbin/ringwall; next: docs/manual/install.md, or man ringwall"
